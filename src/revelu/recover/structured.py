"""Layers of special shape, with no threshold or no linear term (GP18, Section 4).

Exponential units of 0/1 rows with disjoint supports: blocks of coordinates (Theorems 8 and
9).  Even units of orthonormal rows (Theorem 10).  All from samples of N(0, I).

Where this differs from print.  Theorem 8 has ``mu = exp(-rho t + rho^2 d / 2)``, d the size of a
block; the diagonal of the correlations says nothing and is skipped; correlating log f, its
linear part removed, in place of f needs a tenth of the samples, and no threshold: it does for
Theorem 9, too, whose own objective is unbounded above, and whose estimate tilts samples until
few are left.  Theorem 10's constant is sqrt(6) for normalised Hermite polynomials, not 6.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from revelu.numerics.matching import match_rows
from revelu.probe.moments import Moments
from revelu.probe.rare import RareSamples, rare_moments, second_moment
from revelu.recovery import LayerRecovery, Ledger, Status
from revelu.types import BoolArray, FloatArray

# Standard errors between the correlations of a block and the rest, at least.
_CLEAR = 4.0

# Standard errors at which coefficients that must be equal, or 0, are not.
_CERTAIN = 6.0

# Theorem 10: starts and steps of an ascent on the sphere.
_N_STARTS = 8
_ASCENT = 300

# A ratio below minus this is a failure of the condition in disguise; and E[f He_2] may be so
# far off the diagonal, in units of what differs on it.
_NEGATIVE = 0.3
_TOLERATED = 0.2

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
            Ledger(0, 0, {}),
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
        Ledger(0, 0, {}),
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


def recover_even(
    X: FloatArray, y: FloatArray, n_units: int, rng: np.random.Generator
) -> LayerRecovery:
    """Find orthonormal rows under an even activation without a threshold (Theorem 10).

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    n_units : int
    rng : numpy.random.Generator

    Returns
    -------
    LayerRecovery
        ``PARTIAL``, with the errors of the directions; the theorem's condition, measured, is
        ``details["condition"]``, and directions are left out where it is seen to fail.

    Notes
    -----
    The condition is about the true rows.  Where two units violate it, with a ratio r > 1, the
    maxima lie half-way between them, and show a ratio (3 - r) / (1 + r) that satisfies it:
    negative for r > 3, which is taken for a failure unless rows weigh differently in E[f He_2];
    else that one tells by what is off its diagonal, unless the two units weigh the same there.
    """
    d = X.shape[1]
    centred = y - y.mean()
    values, U = np.linalg.eigh(second_moment(RareSamples(X, centred, len(y), float(len(y)))))
    basis = U[:, np.argsort(-np.abs(values))[:n_units]].T
    half = rng.permutation(len(y))
    parts = [half[: len(y) // 2], half[len(y) // 2 :]]
    moments = [
        rare_moments(RareSamples(X[p], centred[p], len(p), float(len(p))), basis, 4) for p in parts
    ]
    if not _is_even(moments):
        return LayerRecovery(
            Status.NOT_IN_CLASS,
            np.empty((0, d)),
            np.empty(0),
            np.empty(0),
            Ledger(0, 0, {}),
            evidence=(_NOT_EVEN,),
            method="even",
        )
    fourth = (moments[0].tensor(4) + moments[1].tensor(4)) / 2.0
    W, ratio = _maxima(fourth, rng)
    errors = _halves(moments, W, rng)
    holds = ratio < 1.0 and _is_diagonal(moments, W)
    # Half-way between two units rows would weigh the same: those that do not are the units.
    holds = holds and (ratio > -_NEGATIVE or _weigh_differently(moments, W))
    kept = errors <= _GUESS if holds else np.zeros(len(W), dtype=np.bool_)
    evidence = [_EVEN.format(ratio=ratio, verdict="holds" if holds else "fails")]
    if not kept.all():
        evidence.append(f"{int((~kept).sum())} directions are left out as guesses")
    rows = W @ basis
    return LayerRecovery(
        Status.PARTIAL,
        rows[kept],
        np.zeros(int(kept.sum())),
        errors[kept],
        Ledger(0, 0, {}),
        evidence=tuple(evidence),
        method="even",
        details={"condition": ratio, "n_units": len(W), "inputs": d},
    )


def _is_even(moments: list[Moments]) -> bool:
    """Whether no moment of odd order is there."""
    for order in (1, 3):
        value = sum(part.values[order] for part in moments) / len(moments)
        error = sum(part.errors[order] for part in moments) / len(moments) ** 1.5
        if (np.abs(value) > _CERTAIN * error).any():
            return False
    return True


def _is_diagonal(moments: list[Moments], W: FloatArray) -> bool:
    """Whether E[f He_2] has nothing off the diagonal that two halves agree on."""
    first, second = (W @ part.tensor(2) @ W.T for part in moments)
    off = ~np.eye(len(W), dtype=np.bool_)
    mean, half = (first + second)[off] / 2.0, (first - second)[off] / 2.0
    noise = float(np.sqrt(np.mean(half**2))) if len(half) else 0.0
    # Rows that are off by their errors leave that share of the diagonal beside it.
    spread = float(np.ptp(np.diag(first + second))) / 2.0
    return bool(np.abs(mean).max(initial=0.0) <= _CLEAR * noise + _TOLERATED * spread)


def _weigh_differently(moments: list[Moments], W: FloatArray) -> bool:
    """Whether E[f He_2] is clearly another one along every row."""
    first, second = (np.diag(W @ part.tensor(2) @ W.T) for part in moments)
    noise = float(np.sqrt(np.mean((first - second) ** 2))) / 2.0
    gaps = np.diff(np.sort((first + second) / 2.0))
    return bool(gaps.min(initial=np.inf) > _CLEAR * noise)


def _maxima(fourth: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, float]:
    """Orthonormal maxima of ``|T_4[z, z, z, z]|``, and Theorem 10's largest ratio.

    The ratio is ``gamma_ij / (alpha_i + alpha_j)``, under 1 where every maximum is a direction:
    in the basis found, ``T_4[i, i, i, i]`` is alpha and ``6 T_4[i, i, j, j]`` is gamma.
    """
    k = len(fourth)
    trace = float(np.einsum("iijj->", fourth))
    T = fourth if trace >= 0 else -fourth
    # An ascent never steps back with a shift over the curvature.
    shift = float(np.abs(T).sum(axis=(1, 2, 3)).max())
    found: list[FloatArray] = []
    for _ in range(k):
        rest = np.eye(k) - sum((np.outer(w, w) for w in found), np.zeros((k, k)))
        best, value = np.zeros(k), -np.inf
        for start in rng.standard_normal((_N_STARTS, k)):
            z = rest @ start
            for _ in range(_ASCENT):
                z = rest @ (np.einsum("ijkl,j,k,l", T, z, z, z) + 0.3 * shift * z)
                z = z / np.linalg.norm(z)
            height = float(np.einsum("ijkl,i,j,k,l", T, z, z, z, z))
            if height > value:
                best, value = z, height
        found.append(best)
    W = np.array(found)
    own = np.einsum("ijkl,ai,aj,ak,al->a", T, W, W, W, W, optimize=True)
    pairs = 6.0 * np.einsum("ijkl,ai,aj,bk,bl->ab", T, W, W, W, W, optimize=True)
    a, b = np.triu_indices(k, 1)
    sums = np.maximum(own[a] + own[b], np.finfo(np.float64).tiny)
    ratios = pairs[a, b] / sums
    return W, float(ratios[np.abs(ratios).argmax()]) if len(ratios) else 0.0


def _halves(moments: list[Moments], W: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Half of the angle between the directions of two halves."""
    found = []
    for part in moments:
        own = _maxima(part.tensor(4), rng)[0]
        rows, signs = match_rows(own, W, up_to_sign=True)
        found.append(signs[:, None] * own[rows])
    cosines = np.sum(found[0] * found[1], axis=1)
    angles = np.arccos(np.clip(cosines, 0.0, 1.0)) / 2.0
    return np.asarray(np.maximum(angles, np.sqrt(np.mean(angles**2))))


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
_NOT_EVEN = "moments of odd order are there: the activation is not even, or a threshold is not 0"
_EVEN = (
    "Theorem 10's condition {verdict}, as far as moments tell: the product of two units weighs "
    "{ratio:.2g} of what they weigh alone; where it failed unseen, directions would lie half-way "
    "between two units"
)
