"""Fresh inputs on both sides of the borders of neurons above the first layer.

A first-layer neuron changes its state on a hyperplane.  A later one changes it on a
border that turns wherever a neuron below does; a point of it lies between two inputs at
which the neuron's own sum has different signs, and bisection by the network, which costs
no query, finds it.
"""

import numpy as np

from revelu.network import Network
from revelu.types import FloatArray


def border_inputs(
    rng: np.random.Generator,
    network: Network,
    *,
    n_inputs: int = 512,
    n_bisections: int = 60,
    side: float = 1e-3,
) -> FloatArray:
    """Both sides of a point of every upper neuron's border.

    Parameters
    ----------
    network : Network
        Of any depth; one with a single hidden layer has no upper neurons.
    n_inputs : int
        Inputs of N(0, I) among which two of different signs are sought; a neuron that is on at
        all of them, or off, has no border that N(0, I) would see.
    n_bisections : int
        Between those two: 60 halve a double down to its last bits.
    side : float
        How far off a border its sides are seen, relative to the distance of the two inputs.

    Returns
    -------
    ndarray, shape (n, d)
        Two rows a neuron that changes its state somewhere on N(0, I).
    """
    rows = [np.empty((0, network.dim_in))]
    if network.n_hidden < 2:
        return rows[0]
    X = rng.standard_normal((n_inputs, network.dim_in))
    for layer in range(1, network.n_hidden):
        Z = network.preactivations(X)[layer]
        changing = np.flatnonzero((Z > 0).any(axis=0) & (Z < 0).any(axis=0))
        if not len(changing):
            continue
        on = np.array([X[rng.choice(np.flatnonzero(Z[:, j] > 0))] for j in changing])
        off = np.array([X[rng.choice(np.flatnonzero(Z[:, j] < 0))] for j in changing])
        arm = on - off
        lo, hi = np.zeros(len(changing)), np.ones(len(changing))
        which = np.arange(len(changing))
        for _ in range(n_bisections):
            middle = (lo + hi) / 2
            sums = network.preactivations(off + middle[:, None] * arm)[layer][which, changing]
            lo, hi = np.where(sums < 0, middle, lo), np.where(sums < 0, hi, middle)
        border = off + hi[:, None] * arm
        rows += [border + side * arm, border - side * arm]
    return np.concatenate(rows)
