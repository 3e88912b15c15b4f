"""One basis in which many symmetric matrices are as diagonal as can be.

With noise this uses every matrix, where a pencil uses two and needs a gap between
eigenvalues.  :func:`common_rotation` finds an orthogonal basis from anywhere;
:func:`diagonalise_jointly` finds any basis, from a start that is near it.
"""

import numpy as np

from revelu.types import FloatArray


def diagonalise_jointly(
    C: FloatArray,
    V: FloatArray,
    *,
    rtol: float = 1e-12,
    longest: float = 0.5,
    max_sweeps: int = 100,
) -> FloatArray:
    """Find ``V`` with ``V C_k V'`` diagonal for all k, or nearly so where none is exact.

    Parameters
    ----------
    C : ndarray, shape (n, m, m)
        Symmetric.
    V : ndarray, shape (m, m)
        Invertible: where to start.
    rtol : float
        A correction that moves no row by more than this share is rounding.
    longest : float
        Largest norm of a correction ``E``; below 1 it keeps ``I + E`` invertible.
    max_sweeps : int

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
    for _ in range(max_sweeps):
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
        V = V + (E * min(1.0, longest / max(size, rtol))) @ V
        if size <= rtol * m:
            break
    return np.asarray(V / np.linalg.norm(V, axis=1, keepdims=True))


def common_rotation(
    matrices: FloatArray, *, atol: float = 1e-12, max_sweeps: int = 100
) -> FloatArray:
    """Find an orthogonal Q such that all ``Q M Q'`` are nearly diagonal.

    Parameters
    ----------
    matrices : ndarray, shape (p, m, m)
        Symmetric.
    atol : float
        The largest angle, in radians, that counts as none.
    max_sweeps : int
        Over all planes.

    Returns
    -------
    ndarray, shape (m, m)
        Orthogonal; its rows are the common eigenvectors.

    Notes
    -----
    Cyclic Jacobi rotations (Cardoso and Souloumiac 1996): in each plane the best angle for
    all matrices at once is known in closed form.
    """
    M = np.array(matrices, dtype=np.float64)
    m = M.shape[1]
    Q = np.eye(m)
    for _ in range(max_sweeps):
        largest = 0.0
        for i in range(m - 1):
            for j in range(i + 1, m):
                angle = _angle(M, i, j)
                largest = max(largest, abs(angle))
                if abs(angle) > atol:
                    _rotate(M, Q, i, j, angle)
        if largest <= atol:
            break
    return Q


def _angle(M: FloatArray, i: int, j: int) -> float:
    """The rotation of the plane (i, j) that leaves least off the diagonal."""
    h = np.stack([M[:, i, i] - M[:, j, j], 2.0 * M[:, i, j]])
    g = h @ h.T
    # Largest eigenvector of g, by the half angle; the angle itself is a quarter turn at most.
    return 0.5 * float(
        np.arctan2(2.0 * g[0, 1], g[0, 0] - g[1, 1] + np.hypot(g[0, 0] - g[1, 1], 2.0 * g[0, 1]))
    )


def _rotate(M: FloatArray, Q: FloatArray, i: int, j: int, angle: float) -> None:
    """Rotate rows and columns i and j, in place."""
    R = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    plane = [i, j]
    M[:, plane, :] = R @ M[:, plane, :]
    M[:, :, plane] = M[:, :, plane] @ R.T
    Q[plane] = R @ Q[plane]
