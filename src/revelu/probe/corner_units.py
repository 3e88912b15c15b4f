"""Filters as faces of kinks at a corner show them.

Where the largest of a window is taken, faces are a filter's row, or those of two places that tie,
``w - S w``.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from revelu.numerics.confidence import SIGMAS
from revelu.numerics.shifted_sums import cropped, summed, untied
from revelu.probe.corner_kinks import CornerKinks, SeenFace
from revelu.probe.seen_filters import SeenFilter
from revelu.types import FloatArray, IntArray

__all__ = ["CornerUnit", "alike"]


@dataclass(frozen=True)
class CornerUnit:
    """Faces of kinks alike at a corner: one filter's, as a rule.

    Attributes
    ----------
    shape : (int, int, int)
        Channels, rows and columns of what acts together.
    ties : bool
        Whether faces may be those of two places that tie.
    """

    corner: CornerKinks
    shape: tuple[int, int, int]
    seen: list[SeenFace]
    ties: bool

    @property
    def shows_ties(self) -> bool:
        """Whether some of its faces are ties, and others are not alike."""
        return not self._is_plain and any(
            replace(self, ties=True).untied(one) is not None for one in self.seen
        )

    @property
    def extent(self) -> tuple[int, int] | None:
        """Rows and columns of its filter; None where only ties show it that are not understood."""
        sizes = [self._box(one).shape[1:] for one in self.seen if not self._may_tie(one)]
        sizes += [tied[0].shape[1:] for one in self.seen if (tied := self.untied(one)) is not None]
        return min(sizes, key=lambda size: size[0] * size[1], default=None)

    def filters(self, extent: tuple[int, int]) -> list[SeenFilter]:
        """Return those of a size."""
        beyond = np.ones(self.shape, dtype=bool)
        beyond[:, : extent[0], : extent[1]] = False
        pixels = np.flatnonzero(np.delete(beyond.ravel(), self.corner.along))
        inside = np.append(np.flatnonzero(~beyond), beyond.size)
        plain = [
            one
            for one in self.seen
            if not self._may_tie(one) and self._fits(self._box(one), extent)
        ]
        if plain:
            return [self._plain(one.without(pixels), inside, extent) for one in plain]
        for one in self.seen:
            tied = self.untied(one)
            if tied is not None and self._fits(tied[0], extent):
                return [self._tied(one, *tied, extent)]
        return []

    def _plain(self, one: SeenFace, inside: IntArray, extent: tuple[int, int]) -> SeenFilter:
        """The filter whose row a face is, of which some entries and the bias are not 0."""
        w, C = self.corner.row(one.face)
        kernel = w[:-1].reshape(self.shape)[:, : extent[0], : extent[1]]
        up = self._up(one) if not self._is_plain else self._below(kernel, float(w[-1]), one)
        scale = (up or 1.0) / float(np.linalg.norm(kernel))
        covariance = scale**2 * C[np.ix_(inside, inside)]
        return SeenFilter(scale * kernel, float(scale * w[-1]), covariance, False, up != 0.0)

    def _below(self, kernel: FloatArray, b: float, one: SeenFace) -> float:
        """The sign with which the other places are under 0 at all kinks; 0 where that is open."""
        images = self._kinks()[:, :-1].reshape(-1, *self.shape)
        windows = sliding_window_view(images, kernel.shape, axis=(1, 2, 3))
        z = (windows * kernel).sum(axis=(4, 5, 6)).reshape(len(images), -1)[:, 1:] + b
        ups = [
            up
            for up in (1.0, -1.0)
            if (up * z).max(initial=0.0) <= self.corner.row(one.face)[1].max() ** 0.5
        ]
        return ups[0] if self.ties and len(ups) == 1 else 0.0

    def _tied(
        self, one: SeenFace, tied: FloatArray, shift: tuple[int, int], extent: tuple[int, int]
    ) -> SeenFilter:
        """The filter that ties, with the least bias with which no kink is where it is off."""
        scale = self._up(one) / float(np.linalg.norm(tied))
        _, height, width = tied.shape
        kernel = np.zeros(self.shape)
        kernel[:, :height, :width] = scale * tied
        b = -float((self._kinks()[:, :-1] @ kernel.ravel()).min())
        box, (row, column) = cropped(self._row(one)[0], 0.0)
        read = np.arange(kernel.size).reshape(self.shape)
        read = read[:, row : row + box.shape[1], column : column + box.shape[2]]
        sums = summed(np.eye(box.size).reshape(*box.shape, box.size), shift)
        sums = scale * sums[:, :height, :width].reshape(tied.size, box.size)
        kernel = kernel[:, : extent[0], : extent[1]]
        at = np.arange(kernel.size).reshape(kernel.shape)[:, :height, :width].ravel()
        covariance = np.zeros((kernel.size + 1, kernel.size + 1))
        C = self.corner.row(one.face)[1][np.ix_(read.ravel(), read.ravel())]
        covariance[np.ix_(at, at)] = sums @ C @ sums.T
        return SeenFilter(kernel, b, covariance, True, True)

    def _up(self, one: SeenFace) -> float:
        """On which side of a face all kinks alike are: there, the filter is over the others."""
        above = self._kinks() @ self.corner.row(one.face)[0]
        return 1.0 if above[np.argmax(np.abs(above))] > 0.0 else -1.0

    def _kinks(self) -> FloatArray:
        """Pixels at kinks alike, and a one."""
        every = max(self.seen, key=lambda one: len(one.places))
        t = self.corner.t
        return np.insert(every.P, self.corner.along, t[0] + every.places * (t[1] - t[0]), axis=1)

    @property
    def _is_plain(self) -> bool:
        """Whether one face has all kinks alike."""
        return len(self.seen) == 1 and self.seen[0].is_all

    def _row(self, one: SeenFace) -> tuple[FloatArray, float]:
        """Weights of a face, what does not differ from 0 being 0, and the largest error."""
        w, C = self.corner.row(one.face)
        errors = np.sqrt(np.diag(C))[:-1]
        w = np.where(np.abs(w[:-1]) <= SIGMAS * errors, 0.0, w[:-1])
        return w.reshape(self.shape), float(errors.max())

    def _box(self, one: SeenFace) -> FloatArray:
        """Weights of a face, without rows and columns of zeros behind."""
        w = self._row(one)[0]
        box, (row, column) = cropped(w, 0.0)
        return w[:, : row + box.shape[1], : column + box.shape[2]]

    @staticmethod
    def _fits(kernel: FloatArray, extent: tuple[int, int]) -> bool:
        return bool(kernel.shape[1] <= extent[0] and kernel.shape[2] <= extent[1])

    def _may_tie(self, one: SeenFace) -> bool:
        """Whether even images are on the face, where the largest of windows is taken."""
        return self.ties and self.corner.has_even(one.face)

    def untied(self, one: SeenFace) -> tuple[FloatArray, tuple[int, int]] | None:
        """The kernel of which a face is a tie, and how far apart places are; None of none."""
        if not self._may_tie(one):
            return None
        w, error = self._row(one)
        return untied(cropped(w, 0.0)[0], SIGMAS * error)


def alike(corner: CornerKinks) -> list[list[SeenFace]]:
    """Faces whose changes of slope are alike."""
    groups: list[list[SeenFace]] = []
    if not corner.seen:
        return groups
    slack = np.sqrt(corner.D.shape[2]) + SIGMAS
    error = np.median(corner.errors, axis=0)
    for one in corner.seen:
        apart = [np.linalg.norm((one.jump - group[0].jump) / error) for group in groups]
        if apart and min(apart) <= slack:
            groups[int(np.argmin(apart))].append(one)
        else:
            groups.append([one])
    return groups
