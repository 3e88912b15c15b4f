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

from dataclasses import dataclass, field

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network import Network, simplify
from revelu.numerics.signs import find_binary_solutions
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.jacobian import complement_basis, directional_differences, step_length
from revelu.probe.kinks import SIGMAS, LineScan, find_kinks
from revelu.probe.line import Askable, Line, random_line
from revelu.probe.residual import Residual
from revelu.recover.blocks import Block, choose_blocks
from revelu.recovery import Recovery, Status
from revelu.types import BoolArray, FloatArray

# Steps orthogonal to the line, as a fraction of the half-gap: longer ones are more
# precise, and cross another neuron's kink more often.
_RHO = 0.2
_RHO_WIDE = 0.1
_WIDE = 100

# Signs and sizes of the steps with which a corrupted coordinate is asked again.
_RETRY_STEPS = (-0.5, 0.25, -0.125, 0.0625)

# A query whose predicted pre-activation is this near 0, relative to the piece's, may
# have been bent by that very neuron, which then is predicted to be exactly 0 there.
_MARGIN = 0.03

# A Jacobian is worth having if it loses less than this multiple of half the digits.
_DIGITS_FRACTION = 0.03

# Lines tried for kinks that are too near each other on the first.
_MAX_LINES = 4


@dataclass
class Peeling:
    """What one line gives of a function.

    Attributes
    ----------
    network : Network
        The neurons found, and the affine map of the leftmost piece as its skip.
    n_unresolved : int
        Kinks seen whose neurons were not recovered.
    scan : LineScan
    out_of_budget : bool
    """

    network: Network
    n_unresolved: int
    scan: LineScan
    out_of_budget: bool = False


@dataclass
class _Jacobians:
    """Derivatives orthogonal to the line, on the measured pieces.

    ``values[p]`` has shape (d - 1, k): one row a direction.
    """

    centres: dict[int, float] = field(default_factory=dict)
    steps: dict[int, FloatArray] = field(default_factory=dict)
    values: dict[int, FloatArray] = field(default_factory=dict)


def recover_two_layer(
    oracle: Oracle, noise: NoiseFloor, seed: int | np.random.SeedSequence
) -> Recovery:
    """Recover ``f(x) = A relu(W x + b) + V x + c`` by queries.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
        Every tolerance comes from it.
    seed : int or SeedSequence

    Returns
    -------
    Recovery
        ``UNVERIFIED`` with the network where the lines were explained,
        ``NOT_IN_CLASS`` where a line has no affine pieces, ``PARTIAL`` where some
        kinks were not resolved, ``BUDGET_EXHAUSTED`` with what was found.

    Notes
    -----
    Source: DG21, Algorithm 6 and Theorem 1.
    """
    rng = np.random.default_rng(seed)
    nu = float(noise.nu.max())
    reach = find_reach(oracle, line := random_line(rng, oracle.dim_in))
    try:
        peeled = peel(oracle, line, nu, noise.scale, rng, reach)
    except LimitReachedError as error:
        return Recovery(
            Status.BUDGET_EXHAUSTED, None, oracle.ledger(), evidence=(str(error),),
            method="two_layer",
        )
    network, evidence = peeled.network, []
    if not peeled.scan.complete:
        return Recovery(
            Status.NOT_IN_CLASS, None, oracle.ledger(), evidence=(peeled.scan.message,),
            method="two_layer",
        )
    left = peeled.n_unresolved
    try:
        for _ in range(_MAX_LINES):
            if not left or peeled.out_of_budget:
                break
            network, left = recover_rest(oracle, network, noise, rng)
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
        status, network, oracle.ledger(), evidence=tuple(evidence), method="two_layer",
        details={"kinks": len(peeled.scan.kinks)},
    )


