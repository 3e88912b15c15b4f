"""A network restricted to a line: where it bends."""

import numpy as np

from revelu.network.network import Network
from revelu.types import FloatArray


def kinks_on_line(
    network: Network, x0: FloatArray, v: FloatArray, interval: tuple[float, float]
) -> FloatArray:
    """Return where the neurons of all layers turn on or off along ``x0 + t v``, sorted.

    Between the kinks of the layers below, what a neuron is given is affine in ``t``: two
    values of opposite sign at the ends of such a stretch have one zero between them.

    Parameters
    ----------
    network : Network
    x0, v : ndarray, shape (d,)
    interval : (float, float)
        The ``t`` that are looked at.

    Returns
    -------
    ndarray, shape (m,)
    """
    t = np.array(interval, dtype=np.float64)
    for layer in range(network.n_hidden):
        Z = network.preactivations(x0 + t[:, None] * v)[layer]
        left, right = Z[:-1], Z[1:]
        stretch, neuron = np.nonzero((left > 0.0) != (right > 0.0))
        a, b_ = left[stretch, neuron], right[stretch, neuron]
        zeros = t[stretch] + (t[stretch + 1] - t[stretch]) * (a / (a - b_))
        t = np.unique(np.concatenate([t, zeros]))
    return t[(t > interval[0]) & (t < interval[1])]
