"""Take out the neurons that the samples do not need.

Backward elimination.  A fit that is wider than the truth has neurons split in two,
turned round, always on or always off; with an affine rest allowed, none of these is
needed.  What a neuron is worth follows, for all at once, from the Gram matrix of the
hidden features: leaving out feature ``j`` and solving the others' output weights anew
adds ``a_j^2 / (G^-1)_jj`` to the sum of squares.  How many of the least worth can go is
found by trying: a full refit returns to the noise, or it does not.
"""

from dataclasses import replace

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import Damping, Iterative, Stop
from revelu.recover.fit.price import Price
from revelu.recover.refine.network_fit import (
    Automatic,
    NetworkFit,
    Samples,
    degrees_of_freedom,
    fit,
)
from revelu.types import BoolArray, FloatArray, IntArray


def prune(start: NetworkFit, samples: Samples, price: Price, *, max_trials: int = 10) -> NetworkFit:
    """Remove as many neurons as the samples allow, an affine rest being free where there is one.

    Parameters
    ----------
    start : NetworkFit
        With neurons to spare; near a solution.
    price : Price
        Of two networks the lower is better.
    max_trials : int
        Of how many neurons can go at once.

    Returns
    -------
    NetworkFit
        With an affine rest if the start has one.
    """
    # An idle neuron is one that explains no more than chance, whatever is known of the noise.
    price = replace(price, known=False)
    kept = are_determined(start.network, samples)
    # Neurons to spare make a fit converge slowly, and which ones to remove shows long before.
    found = _refit(start.network.take(kept), samples, price, max_steps=12)
    while found.network.architecture[1]:
        smaller = _remove_most(found, samples, price, max_trials)
        smaller = smaller or _without_twin(found, samples, price)
        if smaller is None:
            break
        found = smaller
    kept = are_determined(found.network, samples)
    found = found if kept.all() else _refit(found.network.take(kept), samples, price)
    explained = [price.is_explained(f.network, samples) for f in (start, found)]
    return start if explained == [True, False] else found


def are_determined(network: Network, samples: Samples) -> BoolArray:
    """Which neurons are on, and off, at as many answers as they have parameters, (width,).

    The others can be bent to any answers: what they explain is no evidence for them.
    """
    (n, d), k = samples.X.shape, samples.Y.shape[1]
    n_on = (network.activations(samples.X)[1] > 0.0).sum(axis=0)
    return np.asarray(np.minimum(n_on, n - n_on) * k >= d + 1 + k)


def with_output_layer(network: Network, samples: Samples) -> Network:
    """The hidden layer as it is; output weights and an affine rest by least squares."""
    return _output_layer(network, samples)[0]


def by_worth(network: Network, samples: Samples) -> IntArray:
    """The neurons in the order in which they can be missed, shape (width,)."""
    return _elimination(network, samples)[0]


def drop_idle(network: Network, samples: Samples, cost: float) -> Network:
    """Leave out neurons that the others replace to within ``cost``; nothing else moves."""
    order, costs = _elimination(network, samples, cost)
    idle = order[costs <= cost]
    kept = np.delete(np.arange(network.architecture[1]), idle)
    return with_output_layer(network.take(kept), samples) if len(idle) else network


def _refit(
    network: Network, samples: Samples, price: Price, *, max_steps: int = 40, flat: float = 1e-3
) -> NetworkFit:
    """Fit all weights; iterations end at a gradient ``flat``, relative to what noise leaves."""
    left = max(samples.n_equations - degrees_of_freedom(network), 1)
    goal = 0.9 * price.noise * float(np.sqrt(left / samples.n_equations))
    return fit(
        with_output_layer(network, samples),
        samples,
        Stop(max_steps, rtol=0.05, goal=goal),
        solver=Automatic(Iterative(60, flat=flat, white=True)),
        damping=Damping(1e-6),
    )


