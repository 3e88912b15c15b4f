"""What a recovery returns: a status, a network, a certificate, a ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from revelu.formats.npz import write_archive
from revelu.network import Network
from revelu.network.span import Span
from revelu.numerics.digits import digits_by_layer, digits_in_words, digits_of
from revelu.numerics.links import NONE, Link
from revelu.oracle import Ledger
from revelu.shown import SCHEMA, Shown, plain
from revelu.status import Status
from revelu.types import BoolArray, FloatArray

READ = "read"
"""The method of what was read from a file in which the weights lie open."""

__all__ = [
    "READ",
    "Beyond",
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
        Fraction of the inputs whose largest output is the same one; None of one output, and of
        a target that is known for a regressor.
    source : str
        What the inputs are called.
    pattern : str
        What those at which it differs have in common, where a column shows it.
    """

    n_inputs: int
    max_abs_error: float
    fraction_within: float
    labels_equal: float | None
    source: str = "inputs given"
    pattern: str = ""


@dataclass(frozen=True)
class Beyond:
    """Where a network is known to differ, at inputs that were sought and not drawn.

    Attributes
    ----------
    n_inputs, n_wrong : int
        That were sought, and at which it differs; 0 where the search that found the network knows
        of some and has not counted them.
    max_abs_error : float
        Of those.
    distance : float or None
        Of the nearest from the middle of N(0, I), as a multiple of a typical input's; None where
        it is not known, or there is a box.
    share : float
        The largest share of the inputs that the certificate speaks of that lie so far out, or
        differ.
    words : str
        All of it in a sentence.
    """

    n_inputs: int
    n_wrong: int
    max_abs_error: float
    distance: float | None
    share: float
    words: str


class Examined(Shown):
    """What certificates have in common: a statement, and whether every check agrees."""

    n_checks: int
    statement: str
    passed: bool

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name}: {'passed' if self.passed else 'failed'}, {self.n_checks:,} checks>"

    def to_dict(self) -> dict[str, Any]:
        """Return ``status`` and ``certificate``, the latter with all fields."""
        status = Status.RECOVERED if self.passed else Status.UNVERIFIED
        found = plain(asdict(self))  # type: ignore[call-overload]
        return {"schema": SCHEMA, "status": status.value, "certificate": found}


@dataclass(frozen=True, repr=False)
class Certificate(Examined):
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
        Whether the statement is one on agreement: inputs of which fewer differ than it says.
    fidelity : Fidelity or None
        On the inputs given, and the rows of the data that a domain is like, where there were any;
        they must all agree for it to pass.
    n_requests : int
        That carried the ``n_checks``, at least; 0 where nothing was asked.
    share_wrong : float
        The largest share of the inputs it speaks of that may differ, at its confidence.
    beyond : Beyond or None
        Where it is known to differ nevertheless.
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
    n_requests: int = 0
    share_wrong: float = 1.0
    beyond: Beyond | None = None

    told_by: ClassVar[str] = "verify"

    @property
    def is_mute(self) -> bool:
        """Whether it failed although nothing that was asked differs: answers err too much."""
        given = 1.0 if self.fidelity is None else self.fidelity.fraction_within
        within = self.fraction_within * self.structural_within * given
        return not self.passed and self.n_checks > 0 and within == 1.0


@dataclass(frozen=True, repr=False)
class Result(Shown):
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
    saturated : bool
        Whether it ended for probabilities without digits wherever the target was asked: what it
        would give away elsewhere was not seen.
    answers : mapping or None
        What numbers the answers are and how they err, as :attr:`revelu.oracle.NoiseFloor.answers`
        says it; None where that was not measured.
    """

    status: Status | None
    _: KW_ONLY
    ledger: Ledger
    evidence: tuple[str, ...] = ()
    method: str = ""
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    saturated: bool = False
    answers: Mapping[str, Any] | None = None

    told_by: ClassVar[str] = "extract"

    @property
    def certified(self) -> bool | None:
        """Whether fresh queries have vouched for it; None of what was read and nobody asked."""
        if self.method == READ and not self.ledger.n_queries:
            return None
        return self.status is Status.RECOVERED

    def __repr__(self) -> str:
        parts = [_words(self.status), *self.subject(), f"{self.ledger.n_queries:,} queries"]
        return f"<{type(self).__name__}: {', '.join(parts)}>"

    def subject(self) -> list[str]:
        """What was found, in a few words; nothing where nothing was."""
        return []

    def fields(self) -> dict[str, Any]:
        """Return what its account has beside that of every result."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the account as values that JSON has, as ``--json`` prints them."""
        found: dict[str, Any] = {"schema": SCHEMA, "status": _words(self.status, "_")}
        recovers = hasattr(self, "certificate")
        if recovers:
            found |= {"certified": self.certified, "method": self.method}
        found |= self.fields()
        found |= {"queries": self.ledger.n_queries, "rounds": self.ledger.n_rounds}
        found["by_phase"] = dict(self.ledger.by_phase)
        if recovers:
            certificate = getattr(self, "certificate", None)
            found["certificate"] = None if certificate is None else asdict(certificate)
        found |= {"evidence": list(self.evidence), "warnings": list(self.warnings)}
        return dict(plain(found))


