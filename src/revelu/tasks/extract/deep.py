"""Extract a deep network: recovered layer by layer, verified, repaired where checks fail."""

import math
from dataclasses import replace

import numpy as np

from revelu.certify import Examination
from revelu.oracle import NoiseFloor
from revelu.recover.deep.driver import search_deep
from revelu.recovery import Recovery, Status
from revelu.tasks.extract.job import Job, network_of
from revelu.types import FloatArray

# A kink costs two gradients, and all of a layer's are compared with each other.
_MOST_INPUTS = 128

# Repairs after failed certificates, and wrong checks that one looks at.
_MAX_REPAIRS = 6
_MAX_WRONG = 16

# Repairs in a row after which no more checks agree, of a network of one hidden layer: other
# methods have tried to repair that one.
_MAX_IN_VAIN = 2
_ONE_HIDDEN = 2

_ENDED = (Status.BUDGET_EXHAUSTED, Status.NOT_IN_CLASS)


def extract_deep(job: Job, noise: NoiseFloor, phase: str) -> Recovery:
    """Recover a network of any depth, verified and repaired.

    Parameters
    ----------
    job : Job
    noise : NoiseFloor
    phase : str
        What the queries of the recovery are booked under.

    Returns
    -------
    Recovery
        ``PARTIAL`` where only some layers are exact (``details["layers"]``); its certificate
        then says at which share of the inputs the whole agrees.
    """
    reason = _refusal(job, noise)
    if reason:
        ledger = job.oracle.ledger()
        return Recovery(Status.UNVERIFIED, None, ledger=ledger, evidence=(reason,), method="deep")
    job.tell("recovering layer by layer")
    with job.oracle.phase(phase):
        recovery, deep = search_deep(job.oracle, noise, job.new_seed())
    in_vain, most = 0, -1.0
    for repair in range(_MAX_REPAIRS + 1):
        if recovery.network is None or recovery.status in _ENDED:
            return recovery
        is_partial = recovery.status is Status.PARTIAL
        recovery, seen = job.verify(recovery, noise)
        if seen is None or (recovery.status is not Status.UNVERIFIED and not is_partial):
            return recovery
        share = _share_within(recovery)
        is_shallow = len(network_of(recovery).weights) == _ONE_HIDDEN
        in_vain = in_vain + 1 if is_shallow and share <= most else 0
        most = max(most, share)
        if is_partial or repair == _MAX_REPAIRS or in_vain == _MAX_IN_VAIN:
            break
        job.tell("looking for neurons that fire where the network was wrong")
        with job.oracle.phase("repair"):
            recovery = deep.repair(_wrong_points(seen))
    return replace(recovery, status=Status.PARTIAL, evidence=(*recovery.evidence, _share(recovery)))


def _refusal(job: Job, noise: NoiseFloor) -> str:
    """Why nothing is asked, if so."""
    if not noise.is_exact:
        return (
            f"the answers lack the digits that deep networks need: float64 ones, not {noise.law}; "
            "method least_squares takes one hidden layer"
        )
    if job.oracle.dim_in > _MOST_INPUTS:
        return (
            f"networks of more than two hidden layers are recovered for {_MOST_INPUTS} inputs at "
            f"most, not {job.oracle.dim_in:,}: where the first layer has fewer neurons, `revelu "
            "span` finds its row span, and a target that takes coordinates in that has fewer inputs"
        )
    return ""


def _wrong_points(seen: Examination) -> FloatArray:
    wrong = np.nan_to_num(seen.ratio, nan=0.0) > 1.0
    return np.asarray(seen.X[wrong][:_MAX_WRONG])


def _share(recovery: Recovery) -> str:
    """What the whole is worth."""
    n = len(recovery.details["layers"])
    share = math.floor(_share_within(recovery) * 1e4) / 1e4
    return (
        f"{n} hidden layer(s) are exact as far as gradients tell; the whole network agrees at "
        f"{share:.2%} of the inputs"
    )


def _share_within(recovery: Recovery) -> float:
    return 0.0 if recovery.certificate is None else recovery.certificate.fraction_within
