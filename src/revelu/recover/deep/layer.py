"""One hidden layer above known ones: its rows, that they are all, and their signs.

Witnesses of unknown neurons are gathered on segments; those that agree on a row are one neuron's
(:mod:`.rows_from_kinks`); a row is a neuron of this layer if the function bends wherever it says
so, while one of a later layer ends where a neuron below it turns; and the layer is complete when
gradients leave nothing outside the span of the neurons that are on (:mod:`.gradient_signs`).
"""

import logging
from collections.abc import Callable

import numpy as np

from revelu.probe.hyperplane import look_across
from revelu.recover.deep.always_active import with_always_on, with_weights
from revelu.recover.deep.hypotheses import Hypotheses
from revelu.recover.deep.kink_equations import Equations
from revelu.recover.deep.layer_estimate import FoundLayer
from revelu.recover.deep.state import DeepSearch
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


def find_layer(search: DeepSearch, is_in_vain: Callable[[], bool] = lambda: False) -> FoundLayer:
    """Find the next layer, above the search's stack, on new segments.

    Parameters
    ----------
    is_in_vain : callable, optional
        Asked after every round that does not complete the layer whether to stop.
    """
    tuning = search.tuning
    layer = solve_layer(search, tuning.min_members)
    quiet = 0
    for n in tuning.rounds:
        search.gather(layer, n)
        before = len(layer.b), int(layer.undetermined.sum())
        layer = solve_layer(search, tuning.min_members)
        log.info("layer %d: %s", len(search.stack) + 1, layer)
        quiet = quiet + 1 if (len(layer.b), int(layer.undetermined.sum())) == before else 0
        is_over = quiet == tuning.quiet_rounds or (quiet and layer.is_refuted)
        if is_over or layer.is_determined or (not layer.is_complete and is_in_vain()):
            break
    return layer


def solve_layer(search: DeepSearch, min_members: int | None = None) -> FoundLayer:
    """Find the next layer from the witnesses that there are.

    Parameters
    ----------
    min_members : int, optional
        Critical points that must agree on a row, ``tuning.min_members_again`` by default.
    """
    layer = _orient(search, _rows(search, min_members or search.tuning.min_members_again))
    if layer.undetermined.any() and layer.share_explained >= 0.5:
        whole = with_weights(search, layer)
        # Beside a neuron that is always on a weight may be part its own: it explains, and is not
        # kept.
        if whole is not layer and not whole.n_always_on:
            for v in whole.rows:
                _own(search).learn(v, keeps_size=search.knows_above)
        layer = layer if whole is layer else oriented(search, whole)
    layer.is_ambiguous = _own(search).are_alike()
    return layer


def last_layer(search: DeepSearch, layer: FoundLayer) -> FoundLayer:
    """The layer with all rows that bend the function where they say, for one that is the last.

    Gradients may do without some of them: neurons that hardly ever rest are one row that is always
    on above which nothing changes.  The outputs need them all, and no signs.
    """
    own = _own(search)
    return layer if len(own.rows) == len(layer.turning.b) else _layer_of(search, own)


def _own(search: DeepSearch) -> Hypotheses:
    return search.hypotheses[len(search.stack)]


def _layer_of(search: DeepSearch, own: Hypotheses) -> FoundLayer:
    """The hypotheses as a layer, whose weights of inputs that are ever on may be undetermined."""
    W, b = own.rows[:, :-1], own.rows[:, -1]
    ever_on = np.ones(search.stack.dim_out, dtype=bool)
    if len(search.stack):
        ever_on = np.asarray((search.stack.outputs(search.inputs()) > 0).any(axis=0))
    return FoundLayer(W, b, ever_on & (W == 0))


def _rows(search: DeepSearch, min_members: int) -> FoundLayer:
    """The rows that critical points agree on and that bend the function where they say."""
    stack, witnesses, tuning = search.stack, search.witnesses, search.tuning
    depth, m = len(stack), stack.dim_out
    known = search.hypotheses.get(depth)
    if known is None or known.rows.shape[1] > m + 1:
        # Of a layer below that has lost rows, nothing above is known any more.
        search.forget_from(depth)
        search.hypotheses[depth] = Hypotheses(np.empty((0, m + 1)))
    own = search.hypotheses[depth]
    own.widen(m + 1)
    left = np.flatnonzero(~stack.explains(witnesses.X))
    if not len(left):
        return FoundLayer(np.empty((0, m)), np.empty(0), np.empty((0, m), dtype=bool))
    X = witnesses.X[left]
    equations = Equations.of(X, witnesses.normals[left], *stack.maps(X))
    for v, n in (row for u in own.always_on for row in tuning.rows.with_biases(equations, u)):
        if own.refuses(v, n):
            continue
        if _is_neuron(search, v, np.ones(m, dtype=bool)) is False:
            own.refuse(v, n)
        else:
            own.learn(v, keeps_size=search.knows_above)
    free = ~search.above.explains(X)
    for i, v in enumerate(own.rows):
        grown = tuning.rows.grow(equations, v)
        if grown is not None:
            free[grown[1]] = False
            own.grow(i, grown[0], keeps_size=search.knows_above)
    own.merge()
    at_border = search.is_border[left]
    for chosen in (free & at_border, free):
        fresh = np.flatnonzero(chosen & free)
        for v, members in tuning.rows.find(equations.take(fresh), in_groups=search.is_last):
            if len(members) < min_members or own.refuses(v, len(members)):
                continue
            points = fresh[members]
            verdict = _is_neuron(search, v, np.asarray(equations.on[points].any(axis=0)))
            if verdict is None:
                # What ends where the network is wrong is what it lacks.
                verdict = at_border[points].sum() >= tuning.min_borders
            if verdict:
                own.add(v)
                free[points] = False
            else:
                own.refuse(v, len(members))
    own.merge()
    return _layer_of(search, own)


