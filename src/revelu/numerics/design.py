"""Where to ask next: inputs whose answers tell most of what those at hand leave open.

Answers determine unknowns by least squares.  Linearised there, each new input is known to err by so
much, and by how much less once another is asked: what to ask is chosen before anything is, one
input after the other, always that which errs most (sequential design, Wynn 1970).
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from revelu.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Foretold:
    """How answers err that are foretold from others.

    Attributes
    ----------
    told : ndarray, shape (n, k, p)
        Of each of the ``k`` answers at an input ``L^-1 j``: its derivative over its own error, and
        the Cholesky factor of the normal equations of the answers at hand.  The inner product of
        two is the covariance of these answers, over their errors.
    """

    told: FloatArray

    @classmethod
    def of(cls, normal: FloatArray, J: FloatArray, k: int) -> "Foretold":
        """Foretell answers from the upper triangle of normal equations.

        Parameters
        ----------
        normal : ndarray, shape (p, p)
            Of the answers at hand.
        J : ndarray, shape (n * k, p)
            Derivatives of those looked at, over their errors.
        """
        sizes = np.sqrt(np.diag(normal))
        sizes = np.where(sizes > 0.0, sizes, 1.0)
        unit = normal / sizes / sizes[:, None]
        # What nothing tells stays finite: it is told by no more than rounding makes of p^2 terms.
        unit[np.diag_indices_from(unit)] += unit.size * np.finfo(np.float64).eps
        factor = scipy.linalg.cholesky(unit, check_finite=False)
        told = scipy.linalg.solve_triangular(factor, (J / sizes).T, trans="T", check_finite=False)
        return cls(np.ascontiguousarray(told.T).reshape(len(J) // k, k, len(normal)))

    @property
    def variances(self) -> FloatArray:
        """Of each answer, over that of its own error, shape (n, k)."""
        return np.asarray(np.einsum("nkp,nkp->nk", self.told, self.told))

    @property
    def errors(self) -> FloatArray:
        """Standard errors over the answers' own, the largest at each input, shape (n,)."""
        return np.asarray(np.sqrt(self.variances.max(axis=1, initial=0.0)))

    def n_open(self, within: float) -> int:
        """How many inputs err by more than ``within``."""
        return int((self.errors > within).sum())

    def telling(self, within: float, most: int, *, at_once: int = 64) -> IntArray:
        """Choose inputs after whose answers no other errs by more than ``within``.

        Parameters
        ----------
        most : int
            As many are chosen at most, each of them once: asked again, a target answers the same.
        at_once : int
            Worst inputs of which several are chosen before all others are looked at again, as long
            as they err by more than these: few products of large matrices take less time than many
            with vectors.
        """
        errors = self.errors
        is_open = np.isfinite(errors) & (errors > within)
        told = self.told[is_open]
        chosen, is_left = np.zeros(0, dtype=np.intp), np.ones(len(told), dtype=bool)
        while len(chosen) < min(most, len(told)):
            left = np.where(is_left, Foretold(told).errors, 0.0)
            order = np.argsort(-left, kind="stable")
            if left[order[0]] <= within:
                break
            worst, bound = order[:at_once], left[order[at_once:]].max(initial=within)
            picked = worst[_picked(told[worst], bound, min(most, len(told)) - len(chosen))]
            chosen, is_left[picked] = np.append(chosen, picked), False
            told = _once_asked(told, told[picked])
        return np.asarray(np.flatnonzero(is_open)[chosen], dtype=np.intp)


def _picked(told: FloatArray, bound: float, most: int) -> list[int]:
    """Pick the worst of a few inputs, one after the other, until none errs by more than a bound."""
    picked = list[int]()
    while len(picked) < min(most, len(told)):
        errors = Foretold(told).errors
        errors[picked] = 0.0
        worst = int(errors.argmax())
        if picked and errors[worst] <= bound:
            break
        picked.append(worst)
        told = _once_asked(told, told[worst])
    return picked


def _once_asked(told: FloatArray, asked: FloatArray) -> FloatArray:
    """What is told of answers once others are known, too, with errors of size 1.

    Notes
    -----
    Asking ``V`` leaves the unknowns' covariance ``(1 + V'V)^-1``.  By the singular values ``s`` of
    ``V`` and its right vectors ``W``, its root is ``1 - W (1 - (1 + s^2)^(-1/2)) W'``: nothing is
    subtracted that is nearly all, so that no variance comes out below 0.
    """
    p = told.shape[-1]
    s, W = np.linalg.svd(asked.reshape(-1, p), full_matrices=False)[1:]
    rows = told.reshape(-1, p)
    share = 1.0 - 1.0 / np.hypot(1.0, s)
    return np.asarray((rows - ((rows @ W.T) * share) @ W).reshape(told.shape))
