"""The derivative of a network's answers, or of mixes of them, by all its weights: a linear map.

With ``h_0 = x`` and ``h_i = relu(W_i h_{i-1} + b_i)`` a change of the weights moves the sums
of layer ``i`` by ``dz_i = dW_i h_{i-1} + W_i dh_{i-1} + db_i``, where ``dh_i`` is ``dz_i`` on
the neurons that are on and 0 elsewhere.  Parameters are in the order of
:meth:`revelu.Network.to_vector`; the constant of a skip stays as it is, for it does what the
last bias does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.linalg.blas import dsyrk

from revelu.network.network import Network
from revelu.numerics.float64 import HALF_DIGITS
from revelu.numerics.gauss_newton import Coordinates
from revelu.numerics.interruption import check_cancelled
from revelu.numerics.whitening import NeuronWhitening, Whitening, inverse
from revelu.types import FloatArray, IntArray


class Layout:
    """Where the arrays of a network are in its row of parameters."""

    def __init__(self, network: Network) -> None:
        self.n_layers, self.has_skip = len(network.weights), network.skip is not None
        self.shapes = [a.shape for a in network.arrays]
        stops = np.cumsum([a.size for a in network.arrays]).tolist()
        self.places = [slice(*ends) for ends in zip([0, *stops], stops, strict=False)]


class ParameterArrays:
    """A row of parameters as the arrays of a network, in any precision.

    Parameters
    ----------
    vector : ndarray, shape (p,)
        Of which the arrays are views.
    """

    def __init__(self, layout: Layout, vector: FloatArray) -> None:
        self.layout, self.vector = layout, vector
        places = zip(layout.places, layout.shapes, strict=True)
        arrays = [vector[place].reshape(shape) for place, shape in places]
        n = layout.n_layers
        self.weights, self.biases = arrays[:n], arrays[n : 2 * n]
        self.skip = (arrays[-2], arrays[-1]) if layout.has_skip else None

    @classmethod
    def of(cls, network: Network) -> Self:
        """The arrays of a network."""
        return cls(Layout(network), network.to_vector())

    def activations(self, X: FloatArray) -> list[FloatArray]:
        """Return what each layer reads, shapes (n, d_i)."""
        hs = [X]
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hs.append(np.maximum(hs[-1] @ W.T + b, 0.0))
        return hs

    def __call__(self, X: FloatArray) -> FloatArray:
        """Evaluate, (n, d) -> (n, k)."""
        hs = self.activations(X)
        Y = hs[-1] @ self.weights[-1].T + self.biases[-1]
        if self.skip is not None:
            V, e = self.skip
            Y += hs[-2] @ V.T + e
        return np.asarray(Y)


class NetworkDerivative:
    """The derivative of a network's answers, each over its error.

    Parameters
    ----------
    at : ParameterArrays
        Of a network with a hidden layer, which may be of width 0.
    X : ndarray, shape (n, d)
    inverse_errors : ndarray, shape (k,) or (n, k)
    dtype : numpy dtype
        Of the products.

    Attributes
    ----------
    shape : (int, int)
        Answers, each output counted, and parameters.
    """

    def __init__(
        self,
        at: ParameterArrays,
        X: FloatArray,
        inverse_errors: FloatArray,
        dtype: type[np.floating] = np.float64,
    ) -> None:
        self.dtype = dtype
        self.X = X.astype(dtype, copy=False)
        self.inverse_errors = inverse_errors.astype(dtype, copy=False)
        self.at = ParameterArrays(at.layout, at.vector.astype(dtype, copy=False))
        self.hs = self.at.activations(self.X)
        self.on = [(h > 0.0).astype(dtype) for h in self.hs[1:]]
        self.dim_out = len(at.biases[-1])
        self.shape = (len(X) * self.dim_out, len(at.vector))

    def in_single(self, fewest: float = 1e8) -> "NetworkDerivative":
        """Return the same in single precision, which multiplies twice as fast.

        Parameters
        ----------
        fewest : float
            Multiplications a product from which on that is worth it; with fewer the
            derivative itself is returned.
        """
        work = len(self.X) * sum(W.size for W in self.at.weights[:-1])
        largest = float(np.finfo(np.float32).max) ** 0.5
        is_large = self.inverse_errors.max(initial=0.0) > largest
        if work <= fewest or is_large or self.dtype is np.float32:
            return self
        return NetworkDerivative(self.at, self.X, self.inverse_errors, np.float32)

    def along(self, change: FloatArray) -> FloatArray:
        """Return the change of the answers for one of the parameters, shape (n k,)."""
        step = ParameterArrays(self.at.layout, change.astype(self.dtype, copy=False))
        dh = before = None
        for i, (dW, db) in enumerate(zip(step.weights, step.biases, strict=True)):
            dz = self.hs[i] @ dW.T
            dz += db
            if dh is not None:
                dz += dh @ self.at.weights[i].T
            if i < len(self.on):
                dz *= self.on[i]
                before, dh = dh, dz
        if step.skip is not None and self.at.skip is not None:
            dz += self.hs[-2] @ step.skip[0].T
            if before is not None:
                dz += before @ self.at.skip[0].T
        return np.asarray(dz * self.inverse_errors, dtype=np.float64).ravel()

    def gradient(self, u: FloatArray) -> FloatArray:
        """Return the transpose of :meth:`along`, times ``u`` of shape (n k,)."""
        back = u.reshape(len(self.X), -1).astype(self.dtype, copy=False) * self.inverse_errors
        return self._pulled_back(back, self.at, self.hs)

    def by_inputs(self, mixes: FloatArray) -> FloatArray:
        """Return the derivative by the inputs of a mix of the answers at each, (n, k) -> (n, d)."""
        mixes = mixes * self.inverse_errors
        *_, slopes = self._slopes(mixes, self.at)
        found = slopes @ self.at.weights[0]
        if self.at.skip is not None and len(self.on) == 1:
            found += mixes @ self.at.skip[0]
        return np.asarray(found)

    def _slopes(self, back: FloatArray, at: ParameterArrays) -> Iterator[FloatArray]:
        """Yield derivatives of mixes of the answers by each layer's sums, from the last layer down.

        Of mixes ``back (..., n, k)`` they are ``(..., n, k_i)``.
        """
        skipped = None if at.skip is None else back @ at.skip[0]
        yield back
        for i in range(len(self.on), 0, -1):
            back = back @ at.weights[i]
            # A skip reads what the last hidden layer does.
            if i == len(self.on) - 1 and skipped is not None:
                back += skipped
            back *= self.on[i - 1]
            yield back

    def _squares_of_paths(self, errors: FloatArray) -> list[FloatArray]:
        """Squared derivatives of the answers by each layer's sums, outputs added, (n, k_i)."""
        back = (np.eye(self.dim_out) * np.sqrt(errors)[:, :, None]).swapaxes(0, 1)
        return [(slopes**2).sum(axis=0) for slopes in self._slopes(back, self.at)][::-1]

    def _pulled_back(
        self, back: FloatArray, at: ParameterArrays, hs: list[FloatArray]
    ) -> FloatArray:
        """The gradient of ``sum(back * answers)`` by the parameters."""
        skip = [] if at.skip is None else [back.T @ hs[-2], np.zeros(back.shape[1])]
        weights: list[FloatArray] = []
        biases: list[FloatArray] = []
        for slopes, h in zip(self._slopes(back, at), hs[::-1], strict=True):
            weights.insert(0, slopes.T @ h)
            biases.insert(0, slopes.sum(axis=0))
        parts = [p.ravel() for p in (*weights, *biases, *skip)]
        return np.concatenate(parts).astype(np.float64, copy=False)

    def matrix(self, mixes: FloatArray | None = None) -> FloatArray:
        """Write the map out, for small networks; shape ``self.shape``.

        Parameters
        ----------
        mixes : ndarray, shape (n, m, k), optional
            Of the answers at each input, of which the derivative is taken in place of theirs.
        """
        mixes = np.eye(self.dim_out)[None] if mixes is None else mixes
        # Of the mixes by the sums of one layer, shape (m, n, k_i).
        errors = np.broadcast_to(self.inverse_errors, (len(self.X), self.dim_out))
        back = (mixes * errors[:, None]).swapaxes(0, 1)
        J = np.zeros((len(self.X), len(back), self.shape[1]))
        # The columns of each array, the mixes first.
        columns = [J.transpose(1, 0, 2)[:, :, place] for place in self.at.layout.places]
        if self.at.skip is not None:
            columns[-2][:] = _products(back, self.hs[-2])
        layers = range(len(self.on), -1, -1)
        for i, slopes in zip(layers, self._slopes(back, self.at), strict=True):
            columns[i][:] = _products(slopes, self.hs[i])
            columns[len(self.hs) + i][:] = slopes
        return J.reshape(-1, self.shape[1])

    def normal(self, *, n_rows: int = 512) -> FloatArray:
        """Return the upper triangle of ``J'J``, from a block of answers at a time."""
        factors = self._factors() if len(self.on) == 1 else None
        if factors is not None:
            return self._normal_by_pairs(*factors)
        p = self.shape[1]
        normal = np.zeros((p, p), order="F")
        errors = np.broadcast_to(self.inverse_errors, (len(self.X), self.dim_out))
        n_inputs = max(1, n_rows // self.dim_out)
        for i in range(0, len(self.X), n_inputs):
            part = slice(i, i + n_inputs)
            check_cancelled()
            J = NetworkDerivative(self.at, self.X[part], errors[part]).matrix()
            normal = dsyrk(1.0, J.T, beta=1.0, c=normal, overwrite_c=True)
        return np.asarray(normal)

    def _factors(self) -> tuple[FloatArray, FloatArray] | None:
        """Inverse errors as a product of inputs' (n, 1) and outputs' (k,), where they are one."""
        errors = self.inverse_errors
        if errors.ndim == 1 or not len(errors):
            return np.ones((len(self.X), 1)), errors.reshape(-1, self.dim_out).mean(axis=0)
        of_inputs, of_outputs = errors[:, :1] / errors[0, 0], errors[0]
        is_product = np.allclose(errors, of_inputs * of_outputs, rtol=HALF_DIGITS, atol=0.0)
        return (of_inputs, of_outputs) if is_product else None

    def _normal_by_pairs(self, of_inputs: FloatArray, of_outputs: FloatArray) -> FloatArray:
        """The same for one hidden layer, neuron by neuron.

        With ``e_k`` the outputs' inverse errors, neurons ``i`` and ``j`` have
        ``sum_k (e_k A_ki)(e_k A_kj)`` times the Gram matrix of the inputs at which both are on,
        over their errors: all outputs at once.  Each output is linear in ``h``, the constant, and
        ``x`` where there is a skip, and has the Gram matrix of these.
        """
        p, A, squares = self.shape[1], self.at.weights[1], of_outputs**2
        m, d = len(self.at.biases[0]), self.X.shape[1]
        bias = self.at.layout.places[2]
        pairs, on = (A.T * squares) @ A, self.on[0] > 0.0
        inputs = of_inputs * np.column_stack([self.X, np.ones(len(self.X))])
        above = [self.hs[1], np.ones((len(self.X), 1)), self.X][: 2 if self.at.skip is None else 3]
        outputs = of_inputs * np.column_stack(above)
        columns = [self._columns_above(q) for q in range(self.dim_out)]
        normal = np.zeros((p, p), order="F")
        for i in range(m):
            check_cancelled()
            mine = inputs[on[:, i]]
            W = slice(i * d, (i + 1) * d)
            for j in range(i, m):
                both = inputs[on[:, i] & on[:, j]] if i != j else mine
                gram = pairs[i, j] * (both.T @ both)
                normal[W, j * d : (j + 1) * d] = gram[:d, :d]
                normal[W, bias.start + j] = gram[:d, d]
                normal[j * d : (j + 1) * d, bias.start + i] = gram[:d, d]
                normal[bias.start + i, bias.start + j] = gram[d, d]
            gram = mine.T @ outputs[on[:, i]]
            for weight, at in zip(A[:, i] * squares, columns, strict=True):
                normal[W, at] = weight * gram[:d]
                # Weights above come before biases, a skip after them.
                normal[bias.start + i, at] = normal[at, bias.start + i] = weight * gram[d]
        gram = outputs.T @ outputs
        for square, at in zip(squares, columns, strict=True):
            normal[np.ix_(at, at)] = square * gram
        return normal

    def _columns_above(self, output: int) -> IntArray:
        """Parameters that an output is linear in: weights above, constant, and skip."""
        m, d, places = len(self.at.biases[0]), self.X.shape[1], self.at.layout.places
        at = [places[1].start + output * m + np.arange(m), [places[3].start + output]]
        if self.at.skip is not None:
            at.append(places[4].start + output * d + np.arange(d))
        return np.concatenate(at).astype(np.intp)

    def coordinates(self, *, white: bool) -> Coordinates:
        """Return units of the parameters, or coordinates that undo neurons' correlations.

        Parameters
        ----------
        white : bool
            All neurons' of one hidden layer, each neuron's own in deeper networks.
        """
        errors = np.broadcast_to(self.inverse_errors, (len(self.X), self.dim_out)) ** 2
        if white and len(self.on) == 1:
            X, H = self.hs
            return Whitening(X, H, self.at.weights[1], np.sqrt(errors.mean(axis=0)))
        if white and self.at.skip is None:
            return NeuronWhitening(self.hs, self._squares_of_paths(errors))
        # Squares of the columns' norms; of lower layers, as if the paths through the layers
        # above were uncorrelated.
        squares = ParameterArrays(self.at.layout, self.at.vector**2)
        return ColumnScales(np.sqrt(self._pulled_back(errors, squares, [h**2 for h in self.hs])))


@dataclass(frozen=True, eq=False)
class MixedDerivative:
    """The derivative of mixes of a network's answers, others at each input."""

    at: ParameterArrays
    X: FloatArray
    """Shape (n, d)."""
    mixes: FloatArray
    """Shape (n, m, k)."""

    @cached_property
    def inner(self) -> NetworkDerivative:
        """Of the answers themselves."""
        return NetworkDerivative(self.at, self.X, np.ones(self.mixes.shape[2]))

    @property
    def shape(self) -> tuple[int, int]:
        """Mixes at all inputs, and parameters."""
        return self.mixes.shape[0] * self.mixes.shape[1], len(self.at.vector)

    def along(self, change: FloatArray) -> FloatArray:
        """Return ``J change``."""
        moved = self.inner.along(change).reshape(len(self.X), -1)
        return np.asarray(np.einsum("nij,nj->ni", self.mixes, moved).ravel())

    def gradient(self, u: FloatArray) -> FloatArray:
        """Return ``J' u``."""
        back = np.einsum("nij,ni->nj", self.mixes, u.reshape(len(self.X), -1))
        return self.inner.gradient(back.ravel())

    def matrix(self) -> FloatArray:
        """Return ``J`` written out."""
        return self.inner.matrix(self.mixes)

    def normal(self, *, n_rows: int = 512) -> FloatArray:
        """Return the upper triangle of ``J'J``, from a block of answers at a time."""
        # As many rows an input as there are answers have the same products.
        roots = np.asarray(np.linalg.qr(self.mixes, mode="r"))
        p, n_inputs = self.shape[1], max(1, n_rows // roots.shape[1])
        normal = np.zeros((p, p), order="F")
        for i in range(0, len(self.X), n_inputs):
            check_cancelled()
            part = slice(i, i + n_inputs)
            J = MixedDerivative(self.at, self.X[part], roots[part]).matrix()
            normal = dsyrk(1.0, J.T, beta=1.0, c=normal, overwrite_c=True)
        return np.asarray(normal)

    def coordinates(self, *, white: bool) -> Coordinates:
        """Return those of answers with the squares that they have in all mixes."""
        sizes = np.sqrt((self.mixes**2).sum(axis=1))
        return NetworkDerivative(self.at, self.X, sizes).coordinates(white=white)

    def in_single(self) -> "MixedDerivative":
        """Return it as it is."""
        return self


class ColumnScales:
    """Units of the parameters in which the columns of a derivative have norm 1.

    Parameters
    ----------
    sizes : ndarray, shape (p,)
        Norms of the columns; what has 0 stays where it is.
    """

    def __init__(self, sizes: FloatArray) -> None:
        self.units = inverse(sizes)

    def to_change(self, v: FloatArray) -> FloatArray:
        """Return the change of the parameters, of one in these units."""
        return np.asarray(v * self.units)

    def adjoint(self, g: FloatArray) -> FloatArray:
        """Return the gradient in these units."""
        return np.asarray(g * self.units)


def _products(back: FloatArray, h: FloatArray) -> FloatArray:
    """Derivatives by the weights of a layer that reads ``h``, shape (k, n, k_i d_i)."""
    return (back[..., None] * h[:, None, :]).reshape(*back.shape[:2], -1)
