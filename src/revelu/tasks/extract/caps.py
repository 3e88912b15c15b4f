"""Answers that are clipped: the network inside is looked for, and its caps are put on again."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from revelu.certify.examination import predictions
from revelu.network import Network
from revelu.network.caps import with_caps
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.links import NONE, Link
from revelu.oracle import NoiseFloor
from revelu.recover.method import Why
from revelu.recovery import Status
from revelu.tasks.extract.attempt import Attempt, with_errors_of_search
from revelu.tasks.extract.job import CertifyingJob
from revelu.tasks.job import random_seeds

NO_NETWORK = {Why.CURVED, Why.DISCONTINUOUS, Why.STEPS, Why.CONTRADICTED, Why.LIMIT}


def caps_seen(job: CertifyingJob, noise: NoiseFloor, tried: Attempt) -> Link | None:
    """The caps that answers have shown, where a method has failed that knows none; else None.

    Parameters
    ----------
    tried : Attempt
        What has come of the method.
    """
    oracle = job.oracle
    is_open = tried.status in {Status.UNVERIFIED, Status.PARTIAL, Status.NOT_IN_CLASS}
    is_plain = not noise.link.saturates and oracle.told_link is None and noise.is_deterministic
    if not (is_open and is_plain) or tried.why in NO_NETWORK or oracle.tally.are_labels:
        return None
    link = NONE.within(*oracle.extremes.caps())
    return link if link.clips else None


def are_explained(job: CertifyingJob, link: Link, tried: Attempt) -> bool:
    """Whether a network answers like the target where this is capped, without any caps.

    Where all neurons are off, a network answers the same at many inputs, and none is missing.
    """
    network = tried.candidate.network
    if network is None:
        return False
    seen = [e.by(network) for e in job.earlier]
    capped_at = [((e.answered == link.low) | (e.answered == link.high)).any(axis=1) for e in seen]
    ratios = [e.ratio[at] for e, at in zip(seen, capped_at, strict=True)]
    return sum(map(len, ratios)) > 0 and float(np.median(np.concatenate(ratios))) <= 1.0


@contextmanager
def inside(job: CertifyingJob, link: Link) -> Iterator[None]:
    """Have the oracle say nothing where answers are capped, and checks clip what is predicted.

    The draws of what comes after stay as they are.
    """
    earlier, given, seeds, rng = job.earlier, job.given, job.seeds, job.rng
    job.seeds = random_seeds("caps", job.seed).spawn(len(job.caps_tried))[-1]
    job.rng = np.random.default_rng(job.new_seed())
    job.earlier = [replace(e, head=link) for e in earlier]
    job.given = given and replace(given, head=link)
    job.oracle.link = link
    try:
        yield
    finally:
        job.oracle.link, job.seeds, job.rng = NONE, seeds, rng
        job.earlier = [replace(e, head=NONE) for e in job.earlier]
        job.given = job.given and replace(job.given, head=NONE)


def capped(job: CertifyingJob, noise: NoiseFloor, link: Link, tried: Attempt) -> Attempt | None:
    """The network that was found with caps on, certified; None where it is not.

    What earlier checks speak against costs no query.
    """
    network = tried.candidate.network
    if network is None or not job.earlier:
        return None
    low, high = (np.broadcast_to(end, network.dim_out) for end in (link.low, link.high))
    whole = with_caps(network.to_dense(), low, high)
    verdict = job.certify_again(whole)
    if verdict.status is Status.RECOVERED and tried.status is not Status.RECOVERED:
        verdict = job.verify(whole, noise)
    if verdict.status is not Status.RECOVERED or verdict.certificate is None:
        rarer = _with_rare(job, noise, link, network)
        # What checks have suggested is held against others.
        unsure = replace(tried, status=Status.UNVERIFIED)
        return None if rarer is None else capped(job, noise, rarer, unsure)
    said = tried.candidate
    # Whether the caps explain what the search saw is not known.
    certificate = with_errors_of_search(verdict.certificate, said)
    candidate = replace(
        said, network=whole, why=Why.EXPLAINED, layers=(), notes=(*said.notes, in_words(link))
    )
    return replace(tried, candidate=candidate, status=verdict.status, certificate=certificate)


def _with_rare(job: CertifyingJob, noise: NoiseFloor, link: Link, network: Network) -> Link | None:
    """The caps, and those met too seldom for answers alone to show; None where there are none.

    Where the network inside is beyond all answers by more than these err, two of which are exactly
    the most extreme one, it is capped.
    """
    X = np.vstack([e.X for e in job.earlier])
    Y, predicted = np.vstack([e.answered for e in job.earlier]), predictions(network, X, NONE)
    error = SIGMAS * noise.sigma_at(X, Y)
    low, high = (np.broadcast_to(end, Y.shape[1]) for end in (link.low, link.high))
    least, most = job.oracle.extremes.caps(least=2)
    is_low = (np.isinf(low) & (least - predicted > error)).any(axis=0) & np.isfinite(least)
    is_high = (np.isinf(high) & (predicted - most > error)).any(axis=0) & np.isfinite(most)
    if not (is_low.any() or is_high.any()):
        return None
    return NONE.within(np.where(is_low, least, low), np.where(is_high, most, high))


def in_words(link: Link, most: int = 4) -> str:
    """Say what the caps are, and where they are in the network."""
    said = list[str]()
    for verb, ends in (("fall below", link.low), ("exceed", link.high)):
        found = [f"{end:.12g}" for end in np.unique(ends) if np.isfinite(end)]
        if found:
            said.append(f"never {verb} {', '.join(found[:most])}{' ...' * (len(found) > most)}")
    return (
        f"the answers are clipped: they {' and '.join(said)}; the last hidden layer does that, "
        "and the network inside is the layers below"
    )
