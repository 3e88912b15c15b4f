"""Exponential units of 0/1 rows with disjoint supports: blocks of coordinates.

From samples of N(0, I) (GP18, Section 4, Theorems 8 and 9).

Where this differs from print.  Theorem 8 has ``mu = exp(-rho t + rho^2 d / 2)``, d the size of a
block; the diagonal of the correlations says nothing and is skipped; correlating log f, its
linear part removed, in place of f needs a tenth of the samples, and no threshold: it does for
Theorem 9, too, whose own objective is unbounded above, and whose estimate tilts samples until
few are left.  Theorem 10's constant is sqrt(6) for normalised Hermite polynomials, not 6.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from revelu.recovery import LayerRecovery, Ledger, Status
from revelu.types import BoolArray, FloatArray

# Standard errors between the correlations of a block and the rest, at least.
_CLEAR = 4.0

# Standard errors at which coefficients that must be equal, or 0, are not.
_CERTAIN = 6.0

# Errors beyond this are guesses.
_GUESS = 0.5

Blocks = list[list[int]]


def recover_exponential(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> LayerRecovery:
    """Find the blocks of exponential units with 0/1 rows and disjoint supports.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    rng : numpy.random.Generator

    Returns
    -------
    LayerRecovery
        ``RECOVERED`` where two halves of the samples give the same blocks, clearly; their
        rows are exact then.  A unit of one coordinate correlates with none and is not found.
        Thresholds are NaN: a coefficient takes them up.
    """
    d = X.shape[1]
    order = rng.permutation(len(y))
    parts = order[: len(y) // 2], order[len(y) // 2 :]
    found = [cliques(correlation_graph(X[part], y[part])) for part in parts]
    if found[0] and found[0] == found[1]:
        objection = counted_alike(X, y, found[0])
        rows = np.array([[float(j in block) for j in range(d)] for block in found[0]])
        return LayerRecovery(
            Status.PARTIAL if objection else Status.RECOVERED,
            rows / np.linalg.norm(rows, axis=1, keepdims=True),
            np.full(len(rows), np.nan),
            np.full(len(rows), _GUESS if objection == _UNLIKE else 0.0),
            ledger=Ledger(0, 0, {}),
            evidence=(
                f"two halves of {len(y):,} samples show the same blocks",
                *((objection,) if objection else ()),
            ),
            method="graph",
            details={"blocks": found[0]},
        )
    return LayerRecovery(
        Status.PARTIAL,
        np.empty((0, d)),
        np.empty(0),
        np.empty(0),
        ledger=Ledger(0, 0, {}),
        evidence=(_NO_BLOCKS.format(n=len(y), more=4 * len(y)),),
        method="graph",
    )


def counted_alike(X: FloatArray, y: FloatArray, blocks: Blocks) -> str:
    """Whether a function sees of each block no more than its sum, to second order.

    Then its first and second Hermite coefficients, those on the diagonal too, are the same
    for all coordinates of a block; and those in no block have none.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    blocks : list of list of int

    Returns
    -------
    str
        What speaks against it; empty where nothing does.
    """
    n, d = X.shape
    values = np.log(y) if (y > 0).all() else y
    values = values - values.mean()
    first = values @ X / n
    first_error = np.sqrt(np.maximum(values**2 @ X**2 / n - first**2, 0.0) / n)
    # The linear part is known, and only makes noise.
    rest = values - X @ np.linalg.lstsq(X, values, rcond=None)[0]
    second = X.T @ (rest[:, None] * X) / n - rest.mean() * np.eye(d)
    squares = (X**2).T @ (rest[:, None] ** 2 * X**2) / n
    second_error = np.sqrt(np.maximum(squares - second**2, 0.0) / n)

    def differ(part: FloatArray, error: FloatArray) -> bool:
        return bool(np.abs(part - part.mean()).max() > _CERTAIN * error.max())

    for a in blocks:
        unlike = differ(first[a], first_error[a]) or any(
            differ(second[np.ix_(a, b)], second_error[np.ix_(a, b)]) for b in blocks
        )
        if unlike:
            return _UNLIKE
    single = np.setdiff1d(np.arange(d), np.concatenate(blocks))
    seen = np.abs(first) > _CERTAIN * first_error
    seen |= np.abs(np.diag(second)) > _CERTAIN * np.diag(second_error)
    if seen[single].any():
        return _SINGLE.format(which=", ".join(f"{j}" for j in single[seen[single]]))
    return ""


def correlation_graph(X: FloatArray, y: FloatArray) -> BoolArray:
    """Connect coordinates that some unit adds up (Algorithm 3, ConstructCorrelationGraph).

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
        Where all are positive, their logarithms are correlated.

    Returns
    -------
    ndarray of bool, shape (d, d)
        Symmetric; all False where no gap in the correlations is clear.
    """
    n, d = X.shape
    values = np.log(y) if (y > 0).all() else y
    A = np.column_stack([np.ones(n), X])
    values = values - A @ np.linalg.lstsq(A, values, rcond=None)[0]
    alpha = X.T @ (values[:, None] * X) / n
    error = np.sqrt(np.maximum((X**2).T @ (values[:, None] ** 2 * X**2) / n - alpha**2, 0.0) / n)
    i, j = np.triu_indices(d, 1)
    order = np.argsort(alpha[i, j])
    sizes, noise = alpha[i, j][order], float(np.median(error[i, j])) if d > 1 else 0.0
    gaps = np.diff(sizes)
    # A block's correlations are positive: the gap is above 0, or ends there.
    gaps = np.where(sizes[1:] > _CLEAR * noise, gaps, 0.0)
    cut = int(gaps.argmax()) if len(gaps) else 0
    graph = np.zeros((d, d), dtype=np.bool_)
    if not len(gaps) or gaps[cut] < _CLEAR * noise:
        return graph
    high = order[cut + 1 :]
    graph[i[high], j[high]] = graph[j[high], i[high]] = True
    return graph


def cliques(graph: BoolArray) -> Blocks:
    """The graph's components of two or more; none at all where one is no clique."""
    n, labels = connected_components(csr_array(graph.astype(np.int8)), directed=False)
    blocks = [np.flatnonzero(labels == c).tolist() for c in range(n)]
    blocks = [block for block in blocks if len(block) > 1]
    if any(not graph[np.ix_(b, b)][~np.eye(len(b), dtype=bool)].all() for b in blocks):
        return []
    return sorted(blocks)


_NO_BLOCKS = (
    "{n:,} samples show no clear blocks of coordinates that both halves agree on: rows are not "
    "0/1 with disjoint supports, or some {more:,} samples are needed"
)
_UNLIKE = (
    "coordinates of a block do not count alike: rows are no multiples of 0/1 vectors with "
    "disjoint supports, and the errors are guesses"
)
_SINGLE = (
    "the function depends on coordinates in no block, too ({which}): units of one coordinate, or "
    "with negative entries, are not found"
)
