"""What gradients say of a deep network's layer that no critical point shows.

A neuron that is always on: what gradients leave outside the span of the others gives its
direction (:mod:`.gradient_rows`).  Its bias is part of those of the next layer, and any will do
that keeps it on.  Where it rests nevertheless, its critical points are looked for: they make it a
neuron like others.

And weights of a row for inputs that were on at none of its critical points.
"""

import numpy as np

from revelu.recover.deep.gradient_rows import AlwaysOnSearch
from revelu.recover.deep.layer_estimate import FoundLayer
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.witnesses import Witnesses
from revelu.types import FloatArray


def with_always_on(
    search: AlwaysOnSearch,
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

    Returns
    -------
    FoundLayer or None
        None where no one row explains what gradients leave.
    """
    signs = np.ones(len(layer.b))
    if not len(known):
        points = rng.permutation(len(witnesses.points))[: search.max_gradients]
        M, h = stack.maps(witnesses.points[points])
        doubtful = np.asarray(M.any(axis=2)) & layer.undetermined.any(axis=0)
        clear = np.flatnonzero(~doubtful.any(axis=1))
        Z = h[clear] @ layer.W.T + layer.b
        found = search.find_row(layer.W, Z, M[clear], witnesses.gradients[points[clear]], rng)
        if found is None:
            return None
        u, signs = found
        known = placed(u, stack, rng)[None]
    return FoundLayer(
        np.vstack([known[:, :-1], layer.W * signs[:, None]]),
        np.append(known[:, -1], layer.b * signs),
        np.pad(layer.undetermined, ((len(known), 0), (0, 0))),
        n_always_on=len(known),
    )


def with_weights(
    search: AlwaysOnSearch, layer: FoundLayer, stack: Stack, witnesses: Witnesses
) -> FoundLayer:
    """Find undetermined weights, where all other rows are whole and have their signs.

    Parameters
    ----------
    search, layer, stack, witnesses
        As for :func:`with_always_on`.

    Returns
    -------
    FoundLayer
        Without orientation where a weight was found.
    """
    M, h = stack.maps(witnesses.points)
    live = np.asarray(M.any(axis=2))
    W, undetermined = layer.W.copy(), layer.undetermined.copy()
    on = h @ W.T + layer.b > 0
    for j in np.flatnonzero(undetermined.any(axis=1)):
        others = np.arange(len(W)) != j
        shows = (live & undetermined[j]).any(axis=1)
        shows &= ~(live & undetermined[others].any(axis=0)).any(axis=1)
        rows = np.flatnonzero(shows)[: search.max_gradients]
        if not len(rows):
            continue
        given = on[rows][:, others], M[rows], witnesses.gradients[rows]
        W[j] = search.find_weights(W[j], undetermined[j], W[others], *given)
        undetermined[j] &= W[j] == 0
    if (undetermined == layer.undetermined).all():
        return layer
    return FoundLayer(W, layer.b, undetermined, n_always_on=layer.n_always_on)


def placed(
    u: FloatArray,
    stack: Stack,
    rng: np.random.Generator,
    *,
    n_inputs: int = 3000,
    spreads: tuple[float, ...] = (1.0, 3.0, 10.0),
    away: float = 2.0,
) -> FloatArray:
    """Give a row the sign and a bias with which it is always on.

    Parameters
    ----------
    u : ndarray, shape (m,)
    stack : Stack
        The layers below.
    n_inputs : int
        Inputs that it is on at.
    spreads : tuple of float
        Their standard deviations.
    away : float
        How far its sum stays from 0 there, relative to how near it would come without a bias.

    Returns
    -------
    ndarray, shape (m + 1,)
    """
    sums = stack.outputs(stack.draw(n_inputs, spreads, rng)) @ u
    sign = 1.0 if sums.max() >= -sums.min() else -1.0
    least = -float((sign * sums).min())
    return np.append(sign * u, away * max(least, 0.0) + float(np.abs(sums).mean()))
