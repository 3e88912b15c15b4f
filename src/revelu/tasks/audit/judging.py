"""What an attack found, as a row of an audit."""

from dataclasses import dataclass, replace

from revelu.tasks.audit.attack import Finding
from revelu.tasks.audit.defences import Defence
from revelu.tasks.audit.reference import Reference
from revelu.tasks.audit.rows import NETWORK, AuditRow

DEAR = "a search of more than {n:,} labels for the network, which these did not reach"
TOP = "a search for the network itself: where one number is left, these attacks find directions"
DIGITLESS = "an attack that does without digits: these answers had none where they were asked"
LAST = "the network: its turn is the last, and time or queries were over"


@dataclass(frozen=True)
class Judge:
    """What findings are held against.

    Attributes
    ----------
    known : Reference
        What the undefended target answers where it is asked.
    given : Reference or None
        The same on the inputs that matter to a user.
    inputs : tuple of str
        What they were asked at, in words: of ``known``, then of ``given``.
    price : float or None
        Of a thousand queries.
    in_domain : bool
        Whether the target is asked in a domain that was given.
    """

    known: Reference
    given: Reference | None
    inputs: tuple[str, ...]
    price: float | None
    in_domain: bool

    @property
    def of_users(self) -> Reference:
        """What is nearest to what callers ask."""
        return self.given or self.known

    def likeness(self, found: Finding) -> float | None:
        """How much of the undefended answers the copy of an attack explains."""
        return None if found.copy is None else self.known.likeness(found.copy, found.classes)

    def row(self, defence: Defence, found: Finding) -> AuditRow:
        """Return the row of a defence, of what an attack found behind it."""
        copy = found.copy
        fidelity: float | None = None
        agreement: float | None = None
        error: float | None = None
        on_inputs: tuple[float | None, float | None] = (None, None)
        if copy is not None:
            fidelity, agreement, error = self.known.compare(copy, found.classes)
            if self.given is not None:
                on_inputs = self.given.compare(copy, found.classes)[:2]
        n, kind = found.n_queries, found.kind(self.likeness(found))
        # In a domain that was given a target decides: what tells no inputs apart there is what a
        # defence makes of its answers, and no other domain helps.
        by_defence = self.in_domain and defence.name != "none"
        saturated = found.saturated and kind not in NETWORK and not by_defence
        if kind == "nothing" and not self.in_domain:
            saturated |= self.known.is_silent(defence)
        return AuditRow(
            defence=defence.name,
            recovered=kind,
            fidelity=fidelity,
            label_agreement=agreement,
            queries=n,
            cost=None if self.price is None else self.price * n / 1000.0,
            error=error,
            fidelity_on_inputs=on_inputs[0],
            label_agreement_on_inputs=on_inputs[1],
            certified=found.certifies(kind),
            cut=found.cut or saturated,
            saturated=saturated,
            not_in_class=found.not_in_class,
            not_tried=_not_tried(defence, found, kind),
            digits=found.digits if kind == "weights" else None,
            notes=found.notes,
            finding=found,
        )


def _not_tried(defence: Defence, found: Finding, kind: str) -> tuple[str, ...]:
    """What no attack was made for, and what an attack did not come to."""
    if defence.leaves == "top":
        return (TOP,)
    if defence.leaves == "label":
        return (LAST,)
    if defence.leaves == "labels":
        return ()
    if found.saturated and found.cut and kind == "nothing":
        return (DIGITLESS,)
    known = found.copy is not None or found.has_first_layer
    skipped = found.cut and not known and found.span is None
    return ("the span: time or queries were over",) if skipped else ()


def opened(row: AuditRow) -> AuditRow:
    """Return a row that is cut where the network was not looked for."""
    return replace(row, cut=True) if LAST in row.not_tried else row
