"""What an audit says: a target in words, a row a defence, advice."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from revelu.certify.labels import predict_labels
from revelu.network import Network
from revelu.numerics.links import NONE, Link
from revelu.oracle import NoiseFloor
from revelu.oracle.labels import are_labels, as_labels
from revelu.oracle.log_ratios import SMALLEST_DIFFERENCE
from revelu.recovery import Result, Status
from revelu.tasks.audit.attack import Finding
from revelu.tasks.audit.defences import Defence
from revelu.tasks.diagnose.kind import Kind
from revelu.types import FloatArray

# What can be recovered, from least to most.
ORDER = ("nothing", "span", "function", "weights")

# How grave it is that a target's own answers give so much away.
SEVERITY = {"weights": "critical", "function": "high", "span": "moderate", "nothing": "low"}

# What of it answers as the target does.
NETWORK = ("function", "weights")


@dataclass(frozen=True)
class AuditRow:
    """What one kind of answers gives away.

    Attributes
    ----------
    defence : str
        ``none`` for the answers as they are.
    recovered : str
        ``weights`` (certified, every neuron and its sign known; of labels up to what these leave
        open), ``function`` (a copy that answers like the target, or has its labels, certified or
        not), ``span`` (the directions of the input that
        matter, or the first layer alone; where it is not certified, to 0.1 rad) or
        ``nothing``, by the attacks that there are.
    fidelity, label_agreement : float or None
        Of the copy found with the undefended target, on inputs of the audit's ``domain``: the
        share of the answers' variance that it explains, and of inputs with the same class.  None
        without a copy; a copy made of labels has no fidelity, for these leave open a factor of
        its outputs.  No agreement where 99% of the inputs have one class: a constant has it, too.
    queries : int or None
        Of the attack, its certificate left out; None where nothing was simulated.  Of labels,
        whose span and network are looked for apart, of the search that found it.
    cost : float or None
        At the price given.
    error : float or None
        Root mean square error of the copy over the answers' deviation, there, too.
    fidelity_on_inputs, label_agreement_on_inputs : float or None
        The same on the inputs given.
    certified : bool
        Whether fresh queries agree with what was found, by an attack that came to its end; false
        where it found nothing, and where fresh answers were a copy's.
    cut : bool
        Whether the attack did not come to its end: it ran out of time or queries, or was
        ``saturated``.
    saturated : bool
        Whether the answers told no inputs apart where the attack asked, for probabilities had no
        digits there, or, without a domain, answers were all one: more may be given away where the
        target decides, and no more time helps to see it.
    not_in_class : bool
        Whether the target was seen to be none of the networks that these attacks recover, as a
        forest or a smooth model: that they found nothing then says little, for copies trained on
        answers were not tried.
    undecided : bool
        Whether nothing was found, and it was not seen that there is nothing: an attack that ends
        without a network has not shown that there is none.
    broke_off : bool
        Whether a defect ended the attack; the row counts as cut.
    tries : int
        Attacks that it rests on, each with a seed of its own.
    extrapolated : bool
        Not seen behind this defence, but on the copy of a served model, or concluded.
    implied_by : str
        The defence that it is concluded from: its answers can be made of these.  Then this row
        gives away at least as much, ``fidelity`` is at least, and ``queries`` at most, what is
        said.
    from_copy : bool
        Of a row that is implied, whether the one it is concluded from is itself extrapolated.
    at_least : mapping of str to str
        By the name of a field of likeness, as ``fidelity``, the defence of whose copy it is,
        where that is better than the copy made of these answers: whoever has these can make the
        others, and so that copy.  ``queries`` are those of this row's own attack all the same.
    not_tried : tuple of str
        What was not tried behind this defence, and why.
    digits : float or None
        Decimal digits that half of the weights found have at least, by their standard errors; None
        where no weights are, or their errors are not known.
    labels_kept, shift : float or None
        What the defence itself costs those who use the answers, on the inputs given or
        those of the domain: the share of classes it leaves as they were, and the root mean
        square change of an answer over the deviation.  No shift where numbers are withheld, and
        no classes of one output, nor of answers that do not say the class.
    seconds : float or None
        Of what ``queries`` counts, by the clock.
    notes : tuple of str
        What was seen, in sentences.
    finding : Finding or None
    """

    defence: str
    recovered: str
    fidelity: float | None = None
    label_agreement: float | None = None
    queries: int | None = None
    cost: float | None = None
    error: float | None = None
    fidelity_on_inputs: float | None = None
    label_agreement_on_inputs: float | None = None
    certified: bool = False
    cut: bool = False
    saturated: bool = False
    not_in_class: bool = False
    undecided: bool = False
    broke_off: bool = False
    tries: int = 1
    extrapolated: bool = False
    implied_by: str = ""
    from_copy: bool = False
    at_least: dict[str, str] = field(default_factory=dict)
    not_tried: tuple[str, ...] = ()
    digits: float | None = None
    labels_kept: float | None = None
    shift: float | None = None
    seconds: float | None = field(default=None, compare=False)
    notes: tuple[str, ...] = ()
    finding: Finding | None = field(default=None, repr=False, compare=False)

    @property
    def vouched(self) -> "AuditRow":
        """The row, whose certificate is one of what it says, and of all of it.

        That a span is everything may be certified, and gives nothing away.
        """
        whole = self.recovered != "nothing" and not self.cut
        return replace(self, certified=self.certified and whole)

    @property
    def is_measured(self) -> bool:
        """Whether the target itself was attacked behind this defence."""
        return self.finding is not None and not self.extrapolated

    @property
    def is_judged(self) -> bool:
        """Whether it says how much is given away: a network, or what an attack ended with."""
        by_analogy = self.extrapolated and self.finding is None and not self.implied_by
        return self.recovered in NETWORK or not (self.cut or by_analogy)


@dataclass(frozen=True, repr=False)
class Audit(Result):
    """What a target gives away under each defence.

    Attributes
    ----------
    status : Status or None
        None for a finished audit; ``BUDGET_EXHAUSTED`` where a limit given cut it short.
    dim_in, dim_out : int
    facts : mapping of str to str
        What the target is, in words: ``answers``, ``shape``, ``depth``, ``precision``.
    rows : tuple of AuditRow
    missing : tuple of str
        Defences that could not be judged.
    error : str
        Why, where the target stopped answering.
    served : bool
        Whether only what it answers was judged.
    conclusion : str
        What the rows say of the defences that leave numbers: ``nothing given`` (none is
        needed), ``helps`` (``best`` gives away less), ``none helps``, ``none serves``,
        or ``inconclusive`` where an attack was cut that decides.
    best : str
        The defence to take, where one helps.
    so_far : str
        What the rows say that are done, where the conclusion is ``inconclusive``; empty where
        they say nothing.
    run_again : str
        What would bring attacks to their end that were cut: ``--max-seconds N``,
        ``--budget N``, or a domain first (``--like DATA``) where they were saturated.
    advice : tuple of str
    domain : str
        What the inputs are drawn from, in words that follow "inputs".
    compared_on : str
        How many inputs copies and defences were compared on, and which.
    changed : bool
        Whether the target has become another one meanwhile: the rows are of no one model.
    contradicted : bool
        Whether it answers as more than one: a network that fresh answers have certified explains
        less than 99% of others.
    looks_like : str
        What the target looks like where no network was found, in words that follow "looks like";
        empty where that is not known.
    nearly : float
        From so much of the answers' variance on a copy is grave, which is not like enough to be
        called the function.
    """

    dim_in: int
    dim_out: int
    facts: dict[str, str]
    rows: tuple[AuditRow, ...] = ()
    missing: tuple[str, ...] = ()
    error: str = ""
    served: bool = False
    conclusion: str = "inconclusive"
    best: str = ""
    run_again: str = ""
    advice: tuple[str, ...] = ()
    domain: str = "of N(0, I)"
    so_far: str = ""
    compared_on: str = ""
    changed: bool = False
    contradicted: bool = False
    looks_like: str = ""
    nearly: float = 0.9

    told_by: ClassVar[str] = "audit"

    def subject(self) -> list[str]:
        """What the answers as they are give away, and how many kinds were judged."""
        first = self.rows[0] if self.rows else None
        if first is None:
            given = []
        elif self.contradicted:
            given = ["the target is no one model"]
        elif self.changed:
            given = ["the target changed"]
        elif first.recovered == "nothing" and (near := self.near_copy) is not None:
            given = [f"gives away a copy of {near[0]:.1%}"]
        elif first.recovered == "nothing" and (first.undecided or not first.is_judged):
            given = ["undecided"]
        else:
            given = [f"gives away {first.recovered}"]
        return [*given, f"{len(self.rows)} rows"]

    def fields(self) -> dict[str, Any]:
        """Return what an account says of an audit."""
        return {
            "error": self.error or None,
            "changed": self.changed,
            "contradicted": self.contradicted,
            "inputs": self.dim_in,
            "domain": self.domain,
            "compared_on": self.compared_on or None,
            "answers": self.dim_out,
            "served": self.served,
            "severity": self.severity,
            "near_copy": self._near_copy_said(),
            "looks_like": self.looks_like or None,
            "facts": self.facts,
            "rows": document_rows(self.rows),
            "missing": list(self.missing),
            "conclusion": self.conclusion,
            "best": self.best or None,
            "so_far": self.so_far or None,
            "run_again": self.run_again or None,
            "advice": list(self.advice),
            "changes": None,
        }

    @property
    def severity(self) -> str:
        """What the answers as they are give away, as one word."""
        first = self.rows[0] if self.rows else None
        if first is None or self.changed or self.contradicted:
            return "unknown"
        if self.near_copy is not None:
            return SEVERITY["function"]
        if first.recovered == "nothing" and (first.cut or first.not_in_class or first.undecided):
            return "unknown"
        return SEVERITY[first.recovered]

    @property
    def near_copy(self) -> tuple[float, int | None] | None:
        """A copy near the target where none is the function, and the queries that it took.

        The share of the variance that it explains, where it explains most; None of a worse one.
        """
        first = self.rows[0] if self.rows else None
        if first is None or first.recovered in NETWORK:
            return None
        fields = ("fidelity", "fidelity_on_inputs")
        shares = {name: share for name in fields if (share := getattr(first, name)) is not None}
        if not shares:
            return None
        best = max(shares, key=shares.__getitem__)
        if shares[best] < self.nearly:
            return None
        source = first.at_least.get(best, first.defence)
        row = next((row for row in self.rows if row.defence == source), first)
        return shares[best], row.queries

    def _near_copy_said(self) -> dict[str, Any] | None:
        near = self.near_copy
        return None if near is None else {"fidelity": near[0], "queries": near[1]}

    @property
    def broke_off(self) -> bool:
        """Whether an attack ended by a defect."""
        return any(row.broke_off for row in self.rows)

    @property
    def copy(self) -> Network | None:
        """The network found from the answers as they are, certified or not; none of labels."""
        first = self.rows[0].finding if self.rows else None
        return None if first is None or first.classes else first.copy


@dataclass(frozen=True)
class Reference:
    """Inputs, and what the undefended target answers.

    Attributes
    ----------
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, k)
    link : Link
        What is between a copy and its answers.
    one_class : float
        Share of inputs from which on their commonest class is called the only one: who names that
        always is right as often.
    """

    X: FloatArray
    Y: FloatArray
    link: Link = NONE
    one_class: float = 0.99

    @property
    def deviation(self) -> float:
        """Root mean square deviation of an output from its mean."""
        return float(np.sqrt(((self.Y - self.Y.mean(axis=0)) ** 2).mean()))

    def answers_of(self, copy: Network, X: FloatArray) -> FloatArray:
        """Return what a copy answers: probabilities where the target does."""
        return self.link.answers(copy(X))

    def compare(
        self, copy: Network, classes: Sequence[float] = ()
    ) -> tuple[float | None, float | None, float | None]:
        """Return fidelity, label agreement and relative error of a copy.

        Parameters
        ----------
        classes : sequence of float
            What the outputs of a copy stand for that was made of labels; these tell of no
            answers.
        """
        if classes:
            same = float((self._labels_by(copy, classes) == self.labels).mean())
            return None, None if self.is_of_one_class else same, None
        Y = self.answers_of(copy, self.X)
        agreement = None if self.is_of_one_class else self._same_classes(Y)
        error = float(np.sqrt(((Y - self.Y) ** 2).mean()))
        if self.deviation == 0.0:
            return None, agreement, None
        relative = error / self.deviation
        return 1.0 - relative**2, agreement, relative

    def likeness(self, copy: Network, classes: Sequence[float] = ()) -> float | None:
        """Return the share that a copy explains of how answers vary, or labels.

        Of labels it is 1 where all are equal, and 0 of a copy that errs as often as who names the
        commonest class always.  None where answers do not vary.
        """
        if not classes:
            return self.compare(copy)[0]
        _, counts = np.unique(self.labels, return_counts=True)
        by_chance = len(self.labels) - int(counts.max())
        wrong = int((self._labels_by(copy, classes) != self.labels).sum())
        return 1.0 - wrong / by_chance if by_chance else None

    @property
    def middle(self) -> float | None:
        """Above which a single probability says one of two classes; None of other answers."""
        is_one = self.link.name == "logit" and self.Y.shape[1] == 1
        return 0.5 * self.link.scale if is_one else None

    @property
    def labels(self) -> FloatArray:
        """The classes that answers name, shape (n,)."""
        return self._classes(self.Y)

    def _classes(self, Y: FloatArray) -> FloatArray:
        if self.middle is not None:
            return np.asarray(Y[:, 0] > self.middle, dtype=np.float64)
        return as_labels(Y)[:, 0]

    @property
    def largest_class(self) -> float:
        """The share of inputs of the commonest class."""
        _, counts = np.unique(self.labels, return_counts=True)
        return float(counts.max() / len(self.labels))

    @property
    def is_of_one_class(self) -> bool:
        """Whether a constant names as good as all classes."""
        return self.largest_class >= self.one_class

    def _labels_by(self, copy: Network, classes: Sequence[float]) -> FloatArray:
        return predict_labels(copy, np.array(classes), self.X)

    def costs(self, defence: Defence) -> tuple[float | None, float | None]:
        """Return the share of classes that a defence keeps, and how far it shifts answers.

        The largest probability alone does not say the class.
        """
        if defence.leaves != "numbers":
            return None if defence.leaves == "top" else 1.0, None
        Y = defence.of(self.Y)
        kept = self._same_classes(Y)
        shift = float(np.sqrt(((Y - self.Y) ** 2).mean()))
        return kept, shift / self.deviation if self.deviation else None

    def _same_classes(self, Y: FloatArray) -> float | None:
        """The share of inputs whose class is as before; one number has none."""
        if Y.shape[1] == 1 and self.middle is None:
            return None
        return float((self._classes(Y) == self.labels).mean())

    def is_silent(self, defence: Defence) -> bool:
        """Whether answers behind a defence are all one, or probabilities that have lost digits."""
        Y = defence.of(self.Y)
        if defence.leaves == "top" and self.link.name == "softmax":
            return bool((1.0 - self.Y.max(axis=1) < SMALLEST_DIFFERENCE).all())
        return bool((Y[0] == Y).all())

    def changes(self, defence: Defence) -> bool:
        """Whether a defence changes any answer."""
        return not np.array_equal(defence.of(self.Y), self.Y)

    def shows_labels(self, defence: Defence) -> bool:
        """Whether answers are labels, which who rounds has again behind a defence."""
        return are_labels(self.Y) and np.array_equal(np.rint(defence.of(self.Y)), self.Y)


def facts(
    noise: NoiseFloor | None,
    first: Finding | None,
    reason: str = "",
    known: Reference | None = None,
    kind: Kind | None = None,
) -> dict[str, str]:
    """Say what a target is.

    Parameters
    ----------
    noise : NoiseFloor or None
        None where it could not be measured, for ``reason``.
    first : Finding or None
        Of the answers as they are.
    known : Reference or None
    kind : Kind or None
        What the target looks like of which no network was found.
    """
    if known is not None and are_labels(known.Y):
        n = len(np.unique(known.labels))
        seen = f"labels: {n:,} different ones among {len(known.Y):,} answers"
        return {"answers": seen, "shape": "constant but for borders", "depth": _depth(first)}
    if known is not None and (of_steps := _of_steps(first, kind)):
        answers = known.link.form.given
        depth = "none: such a function has no layers of ReLUs"
        return {"answers": answers, **of_steps, "depth": depth, "precision": _levels(known.Y)}
    if noise is None:
        return {"answers": f"not measured: {reason}", "shape": "unknown", "depth": "unknown"}
    answers = noise.link.form.given
    seen = f"curves at {noise.curved:.0%} of the places seen"
    shape = (
        f"smooth: {seen}" if noise.is_smooth else f"piecewise linear, as far as was seen ({seen})"
    )
    law = "random: repeated rows differ" if noise.law == "random" else f"{noise.numbers}"
    error = float(noise.nu.max())
    return {
        "answers": answers,
        "shape": f"{shape}, as {noise.link.form.behind}" if noise.link.has_head else shape,
        "depth": _depth(first),
        "precision": f"{law}; an answer is good to about {error:.1g} of its size",
    }


def _of_steps(first: Finding | None, kind: Kind | None) -> dict[str, str]:
    """The shape of a step function; empty of what was not seen to be one."""
    if kind is not None and kind.function == "steps":
        where = {
            "trees": ", at values of single inputs, as those of trees",
            "others": ", as those of nearest neighbours",
        }
        return {"shape": f"steps: constant but for jumps{where.get(kind.steps, '')}"}
    is_seen = first is not None and first.of_steps
    return {"shape": "steps: constant but for jumps"} if is_seen else {}


def _levels(Y: FloatArray, digits: int = 12) -> str:
    """Say which numbers the answers of a step function are: their own steps, and no rounding.

    Parameters
    ----------
    digits : int
        Decimal digits, of the largest answer, in which two that are one agree: sums of votes
        differ by a few units of float64's sixteen.
    """
    scale = float(np.abs(Y).max()) or 1.0
    levels = np.unique(np.round(Y / scale, digits)) * scale
    unit = float(np.diff(levels).min(initial=np.inf))
    multiples = levels / unit
    # A unit is the difference of two numbers that are each as exact as that.
    near = np.abs(multiples - np.rint(multiples)) * unit <= 10.0**-digits * scale * (
        1.0 + np.abs(multiples)
    )
    if np.isfinite(unit) and near.all() and len(levels) > 2:
        return f"steps: multiples of {unit:.3g}"
    return f"steps: {len(levels):,} different values in {len(Y):,} answers"


def _depth(first: Finding | None) -> str:
    """Evidence of how deep the target is."""
    network = None if first is None else first.network
    if network is None:
        return "unknown"
    found = network.network
    if network.status is Status.RECOVERED and found is not None:
        n = sum(width > 0 for width in found.architecture[1:-1])
        layers = {0: "no hidden layer", 1: "one hidden layer"}.get(n, f"{n} hidden layers")
        return f"{layers}, {'-'.join(map(str, found.architecture))}"
    if network.status is Status.NOT_IN_CLASS:
        return f"not one or two hidden ReLU layers: {network.evidence[0]}"
    if network.status is Status.PARTIAL:
        return "two hidden layers or more: hyperplanes of a first layer were found alone"
    return "unknown: no network was found that explains the answers"


def document_rows(rows: tuple[AuditRow, ...]) -> list[dict[str, Any]]:
    """Return the JSON-able rows."""
    names = [name for name in AuditRow.__dataclass_fields__ if name != "finding"]
    return [{name: getattr(row, name) for name in names} for row in rows]
