"""The first of several hidden layers: rows whose hyperplanes bend every border that meets them.

Two bends have the affine map of a neuron in common, whatever its layer.  One of the first layer
has it everywhere; one above has another wherever the neurons below it switch.  So a row is held
against borders at random places of its hyperplane: of the first layer each of them bends there.

Normals of facets are combinations of the rows that are on, all of them and no others.  So where
the rows found are independent and span the normals of all facets, none is missing that a border
shows, and a row is on where its coefficient is not 0.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.numerics.reweighting import cauchy
from revelu.probe.heights import heights, input_sizes
from revelu.recover.labels.borders import Borders, Pool
from revelu.recover.labels.precision import Precision, Told
from revelu.recover.labels.rows import NeuronRows
from revelu.recover.labels.survey import Survey
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Depth:
    """When a row is of the first layer."""

    n_places: int = 12
    """Places of its hyperplane at which borders are to bend,"""
    n_drawn: int = 5
    """between inputs of the pool, of which ``n_drawn`` are moved there for each,"""
    farther: tuple[float, ...] = (1.0, 4.0)
    """some of them farther out."""
    fewest: int = 6
    """Of fewer places where borders were found nothing is concluded."""
    beside: float = 1e-3
    """How far beside the hyperplane heights are taken, relative to an input's size."""
    most_straight: float = 0.05
    """A larger share of places without a bend is of a neuron above.  A border there may bend by
    less than its place is told, but rarely."""
    farthest: float = 1e-3
    wider: float = 8.0
    """How far beside it is where a row is known to fewer digits, in its errors; and to see whether
    borders bend there at all."""
    n_heights: int = 2
    """Heights on either side of which two tell where a border bends, and others that it bends
    nowhere else."""
    room: float = 2.0 * SIGMAS
    """What heights on both sides are off a line by ``room`` times their precision is a bend: twice
    as many errors as of an answer, since that of a height is itself read off few of them."""
    surplus: float = 1.5
    """Places for each unknown of a row that is told to more digits,"""
    fewest_over: float = 1.0
    """of which it takes more than ``fewest_over`` an input,"""
    coarse: tuple[float, float, int, float] = (6.0, 1.25, 3, 1.0)
    """``surplus``, ``fewest_over``, ``n_heights`` and ``clear`` where labels tell few digits,"""
    between: float = 0.9
    """and ``nearest``: there bends are between the heights next to the hyperplane at most,"""
    nearest: float = 0.01
    """where its bends are seen within ``nearest`` steps of the hyperplane."""
    n_parts: int = 16
    """Of points that are on no hyperplane, the farthest are left out, one of ``n_parts``."""
    n_weighings: int = 6
    typical: float = 6.0
    """How often the points of one are weighed anew: the median distance is less than ``typical``
    errors, and those that are ``typical`` times as far off weigh half."""
    clear: float = 0.0
    """Points are left out where the hyperplane of another row is as near as ``clear`` steps."""
    same: float = 1e-4
    """Rows that differ by less are one."""
    fewest_above: int = 3
    """Fewer rows whose hyperplanes end were found by chance."""
    most_alone: int = 24
    """Rows, none of which bends all borders, that no network is the reason of; half as many where
    walks have passed more hyperplanes than ended at any."""
    margin: float = 1e-3
    """The next layer is looked at where no output of the first is smaller."""
    most_idle: int = 16
    """Generations of the survey without a new row, until it ends,"""
    n_restarts: int = 4
    """each of which begins at ``n_restarts`` borders, too,"""
    n_confirmed: int = 24
    """Fresh borders whose normals must be of the rows found, before none is called missing."""
    n_attempts: int = 3
    """Times that the survey goes on where what lies above is not found."""
    reach: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)
    """and has walks head as many times as far out as these say, by turns."""
    worst: float = 1e-8
    """Facets known less precisely, in radians, tell no sign."""

    def at(self, told: Told) -> "Depth":
        """Return what serves where labels tell few digits.

        Heights are taken ``wider`` errors of a row beside its hyperplane, but nearer than facets
        are wide.  Rows are off by some times the error of those whose bends are sharp.
        """
        surplus, fewest_over, n_heights, clear = self.coarse
        return replace(
            self,
            farthest=max(self.farthest, told.step / 5.0),
            nearest=max(self.nearest, self.between),
            n_heights=n_heights,
            fewest_over=fewest_over,
            same=max(self.same, 256.0 * told.rows),
            surplus=surplus,
            clear=clear,
        )


