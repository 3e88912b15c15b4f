"""What has as many inputs as an image, but shares no weights, is given up at little cost."""

import numpy as np
import pytest

import revelu
from revelu.oracle import Domain


def dense(seed: int):
    """One hidden layer of 64 neurons on 784 inputs."""
    return revelu.zoo.random_network([784, 64, 10], seed=seed)


def trees(seed: int):
    """A hundred trees of six pixels each, whose leaves are random."""
    rng = np.random.default_rng(seed)
    pixels, leaves = rng.integers(0, 784, (100, 6)), rng.standard_normal((100, 64, 10))
    at = rng.random((100, 6))

    def ask(X):
        chosen = (X[:, pixels] > at) @ (1 << np.arange(6))
        return leaves[np.arange(100), chosen].sum(axis=1)

    return ask


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("in_box", [False, True])
@pytest.mark.parametrize("made", [dense, trees])
def test_what_is_no_image_model_is_given_up_within_five_thousand_queries(made, in_box, seed):
    target = made(seed)
    found = revelu.extract(
        (lambda X: target(X).astype(np.float32)) if in_box else target.__call__,
        "shared_weights",
        dim_in=784,
        image="28x28x1",
        domain=Domain.box(0.0, 1.0) if in_box else None,
        seed=seed,
    )
    assert found.status is not revelu.Status.RECOVERED
    assert found.network is None
    assert found.ledger.n_recovery <= 5_000
