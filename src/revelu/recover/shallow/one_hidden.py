"""Exact recovery of a two-layer network from queries (DG21, Algorithm 6).

    f(x) = A relu(W x + b) + V x + c

The paper's steps, in batched rounds and with every output used: the kinks of one
line (Algorithm 1), the affine maps of its pieces (Algorithm 2), each neuron from the
change between two pieces (Algorithms 3 and 4), the affine rest (line 6).  Beyond the
paper: pieces shared by neighbouring neurons, several neurons from one difference
where there are several outputs, coordinates that a neighbour's kink corrupted asked
again, kinks too near each other recovered on another line, and the signs of the
hidden layer wherever a vanishing rest determines them.
"""

from dataclasses import replace

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network, add_networks, simplify
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.hyperplane import bend_everywhere
from revelu.probe.kinks import OUT_OF_ROUNDS, find_kinks
from revelu.probe.line import Line, random_line
from revelu.probe.residual import Residual
from revelu.probe.scan import LineScan
from revelu.recover.line import Peeling
from revelu.recover.shallow.line_neurons import half_gaps_of, peel
from revelu.recover.signs import resolve_signs
from revelu.recovery import Recovery, Status
from revelu.types import FloatArray

# A second line is scanned where it costs about a hundredth of the Jacobians or less, and
# where there are too few outputs to leave narrow pieces unmeasured.
_MANY_INPUTS = 500
_FEW_OUTPUTS = 3

# What is fainter than a hundredth of half the digits stays under the certificate's
# tolerance, and drowns in the errors of what is not.
_FAINT = 0.01

# Hyperplanes that are looked for elsewhere before more lines are asked, and the share of
# them found again that speaks against two layers.
_FEW_HYPERPLANES = 6
_ENDING = 0.5

HYPERPLANES_END = (
    "hyperplanes seen on a line are absent elsewhere: the target has more than one hidden layer, "
    "or is not piecewise affine"
)

# Points that judge whether a repair made matters worse.
_FEW_POINTS = 8

# Lines tried where the target is saturated on one, or kinks are too near each other.
_MAX_LINES = 4


def recover_two_layer(
    oracle: Oracle,
    noise: NoiseFloor,
    seed: int | np.random.SeedSequence,
    peeled: Peeling | None = None,
) -> Recovery:
    """Recover ``f(x) = A relu(W x + b) + V x + c`` by queries.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
        Every tolerance comes from it.
    seed : int or SeedSequence
    peeled : Peeling, optional
        The kinks and hyperplanes of a line, where they have been paid for.

    Returns
    -------
    Recovery
        ``UNVERIFIED`` with the network where the lines were explained, and without one where
        the search along a line did not end,
        ``NOT_IN_CLASS`` where a line has no affine pieces or its hyperplanes end,
        ``PARTIAL`` where some kinks were not resolved, ``BUDGET_EXHAUSTED`` with what was found.

    Notes
    -----
    Source: DG21, Algorithm 6 and Theorem 1.
    """
    rng = np.random.default_rng(seed)
    try:
        peeled = peeled or first_line(oracle, noise, rng)
    except LimitReachedError as error:
        return _ended(oracle, Status.BUDGET_EXHAUSTED, str(error))
    except SaturatedError as error:
        return _ended(oracle, Status.UNVERIFIED, f"{error}, as on every line tried")
    scan = peeled.scan
    if not scan.complete:
        ran_out = scan.message == OUT_OF_ROUNDS
        status = Status.UNVERIFIED if ran_out else Status.NOT_IN_CLASS
        return _ended(oracle, status, scan.message)
    network, evidence = peeled.network, []
    left = peeled.n_unresolved
    try:
        if left and not peeled.out_of_budget and _hyperplanes_end(oracle, noise, network, rng):
            return _ended(oracle, Status.NOT_IN_CLASS, HYPERPLANES_END)
        for i in range(_MAX_LINES):
            if not left or peeled.out_of_budget:
                break
            last = i == _MAX_LINES - 1
            network, left = recover_rest(oracle, network, noise, rng, split_clusters=not last)
    except LimitReachedError:
        peeled.out_of_budget = True
    network, sign_notes = resolve_signs(network, noise.half_digits)
    evidence += sign_notes
    status = Status.UNVERIFIED
    if left:
        status = Status.PARTIAL
        evidence.append(f"{left} kinks on the line were not resolved into neurons")
    if peeled.out_of_budget:
        status = Status.BUDGET_EXHAUSTED
        evidence.append(f"{oracle.n_queries} queries gave {network.architecture[1]} neurons")
    return Recovery(
        status,
        network,
        ledger=oracle.ledger(),
        evidence=tuple(evidence),
        method="two_layer",
        details={"kinks": len(scan.kinks)},
    )


def _hyperplanes_end(
    oracle: Oracle, noise: NoiseFloor, network: Network, rng: np.random.Generator
) -> bool:
    """Whether most of a few hyperplanes do not bend the function elsewhere.

    Then other lines would see other kinks, and explain nothing.
    """
    W, b = network.weights[0], network.biases[0]
    chosen = rng.permutation(len(W))[:_FEW_HYPERPLANES]
    bent = bend_everywhere(oracle, noise, W[chosen], b[chosen], rng)
    return bool(len(bent) >= _FEW_HYPERPLANES and bent.mean() <= _ENDING)


