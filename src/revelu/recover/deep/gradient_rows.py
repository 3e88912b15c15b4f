"""Rows of a layer that no kink shows, from what the rows known leave of gradients.

What is left of a gradient ``g`` outside the span of the neurons that are on, with ``P`` the
projection there, is along ``P M^T u`` where one more neuron with row ``u`` is on:

    (I - r r^T / |r|^2) P M^T u = 0,    r = P g,

homogeneous linear equations for ``u``, the same at all such points.  Where the neuron never rests
they are all that speaks of it, and they have a solution if the signs of the others are right, and
by no chance if they are not.  Where u lacks some entries they give those.
"""

from dataclasses import dataclass

import numpy as np

from revelu.types import BoolArray, FloatArray, IntArray

# Points looked at: at most; as many as give so many times the equations that a row has entries;
# and the fewest that tell anything, beyond its entries.
_MOST_POINTS = 400
_ENOUGH = 100
_SPARE = 10

# A gradient is explained if this share of it, at most, is outside; directions fainter than this
# share, squared, of all are none.
_IN_SPAN = 1e-5
_RIDGE = 1e-13

# Steps of reweighting, so that points at which yet another neuron is missing do not count; and
# passes that turn signs, from so many starts with this share of them turned by chance.
_REWEIGHTED = 4
_MAX_PASSES = 60
_STARTS = 4
_FLIPPED = 0.3

# Equations that must agree on entries, beyond their number.
_FEWEST_AGREE = 3

# A row that explains fewer of the points than this is none.
_MOSTLY = 0.5

# A second solution whose eigenvalue is not so many times the first one leaves the row open.
_GAP = 1e3


def find_steady(
    W: FloatArray,
    Z: FloatArray,
    M: FloatArray,
    gradients: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray] | None:
    """Find the row of the one neuron that a layer lacks, if it is always on.

    Parameters
    ----------
    W : ndarray, shape (k, m)
        The other rows of the layer, each with either sign.
    Z : ndarray, shape (n, k)
        Their sums at points.
    M : ndarray, shape (n, m, d)
        Local maps of the layers below.
    gradients : ndarray, shape (n, outputs, d)
    rng : numpy.random.Generator

    Returns
    -------
    (u, signs) or None
        A row of norm 1, shape (m,), with either sign, and the signs of the others, shape (k,).
        None where no row explains most of the points.
    """
    # Where the map has most rank, fewest neurons are on for it, and there are most equations.
    ranks = np.linalg.matrix_rank(M)
    points = np.argsort(-ranks - rng.random(len(ranks)))[:_MOST_POINTS]
    k, m = W.shape
    n_equations = np.maximum(ranks[points] - k, 0).cumsum()
    enough = 1 + int(np.searchsorted(n_equations, _ENOUGH * m))
    points = points[: max(enough, 2 * (m + _SPARE))]
    products = _Products.of(W, M[points], gradients[points])
    positive = Z[points] > 0
    for start in range(_STARTS):
        flips = rng.random(len(W)) < (_FLIPPED if start else 0.0)
        signs = np.where(flips, -1.0, 1.0)
        now = products.fit(positive == (signs > 0))
        for _ in range(_MAX_PASSES):
            now, turned = _turned(products, positive, signs, now)
            if (turned == signs).all():
                break
            signs = turned
        if now.share_explained >= _MOSTLY and now.is_one:
            return now.u, signs
    return None


def steady_work(W: FloatArray, n_points: int) -> int:
    """Multiplications of one pass of ``find_steady`` over the signs, about."""
    k, m = W.shape
    return int(min(n_points, _MOST_POINTS) * m**2 * k)


def _turned(
    products: "_Products", positive: BoolArray, signs: FloatArray, now: "_Fit"
) -> tuple["_Fit", FloatArray]:
    """Turn each sign that helps, the one that helps most first, and as long as the next helps."""

    def flipped(j: int) -> FloatArray:
        return np.where(np.arange(len(signs)) == j, -signs, signs)

    def fit(turned: FloatArray) -> "_Fit":
        return products.fit(positive == (turned > 0))

    alone = [fit(flipped(j)).worth for j in range(len(signs))]
    helpful = [j for j in range(len(signs)) if alone[j] > now.worth]
    for j in sorted(helpful, key=lambda j: -alone[j]):
        found = fit(flipped(j))
        if found.worth > now.worth:
            now, signs = found, flipped(j)
    return now, signs


def find_entries(
    v: FloatArray,
    unseen: BoolArray,
    W: FloatArray,
    on: BoolArray,
    M: FloatArray,
    gradients: FloatArray,
) -> FloatArray:
    """Find entries that a row lacks.

    Parameters
    ----------
    v : ndarray, shape (m,)
        The row, 0 where it is not known.
    unseen : ndarray of bool, shape (m,)
        Where that is.
    W : ndarray, shape (k, m)
        The other rows of the layer, whole.
    on : ndarray of bool, shape (n, k)
        Where they are on, at points where the neuron itself may be.
    M : ndarray, shape (n, m, d)
    gradients : ndarray, shape (n, outputs, d)

    Returns
    -------
    ndarray, shape (m,)
        The row with those entries on which enough regions agree.
    """
    products = _Products.of(W, M, gradients)
    left, ranks = products.left(on), products.ranks
    Q = left.equations
    places = np.flatnonzero(unseen & M[left.points[left.bare]].any(axis=(0, 2)))
    if not len(places) or len(Q) < len(places) + _FEWEST_AGREE:
        return v
    own = left.own[left.bare] / left.scale[left.bare, None, None]
    u, weights = v.copy(), np.ones(len(Q))
    for _ in range(_REWEIGHTED):
        total = np.einsum("n,nij->ij", weights, Q)
        u[places] = np.linalg.lstsq(total[np.ix_(places, places)], -total[places] @ v)[0]
        length = np.einsum("nij,i,j->n", own, u, u)
        misfits = np.maximum(np.einsum("nij,i,j->n", Q, u, u), 0.0) / np.maximum(length, 1e-300)
        weights = 1.0 / (misfits + np.median(misfits) + _IN_SPAN**2)
    agree = np.flatnonzero(misfits <= _IN_SPAN**2)
    # Points of one region say the same: what counts is how many equations regions have.
    points = left.points[left.bare][agree]
    patterns = np.column_stack([M[points].any(axis=2), on[points]])
    regions = points[np.unique(patterns, axis=0, return_index=True)[1]]
    n_equations = int((ranks[regions] - on[regions].sum(axis=1) - 1).sum())
    enough = n_equations >= len(places) + _FEWEST_AGREE and len(agree) >= _MOSTLY * len(Q)
    return u if enough else v


