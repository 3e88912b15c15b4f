"""Span: the directions of the input that a target looks at, from numbers or labels."""

import logging
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from revelu.adapters import open_oracle
from revelu.certify.null_space import check_null_space
from revelu.errors import InputError, LimitReachedError, SaturatedError
from revelu.network.span import Span
from revelu.oracle import NoiseFloor, Oracle, measure_noise, whole_number
from revelu.oracle.sentinels import Sentinels
from revelu.recover.span.adaptive import recover_span as recover_by_gradients
from revelu.recover.span.averaged import recover_noisy_span
from revelu.recover.span.labels import recover_label_span
from revelu.recover.span.one_round import recover_span_at_once
from revelu.recovery import SpanRecovery, Status
from revelu.tasks.extract.precision import refusal
from revelu.tasks.progress import Listener, Progress
from revelu.types import FloatArray

log = logging.getLogger(__name__)

METHODS = ("auto", "at_once")

# Keeps the random choices apart from those that drew the target with the same seed.
_STREAM = 0x7370_616E

# Bases are dense: n x n numbers.
_MOST_INPUTS = 4_096

# Half of the places curving is a smooth function; a quarter may be kinks.
_CURVED = 0.5

# Spans farther off than this may fail their certificate by their own error; farther off than
# that, in radians, a span is no longer recovered, whatever its certificate.
_COARSE_ANGLE, _LARGEST_ANGLE = 1e-5, 0.01

