"""Least absolute deviations: exact where more than half of the equations are.

Iteratively reweighted least squares with weights ``1 / (|r| + delta)``; what fits to rounding
is then solved once more, alone.
"""

from dataclasses import dataclass

import numpy as np

from revelu.types import BoolArray, FloatArray

_STEPS = 60

# delta falls with the median residual, down to rounding.
_SHARE = 0.3
_ROUNDING = 1e-13

# Residuals of this size, relative to the answers, are rounding; so many more equations than
# unknowns must fit for that to be no chance.
_EXACT = 1e-9
_SPARE = 5


@dataclass(frozen=True)
class Fit:
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


def least_deviations(A: FloatArray, b: FloatArray) -> Fit:
    """Minimise ``sum |A x - b|``.

    Parameters
    ----------
    A : ndarray, shape (m, p)
        With m > p.
    b : ndarray, shape (m,)
    """
    m, p = A.shape
    scale = max(float(np.abs(b).max(initial=0.0)), np.finfo(np.float64).tiny)
    x = np.linalg.lstsq(A, b, rcond=None)[0]
    for _ in range(_STEPS):
        r = np.abs(A @ x - b)
        delta = max(_SHARE * float(np.median(r)), _ROUNDING * scale)
        root = 1.0 / np.sqrt(r + delta)
        x = np.linalg.lstsq(A * root[:, None], b * root, rcond=None)[0]
        if np.median(r) <= _ROUNDING * scale:
            break
    exact = np.abs(A @ x - b) <= _EXACT * scale
    is_exact = int(exact.sum()) >= _SPARE + p + p // 2 and bool(
        np.linalg.matrix_rank(A[exact]) == p
    )
    kept = exact if is_exact else np.ones(m, dtype=np.bool_)
    x = np.asarray(np.linalg.lstsq(A[kept], b[kept], rcond=None)[0])
    r = A[kept] @ x - b[kept]
    noise = max(float(r @ r) / max(len(r) - p, 1), (np.finfo(np.float64).eps * scale) ** 2)
    covariance = np.asarray(noise * np.linalg.pinv(A[kept].T @ A[kept]), dtype=np.float64)
    return Fit(np.asarray(x, dtype=np.float64), covariance, exact, is_exact)
