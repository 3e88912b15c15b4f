"""How regular a network is: each condition of Definition 1 as a figure.

Source: Daniely & Granot 2023 (DG21), section 3.2.2 and appendix A.  A network is
``delta``-regular if every condition holds with that ``delta``; here each condition gets
the largest ``delta`` with which it holds, and the network the smallest of those.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from revelu.network.arrangement import Arrangement
from revelu.network.separations import (
    EQUAL,
    clearances,
    distance,
    nearest_pair,
    state_distances,
)
from revelu.numerics.confidence import SIGMAS

# Float64 resolves eps/delta at |t| = 1/delta, which must not exceed delta^2.
_FINEST = float(np.finfo(np.float64).eps) ** (1.0 / 3.0)


@dataclass(frozen=True)
class Condition:
    """One condition of Definition 1.

    Attributes
    ----------
    number : str
        As in Definition 1; ``1.2`` is requirement (2) of a nice function.
    name : str
        One word, for scripts.
    text : str
        What was measured, with the figure and where.
    delta : float or None
        The largest delta that the condition allows; None where it asks for none, or
        nothing was there to measure.
    holds : bool or None
        None where it could not be seen.
    at_most : bool
        Whether ``delta`` is an upper bound: what is nearer could not be resolved.
    """

    number: str
    name: str
    text: str
    delta: float | None = None
    holds: bool | None = True
    at_most: bool = False


@dataclass(frozen=True)
class Regularity:
    """The conditions of Definition 1, measured.

    Attributes
    ----------
    n_axes, n_kinks, n_hyperplanes : int
        What they were measured on.
    """

    conditions: tuple[Condition, ...]
    n_axes: int
    n_kinks: int
    n_hyperplanes: int

    @property
    def delta(self) -> float:
        """The largest delta with which all that was measured holds; 0 where one fails."""
        if any(c.holds is False for c in self.conditions):
            return 0.0
        return min([1.0, *(c.delta for c in self.conditions if c.delta is not None)])

    @property
    def at_risk(self) -> Condition | None:
        """The condition that fails, or else allows the smallest delta; None without kinks.

        The grid, which only makes the delta of the others a little smaller, is named
        where it fails.
        """
        failed = [c for c in self.conditions if c.holds is False]
        measured = [c for c in self.conditions if c.delta is not None and c.name != "grid"]
        return min(failed or measured, key=lambda c: c.delta or 0.0, default=None)

    def __getitem__(self, name: str) -> Condition:
        """The condition of that name.

        Raises
        ------
        KeyError
            If there is none.
        """
        for condition in self.conditions:
            if condition.name == name:
                return condition
        raise KeyError(name)


def regularity(found: Arrangement, top: Regularity | None = None) -> Regularity:
    """Measure the conditions of Definition 1.

    Parameters
    ----------
    top : Regularity, optional
        Of the sub-network of the top two layers, for condition 7.
    """
    kinks = [
        *_nearest_and_farthest_kink(found),
        _shortest_piece(found),
        _shared_piece(found),
    ]
    others = [
        _degeneracy(found),
        _shared_hyperplane(found),
        _hyperplane_distance(found),
        _axis_angle(found),
        _layer_state(found),
    ]
    if top is not None:
        others.append(_top_layers(top))
    deltas = [c.delta for c in (*kinks, *others) if c.delta is not None]
    grid = _grid(found, min([1.0, *deltas]))
    return Regularity(
        conditions=(*kinks, grid, *others),
        n_axes=len(found.cuts),
        n_kinks=sum(len(cut.kinks) for cut in found.cuts),
        n_hyperplanes=len(found.normals),
    )


def _nearest_and_farthest_kink(found: Arrangement) -> list[Condition]:
    names = ("nearest_kink", "farthest_kink")
    places = [(abs(float(t)), cut.axis) for cut in found.cuts for t in cut.kinks]
    if not places:
        return [Condition("1.1", name, "no kink on the axes seen") for name in names]
    (near, i), (far, j) = min(places), max(places)
    delta = 1.0 / far if far else None
    return [
        Condition("1.1", names[0], f"a kink {near:.2g} from 0, on axis {i}", near, near > 0),
        Condition("1.1", names[1], f"a kink as far as {far:.3g}, on axis {j}", delta),
    ]


def _shortest_piece(found: Arrangement) -> Condition:
    number, name = "1.2", "shortest_piece"
    places = []
    for cut in found.cuts:
        ends = np.concatenate([[cut.start] if np.isfinite(cut.start) else [], cut.kinks])
        if len(ends) > 1:
            gaps = np.diff(ends)
            i = int(np.argmin(gaps))
            places.append((float(gaps[i]), False, cut.axis, float(ends[i])))
        if cut.n_clusters:
            places.append((cut.cluster_width, True, cut.axis, np.nan))
    if not places:
        return Condition(number, name, "no axis seen has a piece between two kinks")
    gap, at_most, axis, t = min(places)
    text = f"a piece {gap:.2g} long, on axis {axis} at {t:.4g}"
    if at_most:
        text = f"kinks less than {gap:.2g} apart on axis {axis}, which cannot be told apart"
    return Condition(number, name, text, gap, at_most=at_most)


def _shared_piece(found: Arrangement) -> Condition:
    """Two pieces of one axis with the same affine function (neighbours always differ)."""
    number, name = "1.3", "shared_piece"
    hidden = [cut.axis for cut in found.cuts if cut.n_hidden]
    if hidden:
        text = f"something on axis {hidden[0]} hides from bisection between two equal pieces"
        return Condition(number, name, text, holds=False)
    least, where = np.inf, 0
    n_shared = 0
    for cut in found.cuts:
        size = float(np.linalg.norm(cut.pieces, axis=(1, 2)).max())
        for i, j in combinations(range(len(cut.pieces)), 2):
            if j == i + 1:
                continue
            apart = float(np.linalg.norm(cut.pieces[i] - cut.pieces[j]))
            error = np.hypot(cut.errors[i], cut.errors[j])
            if apart <= max(SIGMAS * error, EQUAL * size):
                n_shared += 1
            if size > 0 and apart / size < least:
                least, where = apart / size, cut.axis
    if np.isinf(least):
        return Condition(number, name, "no axis seen has two pieces that do not touch")
    if n_shared:
        text = f"{n_shared} pairs of pieces share one affine function: bisection misses between"
        return Condition(number, name, text, holds=False)
    return Condition(number, name, f"pieces differ by {least:.2g} of their size (axis {where})")


def _grid(found: Arrangement, largest: float) -> Condition:
    """The largest delta, up to that of the others, whose grid keeps delta^2 from kinks.

    The grid is ``2^-ceil(log2(2 / delta^2)) / delta`` times the whole numbers: its
    spacing is between delta / 4 and delta / 2.  Each delta tried is an eighth of an octave
    smaller than the one before.
    """
    number, name = "1.4", "grid"
    kinks = np.concatenate([np.empty(0), *(cut.kinks for cut in found.cuts)])
    if not len(kinks):
        return Condition(number, name, "no kink on the axes seen")
    delta = largest
    while delta >= _FINEST:
        spacing = 2.0 ** -np.ceil(np.log2(2.0 / delta**2)) / delta
        apart = np.abs(kinks - spacing * np.rint(kinks / spacing))
        if apart.min() >= delta**2:
            text = f"the search grid keeps {delta**2:.2g} away from every kink"
            return Condition(number, name, text, delta)
        delta *= 2.0**-0.125
    text = "a grid for so small a delta is finer than float64"
    return Condition(number, name, text, holds=None)


def _degeneracy(found: Arrangement) -> Condition:
    number, name = "2", "degeneracy"
    places = []
    for cut in found.cuts:
        clear = clearances(found, cut)
        if len(clear) and np.isfinite(clear.min()):
            i = int(np.argmin(clear))
            places.append((float(clear[i]), cut.axis, float(cut.kinks[i])))
    if not places:
        return Condition(number, name, "no critical point with another hyperplane to come near")
    apart, axis, t = min(places)
    text = f"the kink at {t:.4g} on axis {axis} is {apart:.2g} from another hyperplane"
    return Condition(number, name, text, apart, apart > 0)


def _shared_hyperplane(found: Arrangement) -> Condition:
    number, name = "3", "shared_hyperplane"
    if found.neurons is None:
        text = "not seen by queries: neurons on one hyperplane answer as one"
        return Condition(number, name, text, holds=None)
    if found.n_shared:
        text = f"{found.n_shared} neurons share the hyperplane of another: they come back merged"
        return Condition(number, name, text, holds=False)
    return Condition(number, name, "each hyperplane belongs to a single neuron")


def _hyperplane_distance(found: Arrangement) -> Condition:
    number, name = "4", "hyperplane_distance"
    pair = nearest_pair(found)
    if pair is None:
        return Condition(number, name, "no two hyperplanes to compare")
    i, j = pair
    apart = distance(found.normals[i], found.normals[j])
    error = SIGMAS * float(np.hypot(found.errors[i], found.errors[j])) * found.dim_in**0.5
    at_most = apart <= max(error, EQUAL)
    text = f"the normals of two hyperplanes differ by an angle whose sine is {apart:.2g}"
    if found.tied.any():
        text += " (parallel ones where one neuron alone is on not counted)"
    if at_most:
        apart = max(apart, error)
        text = f"two hyperplanes are parallel{_as_far(found, apart)}"
    holds = found.neurons is None or apart > EQUAL
    return Condition(number, name, text, apart, holds, at_most)


def _axis_angle(found: Arrangement) -> Condition:
    number, name = "5", "axis_angle"
    if not len(found.normals):
        return Condition(number, name, "no hyperplane seen")
    sines = np.abs(found.normals)
    i, axis = (int(k) for k in np.unravel_index(np.argmin(sines), sines.shape))
    sine, error = float(sines[i, axis]), SIGMAS * float(found.errors[i])
    at_most = sine <= error
    text = f"a hyperplane meets axis {axis} at an angle whose sine is {sine:.2g}"
    if sine == 0.0 or at_most:
        sine = max(sine, error)
        text = f"a hyperplane is parallel to axis {axis}{_as_far(found, sine)}"
    holds = found.neurons is None or sine > 0.0
    return Condition(number, name, text, sine, holds, at_most)


def _as_far(found: Arrangement, error: float) -> str:
    return "" if found.neurons is not None else f", as far as can be seen (to {error:.1g})"


def _layer_state(found: Arrangement) -> Condition:
    """Hyperplanes of one deeper neuron in two states of the layers below must differ."""
    number, name = "6", "layer_state"
    if found.neurons is None:
        text = "not seen by queries: the states of the first layer do not show"
        return Condition(number, name, text, holds=None)
    least = min(state_distances(found), default=np.inf)
    if np.isinf(least):
        return Condition(number, name, "no neuron is met in two states of the layer below")
    if least <= EQUAL:
        text = "a hyperplane goes on unbent where the state of the first layer changes"
        return Condition(number, name, text, holds=False)
    return Condition(number, name, f"bends of deeper hyperplanes are {least:.2g} or more")


def _top_layers(top: Regularity) -> Condition:
    risk = top.at_risk
    text = "the top two layers, on the positive half-axes of the last hidden layer but one"
    if risk is None:
        return Condition("7", "top_layers", f"{text}: no kink")
    detail = f"{text}: {risk.text} (condition {risk.number})"
    failed = any(c.holds is False for c in top.conditions)
    return Condition("7", "top_layers", detail, None if failed else top.delta, not failed)
