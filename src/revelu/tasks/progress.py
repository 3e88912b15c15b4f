"""What a long task tells while it works."""

from collections.abc import Callable
from dataclasses import dataclass
from logging import Logger
from typing import Self

from revelu.oracle import Oracle


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
    expected : (int, int) or None
        Fewest and most queries that are expected in all, where something is.
    """

    phase: str
    n_queries: int
    n_rounds: int
    message: str
    fraction: float | None = None
    seconds_left: float | None = None
    expected: tuple[int, int] | None = None

    @classmethod
    def of(
        cls,
        oracle: Oracle,
        phase: str,
        message: str,
        fraction: float | None = None,
        seconds_left: float | None = None,
        expected: tuple[int, int] | None = None,
    ) -> Self:
        """Return the present moment of a task that asks ``oracle``."""
        ledger = oracle.ledger()
        n_queries, n_rounds = ledger.n_queries, ledger.n_rounds
        return cls(phase, n_queries, n_rounds, message, fraction, seconds_left, expected)

    @property
    def title(self) -> str:
        """The phase, and what is being done."""
        return f"{self.phase}: {self.message}" if self.message else self.phase

    def figures(self) -> list[str]:
        """How far it is, in words."""
        said = []
        if self.fraction is not None:
            said.append(f"{self.fraction:.0%}")
        if self.seconds_left is not None:
            minutes, seconds = divmod(round(self.seconds_left), 60)
            said.append(f"at most {minutes}:{seconds:02d} left")
        if self.n_queries:
            said.append(f"{self.n_queries:,} queries in {self.n_rounds:,} rounds")
        if self.expected is not None:
            least, most = self.expected
            is_beyond = self.n_queries > most
            said.append(f"over {most:,} expected" if is_beyond else f"of {least:,} to {most:,}")
        return said


Listener = Callable[[Progress], None]


def teller(log: Logger, progress: Listener | None) -> Callable[[str], None]:
    """Return what tells messages of a task that has samples only.

    Parameters
    ----------
    log : logging.Logger
        Gets every message.
    """

    def tell(message: str) -> None:
        log.debug("%s", message)
        if progress is not None:
            progress(Progress("recover", 0, 0, message))

    return tell
