"""The axes of a black box, and the hyperplanes that cut them (DG21, section 3.2).

An axis is a line like any other to :func:`revelu.probe.kinks.find_kinks`, which follows it
out to ``|t|`` of a million and more.  The hyperplane at a kink is where the affine maps of
its two sides agree (Algorithm 3): gradients are measured in the middle of each piece, by
differences on both sides of the axis.  Where the two sides disagree a step has crossed
another hyperplane, and is made shorter.
"""

import numpy as np

from revelu.network.arrangement import Arrangement, AxisCut
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.gradient import both_sides
from revelu.probe.kinks import find_kinks
from revelu.probe.line import Line
from revelu.probe.piece import Answer
from revelu.probe.scan import LineScan
from revelu.types import BoolArray, FloatArray, IntArray


def axis_line(d: int, axis: int) -> Line:
    """The axis as a line whose lift makes noise even."""
    return Line(np.zeros(d), np.eye(d)[axis] * float(d) ** 0.5)


def scan_axis(
    oracle: Oracle,
    noise: NoiseFloor,
    axis: int,
    rng: np.random.Generator,
    interval: tuple[float, float],
) -> LineScan:
    """Find the kinks of ``t -> f(sqrt(d) t e_i)`` that are not faint.

    On a line with ``|v| = sqrt(d)`` through 0 the noise of a lifted answer is constant.

    Parameters
    ----------
    interval : (float, float)
        Least and largest ``t``.
    """
    line = axis_line(oracle.dim_in, axis)
    scan = find_kinks(oracle, line, float(noise.nu.max()), noise.scale, rng, interval)
    return scan.without_faint_kinks(noise.faint_slope)


def n_off_pieces(
    oracle: Oracle, scan: LineScan, rng: np.random.Generator, *, n_checks: int = 24
) -> int:
    """Count fresh points of a scanned axis that lie on no piece found.

    A bump between two pieces with one affine function hides from any bisection; points
    at random, uniform in the angle, find it if it is wide.

    Parameters
    ----------
    n_checks : int
        Points asked.

    Returns
    -------
    int
        0 where faint kinks were left out, next to which pieces are not exact.
    """
    if scan.n_faint:
        return 0
    edge = np.arctan(scan.reach)
    ts = np.tan(rng.uniform(-edge, edge, n_checks))
    answers = scan.line.lifted(oracle, ts)
    n_off = 0
    for t, g in zip(ts, answers, strict=True):
        i = int(np.searchsorted(scan.kinks, t))
        piece = scan.pieces[i]
        within = piece.ts[0] <= t <= piece.ts[-1]
        single = all(scan.is_single[max(i - 1, 0) : i + 1])
        if len(piece.ts) > 1 and (within or single):
            n_off += not piece.holds(Answer(float(t), g, np.ones_like(g)), scan.sigma)
    return n_off


def n_hyperplane_queries(scan: LineScan) -> int:
    """What measuring the hyperplanes of a scan asks, where no step is shortened."""
    return len(scan.pieces) * (2 * len(scan.line.v) + 1)


def kink_normals(
    oracle: Oracle, noise: NoiseFloor, scan: LineScan, axis: int, *, vague: float = 1e-2
) -> tuple[FloatArray, FloatArray]:
    """Measure the hyperplane at each kink of an axis.

    Parameters
    ----------
    vague : float
        A normal that errs by more, in radians, is not known.

    Returns
    -------
    normals : ndarray, shape (n, d)
        Unit rows; NaN where kinks are not single or too faint.
    errors : ndarray, shape (n,)
        Standard error of the entries.
    """
    gradients, errors = _gradients(oracle, noise, scan, axis)
    d = oracle.dim_in
    normals = np.full((len(scan.kinks), d), np.nan)
    sigmas = np.full(len(scan.kinks), np.inf)
    for i, is_single in enumerate(scan.is_single):
        J = (gradients[i + 1] - gradients[i]) / noise.unit
        if not is_single or not np.isfinite(J).all():
            continue
        # One neuron bends all outputs along one normal: J is its outer product.
        U, s, _ = np.linalg.svd(J, full_matrices=False)
        if s[0] == 0.0:
            continue
        sigma = float(np.hypot(errors[i], errors[i + 1])) / s[0]
        rest = s[1] / s[0] if len(s) > 1 else 0.0
        if sigma * d**0.5 > vague or rest > SIGMAS * sigma * (d**0.5 + len(noise.unit) ** 0.5):
            continue
        normals[i], sigmas[i] = U[:, 0], sigma
    return normals, sigmas


