"""Polish a certified recovery, and certify it again on the checks that it did not see."""

import logging
from dataclasses import replace

from revelu.errors import LimitReachedError
from revelu.network import LayeredNetwork
from revelu.oracle import NoiseFloor
from revelu.recover.fit import Fit
from revelu.recover.method import Candidate, Law
from revelu.recover.refine.polish import polish_network
from revelu.recovery import Recovery, Status
from revelu.tasks.extract.job import CertifyingJob
from revelu.tasks.extract.l2_bound import with_l2_bound

log = logging.getLogger(__name__)


def polished(
    job: CertifyingJob, recovery: Recovery, candidate: Candidate, noise: NoiseFloor
) -> Recovery:
    """Refine a recovered network to the last digits of the answers.

    Parameters
    ----------
    recovery : Recovery
        What is not certified is given back as it is.
    candidate : Candidate
        What its method said.

    Returns
    -------
    Recovery
        Certified by the same checks, none of which the polish has seen; the network as it
        was where it could not be polished, or the checks speak against it.
    """
    network, old = recovery.network, recovery.certificate
    if recovery.status is not Status.RECOVERED or network is None or old is None:
        return recovery
    if not any(network.architecture[1:-1]):
        return recovery
    if isinstance(network, LayeredNetwork):
        return _noted(recovery, "its layers are fitted to the last digits as it is")
    if job.oracle.box is not None:
        return _noted(recovery, "its queries would leave the box")
    if Law.of(noise) is not Law.FLOAT64 or recovery.method == Fit.name:
        return _noted(
            recovery, "the answers lack digits, and recovery has used those that there are"
        )
    job.tell("polishing to the last digits")
    try:
        network = polish_network(job.oracle, network, noise, job.new_seed())
    except LimitReachedError as error:
        return _noted(recovery, str(error))
    verdict = job.certify_again(network)
    new = verdict.certificate
    if new is None or verdict.seen is None or not new.passed or new.nrmse > old.nrmse:
        return _noted(recovery, "it gained nothing on the fresh checks")
    if old.l2_bound is not None:
        new = with_l2_bound(new, replace(candidate, network=network), verdict.seen)
    return replace(recovery, network=network, certificate=new)


def _noted(recovery: Recovery, reason: str) -> Recovery:
    log.info("not polished: %s", reason)
    return replace(recovery, warnings=(*recovery.warnings, f"not polished: {reason}"))
