"""Differences of an array and the same array shifted, ``w - r S w``, and the array again."""

from collections.abc import Iterator

import numpy as np

from revelu.types import FloatArray

__all__ = ["cropped", "summed", "untied", "untied_by_ratio"]


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


def untied_by_ratio(v: FloatArray, rtol: float) -> tuple[FloatArray, tuple[int, int], float] | None:
    """Find ``w``, the largest shift S and ``r < 0`` with ``v = w - r S w``; None without.

    Along the shift, entries ``v_0 ... v_m`` are those of a polynomial that ``1 - r t`` divides: so

        sum_i v_i r^(m - i) = 0

    along all of them, which few other rows are.

    Parameters
    ----------
    v : ndarray, shape (channels, rows, columns)
    rtol : float
        Of the largest entry.
    """
    channels, height, width = v.shape
    shifts = [(a, b) for a in range(height) for b in range(width) if a or b]
    for a, b in sorted(shifts, key=lambda s: (-s[0] - s[1], s)):
        n = channels * (height - a) * (width - b)
        if n + 1 >= v.size:
            continue
        for ratio in _ratios(v, a, b):
            w, found, left = _refined(v, a, b, ratio)
            if left <= rtol * max(1.0, abs(found)) * float(np.abs(w).max()):
                return w, (a, b), found
    return None


def _chains(v: FloatArray, a: int, b: int) -> Iterator[FloatArray]:
    """Entries along a shift, from each that has none before it."""
    _, height, width = v.shape
    for r in range(height):
        for c in range(width):
            if r < a or c < b:
                n = min(
                    (height - 1 - r) // a if a else height, (width - 1 - c) // b if b else width
                )
                at = np.arange(n + 1)
                yield from v[:, r + a * at, c + b * at]


def _ratios(v: FloatArray, a: int, b: int, least: float = 1e-3) -> list[float]:
    """Negative roots of the polynomial of the chain that has the largest entries."""
    chains = [chain for chain in _chains(v, a, b) if len(chain) > 1]
    if not chains:
        return []
    roots = np.roots(max(chains, key=lambda chain: float(np.abs(chain).min())))
    real = roots.real[np.abs(roots.imag) <= 1e-4 * np.abs(roots)]
    return [float(r) for r in real if -1.0 / least < r < -least]


def _divided(v: FloatArray, a: int, b: int, ratio: float) -> tuple[FloatArray, float]:
    """The ``w`` that leaves the least of a row, and what it leaves."""
    shape = (v.shape[0], v.shape[1] - a, v.shape[2] - b)
    M = _matrix(v.shape, shape, a, b, ratio)
    w = np.linalg.lstsq(M, v.ravel(), rcond=None)[0]
    return w.reshape(shape), float(np.abs(M @ w - v.ravel()).max())


def _refined(
    v: FloatArray, a: int, b: int, ratio: float, n_steps: int = 3
) -> tuple[FloatArray, float, float]:
    """``w`` and the ratio by steps of Gauss and Newton, and what they leave."""
    w, left = _divided(v, a, b, ratio)
    for _ in range(n_steps):
        M = _matrix(v.shape, w.shape, a, b, ratio)
        shifted = np.zeros(v.shape)
        shifted[:, a:, b:] = w
        J = np.column_stack([M, -shifted.ravel()])
        step = np.linalg.lstsq(J, v.ravel() - M @ w.ravel(), rcond=None)[0]
        ratio += float(step[-1])
        w, left = _divided(v, a, b, ratio)
    return w, ratio, left


def _matrix(
    shape: tuple[int, ...], inner: tuple[int, ...], a: int, b: int, ratio: float
) -> FloatArray:
    """What ``w - r S w`` is of ``w``, as a matrix."""
    n = int(np.prod(inner))
    M = np.zeros((n, *shape))
    M[:, :, : inner[1], : inner[2]] += np.eye(n).reshape(n, *inner)
    M[:, :, a:, b:] -= ratio * np.eye(n).reshape(n, *inner)
    return M.reshape(n, -1).T
