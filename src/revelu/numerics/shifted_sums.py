"""Differences of an array and the same array shifted, and the array again: sums along the shift."""

import numpy as np

from revelu.types import FloatArray

__all__ = ["cropped", "summed", "untied"]


def untied(w: FloatArray, rtol: float) -> tuple[FloatArray, tuple[int, int]] | None:
    """Find ``v`` and the largest shift S with ``w = v - S v``; None where there are none.

    A smaller one that divides S will do, too, as ``v - S^2 v = (v + S v) - S (v + S v)``.

    Parameters
    ----------
    w : ndarray, shape (channels, rows, columns)
        Without rows or columns of zeros at its borders.
    """
    _, height, width = w.shape
    shifts = [(a, b) for a in range(height) for b in range(width) if a or b]
    for a, b in sorted(shifts, key=lambda s: (-s[0] - s[1], s)):
        v = summed(w, (a, b))
        beyond = np.concatenate([v[:, height - a :].ravel(), v[:, :, width - b :].ravel()])
        size = float(np.abs(v).max())
        # Sums of many entries have their errors added.
        if np.abs(beyond).max(initial=0.0) <= rtol * max(height, width) * size:
            return v[:, : height - a, : width - b], (a, b)
    return None


def summed(w: FloatArray, shift: tuple[int, int]) -> FloatArray:
    """Sums along a shift, (channels, rows, columns, ...): ``v`` with ``w = v - S v``."""
    v, (a, b) = w.copy(), shift
    for r in range(a, v.shape[1]):
        for c in range(b, v.shape[2]):
            v[:, r, c] += v[:, r - a, c - b]
    return v


def cropped(w: FloatArray, rtol: float) -> tuple[FloatArray, tuple[int, int]]:
    """The least box that holds all entries, and where it begins."""
    size = np.abs(w).max(axis=0) > rtol * np.abs(w).max()
    rows, columns = np.flatnonzero(size.any(axis=1)), np.flatnonzero(size.any(axis=0))
    box = w[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return box * size[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1], (
        int(rows[0]),
        int(columns[0]),
    )
