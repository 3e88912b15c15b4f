"""Neurons above known layers, by the critical points along pixels.

A neuron reads ``u = v h(x) + c`` of the features ``h`` below it, which are known: wherever its
critical points are, ``v h(x) + c = 0``.  The outputs bend there by a multiple of its column, which
tells one neuron's from another's.  So every critical point is an equation, at the price of finding
it, and neither gradients nor the neuron's state are needed.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from revelu.network.layers import Convolution, ImageShape, Pooling
from revelu.recover.structured.below import KnownFilters
from revelu.recover.structured.crossings import Crossing, CrossingSearch
from revelu.recover.structured.pixel_lines import PixelLines
from revelu.recover.structured.seen import Seen
from revelu.recover.structured.starts import Starts
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["CornerNeurons", "UpperUnits", "layouts"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CornerNeurons:
    """Neurons that read the first features, those at the corner."""

    kernels: FloatArray
    """Shape (units, channels, rows, columns)."""
    biases: FloatArray
    """Shape (units,)."""

    def sums(self, H: FloatArray) -> FloatArray:
        """What they read of features (n, channels, rows, columns), (n, units)."""
        return self.slopes(H) + self.biases

    def slopes(self, H: FloatArray) -> FloatArray:
        """As :meth:`sums`, of changes of the features."""
        rows, columns = self.kernels.shape[2:]
        read = H[:, :, :rows, :columns].reshape(len(H), -1)
        return np.asarray(read @ self.kernels.reshape(len(self.kernels), -1).T)

    def flip(self, units: BoolArray) -> "CornerNeurons":
        """Return them with some negated, (units,)."""
        signs = np.where(units, -1.0, 1.0)
        return CornerNeurons(self.kernels * signs[:, None, None, None], self.biases * signs)


@dataclass(frozen=True)
class OpenNeuron:
    """A neuron whose weights are not known yet."""

    points: IntArray
    """Shape (n,).  Its critical points, of all that the lines have shown."""
    seldom: IntArray
    """Shape (m,).  Features that those show least, as the box is flattened."""


@dataclass(frozen=True)
class UpperUnits:
    """How they are found."""

    n_lines: int = 10
    """Lines between one look at what they tell and the next."""
    max_lines: int = 250
    """Lines at most."""
    same_direction: float = 1e-4
    """How far changes of slope of one neuron may be off their common direction."""
    fewest: int = 2
    """Critical points without which a direction is no neuron's."""
    spare: int = 3
    """Equations beyond the unknowns."""
    gap: float = 1e-5
    """What is left of one neuron's equations, relative to what is left if its weights are off."""
    clear: float = 1e-6
    """The latter, at least, relative to the equations."""
    most_alike: float = 0.9
    """Share of a neuron's critical points, and of the slopes, that have to be explained,"""
    n_reweighted: int = 8
    """in ``n_reweighted`` steps of least deviations."""
    away: tuple[float, float] = (0.05, 1.0)
    """How far lines start from a critical point of a neuron that was seldom seen, relative to N(0,
    I)."""
    n_near: int = 8
    """Critical points of such a neuron, near one of which features that they seldom show are on,"""
    heights: tuple[float, float] = (0.03, 0.5)
    """by how much, relative to their filters' norms."""
    scales: tuple[float, float] = (1.0, 4.0)
    """Size of inputs at which few features are on, relative to N(0, I)."""
    rounding: float = 0.05
    """How far off 0 and 1 the answer may be of whether a neuron is turned."""
    crossings: CrossingSearch = field(default_factory=CrossingSearch)

    def search(
        self, lines: PixelLines, below: KnownFilters, rtol: float, *, is_local: bool
    ) -> Iterator[tuple[KnownFilters, CornerNeurons]]:
        """Find the neurons that a pixel's lines cross; with the layers below, to more digits.

        They come whenever more of them are known than the last time: one that no line has crossed
        yet is missed by nothing but what is made of them.

        Parameters
        ----------
        rtol : float
            Of critical points of known layers, relative to the input.
        is_local : bool
            The neurons read few of the features, of which they see those at the corner; else all.
        """
        size: tuple[int, int] | None
        crossings: list[Crossing] = []
        tried: set[bytes] = set()
        n_first, n_before = len(lines.seen), 0
        while len(lines.seen) - n_first <= self.max_lines:
            below = below.refined(lines.X, rtol)
            others = np.flatnonzero(~below.explains(lines.X, rtol))
            X, jumps, pixels = lines.X[others], lines.jumps[others], lines.pixels[others]
            shown = (pixels == lines.pixel) | (not is_local)
            H, groups = below.features(X), self._groups(jumps, shown)
            size = below.shape[1:]
            size = self._size(H, jumps, groups, crossings, below) if is_local else size
            equations = self._equations(H, jumps, groups, size, crossings, below)
            found = [self._solved(P) for P in equations]
            known = [one for one in found if one is not None]
            log.info("%d lines: %d of %d neurons above", len(lines.seen), len(known), len(groups))
            if size is not None and len(known) == len(groups) > n_before:
                V = np.array(known)
                units = CornerNeurons(V[:, :-1].reshape(-1, H.shape[1], *size), V[:, -1])
                seen = [s for s in lines.seen if s.pixel == lines.pixel or not is_local]
                mine = [group[shown[group]] for group in groups]
                columns = self._columns(units, mine, X, jumps, pixels, below)
                turned = self._turned(units, columns, seen, below, rtol)
                if turned is not None:
                    yield below, turned
                    n_before = len(groups)
            missing = [
                OpenNeuron(others[group], self._seldom(P))
                for group, v, P in zip(groups, found, equations, strict=True)
                if v is None
            ]
            if size is not None:
                crossings += self._cross(lines, below, missing, tried, size)
            self._look(lines, below, missing, size, is_local=is_local)

    def _groups(self, jumps: FloatArray, shown: BoolArray) -> list[IntArray]:
        """Critical points whose changes of slope have one direction, the most frequent first.

        What is not shown by the corner's pixel is at another place.
        """
        directions = jumps / np.linalg.norm(jumps, axis=1)[:, None]
        left = np.ones(len(jumps), dtype=bool)
        groups = []
        for i in range(len(jumps)):
            if left[i]:
                apart = np.linalg.norm(directions - directions[i], axis=1)
                group = np.flatnonzero(left & (apart <= self.same_direction))
                left[group] = False
                groups.append(group)
        groups = [group for group in groups if shown[group].sum() >= self.fewest]
        return sorted(groups, key=len, reverse=True)

    def _size(
        self,
        H: FloatArray,
        jumps: FloatArray,
        groups: list[IntArray],
        crossings: list[Crossing],
        below: KnownFilters,
    ) -> tuple[int, int] | None:
        """The box of features that tells the most neurons, the least of those.

        Where few critical points are seen, too small a box may seem to tell one.  While none does,
        it is the least that the most frequent neuron does not exclude; None if that is none.
        """
        most, best = 0, None
        for size in _sizes(H.shape[2], H.shape[3]):
            equations = self._equations(H, jumps, groups, size, crossings, below)
            n_told = sum(self._solved(P) is not None for P in equations)
            if n_told > most:
                most, best = n_told, size
            elif not most and best is None and groups and not self._is_excluded(equations[0]):
                best = size
        return best

    def _is_excluded(self, P: FloatArray) -> bool:
        """Whether no weights explain most of a neuron's equations (n, unknowns)."""
        n, unknowns = P.shape
        if n < unknowns + self.spare:
            return False
        values = np.linalg.svd(P, compute_uv=False)
        return bool(values[-1] > self.clear * values[0])

    def _equations(
        self,
        H: FloatArray,
        jumps: FloatArray,
        groups: list[IntArray],
        size: tuple[int, int] | None,
        crossings: list[Crossing],
        below: KnownFilters,
    ) -> list[FloatArray]:
        """What each neuron's weights and bias are orthogonal to, (n, unknowns).

        That is the features at its critical points, and what the gradients do at some of them.
        """
        rows, columns = size or (0, 0)
        found = []
        for group in groups:
            read = H[group, :, :rows, :columns].reshape(len(group), -1)
            P = np.column_stack([read, np.ones(len(group))])
            P /= np.linalg.norm(P, axis=1)[:, None]
            for one in self._crossed(jumps[group[0]], crossings):
                more = one.equations(below)[:, :, :rows, :columns]
                more = more.reshape(len(more), -1)
                P = np.vstack([P, np.column_stack([more, np.zeros(len(more))])])
            found.append(P)
        return found

    def _seldom(self, P: FloatArray) -> IntArray:
        """Features that too few of a neuron's equations (n, unknowns) show."""
        shown = np.count_nonzero(P[:, :-1], axis=0)
        least = shown.min() if len(shown) else 0
        return np.flatnonzero(shown < max(self.spare, least + 1))

    def _crossed(self, jump: FloatArray, crossings: list[Crossing]) -> list[Crossing]:
        """Crossings of the neuron with a change of slope."""
        direction = jump / np.linalg.norm(jump)
        apart = (float(np.linalg.norm(one.direction - direction)) for one in crossings)
        return [c for c, a in zip(crossings, apart, strict=True) if a <= self.same_direction]

    def _cross(
        self,
        lines: PixelLines,
        below: KnownFilters,
        missing: list[OpenNeuron],
        tried: set[bytes],
        size: tuple[int, int],
    ) -> list[Crossing]:
        """Measure another critical point of each neuron, where there is room, and what is seldom.

        Parameters
        ----------
        tried : set of bytes
            Inputs at which none is measured again; the ones chosen are added.
        """
        X, room, pixels, chosen = lines.X, lines.room, below.pixels(size), []
        for one in missing:
            points = [i for i in one.points if X[i].tobytes() not in tried]
            points = [i for i in points if lines.pixels[i] in pixels]
            if points:
                H = below.features(X[points])[:, :, : size[0], : size[1]].reshape(len(points), -1)
                n_seldom = np.count_nonzero(H[:, one.seldom], axis=1)
                chosen.append(points[int(np.argmax(room[points] * (1 + n_seldom)))])
                tried.add(X[chosen[-1]].tobytes())
        return self.crossings.measure(lines, np.array(chosen), pixels) if chosen else []

    def _solved(self, P: FloatArray) -> FloatArray | None:
        """Weights and bias, of norm 1, that solve equations (n, unknowns) of a neuron; or None."""
        n, unknowns = P.shape
        if not self._are_enough(P):
            return None
        weights = np.ones(n)
        for _ in range(self.n_reweighted):
            _, values, V = np.linalg.svd(P * weights[:, None], full_matrices=False)
            left = np.abs(P @ V[-1])
            kept = left <= self.gap * values[-2]
            if kept.mean() >= self.most_alike and kept.sum() >= unknowns + self.spare:
                break
            least = max(float(np.median(left)), self.gap * self.clear)
            weights = least / (left + least)
        # Another neuron's critical point, or a filter's, may be among them.
        P = P[kept]
        if len(P) < self.most_alike * n or not self._are_enough(P):
            return None
        _, values, V = np.linalg.svd(P, full_matrices=False)
        is_told = values[-1] <= self.gap * values[-2] and values[-2] >= self.clear * values[0]
        return np.asarray(V[-1]) if is_told else None

    def _are_enough(self, P: FloatArray) -> bool:
        """Whether there are enough equations (n, unknowns), and of each unknown.

        A bias alone is no neuron: it is all there is while no box of features is known.
        """
        n, unknowns = P.shape
        if unknowns < 2:
            return False
        shown = int(np.count_nonzero(P, axis=0).min())
        return n >= unknowns + self.spare and shown >= self.spare

    def _look(
        self,
        lines: PixelLines,
        below: KnownFilters,
        missing: list[OpenNeuron],
        size: tuple[int, int] | None,
        *,
        is_local: bool,
    ) -> None:
        """Follow more lines, three in four where neurons bend whose weights are not known.

        Where neurons read all features, any pixel shows them, and random inputs are various enough.
        """
        rng = lines.rng
        starts = Starts(below, size) if is_local and size is not None else None
        for i in range(self.n_lines):
            start = None
            if i % 4 and missing:
                one = missing[rng.integers(len(missing))]
                start = self._near(one, lines, starts if i % 4 < 3 else None)
            elif starts is not None:
                n_on = int(_drawn(rng, 1.0, starts.n_features + 1.0))
                start = starts.with_few(n_on, _drawn(rng, *self.scales), rng)
            lines.scan(start, None if is_local else int(rng.integers(lines.image.size)))

    def _near(self, one: OpenNeuron, lines: PixelLines, starts: Starts | None) -> FloatArray:
        """An input near which a neuron bends; with features on that it seldom shows."""
        rng, X = lines.rng, lines.X[one.points]
        # Far out critical points are known to fewer digits.
        inner = np.argsort(np.abs(X).max(axis=1))[: (len(X) + 1) // 2]
        near = X[rng.permutation(inner)[: self.n_near]]
        if starts is None:
            moved = near[0] + _drawn(rng, *self.away) * rng.standard_normal(X.shape[1])
            return np.asarray(moved)
        n_on = int(_drawn(rng, 1.0, len(one.seldom) + 1.0))
        features = rng.permutation(one.seldom)[:n_on]
        return starts.with_features(near, features, _drawn(rng, *self.heights))

    def _columns(
        self,
        units: CornerNeurons,
        groups: list[IntArray],
        X: FloatArray,
        jumps: FloatArray,
        pixels: IntArray,
        below: KnownFilters,
    ) -> FloatArray:
        """How the outputs read each neuron, (units, k): they bend by its slope times that."""
        D, tiny = np.abs(units.slopes(below.slopes(X, pixels))), float(np.finfo(float).tiny)
        return np.array(
            [
                D[group, g] @ jumps[group] / max(float((D[group, g] ** 2).sum()), tiny)
                for g, group in enumerate(groups)
            ]
        )

    def _turned(
        self,
        units: CornerNeurons,
        columns: FloatArray,
        seen: list[Seen],
        below: KnownFilters,
        rtol: float,
    ) -> CornerNeurons | None:
        """Turn neurons as they are; None where they do not explain all slopes.

        Along a pixel, with ``D_g`` the slope of ``u_g``, and ``p_g`` 1 where ``-u_g`` is the
        neuron's sum, as ``relu(-u) = relu(u) - u``,

            f' = sum_g a_g D_g [u_g > 0] - sum_g p_g a_g D_g.
        """
        X, slopes = (np.vstack(parts) for parts in zip(*(_pieces(s) for s in seen), strict=True))
        pixels = np.concatenate([np.full(len(_pieces(s)[0]), s.pixel) for s in seen])
        H = below.features(X)
        D = units.slopes(below.slopes(X, pixels))
        left = ((D * (units.sums(H) > 0.0)) @ columns - slopes).ravel()
        G = (D[:, None, :] * columns.T).reshape(len(left), -1)
        shares = np.linalg.lstsq(G, left, rcond=None)[0]
        flips = shares > 0.5
        left = np.linalg.norm((left - G @ flips).reshape(slopes.shape), axis=1)
        share = float((left <= rtol * len(seen) * np.abs(slopes).max()).mean())
        log.info("%.3f of the slopes are explained: %s", share, np.round(shares, 3))
        if share < self.most_alike or (np.abs(shares - flips) > self.rounding).any():
            return None
        return units.flip(flips)


def _pieces(seen: Seen, least: float = 1e-4) -> tuple[FloatArray, FloatArray]:
    """Inputs between the kinks of a line, and slopes there, of pieces that are long enough."""
    is_long = np.concatenate([[True], np.diff(seen.kinks) > least, [True]])[: len(seen.between)]
    return seen.at(seen.between)[is_long], seen.slopes_between[is_long]


def _drawn(rng: np.random.Generator, least: float, most: float) -> float:
    """A number between two, whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(least), np.log(most))))


def _sizes(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """Boxes of features, the least first."""
    for size in range(1, max(rows, columns) + 1):
        yield min(size, rows), min(size, columns)


def layouts(units: CornerNeurons, shape: ImageShape) -> list[tuple[Convolution, Pooling | None]]:
    """Return what neurons may be copies of elsewhere: strides and windows, the fewest first.

    Parameters
    ----------
    shape : (int, int, int)
        Channels, rows and columns of the features that they read.
    """
    found: list[tuple[Convolution, Pooling | None]] = []
    for stride in (1, 2):
        strides = stride if shape[1] > 1 else 1, stride
        conv = Convolution(units.kernels, units.biases, shape, strides)
        if stride > 1 and conv.places == (1, 1):
            continue
        found.append((conv, None))
        window = min(2, conv.places[0]), 2
        if conv.places[1] > 1:
            kinds = ("max", "average")
            found += [(conv, Pooling(k, conv.shape_out, window, window)) for k in kinds]
    return sorted(found, key=lambda one: (one[1] or one[0]).size_out)
