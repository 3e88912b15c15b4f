"""Coordinates of a two-layer network in which its derivative is near an isometry.

    d f(x) = sum_j a_j 1[z_j > 0] (dw_j x + db_j) + dA relu(z) + dc + dV x

For inputs of independent entries, ``x`` and the activation pattern correlate along the
rows of ``W`` only, so that the Gram matrix of the first sum's columns is close to the
matrix ``(A^T A) * (S^T S)`` of the neurons, entry by entry, for every input alike; that
of ``dA`` and ``dc`` is one matrix of the activations for every output alike.  Their
Cholesky factors make what LSMR solves nearly as well conditioned as random equations.
"""

import numpy as np
import scipy.linalg

from revelu.types import FloatArray

# Neurons that answer alike make a Gram matrix singular; float32 products tell columns
# apart down to the root of this share only.
_RIDGE = 1e-6


class Whitening:
    """Maps white coordinates to changes of the parameters, and back by its adjoint.

    Parameters
    ----------
    A : ndarray, shape (k, m)
        Output weights, each row over the error of its answer.
    S : ndarray, shape (n, m)
        1 where a neuron is on.
    H : ndarray, shape (n, m)
        Activations.
    weight : ndarray, shape (k,)
        One over the error of each output's answers.
    inputs : ndarray, shape (d,)
        Root mean square of every input.
    has_skip : bool
        Whether there is an affine rest ``V``.
    """

    def __init__(
        self,
        A: FloatArray,
        S: FloatArray,
        H: FloatArray,
        weight: FloatArray,
        inputs: FloatArray,
        *,
        has_skip: bool,
    ) -> None:
        n, (k, m), d = len(S), A.shape, len(inputs)
        self.shape = (k, m, d)
        self.has_skip = has_skip
        ones = np.column_stack([H, np.ones(n, dtype=H.dtype)])
        self.first = _factor((A.T @ A) * (S.T @ S).astype(np.float64))
        self.second = _factor((ones.T @ ones).astype(np.float64))
        self.columns = np.append(_inverse(inputs), 1.0)
        self.rows = _inverse(weight)
        self.skip = np.outer(self.rows, self.columns[:-1]) / np.sqrt(n)

    def to_change(self, v: FloatArray) -> FloatArray:
        """Flat change of ``(W, b, A, c, V)`` for white coordinates."""
        inner, outer, skip = self._cut(v)
        inner = _solve(self.first, inner) * self.columns
        outer = _solve(self.second, outer.T).T * self.rows[:, None]
        return _join(inner, outer, skip * self.skip if self.has_skip else skip)

    def adjoint(self, g: FloatArray) -> FloatArray:
        """White coordinates of a flat gradient."""
        inner, outer, skip = self._split(g)
        inner = _solve(self.first, inner * self.columns, transposed=True)
        outer = _solve(self.second, (outer * self.rows[:, None]).T, transposed=True).T
        white = [inner.ravel(), outer.ravel()]
        return np.concatenate([*white, (skip * self.skip).ravel()] if self.has_skip else white)

    def _cut(self, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        k, m, d = self.shape
        first, second = m * (d + 1), m * (d + 1) + k * (m + 1)
        skip = v[second:].reshape(k, -1)
        return v[:first].reshape(m, d + 1), v[first:second].reshape(k, m + 1), skip

    def _split(self, g: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        k, m, d = self.shape
        W, b, A, c, V = np.split(g, np.cumsum([m * d, m, k * m, k]))
        inner = np.column_stack([W.reshape(m, d), b])
        return inner, np.column_stack([A.reshape(k, m), c]), V.reshape(k, -1)


def _join(inner: FloatArray, outer: FloatArray, skip: FloatArray) -> FloatArray:
    parts = (inner[:, :-1], inner[:, -1], outer[:, :-1], outer[:, -1], skip)
    return np.concatenate([p.ravel() for p in parts])


def _factor(gram: FloatArray) -> FloatArray:
    """Upper Cholesky factor; what no answer depends on gets a 1."""
    diagonal = np.diag(gram)
    floor = np.where(diagonal > 0, _RIDGE * diagonal, 1.0)
    return np.asarray(scipy.linalg.cholesky(gram + np.diag(floor), check_finite=False))


def _solve(factor: FloatArray, right: FloatArray, *, transposed: bool = False) -> FloatArray:
    return np.asarray(
        scipy.linalg.solve_triangular(factor, right, trans=int(transposed), check_finite=False)
    )


def _inverse(sizes: FloatArray) -> FloatArray:
    """One over each, and 0 for 0: it stays where it is."""
    return np.where(sizes > 0, 1.0 / np.where(sizes > 0, sizes, 1.0), 0.0)
