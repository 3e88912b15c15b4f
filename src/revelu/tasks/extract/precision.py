"""What the noise floor of a target decides before and after a recovery."""

from dataclasses import replace

import numpy as np

from revelu.errors import TargetError
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.steps import Steps
from revelu.recover.labels import FromLabels
from revelu.recover.method import Why
from revelu.recovery import Recovery, Status
from revelu.tasks.extract.job import CertifyingJob
from revelu.tasks.job import Refusal, random_seeds


def refusal(noise: NoiseFloor, *, curved: float = 0.5, hopeless: float = 0.3) -> Refusal | None:
    """What the noise floor alone rules out.

    Parameters
    ----------
    curved : float
        Half of the places curving is a smooth function; a quarter may be kinks.
    hopeless : float
        Answers whose error is more than a tenth of their variation tell nothing.  The variation
        is known from five places, which show a third of it or less once in fifty times; up to
        there the certificate decides, which knows it from thousands.

    Returns
    -------
    Refusal or None
        How the recovery ends, and why, before it has begun.
    """
    if noise.curved >= curved:
        reason = (
            f"the answers curve at {noise.curved:.0%} of the places seen: a smooth function, "
            "not a piecewise affine one"
        )
        if noise.are_shares:
            reason += (
                "; they lie between 0 and 1: if they are a sigmoid's, say so (--link logit), and "
                "if they are probabilities of several classes, ask for those of all"
            )
        return Refusal(Status.NOT_IN_CLASS, reason)
    varies, error = noise.varies(noise.spread), noise.errors
    # A constant varies by its noise alone; beside an output that does vary it does no harm.
    clear = varies & (error <= hopeless * noise.spread)
    if clear.any() or not varies.any():
        return None
    if not noise.is_deterministic:
        reason = (
            f"the same queries got other answers the second time, by up to "
            f"{noise.repeat_difference:.2g} of their size: more than a tenth of what varies"
        )
        return Refusal(Status.NOT_DETERMINISTIC, reason)
    if noise.link.name == "softmax":
        reason = (
            f"the answers are probabilities ({noise.numbers}) so near 0 and 1 that their "
            "rounding leaves too few digits of the logits; ask it for logits, or say by a "
            "domain where it decides (--like DATA)"
        )
        return Refusal(Status.UNVERIFIED, reason, saturated=True)
    k = int(np.argmax(np.where(varies, error / np.where(varies, noise.spread, 1.0), 0.0)))
    reason = (
        f"output {k} varies by {noise.spread[k]:.2g} around {noise.scale[k]:.2g} and errs by "
        f"{error[k]:.1g}: too few digits are left of what varies; ask for more digits, or for "
        "answers without that constant"
    )
    return Refusal(Status.UNVERIFIED, reason)


def text_refusal(oracle: Oracle) -> Refusal | None:
    """Text is no number, though numbers stand for it; one text alone is no network."""
    if not oracle.names:
        return None
    said = f', "{oracle.names.name(0)}" each time' if oracle.names.n_seen == 1 else ""
    reason = (
        f"the answers are text{said}, in which no weights show; class names that differ from "
        "input to input show a network by their borders (revelu extract --labels)"
    )
    return Refusal(Status.NOT_IN_CLASS, reason)


def saying_constant(recovery: Recovery) -> Recovery:
    """An answer that is always the same is a network, but hardly the one that was meant."""
    network = recovery.network
    if network is None or recovery.certificate is None or any(network.architecture[1:-1]):
        return recovery
    V, _ = network.affine
    if np.abs(V).max(initial=0.0) > recovery.certificate.tolerance:
        return recovery
    note = "every answer is the same: where it is asked, the target depends on no input"
    return replace(recovery, warnings=(*recovery.warnings, note))


