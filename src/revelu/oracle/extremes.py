"""The largest and the smallest answer of each output, and at how many inputs they are exact.

A network takes its largest value at single inputs; a cap takes its own at all inputs beyond it.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.types import BoolArray, FloatArray


@dataclass
class Extremes:
    """The extreme answers of a target, as long as it is asked.

    Attributes
    ----------
    most : int
        Inputs that are kept of each: more say no more.
    steps : int
        Inputs that are the same to so many steps of their size are one: searches close in on the
        point where a function is largest.
    """

    most: int = 16
    steps: int = 256
    _best: FloatArray = field(default_factory=lambda: np.empty((2, 0)), init=False)
    _inputs: list[list[set[bytes]]] = field(default_factory=list, init=False)

    def add(self, X: FloatArray, Y: FloatArray) -> None:
        """Take in inputs ``X (n, d)`` and their answers ``Y (n, k)``."""
        if not self._inputs:
            self._best = np.full((2, Y.shape[1]), -np.inf)
            self._inputs = [[set() for _ in range(Y.shape[1])] for _ in range(2)]
        for side, sign in enumerate((-1.0, 1.0)):
            values = np.where(np.isfinite(Y), sign * Y, -np.inf)
            top = values.max(axis=0)
            for j in np.flatnonzero(top >= self._best[side]):
                known = self._inputs[side][j]
                if top[j] > self._best[side][j]:
                    self._best[side][j] = top[j]
                    known.clear()
                if len(known) < self.most:
                    known.update(map(self._place, X[values[:, j] == top[j]][: self.most]))

    def _place(self, x: FloatArray) -> bytes:
        size = np.abs(x).max(initial=0.0) or 1.0
        return bytes(np.rint(x / size * self.steps).astype(np.int16))

    def caps(self, least: int = 8) -> tuple[FloatArray, FloatArray]:
        """Ends that answers do not leave, (k,) each; infinite of what has none.

        Parameters
        ----------
        least : int
            Different inputs at which the answer has to be exactly that.
        """
        n = np.array([[len(known) for known in side] for side in self._inputs])
        varies = -self._best[0] < self._best[1]
        is_cap: BoolArray = (n >= least) & varies
        low = np.where(is_cap[0], -self._best[0], -np.inf)
        return low, np.where(is_cap[1], self._best[1], np.inf)
