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
        is_open = self.errors > within  # variances only fall
        told, variance = self.told[is_open], self.variances[is_open]
        n, k, p = told.shape
        C, chosen = np.eye(p), np.zeros(0, dtype=np.intp)
        while len(chosen) < min(most, n):
            order = np.argsort(-variance.max(axis=1), kind="stable")
            worst, rest = order[:at_once], variance[order[at_once:]]
            if variance[worst[0]].max() <= within**2:
                break
            bound = max(within**2, float(rest.max(initial=0.0)))
            picked, gains = _picked(told[worst], C, bound, min(most, n) - len(chosen))
            chosen = np.append(chosen, worst[picked])
            C -= gains @ gains.T
            variance -= ((told.reshape(n * k, p) @ gains) ** 2).sum(axis=1).reshape(n, k)
            variance[chosen] = 0.0
        return np.asarray(np.flatnonzero(is_open)[chosen], dtype=np.intp)


def _picked(
    told: FloatArray, C: FloatArray, bound: float, most: int
) -> tuple[list[int], FloatArray]:
    """Pick the worst of a few inputs, one after the other, until no variance exceeds a bound.

    Notes
    -----
    Once an input's answers are asked, of covariance ``S = V C V'`` with errors of size 1, the
    unknowns' covariance ``C`` is less by ``G G'``, with ``G = C V' (1 + S)^(-1/2)``.
    """
    n, k, p = told.shape
    S = told.reshape(n * k, p) @ C @ told.reshape(n * k, p).T
    picked = list[int]()
    while len(picked) < min(most, n):
        variance = np.diag(S).reshape(n, k).max(axis=1)
        variance[picked] = 0.0
        if picked and variance.max() <= bound:
            break
        worst = int(variance.argmax())
        picked.append(worst)
        rows = slice(worst * k, worst * k + k)
        root = np.linalg.cholesky(np.eye(k) + S[rows, rows])
        step = scipy.linalg.solve_triangular(root, S[rows], lower=True, check_finite=False)
        S -= step.T @ step
    asked = told[picked].reshape(len(picked) * k, p)
    among = np.eye(len(asked)) + asked @ C @ asked.T
    root = np.linalg.cholesky(among)
    gains = scipy.linalg.solve_triangular(root, asked @ C, lower=True, check_finite=False)
    return picked, np.ascontiguousarray(gains.T)
