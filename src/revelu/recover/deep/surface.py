"""The surface on which a neuron's sum is 0, as far as its row is known, and rays along it.

The surface is flat between the walls, where a known neuron changes its state, and turns there.  By
how much it turns is what the neuron's row makes of that known neuron: a ray crosses walls whose
entry is known without a question, and stops at one that is not.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.interruption import check_cancelled
from revelu.numerics.records import Records
from revelu.recover.deep.frame import ActivationRegions, KnownLayers
from revelu.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Stops(Records):
    """Where rays have stopped."""

    at: ActivationRegions
    """At a wall, with the states beyond it; or before the next wall."""
    moves: FloatArray
    """Shape (n, d).  Unit directions."""
    layers: IntArray
    neurons: IntArray
    """Shape (n,).  Whose wall it is."""
    room: FloatArray
    """Shape (n,).  How far the next wall is."""
    doubt: FloatArray
    """Shape (n,).  Standard error of where the surface is."""

    def best(self) -> "Stops":
        """For every wall the ray of the least error."""
        order = np.argsort(self.doubt, kind="stable")
        walls = np.column_stack([self.layers, self.neurons])[order]
        return self.take(np.sort(order[np.unique(walls, axis=0, return_index=True)[1]]))


@dataclass(frozen=True)
class RayTuning:
    """What tunes rays."""

    max_turns: int = 40
    """Walls after which a ray is given up."""
    farthest: float = 6.0
    """How far from the origin rays go, in standard deviations of an input."""
    bound: float = np.inf
    """The largest coordinate of a point of a ray."""
    steep: float = 0.05
    """A surface that is nearly along a wall, up to this sine, is not followed across it."""
    known: float = 1e-3
    """A turn is known if its standard error is this share of the gradient."""


@dataclass(frozen=True, eq=False)
class Surface:
    """A neuron's surface."""

    frame: KnownLayers
    signs: FloatArray
    """Shape (m,).  Of the rows on top of the frame."""
    members: FloatArray
    """Shape (1 + n_members, frame.size).  The neuron's unknowns, and others that agree with the
    equations no worse."""

    def values(self, at: ActivationRegions) -> FloatArray:
        """Sums by every member, shape (n, 1 + n_members)."""
        return np.asarray(self.frame.features(at, self.signs) @ self.members.T)

    def slopes(self, at: ActivationRegions, moves: FloatArray) -> FloatArray:
        """Slopes of the sums along moves, by every member, shape (n, 1 + n_members)."""
        return np.asarray(self.frame.features(at, self.signs, moves) @ self.members.T)

    def gradients(self, at: ActivationRegions) -> FloatArray:
        """Gradients of the sum, shape (n, d)."""
        return self.frame.gradients(at, self.signs, self.members[0])

    def doubt(self, at: ActivationRegions) -> FloatArray:
        """Standard error of where the surface is, shape (n,)."""
        size = np.linalg.norm(self.gradients(at), axis=1)
        return np.asarray(self.values(at)[:, 1:].std(axis=1) / np.where(size > 0, size, 1.0))

    def across(self, at: ActivationRegions, normals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Unit directions off the surface along walls, and the slopes of the sum there.

        Orthogonal to a wall the gradient is the same on both sides of it, whatever the turn.

        Parameters
        ----------
        normals : ndarray, shape (n, d)
            Of the walls; 0 where there is none.
        """
        G = self.gradients(at)
        nn = (normals**2).sum(axis=1)
        M = G - normals * ((G * normals).sum(axis=1) / np.where(nn > 0, nn, 1.0))[:, None]
        size = np.linalg.norm(M, axis=1)
        M /= np.where(size > 0, size, 1.0)[:, None]
        slope = (G * M).sum(axis=1)
        return M, np.where(slope > 0, slope, 0.0)

    def along(self, at: ActivationRegions, E: FloatArray) -> FloatArray:
        """Unit moves along the surface, nearest to given ones, shape (n, d)."""
        G = self.gradients(at)
        size = (G**2).sum(axis=1)
        E = E - G * ((E * G).sum(axis=1) / np.where(size > 0, size, 1.0))[:, None]
        norms = np.linalg.norm(E, axis=1)
        return np.asarray(E / np.where(norms > 0, norms, 1.0)[:, None])

    def trace(
        self, at: ActivationRegions, E: FloatArray, how: RayTuning, n_turns: IntArray | None = None
    ) -> Stops | None:
        """Follow rays from points of the surface.

        Parameters
        ----------
        at : ActivationRegions
        E : ndarray, shape (n, d)
            Where they are to go.
        how : RayTuning
        n_turns : ndarray of int, shape (n,), optional
            The walls that each crosses before it stops half-way to the next one; by default they
            stop at walls that are not known.

        Returns
        -------
        Stops or None
            Of the rays that got there; None where none did.
        """
        E, stops = self.along(at, E), []
        long = np.sqrt(at.X.shape[1])
        left = np.full(len(at), -1) if n_turns is None else n_turns
        for _ in range(how.max_turns):
            check_cancelled()
            room, layers, neurons = self.frame.next_wall(at, E)
            room_left = to_face(at.X, E, how.bound)
            ends = left == 0
            if ends.any():
                half = 0.5 * np.minimum(np.minimum(room, room_left), long)[ends]
                some = at.take(ends)
                some = some.moved(some.X + half[:, None] * E[ends])
                stops.append(
                    Stops(some, E[ends], layers[ends], neurons[ends], half, self.doubt(some))
                )
            goes = ~ends & np.isfinite(room) & (room < room_left)
            X = at.X + np.where(goes, room, 0.0)[:, None] * E
            goes &= np.linalg.norm(X, axis=1) < how.farthest * long
            if not goes.any():
                break
            layers, neurons, E, left = layers[goes], neurons[goes], E[goes], left[goes] - 1
            before = at.moved(X).take(goes)
            at = self.frame.crossed(before, layers, neurons)
            size = np.linalg.norm(self.gradients(at), axis=1)
            is_open = self.slopes(at, E)[:, 1:].std(axis=1) > how.known * size
            if is_open.any() and n_turns is None:
                some = at.take(is_open)
                beyond = np.minimum(self.frame.next_wall(some, E[is_open])[0], long)
                beyond = np.minimum(beyond, to_face(some.X, E[is_open], how.bound))
                doubt = self.doubt(before.take(is_open))
                walls = layers[is_open], neurons[is_open]
                stops.append(Stops(some, E[is_open], *walls, beyond, doubt))
            M, slope = self.across(at, self.frame.normals(at, layers, neurons))
            goes = ~is_open & (slope > how.steep * size)
            at, E, M, slope, left = at.take(goes), E[goes], M[goes], slope[goes], left[goes]
            E = E - M * ((E * self.gradients(at)).sum(axis=1) / slope)[:, None]
            E /= np.linalg.norm(E, axis=1)[:, None]
            # What rounding has left of the sum goes, lest it adds up.
            at = at.moved(at.X - M * (self.values(at)[:, 0] / slope)[:, None])
        return stops[0].joined(*stops[1:]) if stops else None


def to_face(X: FloatArray, E: FloatArray, bound: float) -> FloatArray:
    """How far it is along moves to where a coordinate gets too large, shape (n,)."""
    if not np.isfinite(bound):
        return np.full(len(X), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        ways = (bound - np.sign(E) * X) / np.abs(E)
    return np.asarray(np.where(E == 0, np.inf, np.maximum(ways, 0.0)).min(axis=1))
