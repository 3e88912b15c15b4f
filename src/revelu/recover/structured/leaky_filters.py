"""Filters of leaky units, with a slope a filter, from lines along a pixel at a corner.

The unit ``v(z) = max(z, 0) + s min(z, 0)`` passes a signal on at both sides.  Without windows each
filter bends a line once, by ``J = (1 - s) a |w_p|``, and far along the pixel the slope is

    f'(oo) = sum_f q_f J_f,    q_f = 1 / (1 - s_f) where w_p > 0, else -s_f / (1 - s_f).

Where the largest of a window is taken, with ``z`` the sum of the place that the pixel shows and
``z'`` the one that is the largest of the others,

- of ``s > 0`` the function bends where they tie, and where ``z = 0`` if ``z' < 0``: then both kinks
  are on one line, and that at 0 is ``1 - s`` of their sum;
- of ``s < 0`` it bends where ``v(z) = v(z')``, on either side of ``z = 0`` and never there: at
  ``z = z'``, ``z = s z'`` or ``s z = z'``.  So rows are ``w - r S w`` with the bias ``(1 - r) b``, S
  being the shift to the other place, and r is 1, s or 1 / s.

``(w, b, s)`` and ``(-w, -b, 1 / s)`` are one unit but for its scale: of both the one is told whose
slope is no more than 1.
"""

import logging
from dataclasses import dataclass

import numpy as np

from revelu.network.layers import Convolution, Pooling
from revelu.recover.structured.geometry import Geometry
from revelu.recover.structured.pixel_lines import PixelLines
from revelu.recover.structured.places import Places
from revelu.recover.structured.seen import Seen
from revelu.recover.structured.sharing import Filter, in_one_frame
from revelu.recover.structured.ties import Tie, tie_of
from revelu.types import FloatArray

__all__ = ["LeakyFilters"]

log = logging.getLogger(__name__)

_Told = tuple[Filter, float]
"""A filter as it is turned, and its slope."""

_Line = list[Tie]
"""What the kinks of a line are."""


