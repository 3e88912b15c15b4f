"""A smoothed network: uniform noise on every weight (DG21, Lemmas 2, 6 and 7)."""

import numpy as np

from revelu.errors import InputError
from revelu.network.network import Network

# Adding 2^-d to a number near 1 does nothing if d is larger than this.
MOST_BITS = np.finfo(np.float64).nmant


def smoothed(network: Network, amplitude: float, rng: np.random.Generator) -> Network:
    """Add a uniform number of ``[-amplitude, amplitude]`` to each weight and bias.

    Raises
    ------
    InputError
        If the amplitude is not a positive number.
    """
    is_number = isinstance(amplitude, int | float | np.number) and not isinstance(amplitude, bool)
    if not is_number or not 0.0 < amplitude < np.inf:
        raise InputError(f"an amplitude must be a positive number, got {amplitude!r}")
    noise = rng.uniform(-amplitude, amplitude, network.n_parameters)
    return network.like(network.to_vector() + noise)


def failure_bound(network: Network, amplitude: float, delta: float) -> float | None:
    """Bound the probability that the smoothed network is not ``delta``-regular.

    Parameters
    ----------
    network : Network
        With one or two hidden layers.
    amplitude : float
        Of the noise; the lemmas have ``2^-d``.

    Returns
    -------
    float or None
        The sum of ``p_1`` to ``p_6`` of Lemma 6, or to ``p_7`` of Lemma 7, at most 1;
        None for other depths, which the lemmas do not speak of.

    Notes
    -----
    The proofs hold for any amplitude ``A`` in the place of ``2^-d``: they use ``2^d`` as
    the density ``1 / A`` of the noise only.
    """
    d, n_hidden = network.dim_in, network.n_hidden
    if n_hidden not in {1, 2}:
        return None
    M = max(float(np.abs(a).max(initial=0.0)) for a in (*network.weights, *network.biases))
    q = sum(network.architecture[1:-1])
    total = _lemma_6(d, q, M, amplitude, delta)
    if n_hidden == 2:
        # Lemma 7 is Lemma 6 for q^2 neurons with weights up to d M^2 + 1, plus p_7.
        total = _lemma_6(d, q**2, d * M**2 + 1.0, amplitude, delta)
        total += _lemma_6(network.architecture[1], network.architecture[2], M, amplitude, delta)
    return min(total, 1.0)


def _lemma_6(d: int, q: int, M: float, amplitude: float, delta: float) -> float:
    """The sum of the six probabilities of Lemma 6."""
    density = 1.0 / amplitude
    return float(
        2.0 * d * q * delta * (M + 1.0) * density
        + d * q**2 * delta * (M + 1.0) * density
        + 3.0 * d * q * delta
        + d**1.5 * q**2 * delta * (M + 1.0) * density / 2.0
        + 2.0 * delta * q**2 * d**1.5 * (M + 1.0) ** 2 * density
        + d * q * delta * density
    )
