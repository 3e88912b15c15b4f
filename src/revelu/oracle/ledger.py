"""What a recovery cost: queries and rounds, by phase."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

PHASES = ("noise", "recover", "repair", "polish", "verify")


@dataclass(frozen=True)
class Ledger:
    """A snapshot of an oracle's counts.

    A *query* is one row sent to the target; a *round* is a set of rows none of
    which depends on another's answer.

    Attributes
    ----------
    n_queries : int
    n_rounds : int
    by_phase : mapping of str to int
        Queries of each phase: noise, recover, repair, polish, verify.
    """

    n_queries: int
    n_rounds: int
    by_phase: Mapping[str, int]

    def __post_init__(self) -> None:
        phases = {name: int(self.by_phase.get(name, 0)) for name in PHASES}
        object.__setattr__(self, "by_phase", MappingProxyType(phases))

    def __reduce__(self) -> tuple[type["Ledger"], tuple[object, ...]]:
        return Ledger, (self.n_queries, self.n_rounds, dict(self.by_phase))

    @property
    def n_recovery(self) -> int:
        """Queries that "queries per parameter" counts: recover, repair and polish."""
        return sum(self.by_phase[name] for name in ("recover", "repair", "polish"))
