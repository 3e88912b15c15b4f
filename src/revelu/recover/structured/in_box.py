"""A convolution, what pools it and a dense layer, inside a box, from answers of any digits.

1. Lines along pixels at the corners show the filters, but for their signs.
2. Stride and windows are those that explain images of which the first row varies.
3. All weights are fitted to random images, with filters beside that are always on: what the outputs
   read of those, at all places, says which filters are the wrong way round.
"""

from dataclasses import dataclass

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import LayeredNetwork
from revelu.network.images import Image
from revelu.network.open_filters import OpenFilters
from revelu.numerics.interruption import interruptible
from revelu.probe.corner_rows import CornerLines, CornerRows
from revelu.recover.method import Candidate, Disagreement, Search, Why
from revelu.recover.structured.joint_fit import JointFit
from revelu.types import FloatArray

__all__ = ["StructureInBox"]


@dataclass
class StructureInBox(Search):
    """Filters from the corners of images of a box, and all weights by one fit."""

    spare: tuple[float, int] = (1.5, 40)
    """Answers beyond one an unknown: as a share of those, and at least."""
    most: tuple[int, int] = (4, 8)
    """Steps of a filter, and rows of a window that is not the image."""
    most_features: int = 4096
    """What outputs may read: a fit takes its cube."""
    alike: tuple[float, float] = (4.0, 1e4)
    """Layers of fewer numbers leave this many times as much, and answers their errors."""

    def propose(self) -> Candidate:
        """Find filters, lay them out, and fit."""
        try:
            with interruptible(self.oracle.check_time):
                found = self._found()
        except (LimitReachedError, SaturatedError) as error:
            return Candidate(None, Why.of(error), obstacles=(str(error),))
        if isinstance(found, str):
            return Candidate(None, Why.NOT_SHARED, obstacles=(f"no shared weights: {found}",))
        return Candidate(found, Why.EXPLAINED)

    def repair(self, seen: Disagreement) -> None:
        """One fit has used all that was asked."""
        del seen

    def _found(self) -> LayeredNetwork | str:
        """The network, or why there is none."""
        image = Image(self.oracle.pixels or (1, 1, self.oracle.dim_in))
        corners = CornerRows(CornerLines(), self.oracle, self.noise, image, self.rng)
        self.tell("looking for filters")
        window = corners.window()
        if window is None:
            return "neurons see most of the image"
        rows = corners.rows(window)
        if not len(rows):
            return "no corner of the image shows filters"
        kernels = rows[:, :-1].reshape(-1, image.shape[0], *window)
        filters = self._laid_out(
            OpenFilters(kernels, rows[:, -1], image.shape, corners.on), corners, image
        )
        if filters is None or filters.n_features > self.most_features:
            return "windows of filters are not understood"
        self.tell("fitting filters and the dense layer")
        network, left = self._fitted(filters, corners)
        error = float(np.linalg.norm(self.noise.errors) / np.linalg.norm(self.noise.scale))
        if left > self.alike[1] * error:
            return f"filters leave {left:.1g} of the answers unexplained"
        return network

    def _laid_out(
        self, filters: OpenFilters, corners: CornerRows, image: Image
    ) -> OpenFilters | None:
        """Stride and windows by images of which the first row varies."""
        n = int(filters.conv.places[1] * len(filters.conv.biases))
        n += max(self.spare[1], n // 4)
        first = image.pixels((0, 1), (0, image.shape[2]))
        X = np.full((n, image.size), corners.dark)
        X[:, first] = corners.drawn(n, len(first))
        X = corners.rounded(X)
        Y = self.oracle(X)
        tried: list[tuple[float, OpenFilters]] = []
        for one in filters.layouts(*self.most):
            P = one.features(X)
            P = np.column_stack([P[:, np.ptp(P, axis=0) > 0.0], np.ones(n)])
            if P.shape[1] + self.spare[1] // 2 > n:
                continue
            A, _, rank, _ = np.linalg.lstsq(P, Y, rcond=1e-10)
            tried.append((float(np.sqrt(((Y - P @ A) ** 2).sum() / (n - rank))), one))
        least = min((left for left, _ in tried), default=0.0)
        explained = [one for left, one in tried if left <= self.alike[0] * least]
        return min(explained, key=lambda one: one.n_features, default=None)

    def _fitted(self, filters: OpenFilters, corners: CornerRows) -> tuple[LayeredNetwork, float]:
        """All weights, and what they leave of random images."""
        n = int((1.0 + self.spare[0]) * filters.n_features) + self.spare[1]
        X = corners.rounded(corners.drawn(n, self.oracle.dim_in))
        Y = self.oracle(X)
        weights = 1.0 / self.noise.sigma_at(X, Y).max(axis=1)
        weights /= weights.max()
        fit = JointFit(filters.conv, None, filters.pool, X, Y, weights, self.rng)
        left = fit.run(0.0)
        fewer = self._settled(filters, fit)
        after = fewer.run(0.0)
        if after > self.alike[0] * left:
            fewer, after = fit, left
        return LayeredNetwork(fewer.layers()), after

    def _settled(self, filters: OpenFilters, fit: JointFit) -> JointFit:
        """The fit of filters of the signs that all their uses decide, and of no others."""
        F = len(filters.kernels)
        if filters.are_both:
            shares: FloatArray = fit.shares()
            is_first = shares[:F] >= shares[F:]
            return fit.only(np.concatenate([is_first, ~is_first]))
        fewer = fit.only(np.arange(len(fit.conv.biases)) < F)
        turned = filters.turned(fewer.conv.kernels, fit.A[:-1])
        fewer.conv = fewer.conv.flip(turned)
        return fewer
