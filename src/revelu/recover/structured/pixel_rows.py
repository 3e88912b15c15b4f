"""Rows that a line along a single pixel shows.

Along ``x0 + t e_p`` only neurons that see pixel p bend the function, and of

    g(t, t'; y) = f(x0 + y + t e_p) - f(x0 + y + t' e_p)

all others cancel, whatever the move ``y`` of other pixels does to them.  Between ``t`` and ``t'``
on either side of a single kink of neuron ``w``, and nowhere beyond another one,

    g(y) - g(0) = J (w . y) / w_p,

``J`` being the change of slope at the kink: the neuron's weights, one pixel a query, at steps as
long as its neighbours on the line allow.
"""

from dataclasses import dataclass

import numpy as np

from revelu.network.images import Image
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.kinks import find_kinks
from revelu.probe.line import Line
from revelu.probe.scan import LineScan
from revelu.recover.structured.brackets import Brackets, BracketSteps
from revelu.recover.structured.seen import Row, Seen
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["PixelRows"]


@dataclass(frozen=True)
class PixelRows:
    """How rows are measured."""

    reach: float = 4.0
    """Length of the direction of a line: values of a pixel at which half of the kinks are."""
    steps: BracketSteps = BracketSteps()  # noqa: RUF009 - frozen
    """How far pixels are moved beside kinks."""
    most_kinks: int = 400
    """More than this of one line are those of no filter."""
    n_pairs: int = 4
    """Inputs, four queries each, at which pixels that are far apart are looked at."""
    local: float = 0.75
    """Share of the image's rows or columns that a filter sees at most."""

    def scan(
        self,
        oracle: Oracle,
        noise: NoiseFloor,
        pixel: int,
        rng: np.random.Generator,
        start: FloatArray | None = None,
    ) -> Seen | None:
        """Find the kinks of a line along a pixel; None where that is no piecewise affine one."""
        x0 = rng.standard_normal((1, oracle.dim_in)) if start is None else start[None]
        x0 = oracle.in_float32(x0)[0]
        x0[pixel] = 0.0
        direction = np.zeros(oracle.dim_in)
        direction[pixel] = self.reach
        scan = find_kinks(oracle, Line(x0, direction), float(noise.nu.max()), noise.scale, rng)
        scan = scan.without_faint_kinks(noise.faint_slope)
        if not scan.complete or len(scan.kinks) > self.most_kinks:
            return None
        slopes = _end_slopes(scan)
        kinks, jumps = scan.kinks * self.reach, scan.jumps / self.reach
        ends = slopes[0] / self.reach, slopes[1] / self.reach
        return Seen(pixel, x0, kinks, jumps, ends, scan.is_single)

    def act_together(
        self, oracle: Oracle, noise: NoiseFloor, image: Image, rng: np.random.Generator
    ) -> bool:
        """Whether some neuron sees a corner's pixel and others that no filter sees with it.

        If none does, ``f(x + p + q) - f(x + p) - f(x + q) + f(x) = 0`` for moves p and q of them.
        """
        pixel, (_, height, width) = image.pixel(0, 0, 0), image.shape
        rows, columns = (int(np.ceil(self.local * size)) for size in (height, width))
        far = np.union1d(
            image.pixels((rows, height), (0, width)) if height > 1 else np.empty(0, dtype=np.intp),
            image.pixels((0, height), (columns, width)),
        )
        X, P, Q = (np.zeros((self.n_pairs, image.size)) for _ in range(3))
        X[:] = rng.standard_normal(X.shape)
        P[:, pixel] = self.reach * rng.standard_normal(len(P))
        Q[:, far] = rng.standard_normal((len(Q), len(far)))
        rounded = [oracle.in_float32(x) for x in (X, X + P, X + Q)]
        both = rounded[1] + rounded[2] - rounded[0]
        Y = oracle(np.concatenate([both, *rounded])).reshape(4, self.n_pairs, -1)
        size = noise.growth(both)[:, None] * noise.nu * noise.scale
        apart = np.abs(Y[0] + Y[1] - Y[2] - Y[3])
        return bool((np.abs(apart) > 3.0 * SIGMAS * size).any())

    def measure(
        self, oracle: Oracle, noise: NoiseFloor, image: Image, seen: Seen
    ) -> list[Row] | None:
        """Measure the weights of the neurons seen; None where they are those of no filter."""
        brackets = Brackets(oracle, noise, seen, self.steps)
        if not len(brackets.kinks):
            return []
        box = self._box(brackets, image)
        if box is None:
            return None
        return self._rows(brackets, image, image.pixels(*box), np.arange(len(brackets.kinks)))

    def measure_some(
        self,
        oracle: Oracle,
        noise: NoiseFloor,
        image: Image,
        seen: Seen,
        pixels: IntArray,
        is_wanted: BoolArray,
    ) -> list[Row]:
        """Measure some of the neurons seen, (kinks,), that see no other pixels than these."""
        brackets = Brackets(oracle, noise, seen, self.steps)
        kinks = np.flatnonzero(is_wanted[brackets.places])
        return self._rows(brackets, image, pixels, kinks) if len(kinks) else []

    def measure_small(
        self, oracle: Oracle, noise: NoiseFloor, image: Image, seen: Seen, is_known: BoolArray
    ) -> tuple[list[Row], int]:
        """Measure the neurons that see fewer pixels than the others do.

        Parameters
        ----------
        is_known : ndarray of bool, shape (kinks,)
            Of which no row is needed.

        Returns
        -------
        list of Row
        int
            How many kinks are of neurons that see more.
        """
        brackets = Brackets(oracle, noise, seen, self.steps)
        if not len(brackets.kinks):
            return [], 0
        most = int(self.local * max(image.shape[1:]))
        radii = brackets.radii(image, most)
        is_small = (radii < radii.max()) & (radii <= most)
        rows = []
        for radius in np.unique(radii[is_small]):
            kinks = np.flatnonzero(is_small & (radii == radius) & ~is_known[brackets.places])
            pixels = image.around(seen.pixel, int(radius))
            rows += self._rows(brackets, image, pixels, kinks) if len(kinks) else []
        return rows, int((~is_small).sum())

    def _rows(
        self, brackets: Brackets, image: Image, pixels: IntArray, kinks: IntArray
    ) -> list[Row]:
        """Rows of the neurons of some kinks, which see these pixels."""
        seen = brackets.seen
        pixels = np.setdiff1d(pixels, [seen.pixel])
        ratios = np.zeros((len(brackets.kinks), image.size))
        ratios[:, seen.pixel] = 1.0
        ratios[:, pixels], known = brackets.ratios(pixels, kinks)
        rows = []
        for j in np.flatnonzero(known):
            # The neuron's sum is 0 at the kink.
            b = -(ratios[j] @ seen.x0 + brackets.kinks[j])
            norm = float(np.linalg.norm(ratios[j]))
            w = ratios[j].reshape(image.shape) / norm
            point = seen.at(brackets.kinks[j : j + 1])[0]
            rows.append(Row(w, float(b / norm), seen.pixel, brackets.jumps[j], point))
        return rows

    def _box(
        self, brackets: Brackets, image: Image
    ) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Rows and columns that the neurons seen see; None where that is most of the image."""
        found = []
        for axis, size in enumerate(image.shape[1:]):
            place = image.place(brackets.seen.pixel)[1 + axis]
            ends = []
            for side, most in ((-1, place), (1, size - 1 - place)):
                nearest, farthest = 0, most  # of the pixels seen
                while nearest < farthest:
                    middle = (nearest + farthest) // 2
                    if brackets.are_moved(image.beyond(axis, place, side, middle)):
                        nearest = middle + 1
                    else:
                        farthest = middle
                ends.append(place + side * nearest)
            if size > 1 and ends[1] - ends[0] >= self.local * size:
                return None
            found.append((ends[0], ends[1] + 1))
        return found[0], found[1]


def _end_slopes(scan: LineScan) -> tuple[FloatArray, FloatArray]:
    """Slopes of the function on the first and on the last piece of a line."""
    found = []
    for piece in (scan.pieces[0], scan.pieces[-1]):
        i, j = piece.support()
        start, end = (piece.gs[k] * np.hypot(1.0, piece.ts[k]) for k in (i, j))
        found.append((end - start) / (piece.ts[j] - piece.ts[i]))
    return found[0], found[1]
