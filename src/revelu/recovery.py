"""What a recovery returns: a status, a network, a certificate, a ledger."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from revelu.network import Network
from revelu.network.span import Span
from revelu.oracle import Ledger

__all__ = ["Certificate", "Ledger", "NullCertificate", "Recovery", "SpanRecovery", "Status"]


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


@dataclass(frozen=True)
class Certificate:
    """What fresh queries say of a recovered network.

    Attributes
    ----------
    n_checks : int
        Fresh N(0, I) queries on which the statement rests.
    max_abs_error : float
        Largest |error| of any output over those.
    nrmse : float
        Root mean square error over the outputs' standard deviation.
    fraction_within : float
        Fraction of the ``n_checks`` with every output within ``tolerance``.
    tolerance : float
        The largest |error| that counts as agreement, in units of the output.
    confidence : float
        Of the statement.
    l2_bound : float or None
        Upper confidence bound on the relative L2 error under N(0, I), where one holds.
    statement : str
        The certificate in one sentence.
    n_structural : int
        Further fresh queries: heavy tails and both sides of every hyperplane.
    structural_within : float
        Fraction of those that agree.
    passed : bool
    """

    n_checks: int
    max_abs_error: float
    nrmse: float
    fraction_within: float
    tolerance: float
    confidence: float
    statement: str
    l2_bound: float | None = None
    n_structural: int = 0
    structural_within: float = 1.0
    passed: bool = False


@dataclass(frozen=True)
class Recovery:
    """The outcome of a method or of a task.

    Attributes
    ----------
    status : Status
    network : Network or None
        What was found, whatever the status.
    certificate : Certificate or None
        None where nothing was verified.
    ledger : Ledger
    evidence : tuple of str
        What was seen, in sentences; for a failure, what to try next.
    method : str
    warnings : tuple of str
    details : mapping
        Figures of the method, for reports.
    """

    status: Status
    network: Network | None
    ledger: Ledger
    certificate: Certificate | None = None
    evidence: tuple[str, ...] = ()
    method: str = ""
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NullCertificate:
    """What fresh queries say of a span: that moves across it change no answer.

    Attributes
    ----------
    n_checks : int
        Fresh N(0, I) inputs, each moved by a random vector of the null space.
    max_change : float
        Largest change of an answer, in units of the output; 0 or 1 for labels.
    tolerance : float
        The largest change that counts as none.
    fraction_within : float
        Fraction of the checks without a change.
    confidence : float
        Of the statement.
    statement : str
        The certificate in one sentence.
    passed : bool
    """

    n_checks: int
    max_change: float
    tolerance: float
    fraction_within: float
    confidence: float
    statement: str
    passed: bool = False


@dataclass(frozen=True)
class SpanRecovery:
    """The outcome of a search for the row span of a first layer.

    Attributes
    ----------
    status : Status
    span : Span
        What was found, whatever the status; of rank 0 where nothing was.
    ledger : Ledger
    certificate : NullCertificate or None
        None where nothing was verified.
    evidence : tuple of str
        What was seen, in sentences; for a failure, what to try next.
    method : str
    warnings : tuple of str
    details : mapping
        Figures of the method, for reports.
    """

    status: Status
    span: Span
    ledger: Ledger
    certificate: NullCertificate | None = None
    evidence: tuple[str, ...] = ()
    method: str = ""
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
