"""A hidden layer of a deep network as found: its rows, and what speaks for them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from revelu.recover.deep.gradient_signs import Orientation
from revelu.recover.deep.kink_equations import PRECISION
from revelu.recover.deep.stack import Stack
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass
class FoundLayer:
    """Rows of a layer.

    Attributes
    ----------
    W : ndarray, shape (k, m)
        Rows of norm 1 with their bias, each with the sign of the neuron where it is known.
    b : ndarray, shape (k,)
    undetermined : ndarray of bool, shape (k, m)
        Weights that no critical point has shown: that input was on at none of the neuron's.
    orientation : Orientation, optional
    n_always_on : int
        The first rows, as many as this, are of neurons that were on wherever gradients were
        measured: their direction is known, their bias is only large enough.
    is_ambiguous : bool
        Whether two rows that critical points agree on are along each other: what gradients say of
        those holds for other rows as well.
    """

    W: FloatArray
    b: FloatArray
    undetermined: BoolArray
    orientation: Orientation | None = None
    n_always_on: int = 0
    is_ambiguous: bool = False

    def __str__(self) -> str:
        seen = self.orientation
        told = f"{len(seen.explained)} of {seen.n_informative}" if seen is not None else "no"
        return (
            f"{len(self.b)} rows, {self.n_always_on} of them always on, "
            f"{self.undetermined.sum()} weights undetermined, {told} gradients explained"
        )

    @property
    def rows(self) -> FloatArray:
        """Weights and biases, shape (k, m + 1)."""
        return np.column_stack([self.W, self.b])

    @property
    def n_explained(self) -> int:
        """Informative gradients that the rows explain."""
        return 0 if self.orientation is None else len(self.orientation.explained)

    @property
    def share_explained(self) -> float:
        """The same as a share of the informative gradients."""
        seen = self.orientation
        return 0.0 if seen is None else len(seen.explained) / max(seen.n_informative, 1)

    def take(self, rows: IntArray) -> "FoundLayer":
        """Return some of the rows."""
        n_always_on = int((np.asarray(rows) < self.n_always_on).sum())
        some = self.W[rows], self.b[rows], self.undetermined[rows]
        return FoundLayer(*some, self.orientation, n_always_on)

    @property
    def turning(self) -> "FoundLayer":
        """The rows of neurons that change their state."""
        return self.take(np.arange(self.n_always_on, len(self.b)))

    @property
    def is_complete(self) -> bool:
        """Whether gradients leave nothing to other neurons."""
        return self.orientation is not None and self.orientation.is_complete

    @property
    def is_determined(self) -> bool:
        """Whether it is complete and all of every row is known."""
        return self.is_complete and not self.undetermined.any() and not self.n_always_on

    @property
    def is_refuted(self) -> bool:
        """Whether gradients refute it: nothing above it can be found."""
        return self.orientation is not None and self.orientation.is_refuted

    @property
    def is_exact(self) -> bool:
        """Whether it is determined, every row is needed, and no two could be others."""
        seen = self.orientation
        if seen is None or len(seen.needed) != len(self.b) or self.is_ambiguous:
            return False
        return bool(self.is_determined and seen.needed.all()) and not self._are_dependent

    @property
    def _are_dependent(self) -> bool:
        """Whether rows depend on each other though the inputs leave room for them not to.

        Hyperplanes of deeper neurons have normals in the span of this layer's rows: with a few of
        those in place of its own it explains every gradient as well.
        """
        W = self.W[:, self.W.any(axis=0)]
        sizes = np.linalg.svd(W / np.linalg.norm(W, axis=1)[:, None], compute_uv=False)
        return bool(len(sizes) > 0 and sizes[-1] <= PRECISION * sizes[0])


def stack_of(layers: Sequence[FoundLayer], dim_in: int) -> Stack:
    """Layers one above the other."""
    return Stack(dim_in, [layer.W for layer in layers], [layer.b for layer in layers])
