"""Samples that come in chunks, and work on each of them, here or elsewhere."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

from revelu.oracle.asking import result_of
from revelu.types import FloatArray

Pair: TypeAlias = tuple[FloatArray, FloatArray]

# Samples (X, y), or what loads them where they are worked on.
Chunk: TypeAlias = Pair | Callable[[], Pair]

Task = TypeVar("Task")
Result = TypeVar("Result")


def load(chunk: Chunk) -> Pair:
    """Return the samples of a chunk: ``X (n, d)`` and ``y (n,)``."""
    return chunk() if callable(chunk) else chunk


def work_through(
    work: Callable[[Task], Result],
    chunks: Iterable[Task],
    executor: Executor | None,
    *,
    in_flight: int = 32,
) -> Iterator[Result]:
    """Yield the result of each chunk, in the order of the chunks.

    Parameters
    ----------
    work : callable
        Without side effects: an executor may do it again where a worker was lost.  It
        pickles if the executor's workers are processes.
    chunks : iterable
    executor : concurrent.futures.Executor, optional
        Else all is done here.
    in_flight : int
        Chunks handed out and not yet taken back: enough for a cluster, little in memory, since
        what is handed out loads when its turn comes.
    """
    if executor is None:
        yield from map(work, chunks)
        return
    pending: deque[Future[Result]] = deque()
    try:
        for chunk in chunks:
            pending.append(executor.submit(work, chunk))
            if len(pending) >= in_flight:
                yield result_of(pending.popleft(), executor)
        while pending:
            yield result_of(pending.popleft(), executor)
    finally:
        for future in pending:
            future.cancel()


@dataclass(frozen=True)
class Mapped:
    """Chunks whose inputs are mapped, and answers divided by a unit, once they are loaded.

    Attributes
    ----------
    transform : callable, (n, d) -> (n, r)
    unit : float
    """

    chunks: Iterable[Chunk]
    transform: Callable[[FloatArray], FloatArray]
    unit: float = 1.0

    def __iter__(self) -> Iterator[Chunk]:
        """Yield what loads and maps each chunk."""
        for chunk in self.chunks:
            yield partial(_mapped, chunk, self.transform, self.unit)


def _mapped(chunk: Chunk, transform: Callable[[FloatArray], FloatArray], unit: float) -> Pair:
    X, y = load(chunk)
    return transform(X), y / unit
