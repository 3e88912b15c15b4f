"""A growing orthonormal basis and an orthonormal basis of what it leaves."""

import numpy as np

from revelu.types import FloatArray


class Complement:
    """An orthonormal basis of R^n in two parts: rows that were taken, and the rest.

    The rest starts as a random rotation, so that no row of it is an axis.

    Parameters
    ----------
    n : int

    Attributes
    ----------
    basis : ndarray, shape (n - r, n)
        The rest.
    taken : ndarray, shape (r, n)
    """

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.basis: FloatArray = np.linalg.qr(rng.standard_normal((n, n)))[0]
        self.taken: FloatArray = np.empty((0, n))

    def take(self, rows: FloatArray) -> None:
        """Move orthonormal combinations of the rest over to what is taken.

        Parameters
        ----------
        rows : ndarray, shape (m, n - r)
            Their coordinates in ``basis``, orthonormal rows.
        """
        m = len(rows)
        if not m:
            return
        # Reflections that take the rows to the first m axes take the other axes to a basis
        # of what the rows leave.
        if m == 1:
            u = rows[0].copy()
            u[0] += np.copysign(1.0, u[0])
            rotated = self.basis - np.outer(u * (2.0 / (u @ u)), u @ self.basis)
        else:
            rotated = np.linalg.qr(rows.T, mode="complete")[0].T @ self.basis
        self.taken = np.vstack([self.taken, rows @ self.basis])
        self.basis = np.ascontiguousarray(rotated[m:])
