"""Runs where a target bends: on N(0, I), or where it is found to if it does not there."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from revelu.oracle import Domain, NoiseFloor
from revelu.recovery import Recovery, Status
from revelu.tasks.extract.job import CertifyingJob
from revelu.tasks.extract.precision import refusal
from revelu.tasks.find_decision import DecisionSearch
from revelu.tasks.find_domain import DomainSearch
from revelu.tasks.job import Job, Refusal, stream

Run = Callable[[NoiseFloor | Refusal], Recovery]

_ELSEWHERE = (
    "far from N(0, I) the target bends or decides, around means from {m0:.3g} to {m1:.3g}: what "
    "was recovered is what it is on N(0, I); a domain would have it asked where it is used"
)


def run_where_it_bends(job: CertifyingJob, noise: NoiseFloor | Refusal, run: Run) -> Recovery:
    """Run on N(0, I), or on the domain of a target that is affine there and not elsewhere.

    Parameters
    ----------
    noise : NoiseFloor or Refusal
        Of the target where it is asked now.
    run : callable, NoiseFloor or Refusal -> Recovery
    """
    oracle = job.oracle
    domain = find_elsewhere(job, noise)
    if domain is not None:
        return _better(job, run, domain, lambda: run(noise))
    here = run(noise)
    if oracle.domain is None and oracle.box is None and not isinstance(noise, Refusal):
        rng = np.random.default_rng([stream("domain"), 1, job.seed])
        affine = _is_affine(here)
        domain = DomainSearch().find(oracle, noise, rng, job.tell) if affine else None
    return here if domain is None else _better(job, run, domain, lambda: here)


def find_elsewhere(job: Job, noise: NoiseFloor | Refusal) -> Domain | None:
    """Find where a target bends or decides that has no domain and does neither on N(0, I)."""
    oracle = job.oracle
    if oracle.domain is not None or oracle.box is not None:
        return None
    # No seed is taken from those of the run: it asks what it asks without a search.
    rng = np.random.default_rng([stream("domain"), job.seed])
    refused = noise if isinstance(noise, Refusal) else refusal(noise)
    if oracle.link.has_head and refused is not None and refused.status is Status.UNVERIFIED:
        return DecisionSearch().find(oracle, rng, job.tell)
    if isinstance(noise, Refusal):
        return None
    return DomainSearch().elsewhere(oracle, noise, rng, job.tell)


def _is_affine(recovery: Recovery) -> bool:
    """Whether what was recovered has no neuron."""
    network = recovery.network
    return network is not None and not any(len(W) for W in network.weights[:-1])


def _better(job: CertifyingJob, run: Run, domain: Domain, here: Callable[[], Recovery]) -> Recovery:
    """Run on the domain; keep what is certified on N(0, I) where nothing is certified there."""
    job.move_to(domain)
    there = run(job.measure_noise(job.new_seed()))
    if there.status is Status.RECOVERED:
        return there
    job.move_to(None)
    on_gaussian = here()
    if on_gaussian.status is not Status.RECOVERED:
        job.move_to(domain)
        return there
    said = _ELSEWHERE.format(m0=domain.center.min(), m1=domain.center.max())
    return replace(on_gaussian, evidence=(*on_gaussian.evidence, said))
