"""What samples cannot show of a network: ATV21, Theorems 3.1 and 3.4."""

import numpy as np

from revelu.recover.fit.covariance import StandardErrors
from revelu.recover.fit.sign_patterns import Patterns
from revelu.types import FloatArray

# A bias, or an error bar, beyond which a neuron is as good as affine (Theorem 3.1).
_LARGE_BIAS = 3.0
_UNKNOWN = 0.1

# Orders that are tried: squares of m rows in d >= 2 dimensions may be dependent from
# m > d (d + 1) / 2 on, powers of order m - 1 of rows no two of which are parallel never are.
_HIGHEST_ORDER = 8


def least_order(W: FloatArray, error: float) -> tuple[int, float]:
    """The least order l at which products ``w_i (x) ... (x) w_i`` of l rows are independent.

    Parameters
    ----------
    W : ndarray, shape (m, d)
        Rows of norm 1.
    error : float
        How far an entry may be off.

    Returns
    -------
    order : int
        From it on Theorem 3.2 of ATV21 applies, and at 1 Theorem 3.1, which has the signs; 0
        where none of the first few does.
    least : float
        The least singular value of those products, ``s_m`` in their sample sizes.
    """
    m, gram = len(W), W @ W.T
    least = 0.0
    for order in range(1, _HIGHEST_ORDER + 1):
        # |sum_i c_i w_i^(l)|^2 = c' G c with G_ij = <w_i, w_j>^l.
        values = np.linalg.eigvalsh(gram**order)
        least = float(np.sqrt(max(values.min(initial=1.0), 0.0)))
        floor = max(np.sqrt(m * np.finfo(np.float64).eps), order * error * np.sqrt(W.size))
        if least > floor:
            return order, least
    return 0, least


def what_cannot_be_known(patterns: Patterns, errors: StandardErrors | None) -> list[str]:
    """Say in sentences which neurons and signs the samples leave open, and why.

    Parameters
    ----------
    errors : StandardErrors, optional
        Of ``patterns.network``.
    """
    network, notes = patterns.network, list(patterns.notes)
    b = network.biases[0]
    if errors is None:
        return notes
    bars = np.column_stack(
        [errors.W, errors.b, errors.A[0] / np.maximum(np.abs(network.weights[1][0]), 1e-300)]
    )
    for i in np.flatnonzero(bars.max(axis=1, initial=0.0) > _UNKNOWN):
        why = (
            f"its bias {b[i]:.2g} is so large that it is all but affine on N(0, I)"
            if abs(b[i]) > _LARGE_BIAS
            else "its row is nearly dependent on others, or the noise is too large"
        )
        notes.append(f"neuron {i} is known to {bars[i].max():.1g} only: {why}")
    return notes
