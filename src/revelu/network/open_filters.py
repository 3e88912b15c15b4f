"""Filters whose signs are open, in layouts that are open, beside what makes up for wrong ones.

``relu(-z) = relu(z) - z``: with a filter the wrong way round a network is the same but for an
affine function of a window, which filters of one entry are that are always on.  Of windows of which
the largest is taken that is not so: then filters of both signs stand side by side.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from revelu.network.layers import Convolution, Pooling
from revelu.numerics.confidence import SIGMAS
from revelu.types import BoolArray, FloatArray

__all__ = ["OpenFilters"]


@dataclass(frozen=True)
class OpenFilters:
    """Filters of open signs, and those beside them that make up for wrong ones.

    Attributes
    ----------
    kernels : ndarray, shape (filters, channels, rows, columns)
    biases : ndarray, shape (filters,)
    is_open : ndarray of bool, shape (filters,)
        Whose signs are not known.
    is_least : ndarray of bool, shape (filters,)
        Whose biases are the least that they may be.
    shape : (int, int, int)
    on : float
        A bias with which a pixel is always on.
    roots : ndarray, shape (filters, directions, entries + 1), optional
        One standard error of each filter, its bias last, in each of some directions.
    """

    kernels: FloatArray
    biases: FloatArray
    is_open: BoolArray
    is_least: BoolArray
    shape: tuple[int, int, int]
    on: float
    roots: FloatArray | None = None
    strides: tuple[int, int] = (1, 1)
    window: tuple[str, tuple[int, int], tuple[int, int]] | None = None

    @property
    def are_both(self) -> bool:
        """Whether filters of both signs are fitted, and no affine functions of a window."""
        return self.window is not None and self.window[0] == "max"

    @property
    def biases_on(self) -> FloatArray:
        """Biases with which filters are always on, (filters,)."""
        return np.asarray(self.on * np.abs(self.kernels).sum(axis=(1, 2, 3)))

    @property
    def conv(self) -> Convolution:
        """The filters, and those beside them."""
        if self.are_both:
            kernels, biases = -self.kernels[self.is_open], -self.biases[self.is_open]
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
    def are_known(self) -> BoolArray:
        """Which numbers are those of single entries that are always on, (filters, entries + 1)."""
        found = np.zeros((len(self.conv.biases), self.kernels[0].size + 1), dtype=bool)
        found[len(self.kernels) :] = not self.are_both
        return found

    @property
    def are_measured(self) -> BoolArray:
        """Which numbers were measured: all but biases that are the least ones."""
        found = np.ones_like(self.are_known)
        found[: len(self.kernels), -1] = ~self.is_least
        return found

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

    def explaining(
        self, X: FloatArray, Y: FloatArray, layouts: Sequence["OpenFilters"], error: float
    ) -> "list[OpenFilters]":
        """Return the layouts that explain images whose first row varies, the fewest numbers first.

        Parameters
        ----------
        layouts : sequence of OpenFilters
            Of :meth:`layouts`.
        error : float
            Standard error of an answer ``Y (n, k)``, all of it.
        """
        tried = [(*one.left(X, Y), one) for one in layouts]
        tried = [t for t in tried if t[1] > 0]
        least = max(min((left for left, _, _ in tried), default=0.0), error)
        explained = [one for left, n_spare, one in tried if left <= _chance(n_spare) * least]
        fewest = min((one.n_features for one in explained), default=0)
        # Windows that are several of a finer layout have fewer numbers, which make up for less of
        # the filters' own errors: those are fitted, for the right one before any wrong one.
        fewer = [t for t in tried if t[2].n_features < fewest]
        for _, _, one in sorted(fewer, key=lambda t: t[0]):
            left, n_spare = one.beside(X, Y).left(X, Y)
            if left > _chance(n_spare) * least:
                break
            explained.append(one)
        return sorted(explained, key=lambda one: one.n_features)

    def left(self, X: FloatArray, Y: FloatArray) -> tuple[float, int]:
        """Root mean square of what an answer leaves, all of it, and how many answers are spare."""
        P = self._read(X)
        A, _, rank, _ = np.linalg.lstsq(P, Y, rcond=None)
        n_spare = len(X) - int(rank) if P.shape[1] < len(X) else 0
        return float(np.sqrt(((Y - P @ A) ** 2).sum() / max(n_spare, 1))), n_spare

    def beside(self, X: FloatArray, Y: FloatArray) -> "OpenFilters":
        """Return filters near these, as answers tell (variable projection, a step)."""
        if self.roots is None:
            return self
        P, H, F = self._read(X), self.features(X), len(self.kernels)
        n, Q = H.shape[1] // len(self.conv.biases), np.linalg.qr(P)[0]
        A = np.linalg.lstsq(np.column_stack([H, np.ones(len(X))]), Y, rcond=None)[0]
        # Those that are known to be always on have no errors.
        A, H = A[: F * n].reshape(F, n, -1), H[:, : F * n].reshape(len(X), F, n)
        J = []
        for root in self.roots.transpose(1, 0, 2):
            moved = self.moved(root).features(X)[:, : F * n].reshape(H.shape) - H
            J.append(np.einsum("nfw,fwk->fnk", moved, A).reshape(F, len(X), -1))
        M = np.concatenate(J).transpose(1, 0, 2)  # (n, directions * filters, k)
        flat = M.reshape(len(X), -1)
        flat = flat - Q @ (Q.T @ flat)
        left = Y - Q @ (Q.T @ Y)
        M = flat.reshape(M.shape).transpose(0, 2, 1).reshape(-1, M.shape[1])
        steps = np.linalg.lstsq(M, left.ravel(), rcond=1e-9)[0].reshape(-1, F)
        return self.moved(np.einsum("df,fde->fe", steps, self.roots))

    def moved(self, rows: FloatArray) -> "OpenFilters":
        """Return filters with something added, (filters, entries + 1)."""
        kernels = self.kernels + rows[:, :-1].reshape(self.kernels.shape)
        return replace(self, kernels=kernels, biases=self.biases + rows[:, -1])

    def _read(self, X: FloatArray) -> FloatArray:
        """Features that are not the same in all images, and a one."""
        H = self.features(X)
        return np.column_stack([H[:, np.ptp(H, axis=0) > 0.0], np.ones(len(X))])

    def signs(
        self, kernels: FloatArray, A: FloatArray, shares: FloatArray
    ) -> tuple[BoolArray, BoolArray]:
        """Which filters there are, those beside them included, and which of them are to be turned.

        All uses of a filter decide it: those beside them make one affine function of the pixels,
        which is that of the filters to be turned, negated.  Single entries of windows that overlap
        may share it in many ways.

        Parameters
        ----------
        kernels : ndarray, shape (filters, channels, rows, columns)
            As they were fitted, those beside them included.
        A : ndarray, shape (features, k)
            What the outputs read of them.
        shares : ndarray, shape (filters,)
            How much each adds to the answers.
        """
        F = len(self.kernels)
        if self.are_both:
            is_second = shares[:F][self.is_open] < shares[F:]
            is_first = np.ones(F, dtype=bool)
            is_first[self.is_open] = ~is_second
            return np.concatenate([is_first, is_second]), np.zeros(F, dtype=bool)
        conv, pool = replace(self.conv, kernels=kernels), self.pool
        # What every pixel adds to the sums, whether they are on or not: (pixels, features).
        d = int(np.prod(self.shape))
        P = conv(np.eye(d)) - conv(np.zeros((1, d)))
        P = (P if pool is None else pool(P)).reshape(len(P), len(kernels), -1)
        M = np.einsum("pfw,fwk->pkf", P, A.reshape(len(kernels), P.shape[2], -1))
        M = M.reshape(-1, len(kernels))
        turned = np.linalg.lstsq(M[:, :F], -M[:, F:].sum(axis=1), rcond=None)[0] > 0.5
        return np.arange(len(kernels)) < F, turned

    def layouts(self, most_rows: int) -> Iterator["OpenFilters"]:
        """The filters with strides and windows, one by one.

        Where biases are the least that they may be, with those, and with filters always on.

        Parameters
        ----------
        most_rows : int
            Of a window that is not all places.
        """
        on = replace(self, biases=np.where(self.is_least, self.biases_on, self.biases))
        for one in (self, on) if self.is_least.any() else (self,):
            yield from one.in_strides(most_rows)

    def in_strides(self, most_rows: int) -> Iterator["OpenFilters"]:
        """As :meth:`layouts`, with these biases."""
        for s in range(1, min(self.kernels.shape[2:]) + 1):
            plain = replace(self, strides=(s if self.shape[1] > 1 else 1, s))
            yield plain
            rows, columns = plain.conv.places
            sizes = {(min(m, rows), min(m, columns)) for m in range(2, most_rows + 1)}
            for size in sorted({*sizes, (rows, columns)}):
                for kind in ("average", "max"):
                    yield replace(plain, window=(kind, size, size))
                    if 2 < min(size) < min(rows, columns):
                        yield replace(plain, window=(kind, size, (size[0] - 1, size[1] - 1)))


def _chance(n_spare: int) -> float:
    """How far roots of means of squares differ by chance.

    Of a filter that was missed all outputs read one and the same number.
    """
    return float(1.0 + SIGMAS / np.sqrt(2.0 * n_spare))