def _words(status: Status | None, space: str = " ") -> str:
    return "finished" if status is None else status.value.replace("_", space)


@dataclass(frozen=True, repr=False)
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
    link : Link
        What was applied to the target's answers: ``network`` gives what is behind it, as logits of
        probabilities, those of a softmax up to a common shift.
    first_layer : (ndarray, ndarray) or None
        ``W`` (k, d) and ``b`` (k,) of an exact first layer where the rest was not found.
    domain : str
        Where the target was asked, in words that follow "inputs".
    held : mapping
        Columns that were held where it was asked, by name or number, and their values: what
        another value changes was not seen.
    classes : tuple of float
        Of a network from labels: what its outputs stand for, or, of a single output, what a number
        that is not positive and one that is do.
    class_names : tuple of str
        Their names, where the target answers names, or a file that was read has them.
    standard_errors : list of (ndarray, ndarray) or None
        Of weights ``(k, d)`` and biases ``(k,)`` of each layer of
        ``network.with_unit_rows()``, where hidden rows have Euclidean norm 1 and their outgoing
        weights take the scale; those of a skip come last, where there is one.  Infinite where no
        answer tells a weight: the others of its row are those of a row of norm 1 without it.
        None where they are not known: of what is not certified, of labels, of networks with
        layers that are no dense ones, and of large ones.
    """

    status: Status
    network: Network | None
    certificate: Certificate | None = None
    rejected: Network | None = None
    link: Link = NONE
    first_layer: tuple[FloatArray, FloatArray] | None = None
    domain: str = "of N(0, I)"
    held: Mapping[str, float] = field(default_factory=dict)
    classes: tuple[float, ...] = ()
    class_names: tuple[str, ...] = ()
    standard_errors: list[tuple[FloatArray, FloatArray]] | None = None

    def __post_init__(self) -> None:
        """Have the network say, wherever it goes, whether it is certified."""
        for name, certified in (("network", self.certified), ("rejected", False)):
            found = getattr(self, name)
            if found is not None:
                object.__setattr__(self, name, found.marked(certified))

    @property
    def is_classifier(self) -> bool:
        """Whether the target answers probabilities; ``network`` then gives logits."""
        return self.link.name == "softmax"

    @property
    def digits(self) -> list[FloatArray] | None:
        """Decimal digits of each layer's weights and biases, in one row; None without errors.

        A number has as many as its error is smaller than what is typical of its layer.
        """
        if self.standard_errors is None or self.network is None:
            return None
        return digits_by_array(self.network, self.standard_errors)

    @property
    def digits_in_words(self) -> str:
        """How many digits the weights have; empty where that is not known, or nothing is hidden."""
        known = self.digits
        if known is None or self.network is None or not any(self.network.architecture[1:-1]):
            return ""
        return digits_in_words(known)

    def subject(self) -> list[str]:
        """Its widths."""
        return [] if self.network is None else ["-".join(map(str, self.network.architecture))]

    def fields(self) -> dict[str, Any]:
        """Return what an account says of a network."""
        network = self.network
        return {
            "architecture": None if network is None else list(network.architecture),
            "parameters": None if network is None else network.n_parameters,
            "softmax": self.is_classifier,
            "link": f"{self.link}",
            "domain": self.domain,
            "held": dict(self.held),
            "classes": list(self.class_names or self.classes),
            "answers": self.answers,
            "saturated": self.saturated,
            **told_errors(self.standard_errors, self.digits),
        }


def digits_by_array(
    network: Network, errors: Sequence[tuple[FloatArray, FloatArray]]
) -> list[FloatArray]:
    """Return decimal digits of each layer's weights and biases, and of a skip's, in one row."""
    network = network.with_unit_rows()
    skip = [] if network.skip is None else [network.skip]
    layers = [*zip(network.weights, network.biases, strict=True), *skip]
    return [digits_of(values, e) for values, e in zip(layers, errors, strict=True)]


def told_errors(
    errors: Sequence[tuple[FloatArray, FloatArray]] | None, digits: Sequence[FloatArray] | None
) -> dict[str, Any]:
    """Return what an account says of weights' errors: null where they are infinite."""
    if errors is None or digits is None:
        return {"digits": None, "standard_errors": None}
    told = [{"weights": plain(W), "biases": plain(b)} for W, b in errors]
    return {"digits": digits_by_layer(digits), "standard_errors": told}


