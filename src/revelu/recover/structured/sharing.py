"""Filters of which the rows seen at a pixel are copies: shifted, cut off at a border, or tied.

Where the largest of a window is taken, a kink is where its largest sum crosses 0, or where two of
its places tie.  A tie's row is the difference of a filter and the same filter shifted, ``w - S w``,
without a bias: sums along the shift give ``w`` back, and end in 0.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.network.images import Image
from revelu.numerics.shifted_sums import cropped, untied
from revelu.recover.structured.seen import Row
from revelu.types import FloatArray

__all__ = ["Filter", "filter_of", "find_filters", "in_one_frame"]


@dataclass(frozen=True)
class Filter:
    """A filter, its sign open."""

    kernel: FloatArray
    """Shape (channels, rows, columns).  Of norm 1."""
    b: float
    """NaN where it has only been seen to tie."""
    origin: tuple[int, int]
    """Row and column that its first entry reads at the place where it was seen."""
    copies: tuple[tuple[int, float], ...] = ()
    """Which rows are copies of it, and their orientation."""
    shift: tuple[int, int] = (0, 0)
    """Of the tie that it was seen in."""

    def turned(self, sign: float) -> "Filter":
        """Return the filter, negated where the sign is -1."""
        return replace(self, kernel=sign * self.kernel, b=sign * self.b)


def find_filters(rows: list[Row], image: Image, rtol: float) -> list[Filter]:
    """Find the fewest filters that all rows are copies of.

    Parameters
    ----------
    rows : list of Row
    rtol : float
        Of the entries of a row of norm 1.
    """
    seen = [filter_of(row, rtol, j) for j, row in enumerate(rows)]
    # What a border cuts off is the smaller part.
    order = sorted(seen, key=lambda one: -np.count_nonzero(one.kernel))
    filters: list[Filter] = []
    for one in order:
        j = one.copies[0][0]
        for i, known in enumerate(filters):
            sign = _is_copy(rows[j], known, one, image, rtol)
            if sign:
                b = one.b * sign if np.isnan(known.b) else known.b
                filters[i] = replace(known, b=b, copies=(*known.copies, (j, sign)))
                break
        else:
            filters.append(one)
    return filters


def filter_of(row: Row, rtol: float, j: int = 0) -> Filter:
    """Return the filter of a row on its own: the row itself, or what ties in it.

    Parameters
    ----------
    row : Row
    rtol : float
        Of the entries of a row of norm 1.
    j : int
        The row's number.
    """
    box, origin = cropped(row.w, rtol)
    if abs(row.b) <= rtol and (tied := untied(box, rtol)) is not None:
        kernel, shift = tied
        kernel, inner = cropped(kernel, rtol)
        origin = origin[0] + inner[0], origin[1] + inner[1]
        # The row is up where the filter is, at the pixel that only one of the two places sees.
        return Filter(kernel / np.linalg.norm(kernel), np.nan, origin, ((j, 1.0),), shift)
    return Filter(box / np.linalg.norm(box), row.b, origin, ((j, 1.0),))


def _is_copy(row: Row, known: Filter, one: Filter, image: Image, rtol: float) -> float:
    """Orientation of a row that is a known filter's at another place; 0 where it is not."""
    if np.isnan(known.b) or np.isnan(one.b):
        # Kernels of one entry are all alike.
        if known.kernel.shape != one.kernel.shape or known.kernel.size == 1:
            return 0.0
        cosine = float((known.kernel * one.kernel).sum())
        return float(np.sign(cosine)) if 1.0 - abs(cosine) <= rtol else 0.0
    kr, kc = known.kernel.shape[1:]
    target = np.append(row.w.ravel(), row.b)
    channel, r, c = image.place(row.pixel)
    for a in range(r - kr + 1, r + 1):
        for b in range(c - kc + 1, c + 1):
            w = image.shifted(known.kernel, a, b)
            norm = float(np.linalg.norm(w))
            entry = w.reshape(image.shape)[channel, r, c]
            if abs(entry) <= rtol * norm:
                continue
            copied = np.append(w, known.b) * (np.sign(entry) / norm)
            if np.abs(copied - target).max() <= rtol * max(1.0, abs(row.b)):
                return float(np.sign(entry))
    return 0.0


def in_one_frame(
    filters: list[Filter], image: Image, pixel: int
) -> tuple[FloatArray, FloatArray, tuple[int, int]]:
    """Return kernels of one size, their biases, and what the first entry of them reads.

    At a corner all filters are seen at one place; elsewhere kernels of one size have one frame.

    Parameters
    ----------
    filters : list of Filter
    pixel : int
        Along which they were seen.
    """
    shapes = {one.kernel.shape for one in filters}
    origins = [one.origin for one in filters]
    if len(shapes) == 1 and any(image.place(pixel)):
        origins = [origins[0]] * len(filters)
    origin = min(r for r, _ in origins), min(c for _, c in origins)
    sizes = [one.kernel.shape[1:] for one in filters]
    ends = [
        max(at[axis] + size[axis] for at, size in zip(origins, sizes, strict=True)) - origin[axis]
        for axis in (0, 1)
    ]
    kernels = np.zeros((len(filters), image.shape[0], *ends))
    for f, (one, at) in enumerate(zip(filters, origins, strict=True)):
        r, c = at[0] - origin[0], at[1] - origin[1]
        kernels[f, :, r : r + one.kernel.shape[1], c : c + one.kernel.shape[2]] = one.kernel
    return kernels, np.array([one.b for one in filters]), origin
