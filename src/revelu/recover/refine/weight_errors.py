"""Standard errors of all weights together, by the information of answers that were asked.

They are of the network whose hidden rows have Euclidean norm 1, their outgoing weights taking the
scale: a row moves across itself only, so that the scale, which no answer tells, is no unknown.
Across a row of norm 1 leads all but the first column of the reflection that takes the row to the
first axis (Householder).

An estimate that is no least-squares fit of all answers errs by more than their information says.
The fit is made, too, and tells by how much: an efficient estimate does not go with its distance
from another one (Hausman 1978), so that the variance of the latter is that of the fit and the
square of the distance.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from revelu.network import Network
from revelu.network.derivative import NetworkDerivative, ParameterArrays
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.information import Information
from revelu.numerics.interruption import check_cancelled, spend
from revelu.numerics.links import NONE, Link
from revelu.recover.method import Layer
from revelu.types import BoolArray, FloatArray

__all__ = ["Asked", "InputReading", "WeightErrors"]


@dataclass(frozen=True, eq=False)
class Asked:
    """Inputs, answers to them, and their standard errors."""

    X: FloatArray
    """Shape (n, d)."""
    Y: FloatArray
    """Shape (n, k)."""
    sigma: FloatArray
    """Shape (n, k)."""
    link: Link = NONE
    """What a network's outputs go through before they are compared."""
    common: float = 0.0
    """Share of an error that all answers may have in common: many do not make it smaller."""

    def residual(self, network: Network) -> FloatArray:
        """Return what a network leaves of the answers, over their errors, shape (n, k)."""
        return np.asarray((self.Y - self.link.head(network(self.X))) / self.sigma)

    def take(self, rows: slice | BoolArray) -> "Asked":
        """Some of them."""
        return replace(self, X=self.X[rows], Y=self.Y[rows], sigma=self.sigma[rows])

    def off(self, network: Network) -> FloatArray:
        """How far a row's answers are off at most, beside what half of all are off by, (n,).

        Not beside their errors alone, for the law of these may be off itself.
        """
        left = np.abs(self.residual(network))
        typical = np.maximum(np.median(left, axis=0) / ndtri(0.75), 1.0)
        return np.asarray((left / typical).max(axis=1, initial=0.0))

    def weighed(self, network: Network) -> "Asked":
        """The same, where answers that a network is far off count by less, as of Cauchy's errors.

        Few inputs show a neuron that is missing, most of them far out.
        """
        inflated = np.hypot(1.0, self.off(network) / SIGMAS)
        return replace(self, sigma=self.sigma * inflated[:, None])

    def explained(self, network: Network) -> "Asked":
        """Those that a network explains: what only others show, it does not know."""
        return self.take(self.off(network) <= SIGMAS)

    def weighs_as(self, other: "Asked", rtol: float = 0.2, few: float = 0.01) -> bool:
        """Whether all but a few answers have about the same errors."""
        apart = np.abs(self.sigma / other.sigma - 1.0).max(axis=1, initial=0.0) > rtol
        return bool(apart.mean() <= few)

    def derivative(self, at: ParameterArrays) -> FloatArray:
        """Of the answers over their errors, outputs counted, by all parameters, (n k, p)."""
        if self.link.name == "none" and not self.link.clips:
            return NetworkDerivative(at, self.X, 1.0 / self.sigma).matrix()
        head = self.link.derivative(at(self.X)) / self.sigma[:, :, None]
        J = NetworkDerivative(at, self.X, np.ones(len(at.biases[-1]))).matrix()
        return np.asarray((head @ J.reshape(len(self.X), -1, J.shape[1])).reshape(-1, J.shape[1]))


@dataclass(frozen=True)
class InputReading:
    """How coordinates, which a network reads, are made of inputs: ``M x + t``."""

    M: FloatArray
    """Shape (r, d)."""
    t: FloatArray
    """Shape (r,)."""
    is_held: BoolArray
    """Shape (d,).  Inputs that were held where the target was asked: nothing is known of their
    weights."""


