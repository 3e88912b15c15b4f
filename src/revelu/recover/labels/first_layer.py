"""The first of several hidden layers: rows whose hyperplanes bend every border that meets them.

Two bends have the affine map of a neuron in common, whatever its layer.  One of the first layer
has it everywhere; one above has another wherever the neurons below it switch.  So a row is held
against borders at random places of its hyperplane: of the first layer each of them bends there.

Normals of facets are combinations of the rows that are on, all of them and no others.  So where
the rows found are independent and span the normals of all facets, none is missing that a border
shows, and a row is on where its coefficient is not 0.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.recover.labels.borders import Borders, Pool
from revelu.recover.labels.facets import Precision
from revelu.recover.labels.heights import heights
from revelu.recover.labels.rows import Rows
from revelu.recover.labels.survey import Survey
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Depth:
    """When a row is of the first layer.

    Attributes
    ----------
    n_places : int
        Places of its hyperplane at which borders are to bend,
    n_drawn : int
        between inputs of the pool, of which so many are moved there for each,
    farther : tuple of float
        some of them farther out.
    fewest : int
        Of fewer places where borders were found nothing is concluded.
    beside : float
        How far beside the hyperplane heights are taken, relative to an input's size.
    most_straight : float
        A larger share of places without a bend is of a neuron above.  A border there may bend by
        less than its place is told, but rarely.
    room : float
        What heights on both sides are off a line by so many times their precision is a bend.
    surplus : float
        Places for each unknown of a row that is told to more digits,
    nearest : float
        where its bends are seen within so many steps of the hyperplane.
    same : float
        Rows that differ by less are one.
    fewest_above : int
        Fewer rows whose hyperplanes end were found by chance.
    most_alone : int
        Of so many of them, and none that bends all borders, no network is the reason; half as
        many where walks have passed more hyperplanes than ended at any.
    margin : float
        The next layer is looked at where no output of the first is smaller.
    most_idle : int
        Generations of the survey without a new row, until it ends,
    n_restarts : int
        each of which begins at so many borders, too,
    n_confirmed : int
        Fresh borders whose normals must be of the rows found, before none is called missing.
    n_attempts : int
        Times that the survey goes on where what lies above is not found.
    reach : tuple of float
        and has walks head so many times as far out, by turns.
    worst : float
        Facets known less precisely, in radians, tell no sign.
    """

    n_places: int = 12
    n_drawn: int = 5
    farther: tuple[float, ...] = (1.0, 4.0)
    fewest: int = 6
    beside: float = 1e-3
    most_straight: float = 0.05
    room: float = 16.0
    surplus: float = 1.5
    nearest: float = 0.01
    same: float = 1e-4
    worst: float = 1e-8
    fewest_above: int = 3
    most_alone: int = 24
    margin: float = 1e-3
    most_idle: int = 16
    n_restarts: int = 4
    n_confirmed: int = 24
    n_attempts: int = 3
    reach: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)


def share_bent(
    pool: Pool, V: FloatArray, precision: Precision, depth: Depth
) -> tuple[FloatArray, IntArray]:
    """How many of the borders met at places of hyperplanes ``V (m, d + 1)`` bend there.

    Returns
    -------
    share : ndarray, shape (m,)
    n : ndarray, shape (m,)
        Of so many.
    """
    m = len(V)
    found, row = _borders_on_hyperplanes(pool, V, precision, depth, depth.n_places)
    t, _ = _heights_beside(pool, found, V[row, :-1], (1.0, -1.0), precision, depth)
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
    depth: Depth,
) -> tuple[FloatArray, FloatArray]:
    """Heights of borders beside their points, (k, n), so many steps along ``N (n, d)``, and a step.

    Heights are along what leads across, in the hyperplane to which N is normal.
    """
    k, n = len(steps), len(borders)
    size = np.maximum(np.abs(borders.X).max(axis=1, initial=0.0), 1.0)
    h, atol = depth.beside * size, precision.atol(borders.X)
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


def refined_rows(pool: Pool, rows: Rows, precision: Precision, depth: Depth) -> Rows:
    """Rows to more digits: hyperplanes through points at which borders bend.

    Two heights on either side of a place are two lines, which meet where the border bends.
    """
    m, d = len(rows), pool.dim
    borders, row = _borders_on_hyperplanes(
        pool, rows.V, precision, depth, int(depth.surplus * (d + 1)) + 1
    )
    steps = (-2.0, -1.0, 1.0, 2.0)
    (far, near, near_on, far_on), h = _heights_beside(
        pool, borders, rows.V[row, :-1], steps, precision, depth
    )
    left, right = near - far, far_on - near_on
    with np.errstate(divide="ignore", invalid="ignore"):
        s = (2.0 * near - far - (2.0 * near_on - far_on)) / (right - left)
    t = 2.0 * near - far + left * s
    known = np.abs(s) < depth.nearest
    X = borders.X + (s * h)[:, None] * rows.V[row, :-1] + t[:, None] * borders.E
    off = h * precision.atol(X) / np.abs(right - left)
    V, err = rows.V.copy(), rows.err.copy()
    for i in range(m):
        some = known & (row == i)
        if some.sum() < d + 1:
            continue
        weights = 1.0 / np.maximum(off[some], precision.rtol)
        M = np.column_stack([X[some], np.ones(int(some.sum()))]) * weights[:, None]
        _, sizes, right_vectors = np.linalg.svd(M, full_matrices=False)
        v = right_vectors[-1] / np.linalg.norm(right_vectors[-1, :d])
        v *= np.sign(v @ V[i])
        if np.abs(v - V[i]).max() < depth.same and sizes[-1] < depth.room * np.sqrt(len(M)):
            V[i], err[i] = v, depth.room / sizes[-2]
    return Rows(V, err, rows.seen)


@dataclass
class FirstLayer:
    """Rows of a survey, held against borders elsewhere.

    Attributes
    ----------
    survey : Survey
        Its rows are those of the first layer from now on, and those not decided yet.
    n_found : int
        How many are of the first layer; they stand first.
    above : ndarray, shape (k, d + 1)
        Rows that are not: of neurons above, or of none.
    """

    survey: Survey
    pool: Pool
    precision: Precision
    depth: Depth
    n_found: int = field(default=0, init=False)
    above: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.above = np.empty((0, self.pool.dim + 1))

    @property
    def rows(self) -> Rows:
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
            self.survey.rows = found.join(others)
            return 0
        share, n = share_bent(self.pool, rest.V, self.precision, self.depth)
        enough, bent = n >= self.depth.fewest, share >= 1.0 - self.depth.most_straight
        first, above = enough & bent, enough & ~bent
        self.above = np.vstack([self.above, rest.V[above]])
        found = found.join(rest.take(first))
        self.n_found = len(found)
        self.survey.rows = found.join(rest.take(~first & ~above)).join(others)
        return int(first.sum())

    @property
    def is_refuted(self) -> bool:
        """Whether there are rows above so many that one of a first layer would have been found.

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
        found = refined_rows(self.pool, self.rows, self.precision, self.depth)
        self.survey.rows = found.join(self.survey.rows.take(np.arange(self.n_found, self.n_rows)))

    def signed(self) -> FloatArray | None:
        """The rows with their signs, (m, d + 1); None where one is missing, or not told.

        On the side where a row is off no normal has a part of it, as long as no row is missing
        and all are independent.
        """
        V, facets = self.rows.V, self.survey.facets
        facets = facets.take(facets.err < self.depth.worst)
        m, d = len(V), self.pool.dim
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
