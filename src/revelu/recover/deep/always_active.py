"""What gradients say of a deep network's layer that no critical point shows.

A neuron that is always on: what gradients leave outside the span of the others gives its
direction (:mod:`.gradient_rows`).  Its bias is part of those of the next layer, and any will do
that keeps it on.  Where it rests nevertheless, its critical points are looked for: they make it a
neuron like others.

And weights of a row for inputs that were on at none of its critical points.
"""

import numpy as np

from revelu.recover.deep.layer_estimate import FoundLayer
from revelu.recover.deep.state import DeepSearch
from revelu.types import FloatArray


def with_always_on(search: DeepSearch, layer: FoundLayer, known: FloatArray) -> FoundLayer | None:
    """Put a row that is always on before those of a layer that lacks one.

    Parameters
    ----------
    search : DeepSearch
        Its stack is what lies below the layer.
    layer : FoundLayer
        Its rows may have either sign; in the outcome they are turned.
    known : ndarray, shape (s, m + 1)
        The row as found before, if so.

    Returns
    -------
    FoundLayer or None
        None where no one row explains what gradients leave.
    """
    witnesses, how = search.witnesses, search.tuning.always_on
    signs = np.ones(len(layer.b))
    if not len(known):
        points = search.rng.permutation(len(witnesses.points))[: how.max_gradients]
        M, h = search.stack.maps(witnesses.points[points])
        doubtful = np.asarray(M.any(axis=2)) & layer.undetermined.any(axis=0)
        clear = np.flatnonzero(~doubtful.any(axis=1))
        Z = h[clear] @ layer.W.T + layer.b
        gradients = witnesses.gradients[points[clear]]
        found = how.find_row(layer.W, Z, M[clear], gradients, search.rng)
        if found is None:
            return None
        u, signs = found
        known = search.stack.always_on(u, search.rng)[None]
    return FoundLayer(
        np.vstack([known[:, :-1], layer.W * signs[:, None]]),
        np.append(known[:, -1], layer.b * signs),
        np.pad(layer.undetermined, ((len(known), 0), (0, 0))),
        n_always_on=len(known),
    )


def with_weights(search: DeepSearch, layer: FoundLayer) -> FoundLayer:
    """Find undetermined weights, where all other rows are whole and have their signs.

    The layer returned has no orientation if a weight was found.
    """
    witnesses, how = search.witnesses, search.tuning.always_on
    M, h = search.stack.maps(witnesses.points)
    live = np.asarray(M.any(axis=2))
    W, undetermined = layer.W.copy(), layer.undetermined.copy()
    on = h @ W.T + layer.b > 0
    for j in np.flatnonzero(undetermined.any(axis=1)):
        others = np.arange(len(W)) != j
        shows = (live & undetermined[j]).any(axis=1)
        shows &= ~(live & undetermined[others].any(axis=0)).any(axis=1)
        rows = np.flatnonzero(shows)[: how.max_gradients]
        if not len(rows):
            continue
        given = on[rows][:, others], M[rows], witnesses.gradients[rows]
        W[j] = how.find_weights(W[j], undetermined[j], W[others], *given)
        undetermined[j] &= W[j] == 0
    if (undetermined == layer.undetermined).all():
        return layer
    return FoundLayer(W, layer.b, undetermined, n_always_on=layer.n_always_on)
