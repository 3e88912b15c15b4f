"""One hidden layer above known ones: its rows, that they are all, and their signs.

Kinks of unknown neurons are gathered on segments; those that agree on a row are one neuron's
(``numerics.consensus``); a row is a neuron of this layer if the function bends wherever it
says so, while one of a later layer ends where a neuron below it turns; and the layer is
complete when gradients leave nothing outside the span of the neurons that are on
(``numerics.gradient_signs``).
"""

import logging
from collections.abc import Callable, Sequence

import numpy as np

from revelu.probe.hyperplane import look_across
from revelu.recover.deep.always_active import with_entries, with_steady
from revelu.recover.deep.gradient_signs import SignSearch
from revelu.recover.deep.hypotheses import Judged
from revelu.recover.deep.kink_equations import Equations
from revelu.recover.deep.layer_estimate import FoundLayer
from revelu.recover.deep.rows_from_kinks import RowSearch
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.state import DeepSearch
from revelu.recover.deep.witnesses import Witnesses
from revelu.types import BoolArray, FloatArray, IntArray

log = logging.getLogger(__name__)

# Segments of one round after the other: where the first few tell all, no more are asked.
_SEGMENTS = (8, 16, 24, 24, 24, 24)

# Points that judge a candidate, the fewest live ones, and the share of them that must bend.
_JUDGES = 16
_FEWEST_JUDGES = 4
_BENT = 0.8

# Kinks that must agree on a row: at first, when most are deeper neurons', and when all is solved
# again.
_FEWEST_MEMBERS, _FEWEST_AGAIN = 3, 2

# Borders that speak for a row where no other points can.
_ENOUGH_BORDERS = 4

# What explains fewer of the telling gradients than this lacks a neuron that is mostly on.
_MOSTLY = 0.5

# Rows with more entries unseen come last.
_FEW_UNSEEN = 2

# Rounds that find nothing new end the search.
_QUIET = 2


def find_layer(
    search: DeepSearch,
    segments: Sequence[int] = _SEGMENTS,
    is_in_vain: Callable[[], bool] = lambda: False,
) -> FoundLayer:
    """Find the next layer, above the search's stack.

    Parameters
    ----------
    search : DeepSearch
    segments : sequence of int
        How many to look at in one round after the other; with none only the kinks that are known
        are looked at.
    is_in_vain : callable, optional
        Asked after every round that does not complete the layer whether to stop.

    Returns
    -------
    FoundLayer
    """
    layer = _solved(search, _FEWEST_MEMBERS if segments else _FEWEST_AGAIN)
    quiet = 0
    for n in segments:
        search.gather(layer, n)
        before = len(layer.b), int(layer.unseen.sum())
        layer = _solved(search, _FEWEST_MEMBERS)
        log.info("layer %d: %s", len(search.stack) + 1, layer)
        quiet = quiet + 1 if (len(layer.b), int(layer.unseen.sum())) == before else 0
        is_all = layer.is_complete and not layer.unseen.any() and not layer.n_steady
        if quiet == _QUIET or is_all or (quiet and layer.is_refuted):
            break
        if not layer.is_complete and is_in_vain():
            break
    layer.is_ambiguous = search.judged[len(search.stack)].are_alike
    return layer


def last_layer(search: DeepSearch, layer: FoundLayer) -> FoundLayer:
    """The layer with all rows that bend the function where they say, for one that is the last.

    Gradients may do without some of them: neurons that hardly ever rest are one steady row above
    which nothing changes.  The outputs need them all, and no signs.
    """
    judged = search.judged[len(search.stack)]
    if len(judged.rows) == len(layer.turning.b):
        return layer
    return _layer_of(search, judged)


def _layer_of(search: DeepSearch, judged: Judged) -> FoundLayer:
    W, b = judged.rows[:, :-1], judged.rows[:, -1]
    return FoundLayer(W, b, _ever_on(search) & (W == 0))


