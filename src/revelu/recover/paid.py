"""What a method has found and paid for, for the one that takes over from it."""

from dataclasses import dataclass

from revelu.recover.line import Peeling
from revelu.recover.rows import Rows
from revelu.recover.subspace import Subspace


@dataclass(frozen=True)
class Paid:
    """What a method hands over; None where it has none."""

    line: Peeling | None = None
    """A line whose answers have their digits."""
    rows: Rows | None = None
    """Of lines whose answers have few, in the coordinates of"""
    subspace: Subspace | None = None
    """the span of the gradients, where inputs are many."""
    first: Rows | None = None
    """Of the whole first layer of a deeper network, as its neurons turn on, in those
    coordinates."""

    def __or__(self, before: "Paid") -> "Paid":
        """Return what is here, and where there is none of it what was there before."""
        mine = self if self.rows is not None else before
        return Paid(self.line or before.line, mine.rows, mine.subspace, self.first or before.first)


NOTHING = Paid()
"""What the first method starts with."""
