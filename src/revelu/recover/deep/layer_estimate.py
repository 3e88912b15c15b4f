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
    orientation : Orientation, optional
    unseen : ndarray of bool, shape (k, m)
        Entries that no kink has shown: that input was never on.
    n_steady : int
        So many rows, the first ones, are of neurons that were on wherever gradients were
        measured: their direction is known, their bias is only large enough.
    is_ambiguous : bool
        Whether two rows that kinks agree on are along each other: what gradients say of these holds
        for other rows as well.
    """

    W: FloatArray
    b: FloatArray
    unseen: BoolArray
    orientation: Orientation | None = None
    n_steady: int = 0
    is_ambiguous: bool = False

    def __str__(self) -> str:
        seen = self.orientation
        told = f"{len(seen.explained)} of {seen.n_informative}" if seen is not None else "no"
        rows = f"{len(self.b)} rows, {self.n_steady} of them steady, {self.unseen.sum()} unseen"
        return f"{rows}, {told} gradients explained"

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
        n_steady = int((np.asarray(rows) < self.n_steady).sum())
        return FoundLayer(self.W[rows], self.b[rows], self.unseen[rows], self.orientation, n_steady)

    @property
    def turning(self) -> "FoundLayer":
        """The rows of neurons that change their state."""
        return self.take(np.arange(self.n_steady, len(self.b)))

    @property
    def is_complete(self) -> bool:
        """Whether gradients leave nothing to other neurons."""
        return self.orientation is not None and self.orientation.is_complete

    @property
    def is_refuted(self) -> bool:
        """Whether gradients refute it: nothing above it can be found."""
        return self.orientation is not None and self.orientation.is_refuted

    @property
    def is_exact(self) -> bool:
        """Whether it is complete, every entry was seen, every row needed, and none like another."""
        seen = self.orientation
        if seen is None or self.n_steady or len(seen.needed) != len(self.b):
            return False
        if self.is_ambiguous or self._are_dependent:
            return False
        return bool(seen.needed.all() and self.is_complete and not self.unseen.any())

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
