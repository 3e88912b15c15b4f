"""Rows of a layer that no critical point shows, from what the rows known leave of gradients.

What is left of a gradient ``g`` outside the span of the neurons that are on, with ``P`` the
projection there, is along ``P M^T u`` where one more neuron with row ``u`` is on:

    (I - r r^T / |r|^2) P M^T u = 0,    r = P g,

homogeneous linear equations for ``u``, the same at all such points.  Where the neuron is always
on they are all that speaks of it, and they have a solution if the signs of the others are right,
and by no chance if they are not.  Where u lacks some weights they give those.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from revelu.recover.deep.gradient_spans import Products, gram
from revelu.recover.deep.kink_equations import PRECISION
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class AlwaysOnSearch:
    """The search for rows, and weights of rows, that gradients alone show."""

    max_gradients: int = 2000
    """Gradients that are looked at."""
    max_points: int = 400
    """Points that a row is solved for at."""
    enough: float = 100
    """Fewer are taken, where they give so many times the equations that a row has weights."""
    spare: int = 10
    """Points that a row needs beyond the number of its weights."""
    n_reweighted: int = 4
    """Solutions of the equations, each reweighted by how well the one before fits, so that
    points at which yet another neuron is missing do not count."""
    max_passes: int = 60
    """Passes that turn signs, from each start."""
    n_starts: int = 4
    """The first has the signs given, the others turn a share ``flipped`` of them by chance."""
    flipped: float = 0.3
    gap: float = 1e3
    """The row is open where the second smallest eigenvalue of its equations is less than so
    many times the smallest."""
    fewest_agree: int = 3
    """Equations that must agree on weights, beyond their number."""
    max_work: float = 5e7
    """Multiplications that vain searches for a row may cost before they wait for more gradients."""
    more: float = 1.5
    """For so many times those of the last search."""

    def find_row(
        self,
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

        Returns
        -------
        (u, signs) or None
            A row of norm 1, shape (m,), with either sign, and the signs of the others, shape (k,).
            None where no row explains half of the points.
        """
        # Where the map has most rank, fewest neurons are on for it, and there are most equations.
        ranks = np.linalg.matrix_rank(M)
        points = np.argsort(-ranks - rng.random(len(ranks)))[: self.max_points]
        k, m = W.shape
        n_equations = np.maximum(ranks[points] - k, 0).cumsum()
        enough = 1 + int(np.searchsorted(n_equations, self.enough * m))
        points = points[: max(enough, 2 * (m + self.spare))]
        products = Products.of(np.vstack([W, np.eye(m)]), M[points], gradients[points])
        positive, live = Z[points] > 0, np.asarray(M[points].any(axis=(0, 2)))

        def fit(signs: FloatArray) -> "_Fit":
            return self._fit(_Left.of(products, positive == (signs > 0)), live)

        for start in range(self.n_starts):
            flips = rng.random(k) < (self.flipped if start else 0.0)
            signs = np.where(flips, -1.0, 1.0)
            now = fit(signs)
            for _ in range(self.max_passes):
                # Each turn that helps, the one that helps most first, as long as the next helps.
                before = signs
                flipped = 1.0 - 2.0 * np.eye(k)
                worths = np.array([fit(signs * turn).worth for turn in flipped])
                for j in np.argsort(-worths, kind="stable")[: (worths > now.worth).sum()]:
                    turned = fit(signs * flipped[j])
                    if turned.worth > now.worth:
                        now, signs = turned, signs * flipped[j]
                if (signs == before).all():
                    break
            if now.share_explained >= 0.5 and now.is_one:
                return now.u, signs
        return None

    def work(self, W: FloatArray, n_points: int) -> int:
        """Multiplications of one pass over the signs of rows ``W (k, m)``, about."""
        k, m = W.shape
        return int(min(n_points, self.max_points) * m**2 * k)

    def find_weights(
        self,
        v: FloatArray,
        undetermined: BoolArray,
        W: FloatArray,
        on: BoolArray,
        M: FloatArray,
        gradients: FloatArray,
    ) -> FloatArray:
        """Find weights that a row lacks.

        Parameters
        ----------
        v : ndarray, shape (m,)
            The row, 0 where it is not known.
        undetermined : ndarray of bool, shape (m,)
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
            The row with those weights on which enough regions agree.
        """
        products = Products.of(np.vstack([W, np.eye(W.shape[1])]), M, gradients)
        left = _Left.of(products, on)
        Q = left.equations
        places = np.flatnonzero(undetermined & M[left.points[left.bare]].any(axis=(0, 2)))
        if not len(places) or len(Q) < len(places) + self.fewest_agree:
            return v
        own = left.own[left.bare] / left.scale[left.bare, None, None]
        u, weights = v.copy(), np.ones(len(Q))
        for _ in range(self.n_reweighted):
            total = np.einsum("n,nij->ij", weights, Q)
            u[places] = np.linalg.lstsq(total[np.ix_(places, places)], -total[places] @ v)[0]
            length = np.einsum("nij,i,j->n", own, u, u)
            misfits = np.maximum(np.einsum("nij,i,j->n", Q, u, u), 0.0) / np.maximum(length, 1e-300)
            weights = 1.0 / (misfits + np.median(misfits) + PRECISION**2)
        agree = np.flatnonzero(misfits <= PRECISION**2)
        # Points of one region say the same: what counts is how many equations regions have.
        points = left.points[left.bare][agree]
        patterns = np.column_stack([M[points].any(axis=2), on[points]])
        regions = points[np.unique(patterns, axis=0, return_index=True)[1]]
        n_equations = int((products.ranks[regions] - on[regions].sum(axis=1) - 1).sum())
        enough = n_equations >= len(places) + self.fewest_agree and len(agree) >= len(Q) / 2
        return u if enough else v

    def _fit(self, left: "_Left", live: BoolArray) -> "_Fit":
        """Solve for the row, whose weights are 0 for inputs that are nowhere live."""
        m = len(live)
        if min(len(left.points), left.bare.sum()) < m + self.spare:
            return _Fit(np.zeros(m), -np.inf, 0.0, is_one=False)
        equations = left.equations
        weights = np.ones(len(equations))
        u, values = np.zeros(m), np.zeros(int(live.sum()))
        for _ in range(self.n_reweighted):
            total = np.tensordot(weights, equations, 1)[np.ix_(live, live)]
            values, vectors = np.linalg.eigh(total)
            u[live] = vectors[:, 0]
            misfits = np.maximum((equations @ u) @ u, 0.0)
            weights = 1.0 / (misfits + np.median(misfits) + PRECISION**2)
        length = (left.own @ u) @ u
        along = ((np.swapaxes(left.cross, 1, 2) @ u) ** 2).sum(axis=1)
        rest = (left.size - along / np.where(length > 0, length, 1.0)) / left.whole
        worth = -float(np.log(np.maximum(rest, PRECISION**2)).mean())
        is_one = len(values) > 1 and bool(values[1] > self.gap * max(values[0], 0.0))
        return _Fit(u, worth, float((rest <= PRECISION**2).mean()), is_one)


