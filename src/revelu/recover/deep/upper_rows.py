"""The second of two hidden layers, put together from seeds seen with the first in many states.

Above a known first layer ``h = relu(W x + b)`` of independent rows a neuron is ``a relu(v h + c)``.
Where it bends the gradients change by ``a (v * on)^T W``: a seed tells its column, ``v`` where
neurons below are on, and ``c``, up to a sign, which an affine map of ``h`` makes up for:
``a relu(u) = a relu(-u) + a u``.  Seeds of one neuron agree on all that both know.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from revelu.recover.deep.seeds import Seed
from revelu.recover.method import Layer
from revelu.types import BoolArray, FloatArray


@dataclass
class UpperRows:
    """Neurons known so far."""

    first: Layer
    """The layer below, rows of norm 1, signs known."""
    unit: FloatArray
    """Shape (k,).  Of the outputs."""
    same: float = 1e-5
    """What seeds of one neuron differ by at most, relative to their rows; less is rounding."""
    A: FloatArray = field(init=False)
    """Shape (n, k).  Columns of norm 1 in these units."""
    V: FloatArray = field(init=False)
    c: FloatArray = field(init=False)
    """Shape (n, m) and (n,)."""
    is_known: BoolArray = field(init=False)
    """Shape (n, m).  Which weights of ``V`` some seed has told; others are 0."""

    def __post_init__(self) -> None:
        m, k = len(self.first[1]), len(self.unit)
        self.A, self.V, self.c = np.empty((0, k)), np.empty((0, m)), np.empty(0)
        self.is_known = np.empty((0, m), dtype=bool)

    def __len__(self) -> int:
        return len(self.c)

    @property
    def n_known(self) -> int:
        """Numbers that seeds have told."""
        return len(self) + int(self.is_known.sum())

    def sums(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what the layer below puts out, shape (n, m), and the sums of neurons above."""
        W, b = self.first
        H = np.maximum(X @ W.T + b, 0.0)
        return H, H @ self.V.T + self.c

    def add(self, seeds: Sequence[Seed]) -> list[Seed]:
        """Take in seeds, the most precise first; return those that are no neuron's of either layer.

        Their normals are then no combination of rows that are on.
        """
        if not seeds:
            return []
        W, b = self.first
        seeds = sorted(seeds, key=lambda seed: seed.error)
        X, N = np.array([s.x for s in seeds]), np.array([s.normal for s in seeds])
        V, Z = N @ np.linalg.pinv(W), X @ W.T + b
        left = np.linalg.norm(N - V @ W, axis=1)
        sizes = np.abs(V).max(axis=1)
        faint = np.abs(V) <= self.same * sizes[:, None]
        # On the hyperplane of a row of the first layer the normal is that row.
        at, own = np.arange(len(seeds)), np.abs(V).argmax(axis=1)
        near = np.abs(Z[at, own]) <= self.same * np.maximum(np.linalg.norm(X, axis=1), 1.0)
        is_first = near & ((~faint).sum(axis=1) == 1)
        is_other = (left > self.same) | (~faint & (Z <= 0.0)).any(axis=1)
        for i in np.flatnonzero(~is_first & ~is_other):
            column = seeds[i].column / self.unit
            scale, on = float(np.linalg.norm(column)), Z[i] > 0.0
            v = np.where(on, V[i], 0.0) * scale
            self._join(column / scale, v, -float(v @ np.maximum(Z[i], 0.0)), on)
        return [seeds[i] for i in np.flatnonzero(~is_first & is_other)]

    def _join(self, a: FloatArray, v: FloatArray, c: float, on: BoolArray) -> None:
        """Fill in a neuron that agrees, or begin another one."""
        size = self.same * float(np.sqrt(v @ v + c * c))
        for i in np.flatnonzero(np.abs(self.A - a).max(axis=1, initial=0.0) < self.same):
            both = self.is_known[i] & on
            for sign in (1.0, -1.0):
                apart = np.abs(self.V[i, both] - sign * v[both]).max(initial=0.0)
                if max(float(apart), abs(self.c[i] - sign * c)) < size:
                    new = on & ~self.is_known[i]
                    self.V[i, new], self.is_known[i, new] = sign * v[new], True
                    return
        self.A, self.V = np.vstack([self.A, a]), np.vstack([self.V, v])
        self.c, self.is_known = np.append(self.c, c), np.vstack([self.is_known, on])
