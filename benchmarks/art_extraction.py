"""One extraction by the Adversarial Robustness Toolbox, in its own environment.

    python art_extraction.py TARGET.npz RESULT.npz SEED CPU_SECONDS

Run by peers.py.  TARGET has W, b, A, c; RESULT gets what came back, if anything, and one
JSON object goes to standard output.  Nothing of the toolbox is changed but the type of the
numbers that it asks for: float64 in place of float32, wherever it keeps that name.
"""

import json
import sys
import time

import numpy as np
from art.attacks.extraction.functionally_equivalent_extraction import (
    FunctionallyEquivalentExtraction,
)
from art.estimators.classification.blackbox import BlackBoxClassifierNeuralNetwork

# Gaussian inputs handed to its last step, which fits the output layer to them.
N_SAMPLES = 1_000


class OutOfTimeError(Exception):
    """The time allowed is over."""


def set_float64() -> None:
    """Set the type in every module of the toolbox that has read it from its configuration."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "art" and hasattr(module, "ART_NUMPY_DTYPE"):
            module.ART_NUMPY_DTYPE = np.float64


def main() -> None:
    set_float64()
    target, result, seed, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    with np.load(target) as arrays:
        W, b, A, c = (arrays[name] for name in ("W", "b", "A", "c"))
    started, n_queries = time.process_time(), 0

    def answer(X: np.ndarray) -> np.ndarray:
        nonlocal n_queries
        if time.process_time() - started > limit:
            raise OutOfTimeError
        n_queries += len(X)
        return np.maximum(X @ W.T + b, 0.0) @ A.T + c

    np.random.seed(seed)  # noqa: NPY002 - what the attack draws from
    X = np.random.default_rng(seed).standard_normal((N_SAMPLES, W.shape[1]))
    classifier = BlackBoxClassifierNeuralNetwork(
        answer, input_shape=(W.shape[1],), nb_classes=len(c)
    )
    attack = FunctionallyEquivalentExtraction(classifier, num_neurons=len(b))
    try:
        attack.extract(X)
        ended = "returned a network"
        found = [attack.w_0.T, attack.b_0.ravel(), attack.w_1.T, attack.b_1.ravel()]
        np.savez(result, **dict(zip("WbAc", found, strict=True)))
    except OutOfTimeError:
        ended = "endless"
    except Exception as error:  # noqa: BLE001 - whatever it raises is its verdict
        ended = type(error).__name__
    seconds = time.process_time() - started
    print(json.dumps({"ended": ended, "queries": n_queries, "seconds": seconds}))


if __name__ == "__main__":
    main()
