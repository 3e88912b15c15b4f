"""What a method has found and paid for, for the one that takes over from it."""

from dataclasses import dataclass

from revelu.recover.line import Peeling
from revelu.recover.rows import Rows
from revelu.recover.subspace import Subspace


@dataclass(frozen=True)
class Paid:
    """What a method hands over; None where it has none.

    Attributes
    ----------
    line : Peeling, optional
        A line whose answers have their digits.
    rows : Rows, optional
        Of lines whose answers have few, in the coordinates of
    subspace : Subspace, optional
        the span of the gradients, where inputs are many.
    first : Rows, optional
        Of the whole first layer of a deeper network, as its neurons turn on, in those coordinates.
    """

    line: Peeling | None = None
    rows: Rows | None = None
    subspace: Subspace | None = None
    first: Rows | None = None

    def __or__(self, before: "Paid") -> "Paid":
        """Return what is here, and where there is none of it what was there before."""
        mine = self if self.rows is not None else before
        return Paid(self.line or before.line, mine.rows, mine.subspace, self.first or before.first)


NOTHING = Paid()
"""What the first method starts with."""
