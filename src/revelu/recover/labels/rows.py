"""Rows of the hidden layer: what bends of one neuron have in common.

The planes on both sides of a bend span a two-dimensional space of affine maps, which holds that
of the neuron.  Two bends of one neuron on different facets share no more than that: so where two
such spaces meet in a line, it is a neuron's, unless it is a facet that both have seen.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.numerics.float64 import TINY
from revelu.numerics.records import Records
from revelu.recover.labels.bends import Bends, planes_of
from revelu.recover.labels.precision import Told
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Matching:
    """When bends are of one neuron."""

    room: float = SIGMAS
    """Spaces meet where they do to within this many of their errors."""
    largest: float = 1e-4
    """No angle beyond this one counts as none."""
    chance: float = 1e-9
    most: float = 1e-3
    """A space that comes so near to a known row by chance alone is thought to hold it: it does
    within an angle r with a probability of about r^(d - 1), and r is no more than ``most``."""
    nearest: float = 1e-3
    """What differs by less is the same facet, or the same bend."""
    floor: float = 1e-11
    """No space is known better: errors below are rounding's."""
    apart: float = 10.0
    """Spaces whose other angle is not ``apart`` times what counts as none are the same bend, seen
    twice, and what is no farther than that from a facet that both have seen is this facet."""

    def at(self, told: Told, d: int) -> "Matching":
        """Return what serves where labels of ``d`` inputs tell few digits.

        Two spaces come within an angle r of sharing a line by chance with a probability of about
        r^(d - 2), so that with many inputs few digits tell.  Bends are a share of ``told.bend``,
        and errors of spaces, which are small angles, a share of that.
        """
        by_chance = self.chance ** (1.0 / max(d - 2, 1))
        largest = max(self.largest, min(0.3 * told.bend, by_chance))
        if largest == self.largest:
            return self
        nearest = max(self.nearest, largest / 3.0)
        return replace(self, largest=largest, most=max(self.most, largest), nearest=nearest)

    def within(self, err: FloatArray, d: int) -> FloatArray:
        """Angles to a known row that count as none, of spaces that are off by ``err (n,)``."""
        by_chance = min(self.chance ** (1.0 / max(d - 1, 1)), self.most)
        own = np.minimum(4.0 * self.room * np.maximum(err, self.floor), self.most)
        return np.asarray(np.maximum(own, by_chance))


@dataclass(frozen=True, eq=False)
class NeuronRows(Records):
    """Affine maps of neurons, struct of arrays."""

    V: FloatArray
    """Shape (m, d + 1).  Of unit normals."""
    err: FloatArray
    """Shape (m,).  About how far off each is."""
    seen: FloatArray
    """Shape (m, d + 1, d + 1).  Triangular factors of what their bends say, in units of its
    error: ``seen @ v`` is small."""

    @classmethod
    def none(cls, d: int) -> "NeuronRows":
        """No rows of d inputs."""
        return cls(np.empty((0, d + 1)), np.empty(0), np.empty((0, d + 1, d + 1)))

    def refined(self, bends: Bends) -> "NeuronRows":
        """Take in what more bends say, each of the row that its space holds best."""
        if not len(bends) or not len(self):
            return self
        P, err = planes_of(bends)
        of = angles_to(P, self.V).argmin(axis=1)
        V, errs, seen = self.V.copy(), self.err.copy(), self.seen.copy()
        for i in np.unique(of):
            own = of == i
            V[i], errs[i], seen[i] = _best_row(P[own], err[own], V[i], seen[i])
        return NeuronRows(V, errs, seen)


def holds_row(bends: Bends, V: FloatArray, matching: Matching) -> BoolArray:
    """Whether the spaces of bends hold affine maps ``V (m, d + 1)``, (n, m)."""
    if not len(bends) or not len(V):
        return np.zeros((len(bends), len(V)), bool)
    P, err = planes_of(bends)
    return np.asarray(angles_to(P, V) < matching.within(err, V.shape[1] - 1)[:, None])


def angles_to(P: FloatArray, V: FloatArray) -> FloatArray:
    """Angles of affine maps ``V (m, d + 1)`` to spaces of bases ``P (n, 2, d + 1)``, (n, m)."""
    unit = V / np.linalg.norm(V, axis=1)[:, None]
    angle = np.empty((len(P), len(V)))
    for i, plane in enumerate(P):
        rest = unit - (unit @ plane.T) @ plane
        angle[i] = np.linalg.norm(rest, axis=1)
    return angle


def distinct(bends: Bends, matching: Matching) -> Bends:
    """Leave out bends whose space another one of them has, too: the same bend, seen again."""
    if len(bends) < 2:
        return bends
    P, err = planes_of(bends)
    first: list[int] = []
    for i, plane in enumerate(P):
        others = P[first]
        rest = plane - (plane @ others.transpose(0, 2, 1)) @ others
        limit = np.minimum(matching.room * (err[i] + err[first]), matching.largest)
        if not (np.linalg.norm(rest, axis=(1, 2)) < 4.0 * limit).any():
            first.append(i)
    return bends.take(np.array(first, np.intp))


