"""A line through input space, and the lift that makes its noise even.

On ``x(t) = x0 + t v``, with ``v`` orthogonal to ``x0`` and about as long, and
``t = tan(theta)``, the *lifted* answer ``g(theta) = cos(theta) f(x(t))`` is on every
piece a combination of ``cos(theta)`` and ``sin(theta)``.  Its noise is about constant
along the whole line, and the kinks of a random line, Cauchy-like in ``t``, are about
uniform in ``theta``.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from revelu.types import FloatArray

Ask = Callable[[FloatArray], FloatArray]


@runtime_checkable
class Askable(Protocol):
    """An oracle, or its residual."""

    dim_in: int

    def __call__(self, X: FloatArray) -> FloatArray:
        """Ask one round, (n, d) -> (n, k)."""
        ...

    def round(self) -> AbstractContextManager[None]:
        """Count the calls made inside as one round."""
        ...


@dataclass(frozen=True)
class Line:
    """The line ``x0 + t v``.

    Attributes
    ----------
    x0 : ndarray, shape (d,)
    v : ndarray, shape (d,)
    """

    x0: FloatArray
    v: FloatArray

    def points(self, t: FloatArray) -> FloatArray:
        """Return ``x(t)``, shape (n, d)."""
        return np.asarray(self.x0 + np.asarray(t)[:, None] * self.v)

    def lifted(self, ask: Ask, t: FloatArray) -> FloatArray:
        """Ask at ``t`` in one round and return the lifted answers, shape (n, k)."""
        return np.asarray(ask(self.points(t)) / np.sqrt(1.0 + t**2)[:, None])

    def complement(self) -> FloatArray:
        """Return orthonormal rows orthogonal to ``v``, shape (d - 1, d), parallel to no axis.

        The Householder reflection that takes ``e_1`` to ``-+v/|v|`` takes the other unit
        vectors to them.
        """
        u = self.v / np.linalg.norm(self.v)
        u[0] += np.copysign(1.0, u[0])
        return np.asarray((np.eye(len(u)) - np.outer(u, u) * (2.0 / (u @ u)))[1:])

    def step_beside(self, t: float, half_gap: float, share: float = 0.1) -> float:
        """Return a step orthogonal to the line that stays inside a piece, most likely.

        When ``x`` moves by ``h``, the point at angle theta moves by ``h / (|v| sqrt(1 + t^2))``
        in the lifted picture, which is made a share of the half-gap.

        Parameters
        ----------
        t : float
            Where on the line.
        half_gap : float
            Angle to the nearest kink.
        share : float
            Longer steps are more precise, and cross another neuron's kink more often.
        """
        return float(share * half_gap * np.linalg.norm(self.v) * np.hypot(1.0, t))


def random_line(rng: np.random.Generator, d: int, through: FloatArray | None = None) -> Line:
    """Draw a line: ``x0 ~ N(0, I)`` or as given, ``v`` orthogonal to it.

    ``|v|`` is ``|x0|``, or ``sqrt(d)`` where that is longer.

    Parameters
    ----------
    d : int
        Number of inputs.
    through : ndarray, shape (d,), optional
        A point for the line to pass through at ``t = 0``.
    """
    x0 = rng.standard_normal(d) if through is None else np.array(through, dtype=np.float64)
    v = rng.standard_normal(d)
    squared = float(x0 @ x0)
    if d > 1 and squared > 0:
        v -= x0 * ((x0 @ v) / squared)
    length = max(squared, float(d)) ** 0.5
    return Line(x0, v * (length / float(np.linalg.norm(v))))
