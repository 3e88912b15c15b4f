"""Lines of neurons of two inputs, by the bends of polygons.

A bend is a point of its neuron's line, and its edges leave the direction open: their affine maps
F before and G behind it make that of the neuron, ``r G - F``, for any ratio r > 0 of slopes.  Three
bends on a line are one neuron's.  Elsewhere a neuron bends all borders that its line meets: so
two bends have a line in common only where it crosses no edge, and a bend alone has only ratios,
in some intervals, whose lines cross none.

A line that crosses no edge bends no border, and may part borders that do not meet: what its
neuron adds behind it is the same for all of them there.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.float64 import EPS
from revelu.numerics.records import Records
from revelu.probe.heights import input_sizes
from revelu.recover.labels.polygons import EdgeEnd, Polygons, tangents
from revelu.types import BoolArray, FloatArray, IntArray

QUARTERS = (0.25, 0.75)
"""Places in a gap on both sides of its middle."""


@dataclass(frozen=True)
class Collinearity:
    """When bends are on a line."""

    room: float = 10.0
    """They are within ``room`` times their errors,"""
    precise: float = 1e-8
    """three of them that are known so precisely, which chance hardly ever brings about."""
    floor: float = EPS
    """No vertex is known better, relative to its size."""
    nearest: float = 1e-6
    """Bends that are nearer have no line, and lines that differ by less in direction are one."""


@dataclass(frozen=True, eq=False)
class BentEdges(Records):
    """Bends of polygons, struct of arrays."""

    vertex: IntArray
    before: IntArray
    behind: IntArray
    """Shape (n,).  Of which vertex, and of which edges."""
    X: FloatArray
    """Shape (n, 2)."""
    F: FloatArray
    G: FloatArray
    """Shape (n, 3).  Lines of the edges before and behind."""
    U: FloatArray
    R: FloatArray
    """Shape (n, 2).  Unit vectors from the bend along the edges before and behind."""
    sign: FloatArray
    """Shape (n,).  Of what the neuron adds to the difference of outputs behind it."""
    err: FloatArray
    """Shape (n,).  About how far off the vertices are."""


@dataclass(frozen=True, eq=False)
class NeuronLine:
    """A line, ``V (3,)``, on which bends ``on`` are that one neuron has made.

    Where it crosses an ``edge`` without a bend, both of its classes get the same there.
    """

    V: FloatArray
    on: IntArray
    edge: int | None = None


def bends_of(polygons: Polygons, collinearity: Collinearity) -> BentEdges:
    """All vertices at which one border goes on in another direction."""
    edges, ends = polygons.edges, polygons.ends
    at = [(v, e) for v in range(len(polygons.vertices)) if len(e := polygons.at(v)) == 2]
    rows = [(v, i, j) for v, (i, j) in at if edges.a[i] == edges.a[j] and edges.b[i] == edges.b[j]]
    vertex, before, behind = np.array(rows, np.intp).reshape(-1, 3).T
    along = tangents(edges.F)
    U, R = (along[e] * np.where(ends[e, 0] == vertex, 1.0, -1.0)[:, None] for e in (before, behind))
    F, G, X = edges.F[before], edges.F[behind], polygons.vertices[vertex]
    sine = np.abs(F[:, 0] * G[:, 1] - F[:, 1] * G[:, 0])
    size = input_sizes(X)
    off = edges.off[before] + edges.off[behind] + collinearity.floor * size
    sign = -np.sign((F[:, :2] * R).sum(axis=1))
    return BentEdges(vertex, before, behind, X, F, G, U, R, sign, collinearity.room * off / sine)


def crosses(polygons: Polygons, V: FloatArray, vertices: IntArray) -> BoolArray:
    """Whether lines ``V (n, 3)`` cross edges beside their vertices ``(n, k)``, (n,)."""
    T, U = polygons.extents, tangents(polygons.edges.F)
    s = np.empty((len(V), len(U), 2))
    for side, way in enumerate((-1.0, 1.0)):
        at = polygons.edges.X + np.nan_to_num(T[:, side], posinf=0.0, neginf=0.0)[:, None] * U
        far = polygons.ends[:, side] == EdgeEnd.FAR
        points = np.where(
            far[:, None],
            np.column_stack([way * U, np.zeros(len(U))]),
            np.column_stack([at, np.ones(len(U))]),
        )
        own = (polygons.ends[:, side][None, :, None] == vertices[:, None, :]).any(axis=2)
        s[:, :, side] = np.where(own, 0.0, np.sign(V @ points.T))
    return np.asarray((s.prod(axis=2) < 0).any(axis=1))


def parts(bends: BentEdges, V: FloatArray, rows: IntArray, least: float) -> BoolArray:
    """Whether lines ``V (n, 3)`` part the edges of bends ``rows (n,)``, (n,)."""
    u, r = ((V[:, :2] * some[rows]).sum(axis=1) for some in (bends.U, bends.R))
    return np.asarray((u * r < 0) & (np.minimum(np.abs(u), np.abs(r)) > least))


def find_lines(polygons: Polygons, bends: BentEdges, tuning: Collinearity) -> list[NeuronLine]:
    """Lines on which there are three bends or more, those of the most first."""
    H = np.column_stack([bends.X, np.ones(len(bends))])
    found: list[tuple[int, FloatArray, IntArray]] = []
    for i in range(len(bends)):
        V = np.cross(H[i], H[i + 1 :])
        length = np.linalg.norm(V[:, :2], axis=1)
        j = np.flatnonzero(length > tuning.nearest)
        V = V[j] / length[j, None]
        t = np.column_stack([-V[:, 1], V[:, 0]]) @ (bends.X - bends.X[i]).T
        share = t / t[np.arange(len(j)), i + 1 + j][:, None]
        err = bends.err[i] * np.abs(1.0 - share) + bends.err[i + 1 + j, None] * np.abs(share)
        err += bends.err
        near = np.abs(V @ H.T) < err
        count = (near & (err < tuning.precise)).sum(axis=1)
        found += [(int(near[k].sum()), V[k], near[k].nonzero()[0]) for k in np.where(count > 2)[0]]
    free, lines = np.ones(len(bends), bool), []
    for _, V, on in sorted(found, key=lambda one: -one[0]):
        if free[on].all() and _is_line(polygons, bends, V, on, tuning):
            lines.append(NeuronLine(V, on))
            free[on] = False
    return lines


def _is_line(
    polygons: Polygons, bends: BentEdges, V: FloatArray, on: IntArray, tuning: Collinearity
) -> bool:
    """Whether one neuron may have made bends: of the same classes, all turn to the same side."""
    every = np.tile(V, (len(on), 1))
    if not parts(bends, every, on, tuning.nearest).all():
        return False
    if crosses(polygons, V[None], bends.vertex[on][None])[0]:
        return False
    a, b = polygons.edges.a[bends.before[on]], polygons.edges.b[bends.before[on]]
    turns = {(x, y): s for x, y, s in zip(a, b, bends.sign[on], strict=True)}
    return all(turns[x, y] == s for x, y, s in zip(a, b, bends.sign[on], strict=True))


def find_pairs(
    polygons: Polygons, bends: BentEdges, left: IntArray, tuning: Collinearity
) -> list[NeuronLine]:
    """Lines through two of the bends ``left`` that one neuron may have made."""
    i, j = (left[side] for side in np.triu_indices(len(left), 1))
    H = np.column_stack([bends.X, np.ones(len(bends))])
    V = np.cross(H[i], H[j])
    length = np.linalg.norm(V[:, :2], axis=1)
    kept = np.flatnonzero(length > tuning.nearest)
    i, j, V = i[kept], j[kept], V[kept] / length[kept, None]
    edges = polygons.edges
    one, other = bends.before[i], bends.before[j]
    alike = (edges.a[one] == edges.a[other]) & (edges.b[one] == edges.b[other])
    good = ~alike | (bends.sign[i] == bends.sign[j])
    good &= parts(bends, V, i, tuning.nearest) & parts(bends, V, j, tuning.nearest)
    i, j, V = i[good], j[good], V[good]
    free = ~crosses(polygons, V, np.column_stack([bends.vertex[i], bends.vertex[j]]))
    pairs = np.column_stack([i, j])
    return [NeuronLine(V[k], pairs[k]) for k in np.flatnonzero(free)]


def find_gaps(polygons: Polygons, n_ways: int, narrowest: float) -> list[NeuronLine]:
    """Lines that cross no edge and have some on either side, three for each way to part them.

    What is added behind them by three such lines, with columns of their own, is any affine map:
    that of every neuron whose line parts edges so.
    """
    angles = np.pi * np.arange(n_ways) / n_ways
    N = np.column_stack([np.cos(angles), np.sin(angles)])
    U = tangents(polygons.edges.F)
    with np.errstate(invalid="ignore"):  # an edge that has no end may be across the way
        along = np.nan_to_num(
            polygons.extents.T[:, :, None] * (U @ N.T), nan=0.0, posinf=np.inf, neginf=-np.inf
        )
    lows, highs = np.sort(polygons.edges.X @ N.T + along, axis=0)  # (edges, ways)
    found: dict[bytes, list[tuple[float, int, float]]] = {}
    for way, (lo, hi) in enumerate(zip(lows.T, highs.T, strict=True)):
        order = np.argsort(lo)
        last, first = np.maximum.accumulate(hi[order])[:-1], lo[order][1:]
        for at in np.flatnonzero(first - last > narrowest):
            behind = lo >= first[at]
            behind ^= behind[0]
            gap = float(first[at] - last[at])
            found.setdefault(behind.tobytes(), []).append((gap, way, float(last[at])))
    lines = []
    for gaps in found.values():
        width, way, start = max(gaps)
        other = max(gaps, key=lambda one: np.abs(np.sin(angles[one[1]] - angles[way])))
        places = [(way, start + share * width) for share in QUARTERS]
        places.append((other[1], other[2] + 0.5 * other[0]))
        lines += [NeuronLine(np.append(N[w], -t), np.empty(0, np.intp)) for w, t in places]
    return lines


def find_intervals(polygons: Polygons, bends: BentEdges, i: int) -> list[tuple[float, float]]:
    """Ratios of slopes at which the line through a bend crosses no edge elsewhere, widest first."""
    T = tangents(polygons.edges.F)
    X = np.column_stack([polygons.vertices, np.ones(len(polygons.vertices))])
    ways = np.vstack([T[polygons.ends[:, side] == EdgeEnd.FAR] for side in (0, 1)])
    points = np.vstack(
        [np.delete(X, bends.vertex[i], axis=0), np.column_stack([ways, np.zeros(len(ways))])]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (points @ bends.F[i]) / (points @ bends.G[i])
    ratios = np.unique(ratios[np.isfinite(ratios) & (ratios > 0.0)])
    lo, hi = np.append(0.0, ratios), np.append(ratios, np.inf)
    V = middle_ratios(lo, hi)[:, None] * bends.G[i] - bends.F[i]
    free = np.flatnonzero(~crosses(polygons, V, np.full((len(V), 1), bends.vertex[i])))
    runs = np.split(free, np.flatnonzero(np.diff(free) > 1) + 1) if len(free) else []
    found = [(float(lo[run[0]]), float(hi[run[-1]])) for run in runs]
    return sorted(found, key=lambda one: np.arctan(one[0]) - np.arctan(one[1]))


def middle_ratios(lo: FloatArray, hi: FloatArray, share: float = 0.5) -> FloatArray:
    """Ratios well inside intervals, a share of the way from one end to the other, (n,)."""
    return np.asarray(np.tan((1.0 - share) * np.arctan(lo) + share * np.arctan(hi)))