@dataclass(frozen=True, eq=False)
class WeightErrors:
    """The fit of all weights to answers, and how it moves with what is not known."""

    network: Network
    """That explains the answers best, with unit rows."""
    unknowns: "Unknowns"
    """Told by the answers that it explains, and by those alone."""
    information: Information
    """Of its unknowns: each layer's weights, hidden rows across themselves, then the biases,
    then a skip's weights."""
    scale: float
    """What answers are off by, over what the law of their errors foretells."""

    @classmethod
    def of(
        cls, network: Network, asked: Asked, *, max_steps: int = 6, small: float = 0.1
    ) -> "WeightErrors":
        """Fit a network that explains answers but for small errors.

        Parameters
        ----------
        max_steps : int
            Of Gauss and Newton.
        small : float
            Standard errors that what is left may move a weight by, in the root mean square.
        """
        network = network.with_unit_rows()
        # Before the first step the network's own errors make answers stand out.
        weighed, across = asked, Unknowns(network)
        information = across.information(weighed)
        for _ in range(max_steps):
            moved = network.like(network.to_vector() + across.change(information))
            if not _cost(moved, weighed) < _cost(network, weighed):
                break
            network = moved
            if not weighed.weighs_as(again := asked.weighed(network)):
                weighed, across = again, Unknowns(network)
                information = across.information(weighed)
                continue
            # The derivative is as good as it was: its decomposition goes on (a chord).
            across = across.at_network(network)
            information = information.solved(across.gradient(weighed))
            if information.size <= small:
                break
        explained = asked.explained(network)
        if len(explained.X) < len(asked.X):
            across = Unknowns(network)
            information = across.information(explained)
        return cls(network, across, information, _scale(network, explained, information))

    def layers(self, network: Network, reading: InputReading | None = None) -> list[Layer]:
        """Return the standard errors of a network, shaped as its layers; a skip's come last.

        Infinite where no answer tells a weight; those of a skip's constant are 0, for the last
        bias does what it does.

        Parameters
        ----------
        network : Network
            That was fitted.
        reading : InputReading, optional
            What it reads; its rows then have norm 1 in inputs.
        """
        information = self.information
        moves = np.column_stack([information.moves, information.solution])
        weights, biases = self.unknowns.moves(moves)
        fitted, network = self.network, network.with_unit_rows()
        if reading is not None:
            fitted, weights, biases = _in_inputs(fitted, weights, biases, reading)
            network = network.after(reading.M, reading.t).with_unit_rows()
        mine, others = _by_layer(network), _by_layer(fitted)
        found = []
        for (W, b), (V, c), dW, db in zip(mine, others, weights, biases, strict=True):
            found.append((self._errors(W, V, dW), self._errors(b, c, db)))
        if reading is not None:
            reads = [0, -1] if network.skip is not None and network.n_hidden == 1 else [0]
            for i in reads:
                found[i][0][:, reading.is_held] = np.inf
        return found

    def _errors(self, values: FloatArray, fitted: FloatArray, moves: FloatArray) -> FloatArray:
        """Standard errors of the fit, its last step, the distance from it, and of rounding.

        A number is rounded with others that are as large as a typical one: by one unit each way.
        """
        errors = self.scale * self.information.errors(moves[..., :-1])
        errors = np.hypot(errors, np.hypot(moves[..., -1], values - fitted))
        typical = float(np.sqrt(np.mean(values**2))) if values.size else 0.0
        rounding = np.finfo(np.float64).eps * np.hypot(values, typical) / np.sqrt(3.0)
        return np.asarray(np.hypot(errors, rounding))


def _by_layer(network: Network) -> list[Layer]:
    """Weights and biases of each layer, and of a skip."""
    skip = [] if network.skip is None else [network.skip]
    return [*zip(network.weights, network.biases, strict=True), *skip]


def _cost(network: Network, asked: Asked) -> float:
    return float((asked.residual(network) ** 2).sum())


def _scale(
    network: Network, explained: Asked, information: Information, n_prior: float = 10.0
) -> float:
    """What answers are off by over what their law foretells, and what they have in common.

    1 where the law is right and nothing is in common: an error that is the same in n answers is not
    divided by the root of n.

    Parameters
    ----------
    n_prior : float
        Answers that the law is worth, where few are left over.
    """
    n = max(explained.Y.size - information.rank, 0)
    left = _cost(network, explained) if n else 0.0
    off = np.sqrt((left + n_prior) / (n + n_prior))
    return float(off * np.hypot(1.0, explained.common * np.sqrt(explained.Y.size)))


