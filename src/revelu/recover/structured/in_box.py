"""A convolution, what pools it and a dense layer, inside a box, from answers of any digits.

Lines along pixels at the corners show filters.  All weights are fitted to random images; where
signs are open, with others beside that are always on: what outputs read of those tells them.  What
the fit leaves shows filters that were missed: lines are asked again where it is taken away.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import LayeredNetwork
from revelu.network.images import Image
from revelu.network.open_filters import OpenFilters
from revelu.numerics.interruption import interruptible
from revelu.probe.corner_kinks import CornerLines
from revelu.probe.corner_rows import CornerRows
from revelu.probe.draws import Draws
from revelu.probe.window_images import WindowImages
from revelu.probe.wrong_patches import WrongPatches
from revelu.recover.method import Candidate, Disagreement, Search, Why
from revelu.recover.structured.joint_fit import JointFit
from revelu.recover.structured.pixel_rows import PixelRows
from revelu.types import FloatArray

__all__ = ["StructureInBox"]

Found: TypeAlias = tuple[LayeredNetwork, float] | str
"""A network, and what share of the answers it leaves; or why there is none."""


@dataclass
class StructureInBox(Search):
    """Filters from the corners of images of a box, and all weights by one fit."""

    spare: float = 1.5
    """Answers beyond one an unknown, as a share of those,"""
    least_spare: int = 40
    """and at least."""
    most_rows: int = 8
    """Rows of a window that is not the image,"""
    most_features: int = 4096
    """and numbers that outputs read."""
    alike: float = 4.0
    """Layers of fewer numbers leave this many times as much,"""
    most_left: float = 1e4
    """and answers this many of their errors."""
    most_looks: int = 3
    """Fits, and looks for filters beside those of them."""
    rows: list[tuple[FloatArray, FloatArray]] = field(default_factory=list, init=False)
    """Images of which the first row varies, and their answers."""
    X: FloatArray = field(init=False)
    Y: FloatArray = field(init=False)
    fit: JointFit = field(init=False)
    measured: JointFit = field(init=False)
    corners: CornerRows = field(init=False)
    """Images, what they were answered, the last fit, that of filters as they were measured, and
    where those were."""

    def __post_init__(self) -> None:
        self.X, self.Y = np.empty((0, self.oracle.dim_in)), np.empty((0, len(self.noise.scale)))

    def propose(self) -> Candidate:
        """Find filters, lay them out, and fit."""
        return self._candidate(self._found)

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Fit to inputs where it is wrong, too."""
        self.n_repairs += 1
        return (
            self._candidate(lambda: self._refitted(seen.X))
            if self.n_repairs <= self.most_looks
            else None
        )

    def _candidate(self, find: Callable[[], Found]) -> Candidate:
        """What is found, and what is to be said of it."""
        try:
            with interruptible(self.oracle.check_time):
                found = find()
        except (LimitReachedError, SaturatedError) as error:
            return Candidate(None, Why.of(error), obstacles=(str(error),))
        if isinstance(found, str):
            return Candidate(None, Why.NOT_SHARED, obstacles=(f"no shared weights: {found}",))
        network, left = found
        if left > self.alike * self.noise.overall:
            said = f"filters leave {left:.1g} of the answers: one that is rarely on may be missing"
            return Candidate(network, Why.UNRESOLVED, obstacles=(said,))
        sums = self.fit.conv(self.X).reshape(len(self.X), len(self.fit.conv.biases), -1)
        n = int((sums >= 0.0).all(axis=(0, 2)).sum())
        said = f"filters that are always on add what is affine, as of leaky units: {n}"
        return Candidate(network, Why.EXPLAINED, notes=(said,) if n else ())

    def _found(self) -> Found:
        """Look for filters, and fit them."""
        image = Image(self.oracle.pixels or (1, 1, self.oracle.dim_in))
        self.tell("looking for filters")
        draws = Draws(self.oracle, self.noise, self.rng)
        corners = CornerRows(CornerLines(PixelRows.local), draws, image)
        if (window := corners.window()) is None:
            return "at a corner nothing bends, or neurons see most of the image"
        corners.look(window)
        if not corners.found:
            return "no corner shows filters"
        self.corners = corners
        return self._explained(None, np.inf)

    def _explained(self, network: LayeredNetwork | None, left: float) -> Found:
        """Fit filters, and look for those that a fit lacks, from what a network leaves."""
        for n_looks in range(self.most_looks):
            is_later = n_looks or len(self.X)
            if is_later and not self.corners.look_beside(0.0, self._wrong()):
                break
            laid = self._laid_out(self.corners.open_filters, self.corners.draws)
            if laid is not None and laid.n_features <= self.most_features:
                self.tell("fitting filters and the dense layer")
                network, left = self._fitted(laid, self.corners.draws)
            if left <= self.alike * self.noise.overall:
                break
        if network is None:
            return "windows of filters are not understood"
        if left > self.most_left * self.noise.overall:
            return f"filters leave {left:.1g} of the answers unexplained"
        return network, left

    def _laid_out(self, filters: OpenFilters, draws: Draws) -> OpenFilters | None:
        """Stride and windows by images of which the first row varies."""
        n = int(filters.conv.places[1] * len(filters.conv.biases))
        n += max(self.least_spare, n // 4)
        first = Image(filters.shape).pixels((0, 1), (0, filters.shape[2]))
        error, layouts = np.linalg.norm(self.noise.errors), list(filters.layouts(self.most_rows))
        # In the dark hardly more than one place of a window is on, which tells few kinds.
        if not self.rows:
            shown = draws.rounded(draws.drawn(2, self.oracle.dim_in))
            shown[0] = draws.dark
            self.rows = [*zip(shown[:, None], self.oracle(shown)[:, None], strict=True)]
        for i, (X, Y) in enumerate(self.rows):
            more = draws.varied(X[0], first, max(0, n - len(X)))
            answers = self.oracle(more) if len(more) else Y[:0]
            self.rows[i] = np.concatenate([X, more]), np.concatenate([Y, answers])
            layouts = filters.explaining(*self.rows[i], layouts, float(error))
            if len(layouts) < 2:
                break
        return replace(layouts[0], biases=filters.biases) if layouts else None

    def _fitted(self, filters: OpenFilters, draws: Draws) -> tuple[LayeredNetwork, float]:
        """All weights, and what they leave of random images."""
        n = int((1.0 + self.spare) * filters.n_features) + self.least_spare
        X = draws.drawn(max(0, n - len(self.X)), self.oracle.dim_in)
        beside = WindowImages(filters, draws).beside(np.concatenate([self.X, X]))
        asked = self._asked(draws.rounded(np.concatenate([X, beside])))
        fit = JointFit(filters.conv, None, filters.pool, *asked, self.rng, filters.are_known)
        # Filters stay where they were measured as long as some may be missing.
        measured = replace(fit, is_held=filters.are_measured)
        left = measured.run(0.0, 12)
        self.measured = replace(measured)
        if left > self.most_left * self.noise.overall:
            self.fit = measured
            return LayeredNetwork(measured.layers()), left
        fit.conv = measured.conv
        left = fit.run(0.0)
        shares = fit.shares()
        is_kept, turned = filters.signs(fit.conv.kernels, fit.A[:-1], shares)
        self.fit = fit.only(is_kept)
        self.fit.conv = self.fit.conv.flip(turned)
        after = self.fit.run(0.0)
        if after > self.alike * left:
            # Those beside add what is affine.
            self.fit = fit.only(shares > self.noise.overall)
            after = self.fit.run(0.0)
        return LayeredNetwork(self.fit.layers()), after

    def _wrong(self) -> FloatArray | None:
        """Patches where filters as they were measured are wrong, though right at most images."""
        if not len(self.X) or self.corners.extent is None:
            return None
        self.measured.settle()
        network = LayeredNetwork(self.measured.layers())
        places = WrongPatches(self.corners.draws, self.corners.image, network)
        return places.among(self.X, self.Y, self.corners.extent, self.corners.how.asked[2])

    def _refitted(self, X: FloatArray) -> Found:
        """The last fit, to more images; where it cannot be right there, with more filters."""
        asked, answers, weights = self._asked(X)
        self.fit, self.measured = (
            replace(fit, X=asked, Y=answers, weights=weights) for fit in (self.fit, self.measured)
        )
        left = self.fit.run(0.0)
        network = LayeredNetwork(self.fit.layers())
        is_right = left <= self.alike * self.noise.overall
        return (network, left) if is_right else self._explained(network, left)

    def _asked(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """All images asked, these among them, their answers, and what each counts."""
        self.Y = np.concatenate([self.Y, self.oracle(X)]) if len(X) else self.Y
        self.X = np.concatenate([self.X, X])
        errors = self.noise.sigma_at(self.X, self.Y).max(axis=1)
        return self.X, self.Y, errors.min() / errors
