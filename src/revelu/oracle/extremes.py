"""The largest and the smallest answer of each output, and at how many inputs they are exact.

A network takes its largest value at single inputs; a cap takes its own at all inputs beyond it.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.types import FloatArray


@dataclass
class Extremes:
    """The extreme answers of a target, as long as it is asked.

    Attributes
    ----------
    most : int
        Inputs that are kept of each: more say no more.
    steps : int
        Inputs that are the same to ``steps`` steps of their size are one: searches close in on the
        point where a function is largest.
    """

    most: int = 16
    steps: int = 256
    _inputs: list[list[dict[float, set[bytes]]]] = field(default_factory=list, init=False)

    def add(self, X: FloatArray, Y: FloatArray) -> None:
        """Take in inputs ``X (n, d)`` and their answers ``Y (n, k)``."""
        if not self._inputs:
            self._inputs = [[{} for _ in range(Y.shape[1])] for _ in range(2)]
        for side, sign in enumerate((-1.0, 1.0)):
            values = np.where(np.isfinite(Y), sign * Y, -np.inf)
            least = [min(known) if len(known) > 1 else -np.inf for known in self._inputs[side]]
            for j in np.flatnonzero(values.max(axis=0) >= least):
                self._add(self._inputs[side][j], X, values[:, j])

    def _add(self, known: dict[float, set[bytes]], X: FloatArray, values: FloatArray) -> None:
        """Keep the inputs of the largest value, and of the one below it."""
        best = sorted({*known, *np.unique(values)[-2:].tolist()} - {-np.inf})[-2:]
        for value in set(known) - set(best):
            del known[value]
        for value in best:
            places = known.setdefault(value, set())
            if len(places) < self.most:
                places.update(map(self._place, X[values == value][: self.most]))

    def _place(self, x: FloatArray) -> bytes:
        size = np.abs(x).max(initial=0.0) or 1.0
        return bytes(np.rint(x / size * self.steps).astype(np.int16))

    @property
    def are_shares(self) -> bool:
        """Whether all answers lie between 0 and 1, and are not all alike."""
        if not self._inputs or not all(known for side in self._inputs for known in side):
            return False
        least, largest = (max(max(known) for known in side) for side in self._inputs)
        return 0.0 <= -least < largest <= 1.0

    def caps(self, least: int = 8) -> tuple[FloatArray, FloatArray]:
        """Ends that answers do not leave, (k,) each; infinite of what has none.

        Of rounded answers the largest is that of many inputs, too, and so is the one below it.

        Parameters
        ----------
        least : int
            Different inputs at which the answer has to be exactly that, and at fewer the one below.
        """
        ends = [[self._cap(known, least) for known in side] for side in self._inputs]
        low, high = np.array(ends)
        return -low, high

    @staticmethod
    def _cap(known: dict[float, set[bytes]], least: int) -> float:
        if len(known) < 2:
            return np.inf
        below, top = sorted(known)
        return top if len(known[top]) >= least > len(known[below]) else np.inf
