"""Whether samples are Gaussian: moments of their whitened coordinates."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from revelu.numerics.confidence import standard_errors
from revelu.numerics.quadratic import row_blocks
from revelu.types import FloatArray


@dataclass(frozen=True)
class InputLaw:
    """What the inputs of samples look like.

    Attributes
    ----------
    mean : ndarray, shape (d,)
    whitening : ndarray, shape (r, d)
        ``(x - mean) @ whitening.T`` has covariance I; r < d where inputs are dependent.
    is_standard : bool
        Mean and covariance are 0 and I, as far as can be told.
    objection : str
        Why the inputs are not Gaussian; empty where nothing speaks against it.
    """

    mean: FloatArray
    whitening: FloatArray
    is_standard: bool
    objection: str

    def whiten(self, X: FloatArray) -> FloatArray:
        """Return inputs of mean 0 and covariance I, (n, d) -> (n, r)."""
        return np.asarray((X - self.mean) @ self.whitening.T)

    def original_rows(
        self, W: FloatArray, t: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """``W z >= t`` of whitened inputs in the samples' own coordinates, rows of norm 1.

        Parameters
        ----------
        W : ndarray, shape (k, r)
            Rows of norm 1.
        t : ndarray, shape (k,)

        Returns
        -------
        W, t : ndarray
        scale : ndarray, shape (k,)
            What the errors of a row grow by at most.
        """
        if self.is_standard:
            return W, t, np.ones(len(t))
        rows = W @ self.whitening
        norms = np.linalg.norm(rows, axis=1)
        spread = float(np.linalg.norm(self.whitening, 2))
        return rows / norms[:, None], (t + rows @ self.mean) / norms, spread / norms


def measure_law(X: FloatArray) -> InputLaw:
    """Measure mean, covariance and the third and fourth moments of inputs.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Two rows at least.

    Notes
    -----
    Under N(0, 1) the means of He_3 and He_4 over n samples have deviations
    ``sqrt(6 / n)`` and ``sqrt(24 / n)``; the largest of d coordinates is tested.
    """
    n, d = X.shape
    blocks = [X[rows] for rows in row_blocks(n, 4096)]
    mean = X.mean(axis=0)
    C = sum(((rows - mean).T @ (rows - mean) for rows in blocks), np.zeros((d, d))) / n
    close = standard_errors(1) / np.sqrt(n)
    is_standard = bool(
        np.abs(mean).max() <= close and np.abs(C - np.eye(d)).max() <= np.sqrt(2.0) * close
    )
    if is_standard:
        whitening = np.eye(d)
        mean = np.zeros(d)
    else:
        whitening = _whitening(C)
    # Whitening mixes coordinates, and mixtures look Gaussian: each for itself, too.
    deviations = np.sqrt(np.diag(C))
    varies = deviations > 0
    if not varies.any():
        return InputLaw(mean, whitening, is_standard, "no input varies")
    center = X.mean(axis=0)
    objection = _objection(
        n, (((rows - center)[:, varies] / deviations[varies]) for rows in blocks)
    )
    if not (objection or is_standard):
        objection = _objection(n, ((rows - mean) @ whitening.T for rows in blocks))
    return InputLaw(mean, whitening, is_standard, objection)


def _whitening(C: FloatArray, rtol: float = 1e-10) -> FloatArray:
    """Return ``R (r, d)`` with ``R C R' = I``; inputs may have been measured in any units.

    Inputs are scaled to variance 1 first.  Directions of less than ``rtol`` of the largest
    variance are those in which the inputs do not vary: rounding makes that much of sums.
    """
    deviations = np.sqrt(np.diag(C))
    units = np.where(deviations > 0, deviations, 1.0)
    values, U = np.linalg.eigh(C / units[:, None] / units)
    kept = values > rtol * max(values[-1], np.finfo(np.float64).tiny)
    return np.asarray((U[:, kept] / np.sqrt(values[kept])).T / units)


def _objection(n: int, blocks: Iterable[FloatArray], slack: float = 0.02) -> str:
    """Say which moment of standardised inputs is off by more than chance.

    One that is off by less than ``slack`` hardly matters, however many samples show it.
    """
    sigmas = standard_errors(1)
    sums = [((Z**3 - 3.0 * Z).sum(axis=0), ((Z**2 - 6.0) * Z**2 + 3.0).sum(axis=0)) for Z in blocks]
    third = np.abs(np.sum([first for first, _ in sums], axis=0)).max() / n
    fourth = np.abs(np.sum([second for _, second in sums], axis=0)).max() / n
    if third > sigmas * np.sqrt(6.0 / n) + slack:
        return f"the inputs are skewed: a third moment is off by {third:.2g}"
    if fourth > sigmas * np.sqrt(24.0 / n) + 2.0 * slack:
        return f"the inputs are not Gaussian: a fourth moment is off by {fourth:.2g}"
    return ""
