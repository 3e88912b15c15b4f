"""Extract: recover the network behind a target, verify it, repair what is missing."""

import logging
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from revelu.adapters import open_oracle
from revelu.errors import InputError, LimitReachedError, SaturatedError
from revelu.network import Network
from revelu.oracle import NoiseFloor, Oracle, measure_noise, whole_number
from revelu.probe.hyperplane import kink_strengths, points_on_hyperplanes
from revelu.recover.least_squares import recover_by_least_squares
from revelu.recover.signs import resolve_signs
from revelu.recover.two_layer import recover_rest, recover_two_layer
from revelu.recovery import Recovery, Status
from revelu.tasks.precision import has_all_digits, refusal, without_invention
from revelu.tasks.progress import Listener, Progress
from revelu.verify import Examination, certify, examine

log = logging.getLogger(__name__)

METHODS = ("auto", "two_layer", "least_squares")

# The extractor's random choices must not be those that drew the target, should both
# be given the same small seed: this number keeps the two streams apart.
_STREAM = 0x7265_7665_6C75

# A first look with a part of the checks: a wrong network fails it, cheaply.
_FIRST_CHECKS = 256

# Fewer checks than this cannot say "less than 5% at 95% confidence": what a budget cuts
# to so few is not called recovered.
_FEWEST_CHECKS = 59

# Lines tried on what a network leaves unexplained, and fresh starts after that.
_MAX_REPAIRS = 4
_MAX_STARTS = 3

# Fits from fresh answers; each has searched until its answers were explained.
_MAX_FITS = 2

# Jacobians are taken in a basis of d x d numbers.
_MOST_INPUTS = 16_384

# A kink whose strength is off by more than this share is not the predicted one, and
# more such kinks than this fraction are not a few corrupted neurons.
_STRENGTH_RTOL = 0.1
_BENT_FRACTION = 0.5
_MAX_STRENGTH_TESTS = 64
_FEWEST_TESTS = 3
# Neurons fainter than this share of the strongest, and outputs whose error is more than
# this share of their variation, are too blurred to say anything.
_FAINT = 1e-3
_BLUR = 1e-10


