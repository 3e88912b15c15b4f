"""What an audit says: a target in words, a row a defence, advice."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from revelu.network import Network
from revelu.recovery import Result
from revelu.severity import SEVERITY, atlas_ids, owasp_ids, severity_of_copy
from revelu.tasks.audit.attack import Finding

# What can be recovered, from least to most.
ORDER = ("nothing", "span", "function", "weights")

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
    def is_copied(self) -> bool:
        """Whether a copy is a loss by what it explains of the answers, on any inputs compared."""
        return any(map(severity_of_copy, (self.fidelity, self.fidelity_on_inputs)))

    @property
    def atlas(self) -> tuple[str, ...]:
        """Techniques of MITRE ATLAS that were seen to work."""
        return atlas_ids(self.recovered, is_copied=self.is_copied)

    @property
    def owasp(self) -> tuple[str, ...]:
        """Risks of the OWASP Machine Learning Security Top Ten that were seen."""
        return owasp_ids(self.recovered, is_copied=self.is_copied)

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

    @property
    def in_vain(self) -> bool:
        """Whether no more time, and no more queries, show more than the attack has shown.

        It took the answers for those of something else, or saw none with digits.
        """
        found = self.finding
        return self.saturated or (found is not None and (found.not_in_class or found.saturated))


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
        or ``inconclusive`` where the attack on the answers as they are was cut, or no other
        came to its end.
    best : str
        The defence to take, where one helps.
    decision : str
        What an owner is to decide, in a sentence.
    limit : int or None
        Fewest queries for which any of the answers gave away a network: a limit on queries has to
        lie below; None where no attack found one.
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
    decision: str = ""
    limit: int | None = None
    run_again: str = ""
    advice: tuple[str, ...] = ()
    domain: str = "of N(0, I)"
    so_far: str = ""
    compared_on: str = ""
    changed: bool = False
    contradicted: bool = False
    looks_like: str = ""

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
            "atlas": list(self.rows[0].atlas) if self.is_of_one_model else [],
            "owasp": list(self.rows[0].owasp) if self.is_of_one_model else [],
            "looks_like": self.looks_like or None,
            "facts": self.facts,
            "rows": document_rows(self.rows),
            "missing": list(self.missing),
            "conclusion": self.conclusion,
            "best": self.best or None,
            "decision": self.decision or None,
            "limit": self.limit,
            "so_far": self.so_far or None,
            "run_again": self.run_again or None,
            "advice": list(self.advice),
            "changes": None,
        }

    @property
    def is_of_one_model(self) -> bool:
        """Whether there are rows, and one target has answered them."""
        return bool(self.rows) and not (self.changed or self.contradicted)

    @property
    def severity(self) -> str:
        """What the answers as they are give away, as one word."""
        if not self.is_of_one_model:
            return "unknown"
        first = self.rows[0]
        if (near := self.near_copy) is not None:
            return severity_of_copy(near[0])
        if first.recovered == "nothing" and (first.cut or first.not_in_class or first.undecided):
            return "unknown"
        return SEVERITY[first.recovered]

    @property
    def near_copy(self) -> tuple[float, int | None] | None:
        """A copy of the target where none is the function, and the queries that it took.

        The share of the variance that it explains, where that is half at least; else None.
        """
        first = self.rows[0] if self.rows else None
        if first is None or first.recovered in NETWORK:
            return None
        fields = ("fidelity", "fidelity_on_inputs")
        shares = {name: share for name in fields if (share := getattr(first, name)) is not None}
        if not shares:
            return None
        best = max(shares, key=shares.__getitem__)
        if not severity_of_copy(shares[best]):
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


def document_rows(rows: tuple[AuditRow, ...]) -> list[dict[str, Any]]:
    """Return the JSON-able rows."""
    names = [name for name in AuditRow.__dataclass_fields__ if name != "finding"]
    names += ["atlas", "owasp"]
    return [{name: getattr(row, name) for name in names} for row in rows]