def share_bent(
    pool: Pool, V: FloatArray, precision: Precision, depth: Depth
) -> tuple[FloatArray, IntArray]:
    """How many of the borders met at places of hyperplanes ``V (m, d + 1)`` bend there.

    Returns
    -------
    share : ndarray, shape (m,)
    n : ndarray, shape (m,)
        Number of those looked at.
    """
    m = len(V)
    found, row = _borders_on_hyperplanes(pool, V, precision, depth, depth.n_places)
    t, _ = _heights_beside(pool, found, V[row, :-1], (1.0, -1.0), precision, depth.farthest)
    off = np.abs(t.sum(axis=0))
    known = np.isfinite(off)
    bent = known & (off > depth.room * precision.atol(found.X))
    n = np.bincount(row[known], minlength=m)
    return np.bincount(row[bent], minlength=m) / np.maximum(n, 1), n


def _borders_on_hyperplanes(
    pool: Pool, V: FloatArray, precision: Precision, depth: Depth, n_places: int
) -> tuple[Borders, IntArray]:
    """Borders between classes in hyperplanes, ``n_places`` of each or fewer, and of which they are.

    Ends of segments between classes are moved to the hyperplane, and asked again.
    """
    n = depth.n_drawn * n_places
    P, Q, _ = pool.segments(n * len(V))
    row = np.repeat(np.arange(len(V)), n)
    farther = np.tile(np.resize(depth.farther, n), len(V))[:, None]
    ends = np.stack([farther * P, farther * Q])
    N, beta = V[row, :-1], V[row, -1]
    ends -= ((ends * N).sum(axis=2) + beta)[:, :, None] * N
    a, b = pool.ask(ends.reshape(-1, pool.dim)).reshape(2, -1)
    inside = (pool.domain.nearest(ends) == ends).all(axis=(0, 2))
    met = ((a != b) & inside).reshape(len(V), n)
    met &= np.cumsum(met, axis=1) <= n_places
    chosen = met.ravel()
    P, Q = ends[:, chosen]
    return pool.between(P, Q, a[chosen], precision.rtol), row[chosen]