def without_invention(recovery: Recovery, noise: NoiseFloor) -> Recovery:
    """Noise that no network explains to within its own size follows no law.

    Nor does noise so large that more than one network explains what it leaves: the
    certificate says which.
    """
    if noise.law != "random" or recovery.status is not Status.UNVERIFIED:
        return recovery
    reason = (
        f"repeated queries differ by up to {noise.repeat_difference:.2g} of their size, and no "
        "network was found whose answers are certain to differ from the target's by such noise "
        "only"
    )
    if recovery.certificate is not None:
        reason += f": {recovery.certificate.statement}"
    return replace(
        recovery,
        status=Status.NOT_DETERMINISTIC,
        network=None,
        certificate=None,
        evidence=(reason,),
        rejected=recovery.network,
        details={**recovery.details, "rejected": recovery.network},
    )


def steps_at_once(
    job: CertifyingJob,
    noise: NoiseFloor,
    steps: Steps = Steps(),  # noqa: B008 - frozen
    *,
    steady: float = 0.9,
    coarse: float = 1.5e-4,
) -> Refusal | None:
    """Why a recovery of a step function ends before it has begun; None where it may be another.

    It is looked for where neighbouring inputs have the same answers, and no rounding makes them so.

    Parameters
    ----------
    steady : float
        Share of neighbouring inputs of the noise floor, which lie 1e-4 of their deviation apart,
        with the same answers.
    coarse : float
        Error of answers over their deviation.  That is rounding to ``coarse * sqrt(12) = 5e-4`` of
        it, which a continuous function would change by in a fifth of these steps or more often.
    """
    is_fine = noise.numbers.grid is None or noise.typical_coarseness <= coarse
    if not (is_fine and steps.may_be(noise) and noise.steady >= steady):
        return None
    job.tell("looking for jumps")
    rng = np.random.default_rng(random_seeds("jump", job.seed))
    with job.oracle.phase("recover"):
        said = steps.evidence(job.oracle, noise.numbers.grid, rng)
    return Refusal(Status.NOT_IN_CLASS, said) if said else None


def in_view_of_steps(
    job: CertifyingJob,
    recovery: Recovery,
    noise: NoiseFloor | Refusal,
    why: Why | None = None,
    steps: Steps = Steps(),  # noqa: B008 - frozen
) -> Recovery:
    """Say of a target of which no network was found that its answers jump, where they do.

    Those of trees and neighbours are 0 for classes that none has: probabilities that look
    saturated before a method has seen them jump.  And what jumps along a line may be rounded so
    coarsely that the noise floor has not seen it.

    Parameters
    ----------
    why : Why, optional
        How the method that is reported has ended.
    """
    is_torn = recovery.status is Status.NOT_IN_CLASS and why is Why.DISCONTINUOUS
    if not is_torn and recovery.status not in {Status.UNVERIFIED, Status.PARTIAL}:
        return recovery
    may_be = noise.saturated if isinstance(noise, Refusal) else steps.may_be(noise)
    if not may_be or recovery.method == FromLabels.name:
        return recovery
    job.tell("looking for jumps")
    grid = noise.numbers.grid if isinstance(noise, NoiseFloor) else None
    rng = np.random.default_rng(job.new_seed())
    try:
        with job.oracle.phase("recover"):
            said = steps.evidence(job.oracle, grid, rng)
    except TargetError:
        said = ""
    ledger = job.oracle.ledger()
    if not said:
        unsure = (_ROUNDED_COARSELY,) if is_torn else ()
        status = Status.UNVERIFIED if is_torn else recovery.status
        evidence = (*recovery.evidence, *unsure)
        return replace(recovery, status=status, ledger=ledger, evidence=evidence)
    status, method = Status.NOT_IN_CLASS, recovery.method
    return Recovery(status, None, ledger=ledger, evidence=(said,), method=method)


_ROUNDED_COARSELY = (
    "the jumps are as large as those of coarsely rounded answers: they do not tell a network that "
    "is rounded from a function without affine pieces"
)