def _solved(search: DeepSearch, fewest: int) -> FoundLayer:
    """The layer as kinks and gradients have it."""
    layer = _orient(search, _rows(search, fewest))
    if not layer.unseen.any() or layer.share_explained < _MOSTLY:
        return layer
    whole = with_entries(layer, search.stack, search.witnesses)
    if whole is layer:
        return layer
    judged = search.judged[len(search.stack)]
    # Beside a neuron that never rests an entry may be part its own: it explains, and is not kept.
    if not whole.n_steady:
        for w, b in zip(whole.W, whole.b, strict=True):
            judged.learn(np.append(w, b), keeps_size=search.knows_above)
    return oriented(search, whole)


def _rows(search: DeepSearch, fewest: int) -> FoundLayer:
    """The rows that kinks agree on and that bend the function where they say."""
    stack, witnesses = search.stack, search.witnesses
    m = stack.dim_out
    empty = np.empty((0, m + 1))
    known = search.judged.get(len(stack))
    if known is None or known.rows.shape[1] > m + 1:
        # Of a layer below that has lost rows, nothing above is known any more.
        search.judged = {depth: j for depth, j in search.judged.items() if depth < len(stack)}
        search.above = search.above[: len(stack)]
        search.judged[len(stack)] = Judged(empty, empty, np.empty(0, dtype=np.intp))
    judged = search.judged[len(stack)]
    judged.widened(m + 1)
    left = np.flatnonzero(~stack.explains(witnesses.X))
    if not len(left):
        return FoundLayer(empty[:, :-1], empty[:, -1], np.empty((0, m), dtype=bool))
    equations = _equations(stack, witnesses, left)
    for v, n in (row for u in judged.steady for row in RowSearch().with_biases(equations, u)):
        if judged.refuses(v, n):
            continue
        if _is_neuron(search, v, np.ones(m, dtype=bool)) is False:
            judged.refuse(v, n)
        else:
            judged.learn(v, keeps_size=search.knows_above)
    free = ~search.above.explains(witnesses.X[left])
    for i, v in enumerate(judged.rows):
        grown = RowSearch().grow(equations, v)
        if grown is not None:
            free[grown[1]] = False
            judged.grow(i, grown[0], keeps_size=search.knows_above)
    judged.merge()
    at_border = search.is_border[left]
    for chosen in (free & at_border, free):
        fresh = np.flatnonzero(chosen & free)
        rows = RowSearch().find(equations.take(fresh), in_groups=search.is_last)
        for v, members in rows:
            if len(members) < fewest or judged.refuses(v, len(members)):
                continue
            verdict = _is_neuron(search, v, np.asarray(equations.on[fresh[members]].any(axis=0)))
            if verdict is None:
                # What ends where the network is wrong is what it lacks.
                verdict = at_border[fresh[members]].sum() >= _ENOUGH_BORDERS
            if verdict:
                judged.rows = np.vstack([judged.rows, v])
                judged.is_oriented = False
                free[fresh[members]] = False
            else:
                judged.refuse(v, len(members))
    judged.merge()
    return _layer_of(search, judged)


def _equations(stack: Stack, witnesses: Witnesses, rows: IntArray) -> Equations:
    X = witnesses.X[rows]
    return Equations.of(X, witnesses.normals[rows], *stack.maps(X))


def _ever_on(search: DeepSearch) -> BoolArray:
    """Inputs of the layer that are on anywhere among random inputs."""
    if not len(search.stack):
        return np.ones(search.stack.dim_out, dtype=bool)
    return np.asarray((search.stack.outputs(search.inputs()) > 0).any(axis=0))


def _is_neuron(search: DeepSearch, v: FloatArray, union: BoolArray) -> bool | None:
    """Whether the function bends wherever a row says; None where too few points can tell."""
    stack, X = search.stack, search.inputs()
    h = stack.outputs(X)
    z = h @ v[:-1] + v[-1]
    known = ~(h[:, ~union] > 0).any(axis=1) if len(stack) else np.ones(len(X), dtype=bool)
    on, off = np.flatnonzero(known & (z > 0)), np.flatnonzero(known & (z < 0))
    if not len(on) or not len(off):
        return None
    pairs = search.rng.choice(on, 4 * _JUDGES), search.rng.choice(off, 4 * _JUDGES)
    P, normals = stack.crossings(v[:-1], v[-1], X[pairs[0]], X[pairs[1]])
    if len(stack):
        inside = ~(stack.outputs(P)[:, ~union] > 0).any(axis=1)
        P, normals = P[inside], normals[inside]
    P, normals = P[:_JUDGES], normals[:_JUDGES]
    if not len(P):
        return None
    bent, straight = look_across(search.oracle, search.noise, P, normals)
    live = int(bent.sum() + straight.sum())
    return bool(bent.sum() >= _BENT * live) if live >= _FEWEST_JUDGES else None