def _gradients(
    oracle: Oracle,
    noise: NoiseFloor,
    scan: LineScan,
    axis: int,
    *,
    shrink: float = 8.0,
    max_tries: int = 5,
) -> tuple[FloatArray, FloatArray]:
    """Gradient on each piece, shape (p, d, k), and the standard error of its entries.

    A step that crosses a hyperplane is divided by ``shrink``, coordinate by coordinate.
    """
    line, d = scan.line, oracle.dim_in
    edge = np.arctan(scan.reach)
    ends = np.concatenate([[-edge], np.arctan(scan.kinks), [edge]])
    halves = np.maximum(np.diff(ends) / 2.0, np.finfo(np.float64).eps)
    ts = np.tan((ends[1:] + ends[:-1]) / 2.0)
    middles = line.points(ts)
    h = np.array([line.step_beside(t, half) for t, half in zip(ts, halves, strict=True)])
    steps = np.repeat(h[:, None], d, axis=1)
    # Along the axis the angle changes by a factor hypot(1, t) less than beside it.
    steps[:, axis] *= np.hypot(1.0, ts)
    sigma = noise.nu * noise.scale * np.hypot(1.0, ts)[:, None]
    base = np.asarray(oracle(middles))
    G = np.full((len(ts), d, base.shape[1]), np.nan)
    left = np.argwhere(np.ones_like(steps, dtype=bool))
    for _ in range(max_tries):
        if not len(left):
            break
        rows, columns = left.T
        size = steps[rows, columns]
        moves = np.zeros((len(left), d))
        moves[np.arange(len(left)), columns] = size
        ahead, behind = both_sides(oracle, middles[rows], moves)
        with np.errstate(invalid="ignore"):
            bend = np.abs(ahead - 2.0 * base[rows] + behind)
            # The norm of (1, -2, 1) is sqrt(6).
            straight = (bend <= SIGMAS * 6.0**0.5 * sigma[rows]).all(axis=1)
            slopes = (ahead - behind) / (2.0 * size)[:, None]
        G[rows[straight], columns[straight]] = slopes[straight]
        left = left[~straight]
        steps[tuple(left.T)] /= shrink
    shortest = steps.min(axis=1, initial=np.inf)
    return G, np.asarray((sigma / noise.unit).max(axis=1) / (2.0**0.5 * shortest))


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
    found = _Hyperplanes(d)
    # Axes with normals first: the others are labelled by what those found.
    order = sorted(scans, key=lambda axis: (axis not in normals, axis))
    cuts = {}
    for axis in order:
        kinks = scans[axis].kinks * d**0.5
        if axis in normals:
            labels = found.merge(axis, kinks, *normals[axis])
        else:
            labels = found.recognise(axis, kinks)
        cuts[axis] = _cut(scans[axis], axis, labels, hidden.get(axis, 0))
    ending = np.zeros(len(found.normals), dtype=bool)
    for axis, cut in cuts.items():
        if not cut.n_clusters:
            ending |= found.absent(cut, scans[axis].reach * d**0.5)
    return Arrangement(
        dim_in=d,
        cuts=tuple(cuts[axis] for axis in sorted(cuts)),
        normals=found.normals,
        offsets=found.offsets,
        errors=found.errors,
        tied=ending,
    )


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
        # So far out a lifted answer is the slope.
        slope, w1 = piece.extrapolate(1e9)
        pieces.append(np.stack([value, slope / length]))
        errors.append(float(np.linalg.norm(scan.sigma * np.hypot(w0, w1 / length))))
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


class _Hyperplanes:
    """Hyperplanes measured so far, each once; ``same`` is how near two may be that are one."""

    def __init__(self, d: int, same: float = 1e-6) -> None:
        self.d, self.same = d, same
        self.normals, self.offsets, self.errors = np.empty((0, d)), np.empty(0), np.empty(0)

    def merge(
        self, axis: int, kinks: FloatArray, normals: FloatArray, errors: FloatArray
    ) -> IntArray:
        """Label each kink with its hyperplane: one known from another axis, or a new one."""
        labels = np.full(len(kinks), -1, dtype=np.intp)
        for i in np.flatnonzero(np.isfinite(normals).all(axis=1)):
            t, n, error = kinks[i], normals[i], errors[i]
            b = -float(n[axis] * t)
            signs = np.where(self.normals @ n > 0, 1.0, -1.0)
            offsets = np.abs(b - signs * self.offsets) / (1.0 + abs(b))
            cross = np.linalg.norm(self.normals - n, axis=1) * np.linalg.norm(
                self.normals + n, axis=1
            )
            apart = np.maximum(cross / 2.0, offsets)
            spread = SIGMAS * (error + self.errors) * self.d**0.5 * (1.0 + abs(t))
            apart[apart >= self.same + spread] = np.inf
            # A hyperplane meets an axis once.
            apart[labels[labels >= 0]] = np.inf
            if np.isfinite(apart).any():
                labels[i] = apart.argmin()
                continue
            labels[i] = len(self.normals)
            self.normals = np.vstack([self.normals, n])
            self.offsets, self.errors = np.append(self.offsets, b), np.append(self.errors, error)
        return labels

    def recognise(self, axis: int, kinks: FloatArray) -> IntArray:
        """Label the kinks that lie where one known hyperplane is to meet the axis."""
        labels = np.full(len(kinks), -1, dtype=np.intp)
        spread = self.same + SIGMAS * self.errors * self.d**0.5
        for i, t in enumerate(kinks):
            apart = np.abs(self.normals[:, axis] * t + self.offsets)
            near = np.flatnonzero(apart < spread * (1.0 + abs(t)))
            if len(near) == 1:
                labels[i] = near[0]
        return labels

    def absent(self, cut: AxisCut, edge: float) -> BoolArray:
        """Which are to meet an axis and do not: they end before it.

        Only a kink expected within a hundredth of what was followed must have been seen.
        """
        along = self.normals[:, cut.axis]
        clear = np.abs(along) > self.same + SIGMAS * self.errors
        t = -self.offsets / np.where(clear, along, 1.0)
        within = clear & (np.abs(t) < 0.01 * edge)
        if not len(cut.kinks):
            return np.asarray(within)
        apart = np.abs(cut.kinks - t[:, None]).min(axis=1)
        spread = (self.same + SIGMAS * self.errors * self.d**0.5) * (1.0 + np.abs(t)) ** 2
        return np.asarray(within & (apart > spread / np.where(clear, np.abs(along), 1.0)))
