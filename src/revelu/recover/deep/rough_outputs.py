"""The outputs above rows that traces have found, some rows of the layer missing.

A neuron that is missing moves the answers where it is on, and nothing elsewhere.  The fit is one
to most answers, then: least deviations first, by least squares reweighted, and in the end weights
that forget what is far off (Cauchy's).

What a trace has left open of a row, directions ``U`` of it, answers tell:  ``a relu((v + U t) h)``
has the derivative ``a on(h) U' h`` by ``t``.  The outputs are solved for beside each ``t``, which
is variable projection (Golub and Pereyra 1973) in Kaufman's form.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from revelu.types import FloatArray


@dataclass(frozen=True)
class RoughOutputs:
    """How outputs are fitted."""

    most: float = 0.3
    """The share of answers that has to be explained at least."""
    n_steps: int = 8
    """Of least deviations, and as many of Cauchy's weights."""

    def fit(
        self,
        H: FloatArray,
        Y: FloatArray,
        errors: FloatArray,
        rows: FloatArray,
        undetermined: Sequence[FloatArray],
    ) -> tuple[FloatArray, FloatArray]:
        """Fit what is open of rows, and the outputs.

        Parameters
        ----------
        H : ndarray, shape (n, m)
            What is below them.
        Y, errors : ndarray, shape (n, k)
        rows : ndarray, shape (r, m + 1)
        undetermined : sequence of ndarray, shape (m + 1, q_j)
            Directions that are open of each.

        Returns
        -------
        rows : ndarray, shape (r, m + 1)
        C : ndarray, shape (r + m + 1, k)
            Coefficients of the neurons, of ``h``, and the constant.
        """
        F = np.column_stack([H, np.ones(len(H))])
        open_rows = [j for j, U in enumerate(undetermined) for _ in range(U.shape[1])]
        weights, least = np.ones(len(H)), np.inf
        best = rows, np.zeros((len(rows) + F.shape[1], Y.shape[1]))
        for turn in range(2 * self.n_steps):
            Z = F @ rows.T
            features = np.column_stack([np.maximum(Z, 0.0), F])
            sizes = np.linalg.norm(features, axis=0)
            sizes = np.where(sizes > 0.0, sizes, 1.0)
            Q, R = np.linalg.qr(weights[:, None] * features / sizes)
            C = np.linalg.lstsq(R, Q.T @ (weights[:, None] * Y))[0] / sizes[:, None]
            left = Y - features @ C
            off = np.abs(left / errors).max(axis=1)
            typical = max(float(np.quantile(off, self.most)), 1.0)
            if typical < least:
                least, best = typical, (rows, C)
            if open_rows:
                moves = np.column_stack([F @ U for U in undetermined]) * (Z[:, open_rows] > 0)
                rows = self._moved(rows, undetermined, Q, weights, moves, C[open_rows], left)
            power = 0.25 if turn < self.n_steps else 0.5
            weights = (1.0 + (off / typical) ** 2) ** -power
        return best

    @staticmethod
    def _moved(
        rows: FloatArray,
        undetermined: Sequence[FloatArray],
        Q: FloatArray,
        weights: FloatArray,
        moves: FloatArray,
        A: FloatArray,
        left: FloatArray,
    ) -> FloatArray:
        """Rows after a step of what is open, the outputs solved for beside it."""
        system, right = [], []
        for a, y in zip(A.T, left.T, strict=True):
            J = weights[:, None] * moves * a
            system.append(J - Q @ (Q.T @ J))
            right.append(weights * y)
        # What answers tell little of goes no farther than rows are long; what is left is noise.
        lengths = np.linalg.norm(rows, axis=1) / np.sqrt(rows.shape[1])
        lengths = np.repeat(lengths, [U.shape[1] for U in undetermined])
        noise = np.sqrt(np.mean(np.concatenate(right) ** 2))
        system.append(np.diag(noise / lengths))
        right.append(np.zeros(len(lengths)))
        # A few unknowns of many equations: R of a QR decomposition has all that they say.
        both = np.column_stack([np.vstack(system), np.concatenate(right)])
        R = np.asarray(np.linalg.qr(both, mode="r"))
        t = np.linalg.lstsq(R[:, :-1], R[:, -1])[0]
        parts = np.split(t, np.cumsum([U.shape[1] for U in undetermined])[:-1])
        steps = np.array([U @ part for U, part in zip(undetermined, parts, strict=True)])
        # What is open of a row is no larger than the rest by much.
        sizes, longest = np.linalg.norm(steps, axis=1), np.linalg.norm(rows, axis=1)
        return np.asarray(rows + steps * (longest / np.maximum(sizes, longest))[:, None])
