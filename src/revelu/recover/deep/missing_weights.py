"""Weights that no critical point has determined, from answers.

A row's weight for an input that is rarely on may have no critical point of its own where that is
on.  There the answers are linear in it as long as nothing else turns, and robust regression on
what a network leaves unexplained gives it, or what matters of it.

Below a last hidden neuron that hardly ever rests, a skip has taken the weight's part: there the
answers lack it only where the neuron rests, and both move, ``A relu((w + e) h) - A e h``.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from revelu.network import Network
from revelu.numerics.least_deviations import least_deviations
from revelu.recover.deep.kink_equations import PRECISION
from revelu.recover.deep.output_layer import is_faint, without_skip
from revelu.recover.signs import resolve_signs
from revelu.types import BoolArray, FloatArray


class Place(NamedTuple):
    """A weight of a hidden layer, and whether the skip moves against it."""

    layer: int
    row: int
    column: int
    with_skip: bool = False


@dataclass(frozen=True)
class WeightFit:
    """Fits of undetermined weights to answers, each to a network that is right but for them.

    Attributes
    ----------
    undetermined : list of ndarray of bool
        Which of every hidden layer's weights.
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, outputs)
    """

    undetermined: list[BoolArray]
    X: FloatArray
    Y: FloatArray
    step: float = 1e-7
    """Of derivatives, relative to a row."""
    max_steps: int = 6
    """Steps of the regression."""
    max_weights: int = 60
    """More are not fitted."""
    max_equations: int = 4000
    shows: float = 1e-6
    """A point shows weights if an answer changes by this share of the largest change."""
    wild: float = 50.0
    """A weight this many times as large as its row's others stands for something else."""
    missing: float = 1e-3
    """What a neuron that is missing leaves of an answer, relative to the most."""

    def fit(self, network: Network) -> Network:
        """Fit the weights; return the network that explains most, which may be that given."""
        undetermined = enumerate(self.undetermined)
        places = [Place(i, j, k) for i, rows in undetermined for j, k in np.argwhere(rows)]
        if network.skip is not None:
            last = len(self.undetermined) - 1
            places += [p._replace(with_skip=True) for p in places if p.layer == last]
        if not places or len(places) > self.max_weights:
            return network
        spread = self.Y.std(axis=0)
        unit = np.where(spread > 0, spread, 1.0)
        best, least = network, np.inf
        for _ in range(self.max_steps):
            answers = network(self.X)
            residual = ((self.Y - answers) / unit).ravel()
            cost = float(np.median(np.abs(residual))) + float(np.abs(residual).mean())
            if cost < least and not self._is_wild(network, places):
                best, least = network, cost
            columns = []
            for place in places:
                size = self.step * float(np.linalg.norm(network.weights[place.layer][place.row]))
                moved = _moved(network, [place], np.array([size]))
                columns.append(((moved(self.X) - answers) / size / unit).ravel())
            J = np.column_stack(columns)
            sizes = np.abs(J).max(axis=0)
            live = np.flatnonzero(sizes)
            if not len(live):
                break
            J = J[:, live] / sizes[live]
            rows = np.flatnonzero((np.abs(J) > self.shows).any(axis=1))
            if len(rows) <= len(live):
                break
            rows = rows[:: -(-len(rows) // self.max_equations)]
            change = least_deviations(J[rows], residual[rows]).x / sizes[live]
            network = _moved(network, [places[i] for i in live], change)
        return best

    def reactivate(self, network: Network) -> Network:
        """Fit weights of last neurons to points at which those rest and should not.

        Nothing tells there what the weights change.  But if neuron j alone is missing, what the
        network leaves of the answer is ``a_j z_j``, and its sum is linear in the weights.
        """
        undetermined, left = self.undetermined[-1], self.Y - network(self.X)
        sizes = np.linalg.norm(left, axis=1)
        h = network.activations(self.X)[-2]
        (W, A), b = network.weights[-2:], network.biases[-2]
        W, sums = W.copy(), h @ W.T + b
        for j in np.flatnonzero(undetermined.any(axis=1) & A.any(axis=0)):
            a = A[:, j]
            z = left @ a / (a @ a)
            rows = np.linalg.norm(left - np.outer(z, a), axis=1) <= PRECISION * sizes
            rows &= (sizes > self.missing * sizes.max(initial=0.0)) & (z > 0) & (sums[:, j] < 0)
            columns = np.flatnonzero(undetermined[j] & (h[rows] > 0).any(axis=0))
            if rows.sum() > len(columns) > 0:
                W[j, columns] += least_deviations(h[rows][:, columns], (z - sums[:, j])[rows]).x
        return Network([*network.weights[:-2], W, A], network.biases, skip=network.skip)

    def fit_always_on(self, network: Network, rng: np.random.Generator) -> Network:
        """Take a skip for neurons that are always on, and fit their weights, too.

        No critical point shows those of an input that none of the others has met either.  The
        network stays as given where it has no skip, or none of such neurons.
        """
        whole = without_skip(network, rng)
        if network.skip is None or whole.skip is not None:
            return network
        *below, last = self.undetermined
        more = np.tile(last.any(axis=0), (len(whole.biases[-2]) - len(last), 1))
        return replace(self, undetermined=[*below, np.vstack([last, more])]).fit(whole)

    def _is_wild(self, network: Network, places: list[Place]) -> bool:
        """Whether weights are far larger than their rows' others."""
        for place in places:
            row = network.weights[place.layer][place.row]
            if abs(row[place.column]) > self.wild * np.median(np.abs(row[row != 0])):
                return True
        return False


def absorb_skip(network: Network, undetermined: BoolArray) -> Network:
    """Take an affine skip for the undetermined weights of neurons that are always on.

    Parameters
    ----------
    undetermined : ndarray of bool, shape (k, m)
        Which of the last hidden layer's weights.

    Returns
    -------
    Network
        Without a skip where that is all it is, but for the signs of neurons; otherwise as given.
    """
    if network.skip is None:
        return network
    W, A = network.weights[-2:]
    kept = ~is_faint(network)
    undetermined = undetermined & kept[:, None]
    seen = ~undetermined.any(axis=0)
    if not undetermined.any() or not seen.any():
        return network
    # On the other weights it must vanish, with some signs.
    rest = Network(
        [W[kept][:, seen], A[:, kept]],
        [network.biases[-2][kept], network.biases[-1]],
        skip=(network.skip[0][:, seen], network.skip[1]),
    )
    plain = resolve_signs(rest, PRECISION)[0]
    if plain.skip is not None:
        return network
    turned = np.zeros(len(W), dtype=bool)
    turned[kept] = (plain.weights[0] * rest.weights[0]).sum(axis=1) < 0
    whole = network.turn_round(turned).folded()
    # What is left is of neurons that are always on, one for each input.
    V, more = whole.affine[0] * ~seen, np.zeros(W.shape)
    left, sizes = V.copy(), (A**2).sum(axis=0)
    for i in np.flatnonzero(undetermined.any(axis=0)):
        for j in np.flatnonzero(undetermined[:, i] & (sizes > 0)):
            weight = A[:, j] @ left[:, i] / sizes[j]
            apart = np.linalg.norm(left[:, i] - weight * A[:, j])
            if apart <= PRECISION * np.linalg.norm(left[:, i]):
                more[j, i], left[:, i] = weight, 0.0
                break
    if np.linalg.norm(left) > PRECISION * np.linalg.norm(V):
        return network
    return Network([*whole.weights[:-2], whole.weights[-2] + more, A], whole.biases)


def _moved(network: Network, places: list[Place], change: FloatArray) -> Network:
    """Change weights, and the skip against them where it moves with them."""
    weights, (V, constant) = [W.copy() for W in network.weights], network.affine
    V = V.copy()
    for place, by in zip(places, change, strict=True):
        weights[place.layer][place.row, place.column] += by
        if place.with_skip:
            V[:, place.column] -= by * weights[-1][:, place.row]
    return Network(weights, network.biases, skip=(V, constant) if network.skip else None)
