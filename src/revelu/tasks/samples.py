"""Samples as a task is given them: arrays, or a file that fits in memory."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import InputError
from revelu.formats.samples import SampleFiles, check_samples
from revelu.numerics.gaussianity import Law
from revelu.types import FloatArray, IntArray

# Kept apart for a certificate: this share, and no more than so many.
_HELD_OUT = 0.05
_MOST_HELD_OUT = 20_000


def gather(X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
    """Read samples, shapes (n, d) and (n,), all of them into memory.

    Raises
    ------
    InputError
        If ``y`` is missing, or given beside a file; FormatError for what is in them.
    """
    if isinstance(X, str | PathLike):
        if y is not None:
            raise InputError("y belongs to arrays; a file of samples holds its own")
        shards = list(SampleFiles(Path(X)))
        return np.concatenate([a for a, _ in shards]), np.concatenate([b for _, b in shards])
    if y is None:
        raise InputError("y is missing")
    return check_samples(_as_array("X", X), _as_array("y", y))


def hold_out(n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Split n samples by chance: those of a fit, and those kept apart."""
    order = rng.permutation(n)
    held = min(int(_HELD_OUT * n), _MOST_HELD_OUT)
    return order[held:], order[:held]


def original_rows(
    W: FloatArray, t: FloatArray, law: Law
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``W z >= t`` of whitened inputs in the samples' own coordinates, rows of norm 1.

    Returns
    -------
    W, t : ndarray
    scale : ndarray, shape (k,)
        What the errors of a row grow by at most.
    """
    if law.is_standard:
        return W, t, np.ones(len(t))
    rows = W @ law.whitening
    norms = np.linalg.norm(rows, axis=1)
    spread = float(np.linalg.norm(law.whitening, 2))
    return rows / norms[:, None], (t + rows @ law.mean) / norms, spread / norms


def _as_array(name: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a numeric array: {error}") from None
    return array.astype(np.float64) if array.dtype.kind == "b" else array
