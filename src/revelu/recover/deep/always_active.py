"""What gradients say of a deep network's layer that no kink shows.

A neuron that never rests: what gradients leave outside the span of the others gives its direction
(``numerics.gradient_rows``).  Its bias is part of those of the next layer, and any will do that
keeps it on.  Where it rests nevertheless, its kinks are looked for: they make it a neuron like
others.

And entries of a row for inputs that were on at none of its kinks.
"""

import numpy as np

from revelu.recover.deep.gradient_rows import AlwaysOnSearch
from revelu.recover.deep.layer_estimate import FoundLayer
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.witnesses import Witnesses
from revelu.types import FloatArray, IntArray

# Gradients that are looked at.
_MOST_POINTS = 2000

# Inputs that it is on at, their spreads, and how far its sum stays from 0 there, relative to how
# near it would come without a bias.
_POOL = 3000
_SPREADS = (1.0, 3.0, 10.0)
_AWAY = 2.0

# Inputs among which those are chosen at which its sum is least and largest, and how many.
_EXTREME_POOL = 20_000
_EXTREMES = 4


def with_steady(
    layer: FoundLayer,
    known: FloatArray,
    stack: Stack,
    witnesses: Witnesses,
    rng: np.random.Generator,
) -> FoundLayer | None:
    """Put a row that is always on before those of a layer that lacks one.

    Parameters
    ----------
    layer : FoundLayer
        Its rows may have either sign; in the outcome they are turned.
    known : ndarray, shape (s, m + 1)
        The row as found before, if so.
    stack : Stack
        The layers below.
    witnesses : Witnesses
    rng : numpy.random.Generator

    Returns
    -------
    FoundLayer or None
        None where no one row explains what gradients leave.
    """
    signs = np.ones(len(layer.b))
    if not len(known):
        points = rng.permutation(len(witnesses.points))[:_MOST_POINTS]
        M, h = stack.maps(witnesses.points[points])
        doubtful = np.asarray(M.any(axis=2)) & layer.unseen.any(axis=0)
        clear = np.flatnonzero(~doubtful.any(axis=1))
        Z = h[clear] @ layer.W.T + layer.b
        found = AlwaysOnSearch().find_row(
            layer.W, Z, M[clear], witnesses.gradients[points[clear]], rng
        )
        if found is None:
            return None
        u, signs = found
        known = placed(u, stack, rng)[None]
    return FoundLayer(
        np.vstack([known[:, :-1], layer.W * signs[:, None]]),
        np.append(known[:, -1], layer.b * signs),
        np.vstack([np.zeros((len(known), layer.W.shape[1]), dtype=bool), layer.unseen]),
        n_steady=len(known),
    )


def with_entries(layer: FoundLayer, stack: Stack, witnesses: Witnesses) -> FoundLayer:
    """Find entries that no kink has shown, where all other rows are whole and have their signs.

    Parameters
    ----------
    layer : FoundLayer
    stack : Stack
        The layers below.
    witnesses : Witnesses

    Returns
    -------
    FoundLayer
        Without orientation where an entry was found.
    """
    M, h = stack.maps(witnesses.points)
    live = np.asarray(M.any(axis=2))
    W, unseen = layer.W.copy(), layer.unseen.copy()
    on = h @ W.T + layer.b > 0
    for j in np.flatnonzero(unseen.any(axis=1)):
        others = np.arange(len(W)) != j
        told = (live & unseen[j]).any(axis=1) & ~(live & unseen[others].any(axis=0)).any(axis=1)
        rows = np.flatnonzero(told)[:_MOST_POINTS]
        if not len(rows):
            continue
        W[j] = AlwaysOnSearch().find_weights(
            W[j], unseen[j], W[others], on[rows][:, others], M[rows], witnesses.gradients[rows]
        )
        unseen[j] &= W[j] == 0
    if (unseen == layer.unseen).all():
        return layer
    return FoundLayer(W, layer.b, unseen, n_steady=layer.n_steady)


def pairs_across(
    layer: FoundLayer, places: IntArray, stack: Stack, X: FloatArray, rng: np.random.Generator
) -> list[tuple[FloatArray, FloatArray]]:
    """Pairs of inputs at which an entry's input is on, and between which a row's sum turns.

    Parameters
    ----------
    layer : FoundLayer
    places : ndarray of int, shape (n, 2)
        Rows and columns of the entries.
    stack : Stack
        The layers below.
    X : ndarray, shape (n, d)
        Inputs among which they are chosen.
    rng : numpy.random.Generator
    """
    h, pairs = stack.outputs(X), []
    for j, i in places:
        live = np.flatnonzero(h[:, i] > 0)
        z = h[live] @ layer.W[j] + layer.b[j]
        on, off = live[z > 0], live[z <= 0]
        if len(on) and len(off):
            pairs.append((X[rng.choice(on)], X[rng.choice(off)]))
        elif len(live) > 1:
            # What the entry itself adds may turn it.
            pairs.append((X[live[z.argmax()]], X[live[z.argmin()]]))
    return pairs


def extreme_pairs(
    w: FloatArray, stack: Stack, rng: np.random.Generator
) -> list[tuple[FloatArray, FloatArray]]:
    """Pairs of inputs between which a row's sum goes from the least to the largest there is."""
    X = rng.standard_normal((_EXTREME_POOL, stack.dim_in))
    order = np.argsort(stack.outputs(X) @ w)
    return list(zip(X[order[:_EXTREMES]], X[order[-_EXTREMES:]], strict=True))


def placed(u: FloatArray, stack: Stack, rng: np.random.Generator) -> FloatArray:
    """Give a row (m,) the sign and a bias with which it is always on, shape (m + 1,)."""
    X = rng.standard_normal((_POOL, stack.dim_in)) * rng.choice(_SPREADS, _POOL)[:, None]
    sums = stack.outputs(X) @ u
    sign = 1.0 if sums.max() >= -sums.min() else -1.0
    least = -float((sign * sums).min())
    return np.append(sign * u, _AWAY * max(least, 0.0) + float(np.abs(sums).mean()))
