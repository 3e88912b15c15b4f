"""Rows of a deep network's layer that were looked for where they predict kinks."""

from dataclasses import dataclass, field

import numpy as np

from revelu.recover.deep.gradient_rows import AlwaysOnSearch
from revelu.recover.deep.kink_equations import PRECISION
from revelu.recover.deep.layer_estimate import FoundLayer
from revelu.types import BoolArray, FloatArray, IntArray

# Looking for a steady row in vain, again and again among a few gradients more, may cost so many
# multiplications; then it is looked for again only once there are so many times the gradients.
_MOST_WORK = 5e7
_MORE = 1.5

# Rows whose directions are so near each other are one to gradients where either is on.
_ALIKE = 1e-3


@dataclass
class Judged:
    """Rows of one layer that were looked for where they predict kinks.

    Attributes
    ----------
    rows : ndarray, shape (n, k + 1)
        Those that are neurons', in the order in which they were found.
    refused : ndarray, shape (m, k + 1)
    n_refused : ndarray, shape (m,)
        How many kinks spoke for each of those.
    is_oriented : bool
        Whether all rows have the signs of their neurons.
    steady : ndarray, shape (s, k + 1)
        Rows of neurons that never rest, which no kink shows.
    in_vain : (FoundLayer, int), optional
        The layer for which such a row was last looked for in vain, and among how many gradients.
    work : int
        What that has cost so far.
    """

    rows: FloatArray
    refused: FloatArray
    n_refused: IntArray
    is_oriented: bool = False
    steady: FloatArray = field(init=False)
    in_vain: tuple[FoundLayer, int] | None = field(default=None, init=False)
    work: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.steady = np.empty((0, self.rows.shape[1]))

    def widened(self, size: int) -> None:
        """Add entries for what the layer below has gained."""
        for name in ("rows", "refused", "steady"):
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

    def learn(self, v: FloatArray, *, keeps_size: bool = False) -> None:
        """Add a row that gradients have shown; one that was known in part is now whole."""
        same = np.flatnonzero(_parallel(self.rows, v))
        if not len(same):
            self.rows, self.is_oriented = np.vstack([self.rows, v]), False
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
        """Remember that a row, for which so many kinks spoke, is no neuron's."""
        self.refused = np.vstack([self.refused, v])
        self.n_refused = np.append(self.n_refused, n_members)

    def refuses(self, v: FloatArray, n_members: int) -> bool:
        """Whether a row was refused, and not far fewer kinks spoke for it."""
        return bool((_parallel(self.refused, v) & (n_members < 2 * self.n_refused)).any())

    @property
    def are_alike(self) -> bool:
        """Whether two rows are along each other but for their biases.

        Where one of the two is on their direction is in the span of what is on, and with opposite
        signs it is everywhere: gradients say less of them than of others.
        """
        weights = self.rows[:, :-1]
        return any(
            _parallel(weights[:i], w, _ALIKE, fewest=min(len(w), 2)).any()
            for i, w in enumerate(weights)
        )

    def set_in_vain(self, layer: FoundLayer, n_points: int) -> None:
        """Remember that no steady row was found beside the rows of a layer."""
        self.in_vain = layer, n_points
        self.work += AlwaysOnSearch().work(layer.W, n_points)

    def was_in_vain(self, layer: FoundLayer, n_points: int) -> bool:
        """Whether a steady row was looked for in vain, at some cost, with as much known."""
        if self.in_vain is None or self.work < _MOST_WORK:
            return False
        last, n_last = self.in_vain
        is_same = len(last.b) == len(layer.b) and last.unseen.sum() == layer.unseen.sum()
        return bool(is_same and n_points < _MORE * n_last)


def _parallel(
    rows: FloatArray, v: FloatArray, tolerance: float = PRECISION, *, fewest: int = 2
) -> BoolArray:
    """Which rows are along another on the entries that both have, of which so many must be."""
    shared = (rows != 0) & (v != 0)
    a, b = np.where(shared, rows, 0.0), np.where(shared, v, 0.0)
    product = (a**2).sum(axis=1) * (b**2).sum(axis=1)
    cosine = np.abs((a * b).sum(axis=1)) / np.sqrt(np.where(product > 0, product, 1.0))
    near = 1.0 - cosine < tolerance**2
    return np.asarray((product > 0) & (shared.sum(axis=1) >= fewest) & near)
