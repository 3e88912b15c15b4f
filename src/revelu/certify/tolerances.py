"""The errors that count as agreement with a target's answers."""

import numpy as np

from revelu.oracle import NoiseFloor
from revelu.types import FloatArray

# Half of the digits, but no laxer than this, unless the answers themselves are noisier.
_LAXEST = 1e-6
_NOISE_FACTOR = 32.0

# Of answers that lack digits, so many errors: the largest of a hundred thousand normal
# ones is half of that.
_COARSE_FACTOR = 8.0

# Answers on a grid err by half a unit, and the network may err by as much again; twice
# that is agreement.  Noise drawn anew for every answer exceeds six of its deviations
# once in five hundred million answers.
GRID_UNITS = 2.0
_RANDOM_FACTOR = 6.0

# Deviations of an output that its size is taken to be, at most.
_SPREADS = 4.0


def tolerances(noise: NoiseFloor, spread: FloatArray) -> FloatArray:
    """The largest |error| of each output that counts as agreement on N(0, I).

    Half of the digits that a float64 answer has: recovery divides differences of
    answers by the distance of kinks, and kinks nearer than the square root of the noise
    floor are not told apart by any of its steps.  Of noisier answers the square root
    would be lax: there it is a small multiple of the noise itself, and of rounded answers
    two units of their rounding, the typical or the answer's own, whichever is larger.

    Each output has its own: the weights of a hidden layer err in proportion to its
    neurons, and so, of a smaller output, by less.

    Parameters
    ----------
    noise : NoiseFloor
    spread : ndarray, shape (k,)
        Standard deviation of the outputs.

    Returns
    -------
    ndarray, shape (k,)
        In units of the outputs.
    """
    # |x|^2 = d on N(0, I), so the terms of an answer are sqrt(2) times the scale.
    scale = np.sqrt(2.0) * noise.scale
    # An output that is always 0 has no digits of its own: the network's arithmetic has.
    floor = np.where(scale > 0, 0.0, np.finfo(np.float64).eps * scale.max())
    if noise.grid is not None:
        # Root mean square over all answers: a spacing changes tenfold at powers of ten.
        rounding = GRID_UNITS * np.sqrt(12.0) * noise.nu * scale
    elif noise.law == "random":
        rounding = _RANDOM_FACTOR * noise.nu * scale
    else:
        # A constant that hides the variation must not buy a tolerance.
        varying = np.minimum(scale, _SPREADS * spread)
        factor = np.where(noise.has_all_digits(spread), _NOISE_FACTOR, _COARSE_FACTOR)
        lax = min(noise.half_digits, _LAXEST) * varying
        rounding = np.maximum(factor * noise.nu * scale, lax)
    return np.asarray(np.maximum(rounding, floor))


def in_units(noise: NoiseFloor) -> str:
    """What the tolerances are, in terms of what the target's answers lack themselves."""
    if noise.grid is not None:
        return f", {GRID_UNITS:g} units of the target's rounding to {noise.grid}"
    if noise.law == "random":
        # The noise is known from a few dozen answers.
        return f", about {_RANDOM_FACTOR:g} deviations of the target's noise"
    if noise.law == "float32":
        return f", {_COARSE_FACTOR:g} errors of its float32 answers"
    return ""
