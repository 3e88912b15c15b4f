"""The signs of the last hidden layer, where a vanishing affine rest determines them."""

import numpy as np

from revelu.network import Network
from revelu.numerics.confidence import CONFIDENCE
from revelu.numerics.subset_sum import (
    MAX_BITS,
    ROUNDING,
    BinarySolutions,
    expected_coincidences,
    find_binary_solutions,
)

# Signs that are tried in no time.  While neurons are missing hardly any choice leaves nothing,
# and more are not worth their work.
QUICK_BITS = 24


def resolve_signs(
    network: Network,
    rtol: float,
    rounding: float = ROUNDING,
    chance: float = 1.0 - CONFIDENCE,
    max_bits: int = MAX_BITS,
) -> tuple[Network, list[str]]:
    """Turn neurons round so that the affine skip vanishes, where that can be done.

    Parameters
    ----------
    network : Network
        Two layers with a skip.
    rtol : float
        Largest remainder that counts as none, relative to the neurons' affine maps.
    rounding : float
        How far from 0 and 1 an unknown may be that the others determine.
    chance : float
        The most choices of signs that may be expected to leave so little by chance alone: what a
        certificate may get wrong at its confidence.
    max_bits : int
        The most signs that may be tried out.

    Returns
    -------
    network : Network
        Without a skip where exactly one choice of signs leaves none.
    notes : list of str
        Why the skip was kept, if it was.

    Notes
    -----
    ``a relu(z) = a relu(-z) + a z``: flipping the set S adds ``sum_S a_j w_j^T`` to V.
    """
    if network.skip is None:
        return network, []
    (W, A), V = network.weights, network.skip[0]
    m = len(W)
    if not m:
        return network, []
    G = (A[:, None, :] * W.T[None]).reshape(-1, m)
    size = float(np.sqrt((G**2).sum()))
    atol = rtol * size
    solutions = find_binary_solutions(G, -V.ravel(), atol, rounding, max_bits=max_bits)
    # What counts is how little is left, not how little was asked for.
    left = [float(np.linalg.norm(G @ x + V.ravel())) for x in solutions.found]
    rest = max(min(left, default=atol), np.finfo(np.float64).eps * size)
    if why := _doubt(solutions, expected_coincidences(G, rest) <= chance):
        return network, [f"the affine skip is kept: {why}; the function is the same"]
    plain = network.folded().turn_round(solutions.found[0] > 0.5)
    return Network(plain.weights, plain.biases), []


def _doubt(solutions: BinarySolutions, is_evidence: bool) -> str:
    """Why no choice of signs is the true one, for all that is known."""
    if len(solutions.found) > 1:
        return "several choices of signs fit the digits that there are"
    if not solutions.complete:
        return "there are more choices of signs than can be searched"
    if not solutions.found:
        return "no choice of signs was found without it"
    return "" if is_evidence else "the digits are too few to tell one choice of signs from others"
