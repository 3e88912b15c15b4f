"""Directions of a layer from moments of what is rarely anything but constant (GP18, 2.1).

Under a high threshold products of units are rarer still, so that the moments are nearly those
of the linear part, ``T_k = sum_i c_i E[u_t He_k] w_i^(k)`` (Lemma 2).  The second one whitens;
the third and the fourth are diagonalised jointly.  The paper descends a landscape instead:
measured against it, joint diagonalisation is never much worse from a threshold of 1.5 on, and
loses no direction.  Order 3 carries a factor t, and less noise than order 4.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.numerics.float64 import TINY
from revelu.numerics.high_threshold import threshold_of
from revelu.numerics.jennrich import directions_of_pencil, power_weights
from revelu.numerics.joint_diagonalisation import common_rotation
from revelu.numerics.matching import match_rows
from revelu.probe.moments import Moments
from revelu.recover.method import Tell
from revelu.recover.rare.rare_samples import (
    RareSamples,
    fewest_samples,
    too_few,
)
from revelu.recover.rare.units import Units
from revelu.types import FloatArray

MOST_UNITS = 32
"""Units at most: moments of order 4 in more coordinates are more numbers than are worth it."""


@dataclass(frozen=True)
class Start(Units):
    """Units estimated from moments, which tell no error of a threshold.

    The error of a direction is that of its estimate: what products of units add is not in it.
    """

    weights: FloatArray
    """Shape (k,).  ``c_i E[u_t He_2]``."""
    eigenvalues: FloatArray
    """Shape (d,).  Of the second moment, largest first in size."""
    noise: float
    """What noise alone makes of the largest."""


def begin(
    samples: RareSamples, activation: str, n_units: int | None, rng: np.random.Generator, tell: Tell
) -> Start | str:
    """Estimate directions and thresholds, or say how many more samples would show some.

    Parameters
    ----------
    activation : str
        As :func:`estimate_directions` takes it.
    """
    n_rare, d = samples.X.shape
    needed = fewest_samples(d, n_units or 1)
    if n_rare < needed:
        return too_few(n_rare, needed, samples.n)
    tell("estimating directions")
    start = estimate_directions(samples, activation, n_units, rng)
    if start is None:
        return too_few(n_rare, 4 * max(n_rare, needed), samples.n)
    return start


def estimate_directions(
    samples: RareSamples,
    activation: str,
    n_units: int | None,
    rng: np.random.Generator,
    *,
    above_noise: float = 1.5,
    n_shuffles: int = 4,
) -> Start | None:
    """Estimate directions and thresholds, and their errors.

    Parameters
    ----------
    activation : {"relu", "sign", "sigmoid"}
    n_units : int, optional
        At most the number of inputs, and ``MOST_UNITS``; else told from noise.
    above_noise : float
        Multiple of the largest eigenvalue that noise makes, which a direction has to pass: the
        largest eigenvalue of a random matrix varies by much less than half of itself.
    n_shuffles : int
        Second moments with random signs of the values, which have the noise of the real one
        and no direction; the largest eigenvalue of any of them is the noise.

    Returns
    -------
    Start or None
        None where the second moment shows no direction above its noise.
    """
    unit = float(np.abs(samples.values).max(initial=0.0))
    if not unit:
        return None
    samples = replace(samples, values=samples.values / unit)
    values, basis = leading_eigenvectors(samples.second_moment())
    noise = 0.0
    for _ in range(n_shuffles):
        signs = rng.choice([-1.0, 1.0], size=len(samples.values))
        shuffled = replace(samples, values=signs * samples.values).second_moment()
        noise = max(noise, float(np.abs(np.linalg.eigvalsh(shuffled)).max()))
    k = int((np.abs(values) > above_noise * noise).sum()) if n_units is None else n_units
    k = min(k, len(values), MOST_UNITS)
    if not k:
        return None
    basis = basis[:k]
    moments = samples.moments(basis, 4)
    W = _diagonalised(moments, basis, rng)
    if W is None:
        return None
    coordinates = W @ basis.T
    second = power_weights(coordinates, moments.tensor(2))
    first = np.linalg.lstsq(coordinates.T, moments.tensor(1), rcond=None)[0]
    # E[u_t He_1] and E[u_t He_2] are positive: a row whose weights differ in sign is turned.
    turn = np.where(first * second < 0, -1.0, 1.0)
    third = turn * power_weights(coordinates, moments.tensor(3))
    return Start(
        W * turn[:, None],
        threshold_of(activation, third / second),
        _halves_differ(samples, W, rng),
        np.full(k, np.nan),
        unit * second,
        unit * values,
        unit * noise,
    )


def leading_eigenvectors(M: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues (d,) and eigenvectors, as rows (d, d), of a symmetric M; the largest first."""
    values, U = np.linalg.eigh(M)
    order = np.argsort(-np.abs(values))
    return values[order], U[:, order].T


