"""Filters of leaky units, with a slope a filter, from lines along a pixel at a corner.

The unit ``v(z) = max(z, 0) + s min(z, 0)`` passes a signal on at both sides.  Without windows each
filter bends a line once, by ``J = (1 - s) a |w_p|``, and far along the pixel the slope is

    f'(oo) = sum_f q_f J_f,    q_f = 1 / (1 - s_f) where w_p > 0, else -s_f / (1 - s_f).

Where the largest of a window is taken, with ``z`` the sum of the place that the pixel shows and
``z'`` the one that is the largest of the others,

- of ``s > 0`` the function bends where they tie, and where ``z = 0`` if ``z' < 0``: then both kinks
  are on one line, and that at 0 is ``1 - s`` of their sum;
- of ``s < 0`` it bends where ``v(z) = v(z')``, on either side of ``z = 0`` and never there: at
  ``z = z'``, ``z = s z'`` or ``s z = z'``.  So rows are ``w - r S w`` with the bias ``(1 - r) b``,
  S being the shift to the other place, and r is 1, s or 1 / s.

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
from revelu.recover.structured.seen import Row, Seen
from revelu.recover.structured.sharing import Filter, in_one_frame
from revelu.recover.structured.ties import Tie, tie_of
from revelu.types import FloatArray, IntArray

__all__ = ["Layout", "LeakyFilters"]

log = logging.getLogger(__name__)

Layout = tuple[Convolution, FloatArray, Pooling | None]
"""Filters, the slope of each, and what pools them."""

_Told = tuple[Filter, float]
"""A filter as it is turned, and its slope."""

_Line = list[Tie]
"""What the kinks of a line are."""


@dataclass(frozen=True)
class LeakyFilters:
    """How they are found."""

    max_lines: int = 40
    """Lines until each filter has shown its slope."""
    patience: int = 10
    """Lines that may tell of none."""
    n_directed: int = 1
    """Filters that a line is to tell,"""
    margin: float = 2.0
    """by sums of the other places of a window that are so far from 0."""
    alike: float = 1e-4
    """How far two biases, or slopes, of one filter may differ."""
    spare: int = 2
    """Equations beyond the slopes that are told by those at the ends of lines,"""
    off: float = 30.0
    """and what these may leave of those, in units of ``rtol``."""

    def find(
        self,
        lines: PixelLines,
        geometry: Geometry,
        rtol: float,
        first: tuple[Seen, list[Row]] | None = None,
    ) -> list[Layout]:
        """Find filters, their slopes, and what may pool them; nothing where lines do not show all.

        Parameters
        ----------
        rtol : float
            Of the entries of a row of norm 1.
        first : (Seen, list of Row), optional
            A line whose kinks have rows.
        """
        known: list[list[_Line]] = []  # of each filter, line by line
        told: list[_Told | None] = []
        for n in range(self.max_lines):
            if first is not None and not n:
                seen, rows = first
                lines.seen.append(seen)
            else:
                found = self._line(known, told, lines)
                if found is None:
                    return []
                seen, rows = found
            if not (known or seen.kinks.size):
                # No filter sees the pixel, whatever is dead or always on.
                return []
            if not known and (not rows or len(rows) < len(seen.kinks)):
                continue
            _sort([tie_of(row, rtol) for row in rows], known, rtol)
            told = self._told(known, lines, rtol)
            n_told = sum(one is not None for one in told)
            log.info("%d lines: %d filters, %d told", n + 1, len(known), n_told)
            if told and n_told == len(known):
                return self._layouts([one for one in told if one], _shifts(known), lines, geometry)
            # Units that pass one side alone never tell a slope.
            if not told or (not n_told and n + 1 >= self.patience):
                return []
        return []

    def _line(
        self, known: list[list[_Line]], told: list[_Told | None], lines: PixelLines
    ) -> tuple[Seen, list[Row]] | None:
        """A line and rows of its kinks; once filters are known, of those that are to be told.

        A filter's kinks along a pixel bend all outputs in one proportion.
        """
        seen = lines.scan(self._start(known, told, lines))
        if seen is None:
            return None
        if not known:
            rows = lines.measure(seen)
            return None if rows is None else (seen, rows)
        ties = [tie for filter_ in known for line in filter_ for tie in line]
        missing = [f for f, one in enumerate(told) if one is None]
        J = np.array([next(t for line in known[f] for t in line).row.jump for f in missing])
        J /= np.linalg.norm(J, axis=1)[:, None]
        jumps = seen.jumps / np.linalg.norm(seen.jumps, axis=1)[:, None]
        is_wanted = (np.abs(jumps @ J.T) > 1.0 - self.alike).any(axis=1)
        sees = np.any([tie.row.w.ravel() != 0.0 for tie in ties], axis=0)
        return seen, lines.measure_some(seen, np.flatnonzero(sees), is_wanted)

    def _start(
        self, known: list[list[_Line]], told: list[_Told | None], lines: PixelLines
    ) -> FloatArray:
        """Where the others of the windows of a filter that is to be told are under 0, or over."""
        rng, image = lines.rng, lines.image
        x = rng.standard_normal(image.size)
        missing = [f for f, one in enumerate(told) if one is None]
        if not missing:
            return x
        steps = np.unique(_shifts(known), axis=0)
        for f in rng.permutation(missing)[: self.n_directed]:
            tie = next(t for line in known[f] for t in line)
            R = np.array(
                [image.shifted(tie.kernel, *(tie.origin + step)) for step in steps if step.any()]
            ).reshape(-1, image.size)
            R[:, lines.pixel] = 0.0
            wanted = rng.choice([-1.0, 1.0]) * self.margin * np.abs(rng.standard_normal(len(R)))
            x += np.linalg.lstsq(R, wanted - R @ x, rcond=1e-2)[0]
        return np.asarray(x)

    def _told(self, known: list[list[_Line]], lines: PixelLines, rtol: float) -> list[_Told | None]:
        """Filters whose slopes are told; None for the others."""
        if any(tie.ratio for filter_ in known for line in filter_ for tie in line):
            return [self._by_ratio(mine) or self._by_jumps(mine) for mine in known]
        first = [next(tie for line in mine for tie in line) for mine in known]
        return self._by_end_slopes(first, lines, rtol)

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

    def _by_end_slopes(self, ties: list[Tie], lines: PixelLines, rtol: float) -> list[_Told | None]:
        """What slopes far along pixels tell, as many as there are filters, and more."""
        image, n = lines.image, len(ties)
        _, rows, columns = ties[0].kernel.shape
        near = [(r, c) for r in range(rows) for c in range(columns) if r or c]
        pixels = [image.pixel(0, *at) for at in sorted(near, key=sum)]
        parts = [self._end_slopes(ties, lines.seen[-1], lines, rtol)]
        while (
            pixels and len(lines.noise.scale) * sum(e is not None for e in parts) < n + self.spare
        ):
            seen = lines.scan(lines.rng.standard_normal(image.size), pixels.pop(0))
            parts.append(None if seen is None else self._end_slopes(ties, seen, lines, rtol))
        known = [part for part in parts if part is not None]
        if not known:
            return []
        M, y = np.vstack([M for M, _ in known]), np.concatenate([y for _, y in known])
        if len(M) < n + self.spare:
            return []
        shares = np.linalg.lstsq(M, y, rcond=None)[0]
        size = float(np.linalg.norm(M)) + float(np.linalg.norm(y))
        if float(np.linalg.norm(M @ shares - y)) > self.off * rtol * size:
            return []
        told: list[_Told | None] = []
        for tie, share in zip(ties, shares, strict=True):
            # q = 1 / (1 - s) where the filter is not turned, 1 - 1 / (1 - s) where it is.
            is_up = abs(share - 1.0) <= abs(share)
            q = share if is_up else 1.0 - share
            told.append((_turned(tie, 1.0 if is_up else -1.0), 1.0 - 1.0 / q))
        return told

    def _end_slopes(
        self, ties: list[Tie], seen: Seen, lines: PixelLines, rtol: float
    ) -> tuple[FloatArray, FloatArray] | None:
        """What of the slope far along a pixel is the filters' ``q_f``, (k, filters), and the sum.

        None where a kink is of no filter, at no place.
        """
        channel, row, column = lines.image.place(seen.pixel)
        M, rest = np.zeros((len(seen.slopes[1]), len(ties))), seen.slopes[1].copy()
        for x, jump in zip(seen.points, seen.jumps, strict=True):
            atol = rtol * (1.0 + np.abs(x).max())
            signs = np.zeros(len(ties))
            for f, tie in enumerate(ties):
                _, rows, columns = tie.kernel.shape
                for r in range(row - rows + 1, row + 1):
                    for c in range(column - columns + 1, column + 1):
                        w = lines.image.shifted(tie.kernel, r, c)
                        if abs(w @ x + tie.b) <= atol:
                            signs[f] = np.sign(tie.kernel[channel, row - r, column - c])
            if np.count_nonzero(signs) != 1:
                return None
            M += jump[:, None] * signs
            rest -= jump * (signs.sum() < 0.0)
        return M, rest

    def _layouts(
        self, told: list[_Told], shifts: IntArray, lines: PixelLines, geometry: Geometry
    ) -> list[Layout]:
        """Strides and windows by the shifts of ties; without any, by bends at other places."""
        filters, image = [one for one, _ in told], lines.image
        slopes = np.array([slope for _, slope in told])
        kernels, biases, origin = in_one_frame(filters, image, lines.pixel)
        if not shifts.any():
            places = Places(lines.oracle, lines.noise, image, kernels, biases, lines.rng)
            found = geometry.find(places, origin, 1)
            return [] if found is None else [(found[0], slopes, found[1])]
        if origin != (0, 0):
            return []
        # Few lines may not have shown what ties along both axes: windows are likely square.
        both = np.repeat(shifts.ravel()[:, None], 2, axis=1) * (np.array(image.shape[1:]) > 1)
        layouts: list[Layout] = []
        for seen in (both, shifts):
            steps = [max(int(np.gcd.reduce(along)), 1) for along in seen.T]
            conv = Convolution(kernels, biases, image.shape, (steps[0], steps[1]))
            size = [int(along.max()) // step + 1 for along, step in zip(seen.T, steps, strict=True)]
            if all(n <= most for n, most in zip(size, conv.places, strict=True)):
                pool = Pooling("max", conv.shape_out, (size[0], size[1]), (size[0], size[1]))
                layouts.append((conv, slopes, pool))
        return layouts[:1] if len(layouts) == 2 and layouts[0][2] == layouts[1][2] else layouts


def _shifts(known: list[list[_Line]]) -> IntArray:
    """Steps between the places that were seen to tie, (n, 2)."""
    shifts = [tie.shift for filter_ in known for line in filter_ for tie in line]
    return np.array(shifts, dtype=np.intp).reshape(-1, 2)


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
