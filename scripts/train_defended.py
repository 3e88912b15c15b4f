"""Train 64-32-10 on digits with a penalty that pulls neurons together, against extraction.

python scripts/train_defended.py --seed 0 --strength 10 -o defended.onnx

The loss has ``strength / 2`` times the mean of ``|(w_i, b_i) - centre|^2`` in it, the centre
being that of the neuron's group of four: neurons of a group become nearly equal, and their
kinks crowd on every line.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from revelu import Network

HIDDEN, GROUP = 32, 4
EPOCHS, BATCH, RATE = 120, 100, 3e-3


def train_defended(seed: int, strength: float = 10.0) -> Network:
    """Train a classifier; the network gives its ten logits.

    Parameters
    ----------
    seed : int
        Decides the split, the start and the order of the batches.
    strength : float
        Of the penalty.
    """
    return _train(seed, strength)[0]


def _train(seed: int, strength: float) -> tuple[Network, float]:
    rng = np.random.default_rng(seed)
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X / 16.0, y, test_size=0.2, random_state=seed, stratify=y
    )
    W = rng.normal(scale=np.sqrt(2 / 64), size=(HIDDEN, 65))
    W[:, -1] = 0.0
    A = rng.normal(scale=np.sqrt(2 / HIDDEN), size=(10, HIDDEN + 1))
    A[:, -1] = 0.0
    moments = [(np.zeros_like(p), np.zeros_like(p)) for p in (W, A)]
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(X))
        for start in range(0, len(X), BATCH):
            rows = order[start : start + BATCH]
            step += 1
            gradients = _gradients(W, A, X[rows], y[rows], strength)
            for weights, g, (m, v) in zip((W, A), gradients, moments, strict=True):
                np.add(m, 0.1 * (g - m), out=m)
                np.add(v, 0.001 * (g**2 - v), out=v)
                change = (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
                np.subtract(weights, RATE * change, out=weights)
    network = Network([W[:, :-1], A[:, :-1]], [W[:, -1], A[:, -1]])
    return network, float((np.argmax(network(X_test), axis=1) == y_test).mean())


def _gradients(
    W: np.ndarray, A: np.ndarray, X: np.ndarray, y: np.ndarray, strength: float
) -> tuple[np.ndarray, np.ndarray]:
    """Of the cross-entropy and the penalty."""
    X1 = np.column_stack([X, np.ones(len(X))])
    H1 = np.column_stack([np.maximum(X1 @ W.T, 0.0), np.ones(len(X))])
    Z = H1 @ A.T
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    P[np.arange(len(y)), y] -= 1.0
    P /= len(X)
    back = (P @ A[:, :-1]) * (H1[:, :-1] > 0)
    groups = W.reshape(-1, GROUP, W.shape[1])
    pull = (groups - groups.mean(axis=1, keepdims=True)).reshape(W.shape)
    return back.T @ X1 + strength / HIDDEN * pull, P.T @ H1


def main() -> None:
    """Train one and write it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strength", type=float, default=10.0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    network, accuracy = _train(options.seed, options.strength)
    network.save(options.output)
    print(f"{network}: {accuracy:.1%} of the held-out digits right")


if __name__ == "__main__":
    main()
