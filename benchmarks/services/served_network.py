"""The network that each service here answers with: ``network.npz`` of the working folder."""

import numpy as np

with np.load("network.npz") as arrays:
    (W, A), (b, c) = ([arrays[f"{kind}_{i}"] for i in range(2)] for kind in ("weights", "biases"))


def answers(X):  # noqa: ANN001, ANN201 - run by programs of many ages
    """Return the answers to rows."""
    return np.maximum(np.asarray(X) @ W.T + b, 0) @ A.T + c
