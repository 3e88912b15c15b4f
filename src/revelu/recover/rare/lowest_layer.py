"""The first layer of a network that fires rarely (GP18, Sections 2.1 and 2.2), from an oracle.

``f(x) = P(u(w_1 x - t_1), ..., u(w_k x - t_k))``, P a polynomial or any network.  Where no
unit fires f is constant, and that region is convex: its faces are the layer
(:mod:`revelu.recover.rare.facets`).  From samples: :mod:`revelu.recover.rare.sampled_layer`.
"""

from dataclasses import replace

import numpy as np

from revelu.errors import LimitReachedError
from revelu.oracle import Oracle
from revelu.recover.method import Tell, Why
from revelu.recover.rare.facets import recover_facets
from revelu.recover.rare.rare_samples import Constant, find_constant, no_constant
from revelu.recover.rare.smooth_layer import ask_smooth_layer
from revelu.recover.rare.units import Units, UnitsCandidate
from revelu.types import FloatArray


def recover_layer(
    oracle: Oracle,
    activation: str,
    n_units: int | None,
    rng: np.random.Generator,
    tell: Tell,
    *,
    n_inputs: int = 448,
    batches: tuple[int, ...] = (1, 2, 13, 64),
    least_share: float = 0.2,
) -> UnitsCandidate:
    """Recover the layer from an oracle.

    Parameters
    ----------
    activation : {"relu", "sign", "sigmoid"}
    n_units : int, optional
        Needed for nothing but the sigmoid, where it is told from noise if left out.
    n_inputs : int
        Inputs of N(0, I) that show the constant.
    batches : tuple of int
        Sizes of batches of one quiet input: a matrix product may round by its shape.
    least_share : float
        Share of the inputs that must be quiet: a constant given less often may be chance, and
        "rarely" does not describe such units.
    """
    if activation == "sigmoid":
        return ask_smooth_layer(oracle, n_units, rng, tell)
    d = oracle.dim_in
    # 1. The constant: the answer that is given most often.
    try:
        tell("looking for the constant")
        X = rng.standard_normal((n_inputs, d))
        answers = oracle(X)
        constant = find_constant(answers)
        if constant.share < least_share:
            return UnitsCandidate.none(d, Why.REFUTED, no_constant(constant.share))
        quiet = X[np.argmax(constant.is_answer(answers))]
        for n in batches:
            constant = constant.widened(oracle(np.tile(quiet, (n, 1))))
    except LimitReachedError as error:
        return UnitsCandidate.none(d, Why.LIMIT, str(error))
    # 2. The faces of the region where f is that constant.
    found = recover_facets(lambda X: constant.is_answer(oracle(X)), d, rng, tell)
    units = found.units
    if activation == "relu" and constant.tolerance and len(units):
        late = _late(oracle, units, constant)
        units = replace(units, threshold_errors=units.threshold_errors + late)
    figures = {"constant": constant.value, "rounding": constant, "quiet": constant.share}
    return replace(found, units=units, constant=constant, figures=figures)


def _late(oracle: Oracle, units: Units, constant: Constant) -> FloatArray:
    """How far beyond its threshold a ReLU must be to be seen above the constant's rounding."""
    if not oracle.affords(len(units)):
        return np.full(len(units), np.inf)
    beyond = 1e-2  # where the rise is measured: far above rounding, before other units fire
    X = (units.thresholds + beyond)[:, None] * units.directions
    rises = np.abs(oracle(X) - constant.value).max(axis=1)
    return np.asarray(constant.tolerance * beyond / np.maximum(rises, constant.tolerance))
