"""Whether a filter is at a place, and with which column the outputs read it there.

At a point where the sum ``z`` of a filter at a place is 0, and those of its neighbours are under
0, the function bends by ``A |w|`` across ``z = 0`` if the filter is at that place, pooled or not:
and it goes straight on if it is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from revelu.network.images import Image
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.types import BoolArray, FloatArray

__all__ = ["Places"]

Origin = tuple[int, int]


@dataclass
class Places:
    """Looks at filters at places."""

    oracle: Oracle
    noise: NoiseFloor
    image: Image
    kernels: FloatArray
    """Shape (filters, channels, rows, columns)."""
    biases: FloatArray
    """Shape (filters,).  With their signs."""
    rng: np.random.Generator
    side: tuple[float, float] = (1e-6, 3e-3)
    """How far to go to either side, of float64 answers and of others: at a third of the latter,
    rounding hides how little one place of thousands bends the function."""
    apart: float = 0.2
    """Share by which two columns of one place may differ."""
    margin: float = 0.5
    """How far under or over 0 the sums of neighbours are taken, relative to a filter's norm."""
    n_bases: tuple[int, int] = (2, 3)
    """Points looked at for each place, and those that have to agree, of float64 answers and of
    others: at their longer steps another neuron bends the function at one point in ten."""
    n_rounds: int = 2
    """Of such points, until they do."""
    is_last: bool = True
    """Outputs read the filters themselves, by one column wherever a filter is seen; not where there
    are layers between, whose neurons may be on or off."""
    dependent: float = 1e-2
    """Combinations of sums that take inputs larger than one over this are left as they are: at a
    border a place may see next to nothing."""
    columns_of: dict[tuple[int, Origin], FloatArray] = field(default_factory=dict, init=False)

    def row(self, f: int, origin: Origin) -> FloatArray:
        """Return the row of a filter whose first entry reads a pixel."""
        return self.image.shifted(self.kernels[f], *origin)

    def columns(
        self,
        f: int,
        origins: Sequence[Origin],
        steps: tuple[int, int],
        *,
        ring: int = 1,
        on: Origin | None = None,
    ) -> tuple[FloatArray, BoolArray]:
        """Return the columns of a filter at places, (n, k), and where it is there at all.

        Parameters
        ----------
        origins : sequence of (int, int)
        steps : (int, int)
            Rows and columns from a place to its neighbours.
        ring : int
            So many neighbours on each side have sums under 0,
        on : (int, int), optional
            but for the one at these steps, whose is over 0.
        """
        found = np.zeros((len(origins), len(self.noise.scale)))
        there = np.zeros(len(origins), dtype=bool)
        rows = [self.row(f, origin) for origin in origins]
        norms = np.array([np.linalg.norm(row) for row in rows])
        # What lies outside the image sees nothing.
        open_ = [i for i in range(len(origins)) if norms[i] > 1e-3]
        seen: dict[int, list[tuple[FloatArray, float]]] = {i: [] for i in open_}
        for _ in range(self.n_rounds):
            todo = [i for i in open_ if not there[i] and not self._is_nothing(seen[i])]
            if not todo:
                break
            base = [i for i in todo for _ in range(self._n_agreeing)]
            X = np.array([self._point(f, origins[i], steps, ring, on) for i in base])
            normals = np.array([rows[i] / norms[i] for i in base])
            bends, errors = self._bends(X, normals)
            for i, bend, error in zip(base, bends, errors, strict=True):
                seen[i].append((bend / norms[i], float(error / norms[i])))
            for i in todo:
                found[i], there[i] = self._agreed(seen[i])
        return found, there

    @property
    def _n_agreeing(self) -> int:
        """How many bends have to agree."""
        return self.n_bases[not (self.noise.is_exact and self.is_last)]

    def _is_nothing(self, seen: list[tuple[FloatArray, float]]) -> bool:
        """Whether the function went straight on wherever it was seen."""
        return bool(seen) and all(np.linalg.norm(bend) <= error for bend, error in seen)

    def _agreed(self, seen: list[tuple[FloatArray, float]]) -> tuple[FloatArray, bool]:
        """Return what enough bends agree on."""
        if not self.is_last:
            bent = [bend for bend, error in seen if np.linalg.norm(bend) > error]
            return np.mean(bent, axis=0) if bent else np.zeros(len(self.noise.scale)), bool(bent)
        for one, error in seen:
            alike = [
                (other, another)
                for other, another in seen
                if np.linalg.norm(one - other) <= self.apart * np.linalg.norm(one)
            ]
            mean = np.mean([other for other, _ in alike], axis=0) if alike else one
            slack = error + max((another for _, another in alike), default=0.0)
            if len(alike) >= self._n_agreeing and np.linalg.norm(mean) > slack:
                return np.asarray(mean), True
        return np.zeros(len(self.noise.scale)), False

    def _bends(self, X: FloatArray, normals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Second differences across points over the step, and their tolerances."""
        step = self.side[not self.noise.is_exact] * np.sqrt(1.0 + (X**2).mean(axis=1))
        moves = step[:, None] * normals
        Y = self.oracle(np.concatenate([X - moves, X, X + moves])).reshape(3, len(X), -1)
        bends = (Y[0] - 2.0 * Y[1] + Y[2]) / step[:, None]
        size = self.noise.growth(X) * float(np.linalg.norm(self.noise.nu * self.noise.scale))
        return bends, SIGMAS * 2.5 * size / step

    def _point(
        self, f: int, origin: Origin, steps: tuple[int, int], ring: int, on: Origin | None
    ) -> FloatArray:
        """A point where the filter's sum is 0 at a place, and under 0 around it."""
        w, b = self.row(f, origin), float(self.biases[f])
        around = [
            (i, j)
            for i in range(-ring, ring + 1)
            for j in range(-ring, ring + 1)
            if (i or j) and (self.image.shape[1] > 1 or not i)
        ]
        rows = [
            self.row(f, (origin[0] + i * steps[0], origin[1] + j * steps[1])) for i, j in around
        ]
        seen = [n for n, row in enumerate(rows) if np.linalg.norm(row) > 1e-3]
        R = np.array([w, *(rows[n] for n in seen)])
        x = self.rng.standard_normal(self.image.size)
        z = R @ x + b
        wanted = np.minimum(z, -self.margin)
        for at, n in enumerate(seen, start=1):
            if around[n] == on:
                wanted[at] = max(z[at], self.margin)
        wanted[0] = 0.0
        x += np.linalg.lstsq(R, wanted - z, rcond=self.dependent)[0]
        x -= w * ((w @ x + b) / (w @ w))
        return np.asarray(x)
