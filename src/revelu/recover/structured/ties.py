"""What ties where a row bends the function, where the largest of a window is taken.

Of ReLUs a tie's row is ``w - S w`` (:func:`revelu.numerics.shifted_sums.untied`).  Of units
that pass both sides it may be ``w - r S w``, where a sum over 0 ties with one under 0.  Along the
shift S, entries ``v_0 ... v_m`` of such a row are those of a polynomial that ``1 - r t`` divides:
so

    sum_i v_i r^(m - i) = 0

along all of them, which few other rows are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from revelu.numerics.shifted_sums import cropped, untied
from revelu.recover.structured.seen import Row
from revelu.types import FloatArray

__all__ = ["Tie", "tie_of"]


@dataclass(frozen=True)
class Tie:
    """A filter as a row shows it, over 0 along the row's pixel."""

    kernel: FloatArray
    """Shape (channels, rows, columns).  Of norm 1."""
    b: float
    """NaN where it is not told."""
    origin: tuple[int, int]
    """Row and column that its first entry reads."""
    ratio: float
    """The ``r`` of ``w - r S w``; 0 where nothing ties."""
    shift: tuple[int, int]
    """The steps S."""
    row: Row

    def sum_at(self, x: FloatArray, b: float | None = None) -> float:
        """Return the filter's sum at an input (d,)."""
        (r, c), (_, height, width) = self.origin, self.kernel.shape
        images = x.reshape(self.row.w.shape)
        read = images[:, r : r + height, c : c + width]
        return float((self.kernel * read).sum()) + (self.b if b is None else b)

    def is_of(self, other: "Tie", rtol: float) -> bool:
        """Whether both are one filter's."""
        if self.origin != other.origin or self.kernel.shape != other.kernel.shape:
            return False
        return 1.0 - float((self.kernel * other.kernel).sum()) <= rtol


def tie_of(row: Row, rtol: float) -> Tie:
    """Return the filter of a row, and what ties in it.

    Parameters
    ----------
    row : Row
    rtol : float
        Of the entries of a row of norm 1.
    """
    box, origin = cropped(row.w, rtol)
    tied = untied(box, rtol) if abs(row.b) <= rtol else None
    if tied is not None:
        kernel, shift, ratio = *tied, 1.0
    else:
        kernel, shift, ratio = _untied_by_ratio(box, rtol) or (box, (0, 0), 0.0)
    kernel, inner = cropped(kernel, rtol)
    size = float(np.linalg.norm(kernel))
    b = np.nan if ratio == 1.0 else row.b / (1.0 - ratio) / size
    origin = origin[0] + inner[0], origin[1] + inner[1]
    return Tie(kernel / size, b, origin, ratio, shift, row)


def _untied_by_ratio(
    v: FloatArray, rtol: float
) -> tuple[FloatArray, tuple[int, int], float] | None:
    """Find ``w``, the largest shift S and ``r < 0`` with ``v = w - r S w``; None without."""
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
