"""Polish a certified recovery, and certify it again on the checks that it did not see."""

import logging
from dataclasses import replace

import numpy as np

from revelu.errors import LimitReachedError
from revelu.oracle import NoiseFloor
from revelu.recover.refine.polish import polish_network
from revelu.recovery import Recovery, Status
from revelu.tasks.extract.job import Job, network_of
from revelu.tasks.extract.l2_bound import with_l2_bound
from revelu.tasks.extract.precision import has_all_digits

log = logging.getLogger(__name__)


def polished(job: Job, recovery: Recovery, noise: NoiseFloor) -> Recovery:
    """Refine a recovered network to the last digits of the answers.

    Parameters
    ----------
    job : Job
    recovery : Recovery
        What is not certified is given back as it is.
    noise : NoiseFloor

    Returns
    -------
    Recovery
        Certified by the same checks, none of which the polish has seen; the network as it
        was where it could not be polished, or the checks speak against it.
    """
    if recovery.status is not Status.RECOVERED or not any(network_of(recovery).architecture[1:-1]):
        return recovery
    if reason := _hindrance(job, recovery, noise):
        return _noted(recovery, reason)
    job.tell("polishing to the last digits")
    try:
        network = polish_network(job.oracle, network_of(recovery), noise, job.new_seed())
    except LimitReachedError as error:
        return _noted(recovery, str(error))
    new, seen = job.certify_again(replace(recovery, network=network))
    if recovery.certificate is not None and recovery.certificate.l2_bound is not None:
        new = with_l2_bound(new, seen)
    if _error(new) > _error(recovery):
        return _noted(recovery, "it gained nothing on the fresh checks")
    return new


def _hindrance(job: Job, recovery: Recovery, noise: NoiseFloor) -> str:
    if job.oracle.box is not None:
        return "its queries would leave the box"
    if not has_all_digits(noise) or recovery.method == "least_squares":
        return "the answers lack digits, and recovery has used those that there are"
    return ""


def _noted(recovery: Recovery, reason: str) -> Recovery:
    log.info("not polished: %s", reason)
    return replace(recovery, warnings=(*recovery.warnings, f"not polished: {reason}"))


def _error(recovery: Recovery) -> float:
    """Root mean square error on the checks; infinite where they are not all passed."""
    certificate = recovery.certificate
    certified = recovery.status is Status.RECOVERED and certificate is not None
    return certificate.nrmse if certified and certificate is not None else np.inf