def _is_neuron(search: DeepSearch, v: FloatArray, union: BoolArray) -> bool | None:
    """Whether the function bends wherever a row says; None where too few points can tell.

    ``union (m,)``: the inputs that the row knows.  Points at which others are on say nothing.
    """
    stack, X, n = search.stack, search.inputs(), search.tuning.n_tests
    # The inputs of the first layer are never off.
    unknown = ~union if len(stack) else np.zeros(len(union), dtype=bool)
    h = stack.outputs(X)
    z = h @ v[:-1] + v[-1]
    known = ~(h[:, unknown] > 0).any(axis=1)
    on, off = np.flatnonzero(known & (z > 0)), np.flatnonzero(known & (z < 0))
    if not len(on) or not len(off):
        return None
    pairs = search.rng.choice(on, 4 * n), search.rng.choice(off, 4 * n)
    P, normals = stack.crossings(v[:-1], v[-1], X[pairs[0]], X[pairs[1]])
    inside = np.flatnonzero(~(stack.outputs(P)[:, unknown] > 0).any(axis=1))[:n]
    if not len(inside):
        return None
    bent, straight = look_across(search.oracle, search.noise, P[inside], normals[inside])
    live = int(bent.sum() + straight.sum())
    enough = live >= search.tuning.min_tests
    return bool(bent.sum() >= search.tuning.bent * live) if enough else None


def _orient(search: DeepSearch, layer: FoundLayer) -> FoundLayer:
    """Turn every row to its neuron's side, and leave out those that gradients do not need.

    Rows with few undetermined weights come first, then those and one that is always on; others
    follow, the least doubtful first, only where those do not explain every gradient: where a weight
    is in doubt its neuron counts as on, and with enough of them on all is explained and nothing
    told.
    """
    few, n_undetermined = search.tuning.few_undetermined, layer.undetermined.sum(axis=1)
    tried = [layer]
    for most in np.unique(np.maximum(n_undetermined, few)):
        rows = layer.take(np.flatnonzero(n_undetermined <= most))
        tried.append(oriented(search, rows))
        if most == few and not tried[-1].is_complete:
            tried += _with_one_always_on(search, rows, tried[-1])
        if tried[-1].is_complete:
            break
    found = tried[-1] if tried[-1].is_complete else max(tried, key=lambda y: y.n_explained)
    always_on = found.rows[: found.n_always_on]
    if not np.array_equal(_own(search).always_on, always_on):
        # Where the rows that are always on are others, nothing above is known any more.
        _own(search).always_on = always_on
        search.forget_from(len(search.stack) + 1)
    return found


def _with_one_always_on(
    search: DeepSearch, layer: FoundLayer, found: FoundLayer
) -> list[FoundLayer]:
    """The layer with a row that is always on, where most gradients lack one."""
    if not len(found.b) or found.share_explained >= 0.5:
        return []
    own, how, n_points = _own(search), search.tuning.always_on, len(search.witnesses.points)
    among = len(layer.b), int(layer.undetermined.sum()), n_points
    before, tried = own.always_on, []
    trials = [before] if len(before) else []
    if not own.was_in_vain(among, how):
        trials.append(before[:0])
    for known in trials:
        one = with_always_on(search, layer, known)
        if one is not None:
            tried.append(oriented(search, one))
            if tried[-1].is_complete:
                break
    best = max(tried, key=lambda y: y.n_explained, default=found)
    if best.share_explained >= 0.5:
        return [best]
    own.set_in_vain(among, how.work(layer.W, n_points))
    return []


def oriented(search: DeepSearch, layer: FoundLayer) -> FoundLayer:
    """Hold the rows of a layer, on the search's stack, against all gradients known by now."""
    witnesses = search.witnesses
    if not len(layer.b) or not len(witnesses.points):
        return layer
    M, h = search.stack.maps(witnesses.points)
    Z = h @ layer.W.T + layer.b
    own, n = _own(search), layer.n_always_on
    is_whole = len(own.rows) == len(layer.b) - n
    known = (own.is_oriented and is_whole) or n > 0
    given = layer.W, Z, M, witnesses.gradients
    seen = search.tuning.signs.find(*given, search.rng, layer.undetermined, oriented=known)
    # Rows that are always on are so with the sign that they have, whatever else.
    signs = np.where(np.arange(len(layer.b)) < n, 1.0, seen.signs)
    layer = FoundLayer(layer.W * signs[:, None], layer.b * signs, layer.undetermined, seen, n)
    if is_whole:
        # The layer's rows are the hypotheses, turned, and at times with more entries.
        own.rows *= np.copysign(1.0, (own.rows * layer.turning.rows).sum(axis=1))[:, None]
        own.is_oriented = layer.is_complete
    kept = seen.needed | seen.idle
    if not layer.is_complete or kept.all():
        return layer
    # Without the others their doubts are gone too, and fewer neurons must still explain all.
    return oriented(search, layer.take(np.flatnonzero(kept)))
