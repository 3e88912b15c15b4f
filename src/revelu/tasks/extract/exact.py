"""Exact extraction: one hidden layer, or more where hyperplanes end; verified, repaired."""

import logging
from dataclasses import replace
from functools import partial

import numpy as np

from revelu.certify import Examination
from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network
from revelu.numerics.subset_sum import MAX_BITS
from revelu.oracle import NoiseFloor
from revelu.probe.hyperplane import kink_strengths, points_on_hyperplanes
from revelu.recover.close.near_duplicates import AnyTwoLayer, recover_any_two_layer
from revelu.recover.deep.narrow import ThreeLayers, search_three_layers
from revelu.recover.line import Peeling
from revelu.recover.shallow.boxed import Boxed, search_box
from revelu.recover.shallow.one_hidden import first_line, recover_rest, recover_two_layer
from revelu.recover.signs import QUICK_BITS, resolve_signs
from revelu.recovery import Recovery, Status
from revelu.tasks.extract.deep import extract_deep
from revelu.tasks.extract.job import Job, network_of
from revelu.tasks.extract.l2_bound import with_l2_bound
from revelu.types import FloatArray

log = logging.getLogger(__name__)

# Lines tried on what a network of one hidden layer leaves unexplained; and repairs of a
# restricted search, each of which adds what fired at the points found wrong.
_MAX_REPAIRS = 4
_MAX_GROWTHS = 12

# Wrong points that one repair looks at.
_MAX_WRONG = 16

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

# How two hidden layers end where there may be more.
_DEEPER = (Status.PARTIAL, Status.NOT_IN_CLASS, Status.UNVERIFIED)

_FALL_OVER = {
    Status.UNVERIFIED: "fresh queries disagree with what the exact method found, where kinks were "
    "too near each other or not seen at all",
    Status.PARTIAL: "the exact method found kinks that it could not separate",
}


def extract_exactly(job: Job, noise: NoiseFloor, method: str, phase: str) -> Recovery:
    """One recovery from a fresh line, verified and repaired.

    Parameters
    ----------
    job : Job
    noise : NoiseFloor
    method : {"auto", "two_layer", "three_layer", "any_two_layer", "deep"}
        ``auto`` takes neurons that the exact method cannot tell apart under a magnifying
        glass, and looks for a second hidden layer where hyperplanes end or bend.
    phase : str
        What the queries of the recovery are booked under.
    """
    job.tell("finding kinks and neurons")
    oracle = job.oracle
    if method == "any_two_layer":
        return _any_two_layers(job, noise, phase)
    if method == "deep":
        return extract_deep(job, noise, phase)
    try:
        with oracle.phase(phase):
            line = first_line(oracle, noise, np.random.default_rng(job.new_seed()))
    except LimitReachedError as error:
        return _ended(job, Status.BUDGET_EXHAUSTED, str(error), method)
    except SaturatedError as error:
        reason = f"{error}, as on every line tried"
        return _ended(job, Status.UNVERIFIED, reason, method)
    if method == "three_layer" and len(line.scan.kinks):
        return _three_layers(job, noise, line, phase)
    recovery = _two_layers(job, noise, line, phase)
    ended = recovery.status in {Status.RECOVERED, Status.BUDGET_EXHAUSTED}
    if method == "two_layer" or ended or not line.scan.complete:
        return recovery
    spent = oracle.n_queries
    if recovery.network is not None:
        reason = (
            f"{_FALL_OVER[recovery.status]}: hence any_two_layer, which magnifies close neurons, "
            "merges what cannot be told apart and looks for bumps"
        )
        log.info("%s", reason)
        close = _any_two_layers(job, noise, "repair")
        if close.status is Status.RECOVERED:
            return replace(close, evidence=(reason, *close.evidence))
        if close.status is Status.BUDGET_EXHAUSTED:
            return replace(recovery, status=close.status, evidence=(reason, *close.evidence))
    log.info("not one hidden layer: %s", "; ".join(recovery.evidence))
    deep = _three_layers(job, noise, line, "recover")
    if deep.status in _DEEPER:
        deeper = extract_deep(job, noise, "recover")
        if deeper.status is Status.NOT_IN_CLASS:
            return replace(deeper, network=None)
        if deeper.status is Status.BUDGET_EXHAUSTED or _agreement(deeper) > _agreement(deep):
            details = {**deep.details, **deeper.details, "queries_before_depth": spent}
            return replace(deeper, details=details)
        evidence = (*deep.evidence, *deeper.evidence)
        deep = replace(deep, evidence=evidence, details={**deep.details, **deeper.details})
    if deep.network is None and deep.status is not Status.BUDGET_EXHAUSTED:
        # A first layer is worth having, more than a network that is none.
        only_first = recovery.network is None and deep.status is Status.PARTIAL
        kept = deep if only_first else recovery
        evidence = (*recovery.evidence, *deep.evidence)
        return replace(kept, evidence=evidence, details=deep.details)
    return replace(deep, details={**deep.details, "queries_before_depth": spent})


def _two_layers(job: Job, noise: NoiseFloor, line: Peeling, phase: str) -> Recovery:
    """One hidden layer; ``NOT_IN_CLASS`` where hyperplanes end or bend."""
    with job.oracle.phase(phase):
        recovery = recover_two_layer(job.oracle, noise, job.new_seed(), line)
    if recovery.network is None or recovery.status is Status.BUDGET_EXHAUSTED:
        return recovery
    for repair in range(_MAX_REPAIRS + 1):
        recovery, seen = job.verify(recovery, noise)
        if recovery.status is not Status.UNVERIFIED or seen is None or repair == _MAX_REPAIRS:
            break
        try:
            if repair == 0 and (reason := _bent(job, network_of(recovery), noise)):
                return replace(
                    recovery,
                    status=Status.NOT_IN_CLASS,
                    network=None,
                    certificate=None,
                    evidence=(reason,),
                )
            recovery = _repaired(job, recovery, noise, seen)
        except LimitReachedError as error:
            evidence = (*recovery.evidence, str(error))
            return replace(recovery, status=Status.BUDGET_EXHAUSTED, evidence=evidence)
    return recovery


