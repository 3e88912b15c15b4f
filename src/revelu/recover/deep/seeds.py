"""Seeds: critical points of unknown neurons, with what the gradients do there.

Across a neuron's hyperplane the gradients change by ``c n^T``, n being the unit normal: all that a
critical point says of the neuron without a walk.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.distance import cdist

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.gradient import CheckedGradients
from revelu.probe.line import Ask
from revelu.recover.deep.segments import CriticalPoints, SegmentScan
from revelu.recover.deep.stack import Stack
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Seed:
    """A critical point that no known neuron makes."""

    x: FloatArray
    """Shape (d,)."""
    normal: FloatArray
    """Shape (d,).  Unit."""
    column: FloatArray
    """Shape (k,).  By how much the outputs' derivatives along the normal change where it is
    crossed."""
    error: float
    """Standard error of the normal."""
    row: FloatArray | None = None
    """Shape (size,).  The neuron's row, if it has been measured: its gradient at ``x`` is the
    normal."""
    row_error: float = 0.0
    """Standard error of its entries, relative to their root mean square."""

    @property
    def hyperplane(self) -> FloatArray:
        """The one through it: the normal and the offset, shape (d + 1,)."""
        return np.append(self.normal, -self.normal @ self.x)


def are_among(rows: FloatArray, known: FloatArray, *, same: float = 1e-4) -> BoolArray:
    """Which hyperplanes are known ones, up to sign, shape (n,).

    Parameters
    ----------
    rows, known : ndarray, shape (n, d + 1) and (m, d + 1)
        Weights of norm 1 and offsets.
    same : float
        Rows that differ by less are one: lines tell them better, and others come so near to one
        with a probability of its d-th power.
    """
    apart = cdist(rows, np.vstack([known, -known]), "chebyshev")
    return np.asarray((apart < same).any(axis=1))


def new_hyperplanes(seeds: Sequence[Seed], rows: FloatArray) -> list[Seed]:
    """Seeds whose hyperplanes are none of some rows, one of each, the most precise first."""
    new: list[Seed] = []
    for seed in sorted(seeds, key=lambda seed: seed.error):
        known = np.vstack([rows, *(other.hyperplane[None] for other in new)])
        if not are_among(seed.hyperplane[None], known).any():
            new.append(seed)
    return new


@dataclass(frozen=True)
class SeedSearch:
    """The search for seeds on segments."""

    scan: SegmentScan = field(default_factory=SegmentScan)
    gradients: CheckedGradients = field(default_factory=CheckedGradients)
    single: float = 1e-4
    """A change of gradients is one neuron's if its second singular value is so much smaller."""
    precise: float = 1e-3
    """A change of gradients is known if its error is so much smaller."""

    def find(
        self,
        ask: Ask,
        noise: NoiseFloor,
        starts: FloatArray,
        ends: FloatArray,
        breaks: list[FloatArray],
        rng: np.random.Generator,
        basis: FloatArray | None = None,
    ) -> list[Seed]:
        """Find seeds on segments.

        Parameters
        ----------
        starts, ends : ndarray, shape (n, d)
        breaks : list of ndarray
            Where known neurons bend each segment, as shares of it, in order.
        basis : ndarray, shape (r, d), optional
            Orthonormal rows, the only directions in which the function changes: normals are then
            in these coordinates.

        Raises
        ------
        CurvedError
            If the function curves wherever critical points are looked for.
        """
        found = self.scan.find(ask, noise, starts, ends, breaks, rng)
        return self.measure(ask, noise, found, rng, basis)

    def measure(
        self,
        ask: Ask,
        noise: NoiseFloor,
        found: CriticalPoints,
        rng: np.random.Generator,
        basis: FloatArray | None = None,
        below: Stack | None = None,
    ) -> list[Seed]:
        """Measure what the gradients do at critical points; leave out what is not one neuron's.

        Above layers ``below``, of known signs, they are combinations of what these make of inputs.
        """
        n = len(found.X)
        if not n:
            return []
        # Two neighbouring critical points share the piece between them, and its gradient.
        sides = np.concatenate([found.left, found.right])
        points, first, place = np.unique(sides, axis=0, return_index=True, return_inverse=True)
        left, right = place.reshape(2, n)
        reach = np.linalg.norm(points - np.concatenate([found.X, found.X])[first], axis=1)
        Q = np.eye(points.shape[1]) if basis is None else basis
        spans = None if below is None else below.spans(points)
        J, errors = self.gradients.measure(ask, noise, points, reach, rng, basis, spans)
        measured = np.isfinite(errors)
        unit = noise.unit
        seeds = []
        for x, i, j in zip(found.X, left, right, strict=True):
            if not (measured[i] and measured[j]):
                continue
            U, sizes, Vt = np.linalg.svd((J[j] - J[i]) / unit[:, None], full_matrices=False)
            error = errors[i] + errors[j]
            if sizes[0] * self.precise <= error:
                continue
            if len(sizes) > 1 and sizes[1] > self.single * sizes[0] + SIGMAS * error:
                continue
            # Along its normal a hyperplane is crossed from left to right.
            side = 1.0 if Q @ (points[j] - points[i]) @ Vt[0] > 0 else -1.0
            column = U[:, 0] * sizes[0] * unit * side
            seeds.append(Seed(x, Vt[0] * side, column, float(error / sizes[0])))
        return seeds

    def in_span(self, seeds: list[Seed], stack: Stack, directions: FloatArray) -> list[Seed]:
        """Those of neurons with weights in the span of ``directions (r, dim)``, above a stack.

        Where no more than ``r`` of its neurons are on, all normals may lie there, and none counts.
        """
        found = []
        for seed in seeds:
            J = stack.maps(seed.x[None])[0][0]
            G = (directions @ J).T
            off = seed.normal - G @ np.linalg.lstsq(G, seed.normal, rcond=None)[0]
            is_told = np.linalg.matrix_rank(J) > len(directions)
            if is_told and np.linalg.norm(off) <= self.single + SIGMAS * seed.error:
                found.append(seed)
        return found