class _Fit(NamedTuple):
    """A row, how well it explains the points, and whether it is the only one that does."""

    u: FloatArray
    worth: float
    share_explained: float
    is_one: bool


@dataclass(frozen=True)
class _Left:
    """Products of what is outside the span of the neurons that are on, at some points.

    ``own (n, m, m)``: those of the inputs' maps; ``cross (n, m, outputs)``; ``size (n,)``, and
    ``whole (n,)``, that of the gradients themselves; ``scale (n,)``: the maps' own size.
    """

    points: IntArray
    own: FloatArray
    cross: FloatArray
    size: FloatArray
    whole: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, products: Products, on: BoolArray) -> "_Left":
        """At points where the k neurons do not span all, and one more may be on.

        The products are those of their rows, and then of the inputs themselves.
        """
        k = on.shape[1]
        i = np.flatnonzero((on.sum(axis=1) + 1 < products.ranks) & (products.size > 0))
        on, some = on[i], products.take(i)
        across = np.where(on[:, :, None], some.rows[:, :k, k:], 0.0)
        gradients = np.where(on[:, :, None], some.cross[:, :k], 0.0)
        G = gram(some.rows[:, :k, :k], on)
        inside = np.linalg.solve(G, np.concatenate([across, gradients], axis=2))
        rows, parts = np.split(inside, [across.shape[2]], axis=2)
        return cls(
            i,
            some.rows[:, k:, k:] - np.swapaxes(across, 1, 2) @ rows,
            some.cross[:, k:] - np.swapaxes(across, 1, 2) @ parts,
            some.size - (gradients * parts).sum(axis=(1, 2)),
            some.size,
            np.trace(some.rows[:, k:, k:], axis1=1, axis2=2),
        )

    @property
    def bare(self) -> BoolArray:
        """Where there is anything of the gradient, shape (n,)."""
        return np.asarray(self.size > PRECISION**2 * self.whole)

    @property
    def equations(self) -> FloatArray:
        """``|P M^T u|^2 - |r P M^T u|^2 / |r|^2`` of a row as ``u Q u``, at every bare point."""
        cross, size = self.cross[self.bare], self.size[self.bare, None, None]
        Q = self.own[self.bare] - cross @ np.swapaxes(cross, 1, 2) / size
        return np.asarray(Q / self.scale[self.bare, None, None])
