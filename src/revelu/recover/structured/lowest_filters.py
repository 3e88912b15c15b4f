"""The filters of the lowest of several layers, among the neurons above them.

A line along a pixel at a corner shows each filter at one place, and those neurons above that read
it.  Filters see fewer pixels, and wherever a line starts they are the same: a neuron above them is
another affine function wherever the filters that it reads change their minds.
"""

import logging
from dataclasses import dataclass, replace

import numpy as np

from revelu.network.layers import Convolution, Pooling
from revelu.numerics.subset_sum import find_binary_solutions
from revelu.recover.structured.below import KnownFilters
from revelu.recover.structured.geometry import Geometry
from revelu.recover.structured.pixel_lines import PixelLines
from revelu.recover.structured.places import Places
from revelu.recover.structured.seen import Row
from revelu.recover.structured.sharing import Filter, filter_of, find_filters, in_one_frame
from revelu.recover.structured.signs import window_steps
from revelu.types import BoolArray, FloatArray

__all__ = ["LowestFilters"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LowestFilters:
    """How they are found."""

    n_measured: int = 4
    """Lines on which neurons are measured, at least."""
    patience: int = 3
    """Lines without a filter that is new, until all are said to be found."""
    max_lines: int = 60
    """Lines until every filter that ties has been seen to cross 0."""
    margin: float = 2.0
    """How far under 0 others of a window are taken, that a filter may be seen to cross it."""
    n_seen: int = 2
    """Lines on which a filter has to be seen, to be one."""
    n_stairs: int = 12
    """Short lines that may say the filters' signs."""
    stair: float = 1e-2
    """How far the filters' kinks are apart on those."""

    def find(
        self, lines: PixelLines, geometry: Geometry, rtol: float, *, is_local: bool
    ) -> KnownFilters | None:
        """Find the lowest layers; None where no filters recur, or none have neurons above.

        Parameters
        ----------
        is_local : bool
            No neuron sees pixels that are far apart.  Where some do, a line without filters says
            that there are none.
        rtol : float
            Of the entries of a row of norm 1.
        """
        rows: list[Row] = []
        filters: list[Filter] = []
        n_larger = n_quiet = 0
        for n in range(self.max_lines):
            seen = lines.scan(self._start(filters, lines))
            if seen is None:
                return None
            more, larger = lines.measure_small(seen, _are_known(rows, seen.points, rtol))
            rows, n_larger = rows + more, n_larger + larger
            is_enough = n + 1 >= self.n_measured or not is_local
            if is_enough and not (rows and n_larger):
                log.info(
                    "%d rows on %d lines, %d neurons that see more", len(rows), n + 1, n_larger
                )
                return None
            before, filters = len(filters), self._recurring(rows, lines, rtol)
            n_quiet = n_quiet + 1 if len(filters) == before else 0
            is_whole = not any(np.isnan(one.b) for one in filters)
            if n + 1 >= self.n_measured and n_quiet >= self.patience and is_whole:
                break
        filters = [one for one in filters if not np.isnan(one.b)]
        lines.has_filters = bool(filters)
        return self._layers(filters, rows, lines, geometry, rtol) if filters else None

    def _start(self, filters: list[Filter], lines: PixelLines) -> FloatArray | None:
        """Where a filter that was only seen to tie may be the only one of a window over 0."""
        missing = [one for one in filters if np.isnan(one.b)]
        if not missing:
            return None
        one, sign = missing[lines.rng.integers(len(missing))], lines.rng.choice([-1.0, 1.0])
        steps = window_steps(filters, lines.image)
        R = np.array(
            [
                lines.image.shifted(one.kernel, one.origin[0] + i, one.origin[1] + j)
                for i, j in steps
            ]
        )
        x = lines.rng.standard_normal(lines.image.size)
        x[lines.pixel] = 0.0
        wanted = -sign * self.margin * np.abs(lines.rng.standard_normal(len(R)))
        x += np.linalg.lstsq(R, wanted - R @ x, rcond=1e-2)[0]
        return np.asarray(x)

    def _recurring(self, rows: list[Row], lines: PixelLines, rtol: float) -> list[Filter]:
        """Filters that were seen on several lines; the bias of those that tie may be NaN."""
        X, numbers, found = lines.X, lines.numbers, []
        atol = rtol * (1.0 + np.abs(X).max(axis=1))
        for one in find_filters(rows, lines.image, rtol):
            sums = -(X @ lines.image.shifted(one.kernel, *one.origin))
            if np.isnan(one.b):
                # What recurs where it is not seen to tie is its bias.
                others = np.flatnonzero(~_are_known(rows, X, rtol))
                near = np.abs(sums[others, None] - sums[None, others]) <= atol[others]
                apart = numbers[others, None] != numbers[None, others]
                i, j = np.nonzero(near & apart)
                b = float(np.mean(sums[others[np.append(i, j)]])) if len(i) else np.nan
                # A row that is a filter less the same filter shifted is no accident.
                found.append(replace(one, b=b))
                continue
            n_lines = len(np.unique(numbers[np.abs(sums - one.b) <= atol]))
            if any(one.shift) or len(one.copies) > 1 or n_lines >= self.n_seen:
                found.append(one)
        return found

    def _layers(
        self,
        filters: list[Filter],
        rows: list[Row],
        lines: PixelLines,
        geometry: Geometry,
        rtol: float,
    ) -> KnownFilters | None:
        """Turn filters as they are, and find strides, pads and windows."""
        ties = [row for row in rows if any(filter_of(row, rtol).shift)]
        signs = _signs_of_ties(filters, ties, lines, rtol) if ties else self._signs(filters, lines)
        if signs is None:
            log.info("the signs of filters are left open")
            return None
        turned = [one.turned(s) for one, s in zip(filters, signs, strict=True)]
        kernels, biases, origin = in_one_frame(turned, lines.image, lines.pixel)
        places = Places(
            lines.oracle, lines.noise, lines.image, kernels, biases, lines.rng, is_last=False
        )
        shifts = np.array([filter_of(row, rtol).shift for row in ties] or [(0, 0)])
        ring = int(shifts.max(initial=0)) or 1
        conv = geometry.convolution(places, origin, ring)
        if conv is None:
            log.info("filters do not recur at other places")
            return None
        return KnownFilters(conv, _windows(conv, shifts))

    def _signs(self, filters: list[Filter], lines: PixelLines) -> FloatArray | None:
        """Signs where each filter's sum reaches the layer above by itself."""
        for _ in range(self.n_stairs):
            signs = self._signs_on_stair(filters, lines)
            if signs is not None:
                return signs
        return None

    def _signs_on_stair(self, filters: list[Filter], lines: PixelLines) -> FloatArray | None:
        """Signs by one short line, if the layer above sees every filter there.

        All filters at the corner's place have their kinks on a short line along the pixel.  The
        slope before all of them is that of the filters that are on there, which are those that
        turn off: with the changes of slope ``J_f``, all upwards along the pixel,

            slope = -sum_f [f is on before] J_f.
        """
        image, pixel, rng = lines.image, lines.pixel, lines.rng
        W = np.array([image.shifted(one.kernel, *one.origin) for one in filters])
        b = np.array([one.b for one in filters])
        order = rng.permutation(len(filters))
        kinks = np.empty(len(filters))
        kinks[order] = self.stair * np.arange(1, len(filters) + 1)
        x = rng.standard_normal(image.size)
        x[pixel] = 0.0
        others = np.delete(np.arange(image.size), pixel)
        x[others] -= np.linalg.lstsq(
            W[:, others], W[:, others] @ x[others] + b + W[:, pixel] * kinks, rcond=None
        )[0]
        if np.abs(W @ x + b + W[:, pixel] * kinks).max() > 1e-3 * self.stair:
            return None
        t = self.stair * (np.arange(len(filters) + 1)[:, None] + [0.2, 0.8]).ravel()
        X = np.repeat(x[None], len(t), axis=0)
        X[:, pixel] = t
        Y = lines.oracle(X).reshape(len(filters) + 1, 2, -1)
        slopes = (Y[:, 1] - Y[:, 0]) / (0.6 * self.stair)
        jumps = np.diff(slopes, axis=0)[np.argsort(order)]
        error = float(np.linalg.norm(lines.noise.nu * lines.noise.scale)) / self.stair
        atol = 30.0 * error * len(filters)
        if (np.linalg.norm(jumps, axis=1) <= atol).any():
            return None
        found = find_binary_solutions(jumps.T, -slopes[0], atol).every
        if len(found) != 1:
            return None
        # What is on before its kink has a weight under 0 there.
        is_on_before = found[0] > 0.5
        return np.asarray(np.where(is_on_before, -1.0, 1.0) * np.sign(W[:, pixel]))


def _are_known(rows: list[Row], X: FloatArray, rtol: float) -> BoolArray:
    """Which critical points lie on the hyperplane of a row."""
    if not rows:
        return np.zeros(len(X), dtype=bool)
    W = np.array([row.w.ravel() for row in rows])
    sums = X @ W.T + np.array([row.b for row in rows])
    atol = rtol * (1.0 + np.abs(X).max(axis=1, initial=0.0))
    return np.asarray((np.abs(sums) <= atol[:, None]).any(axis=1))


def _signs_of_ties(
    filters: list[Filter], ties: list[Row], lines: PixelLines, rtol: float
) -> FloatArray | None:
    """Signs where the largest of windows is taken: what ties is over 0."""
    X, signs = lines.X, np.zeros(len(filters))
    for f, one in enumerate(filters):
        mine = [row for row in ties if _is_tie_of(one, row, rtol)]
        w = lines.image.shifted(one.kernel, *one.origin)
        signs[f] = np.sign(np.sign(X[_are_known(mine, X, rtol)] @ w + one.b).sum())
    return None if (signs == 0.0).any() else signs


def _is_tie_of(one: Filter, row: Row, rtol: float) -> bool:
    found = filter_of(row, rtol)
    if not np.isnan(found.b) or found.kernel.shape != one.kernel.shape:
        return False
    return bool(1.0 - abs(float((found.kernel * one.kernel).sum())) <= rtol)


def _windows(conv: Convolution, shifts: FloatArray) -> Pooling | None:
    """The windows of which places have been seen to tie; None where none have."""
    if not shifts.any():
        return None
    size = (
        int(shifts[:, 0].max()) // conv.strides[0] + 1,
        int(shifts[:, 1].max()) // conv.strides[1] + 1,
    )
    return Pooling("max", conv.shape_out, size, size)
