"""Facets: flat pieces of borders, and the planes that hold them.

Where a network of one hidden layer answers ``argmax``, the border of two classes is where the
difference of two outputs vanishes, which is affine between the hyperplanes of neurons.  Beside a
point ``x`` of it, on a line ``x + h q + t e`` for each ``q`` of an orthonormal basis of what
is orthogonal to ``e``, the border has the height ``t = -h <n, q> / <n, e>``: d - 1 heights are
the normal ``n``.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.numerics.records import Records
from revelu.probe.heights import Ask, are_between, heights
from revelu.recover.labels.precision import Precision
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Facets(Records):
    """Flat pieces of borders, struct of arrays."""

    X: FloatArray
    """Shape (n, d).  A point of each."""
    F: FloatArray
    """Shape (n, d + 1).  Their planes: ``<F[:d], x> + F[d]`` is the signed distance of x,
    negative on the side of class ``a``."""
    a: FloatArray
    b: FloatArray
    """Shape (n,)."""
    h: FloatArray
    """Shape (n,).  How far around the point the facet is known to be flat."""
    err: FloatArray
    """Shape (n,).  About how far off the normal is, in radians,"""
    off: FloatArray
    """and how far off the plane is at the point, shape (n,)."""

    @classmethod
    def none(cls, d: int) -> "Facets":
        """No facets of d inputs."""
        none = np.empty(0)
        return cls(np.empty((0, d)), np.empty((0, d + 1)), none, none, none, none, none)

    @property
    def N(self) -> FloatArray:  # noqa: N802
        """Unit normals, (n, d), that lead from ``a`` to ``b``."""
        return self.F[:, :-1]

    def moved_to(self, X: FloatArray) -> "Facets":
        """Have other points of the same planes, ``X (n, d)``."""
        off = self.off + self.err * np.linalg.norm(X - self.X, axis=1)
        return replace(self, X=X, off=off)

    def replaced(self, rows: IntArray, other: "Facets") -> "Facets":
        """Have others in some rows."""
        order = np.arange(len(self))
        order[rows] = len(self) + np.arange(len(other))
        return self.joined(other).take(order)


def measure_facets(
    ask: Ask,
    X: FloatArray,
    E: FloatArray,
    a: FloatArray,
    b: FloatArray,
    h: FloatArray,
    precision: Precision,
    rng: np.random.Generator,
) -> tuple[Facets, IntArray]:
    """Measure the planes of borders at points, all together.

    Parameters
    ----------
    X, E : ndarray, shape (n, d)
        Points on borders, and unit vectors that lead across.
    a, b : ndarray, shape (n,)
    h : ndarray, shape (n,)
        How far beside the points to look first; nearer where a border is not flat.

    Returns
    -------
    facets : Facets
    rows : ndarray of int
        Of the points whose border is flat, in their order in ``facets``.
    """
    found, rows = [], [np.empty(0, np.intp)]
    todo = np.arange(len(X))
    for _ in range(precision.attempts):
        if not len(todo):
            break
        F, atol = _planes(ask, X[todo], E[todo], a[todo], h[todo], precision)
        facets = Facets(X[todo], F, a[todo], b[todo], h[todo], atol / h[todo], atol)
        flat = are_flat(ask, facets, precision.flat * atol, precision.n_tests, rng)
        found.append(facets.take(flat))
        rows.append(todo[flat])
        todo = todo[~flat]
        h = h / precision.shrink
    return Facets.none(X.shape[1]).joined(*found), np.concatenate(rows)


def _planes(
    ask: Ask, X: FloatArray, E: FloatArray, a: FloatArray, h: FloatArray, precision: Precision
) -> tuple[FloatArray, FloatArray]:
    """Planes (n, d + 1), NaN where a height was not found, and how precise their heights are."""
    n, d = X.shape
    Q = _complements(E)
    atol = precision.atol(X)
    offsets = X[:, None] + h[:, None, None] * Q
    t = heights(
        ask,
        offsets.reshape(-1, d),
        np.repeat(E, d - 1, axis=0),
        np.repeat(a, d - 1),
        np.repeat(2.0 * h, d - 1),
        np.repeat(atol, d - 1),
    ).reshape(n, d - 1)
    N = E - ((t / h[:, None])[:, None] @ Q)[:, 0]
    N /= np.linalg.norm(N, axis=1)[:, None]
    return np.column_stack([N, -(N * X).sum(axis=1)]), atol


def are_flat(
    ask: Ask, facets: Facets, atol: FloatArray, n_tests: int, rng: np.random.Generator
) -> BoolArray:
    """Whether planes part their classes at random places around, to within ``atol``; (n,)."""
    n, d = facets.X.shape
    known = np.isfinite(facets.F).all(axis=1) & np.isfinite(facets.h + atol)
    atol = np.where(known, atol, 0.0)
    N = np.where(known[:, None], facets.N, 0.0)
    T = rng.standard_normal((n_tests, n, d))
    T -= (T * N).sum(axis=2)[:, :, None] * N
    T *= (np.where(known, facets.h, 0.0) / np.linalg.norm(T, axis=2))[:, :, None]
    step = atol[:, None] * N
    told = are_between(ask, facets.X + T, step, facets.a, facets.b)
    return np.asarray(told.all(axis=0) & known)


def _complements(E: FloatArray) -> FloatArray:
    """Orthonormal bases (n, d - 1, d) of what is orthogonal to unit rows ``E (n, d)``.

    The reflection that takes the first axis to ``-s e``, s the sign of e's first coordinate,
    takes the other axes there.
    """
    d = E.shape[1]
    sign = np.where(E[:, 0] < 0.0, -1.0, 1.0)
    W = E.copy()
    W[:, 0] += sign
    W /= np.linalg.norm(W, axis=1)[:, None]
    H = np.eye(d) - 2.0 * W[:, :, None] * W[:, None, :]
    return np.asarray(H[:, 1:])
