"""Robust regression: least squares solved again and again, weighted by what each has left.

A loss gives each equation a factor by the size of its rest; the square of that factor is the
weight of the textbooks, ``rho'(r) / r`` (Holland and Welsch 1977).  The scale of either loss
follows from the rests themselves, of which a half or more are those of right equations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from revelu.types import FloatArray

Loss: TypeAlias = Callable[[FloatArray], FloatArray]
"""Takes sizes of rests (n,) and gives the factors of their equations (n,)."""


@dataclass(frozen=True)
class LeastDeviations:
    """Least absolute deviations, ``sum r``: exact where more than half of the equations are.

    Attributes
    ----------
    floor : float
        Rests of this size are rounding.
    share : float
        Rests under this share of their median weigh alike: only those that stand out are weighed
        down, and no equation alone decides.
    """

    floor: float
    share: float = 0.3

    def scale(self, rests: FloatArray) -> float:
        """Return ``delta``, under which rests weigh alike."""
        return max(self.share * float(np.median(rests)), self.floor)

    def __call__(self, rests: FloatArray) -> FloatArray:
        """Return ``1 / sqrt(r + delta)``."""
        return np.asarray(1.0 / np.sqrt(rests + self.scale(rests)))


@dataclass(frozen=True)
class Cauchy:
    """The likelihood under errors of Cauchy's law: what is far off is as good as forgotten.

    Attributes
    ----------
    floor : float
        The scale is no smaller than this: the standard error, where rests are in units of it.
    times : float
        The scale in medians of the rests; of Cauchy's law the median is the scale.
    """

    floor: float
    times: float = 1.0

    def __call__(self, rests: FloatArray) -> FloatArray:
        """Return ``1 / sqrt(1 + (r / c)²)``."""
        return cauchy(rests, max(self.times * float(np.median(rests)), self.floor))


def cauchy(rests: FloatArray, scale: float) -> FloatArray:
    """Return the factors ``1 / sqrt(1 + (r / c)²)`` of equations under errors of Cauchy's law."""
    return np.asarray(1.0 / np.sqrt(1.0 + (rests / scale) ** 2))


def larger_than_said(rests: FloatArray, *, median: float = 0.6745) -> float:
    """Return by how much standard errors are too small, by the rests in units of them; 1 at least.

    The median tells it although some equations are wrong.

    Parameters
    ----------
    rests : ndarray, shape (n,)
        Not negative.
    median : float
        Half of all numbers of N(0, 1) are smaller in size.
    """
    return max(1.0, float(np.median(rests)) / median)


def reweighted(
    A: FloatArray, B: FloatArray, loss: Loss, n_steps: int, *, enough: float = 0.0
) -> FloatArray:
    """Solve ``A X = B`` where most rows can be.

    Parameters
    ----------
    A : ndarray, shape (n, p)
    B : ndarray, shape (n,) or (n, k)
        Of several right-hand sides a row's rest is the norm.
    loss : callable, (n,) -> (n,)
    n_steps : int
        Solutions, the first of them unweighted.
    enough : float
        The last solution but one leaves this at the median.

    Returns
    -------
    ndarray, shape (p,) or (p, k)
    """
    right = B.reshape(len(B), -1)
    factors, is_last = np.ones((len(A), 1)), False
    for _ in range(n_steps):
        X = np.linalg.lstsq(A * factors, right * factors, rcond=None)[0]
        if is_last:
            break
        rests = np.linalg.norm(right - A @ X, axis=1)
        is_last = float(np.median(rests)) <= enough
        factors = loss(rests)[:, None]
    return np.asarray(X.reshape(A.shape[1], *B.shape[1:]))
