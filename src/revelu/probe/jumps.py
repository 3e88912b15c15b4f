"""How sharply a function changes across a hyperplane, and so whether it is a unit's border.

GP18, Section 3: the correlation of f with ``delta'(z x - s)`` is infinite where ``z x = s`` is a
sign unit's border, and finite otherwise; with ``delta''`` where it is a ReLU's kink (C.1).  Over
a step e, the mean of ``f(x + e z) - f(x - e z)``, or of ``(f(x + e z) - 2 f(x) + f(x - e z)) / e``,
on ``z x = s`` stays what it is as epsilon falls if z is a direction, and falls with it if not
(Lemmas 8 and 19).  Both points of a pair share all other coordinates, which leaves little to
chance.  Neither a linear term of P nor a high threshold is needed.
"""

from dataclasses import dataclass

import numpy as np

from revelu.oracle import Oracle
from revelu.types import FloatArray

# A direction keeps this share of its jump over a step so many times shorter, and the jump is
# so many standard errors from nought.
_KEPT = 0.5
_SHORTER = 10.0
_CLEAR = 5.0


@dataclass(frozen=True)
class Jump:
    """A mean change across a hyperplane.

    Attributes
    ----------
    value, error : float
        The mean and its standard error.
    """

    value: float
    error: float


def estimate_jump(
    oracle: Oracle,
    z: FloatArray,
    s: float,
    activation: str,
    epsilon: float,
    n: int,
    rng: np.random.Generator,
) -> Jump:
    """Estimate the jump of a function, or of its slope, across ``z x = s``.

    Parameters
    ----------
    oracle : Oracle
        One output.
    z : ndarray, shape (d,)
        Of norm 1.
    s : float
    activation : {"sign", "relu"}
        Of values, or of slopes.
    epsilon : float
        Half of the step.
    n : int
        Points of the hyperplane, under N(0, I); two queries each for sign, three for ReLU.
    rng : numpy.random.Generator
    """
    X = rng.standard_normal((n, len(z)))
    X += (s - X @ z)[:, None] * z
    steps = (1.0, -1.0) if activation == "sign" else (1.0, -1.0, 0.0)
    Y = oracle(np.vstack([X + step * epsilon * z for step in steps]))[:, 0].reshape(len(steps), n)
    change = Y[0] - Y[1] if activation == "sign" else (Y[0] + Y[1] - 2.0 * Y[2]) / epsilon
    return Jump(float(change.mean()), float(change.std() / np.sqrt(n)))


def jump_of_samples(X: FloatArray, y: FloatArray, z: FloatArray, s: float, epsilon: float) -> Jump:
    """Estimate the jump of values across ``z x = s`` from samples, by slabs of width epsilon.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    z : ndarray, shape (d,)
    s, epsilon : float

    Returns
    -------
    Jump
        With an infinite error where a slab holds fewer than two samples.
    """
    beyond = X @ z - s
    above, below = y[(beyond >= 0) & (beyond < epsilon)], y[(beyond < 0) & (beyond >= -epsilon)]
    if min(len(above), len(below)) < 2:
        return Jump(0.0, np.inf)
    error = np.sqrt(above.var() / len(above) + below.var() / len(below))
    return Jump(float(above.mean() - below.mean()), float(error))


def is_direction(
    oracle: Oracle,
    z: FloatArray,
    s: float,
    activation: str,
    epsilon: float,
    n: int,
    rng: np.random.Generator,
) -> bool:
    """Theorem 7's test: whether ``z x = s`` is a unit's border, to an angle of about epsilon.

    Parameters and their meaning are those of :func:`estimate_jump`; twice the queries.
    """
    wide = estimate_jump(oracle, z, s, activation, epsilon, n, rng)
    narrow = estimate_jump(oracle, z, s, activation, epsilon / _SHORTER, n, rng)
    clear = abs(narrow.value) > _CLEAR * narrow.error
    return bool(clear and abs(narrow.value) > _KEPT * abs(wide.value))
