"""A hidden layer of a deep network as found: its rows, and what speaks for them."""

from dataclasses import dataclass

from revelu.numerics.gradient_signs import Orientation
from revelu.types import BoolArray, FloatArray, IntArray

# A layer is complete when all of the telling gradients but so many, which noise may have bent,
# are explained.
_STRAYS = 0.002
_FEWEST_TELLING = 8


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
    """

    W: FloatArray
    b: FloatArray
    unseen: BoolArray
    orientation: Orientation | None = None

    def __str__(self) -> str:
        seen = self.orientation
        told = f"{seen.n_explained} of {seen.n_telling}" if seen is not None else "no"
        return f"{len(self.b)} rows, {self.unseen.sum()} unseen, {told} gradients explained"

    @property
    def n_explained(self) -> int:
        """Telling gradients that the rows explain."""
        return 0 if self.orientation is None else self.orientation.n_explained

    def take(self, rows: IntArray) -> "FoundLayer":
        """Return some of the rows."""
        return FoundLayer(self.W[rows], self.b[rows], self.unseen[rows], self.orientation)

    @property
    def is_complete(self) -> bool:
        """Whether gradients leave nothing to other neurons."""
        seen = self.orientation
        return (
            seen is not None
            and seen.n_telling >= _FEWEST_TELLING
            and seen.n_telling - seen.n_explained <= _STRAYS * seen.n_telling
        )

    @property
    def is_exact(self) -> bool:
        """Whether it is complete, every entry was seen, and every row was needed."""
        seen = self.orientation
        proved = seen is not None and len(seen.needed) == len(self.b) and seen.needed.all()
        return bool(proved and self.is_complete and not self.unseen.any())
