"""A hidden layer beside an affine skip as leaky units, where the skip says so.

With ``z = w x + b`` and a slope s a leaky neuron of column A is

    A (max(z, 0) + s min(z, 0)) = a relu(z) + r a z,    a = (1 - s) A,  r = s / (1 - s),

so that a layer of them is one of ReLUs and a skip ``V = sum_j r_j a_j w_j^T``; and read from the
other side, ``relu(z) = relu(-z) + z``, it has ``-(1 + r)`` for r.  The skip of a network of ReLUs
is 0 or -1 for every r, that of absolute values -1/2.
"""

import numpy as np

from revelu.network.layered import LayeredNetwork
from revelu.network.layers import Dense, Layer, Prelu, Relu
from revelu.network.network import Network
from revelu.numerics.confidence import CONFIDENCE
from revelu.numerics.subset_sum import expected_coincidences, find_binary_solutions
from revelu.types import FloatArray

__all__ = ["with_slopes"]


def with_slopes(
    network: Network,
    rtol: float,
    *,
    is_likely: bool = False,
    chance: float = 1.0 - CONFIDENCE,
    max_bits: int = 24,
) -> Network:
    """Write the last hidden layer in leaky units, if that leaves no skip.

    Parameters
    ----------
    network : Network
    rtol : float
        Largest remainder of the skip that counts as none, relative to the neurons' affine maps.
    is_likely : bool
        Whether leaky units are expected: then slopes from 0 to 1 are taken of a skip that has no
        more numbers than there are neurons, too.
    chance : float
        The most choices of orientations that may be expected to leave so little by chance alone.
    max_bits : int
        The most orientations that may be tried out.

    Returns
    -------
    Network
        A :class:`LayeredNetwork`, one slope for all neurons if that explains the skip; as given
        where no slopes do, or several may.
    """
    if network.skip is None or isinstance(network, LayeredNetwork) or not len(network.weights[-2]):
        return network
    W, A = network.weights[-2:]
    G = (A[:, None, :] * W.T[None]).reshape(-1, len(W))
    v, size = network.skip[0].ravel(), float(np.sqrt((G**2).sum()))
    r = _shared(G, v, rtol * size, chance, max_bits)
    if r is None:
        r = _separate(G, v, rtol * size, is_likely=is_likely)
    # Slopes of 0 are ReLUs, which a skip does not go with.
    is_plain = r is not None and np.abs(np.abs(r + 0.5) - 0.5).max() <= rtol
    return network if r is None or is_plain else _written(network, r)


def _shared(
    G: FloatArray, v: FloatArray, atol: float, chance: float, max_bits: int
) -> FloatArray | None:
    """The ratios ``r`` of one slope for all, ``r_j = -1/2 + t`` or ``-1/2 - t``, if it will do.

    ``v + G 1 / 2 = t G e`` with signs e: those of which ``G e`` is along the left-hand side.
    """
    m, along = G.shape[1], v + G.sum(axis=1) / 2.0
    if np.linalg.norm(along) <= atol:
        return np.full(m, -0.5)
    unit = along / np.linalg.norm(along)
    across = G - np.outer(unit, unit @ G)
    # Both orientations of all at once are solutions: the first neuron keeps its own.
    target = across.sum(axis=1) / 2.0
    found = find_binary_solutions(across[:, 1:], target, atol, max_bits=max_bits)
    if len(found.every) != 1:
        return None
    e = 1.0 - 2.0 * np.append(0.0, found.found[0])
    both = G @ e
    t = float(both @ along) / float(both @ both)
    left = float(np.linalg.norm(along - t * both))
    rest = max(left, np.finfo(np.float64).eps * float(np.linalg.norm(G)))
    if left > atol or expected_coincidences(across[:, 1:], rest) > chance:
        return None
    return np.asarray(-0.5 + t * e)


def _separate(
    G: FloatArray, v: FloatArray, atol: float, *, is_likely: bool, rank_rtol: float = 1e-7
) -> FloatArray | None:
    """The ratios of a slope a neuron, where the skip has more numbers than there are neurons.

    Any skip of as many numbers has such ratios.
    """
    n, m = G.shape
    sizes = np.linalg.norm(G, axis=0)
    if n < m or not sizes.all():
        return None
    x, _, rank, _ = np.linalg.lstsq(G / sizes, v, rcond=rank_rtol)
    r = np.asarray(x / sizes)
    if rank < m or np.linalg.norm(G @ r - v) > atol:
        return None
    is_told = n > m or (is_likely and bool((np.abs(r + 0.5) >= 0.5).all()))
    return r if is_told else None


def _written(network: Network, r: FloatArray) -> LayeredNetwork:
    """The network with slopes of at most 1 in place of the skip."""
    turned = r < -0.5
    network, r = network.turn_round(turned), np.where(turned, -1.0 - r, r)
    *below, W, A = network.weights
    *biases, b, c = network.biases
    layers: list[Layer] = []
    for V, e in zip(below, biases, strict=True):
        layers += [Dense(V, e), Relu()]
    top = Dense(A * (1.0 + r), c + network.affine[1] - (A * r) @ b)
    return LayeredNetwork([*layers, Dense(W, b), Prelu(r / (1.0 + r)), top])
