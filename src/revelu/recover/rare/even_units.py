"""Orthonormal rows under an even activation without a threshold (GP18, Theorem 10).

From samples of N(0, I): the maxima of ``|T_4[z, z, z, z]|``, ``T_4 = E[f He_4]``, are the
rows where products of units weigh little.  The constant of the theorem's condition is sqrt(6)
for normalised Hermite polynomials, not 6 as in print.

The condition is about rows that are not known.  Where two units break it, by a ratio r > 1,
the maxima lie half-way between them and show a ratio s = (3 - r) / (1 + r) that keeps it.
What gives them away: by the theorem's proof (D.3) ``B_a = E[f He_2(z_a)]`` and ``A_a = E[f
He_4(z_a)]`` are both C({a}, u_0) times a number of the activation, so A / B is the same for all
units, and E[f z_a z_b] is 0.  Half-way between two units A / B is (1 + r) / 2 = 2 / (1 + s) times
that of the others; and B is the same for both unless E[f z_a z_b] is seen.  Each of these is held
against the standard error that it has by the covariance of all moments.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from revelu.numerics.matching import match_rows
from revelu.probe.moments import Moments
from revelu.recover.rare.rare_samples import RareSamples, rare_moments, second_moment
from revelu.recovery import LayerRecovery, Ledger, Status
from revelu.types import FloatArray

# Standard errors at which a difference is clear; at which numbers that must be equal, or
# nought, are not.
_CLEAR = 4.0
_CERTAIN = 6.0

# Starts and steps of an ascent on the sphere.
_N_STARTS = 8
_ASCENT = 300

# A ratio below minus this is taken for a failure in disguise unless that is ruled out; and
# E[f He_2] may be so far off the diagonal, in units of what differs on it.
_NEGATIVE = 0.3
_TOLERATED = 0.2

# Errors beyond this are guesses.
_GUESS = 0.5

# Rows whose features are held at a time.
_ROWS = 8192


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
    """
    d = X.shape[1]
    centred = y - y.mean()
    values, U = np.linalg.eigh(second_moment(_plain(X, centred)))
    basis = U[:, np.argsort(-np.abs(values))[:n_units]].T
    half = rng.permutation(len(y))
    parts = half[: len(y) // 2], half[len(y) // 2 :]
    moments = [rare_moments(_plain(X[p], centred[p]), basis, 4) for p in parts]
    if not _is_even(moments):
        return LayerRecovery(
            Status.NOT_IN_CLASS,
            np.empty((0, d)),
            np.empty(0),
            np.empty(0),
            ledger=Ledger(0, 0, {}),
            evidence=(_NOT_EVEN,),
            method="even",
        )
    fourth = (moments[0].tensor(4) + moments[1].tensor(4)) / 2.0
    W = _maxima(fourth, rng)
    errors = _halves(moments, W, rng)
    rows = W @ basis
    condition = _check(_weights(X, centred, rows))
    kept = errors <= _GUESS if condition.holds else np.zeros(len(W), dtype=np.bool_)
    evidence = [condition.statement]
    if not kept.all():
        evidence.append(f"{int((~kept).sum())} directions are left out as guesses")
    return LayerRecovery(
        Status.PARTIAL,
        rows[kept],
        np.zeros(int(kept.sum())),
        errors[kept],
        ledger=Ledger(0, 0, {}),
        evidence=tuple(evidence),
        method="even",
        details={"condition": condition.ratio, "n_units": len(W), "inputs": d},
    )


def _plain(X: FloatArray, values: FloatArray) -> RareSamples:
    return RareSamples(X, values, len(X), float(len(X)))


def _is_even(moments: list[Moments]) -> bool:
    """Whether no moment of odd order is there."""
    for order in (1, 3):
        value = sum(part.values[order] for part in moments) / len(moments)
        error = sum(part.errors[order] for part in moments) / len(moments) ** 1.5
        if (np.abs(value) > _CERTAIN * error).any():
            return False
    return True


def _maxima(fourth: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Orthonormal maxima of ``|T_4[z, z, z, z]|``, the largest first."""
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
    return np.array(found)


def _halves(moments: list[Moments], W: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Half of the angle between the directions of two halves."""
    found = []
    for part in moments:
        own = _maxima(part.tensor(4), rng)
        rows, signs = match_rows(own, W, up_to_sign=True)
        found.append(signs[:, None] * own[rows])
    cosines = np.sum(found[0] * found[1], axis=1)
    angles = np.arccos(np.clip(cosines, 0.0, 1.0)) / 2.0
    return np.asarray(np.maximum(angles, np.sqrt(np.mean(angles**2))))


@dataclass(frozen=True)
class _Weights:
    """Moments along rows: of each, ``B (k,)`` and ``A (k,)``; of each pair of rows, ``(p,)``.

    ``off`` is E[f z_a z_b] and ``both`` is ``G = E[f He_2(z_a) He_2(z_b)]``, for a, b in the order
    of ``itertools.combinations``.  ``covariance`` is that of all, in this order.
    """

    B: FloatArray
    A: FloatArray
    off: FloatArray
    both: FloatArray
    covariance: FloatArray

    def error(self, gradient: FloatArray) -> float:
        """The standard error of what has this gradient in the moments."""
        return float(np.sqrt(gradient @ self.covariance @ gradient))


def _weights(X: FloatArray, values: FloatArray, rows: FloatArray) -> _Weights:
    k, n = len(rows), len(X)
    a, b = np.triu_indices(k, 1)
    size = 2 * k + 2 * len(a)
    total, squares = np.zeros(size), np.zeros((size, size))
    for start in range(0, n, _ROWS):
        Z = X[start : start + _ROWS] @ rows.T
        H = Z**2 - 1.0
        features = np.hstack([H, Z**4 - 6.0 * Z**2 + 3.0, Z[:, a] * Z[:, b], H[:, a] * H[:, b]])
        features *= values[start : start + _ROWS, None]
        total += features.sum(axis=0)
        squares += features.T @ features
    mean = total / n
    covariance = (squares / n - np.outer(mean, mean)) / n
    B, A, off, both = np.split(mean, [k, 2 * k, 2 * k + len(a)])
    return _Weights(B, A, off, both, covariance)


@dataclass(frozen=True)
class _Condition:
    """Theorem 10's largest ratio, whether the condition holds, and that in words."""

    ratio: float
    holds: bool
    statement: str


def _check(weights: _Weights) -> _Condition:
    """Judge Theorem 10's condition, and whether rows could lie half-way between units."""
    k = len(weights.B)
    pairs = list(combinations(range(k), 2))
    sums = np.array([weights.A[a] + weights.A[b] for a, b in pairs])
    sums[sums == 0.0] = np.finfo(np.float64).tiny
    ratios = 6.0 * weights.both / sums
    ratio = float(ratios[np.abs(ratios).argmax()]) if pairs else 0.0
    mixtures = [not _is_no_mixture(weights, p, a, b) for p, (a, b) in enumerate(pairs)]
    told = ~np.array(mixtures, dtype=np.bool_)
    unlike = not _count_alike(weights)
    holds = (
        bool((ratios < 1.0).all())
        and _is_diagonal(weights)
        and not unlike
        and bool((told | (ratios > -_NEGATIVE)).all())
    )
    statement = _EVEN.format(ratio=ratio, verdict="holds" if holds else "fails")
    remark = _UNLIKE if unlike else _ALL_TOLD if told.all() else _UNSEEN
    return _Condition(ratio, holds, statement + remark)


def _is_diagonal(weights: _Weights) -> bool:
    """Whether E[f z_a z_b] is nought; of rows that are off by their errors, nearly so."""
    first = 2 * len(weights.B)
    errors = np.sqrt(np.diag(weights.covariance))[first : first + len(weights.off)]
    spread = float(np.ptp(weights.B))
    return bool((np.abs(weights.off) <= _CLEAR * errors + _TOLERATED * spread).all())


def _count_alike(weights: _Weights) -> bool:
    """Whether A / B is the same for all rows: ``A_a B_c = A_c B_a``."""
    A, B, k = weights.A, weights.B, len(weights.A)
    for a, c in combinations(range(k), 2):
        gradient = np.zeros(len(weights.covariance))
        gradient[[a, c, k + a, k + c]] = -A[c], A[a], B[c], -B[a]
        if abs(A[a] * B[c] - A[c] * B[a]) > _CERTAIN * weights.error(gradient):
            return False
    return True


def _is_no_mixture(weights: _Weights, p: int, a: int, b: int) -> bool:
    """Whether rows a and b, pair p, clearly do not lie half-way between two units.

    By what they weigh: with units at an angle φ to the rows, ``B_a - B_b`` has cos 2φ, and
    2 E[f z_a z_b] has sin 2φ, of the same.  Or by the others: half-way, ``A / B`` of another one
    is ``(1 + s) / 2`` of theirs, ``2 A_c (B_a + B_b) = B_c (A_a + A_b + 6 G)``.
    """
    A, B, k = weights.A, weights.B, len(weights.A)
    n_pairs = len(weights.off)
    both, apart = np.zeros(len(weights.covariance)), np.zeros(len(weights.covariance))
    apart[[a, b]] = 1.0, -1.0
    both[2 * k + p] = 2.0
    turned = weights.error(apart) + weights.error(both)
    if abs(B[a] - B[b]) - 2.0 * abs(weights.off[p]) > _CLEAR * turned:
        return True
    others = [c for c in range(k) if c not in (a, b)]
    for c in others:
        mixed = A[a] + A[b] + 6.0 * weights.both[p]
        gradient = np.zeros(len(weights.covariance))
        gradient[[c, k + c]] = mixed, -2.0 * (B[a] + B[b])
        gradient[[a, b]] = -2.0 * A[c]
        gradient[[k + a, k + b]] = B[c]
        gradient[2 * k + n_pairs + p] = 6.0 * B[c]
        gap = B[c] * mixed - 2.0 * A[c] * (B[a] + B[b])
        if abs(gap) <= _CLEAR * weights.error(gradient):
            return False
    return bool(others)


_NOT_EVEN = "moments of odd order are there: the activation is not even, or a threshold is not 0"
_EVEN = (
    "Theorem 10's condition {verdict}, as far as moments tell: the product of two units weighs "
    "{ratio:.2g} of what they weigh alone; "
)
_ALL_TOLD = (
    "that two directions lie half-way between two units is ruled out for every pair, unless "
    "all units are paired so, and alike"
)
_UNSEEN = "where it failed unseen, directions would lie half-way between two units"
_UNLIKE = (
    "but moments of orders 2 and 4 weigh directions differently, which they do not for products "
    "of one activation of units"
)
