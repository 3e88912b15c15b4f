"""What a recovery returns: a status, a network, a certificate, a ledger."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from revelu.formats.npz import write_archive
from revelu.network import Network
from revelu.network.span import Span
from revelu.oracle import Ledger
from revelu.types import BoolArray, FloatArray

__all__ = [
    "Certificate",
    "Fidelity",
    "HalfspaceRecovery",
    "LayerRecovery",
    "Ledger",
    "NullCertificate",
    "Recovery",
    "Result",
    "SpanRecovery",
    "Status",
]


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
class Fidelity:
    """How a recovered network does on inputs that were given.

    Attributes
    ----------
    n_inputs : int
    max_abs_error : float
        Largest |error| of any output.
    fraction_within : float
        Fraction of the inputs with every output within its tolerance; where a target is
        saturated, its inputs are left out.
    labels_equal : float or None
        Fraction of the inputs whose largest output is the same one; None of one output.
    """

    n_inputs: int
    max_abs_error: float
    fraction_within: float
    labels_equal: float | None


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
    fidelity : Fidelity or None
        On the inputs given, where there were any; they must all agree for it to pass.
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
    fidelity: Fidelity | None = None


@dataclass(frozen=True)
class Result:
    """How a task ended, why, and what it cost; subclasses add what was found.

    Attributes
    ----------
    status : Status or None
        None where a task finished that recovers nothing.
    ledger : Ledger
    evidence : tuple of str
        What was seen, in sentences; for a failure, what to try next.
    method : str
    warnings : tuple of str
    details : mapping
        Figures of the method, for reports; nothing depends on them.
    """

    status: Status | None
    _: KW_ONLY
    ledger: Ledger
    evidence: tuple[str, ...] = ()
    method: str = ""
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Recovery(Result):
    """The network that a method or a task found.

    Attributes
    ----------
    status : Status
    network : Network or None
        What was found, whatever the status.
    certificate : Certificate or None
        None where nothing was verified.
    rejected : Network or None
        The best network where noise does not allow it to be called found.
    is_classifier : bool
        Whether the target answers probabilities; ``network`` then gives logits.
    first_layer : (ndarray, ndarray) or None
        ``W`` (k, d) and ``b`` (k,) of an exact first layer where the rest was not found.
    domain : str
        Where the target was asked, in words that follow "inputs".
    classes : tuple of float
        Of a network from labels: what its outputs stand for, or, of a single output, what a number
        that is not positive and one that is do.
    """

    status: Status
    network: Network | None
    certificate: Certificate | None = None
    rejected: Network | None = None
    is_classifier: bool = False
    first_layer: tuple[FloatArray, FloatArray] | None = None
    domain: str = "of N(0, I)"
    classes: tuple[float, ...] = ()


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
class SpanRecovery(Result):
    """The row span of a first layer.

    Attributes
    ----------
    status : Status
    span : Span
        What was found, whatever the status; of rank 0 where nothing was.
    certificate : NullCertificate or None
        None where nothing was verified.
    expected_angle : float
        About how far off the span is, in radians; infinite where that is not known.
    """

    status: Status
    span: Span
    certificate: NullCertificate | None = None
    expected_angle: float = float("inf")


@dataclass(frozen=True)
class LayerRecovery(Result):
    """A first layer under a high threshold: units ``u(directions @ x - thresholds)``.

    Attributes
    ----------
    status : Status
    directions : ndarray, shape (k, d)
        Rows of norm 1; none where nothing was found.
    thresholds : ndarray, shape (k,)
        NaN where the activation leaves them open.
    errors : ndarray, shape (k,)
        Standard error of each direction's angle, in radians; never left out.
    certificate : Certificate or None
        None where nothing was verified.
    details : mapping
        ``threshold_errors``, ``constant``, ``coefficients`` and figures of the method.
    """

    status: Status
    directions: FloatArray
    thresholds: FloatArray
    errors: FloatArray
    certificate: Certificate | None = None


@dataclass(frozen=True)
class HalfspaceRecovery(Result):
    """Halfspaces: ``label = any/all(normals @ x >= thresholds)``.

    Attributes
    ----------
    status : Status
    normals : ndarray, shape (k, d)
        Rows of norm 1; none where nothing was found.
    thresholds : ndarray, shape (k,)
    errors : ndarray, shape (k,)
        Standard error of each normal's angle, in radians.
    threshold_errors : ndarray, shape (k,)
    combine : {"or", "and"}
    certificate : Certificate or None
        None where nothing was verified.
    """

    status: Status
    normals: FloatArray
    thresholds: FloatArray
    errors: FloatArray
    threshold_errors: FloatArray
    combine: str
    certificate: Certificate | None = None

    def predict(self, X: ArrayLike) -> BoolArray:
        """Label inputs, (n, d) -> (n,)."""
        within = np.asarray(X, dtype=np.float64) @ self.normals.T >= self.thresholds
        return np.asarray(within.any(axis=1) if self.combine == "or" else within.all(axis=1))

    def save(self, path: str | PathLike[str]) -> None:
        """Write ``normals``, ``thresholds``, ``errors`` and ``combine`` to an ``.npz`` archive.

        Raises
        ------
        FormatError
            If it cannot be written.
        """
        write_archive(
            Path(path),
            {
                "normals": self.normals,
                "thresholds": self.thresholds,
                "errors": self.errors,
                "threshold_errors": self.threshold_errors,
                "combine": np.array(self.combine),
            },
        )
