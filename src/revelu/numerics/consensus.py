"""Rows of a layer from kinks: homogeneous equations that the kinks of one neuron share.

Below a kink at ``x`` the known layers are ``h(x + e) = h + M e``.  If it is that of the neuron
``w h + b``, then its normal ``n`` is along ``M^T w``, and ``w h + b = 0``: linear homogeneous
equations for ``(w, b)``, as many as M has rank.  A few kinks of one neuron determine it, and all
of its others agree; those of other neurons do not.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from revelu.types import BoolArray, FloatArray, IntArray

# A kink agrees with a row whose normal is so near its own, in radians, and whose hyperplane
# passes so near it, relative to the input.
AGREES = 1e-5

# A row has nothing to say about a kink at which this share of it, squared, is on.
_SILENT = 1e-6

# Kinks that a row needs, equations beyond its unknowns, and entries that two kinks must share:
# two that agree on so many by chance are one pair in 1e10.
_FEWEST_KINKS = 2
_FEWEST_EQUATIONS = 2
_FEWEST_SHARED = 2

_MAX_REFINEMENTS = 12

# Kinks that are tried in pairs, and the share of the largest eigenvalue below which a second row
# would fit as well.
_MOST_PAIRED = 120
_UNSURE = 1e-9

# Kinks around each of which others are tried in larger groups, and how many of its neighbours.
_MOST_SEEDS = 40
_NEIGHBOURS = 8
_GROUPS = (3, 4, 5)

# Decimals of the maps of one region that are the same.
_SAME_MAP = 9


@dataclass(frozen=True)
class Equations:
    """What kinks say of the rows that make them.

    Attributes
    ----------
    E : ndarray, shape (n, d + 1, k + 1)
        ``E (w, b) = 0``.
    A : ndarray, shape (n, d, k)
        ``M^T``.
    ranks : ndarray, shape (n,)
        How many of the equations are independent.
    X : ndarray, shape (n, d)
        The kinks.
    """

    E: FloatArray
    A: FloatArray
    ranks: IntArray
    X: FloatArray

    @classmethod
    def of(cls, X: FloatArray, normals: FloatArray, M: FloatArray, h: FloatArray) -> "Equations":
        """Write down the equations of kinks.

        Parameters
        ----------
        X : ndarray, shape (n, d)
        normals : ndarray, shape (n, d)
            Unit rows.
        M : ndarray, shape (n, k, d)
        h : ndarray, shape (n, k)
        """
        n, k, d = M.shape
        A = np.swapaxes(M, 1, 2)
        size = 1.0 / np.sqrt(1.0 + (X**2).mean(axis=1))[:, None]
        E = np.zeros((n, d + 1, k + 1))
        E[:, :d, :k] = A - normals[:, :, None] * (normals[:, None, :] @ A)
        E[:, d, :k], E[:, d, k] = h * size, size[:, 0]
        ranks = np.linalg.matrix_rank(M, tol=None) if n else np.empty(0, dtype=np.intp)
        return cls(E, A, np.asarray(ranks, dtype=np.intp), X)

    def take(self, rows: IntArray) -> "Equations":
        """Return those of some kinks."""
        return Equations(self.E[rows], self.A[rows], self.ranks[rows], self.X[rows])

    def misfits(self, V: FloatArray) -> FloatArray:
        """How far rows are from agreeing with kinks, shape (m, n).

        Parameters
        ----------
        V : ndarray, shape (m, k + 1)
        """
        W = V[:, :-1]
        off = self._squares(self.E, V)
        own = self._squares(self.A, W)
        silent = own <= _SILENT * self._sizes * (W**2).sum(axis=1)[:, None]
        return np.where(silent, np.inf, np.sqrt(off / np.where(silent, 1.0, own)))

    def misfit_each(self, V: FloatArray) -> FloatArray:
        """How far each kink is from agreeing with a row of its own, shape (n,)."""
        off = (np.einsum("nek,nk->ne", self.E, V) ** 2).sum(axis=1)
        own = (np.einsum("ndk,nk->nd", self.A, V[:, :-1]) ** 2).sum(axis=1)
        silent = own <= _SILENT * self._sizes * (V[:, :-1] ** 2).sum(axis=1)
        return np.where(silent, np.inf, np.sqrt(off / np.where(silent, 1.0, own)))

    def agreeing(self, v: FloatArray, chosen: BoolArray) -> IntArray:
        """Which of some kinks agree with a row."""
        rows = np.flatnonzero(chosen)
        some = self if chosen.all() else self.take(rows)
        return np.asarray(rows[some.misfits(v[None])[0] < AGREES])

    @cached_property
    def _sizes(self) -> FloatArray:
        return np.asarray((self.A**2).sum(axis=(1, 2)))

    @staticmethod
    def _squares(B: FloatArray, V: FloatArray) -> FloatArray:
        """``|B_i v_c|^2``, shape (m, n)."""
        return np.asarray(((B @ V.T) ** 2).sum(axis=1).T)

    def solve(self, union: BoolArray) -> FloatArray | None:
        """Return the row of norm 1 that fits all best, 0 outside ``union`` (k,); None if two do."""
        entries = np.append(union, True)
        E = self.E[:, :, entries]
        v = np.zeros(len(entries))
        _, sizes, Vt = np.linalg.svd(E.reshape(-1, E.shape[2]), full_matrices=False)
        if len(sizes) > 1 and sizes[-2] ** 2 <= _UNSURE * sizes[0] ** 2:
            return None
        v[entries] = Vt[-1]
        return v


def grow_row(
    equations: Equations, v: FloatArray, on: BoolArray
) -> tuple[FloatArray, IntArray] | None:
    """Gather the kinks that agree with a row, and what they say of entries that it lacks.

    Parameters
    ----------
    equations : Equations
    v : ndarray, shape (k + 1,)
        A row ``(w, b)``, 0 in entries that are not known.
    on : ndarray of bool, shape (n, k)

    Returns
    -------
    (row, members) or None
        None where too few kinks agree.
    """
    members = equations.agreeing(v, ~(on & (v[:-1] == 0)).any(axis=1))
    return _refined(equations, members, on, np.ones(len(on), dtype=bool))


def turning_rows(equations: Equations, v: FloatArray) -> list[tuple[FloatArray, int]]:
    """Find the biases of a row whose direction alone is known, on which kinks agree.

    Its own kinks agree on one.  Where it alone is on, those of a deeper neuron agree on another.

    Parameters
    ----------
    equations : Equations
    v : ndarray, shape (k + 1,)
        A row ``(w, b)`` whose b says nothing.

    Returns
    -------
    list of (row, n)
        Rows of norm 1, and how many kinks agree on each, two or more; those of most first.
    """
    w = np.append(v[:-1], 0.0)
    # The last equation is that of the hyperplane, its last entry the weight of the bias.
    off, weights = equations.E @ w, equations.E[:, -1, -1]
    own = np.linalg.norm(equations.A @ w[:-1], axis=1)
    along = np.linalg.norm(off[:, :-1], axis=1) < AGREES * own
    along &= equations.ranks > _FEWEST_SHARED
    biases = -off[along, -1] / weights[along]
    apart = np.abs(biases[:, None] - biases) < AGREES * own[along] / weights[along]
    found = []
    while len(biases) and apart.sum(axis=1).max() >= _FEWEST_KINKS:
        same = apart[apart.sum(axis=1).argmax()]
        row = np.append(w[:-1], np.median(biases[same]))
        found.append((np.asarray(row / np.linalg.norm(row)), int(same.sum())))
        biases, apart = biases[~same], apart[~same][:, ~same]
    return found


def find_rows(
    equations: Equations, on: BoolArray, *, in_groups: bool = False
) -> list[tuple[FloatArray, IntArray]]:
    """Find rows that several kinks agree on, those of most kinks first.

    A kink at which the inputs that are on are independent gives the row on them, up to its
    scale; two of one neuron agree on the inputs that both have.  Kinks joined by such
    agreement are one neuron's.  Where kinks say less, pairs of them are tried.

    Parameters
    ----------
    equations : Equations
    on : ndarray of bool, shape (n, k)
        Inputs of the layer that are on at each kink.
    in_groups : bool
        Whether to try groups of neighbours that say too little alone and in pairs, where there is
        no deeper layer: its neurons, seen from one region, are like rows of this one.

    Returns
    -------
    list of (row, members)
        Rows ``(w, b)``, 0 in the inputs that are on at none of their kinks, and which kinks
        agree.

    Notes
    -----
    The first step after Carlini, Jagielski and Mironov (CRYPTO 2020), section 4.3.4.
    """
    own = np.flatnonzero((equations.ranks == on.sum(axis=1)) & (equations.ranks > 0))
    masks = np.column_stack([on[own], np.ones(len(own))]).astype(np.float64)
    rows = _own_rows(equations.take(own), on[own])
    _, labels = connected_components(csr_array(_agree(rows, masks)), directed=False)
    found = []
    free = np.ones(len(equations.ranks), dtype=bool)
    for label in np.argsort(-np.bincount(labels), kind="stable"):
        members = own[labels == label]
        row = _refined(equations, members[free[members]], on, free)
        if row is not None:
            found.append(row)
            free[row[1]] = False
    found += _of_groups(equations, on, free, _pairs(equations, free))
    for size in _GROUPS if in_groups else ():
        found += _of_groups(equations, on, free, _neighbours(equations, free, size))
    return _merged(equations, found, on)


def _merged(
    equations: Equations, found: list[tuple[FloatArray, IntArray]], on: BoolArray
) -> list[tuple[FloatArray, IntArray]]:
    """Join rows that agree on the entries that both have: no two of their kinks shared enough."""
    if not found:
        return found
    rows = np.array([v for v, _ in found])
    masks = np.array([np.append(on[members].any(axis=0), True) for _, members in found])
    _, labels = connected_components(csr_array(_agree(rows, masks.astype(float))), directed=False)
    merged = []
    for label in np.unique(labels):
        group = np.flatnonzero(labels == label)
        if len(group) == 1:
            merged.append(found[group[0]])
            continue
        members = np.concatenate([found[i][1] for i in group])
        v = equations.take(members).solve(on[members].any(axis=0))
        if v is not None and (equations.take(members).misfits(v[None])[0] < AGREES).all():
            merged.append((v, members))
        else:
            merged += [found[i] for i in group]
    return sorted(merged, key=lambda row: -len(row[1]))


def _own_rows(equations: Equations, on: BoolArray) -> FloatArray:
    """The row that each kink determines alone, 0 where an input is off."""
    grams = np.swapaxes(equations.E, 1, 2) @ equations.E
    return _least(grams, on)[1]


def _agree(rows: FloatArray, masks: FloatArray) -> BoolArray:
    """Which rows are parallel on the entries that both have, shape (n, n)."""
    inner = rows @ rows.T
    sizes = (rows**2) @ masks.T
    shared = masks @ masks.T
    product = sizes * sizes.T
    with np.errstate(divide="ignore", invalid="ignore"):
        sine = 1.0 - inner**2 / product
    return np.asarray((product > 0) & (sine < AGREES**2) & (shared > _FEWEST_SHARED))


def _refined(
    equations: Equations, members: IntArray, on: BoolArray, free: BoolArray
) -> tuple[FloatArray, IntArray] | None:
    """The row of some kinks, with all others that agree."""
    v = np.empty(0)
    for _ in range(_MAX_REFINEMENTS):
        union = np.asarray(on[members].any(axis=0))
        n_equations = int(equations.ranks[members].sum())
        if len(members) < _FEWEST_KINKS or n_equations < union.sum() + _FEWEST_EQUATIONS:
            return None
        row = equations.take(members).solve(union)
        if row is None:
            return None
        v = row
        agree = equations.agreeing(v, free & ~(on & ~union).any(axis=1))
        now = np.union1d(agree, _with_one_more(equations, v, union, on, free))
        if len(now) <= len(members):
            break
        members = now
    return v, members


def _with_one_more(
    equations: Equations, v: FloatArray, union: BoolArray, on: BoolArray, free: BoolArray
) -> IntArray:
    """Kinks at which one input is on that the row does not know, and that agree for some entry."""
    more = on & ~union
    rows = np.flatnonzero(free & (more.sum(axis=1) == 1) & (equations.ranks > _FEWEST_SHARED))
    if not len(rows):
        return rows
    place = more[rows].argmax(axis=1)
    E = equations.E[rows]
    column = np.take_along_axis(E, place[:, None, None], axis=2)[:, :, 0]
    size = (column**2).sum(axis=1)
    entry = -np.einsum("ne,ne->n", column, E @ v) / np.where(size > 0, size, 1.0)
    V = np.repeat(v[None], len(rows), axis=0)
    V[np.arange(len(rows)), place] = entry
    return rows[equations.take(rows).misfit_each(V) < AGREES]


def _of_groups(
    equations: Equations, on: BoolArray, free: BoolArray, groups: IntArray
) -> list[tuple[FloatArray, IntArray]]:
    """Rows of kinks none of which determines its own: a few of one neuron do, one group a row."""
    if len(groups) and groups.shape[1] > 2:
        # Two kinks of one neuron in one region say the same.
        regions = np.sort(_regions(equations)[groups], axis=1)
        groups = groups[(np.diff(regions, axis=1) > 0).all(axis=1)]
    both = np.asarray(on[groups].any(axis=1))
    spare = equations.ranks[groups].sum(axis=1) - both.sum(axis=1)
    enough = spare >= _FEWEST_EQUATIONS
    groups, both = groups[enough], both[enough]
    if not len(groups):
        return []
    grams = np.swapaxes(equations.E, 1, 2) @ equations.E
    values, vectors = _least(grams[groups].sum(axis=1), both)
    fit = np.flatnonzero(
        (values[:, 0] < AGREES**2 * values[:, -1]) & (values[:, 1] > _UNSURE * values[:, -1])
    )
    found = []
    for i in fit:
        members = groups[i]
        if (
            free[members].all()
            and np.isfinite(equations.take(members).misfits(vectors[i][None])[0]).all()
        ):
            row = _refined(equations, members, on, free)
            if row is not None and len(row[1]) > 2:
                found.append(row)
                free[row[1]] = False
    return found


def _regions(equations: Equations) -> IntArray:
    """Numbers that are the same for kinks in one region of the layers below, shape (n,)."""
    maps = np.round(equations.A.reshape(len(equations.A), -1), _SAME_MAP)
    return np.asarray(np.unique(maps, axis=0, return_inverse=True)[1].reshape(-1), dtype=np.intp)


def _pairs(equations: Equations, free: BoolArray) -> IntArray:
    """All pairs of kinks that are left, shape (n, 2)."""
    left = np.flatnonzero(free & (equations.ranks > 0))[:_MOST_PAIRED]
    i, j = np.triu_indices(len(left), 1)
    return np.column_stack([left[i], left[j]])


def _neighbours(equations: Equations, free: BoolArray, size: int) -> IntArray:
    """Groups of kinks that are left and near each other, shape (n, size), of the latest ones.

    Where a neuron is on few of those below may be, and every kink says little.
    """
    left = np.flatnonzero(free & (equations.ranks > 0))
    seeds = left[-_MOST_SEEDS:]
    if len(left) < size:
        return np.empty((0, size), dtype=np.intp)
    X = equations.X
    near = left[cdist(X[seeds], X[left]).argsort(axis=1)[:, : _NEIGHBOURS + 1]]
    places = np.array(list(combinations(range(1, near.shape[1]), size - 1)))
    groups = np.concatenate(
        [np.column_stack([row[:1].repeat(len(places)), row[places]]) for row in near]
    )
    return np.unique(np.sort(groups, axis=1), axis=0)


def _least(grams: FloatArray, on: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, and the vectors of the smallest, which are 0 in the entries that are off."""
    k = on.shape[1]
    places = np.arange(k)
    traces = np.trace(grams, axis1=1, axis2=2)[:, None]
    grams[:, places, places] += np.where(on, 0.0, 1.0 + traces)
    values, vectors = np.linalg.eigh(grams)
    return values, np.asarray(vectors[:, :, 0])