def _heights_beside(
    pool: Pool,
    borders: Borders,
    N: FloatArray,
    steps: tuple[float, ...],
    precision: Precision,
    beside: float | FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Heights of borders beside their points, (k, n), steps along ``N (n, d)``, and their length.

    Heights are along what leads across, in the hyperplane to which N is normal.
    """
    k, n = len(steps), len(borders)
    size = input_sizes(borders.X)
    h, atol = beside * size, precision.atol(borders.X)
    places = borders.X + np.array(steps)[:, None, None] * h[:, None] * N
    t = heights(
        pool.ask,
        places.reshape(k * n, pool.dim),
        np.tile(borders.E, (k, 1)),
        np.tile(borders.a, k),
        np.tile(2.0 * h, k),
        np.tile(atol, k),
    )
    return t.reshape(k, n), h


def _are_clear(
    X: FloatArray, row: IntArray, V: FloatArray, beside: FloatArray, depth: Depth
) -> BoolArray:
    """Whether no other hyperplane of ``V (m, d + 1)`` bends borders near ``X (n, d)``, (n,).

    The first rows of V are those at whose hyperplanes X are, each at that of ``row``.
    """
    size = input_sizes(X)
    off = np.abs(X @ V[:, :-1].T + V[:, -1])
    off[np.arange(len(X)), row] = np.inf
    return np.asarray((off > (depth.clear * beside * size)[:, None]).all(axis=1))


def refined_rows(
    pool: Pool,
    rows: NeuronRows,
    precision: Precision,
    depth: Depth,
    others: NeuronRows | None = None,
) -> NeuronRows:
    """Rows to more digits: hyperplanes through points at which borders bend.

    Two heights on either side of a place are two lines, which meet where the border bends.

    Parameters
    ----------
    others : NeuronRows, optional
        These rows, then others that are known.
    """
    m, d = len(rows), pool.dim
    borders, row = _borders_on_hyperplanes(
        pool, rows.V, precision, depth, int(depth.surplus * (d + 1)) + 1
    )
    n = depth.n_heights
    steps = tuple(sign * k for k in range(1, n + 1) for sign in (-1.0, 1.0))
    beside = np.clip(depth.wider * rows.err, depth.beside, depth.farthest)[row]
    is_clear = _are_clear(borders.X, row, rows.V if others is None else others.V, beside, depth)
    borders, row, beside = borders.take(is_clear), row[is_clear], beside[is_clear]
    T, h = _heights_beside(pool, borders, rows.V[row, :-1], steps, precision, beside)
    T = T.reshape(n, 2, len(borders))
    (near, near_on), (far, far_on) = T[:2]
    left, right = near - far, far_on - near_on
    with np.errstate(divide="ignore", invalid="ignore"):
        s = (2.0 * near - far - (2.0 * near_on - far_on)) / (right - left)
        t = 2.0 * near - far + left * s
        X = borders.X + (s * h)[:, None] * rows.V[row, :-1] + t[:, None] * borders.E
        off = h * precision.atol(X) / np.abs(right - left)
    # A bend of another neuron between heights of one side leaves the line of the others.
    straight = (np.abs(np.diff(T, 2, axis=0)) < depth.room * precision.atol(borders.X)).all(
        axis=(0, 1)
    )
    known = straight & (np.abs(s) < depth.nearest)
    V, err, seen = rows.V.copy(), rows.err.copy(), rows.seen.copy()
    weights = 1.0 / np.maximum(off, precision.rtol)
    M = np.column_stack([X, np.ones(len(X))]) * weights[:, None]
    for i in range(m):
        v, error, rest = _null_row(M[known & (row == i)], depth)
        v = v * np.sign(v @ V[i])
        if np.abs(v - V[i]).max() < max(depth.same, depth.room * err[i]):
            V[i], err[i], seen[i] = v, error, rest
    return NeuronRows(V, err, seen)


def _null_row(M: FloatArray, depth: Depth) -> tuple[FloatArray, float, FloatArray]:
    """The hyperplane through points, its error, and a triangular factor of them; NaN without one.

    Where another hyperplane lies beside a point it is farther off, and where outputs change
    slowly it is told less precisely.  The farthest are left out until the others are of one
    hyperplane; then all points weigh as under noise of Cauchy's law.

    Parameters
    ----------
    M : ndarray, shape (n, d + 1)
        Points and a 1, over how far off each is.
    """
    n, d = len(M), M.shape[1] - 1
    fewest, weights = depth.fewest_over * d, np.ones(n)
    for _ in range(depth.n_weighings):
        while (weights**2).sum() > fewest:
            _, sizes, right = np.linalg.svd(weights[:, None] * M, full_matrices=False)
            v = right[-1] / np.linalg.norm(right[-1, :d])
            rest = np.abs(M @ v)
            known = weights > 0.0
            # d of the distances are fitted away.
            scale = max(float(np.median(rest[known])) * np.sqrt(n / (n - d)), 1.0)
            if scale < depth.typical:
                break
            left_out = np.sort(rest[known])[-max(int(known.sum()) // depth.n_parts, 1)]
            weights = np.where(known & (rest < left_out), 1.0, 0.0)
        if (weights**2).sum() <= fewest:
            return np.full(d + 1, np.nan), np.inf, np.empty((d + 1, d + 1))
        weights = cauchy(rest, depth.typical * scale)
    factor = np.linalg.qr(weights[:, None] * M / scale, mode="r")
    return v, float(depth.room * scale / sizes[-2]), np.asarray(factor)


@dataclass
class FirstLayer:
    """Rows of a survey, held against borders elsewhere."""

    survey: Survey
    """Its rows are those of the first layer from now on, and those not decided yet."""
    depth: Depth
    n_found: int = field(default=0, init=False)
    """How many are of the first layer; they stand first."""
    above: FloatArray = field(init=False)
    """Shape (k, d + 1).  Rows that are not: of neurons above, or of none."""

    def __post_init__(self) -> None:
        self.above = np.empty((0, self.survey.pool.dim + 1))

    @property
    def rows(self) -> NeuronRows:
        """Those of the first layer."""
        return self.survey.rows.take(np.arange(self.n_found))

    def sort(self, some: FloatArray | None = None) -> int:
        """Decide on rows that are new; return how many are of the first layer.

        Parameters
        ----------
        some : ndarray, shape (k, d + 1), optional
            Only those that are among these are decided on.
        """
        found, rest = self.rows, self.survey.rows.take(np.arange(self.n_found, self.n_rows))
        rest = rest.take(~_is_among(rest.V, np.vstack([self.above, found.V]), self.depth.same))
        is_held = np.full(len(rest), True)
        if some is not None:
            is_held = _is_among(rest.V, some, self.depth.same)
        others, rest = rest.take(~is_held), rest.take(is_held)
        if not len(rest):
            self.survey.rows = found.joined(others)
            return 0
        share, n = share_bent(self.survey.pool, rest.V, self.survey.precision, self.depth)
        enough, bent = n >= self.depth.fewest, share >= 1.0 - self.depth.most_straight
        first, above = enough & bent, enough & ~bent
        self.above = np.vstack([self.above, rest.V[above]])
        found = found.joined(rest.take(first))
        self.n_found = len(found)
        self.survey.rows = found.joined(rest.take(~first & ~above)).joined(others)
        return int(first.sum())

    @property
    def is_refuted(self) -> bool:
        """Whether there are more rows above than would be if there were one of a first layer.

        Each row of it is common to bends anywhere, and one above only to those in a region.
        """
        is_straight = self.survey.n_silent > self.survey.n_met
        most = self.depth.most_alone // 2 if is_straight else self.depth.most_alone
        return self.n_found == 0 and len(self.above) >= most

    @property
    def n_rows(self) -> int:
        """How many rows the survey has, decided or not."""
        return len(self.survey.rows)

    def refine(self) -> None:
        """Tell the rows found to more digits."""
        found = refined_rows(self.survey.pool, self.rows, self.survey.precision, self.depth)
        self.survey.rows = found.joined(self.survey.rows.take(np.arange(self.n_found, self.n_rows)))

    def signed(self) -> FloatArray | None:
        """The rows with their signs, (m, d + 1); None where one is missing, or not told.

        On the side where a row is off no normal has a part of it, as long as no row is missing
        and all are independent.
        """
        V, facets = self.rows.V, self.survey.facets
        facets = facets.take(facets.err < self.depth.worst)
        m, d = len(V), self.survey.pool.dim
        if not m or m > d or not len(facets):
            return None
        inverse = np.linalg.pinv(V[:, :d])
        C = facets.N @ inverse
        grown = np.linalg.norm(inverse, 2)
        limit = self.depth.room * (facets.err + self.rows.err.max() * np.abs(C).sum(axis=1)) * grown
        rest = np.linalg.norm(facets.N - C @ V[:, :d], axis=1)
        if grown * self.rows.err.max() > 1.0 or (rest > limit).mean() > self.depth.most_straight:
            return None
        is_part, on = np.abs(C) > limit[:, None], facets.X @ V[:, :d].T + V[:, d] > 0.0
        signs = np.zeros(m)
        for i in range(m):
            shares = [_mean(is_part[on[:, i] == side, i]) for side in (False, True)]
            off = [s <= self.depth.most_straight for s in shares]
            if off[0] != off[1] and max(shares) > 0.5:
                signs[i] = 1.0 if off[0] else -1.0
        return V * signs[:, None] if signs.all() else None


def _mean(of: BoolArray) -> float:
    """The share of what is true; NaN of nothing."""
    return float(of.mean()) if len(of) else float("nan")


def _is_among(V: FloatArray, others: FloatArray, atol: float) -> BoolArray:
    """Whether affine maps ``V (n, d + 1)`` are others up to their signs, (n,)."""
    if not len(V) or not len(others):
        return np.zeros(len(V), bool)
    near = [np.abs(V[:, None] - s * others[None]).max(axis=2).min(axis=1) for s in (1.0, -1.0)]
    return np.asarray(np.minimum(*near) < atol)
