"""Exponential units of 0/1 rows with disjoint supports: blocks of coordinates.

From samples of N(0, I) (GP18, Section 4, Theorems 8 and 9).

Where this differs from print.  Theorem 8 has ``mu = exp(-rho t + rho^2 d / 2)``, d the size of a
block.  The diagonal of the correlations says nothing and is skipped.  In place of f, log f is
correlated, its linear part removed, which needs a tenth of the samples and no threshold: so it
serves for Theorem 9, too, whose own objective is unbounded above, and whose estimate tilts
samples until few are left.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from revelu.numerics.confidence import standard_errors
from revelu.recover.method import Why
from revelu.recover.rare.rare_samples import CLEAR, RareSamples
from revelu.recover.rare.units import GUESS, Units, UnitsCandidate
from revelu.types import BoolArray, FloatArray

Blocks = list[list[int]]


def recover_exponential_units(
    X: FloatArray, y: FloatArray, rng: np.random.Generator
) -> UnitsCandidate:
    """Find the blocks of exponential units with 0/1 rows and disjoint supports.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)

    Returns
    -------
    UnitsCandidate
        ``EXPLAINED`` where two halves of the samples give the same blocks, clearly; their
        rows are exact then.  A unit of one coordinate correlates with none and is not found.
        Thresholds are NaN: a coefficient takes them up.
    """
    n, d = X.shape
    order = rng.permutation(n)
    blocks, others = (
        cliques(correlation_graph(X[part], y[part])) for part in (order[: n // 2], order[n // 2 :])
    )
    if not blocks or blocks != others:
        return UnitsCandidate.none(d, Why.UNRESOLVED, _NO_BLOCKS.format(n=n, more=4 * n), "graph")
    objection = _counted_unlike(X, y, blocks)
    rows = np.array([[float(j in block) for j in range(d)] for block in blocks])
    unknown = np.full(len(rows), np.nan)
    units = Units(
        rows / np.linalg.norm(rows, axis=1, keepdims=True),
        unknown,
        np.full(len(rows), GUESS if objection == _UNLIKE else 0.0),
        unknown,
    )
    seen = f"two halves of {n:,} samples show the same blocks"
    why, notes = (Why.UNRESOLVED, (seen, objection)) if objection else (Why.EXPLAINED, (seen,))
    return UnitsCandidate(why, units, notes, "graph", figures={"blocks": blocks})


def _counted_unlike(X: FloatArray, y: FloatArray, blocks: Blocks) -> str:
    """Say what speaks against a function that sees no more of each block than its sum.

    Of such a function the first and second Hermite coefficients, those on the diagonal
    included, are the same for all coordinates of a block; coordinates in no block have none.
    """
    n, d = X.shape
    sigmas = standard_errors(d + d * d)
    values = _logarithms(y)
    values = values - values.mean()
    first = values @ X / n
    first_error = np.sqrt(np.maximum(values**2 @ X**2 / n - first**2, 0.0) / n)
    second, second_error = _second_order(X, y)

    def differ(part: FloatArray, error: FloatArray) -> bool:
        return bool(np.abs(part - part.mean()).max() > sigmas * error.max())

    for a in blocks:
        unlike = differ(first[a], first_error[a]) or any(
            differ(second[np.ix_(a, b)], second_error[np.ix_(a, b)]) for b in blocks
        )
        if unlike:
            return _UNLIKE
    single = np.setdiff1d(np.arange(d), np.concatenate(blocks))
    seen = np.abs(first) > sigmas * first_error
    seen |= np.abs(np.diag(second)) > sigmas * np.diag(second_error)
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
    d = X.shape[1]
    alpha, error = _second_order(X, y)
    i, j = np.triu_indices(d, 1)
    order = np.argsort(alpha[i, j])
    sizes, noise = alpha[i, j][order], float(np.median(error[i, j])) if d > 1 else 0.0
    gaps = np.diff(sizes)
    # A block's correlations are positive: the gap is above 0, or ends there.
    gaps = np.where(sizes[1:] > CLEAR * noise, gaps, 0.0)
    cut = int(gaps.argmax()) if len(gaps) else 0
    graph = np.zeros((d, d), dtype=np.bool_)
    if not len(gaps) or gaps[cut] < CLEAR * noise:
        return graph
    high = order[cut + 1 :]
    graph[i[high], j[high]] = graph[j[high], i[high]] = True
    return graph


def _logarithms(y: FloatArray) -> FloatArray:
    return np.log(y) if (y > 0).all() else y


def _second_order(X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Second Hermite coefficients of log y and their standard errors, both (d, d).

    The linear part, which has none, is taken out: it only makes noise.
    """
    n = len(X)
    A = np.column_stack([np.ones(n), X])
    values = _logarithms(y)
    values = values - A @ np.linalg.lstsq(A, values, rcond=None)[0]
    alpha = RareSamples.plain(X, values).second_moment()
    squares = (X**2).T @ (values[:, None] ** 2 * X**2) / n
    return alpha, np.sqrt(np.maximum(squares - alpha**2, 0.0) / n)


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
