"""What samples cannot show of a network: ATV21, Theorems 3.1 and 3.4."""

import numpy as np

from revelu.numerics.covariance import StandardErrors
from revelu.recover.sign_patterns import Patterns

# A bias, or an error bar, beyond which a neuron is as good as affine (Theorem 3.1).
_LARGE_BIAS = 3.0
_UNKNOWN = 0.1


def what_cannot_be_known(patterns: Patterns, errors: StandardErrors | None) -> list[str]:
    """Say in sentences which neurons and signs the samples leave open, and why.

    Parameters
    ----------
    patterns : Patterns
    errors : StandardErrors, optional
        Of ``patterns.network``.
    """
    network, notes = patterns.network, list(patterns.notes)
    if errors is None:
        return notes
    bars = np.column_stack(
        [errors.W, errors.b, errors.A[0] / np.maximum(np.abs(network.A[0]), 1e-300)]
    )
    for i in np.flatnonzero(bars.max(axis=1, initial=0.0) > _UNKNOWN):
        why = (
            f"its bias {network.b[i]:.2g} is so large that it is all but affine on N(0, I)"
            if abs(network.b[i]) > _LARGE_BIAS
            else "its row is nearly dependent on others, or the noise is too large"
        )
        notes.append(f"neuron {i} is known to {bars[i].max():.1g} only: {why}")
    return notes
