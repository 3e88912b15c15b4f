"""Neurons that a network lacks, fitted beside rows that are held."""

import numpy as np
import pytest

from revelu.network import Network, zoo
from revelu.recover.deep.rough_layers import RoughLayers
from revelu.recover.deep.rough_spare import SpareNeurons
from revelu.recover.refine.network_fit import Samples, top_of, with_top

ERROR = 1e-7


@pytest.mark.parametrize("seed", [0, 1])
def test_faint_neurons_are_fitted_beside_rows_that_are_right(seed):
    truth, rng = zoo.random_network([4, 12, 8, 1], seed=seed), np.random.default_rng(seed)
    W, V, A = (w.copy() for w in truth.weights)
    A[:, 5:] *= 0.1
    truth = Network([W, V, A], truth.biases)
    X = rng.standard_normal((2500, 4))
    sigma = ERROR * truth(X).std(axis=0)
    samples = Samples(X, truth(X) + sigma * rng.standard_normal((len(X), 1)), sigma)
    # Three are missing.
    top = top_of(truth).take(np.arange(5))
    known = Network(top.weights, top.biases, skip=(np.zeros((1, 12)), np.zeros(1)))
    start = with_top(truth, known)
    how = RoughLayers()
    counts = how.n_spare, how.n_starts, how.n_rough_steps, how.n_spare_answers
    found = SpareNeurons(rng, how.limit, *counts).joined(start, samples)
    fresh = rng.standard_normal((4000, 4))
    left = [np.sqrt(np.mean((network(fresh) - truth(fresh)) ** 2)) for network in (found, start)]
    assert left[1] > 1e4 * sigma[0]
    assert left[0] < 1e-2 * left[1]
