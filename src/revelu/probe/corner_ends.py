"""Ends of lines along a pixel at a corner, and what filters that are known do not tell of them.

Along the pixel only a few places ``p`` of filters bend the function, so that between the ends of a
line answers differ by

    D = a + sum_f A_f (h_f(p') - h_f(p)),

with ``h_f`` what is pooled of filter f, and one ``a`` for all lines.  With the filters that are
known, ``A`` is a least-squares fit.  What it leaves changes where others turn on or off: along the
segment between two lines for which it differs, halving finds where.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from revelu.numerics.confidence import SIGMAS
from revelu.numerics.reweighting import LeastDeviations, reweighted
from revelu.probe.corner_kinks import CornerKinks
from revelu.probe.seen_filters import SeenFilter
from revelu.types import FloatArray

__all__ = ["CornerEnds"]


@dataclass
class CornerEnds:
    """What answers at the ends of lines differ by.

    Parameters
    ----------
    corner : CornerKinks
    sides : tuple of slice
        What turns filters as the corner is.
    entry : (int, int)
        Row and column of its pixel, from the corner.
    X : ndarray, shape (n, size)
        Where lines are,
    D, errors : ndarray, shape (n, k)
        what answers at their ends differ by, and the standard errors of that.
    A : ndarray, shape (m, k)
        What outputs read of filters.
    unknown : ndarray, shape (n,)
        What is left of each line, in what may be left for errors.
    """

    corner: CornerKinks
    sides: tuple[slice, ...]
    entry: tuple[int, int]
    X: FloatArray = field(init=False)
    D: FloatArray = field(init=False)
    errors: FloatArray = field(init=False)
    filters: list[SeenFilter] = field(default_factory=list, init=False)
    ties: bool = field(default=False, init=False)
    A: FloatArray = field(init=False)
    unknown: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.X = np.empty((0, self.corner.size))
        self.D = self.errors = np.empty((0, len(self.corner.draws.noise.errors)))

    def hold_against(self, filters: list[SeenFilter], n: int, *, ties: bool) -> float:
        """Fit what filters tell; return the most that they do not.

        So many lines are used, and two for each number that is fitted.
        """
        self.filters, self.ties = filters, ties
        wanted = n + 2 * self._features(self.X).shape[1]
        if wanted > len(self.X):
            self.ask(self._drawn(wanted - len(self.X)))
        error = np.median(self.errors, axis=0)
        P = self._features(self.X)
        # Lines on which another filter bends leave much of all outputs: the others decide.
        loss = LeastDeviations(1.0)
        self.A = np.column_stack([reweighted(P, y, loss, 30) for y in (self.D / error).T]) * error
        rest = np.linalg.norm((self.D - P @ self.A) / self.errors, axis=1)
        self.unknown = rest / self._slack
        if (rest <= np.sqrt(self.D.shape[1]) + SIGMAS).all():
            return 0.0
        return float(self.unknown.max())

    def ask(self, X: FloatArray) -> None:
        """Ask at the ends of more lines, (n, size)."""
        D, errors = self._across(X)
        self.X = np.concatenate([self.X, X])
        self.D, self.errors = np.concatenate([self.D, D]), np.concatenate([self.errors, errors])

    def showing(self, patches: FloatArray) -> FloatArray:
        """Lines whose corner shows patches, (n, channels, rows, columns)."""
        X, turned = self.corner.drawn(len(patches)), patches[(slice(None), *self.sides)]
        _, _, rows, columns = turned.shape
        X[:, self.corner.pixels[:, :rows, :columns]] = turned
        return X

    @property
    def _slack(self) -> FloatArray:
        """What may be left of each line for the errors of answers and filters, (n,)."""
        P, moves = self._features(self.X), self._moves()
        flat = moves.reshape(len(P), -1)
        # What is fitted takes its part of them, and errs by that on other lines.
        moves = (flat - P @ np.linalg.lstsq(P, flat, rcond=None)[0]).reshape(moves.shape)
        own = ((moves / self.errors[:, None]) ** 2).sum(axis=(1, 2))
        return np.asarray(np.sqrt(self.D.shape[1]) + SIGMAS * np.sqrt(1.0 + own))

    def _moves(self) -> FloatArray:
        """What lines change by as each filter moves by an error in each direction, (n, m, k)."""
        found = [np.empty((len(self.X), 0, self.D.shape[1]))]
        for one, A in zip(
            self.filters, np.split(self.A[:-1], max(len(self.filters), 1)), strict=True
        ):
            moved = [one, *(one.with_row(one.row + root) for root in one.roots)]
            H = self._features(self.X, moved)[:, :-1].reshape(len(self.X), len(moved), -1)
            found.append((H[:, 1:] - H[:, :1]) @ A)
        return np.concatenate(found, axis=1)

    def _drawn(self, n: int) -> FloatArray:
        """Lines as they are asked elsewhere, and, every other one, with pixels at their ends.

        There, sums of filters are as far from their means as they can be.
        """
        X, rng, draws = self.corner.drawn(n), self.corner.draws.rng, self.corner.draws
        outer, pixels = X[::2], self.corner.pixels.ravel()
        is_low = rng.random((len(outer), len(pixels))) < rng.random((len(outer), 1))
        shown = np.where(is_low, *draws.ends)
        # As little uneven as others are.
        outer[:, pixels] = shown + self.corner.uneven * (
            rng.uniform(*draws.ends, shown.shape) - shown
        )
        return draws.rounded(X)

    def between(self, n: int) -> FloatArray:
        """Images between pairs of lines, at most n, where what is left changes most."""
        left = (self.D - self._features(self.X) @ self.A) / np.median(self.errors, axis=0)
        first = np.argsort(-self.unknown)[:n]
        apart = np.linalg.norm(left[first, None] - left, axis=2)
        # Any of those that differ by half of the most.
        apart = apart > apart.max(axis=1, keepdims=True) / 2.0
        second = np.argmax(apart * self.corner.draws.rng.random(apart.shape), axis=1)
        (A, B), (at_a, at_b) = (self.X[first], self.X[second]), (left[first], left[second])
        # Until a segment is as short as the spacing of a line.
        for _ in range(int(np.log2(self.corner.how.asked[1])) + 1):
            middle = self.corner.draws.rounded((A + B) / 2.0)
            D, _ = self._across(middle)
            at = (D - self._features(middle) @ self.A) / np.median(self.errors, axis=0)
            is_first = np.linalg.norm(at - at_a, axis=1) > np.linalg.norm(at_b - at, axis=1)
            is_first = is_first[:, None]
            A, at_a = np.where(is_first, A, middle), np.where(is_first, at_a, at)
            B, at_b = np.where(is_first, middle, B), np.where(is_first, at, at_b)
        return middle

    def _across(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What answers differ by across lines, and its standard errors, (n, k)."""
        ends = self.corner.ends(X).reshape(-1, self.corner.size)
        draws = self.corner.draws
        Y = draws.oracle(ends)
        errors = np.sqrt((draws.noise.sigma_at(ends, Y).reshape(len(X), 2, -1) ** 2).sum(axis=1))
        return np.diff(Y.reshape(len(X), 2, -1), axis=1)[:, 0], errors

    def _features(self, X: FloatArray, filters: list[SeenFilter] | None = None) -> FloatArray:
        """What filters, those known where none are given, change across lines, and a one."""
        pixels = self.corner.pixels
        images = self.corner.ends(X)[:, :, pixels.ravel()].reshape(-1, *pixels.shape)
        pooled = self._pooled(images, self.filters if filters is None else filters)
        H = pooled[1::2] - pooled[::2]
        return np.column_stack([H, np.ones(len(X))])

    def _pooled(self, images: FloatArray, filters: list[SeenFilter]) -> FloatArray:
        """What filters show of images of the corner, (n, filters and ways)."""
        if not filters:
            return np.empty((len(images), 0))
        kernels = np.array([one.kernel[self.sides] for one in filters])
        windows = sliding_window_view(images, kernels.shape[1:], axis=(1, 2, 3))[:, 0]
        z = np.einsum("nijcrs,fcrs->nfij", windows, kernels, optimize=True)
        b = np.array([one.b for one in filters])[:, None, None]
        if not self.ties:
            rows, columns = self.entry
            H = np.maximum(z + b, 0.0)[:, :, : rows + 1, : columns + 1]
            return np.asarray(H.reshape(len(images), int(np.prod(H.shape[1:]))))
        # Of either sign, and as if it was always on.
        ways = (z + b, -z - b, z)
        H = np.stack([way.max(axis=(2, 3)) for way in ways], axis=2)
        H[:, :, :2] = np.maximum(H[:, :, :2], 0.0)
        return np.asarray(H.reshape(len(images), int(np.prod(H.shape[1:]))))
