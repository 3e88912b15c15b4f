"""The outputs above the last hidden layer, where it is the last: robust regression.

Above the last hidden layer ``f = A relu(z) + c`` with ``z = W h + b``, and whatever its signs,
``f = A' |z| + B h + c'``: linear in what is known.  Most points fit to rounding if no more than a
few rare neurons are missing, and few do if there is another layer.
"""

from dataclasses import dataclass

import numpy as np
import scipy.optimize
import scipy.sparse

from revelu.network import Network
from revelu.numerics.float64 import HALF_DIGITS
from revelu.numerics.least_deviations import least_deviations
from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask
from revelu.recover.deep.frame import KnownLayers
from revelu.recover.deep.open_weights import OpenWeights
from revelu.recover.deep.stack import Stack
from revelu.recover.signs import resolve_signs
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class OutputFit:
    """The regression for the outputs, at inputs that tell all unknowns apart.

    Where a neuron is in its rarer state at no point asked, its |z| is an affine map, and nothing
    tells it from the skip; nor does anything tell the skip's part in an input of the layer that is
    off at all of them.
    """

    ratio: int = 3
    spare: int = 40
    """Equations a unknown, and beyond all."""
    fits: float = 0.6
    """The share of points that must fit."""
    n_inputs: int = 10_000
    """Inputs, not asked, among which those are chosen at which a neuron is in its rarer state."""
    spreads: tuple[float, ...] = (1.0, 2.0)
    """Their standard deviations."""
    bound: float = np.inf
    """The largest coordinate of an input that may be asked."""
    rare: float = 0.1
    """A state is looked for that a smaller share of them shows."""
    n_rare: int = 8
    """Inputs for each such state."""
    known: float = 0.02
    """Of an input with undetermined weights answers tell if it is on at this share of the
    points."""
    near: float = 1e-5
    """A point fits if it is off by no more than this share of the largest answer: what errors of
    the rows leave."""
    skip: float = 1e-4
    """A skip smaller than this share of what the neurons do is none."""
    hint: float = HALF_DIGITS
    """What gradients say weighs so little beside answers."""
    faint: float = 1e-11
    """Columns fainter than this share of the strongest are left out."""

    def find(
        self,
        ask: Ask,
        noise: NoiseFloor,
        frame: KnownLayers,
        open_weights: OpenWeights,
        columns: FloatArray | None,
        rng: np.random.Generator,
    ) -> Network | None:
        """Take a layer for the last hidden one, and solve for the outputs.

        Parameters
        ----------
        frame : KnownLayers
            Of known signs, and on top of it the layer's rows, of either sign.
        open_weights : OpenWeights
            What is not known of those.
        columns : ndarray, shape (m, k), optional
            What gradients say of the outputs' weights, but for their sign: they decide where
            answers do not.

        Returns
        -------
        Network or None
            The whole network; None where most points do not fit.
        """
        stack, W, b = frame.stack, frame.W, frame.b
        (m, k), is_known = W.shape, np.asarray(~open_weights.weights(len(b)).any(axis=0))
        n = self.ratio * (m + k + 1) + self.spare
        plain = rng.standard_normal((n, stack.dim_in))
        X = np.vstack([plain, self._rarer_states(stack, W, b, is_known, rng)])
        X = np.clip(X, -self.bound, self.bound)
        Y, h = ask(X), stack.outputs(X)
        # Points at which an undetermined weight counts are wrong: no skip is to stand for it.
        told = h.any(axis=0) & (is_known | ((h[:n] > 0).mean(axis=0) >= self.known))
        alive = np.asarray(np.isfinite(Y).all(axis=1))  # a target may be saturated
        alive &= ~h[:, ~told].any(axis=1)
        X, Y, h, n = X[alive], Y[alive], h[alive], int(alive[:n].sum())
        if n < m + k + 1:
            return None
        F = np.column_stack([np.abs(h @ W.T + b), h, np.ones(len(X))])
        live = np.linalg.norm(F, axis=0) > 0
        sizes = np.where(live, np.sqrt((F**2).mean(axis=0)), 1.0)
        mixed = Y @ (rng.standard_normal(len(noise.unit)) / noise.unit)
        exact = least_deviations((F / sizes)[:, live], mixed, exact_rtol=self.near).exact
        if exact[:n].mean() < self.fits:
            return None
        solution = np.zeros((F.shape[1], Y.shape[1]))
        A, B = (F / sizes)[exact], Y[exact]
        if columns is not None:
            weight = self.hint * np.sqrt(len(A))
            A = np.vstack([A, weight * np.eye(m, F.shape[1])])
            B = np.vstack([B, weight * sizes[:m, None] * columns / 2.0])
        solution[live] = np.linalg.lstsq(A[:, live], B, rcond=self.faint)[0]
        solution /= sizes[:, None]
        half, V, c = solution[:m].T, solution[m:-1].T, solution[-1]
        # a |z| = 2 a relu(z) - a z
        V, c = V - half @ W, c - half @ b
        size = np.linalg.norm(half, axis=0) @ np.linalg.norm(W, axis=1)
        top = Network([W[:, told], 2.0 * half], [b, c], skip=(V[:, told], np.zeros(len(c))))
        if np.linalg.norm(V[:, told]) <= self.skip * size:
            top = Network(top.weights, top.biases)
        else:
            top = resolve_signs(top, self.skip)[0]
            if top.skip is not None and len(open_weights):
                top = signs_of_least_deviations(top, open_weights.on_inputs(told), self.skip)
            top = signs_of_low_rank(top, self.near)
        signs = np.where((top.weights[0] * W[:, told]).sum(axis=1) < 0, -1.0, 1.0)
        skip = None
        if top.skip is not None:
            skip = np.zeros(V.shape), top.skip[1]
            skip[0][:, told] = top.skip[0]
        W = W * signs[:, None]
        W[:, told] = top.weights[0]
        weights = [*stack.weights, W, top.weights[1]]
        return Network(weights, [*stack.biases, *top.biases], skip=skip)

    def _rarer_states(
        self,
        stack: Stack,
        W: FloatArray,
        b: FloatArray,
        is_known: BoolArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Inputs at which neurons that hardly ever change their state have done so, shape (n, d).

        Those of the layer, and those below of which it knows all weights.
        """
        X = np.clip(stack.draw(self.n_inputs, self.spreads, rng), -self.bound, self.bound)
        h = stack.outputs(X)
        positive = h @ W.T + b > 0
        if len(stack):
            positive = np.column_stack([positive, h[:, is_known] > 0])
        rarer = np.where(positive.mean(axis=0) < 0.5, positive, ~positive)
        columns = np.flatnonzero(rarer.mean(axis=0) < self.rare)
        chosen = [np.flatnonzero(rarer[:, j])[: self.n_rare] for j in columns]
        return np.asarray(X[np.unique(np.concatenate([np.empty(0, dtype=np.intp), *chosen]))])


def signs_of_least_deviations(
    network: Network, open_weights: OpenWeights, rtol: float, rounding: float = 0.1
) -> Network:
    """Turn last hidden neurons round where what is left of the skip is of unknown weights.

    Signs between 0 and 1 of the least absolute deviation are a linear program, whose solution is a
    choice of signs if enough equations have no unknown weight.

    Parameters
    ----------
    network : Network
        One hidden layer, with a skip.
    open_weights : OpenWeights
        What is not known of its neurons' rows.
    rtol : float
        A rest of the skip that counts as none, relative to the neurons' affine maps.

    Returns
    -------
    Network
        As given where no choice explains the skip.
    """
    (W, A), (V, _) = network.weights, network.affine
    m = len(W)
    G = (A[:, None, :] * W.T[None]).reshape(-1, m)
    n, size = len(G), float(np.sqrt((G**2).sum()))
    F = A[:, None, open_weights.rows] * open_weights.directions[:, :-1].T[None]
    F = F.reshape(n, len(open_weights))
    # Unknowns: signs, weights, then the two parts of what each equation leaves.
    rest = scipy.sparse.eye_array(n)
    found = scipy.optimize.linprog(
        np.concatenate([np.zeros(m + len(open_weights)), np.ones(2 * n)]),
        A_eq=scipy.sparse.hstack([scipy.sparse.csr_array(np.hstack([G, F]) / size), rest, -rest]),
        b_eq=-V.ravel() / size,
        bounds=[(0.0, 1.0)] * m + [(None, None)] * len(open_weights) + [(0.0, None)] * (2 * n),
    )
    if found.x is None or np.abs(found.x[:m] - np.round(found.x[:m])).max() > rounding:
        return network
    turned = network.folded().turn_round(found.x[:m] > 0.5)
    (W, _), (V, _) = turned.weights, turned.affine
    more = np.asarray(-np.linalg.lstsq(F, V.ravel())[0])
    if np.linalg.norm(F @ more + V.ravel()) > rtol * size:
        return network
    dW, db = open_weights.moves(-more, m)
    return Network([W + dW, A], [turned.biases[0] + db, turned.biases[1] - A @ db])


def signs_of_low_rank(network: Network, rtol: float) -> Network:
    """Turn last hidden neurons round where that leaves a skip of lower rank.

    Neurons that are always on leave a skip of as many dimensions, and one of the wrong sign adds
    one: while outputs and inputs are more than those, no other turn takes one away.

    Parameters
    ----------
    rtol : float
        A singular value of this size is none, relative to the neurons' affine maps.
    """
    if network.skip is None:
        return network
    (W, A), (V, _) = network.weights[-2:], network.skip
    size = float(np.linalg.norm(A, axis=0) @ np.linalg.norm(W, axis=1))

    def rank_of(V: FloatArray) -> int:
        return int((np.linalg.svd(V, compute_uv=False) > rtol * size).sum())

    flip: list[int] = []
    rank = rank_of(V)
    while 0 < rank < min(V.shape) and len(W):
        ranks = [rank_of(V + np.outer(A[:, j], W[j])) for j in range(len(W))]
        j = int(np.argmin(ranks))
        if ranks[j] >= rank:
            break
        V, rank = V + np.outer(A[:, j], W[j]), ranks[j]
        flip.append(j)
    return network.turn_round(np.array(flip, dtype=np.intp))


def is_faint(network: Network, rtol: float = HALF_DIGITS) -> BoolArray:
    """Which last hidden neurons reach no output: rows that were none of the layer's.

    Parameters
    ----------
    rtol : float
        Outputs fainter than this, relative to the strongest neuron's, are none.
    """
    W, A = network.weights[-2:]
    sizes = np.linalg.norm(A, axis=0) * np.linalg.norm(W, axis=1)
    return np.asarray(sizes <= rtol * sizes.max(initial=0.0))


def without_skip(
    network: Network, rng: np.random.Generator, rtol: float, *, max_neurons: int = 2
) -> Network:
    """Take a skip of low rank for neurons of the last layer that are always on.

    ``V h = A (U h + b) - A b``, with one neuron for each dimension of V's rows.

    Parameters
    ----------
    rtol : float
        A singular value of this share of the largest is none.
    max_neurons : int
        A skip of full rank and more dimensions is none of such neurons.
    """
    if network.skip is None or not len(network.biases[-2]):
        return network
    (V, e), (W, A) = network.skip, network.weights[-2:]
    _, sizes, rows = np.linalg.svd(V, full_matrices=False)
    rank = int((sizes > rtol * sizes[0]).sum())
    if max_neurons < rank >= min(V.shape):
        return network
    stack = Stack(network.dim_in, network.weights[:-2], network.biases[:-2])
    always_on = np.array([stack.always_on(u, rng) for u in rows[:rank]])
    U, b = always_on[:, :-1], always_on[:, -1]
    more = V @ np.linalg.pinv(U)
    weights = [*network.weights[:-2], np.vstack([W, U]), np.hstack([A, more])]
    last = network.biases[-1] + e - more @ b
    return Network(weights, [*network.biases[:-2], np.append(network.biases[-2], b), last])
