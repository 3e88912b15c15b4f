"""Caps on the outputs of a network, as one more layer of it."""

import numpy as np

from revelu.network.network import Network
from revelu.network.sums import without_skip
from revelu.types import FloatArray


def with_caps(network: Network, low: FloatArray, high: FloatArray) -> Network:
    """Return the network whose outputs are those of another one, clipped.

    An output ``y`` becomes ``low + relu(y - low) - relu(y - high)``, with one cap alone
    ``low + relu(y - low)`` or ``high - relu(high - y)``, and without any ``relu(y) - relu(-y)``:
    rows of the last hidden layer, in the order of the outputs.

    Parameters
    ----------
    network : Network
    low, high : ndarray, shape (k,)
        Infinite where there is no cap.

    Examples
    --------
    >>> sum_of_two = Network([np.ones((1, 2))], [np.zeros(1)])
    >>> capped = with_caps(sum_of_two, np.array([0.0]), np.array([3.0]))
    >>> capped([[1, 1], [2, 2], [-1, 0]]).ravel().tolist()
    [2.0, 3.0, 0.0]
    """
    rows, offsets, columns = list[FloatArray](), list[float](), list[FloatArray]()
    constants, eye = np.zeros(network.dim_out), np.eye(network.dim_out)
    for j, (lo, hi) in enumerate(zip(low, high, strict=True)):
        if np.isfinite(lo):
            units = [(1.0, -lo, 1.0), (1.0, -hi, -1.0)][: 1 + bool(np.isfinite(hi))]
            constants[j] = lo
        elif np.isfinite(hi):
            units, constants[j] = [(-1.0, hi, -1.0)], hi
        else:
            units = [(1.0, 0.0, 1.0), (-1.0, 0.0, -1.0)]
        for sign, offset, weight in units:
            rows.append(sign * eye[j])
            columns.append(weight * eye[j])
            offsets.append(offset)
    below = without_skip(network).then(np.array(rows))
    *biases, last = below.biases
    return Network(
        [*below.weights, np.array(columns).T], [*biases, last + np.array(offsets), constants]
    )


def of_clipped(network: Network, low: FloatArray, high: FloatArray) -> Network:
    """Return the network of inputs that are clipped before another one reads them.

    An input ``x`` becomes ``low + relu(x - low) - relu(x - high)``, of which the first hidden layer
    has the neurons.

    Parameters
    ----------
    network : Network
    low, high : ndarray, shape (d,)

    Examples
    --------
    >>> sum_of_two = Network([np.ones((1, 2))], [np.zeros(1)])
    >>> of_clipped(sum_of_two, -np.ones(2), np.ones(2))([[5.0, 0.5], [-2.0, 0.0]]).ravel().tolist()
    [1.5, -1.0]
    """
    eye = np.eye(network.dim_in)
    inside = network.folded().after(np.hstack([eye, -eye]), low)
    return Network(
        [np.vstack([eye, eye]), *inside.weights],
        [-np.concatenate([low, high]), *inside.biases],
        inside.skip,
    )
