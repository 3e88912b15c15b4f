"""What equations tell of unknowns, in square-root form: nothing is squared.

Equations ``J p = r``, each over its standard error, have the information ``J'J = R'R`` with the
triangle ``R`` of a QR decomposition.  The covariance is ``S S'`` with ``S`` the inverse of ``R``,
and the standard error of a number ``f p`` the norm of ``f S``: an error of 1e-15 stands beside one
of 1 (Bierman 1977, *Factorization Methods for Discrete Sequential Estimation*).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dtrtri

from revelu.types import FloatArray


@dataclass(frozen=True, eq=False)
class Information:
    """A covariance in square-root form, and the directions that no equation tells.

    Attributes
    ----------
    root : ndarray, shape (p, r)
        ``S``: the covariance is ``S S'`` where all is told.
    null : ndarray, shape (p, p - r)
        Directions that are open, orthonormal in unknowns times their sizes.
    sizes : ndarray, shape (p,)
        Of the columns of ``J``: what one unit of an unknown moves.
    solution : ndarray, shape (p,)
        Least squares; 0 along what is open, or nearly so.
    size : float
        Root mean square of the solution, in standard errors of what is told.
    """

    root: FloatArray
    null: FloatArray
    sizes: FloatArray
    solution: FloatArray
    size: float

    @classmethod
    def of(cls, blocks: Iterable[FloatArray], p: int) -> "Information":
        """Take in equations over their errors, blocks ``[J, r]`` of shape (n, p + 1).

        Notes
        -----
        Of a block larger rows come first, which keeps small ones their digits (Cox and Higham
        1998).  Sizes of columns do not matter to a QR decomposition without pivoting; with unit
        columns its triangle is decomposed again, with pivoting, and what is fainter than rounding
        makes of ``n`` equations is nothing.
        """
        R, n = np.zeros((0, p + 1)), 0
        for block in blocks:
            n += len(block)
            largest = np.abs(block[:, :p]).max(axis=1, initial=0.0)
            rows = np.vstack([R, block[np.argsort(-largest, kind="stable")]])
            R = scipy.linalg.qr(rows, mode="r", check_finite=False)[0][: p + 1]
        R, right = R[:p, :p], R[:p, p]
        sizes = _nonzero(np.linalg.norm(R, axis=0))
        if not len(R):
            return cls(np.zeros((p, 0)), np.eye(p), sizes, np.zeros(p), 0.0)
        Q, R, order = scipy.linalg.qr(R / sizes, mode="economic", pivoting=True, check_finite=False)
        faint = np.abs(np.diag(R)) <= max(n, p) * np.finfo(np.float64).eps
        rank = int(np.argmax(faint)) if faint.any() else min(R.shape)
        told = scipy.linalg.solve_triangular(R[:rank, :rank], np.eye(rank), check_finite=False)
        root, null = np.zeros((p, rank)), np.zeros((p, p - rank))
        root[order[:rank]] = told
        root /= sizes[:, None]
        null[order[:rank]], null[order[rank:]] = -told @ R[:rank, rank:], np.eye(p - rank)
        right = Q[:, :rank].T @ right
        size = float(np.sqrt(right @ right / max(rank, 1)))
        return cls(root, np.linalg.qr(null)[0], sizes, root @ right, size)

    @classmethod
    def of_products(
        cls, blocks: Iterable[FloatArray], p: int, faintest: float = 1e-4
    ) -> "Information | None":
        """Take in well-conditioned equations several times as fast, by products of unit columns.

        Parameters
        ----------
        faintest : float
            Of the pivots of ``R``: their squares have digits enough.

        Returns
        -------
        Information or None
            None where a pivot is fainter: squares have lost what it tells.
        """
        normal = np.zeros((p + 1, p + 1), order="F")
        for block in blocks:
            normal = dsyrk(1.0, block.T, beta=1.0, c=normal, overwrite_c=True)
        sizes = np.sqrt(np.diag(normal)[:p])
        shown = np.flatnonzero(sizes > 0.0)
        sizes, right = _nonzero(sizes), normal[shown, p] / sizes[shown]
        unit = np.asfortranarray(normal[np.ix_(shown, shown)])
        unit /= np.outer(sizes[shown], sizes[shown])
        R, failed = dpotrf(unit, overwrite_a=True)
        if failed or np.diag(R).min(initial=1.0) < faintest:
            return None
        rank = len(shown)
        root, null = np.zeros((p, rank)), np.zeros((p, p - rank))
        root[shown] = dtrtri(R, overwrite_c=True)[0]
        back = root[shown].T @ right
        root /= sizes[:, None]
        null[np.setdiff1d(np.arange(p), shown), np.arange(p - rank)] = 1.0
        size = float(np.sqrt(back @ back / max(rank, 1)))
        return cls(root, null, sizes, root @ back, size)

    def solved(self, gradient: FloatArray) -> "Information":
        """The same with the solution for other answers, by ``J' r`` of theirs, shape (p,)."""
        back = self.root.T @ gradient
        size = float(np.sqrt(back @ back / max(self.rank, 1)))
        return replace(self, solution=self.root @ back, size=size)

    @property
    def rank(self) -> int:
        """How many directions are told."""
        return int(self.root.shape[1])

    @property
    def moves(self) -> FloatArray:
        """How each unknown moves, shape (p, m): what :meth:`errors` reads of any numbers.

        Numbers ``F p`` move by ``F`` times these.
        """
        if self.rank == len(self.sizes):
            return self.root
        units = 1.0 / self.sizes
        return np.hstack([self.root, self.null * units[:, None], np.diag(units)])

    def errors(self, moves: FloatArray, rtol: float = 1e-7) -> FloatArray:
        """Return standard errors of numbers that move so, (..., m) -> (...).

        Infinite where one moves along an open direction.

        Parameters
        ----------
        rtol : float
            Of all that it moves by, what rounding may make it move so.
        """
        ends = [self.rank, len(self.sizes)]
        told, open_by, size = (_norms(part) for part in np.split(moves, ends, axis=-1))
        return np.asarray(np.where(open_by > rtol * size, np.inf, told))


def _norms(rows: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("...i,...i->...", rows, rows)))


def _nonzero(sizes: FloatArray) -> FloatArray:
    return np.where(sizes > 0.0, sizes, 1.0)
