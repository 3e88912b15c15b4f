"""Where batches of queries run: here, on threads, or on the machines of a cluster."""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from revelu.errors import InputError
from revelu.extras import import_extra
from revelu.oracle import whole_number


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
        If both are given, ``workers`` is no whole number, or there is no cluster.
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


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    distributed = import_extra("distributed", "a cluster needs Dask", "dask")
    try:
        client = distributed.Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"dask: no cluster at {address}: {error}") from None
    with client:
        # Equal batches are asked separately (pure=False): noise may be drawn anew.
        yield client.get_executor(pure=False)