def find_rows(bends: Bends, matching: Matching) -> NeuronRows:
    """Find neurons that two of the bends or more have in common."""
    d1 = bends.before.F.shape[1]
    if d1 == 3:
        # A bend is a point: one that was met twice would make a line with any other.
        bends = distinct(bends, matching)
    n = len(bends)
    if n < 2:
        return NeuronRows.none(d1 - 1)
    found = NeuronRows.none(d1 - 1)
    P, err = planes_of(bends)
    facets = np.stack([bends.before.F, bends.behind.F], axis=1)
    facets = facets / np.linalg.norm(facets, axis=2)[:, :, None]
    free = np.ones(n, bool)
    for i in range(n):
        if not free[i]:
            continue
        others = np.flatnonzero(free & (np.arange(n) != i))
        common = _common_line if d1 == 3 else _common_row
        row = common(P, err, facets, i, others, matching)
        if row is None:
            continue
        same = np.flatnonzero(holds_row(bends, row[None], matching)[:, 0])
        row, error, seen = _best_row(P[same], err[same], row, np.empty((0, d1)))
        found = found.joined(NeuronRows(row[None], np.array([error]), seen[None]))
        free[holds_row(bends, row[None], matching)[:, 0]] = False
    return found


def _common_line(
    P: FloatArray,
    err: FloatArray,
    facets: FloatArray,
    i: int,
    others: IntArray,
    matching: Matching,
) -> FloatArray | None:
    """The line in the plane through bend ``i`` on which two others lie.

    With two inputs any two bends have a line in common, and three only by a neuron, or by a
    facet that they all have seen.
    """
    if len(others) < 2:
        return None
    points = np.cross(P[:, 0], P[:, 1])
    rows = np.cross(points[i], points[others])
    length = np.linalg.norm(rows, axis=1)
    apart = length > matching.nearest
    rows = rows[apart] / length[apart, None]
    limit = np.minimum(matching.room * np.maximum(err[others], matching.floor), matching.largest)
    fits = np.abs(rows @ points[others].T) < limit
    seen = facets[np.append(others, i)].reshape(-1, 3)
    off = np.linalg.norm(seen[None] - (rows @ seen.T)[:, :, None] * rows[:, None], axis=2)
    counts = np.where((off > matching.nearest).all(axis=1), fits.sum(axis=1), 0)
    if counts.max(initial=0) < 2:
        return None
    return np.asarray(rows[counts.argmax()])


def _common_row(
    P: FloatArray,
    err: FloatArray,
    facets: FloatArray,
    i: int,
    others: IntArray,
    matching: Matching,
) -> FloatArray | None:
    """The affine map that the space of bend ``i`` shares with that of another one."""
    if not len(others):
        return None
    rest = P[i] - (P[i] @ P[others].transpose(0, 2, 1)) @ P[others]
    left, angles, _ = np.linalg.svd(rest, full_matrices=False)
    limit = matching.room * np.maximum(err[i] + err[others], matching.floor)
    limit = np.minimum(limit, matching.largest)
    fits = np.flatnonzero((angles[:, 1] < limit) & (angles[:, 0] > matching.apart * limit))
    for k in fits[np.argsort(angles[fits, 1] / limit[fits])]:
        row = np.asarray(left[k, :, 1] @ P[i])
        seen = np.concatenate([facets[i], facets[others[k]]])
        apart = np.linalg.norm(seen - (seen @ row)[:, None] * row, axis=1)
        if (apart > max(matching.nearest, matching.apart * float(limit[k]))).all():
            return row
    return None


def _best_row(
    P: FloatArray, err: FloatArray, row: FloatArray, seen: FloatArray
) -> tuple[FloatArray, float, FloatArray]:
    """The affine map nearest to all spaces, weighted by their errors, its own error, and why.

    Parameters
    ----------
    P, err : ndarray, shapes (n, 2, d + 1) and (n,)
    row : ndarray, shape (d + 1,)
        About where it is.
    seen : ndarray, shape (r, d + 1)
        What other spaces have said, as of :class:`NeuronRows`.
    """
    eye = np.eye(P.shape[2])
    weights = 1.0 / np.maximum(err, TINY)
    S = [w * (eye - p.T @ p) for p, w in zip(P, weights, strict=True)]
    R = np.linalg.qr(np.concatenate([seen, *S]), mode="r")
    _, sizes, right = np.linalg.svd(R)
    best = right[-1] * np.sign(right[-1] @ row)
    length = np.linalg.norm(best[:-1])
    return np.asarray(best / length), float(1.0 / max(sizes[-2], TINY) / length), np.asarray(R)
