"""What a long task tells while it works."""

import time
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
    n_underway : int
        Of those asked, how many wait for their answer.
    """

    phase: str
    n_queries: int
    n_rounds: int
    message: str
    fraction: float | None = None
    seconds_left: float | None = None
    expected: tuple[int, int] | None = None
    n_underway: int = 0

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
        underway = max(n_queries - oracle.n_answered, 0) if oracle.is_waiting else 0
        return cls(phase, n_queries, n_rounds, message, fraction, seconds_left, expected, underway)

    @property
    def title(self) -> str:
        """The phase, and what is being done; nothing twice."""
        if not self.message or self.message.startswith(self.phase):
            return self.message or self.phase
        return f"{self.phase}: {self.message}"

    def figures(self) -> list[str]:
        """How far it is, in words."""
        said = []
        if self.fraction is not None:
            said.append(f"{self.fraction:.0%}")
        if self.n_queries:
            said.append(f"{self.n_queries:,} queries in {self.n_rounds:,} rounds")
        if self.n_underway:
            said.append(f"{self.n_underway:,} on their way")
        if self.expected is not None:
            least, most = self.expected
            is_beyond = self.n_queries > most
            said.append(f"over {most:,} expected" if is_beyond else f"of {least:,} to {most:,}")
        if self.seconds_left is not None:
            minutes, seconds = divmod(round(self.seconds_left), 60)
            said.append(f"at most {minutes}:{seconds:02d} left")
        return said


class Pace:
    """How fast answers come, and what is left at that pace.

    Parameters
    ----------
    n_before : int
        Answers that there were already.
    few : int
        Of fewer answers the pace is not known.
    """

    def __init__(self, n_before: int, few: int = 32) -> None:
        self._n_before, self._few, self._began = n_before, few, time.monotonic()

    def seconds_to(self, n: int, n_answered: int) -> float | None:
        """Return the seconds until there are ``n`` answers; None where that is not known."""
        fresh = n_answered - self._n_before
        if fresh < self._few or n < n_answered:
            return None
        return (time.monotonic() - self._began) / fresh * (n - n_answered)


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
