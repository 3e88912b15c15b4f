"""What a search for a span says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from revelu.network.span import Span
from revelu.recover.method import Why


@dataclass(frozen=True)
class SpanCandidate:
    """What a method says of a span; whether it is certified is for others to say."""

    span: Span
    """The best so far, however the search ended."""
    why: Why
    """How it ended: ``EXPLAINED``, nothing more was seen; ``UNRESOLVED``, more was seen and
    could not be measured; ``REFUTED``, answers depend on the input as if at random;
    ``LIMIT``."""
    notes: tuple[str, ...] = ()
    """What kept the search from more."""
    expected_angle: float = float("inf")
    """About how far off the span is, in radians; infinite where that is not known."""
    leak: float | None = None
    """The same of the directions that are as strong as usual, which a function sees most of;
    None where all are alike."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """For reports: nothing reads them to decide."""
