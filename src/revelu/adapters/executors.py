"""Where batches of queries run: here, on threads, or on the machines of a cluster."""

import logging
import pickle
import socket
import struct
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from revelu.errors import InputError, TargetError
from revelu.extras import import_extra
from revelu.oracle import whole_number

log = logging.getLogger(__name__)


@contextmanager
def executor(workers: int | None = None, dask: str | None = None) -> Iterator[Executor | None]:
    """Open an executor, and close it at the end.

    Parameters
    ----------
    workers : int, optional
        Threads; with one, batches are asked one after another.
    dask : str, optional
        Address of the scheduler of a Dask cluster, whose workers have revelu, too.  A
        worker that is lost is replaced; its batches are asked again.

    Raises
    ------
    InputError
        If both are given, ``workers`` is no whole number, or the address is none.
    TargetError
        If there is no cluster, or it has no worker.
    MissingExtraError
        If distributed is not installed.
    """
    if workers is not None and dask is not None:
        raise InputError("workers are threads here, and dask is a cluster: give one of them")
    if dask is not None:
        with _cluster(dask) as cluster:
            yield cluster
        return
    if workers is None or whole_number("workers", workers, 1) == 1:
        yield None
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="revelu")
    try:
        yield pool
    finally:
        # Who asks waits for what has begun, except at an interrupt: then it may take minutes to
        # fail, and is not waited for here either.
        pool.shutdown(wait=False, cancel_futures=True)


class Cluster(Executor):
    """The workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
    address : str
        What messages call it.
    silence : float
        Seconds without a worker after which that is said.
    patience : float
        Seconds without a worker after which no more are waited for: a worker that is replaced
        is there within half a minute.

    Attributes
    ----------
    n_workers : int
        Tasks that run at a time, as the cluster was when it was opened.
    """

    def __init__(
        self, client: Any, address: str, *, silence: float = 8.0, patience: float = 50.0
    ) -> None:
        self._client, self._address = client, address
        # Equal batches are asked separately (pure=False): noise may be drawn anew.
        self._pool = client.get_executor(pure=False)
        self._silence, self._patience = silence, patience
        self._seen, self._is_missed = time.monotonic(), False
        self._kept: dict[int, tuple[Any, _Kept]] = {}
        self.n_workers = self._wait_for_workers()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Have a worker call it, which unpacks it once, however often it is called."""
        if id(fn) not in self._kept:
            self._kept[id(fn)] = fn, _Kept(fn)
        future: Future[Any] = self._pool.submit(self._kept[id(fn)][1], *args, **kwargs)
        return future

    def look(self) -> None:
        """See whether there are workers; who waits for answers calls this now and then.

        Raises
        ------
        TargetError
            If there has been none for too long.
        """
        now = time.monotonic()
        if self._threads():
            self._seen, self._is_missed = now, False
            return
        missed = now - self._seen
        if missed >= self._patience:
            raise TargetError(
                f"dask: the cluster at {self._address} has had no worker for {missed:.0f} s; start "
                f"one: dask worker {self._address}"
            )
        if missed >= self._silence and not self._is_missed:
            self._is_missed = True
            log.warning(
                "dask: no worker at %s for %.0f s; waiting, up to %.0f s in all",
                self._address,
                missed,
                self._patience,
            )

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks."""
        self._pool.shutdown(wait and not cancel_futures)

    def _threads(self) -> int:
        """Tasks that the workers that are there run at a time."""
        try:
            return sum(self._client.nthreads().values())
        except (OSError, TimeoutError):  # the scheduler does not answer
            return 0

    def _wait_for_workers(self, pause: float = 0.25) -> int:
        while not (n := self._threads()):
            self.look()
            time.sleep(pause)
        return n


class _Kept:
    """A target for workers: each process unpacks it once, connection and all.

    Attributes
    ----------
    most : int
        Targets that a process keeps: of those that were asked longest ago none is needed any more.
    """

    most = 8
    _unpacked: "dict[str, Callable[..., Any]]" = {}  # noqa: RUF012 - of the process

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._name, self._packed = uuid.uuid4().hex, _packed(fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fn = self._unpacked.get(self._name)
        if fn is None:
            fn = self._unpacked.setdefault(self._name, pickle.loads(self._packed))  # noqa: S301
            for name in [*self._unpacked][: -self.most]:
                self._unpacked.pop(name, None)
        return fn(*args, **kwargs)


def _packed(fn: Callable[..., Any]) -> bytes:
    """What crosses to a worker: functions of a script, too."""
    dumps: Callable[[Any], bytes] = import_extra(
        "cloudpickle", "a cluster needs Dask", "dask"
    ).dumps
    return dumps(fn)


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    distributed = import_extra("distributed", "a cluster needs Dask", "dask")
    check_greeting(address)
    try:
        client = distributed.Client(address, timeout="10s", set_as_default=False)
    except ValueError as error:
        raise InputError(f"dask: no cluster at {address}: {error}") from None
    except OSError as error:
        raise TargetError(f"dask: no cluster at {address}: {error}") from None
    try:
        yield Cluster(client, address)
    finally:
        # What has begun on a lost worker is not waited for.
        client.close(timeout=2)


def check_greeting(address: str, patience: float = 8.0, most: int = 2**20) -> None:
    """See that a scheduler listens at an address: it speaks first, with the length of a greeting.

    A client would wait for the greeting of another program for ever.

    Raises
    ------
    TargetError
        If nothing listens there, or another program.
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    try:
        port = parts.port
    except ValueError:
        raise InputError(f"dask: no cluster at {address}: it has no port") from None
    if parts.scheme != "tcp" or parts.hostname is None or port is None:
        return  # others are encrypted, or in this process
    try:
        with socket.create_connection((parts.hostname, port), patience) as connection:
            connection.settimeout(patience)
            greeting = connection.recv(8, socket.MSG_WAITALL)
    except TimeoutError:
        greeting = b""
    except OSError as error:
        raise TargetError(f"dask: no cluster at {address}: {error.strerror or error}") from None
    if len(greeting) < 8 or struct.unpack("<Q", greeting)[0] > most:
        raise TargetError(
            f"dask: no cluster at {address}: what listens there is no scheduler of Dask"
        )
