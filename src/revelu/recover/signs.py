"""The signs of the last hidden layer, where a vanishing affine rest determines them."""

import numpy as np

from revelu.network import Network
from revelu.numerics.confidence import CONFIDENCE
from revelu.numerics.subset_sum import (
    BinarySolutions,
    expected_coincidences,
    find_binary_solutions,
)

SKIP_KEPT = "the affine skip is kept"
"""How a note begins that a network has one."""

SAME_FUNCTION = "; the function is the same"
"""How a note ends by which a network is written otherwise, but is what it was."""


def resolve_signs(
    network: Network,
    rtol: float,
    rounding: float = 1e-2,
    chance: float = 1.0 - CONFIDENCE,
    *,
    is_whole: bool = True,
    max_bits: int = 44,
    quick_bits: int = 24,
) -> tuple[Network, list[str]]:
    """Turn neurons round so that the affine skip vanishes, where that can be done.

    Parameters
    ----------
    network : Network
        One hidden layer, with a skip.
    rtol : float
        Largest remainder that counts as none, relative to the neurons' affine maps.
    rounding : float
        How far from 0 and 1 an unknown may be that the others determine.
    chance : float
        The most choices of signs that may be expected to leave so little by chance alone: what a
        certificate may get wrong by default.
    is_whole : bool
        Whether no neuron is missing.  While some are, hardly any choice leaves nothing, and many
        are not worth their work.
    max_bits, quick_bits : int
        The most signs that may be tried out, and those that are in no time.

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
    most = max_bits if is_whole else quick_bits
    solutions = find_binary_solutions(G, -V.ravel(), atol, rounding, max_bits=most)
    # What counts is how little is left, not how little was asked for.
    left = [float(np.linalg.norm(G @ x + V.ravel())) for x in solutions.found]
    rest = max(min(left, default=atol), np.finfo(np.float64).eps * size)
    if why := _doubt(solutions, expected_coincidences(G, rest) <= chance):
        return network, [f"{SKIP_KEPT}: {why}{SAME_FUNCTION}"]
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