def half_angles(first: FloatArray, second: FloatArray, W: FloatArray) -> FloatArray:
    """Errors of rows ``W`` from estimates of two halves of the samples, all (k, d) -> (k,).

    A half's estimate errs by sqrt(2) times as much as that of the whole, and the difference of
    two by twice as much.  One pair of halves tells a row's error loosely: none is taken for
    less than the root mean square of all.
    """
    matched = []
    for rows in (first, second):
        order, signs = match_rows(rows, W, up_to_sign=True)
        matched.append(signs[:, None] * rows[order])
    cosines = np.sum(matched[0] * matched[1], axis=1)
    angles = np.arccos(np.clip(cosines, 0.0, 1.0)) / 2.0
    return np.asarray(np.maximum(angles, np.sqrt(np.mean(angles**2))))


def _diagonalised(
    moments: Moments, basis: FloatArray, rng: np.random.Generator
) -> FloatArray | None:
    """Rows of norm 1 inside the span of ``basis``, signs arbitrary; None where there are none."""
    second, third, fourth = (moments.tensor(j) for j in (2, 3, 4))
    k = len(basis)
    values, V = np.linalg.eigh(second)
    if values[0] <= 0:
        # Coefficients of both signs: no rotation diagonalises the whitened tensors, a pencil
        # of the tensors themselves does.
        found = directions_of_pencil(second, third, fourth, k, 1, rng)
        return np.asarray(found[0] @ basis) if found else None
    white = V / np.sqrt(values)
    A = np.einsum("ijk,ia,jb,kc->abc", third, white, white, white, optimize=True)
    B = np.einsum("ijkl,ia,jb,kc,ld->abcd", fourth, *[white] * 4, optimize=True)
    # Each order counts by its noise, and as one: order 4 has k times as many matrices as
    # order 3, and no more information.
    stacks = [
        T.reshape(-1, k, k) / np.sqrt(T.size / k**2) / max(np.linalg.norm(T) * noise, TINY)
        for T, noise in ((A, _noise(moments, 3)), (B, _noise(moments, 4)))
    ]
    Q = common_rotation(np.concatenate(stacks))
    W = np.asarray(Q @ np.linalg.inv(white) @ basis)
    return np.asarray(W / np.linalg.norm(W, axis=1, keepdims=True))


def _noise(moments: Moments, order: int) -> float:
    """Noise of the entries of one order, in units of the order's size."""
    size = float(np.linalg.norm(moments.values[order]))
    return float(np.linalg.norm(moments.errors[order])) / max(size, TINY)


def _halves_differ(samples: RareSamples, W: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Errors of rows by the estimates of two halves, each in its own span."""
    half = rng.random(len(samples.X)) < 0.5
    found = []
    for kept in (half, ~half):
        part = RareSamples(
            samples.X[kept], samples.values[kept], samples.n // 2, samples.effective / 2.0
        )
        basis = leading_eigenvectors(part.second_moment())[1][: len(W)]
        rows = _diagonalised(part.moments(basis, 4), basis, rng)
        if rows is None:
            return np.full(len(W), np.pi / 2.0)
        found.append(rows)
    return half_angles(found[0], found[1], W)
