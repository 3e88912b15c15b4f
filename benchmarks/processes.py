"""Calls in processes of their own, which are ended past a limit; what fails is told, not raised."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from os import environ
from typing import Any

CONTEXT = get_context("spawn")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

# The words for calls that gave nothing back.
STOPPED, DIED = "stopped", "died"


@dataclass(frozen=True)
class Call:
    """A call, what it is known by, and variables that its process has besides."""

    key: tuple[str, int]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


Ended = tuple[Call, Any, str]


class Worker:
    """A process that makes one call after another."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = variables
        self.here, there = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=_work, args=(there,))
        before = {name: environ.get(name) for name in variables}
        environ.update(variables)
        self.process.start()
        for name, value in before.items():
            environ.pop(name) if value is None else environ.update({name: value})
        there.close()

    def begin(self, call: Call, patience: float | None) -> None:
        """Give it a call, which may take so many seconds."""
        self.call = call
        self.until = time.monotonic() + patience if patience is not None else float("inf")
        self.here.send((call.function, call.arguments))

    def take(self) -> Ended:
        """Return what came of the call: what it gave, or why it gave nothing."""
        try:
            found, failure = self.here.recv() if self.here.poll() else (None, STOPPED)
        except EOFError:
            found, failure = None, DIED
        if failure in {STOPPED, DIED}:
            self.end()
        return self.call, found, failure

    @property
    def is_over(self) -> bool:
        """Whether it takes no other call."""
        return self.here.closed

    def end(self) -> None:
        """End the process, whatever it does."""
        self.here.close()
        self.process.kill()
        self.process.join()


def called(calls: Iterator[Call], n_processes: int, patience: float | None) -> Iterator[Ended]:
    """Make calls, so many at a time, and yield what came of each as it ends.

    Parameters
    ----------
    patience : float, optional
        Seconds after which a call is stopped.
    """
    idle: list[Worker] = []
    busy: list[Worker] = []
    left = True
    try:
        while True:
            while left and len(busy) < n_processes:
                call = next(calls, None)
                left = call is not None
                if call is not None:
                    worker = _worker(idle, call.environment)
                    worker.begin(call, patience)
                    busy.append(worker)
            if not busy:
                return
            rest = min(worker.until for worker in busy) - time.monotonic()
            ready = wait([w.here for w in busy], None if rest == float("inf") else max(rest, 0.0))
            now = time.monotonic()
            for worker in [w for w in busy if w.here in ready or w.until <= now]:
                busy.remove(worker)
                yield worker.take()
                idle += [] if worker.is_over else [worker]
    finally:
        for worker in chain(idle, busy):
            worker.end()


def alone(function: Callable[..., Any], *arguments: Any, patience: float | None) -> tuple[Any, str]:
    """Make one call in a process of its own: what it gave, or why it gave nothing."""
    [(_, found, failure)] = called(iter([Call(("", 0), function, arguments)]), 1, patience)
    return found, failure


def _worker(idle: list[Worker], variables: Mapping[str, str]) -> Worker:
    """Take one that has these variables, or start it."""
    for worker in idle:
        if worker.variables == variables:
            idle.remove(worker)
            return worker
    return Worker(variables)


def _work(there: Connection) -> None:
    """Make calls until there are no more."""
    # An interrupt is the caller's; what is started from here hears it as ever.
    signal.signal(signal.SIGINT, lambda *_: None)
    while True:
        try:
            function, arguments = there.recv()
        except EOFError:
            return
        try:
            there.send((function(*arguments), ""))
        except Exception as error:  # noqa: BLE001 - a run that fails is recorded
            there.send((None, f"{type(error).__name__}: {error}"))
