"""How a recovery ends: on the ground floor, for what loads nothing else asks for it, too."""

from enum import StrEnum


class Status(StrEnum):
    """How a recovery ended."""

    RECOVERED = "recovered"
    """Found, and certified by fresh queries."""
    PARTIAL = "partial"
    """Some of it was found, marked as such."""
    NOT_IN_CLASS = "not_in_class"
    """The target is not such a network; the evidence says why."""
    NOT_DETERMINISTIC = "not_deterministic"
    """The same query gets different answers, without a law."""
    BUDGET_EXHAUSTED = "budget_exhausted"
    """Queries or seconds ran out; what was found so far is kept."""
    UNVERIFIED = "unverified"
    """Finished, but the certificate failed."""
