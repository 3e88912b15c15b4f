"""Inputs at which known features are on that hardly any input shows, found without a query.

A neuron above known layers shows its weight of a feature only where the feature is on as the
neuron's sum crosses 0; one whose weights are mostly of one sign crosses 0 only where few features
are on.  At random inputs about half of the features are, so that hundreds of them may not do.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from revelu.recover.structured.below import KnownFilters
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["Starts"]


@dataclass(frozen=True)
class Starts:
    """Inputs made to measure for the features of a box at the corner."""

    below: KnownFilters
    size: tuple[int, int]
    """Rows and columns of the features."""
    margin: float = 0.5
    """How far over or under 0 sums are taken, relative to a filter's norm,"""
    n_steps: int = 10
    """by ``n_steps`` least-squares steps."""
    dependent: float = 1e-2
    """Combinations of sums that take moves larger than one over this are left as they are."""

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self.below.shape[0] * self.size[0] * self.size[1]

    def features(self, X: FloatArray) -> FloatArray:
        """Return the features of the box, (n, d) -> (n, features)."""
        rows, columns = self.size
        return np.asarray(self.below.features(X)[:, :, :rows, :columns].reshape(len(X), -1))

    def with_features(self, X: FloatArray, features: IntArray, height: float) -> FloatArray:
        """Return an input at which some features are on, and the others as they are near by.

        Parameters
        ----------
        X : ndarray, shape (n, d)
            Inputs near which one is looked for: where the fewest others turn on or off.
        features : ndarray of int, shape (m,)
            As the box is flattened, channels first.
        height : float
            Their values there, relative to their filters' norms.
        """
        found, least = X[0], np.inf
        for x in X:
            moved, n_turned = self._with_all(x, features, height)
            if n_turned < least:
                found, least = moved, n_turned
            if least == 0:
                break
        return np.asarray(found)

    def _with_all(
        self, x: FloatArray, features: IntArray, height: float
    ) -> tuple[FloatArray, float]:
        """As :meth:`with_features`, near one input; and how many others turn.

        First sums are held of what is on and is to be on, then of what turns by that, too.
        """
        W, pixels = self._rows
        at, sums = np.arange(self.n_features), self._sums(x)
        largest = sums.argmax(axis=1)
        rows, values = W[at, largest], sums[at, largest]
        heights = height * np.linalg.norm(rows, axis=1)
        is_on = values > 0.0
        is_on[features] = True
        is_held = is_on.copy()
        wanted = np.where(is_on, values, -heights)
        wanted[features] = np.maximum(values, heights)[features]
        moved, found, least = x, x, np.inf
        for _ in range(self.n_steps):
            by = wanted - self._sums(moved)[at, largest]
            moved = self._moved(moved, rows[is_held], by[is_held], pixels)
            is_turned = (self._sums(moved).max(axis=1) > 0.0) != is_on
            n_turned = float(is_turned.sum()) if not is_turned[features].any() else np.inf
            if n_turned < least:
                found, least = moved, n_turned
            if least == 0.0 or (is_turned <= is_held).all():
                break
            is_held |= is_turned
        return found, least

    def with_few(self, n_on: int, scale: float, rng: np.random.Generator) -> FloatArray:
        """Return a random input at which about a number of features of the box are on.

        Parameters
        ----------
        n_on : int
        scale : float
            Size of the input, relative to N(0, I).
        """
        W, pixels = self._rows
        x = scale * rng.standard_normal(self.below.conv.size_in)
        is_on = np.zeros(self.n_features, dtype=bool)
        is_on[rng.permutation(self.n_features)[:n_on]] = True
        margins = scale * self.margin * np.linalg.norm(W, axis=2)
        for _ in range(self.n_steps):
            sums = self._sums(x)
            wanted = self._wanted(sums, is_on, margins)
            if (wanted == sums).all():
                break
            x = self._moved(x, W.reshape(-1, W.shape[2]), (wanted - sums).ravel(), pixels)
        return x

    def _wanted(self, sums: FloatArray, is_on: BoolArray, margins: FloatArray) -> FloatArray:
        """Sums nearest to those there are at which these features alone are on."""
        wanted = np.minimum(sums, -margins)
        # One place of a window is enough.
        largest = sums[is_on].argmax(axis=1)
        wanted[is_on] = sums[is_on]
        wanted[is_on, largest] = np.maximum(sums[is_on, largest], margins[is_on, largest])
        return np.asarray(wanted)

    def _moved(
        self, x: FloatArray, rows: FloatArray, by: FloatArray, pixels: IntArray
    ) -> FloatArray:
        """Move an input by as little as changes its sums by these."""
        found = x.copy()
        found[pixels] += np.linalg.lstsq(rows, by, rcond=self.dependent)[0]
        return found

    def _sums(self, x: FloatArray) -> FloatArray:
        """The filters' sums in the box, (features, places of a window)."""
        sums = self.below.sums(x[None])[0].reshape(*self.below.shape, -1)
        rows, columns = self.size
        return np.asarray(sums[:, :rows, :columns].reshape(self.n_features, -1))

    @cached_property
    def _rows(self) -> tuple[FloatArray, IntArray]:
        """What those read of the pixels of the box, (features, places, pixels), and the pixels."""
        pixels = self.below.pixels(self.size)
        moves = np.zeros((len(pixels), self.below.conv.size_in))
        moves[np.arange(len(pixels)), pixels] = 1.0
        zero = self._sums(np.zeros(moves.shape[1]))
        return np.stack([self._sums(move) - zero for move in moves], axis=2), pixels
