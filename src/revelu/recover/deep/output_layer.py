"""The outputs above the last hidden layer, where it is the last: robust regression.

Above the last hidden layer ``f = A relu(z) + c`` with ``z = W h + b``, and whatever its signs,
``f = A' |z| + B h + c'``: linear in what is known.  Most points fit to rounding if no more than a
few rare neurons are missing, and few do if there is another layer.
"""

from collections.abc import Iterator

import numpy as np

from revelu.network import Network
from revelu.numerics.least_deviations import least_deviations
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.deep.always_active import placed
from revelu.recover.deep.stack import Stack
from revelu.recover.signs import resolve_signs
from revelu.types import BoolArray, FloatArray

# Equations beyond the unknowns, and the share of points that must fit.
_RATIO = 3
_SPARE = 40
_FITS = 0.6

# Inputs, not asked, among which those are chosen at which a neuron is in its rarer state: where it
# is in that at no point asked, its |z| is an affine map, and nothing tells it from the skip; nor
# does anything tell the skip's part in an input that is off at all of them.
_POOL = 10_000
_SPREADS = (1.0, 2.0)
_RARE, _RARER = 0.1, 0.02
_MOST_RARE = 8

# A skip this faint, relative to the neurons' own maps, is none.
_NO_SKIP = 1e-5

# A skip of full rank and more than so many dimensions is none of neurons that never rest.
_MOST_STEADY = 2

# A last neuron whose outputs are this faint, relative to the strongest, is none.
_NO_NEURON = 1e-8

# Columns that fainter than this share of the strongest are left out.
_RANK = 1e-11


def fit_outputs(
    oracle: Oracle,
    noise: NoiseFloor,
    stack: Stack,
    W: FloatArray,
    b: FloatArray,
    unseen: BoolArray,
    rng: np.random.Generator,
) -> Network | None:
    """Take a layer for the last hidden one, and solve for the outputs.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
    stack : Stack
        The layers below.
    W : ndarray, shape (m, k)
    b : ndarray, shape (m,)
    unseen : ndarray of bool, shape (m, k)
        Which entries of W are not known.
    rng : numpy.random.Generator

    Returns
    -------
    Network or None
        The whole network; None where most points do not fit.
    """
    k, is_known = stack.dim_out, np.asarray(~unseen.any(axis=0))
    n = _RATIO * (len(b) + k + 1) + _SPARE
    plain = rng.standard_normal((n, oracle.dim_in))
    X = np.vstack([plain, _rarer_states(stack, W, b, is_known, rng)])
    Y, h = oracle(X), stack.outputs(X)
    # Points at which an unknown entry counts are wrong: a skip is not to stand for it.
    told = h.any(axis=0) & (is_known | ((h[:n] > 0).mean(axis=0) >= _RARER))
    alive = np.asarray(np.isfinite(Y).all(axis=1))  # a target may be saturated
    alive &= ~h[:, ~told].any(axis=1)
    X, Y, h, n = X[alive], Y[alive], h[alive], int(alive[:n].sum())
    if n < len(b) + k + 1:
        return None
    F = np.column_stack([np.abs(h @ W.T + b), h, np.ones(len(X))])
    live = np.linalg.norm(F, axis=0) > 0
    sizes = np.where(live, np.sqrt((F**2).mean(axis=0)), 1.0)
    mixed = Y @ (rng.standard_normal(len(noise.unit)) / noise.unit)
    fit = least_deviations((F / sizes)[:, live], mixed)
    if fit.exact[:n].mean() < _FITS:
        return None
    solution = np.zeros((F.shape[1], Y.shape[1]))
    rows = fit.exact
    solution[live] = np.linalg.lstsq((F / sizes)[rows][:, live], Y[rows], rcond=_RANK)[0]
    solution /= sizes[:, None]
    m = len(b)
    half, V, c = solution[:m].T, solution[m:-1].T, solution[-1]
    # a |z| = 2 a relu(z) - a z
    V, c = V - half @ W, c - half @ b
    size = np.linalg.norm(half, axis=0) @ np.linalg.norm(W, axis=1)
    top = Network([W[:, told], 2.0 * half], [b, c], skip=(V[:, told], np.zeros(len(c))))
    if np.linalg.norm(V[:, told]) <= _NO_SKIP * size:
        top = Network(top.weights, top.biases)
    else:
        top = resolve_signs(top, _NO_SKIP)[0]
        top = top if top.skip is None else signs_of_low_rank(top)
    signs = np.where((top.weights[0] * W[:, told]).sum(axis=1) < 0, -1.0, 1.0)
    skip = None if top.skip is None else (_spread(top.skip[0], told), top.skip[1])
    top = Network([W * signs[:, None], top.weights[1]], top.biases, skip=skip)
    weights = [*stack.weights, *top.weights]
    return Network(weights, [*stack.biases, *top.biases], skip=top.skip)


def _spread(V: FloatArray, columns: BoolArray) -> FloatArray:
    """Columns in their places, and 0 in the others."""
    spread = np.zeros((len(V), len(columns)))
    spread[:, columns] = V
    return spread


