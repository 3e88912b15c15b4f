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
from math import comb

import numpy as np

from revelu.numerics.confidence import standard_errors
from revelu.numerics.quadratic import row_blocks
from revelu.probe.moments import Moments
from revelu.recover.method import Why
from revelu.recover.rare.rare_directions import half_angles, leading_eigenvectors
from revelu.recover.rare.rare_samples import CLEAR, RareSamples
from revelu.recover.rare.units import Units, UnitsCandidate
from revelu.types import FloatArray


def recover_even_units(
    X: FloatArray, y: FloatArray, n_units: int, rng: np.random.Generator
) -> UnitsCandidate:
    """Find orthonormal rows under an even activation without a threshold (Theorem 10).

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)

    Returns
    -------
    UnitsCandidate
        ``UNRESOLVED``, with the errors of the directions; they are left out where the theorem's
        condition, measured, is seen to fail.
    """
    (n, d), centred = X.shape, y - y.mean()
    basis = leading_eigenvectors(RareSamples.plain(X, centred).second_moment())[1][:n_units]
    order = rng.permutation(n)
    moments = [
        RareSamples.plain(X[part], centred[part]).moments(basis, 4)
        for part in (order[: n // 2], order[n // 2 :])
    ]
    if not _is_even(moments):
        return UnitsCandidate.none(d, Why.REFUTED, _NOT_EVEN, "even")
    first, second = (part.tensor(4) for part in moments)
    W = _maxima((first + second) / 2.0, rng)
    errors = half_angles(_maxima(first, rng), _maxima(second, rng), W)
    rows = W @ basis
    condition = _check(_weights(X, centred, rows))
    units = Units(rows, np.zeros(len(rows)), errors, np.full(len(rows), np.nan))
    kept = units.told & condition.holds
    notes: tuple[str, ...] = (condition.statement,)
    if left_out := int((~kept).sum()):
        notes = (*notes, f"{left_out} directions are left out as guesses")
    figures = {"condition": condition.ratio, "n_units": len(W), "inputs": d}
    return UnitsCandidate(Why.UNRESOLVED, units[kept], notes, "even", figures=figures)


def _is_even(moments: list[Moments]) -> bool:
    """Whether no moment of odd order is there."""
    for order in (1, 3):
        value = np.sum([part.values[order] for part in moments], axis=0) / len(moments)
        error = sum(part.errors[order] for part in moments) / len(moments) ** 1.5
        if (np.abs(value) > standard_errors(value.size) * error).any():
            return False
    return True


def _maxima(
    fourth: FloatArray, rng: np.random.Generator, n_starts: int = 8, n_steps: int = 300
) -> FloatArray:
    """Orthonormal maxima of ``|T_4[z, z, z, z]|``, the largest first.

    Each is the best of several ascents on the sphere across the maxima before, by symmetric
    power iteration.  A shift above the curvature keeps every step from going down; it is 0.3
    of the bound that row sums of |T| give, for fewer steps.
    """
    k = len(fourth)
    T = fourth if np.einsum("iijj->", fourth) >= 0 else -fourth
    shift = 0.3 * float(np.abs(T).sum(axis=(1, 2, 3)).max())
    found = np.empty((0, k))
    while len(found) < k:
        rest = np.eye(k) - found.T @ found
        Z = rng.standard_normal((n_starts, k)) @ rest
        for _ in range(n_steps):
            Z = (np.einsum("ijkl,aj,ak,al->ai", T, Z, Z, Z) + shift * Z) @ rest
            Z /= np.linalg.norm(Z, axis=1, keepdims=True)
        heights = np.einsum("ijkl,ai,aj,ak,al->a", T, Z, Z, Z, Z)
        found = np.vstack([found, Z[heights.argmax()]])
    return found


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

    def error(
        self,
        B: dict[int, float] | None = None,
        A: dict[int, float] | None = None,
        off: dict[int, float] | None = None,
        both: dict[int, float] | None = None,
    ) -> float:
        """The standard error of what has these derivatives by the moments, others being 0."""
        parts = (self.B, B), (self.A, A), (self.off, off), (self.both, both)
        gradient = np.concatenate(
            [[(slopes or {}).get(i, 0.0) for i in range(len(values))] for values, slopes in parts]
        )
        return float(np.sqrt(gradient @ self.covariance @ gradient))


def _weights(X: FloatArray, values: FloatArray, rows: FloatArray) -> _Weights:
    k, n = len(rows), len(X)
    a, b = np.triu_indices(k, 1)
    size = 2 * k + 2 * len(a)
    total, squares = np.zeros(size), np.zeros((size, size))
    for block in row_blocks(n):
        Z = X[block] @ rows.T
        H = Z**2 - 1.0
        features = np.hstack([H, Z**4 - 6.0 * Z**2 + 3.0, Z[:, a] * Z[:, b], H[:, a] * H[:, b]])
        features *= values[block, None]
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
    """Measure Theorem 10's condition, and whether rows could lie half-way between units."""
    A, pairs = weights.A, list(combinations(range(len(weights.A)), 2))
    sums = np.array([A[a] + A[b] for a, b in pairs])
    sums[sums == 0.0] = np.finfo(np.float64).tiny
    ratios = 6.0 * weights.both / sums
    ratio = float(ratios[np.abs(ratios).argmax()]) if pairs else 0.0
    told = np.array([_is_no_mixture(weights, p, a, b) for p, (a, b) in enumerate(pairs)], bool)
    unlike = not _count_alike(weights)
    # Rows half-way between two units show s = (3 - r) / (1 + r), negative where r > 3: a ratio
    # that is clearly negative is taken for one, unless that is ruled out.
    hidden = ~told & (ratios <= -0.3)
    holds = bool((ratios < 1.0).all()) and _is_diagonal(weights) and not (unlike or hidden.any())
    statement = _EVEN.format(ratio=ratio, verdict="holds" if holds else "fails")
    remark = _UNLIKE if unlike else _ALL_TOLD if told.all() else _UNSEEN
    return _Condition(ratio, holds, statement + remark)


def _is_diagonal(weights: _Weights) -> bool:
    """Whether E[f z_a z_b] is 0; of rows that are off by their errors, nearly so.

    Rows turned by an angle φ have sin 2φ / 2 of what B differs by: a fifth of it is 0.2 rad.
    """
    first = 2 * len(weights.B)
    errors = np.sqrt(np.diag(weights.covariance))[first : first + len(weights.off)]
    return bool((np.abs(weights.off) <= CLEAR * errors + 0.2 * float(np.ptp(weights.B))).all())


def _count_alike(weights: _Weights) -> bool:
    """Whether A / B is the same for all rows: ``A_a B_c = A_c B_a``."""
    A, B = weights.A, weights.B
    sigmas = standard_errors(max(comb(len(A), 2), 1))
    return all(
        abs(A[a] * B[c] - A[c] * B[a])
        <= sigmas * weights.error({a: -A[c], c: A[a]}, {a: B[c], c: -B[a]})
        for a, c in combinations(range(len(A)), 2)
    )


def _is_no_mixture(weights: _Weights, p: int, a: int, b: int) -> bool:
    """Whether rows a and b, pair p, clearly do not lie half-way between two units.

    By what they weigh: with units at an angle φ to the rows, ``B_a - B_b`` has cos 2φ, and
    2 E[f z_a z_b] has sin 2φ, of the same.  Or by the others: half-way, ``A / B`` of another one
    is ``(1 + s) / 2`` of theirs, ``2 A_c (B_a + B_b) = B_c (A_a + A_b + 6 G)``.
    """
    A, B = weights.A, weights.B
    turned = weights.error({a: 1.0, b: -1.0}) + weights.error(off={p: 2.0})
    if abs(B[a] - B[b]) - 2.0 * abs(weights.off[p]) > CLEAR * turned:
        return True
    both, mixed = B[a] + B[b], A[a] + A[b] + 6.0 * weights.both[p]
    others = [c for c in range(len(A)) if c not in (a, b)]
    return bool(others) and all(
        abs(B[c] * mixed - 2.0 * A[c] * both)
        > CLEAR
        * weights.error(
            {a: -2.0 * A[c], b: -2.0 * A[c], c: mixed},
            {a: B[c], b: B[c], c: -2.0 * both},
            both={p: 6.0 * B[c]},
        )
        for c in others
    )


_NOT_EVEN = "moments of odd order are there: the activation is not even, or a threshold is not 0"
_EVEN = (
    "the condition that units can be told apart {verdict}, as far as moments tell: the product of "
    "two units weighs {ratio:.2g} of what they weigh alone; "
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
