"""Rows of a layer from critical points: those of one neuron share its equations.

A few critical points of one neuron determine its row (:mod:`.kink_equations`), and all of its
others agree; those of other neurons do not.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from revelu.recover.deep.kink_equations import PRECISION, Equations
from revelu.types import BoolArray, FloatArray, IntArray

Row = tuple[FloatArray, IntArray]
"""A row ``(w, b)``, 0 in the inputs that are on at none of its points, and which points agree."""


@dataclass(frozen=True)
class RowSearch:
    """The search for rows on which critical points agree."""

    spare: int = 2
    """Equations that a row needs beyond its unknowns, and entries that two rows must share
    beyond their scale: two numbers that agree by chance, to a precision of 1e-5 each, are one
    pair in 1e10."""
    max_refinements: int = 12
    """Times that a row is solved for again with all points that agree."""
    max_paired: int = 120
    """Points that are tried in pairs."""
    n_seeds: int = 40
    n_neighbours: int = 8
    """So many points, the latest, are tried in larger groups, with so many of the nearest ones."""
    group_sizes: tuple[int, ...] = (3, 4, 5)
    unsure: float = 1e-9
    """As for :meth:`Equations.solve`."""
    same_map: int = 9
    """Local maps that agree in so many decimals are those of one region."""

    def find(self, equations: Equations, *, in_groups: bool = False) -> list[Row]:
        """Find rows that several critical points agree on, those of most points first.

        A point at which the inputs that are on are independent gives the row on them, up to its
        scale; two of one neuron agree on the inputs that both have.  Points joined by such
        agreement are one neuron's.  Where points say less, pairs of them are tried.

        Parameters
        ----------
        in_groups : bool
            Whether to try groups of neighbours that say too little alone and in pairs, where there
            is no deeper layer: its neurons, seen from one region, are like rows of this one.

        Notes
        -----
        The first step after Carlini, Jagielski and Mironov (CRYPTO 2020), section 4.3.4.
        """
        on, ranks = equations.on, equations.ranks
        own = np.flatnonzero((ranks == on.sum(axis=1)) & (ranks > 0))
        # The row that each point determines alone.
        _, rows = _least(equations.take(own), on[own])
        found = []
        free = np.ones(len(ranks), dtype=bool)
        for group in self._joined(rows, on[own]):
            members = own[group]
            row = self._refined(equations, members[free[members]], free)
            if row is not None:
                found.append(row)
                free[row[1]] = False
        found += self._of_groups(equations, free, self._pairs(equations, free))
        for size in self.group_sizes if in_groups else ():
            found += self._of_groups(equations, free, self._neighbours(equations, free, size))
        return self._merged(equations, found)

    def grow(self, equations: Equations, v: FloatArray) -> Row | None:
        """Gather the points that agree with a row, and what they say of entries that it lacks.

        Parameters
        ----------
        v : ndarray, shape (k + 1,)
            A row ``(w, b)``, 0 in entries that are not known.

        Returns
        -------
        (row, members) or None
            None where too few points agree.
        """
        everywhere = np.ones(len(equations.ranks), dtype=bool)
        members = equations.agreeing(v, ~(equations.on & (v[:-1] == 0)).any(axis=1))
        return self._refined(equations, members, everywhere)

    def with_biases(self, equations: Equations, v: FloatArray) -> list[tuple[FloatArray, int]]:
        """Find the biases of a row whose direction alone is known, on which points agree.

        Its own critical points agree on one.  Where it alone is on, those of a deeper neuron agree
        on another.

        Parameters
        ----------
        v : ndarray, shape (k + 1,)
            A row ``(w, b)`` whose b says nothing.

        Returns
        -------
        list of (row, n)
            Rows of norm 1, and how many points agree on each, two or more; those of most first.
        """
        w = np.append(v[:-1], 0.0)
        # The last equation is that of the hyperplane, its last entry the weight of the bias.
        off, weights = equations.E @ w, equations.E[:, -1, -1]
        own = np.linalg.norm(equations.A @ w[:-1], axis=1)
        along = np.linalg.norm(off[:, :-1], axis=1) < PRECISION * own
        along &= equations.ranks > self.spare
        biases = -off[along, -1] / weights[along]
        apart = np.abs(biases[:, None] - biases) < PRECISION * own[along] / weights[along]
        found = []
        while len(biases) and apart.sum(axis=1).max() > 1:
            same = apart[apart.sum(axis=1).argmax()]
            row = np.append(w[:-1], np.median(biases[same]))
            found.append((np.asarray(row / np.linalg.norm(row)), int(same.sum())))
            biases, apart = biases[~same], apart[~same][:, ~same]
        return found

    def _joined(self, rows: FloatArray, on: BoolArray) -> list[IntArray]:
        """Rows joined by being parallel on the entries that both have, the largest groups first."""
        masks = np.column_stack([on, np.ones(len(on))]).astype(np.float64)
        sizes = (rows**2) @ masks.T
        product = sizes * sizes.T
        with np.errstate(divide="ignore", invalid="ignore"):
            sine = 1.0 - (rows @ rows.T) ** 2 / product
        agree = (product > 0) & (sine < PRECISION**2) & (masks @ masks.T > self.spare)
        _, labels = connected_components(csr_array(agree), directed=False)
        order = np.argsort(-np.bincount(labels), kind="stable")
        return [np.flatnonzero(labels == label) for label in order]

    def _merged(self, equations: Equations, found: list[Row]) -> list[Row]:
        """Join rows that agree on the entries that both have, but no two of their points share."""
        if not found:
            return found
        unions = np.array([equations.on[members].any(axis=0) for _, members in found])
        merged = []
        for group in sorted(self._joined(np.array([v for v, _ in found]), unions), key=min):
            members = np.concatenate([found[i][1] for i in group])
            some = equations.take(members)
            union = np.asarray(unions[group].any(axis=0))
            v = some.solve(union, self.unsure) if len(group) > 1 else None
            if v is not None and (some.misfits(v[None])[0] < PRECISION).all():
                merged.append((v, members))
            else:
                merged += [found[i] for i in group]
        return sorted(merged, key=lambda row: -len(row[1]))

    def _refined(self, equations: Equations, members: IntArray, free: BoolArray) -> Row | None:
        """The row of some points, with all others that agree."""
        best: Row | None = None
        n_agree, on = 0, equations.on
        for _ in range(self.max_refinements):
            union = np.asarray(on[members].any(axis=0))
            n_equations = int(equations.ranks[members].sum())
            if len(members) <= 1 or n_equations < union.sum() + self.spare:
                return best
            v = equations.take(members).solve(union, self.unsure)
            if v is None:
                return best
            agree = equations.agreeing(v, free & ~(on & ~union).any(axis=1))
            if len(agree) < n_agree:
                # What was added bends the row away from those that agreed.
                break
            best, n_agree = (v, members), len(agree)
            now = np.union1d(agree, self._with_one_more(equations, v, union, free))
            if len(now) <= len(members):
                break
            members = now
        return best

    def _with_one_more(
        self, equations: Equations, v: FloatArray, union: BoolArray, free: BoolArray
    ) -> IntArray:
        """Points at which one input is on that the row does not know, and that agree on its entry.

        Where a row below is wrong each point asks for another: the entry that most agree on counts.
        """
        more = equations.on & ~union
        rows = np.flatnonzero(free & (more.sum(axis=1) == 1) & (equations.ranks > self.spare))
        if not len(rows):
            return rows
        place, some = more[rows].argmax(axis=1), equations.take(rows)
        column = np.take_along_axis(some.E, place[:, None, None], axis=2)[:, :, 0]
        size = (column**2).sum(axis=1)
        entry = -np.einsum("ne,ne->n", column, some.E @ v) / np.where(size > 0, size, 1.0)
        V = np.repeat(v[None], len(rows), axis=0)
        V[np.arange(len(rows)), place] = entry
        own = np.linalg.norm(np.einsum("ndk,nk->nd", some.A, V[:, :-1]), axis=1)
        agree = some.misfit_each(V) < PRECISION
        found = [rows[:0]]
        for i in np.unique(place[agree]):
            its = np.flatnonzero(agree & (place == i))
            off = np.abs(entry[its, None] - entry[its]) * np.sqrt(size[its])
            together = off < PRECISION * own[its]
            found.append(rows[its[together[together.sum(axis=1).argmax()]]])
        return np.concatenate(found)

    def _of_groups(self, equations: Equations, free: BoolArray, groups: IntArray) -> list[Row]:
        """Rows of points none of which determines its own: a few of one neuron do together."""
        if len(groups) and groups.shape[1] > 2:
            # Two points of one neuron in one region say the same.
            maps = np.round(equations.A.reshape(len(equations.A), -1), self.same_map)
            regions = np.unique(maps, axis=0, return_inverse=True)[1].reshape(-1)
            groups = groups[(np.diff(np.sort(regions[groups], axis=1), axis=1) > 0).all(axis=1)]
        both = np.asarray(equations.on[groups].any(axis=1))
        enough = equations.ranks[groups].sum(axis=1) - both.sum(axis=1) >= self.spare
        groups, both = groups[enough], both[enough]
        if not len(groups):
            return []
        values, vectors = _least(equations, both, groups)
        fit = values[:, 0] < PRECISION**2 * values[:, -1]
        fit &= values[:, 1] > self.unsure * values[:, -1]
        found = []
        for members, v in zip(groups[fit], vectors[fit], strict=True):
            if not free[members].all():
                continue
            if np.isfinite(equations.take(members).misfits(v[None])[0]).all():
                row = self._refined(equations, members, free)
                if row is not None and len(row[1]) > 2:
                    found.append(row)
                    free[row[1]] = False
        return found

    def _pairs(self, equations: Equations, free: BoolArray) -> IntArray:
        """All pairs of points that are left, shape (n, 2)."""
        left = np.flatnonzero(free & (equations.ranks > 0))[: self.max_paired]
        return left[np.column_stack(np.triu_indices(len(left), 1))]

    def _neighbours(self, equations: Equations, free: BoolArray, size: int) -> IntArray:
        """Groups of points that are left and near each other, shape (n, size), of the latest ones.

        Where a neuron is on, few of those below may be, and every critical point says little.
        """
        left = np.flatnonzero(free & (equations.ranks > 0))
        if len(left) < size:
            return np.empty((0, size), dtype=np.intp)
        apart = cdist(equations.X[left[-self.n_seeds :]], equations.X[left])
        near = left[apart.argsort(axis=1)[:, : self.n_neighbours + 1]]
        others = np.array(list(combinations(range(1, near.shape[1]), size - 1)))
        seeds = np.repeat(near[:, :1], len(others), axis=0)
        groups = np.column_stack([seeds, near[:, others].reshape(-1, size - 1)])
        return np.unique(np.sort(groups, axis=1), axis=0)


def _least(
    equations: Equations, on: BoolArray, groups: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """The rows that points, or groups of them, determine, 0 where an input is off, (n, k + 1).

    Returned after the eigenvalues of their equations, of which the row has the smallest.
    """
    grams = np.swapaxes(equations.E, 1, 2) @ equations.E
    grams = grams if groups is None else grams[groups].sum(axis=1)
    traces, k = np.trace(grams, axis1=1, axis2=2)[:, None], on.shape[1]
    grams[:, np.arange(k), np.arange(k)] += np.where(on, 0.0, 1.0 + traces)
    values, vectors = np.linalg.eigh(grams)
    return values, np.asarray(vectors[:, :, 0])