@dataclass(frozen=True, repr=False)
class NullCertificate(Examined):
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

    told_by: ClassVar[str] = "span"


@dataclass(frozen=True, repr=False)
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

    told_by: ClassVar[str] = "span"

    def subject(self) -> list[str]:
        """How many directions."""
        return [f"{self.span.rank} of {self.span.dim_in} directions"]

    def fields(self) -> dict[str, Any]:
        """Return what an account says of a span."""
        found = self.span.fields()
        return {**found, "expected_angle": plain(self.expected_angle), "answers": self.answers}


@dataclass(frozen=True, repr=False)
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
        Standard error of each direction's angle, its root mean square, in radians; never left
        out.
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

    def subject(self) -> list[str]:
        """How many units."""
        return [f"{len(self.directions)} units"]

    def fields(self) -> dict[str, Any]:
        """Return what an account says of units."""
        names = ("directions", "thresholds", "errors")
        return {name: plain(getattr(self, name)) for name in names}


@dataclass(frozen=True, repr=False)
class HalfspaceRecovery(Result):
    """Halfspaces: ``label = any/all(normals @ x >= thresholds)``.

    Attributes
    ----------
    status : Status
    normals : ndarray, shape (k, d)
        Rows of norm 1; none where nothing was found.
    thresholds : ndarray, shape (k,)
    errors : ndarray, shape (k,)
        Standard error of each normal's angle, in radians: its root mean square.
    threshold_errors : ndarray, shape (k,)
    combine : {"or", "and"}
    certificate : Certificate or None
        None where nothing was verified.
    bounds, threshold_bounds : ndarray, shape (k,)
        What each normal's angle, in radians, and each threshold are off by at most, at 95%
        confidence.
    wrong_labels : (float, float) or None
        Shares of the samples outside of the union, and inside of it (or of the intersection's
        complement), whose labels are wrong; None where no label is.
    """

    status: Status
    normals: FloatArray
    thresholds: FloatArray
    errors: FloatArray
    threshold_errors: FloatArray
    combine: str
    certificate: Certificate | None = None
    _: KW_ONLY
    bounds: FloatArray
    threshold_bounds: FloatArray
    wrong_labels: tuple[float, float] | None = None

    told_by: ClassVar[str] = "learn"

    def subject(self) -> list[str]:
        """How many halfspaces."""
        return [f"{len(self.normals)} halfspaces"]

    def fields(self) -> dict[str, Any]:
        """Return what an account says of halfspaces."""
        own = ("combine", "normals", "thresholds", "errors", "threshold_errors")
        names = (*own, "bounds", "threshold_bounds", "wrong_labels")
        return {name: plain(getattr(self, name)) for name in names}

    def predict(self, X: ArrayLike) -> BoolArray:
        """Label inputs, (n, d) -> (n,)."""
        within = np.asarray(X, dtype=np.float64) @ self.normals.T >= self.thresholds
        return np.asarray(within.any(axis=1) if self.combine == "or" else within.all(axis=1))

    def save(self, path: str | PathLike[str]) -> None:
        """Write an ``.npz`` archive of normals, thresholds, their errors and bounds, ``combine``.

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
                "bounds": self.bounds,
                "threshold_bounds": self.threshold_bounds,
                "combine": np.array(self.combine),
            },
        )
