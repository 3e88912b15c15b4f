"""Coordinates of a network in which its derivative is nearer an isometry.

Of a two-layer network:

    d f(x) = sum_j a_j 1[z_j > 0] (dw_j x + db_j) + dA relu(z) + dc + dV x

``x`` and the activation pattern ``s(x)`` correlate along the rows of ``W`` only, so that the Gram
matrix of the first sum's columns is close to a Kronecker product: of the inputs' second moments
``C = mean of (x, 1) (x, 1)^T``, and of the neurons' ``(A^T A) * (S^T D S)``, entry by entry.  The
average over the directions of ``C``-white inputs weighs an input by its leverage
``D = (x, 1) C^-1 (x, 1)^T / (d + 1)``: many inputs of a few patterns, as slopes are taken at, say
much of the few directions that they lie in, and next to nothing of the others.  The Gram matrix of
``dA`` and ``dc`` is one matrix of the activations for every output alike.  Their Cholesky factors
make what LSMR solves nearly as well conditioned as random equations.

Of a deeper one the columns of each neuron's own weights are made orthonormal, which undoes what
inputs on one side of a hyperplane have in common.
"""

import numpy as np
import scipy.linalg

from revelu.types import FloatArray


class Whitening:
    """Maps white coordinates to changes of the parameters, and back by its adjoint.

    Both are in the order of :meth:`revelu.Network.to_vector`.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Inputs.
    H : ndarray, shape (n, m)
        Activations.
    A : ndarray, shape (k, m)
        Output weights.
    inverse_errors : ndarray, shape (k,)
        One over the error of each output's answers.
    n_each : int
        Inputs an entry, as many as the moments are taken of.
    """

    def __init__(
        self,
        X: FloatArray,
        H: FloatArray,
        A: FloatArray,
        inverse_errors: FloatArray,
        *,
        n_each: int = 8,
    ) -> None:
        (n, d), (k, m) = X.shape, A.shape
        self.ends = np.cumsum([m * d, k * m, m, k, k * d])
        A, ones = A * inverse_errors[:, None], np.column_stack([H, np.ones(n)])
        some = np.unique(np.linspace(0, n - 1, min(n, n_each * (d + 1))).astype(int))
        self.columns = np.append(inverse(np.sqrt(np.mean(X**2, axis=0))), 1.0)
        self.white, leverage = _whitened(
            np.column_stack([X[some], np.ones(len(some))]) * self.columns
        )
        S = (H[some] > 0.0) * np.sqrt(n / len(some) * leverage)[:, None]
        self.first, self.second = _factor((A.T @ A) * (S.T @ S)), _factor(ones.T @ ones)
        self.rows = inverse(inverse_errors)[:, None]
        self.skip = self.rows * self.columns[:-1] / np.sqrt(n)

    def to_change(self, v: FloatArray) -> FloatArray:
        """Flat change of the parameters for white coordinates."""
        inner, outer, V, e = self._split(v)
        inner = _solve(self.first, inner) @ self.white * self.columns
        return _join(
            inner, _solve(self.second, outer.T).T * self.rows, V * self.skip[: len(V)], 0.0 * e
        )

    def adjoint(self, g: FloatArray) -> FloatArray:
        """White coordinates of a flat gradient."""
        inner, outer, V, e = self._split(g)
        inner = _solve(self.first, inner * self.columns @ self.white.T, transposed=True)
        outer = _solve(self.second, (outer * self.rows).T, transposed=True).T
        return _join(inner, outer, V * self.skip[: len(V)], 0.0 * e)

    def _split(self, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """``(W, b)``, ``(A, c)``, and ``V`` and its constant, of no rows without a skip."""
        W, A, b, c, V, e = np.split(v, self.ends)
        inner = np.column_stack([W.reshape(len(b), len(self.columns) - 1), b])
        outer = np.column_stack([A.reshape(len(c), len(b)), c])
        return inner, outer, V.reshape(-1, len(self.columns) - 1), e


def _whitened(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows ``R`` of the inverse of a root of the second moments ``C = (R^T R)^-1``, and leverages.

    Fewer inputs than twice the entries show no moments but the entries' own.
    """
    n, e = X.shape
    if n < 2 * e:
        return np.eye(e), (X**2).mean(axis=1)
    root = np.linalg.cholesky(X.T @ X / n + _ridge() * np.eye(e))
    R = scipy.linalg.solve_triangular(root, np.eye(e), lower=True)
    return R, ((X @ R.T) ** 2).mean(axis=1)


class NeuronWhitening:
    """Maps coordinates to changes of the parameters, in which each neuron's columns are white.

    Half of the digits of the largest are added to the squares of their singular values.

    Both are in the order of :meth:`revelu.Network.to_vector`.

    Parameters
    ----------
    hs : list of ndarray, shape (n, d_i)
        What each layer reads.
    squares : list of ndarray, shape (n, k_i)
        Squared derivatives of the answers by its sums.
    widest : int
        Neurons that read more get units: the inputs of a first layer are about white.
    """

    def __init__(
        self,
        hs: list[FloatArray],
        squares: list[FloatArray],
        *,
        widest: int = 300,
    ) -> None:
        self.factors = [
            self._factors(np.column_stack([h, np.ones(len(h))]), s, widest)
            for h, s in zip(hs, squares, strict=True)
        ]
        sizes = [(len(R), R.shape[-1]) for R in self.factors]
        n_weights = [k * (d - 1) for k, d in sizes]
        self.ends = np.cumsum([*n_weights, *(k for k, _ in sizes)])[:-1]

    @staticmethod
    def _factors(h: FloatArray, squares: FloatArray, widest: int) -> FloatArray:
        """Inverse roots of the neurons' Gram matrices, (k, d, d); or of their diagonals, (k, d)."""
        if h.shape[1] > widest:
            return inverse(np.sqrt(squares.T @ h**2))
        found = np.zeros((squares.shape[1], h.shape[1], h.shape[1]))
        for R, s in zip(found, squares.T, strict=True):
            rows = s > 0
            A = h[rows] * np.sqrt(s[rows])[:, None]
            units = inverse(np.linalg.norm(A, axis=0))
            A *= units
            values, V = np.linalg.eigh(A.T @ A)
            most = values[-1] if len(A) else 0.0
            if most > 0:
                R[:] = units[:, None] * V / np.sqrt(np.maximum(values, 0.0) + _ridge(most))
        return found

    def to_change(self, v: FloatArray) -> FloatArray:
        """Flat change of the parameters for white coordinates."""
        return self._mapped(v, "jab,jb->ja")

    def adjoint(self, g: FloatArray) -> FloatArray:
        """White coordinates of a flat gradient."""
        return self._mapped(g, "jba,jb->ja")

    def _mapped(self, v: FloatArray, product: str) -> FloatArray:
        n, weights, biases = len(self.factors), [], []
        parts = np.split(v, self.ends)
        for R, w, b in zip(self.factors, parts[:n], parts[n:], strict=True):
            rows = np.column_stack([w.reshape(len(b), -1), b])
            rows = rows * R if R.ndim == 2 else np.einsum(product, R, rows, optimize=True)
            weights.append(rows[:, :-1].ravel())
            biases.append(rows[:, -1])
        return np.concatenate([*weights, *biases])


def inverse(sizes: FloatArray) -> FloatArray:
    """One over each, and 0 for 0: what nothing depends on stays where it is."""
    return np.where(sizes > 0, 1.0 / np.where(sizes > 0, sizes, 1.0), 0.0)


def _join(inner: FloatArray, outer: FloatArray, V: FloatArray, e: FloatArray) -> FloatArray:
    parts = (inner[:, :-1], outer[:, :-1], inner[:, -1], outer[:, -1], V, e)
    return np.concatenate([p.ravel() for p in parts])


def _factor(gram: FloatArray, ridge: float = 1e-6) -> FloatArray:
    """Upper Cholesky factor; what no answer depends on gets a 1.

    Neurons that answer alike make a Gram matrix singular, and products in single precision
    tell columns apart down to the root of the ridge only.
    """
    diagonal = np.diag(gram)
    floor = np.where(diagonal > 0, ridge * diagonal, 1.0)
    return np.asarray(scipy.linalg.cholesky(gram + np.diag(floor), check_finite=False))


def _solve(factor: FloatArray, right: FloatArray, *, transposed: bool = False) -> FloatArray:
    return np.asarray(
        scipy.linalg.solve_triangular(factor, right, trans=int(transposed), check_finite=False)
    )


def _ridge(most: float = 1.0, *, share: float = 1e-8) -> float:
    """What is added to a Gram matrix of size ``most``: columns are told apart to the root of it."""
    return share * most
