"""The signs of the last hidden layer, where a vanishing affine rest determines them."""

import numpy as np

from revelu.network import Network
from revelu.numerics.signs import ROUNDING, find_binary_solutions


def resolve_signs(
    network: Network, rtol: float, rounding: float = ROUNDING
) -> tuple[Network, list[str]]:
    """Turn neurons round so that the affine skip vanishes, where that can be done.

    Parameters
    ----------
    network : Network
        Two layers with a skip.
    rtol : float
        Largest remainder that counts as none, relative to the neurons' affine maps.
    rounding : float
        How far from 0 and 1 a solution over the reals may be.

    Returns
    -------
    network : Network
        Without a skip where exactly one choice of signs leaves none.
    notes : list of str
        Why the skip was kept, if it was.

    Notes
    -----
    ``a relu(z) = a relu(-z) + a z``: flipping the set S adds ``sum_S a_j w_j^T`` to V.
    """
    if network.skip is None:
        return network, []
    (W, A), (b, c), (V, e) = network.weights, network.biases, network.skip
    m = len(W)
    if not m:
        return network, []
    G = (A[:, None, :] * W.T[None]).reshape(-1, m)
    size = float(np.sqrt((G**2).sum()))
    found = find_binary_solutions(G, -V.ravel(), rtol * size, rounding)
    if len(found) != 1:
        why = "several choices of signs fit" if found else "no choice of signs was found without it"
        return network, [f"the affine skip is kept, {why}; the function is the same"]
    flip = np.where(found[0] > 0.5, -1.0, 1.0)
    constant = c + e + A @ (b * found[0])
    return Network([W * flip[:, None], A], [b * flip, constant]), []
