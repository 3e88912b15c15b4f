"""Where samples come from: those kept in memory, those kept apart, and all of them again."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from revelu.certify.held_out import FEWEST_CHECKS
from revelu.errors import FormatError, InputError
from revelu.formats.samples import CheckedChunk, check_samples, find_shards
from revelu.numerics.cut_columns import as_measured
from revelu.numerics.reservoir import Reservoir
from revelu.probe.streams import work_through
from revelu.types import FloatArray

# What is kept in memory for fits, in numbers; moments see all samples.
_MOST_NUMBERS = 40_000_000

# Answers that differ by no more roundings of the largest than this are one constant.
_ROUNDINGS = 16.0

# Kept apart for the certificate: this share of many samples, and of few as many as certify
# something, but no more than every eighth while that leaves a few.
_HELD_OUT = 0.05
_MOST_HELD_OUT = 3000
_EVERY = 8
_LEAST_HELD_OUT = 16
FEWEST_TO_CERTIFY = _EVERY * FEWEST_CHECKS


@dataclass(frozen=True)
class Drawn:
    """Samples in memory, in random order, those kept apart, and where all of them are.

    Attributes
    ----------
    X, X_held : ndarray, shape (n, d)
    y, y_held : ndarray, shape (n,)
    n_samples : int
    chunks : iterable of CheckedChunk, optional
        Where there are more than are kept in memory.
    n_repeats : int
        Most answers that one input has; their mean is what is kept.
    disagreement : float
        Largest difference between two answers to one input.
    was_cut : bool
        Whether the inputs are those that were measured, as far as can be told, and not as they
        were written.
    """

    X: FloatArray
    y: FloatArray
    X_held: FloatArray
    y_held: FloatArray
    n_samples: int
    chunks: Iterable[CheckedChunk] | None
    n_repeats: int
    disagreement: float
    was_cut: bool = False

    def as_measured(self, steps: FloatArray) -> "Drawn":
        """Return the same with what cutting toward zero took given back."""
        X, X_held = as_measured(self.X, steps), as_measured(self.X_held, steps)
        return replace(self, X=X, X_held=X_held, was_cut=True)


def gather(X: Any, y: Any, seed: np.random.SeedSequence, executor: Executor | None) -> Drawn:
    """Take as many samples into memory as fits need, in random order.

    Parameters
    ----------
    X, y
        As :func:`revelu.learn` takes them.
    seed : SeedSequence
        Decides which are kept, and their order.
    executor : Executor, optional
        Where chunks are read.

    Raises
    ------
    InputError
        If an argument makes no sense, a number is not finite, or ``y`` is constant.
    """
    chunks: Iterable[CheckedChunk] | None = None
    if isinstance(X, str | PathLike) or callable(X):
        if y is not None:
            raise InputError("y belongs to arrays; a file or function of samples brings its own")
        chunks = _Called(X) if callable(X) else find_shards(Path(X))
        rows, answers, n = _sampled(chunks, seed, executor)
        if n == len(rows):
            chunks = None
    else:
        if y is None:
            raise InputError("y is missing")
        rows, answers = check_samples(_as_array("X", X), _as_array("y", y))
        n = len(rows)
        by_chance = np.random.default_rng(seed).permutation(n)
        rows, answers = rows[by_chance], answers[by_chance]
    rows, answers, n_repeats, disagreement = _each_once(rows, answers)
    if disagreement > 0.0 and len(rows) == 1:
        raise InputError(f"{n:,} samples, all of the same input: nothing to learn")
    if n < 2 or np.ptp(answers) <= _ROUNDINGS * np.finfo(np.float64).eps * np.abs(answers).max():
        raise InputError(f"{n:,} samples, all with the same y but for rounding: nothing to learn")
    held = _n_held(len(rows))
    kept, apart = (rows[held:], answers[held:]), (rows[:held], answers[:held])
    return Drawn(*kept, *apart, n, chunks, n_repeats, disagreement)


def counted(drawn: Drawn) -> str:
    """Say how many samples there are."""
    n = len(drawn.y) + len(drawn.y_held)
    different = drawn.chunks is None and n < drawn.n_samples
    return f"{drawn.n_samples:,} samples" + (f" of {n:,} different inputs" if different else "")


def _n_held(n: int) -> int:
    """How many of n samples are kept apart."""
    certifying = int(np.clip(n // _EVERY, _LEAST_HELD_OUT, FEWEST_CHECKS))
    wanted = int(np.clip(_HELD_OUT * n, certifying, _MOST_HELD_OUT))
    return min(wanted, n // 4)


@dataclass(frozen=True)
class _Called:
    """Chunks that a function of the user returns anew at each call."""

    function: Callable[[], Iterable[Any]]

    def __iter__(self) -> Iterator[CheckedChunk]:
        for i, chunk in enumerate(self.function()):
            if isinstance(chunk, CheckedChunk):
                yield chunk
                continue
            yield CheckedChunk(f"chunk {i}", chunk if callable(chunk) else partial(tuple, chunk))


@dataclass(frozen=True)
class _Draw:
    """A chunk, and what decides which of its rows may stay."""

    chunk: CheckedChunk
    seed: np.random.SeedSequence
    bar: float


def _draw(task: _Draw) -> tuple[str, int, FloatArray, FloatArray]:
    """Name and size of a chunk; keys and rows ``(x, y)`` of those that may stay."""
    X, y = task.chunk()
    keys = np.random.default_rng(task.seed).random(len(y))
    kept = keys <= task.bar
    return task.chunk.name, len(y), keys[kept], np.column_stack([X[kept], y[kept]])


def _sampled(
    chunks: Iterable[CheckedChunk], seed: np.random.SeedSequence, executor: Executor | None
) -> tuple[FloatArray, FloatArray, int]:
    """A uniform sample of all rows, and how many there are."""
    reservoir: Reservoir | None = None
    first, n, d = "", 0, 0

    def tasks() -> Iterator[_Draw]:
        # A bar may be out of date: then more comes back than stays.
        for chunk in chunks:
            yield _Draw(chunk, seed.spawn(1)[0], np.inf if reservoir is None else reservoir.bar)

    for name, size, keys, rows in work_through(_draw, tasks(), executor):
        if not size:
            continue
        if reservoir is None:
            first, d = name, rows.shape[1] - 1
            reservoir = Reservoir(max(_MOST_NUMBERS // d, 1), d + 1)
        elif rows.shape[1] != d + 1:
            raise FormatError(
                f"{name}: rows of {rows.shape[1] - 1} inputs, those of {first} have {d}"
            )
        reservoir.add(keys, rows)
        n += size
    if reservoir is None:
        raise InputError("there are no samples")
    kept = reservoir.in_order()
    return kept[:, :d], kept[:, d].copy(), n


def _each_once(X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, int, float]:
    """Merge rows that repeat, their answers averaged; how many at most, and how far apart.

    An input that is fitted says nothing where it is kept apart as well, and as evidence it
    counts once.
    """
    if np.unique(X[:, 0]).size == len(X):
        return X, y, 1, 0.0
    # Adding 0 makes -0 the same as 0.
    keys = np.fromiter((hash((row + 0.0).tobytes()) for row in X), dtype=np.int64, count=len(X))
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) == len(X):
        return X, y, 1, 0.0
    order = np.argsort(first)  # as before, which is random
    counts = np.bincount(group)
    mean = np.bincount(group, weights=y) / counts
    highest, lowest = np.full(len(first), -np.inf), np.full(len(first), np.inf)
    np.maximum.at(highest, group, y)
    np.minimum.at(lowest, group, y)
    apart = float((highest - lowest).max())
    return X[first[order]], mean[order], int(counts.max()), apart


def _as_array(name: str, value: Any) -> np.ndarray:
    if np.ma.is_masked(value):
        raise InputError(f"{name} is a masked array with entries that are masked: leave them out")
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a numeric array: {error}") from None
