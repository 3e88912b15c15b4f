"""Directions of a layer from moments of what is rarely anything but constant (GP18, 2.1).

Under a high threshold the products of units are rarer still, so that the moments are those
of the linear part, ``T_k = sum_i c_i E[u_t He_k] w_i^(k)``, nearly (Lemma 2).  The second one
whitens, the third and the fourth are diagonalised jointly: of the ways measured, no worse
anywhere than the paper's landscape, and it loses no direction.  Order 3 carries a factor t,
and less noise than order 4.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.numerics.common_rotation import common_rotation
from revelu.numerics.high_threshold import coefficient, threshold_of
from revelu.numerics.jennrich import directions_of_pencil, power_weights
from revelu.numerics.matching import match_rows
from revelu.probe.moments import Moments
from revelu.recover.rare.landscape import balanced
from revelu.recover.rare.rare_samples import RareSamples, rare_moments, second_moment
from revelu.types import FloatArray

# Second moments with random signs, whose largest eigenvalue is noise, and its multiple that
# a direction must pass.
_N_SHUFFLES = 4
_ABOVE_NOISE = 1.5

# Moments of order 4 in more coordinates are more numbers than are worth their while.
MOST_UNITS = 32

# Order 4 beside order 3 has so many more matrices than it has information.
_ORDER = 4


@dataclass(frozen=True)
class Start:
    """Estimated units.

    Attributes
    ----------
    directions : ndarray, shape (k, d)
        Rows of norm 1, leading to where units fire.
    thresholds : ndarray, shape (k,)
    errors : ndarray, shape (k,)
        Half of the angle between the estimates of two halves of the samples; what products
        of units add is not in it.
    weights : ndarray, shape (k,)
        ``c_i E[u_t He_2]``.
    eigenvalues : ndarray, shape (d,)
        Of the second moment, largest first in size.
    noise : float
        What noise alone makes of the largest.
    minima : ndarray, shape (k, 2)
        Epsilon and tau of Definition 1 for each direction: how steep G(z) is where it should
        have a minimum, in units of the part it is made of, and how far its curvature falls
        below 0.  Products of units and noise make them large; NaN where G has no minimum along
        the direction.
    """

    directions: FloatArray
    thresholds: FloatArray
    errors: FloatArray
    weights: FloatArray
    eigenvalues: FloatArray
    noise: float
    minima: FloatArray


def estimate_directions(
    samples: RareSamples, activation: str, n_units: int | None, rng: np.random.Generator
) -> Start | None:
    """Estimate directions and thresholds, and their errors.

    Parameters
    ----------
    samples : RareSamples
    activation : {"relu", "sign", "sigmoid"}
    n_units : int, optional
        At most the number of inputs, and ``MOST_UNITS``; else told from noise.
    rng : numpy.random.Generator

    Returns
    -------
    Start or None
        None where the second moment shows no direction above its noise.
    """
    unit = float(np.abs(samples.values).max(initial=0.0))
    if not unit:
        return None
    samples = replace(samples, values=samples.values / unit)
    values, U = np.linalg.eigh(second_moment(samples))
    order = np.argsort(-np.abs(values))
    values, U = values[order], U[:, order]
    noise = _shuffled(samples, rng)
    k = int((np.abs(values) > _ABOVE_NOISE * noise).sum()) if n_units is None else n_units
    k = min(k, len(values), MOST_UNITS)
    if not k:
        return None
    whole = _directions(samples, U[:, :k].T, rng)
    if whole is None:
        return None
    W, moments, basis = whole
    coordinates = W @ basis.T
    second = power_weights(coordinates, moments.tensor(2))
    first = np.linalg.lstsq(coordinates.T, moments.tensor(1), rcond=None)[0]
    # E[u_t He_1] and E[u_t He_2] are positive: where their signs differ the row is turned.
    turn = np.where(first * second < 0, -1.0, 1.0)
    third = turn * power_weights(coordinates, moments.tensor(3))
    thresholds = threshold_of(activation, third / second)
    return Start(
        W * turn[:, None],
        thresholds,
        _halves_differ(samples, W, rng),
        unit * second,
        unit * values,
        unit * noise,
        _minima(activation, coordinates, thresholds, moments),
    )


def _minima(activation: str, W: FloatArray, thresholds: FloatArray, moments: Moments) -> FloatArray:
    """Check directions (k, k) against the landscape whose minima they should be (Claim 1)."""
    second, fourth = moments.tensor(2), moments.tensor(4)
    found = np.full((len(W), 2), np.nan)
    for i, (z, t) in enumerate(zip(np.linalg.pinv(W).T, thresholds, strict=True)):
        if not np.isfinite(t):
            continue
        u2, u4 = (float(coefficient(activation, j, np.array(t))) for j in (2, 4))
        # f in units of the direction's own coefficient, as lambda = Theta(|u_4| / u_2^2) asks.
        c = float(z @ second @ z) / (np.sqrt(2.0) * u2)
        if c <= 0:
            continue
        G = balanced(second / c, fourth / c, u2, u4)
        # Along s z: G = -A s^4 + lambda (u_2 s^2 - u_2)^2, least at s^2 = lambda u_2^2 /
        # (lambda u_2^2 - A).
        A = float(np.einsum("ijkl,i,j,k,l", fourth, z, z, z, z)) / (np.sqrt(24.0) * c)
        A, B = np.sign(u4) * A, u2
        if A <= 0 or G.weight * B**2 <= A:
            continue
        squared = G.weight * B * u2 / (G.weight * B**2 - A)
        found[i] = np.array(G.attained(np.sqrt(squared) * z)) / (A * squared**2)
    return found


def _shuffled(samples: RareSamples, rng: np.random.Generator) -> float:
    """Largest eigenvalue of second moments whose values have random signs."""
    sizes = []
    for _ in range(_N_SHUFFLES):
        signs = rng.choice([-1.0, 1.0], size=len(samples.values))
        noise = RareSamples(samples.X, signs * samples.values, samples.n, samples.effective)
        sizes.append(float(np.abs(np.linalg.eigvalsh(second_moment(noise))).max()))
    return max(sizes)


def _directions(
    samples: RareSamples, basis: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, Moments, FloatArray] | None:
    """Rows of norm 1 inside the span, signs arbitrary."""
    moments = rare_moments(samples, basis, _ORDER)
    second, third, fourth = (moments.tensor(j) for j in (2, 3, 4))
    k = len(basis)
    values, V = np.linalg.eigh(second)
    if values[0] <= 0:
        # Coefficients of both signs: no rotation diagonalises, a pencil does.
        found = directions_of_pencil(second, third, fourth, k, 1, rng)
        return (np.asarray(found[0] @ basis), moments, basis) if found else None
    white = V / np.sqrt(values)
    A = np.einsum("ijk,ia,jb,kc->abc", third, white, white, white, optimize=True)
    B = np.einsum("ijkl,ia,jb,kc,ld->abcd", fourth, *[white] * 4, optimize=True)
    stacks = [
        T.reshape(-1, k, k) / np.sqrt(T.size / k**2) / max(np.linalg.norm(T) * noise, 1e-300)
        for T, noise in ((A, _noise(moments, 3)), (B, _noise(moments, 4)))
    ]
    Q = common_rotation(np.concatenate(stacks))
    W = np.asarray(Q @ np.linalg.inv(white) @ basis)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    return W, moments, basis


def _noise(moments: Moments, order: int) -> float:
    """Noise of the entries of one order, in units of the order's size."""
    size = float(np.linalg.norm(moments.values[order]))
    return float(np.linalg.norm(moments.errors[order])) / max(size, np.finfo(np.float64).tiny)


def _halves_differ(samples: RareSamples, W: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Half of the angle between two halves' estimates, each in its own span."""
    half = rng.random(len(samples.X)) < 0.5
    found = []
    for kept in (half, ~half):
        part = RareSamples(
            samples.X[kept], samples.values[kept], samples.n // 2, samples.effective / 2.0
        )
        values, U = np.linalg.eigh(second_moment(part))
        own = _directions(part, U[:, np.argsort(-np.abs(values))[: len(W)]].T, rng)
        if own is None:
            return np.full(len(W), np.pi / 2.0)
        rows, signs = match_rows(own[0], W, up_to_sign=True)
        found.append(signs[:, None] * own[0][rows])
    cosines = np.abs(np.sum(found[0] * found[1], axis=1))
    angles = np.arccos(np.clip(cosines, 0.0, 1.0)) / 2.0
    # One pair of halves tells a direction's error loosely: none is said to beat the typical.
    return np.asarray(np.maximum(angles, np.sqrt(np.mean(angles**2))))