# An oracle inside an oracle cuts the batches.
_WHOLE = 2**62


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
) -> SpanRecovery:
    """Recover the row span of the first layer of a network of any depth and activation.

    Parameters
    ----------
    target : Oracle, Network, callable or str
        What to ask; see :func:`revelu.open_oracle`.
    labels : bool
        Use class labels alone: of several answers the largest; a single one must be a label.
    seed : int
        Decides every random choice: same seed, same queries, same result.
    budget : int, optional
        Most queries that may be asked, all phases counted; never one over.
    method : {"auto", "at_once"}
        ``at_once`` decides all queries in advance, one round (JWZ20, Algorithm 1), for a
        first layer of ``neurons``; ``auto`` goes point by point and asks far less.
    neurons : int, optional
        Width of the first layer, or more; ``at_once`` alone needs it.
    checks : int
        Fresh inputs that are moved inside the null space, two queries each.
    executor : concurrent.futures.Executor, optional
        Where batches of queries run.
    progress : callable, optional
        Called with a :class:`revelu.tasks.progress.Progress` after every batch.
    dim_in : int, optional
        Number of inputs, where the target does not say.
    trust : bool
        Allow a target whose opening executes code.
    max_seconds : float, optional
        No batch is begun later than this after the first.

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
    oracle = open_oracle(
        target,
        dim_in=dim_in,
        budget=budget,
        trust=trust,
        executor=executor,
        max_seconds=max_seconds,
    )
    if oracle.box is not None:
        raise InputError("span recovery asks everywhere; inside a box it is not supported")
    if oracle.dim_in > _MOST_INPUTS:
        raise InputError(f"{oracle.dim_in:,} inputs; this version takes {_MOST_INPUTS:,} at most")
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be callable, got {type(progress).__name__}")
    checks, seed = whole_number("checks", checks, 1), whole_number("seed", seed, 0)
    oracle.declare(command="span", seed=seed)
    job = _Job(oracle, checks, seed, progress)
    found = job.from_labels() if labels else job.from_numbers(method, neurons)
    return job.finished(found)


@dataclass
class _Job:
    """A recovery under way."""

    oracle: Oracle
    checks: int
    seed: int
    progress: Listener | None
    message: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.seeds = np.random.SeedSequence([_STREAM, self.seed]).spawn(3)
        self.oracle.listener = self._listen

    def from_labels(self) -> SpanRecovery:
        """Algorithm 2, then fresh moves that must change no label."""

        def ask(X: FloatArray) -> FloatArray:
            return _as_labels(self.oracle(X), self.oracle.name)

        def watch(X: FloatArray, labels: FloatArray) -> None:
            Y = labels[:, None]
            view = partial(_as_labels, name=self.oracle.name)
            self.oracle.watch(Sentinels(X, Y, np.zeros(Y.shape), view))

        outer = Oracle(ask, self.oracle.dim_in, name=self.oracle.name, batch_rows=_WHOLE)
        found = recover_label_span(outer, self.seeds[1], tell=self._tell, watch=watch)
        outer.budget = None if self.oracle.remaining is None else self.oracle.remaining
        with self.oracle.phase("verify"):
            return self._verified(outer, found, None)

    def from_numbers(self, method: str, neurons: int | None) -> SpanRecovery:
        """Algorithm 1, by the way that the noise allows, then fresh moves."""
        self._tell("measuring the noise floor")
        try:
            noise = measure_noise(self.oracle, self.seeds[0])
        except LimitReachedError as error:
            return self._nothing(Status.BUDGET_EXHAUSTED, str(error))
        except SaturatedError as error:
            return self._nothing(Status.UNVERIFIED, str(error))
        # Smooth functions are welcome here.
        smooth = noise.curved >= _CURVED
        refused = refusal(replace(noise, curved=0.0))
        if refused is not None:
            return self._nothing(*refused)
        seed = self.seeds[1]
        if method == "at_once" and neurons is not None:
            found = recover_span_at_once(self.oracle, noise, seed, neurons, smooth=smooth)
        elif noise.is_exact:
            found = recover_by_gradients(self.oracle, noise, seed, smooth=smooth, tell=self._tell)
        else:
            found = recover_noisy_span(self.oracle, noise, seed, smooth=smooth, tell=self._tell)
        if found.status is Status.PARTIAL and not found.span.rank:
            found = replace(found, evidence=(*found.evidence, _PERHAPS_LABELS))
        return self._verified(self.oracle, _with_guarantee(found, smooth=smooth), noise)

    def _verified(
        self, oracle: Oracle, found: SpanRecovery, noise: NoiseFloor | None
    ) -> SpanRecovery:
        """Attach a certificate; a span that is all of the input needs none."""
        if found.status is not Status.UNVERIFIED:
            return found
        if found.span.rank == found.span.dim_in:
            return replace(found, status=Status.RECOVERED, evidence=(*found.evidence, _FULL))
        self._tell("moving fresh inputs inside the null space")
        rng = np.random.default_rng(self.seeds[2])
        angle = float(found.details.get("expected_angle", 0.0))
        # Of a weak direction that is far off a function sees as little as of the others.
        leak = float(found.details.get("leak", angle))
        try:
            certificate = check_null_space(oracle, found.span, self.checks, rng, noise, leak)
        except LimitReachedError as error:
            evidence = (*found.evidence, str(error))
            return replace(found, status=Status.BUDGET_EXHAUSTED, evidence=evidence)
        if certificate is None:
            return replace(found, status=Status.BUDGET_EXHAUSTED)
        passed = certificate.passed and angle < _LARGEST_ANGLE
        status = Status.RECOVERED if passed else Status.UNVERIFIED
        more = () if found.span.rank else (_DEAD,)
        if certificate.passed and not passed:
            more = (*more, _TOO_COARSE.format(angle=angle, limit=_LARGEST_ANGLE))
        elif not passed and angle > _COARSE_ANGLE:
            more = (*more, _COARSE.format(angle=angle))
        evidence = (*found.evidence, *more)
        return replace(found, status=status, certificate=certificate, evidence=evidence)

    def finished(self, found: SpanRecovery) -> SpanRecovery:
        """Attach the final ledger and advice."""
        self.oracle.check_unchanged()
        self.oracle.listener = None
        advice = _ADVICE.get(found.status)
        if found.certificate is not None and found.certificate.passed:
            advice = None
        certified = found.status is Status.RECOVERED
        if not certified and found.span.rank:
            known = int((found.span.errors <= _LARGEST_ANGLE).sum())
            found = replace(
                found,
                evidence=(
                    *found.evidence,
                    _KNOWN.format(known=known, rank=found.span.rank, limit=_LARGEST_ANGLE),
                ),
            )
        journal = self.oracle.journal
        return replace(
            found,
            warnings=(*found.warnings, *(journal.notes() if journal is not None else ())),
            span=replace(found.span, certified=certified),
            ledger=self.oracle.ledger(),
            evidence=(*found.evidence, *((advice,) if advice else ())),
        )

    def _nothing(self, status: Status, reason: str) -> SpanRecovery:
        span = Span(np.empty((0, self.oracle.dim_in)))
        return SpanRecovery(status, span, ledger=self.oracle.ledger(), evidence=(reason,))

    def _tell(self, message: str) -> None:
        log.debug("%s", message)
        self.message = message
        self._listen(self.oracle, self.oracle.current_phase)

    def _listen(self, oracle: Oracle, phase: str) -> None:
        if self.progress is not None:
            ledger = oracle.ledger()
            self.progress(Progress(phase, ledger.n_queries, ledger.n_rounds, self.message))


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
    "no answer changes anywhere on N(0, I): the target is constant, or dead there; scale or "
    "shift its inputs to where it is alive"
)
_ADVICE = {
    Status.UNVERIFIED: "fresh moves inside the null space change answers: directions are "
    "missing; another seed, more checks or answers of more digits may help",
    Status.PARTIAL: "what was found is not certified",
    Status.BUDGET_EXHAUSTED: "raise the budget or the time allowed",
    Status.NOT_DETERMINISTIC: "remove the randomness: labels and digits must repeat",
}


def _with_guarantee(found: SpanRecovery, *, smooth: bool) -> SpanRecovery:
    """Say what Theorem 3.4 promises of a ReLU network."""
    if smooth or not 0 < found.span.rank < found.span.dim_in:
        return found
    text = (
        f"{found.span.rank} directions; Theorem 3.4 promises half of a ReLU network's, so it "
        f"may have up to {2 * found.span.rank} where narrow layers hide them"
    )
    return replace(found, evidence=(*found.evidence, text))


def _as_labels(Y: FloatArray, name: str) -> FloatArray:
    """Labels (n, 1): the largest of several answers, or the answer itself."""
    if Y.shape[1] > 1:
        return np.asarray(Y.argmax(axis=1).astype(np.float64)[:, None])
    if not np.array_equal(Y, np.rint(Y)):
        raise InputError(f"{name} answers one number that is no label: leave labels out")
    return Y
