"""The span of a function's gradients: how few directions of its inputs it looks at.

A two-layer network's gradient at ``x`` is a combination of the rows of ``W`` that are
on there.  Gradients at Gaussian points, taken by finite differences at steps that noise
allows, span those rows; the singular values tell how many there are.  A neuron that is
off at all of those points, or on at all, is seen by another test: answers do not change
when everything outside the span is drawn anew.
"""

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.gradient import Stencil
from revelu.types import FloatArray


def gradient_span(
    oracle: Oracle,
    noise: NoiseFloor,
    rng: np.random.Generator,
    max_rank: int,
    *,
    spare_rows: int = 2,
    n_pairs: int = 128,
) -> FloatArray | None:
    """Measure gradients until they add no direction.

    Directions under the noise of a difference are not counted: the last fit, in all
    coordinates, finds them.  The first two points are ``x`` and ``-x``: a neuron that is off
    at one is mostly on at the other.  Further pairs would add little, since the sum of both
    gradients is about the same everywhere.

    Parameters
    ----------
    max_rank : int
        Give up beyond it.
    spare_rows : int
        Gradients over and above the rank, which show where it ends.
    n_pairs : int
        Pairs of inputs that differ outside the span only.  A neuron that fires at one input
        in 50 is on at one of a pair's in all but 1% of such sets.

    Returns
    -------
    ndarray, shape (r, d), or None
        An orthonormal basis of the directions that matter; None where there are more than
        ``max_rank``.
    """
    d = oracle.dim_in
    # Balances the noise of a difference, nu / h, against the kinks that it crosses, a share of
    # about h of the coordinates.
    h = 2.0 * float(np.cbrt(noise.nu.max()))
    unit = noise.unit
    slope_error = 2.0 * noise.relative / h
    x = rng.standard_normal(d)
    points = np.vstack([x, -x])
    gradients, rank_before = np.empty((0, d)), 0
    while len(gradients) < max_rank + 2 * len(unit) + spare_rows:
        with oracle.round():
            new = [_gradient(oracle, x, h) / unit[:, None] for x in points]
        gradients = np.vstack([gradients, *new])
        if not np.isfinite(gradients).all():
            return None
        _, values, vt = np.linalg.svd(gradients, full_matrices=False)
        # The norm of a random matrix is about the sum of the roots of its sides.
        sides = np.sqrt(len(gradients)) + np.sqrt(d)
        rank = int((values > slope_error * sides).sum())
        points = rng.standard_normal((1, d))
        if rank > min(len(values) - spare_rows, max_rank):
            continue
        if rank > rank_before:
            # Between such a pair answers change by the gradients' error a coordinate, along a
            # way as long as sqrt(2 d), unless a direction is missing.
            allowed = SIGMAS * slope_error * np.sqrt(2.0 * d)
            points = _missing(oracle, rng, vt[:rank], unit, allowed, h, n_pairs)
        # What a gradient taken where something is missing does not add is not linear there.
        if rank == rank_before or not len(points):
            return np.asarray(vt[:rank])
        rank_before = rank
    return None


def _gradient(oracle: Oracle, x: FloatArray, h: float) -> FloatArray:
    """Take the gradient of each output by forward differences, shape (k, d)."""
    start = oracle.in_float32(x)
    steps = np.diag(oracle.in_float32(x + h * np.eye(len(x)))) - start
    return Stencil(start, np.eye(len(x)), steps).measure(oracle).values.T


def _missing(
    oracle: Oracle,
    rng: np.random.Generator,
    basis: FloatArray,
    unit: FloatArray,
    allowed: float,
    h: float,
    n_pairs: int,
) -> FloatArray:
    """Where the function depends on what is outside the span, shape (1 or 0, d)."""
    X, Z = rng.standard_normal((2, n_pairs, basis.shape[1]))
    Z += (X - Z) @ basis.T @ basis
    change = _changes(oracle, X, Z) / unit
    most = int(change.max(axis=1).argmax())
    if change[most].max() <= allowed:
        return np.empty((0, basis.shape[1]))
    # At one end at least what is missing is on, and there it has a slope.
    ends, step = np.vstack([X[most], Z[most]]), h * (Z[most] - X[most])
    slopes = _changes(oracle, ends, ends + step) / unit
    return ends[[int(slopes.max(axis=1).argmax())]]


def _changes(oracle: Oracle, X: FloatArray, Z: FloatArray) -> FloatArray:
    """How far answers are apart, shape (n, k); saturated ones say nothing, hence 0."""
    with oracle.round():
        Y, Y_other = oracle(oracle.in_float32(X)), oracle(oracle.in_float32(Z))
    answered = np.isfinite(Y) & np.isfinite(Y_other)
    return np.abs(np.subtract(Y, Y_other, out=np.zeros_like(Y), where=answered))
