"""Asking batches one after another, or many at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import contextmanager, suppress
from functools import partial
from math import ceil
from typing import Any, TypeVar

from revelu.errors import ReveluError, TargetError
from revelu.types import FloatArray

Answer = Callable[[], Any]
R = TypeVar("R")


def request_sizes(n: int, most: int, mean: int | None = None, parts: int = 1) -> list[int]:
    """Return how many rows of a round each request carries, in turn.

    The clock decides nothing: a run that is resumed asks for the same requests again.

    Parameters
    ----------
    n : int
        Rows of the round.
    most : int
        Rows of the largest request.
    mean : int, optional
        Rows of a request on average, which has from 1 to 2 mean - 1: a service that routes
        requests, or whose answers depend on their size, is met in all sizes.
    parts : int
        Without a mean, a multiple of this many requests, all but the last of one size: all of
        those who ask at a time have work, for as long as the others.

    Examples
    --------
    >>> request_sizes(2500, 1024)
    [1024, 1024, 452]
    >>> request_sizes(20, 1024, mean=3)
    [3, 2, 4, 1, 5, 3, 2]
    >>> request_sizes(2500, 1024, parts=4)
    [625, 625, 625, 625]
    """
    if mean is None and parts > 1:
        n_requests = ceil(ceil(n / most) / parts) * parts
        most = ceil(n / max(n_requests, 1))
    middle = most if mean is None else min(mean, most)
    offsets = [0] if mean is None else [0, *(s * k for k in range(1, middle) for s in (-1, 1))]
    sizes, left = list[int](), n
    while left > 0:
        sizes.append(min(middle + offsets[len(sizes) % len(offsets)], most, left))
        left -= sizes[-1]
    return sizes


def ask_batches(
    ask: Callable[[FloatArray], Any],
    batches: Sequence[FloatArray],
    executor: Executor | None,
    begin: Callable[[int], None],
    take: Callable[[int, Answer], None],
    withdraw: Callable[[int], None],
) -> None:
    """Ask all batches; hand over each answer as it arrives.

    After the first failure, of a query or of ``take``, no further batch is begun; the answers
    to batches that have begun are still handed over, since they are paid for.

    Parameters
    ----------
    ask : callable, (n, d) -> answer
    batches : sequence of ndarray, shape (n, d)
    executor : Executor or None
        Where batches run; None runs them here, one after another.
    begin : callable
        Called with the place of a batch before it is sent.
    take : callable
        Called here, with the place of a batch and a function that returns its answer, or raises
        what the query raised.
    withdraw : callable
        Called with the place of a batch that was begun and then not sent after all.

    Raises
    ------
    TargetError
        If the executor takes no batches, or drops one.
    Exception
        The first failure of ``begin`` or ``take``.
    """
    if executor is None:
        for i, batch in enumerate(batches):
            begin(i)
            # The target gets a copy, since it may write into its input.
            take(i, partial(ask, batch.copy()))
        return
    places: dict[Future[Any], int] = {}
    try:
        for i, batch in enumerate(batches):
            begin(i)
            places[_submitted(executor, ask, batch)] = i
        failure: Exception | None = None
        for future in _as_completed(places, getattr(executor, "look", None)):
            if future.cancelled():
                withdraw(places[future])
                failure = failure or TargetError("the executor dropped a batch")
                continue
            try:
                take(places[future], future.result)
            except Exception as error:  # noqa: BLE001 - raised below, once all is taken
                failure = failure or error
                _cancel(places)
        if failure is not None:
            raise failure
    finally:
        _cancel(places)


def ask_one(ask: Callable[[FloatArray], Any], batch: FloatArray, executor: Executor | None) -> Any:
    """Ask one batch (n, d), and return its answer or raise what the query raised.

    Raises
    ------
    TargetError
        If the executor takes no batches, or has nobody left to ask.
    """
    if executor is None:
        return ask(batch.copy())
    return result_of(_submitted(executor, ask, batch), executor)


def result_of(future: Future[R], executor: Executor) -> R:
    """Return what an executor was given to do, or raise what came of it.

    Raises
    ------
    TargetError
        If it has nobody left to do it, as far as it looks for that itself.
    """
    for done in _as_completed([future], getattr(executor, "look", None)):
        return done.result()
    raise AssertionError  # pragma: no cover - it is yielded once it is done


def workers_of(executor: Executor | None) -> int:
    """Return how many batches an executor runs at a time, as far as it says; 1 without one."""
    said = getattr(executor, "n_workers", None) or getattr(executor, "_max_workers", None)
    return max(int(said or 1), 1)


@contextmanager
def naming_failures(name: str) -> Iterator[None]:
    """Turn what a target raises into a TargetError that names the target."""
    try:
        yield
    except ReveluError:
        raise
    except (Exception, SystemExit) as error:
        reason = next(iter(str(error).splitlines()), "")
        said = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
        # What takes tensors has no words for arrays.
        if "numpy.ndarray" in f"{error}":
            said += (
                " (rows are a NumPy array: name a torch module itself, or a function that makes "
                "of it what it needs)"
            )
        raise TargetError(f"{name} failed on a query: {said}") from error


def _submitted(
    executor: Executor, ask: Callable[[FloatArray], Any], batch: FloatArray
) -> Future[Any]:
    try:
        return executor.submit(ask, batch)
    except RuntimeError as error:  # it is broken, or shut down
        raise TargetError(f"the executor takes no batches: {error}") from error


def _as_completed(
    futures: Iterable[Future[R]],
    look: Callable[[], None] | None = None,
    wake_seconds: float = 0.5,
) -> Iterator[Future[R]]:
    """Yield futures as they are done; between them, ``look`` raises where none will be.

    An interrupt that comes as the wait begins does not end it.  Waking up every ``wake_seconds``
    hears it, whenever the next answer comes.
    """
    left = set(futures)
    while left:
        with suppress(TimeoutError):
            for future in as_completed(left, timeout=wake_seconds):
                left.discard(future)
                yield future
        if left and look is not None:
            look()


def _cancel(futures: dict[Future[Any], int]) -> None:
    for future in futures:
        future.cancel()
