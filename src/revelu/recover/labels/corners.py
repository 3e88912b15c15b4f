"""Corners of polygons: what leaves the ends of edges, on circles around them."""

from dataclasses import dataclass

import numpy as np

from revelu.probe.heights import Ask
from revelu.recover.labels.bends import leave_circles, meet_ends
from revelu.recover.labels.facets import Facets, measure_facets
from revelu.recover.labels.precision import Precision
from revelu.recover.labels.walks import WalkPace, Walks, step_lengths
from revelu.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Corners:
    """What leaves ends of walks: vertices ``X (n, 2)``, and edges, of which walk's end each."""

    X: FloatArray
    leaving: Facets
    R: FloatArray
    of: IntArray

    @classmethod
    def none(cls, n: int) -> "Corners":
        """Nothing, of n walks."""
        facets = Facets.none(2)
        return cls(np.full((n, 2), np.nan), facets, facets.X, np.empty(0, np.intp))

    def join(self, other: "Corners", rows: IntArray) -> "Corners":
        """Take in those of some of the walks."""
        X = self.X.copy()
        X[rows] = other.X
        return Corners(
            X,
            self.leaving.joined(other.leaving),
            np.vstack([self.R, other.R]),
            np.append(self.of, rows[other.of]),
        )


def find_corners(
    ask: Ask,
    walks: Walks,
    precision: Precision,
    pace: WalkPace,
    rng: np.random.Generator,
    *,
    sharp: bool,
) -> Corners:
    """Find the borders that leave circles around the ends of walks, and where they meet.

    From either side of the edge a circle leaves its class at one place: where both places are
    one, it is a bend; else a third class lies between.  A class may have no more than a ``sharp``
    corner beside the edge: circles begin at what is told of it then.
    """
    n, near = len(walks), walks.facets
    X = walks.ends
    s, atol = step_lengths(X, pace), precision.atol(X)
    both, own = np.tile(np.arange(n), 2), np.concatenate([near.a, near.b])
    told = pace.room * (near.off + near.err * walks.bad) + precision.flat * atol
    away = np.minimum(pace.away, told / s) if sharp else np.full(n, pace.away)
    sign, wide = np.repeat([1.0, -1.0], n), np.pi - np.tile(away, 2)
    around, angle = leave_circles(ask, walks.take(both), sign, own, wide, precision, pace)
    Y, E = around.Y, around.E
    off = (precision.flat * atol)[both, None] * E
    before, behind = ask(np.concatenate([Y - off, Y + off])).reshape(2, -1)
    parts = before == own
    is_bend = np.abs(angle[:n] - angle[n:]) < 4.0 * precision.flat * atol / s
    chosen = np.flatnonzero(parts & ~np.append(np.zeros(n, bool), is_bend))
    leaving, rows = measure_facets(
        ask,
        Y[chosen],
        E[chosen],
        own[chosen],
        behind[chosen],
        pace.inner * s[both[chosen]],
        precision,
        rng,
    )
    of, R = both[chosen[rows]], around.R[chosen[rows]]
    # Edges that all meet where the walk has ended are kept.
    t, met = meet_ends(walks.take(of), leaving, s[of], precision, pace)
    whole = np.bincount(of[met], minlength=n) == np.where(is_bend, 1, 2)
    kept = np.flatnonzero(met & whole[of])
    vertices = np.full((n, 2), np.nan)
    vertices[of[kept]] = near.X[of[kept]] + t[kept, None] * walks.U[of[kept]]
    return Corners(vertices, leaving.take(kept), R[kept], of[kept])
