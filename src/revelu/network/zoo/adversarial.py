"""Networks that are hard to recover, each in one way.

Each is :func:`random_network` of ``widths`` and ``seed`` in which neurons of the last hidden
layer were changed.  All raise InputError where that layer is too narrow for that.
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import null_space

from revelu.errors import InputError
from revelu.network.network import Network
from revelu.network.zoo.plain import random_network
from revelu.types import FloatArray


def with_dead_neurons(widths: Sequence[int], n_dead: int = 2, seed: int = 0) -> Network:
    """Draw a network with neurons that nothing shows.

    By turns they have no incoming weights (a constant), no outgoing weights, or
    neither.

    Parameters
    ----------
    n_dead : int
        At most the width of the last hidden layer.
    """
    network, W, b, A = _open(widths, n_dead, seed)
    no_input, no_output = np.arange(n_dead) % 3 != 1, np.arange(n_dead) % 3 != 0
    W[:n_dead][no_input] = 0.0
    A[:, :n_dead][:, no_output] = 0.0
    return _close(network, W, b, A)


def with_duplicates(widths: Sequence[int], n_duplicates: int = 2, seed: int = 0) -> Network:
    """Draw a network with neurons on the hyperplane of another one.

    By turns they have the same orientation and the opposite one.

    Parameters
    ----------
    n_duplicates : int
        Less than the width of the last hidden layer.
    """
    network, W, b, A = _open(widths, n_duplicates + 1, seed)
    rng = np.random.default_rng([seed, 1])
    factors = rng.uniform(0.5, 2.0, n_duplicates) * (-1.0) ** np.arange(n_duplicates)
    copies = slice(len(b) - n_duplicates, len(b))
    originals = np.arange(n_duplicates) % (len(b) - n_duplicates)
    W[copies], b[copies] = factors[:, None] * W[originals], factors * b[originals]
    return _close(network, W, b, A)


def with_near_duplicates(
    widths: Sequence[int], n_pairs: int = 2, gap: float = 1e-6, seed: int = 0
) -> Network:
    """Draw a network with pairs of almost equal neurons.

    Parameters
    ----------
    n_pairs : int
        At most half the width of the last hidden layer: neurons 2i and 2i + 1.
    gap : float
        Distance of a pair's rows ``(w, b)``, relative to their norm.
    """
    network, W, b, A = _open(widths, 2 * n_pairs, seed)
    rng = np.random.default_rng([seed, 1])
    rows = np.column_stack([W, b])
    first, second = slice(0, 2 * n_pairs, 2), slice(1, 2 * n_pairs, 2)
    U = rng.normal(size=rows[first].shape)
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    rows[second] = rows[first] + gap * np.linalg.norm(rows[first], axis=1, keepdims=True) * U
    return _close(network, rows[:, :-1], rows[:, -1], A)


def with_tiny_weights(
    widths: Sequence[int], n_tiny: int = 2, size: float = 1e-6, seed: int = 0
) -> Network:
    """Draw a network with neurons that hardly show.

    Parameters
    ----------
    n_tiny : int
        At most the width of the last hidden layer.
    size : float
        What the rows and biases of those neurons are multiplied by; their
        outgoing weights stay.
    """
    network, W, b, A = _open(widths, n_tiny, seed)
    W[:n_tiny] *= size
    b[:n_tiny] *= size
    return _close(network, W, b, A)


def with_close_kinks(
    widths: Sequence[int], gap: float = 1e-9, seed: int = 0, n_pairs: int = 1
) -> Network:
    """Draw a network with pairs of parallel hyperplanes.

    Parameters
    ----------
    gap : float
        Distance of the two hyperplanes, in units of the layer's input.
    n_pairs : int
        At most half the width of the last hidden layer: neurons 2i and 2i + 1.
    """
    network, W, b, A = _open(widths, 2 * n_pairs, seed)
    first, second = slice(0, 2 * n_pairs, 2), slice(1, 2 * n_pairs, 2)
    W[second] = W[first]
    b[second] = b[first] + gap * np.linalg.norm(W[first], axis=1)
    return _close(network, W, b, A)


def with_bumps(
    widths: Sequence[int], n_bumps: int = 1, width: float = 1e-2, seed: int = 0
) -> Network:
    """Draw a network with bumps: slopes are equal on both sides of each.

    Parameters
    ----------
    n_bumps : int
        At most a third of the width of the last hidden layer: neurons 3i to 3i + 2.
    width : float
        Of a bump's support, in units of the layer's input.
    """
    network, W, b, A = _open(widths, 3 * n_bumps, seed)
    # relu(t + h) - 2 relu(t) + relu(t - h) is a triangle over [-h, h], else zero.
    for i in range(0, 3 * n_bumps, 3):
        half = width / 2 * np.linalg.norm(W[i])
        W[i : i + 3] = W[i]
        b[i : i + 3] = b[i] + half * np.array([1.0, 0.0, -1.0])
        A[:, i : i + 3] = np.outer(A[:, i], [1.0, -2.0, 1.0])
    return _close(network, W, b, A)


def with_clusters(
    widths: Sequence[int], n_clusters: int = 2, angle: float = 1e-2, seed: int = 0
) -> Network:
    """Draw a network whose neurons are close to each other in clusters (CKM21, Definition 3.7).

    Parameters
    ----------
    n_clusters : int
        At most the width of the last hidden layer; neuron ``i`` belongs to cluster
        ``i % n_clusters``.
    angle : float
        Between the rows of a cluster and its first one, in radians; their hyperplanes are
        shifted by as much, times N(0, 1).  Lengths and orientations are random.
    """
    network, W, b, A = _open(widths, n_clusters, seed)
    rng = np.random.default_rng([seed, 1])
    norms = np.linalg.norm(W, axis=1)
    for j in range(n_clusters, len(b)):
        i = j % n_clusters
        first = W[i] / norms[i]
        side = rng.standard_normal(len(first))
        side -= (side @ first) * first
        # In one dimension there is no side to turn to.
        side /= np.linalg.norm(side) if len(first) > 1 else np.inf
        length = rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 2.0) * norms[i]
        W[j] = length * (np.cos(angle) * first + np.sin(angle) * side)
        b[j] = length * (b[i] / norms[i] + angle * rng.standard_normal())
    return _close(network, W, b, A)


def with_cancelling_pairs(
    widths: Sequence[int], n_pairs: int = 2, gap: float = 1e-4, seed: int = 0
) -> Network:
    """Draw a network with pairs that cancel but for a step (CKM21, Lemma 3.19).

    Parameters
    ----------
    n_pairs : int
        At most half the width of the last hidden layer: neurons 2i and 2i + 1.
    gap : float
        Distance of a pair's rows ``(w, b)``, relative to their norm.
    """
    network = with_near_duplicates(widths, n_pairs, gap, seed)
    A = network.weights[-1].copy()
    A[:, 1 : 2 * n_pairs : 2] = -A[:, 0 : 2 * n_pairs : 2]
    return _close(network, network.weights[-2], network.biases[-2], A)


def with_far_biases(widths: Sequence[int], scale: float = 1e3, seed: int = 0) -> Network:
    """Draw a network whose hyperplanes lie at all distances up to ``scale``.

    Parameters
    ----------
    scale : float
        Distances from the origin are spaced geometrically from 1 to it, with
        random signs, in units of the layer's input.
    """
    network, W, b, A = _open(widths, 1, seed)
    distances = np.geomspace(1.0, scale, len(b)) if len(b) > 1 else np.array([scale])
    signs = np.random.default_rng([seed, 1]).choice([-1.0, 1.0], len(b))
    return _close(network, W, signs * distances * np.linalg.norm(W, axis=1), A)


def sign_ambiguous(dim_in: int, seed: int = 0) -> Network:
    """Draw a ``dim_in``-``dim_in + 1``-1 network that is itself with every hidden row negated.

    Claim 4.8 of ATV21: ``dim_in + 1`` rows are linearly dependent, and with their
    null combination ``a``, biases 0, ``sum a_i relu(w_i x) = sum a_i relu(-w_i x)``,
    the difference being ``sum a_i w_i x = 0``.  No query can tell the two apart.

    Parameters
    ----------
    dim_in : int
        At least 2.
    seed : int

    Raises
    ------
    InputError
        If ``dim_in`` is less than 2: both rows would share the hyperplane x = 0.
    """
    if dim_in < 2:
        raise InputError(f"dim_in must be at least 2, got {dim_in}")
    W = random_network([dim_in, dim_in + 1], seed).weights[0]
    a = null_space(W.T)[:, 0]
    return Network([W, a[None, :]], [np.zeros(dim_in + 1), np.zeros(1)])


def _open(
    widths: Sequence[int], n_needed: int, seed: int
) -> tuple[Network, FloatArray, FloatArray, FloatArray]:
    """Draw a network; with it copies of its last hidden W and b, and of its output's A."""
    network = random_network(widths, seed)
    if len(widths) < 3 or n_needed > widths[-2]:
        raise InputError(f"{n_needed} neurons do not fit the last hidden layer of {widths!r}")
    (*_, W, A), b = network.weights, network.biases[-2]
    return network, W.copy(), b.copy(), A.copy()


def _close(network: Network, W: FloatArray, b: FloatArray, A: FloatArray) -> Network:
    return Network([*network.weights[:-2], W, A], [*network.biases[:-2], b, network.biases[-1]])
