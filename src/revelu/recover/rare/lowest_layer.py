"""The first layer of a network that fires rarely (GP18, Sections 2.1 and 2.2), from an oracle.

``f(x) = P(u(w_1 x - t_1), ..., u(w_k x - t_k))``, P a polynomial or any network.  Where no
unit fires f is constant, and that region is convex: its faces are the layer
(:mod:`revelu.recover.rare.facets`).  From samples: :mod:`revelu.recover.rare.sampled_layer`.
"""

from collections.abc import Callable

import numpy as np

from revelu.errors import LimitReachedError
from revelu.oracle import Oracle
from revelu.recover.rare.facets import Facets, recover_facets
from revelu.recover.rare.halfspaces import find_centre, verdict
from revelu.recover.rare.rare_samples import Constant, find_constant
from revelu.recover.rare.smooth_layer import ask_smooth_layer, nothing
from revelu.recovery import LayerRecovery, Status
from revelu.types import BoolArray, FloatArray

# Inputs that show the constant, batches that show its rounding, and the least share of
# inputs that must be quiet.
_N_INPUTS = 448
_BATCHES = (1, 2, 13, 64)
COMMON = 0.2

# A rise is measured so far beyond a threshold.
_BESIDE = 1e-2

Tell = Callable[[str], None]


def recover_by_queries(
    oracle: Oracle,
    activation: str,
    n_units: int | None,
    seed: int | np.random.SeedSequence,
    tell: Tell,
) -> LayerRecovery:
    """Recover the layer from an oracle.

    Parameters
    ----------
    oracle : Oracle
    activation : {"relu", "sign", "sigmoid"}
    n_units : int, optional
        Needed for nothing but the sigmoid, where it is told from noise if left out.
    seed : int or SeedSequence
    tell : callable

    Returns
    -------
    LayerRecovery
        ``UNVERIFIED`` where the search ended, for the caller to check.
    """
    if activation == "sigmoid":
        return ask_smooth_layer(oracle, n_units, seed, tell)
    rng = np.random.default_rng(seed)
    try:
        # 1. The constant: the answer that is given most often.
        tell("looking for the constant")
        X = rng.standard_normal((_N_INPUTS, oracle.dim_in))
        answers = oracle(X)
        constant = find_constant(answers)
        if constant.share < COMMON:
            return nothing(oracle.dim_in, Status.NOT_IN_CLASS, no_constant(constant.share), oracle)
        # A matrix product may round by its shape: a quiet input again, in other batches.
        quiet = X[np.argmax(constant.is_answer(answers))]
        for n in _BATCHES:
            constant = constant.widened(oracle(np.tile(quiet, (n, 1))))

        def inside(X: FloatArray) -> BoolArray:
            return constant.is_answer(oracle(X))

        centre = find_centre(inside, oracle.dim_in, rng)
    except LimitReachedError as error:
        return nothing(oracle.dim_in, Status.BUDGET_EXHAUSTED, str(error), oracle)
    if centre is None:  # pragma: no cover - the constant was seen a moment ago
        return nothing(oracle.dim_in, Status.PARTIAL, no_constant(constant.share), oracle)
    # 2. The faces of the region where f is that constant.
    found = recover_facets(inside, centre, rng, tell)
    status, evidence = verdict(found)
    if activation == "relu" and constant.tolerance and len(found.normals):
        found.threshold_errors = found.threshold_errors + _late(oracle, found, constant)
    details = {
        "threshold_errors": found.threshold_errors,
        "constant": constant.value,
        "rounding": constant,
        "centre": centre,
        "quiet": constant.share,
        "missed": found.missed,
    }
    return LayerRecovery(
        status,
        found.normals,
        found.thresholds,
        found.errors,
        ledger=oracle.ledger(),
        evidence=evidence,
        method="facets",
        details=details,
    )


def _late(oracle: Oracle, found: Facets, constant: Constant) -> FloatArray:
    """How far beyond its threshold a ReLU must be to be seen above the constant's rounding."""
    if not oracle.affords(len(found.normals)):
        return np.full(len(found.normals), np.inf)
    X = (found.thresholds + _BESIDE)[:, None] * found.normals
    rises = np.abs(oracle(X) - constant.value).max(axis=1)
    return np.asarray(constant.tolerance * _BESIDE / np.maximum(rises, constant.tolerance))


def no_constant(share: float) -> str:
    """Say that no constant was seen."""
    return _NO_CONSTANT.format(share=share)


_NO_CONSTANT = (
    "no answer is given to more than {share:.1%} of the inputs, so that units do not fire "
    "rarely: the threshold is too low for the method, answers have noise, or the activation is "
    "smooth (activation='sigmoid')"
)