@dataclass(frozen=True)
class _Fit:
    """A row, how well it explains the points, and whether it is the only one that does."""

    u: FloatArray
    worth: float
    share_explained: float
    is_one: bool


@dataclass(frozen=True)
class _Products:
    """Products of rows, of the entries' own maps and of gradients, at some points.

    ``rows (n, k + m, k + m)``, ``cross (n, k + m, outputs)``, ``size (n,)``, ``ranks (n,)``.
    """

    rows: FloatArray
    cross: FloatArray
    size: FloatArray
    ranks: IntArray
    seen: BoolArray

    @classmethod
    def of(cls, W: FloatArray, M: FloatArray, gradients: FloatArray) -> "_Products":
        R = np.vstack([W, np.eye(W.shape[1])]) @ M
        return cls(
            R @ np.swapaxes(R, 1, 2),
            R @ np.swapaxes(gradients, 1, 2),
            (gradients**2).sum(axis=(1, 2)),
            np.asarray(np.linalg.matrix_rank(M), dtype=np.intp),
            np.asarray(M.any(axis=(0, 2))),
        )

    def fit(self, on: BoolArray) -> _Fit:
        """Solve for the row, given which of the other neurons are on, shape (n, k)."""
        m = len(self.seen)
        none = _Fit(np.zeros(m), -np.inf, 0.0, is_one=False)
        left = self.left(on)
        if min(len(left.points), left.bare.sum()) < m + _SPARE:
            return none
        equations = left.equations
        weights = np.ones(len(equations))
        u, values = np.zeros(m), np.zeros(int(self.seen.sum()))
        for _ in range(_REWEIGHTED):
            total = np.tensordot(weights, equations, 1)[np.ix_(self.seen, self.seen)]
            values, vectors = np.linalg.eigh(total)
            u[self.seen] = vectors[:, 0]
            misfits = np.maximum((equations @ u) @ u, 0.0)
            weights = 1.0 / (misfits + np.median(misfits) + _IN_SPAN**2)
        length = (left.own @ u) @ u
        along = ((np.swapaxes(left.cross, 1, 2) @ u) ** 2).sum(axis=1)
        rest = (left.size - along / np.where(length > 0, length, 1.0)) / self.size[left.points]
        explained = rest <= _IN_SPAN**2
        worth = -float(np.log(np.maximum(rest, _IN_SPAN**2)).mean())
        is_one = len(values) > 1 and bool(values[1] > _GAP * max(values[0], 0.0))
        return _Fit(u, worth, float(explained.mean()), is_one)

    def left(self, on: BoolArray) -> "_Left":
        """What the neurons that are on leave where they do not span all, and one more may be on."""
        k = on.shape[1]
        i = np.flatnonzero((on.sum(axis=1) + 1 < self.ranks) & (self.size > 0))
        on = on[i]
        G = np.where(on[:, :, None] & on[:, None, :], self.rows[i, :k, :k], 0.0)
        trace = np.trace(G, axis1=1, axis2=2)[:, None]
        G[:, np.arange(k), np.arange(k)] += np.where(on & (trace > 0), _RIDGE * trace, 1.0)
        entries = np.where(on[:, :, None], self.rows[i, :k, k:], 0.0)
        gradients = np.where(on[:, :, None], self.cross[i, :k], 0.0)
        inside = np.linalg.solve(G, np.concatenate([entries, gradients], axis=2))
        m = entries.shape[2]
        across = np.swapaxes(entries, 1, 2)
        size = self.size[i] - (gradients * inside[:, :, m:]).sum(axis=(1, 2))
        return _Left(
            i,
            self.rows[i, k:, k:] - across @ inside[:, :, :m],
            self.cross[i, k:] - across @ inside[:, :, m:],
            size,
            size > _IN_SPAN**2 * self.size[i],
            np.trace(self.rows[i, k:, k:], axis1=1, axis2=2),
        )


@dataclass(frozen=True)
class _Left:
    """Products of what is outside the span of the neurons that are on, at some points.

    ``own (n, m, m)``: those of the entries' maps; ``cross (n, m, outputs)``; ``size (n,)``;
    ``bare (n,)``: where there is anything of the gradient; ``scale (n,)``: the maps' own size.
    """

    points: IntArray
    own: FloatArray
    cross: FloatArray
    size: FloatArray
    bare: BoolArray
    scale: FloatArray

    @property
    def equations(self) -> FloatArray:
        """``|P M^T u|^2 - |r P M^T u|^2 / |r|^2`` of a row as ``u Q u``, at every bare point."""
        cross, size = self.cross[self.bare], self.size[self.bare, None, None]
        Q = self.own[self.bare] - cross @ np.swapaxes(cross, 1, 2) / size
        return np.asarray(Q / self.scale[self.bare, None, None])
