"""A task whose network is certified by fresh queries, more than once where one fails."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.certify import Examination, Standard, certify, examine, examine_rows
from revelu.errors import LimitReachedError
from revelu.network import Network
from revelu.oracle import Domain, NoiseFloor
from revelu.recovery import Certificate, Status
from revelu.tasks.job import Job, Refusal
from revelu.types import BoolArray, FloatArray

# Fewer checks than this cannot say "less than 5% at 95% confidence" (0.95^59 < 0.05 < 0.95^58):
# what a budget cuts to so few is not called recovered.
FEWEST_CHECKS = 59


@dataclass(frozen=True)
class QueryVerdict:
    """What fresh queries say of a network.

    Attributes
    ----------
    status : Status
        ``RECOVERED``, ``UNVERIFIED``, ``BUDGET_EXHAUSTED`` where a limit was met, or
        ``NOT_DETERMINISTIC`` where inputs that differed do not when they are asked again.
    seen : Examination or None
        What it rests on; None, like the certificate, where the limit left no answers.
    limit : str
        Which limit that was, or what was seen.
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
    inputs : ndarray, shape (n, m), optional
        The target's own inputs on which the certificate is judged, too, beside the rows of the
        data that a domain is like.
    first_checks : int
        Of a first look, which a wrong network fails, cheaply.
    standard : Standard
        What answers must show.
    earlier : list of Examination
        The answers of every certificate so far.
    given : Examination or None
        The answers at those.
    has_doubted : bool
        Whether it was asked for contradictions.
    caps_tried : set of str
        Caps inside which a network was looked for.
    has_sought_clip : bool
        Whether it was asked for whether inputs are clipped.
    """

    checks: int
    inputs: FloatArray | None = None
    first_checks: int = 256
    standard: Standard = Standard()  # noqa: RUF009 - frozen
    earlier: list[Examination] = field(default_factory=list, init=False)
    given: Examination | None = field(default=None, init=False)
    has_doubted: bool = field(default=False, init=False)
    caps_tried: set[str] = field(default_factory=set, init=False)
    has_sought_clip: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rng = np.random.default_rng(self.new_seed())

    def new_seed(self) -> np.random.SeedSequence:
        """Return a seed that was not used before."""
        return self.seeds.spawn(1)[0]

    def move_to(self, domain: Domain | None) -> None:
        """Go on in the coordinates of a domain, as if nothing had been certified before."""
        self.oracle.move_to(domain)
        self.earlier, self.given = [], None

    def measure_noise(self, seed: np.random.SeedSequence) -> NoiseFloor | Refusal:
        """Measure the noise floor, and see that inputs given have what columns are held at.

        Raises
        ------
        InputError
            If one of them has another value there.
        """
        found = super().measure_noise(seed)
        if self.inputs is not None and self.oracle.domain is not None:
            self.oracle.domain.to_coordinates(self.inputs)
        return found

    @property
    def rows(self) -> FloatArray | None:
        """Coordinates of the inputs given, once they were asked, (n, r)."""
        return None if self.given is None else self.given.X

    @property
    def rows_a_request(self) -> int:
        """Rows of a request, on average: the checks are spread over as many as the pace allows."""
        return -(-self.checks // self.oracle.check_requests)

    def caps_are_new(self, said: str) -> bool:
        """Whether no network was looked for inside caps; from now on one was."""
        is_new = said not in self.caps_tried
        self.caps_tried.add(said)
        return is_new

    def verify(self, network: Network, noise: NoiseFloor) -> QueryVerdict:
        """Certify by fresh queries; a first look decides whether all are worth asking.

        Inputs that are sought at hyperplanes and far out have to agree, too: what is known to be
        wrong there may be repaired, and :meth:`settle` says what holds where it is not.
        """
        self.tell("verifying on fresh queries")
        first = min(self.first_checks, self.checks)
        self._foresee(network, first)
        try:
            with self.oracle.spread_out(self.rows_a_request):
                given = self._on_inputs(network, noise)
                seen = self._examine(network, noise, first, structural=True)
                agrees = seen.passed and (given is None or not (given.ratio > 1.0).any())
                if agrees and self.checks > first:
                    seen += self._examine(network, noise, self.checks - first, structural=False)
        except LimitReachedError as error:
            return QueryVerdict(Status.BUDGET_EXHAUSTED, limit=str(error))
        # A network is tried again and again until it passes: it must pass all that was
        # asked on the way, too, or the confidence of the last trial would be no one's.
        fresh, held = seen, [e.by(network) for e in self.earlier]
        seen = sum((e for e in held if seen.passed and not e.passed), start=seen)
        self.earlier.append(fresh)
        self.expected = None
        certificate = certify(seen, given)
        if reason := self._answered_otherwise(fresh):
            return QueryVerdict(Status.NOT_DETERMINISTIC, certificate, seen, reason)
        agrees = seen.passed or not len(seen.X)
        certificate = replace(certificate, passed=certificate.passed and agrees)
        status = Status.RECOVERED if certificate.passed else Status.UNVERIFIED
        if agrees and certificate.n_checks < min(FEWEST_CHECKS, self.checks):
            status = self._too_few()
        # What is wrong at an input given is looked for there.
        return QueryVerdict(status, certificate, seen if given is None else seen + given)

    def _answered_otherwise(
        self, seen: Examination, *, most: int = 16, few: float = 0.2, much: float = 0.01
    ) -> str:
        """Say whether a few inputs that differ do not when they are asked again.

        Then some requests, or rows, are answered by another model, or not in their order, and no
        network is to be looked for where they differ.

        Parameters
        ----------
        most : int
            Rows that are asked again, in another request.
        few : float
            Share of the inputs drawn that may differ: else it is the network that is wrong.
        much : float
            By which answers have to change, relative to what they vary by: what the number of rows
            in a request does to the last digits is no other model.
        """
        wrong = _wrong_drawn(seen)
        if not wrong.any() or wrong.mean() > few or seen.noise.law == "random":
            return ""
        again = seen.only(wrong & (np.cumsum(wrong) <= most))
        try:
            with self.oracle.phase("verify"), self.oracle.as_answered():
                Y = self.oracle(again.X)
        except LimitReachedError:
            return ""
        repeated = replace(again, answered=Y, is_drawn=np.zeros(len(Y), dtype=bool))
        with np.errstate(invalid="ignore"):  # infinite where the target is saturated
            apart = np.abs(repeated.Y - again.Y) > much * seen.spread
        n = int((apart.any(axis=1) & (repeated.ratio <= 1.0)).sum())
        if not n:
            return ""
        where = len(np.unique(seen.requests[wrong])) if seen.requests is not None else 1
        return (
            f"{n} of {len(Y)} inputs that differed, in {where:,} of {_n_requests(seen):,} "
            "requests, agree when they are asked again: another model answers some requests, or "
            "answers change places"
        )

    def _too_few(self) -> Status:
        """The budget left no more checks, or the target is saturated nearly everywhere."""
        return Status.BUDGET_EXHAUSTED if self.oracle.remaining == 0 else Status.UNVERIFIED

    def settle(
        self, network: Network, noise: NoiseFloor, *, portions: int = 4
    ) -> QueryVerdict | None:
        """Say what holds of a network that is known to be wrong somewhere, and is not repaired.

        What was asked so far has led to it; that many inputs drawn anew have not.  Where one of
        them differs, or one did before, more are drawn, and at most a few of all may differ: a
        network that is wrong at a tenth of the share that is stated passes, and one that is wrong
        at all of it does not.  It is tried once a run.

        Parameters
        ----------
        portions : int
            In which the checks are asked: too many failures end it early.

        Returns
        -------
        QueryVerdict or None
            None where inputs given disagree, or more inputs drawn did than could be excused.
        """
        held = [e.by(network) for e in self.earlier]
        wrong = sum(int(_wrong_drawn(e).sum()) for e in held)
        if wrong > self.standard.failures or any(e.is_foreign.any() for e in held):
            return None
        self.tell("verifying on more inputs drawn")
        seen: Examination | None = None
        n = -(-self.checks // portions)
        given: Examination | None = None
        try:
            with self.oracle.spread_out(self.rows_a_request):
                given = self._on_inputs(network, noise)
                if given is not None and (given.ratio > 1.0).any():
                    return None
                n_wrong = 0
                for i in range(self.standard.more * portions):
                    if i >= portions and not (wrong or n_wrong):
                        break
                    more = self._examine(network, noise, n, structural=False)
                    seen = more if seen is None else seen + more
                    n_wrong = int(_wrong_drawn(seen).sum())
                    if n_wrong > self.standard.failures:
                        break
        except LimitReachedError:
            pass
        return self._settled(network, held, seen, given)

    def _settled(
        self,
        network: Network,
        held: Sequence[Examination],
        seen: Examination | None,
        given: Examination | None,
    ) -> QueryVerdict | None:
        """A verdict by inputs drawn anew, with what is known of others beside it."""
        n_new = 0 if seen is None else int(seen.is_compared.sum())
        parts = [] if seen is None else [seen]
        if n_new < self.checks:
            # A limit left no more: those that no repair was made for are as good.
            fair = [e for e in self.earlier if not _wrong_drawn(e).any()]
            parts += [e.by(network).only(e.is_drawn) for e in fair]
        if not parts:
            return None
        seen = sum(parts[1:], start=parts[0])
        if n_new:
            self.earlier.append(seen)
        others = [e.only(~e.is_drawn | _wrong_drawn(e)).sought() for e in held]
        enough = n_new >= self.standard.more * self.checks
        certificate = certify(sum(others, start=seen), given, self.standard, allows_failures=enough)
        status = Status.RECOVERED if certificate.passed else Status.UNVERIFIED
        if certificate.passed and certificate.n_checks < min(FEWEST_CHECKS, self.checks):
            status = self._too_few()
        return QueryVerdict(status, certificate, seen if given is None else seen + given)

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
        if self.given is None:
            parts = [
                examine_rows(rows, network, self.oracle, noise, source)
                for rows, source in self.rows_given()
                if len(rows)
            ]
            if not parts:
                return None
            self.given = sum(parts[1:], start=parts[0])
        return self.given.by(network)

    def rows_given(self) -> list[tuple[FloatArray, str]]:
        """What the certificate is judged on besides: the target's inputs, and what they are called.

        Of rows of the data no more than a third of a budget is left for.
        """
        found = [] if self.inputs is None else [(self.inputs, "inputs given")]
        domain, left = self.oracle.domain, self.oracle.remaining
        if domain is not None and domain.rows is not None:
            n = len(domain.rows) if left is None else min(len(domain.rows), left // 3)
            found.append((domain.rows[:n], f"rows of {domain.source}"))
        return found

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

    def certify_again(self, network: Network) -> QueryVerdict:
        """Certify another network by the checks asked so far, without a query.

        Its making must not have seen them, nor chosen among several by them.
        """
        first, *others = (e.by(network) for e in self.earlier)
        seen = sum(others, start=first)
        certificate = certify(seen, self.given and self.given.by(network))
        status = Status.RECOVERED if certificate.passed else Status.UNVERIFIED
        return QueryVerdict(status, certificate, seen)


def _n_requests(seen: Examination) -> int:
    return 1 if seen.requests is None else int(seen.requests.max(initial=0)) + 1


def _wrong_drawn(seen: Examination) -> BoolArray:
    """Which inputs were drawn and differ, shape (n,)."""
    return np.asarray(seen.is_drawn & seen.is_compared & ~(seen.ratio <= 1.0))