def _remove_most(
    found: NetworkFit, samples: Samples, price: Price, max_trials: int
) -> NetworkFit | None:
    """Remove as many as can go at once, by bisection; None where none can."""
    width = found.network.architecture[1]
    order, costs = _elimination(found.network, samples)
    # Those that a refit of the output weights alone replaces to within a hundred times the cost
    # are a first guess.
    guess = int((costs < 100.0 * max(found.cost, price.noise)).sum())
    enough, too_many = 0, width + 1
    best: NetworkFit | None = None
    for _ in range(max_trials):
        if too_many - enough <= 1:
            break
        n = min(max(guess, enough + 1), too_many - 1)
        smaller = _refit(found.network.take(np.sort(order[n:])), samples, price)
        if price.prefers(smaller.network, (best or found).network, samples):
            enough, best = n, smaller
            guess = n + 1 if too_many == width + 1 else (n + too_many) // 2
        else:
            too_many = n
            guess = (enough + n) // 2
    return best


def _without_twin(found: NetworkFit, samples: Samples, price: Price) -> NetworkFit | None:
    """Remove a neuron that too few answers tell from another; None where all are needed.

    A neuron that is split in two is worth more than a faint one until the other half has moved.
    """
    network, (n, d), k = found.network, samples.X.shape, samples.Y.shape[1]
    on = (network.activations(samples.X)[1] > 0.0).astype(np.float64)
    both = on.T @ on
    differ = np.diag(both)[:, None] + np.diag(both) - 2.0 * both
    # Next to an affine rest, a neuron turned round is the same one.
    are_twins = np.minimum(differ, n - differ) * k < d + 1 + k
    np.fill_diagonal(are_twins, val=False)
    for j in by_worth(network, samples):
        if are_twins[j].any():
            rest = np.delete(np.arange(len(on.T)), j)
            smaller = _refit(network.take(rest), samples, price)
            if price.prefers(smaller.network, network, samples):
                return smaller
    return None


def _elimination(
    network: Network, samples: Samples, most: float = np.inf
) -> tuple[IntArray, FloatArray]:
    """The order in which neurons go, the least worth first, and their costs, to past ``most``."""
    left = np.arange(network.architecture[1])
    order, costs = [], []
    total = 0.0
    while len(left) and total <= most**2 * samples.n_equations:
        _, worth = _output_layer(network.take(left), samples)
        least = int(np.argmin(worth))
        total += float(worth[least])
        order.append(left[least])
        costs.append(np.sqrt(total / samples.n_equations))
        left = np.delete(left, least)
    return np.array(order, dtype=np.intp), np.array(costs)


def _output_layer(network: Network, samples: Samples) -> tuple[Network, FloatArray]:
    """Solve for the output layer, and say what leaving out each neuron would cost.

    Returns
    -------
    network : Network
    worth : ndarray, shape (width,)
        What the weighted sum of squares would grow by.
    """
    X, m = samples.X, network.architecture[1]
    rest = [] if network.skip is None else [X]
    sigma = np.sqrt(np.mean(np.broadcast_to(samples.sigma, samples.Y.shape) ** 2, axis=0))
    weights = np.ones((len(X), 1))
    if samples.differ:
        # One error an input.
        own = np.sqrt((samples.sigma**2).mean(axis=1, keepdims=True))
        least = own.min(initial=np.inf)
        sigma, weights = np.full(samples.Y.shape[1], least), least / own
    features = weights * np.column_stack([network.activations(X)[1], np.ones(len(X)), *rest])
    norms = np.sqrt(np.einsum("ni,ni->i", features, features))
    norms = np.where(norms > 0, norms, 1.0)
    features /= norms
    eigenvalues, U = np.linalg.eigh(features.T @ features)
    # Smaller ones are rounding.
    eigenvalues = np.maximum(eigenvalues, 1e-13 * eigenvalues.max())
    inverse = (U / eigenvalues) @ U.T
    C = inverse @ (features.T @ (weights * samples.Y))
    worth = ((C[:m] / sigma) ** 2).sum(axis=1) / np.diag(inverse)[:m]
    C /= norms[:, None]
    skip = (C[m + 1 :].T, np.zeros(len(C[m]))) if rest else None
    return Network([network.weights[0], C[:m].T], [network.biases[0], C[m]], skip), worth
