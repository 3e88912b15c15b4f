"""Networks made of networks: sums, differences, and affine maps as networks of width 0."""

import numpy as np
from scipy.linalg import block_diag

from revelu.errors import InputError
from revelu.network.network import Network
from revelu.types import FloatArray


def affine_network(V: FloatArray, c: FloatArray) -> Network:
    """The map ``V x + c`` as a two-layer network without neurons."""
    k, d = V.shape
    return Network([np.zeros((0, d)), np.zeros((k, 0))], [np.zeros(0), np.zeros(k)], skip=(V, c))


def add_networks(first: Network, second: Network) -> Network:
    """The sum of two two-layer networks, neurons side by side; with a skip if one has one."""
    (W1, A1), (W2, A2) = first.weights, second.weights
    (b1, c1), (b2, c2) = first.biases, second.biases
    (V1, e1), (V2, e2) = first.affine, second.affine
    return Network(
        [np.vstack([W1, W2]), np.hstack([A1, A2])],
        [np.concatenate([b1, b2]), c1 + c2],
        skip=(V1 + V2, e1 + e2) if first.skip or second.skip else None,
    )


def difference_network(first: Network, second: Network) -> Network:
    """The first network less the second, of any depths, as one without a skip.

    Neurons stand side by side; of a network that is less deep the outputs are passed on by a
    neuron of either sign.  No weight is rounded, but the constants of the outputs.

    Parameters
    ----------
    first, second : Network
        Of the same inputs and outputs.

    Raises
    ------
    InputError
        If inputs or outputs differ.

    Examples
    --------
    >>> import revelu
    >>> f, g = (revelu.zoo.random_network(w, seed=1) for w in ([3, 4, 2], [3, 4, 5, 2]))
    >>> pair = difference_network(f, g)
    >>> pair.architecture
    (3, 8, 9, 2)
    >>> X = [[0.5, -1.0, 2.0]]
    >>> bool(abs(pair(X) - (f(X) - g(X))).max() < 1e-12)
    True
    """
    first, second = first.to_dense(), second.to_dense()
    ends = [(n.dim_in, n.dim_out) for n in (first, second)]
    if ends[0] != ends[1]:
        (d, k), (e, m) = ends
        raise InputError(f"networks of {d} inputs and {k} outputs, and of {e} and {m}, no pair")
    depth = max(first.n_hidden, second.n_hidden)
    f, g = (_as_deep(without_skip(n), depth) for n in (first, second))
    weights, biases = [], []
    for i, (W, V) in enumerate(zip(f.weights, g.weights, strict=True)):
        if i == depth:
            weights.append(np.hstack([W, -V]) if depth else W - V)
            biases.append(f.biases[i] - g.biases[i])
            break
        weights.append(block_diag(W, V) if i else np.vstack([W, V]))
        biases.append(np.concatenate([f.biases[i], g.biases[i]]))
    return Network(weights, biases)


def _as_deep(network: Network, depth: int) -> Network:
    """The same function with more hidden layers, which pass on what the last one gives."""
    weights, biases = list(network.weights), list(network.biases)
    while len(weights) - 1 < depth:
        *below, A = weights
        *offsets, c = biases
        eye = np.eye(len(A))
        weights = [*below, np.vstack([A, -A]), np.hstack([eye, -eye])]
        biases = [*offsets, np.concatenate([c, -c]), np.zeros(len(A))]
    return Network(weights, biases)


def without_skip(network: Network) -> Network:
    """The same function, its skip passed on by neurons of both signs of its rows."""
    network = network.folded()
    if network.skip is None:
        return network
    V, eye, none = network.skip[0], np.eye(network.dim_out), np.zeros(2 * network.dim_out)
    *below, W, A = network.weights
    *offsets, b, c = network.biases
    return Network(
        [*below, np.vstack([W, V, -V]), np.hstack([A, eye, -eye])],
        [*offsets, np.concatenate([b, none]), c],
    )
