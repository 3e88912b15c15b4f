"""The signs of neurons, where a network without a skip is to be.

With ``relu(-z) = relu(z) - z`` a neuron that is turned round takes ``A_r v`` out of the skip of
class r, so the neurons to be turned, x in {0, 1}^m, solve

    G_r + Σ_i x_i A_ri v_i = 0    for every class r,

where an entry ``A_ri`` is idle up to multiples of ``v_i``: nothing tells it, and G took it up.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.numerics.subset_sum import find_binary_solutions
from revelu.recover.labels.columns import OutputEquations
from revelu.recover.labels.precision import Told
from revelu.types import FloatArray


@dataclass(frozen=True)
class Turning:
    """When signs are told."""

    rtol: float = 1e-4
    """What may be left of the skip, relative to what neurons take out of it,"""
    most: float = 1e-3
    """and no more than this, however few digits labels tell."""
    rounding: float = 5e-2
    """How far from 0 and 1 unknowns may be."""
    faint: float = 1e-5
    """Idle vectors that add a smaller share than others to the skip add nothing."""
    max_bits: int = 30
    """The most signs that may be tried out."""

    def at(self, told: Told, gap: float) -> "Turning":
        """Return what serves where labels tell few digits.

        Errors of rows grow in a null vector by as much as the next singular value may be near,
        ``gap`` times.  Hardly any wrong signs leave so little: one of 2^m choices meets more
        equations than there are neurons by chance.
        """
        return replace(self, rtol=max(self.rtol, min(gap * told.rows, self.most)))


@dataclass(frozen=True, eq=False)
class Signs:
    """What is known of the signs of neurons."""

    rows: FloatArray | None
    """Shape (m, d + 1), or None.  The rows with their signs, where these are told."""
    are_refuted: bool
    """Whether all choices were looked at and none leaves no skip: a neuron is missing."""


def find_signs(V: FloatArray, columns: OutputEquations, turning: Turning) -> Signs:
    """Find the signs of rows ``V (m, d + 1)`` that leave no skip."""
    m, d = len(V), V.shape[1] - 1
    T = (columns.A[:, :, None] * V[None, :, :d]).transpose(0, 2, 1).reshape(-1, m)
    y = -columns.G.ravel()
    taken_up = _idle_skips(V, columns.idle.A, turning.faint)
    if len(taken_up):
        Q, sizes, _ = np.linalg.svd(taken_up.T, full_matrices=False)
        Q = Q[:, : int((sizes > turning.faint * sizes[0]).sum())]
        T, y = T - Q @ (Q.T @ T), y - Q @ (Q.T @ y)
    size = float(np.linalg.norm(T))
    solutions = find_binary_solutions(
        T, y, turning.rtol * size, turning.rounding, max_bits=turning.max_bits
    )
    if len(found := solutions.every) != 1:
        return Signs(None, solutions.complete and not found)
    return Signs(np.asarray(V * (1.0 - 2.0 * found[0])[:, None]), are_refuted=False)


def _idle_skips(V: FloatArray, idle: FloatArray, faint: float) -> FloatArray:
    """What idle entries ``idle (t, k, m)`` of A may have added to a skip, (n, k d)."""
    found = [np.empty((0, idle.shape[1] * (V.shape[1] - 1)))]
    for i, v in enumerate(V[:, :-1]):
        _, sizes, right = np.linalg.svd(idle[:, :, i], full_matrices=False)
        classes = right[sizes > faint]
        found.append((classes[:, :, None] * v).reshape(len(classes), idle.shape[1] * len(v)))
    return np.concatenate(found)
