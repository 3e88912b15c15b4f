"""A certified network in its own units: leaky ones in place of a skip."""

import logging
from dataclasses import replace

from revelu.network import with_slopes
from revelu.oracle import NoiseFloor
from revelu.recover.signs import SKIP_KEPT
from revelu.recovery import Recovery, Status
from revelu.tasks.extract.job import CertifyingJob

log = logging.getLogger(__name__)


def in_own_slopes(job: CertifyingJob, recovery: Recovery, noise: NoiseFloor) -> Recovery:
    """Write a network of ReLUs and a skip in leaky units, where the skip says their slopes.

    Parameters
    ----------
    recovery : Recovery
        What is not certified is given back as it is.

    Returns
    -------
    Recovery
        Certified by the same checks, none of which the slopes have seen; the network as it was
        where they speak against it.
    """
    network, old = recovery.network, recovery.certificate
    if recovery.status is not Status.RECOVERED or network is None or old is None:
        return recovery
    if old.l2_bound is not None:  # it is of the neurons that were merged
        return recovery
    written = with_slopes(network, noise.half_digits)
    if written is network:
        return recovery
    new = job.certify_again(written).certificate
    if new is None or not new.passed:
        log.info("kept as it was: fresh checks speak against %s", written)
        return recovery
    evidence = tuple(said for said in recovery.evidence if not said.startswith(SKIP_KEPT))
    # Errors are those of the skip, which it has no more.
    return replace(
        recovery, network=written, certificate=new, evidence=evidence, standard_errors=None
    )