def recover_rest(
    oracle: Oracle,
    network: Network,
    noise: NoiseFloor,
    rng: np.random.Generator,
    through: FloatArray | None = None,
    *,
    split_clusters: bool = True,
) -> tuple[Network, int]:
    """Add the neurons that a line shows in what the network leaves unexplained.

    Parameters
    ----------
    oracle, noise
        As for :func:`recover_two_layer`.
    network : Network
        What is known, with its skip.
    rng : numpy.random.Generator
    through : ndarray, shape (d,), optional
        A point where the network is wrong.
    split_clusters : bool
        Leave kinks that are too near each other to another line; else each cluster
        becomes one neuron, which is right but for the cluster's width.

    Returns
    -------
    network : Network
        With the neurons found, coincident ones merged.
    n_unresolved : int

    Raises
    ------
    LimitReachedError
        If the budget ends before the line is understood.
    """
    line = random_line(rng, oracle.dim_in, through)
    # The known part errs by more than the noise floor: what is fainter than that is its
    # errors, not neurons.  Within a piece its error is affine, so that Jacobians suffer
    # from the answers' noise alone.
    answer_nu = float(noise.nu.max())
    nu = max(_FAINT * noise.half_digits, answer_nu)
    target = Residual(oracle, network)
    interval = find_reach(oracle, line)
    aimed = through is not None
    try:
        scan = find_kinks(target, line, nu, noise.scale, rng, interval, through=aimed)
        scan = scan.without_faint_kinks(_faint(noise))
        if not split_clusters:
            scan = replace(scan, is_single=np.ones_like(scan.is_single))
        peeled = peel(target, scan, answer_nu, rng)
    except SaturatedError:
        return network, 1
    if not peeled.scan.complete:
        return network, 1
    merged = simplify(add_networks(network, peeled.network), rtol=0.1 * noise.half_digits)
    if _is_worse(oracle, merged, network, noise, rng, through):
        return network, max(peeled.n_unresolved, 1)
    return merged, peeled.n_unresolved


def _is_worse(
    oracle: Oracle,
    new: Network,
    old: Network,
    noise: NoiseFloor,
    rng: np.random.Generator,
    through: FloatArray | None,
) -> bool:
    """Whether a few fresh points, and the one aimed at, speak against the new network."""
    X = rng.standard_normal((_FEW_POINTS, oracle.dim_in))
    if through is not None:
        X = np.vstack([X, through])
    Y = oracle(X)
    seen = np.asarray(np.isfinite(Y).all(axis=1))
    worst_new, worst_old = (
        np.abs(network(X[seen]) - Y[seen]).max(initial=0.0) for network in (new, old)
    )
    slack = noise.half_digits * float(noise.scale.max())
    return bool(worst_new > 2.0 * worst_old + slack)


def first_line(oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator) -> Peeling:
    """Peel a line; another one where the target is saturated on it."""
    for _ in range(_MAX_LINES - 1):
        try:
            return peel(oracle, scan_line(oracle, noise, rng), float(noise.nu.max()), rng)
        except SaturatedError:
            continue
    return peel(oracle, scan_line(oracle, noise, rng), float(noise.nu.max()), rng)


def scan_line(oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator) -> LineScan:
    """Find the kinks of a line, or of the less crowded of two.

    A narrow piece makes an imprecise Jacobian.  With few outputs every piece is needed,
    and where the inputs are many another line costs next to nothing: 5 queries a kink,
    against d for its neuron.
    """
    first = _scan_random_line(oracle, noise, rng)
    if not first.complete:
        return first
    gaps = half_gaps_of(first)
    # Of m + 1 random gaps the smallest is about the mean over m + 1; four lines in ten
    # are worse than half of that.
    crowded = gaps.min() < 0.5 * gaps.mean() / len(gaps)
    cheap = oracle.dim_in >= _MANY_INPUTS and oracle.dim_out <= _FEW_OUTPUTS
    if not (crowded and cheap):
        return first
    try:
        second = _scan_random_line(oracle, noise, rng)
    except LimitReachedError:
        return first
    better = second.complete and half_gaps_of(second).min() > gaps.min()
    return second if better else first


def _scan_random_line(oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator) -> LineScan:
    line = random_line(rng, oracle.dim_in)
    interval = find_reach(oracle, line)
    scan = find_kinks(oracle, line, float(noise.nu.max()), noise.scale, rng, interval)
    return scan.without_faint_kinks(_faint(noise))


def _faint(noise: NoiseFloor) -> float:
    """A slope along a line, whose |v| is sqrt(d), below which a kink matters to nobody."""
    return _FAINT * noise.half_digits * float(np.linalg.norm(noise.scale))


def _ended(oracle: Oracle, status: Status, reason: str) -> Recovery:
    return Recovery(status, None, ledger=oracle.ledger(), evidence=(reason,), method="two_layer")


def find_reach(oracle: Oracle, line: Line) -> tuple[float, float]:
    """How far along a line the target answers: one round where it may be saturated."""
    if not oracle.takes_log_ratios:
        return -np.inf, np.inf
    t = 2.0 ** np.arange(-2.0, 14.0)
    answers = oracle(line.points(np.concatenate([t, -t])))
    finite = np.asarray(np.isfinite(answers).all(axis=1))
    both = finite[: len(t)] & finite[len(t) :]
    reach = float(t[max(int(np.argmin(both)) - 1, 0)] if not both.all() else t[-1])
    return -reach, reach
