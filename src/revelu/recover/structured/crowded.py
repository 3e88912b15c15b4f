"""Filters that crowd, from answers of few digits, in a box or not: by all their uses at once.

    f(x) = A pool(relu(w * x + b)) + c

Along a pixel at the corner of the image one place of each filter bends the function, and by the
same jump ``|w_p| A`` in all outputs wherever the other pixels are.  So

1. kinks of many lines belong to one filter where their jumps are alike to within their errors, and
   their places are an affine function of the other pixels: the filter's row, but for its sign;
2. stride and windows are those that explain answers to images whose first row varies;
3. all weights are fitted to random images at once, with filters beside that are always on:
   ``relu(-z) = relu(z) - z``, so that a wrong sign costs an affine function of a window;
4. that of all windows is the sum of the filters that are the wrong way round: all uses of a filter
   decide its sign.  Where the largest of a window is taken, both signs are fitted, and one is 0.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from revelu.network import LayeredNetwork
from revelu.network.layers import Convolution, Pooling
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.least_deviations import least_deviations
from revelu.numerics.lone_kinks import LoneKinks, second_differences, without_kink
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.structured.images import Image
from revelu.recover.structured.joint_fit import JointFit
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["Crowded", "CrowdedFilters"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Crowded:
    """How filters are found that crowd.

    Attributes
    ----------
    n_lines, n_points : int
        Lines of a round, and evenly spaced points on each.
    most_rounds, patience : int
        Rounds, and those in a row that show no other filter.
    n_pairs : int
        Images at which pixels are looked at that may act together.
    local : float
        Share of the image's rows or columns that a filter sees at most.
    spare : (float, int)
        Answers beyond one an unknown: as a share of those, and at least.
    most_window : int
        Rows of a window, where it is not the image,
    most_stride : int
        and steps of a filter.
    alike : float
        Layers of fewer numbers are taken where they leave no more than this many times as much.
    reach : float
        Values of pixels, where there is no box.
    """

    n_lines: int = 24
    n_points: int = 49
    most_rounds: tuple[int, int] = (5, 2)
    patience: int = 2
    same: float = 0.01
    n_pairs: int = 8
    local: float = 0.75
    spare: tuple[float, int] = (1.5, 40)
    most_window: int = 8
    most_stride: int = 4
    alike: float = 4.0
    reach: float = 4.0


@dataclass
class CrowdedFilters:
    """The search for them on one target.

    Attributes
    ----------
    n_asked : int
        Lines asked.
    """

    how: Crowded
    oracle: Oracle
    noise: NoiseFloor
    image: Image
    rng: np.random.Generator
    X: FloatArray = field(init=False)
    Y: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        reach = self.how.reach
        self.lo, self.hi = self.oracle.box or (-reach, reach)

    def windows(self) -> tuple[int, int] | None:
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
        n, d = self.how.n_pairs, self.image.size
        X = np.repeat(self._drawn(n, d)[None], 4, axis=0)
        X[1::2, :, 0], X[::2, :, 0] = self.lo, self.hi
        X[2:][:, :, pixels] = self._drawn(n, len(pixels))
        flat = self._rounded(X.reshape(-1, d))
        Y = self.oracle(flat)
        error = np.sqrt((self.noise.sigma_at(flat, Y) ** 2).reshape(4, n, -1).sum(axis=0))
        Y = Y.reshape(4, n, -1)
        apart = np.abs(Y[0] - Y[1] - Y[2] + Y[3])
        return bool((apart > SIGMAS * error).any())

    def filters(self, window: tuple[int, int]) -> FloatArray:
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
            turned = (slice(None), slice(None, None, 1 - 2 * down), slice(None, None, 1 - 2 * across))
            pixels = self.image.pixels(box[0], box[1]).reshape(shape)[turned].ravel()
            for row in self._at_corner(pixels, is_first=not found):
                w = np.append(row[:-1].reshape(shape)[turned].ravel(), row[-1])
                if not found or _apart(np.array(found), w).min() > self.how.same:
                    found.append(w)
            log.info("filters: %d", len(found))
        return np.array(found).reshape(-1, int(np.prod(shape)) + 1)

    def _last(self, axis: int) -> int:
        """The last row or column that the outputs see: windows may leave some out."""
        n, d = self.how.n_pairs, self.image.size
        nearest, farthest = 0, self.image.shape[1 + axis] - 1
        while nearest < farthest:
            middle = (nearest + farthest) // 2
            X = np.repeat(self._drawn(n, d)[None], 2, axis=0)
            pixels = self.image.beyond(axis, 0, 1, middle)
            X[1][:, pixels] = self._drawn(n, len(pixels))
            X = self._rounded(X.reshape(-1, d))
            Y = self.oracle(X)
            apart = np.abs(Y[:n] - Y[n:]) / self.noise.sigma_at(X, Y)[:n]
            if (apart > 2.0 * SIGMAS).any():
                nearest = middle + 1
            else:
                farthest = middle
        return nearest

    def _at_corner(self, pixels: IntArray, *, is_first: bool) -> list[FloatArray]:
        """Rows that lines along the first of some pixels show."""
        drawn = self._drawn(self.how.n_lines, len(pixels) - 1)
        asked, found, n_idle = np.empty((0, len(pixels) - 1)), [], 0
        shown: list[tuple[FloatArray, FloatArray]] = []
        for _ in range(self.how.most_rounds[not is_first]):
            shown.append(self._look(pixels, drawn))
            asked = np.concatenate([asked, drawn])
            n_before = len(found)
            D, errors = (np.concatenate(parts) for parts in zip(*shown, strict=True))
            found, others = self._rows(D, errors, asked)
            log.info("filters at a corner: %d, %d kinks of others", len(found), len(others))
            n_idle = n_idle + 1 if len(found) == n_before else 0
            if found and (not len(others) or n_idle == self.how.patience):
                break
            drawn = self._drawn(self.how.n_lines, len(pixels) - 1)
            if len(others):
                # Lines that have shown others, with another value of a pixel each.
                near = asked[self.rng.choice(others, len(drawn) // 2)]
                one = self.rng.integers(near.shape[1], size=len(near))
                drawn[: len(near)] = np.where(
                    np.arange(near.shape[1]) == one[:, None], (near + drawn[: len(near)]) / 2.0, near
                )
        return found

    def _look(self, pixels: IntArray, drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Second differences along the first of some pixels, others given, and their errors."""
        n, m = len(drawn), self.how.n_points
        X = np.empty((n, m, self.image.size))
        # What lies beyond is even: where it is dark, answers are small, and so are their errors.
        X[:] = np.where(self.rng.random(n) < 0.5, self._dark, self._drawn(n, 1)[:, 0])[:, None, None]
        X[:, :, pixels[1:]] = drawn[:, None]
        X[:, :, pixels[0]] = np.linspace(self.lo, self.hi, m)
        Y = self.oracle(self._rounded(X.reshape(n * m, -1)))
        rounding = self.noise.rounding(Y).reshape(n, m, -1).max(axis=1)
        return second_differences(Y.reshape(n, m, -1), rounding)

    def _rows(
        self, D: FloatArray, errors: FloatArray, asked: FloatArray
    ) -> tuple[list[FloatArray], IntArray]:
        """Rows that explain kinks of equal jumps, and the lines of kinks that none explains.

        What is known is taken away, and shows what it hid.
        """
        step = (self.hi - self.lo) / (self.how.n_points - 1)
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
                D = without_kink(D, errors, all_ @ x, jump)
                # From spacings to values of the pixel.
                w = np.concatenate([[1.0], -step * x])
                w[-1] -= self.lo
                rows.append(w / np.linalg.norm(w[:-1]))
            if len(rows) == n_before:
                return rows, kinks.line

    def layers(self, rows: FloatArray, window: tuple[int, int]) -> "Crowd | None":
        """Stride and windows that explain images of which the first row varies."""
        shape = (self.image.shape[0], *window)
        crowd = Crowd(rows[:, :-1].reshape(-1, *shape), rows[:, -1], self.image.shape, self._on)
        n = int(crowd.layout((1, 1), None).conv.places[1] * (len(rows) + np.prod(shape)))
        n = n + max(self.how.spare[1], n // 4)
        X = np.full((n, self.image.size), self._dark)
        first = self.image.pixels((0, 1), (0, self.image.shape[2]))
        X[:, first] = self._drawn(n, len(first))
        X = self._rounded(X)
        Y = self.oracle(X)
        tried = []
        for layout in self._layouts(crowd):
            P = layout.features(X)
            P = np.column_stack([P[:, np.ptp(P, axis=0) > 0.0], np.ones(n)])
            if P.shape[1] + self.how.spare[1] // 2 > n:
                continue
            _, _, rank, _ = found = np.linalg.lstsq(P, Y, rcond=1e-10)
            left = np.sqrt(((Y - P @ found[0]) ** 2).sum() / (n - rank))
            tried.append((left, layout.n_features, layout))
        if not tried:
            return None
        least = min(left for left, _, _ in tried)
        explained = [one for one in tried if one[0] <= self.how.alike * least]
        return min(explained, key=lambda one: one[1])[2]

    def _layouts(self, crowd: "Crowd") -> Iterator["Crowd"]:
        """Strides and windows."""
        for s in range(1, min(self.how.most_stride, *crowd.kernels.shape[2:]) + 1):
            strides = (s if self.image.shape[1] > 1 else 1, s)
            plain = crowd.layout(strides, None)
            yield plain
            rows, columns = plain.conv.places
            sizes = {(min(m, rows), min(m, columns)) for m in range(2, self.how.most_window + 1)}
            for size in {*sizes, (rows, columns)}:
                for kind in ("average", "max"):
                    yield crowd.layout(strides, (kind, size, size))
                    if 2 < min(size) < min(rows, columns):
                        yield crowd.layout(strides, (kind, size, (size[0] - 1, size[1] - 1)))

    def fit(self, crowd: "Crowd") -> tuple[LayeredNetwork, float]:
        """Fit all weights to random images; return the network and what it leaves of answers."""
        share, fewest = self.how.spare
        n = int((1.0 + share) * crowd.n_features) + fewest
        self.X = self._rounded(self._drawn(n, self.image.size))
        self.Y = self.oracle(self.X)
        weights = 1.0 / self.noise.sigma_at(self.X, self.Y).max(axis=1)
        weights /= weights.max()
        fit = JointFit(crowd.conv, None, crowd.pool, self.X, self.Y, weights, self.rng)
        left = fit.run(0.0)
        fewer = crowd.settled(fit)
        after = fewer.run(0.0)
        if after > self.how.alike * left:
            fewer, after = fit, left
        return LayeredNetwork(fewer.layers()), after

    @property
    def _dark(self) -> float:
        return self.lo if self.oracle.box else 0.0

    @property
    def _on(self) -> float:
        """A bias with which a pixel is always on."""
        return float(max(abs(self.lo), abs(self.hi))) * (1.0 if self.oracle.box else 2.0)

    def _drawn(self, n: int, m: int) -> FloatArray:
        """Values of pixels, half of them uniform, and half with a share at an end, (n, m)."""
        X = self.rng.uniform(self.lo, self.hi, (n, m))
        is_outer = self.rng.random((n, m)) < self.rng.random((n, 1))
        is_outer[::2] = False
        is_low = self.rng.random((n, m)) < self.rng.random((n, 1))
        return np.asarray(np.where(is_outer, np.where(is_low, self.lo, self.hi), X))

    def _rounded(self, X: FloatArray) -> FloatArray:
        return X if self.noise.is_exact else self.oracle.in_float32(X)


@dataclass(frozen=True)
class Crowd:
    """Filters of open signs, and those beside them that make up for wrong ones.

    Attributes
    ----------
    kernels : ndarray, shape (filters, channels, rows, columns)
    biases : ndarray, shape (filters,)
    shape : (int, int, int)
    on : float
        A bias with which a pixel is always on.
    """

    kernels: FloatArray
    biases: FloatArray
    shape: tuple[int, int, int]
    on: float
    strides: tuple[int, int] = (1, 1)
    window: tuple[str, tuple[int, int], tuple[int, int]] | None = None

    def layout(
        self,
        strides: tuple[int, int],
        window: tuple[str, tuple[int, int], tuple[int, int]] | None,
    ) -> "Crowd":
        """The same filters, laid out otherwise."""
        return replace(self, strides=strides, window=window)

    @property
    def are_both(self) -> bool:
        """Whether filters of both signs are fitted, and no affine function of a window."""
        return self.window is not None and self.window[0] == "max"

    @property
    def conv(self) -> Convolution:
        """The filters, and those beside them."""
        if self.are_both:
            kernels, biases = -self.kernels, -self.biases
        else:
            n = int(np.prod(self.kernels.shape[1:]))
            kernels, biases = np.eye(n).reshape(n, *self.kernels.shape[1:]), np.full(n, self.on)
        return Convolution(
            np.concatenate([self.kernels, kernels]),
            np.concatenate([self.biases, biases]),
            self.shape,
            self.strides,
        )

    @property
    def pool(self) -> Pooling | None:
        """What pools them."""
        if self.window is None:
            return None
        kind, size, strides = self.window
        return Pooling(kind, self.conv.shape_out, size, strides)

    @property
    def n_features(self) -> int:
        """What the outputs read."""
        return (self.pool or self.conv).size_out

    def features(self, X: FloatArray) -> FloatArray:
        """What windows show in the first rows of images, (n, d) -> (n, features)."""
        extent = self.kernels.shape[2]
        if self.window is not None:
            extent += (self.window[1][0] - 1) * self.strides[0]
        top = replace(self, shape=(self.shape[0], extent, self.shape[2]))
        shown = X.reshape(len(X), *self.shape)[:, :, :extent].reshape(len(X), -1)
        H = np.maximum(top.conv(shown), 0.0)
        return H if top.pool is None else top.pool(H)

    def settled(self, fit: JointFit) -> JointFit:
        """The fit of filters whose signs all their uses have decided, and of no others."""
        F = len(self.kernels)
        is_filter = np.arange(len(fit.conv.biases)) < F
        if self.are_both:
            shares = fit.shares()
            is_first = shares[:F] >= shares[F:]
            return fit.only(np.concatenate([is_first, ~is_first]))
        B = fit.A[:-1].reshape(len(is_filter), -1)  # what windows and outputs read of each
        kernels = fit.conv.kernels.reshape(len(is_filter), -1)[:F]
        M = np.einsum("fe,fw->ewf", kernels, B[:F]).reshape(-1, F)
        turned = np.linalg.lstsq(M, -B[F:].ravel(), rcond=None)[0] > 0.5
        fewer = fit.only(is_filter)
        fewer.conv = fewer.conv.flip(turned)
        return fewer


def _apart(rows: FloatArray, row: FloatArray) -> FloatArray:
    """How far rows are from another one, whatever their signs, (n,)."""
    return np.asarray(
        np.minimum(np.abs(rows - row).max(axis=1), np.abs(rows + row).max(axis=1))
    )


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
    x = np.linalg.lstsq(P[agrees] * some[:, None], t[agrees] * some, rcond=None)[0]
    return x, np.abs(P @ x - t) <= SIGMAS * error
