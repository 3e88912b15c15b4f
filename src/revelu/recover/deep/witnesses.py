"""Witnesses: kinks, with the gradients on both sides.

Across a neuron's kink the gradients change by ``c n^T``, n being the gradient of the neuron's
own sum: all that the kink says of the layers below it and of the neuron's row.
"""

from dataclasses import dataclass

import numpy as np

from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask
from revelu.recover.deep.segments import find_new_kinks
from revelu.recover.deep.stack import Stack
from revelu.types import FloatArray, IntArray

_SIGMAS = 8.0

# Steps of a difference, as shares of the way to the kink, the longest first: one that crosses
# a kink is found out by a derivative in a random direction, over twice the step.
_STEPS = (0.04, 0.006, 0.001)

# Directions in which the known layers move by less than this share of the most are none.
_LIVE = 1e-10

# A change of gradients is one neuron's if its second singular value is so much smaller, and it
# is known if its errors are.
_ONE = 1e-4
_KNOWN = 1e-3


@dataclass(frozen=True)
class Witnesses:
    """Kinks and gradients.

    Attributes
    ----------
    X : ndarray, shape (n, d)
        Kinks.
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
        mine, theirs = vars(self), vars(other)
        return Witnesses(**{name: np.concatenate([mine[name], theirs[name]]) for name in mine})

    def __len__(self) -> int:
        return len(self.X)


def collect_witnesses(
    ask: Ask,
    noise: NoiseFloor,
    stack: Stack,
    starts: FloatArray,
    ends: FloatArray,
    rng: np.random.Generator,
) -> Witnesses:
    """Find the kinks on segments that known layers do not make, and measure around them.

    Parameters
    ----------
    ask : callable, (n, d) -> (n, k)
    noise : NoiseFloor
    stack : Stack
        The known layers; gradients lie in the row space of their map, or of the first one's where
        a higher one lacks a neuron.
    starts, ends : ndarray, shape (m, d)
    rng : numpy.random.Generator
    """
    kinks = find_new_kinks(ask, noise, stack, starts, ends, rng)
    d, k, n = starts.shape[1], len(noise.scale), len(kinks.X)
    if not n:
        return Witnesses.none(d, k)
    # Two neighbouring kinks share the piece between them, and its gradient.
    points, first, place = np.unique(
        np.concatenate([kinks.left, kinks.right]), axis=0, return_index=True, return_inverse=True
    )
    left, right = place.reshape(2, n)
    reach = np.linalg.norm(points - np.concatenate([kinks.X, kinks.X])[first], axis=1)
    J, errors = measure_gradients(ask, noise, stack, points, reach, rng)
    measured = np.isfinite(errors)
    both = np.flatnonzero(measured[left] & measured[right])
    left, right = left[both], right[both]
    unit = np.where(noise.scale > 0, noise.scale, 1.0)[:, None]
    U, sizes, Vt = np.linalg.svd((J[right] - J[left]) / unit, full_matrices=False)
    error = errors[left] + errors[right]
    known = sizes[:, 0] * _KNOWN > error
    if min(d, k) > 1:
        known &= sizes[:, 1] < _ONE * sizes[:, 0] + error
    columns = U[:, :, 0] * sizes[:, :1] * unit.T
    return Witnesses(
        kinks.X[both[known]], Vt[known, 0], columns[known], points[measured], J[measured]
    )


def measure_gradients(
    ask: Ask,
    noise: NoiseFloor,
    stack: Stack,
    points: FloatArray,
    reach: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Measure gradients by differences, each checked, and nearer where a kink was crossed.

    Parameters
    ----------
    ask : callable, (n, d) -> (n, k)
    noise : NoiseFloor
    stack : Stack
        Known layers: derivatives are taken in the local row space of all of them, then in that
        of the first alone, then in every direction.
    points : ndarray, shape (n, d)
    reach : ndarray, shape (n,)
        How far each is from the nearest kink, about.
    rng : numpy.random.Generator

    Returns
    -------
    gradients : ndarray, shape (n, k, d)
    errors : ndarray, shape (n,)
        Standard errors, in units of the outputs' scales; infinite where every step crossed a
        kink.
    """
    n, d = points.shape
    k = len(noise.scale)
    unit = np.where(noise.scale > 0, noise.scale, 1.0)
    J, errors = np.zeros((n, k, d)), np.full(n, np.inf)
    sigma = float((noise.nu * noise.scale / unit).max()) * np.sqrt(1.0 + (points**2).mean(axis=1))
    todo: IntArray = np.arange(n)
    for share, below in zip(_STEPS, (stack, stack[:1], stack[:0]), strict=True):
        if not len(todo):
            break
        bases = dict(zip(todo, _row_spaces(below, points[todo]), strict=True))
        u = rng.standard_normal((len(todo), d))
        u /= np.linalg.norm(u, axis=1)[:, None]
        h = share * reach[todo]
        rows = [
            points[i] + np.vstack([np.zeros(d), step * bases[i], 2.0 * step * w])
            for i, step, w in zip(todo, h, u, strict=True)
        ]
        Y = ask(np.concatenate(rows))
        Y = np.where(np.isfinite(Y), Y, np.nan)  # infinite where the target is saturated
        answers = np.split(Y, np.cumsum([len(r) for r in rows])[:-1])
        failed = []
        for i, step, w, Y in zip(todo, h, u, answers, strict=True):
            g = ((Y[1:-1] - Y[0]) / step).T @ bases[i]
            apart = np.abs(Y[-1] - Y[0] - 2.0 * step * (g @ w)) / unit
            if (apart <= _SIGMAS * sigma[i] * np.sqrt(10.0 + len(bases[i]))).all():
                J[i], errors[i] = g, sigma[i] * np.sqrt(2.0 * len(bases[i])) / step
            else:
                failed.append(i)
        todo = np.array(failed, dtype=np.intp)
    return J, errors


def _row_spaces(stack: Stack, points: FloatArray) -> list[FloatArray]:
    """Orthonormal rows that span the local maps; all directions where nothing is known."""
    d = stack.dim_in
    if not len(stack):
        return [np.eye(d)] * len(points)
    _, sizes, Vt = np.linalg.svd(stack.maps(points)[0], full_matrices=False)
    ranks = (sizes > _LIVE * sizes.max(axis=1, initial=0.0, keepdims=True)).sum(axis=1)
    return [np.eye(d) if rank == d else V[:rank] for V, rank in zip(Vt, ranks, strict=True)]
