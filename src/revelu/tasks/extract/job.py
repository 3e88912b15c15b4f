"""A task whose network is certified by fresh queries, more than once where one fails."""

from dataclasses import dataclass, field

import numpy as np

from revelu.certify import Examination, certify, examine, examine_given
from revelu.errors import LimitReachedError
from revelu.network import Network
from revelu.oracle import Domain, NoiseFloor
from revelu.recovery import Certificate, Status
from revelu.tasks.job import Job
from revelu.types import FloatArray

# Fewer checks than this cannot say "less than 5% at 95% confidence" (0.95^59 < 0.05 < 0.95^58):
# what a budget cuts to so few is not called recovered.
FEWEST_CHECKS = 59


@dataclass(frozen=True)
class Verdict:
    """What fresh queries say of a network.

    Attributes
    ----------
    status : Status
        ``RECOVERED``, ``UNVERIFIED``, or ``BUDGET_EXHAUSTED`` where a limit was met.
    seen : Examination or None
        What it rests on; None, like the certificate, where the limit left no answers.
    limit : str
        Which limit that was.
    """

    status: Status
    certificate: Certificate | None = None
    seen: Examination | None = None
    limit: str = ""


@dataclass
class CertifyingJob(Job):
    """A task whose network is certified by fresh queries.

    Attributes
    ----------
    checks : int
        Size of the certificate.
    inputs : ndarray, shape (n, d), optional
        On which the certificate is judged, too.
    first_checks : int
        Of a first look, which a wrong network fails, cheaply.
    earlier : list of Examination
        The answers of every certificate so far.
    given : Examination or None
        The answers at ``inputs``.
    has_doubted : bool
        Whether it was asked for contradictions.
    """

    checks: int
    inputs: FloatArray | None = None
    first_checks: int = 256
    earlier: list[Examination] = field(default_factory=list, init=False)
    given: Examination | None = field(default=None, init=False)
    has_doubted: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rng = np.random.default_rng(self.new_seed())

    def new_seed(self) -> np.random.SeedSequence:
        """Return a seed that was not used before."""
        return self.seeds.spawn(1)[0]

    def move_to(self, domain: Domain | None) -> None:
        """Go on in the coordinates of a domain, as if nothing had been certified before."""
        before, rows = self.oracle.domain, self.inputs
        if rows is not None:
            inputs = rows if before is None else before.to_target(rows)
            self.inputs = inputs if domain is None else domain.to_coordinates(inputs)
        self.oracle.move_to(domain)
        self.earlier, self.given = [], None

    def verify(self, network: Network, noise: NoiseFloor) -> Verdict:
        """Certify by fresh queries; a first look decides whether all are worth asking."""
        self.tell("verifying on fresh queries")
        first = min(self.first_checks, self.checks)
        self._foresee(network, first)
        try:
            given = self._on_inputs(network, noise)
            seen = self._examine(network, noise, first, structural=True)
            if seen.passed and self.checks > first:
                seen += self._examine(network, noise, self.checks - first, structural=False)
        except LimitReachedError as error:
            return Verdict(Status.BUDGET_EXHAUSTED, limit=str(error))
        # A network is tried again and again until it passes: it must pass all that was
        # asked on the way, too, or the confidence of the last trial would be no one's.
        fresh, held = seen, [e.by(network) for e in self.earlier]
        seen = sum((e for e in held if seen.passed and not e.passed), start=seen)
        self.earlier.append(fresh)
        self.expected = None
        certificate = certify(seen, given)
        status = Status.RECOVERED if certificate.passed else Status.UNVERIFIED
        agrees = seen.passed or not len(seen.X)
        if agrees and certificate.n_checks < min(FEWEST_CHECKS, self.checks):
            # The budget left no more, or the target is saturated nearly everywhere.
            short = self.oracle.remaining == 0
            status = Status.BUDGET_EXHAUSTED if short else Status.UNVERIFIED
        # What is wrong at an input given is looked for there.
        return Verdict(status, certificate, seen if given is None else seen + given)

    def contradiction(
        self,
        X: FloatArray,
        noise: NoiseFloor,
        *,
        most: int = 8,
        times: int = 12,
        sigmas: float = 100.0,
    ) -> str:
        """Ask a service again and again what it answered otherwise than a network, once in a job.

        Parameters
        ----------
        X : ndarray, shape (n, d)
        most : int
            Rows that are asked, always together.
        times : int
            What goes wrong in a tenth of the requests shows in one of twelve more often than not.
        sigmas : float
            Standard errors by which no two answers to one row differ.

        Returns
        -------
        str
            How it contradicts itself; empty where it does not, or where that says nothing.
        """
        oracle = self.oracle
        if self.has_doubted or not (oracle.is_remote and noise.is_deterministic):
            return ""
        self.has_doubted = True
        try:
            with oracle.phase("verify"):
                answers = np.stack([oracle(X[:most]) for _ in range(times)])
        except LimitReachedError:
            return ""
        finite = np.isfinite(answers).all(axis=0)
        typical = np.where(finite, np.median(answers, axis=0), 0.0)
        apart = np.where(finite, np.ptp(np.where(finite, answers, 0.0), axis=0), 0.0)
        if not (apart > sigmas * noise.sigma(typical)).any():
            return ""
        size = max(float(np.sqrt((typical**2).mean())), np.finfo(np.float64).tiny)
        return (
            f"the target contradicts itself: {len(X[:most])} rows asked {times} times are answered "
            f"otherwise, by up to {apart.max() / size:.2g} of their size"
        )

    def _foresee(self, network: Network, first: int, *, sides: int = 8) -> None:
        """Expect the certificate alone from now on: what was expected of the search is over.

        Parameters
        ----------
        sides : int
            Checks beside each neuron's hyperplane, or its border, at most.
        """
        least = self.oracle.n_queries + self.checks
        structural = first // 10 + 1 + sides * sum(network.architecture[1:-1])
        self.expected = least, least + structural

    def _on_inputs(self, network: Network, noise: NoiseFloor) -> Examination | None:
        """Compare on the inputs given, which are asked once."""
        if self.inputs is None:
            return None
        if self.given is None:
            self.given = examine_given(self.inputs, network, self.oracle, noise)
        return self.given.by(network)

    def _examine(
        self, network: Network, noise: NoiseFloor, n_drawn: int, *, structural: bool
    ) -> Examination:
        """Ask the checks; where an earlier run's journal leaves less room, those that fit."""
        room = self.oracle.remaining
        try:
            return examine(network, self.oracle, noise, n_drawn, self.rng, structural=structural)
        except LimitReachedError:
            # What that run paid for is not asked again, which shows at the first new batch.
            if not self.oracle.remaining or self.oracle.remaining == room:
                raise
            return examine(network, self.oracle, noise, n_drawn, self.rng, structural=structural)

    def certify_again(self, network: Network) -> Verdict:
        """Certify another network by the checks asked so far, without a query.

        Its making must not have seen them, nor chosen among several by them.
        """
        first, *others = (e.by(network) for e in self.earlier)
        seen = sum(others, start=first)
        certificate = certify(seen, self.given and self.given.by(network))
        status = Status.RECOVERED if certificate.passed else Status.UNVERIFIED
        return Verdict(status, certificate, seen)
