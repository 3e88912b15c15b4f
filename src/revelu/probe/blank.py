"""Where a function is constant: beside such points nothing is seen of what is below.

A layer all of whose neurons are off makes the answers of a network constant over whole regions.
"""

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask


def blank_share(
    ask: Ask,
    noise: NoiseFloor,
    dim_in: int,
    rng: np.random.Generator,
    *,
    n_inputs: int = 64,
    step: float = 1e-3,
    bound: float = np.inf,
) -> float:
    """Measure at which share of N(0, I) no answer changes nearby, by one round of two each.

    Parameters
    ----------
    ask : callable, (n, d) -> (n, k)
    step : float
        Standard deviation of the moves.
    bound : float
        The largest coordinate of an input.
    """
    X, V = rng.standard_normal((2, n_inputs, dim_in))
    X = np.clip(X, -bound, bound)
    Y, near = np.split(ask(np.vstack([X, np.clip(X + step * V, -bound, bound)])), 2)
    with np.errstate(invalid="ignore"):  # infinite where the target is saturated
        change = np.abs((near - Y) / noise.unit).max(axis=1)
    rounding = 2.0 * SIGMAS * float(noise.nu.max()) * noise.growth(X)
    return float((change <= rounding).mean())
