"""One basis in which many symmetric matrices are as diagonal as can be."""

import numpy as np

from revelu.types import FloatArray

# Sweeps at most; a correction that moves no row by more than this share is rounding.
_MOST_SWEEPS = 100
_RTOL = 1e-12

# A correction is kept below this norm: then I + E is invertible.
_LONGEST = 0.5


def diagonalise_jointly(C: FloatArray, V: FloatArray) -> FloatArray:
    """Find ``V`` with ``V C_k V'`` diagonal for all k, or nearly so where none is exact.

    Parameters
    ----------
    C : ndarray, shape (n, m, m)
        Symmetric.
    V : ndarray, shape (m, m)
        Invertible: where to start.

    Returns
    -------
    ndarray, shape (m, m)
        Rows of norm 1.

    Notes
    -----
    FFDIAG (Ziehe, Laskov, Nolte and Mueller 2004).  Near a solution ``V C_k V' = D_k + R_k``
    with small off-diagonal ``R_k``, and ``(I + E)(D_k + R_k)(I + E)'`` has to first order the
    entries ``r_ij + e_ij d_j + e_ji d_i`` off the diagonal: for each pair ij, least squares over
    k in the two unknowns ``e_ij``, ``e_ji``.
    """
    m = len(V)
    for _ in range(_MOST_SWEEPS):
        V = V / np.linalg.norm(V, axis=1, keepdims=True)
        turned = V @ C @ V.T
        D = np.einsum("kii->ki", turned)
        z = D.T @ D
        y = np.einsum("kj,kij->ij", D, turned)
        determinant = np.outer(np.diag(z), np.diag(z)) - z**2
        # Two rows with proportional diagonals cannot be told apart: they stay.
        floor = np.finfo(np.float64).eps * np.outer(np.diag(z), np.diag(z))
        told_apart = (determinant > floor) & ~np.eye(m, dtype=bool)
        E = (z * y.T - np.diag(z)[:, None] * y) / np.where(told_apart, determinant, 1.0)
        E = np.where(told_apart, E, 0.0)
        size = float(np.linalg.norm(E))
        V = V + (E * min(1.0, _LONGEST / max(size, _RTOL))) @ V
        if size <= _RTOL * m:
            break
    return np.asarray(V / np.linalg.norm(V, axis=1, keepdims=True))
