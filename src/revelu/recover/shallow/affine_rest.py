"""The affine rest of a network of one hidden layer (DG21, Algorithm 6, line 6), by regression."""

import numpy as np

from revelu.network import Network, add_networks, affine_network
from revelu.oracle import Oracle


def add_affine_rest(
    oracle: Oracle,
    network: Network,
    rng: np.random.Generator,
    *,
    oversampling: float = 1.25,
    spare: int = 8,
    typical: float = 30.0,
) -> Network:
    """Regress what a network leaves of fresh answers on ``V x + c``, and add it.

    A line gives ``V`` and ``c`` from differences and one answer far out, whose errors carry to
    N(0, I); answers there average them.

    Parameters
    ----------
    network : Network
        Two layers.
    oversampling : float
        Answers over the unknowns of an output,
    spare : int
        and ``spare`` more.
    typical : float
        What is larger than ``typical`` times the median is a missing neuron's, and is left out.

    Returns
    -------
    Network
        As given unless the regression leaves less than half.

    Raises
    ------
    LimitReachedError
        If the budget forbids it.
    """
    d = oracle.dim_in
    X = rng.standard_normal((int(oversampling * (d + 1)) + spare, d))
    rest = oracle(X) - network(X)
    seen = np.isfinite(rest).all(axis=1)
    X, rest = X[seen], rest[seen]
    if len(X) <= d + 1:
        return network
    size = np.abs(rest).max(axis=1)
    kept = size <= typical * float(np.median(size))
    n_over = int(kept.sum()) - (d + 1)
    if n_over < 1:
        return network
    Z = np.column_stack([X, np.ones(len(X))])[kept]
    solution = np.linalg.lstsq(Z, rest[kept], rcond=None)[0]
    left = np.linalg.norm(rest[kept] - Z @ solution) * np.sqrt(kept.sum() / n_over)
    if left >= np.linalg.norm(rest[kept]) / 2:
        return network
    return add_networks(network, affine_network(solution[:d].T, solution[d]))
