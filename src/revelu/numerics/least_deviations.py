"""Least absolute deviations: exact where more than half of the equations are.

What fits to rounding is solved once more, alone.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.reweighting import LeastDeviations, reweighted
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class RobustFit:
    """A robust solution of ``A x = b``.

    Attributes
    ----------
    x : ndarray, shape (p,)
    covariance : ndarray, shape (p, p)
        From the residuals of the equations that fit.
    exact : ndarray of bool, shape (m,)
        Equations that hold to rounding.
    is_exact : bool
        Whether enough do.
    """

    x: FloatArray
    covariance: FloatArray
    exact: BoolArray
    is_exact: bool


def least_deviations(
    A: FloatArray,
    b: FloatArray,
    *,
    exact_rtol: float = 1e-9,
    n_spare: int = 5,
    rounding: float = 1e-13,
    max_steps: int = 60,
) -> RobustFit:
    """Minimise ``sum |A x - b|``.

    Parameters
    ----------
    A : ndarray, shape (m, p)
        With m > p.
    b : ndarray, shape (m,)
    exact_rtol : float
        Residuals of this size, relative to the largest ``b``, are rounding.
    n_spare : int
        How many more than 3/2 p equations must hold to rounding: p of them always can, and
        with these that is no chance.
    rounding : float
        Median residual, relative to the largest ``b``, that ends the steps; ``delta`` does
        not fall below it.
    max_steps : int
    """
    m, p = A.shape
    scale = max(float(np.abs(b).max(initial=0.0)), np.finfo(np.float64).tiny)
    loss = LeastDeviations(rounding * scale)
    x = reweighted(A, b, loss, max_steps + 1, enough=rounding * scale)
    exact = np.abs(A @ x - b) <= exact_rtol * scale
    is_exact = int(exact.sum()) >= n_spare + p + p // 2 and bool(
        np.linalg.matrix_rank(A[exact]) == p
    )
    kept = exact if is_exact else np.ones(m, dtype=np.bool_)
    x = np.asarray(np.linalg.lstsq(A[kept], b[kept], rcond=None)[0])
    r = A[kept] @ x - b[kept]
    noise = max(float(r @ r) / max(len(r) - p, 1), (np.finfo(np.float64).eps * scale) ** 2)
    covariance = np.asarray(noise * np.linalg.pinv(A[kept].T @ A[kept]), dtype=np.float64)
    return RobustFit(np.asarray(x, dtype=np.float64), covariance, exact, is_exact)
