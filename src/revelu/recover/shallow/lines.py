"""Lines of a two-layer network: one to begin with, and more for what is unexplained."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network, add_networks, simplify
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.answered import Answered
from revelu.probe.answered import reach as answered_reach
from revelu.probe.kinks import find_kinks
from revelu.probe.line import Line, random_line
from revelu.probe.residual import Residual
from revelu.probe.scan import LineScan
from revelu.recover.line import Peeling
from revelu.recover.method import Candidate, Why
from revelu.recover.shallow.line_neurons import peel
from revelu.types import FloatArray

__all__ = ["add_line", "ended", "first_line", "reach", "scan_line"]


def ended(scan: LineScan) -> Candidate:
    """Say why the search along a line has not ended in affine pieces."""
    why = Why.DISCONTINUOUS if scan.is_torn else Why.SATURATED if scan.ran_out else Why.CURVED
    why = Why.CONTRADICTED if scan.contradicts else why
    return Candidate(None, why, obstacles=(scan.message,))


def first_line(
    oracle: Oracle,
    noise: NoiseFloor,
    rng: np.random.Generator,
    *,
    max_lines: int = 4,
    thinned: Callable[[LineScan], LineScan] | None = None,
) -> Peeling:
    """Peel a line; another one where the target is saturated on it.

    Parameters
    ----------
    max_lines : int
        Lines tried.
    thinned : callable, optional
        What of a complete scan is peeled.

    Raises
    ------
    LimitReachedError
        If the budget ends first.
    SaturatedError
        If the target is saturated on every line tried.
    """
    for left in reversed(range(max_lines)):
        try:
            scan = scan_line(oracle, noise, rng)
            scan = thinned(scan) if thinned and scan.complete else scan
            return peel(oracle, scan, float(noise.nu.max()), rng)
        except SaturatedError as error:
            if not left:
                raise SaturatedError(f"{error}, as on every line tried") from error
    raise AssertionError  # pragma: no cover - the last line returns or raises


def scan_line(
    oracle: Oracle,
    noise: NoiseFloor,
    rng: np.random.Generator,
    *,
    many_inputs: int = 500,
    few_outputs: int = 3,
) -> LineScan:
    """Find the kinks of a line, or of the less crowded of two.

    A narrow piece makes an imprecise Jacobian.  With few outputs every piece is needed,
    and where the inputs are many another line costs next to nothing: 5 queries a kink,
    against d for its neuron.

    Parameters
    ----------
    many_inputs : int
        From ``many_inputs`` inputs a second line costs a hundredth of the Jacobians, or less.
    few_outputs : int
        Up to ``few_outputs`` outputs no piece can be left unmeasured.

    Raises
    ------
    LimitReachedError
        If the budget ends before the first line is understood.
    SaturatedError
        If the target is saturated on it.
    """
    first = _scan_random_line(oracle, noise, rng)
    if not first.complete:
        return first
    gaps = first.half_gaps()
    # Of m + 1 random gaps the smallest is about the mean over m + 1; four lines in ten
    # are worse than half of that.
    crowded = gaps.min() < 0.5 * gaps.mean() / len(gaps)
    if not (crowded and oracle.dim_in >= many_inputs and oracle.dim_out <= few_outputs):
        return first
    try:
        second = _scan_random_line(oracle, noise, rng)
    except LimitReachedError:
        return first
    better = second.complete and second.half_gaps().min() > gaps.min()
    return second if better else first


def _scan_random_line(oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator) -> LineScan:
    if oracle.link.saturates:
        line = Answered(oracle).line(rng, oracle.dim_in)
    else:
        line = random_line(rng, oracle.dim_in)
    interval = reach(oracle, line)
    scan = find_kinks(oracle, line, float(noise.nu.max()), noise.scale, rng, interval)
    return scan.without_faint_kinks(noise.faint_slope)


def add_line(
    oracle: Oracle,
    network: Network,
    noise: NoiseFloor,
    rng: np.random.Generator,
    through: FloatArray | None = None,
    *,
    split_clusters: bool = True,
    n_trial_points: int = 8,
) -> tuple[Network, int]:
    """Add the neurons that a line shows in what a network leaves unexplained.

    Parameters
    ----------
    network : Network
        What is known, with its skip.
    through : ndarray, shape (d,), optional
        A point where the network is wrong.
    split_clusters : bool
        Leave kinks that are too near each other to another line; else each cluster
        becomes one neuron, which is right but for the cluster's width.
    n_trial_points : int
        Fresh points that judge whether the neurons made matters worse.

    Returns
    -------
    network : Network
        With the neurons found, coincident ones merged.
    n_unresolved : int
        Kinks seen whose neurons were not recovered.
    """
    line = random_line(rng, oracle.dim_in, through)
    # The known part errs by more than the noise floor: what is fainter than that is its
    # errors, not neurons.  Within a piece its error is affine, so that Jacobians suffer
    # from the answers' noise alone.
    answer_nu = float(noise.nu.max())
    target, aimed = Residual(oracle, network), through is not None
    nu, interval = max(noise.faint, answer_nu), reach(oracle, line)
    if interval[0] == interval[1]:
        return network, 1  # the target is saturated there
    try:
        scan = find_kinks(target, line, nu, noise.scale, rng, interval, through=aimed)
        scan = scan.without_faint_kinks(noise.faint_slope)
        if not split_clusters:
            scan = replace(scan, is_single=np.ones_like(scan.is_single))
        peeled = peel(target, scan, answer_nu, rng)
    except SaturatedError:
        return network, 1
    if not peeled.scan.complete:
        return network, 1
    merged = with_more(network, peeled.network, noise)
    X = rng.standard_normal((n_trial_points, oracle.dim_in))
    X = X if through is None else np.vstack([X, through])
    if _is_worse(merged, network, X, oracle(X), noise):
        return network, max(peeled.n_unresolved, 1)
    return merged, peeled.n_unresolved


def with_more(known: Network, more: Network, noise: NoiseFloor, *, share: float = 0.1) -> Network:
    """Add neurons, those on known hyperplanes to the neurons there.

    Parameters
    ----------
    share : float
        Of half of the digits, which rows are told to, by how much those of one neuron differ.
    """
    return simplify(add_networks(known, more), rtol=share * noise.half_digits)


def _is_worse(new: Network, old: Network, X: FloatArray, Y: FloatArray, noise: NoiseFloor) -> bool:
    """Whether answers speak against a new network."""
    seen = np.isfinite(Y).all(axis=1)
    worst_new, worst_old = (
        np.abs(network(X[seen]) - Y[seen]).max(initial=0.0) for network in (new, old)
    )
    return bool(worst_new > 2.0 * worst_old + noise.half_digits * float(noise.scale.max()))


def reach(oracle: Oracle, line: Line) -> tuple[float, float]:
    """How far along a line the target answers, each way: for ever, but for log-ratios."""
    return answered_reach(oracle, line) if oracle.link.saturates else (-np.inf, np.inf)
