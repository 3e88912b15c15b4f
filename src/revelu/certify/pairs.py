"""Two networks of one depth, neuron beside neuron, as one network and its small difference."""

from dataclasses import dataclass, field

import numpy as np

from revelu.errors import InputError
from revelu.network import Network
from revelu.numerics.balls import UNIT, Ball
from revelu.numerics.matching import match_rows
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class PairedLayer:
    """A layer of both networks, in the first one's order and the first one's scale.

    With ``a`` what the first network passes on and ``a + q`` what the second does, the sums are
    ``z = W a + b`` and ``z + e``, ``e = V q + D a + d``.  ``W`` and ``b`` are the first network's,
    to the bit; what was rescaled or subtracted is a ball.

    Attributes
    ----------
    W, b : ndarray
        Of the first network.
    V, D, d : Ball
        ``V`` is the second's weights, ``D = V - W`` and ``d`` the difference of the biases.
    """

    W: FloatArray
    b: FloatArray
    V: Ball
    D: Ball
    d: Ball


@dataclass(frozen=True)
class Pair:
    """Two networks whose hidden neurons stand side by side.

    Attributes
    ----------
    layers : tuple of PairedLayer
        The output layer last; its ``z`` is the first network's output and ``e`` what the second
        differs by.
    skip : PairedLayer or None
        What the outputs read of the last hidden layer's input.
    n_matched : int
        Neurons that have a partner; others have one without weights.
    """

    layers: tuple[PairedLayer, ...]
    skip: PairedLayer | None
    n_matched: int

    @classmethod
    def of(cls, first: Network, second: Network) -> "Pair":
        """Match the neurons of two networks, layer by layer.

        Raises
        ------
        InputError
            If inputs, outputs or depth differ.
        """
        first, second = first.to_dense(), second.to_dense()
        if (first.dim_in, first.dim_out, first.n_hidden) != (
            second.dim_in,
            second.dim_out,
            second.n_hidden,
        ):
            raise InputError(
                f"{first.architecture} and {second.architecture} have no bound: inputs, outputs "
                "and the number of hidden layers must be the same"
            )
        return _Matching(first, second).pair()

    def contrasted(self) -> "Pair":
        """Return the pair of the first outputs less the last one, without rounding a weight."""

        def less_last(layer: PairedLayer) -> PairedLayer:
            V, D, d = (_less_last(ball) for ball in (layer.V, layer.D, layer.d))
            return PairedLayer(layer.W[:-1] - layer.W[-1:], layer.b[:-1] - layer.b[-1:], V, D, d)

        skip = None if self.skip is None else less_last(self.skip)
        return Pair((*self.layers[:-1], less_last(self.layers[-1])), skip, self.n_matched)

    def difference(self, X: FloatArray) -> FloatArray:
        """Return how much more the second network answers than the first, shape (n, outputs).

        To the digits of the difference: two answers that are nearly equal are not subtracted.
        """
        return self.with_gradients(X)[0]

    def with_gradients(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the difference and its derivative, shapes (n, outputs) and (n, outputs, d)."""
        a, q = X, np.zeros_like(X)
        slopes: tuple[FloatArray, FloatArray] | None = None  # the inputs' own: 1, and 0
        below = a, q, slopes
        for layer in self.layers[:-1]:
            below = a, q, slopes
            z, e = _sums(layer, a, q)
            Jz, Je = _slopes(layer, slopes)
            on, other = z > 0.0, z + e > 0.0
            a, q = np.where(on, z, 0.0), _moved(z, e, on, other)
            Ja = Jz * on[:, :, None]
            Jq = np.where((on & other)[:, :, None], Je, (Jz + Je) * other[:, :, None] - Ja)
            slopes = Ja, Jq
        e, J = _sums(self.layers[-1], a, q)[1], _slopes(self.layers[-1], slopes)[1]
        if self.skip is not None:
            a, q, slopes = below
            e, J = e + _sums(self.skip, a, q)[1], J + _slopes(self.skip, slopes)[1]
        return e, np.broadcast_to(J, (*e.shape, X.shape[1]))


def _less_last(ball: Ball) -> Ball:
    n = len(ball.mid) - 1
    return ball.take(np.arange(n)) - ball.take(np.full(n, n))


def _sums(layer: PairedLayer, a: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    z = a @ layer.W.T + layer.b
    return z, q @ layer.V.mid.T + a @ layer.D.mid.T + layer.d.mid


def _slopes(
    layer: PairedLayer, below: tuple[FloatArray, FloatArray] | None
) -> tuple[FloatArray, FloatArray]:
    """Derivatives of ``z`` and ``e`` in the inputs, those of what the layer reads being known."""
    if below is None:
        return layer.W, layer.D.mid
    Ja, Jq = below
    return layer.W @ Ja, layer.V.mid @ Jq + layer.D.mid @ Ja


def _moved(z: FloatArray, e: FloatArray, on: BoolArray, other: BoolArray) -> FloatArray:
    """``relu(z + e) - relu(z)``, exactly ``e`` where both are on."""
    turned = np.where(other, z + e, -np.where(on, z, 0.0))
    return np.where(on & other, e, np.where(on | other, turned, 0.0))


@dataclass
class _Matching:
    """Layers of both networks as they are matched, from below."""

    first: Network
    second: Network
    n_matched: int = field(default=0, init=False)

    def pair(self) -> Pair:
        first, second = self.first, self.second
        layers: list[PairedLayer] = []
        own = other = np.arange(first.dim_in)
        scale = np.ones(first.dim_in)
        below, signs = (own, other, scale), np.ones(first.dim_in)
        for i in range(first.n_hidden):
            below = own, other, scale
            W, b = _columns(first.weights[i], own), first.biases[i]
            V, h = _columns(second.weights[i], other), second.biases[i]
            is_last = i == first.n_hidden - 1
            own, other, scale, signs = self._match(
                np.column_stack([W, b]), np.column_stack([V / scale, h]), up_to_sign=is_last
            )
            turned = signs[:, None] * _rows(V, other)
            offset = signs[:, None] * _rows(h[:, None], other)
            layers.append(
                _paired(
                    _rows(W, own),
                    _rows(b, own),
                    _rescaled(turned, scale, below[2]),
                    _rescaled(offset, scale, np.ones(1)),
                )
            )
        one = np.ones(first.dim_out)
        A = _columns(first.weights[-1], own)
        B = _rescaled(_columns(second.weights[-1], other), one, scale)
        (E, c), (F, e) = first.affine, second.affine
        G = _rescaled(_columns(F, below[1]), one, below[2])
        constant = Ball.exactly(second.biases[-1][:, None])
        back = np.flatnonzero(signs < 0.0) if layers else np.empty(0, dtype=np.intp)
        if len(back):
            # A neuron and its opposite differ by their sum: relu(z) = relu(-z) + z.
            weights = Ball(-B.mid[:, back], B.rad[:, back])
            top = layers[-1]
            offsets = Ball.exactly(top.b[back][:, None]) + top.d.take(back).column()
            G, constant = G + weights @ top.V.take(back), constant + weights @ offsets
        last = _paired(A, first.biases[-1], B, constant)
        if first.skip is None and second.skip is None and not len(back):
            return Pair((*layers, last), None, self.n_matched)
        skip = _paired(_columns(E, below[0]), c, G, Ball.exactly(e[:, None]))
        return Pair((*layers, last), skip, self.n_matched)

    def _match(
        self, rows: FloatArray, others: FloatArray, *, up_to_sign: bool
    ) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Pair rows with others by their hyperplanes, those without a partner with none.

        Returns
        -------
        own, other : ndarray of int
            -1 for a neuron that is not there.
        scale, signs : ndarray
            What multiplies the other's row, and its sign before that.
        """
        sizes, other_sizes = np.linalg.norm(rows, axis=1), np.linalg.norm(others, axis=1)
        found, turned = match_rows(_unit(others), _unit(rows), up_to_sign=up_to_sign)
        left = np.setdiff1d(np.arange(len(others)), found)
        own = np.concatenate([np.arange(len(rows)), np.full(len(left), -1)]).astype(np.intp)
        other = np.concatenate([found, left]).astype(np.intp)
        scale, signs = np.ones(len(own)), np.concatenate([turned, np.ones(len(left))])
        pairs = np.flatnonzero(found >= 0)
        self.n_matched += len(pairs)
        pairs = pairs[(sizes[pairs] > 0.0) & (other_sizes[found[pairs]] > 0.0)]
        scale[pairs] = sizes[pairs] / other_sizes[found[pairs]]
        return own, other, scale, signs


def _unit(rows: FloatArray) -> FloatArray:
    sizes = np.linalg.norm(rows, axis=1)
    return np.asarray(rows / np.where(sizes > 0.0, sizes, 1.0)[:, None])


def _columns(W: FloatArray, neurons: IntArray) -> FloatArray:
    """Columns in another order, zeros for those of no neuron."""
    return np.where(neurons >= 0, W[:, neurons], 0.0) if W.shape[1] else np.zeros((len(W), 0))


def _rows(W: FloatArray, neurons: IntArray) -> FloatArray:
    """Rows in another order, zeros for those of no neuron."""
    keep = (neurons >= 0).reshape(-1, *[1] * (W.ndim - 1))
    return np.where(keep, W[neurons], 0.0) if len(W) else np.zeros((len(neurons), *W.shape[1:]))


def _rescaled(W: FloatArray, own: FloatArray, below: FloatArray) -> Ball:
    """Rows times the factors of their neurons, columns over those of what they read.

    Exactly ``own_i W_ij / below_j`` lies in the ball: the quotient errs by a unit in itself, and
    so does the product.
    """
    ratio = own[:, None] / below
    is_exact = (own[:, None] == below) | (below == 1.0)
    factor = Ball(ratio, np.where(is_exact, 0.0, 2.0 * UNIT * np.abs(ratio)))
    return Ball.exactly(W) * factor


def _paired(W: FloatArray, b: FloatArray, V: Ball, h: Ball) -> PairedLayer:
    """A layer of the first network, and the second's rows, whose biases are a column."""
    return PairedLayer(W, b, V, V - Ball.exactly(W), h.row() - Ball.exactly(b))
