"""One rotation that makes several symmetric matrices as diagonal as can be.

Cyclic Jacobi rotations (Cardoso and Souloumiac, 1996): in each plane the best angle for all
matrices at once is known in closed form.  With noise this uses every matrix, where a pencil
uses two and needs a gap between eigenvalues; for bases that are not orthogonal there is
:mod:`revelu.numerics.joint_diagonalisation`.
"""

import numpy as np

from revelu.types import FloatArray

# Sweeps over all planes at most, and the largest angle that counts as none.
_MOST_SWEEPS = 100
_NO_ANGLE = 1e-12


def common_rotation(matrices: FloatArray) -> FloatArray:
    """Find an orthogonal Q such that all ``Q M Q'`` are nearly diagonal.

    Parameters
    ----------
    matrices : ndarray, shape (p, m, m)
        Symmetric.

    Returns
    -------
    ndarray, shape (m, m)
        Orthogonal; its rows are the common eigenvectors.
    """
    M = np.array(matrices, dtype=np.float64)
    m = M.shape[1]
    Q = np.eye(m)
    for _ in range(_MOST_SWEEPS):
        largest = 0.0
        for i in range(m - 1):
            for j in range(i + 1, m):
                angle = _angle(M, i, j)
                largest = max(largest, abs(angle))
                if abs(angle) > _NO_ANGLE:
                    _rotate(M, Q, i, j, angle)
        if largest <= _NO_ANGLE:
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