@dataclass(frozen=True)
class LeakyFilters:
    """How they are found.

    Attributes
    ----------
    max_lines : int
        Lines until each filter has shown its slope.
    alike : float
        How far two biases, or slopes, of one filter may differ.
    off : float
        What slopes of filters may leave of that at a line's end, in units of ``rtol``.
    """

    max_lines: int = 24
    alike: float = 1e-4
    off: float = 30.0

    def find(
        self, lines: PixelLines, geometry: Geometry, rtol: float
    ) -> tuple[Convolution, FloatArray, Pooling | None] | None:
        """Find filters, their slopes, and what pools them; None where lines do not show all.

        Parameters
        ----------
        rtol : float
            Of the entries of a row of norm 1.
        """
        known: list[list[_Line]] = []  # of each filter, line by line
        for n in range(self.max_lines):
            seen = lines.scan(lines.rng.standard_normal(lines.image.size))
            rows = None if seen is None else lines.measure(seen)
            if seen is None or rows is None:
                return None
            if len(rows) < len(seen.kinks):
                continue
            _sort([tie_of(row, rtol) for row in rows], known, rtol)
            told = self._told(known, seen, rtol)
            n_told = sum(one is not None for one in told)
            log.info("%d lines: %d filters, %d told", n + 1, len(known), n_told)
            if told and n_told == len(known):
                found = [one for one in told if one is not None]
                shifts = np.array([t.shift for f in known for line in f for t in line])
                return self._layers(found, shifts, lines, geometry)
        return None

    def _told(self, known: list[list[_Line]], seen: Seen, rtol: float) -> list[_Told | None]:
        """Filters whose slopes are told; None for the others."""
        if any(tie.ratio for filter_ in known for line in filter_ for tie in line):
            return [self._by_ratio(lines) or self._by_jumps(lines) for lines in known]
        return self._by_end_slopes([lines[-1][0] for lines in known], seen, rtol)

    def _by_ratio(self, lines: list[_Line]) -> _Told | None:
        """What ties ``z = r z'`` tell, r not 1: the slope, the bias and the sign."""
        found = []
        for tie in (tie for line in lines for tie in line if tie.ratio < 0.0):
            # ``z = s z'`` holds where z is over 0, and ``s z = z'`` where it is under 0.
            is_up = (tie.sum_at(tie.row.point) > 0.0) == (abs(tie.ratio) <= 1.0)
            slope = tie.ratio if abs(tie.ratio) <= 1.0 else 1.0 / tie.ratio
            found.append((tie, 1.0 if is_up else -1.0, slope))
        return self._agreed(found)

    def _by_jumps(self, lines: list[_Line]) -> _Told | None:
        """What lines tell that cross both ``z = z'`` and ``z = 0``."""
        found = []
        for line in lines:
            at_0 = [tie for tie in line if not tie.ratio]
            ties = [tie for tie in line if tie.ratio == 1.0]
            if len(at_0) != 1 or len(ties) != 1 or len(line) != 2:
                continue
            both = at_0[0].row.jump + ties[0].row.jump
            slope = 1.0 - float(at_0[0].row.jump @ both) / float(both @ both)
            # What ties so is under 0.
            is_up = at_0[0].sum_at(ties[0].row.point) < 0.0
            found.append((at_0[0], 1.0 if is_up else -1.0, slope))
        return self._agreed(found)

    def _agreed(self, found: list[tuple[Tie, float, float]]) -> _Told | None:
        """A filter of which all that is told agrees."""
        if not found:
            return None
        tie, turn, slope = found[0]
        is_same = all(
            other == turn and abs(s - slope) + abs(one.b - tie.b) <= self.alike * (1.0 + abs(tie.b))
            for one, other, s in found
        )
        return (_turned(tie, turn), slope) if is_same else None

    def _by_end_slopes(self, ties: list[Tie], seen: Seen, rtol: float) -> list[_Told | None]:
        """What the slope far along the pixel tells, where there are more outputs than filters."""
        J = np.array([tie.row.jump for tie in ties]).T
        if len(J) <= len(ties) or len(ties) != len(seen.kinks):
            return []
        shares = np.linalg.lstsq(J, seen.slopes[1], rcond=None)[0]
        left = float(np.linalg.norm(J @ shares - seen.slopes[1]))
        size = float(np.linalg.norm(seen.jumps)) + float(np.linalg.norm(seen.slopes[1]))
        if left > self.off * rtol * size:
            return []
        told: list[_Told | None] = []
        for tie, share in zip(ties, shares, strict=True):
            # q = 1 / (1 - s) where the filter is not turned, 1 - 1 / (1 - s) where it is.
            is_up = abs(share - 1.0) <= abs(share)
            q = share if is_up else 1.0 - share
            told.append((_turned(tie, 1.0 if is_up else -1.0), 1.0 - 1.0 / q))
        return told

    def _layers(
        self, told: list[_Told], shifts: FloatArray, lines: PixelLines, geometry: Geometry
    ) -> tuple[Convolution, FloatArray, Pooling | None] | None:
        """Strides and windows by the shifts of ties; without any, by bends at other places."""
        filters = [one for one, _ in told]
        kernels, biases, origin = in_one_frame(filters, lines.image, lines.pixel)
        pool: Pooling | None = None
        if shifts.any():
            if origin != (0, 0):
                return None
            strides = [max(int(np.gcd.reduce(along)), 1) for along in shifts.T]
            conv = Convolution(kernels, biases, lines.image.shape, (strides[0], strides[1]))
            size = [int(along.max()) // s + 1 for along, s in zip(shifts.T, strides, strict=True)]
            pool = Pooling("max", conv.shape_out, (size[0], size[1]), (size[0], size[1]))
        else:
            places = Places(lines.oracle, lines.noise, lines.image, kernels, biases, lines.rng)
            found = geometry.find(places, origin, 1)
            if found is None:
                return None
            conv, pool = found
        return conv, np.array([slope for _, slope in told]), pool


def _sort(ties: list[Tie], known: list[list[_Line]], rtol: float) -> None:
    """Put the kinks of a line to the filters that they are of."""
    for lines in known:
        lines.append([])
    for tie in ties:
        for lines in known:
            if any(tie.is_of(one, rtol) for line in lines for one in line):
                lines[-1].append(tie)
                break
        else:
            known.append([[tie]])


def _turned(tie: Tie, sign: float) -> Filter:
    return Filter(sign * tie.kernel, sign * tie.b, tie.origin)
