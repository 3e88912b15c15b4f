"""What a long task tells while it works."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """A moment of a task.

    Attributes
    ----------
    phase : str
        A phase of the ledger.
    n_queries, n_rounds : int
        Asked so far.
    message : str
        What is being done.
    fraction : float or None
        Of the present step, or of a task of many, where it is known.
    seconds_left : float or None
        What is left at most, where that is known.
    """

    phase: str
    n_queries: int
    n_rounds: int
    message: str
    fraction: float | None = None
    seconds_left: float | None = None


Listener = Callable[[Progress], None]