def _orient(search: DeepSearch, layer: FoundLayer) -> FoundLayer:
    """Turn every row to its neuron's side, and leave out those that gradients do not need.

    Rows that lack few entries come first, then those and one that never rests; others follow, the
    least doubtful first, only where those do not explain every gradient: where an entry is in
    doubt its neuron counts as on, and with enough of them on all is explained and nothing told.
    """
    n_unseen = layer.unseen.sum(axis=1)
    tried = [layer]
    for most in np.unique(np.maximum(n_unseen, _FEW_UNSEEN)):
        rows = layer.take(np.flatnonzero(n_unseen <= most))
        tried.append(oriented(search, rows))
        if most == _FEW_UNSEEN and not tried[-1].is_complete:
            tried += _steady(search, rows, tried[-1])
        if tried[-1].is_complete:
            break
    found = tried[-1] if tried[-1].is_complete else max(tried, key=lambda y: y.n_explained)
    _set_steady(search, found)
    return found


def _steady(search: DeepSearch, layer: FoundLayer, found: FoundLayer) -> list[FoundLayer]:
    """The layer with a row that never rests, where most gradients lack one."""
    if not len(found.b) or found.share_explained >= _MOSTLY:
        return []
    judged, n_points = search.judged[len(search.stack)], len(search.witnesses.points)
    before, tried = judged.steady, []
    trials = [before] if len(before) else []
    if not judged.was_in_vain(layer, n_points):
        trials.append(before[:0])
    for known in trials:
        with_one = with_steady(layer, known, search.stack, search.witnesses, search.rng)
        if with_one is not None:
            tried.append(oriented(search, with_one))
            if tried[-1].is_complete:
                break
    best = max(tried, key=lambda y: y.n_explained, default=found)
    if best.share_explained >= _MOSTLY:
        return [best]
    judged.set_in_vain(layer, n_points)
    return []


def _set_steady(search: DeepSearch, layer: FoundLayer) -> None:
    """Keep a layer's steady rows; where they are others, nothing above is known any more."""
    depth, n = len(search.stack), layer.n_steady
    rows = np.column_stack([layer.W[:n], layer.b[:n]])
    if not np.array_equal(search.judged[depth].steady, rows):
        search.judged[depth].steady = rows
        search.judged = {i: j for i, j in search.judged.items() if i <= depth}
        search.above = search.above[: depth + 1]


def oriented(search: DeepSearch, layer: FoundLayer) -> FoundLayer:
    """Hold the rows of a layer, on the search's stack, against all gradients known by now."""
    stack, witnesses = search.stack, search.witnesses
    if not len(layer.b) or not len(witnesses.points):
        return layer
    M, h = stack.maps(witnesses.points)
    Z = h @ layer.W.T + layer.b
    judged = search.judged[len(stack)]
    n = layer.n_steady
    is_whole = len(judged.rows) == len(layer.b) - n
    known = (judged.is_oriented and is_whole) or n > 0
    seen = SignSearch().find(
        layer.W, Z, M, witnesses.gradients, search.rng, layer.unseen, oriented=known
    )
    # Steady rows are on with the sign that they have, whatever else.
    signs = np.where(np.arange(len(layer.b)) < n, 1.0, seen.signs)
    layer = FoundLayer(layer.W * signs[:, None], layer.b * signs, layer.unseen, seen, n)
    if is_whole:
        # The layer's rows are the judged ones, turned, and at times with more entries.
        turned = np.column_stack([layer.turning.W, layer.turning.b])
        judged.rows *= np.copysign(1.0, (judged.rows * turned).sum(axis=1))[:, None]
        judged.is_oriented = layer.is_complete
    kept = seen.needed | seen.idle
    if not layer.is_complete or kept.all():
        return layer
    # Without the others their doubts are gone too, and fewer neurons must still explain all.
    return oriented(search, layer.take(np.flatnonzero(kept)))
