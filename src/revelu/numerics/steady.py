"""A neuron that never rests: its direction, from gradients alone.

Where one neuron of a layer is on at all points, no kink shows it, and no gradient is in the span of
the others' rows.  What is left of a gradient ``g`` outside that span, with ``P`` the projection
there, is along ``P M^T u`` for one row ``u``, the same at all points:

    (I - r r^T / |r|^2) P M^T u = 0,    r = P g,

homogeneous linear equations for ``u``, which have a solution if the signs of the others are right,
and by no chance if they are not.
"""

from dataclasses import dataclass

import numpy as np

from revelu.types import BoolArray, FloatArray, IntArray

# Points looked at, and the fewest that tell anything, beyond the entries of a row.
_MOST_POINTS = 400
_SPARE = 10

# A gradient is explained if this share of it, at most, is outside; directions fainter than this
# share, squared, of all are none.
_IN_SPAN = 1e-5
_RIDGE = 1e-13

# Steps of reweighting, so that points at which yet another neuron is missing do not count; and
# turns of single signs, from so many starts with this share of the signs turned by chance.
_REWEIGHTED = 4
_MAX_TURNS = 60
_STARTS = 4
_FLIPPED = 0.3

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
    products = _Products.of(W, M, gradients, rng)
    if not len(products.size):
        return None
    positive = Z[products.points] > 0
    for start in range(_STARTS):
        flips = rng.random(len(W)) < (_FLIPPED if start else 0.0)
        signs = np.where(flips, -1.0, 1.0)
        now = products.fit(positive == (signs > 0))
        for _ in range(_MAX_TURNS):
            turned = [np.where(np.arange(len(W)) == j, -signs, signs) for j in range(len(W))]
            fits = [products.fit(positive == (t > 0)) for t in turned]
            best = max(range(len(fits)), key=lambda j: fits[j].worth, default=None)
            if best is None or fits[best].worth <= now.worth:
                break
            now, signs = fits[best], turned[best]
        if now.share_explained >= _MOSTLY and now.is_one:
            return now.u, signs
    return None


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

    points: IntArray
    rows: FloatArray
    cross: FloatArray
    size: FloatArray
    ranks: IntArray
    seen: BoolArray

    @classmethod
    def of(
        cls, W: FloatArray, M: FloatArray, gradients: FloatArray, rng: np.random.Generator
    ) -> "_Products":
        ranks = np.asarray(np.linalg.matrix_rank(M), dtype=np.intp)
        # Where the map has most rank, fewest neurons are on for it.
        points = np.argsort(-ranks - rng.random(len(ranks)))[:_MOST_POINTS]
        size = (gradients[points] ** 2).sum(axis=(1, 2))
        points, size = points[size > 0], size[size > 0]
        R = np.vstack([W, np.eye(W.shape[1])]) @ M[points]
        cross = R @ np.swapaxes(gradients[points], 1, 2)
        seen = np.asarray(M[points].any(axis=(0, 2)))
        return cls(points, R @ np.swapaxes(R, 1, 2), cross, size, ranks[points], seen)

    def fit(self, on: BoolArray) -> _Fit:
        """Solve for the row, given which of the other neurons are on, shape (n, k)."""
        k, m = on.shape[1], len(self.seen)
        none = _Fit(np.zeros(m), -np.inf, 0.0, is_one=False)
        i = np.flatnonzero(on.sum(axis=1) + 1 < self.ranks)
        if len(i) < m + _SPARE:
            return none
        own, cross, left = self._outside(i, on[i])
        bare = left > _IN_SPAN**2 * self.size[i]
        if bare.sum() < m + _SPARE:
            return none
        # |r|^2 |P M^T u|^2 - |r P M^T u|^2, relative to both.
        equations = (
            own[bare] - cross[bare] @ np.swapaxes(cross[bare], 1, 2) / left[bare, None, None]
        )
        equations /= np.trace(self.rows[i[bare], k:, k:], axis1=1, axis2=2)[:, None, None]
        weights = np.ones(len(equations))
        u, values = np.zeros(m), np.zeros(int(self.seen.sum()))
        for _ in range(_REWEIGHTED):
            total = np.einsum("n,nij->ij", weights, equations)[np.ix_(self.seen, self.seen)]
            values, vectors = np.linalg.eigh(total)
            u[self.seen] = vectors[:, 0]
            misfits = np.maximum(np.einsum("nij,i,j->n", equations, u, u), 0.0)
            weights = 1.0 / (misfits + np.median(misfits) + _IN_SPAN**2)
        length = np.einsum("nij,i,j->n", own, u, u)
        along = ((np.swapaxes(cross, 1, 2) @ u) ** 2).sum(axis=1)
        rest = (left - along / np.where(length > 0, length, 1.0)) / self.size[i]
        explained = rest <= _IN_SPAN**2
        worth = -float(np.log(np.maximum(rest, _IN_SPAN**2)).mean())
        is_one = len(values) > 1 and bool(values[1] > _GAP * max(values[0], 0.0))
        return _Fit(u, worth, float(explained.mean()), is_one)

    def _outside(self, i: IntArray, on: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Products of what is outside the span of the neurons that are on."""
        k = on.shape[1]
        G = np.where(on[:, :, None] & on[:, None, :], self.rows[i, :k, :k], 0.0)
        trace = np.trace(G, axis1=1, axis2=2)[:, None]
        G[:, np.arange(k), np.arange(k)] += np.where(on & (trace > 0), _RIDGE * trace, 1.0)
        entries = np.where(on[:, :, None], self.rows[i, :k, k:], 0.0)
        gradients = np.where(on[:, :, None], self.cross[i, :k], 0.0)
        inside = np.linalg.solve(G, np.concatenate([entries, gradients], axis=2))
        m = entries.shape[2]
        across = np.swapaxes(entries, 1, 2)
        own = self.rows[i, k:, k:] - across @ inside[:, :, :m]
        cross = self.cross[i, k:] - across @ inside[:, :, m:]
        left = self.size[i] - (gradients * inside[:, :, m:]).sum(axis=(1, 2))
        return own, cross, left
