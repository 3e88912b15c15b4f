"""The axes of a black box, and the hyperplanes that cut them (DG21, section 3.2).

An axis is a line like any other to :func:`revelu.probe.kinks.find_kinks`, which follows it
out to ``|t|`` of a million and more.  The hyperplane at a kink is where the affine maps of
its two sides agree (Algorithm 3): gradients are measured in the middle of each piece, by
differences on both sides of the axis.  Where the two sides disagree a step has crossed
another hyperplane, and is made shorter.
"""

from dataclasses import dataclass

import numpy as np

from revelu.network.arrangement import Arrangement, AxisCut
from revelu.network.separations import distance
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.jacobian import step_length
from revelu.probe.kinks import find_kinks
from revelu.probe.line import Line
from revelu.probe.scan import LineScan
from revelu.types import BoolArray, FloatArray, IntArray

# The first step beside an axis is this share of the half of a piece; where it crosses a
# hyperplane it is divided by the factor, so often.
_STEP = 0.1
_SHRINK = 8.0
_MAX_SHRINKS = 5

# A normal whose entries are less certain than this is not known.
_VAGUE = 1e-2

# Two measured hyperplanes nearer than this, on different axes, are one.
_SAME = 1e-6

# Kinks that bend by less than this share of half the digits are not told from noise.
_FAINT = 0.01

# A kink expected within this share of what was followed of an axis must have been seen.
_WELL_WITHIN = 1e-2

# Points of an axis that are asked to see whether the search has missed something.
_N_CHECKS = 24

# Far enough out that a lifted answer is the slope.
_OUT = 1e9


@dataclass
class _Found:
    """Hyperplanes measured so far."""

    normals: list[FloatArray]
    offsets: list[float]
    errors: list[float]


def scan_axis(
    oracle: Oracle,
    noise: NoiseFloor,
    axis: int,
    rng: np.random.Generator,
    interval: tuple[float, float],
) -> LineScan:
    """Find the kinks of ``t -> f(sqrt(d) t e_i)``.

    On a line with ``|v| = sqrt(d)`` through 0 the noise of a lifted answer is constant.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
    axis : int
    rng : numpy.random.Generator
    interval : (float, float)
        Least and largest ``t``.

    Returns
    -------
    LineScan

    Raises
    ------
    SaturatedError
        If the target is saturated on the axis.
    LimitReachedError
        If the budget is spent.
    """
    scan = find_kinks(
        oracle, axis_line(oracle.dim_in, axis), float(noise.nu.max()), noise.scale, rng, interval
    )
    return scan.without_faint_kinks(_FAINT * noise.half_digits * float(np.linalg.norm(noise.scale)))


def n_off_pieces(oracle: Oracle, scan: LineScan, rng: np.random.Generator) -> int:
    """Count fresh points of a scanned axis that lie on no piece found.

    A bump between two pieces with one affine function hides from any bisection; points
    at random, uniform in the angle, find it if it is wide.

    Parameters
    ----------
    oracle : Oracle
    scan : LineScan
    rng : numpy.random.Generator

    Returns
    -------
    int
        0 where faint kinks were left out, next to which pieces are not exact.

    Raises
    ------
    LimitReachedError
        If the budget is spent.
    """
    if scan.n_faint:
        return 0
    edge = np.arctan(scan.reach)
    ts = np.tan(rng.uniform(-edge, edge, _N_CHECKS))
    answers = scan.line.lifted(oracle, ts)
    n_off = 0
    for t, g in zip(ts, answers, strict=True):
        i = int(np.searchsorted(scan.kinks, t))
        piece = scan.pieces[i]
        within = piece.ts[0] <= t <= piece.ts[-1]
        single = all(scan.is_single[max(i - 1, 0) : i + 1])
        if len(piece.ts) < 2 or not (within or single):
            continue
        value, weight = piece.extrapolate(float(t))
        n_off += bool((np.abs(value - g) > SIGMAS * scan.sigma * np.hypot(1.0, weight)).any())
    return n_off


def axis_line(d: int, axis: int) -> Line:
    """The axis as a line whose lift makes noise even."""
    v = np.zeros(d)
    v[axis] = float(d) ** 0.5
    return Line(np.zeros(d), v)


def n_hyperplane_queries(scan: LineScan) -> int:
    """What measuring the hyperplanes of a scan asks, where no step is shortened."""
    return len(scan.pieces) * (2 * len(scan.line.v) + 1)


