"""What to try next after an extraction; a seed or a budget only where it can help."""

from dataclasses import replace

from revelu.oracle import Oracle
from revelu.oracle.company import BY_BATCH
from revelu.oracle.noise import are_steps
from revelu.recover.labels import FromLabels
from revelu.recover.shallow import OneHidden
from revelu.recovery import Recovery, Status
from revelu.tasks.open_weights import OutOfReach

_FINE = ("float64", "float32", "half-precision")

MORE_DIGITS = "the answers' own errors limit what is found: answers of more digits tell more"
STEPS = (
    "the answers err by {ratio:,.0f} times what float32 does, as those of a quantised network "
    "do (int8): it is a function of steps, which no seed and no budget resolves"
)
IN_FLOAT64 = "answers in float64 may tell more: {how}"

MUTE = (
    "no fresh query differs by more than its tolerance, but tolerances as wide as these prove "
    "nothing: answers of more digits tell more"
)
_OPEN = {Status.UNVERIFIED, Status.PARTIAL, Status.BUDGET_EXHAUSTED}
SHARES = "all answers lie between 0 and 1: if they are a sigmoid's, say so (--link logit)"


def advised(recovery: Recovery, oracle: Oracle, method: str) -> Recovery:
    """Return a recovery whose evidence says what its target's file explains, and what to try."""
    law = (recovery.answers or {}).get("law")
    limit = OutOfReach.of(oracle, law) if recovery.status in _OPEN else OutOfReach()
    evidence = (*filter(None, [limit.words]), *recovery.evidence)
    tried = advice(recovery, oracle, method, limit)
    details = {**recovery.details, **({"out_of_reach": True} if limit.words else {})}
    return replace(recovery, evidence=(*evidence, *tried), details=details)


def advice(
    recovery: Recovery,
    oracle: Oracle,
    method: str,
    limit: OutOfReach = OutOfReach(),  # noqa: B008 - frozen
) -> list[str]:
    """Say what to try next.

    Parameters
    ----------
    method : str
        As it was asked for.
    limit : OutOfReach
        What neither a seed nor a budget finds.
    """
    is_open = recovery.status in _OPEN
    is_told = oracle.told_link is not None or recovery.link.has_head
    may_be_shares = is_open and not (is_told or oracle.tally.are_labels)
    named = [SHARES] if may_be_shares and oracle.extremes.are_shares else []
    tried = _by_status(recovery, oracle, method, in_vain=bool(limit.words))
    digits = _in_float64(recovery, oracle) if is_open and not limit.in_float64 else []
    return [*tried, *digits, *named]


def _in_float64(recovery: Recovery, oracle: Oracle) -> list[str]:
    """How to get answers of more digits, where nothing was found and the target knows it."""
    said, answers = getattr(oracle.target, "in_float64", ""), recovery.answers or {}
    is_short = answers.get("law") in {"float32", "half-precision"}
    return [IN_FLOAT64.format(how=said)] if said and is_short and not _are_steps(recovery) else []


def _are_steps(recovery: Recovery) -> bool:
    """Whether answers err as those of a function of steps do."""
    answers = recovery.answers or {}
    is_float32 = answers.get("law") == "float32" and not recovery.link.has_head
    return is_float32 and answers["step"] > 0 and are_steps(answers["sigma"], answers["step"])


def _by_status(recovery: Recovery, oracle: Oracle, method: str, *, in_vain: bool) -> list[str]:
    """What the status says to try; nothing that asks more where that is in vain."""
    match recovery.status:
        case Status.NOT_IN_CLASS if recovery.method == FromLabels.name:
            return [
                "from labels alone, networks of one or two hidden layers of ReLUs are recovered"
            ]
        case Status.PARTIAL if recovery.method == FromLabels.name:
            return [_another(oracle)]
        case Status.UNVERIFIED if (rows := _rows_that_differ(recovery)) is not None:
            return [rows]
        case Status.UNVERIFIED if recovery.certificate is not None:
            return [
                MUTE
                if recovery.certificate.is_mute
                else "fresh queries disagree with the network: do not rely on it",
                *([] if in_vain else _anew(recovery, oracle)),
            ]
        case Status.PARTIAL:
            return ["some neurons are missing", *([] if in_vain else _anew(recovery, oracle))]
        case Status.BUDGET_EXHAUSTED:
            return [] if in_vain else [_more_room(oracle)]
        case Status.NOT_DETERMINISTIC if recovery.answers and recovery.answers["law"] == BY_BATCH:
            return []
        case Status.NOT_DETERMINISTIC:
            return ["remove the randomness"]
        case Status.NOT_IN_CLASS if oracle.box is not None:
            return ["in a box only networks of ReLU layers are recovered that change inside it"]
        case Status.NOT_IN_CLASS if method == OneHidden.name:
            return ["method auto looks for more hidden layers, too"]
        case Status.NOT_IN_CLASS:
            return ["only networks of ReLU layers are recovered"]
    return []


def _anew(recovery: Recovery, oracle: Oracle, near: float = 10.0) -> list[str]:
    """What another search may find, or why none does.

    Parameters
    ----------
    near : float
        Errors of no more tolerances than this are as good as the answers' own.
    """
    said, answers = recovery.certificate, recovery.answers or {}
    if _are_steps(recovery):
        return [STEPS.format(ratio=answers["sigma"] / answers["step"])]
    is_coarse = answers.get("law") not in _FINE
    if is_coarse or (said is not None and said.max_abs_error <= near * said.tolerance):
        return [MORE_DIGITS]
    return [_another(oracle)]


def _another(oracle: Oracle) -> str:
    return f"another seed {'or a larger budget ' if oracle.has_met_limit else ''}may help"


def _more_room(oracle: Oracle) -> str:
    """Which limit was met: what is not given cannot be raised."""
    limits = {"the budget": oracle.budget, "the time allowed": oracle.max_seconds}
    return f"raise {' or '.join(name for name, limit in limits.items() if limit is not None)}"


def _rows_that_differ(recovery: Recovery) -> str | None:
    """What to do where inputs drawn agree and inputs at hand do not."""
    said = recovery.certificate
    if said is None or said.fidelity is None or said.fraction_within < 1.0:
        return None
    if said.fidelity.fraction_within == 1.0:
        return None
    how = ": the target is no network in that column" if said.fidelity.pattern else ""
    return (
        f"the network is right at inputs drawn, and not at {said.fidelity.source}{how}: do not "
        "rely on it there; --keep-discrete, of data of one value of such columns, asks where they "
        "are held"
    )
