"""Networks that compute in another precision than float64 throughout."""

from collections.abc import Callable
from typing import Any

import numpy as np

from revelu import Network
from revelu.types import FloatArray


def computing_in(
    network: Network, dtype: Any = np.float32, given: Any = None
) -> Callable[[FloatArray], FloatArray]:
    """Return the function of a network whose every sum and product is of a type.

    Parameters
    ----------
    given : dtype, optional
        Of the answers; without it they are as they were computed.
    """
    layers = [
        (W.T.astype(dtype), b.astype(dtype))
        for W, b in zip(network.weights, network.biases, strict=True)
    ]

    def answer(X: FloatArray) -> FloatArray:
        H = X.astype(dtype)
        for i, (W, b) in enumerate(layers):
            H = (np.maximum(H, 0) if i else H) @ W + b
        return H.astype(given or dtype)

    return answer