def recover_rest(
    oracle: Oracle,
    network: Network,
    noise: NoiseFloor,
    rng: np.random.Generator,
    through: FloatArray | None = None,
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
    # The known part errs by more than the noise floor: kinks fainter than a hundredth
    # of the certificate's tolerance are its errors, not neurons.
    nu = max(0.01 * noise.half_digits, float(noise.nu.max()))
    reach = find_reach(oracle, line)
    peeled = peel(Residual(oracle, network), line, nu, noise.scale, rng, reach)
    if not peeled.scan.complete:
        return network, 1
    merged = simplify(add_networks(network, peeled.network), rtol=0.1 * noise.half_digits)
    return merged, peeled.n_unresolved


def find_reach(oracle: Oracle, line: Line) -> float:
    """How far along a line the target answers: one round where it may be saturated."""
    if not oracle.takes_log_ratios:
        return np.inf
    t = 2.0 ** np.arange(-2.0, 14.0)
    finite = np.isfinite(oracle(line.points(np.concatenate([t, -t])))).all(axis=1)
    both = finite[: len(t)] & finite[len(t) :]
    return float(t[max(int(np.argmin(both)) - 1, 0)] if not both.all() else t[-1])


def peel(
    target: Askable,
    line: Line,
    nu: float,
    scale: FloatArray,
    rng: np.random.Generator,
    reach: float = np.inf,
) -> Peeling:
    """Recover every neuron that one line separates (DG21, Algorithm 6, lines 1 to 6).

    Parameters
    ----------
    target : Askable
        An oracle, or a residual.
    line : Line
    nu : float
        Noise floor relative to ``scale``.
    scale : ndarray, shape (k,)
    rng : numpy.random.Generator
    reach : float
        Largest ``|t|`` to ask at.

    Raises
    ------
    LimitReachedError
        If the budget ends while the kinks are sought.
    """
    scan = find_kinks(target, line, nu, scale, rng, reach)
    if not scan.complete:
        return Peeling(_affine(np.zeros((len(scale), target.dim_in)), scale * 0), 1, scan)
    rho = _RHO if target.dim_in < _WIDE else _RHO_WIDE
    min_half_gap = float(np.sqrt(nu)) / (_DIGITS_FRACTION * rho)
    slopes = np.linalg.norm(scan.jumps, axis=1)
    columns = scan.jumps / np.where(slopes > 0, slopes, 1.0)[:, None]
    blocks = choose_blocks(columns, _half_gaps(scan), scan.is_single, min_half_gap)
    basis = complement_basis(line.v)
    jacobians = _Jacobians()
    out_of_budget = False
    try:
        _measure(target, scan, blocks, basis, rho, jacobians)
        for factor in _RETRY_STEPS:
            rows = _rows(blocks, columns, jacobians)
            suspects = _suspects(scan, blocks, columns, slopes, rows, jacobians)
            if not any(mask.any() for mask in suspects.values()):
                break
            _measure_again(target, scan, basis, jacobians, suspects, factor)
    except LimitReachedError:
        out_of_budget = True
    if 0 not in jacobians.values:
        zero = np.zeros((len(scale), target.dim_in))
        return Peeling(_affine(zero, scale * 0), len(scan.kinks), scan, out_of_budget=True)
    blocks = [block for block in blocks if block.stop in jacobians.values]
    rows = _rows(blocks, columns, jacobians)
    network = _assemble(scan, columns, slopes, rows, jacobians, basis)
    return Peeling(network, len(scan.kinks) - len(rows), scan, out_of_budget)


def _half_gaps(scan: LineScan) -> FloatArray:
    edges = np.concatenate([[-np.pi / 2], np.arctan(scan.kinks), [np.pi / 2]])
    return np.asarray(np.diff(edges) / 2)


def _measure(
    target: Askable,
    scan: LineScan,
    blocks: list[Block],
    basis: FloatArray,
    rho: float,
    jacobians: _Jacobians,
) -> None:
    """Measure the Jacobians at both ends of every block, in one round."""
    half_gaps = _half_gaps(scan)
    edges = np.concatenate([[-np.pi / 2], np.arctan(scan.kinks), [np.pi / 2]])
    with target.round():
        for p in [0, *(block.stop for block in blocks)]:
            reach = abs(scan.pieces[0].ts[0])
            t = float(np.clip(np.tan((edges[p] + edges[p + 1]) / 2), -reach, reach))
            h = np.full(len(basis), step_length(scan.line, t, half_gaps[p], rho))
            x, fx = _centre(scan, p, t)
            values = directional_differences(target, x, fx, basis, h)
            jacobians.centres[p], jacobians.steps[p], jacobians.values[p] = t, h, values


def _measure_again(
    target: Askable,
    scan: LineScan,
    basis: FloatArray,
    jacobians: _Jacobians,
    suspects: dict[int, BoolArray],
    factor: float,
) -> None:
    """Ask the suspect coordinates with a shorter step, in one round."""
    with target.round():
        for p, mask in suspects.items():
            if not mask.any():
                continue
            h = factor * np.abs(jacobians.steps[p]).max() * np.ones(int(mask.sum()))
            x, fx = _centre(scan, p, jacobians.centres[p])
            jacobians.values[p][mask] = directional_differences(target, x, fx, basis[mask], h)
            jacobians.steps[p][mask] = h


def _centre(scan: LineScan, p: int, t: float) -> tuple[FloatArray, FloatArray]:
    """A point of piece ``p``, and the value there, which the line already knows."""
    x = scan.line.points(np.array([t]))[0]
    return x, scan.pieces[p].extrapolate(t)[0] * np.hypot(1.0, t)


def _rows(
    blocks: list[Block], columns: FloatArray, jacobians: _Jacobians
) -> dict[int, FloatArray]:
    """The neurons' weights orthogonal to the line: ``dJ = sum_j a_j w_j^T``, solved."""
    rows = {}
    for block in blocks:
        if block.is_solvable:
            change = jacobians.values[block.stop] - jacobians.values[block.start]
            A = columns[block.start : block.stop].T
            for j, w in enumerate(np.linalg.pinv(A) @ change.T):
                rows[block.start + j] = w
    return rows


def _suspects(
    scan: LineScan,
    blocks: list[Block],
    columns: FloatArray,
    slopes: FloatArray,
    rows: dict[int, FloatArray],
    jacobians: _Jacobians,
) -> dict[int, BoolArray]:
    """Coordinates that a kink between a centre and its query may have corrupted."""
    known = sorted(rows)
    W = np.array([rows[j] for j in known]).reshape(len(known), scan.line.v.size - 1)
    suspects = {p: np.zeros(len(values), dtype=bool) for p, values in jacobians.values.items()}
    for p, h in jacobians.steps.items():
        z = slopes[known] * (jacobians.centres[p] - scan.kinks[known])
        moved = z[:, None] + W * h
        suspects[p] |= (moved * np.sign(z)[:, None] < _MARGIN * np.abs(z)[:, None]).any(axis=0)
    for block in blocks:
        if block.is_solvable and columns.shape[1] > block.stop - block.start:
            bad = _inconsistent(scan, block, columns, jacobians)
            suspects[block.start] |= bad
            suspects[block.stop] |= bad
    return suspects


def _inconsistent(
    scan: LineScan, block: Block, columns: FloatArray, jacobians: _Jacobians
) -> BoolArray:
    """Coordinates whose change is not a combination of the block's output columns."""
    change = jacobians.values[block.stop] - jacobians.values[block.start]
    unit = np.where(scan.sigma > 0, scan.sigma, 1.0)
    U, _, _ = np.linalg.svd((columns[block.start : block.stop] / unit).T, full_matrices=False)
    scaled = (change / unit).T
    rest = np.linalg.norm(scaled - U @ (U.T @ scaled), axis=0)
    expected = sum(
        (np.hypot(1.0, jacobians.centres[p]) / jacobians.steps[p]) ** 2
        for p in (block.start, block.stop)
    )
    # Two answers a derivative; the columns themselves err too, hence the median.
    floor = np.maximum(np.sqrt(2.0 * columns.shape[1] * expected), np.median(rest))
    return np.asarray(rest > SIGMAS * floor)


def _assemble(
    scan: LineScan,
    columns: FloatArray,
    slopes: FloatArray,
    rows: dict[int, FloatArray],
    jacobians: _Jacobians,
    basis: FloatArray,
) -> Network:
    """Neurons oriented along the line, and the affine map left of all kinks.

    Along the line ``z_j = slope_j (t - t_j)``, which fixes ``w_j . v`` and ``b_j``.
    """
    line = scan.line
    known = sorted(rows)
    u = line.v / (line.v @ line.v)
    W = np.array([rows[j] @ basis + slopes[j] * u for j in known]).reshape(len(known), len(u))
    b = -slopes[known] * scan.kinks[known] - W @ line.x0
    first = scan.pieces[0]
    lo, hi = first.ts[0], first.ts[-1]
    f_lo, f_hi = first.gs[0] * np.hypot(1.0, lo), first.gs[-1] * np.hypot(1.0, hi)
    slope = (f_hi - f_lo) / (hi - lo)
    V = jacobians.values[0].T @ basis + np.outer(slope, u)
    t = jacobians.centres[0]
    c = first.extrapolate(t)[0] * np.hypot(1.0, t) - V @ line.points(np.array([t]))[0]
    return Network([W, columns[known].T], [b, np.zeros(len(c))], skip=(V, c))


def _affine(V: FloatArray, c: FloatArray) -> Network:
    k, d = V.shape
    return Network([np.zeros((0, d)), np.zeros((k, 0))], [np.zeros(0), np.zeros(k)], skip=(V, c))


def add_networks(first: Network, second: Network) -> Network:
    """The sum of two two-layer networks, neurons side by side."""
    (W1, A1), (W2, A2) = first.weights, second.weights
    (b1, c1), (b2, c2) = first.biases, second.biases
    V1, e1 = first.skip or (np.zeros((first.dim_out, first.dim_in)), np.zeros(first.dim_out))
    V2, e2 = second.skip or (np.zeros((first.dim_out, first.dim_in)), np.zeros(first.dim_out))
    return Network(
        [np.vstack([W1, W2]), np.hstack([A1, A2])],
        [np.concatenate([b1, b2]), c1 + c2],
        skip=(V1 + V2, e1 + e2),
    )


def resolve_signs(network: Network, rtol: float) -> tuple[Network, list[str]]:
    """Turn neurons round so that the affine skip vanishes, where that can be done.

    Parameters
    ----------
    network : Network
        Two layers with a skip.
    rtol : float
        Largest remainder that counts as none, relative to the neurons' affine maps.

    Returns
    -------
    network : Network
        Without a skip where exactly one choice of signs leaves none.
    notes : list of str
        Why the skip was kept, if it was.

    Notes
    -----
    ``a relu(z) = a relu(-z) + a z``: flipping the set S adds ``sum_S a_j w_j^T`` to V.
    """
    if network.skip is None:
        return network, []
    (W, A), (b, c), (V, e) = network.weights, network.biases, network.skip
    m = len(W)
    if not m:
        return network, []
    G = (A[:, None, :] * W.T[None]).reshape(-1, m)
    size = float(np.sqrt((G**2).sum()))
    found = find_binary_solutions(G, -V.ravel(), rtol * size)
    if len(found) != 1:
        why = "several choices of signs fit" if found else "no choice of signs removes it"
        return network, [f"the affine skip is kept: {why}"]
    flip = np.where(found[0] > 0.5, -1.0, 1.0)
    constant = c + e + A @ (b * found[0])
    return Network([W * flip[:, None], A], [b * flip, constant]), []

