"""Points on the borders of classes: from a pool of inputs, by segments between two classes."""

from dataclasses import dataclass, field

import numpy as np

from revelu.numerics.bisection import bisect
from revelu.numerics.records import Records
from revelu.probe.heights import Ask
from revelu.recover.labels.domain import EVERYWHERE, AllInputs
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Borders(Records):
    """Points on borders, struct of arrays."""

    X: FloatArray
    """Shape (n, d)."""
    E: FloatArray
    """Shape (n, d).  Unit vectors that lead across."""
    a: FloatArray
    b: FloatArray
    """Shape (n,).  Labels before and behind."""

    def pairs(self, classes: FloatArray) -> tuple[IntArray, IntArray]:
        """Return their places among ascending classes ``(k,)``."""
        return np.searchsorted(classes, self.a), np.searchsorted(classes, self.b)


def bisect_segments(ask: Ask, P: FloatArray, Q: FloatArray, a: FloatArray, atol: float) -> Borders:
    """Find a border of the class of ``P`` on each segment to ``Q``, which has another class.

    Parameters
    ----------
    P, Q : ndarray, shape (n, d)
    a : ndarray, shape (n,)
        Labels of ``P``.
    atol : float
        How near to come, in lengths of an input or of 1.
    """
    length = np.linalg.norm(Q - P, axis=1)
    E = (Q - P) / length[:, None]
    b = np.full(len(P), np.nan)

    def is_inside(rows: IntArray, t: FloatArray) -> BoolArray:
        labels = ask(P[rows] + t[:, None] * E[rows])
        outside = labels != a[rows]
        b[rows[outside]] = labels[outside]
        return np.asarray(~outside)

    b[:] = ask(Q)
    size = np.maximum(np.abs(P).max(axis=1), np.abs(Q).max(axis=1))
    t = bisect(is_inside, np.zeros(len(P)), length, atol * np.maximum(size, 1.0))
    return Borders(P + t[:, None] * E, E, a, b)


@dataclass
class Pool:
    """Inputs and their labels, from which segments are drawn."""

    ask: Ask
    dim: int
    rng: np.random.Generator
    scales: tuple[float, ...] = (1.0, 1.5, 2.5)
    """Inputs are of N(0, s²) for each s."""
    n_first: int = 100
    """Inputs of each scale, at first."""
    wider: tuple[float, ...] = (1.0, 10.0, 100.0, 0.1)
    """Scales of ten times as many inputs, one after another while there is one label only."""
    fewest: int = 20
    """Classes with fewer members are enriched."""
    radii: tuple[float, ...] = (0.3, 0.1, 0.03)
    """How far around a point to look for more, relative to its size."""
    domain: AllInputs = EVERYWHERE
    """Where all inputs are."""
    X: FloatArray = field(init=False)
    labels: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.X, self.labels = np.empty((0, self.dim)), np.empty(0)

    @property
    def classes(self) -> FloatArray:
        """The labels seen, ascending."""
        return np.unique(self.labels)

    def add(self, X: FloatArray) -> None:
        """Ask inputs and keep them."""
        X = self.domain.nearest(X)
        self.labels = np.append(self.labels, self.ask(X))
        self.X = np.vstack([self.X, X])

    def draw(self, n: int, scale: float = 1.0) -> None:
        """Draw ``n`` inputs of N(0, s²), or as near to it as the domain has them."""
        self.add(scale * self.domain.draw(self.rng, (n, self.dim)))

    def fill(self) -> None:
        """Draw inputs at every scale, then more around members of rare classes."""
        shape = (self.n_first, self.dim)
        self.add(np.vstack([s * self.domain.draw(self.rng, shape) for s in self.scales]))
        for s in self.wider:
            if len(self.classes) > 1:
                break
            self.draw(10 * self.n_first, s)
        self.enrich()

    def enrich(self) -> None:
        """Draw more inputs around members of rare classes."""
        for _ in range(3):
            rare = [c for c in self.classes if (self.labels == c).sum() < self.fewest]
            if not rare:
                break
            rows = [self.rng.choice(np.flatnonzero(self.labels == c), self.fewest) for c in rare]
            X = self.X[np.concatenate(rows)]
            self.add(X + 0.3 * self.rng.standard_normal(X.shape))

    def segments(
        self, n: int, last: int | None = None, of: float | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Draw ``n`` segments between classes, balanced over pairs: ends, and labels of the first.

        Parameters
        ----------
        n : int
        last : int, optional
            Of how many of the inputs, the last ones; of all without.
        of : float, optional
            The class of all first ends.
        """
        X, labels = (self.X, self.labels) if last is None else (self.X[-last:], self.labels[-last:])
        classes = np.unique(labels)
        if len(classes) < 2:
            return X[:0], X[:0], labels[:0]
        first = self.rng.integers(len(classes), size=n)
        if of is not None:
            first[:] = np.searchsorted(classes, of)
        second = (first + self.rng.integers(1, len(classes), size=n)) % len(classes)
        members = [np.flatnonzero(labels == c) for c in classes]
        i = np.array([self.rng.choice(members[c]) for c in first], dtype=np.intp)
        j = np.array([self.rng.choice(members[c]) for c in second], dtype=np.intp)
        return X[i], X[j], labels[i]

    def borders(self, n: int, atol: float, of: float | None = None) -> Borders:
        """Bisect ``n`` segments between classes, balanced over pairs, or those of one class."""
        return self.between(*self.segments(n, of=of), atol)

    def borders_from(self, X: FloatArray, n: int, atol: float) -> Borders:
        """Ask inputs and keep them, and bisect ``n`` segments between classes among them."""
        self.add(X)
        return self.between(*self.segments(n, last=len(X)), atol)

    def between(self, P: FloatArray, Q: FloatArray, a: FloatArray, atol: float) -> Borders:
        """Bisect segments as :func:`bisect_segments` does, and take in classes that turn up."""
        found = bisect_segments(self.ask, P, Q, a, atol)
        is_new = ~np.isin(found.b, self.classes)
        if is_new.any():
            # A class that no input of the pool has: what lies behind the border has it.
            self.X = np.vstack([self.X, found.X[is_new]])
            self.labels = np.append(self.labels, found.b[is_new])
            self.enrich()
        return found

    def borders_near(self, some: Borders, n: int, atol: float) -> Borders:
        """Bisect ``n`` segments around each of some points of borders, where their ends differ."""
        X, E = np.repeat(some.X, n, axis=0), np.repeat(some.E, n, axis=0)
        size = np.sqrt((X**2).mean(axis=1, keepdims=True))
        radius = size * self.rng.choice(self.radii, size=(len(X), 1))
        shift = X + radius * self.rng.standard_normal(X.shape)
        length = radius * np.sqrt(self.dim)
        P, Q = (self.domain.nearest(shift + s * length * E) for s in (-1.0, 1.0))
        n_before = len(self.labels)
        self.add(np.vstack([P, Q]))
        labels = self.labels[n_before:].reshape(2, -1)
        differ = labels[0] != labels[1]
        return self.between(P[differ], Q[differ], labels[0][differ], atol)
