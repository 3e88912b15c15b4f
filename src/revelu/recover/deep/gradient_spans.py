"""Gradients above a layer, and the spans of its rows that they lie in, by products alone.

Above a layer with rows W, seen through the local map M of those below it, a gradient is a
combination of the rows of ``W M`` of the neurons that are on.  Where fewer of them are on than M
has rank, a gradient lies in their span if the layer is right, and by no chance if it is not: such
a point is *informative*.  Nothing is asked of what stands above the layer.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from revelu.types import BoolArray, FloatArray, IntArray

RIDGE = 1e-13
"""Directions fainter than this share of all, squared, are none."""


@dataclass(frozen=True)
class Products:
    """Products of rows and gradients at points: all that projections need.

    Attributes
    ----------
    rows : ndarray, shape (n, k, k)
    cross : ndarray, shape (n, k, outputs)
    size : ndarray, shape (n,)
        Of the gradients, squared.
    ranks : ndarray, shape (n,)
        Of the local maps.
    """

    rows: FloatArray
    cross: FloatArray
    size: FloatArray
    ranks: IntArray

    @classmethod
    def of(cls, R: FloatArray, M: FloatArray, gradients: FloatArray) -> Self:
        """Multiply.

        Parameters
        ----------
        R : ndarray, shape (k, m)
            Rows in terms of what the layers below give.
        M : ndarray, shape (n, m, d)
            Local maps of those.
        gradients : ndarray, shape (n, outputs, d)
        """
        R = R @ M
        return cls(
            R @ np.swapaxes(R, 1, 2),
            R @ np.swapaxes(gradients, 1, 2),
            (gradients**2).sum(axis=(1, 2)),
            np.asarray(np.linalg.matrix_rank(M), dtype=np.intp),
        )

    def take(self, points: IntArray) -> Self:
        """Return those at some points."""
        return type(self)(*(a[points] for a in vars(self).values()))


def gram(rows: FloatArray, on: BoolArray, trace: FloatArray | None = None) -> FloatArray:
    """Products of the rows that are on, shape (n, k, k); unit rows stand for the others.

    Parameters
    ----------
    rows : ndarray, shape (n, k, k)
    on : ndarray of bool, shape (n, k)
    trace : ndarray, shape (n, 1), optional
        Of what a ridge, for rows that depend on each other, is a share; that of the rows on by
        default.
    """
    G = np.where(on[:, :, None] & on[:, None, :], rows, 0.0)
    trace = np.trace(G, axis1=1, axis2=2)[:, None] if trace is None else trace
    diagonal = np.arange(on.shape[1])
    G[:, diagonal, diagonal] += np.where(on & (trace > 0), RIDGE * trace, 1.0)
    return G
