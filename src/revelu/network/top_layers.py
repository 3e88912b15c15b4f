"""What Theorem 3 asks of a deeper network beside regularity (DG21, appendix E).

The gradient of the top layers must vanish nowhere on the positive orthant.  With weights
in general position it vanishes only where every neuron of the last hidden layer is off:
where ``V x + c <= 0`` for some ``x >= 0``.  That is a linear programme.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from revelu.network.network import Network


@dataclass(frozen=True)
class TopLayers:
    """The assumptions of Theorem 3 on a network with two or more hidden layers.

    Attributes
    ----------
    margin : float
        Least, over the positive orthant of the last hidden layer's input, of the largest
        distance at which a neuron is on.  Where it is positive no gradient vanishes;
        where it is not, some point turns every neuron off.  Not below -1.
    gradients_vanish : bool
        Whether the margin is 0 or less.
    probability : float
        Theorem 5's lower bound on the probability that random symmetric weights of
        these widths have no vanishing gradient, over all inputs; 0 where it says nothing.
    narrowing : bool
        Whether the first hidden layer has no more neurons than there are inputs.
    first_layer_condition : float
        Largest over smallest singular value of the first layer's weights; infinite
        where its rows are linearly dependent, as they are when it is not narrowing.
    """

    margin: float
    gradients_vanish: bool
    probability: float
    narrowing: bool
    first_layer_condition: float


def top_layers(network: Network, atol: float = 1e-9) -> TopLayers | None:
    """Check the assumptions of Theorem 3.

    Parameters
    ----------
    atol : float
        A margin no larger counts as 0: the linear programme's tolerance on constraints.

    Returns
    -------
    TopLayers or None
        None for a network with fewer than two hidden layers, of which the theorem asks nothing.
    """
    if network.n_hidden < 2 or min(network.architecture) < 1:
        return None
    margin = _margin(network)
    W = network.weights[0]
    narrowing = W.shape[0] <= W.shape[1]
    values = np.linalg.svd(W, compute_uv=False)
    singular = not narrowing or values[-1] <= np.finfo(np.float64).eps * values[0] * W.shape[1]
    k, d = network.weights[-2].shape
    return TopLayers(
        margin=margin,
        gradients_vanish=margin <= atol,
        probability=no_vanishing_probability(d, k),
        narrowing=narrowing,
        first_layer_condition=np.inf if singular else float(values[0] / values[-1]),
    )


def no_vanishing_probability(d: int, k: int) -> float:
    """Theorem 5, of k neurons of d inputs: ``1 - (e k / d)^(d + 1) / 2^k``, at least 0.

    Examples
    --------
    >>> no_vanishing_probability(10, 20)
    0.0
    >>> round(no_vanishing_probability(10, 100), 6)
    1.0
    """
    log_failure = (d + 1) * (1.0 + np.log(k / d)) - k * np.log(2.0)
    return max(0.0, float(-np.expm1(min(log_failure, 0.0))))


def _margin(network: Network) -> float:
    """Minimise ``s >= -1`` where ``(V x + c)_j <= s |v_j|`` for every neuron that is read.

    The bound keeps the programme finite: neurons that are all off by 1 are off.
    """
    V, c = network.weights[-2], network.biases[-2]
    read = network.weights[-1].any(axis=0)
    V, c = V[read], c[read]
    lengths = np.linalg.norm(V, axis=1)
    lengths = np.where(lengths > 0, lengths, 1.0)
    A = np.column_stack([V / lengths[:, None], -np.ones(len(V))])
    cost = np.append(np.zeros(V.shape[1]), 1.0)
    bounds = [(0.0, None)] * V.shape[1] + [(-1.0, None)]
    if not len(V):
        return -1.0
    solved = linprog(cost, A_ub=A, b_ub=-c / lengths, bounds=bounds, method="highs")
    return float(solved.fun)
