"""Neurons of the last hidden layer whose weights are off: who they are, and a fit of those alone.

Where one neuron is off the answers of several outputs are off by a multiple of its column of output
weights.  A fit of a few neurons is quick where one of all layers is slow, and reaches the last
digits of those that few inputs show.
"""

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import UNDAMPED, Chord, Stop
from revelu.recover.refine.network_fit import Samples, fit
from revelu.types import BoolArray, FloatArray, IntArray


def neurons_off(
    network: Network,
    X: FloatArray,
    Y: FloatArray,
    unit: FloatArray,
    *,
    most: int,
    alone: float = 1e-3,
) -> IntArray:
    """Find the last hidden neurons that explain errors at inputs, one neuron an input.

    Parameters
    ----------
    X, Y : ndarray, shape (n, d) and (n, k)
        Inputs at which the network is wrong, and answers of two outputs at least.
    unit : ndarray, shape (k,)
        Units of the outputs.
    most : int
        Neurons at most: those that explain most inputs.
    alone : float
        An error is one neuron's if so little of it is no multiple of its column.

    Returns
    -------
    ndarray of int
        Empty where there is one output, of which every error is a multiple of every column.
    """
    if len(unit) < 2 or not len(X):
        return np.empty(0, dtype=np.intp)
    left, A = (Y - network(X)) / unit, network.weights[-1] / unit[:, None]
    Z = network.preactivations(X)[network.n_hidden - 1]
    sizes = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(A, axis=0))
    cosines = np.abs(left @ A) / np.where(sizes > 0.0, sizes, 1.0)
    cosines[~_may_be_on(Z, np.abs(Z).max(axis=1, keepdims=True))] = 0.0
    # |error - multiple of the column| = sin |error|
    told = 1.0 - cosines.max(axis=1) ** 2 <= alone**2
    neurons, counts = np.unique(cosines.argmax(axis=1)[told], return_counts=True)
    return np.asarray(neurons[np.argsort(-counts, kind="stable")[:most]])


def fit_neurons(network: Network, neurons: IntArray, samples: Samples, stop: Stop) -> Network:
    """Fit rows and outputs of a few last hidden neurons; all others stay as they are.

    Parameters
    ----------
    network : Network
        Right but for small errors of those.
    neurons : ndarray of int
        Answers count where one of them may be on.
    """
    *below, W, A = network.weights
    *biases, b, c = network.biases
    H = network.activations(samples.X)[-2]
    some = Network([W[neurons], A[:, neurons]], [b[neurons], np.zeros(len(c))])
    Z = some.preactivations(H)[0]
    shown = _may_be_on(Z, np.abs(Z).max(initial=0.0)).any(axis=1)
    rest = samples.Y - network(samples.X) + some(H)
    sigma = samples.sigma if samples.sigma.ndim == 1 else samples.sigma[shown]
    there = Samples(H[shown], rest[shown], sigma)
    if there.n_equations < some.n_parameters:
        return network
    found = fit(some, there, stop, solver=Chord(), damping=UNDAMPED).network
    W, b, A = W.copy(), b.copy(), A.copy()
    W[neurons], b[neurons] = found.weights[0], found.biases[0]
    A[:, neurons] = found.weights[1]
    return Network([*below, W, A], [*biases, b, c + found.biases[1]], network.skip)


def _may_be_on(Z: FloatArray, largest: FloatArray | float, *, near: float = 1e-3) -> BoolArray:
    """Which neurons of sums ``Z`` are on, or off by no more than a share of the largest sum."""
    return np.asarray(Z + near * largest > 0.0)
