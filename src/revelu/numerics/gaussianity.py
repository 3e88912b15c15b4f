"""Whether samples are Gaussian: moments of their whitened coordinates."""

from dataclasses import dataclass

import numpy as np

from revelu.types import FloatArray

# Standard deviations of chance that a moment may be off, and how little matters anyway.
_SIGMAS = 5.0
_SLACK = 0.02

# Variances below this share of the largest are of inputs that do not vary.
_RANK_RTOL = 1e-10


@dataclass(frozen=True)
class Law:
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


def measure_law(X: FloatArray) -> Law:
    """Measure mean, covariance and the third and fourth moments of inputs.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Two rows at least.

    Notes
    -----
    Under N(0, 1) the means of He_3 and He_4 over n samples have deviations
    ``sqrt(6 / n)`` and ``sqrt(24 / n)``; of d coordinates the largest is judged.
    """
    n, d = X.shape
    mean = X.mean(axis=0)
    C = np.atleast_2d(np.cov(X, rowvar=False, bias=True))
    close = _SIGMAS / np.sqrt(n)
    is_standard = bool(
        np.abs(mean).max() <= close and np.abs(C - np.eye(d)).max() <= np.sqrt(2.0) * close
    )
    if is_standard:
        whitening = np.eye(d)
        mean = np.zeros(d)
    else:
        values, U = np.linalg.eigh(C)
        kept = values > _RANK_RTOL * max(values[-1], np.finfo(np.float64).tiny)
        whitening = (U[:, kept] / np.sqrt(values[kept])).T
    # Whitening mixes coordinates, and mixtures look Gaussian: each for itself, too.
    deviations = X.std(axis=0)
    alone = ((X - X.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0))[:, deviations > 0]
    objection = _objection(alone) or _objection((X - mean) @ whitening.T)
    return Law(mean, whitening, is_standard, objection)


def _objection(Z: FloatArray) -> str:
    n = len(Z)
    if not Z.shape[1]:
        return "no input varies"
    third = np.abs((Z**3 - 3.0 * Z).mean(axis=0)).max()
    fourth = np.abs((Z**4 - 6.0 * Z**2 + 3.0).mean(axis=0)).max()
    if third > _SIGMAS * np.sqrt(6.0 / n) + _SLACK:
        return f"the inputs are skewed: a third moment is off by {third:.2g}"
    if fourth > _SIGMAS * np.sqrt(24.0 / n) + 2.0 * _SLACK:
        return f"the inputs are not Gaussian: a fourth moment is off by {fourth:.2g}"
    return ""