def arrange(
    scans: dict[int, LineScan],
    normals: dict[int, tuple[FloatArray, FloatArray]],
    hidden: dict[int, int],
) -> Arrangement:
    """Put together what was seen on several axes.

    Parameters
    ----------
    scans : dict of int to LineScan
        By axis.
    normals : dict of int to (ndarray (n, d), ndarray (n,))
        By axis, of :func:`kink_normals`.
    hidden : dict of int to int
        By axis, of :func:`n_off_pieces`.

    Returns
    -------
    Arrangement
        Hyperplanes that end before another axis are ``tied``: a single hidden layer has
        none.
    """
    d = len(next(iter(scans.values())).line.v)
    found = _Found([], [], [])
    # Axes with normals first: the others are labelled by what those found.
    order = sorted(scans, key=lambda axis: (axis not in normals, axis))
    cuts = {}
    for axis in order:
        kinks = scans[axis].kinks * d**0.5
        if axis in normals:
            labels = _merge(found, axis, kinks, *normals[axis])
        else:
            labels = _recognise(found, axis, kinks)
        cuts[axis] = _cut(scans[axis], axis, labels, hidden.get(axis, 0))
    normals_found = np.asarray(found.normals, dtype=np.float64).reshape(-1, d)
    offsets, errors = np.asarray(found.offsets), np.asarray(found.errors)
    ending = np.zeros(len(normals_found), dtype=bool)
    for axis, cut in cuts.items():
        edge = scans[axis].reach * d**0.5
        if not cut.n_clusters:
            ending |= _absent(normals_found, offsets, errors, cut, edge)
    return Arrangement(
        dim_in=d,
        cuts=tuple(cuts[axis] for axis in sorted(cuts)),
        normals=normals_found,
        offsets=offsets,
        errors=errors,
        tied=ending,
    )


def kink_normals(
    oracle: Oracle, noise: NoiseFloor, scan: LineScan, axis: int
) -> tuple[FloatArray, FloatArray]:
    """Measure the hyperplane at each kink of an axis.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
    scan : LineScan
    axis : int

    Returns
    -------
    normals : ndarray, shape (n, d)
        Unit rows; NaN where kinks are not single or too faint.
    errors : ndarray, shape (n,)
        Standard error of the entries.

    Raises
    ------
    LimitReachedError
        If the budget is spent.
    """
    gradients, errors = _gradients(oracle, noise, scan, axis)
    d = oracle.dim_in
    unit = np.where(noise.scale > 0, noise.scale, 1.0)
    normals = np.full((len(scan.kinks), d), np.nan)
    sigmas = np.full(len(scan.kinks), np.inf)
    for i, is_single in enumerate(scan.is_single):
        J = (gradients[i + 1] - gradients[i]) / unit
        if not is_single or not np.isfinite(J).all():
            continue
        # One neuron bends all outputs along one normal: J is its outer product.
        U, s, _ = np.linalg.svd(J, full_matrices=False)
        if s[0] == 0.0:
            continue
        sigma = float(np.hypot(errors[i], errors[i + 1])) / s[0]
        rest = s[1] / s[0] if len(s) > 1 else 0.0
        if sigma * d**0.5 > _VAGUE or rest > SIGMAS * sigma * (d**0.5 + len(unit) ** 0.5):
            continue
        normals[i], sigmas[i] = U[:, 0], sigma
    return normals, sigmas


def _gradients(
    oracle: Oracle, noise: NoiseFloor, scan: LineScan, axis: int
) -> tuple[FloatArray, FloatArray]:
    """Gradient on each piece, shape (p, d, k), and the standard error of its entries."""
    line, d = scan.line, oracle.dim_in
    edge = np.arctan(scan.reach)
    ends = np.concatenate([[-edge], np.arctan(scan.kinks), [edge]])
    halves = np.maximum(np.diff(ends) / 2.0, np.finfo(np.float64).eps)
    ts = np.tan((ends[1:] + ends[:-1]) / 2.0)
    middles = line.points(ts)
    h = np.array([step_length(line, t, half, _STEP) for t, half in zip(ts, halves, strict=True)])
    steps = np.repeat(h[:, None], d, axis=1)
    # Along the axis the angle changes by a factor hypot(1, t) less than beside it.
    steps[:, axis] *= np.hypot(1.0, ts)
    sigma = noise.nu * noise.scale * np.hypot(1.0, ts)[:, None]
    base = np.asarray(oracle(middles))
    G = np.full((len(ts), d, base.shape[1]), np.nan)
    left = np.argwhere(np.ones_like(steps, dtype=bool))
    for _ in range(_MAX_SHRINKS):
        if not len(left):
            break
        rows, columns = left.T
        size = steps[rows, columns]
        moves = np.zeros((len(left), d))
        moves[np.arange(len(left)), columns] = size
        Y = oracle(np.concatenate([middles[rows] + moves, middles[rows] - moves]))
        ahead, behind = Y[: len(left)], Y[len(left) :]
        with np.errstate(invalid="ignore"):
            bend = np.abs(ahead - 2.0 * base[rows] + behind)
            straight = (bend <= SIGMAS * 6.0**0.5 * sigma[rows]).all(axis=1)
            slopes = (ahead - behind) / (2.0 * size)[:, None]
        G[rows[straight], columns[straight]] = slopes[straight]
        left = left[~straight]
        steps[tuple(left.T)] /= _SHRINK
    unit = np.where(noise.scale > 0, noise.scale, 1.0)
    shortest = steps.min(axis=1, initial=np.inf)
    return G, np.asarray((sigma / unit).max(axis=1) / (2.0**0.5 * shortest))


