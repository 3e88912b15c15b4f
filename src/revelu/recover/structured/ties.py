"""What ties where a row bends the function, where the largest of a window is taken.

Of ReLUs a tie's row is ``w - S w`` (:mod:`revelu.numerics.shifted_sums`).  Of units that pass both
sides it may be ``w - r S w``, where a sum over 0 ties with one under 0.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.shifted_sums import cropped, untied, untied_by_ratio
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
        kernel, shift, ratio = untied_by_ratio(box, rtol) or (box, (0, 0), 0.0)
    kernel, inner = cropped(kernel, rtol)
    size = float(np.linalg.norm(kernel))
    b = np.nan if ratio == 1.0 else row.b / (1.0 - ratio) / size
    origin = origin[0] + inner[0], origin[1] + inner[1]
    return Tie(kernel / size, b, origin, ratio, shift, row)
