"""The nearest point of a box with given coordinates in a subspace."""

import numpy as np

from revelu.types import FloatArray, IntArray


def nearest_in_box(
    x: FloatArray,
    start: FloatArray,
    basis: FloatArray,
    box: tuple[float, float],
    *,
    rtol: float = 1e-13,
    damping: float = 1e-3,
    max_steps: int = 200,
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
    rtol : float
        Size of the gradient, relative to ``Q x``, that is rounding.
    damping : float
        Added to the Hessian, as a multiple of the gradient's size: where few coordinates
        are off the faces the Hessian is nearly singular, and this keeps a step finite.
    max_steps : int

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
    tolerance = rtol * max(1.0, float(np.abs(wanted).max(initial=0.0)))
    armijo, shortest = 1e-4, 1e-10
    for _ in range(max_steps):
        gradient = basis @ y - wanted
        size = float(np.abs(gradient).max(initial=0.0))
        if size <= tolerance:
            break
        # Damping of 10 roundings stays where the gradient is all but 0.
        added = max(10.0 * rtol, damping * size)
        hessian = basis[:, free] @ basis[:, free].T + added * np.eye(len(basis))
        step = -np.linalg.solve(hessian, gradient)
        t, slope = 1.0, float(gradient @ step)
        # Halved until the dual falls by a small share of what its slope promises (Armijo).
        while True:
            after = _dual(multipliers + t * step, start, basis, wanted, box)
            rounding = rtol * abs(value)
            if after[0] <= value + armijo * t * slope + rounding or t < shortest:
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
