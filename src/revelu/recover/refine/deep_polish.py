"""The last digits of a deep network, from answers that were asked anyway."""

import numpy as np

from revelu.network import Network
from revelu.recover.refine.dense_newton import polish_densely
from revelu.recover.refine.gauss_newton import Layers, polish
from revelu.types import FloatArray

# Answers a parameter, at least, and those of a fit with the whole Jacobian, for networks of so
# many parameters at most.
_EQUATIONS = 1.3
_DENSE = 6.0
_MOST_DENSE = 1500


def polished(network: Network, X: FloatArray, Y: FloatArray) -> Network:
    """Fit all weights to answers.

    Parameters
    ----------
    network : Network
        Right at these points but for small errors.
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, k)

    Returns
    -------
    Network
        As given where the points are too few.
    """
    a_parameter = network.n_parameters / network.dim_out
    is_small = network.n_parameters <= _MOST_DENSE and network.skip is None
    if len(X) < _EQUATIONS * a_parameter:
        return network
    n = int(np.ceil((_DENSE if is_small else _EQUATIONS) * a_parameter))
    V, constant = network.skip or (None, 0.0)
    biases = [*network.biases[:-1], network.biases[-1] + constant]
    layers = Layers(list(network.weights), biases, V)
    found = (polish_densely if is_small else polish)(layers, X[:n], Y[:n])
    skip = None if found.V is None else (found.V, np.zeros(network.dim_out))
    return Network(found.weights, found.biases, skip=skip)
