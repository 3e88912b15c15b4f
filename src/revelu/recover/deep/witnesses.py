"""Witnesses: critical points, with the gradients on both sides.

Across a neuron's hyperplane the gradients change by ``c n^T``, n being the gradient of the
neuron's own sum: all that a critical point says of the layers below it and of the neuron's row.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.gradient import Stencil, measure, unit_rows
from revelu.probe.line import Ask
from revelu.recover.deep.segments import SegmentScan
from revelu.recover.deep.stack import Stack
from revelu.types import FloatArray, IntArray


@dataclass(frozen=True)
class Witnesses:
    """Critical points and gradients.

    Attributes
    ----------
    X : ndarray, shape (n, d)
        Critical points.
    normals : ndarray, shape (n, d)
        Unit rows.
    columns : ndarray, shape (n, k)
        The change of the outputs' derivatives along the normal.
    points : ndarray, shape (m, d)
        Where gradients were measured.
    gradients : ndarray, shape (m, k, d)
    """

    X: FloatArray
    normals: FloatArray
    columns: FloatArray
    points: FloatArray
    gradients: FloatArray

    @classmethod
    def none(cls, d: int, k: int) -> "Witnesses":
        """Return no witnesses."""
        return cls(*(np.empty(s) for s in ((0, d), (0, d), (0, k), (0, d), (0, k, d))))

    def __add__(self, other: "Witnesses") -> "Witnesses":
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return Witnesses(*(np.concatenate(pair) for pair in both))

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True)
class WitnessSearch:
    """The search for witnesses on segments."""

    scan: SegmentScan = field(default_factory=SegmentScan)
    steps: tuple[float, float, float] = (0.04, 0.006, 0.001)
    """Steps of a difference, as shares of the way to the critical point: where a derivative in
    a random direction, over twice the step, shows that a hyperplane was crossed, the next is
    taken.  Derivatives are taken in the local row space of all known layers with the first
    step, of the first layer alone with the second, in every direction with the last: a layer
    may lack neurons."""
    live: float = 1e-10
    """Directions in which the known layers move by less than this share of the most are none."""
    single: float = 1e-4
    """A change of gradients is one neuron's if its second singular value is so much smaller."""
    precise: float = 1e-3
    """A change of gradients is known if its error is so much smaller."""

    def collect(
        self,
        ask: Ask,
        noise: NoiseFloor,
        stack: Stack,
        starts: FloatArray,
        ends: FloatArray,
        rng: np.random.Generator,
    ) -> Witnesses:
        """Find the critical points on segments that known layers do not make, and measure there.

        Parameters
        ----------
        ask, noise, stack, starts, ends, rng
            As for :meth:`SegmentScan.find`.

        Raises
        ------
        CurvedError
            If the function curves wherever critical points are looked for.
        """
        found = self.scan.find(ask, noise, stack, starts, ends, rng)
        d, k, n = starts.shape[1], len(noise.scale), len(found.X)
        if not n:
            return Witnesses.none(d, k)
        # Two neighbouring critical points share the piece between them, and its gradient.
        sides = np.concatenate([found.left, found.right])
        points, first, place = np.unique(sides, axis=0, return_index=True, return_inverse=True)
        left, right = place.reshape(2, n)
        reach = np.linalg.norm(points - np.concatenate([found.X, found.X])[first], axis=1)
        J, errors = self._gradients(ask, noise, stack, points, reach, rng)
        measured = np.isfinite(errors)
        both = np.flatnonzero(measured[left] & measured[right])
        left, right = left[both], right[both]
        unit = noise.unit[:, None]
        U, sizes, Vt = np.linalg.svd((J[right] - J[left]) / unit, full_matrices=False)
        error = errors[left] + errors[right]
        known = sizes[:, 0] * self.precise > error
        if min(d, k) > 1:
            known &= sizes[:, 1] < self.single * sizes[:, 0] + error
        columns = U[:, :, 0] * sizes[:, :1] * unit.T
        return Witnesses(
            found.X[both[known]], Vt[known, 0], columns[known], points[measured], J[measured]
        )

    def _gradients(
        self,
        ask: Ask,
        noise: NoiseFloor,
        stack: Stack,
        points: FloatArray,
        reach: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray]:
        """Gradients by checked differences, shape (n, k, d), and their errors, shape (n,).

        ``reach (n,)`` is how far each point is from the nearest hyperplane, about.  Errors are
        standard ones, in units of the outputs' scales; infinite where every step crossed one.
        """
        n, d = points.shape
        unit = noise.unit
        J, errors = np.zeros((n, len(unit), d)), np.full(n, np.inf)
        sigma = float((noise.nu * noise.scale / unit).max()) * noise.growth(points)
        todo: IntArray = np.arange(n)
        for share, below in zip(self.steps, (stack, stack[:1], stack[:0]), strict=True):
            if not len(todo):
                break
            bases = self._row_spaces(below, points[todo])
            aside = unit_rows(rng, len(todo), d)
            stencils = [
                Stencil(
                    points[i],
                    Q,
                    np.full(len(Q), share * reach[i]),
                    aside=2.0 * share * reach[i] * w,
                )
                for i, Q, w in zip(todo, bases, aside, strict=True)
            ]
            failed = []
            for i, Q, found in zip(todo, bases, measure(ask, stencils), strict=True):
                atol = SIGMAS * sigma[i] * np.sqrt(10.0 + len(Q)) * unit
                if found.is_finite and (found.apart <= atol).all():
                    J[i] = found.values.T @ Q
                    errors[i] = sigma[i] * np.linalg.norm(found.errors)
                else:
                    failed.append(i)
            todo = np.array(failed, dtype=np.intp)
        return J, errors

    def _row_spaces(self, stack: Stack, points: FloatArray) -> list[FloatArray]:
        """Orthonormal rows that span the local maps; all directions where nothing is known."""
        d = stack.dim_in
        if not len(stack):
            return [np.eye(d)] * len(points)
        _, sizes, Vt = np.linalg.svd(stack.maps(points)[0], full_matrices=False)
        ranks = (sizes > self.live * sizes.max(axis=1, initial=0.0, keepdims=True)).sum(axis=1)
        return [np.eye(d) if rank == d else V[:rank] for V, rank in zip(Vt, ranks, strict=True)]
