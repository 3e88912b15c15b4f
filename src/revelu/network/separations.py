"""How near hyperplanes come to each other, and to the kinks of others."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from revelu.network.arrangement import Arrangement, AxisCut
from revelu.types import FloatArray

# Figures that come from weights are equal up to rounding if they differ by no more.
EQUAL = 64.0 * float(np.finfo(np.float64).eps)


def distance(n1: FloatArray, n2: FloatArray) -> float:
    """The distance of two hyperplanes with unit normals (d,), ``sqrt(1 - <n1, n2>^2)``.

    As ``|n1 - n2|^2 = 2 - 2 c`` and ``|n1 + n2|^2 = 2 + 2 c``, it is half the product of
    the two lengths, which loses no digits where ``c`` is near 1.

    Examples
    --------
    >>> round(distance(np.array([1.0, 0.0]), np.array([0.6, 0.8])), 12)
    0.8
    """
    return float(np.linalg.norm(n1 - n2) * np.linalg.norm(n1 + n2) / 2.0)


def clearances(found: Arrangement, cut: AxisCut) -> FloatArray:
    """Distance of each kink of a cut from the nearest hyperplane that is not its own, shape (n,).

    It is infinite where the kink's own hyperplane is unknown, or the only one.
    """
    clear = np.full(len(cut.kinks), np.inf)
    for i, (t, own) in enumerate(zip(cut.kinks, cut.hyperplanes, strict=True)):
        if own >= 0 and len(found.normals) > 1:
            apart = np.abs(found.normals[:, cut.axis] * t + found.offsets)
            apart[own] = np.inf
            clear[i] = apart.min()
    return clear


def rooms(found: Arrangement) -> FloatArray:
    """How far from each critical point a step may go, shape (n_kinks,).

    That is half of the shorter piece beside it, and no farther than the nearest other
    hyperplane; beside unbounded pieces alone, the distance from the origin, at least 1.
    The kinks of all cuts follow one another.
    """
    found_rooms = [np.empty(0)]
    for cut in found.cuts:
        ends = np.concatenate([[-np.inf], cut.kinks, [np.inf]])
        halves = np.diff(ends) / 2.0
        room = np.minimum(halves[:-1], halves[1:])
        room = np.where(np.isinf(room), np.maximum(np.abs(cut.kinks), 1.0), room)
        found_rooms.append(np.minimum(room, clearances(found, cut)))
    return np.concatenate(found_rooms)


def nearest_pair(
    found: Arrangement, *, parallel: float = 1e-6, n_rows: int = 512
) -> tuple[int, int] | None:
    """The two hyperplanes that are most parallel, but for those that cannot be otherwise.

    Below a first layer of which one neuron ``w`` alone is on, every neuron's input has a
    gradient along ``w``: condition 4 as printed fails in any network that an axis takes
    through such a state, which Lemma 5 overlooks.  Such hyperplanes never meet, and do no
    harm.

    Parameters
    ----------
    parallel : float
        Tied hyperplanes are excused where the sine of their angle is no larger.
    n_rows : int
        Rows of the Gram matrix of the normals that are held at a time.

    Returns
    -------
    (int, int) or None
        None where there are no two to compare.
    """
    normals, tied = found.normals, found.tied
    best, least = None, np.inf
    for first in range(0, len(normals), n_rows):
        G = np.abs(normals[first : first + n_rows] @ normals.T)
        G[np.arange(len(G)), first + np.arange(len(G))] = -1.0
        # 1 - c is half of the square of a small sine.
        excused = tied[first : first + n_rows, None] | tied
        G[excused & (parallel**2 / 2.0 >= 1.0 - G)] = -1.0
        # The exact formula decides among cosines that tie up to rounding.
        least_cosine = max(float(G.max()) - EQUAL, 0.0)
        for i, j in np.argwhere(least_cosine <= G)[:n_rows]:
            apart = distance(normals[first + i], normals[j])
            if apart < least:
                best, least = (first + int(i), int(j)), apart
    return best


def state_distances(found: Arrangement) -> Iterator[float]:
    """Yield how far apart the hyperplanes of a deeper neuron are in two states of lower layers.

    That is the largest difference of normals or offsets, for each pair of states of an
    arrangement from weights.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for i, (layer, j, _) in enumerate(found.neurons or ()):
        if layer:
            groups.setdefault((layer, j), []).append(i)
    rows = np.column_stack([found.normals, found.offsets])
    for members in groups.values():
        for a, b in combinations(members, 2):
            apart = min(np.abs(rows[a] - rows[b]).max(), np.abs(rows[a] + rows[b]).max())
            yield float(apart / max(abs(rows[a][-1]), 1.0))
