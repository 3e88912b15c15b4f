"""Span: the directions of the input that a target looks at, from numbers or labels."""

import sys
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from revelu.certify.null_space import check_null_space
from revelu.errors import InputError, LimitReachedError
from revelu.network.span import Span
from revelu.numerics.threads import in_one_thread
from revelu.oracle import Domain, NoiseFloor, Oracle, whole_number
from revelu.oracle.company import BY_BATCH
from revelu.oracle.sentinels import Sentinels
from revelu.oracle.whole_columns import in_whole_numbers
from revelu.recover.method import Why
from revelu.recover.span import Adaptive, Averaged, LabelSpan, OneRound
from revelu.recover.span.candidate import SpanCandidate
from revelu.recovery import SpanRecovery, Status
from revelu.tasks.extract.precision import refusal
from revelu.tasks.job import Job, Refusal, open_target
from revelu.tasks.progress import Listener
from revelu.tasks.units import span_in_units
from revelu.types import FloatArray

METHODS = ("auto", "at_once")


@in_one_thread
def recover_span(
    target: Any,
    labels: bool = False,
    seed: int = 0,
    budget: int | None = None,
    method: str = "auto",
    neurons: int | None = None,
    checks: int = 1000,
    executor: Executor | None = None,
    progress: Listener | None = None,
    *,
    dim_in: int | None = None,
    trust: bool = False,
    max_seconds: float | None = None,
    domain: Domain | None = None,
    link: str = "auto",
) -> SpanRecovery:
    """Recover the row span of the first layer of a network of any depth and activation.

    Parameters
    ----------
    labels : bool
        Use class labels alone: of several answers the largest; a single one must be a label.
    method : {"auto", "at_once"}
        ``at_once`` decides all queries in advance, one round (JWZ20, Algorithm 1), for a
        first layer of ``neurons``; ``auto`` goes point by point and asks far less.
    neurons : int, optional
        Width of the first layer, or more; ``at_once`` alone needs it.
    checks : int
        Fresh inputs that are moved inside the null space, two queries each.
    target, budget, seed, executor, progress, dim_in, trust, max_seconds, domain, link
        As of :func:`revelu.extract`.

    Returns
    -------
    SpanRecovery
        A target whose span cannot be recovered is a status, not an exception.

    Raises
    ------
    InputError
        If an argument makes no sense or the target cannot be opened.
    TargetError
        If the target fails or answers nonsense.

    Examples
    --------
    >>> import revelu
    >>> target = revelu.zoo.random_network([12, 4, 3, 1], seed=1)
    >>> found = revelu.recover_span(target)
    >>> found.status.value, found.span
    ('recovered', <Span of 4 of 12 directions>)
    >>> bool(found.span.angles(target.weights[0]).max() < 1e-8)
    True
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
    if method == "at_once" and (neurons is None or labels):
        raise InputError("at_once needs the number of neurons, and numbers, not labels")
    neurons = None if neurons is None else whole_number("neurons", neurons, 1)
    oracle = open_target(
        target,
        seed,
        progress,
        everywhere="span recovery",
        most_inputs=4_096,  # bases are dense: n x n numbers
        dim_in=dim_in,
        budget=budget,
        trust=trust,
        executor=executor,
        max_seconds=max_seconds,
        domain=domain,
        link=link,
    )
    job = _Job(oracle, seed, progress, "span", "span", whole_number("checks", checks, 1))
    if labels:
        found = job.ended(in_whole_numbers(oracle, job.from_labels))
    else:
        found = job.ended(job.from_numbers(method, neurons))
    return span_in_units(found, oracle.domain)


@dataclass
class _Job(Job):
    """A recovery under way.

    Attributes
    ----------
    checks : int
    coarse_angle : float
        In radians.  A span farther off may fail its certificate by its own error.
    largest_angle : float
        A span farther off is not recovered, whatever its certificate.
    """

    checks: int
    coarse_angle: float = 1e-5
    largest_angle: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        self.for_noise, self.for_search, self.for_checks = self.seeds.spawn(3)

    def from_labels(self) -> SpanRecovery:
        """Algorithm 2, then fresh moves that must change no label."""
        self.oracle.names.are_expected = True

        def ask(X: FloatArray) -> FloatArray:
            return _as_labels(self.oracle(X), self.oracle.name)

        def watch(X: FloatArray, labels: FloatArray) -> None:
            Y = labels[:, None]
            view = partial(_as_labels, name=self.oracle.name)
            self.oracle.watch(Sentinels(X, Y, np.zeros(Y.shape), view))

        outer = Oracle(ask, self.oracle.dim_in, name=self.oracle.name, batch_rows=sys.maxsize)
        found = LabelSpan().find(outer, np.random.default_rng(self.for_search), self.tell, watch)
        outer.budget = self.oracle.remaining
        with self.oracle.phase("verify"):
            return self._verified(outer, found, "labels", None)

    def from_numbers(self, method: str, neurons: int | None) -> SpanRecovery:
        """Algorithm 1, by the way that the noise allows, then fresh moves."""
        noise = self.measure_noise(self.for_noise)
        if self.oracle.names:
            return self.from_labels()
        if isinstance(noise, Refusal):
            return self._nothing(noise)
        # Smooth functions are welcome here.
        smooth = noise.is_smooth
        refused = refusal(replace(noise, curved=0.0))
        if refused is not None:
            return self._nothing(refused)
        way: OneRound | Adaptive | Averaged
        if method == "at_once" and neurons is not None:
            name, way = "at_once", OneRound(neurons, smooth=smooth)
        elif noise.is_exact:
            name, way = "gradients", Adaptive(smooth=smooth)
        else:
            name, way = "noisy_gradients", Averaged(smooth=smooth)
        found = way.find(self.oracle, noise, np.random.default_rng(self.for_search), self.tell)
        notes, rank = found.notes, found.span.rank
        if found.why is Why.UNRESOLVED and not rank:
            notes = (*notes, _PERHAPS_LABELS)
        recovery = self._verified(self.oracle, replace(found, notes=notes), name, noise)
        if smooth or recovery.status is Status.RECOVERED or not 0 < rank < found.span.dim_in:
            return recovery
        promise = _PROMISE.format(rank=rank, most=min(2 * rank, found.span.dim_in))
        return replace(recovery, evidence=(*recovery.evidence, promise))

    def _verified(
        self, oracle: Oracle, found: SpanCandidate, method: str, noise: NoiseFloor | None
    ) -> SpanRecovery:
        """Say how a search ended, and check a span that it thinks is whole."""
        angle = found.expected_angle
        figures = {"expected_angle": angle if np.isfinite(angle) else None, "leak": found.leak}
        recovery = SpanRecovery(
            _STATUS[found.why],
            found.span,
            ledger=oracle.ledger(),
            evidence=found.notes,
            method=method,
            details={**found.figures, **{k: v for k, v in figures.items() if v is not None}},
            expected_angle=angle,
            answers=None if noise is None else noise.answers,
        )
        if found.why is not Why.EXPLAINED:
            return recovery
        if found.span.rank == found.span.dim_in:
            # All of the input: there is nothing to move in.
            return replace(recovery, status=Status.RECOVERED, evidence=(*found.notes, _FULL))
        self.tell("moving fresh inputs inside the null space")
        rng = np.random.default_rng(self.for_checks)
        # Of a weak direction that is far off a function sees as little as of the others.
        leak = angle if found.leak is None else found.leak
        try:
            domain = self.oracle.domain
            words = "" if domain is None else domain.words
            n = self.checks
            certificate = check_null_space(oracle, found.span, n, rng, noise, leak, words)
        except LimitReachedError as error:
            evidence = (*found.notes, str(error))
            return replace(recovery, status=Status.BUDGET_EXHAUSTED, evidence=evidence)
        if certificate is None:
            return replace(recovery, status=Status.BUDGET_EXHAUSTED)
        passed = certificate.passed and angle < self.largest_angle
        more = () if found.span.rank else (_DEAD,)
        if certificate.passed and not passed:
            more = (*more, _TOO_COARSE.format(angle=angle, limit=self.largest_angle))
        elif not passed and angle > self.coarse_angle:
            more = (*more, _COARSE.format(angle=angle))
        return replace(
            recovery,
            status=Status.RECOVERED if passed else Status.UNVERIFIED,
            certificate=certificate,
            evidence=(*found.notes, *more),
        )

    def ended(self, found: SpanRecovery) -> SpanRecovery:
        """Attach the final ledger and advice."""
        certified, said = found.status is Status.RECOVERED, []
        if not certified and found.span.rank:
            known = int((found.span.errors <= self.largest_angle).sum())
            said.append(_KNOWN.format(known=known, rank=found.span.rank, limit=self.largest_angle))
        has_passed = found.certificate is not None and found.certificate.passed
        is_by_batch = found.answers is not None and found.answers["law"] == BY_BATCH
        if found.status in _ADVICE and not (has_passed or self.oracle.was_ended or is_by_batch):
            said.append(_ADVICE[found.status])
            if found.status is Status.UNVERIFIED:
                # From labels, and from numbers with all their digits, what is found is by chance.
                law = "labels" if found.answers is None else found.answers["law"]
                is_chance = law in {"labels", "float64"}
                said.append(_ANOTHER_SEED if is_chance else _MORE_DIGITS)
        return self.finished(replace(found, span=replace(found.span, certified=certified)), *said)

    def _nothing(self, refused: Refusal) -> SpanRecovery:
        return SpanRecovery(
            refused.status,
            Span(np.empty((0, self.oracle.dim_in))),
            ledger=self.oracle.ledger(),
            evidence=(refused.reason,),
            saturated=refused.saturated,
            answers=refused.answers,
        )


_FULL = (
    "the first layer looks at every direction of its input (full rank): there is no null "
    "space, and nothing can be hidden from it"
)
_COARSE = (
    "the directions found are off by about {angle:.1g} rad, and fresh moves as long as an input "
    "show that much: answers of more digits, or computed in float64, would tell them better"
)
_TOO_COARSE = (
    "no fresh move shows that a direction is missing, but those found are off by about "
    "{angle:.1g} rad, more than {limit:g}: answers of few digits, and labels computed in float32, "
    "tell no better, and of many directions the last ones add up the errors of all"
)
_KNOWN = (
    "by their own errors {known} of these {rank} directions are known to {limit:g} rad; the span "
    "is marked as not certified, with the error of each"
)
_PERHAPS_LABELS = "if the answers are labels, say so: --labels (labels=True)"
_DEAD = (
    "no answer changes at any input asked: the target is constant, or dead there; a domain "
    "(--like DATA) says where it is alive"
)
_PROMISE = (
    "of {rank} found: half of a ReLU network's are sure to be found, so it may have up to "
    "{most} where narrow layers hide them"
)
_STATUS = {
    Why.EXPLAINED: Status.UNVERIFIED,
    Why.UNRESOLVED: Status.PARTIAL,
    Why.REFUTED: Status.NOT_DETERMINISTIC,
    Why.LIMIT: Status.BUDGET_EXHAUSTED,
}
_ANOTHER_SEED = "another seed may help"
_MORE_DIGITS = "answers of more digits tell more"
_ADVICE = {
    Status.UNVERIFIED: "fresh moves inside the null space change answers: directions are missing",
    Status.PARTIAL: "what was found is not certified",
    Status.BUDGET_EXHAUSTED: "raise the budget or the time allowed",
    Status.NOT_DETERMINISTIC: "remove the randomness: labels and digits must repeat",
}


def _as_labels(Y: FloatArray, name: str) -> FloatArray:
    """Labels (n, 1): the largest of several answers, or the answer itself."""
    if Y.shape[1] > 1:
        return np.asarray(Y.argmax(axis=1).astype(np.float64)[:, None])
    if not np.array_equal(Y, np.rint(Y)):
        raise InputError(f"{name} answers one number that is no label: leave labels out")
    return Y
