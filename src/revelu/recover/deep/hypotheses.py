"""Hypotheses on the rows of a deep network's layer: those that hold where they predict kinks."""

from dataclasses import dataclass, field

import numpy as np

from revelu.recover.deep.gradient_rows import AlwaysOnSearch
from revelu.recover.deep.kink_equations import PRECISION
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass
class Hypotheses:
    """Rows of one layer that were tested where they predict kinks.

    Attributes
    ----------
    rows : ndarray, shape (n, k + 1)
        Those that are neurons', in the order in which they were found.
    refused : ndarray, shape (m, k + 1)
    n_refused : ndarray, shape (m,)
        How many critical points spoke for each of those.
    is_oriented : bool
        Whether all rows have the signs of their neurons.
    always_on : ndarray, shape (s, k + 1)
        Rows of neurons that are always on, which no critical point shows.
    in_vain : tuple of int
        Rows, undetermined weights and gradients among which such a row was last sought in vain.
    work : int
        Multiplications that this has cost so far.
    """

    rows: FloatArray
    refused: FloatArray = field(init=False)
    n_refused: IntArray = field(init=False)
    is_oriented: bool = field(default=False, init=False)
    always_on: FloatArray = field(init=False)
    in_vain: tuple[int, int, int] = field(default=(0, 0, 0), init=False)
    work: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.refused = self.always_on = np.empty((0, self.rows.shape[1]))
        self.n_refused = np.empty(0, dtype=np.intp)

    def widen(self, size: int) -> None:
        """Add entries for what the layer below has gained."""
        for name in ("rows", "refused", "always_on"):
            old = getattr(self, name)
            more = np.zeros((len(old), size - old.shape[1]))
            setattr(self, name, np.column_stack([old[:, :-1], more, old[:, -1:]]))

    def merge(self) -> None:
        """Leave out rows that are along another that knows as many entries."""
        known = np.count_nonzero(self.rows, axis=1)
        for i in np.argsort(known, kind="stable"):
            same = _parallel(self.rows, self.rows[i]) & (known >= known[i])
            same[i] = False
            if same.any():
                known[i] = -1
        self.rows = self.rows[known >= 0]

    def add(self, v: FloatArray) -> None:
        """Add a row whose sign is not known."""
        self.rows, self.is_oriented = np.vstack([self.rows, v]), False

    def learn(self, v: FloatArray, *, keeps_size: bool = False) -> None:
        """Add a row that gradients have shown; one that was known in part is now whole."""
        same = np.flatnonzero(_parallel(self.rows, v))
        if not len(same):
            self.add(v)
        else:
            self.grow(int(same[0]), v, keeps_size=keeps_size)

    def grow(self, i: int, v: FloatArray, *, keeps_size: bool = False) -> None:
        """Put a row along one that is known in its place, unless it knows fewer entries.

        Where rows of the layer above are known they are in units of it: what both know keeps its
        size.
        """
        old = self.rows[i]
        if np.count_nonzero(v) < np.count_nonzero(old):
            return
        shared = np.where(old != 0, v, 0.0)
        size = (shared @ old) / (shared @ shared) if keeps_size else np.copysign(1.0, v @ old)
        self.rows[i] = v * size

    def refuse(self, v: FloatArray, n_members: int) -> None:
        """Remember that a row, for which so many critical points spoke, is no neuron's."""
        self.refused = np.vstack([self.refused, v])
        self.n_refused = np.append(self.n_refused, n_members)

    def refuses(self, v: FloatArray, n_members: int) -> bool:
        """Whether a row was refused, and not far fewer critical points spoke for it."""
        return bool((_parallel(self.refused, v) & (n_members < 2 * self.n_refused)).any())

    def set_in_vain(self, among: tuple[int, int, int], work: int) -> None:
        """Remember that no row that is always on was found, and what that has cost."""
        self.in_vain, self.work = among, self.work + work

    def was_in_vain(self, among: tuple[int, int, int], how: AlwaysOnSearch) -> bool:
        """Whether such a row was sought in vain, at some cost, with as much known."""
        is_same = self.in_vain[:2] == among[:2]
        return self.work >= how.max_work and is_same and among[2] < how.more * self.in_vain[2]

    def are_alike(self, angle: float = 1e-3) -> bool:
        """Whether two rows are along each other but for their biases.

        Where one of the two is on their direction is in the span of what is on, and with opposite
        signs it is everywhere: gradients say less of them than of others.

        Parameters
        ----------
        angle : float
            Directions this near each other are one to gradients.
        """
        weights = self.rows[:, :-1]
        return any(
            _parallel(weights[:i], w, angle, fewest=min(len(w), 2)).any()
            for i, w in enumerate(weights)
        )


def _parallel(
    rows: FloatArray, v: FloatArray, angle: float = PRECISION, *, fewest: int = 2
) -> BoolArray:
    """Which rows are along another on the entries that both have, of which so many must be."""
    shared = (rows != 0) & (v != 0)
    a, b = np.where(shared, rows, 0.0), np.where(shared, v, 0.0)
    product = (a**2).sum(axis=1) * (b**2).sum(axis=1)
    cosine = np.abs((a * b).sum(axis=1)) / np.sqrt(np.where(product > 0, product, 1.0))
    near = 1.0 - cosine < angle**2
    return np.asarray((product > 0) & (shared.sum(axis=1) >= fewest) & near)
