"""How far out a target answers, and grows there as a piecewise affine function does."""

import numpy as np

from revelu.oracle import Oracle
from revelu.probe.region import Cube, Everywhere, Region
from revelu.types import FloatArray


def answered_region(
    oracle: Oracle, reach: float, beyond: float, nearer: float, rng: np.random.Generator
) -> tuple[float, Region]:
    """Find how far out a target can be asked; two rows alone say so, and few are refused.

    Parameters
    ----------
    oracle : Oracle
        Without a box of its own.
    reach : float
        How many times as far as the middle it is asked at most.
    beyond : float
        Lines without ends go on to that many times this.
    nearer : float
        Where it does not answer, it is asked this many times nearer, and no nearer than that.
    rng : numpy.random.Generator
        Decides the corner.

    Returns
    -------
    reach : float
    region : Region
        In units of it: everywhere, or a cube of which two opposite corners are answered.
    """
    cube = Cube(nearest=0.0)
    corner = cube.bound * rng.choice([-1.0, 1.0], oracle.dim_in)
    if _grows(oracle, reach * beyond * corner):
        return reach, Everywhere()
    while reach > nearer and not _grows(oracle, reach * corner):
        reach /= nearer
    return reach, cube


def _grows(oracle: Oracle, x: FloatArray) -> bool:
    """Whether a target answers at ``x`` and at ``-x``, by twice what it answers half as far."""
    if not (oracle.is_answered(x) and oracle.is_answered(-x)):
        return False
    Y = oracle(np.vstack([x, -x, x / 2.0, -x / 2.0]))
    return bool((np.abs(Y[:2] - 2.0 * Y[2:]) < np.abs(Y[2:])).any(axis=0).all())
