"""Which signs of the neurons explain samples without an affine rest.

``a relu(z) = a relu(-z) + a z``: turning neuron i round moves ``a_i (w_i x + b_i)`` into the
affine rest.  The patterns of signs that leave none solve ATV21's equation (5), which are
d equations, and one more where the output has no constant.
"""

from dataclasses import dataclass

import numpy as np

from revelu.network import Network
from revelu.numerics.subset_sum import find_binary_solutions
from revelu.recover.fit.covariance import StandardErrors
from revelu.types import FloatArray

# Patterns listed at most.
MOST_PATTERNS = 16

# A remainder of this share of the neurons' affine maps is rounding.
_RTOL = 1e-6

# With noise: deviations that a remainder may have, and how far from 0 and 1 a solution.
_SIGMAS = 4.0
_NOISY_ROUNDING = 0.45


@dataclass(frozen=True)
class Patterns:
    """What is known of the signs."""

    network: Network
    """With the affine rest, until one of ``networks`` has proved itself."""
    networks: tuple[Network, ...]
    """Without it, one for each pattern."""
    signs: list[FloatArray]
    """Shape (m,).  +1 and -1 relative to the rows of the first of ``networks``."""
    notes: tuple[str, ...]
    plain: bool = False
    """Whether ``network`` has no affine rest."""


def resolve_patterns(network: Network, errors: StandardErrors | None) -> Patterns:
    """Find all patterns of signs that leave no affine rest.

    Parameters
    ----------
    network : Network
        One output, rows of norm 1.
    errors : StandardErrors, optional
        None where the network is exact.
    """
    (W, A), V = network.weights, network.affine[0]
    if network.skip is None or not len(W):
        return Patterns(network, (), [], ())
    G = (A[0][:, None] * W).T
    flips = _flips(network, G, V[0], errors)
    if not flips:
        note = (
            "an affine rest is kept, since no choice of signs was found without it: there are "
            "neurons whose kinks the samples do not show, or an affine part, or more signs than "
            "can be searched; the function is the same"
        )
        return Patterns(network, (), [], (note,))
    networks = tuple(_plain(network.turn_round(x > 0.5)) for x in flips)
    signs = [np.where(x == flips[0], 1.0, -1.0) for x in flips]
    notes: tuple[str, ...] = ()
    if len(flips) > 1:
        more = "or more " if len(flips) == MOST_PATTERNS else ""
        note = f"{len(flips)} {more}choices of signs give the same function; one is returned"
        notes = (note,)
    return Patterns(network, networks, signs, notes)


def _flips(
    network: Network, G: FloatArray, v: FloatArray, errors: StandardErrors | None
) -> list[FloatArray]:
    """0/1 vectors: which neurons to turn round."""
    if errors is not None and errors.V is not None:
        scale = 1.0 / np.maximum(errors.V[0], np.finfo(np.float64).tiny)
        # The columns are estimates, too, with errors of the same size.
        atol = _SIGMAS * np.sqrt(2.0 * len(v))
        return find_binary_solutions(
            G * scale[:, None], -v * scale, atol, _NOISY_ROUNDING, MOST_PATTERNS
        ).every
    # First as if the output had no constant: one equation more.
    constant = network.biases[1][0] + network.affine[1][0]
    full = np.vstack([G, network.weights[1][0] * network.biases[0]])
    size = float(np.sqrt((full**2).sum()))
    right = -np.append(v, constant)
    found = find_binary_solutions(full, right, _RTOL * size, most=MOST_PATTERNS).every
    return found or find_binary_solutions(G, -v, _RTOL * size, most=MOST_PATTERNS).every


def _plain(network: Network) -> Network:
    """Without the skip's matrix, which is all but 0."""
    b, c = network.biases
    return Network(network.weights, [b, c + network.affine[1]])