def _any_two_layers(job: Job, noise: NoiseFloor, phase: str) -> Recovery:
    """One hidden layer whose neurons may be close, or cancel."""
    job.tell("recovering close neurons and bumps")
    with job.oracle.phase(phase):
        recovery, search = recover_any_two_layer(job.oracle, noise, job.new_seed())
    return _grown(job, noise, recovery, search)


def _three_layers(job: Job, noise: NoiseFloor, line: Peeling, phase: str) -> Recovery:
    """Two hidden layers, grown where fresh queries find them wrong."""
    job.tell("recovering two hidden layers")
    with job.oracle.phase(phase):
        recovery, layers = search_three_layers(job.oracle, noise, job.new_seed(), line)
    return _grown(job, noise, recovery, layers)


def extract_in_box(job: Job, noise: NoiseFloor, phase: str) -> Recovery:
    """One recovery of a two-layer network from queries in a box, verified and repaired."""
    job.tell("finding neurons inside the box")
    with job.oracle.phase(phase):
        recovery, boxed = search_box(job.oracle, noise, job.new_seed())
    return _grown(job, noise, recovery, boxed)


def _grown(
    job: Job,
    noise: NoiseFloor,
    recovery: Recovery,
    search: ThreeLayers | Boxed | AnyTwoLayer | None,
) -> Recovery:
    """Verify what was recovered, and go on where fresh queries find it wrong."""
    for repair in range(_MAX_GROWTHS + 1):
        if search is None or recovery.network is None:
            break
        if recovery.status is Status.BUDGET_EXHAUSTED:
            break
        is_partial = recovery.status is Status.PARTIAL
        recovery, seen = job.verify(recovery, noise)
        if seen is not None and isinstance(search, AnyTwoLayer):
            recovery = with_l2_bound(recovery, seen)
        if is_partial and recovery.status is Status.UNVERIFIED:
            recovery = replace(recovery, status=Status.PARTIAL)
        is_whole = recovery.status is Status.RECOVERED
        if is_partial and is_whole and not isinstance(search, AnyTwoLayer):
            if (search.search.apart() > _tolerance(recovery)).any():
                return replace(recovery, status=Status.PARTIAL)
            # What was left is less than the certificate allows.
            recovery = replace(recovery, evidence=tuple(search.sign_notes))
        if recovery.status is not Status.UNVERIFIED or seen is None or repair == _MAX_GROWTHS:
            break
        job.tell("looking for neurons that fire where the network was wrong")
        with job.oracle.phase("repair"):
            if isinstance(search, AnyTwoLayer):
                recovery = search.repair(_wrong_points(seen), partial(_explains, seen))
            else:
                recovery = search.repair(_wrong_points(seen))
    return recovery


def _explains(seen: Examination, network: Network) -> bool:
    """Whether a network agrees at all that was asked of another one."""
    return seen.by(network).passed


def _agreement(recovery: Recovery) -> float:
    """At which share of the inputs a network agrees; a certified one agrees most."""
    if recovery.network is None or recovery.certificate is None:
        return -1.0
    return recovery.certificate.fraction_within + (recovery.status is Status.RECOVERED)


def _tolerance(recovery: Recovery) -> float:
    return 0.0 if recovery.certificate is None else recovery.certificate.tolerance


def _wrong_points(seen: Examination) -> FloatArray:
    wrong = np.nan_to_num(seen.ratio, nan=0.0) > 1.0
    gaussian = wrong & seen.is_drawn
    return np.asarray(seen.X[gaussian if gaussian.any() else wrong][:_MAX_WRONG])


def _repaired(job: Job, recovery: Recovery, noise: NoiseFloor, seen: Examination) -> Recovery:
    """Look for what is missing, on a line through a point that is wrong."""
    job.tell("looking for missing neurons")
    bad = seen.worst_point
    with job.oracle.phase("repair"):
        network, _ = recover_rest(job.oracle, network_of(recovery), noise, job.rng, bad)
    max_bits = MAX_BITS if _explains(seen, network) else QUICK_BITS
    network, notes = resolve_signs(network, noise.half_digits, max_bits=max_bits)
    log.info("repair: %s", network)
    return replace(recovery, network=network, evidence=tuple(notes))


def _bent(job: Job, network: Network, noise: NoiseFloor) -> str | None:
    """Evidence that hyperplanes end or bend, as those of deeper networks do."""
    W, b = network.weights[0], network.biases[0]
    error = noise.nu * noise.scale
    blurred = (error > _BLUR * noise.spread) & (noise.spread > 0)
    if not len(W) or blurred.any():
        return None
    chosen = job.rng.permutation(len(W))[:_MAX_STRENGTH_TESTS]
    X, normals = points_on_hyperplanes(job.rng, W[chosen], b[chosen])
    step = 1e-3 * np.maximum(np.linalg.norm(X, axis=1), 1.0)
    job.tell("testing whether hyperplanes bend")
    with job.oracle.phase("repair"):
        found = kink_strengths(job.oracle, X, normals, step)
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


def _ended(job: Job, status: Status, reason: str, method: str) -> Recovery:
    method = "two_layer" if method == "auto" else method
    return Recovery(status, None, ledger=job.oracle.ledger(), evidence=(reason,), method=method)
