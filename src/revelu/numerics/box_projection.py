"""The nearest point of a box with given coordinates in a subspace."""

import numpy as np

from revelu.types import FloatArray, IntArray

_MAX_STEPS = 200
_ATOL = 1e-13

# Keeps a Newton step finite where hardly a coordinate is off the box's faces.
_DAMPING = 1e-3
_LEAST_DAMPING = 1e-12

# A step is halved until the dual falls by this share of what its slope promises.
_ARMIJO = 1e-4
_SHORTEST = 1e-10


def nearest_in_box(
    x: FloatArray, start: FloatArray, basis: FloatArray, box: tuple[float, float]
) -> FloatArray:
    """Project ``start`` on the box cut with ``{y : Q y = Q x}``.

    The projection is ``y(λ) = clip(start + Q^T λ)`` for the multipliers λ that make
    ``Q y(λ) = Q x``.  They minimise a convex function whose gradient is ``Q y(λ) - Q x``
    and whose Hessian is ``Q D Q^T``, D the coordinates off the faces: Newton's method ends
    after a few dozen steps, where alternating projections creep.

    Parameters
    ----------
    x : ndarray, shape (n,)
        A point of the box.
    start : ndarray, shape (n,)
    basis : ndarray, shape (k, n)
        Q, orthonormal rows.
    box : (lo, hi)

    Returns
    -------
    ndarray, shape (n,)
        Inside of the box; ``Q y`` is ``Q x`` up to rounding.

    Examples
    --------
    >>> x, start = np.array([0.5, 0.5]), np.array([5.0, 0.0])
    >>> nearest_in_box(x, start, np.array([[1.0, 0.0]]), (0.0, 1.0)).tolist()
    [0.5, 0.0]
    """
    wanted = basis @ x
    multipliers = np.zeros(len(basis))
    value, y, free = _dual(multipliers, start, basis, wanted, box)
    for _ in range(_MAX_STEPS):
        gradient = basis @ y - wanted
        size = float(np.abs(gradient).max(initial=0.0))
        if size <= _ATOL * max(1.0, float(np.abs(wanted).max(initial=0.0))):
            break
        damping = max(_LEAST_DAMPING, _DAMPING * size)
        hessian = basis[:, free] @ basis[:, free].T + damping * np.eye(len(basis))
        step = -np.linalg.solve(hessian, gradient)
        t, slope = 1.0, float(gradient @ step)
        while True:
            after = _dual(multipliers + t * step, start, basis, wanted, box)
            rounding = _ATOL * abs(value)
            if after[0] <= value + _ARMIJO * t * slope + rounding or t < _SHORTEST:
                break
            t /= 2.0
        multipliers = multipliers + t * step
        value, y, free = after
    return y


def _dual(
    multipliers: FloatArray,
    start: FloatArray,
    basis: FloatArray,
    wanted: FloatArray,
    box: tuple[float, float],
) -> tuple[float, FloatArray, IntArray]:
    """The dual's value, the point that belongs to it, and which coordinates are free."""
    z = start + multipliers @ basis
    y = np.clip(z, *box)
    free = np.flatnonzero((z > box[0]) & (z < box[1]))
    return float(y @ z - 0.5 * (y @ y) - multipliers @ wanted), np.asarray(y), free
