"""One method on one target: proposed, verified on fresh queries, repaired where they disagree.

The one place where a status is made of what a method says and what its certificate says.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.certify import Examination
from revelu.network import Network
from revelu.oracle import NoiseFloor
from revelu.recover.method import Candidate, Disagreement, Law, Method, Why
from revelu.recover.paid import NOTHING, Paid
from revelu.recovery import Beyond, Certificate, Status
from revelu.tasks.extract.job import CertifyingJob
from revelu.tasks.extract.l2_bound import with_l2_bound


@dataclass(frozen=True)
class Attempt:
    """What came of a method.

    Attributes
    ----------
    candidate : Candidate
        The last one.
    certificate : Certificate or None
        None where nothing was verified.
    n_before : int
        Queries asked before it began.
    """

    method: Method
    candidate: Candidate
    status: Status
    certificate: Certificate | None = None
    n_before: int = 0

    @property
    def why(self) -> Why:
        """Why it ended; a network that fresh answers contradict to the end is unresolved."""
        if self.status is Status.BUDGET_EXHAUSTED:
            return Why.LIMIT
        is_contradicted = self.status is not Status.RECOVERED
        explained = self.candidate.why is Why.EXPLAINED
        return Why.UNRESOLVED if explained and is_contradicted else self.candidate.why

    @property
    def share(self) -> float:
        """Share of the checks at which the network agrees."""
        return 0.0 if self.certificate is None else self.certificate.fraction_within

    @property
    def differs_at_rows_alone(self) -> bool:
        """Whether all inputs drawn and sought agree, and some that were given do not."""
        said = self.certificate
        if said is None or said.fidelity is None:
            return False
        return said.fidelity.fraction_within < 1.0 == said.fraction_within * said.structural_within

    @property
    def evidence(self) -> tuple[str, ...]:
        """What was seen, in sentences."""
        said = self.candidate
        if self.status is Status.RECOVERED:
            return said.notes
        return (*said.notes, *said.obstacles)


def attempt(
    job: CertifyingJob, noise: NoiseFloor, method: Method, phase: str, paid: Paid = NOTHING
) -> Attempt:
    """Run a method until its network is certified, or it gives up.

    Parameters
    ----------
    phase : str
        What the queries of the first candidate are booked under; repairs are ``repair``.
    paid : Paid
        What the method before has handed over.
    """
    oracle = job.oracle
    n_before = oracle.n_queries
    obstacle = method.obstacle(oracle, noise)
    if obstacle:
        said = Candidate(None, Why.SATURATED, obstacles=(obstacle,))
        return Attempt(method, said, Status.UNVERIFIED, n_before=n_before)
    search = method.start(oracle, noise, np.random.default_rng(job.new_seed()), job.tell, paid)
    with oracle.phase(phase):
        candidate = search.propose()
    while True:
        if candidate.network is None or candidate.why is Why.LIMIT:
            return Attempt(method, candidate, _unverified(candidate, noise), n_before=n_before)
        verdict = job.verify(candidate.network, noise)
        certificate, seen = verdict.certificate, verdict.seen
        if certificate is None or seen is None:
            candidate = replace(candidate, obstacles=(*candidate.obstacles, verdict.limit))
            return Attempt(method, candidate, Status.BUDGET_EXHAUSTED, n_before=n_before)
        if verdict.status is Status.NOT_DETERMINISTIC:
            candidate = replace(candidate, obstacles=(verdict.limit, *candidate.obstacles))
            return Attempt(method, candidate, verdict.status, certificate, n_before)
        if candidate.merged_l2 is not None:
            certificate = with_l2_bound(certificate, candidate, seen)
        status = _verified(candidate, certificate, verdict.status)
        tried = Attempt(method, candidate, status, certificate, n_before)
        disagreement = _disagreement(seen, certificate)
        is_over = verdict.status is not Status.UNVERIFIED or oracle.tally.are_labels
        if is_over or not len(disagreement.X):
            return tried
        if contradiction := job.contradiction(disagreement.X, noise):
            obstacles = (*candidate.obstacles, contradiction)
            candidate = replace(candidate, why=Why.CONTRADICTED, obstacles=obstacles)
            return replace(tried, candidate=candidate, status=Status.NOT_DETERMINISTIC)
        with oracle.phase("repair"):
            repaired = search.repair(disagreement)
        if repaired is None:
            return tried
        candidate = repaired


def settled(job: CertifyingJob, noise: NoiseFloor, tried: Attempt) -> Attempt | None:
    """Certify what repairs have left, where checks drawn from the domain allow it; else None.

    Errors that were seen elsewhere do not take the certificate away; it tells them.
    """
    candidate = tried.candidate
    if candidate.network is None or job.oracle.was_ended or job.oracle.tally.are_labels:
        return None
    with job.oracle.overtime(share=0.25):
        verdict = job.settle(candidate.network, noise)
    if verdict is None or verdict.certificate is None or verdict.seen is None:
        return None
    if verdict.status is not Status.RECOVERED:
        return None
    certificate = with_errors_of_search(verdict.certificate, candidate)
    if candidate.merged_l2 is not None:
        certificate = with_l2_bound(certificate, candidate, verdict.seen)
    return replace(tried, status=verdict.status, certificate=certificate)


def with_errors_of_search(certificate: Certificate, candidate: Candidate) -> Certificate:
    """Say what the search saw and could not explain, where no check has met it."""
    worst = candidate.worst_error
    if worst <= certificate.tolerance or certificate.beyond is not None:
        return certificate
    words = f"the search has met inputs at which it differs by up to {worst:.2g}"
    return replace(
        certificate,
        statement=f"{certificate.statement}; {words}",
        beyond=Beyond(0, 0, worst, None, certificate.share_wrong, words),
    )


def _unverified(candidate: Candidate, noise: NoiseFloor) -> Status:
    """The status of what nothing was asked of, for want of a network or of queries."""
    if candidate.why is Why.LIMIT:
        return Status.BUDGET_EXHAUSTED
    if candidate.why is Why.CONTRADICTED:
        return Status.NOT_DETERMINISTIC
    if candidate.layers:
        return Status.PARTIAL
    # Rounding hides where a hyperplane goes on: then its end is no proof.
    is_proved = candidate.why is Why.HYPERPLANES_END and Law.of(noise) is Law.FLOAT64
    is_refused = is_proved or candidate.why in {Why.CURVED, Why.DISCONTINUOUS, Why.STEPS}
    return Status.NOT_IN_CLASS if is_refused else Status.UNVERIFIED


def _verified(candidate: Candidate, certificate: Certificate, status: Status) -> Status:
    """The status of a network that fresh queries were asked of."""
    if status is Status.RECOVERED and candidate.worst_error > certificate.tolerance:
        # What the search saw and could not explain counts, though the checks have missed it.
        status = Status.UNVERIFIED
    if status is Status.UNVERIFIED and candidate.layers:
        return Status.PARTIAL
    return status


def _disagreement(seen: Examination, certificate: Certificate, most: int = 16) -> Disagreement:
    """What fresh answers say against a network, at ``most`` inputs at most."""
    wrong = np.nan_to_num(seen.ratio, nan=0.0) > 1.0
    gaussian = wrong & seen.is_drawn

    drawn = seen.is_drawn & np.isfinite(seen.Y).all(axis=1)
    errors = np.abs(seen.Y[drawn] - seen.predicted[drawn]) / seen.noise.unit

    def agrees(network: Network) -> bool:
        return seen.by(network).passed

    return Disagreement(
        np.asarray(seen.X[gaussian if gaussian.any() else wrong][:most]),
        seen.worst_point,
        certificate.fraction_within,
        agrees,
        float(errors.max(initial=0.0)) if drawn.any() else np.inf,
    )
