"""Polish: from a recovered network to the last digits that the answers have.

Recovery divides differences of answers by the distance of kinks, and so loses digits.
Fresh answers at well-conditioned inputs, one round of them, have them all.
"""

import numpy as np

from revelu.network import Network
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.fit.levenberg_marquardt import is_dense
from revelu.recover.fit.two_layer import TwoLayer
from revelu.recover.refine.gauss_newton import Layers
from revelu.recover.refine.gauss_newton import polish as polish_layers
from revelu.recover.refine.refinement import choose_inputs, refine, refine_matrix_free
from revelu.types import FloatArray

# Equations for each unknown where inputs are not chosen: at 1.3 the smallest singular
# value of random ones is a seventh of the largest, of their Marchenko-Pastur law.
_RATIO = 1.3

# Inputs to choose from, for each that is asked.
_POOL = 3


def polish_network(
    oracle: Oracle, network: Network, noise: NoiseFloor, seed: int | np.random.SeedSequence
) -> Network:
    """Refine a recovered network by one round of fresh queries.

    Parameters
    ----------
    oracle : Oracle
        Exact; queries are booked under ``polish``.
    network : Network
        Right but for small errors.
    noise : NoiseFloor
    seed : int or SeedSequence

    Returns
    -------
    Network
        Of the same shape.  With one hidden layer and one output about one query a
        parameter is asked; otherwise 1.3 answers a parameter.

    Raises
    ------
    LimitReachedError
        If the budget forbids the round; nothing is asked then.
    """
    rng = np.random.default_rng(seed)
    if len(network.weights) != 2:
        return _polished_deep(oracle, network, rng)
    (W, A), (b, c), skip = network.weights, network.biases, network.skip
    start = TwoLayer(W, b, A, c) if skip is None else TwoLayer(W, b, A, c + skip[1], skip[0])
    d, k = network.dim_in, network.dim_out
    n = -(-start.n_parameters // k)
    dense = is_dense(n, start.width, d, k)
    if dense and k == 1:
        X = rng.standard_normal((_POOL * n, d))
        X = X[choose_inputs(start, X)]
    else:
        X = rng.standard_normal((int(np.ceil(_RATIO * n)), d))
    X, Y = _asked(oracle, X)
    found = refine(start, X, Y) if dense else refine_matrix_free(start, X, Y, noise.errors)
    rest = None if found.V is None else (found.V, np.zeros(k))
    return Network([found.W, found.A], [found.b, found.c], rest)


def _polished_deep(oracle: Oracle, network: Network, rng: np.random.Generator) -> Network:
    V, constant = network.skip or (None, 0.0)
    biases = [*network.biases[:-1], network.biases[-1] + constant]
    n = int(np.ceil(_RATIO * network.n_parameters / network.dim_out))
    X, Y = _asked(oracle, rng.standard_normal((n, network.dim_in)))
    found = polish_layers(Layers(list(network.weights), biases, V), X, Y)
    skip = None if found.V is None else (found.V, np.zeros(network.dim_out))
    return Network(found.weights, found.biases, skip)


def _asked(oracle: Oracle, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ask one round; where the target is saturated nothing is learnt."""
    with oracle.phase("polish"):
        Y = oracle(X)
    seen = np.isfinite(Y).all(axis=1)
    return X[seen], Y[seen]