def _cut(scan: LineScan, axis: int, labels: IntArray, n_hidden: int) -> AxisCut:
    """The scan in units of the input."""
    length = float(np.linalg.norm(scan.line.v))
    pieces, errors = [], []
    for piece in scan.pieces:
        if len(piece.ts) < 2:
            pieces.append(np.full((2, len(scan.sigma)), np.nan))
            errors.append(np.inf)
            continue
        value, w0 = piece.extrapolate(0.0)
        slope, w1 = piece.extrapolate(_OUT)
        pieces.append(np.stack([value, slope / length]))
        errors.append(float(np.linalg.norm(scan.sigma)) * float(np.hypot(w0, w1 / length)))
    widths = [
        right.ts[0] - left.ts[-1]
        for left, right, single in zip(scan.pieces, scan.pieces[1:], scan.is_single, strict=False)
        if not single
    ]
    return AxisCut(
        axis=axis,
        kinks=scan.kinks * length,
        pieces=np.stack(pieces),
        errors=np.asarray(errors),
        hyperplanes=labels,
        n_clusters=len(widths),
        cluster_width=max(widths, default=0.0) * length,
        n_hidden=n_hidden,
    )


def _absent(
    normals: FloatArray, offsets: FloatArray, errors: FloatArray, cut: AxisCut, edge: float
) -> BoolArray:
    """Which hyperplanes are to meet an axis and do not: they end before it."""
    along = normals[:, cut.axis]
    clear = np.abs(along) > _SAME + SIGMAS * errors
    t = -offsets / np.where(clear, along, 1.0)
    within = clear & (np.abs(t) < edge * _WELL_WITHIN)
    if not len(cut.kinks):
        return np.asarray(within)
    apart = np.abs(cut.kinks - t[:, None]).min(axis=1)
    spread = (_SAME + SIGMAS * errors * normals.shape[1] ** 0.5) * (1.0 + np.abs(t)) ** 2
    return np.asarray(within & (apart > spread / np.where(clear, np.abs(along), 1.0)))


def _merge(
    found: _Found, axis: int, kinks: FloatArray, normals: FloatArray, errors: FloatArray
) -> IntArray:
    """Label each kink with its hyperplane: one known from another axis, or a new one.

    A hyperplane meets an axis once, so that no two kinks of one axis share a label.
    """
    known = len(found.normals)
    labels = np.full(len(kinks), -1, dtype=np.intp)
    taken: set[int] = set()
    for i, (t, n, error) in enumerate(zip(kinks, normals, errors, strict=True)):
        if not np.isfinite(n).all():
            continue
        b = -float(n[axis] * t)
        best, least = -1, np.inf
        for j in range(known):
            if j in taken:
                continue
            sign = 1.0 if float(n @ found.normals[j]) > 0 else -1.0
            apart = max(
                distance(n, found.normals[j]), abs(b - sign * found.offsets[j]) / (1.0 + abs(b))
            )
            spread = SIGMAS * (error + found.errors[j]) * len(n) ** 0.5 * (1.0 + abs(t))
            if apart < min(least, _SAME + spread):
                best, least = j, apart
        if best < 0:
            found.normals.append(n)
            found.offsets.append(b)
            found.errors.append(float(error))
            best = len(found.normals) - 1
        taken.add(best)
        labels[i] = best
    return labels


def _recognise(found: _Found, axis: int, kinks: FloatArray) -> IntArray:
    """Label the kinks that lie where a known hyperplane is to meet the axis."""
    labels = np.full(len(kinks), -1, dtype=np.intp)
    if not found.normals:
        return labels
    normals, offsets = np.asarray(found.normals), np.asarray(found.offsets)
    errors = np.asarray(found.errors)
    for i, t in enumerate(kinks):
        apart = np.abs(normals[:, axis] * t + offsets)
        spread = _SAME + SIGMAS * errors * len(normals[0]) ** 0.5
        near = np.flatnonzero(apart < spread * (1.0 + abs(t)))
        if len(near) == 1:
            labels[i] = near[0]
    return labels
