"""Take out the neurons that the samples do not need.

Backward elimination.  A fit that is wider than the truth has neurons split in two,
turned round, always on or always off; with an affine rest allowed, none of these is
needed.  What a neuron is worth follows, for all at once, from the Gram matrix of the
hidden features: leaving out feature ``j`` and solving the others' output weights anew
adds ``a_j^2 / (G^-1)_jj`` to the sum of squares.  How many of the least worth can go is
found by trying: a full refit returns to the noise, or it does not.
"""

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import Damping, Iterative, Stop
from revelu.recover.refine.network_fit import (
    Automatic,
    Fit,
    Samples,
    degrees_of_freedom,
    fit,
)
from revelu.types import BoolArray, FloatArray, IntArray

# Relative eigenvalues of the Gram matrix below this are rounding.
_RANK_RTOL = 1e-13

# Trials of how many neurons can go, and steps of a refit.
_MAX_TRIALS = 10
_REFIT_STEPS = 40
_REFIT_RTOL = 0.05
_REFIT_DAMPING = 1e-6
_REFIT_ITERATIONS = 60

# Neurons to spare make a fit converge slowly, and which ones to remove shows long before.
_FIRST_STEPS = 12

# Chance moves a cost by a share of 1 / sqrt(2 n); this many such are no chance.
_SIGMAS = 4.0
_LEAST_SLACK = 0.03

# A first guess of how many can go: those that a refit of the output weights alone
# replaces to within this many times the cost.
_CHEAP = 100.0


def prune(network: Network, samples: Samples, noise_cost: float) -> Fit:
    """Remove as many neurons as the samples allow, an affine rest being free.

    Parameters
    ----------
    network : Network
        With neurons to spare; near a solution.
    samples : Samples
    noise_cost : float
        A reduced cost that noise alone can have: what passes it is explained.

    Returns
    -------
    Fit
        With an affine rest.  Its cost tells whether it explains the samples.
    """
    network = network.take(are_determined(network, samples))
    found = _refit(with_affine_rest(network, samples), samples, noise_cost, _FIRST_STEPS)
    while found.network.architecture[1]:
        smaller = _remove_most(found, samples, _bar(found, samples, noise_cost))
        if smaller is None:
            break
        found = smaller
    kept = are_determined(found.network, samples)
    if kept.all():
        return found
    return _refit(with_affine_rest(found.network.take(kept), samples), samples, noise_cost)


def are_determined(network: Network, samples: Samples) -> BoolArray:
    """Which neurons are on, and off, at as many answers as they have parameters.

    The others can be bent to any answers: what they explain is no evidence for them.

    Returns
    -------
    ndarray of bool, shape (width,)
    """
    (n, d), k = samples.X.shape, samples.Y.shape[1]
    n_on = (network.activations(samples.X)[1] > 0.0).sum(axis=0)
    return np.asarray(np.minimum(n_on, n - n_on) * k >= d + 1 + k)


def with_affine_rest(network: Network, samples: Samples) -> Network:
    """The hidden layer as it is; output weights and an affine map by least squares."""
    return _output_layer(network, samples)[0]


def by_worth(network: Network, samples: Samples) -> IntArray:
    """The neurons in the order in which they can be missed, shape (width,)."""
    return _elimination(network, samples)[0]


def drop_idle(network: Network, samples: Samples, cost: float) -> Network:
    """Leave out neurons that the others replace to within ``cost``; nothing else moves."""
    order, costs = _elimination(network, samples)
    n = int((costs <= cost).sum())
    return with_affine_rest(network.take(np.sort(order[n:])), samples) if n else network


def _refit(start: Network, samples: Samples, bar: float, max_steps: int = _REFIT_STEPS) -> Fit:
    left = max(samples.n_equations - degrees_of_freedom(start), 1)
    goal = bar * float(np.sqrt(left / samples.n_equations))
    return fit(
        start,
        samples,
        Stop(max_steps, rtol=_REFIT_RTOL, goal=0.9 * goal),
        solver=Automatic(Iterative(_REFIT_ITERATIONS, white=True)),
        damping=Damping(_REFIT_DAMPING),
    )


def _bar(found: Fit, samples: Samples, noise_cost: float) -> float:
    """The reduced cost up to which a smaller network explains as much."""
    slack = max(_LEAST_SLACK, _SIGMAS / np.sqrt(2.0 * samples.n_equations))
    reduced = samples.reduced_cost(found.network)
    return (1.0 + slack) * reduced if reduced > noise_cost else noise_cost


def _remove_most(found: Fit, samples: Samples, bar: float) -> Fit | None:
    """Remove as many as can go at once, by bisection; None where none can."""
    network = found.network
    order, costs = _elimination(network, samples)
    guess = int((costs < _CHEAP * max(found.cost, 1.0)).sum())
    width = network.architecture[1]
    enough, too_many = 0, width + 1
    best: Fit | None = None
    for _ in range(_MAX_TRIALS):
        if too_many - enough <= 1:
            break
        n = min(max(guess, enough + 1), too_many - 1)
        kept = np.sort(order[n:])
        smaller = _refit(with_affine_rest(network.take(kept), samples), samples, bar)
        if samples.reduced_cost(smaller.network) <= bar:
            enough, best = n, smaller
            guess = n + 1 if too_many == width + 1 else (n + too_many) // 2
        else:
            too_many = n
            guess = (enough + n) // 2
    return best


def _elimination(network: Network, samples: Samples) -> tuple[IntArray, FloatArray]:
    """The order in which neurons go, the least worth first, and the cost of each."""
    left = np.arange(network.architecture[1])
    order, costs = [], []
    total = 0.0
    while len(left):
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
    features = np.column_stack([network.activations(X)[1], np.ones(len(X)), X])
    norms = np.sqrt(np.einsum("ni,ni->i", features, features))
    norms = np.where(norms > 0, norms, 1.0)
    features /= norms
    eigenvalues, U = np.linalg.eigh(features.T @ features)
    eigenvalues = np.maximum(eigenvalues, _RANK_RTOL * eigenvalues.max())
    inverse = (U / eigenvalues) @ U.T
    C = inverse @ (features.T @ samples.Y)
    sigma = np.sqrt(np.mean(np.broadcast_to(samples.sigma, samples.Y.shape) ** 2, axis=0))
    worth = ((C[:m] / sigma) ** 2).sum(axis=1) / np.diag(inverse)[:m]
    C /= norms[:, None]
    skip = (C[m + 1 :].T, np.zeros(len(C[m])))
    return Network([network.weights[0], C[:m].T], [network.biases[0], C[m]], skip), worth
