"""Rows of a layer from kinks: those of one neuron share its equations.

A few kinks of one neuron determine its row (``numerics.kink_equations``), and all of its others
agree; those of other neurons do not.
"""

from itertools import combinations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from revelu.recover.deep.kink_equations import AGREES, UNSURE, Equations
from revelu.types import BoolArray, FloatArray, IntArray

# Kinks that a row needs, equations beyond its unknowns, and entries that two kinks must share:
# two that agree on so many by chance are one pair in 1e10.
_FEWEST_KINKS = 2
_FEWEST_EQUATIONS = 2
_FEWEST_SHARED = 2

_MAX_REFINEMENTS = 12

# Kinks that are tried in pairs.
_MOST_PAIRED = 120

# Kinks around each of which others are tried in larger groups, and how many of its neighbours.
_MOST_SEEDS = 40
_NEIGHBOURS = 8
_GROUPS = (3, 4, 5)

# Decimals of the maps of one region that are the same.
_SAME_MAP = 9


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
    best: tuple[FloatArray, IntArray] | None = None
    n_agree = 0
    for _ in range(_MAX_REFINEMENTS):
        union = np.asarray(on[members].any(axis=0))
        n_equations = int(equations.ranks[members].sum())
        if len(members) < _FEWEST_KINKS or n_equations < union.sum() + _FEWEST_EQUATIONS:
            return best
        v = equations.take(members).solve(union)
        if v is None:
            return best
        agree = equations.agreeing(v, free & ~(on & ~union).any(axis=1))
        if len(agree) < n_agree:
            # What was added bends the row away from those that agreed.
            break
        best, n_agree = (v, members), len(agree)
        now = np.union1d(agree, _with_one_more(equations, v, union, on, free))
        if len(now) <= len(members):
            break
        members = now
    return best


def _with_one_more(
    equations: Equations, v: FloatArray, union: BoolArray, on: BoolArray, free: BoolArray
) -> IntArray:
    """Kinks at which one input is on that the row does not know, and that agree on its entry.

    Where a row below is wrong each kink asks for another: the entry that most agree on counts.
    """
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
    own = np.linalg.norm(np.einsum("ndk,nk->nd", equations.A[rows], V[:, :-1]), axis=1)
    agree = equations.take(rows).misfit_each(V) < AGREES
    found = [rows[:0]]
    for i in np.unique(place[agree]):
        its = np.flatnonzero(agree & (place == i))
        off = np.abs(entry[its, None] - entry[its]) * np.sqrt(size[its])
        together = off < AGREES * own[its]
        found.append(rows[its[together[together.sum(axis=1).argmax()]]])
    return np.concatenate(found)


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
        (values[:, 0] < AGREES**2 * values[:, -1]) & (values[:, 1] > UNSURE * values[:, -1])
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
