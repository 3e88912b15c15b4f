"""Interrupts: raised while a command works, the end of the process otherwise."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn, Protocol

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)

# ExitCode.INTERRUPTED, whose module takes long to import.
_EXIT_CODE = 130


def quit_on_interrupts() -> None:
    """End the process at SIGINT and SIGTERM from now on, with one line and exit code 130.

    Nothing is raised: a library that is being imported may catch it, or make another
    exception of it.  A signal that the process was started to ignore stays ignored.
    """
    _handle(_quit)


class EndableWork(Protocol):
    """What may end by itself, with what it has found until then."""

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for something that has to be interrupted."""

    def end(self) -> bool:
        """Ask it to end; return whether it is under way and will."""


@contextmanager
def raised_interrupts(
    work: EndableWork | None = None, *, pause: float = 0.01, patience: float = 5.0
) -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGINT and SIGTERM inside; the handlers before come back.

    Parameters
    ----------
    work : EndableWork, optional
        Is asked to end first.  A second signal is raised, whatever the work does.
    pause : float
        Seconds until a signal is sent again that came while an object was being finalised:
        what is raised there is lost, so it has to be raised after that.
    patience : float
        Seconds that the work has; then the signal is sent again.

    Raises
    ------
    KeyboardInterrupt
        At the signal, and in place of an exception that some code inside made of it.
    """
    heard: list[int] = []
    timers: list[threading.Timer] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        heard.append(number)
        if work is not None and len(heard) == 1 and work.end():
            timers.append(_later(patience, lambda: _send(number) if work.end() else None))
            if not work.is_waiting:
                return
        raise KeyboardInterrupt

    def report(lost: "sys.UnraisableHookArgs") -> None:
        if not (heard and lost.exc_type is KeyboardInterrupt):
            hook(lost)
            return
        _later(pause, lambda: _send(heard[-1]))

    hook, sys.unraisablehook = sys.unraisablehook, report
    before = _handle(interrupt)
    try:
        yield
    except BaseException:
        if not heard:
            raise
        # An interrupt that leaves an exec of text, as imports have many, makes `python -m`
        # end by SIGINT whatever the exit code is to be, until another such exec begins.
        exec("")  # noqa: S102
        raise KeyboardInterrupt from None
    finally:
        for timer in timers:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


_Handler = Callable[[int, FrameType | None], object] | int


def _handle(handler: _Handler) -> dict[signal.Signals, _Handler]:
    """Install a handler, except where signals are ignored, and return those it replaces."""
    before = {number: signal.getsignal(number) for number in _INTERRUPTS}
    heard = {n: old for n, old in before.items() if old not in {None, signal.SIG_IGN}}
    for number in heard:
        signal.signal(number, handler)
    return {number: old for number, old in heard.items() if old is not None}


def _later(seconds: float, call: Callable[[], object]) -> threading.Timer:
    """Call from another thread, which does not keep the process alive."""
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
    return timer


def _send(number: int) -> None:
    """Interrupt the main thread from another one; on POSIX whatever it waits for, too."""
    if os.name == "posix":
        os.kill(os.getpid(), number)
    else:
        signal.raise_signal(number)


def _quit(_number: int, _frame: FrameType | None) -> NoReturn:
    with suppress(OSError):  # standard error may be closed
        os.write(2, b"revelu: interrupted\n")
    os._exit(_EXIT_CODE)