def signs_of_low_rank(network: Network) -> Network:
    """Turn neurons round where that leaves a skip of lower rank, of two layers.

    Neurons that never rest leave a skip of as many dimensions, and one of the wrong sign adds one:
    while outputs and inputs are more than those, no other turn takes one away.
    """
    if network.skip is None or not len(network.weights[0]):
        return network
    (W, A), (b, c), (V, e) = network.weights, network.biases, network.skip
    size = float(np.linalg.norm(A, axis=0) @ np.linalg.norm(W, axis=1))
    flip: list[int] = []
    rank = _rank(V, size)
    while 0 < rank < min(V.shape):
        ranks = [_rank(V + np.outer(A[:, j], W[j]), size) for j in range(len(W))]
        j = int(np.argmin(ranks))
        if ranks[j] >= rank:
            break
        V, rank = V + np.outer(A[:, j], W[j]), ranks[j]
        flip.append(j)
    signs = np.ones(len(W))
    signs[flip] = -1.0
    constant = c + A[:, flip] @ b[flip]
    return Network([W * signs[:, None], A], [b * signs, constant], skip=(V, e))


def _rank(V: FloatArray, size: float) -> int:
    return int((np.linalg.svd(V, compute_uv=False) > _NO_SKIP * size).sum())


def is_faint(network: Network) -> BoolArray:
    """Which last hidden neurons reach no output: rows that were none of the layer's."""
    W, A = network.weights[-2:]
    sizes = np.linalg.norm(A, axis=0) * np.linalg.norm(W, axis=1)
    return np.asarray(sizes <= _NO_NEURON * sizes.max(initial=0.0))


def without_faint(network: Network) -> Network:
    """Leave out last hidden neurons that reach no output."""
    kept = ~is_faint(network)
    W, A = network.weights[-2:]
    weights = [*network.weights[:-2], W[kept], A[:, kept]]
    biases = [*network.biases[:-2], network.biases[-2][kept], network.biases[-1]]
    return Network(weights, biases, skip=network.skip)


def within_neurons(network: Network) -> Iterator[Network]:
    """Take a skip of rank one for entries of one neuron that is on wherever they count.

    Where such a neuron rests, its inputs are off: no kink has shown the entries, and the answers
    have them in the skip.  It is a neuron with outputs along the skip's; one output says nothing
    of which, and answers tell.

    Yields
    ------
    Network
        Without a skip.
    """
    if network.skip is None:
        return
    (V, e), (W, A) = network.skip, network.weights[-2:]
    sizes = (A**2).sum(axis=0)
    for j in np.flatnonzero(sizes > 0):
        entries = A[:, j] @ V / sizes[j]
        if np.linalg.norm(V - np.outer(A[:, j], entries)) <= _NO_SKIP * np.linalg.norm(V):
            more = W.copy()
            more[j] += entries
            biases = [*network.biases[:-1], network.biases[-1] + e]
            yield Network([*network.weights[:-2], more, A], biases)


def without_skip(network: Network, rng: np.random.Generator) -> Network:
    """Take a skip of low rank for neurons of the last layer that never rest.

    ``V h = A (U h + b) - A b``, with one neuron for each dimension of V's rows.
    """
    if network.skip is None or not len(network.biases[-2]):
        return network
    (V, e), (W, A) = network.skip, network.weights[-2:]
    _, sizes, rows = np.linalg.svd(V, full_matrices=False)
    rank = int((sizes > _NO_SKIP * sizes[0]).sum())
    if _MOST_STEADY < rank >= min(V.shape):
        return network
    stack = Stack(network.dim_in, network.weights[:-2], network.biases[:-2])
    steady = np.array([placed(u, stack, rng) for u in rows[:rank]])
    more = V @ np.linalg.pinv(steady[:, :-1])
    weights = [*network.weights[:-2], np.vstack([W, steady[:, :-1]]), np.hstack([A, more])]
    last = network.biases[-1] + e - more @ steady[:, -1]
    return Network(
        weights, [*network.biases[:-2], np.append(network.biases[-2], steady[:, -1]), last]
    )


def _rarer_states(
    stack: Stack, W: FloatArray, b: FloatArray, is_known: BoolArray, rng: np.random.Generator
) -> FloatArray:
    """Inputs at which neurons that hardly ever change their state have done so, shape (n, d).

    Those of the layer, and those below of which it lacks no entry.
    """
    X = rng.standard_normal((_POOL, stack.dim_in)) * rng.choice(_SPREADS, _POOL)[:, None]
    h = stack.outputs(X)
    positive = h @ W.T + b > 0
    if len(stack):
        positive = np.column_stack([positive, h[:, is_known] > 0])
    rarer = np.where(positive.mean(axis=0) < 1 / 2, positive, ~positive)
    columns = np.flatnonzero(rarer.mean(axis=0) < _RARE)
    chosen = [np.flatnonzero(rarer[:, j])[:_MOST_RARE] for j in columns]
    return np.asarray(X[np.unique(np.concatenate([np.empty(0, dtype=np.intp), *chosen]))])
