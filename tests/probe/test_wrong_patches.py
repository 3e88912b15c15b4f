"""Patches at which what is known of a function is wrong."""

import numpy as np

from revelu.adapters import open_oracle
from revelu.network import LayeredNetwork
from revelu.network.images import Image
from revelu.network.layers import Convolution, Dense, Relu
from revelu.oracle import Domain, measure_noise
from revelu.probe.draws import Draws
from revelu.probe.wrong_patches import WrongPatches


def test_patches_are_those_on_which_a_filter_is_on_that_is_not_known():
    rng = np.random.default_rng(0)
    kernels = rng.standard_normal((2, 2, 3, 2))
    brightest = np.abs(kernels[1]).sum()
    # Near its brightest patch alone.
    conv = Convolution(kernels, np.array([0.0, 0.5 - brightest]), (2, 9, 11))
    A = rng.standard_normal((conv.size_out, 4))

    known = A.copy()
    known[conv.size_out // 2 :] = 0.0
    network = LayeredNetwork([conv, Relu(), Dense(known.T, np.zeros(4))])
    oracle = open_oracle(
        lambda X: np.maximum(conv(X), 0.0) @ A, dim_in=198, domain=Domain.box(-1.0, 1.0)
    )
    draws = Draws(oracle, measure_noise(oracle, 1), rng)
    right, wrong = rng.uniform(-0.5, 0.5, (2, 6, 198))
    shown = wrong.reshape(6, 2, 9, 11)
    for x, row, column in zip(shown, rng.integers(0, 7, 6), rng.integers(0, 10, 6), strict=True):
        x[:, row : row + 3, column : column + 2] = np.sign(kernels[1])
    X, places = (
        np.concatenate([wrong, right, right]),
        WrongPatches(draws, Image((2, 9, 11)), network),
    )
    Y = oracle(X)
    before = oracle.n_queries
    patches = places.among(X, Y, (3, 2), 6)
    assert patches.shape == (6, 2, 3, 2)
    assert ((patches * kernels[1]).sum(axis=(1, 2, 3)) > brightest - 0.5).all()
    # Halving of 7 and of 10 ends, in steps of all images.
    assert oracle.n_queries - before <= 6 * (3 + 4)