class Unknowns:
    """Unknowns of a network with unit rows, and the derivative of its answers by them.

    Parameters
    ----------
    network : Network
    mirrors : list of ndarray, shape (k, d), optional
        Of rows that are nearly its own, hidden layer by hidden layer.
    """

    def __init__(self, network: Network, mirrors: list[FloatArray] | None = None) -> None:
        self.network = network
        self.at = ParameterArrays.of(network)
        self.mirrors = mirrors or [_mirrors(W) for W in network.weights[:-1]]
        hidden = [np.ones(W.shape, dtype=bool) for W in network.weights[:-1]]
        for is_free in hidden:
            is_free[:, :1] = False
        rest = [np.ones(network.weights[-1].shape, dtype=bool)]
        rest += [np.ones(b.shape, dtype=bool) for b in network.biases]
        if network.skip is not None:
            V, c = network.skip
            rest += [np.ones(V.shape, dtype=bool), np.zeros(c.shape, dtype=bool)]
        self.is_free = np.concatenate([part.ravel() for part in (*hidden, *rest)])
        self.n_unknowns = int(self.is_free.sum())

    def at_network(self, network: Network) -> "Unknowns":
        """The same unknowns of a network nearby."""
        return Unknowns(network, self.mirrors)

    def gradient(self, asked: Asked) -> FloatArray:
        """The derivative of the answers, transposed, times what the network leaves of them."""
        g = np.zeros(self.n_unknowns)
        for block in self.blocks(asked):
            g += block[:, :-1].T @ block[:, -1]
        return g

    def blocks(self, asked: Asked, most_numbers: int = 2**22) -> Iterator[FloatArray]:
        """Derivatives of the answers over their errors, shape (n, p), some at a time."""
        n_rows = max(1, most_numbers // (self.at.vector.size * self.network.dim_out))
        n_rows = max(n_rows, self.n_unknowns // self.network.dim_out)
        for i in range(0, len(asked.X), n_rows):
            check_cancelled()
            part = asked.take(slice(i, i + n_rows))
            J = part.derivative(self.at)
            spend(2.0 * len(J) * self.n_unknowns**2)
            for mirrors, place in zip(self.mirrors, self.at.layout.places, strict=False):
                rows = J[:, place].reshape(len(J), *mirrors.shape)
                along = np.einsum("njd,jd->nj", rows, mirrors)
                J[:, place] = (rows - 2.0 * along[:, :, None] * mirrors).reshape(
                    len(J), mirrors.size
                )
            yield np.column_stack([J[:, self.is_free], part.residual(self.network).ravel()])

    def information(self, asked: Asked, most_precise: int = 200) -> Information:
        """What answers tell.

        Parameters
        ----------
        most_precise : int
            Unknowns of which a decomposition that squares nothing is quick.
        """
        p = self.n_unknowns
        quick = Information.of_products(self.blocks(asked), p) if p > most_precise else None
        return quick or Information.of(self.blocks(asked), p)

    def change(self, information: Information) -> FloatArray:
        """Of all parameters, by the solution."""
        weights, biases = self.moves(information.solution[:, None])
        n = self.at.layout.n_layers
        constant = [] if self.network.skip is None else [np.zeros(self.network.dim_out)]
        parts = [*weights[:n], *biases[:n], *weights[n:], *constant]
        return np.concatenate([part.ravel() for part in parts])

    def moves(self, unknowns: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """How weights (k, d, m) and biases (k, m) move with the unknowns (p, m).

        Those of a skip come last, where there is one.
        """
        whole = np.zeros((len(self.is_free), unknowns.shape[1]))
        whole[self.is_free] = unknowns
        layout = self.at.layout
        parts = [
            whole[place].reshape(*shape, unknowns.shape[1])
            for place, shape in zip(layout.places, layout.shapes, strict=True)
        ]
        for rows, mirrors in zip(parts, self.mirrors, strict=False):
            along = np.einsum("jd,jdm->jm", mirrors, rows)
            rows[:] -= 2.0 * mirrors[:, :, None] * along[:, None, :]
        n = layout.n_layers
        skip = parts[2 * n :]
        return [*parts[:n], *skip[:1]], [*parts[n : 2 * n], *skip[1:]]


def _mirrors(W: FloatArray) -> FloatArray:
    """Unit vectors whose reflections take each row to the first axis, (k, d)."""
    if not W.size:
        return W
    axes = np.zeros_like(W)
    # To the end of the axis that is farther away: nothing cancels.
    axes[:, 0] = np.where(W[:, 0] > 0.0, -1.0, 1.0) * np.linalg.norm(W, axis=1)
    apart = W - axes
    sizes = np.linalg.norm(apart, axis=1, keepdims=True)
    return np.asarray(apart / np.where(sizes > 0.0, sizes, 1.0))


def _in_inputs(
    network: Network,
    weights: list[FloatArray],
    biases: list[FloatArray],
    reading: InputReading,
) -> tuple[Network, list[FloatArray], list[FloatArray]]:
    """The network that reads inputs, with unit rows, and how its weights and biases move.

    A row ``w`` of norm n becomes ``u = w / n`` and moves by what ``w`` moves by across itself, over
    n; its bias by what it moves by less ``b`` times the move along ``u``, over n; what reads it is
    multiplied by n, which moves by the move along ``u``.
    """
    M, t = reading.M, reading.t
    weights, biases = [*weights], [*biases]
    at_first = [0, -1] if network.skip is not None and network.n_hidden == 1 else [0]
    for i in at_first:
        j = 1 if i else 0  # a skip's constant is the last bias
        biases[j] = biases[j] + np.einsum("jrm,r->jm", weights[i], t)
        weights[i] = np.einsum("jrm,rd->jdm", weights[i], M)
    at = network.after(M, t).folded()
    for i in range(at.n_hidden):
        W, b = at.weights[i], at.biases[i]
        n = np.linalg.norm(W, axis=1)
        n = np.where(n > 0.0, n, 1.0)
        u, offset = W / n[:, None], b / n
        along = np.einsum("jd,jdm->jm", u, weights[i])
        weights[i] = (weights[i] - u[:, :, None] * along[:, None, :]) / n[:, None, None]
        biases[i] = (biases[i] - offset[:, None] * along) / n[:, None]
        reads_too = [len(weights) - 1] if at.skip is not None and i == at.n_hidden - 2 else []
        for above in [i + 1, *reads_too]:
            values = at.weights[above] if above == i + 1 else at.affine[0]
            weights[above] = weights[above] * n[:, None] + values[:, :, None] * along
        at = at.with_layer(i, u, offset, np.diag(n))
    return at, weights, biases
