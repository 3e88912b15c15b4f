"""Asking batches one after another, or many at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from revelu.errors import ReveluError, TargetError
from revelu.types import FloatArray

Answer = Callable[[], Any]
R = TypeVar("R")


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


def cut(X: FloatArray, batch_rows: int, parts: int) -> list[FloatArray]:
    """Cut a round ``X (n, d)`` into batches, all but the last of one size.

    Of several ``parts`` as many as ask at a time, or a multiple of that, where one has
    ``batch_rows`` rows at most: all of those who ask have work, for as long as the others.
    """
    if parts == 1:
        return [X[i : i + batch_rows] for i in range(0, len(X), batch_rows)]
    n_batches = -(-len(X) // batch_rows)
    n_batches = -(-n_batches // parts) * parts
    rows = -(-len(X) // n_batches)
    return [X[i : i + rows] for i in range(0, len(X), rows)]


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
