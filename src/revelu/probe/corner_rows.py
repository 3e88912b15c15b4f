"""Rows of filters that crowd: lines along pixels at the corners of images, asked evenly.

Along a pixel at a corner one place of each filter bends the function, by one and the same change of
slope ``|w_p| A`` in all outputs wherever the other pixels are.  Kinks of many lines are one
filter's where these are alike to within their errors, and their places are an affine function of
the other pixels: its row, but for its sign.  What is known is taken away, and shows what it hid.
"""

import logging
from dataclasses import dataclass
from itertools import product

import numpy as np

from revelu.network.images import Image
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.least_deviations import least_deviations
from revelu.numerics.lone_kinks import LoneKinks, second_differences, without_kink
from revelu.oracle import NoiseFloor, Oracle
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["CornerLines", "CornerRows"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CornerLines:
    """How they are asked.

    Attributes
    ----------
    asked : (int, int)
        Lines of a round, and evenly spaced points on each: the finer, the fewer kinks share a
        spacing.
    most_rounds : (int, int)
        At the first corner, and at others, where other entries of a filter bend the function; as
        few as there in a row that show no filter are enough.
    local : float
        Share of the image's rows or columns that a filter sees at most.
    """

    local: float
    asked: tuple[int, int] = (24, 49)
    most_rounds: tuple[int, int] = (5, 2)


@dataclass
class CornerRows:
    """Rows of neurons that share their weights, from lines along pixels at the corners of images.

    Parameters
    ----------
    how : CornerLines
    oracle : Oracle
        Asked in its box, or in [-1, 1].
    """

    how: CornerLines
    oracle: Oracle
    noise: NoiseFloor
    image: Image
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.lo, self.hi = self.oracle.box or (-1.0, 1.0)

    def window(self) -> tuple[int, int] | None:
        """Rows and columns that act together with the first pixel; None where most of them do."""
        found = []
        for axis, size in enumerate(self.image.shape[1:]):
            nearest, farthest = 0, size - 1
            while nearest < farthest:
                middle = (nearest + farthest) // 2
                if self._acts(self.image.beyond(axis, 0, 1, middle)):
                    nearest = middle + 1
                else:
                    farthest = middle
                if size > 1 and nearest >= self.how.local * size:
                    return None
            found.append(nearest + 1)
        return found[0], found[1]

    def _acts(self, pixels: IntArray) -> bool:
        """Whether some pixels change what the first one does."""
        n, d = self.how.asked[0] // 3, self.image.size
        X = np.repeat(self.drawn(n, d)[None], 4, axis=0)
        X[1::2, :, 0], X[::2, :, 0] = self.lo, self.hi
        X[2:][:, :, pixels] = self.drawn(n, len(pixels))
        flat = self.rounded(X.reshape(-1, d))
        Y = self.oracle(flat)
        error = np.sqrt((self.noise.sigma_at(flat, Y) ** 2).reshape(4, n, -1).sum(axis=0))
        Y = Y.reshape(4, n, -1)
        apart = np.abs(Y[0] - Y[1] - Y[2] + Y[3])
        return bool((apart > SIGMAS * error).any())

    def rows(self, window: tuple[int, int]) -> FloatArray:
        """Rows of filters, their biases last, of any sign, (filters, entries + 1).

        At each corner of what is seen another entry of a filter bends the function.
        """
        found: list[FloatArray] = []
        shape = (self.image.shape[0], *window)
        ends = [range(2 if size > 1 else 1) for size in window]
        last = [self._last(axis) for axis in (0, 1)]
        for down, across in product(*ends):
            box = [
                (end + 1 - size, end + 1) if is_last else (0, size)
                for is_last, size, end in zip((down, across), window, last, strict=True)
            ]
            turned = (
                slice(None),
                slice(None, None, 1 - 2 * down),
                slice(None, None, 1 - 2 * across),
            )
            pixels = self.image.pixels(box[0], box[1]).reshape(shape)[turned].ravel()
            for row in self._at_corner(pixels, is_first=not found):
                w = np.append(row[:-1].reshape(shape)[turned].ravel(), row[-1])
                if not found or _apart(np.array(found), w).min() > 1.0 / self.how.asked[1]:
                    found.append(w)
        return np.array(found).reshape(-1, int(np.prod(shape)) + 1)

    def _last(self, axis: int) -> int:
        """The last row or column that the outputs see: windows may leave some out."""
        n, d = self.how.asked[0] // 3, self.image.size
        nearest, farthest = 0, self.image.shape[1 + axis] - 1
        while nearest < farthest:
            middle = (nearest + farthest) // 2
            X = np.repeat(self.drawn(n, d)[None], 2, axis=0)
            pixels = self.image.beyond(axis, 0, 1, middle)
            X[1][:, pixels] = self.drawn(n, len(pixels))
            X = self.rounded(X.reshape(-1, d))
            Y = self.oracle(X)
            apart = np.abs(Y[:n] - Y[n:]) / self.noise.sigma_at(X, Y)[:n]
            if (apart > 2.0 * SIGMAS).any():
                nearest = middle + 1
            else:
                farthest = middle
        return nearest

    def _at_corner(self, pixels: IntArray, *, is_first: bool) -> list[FloatArray]:
        """Rows that lines along the first of some pixels show."""
        drawn = self.drawn(self.how.asked[0], len(pixels) - 1)
        asked, n_idle = np.empty((0, len(pixels) - 1)), 0
        found: list[FloatArray] = []
        shown: list[tuple[FloatArray, FloatArray]] = []
        for _ in range(self.how.most_rounds[not is_first]):
            shown.append(self._look(pixels, drawn))
            asked = np.concatenate([asked, drawn])
            n_before = len(found)
            D, errors = (np.concatenate(parts) for parts in zip(*shown, strict=True))
            found, others = self._rows(D, errors, asked)
            log.debug("rows at a corner: %d, %d kinks of others", len(found), len(others))
            n_idle = n_idle + 1 if len(found) == n_before else 0
            if found and (not len(others) or n_idle == self.how.most_rounds[1]):
                break
            drawn = self.drawn(self.how.asked[0], len(pixels) - 1)
            if len(others):
                # Lines that have shown others, with another value of a pixel each.
                near = asked[self.rng.choice(others, len(drawn) // 2)]
                one = self.rng.integers(near.shape[1], size=len(near))
                drawn[: len(near)] = np.where(
                    np.arange(near.shape[1]) == one[:, None],
                    (near + drawn[: len(near)]) / 2.0,
                    near,
                )
        return found

    def _look(self, pixels: IntArray, drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Second differences along the first of some pixels, others given, and their errors."""
        n, m = len(drawn), self.how.asked[1]
        X = np.empty((n, m, self.image.size))
        # What lies beyond is even: where it is dark, answers are small, and so are their errors.
        X[:] = np.where(self.rng.random(n) < 0.5, self.dark, self.drawn(n, 1)[:, 0])[:, None, None]
        X[:, :, pixels[1:]] = drawn[:, None]
        X[:, :, pixels[0]] = np.linspace(self.lo, self.hi, m)
        Y = self.oracle(self.rounded(X.reshape(n * m, -1)))
        rounding = self.noise.rounding(Y).reshape(n, m, -1).max(axis=1)
        return second_differences(Y.reshape(n, m, -1), rounding)

    def _rows(
        self, D: FloatArray, errors: FloatArray, asked: FloatArray
    ) -> tuple[list[FloatArray], IntArray]:
        """Rows that explain kinks of equal jumps, and the lines of kinks that none explains.

        What is known is taken away, and shows what it hid.
        """
        step = (self.hi - self.lo) / (self.how.asked[1] - 1)
        all_ = np.column_stack([asked, np.ones(len(asked))])
        slack, fewest = np.sqrt(D.shape[2]) + SIGMAS, all_.shape[1] + 1
        rows: list[FloatArray] = []
        while True:
            kinks = LoneKinks.of(D, errors)
            is_open = np.ones(len(kinks.line), dtype=bool)
            n_before = len(rows)
            # The strongest first: those of others are not taken for them.
            for seed in np.argsort(kinks.spread):
                members = np.flatnonzero(is_open & (kinks.apart(int(seed)) <= slack))
                if not is_open[seed] or len(members) < fewest:
                    continue
                x, agrees = _consensus(
                    all_[kinks.line[members]], kinks.place[members], kinks.spread[members]
                )
                if x is None or agrees.sum() < fewest:
                    continue
                is_open[members[agrees]] = False
                those = members[agrees]
                weights = 1.0 / kinks.error[those] ** 2
                jump = (kinks.jump[those] * weights).sum(axis=0) / weights.sum(axis=0)
                D = without_kink(D, errors, np.asarray(all_ @ x), np.asarray(jump))
                # From spacings to values of the pixel.
                w = np.concatenate([[1.0], -step * x])
                w[-1] -= self.lo
                rows.append(w / np.linalg.norm(w[:-1]))
            if len(rows) == n_before:
                return rows, kinks.line

    @property
    def dark(self) -> float:
        """A value of pixels at which answers are small."""
        return self.lo

    @property
    def on(self) -> float:
        """A bias with which a pixel is always on."""
        return max(abs(self.lo), abs(self.hi))

    def drawn(self, n: int, m: int) -> FloatArray:
        """Values of pixels, half of them uniform, and half with a share at an end, (n, m)."""
        X = self.rng.uniform(self.lo, self.hi, (n, m))
        is_outer = self.rng.random((n, m)) < self.rng.random((n, 1))
        is_outer[::2] = False
        is_low = self.rng.random((n, m)) < self.rng.random((n, 1))
        return np.asarray(np.where(is_outer, np.where(is_low, self.lo, self.hi), X))

    def rounded(self, X: FloatArray) -> FloatArray:
        """Inputs near others that the target need not round."""
        return self.oracle.in_float32(X)


def _apart(rows: FloatArray, row: FloatArray) -> FloatArray:
    """How far rows are from another one, whatever their signs, (n,)."""
    return np.asarray(np.minimum(np.abs(rows - row).max(axis=1), np.abs(rows + row).max(axis=1)))


def _consensus(
    P: FloatArray, t: FloatArray, error: FloatArray
) -> tuple[FloatArray | None, BoolArray]:
    """Solve ``P x = t`` by the equations that agree; None where they do not determine x."""
    weights = 1.0 / error
    x = least_deviations(P * weights[:, None], t * weights).x
    agrees = np.abs(P @ x - t) <= SIGMAS * error
    if np.linalg.matrix_rank(P[agrees]) < P.shape[1]:
        return None, agrees
    some = weights[agrees]
    better = np.linalg.lstsq(P[agrees] * some[:, None], t[agrees] * some, rcond=None)[0]
    return np.asarray(better), np.abs(P @ better - t) <= SIGMAS * error