def extract(
    target: Any,
    method: str = "auto",
    budget: int | None = None,
    seed: int = 0,
    polish: bool = False,
    box: tuple[float, float] | None = None,
    inputs: Any = None,
    checks: int = 3000,
    executor: Executor | None = None,
    progress: Listener | None = None,
    *,
    dim_in: int | None = None,
    trust: bool = False,
    max_seconds: float | None = None,
) -> Recovery:
    """Recover the ReLU network behind a black box, by queries alone.

    Parameters
    ----------
    target : Oracle, Network, callable or str
        What to ask; see :func:`revelu.open_oracle`.
    method : {"auto", "two_layer", "least_squares"}
        ``two_layer`` is exact and needs the digits of float64; ``least_squares`` takes
        float32, rounded and noisy answers.  ``auto`` chooses by the noise measured.
    budget : int, optional
        Most queries that may be asked, all phases counted; never one over.
    seed : int
        Decides every random choice: same seed, same queries, same result.
    polish, box, inputs
        Not supported by this version; refused if given.
    checks : int
        Size of the certificate.
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
    Recovery
        A target that cannot be recovered is a status, not an exception.

    Raises
    ------
    InputError
        If an argument makes no sense or the target cannot be opened.
    TargetError
        If the target fails or answers nonsense.

    Examples
    --------
    >>> import revelu
    >>> recovery = revelu.extract(revelu.zoo.random_network([5, 4, 1], seed=1))
    >>> recovery.status.value, recovery.network.architecture
    ('recovered', (5, 4, 1))
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
    checks = whole_number("checks", checks, 1)
    seed = whole_number("seed", seed, 0)
    refused = {"polish": None if polish is False else polish, "box": box, "inputs": inputs}
    for name in (name for name, value in refused.items() if value is not None):
        raise InputError(f"{name} is not supported by this version")
    oracle = open_oracle(
        target,
        dim_in=dim_in,
        budget=budget,
        trust=trust,
        executor=executor,
        max_seconds=max_seconds,
    )
    if oracle.dim_in > _MOST_INPUTS:
        raise InputError(f"{oracle.dim_in:,} inputs; this version takes {_MOST_INPUTS:,} at most")
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be callable, got {type(progress).__name__}")
    if oracle.box is not None:
        raise InputError("recovery inside a box is not supported by this version")
    return _Extraction(oracle, method, checks, seed, progress).run()


class _Extraction:
    """One extraction: recover, verify, repair, until it passes or gives up."""

    def __init__(
        self, oracle: Oracle, method: str, checks: int, seed: int, progress: Listener | None
    ) -> None:
        self.oracle, self.method, self.checks = oracle, method, checks
        self.progress = progress
        self.seeds = np.random.SeedSequence([_STREAM, seed])
        self.rng = np.random.default_rng(self.seeds.spawn(1)[0])
        self.message = ""
        oracle.listener = self._listen

    def run(self) -> Recovery:
        """Run to the end, whatever it is; a spent budget keeps what was found."""
        best = Recovery(Status.UNVERIFIED, None, self.oracle.ledger(), method=self.method)
        try:
            self._tell("measuring the noise floor")
            noise = measure_noise(self.oracle, self.seeds.spawn(1)[0])
        except LimitReachedError as error:
            return self._finish(
                replace(best, status=Status.BUDGET_EXHAUSTED, evidence=(str(error),))
            )
        except SaturatedError as error:
            return self._finish(replace(best, evidence=(str(error),)))
        log.info("noise floor: %s, %.2g relative", noise.law, noise.nu.max())
        refused = refusal(noise)
        if refused is not None:
            status, reason = refused
            return self._finish(replace(best, status=status, evidence=(reason,)))
        if self.method == "auto":
            self.method = "two_layer" if has_all_digits(noise) else "least_squares"
        exact = self.method == "two_layer"
        attempt = self._exact_attempt if exact else self._fitted_attempt
        for start in range(_MAX_STARTS if exact else _MAX_FITS):
            recovery = attempt(noise, phase="recover" if start == 0 else "repair")
            best = _better(best, recovery)
            if recovery.status is not Status.UNVERIFIED and recovery.status is not Status.PARTIAL:
                break
            log.info("start %d: %s; starting afresh", start + 1, recovery.status.value)
        return self._finish(without_invention(best, noise))

    def _fitted_attempt(self, noise: NoiseFloor, phase: str) -> Recovery:
        """One recovery by least squares, verified."""
        with self.oracle.phase(phase):
            recovery = recover_by_least_squares(
                self.oracle, noise, self.seeds.spawn(1)[0], self._tell
            )
        if recovery.network is None or recovery.status is Status.BUDGET_EXHAUSTED:
            return recovery
        return self._verify(recovery, noise)[0]

    def _exact_attempt(self, noise: NoiseFloor, phase: str) -> Recovery:
        """One recovery from a fresh line, verified and repaired."""
        self._tell("finding kinks and neurons")
        with self.oracle.phase(phase):
            recovery = recover_two_layer(self.oracle, noise, self.seeds.spawn(1)[0])
        if recovery.network is None or recovery.status is Status.BUDGET_EXHAUSTED:
            return recovery
        seen: Examination | None = None
        try:
            for repair in range(_MAX_REPAIRS + 1):
                recovery, seen = self._verify(recovery, noise)
                if recovery.status is not Status.UNVERIFIED or repair == _MAX_REPAIRS:
                    break
                if repair == 0 and (reason := self._bent(_network(recovery), noise)):
                    return replace(
                        recovery,
                        status=Status.NOT_IN_CLASS,
                        network=None,
                        certificate=None,
                        evidence=(reason,),
                    )
                recovery = self._repair(recovery, noise, seen.worst_point)
        except LimitReachedError as error:
            recovery = replace(
                recovery, status=Status.BUDGET_EXHAUSTED, evidence=(*recovery.evidence, str(error))
            )
        return recovery

    def _verify(self, recovery: Recovery, noise: NoiseFloor) -> tuple[Recovery, Examination]:
        """Certify by fresh queries; a first look decides whether all are worth asking."""
        network = _network(recovery)
        self._tell("verifying on fresh queries")
        first = min(_FIRST_CHECKS, self.checks)
        seen = examine(network, self.oracle, noise, first, self.rng)
        if seen.passed and self.checks > first:
            seen += examine(
                network, self.oracle, noise, self.checks - first, self.rng, structural=False
            )
        certificate = certify(seen, noise)
        status = Status.RECOVERED if certificate.passed else Status.UNVERIFIED
        if seen.passed and certificate.n_checks < min(_FEWEST_CHECKS, self.checks):
            # The budget left no more, or the target is saturated nearly everywhere.
            short = self.oracle.remaining == 0
            status = Status.BUDGET_EXHAUSTED if short else Status.UNVERIFIED
        return replace(recovery, status=status, certificate=certificate), seen

    def _repair(self, recovery: Recovery, noise: NoiseFloor, bad: np.ndarray[Any, Any]) -> Recovery:
        """Look for what is missing, on a line through a point that is wrong."""
        self._tell("looking for missing neurons")
        with self.oracle.phase("repair"):
            network, _ = recover_rest(self.oracle, _network(recovery), noise, self.rng, bad)
        network, notes = resolve_signs(network, noise.half_digits)
        log.info("repair: %s", network)
        return replace(recovery, network=network, evidence=tuple(notes))

    def _bent(self, network: Network, noise: NoiseFloor) -> str | None:
        """Evidence that hyperplanes end or bend, as those of deeper networks do."""
        W, b = network.weights[0], network.biases[0]
        error = noise.nu * noise.scale
        blurred = (error > _BLUR * noise.spread) & (noise.spread > 0)
        if not len(W) or blurred.any():
            return None
        chosen = self.rng.permutation(len(W))[:_MAX_STRENGTH_TESTS]
        X, normals = points_on_hyperplanes(self.rng, W[chosen], b[chosen])
        step = 1e-3 * np.maximum(np.linalg.norm(X, axis=1), 1.0)
        self._tell("testing whether hyperplanes bend")
        with self.oracle.phase("repair"):
            found = kink_strengths(self.oracle, X, normals, step)
        wanted = kink_strengths(network, X, normals, step)
        strength = np.linalg.norm(wanted, axis=1)
        apart = np.linalg.norm(found - wanted, axis=1)
        # Faint neurons drown in the errors of strong ones: they say nothing here.
        strong = np.isfinite(apart) & (strength > _FAINT * strength.max())
        # Four answers' worth of noise over the step, at eight standard errors.
        growth = np.sqrt(1.0 + (X**2).mean(axis=1))
        atol = 32.0 * float(np.linalg.norm(error)) * growth / step
        off = (apart > _STRENGTH_RTOL * strength + atol)[strong]
        if len(off) < max(_FEWEST_TESTS, len(chosen) / 2) or off.mean() <= _BENT_FRACTION:
            return None
        return (
            f"{off.sum()} of {len(off)} hyperplanes seen on a line are absent, or bend the "
            "function differently, elsewhere: the target has more than one hidden layer, or "
            "is not piecewise affine"
        )

    def _finish(self, recovery: Recovery) -> Recovery:
        """Attach the final ledger, advice and the shape of a classifier."""
        self.oracle.listener = None
        recovery = replace(recovery, ledger=self.oracle.ledger())
        if self.oracle.takes_log_ratios:
            recovery = _as_classifier(recovery)
        advice = _ADVICE.get(recovery.status)
        if advice:
            recovery = replace(recovery, evidence=(*recovery.evidence, advice))
        return recovery

    def _tell(self, message: str) -> None:
        log.debug("%s", message)
        self.message = message
        self._listen(self.oracle, self.oracle.current_phase)

    def _listen(self, oracle: Oracle, phase: str) -> None:
        if self.progress is not None:
            ledger = oracle.ledger()
            self.progress(Progress(phase, ledger.n_queries, ledger.n_rounds, self.message))


_ADVICE = {
    Status.UNVERIFIED: "fresh queries disagree with the network: do not rely on it; "
    "another seed or a larger budget may help",
    Status.PARTIAL: "some neurons are missing; another seed or a larger budget may help",
    Status.BUDGET_EXHAUSTED: "raise the budget or the time allowed",
    Status.NOT_DETERMINISTIC: "remove the randomness, or ask for more digits",
    Status.NOT_IN_CLASS: "only networks with one hidden ReLU layer are recovered",
}


def _network(recovery: Recovery) -> Network:
    if recovery.network is None:  # pragma: no cover - callers have looked
        raise AssertionError
    return recovery.network


def _better(first: Recovery, second: Recovery) -> Recovery:
    """The one to report: certified before failed, and the smaller error among failures."""
    if first.network is None or second.status in {Status.RECOVERED, Status.NOT_IN_CLASS}:
        return second
    if second.network is None:
        return replace(first, status=second.status, evidence=(*first.evidence, *second.evidence))
    if second.certificate is None:
        return first
    if first.certificate is None:
        return second
    return min(first, second, key=lambda r: -r.certificate.fraction_within if r.certificate else 0)


def _as_classifier(recovery: Recovery) -> Recovery:
    """Log-ratios against the last class are logits whose last one is 0."""
    note = "the answers are probabilities: logits are recovered up to a common shift"
    warned = replace(
        recovery,
        warnings=(*recovery.warnings, note),
        details={**recovery.details, "probabilities": True},
    )
    if recovery.network is None:
        return warned
    n = recovery.network
    skip = None
    if n.skip is not None:
        V, c = n.skip
        skip = (np.vstack([V, np.zeros((1, V.shape[1]))]), np.append(c, 0.0))
    A = np.vstack([n.weights[-1], np.zeros((1, n.weights[-1].shape[1]))])
    network = Network(
        [*n.weights[:-1], A], [*n.biases[:-1], np.append(n.biases[-1], 0.0)], skip=skip
    )
    return replace(warned, network=network)
