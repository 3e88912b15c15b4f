"""What an audit says in the end, of the rows that it has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from revelu.oracle import NoiseFloor, Oracle
from revelu.recovery import Status
from revelu.tasks.audit.advice import advice, rounded_up, saturation
from revelu.tasks.audit.conclusion import (
    CHANGED,
    NO_ONE_MODEL,
    Conclusion,
    cheapest,
    concluded,
    decision,
    serves,
    so_far,
)
from revelu.tasks.audit.defences import Defence
from revelu.tasks.audit.facts import facts
from revelu.tasks.audit.implied import Makes, with_implied
from revelu.tasks.audit.judging import LAST, Judge
from revelu.tasks.audit.nature import OTHERS, in_words
from revelu.tasks.audit.rows import NETWORK, Audit, AuditRow
from revelu.tasks.diagnose.kind import Kind


@dataclass(frozen=True)
class End:
    """How an audit ended.

    Attributes
    ----------
    noise : NoiseFloor or None
        None where it could not be measured, for ``reason``.
    error : str
        What ended the audit before its time; empty where nothing did.
    changed : bool
        Whether that was a target that is another one now.
    """

    noise: NoiseFloor | None
    reason: str
    error: str = ""
    changed: bool = False


@dataclass(frozen=True)
class Spent:
    """What attacks took, and what all of them may take.

    Attributes
    ----------
    seconds : float
        That the audit may take.
    elapsed : float
        Since it began, by the clock.
    took : mapping of str to float
        Seconds of the longest attack on each kind of answers.
    longer : float
        What attacks that were cut are to have the next time, as a multiple of what they had.
    """

    seconds: float
    elapsed: float
    took: Mapping[str, float]
    longer: float


@dataclass(frozen=True)
class SeenInAudit:
    """What an audit has seen.

    Attributes
    ----------
    judge : Judge or None
        None where the target did not answer what rows are held against.
    rows : sequence of AuditRow
        As attacks found them, in the target's units, in the order of the defences.
    missing : sequence of Defence
        Those that were not judged.
    makes : callable
        Which answers can be made of which.
    warnings : sequence of str
    kind : Kind
        What the target looks like, where no network was found.
    is_noise : bool
        Whether answers are drawn anew by all that they vary by.
    """

    judge: Judge | None
    rows: Sequence[AuditRow]
    missing: Sequence[Defence]
    makes: Makes
    warnings: Sequence[str]
    kind: Kind
    is_noise: bool


def outcome(oracle: Oracle, seen: SeenInAudit, end: End, spent: Spent) -> Audit:
    """Return what an audit says."""
    judge = seen.judge
    rows = _in_view_of(with_implied(seen.rows, seen.makes), end.noise, seen)
    contradiction = _contradiction(rows)
    if contradiction:
        end = replace(end, error="; ".join(filter(None, (end.error, contradiction))))
    missing = tuple(defence.name for defence in seen.missing)
    limited = any(row.finding is not None and row.finding.out_of_queries for row in rows)
    limited |= oracle.remaining == 0 and any(LAST in row.not_tried for row in rows)
    short = not end.error and (bool(missing) or not rows or limited)
    n_outputs = 0 if judge is None else judge.known.Y.shape[1]
    run_again = "" if end.error else what_next(oracle, rows, missing, spent)
    deciding = _deciding(judge, seen.missing)
    found = concluded(rows, n_outputs, deciding)
    where = f"inputs {oracle.where}" if judge is None else judge.inputs[-1]
    looks_like = "" if rows and rows[0].recovered in NETWORK else in_words(seen.kind)
    said = advice(rows, n_outputs, where, deciding, run_again, looks_like)
    if end.changed or contradiction:
        found, said = Conclusion("inconclusive"), (CHANGED if end.changed else NO_ONE_MODEL,)
    least = cheapest(rows)
    blocked = saturation(rows, oracle.where, is_given=oracle.domain is not None)
    return Audit(
        Status.BUDGET_EXHAUSTED if short else None,
        ledger=oracle.ledger(),
        dim_in=oracle.dim_in,
        dim_out=n_outputs,
        facts=facts(
            end.noise,
            seen.rows[0].finding if rows else None,
            end.reason,
            None if judge is None else judge.known,
            seen.kind,
            oracle.domain,
        ),
        rows=rows,
        missing=missing,
        error=end.error,
        changed=end.changed,
        contradicted=bool(contradiction),
        looks_like=looks_like,
        served=oracle.is_remote,
        conclusion=found.kind,
        best="" if found.best is None else found.best.defence,
        decision=said[0] if end.changed or contradiction else decision(found, rows, n_outputs),
        limit=None if end.changed or contradiction or least is None else least.queries,
        so_far="" if end.changed or contradiction else so_far(found, rows, run_again),
        run_again=run_again,
        advice=said,
        warnings=(
            *([blocked] if blocked else []),
            *_affine(oracle, rows),
            *_one_class(judge, rows),
            *seen.warnings,
        ),
        domain=oracle.where,
        compared_on="" if judge is None else " and ".join(judge.inputs),
    )


def _in_view_of(
    rows: Sequence[AuditRow], noise: NoiseFloor | None, seen: SeenInAudit
) -> tuple[AuditRow, ...]:
    """Rows that say what they are of, and what that decides.

    No network of ReLUs is smooth or of steps, whatever an attack ended with; what gives away a
    network is one.  An attack that found none has not shown that there is none, unless answers are
    all noise; nor has one on coarser answers, then.
    """
    if not rows:
        return ()
    first = rows[0]
    is_other = seen.kind.function in OTHERS or (noise is not None and noise.is_smooth)
    is_other |= first.not_in_class
    is_open = first.recovered == "nothing" and not seen.is_noise
    found = []
    for row in rows:
        told = row.vouched
        if row is first:
            told = replace(told, not_in_class=is_other and row.recovered not in NETWORK)
        found.append(replace(told, undecided=is_open and row.recovered == "nothing"))
    return tuple(found)


def _contradiction(rows: Sequence[AuditRow], *, most: float = 0.01, times: float = 4.0) -> str:
    """Say that a certified network does not explain answers that the target gave besides.

    Parameters
    ----------
    most : float
        Share of the variance that it may leave.
    times : float
        And what answers with noise leave, as a multiple of what they left in the certificate.
    """
    for row in rows:
        found = row.finding if row.is_measured and row.certified else None
        if found is None or found.network is None or row.fidelity is None or row.at_least:
            continue
        said = found.network.certificate
        allowed = most if said is None else max(most, times * said.nrmse**2)
        if row.recovered == "weights" and 1.0 - row.fidelity > allowed:
            name = "its own answers" if row.defence == "none" else row.defence
            return (
                f"the network that fresh queries certified ({name}) explains "
                f"{max(row.fidelity, 0.0):.1%} of the variance of other answers to inputs of the "
                "same kind: the target does not answer as one model"
            )
    return ""


def _deciding(judge: Judge | None, missing: Sequence[Defence]) -> list[str]:
    """Which defences that were not judged decide: behind others answers serve no one."""
    if judge is None:
        return [defence.name for defence in missing]
    known, found = judge.of_users, list[str]()
    for defence in missing:
        kept, shift = known.costs(defence)
        row = AuditRow(defence.name, "nothing", labels_kept=kept, shift=shift)
        found += [defence.name] if serves(row, known.Y.shape[1]) else []
    return found


def _affine(oracle: Oracle, rows: Sequence[AuditRow]) -> list[str]:
    """Warn of a network without a hidden neuron, where another domain might show some."""
    copy = rows[0].finding.copy if rows and rows[0].finding is not None else None
    if copy is None or any(copy.architecture[1:-1]) or oracle.domain is not None:
        return []
    seen = "on N(0, I) the target is an affine map, and that is what was audited"
    return [f"{seen}: if its inputs are others, audit it on those (--like DATA)"]


def _one_class(judge: Judge | None, rows: Sequence[AuditRow]) -> list[str]:
    """Warn of inputs on which a constant names nearly all classes."""
    if judge is None:
        return []
    of_labels = any(row.finding is not None and row.finding.classes for row in rows)
    found = [judge.known, *([] if judge.given is None else [judge.given])]
    return [
        f"{_share(known.largest_class)} of {inputs} have one class: a constant answers as well, "
        "so that for how many a copy names the same class is not shown, and that a defence keeps "
        "the class says little; give inputs of several classes (--inputs), or a domain that has "
        "them (--like DATA)"
        for known, inputs in zip(found, judge.inputs, strict=True)
        if known.is_of_one_class and (known.Y.shape[1] > 1 or of_labels)
    ]


def _share(share: float) -> str:
    """A share in percent; all is said of nothing less."""
    return "all" if share == 1.0 else f"{min(share, 0.999):.1%}"


def what_next(
    oracle: Oracle, rows: Sequence[AuditRow], missing: Sequence[str], spent: Spent
) -> str:
    """What would bring attacks to their end: those that were cut have ``longer`` as much."""
    blocked = any(row.saturated for row in rows) and oracle.domain is None
    parts = ["--like DATA"] if blocked else []
    cut = [r for r in rows if not (r.is_judged or r.in_vain) and r.defence in spent.took]
    if not (cut or missing):
        return " ".join(parts)
    no_more = oracle.remaining == 0 or any(
        row.finding is not None and row.finding.out_of_queries for row in cut
    )
    if no_more and oracle.budget is not None:
        parts.append(f"--budget {rounded_up(spent.longer * oracle.budget)}")
    else:
        more = (spent.longer - 1.0) * sum(spent.took[row.defence] for row in cut)
        needed = max(spent.elapsed + more, 2.0 * spent.seconds)
        parts.append(f"--max-seconds {rounded_up(needed)}")
    return " ".join(parts)


def told_by_coarser(
    rows: Mapping[int, AuditRow], listed: Sequence[Defence], judge: Judge, makes: Makes
) -> dict[int, AuditRow]:
    """Return rows with those that were not begun, and that coarser answers tell of.

    Who gets finer answers can make them as coarse: where these give a network away, so do those.
    """
    broken = [row.defence for row in rows.values() if row.recovered in NETWORK]
    found = dict(rows)
    for place, defence in enumerate(listed):
        if place in rows or not any(makes(defence.name, name) for name in broken):
            continue
        kept, shift = judge.of_users.costs(defence)
        untried = ("an attack of its own: time or queries were over",)
        found[place] = AuditRow(
            defence.name, "nothing", cut=True, not_tried=untried, labels_kept=kept, shift=shift
        )
    return found


def unseen(why: str, rows: Sequence[AuditRow]) -> str:
    """Say which rows a target made that could not be seen to be the same still."""
    asked = [r for r in rows if r.is_measured]
    names = ", ".join("as they are" if r.defence == "none" else r.defence for r in asked)
    rest = ", and those that are concluded from these" if len(asked) < len(rows) else ""
    return (
        "in the end the target could not be asked whether it is still the same model: "
        f"{why}.  This concerns the rows that it answered ({names}){rest}: another model may "
        "have answered a part"
    )
