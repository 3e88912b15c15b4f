"""The affine map of a piece, d - 1 queries each (DG21, Algorithm 2).

The search for kinks has already paid for a base point and for the derivative along
the line; what is left are the d - 1 directions orthogonal to it.
"""

import numpy as np

from revelu.errors import SaturatedError
from revelu.probe.line import Askable, Line
from revelu.types import FloatArray


def complement_basis(v: FloatArray) -> FloatArray:
    """Return orthonormal rows orthogonal to ``v``, shape (d - 1, d).

    The Householder reflection that takes ``e_1`` to ``-+v/|v|`` takes the other unit
    vectors to a basis of the complement, parallel to no axis.
    """
    d = len(v)
    u = v / np.linalg.norm(v)
    u = u.copy()
    u[0] += np.copysign(1.0, u[0])
    H = np.eye(d) - np.outer(u, u) * (2.0 / (u @ u))
    return np.asarray(H[1:])


def step_length(line: Line, t: float, half_gap: float, rho: float) -> float:
    """Step orthogonal to the line that stays inside a piece, most likely.

    In the lifted picture the point at angle theta moves by ``h / (|v| sqrt(1 + t^2))``
    when ``x`` moves by ``h``; that is to be a fraction ``rho`` of the half-gap.

    Parameters
    ----------
    line : Line
    t : float
        Where on the line.
    half_gap : float
        Angle to the nearest kink.
    rho : float
    """
    return float(rho * half_gap * np.linalg.norm(line.v) * np.hypot(1.0, t))


def directional_differences(
    ask: Askable, x: FloatArray, fx: FloatArray, directions: FloatArray, h: FloatArray
) -> FloatArray:
    """Derivatives by forward differences.

    Parameters
    ----------
    ask : Askable
    x : ndarray, shape (d,)
    fx : ndarray, shape (k,)
        The value at ``x``.
    directions : ndarray, shape (n, d)
        Unit rows.
    h : ndarray, shape (n,)
        Signed steps.

    Returns
    -------
    ndarray, shape (n, k)

    Raises
    ------
    SaturatedError
        If the target is saturated at one of the points.
    """
    Y = ask(x + h[:, None] * directions)
    if not np.isfinite(Y).all():
        raise SaturatedError("the target is saturated beside a line")
    return np.asarray((Y - fx) / h[:, None])
