"""Train the target of ``demo:digits``: 64-32-10 on scikit-learn's digits, in float64.

python scripts/train_digits.py --seed 0 -o src/revelu/demos/digits.onnx
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from revelu import Network
from revelu.types import FloatArray, IntArray

HIDDEN = (32,)


def train_digits(seed: int, hidden: tuple[int, ...] = HIDDEN, *, halved: bool = False) -> Network:
    """Train a classifier; the network gives its ten logits.

    Parameters
    ----------
    seed : int
        Decides the split, the start and the order of the batches.
    hidden : tuple of int
        Widths of the hidden layers.
    halved : bool
        Whether its inputs are the 32 means of neighbours in a row, not the 64 pixels.
    """
    return _train(seed, hidden, halved=halved)[0]


def digits(*, halved: bool = False) -> tuple[FloatArray, IntArray]:
    """Return scikit-learn's 1,797 digits, pixels in [0, 1], and their labels."""
    X, y = load_digits(return_X_y=True)
    return (X.reshape(len(X), -1, 2).mean(axis=2) if halved else X) / 16.0, y


def _train(
    seed: int, hidden: tuple[int, ...] = HIDDEN, *, halved: bool = False
) -> tuple[Network, float]:
    X, y = digits(halved=halved)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.2, random_state=seed, stratify=y
    )
    model = MLPClassifier(hidden, max_iter=200, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X_train, y_train)
    network = Network([W.T for W in model.coefs_], model.intercepts_)
    return network, float((np.argmax(network(X_test), axis=1) == y_test).mean())


def main() -> None:
    """Train one and write it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    network, accuracy = _train(options.seed)
    network.save(options.output)
    print(f"{network}: {accuracy:.1%} of the held-out digits right")


if __name__ == "__main__":
    main()
