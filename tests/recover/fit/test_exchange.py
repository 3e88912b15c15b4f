"""Many neurons from random starts, where answers are plenty."""

import numpy as np
import pytest

import revelu
from revelu.network import zoo
from revelu.recover.fit.exchange import NeuronExchange
from revelu.recover.fit.sizes import Sizes
from revelu.recover.refine.network_fit import Samples

STEP = 1e-3
# The root mean square of what rounding to a step leaves.
ROUNDING = STEP / np.sqrt(12.0)


class Rounding:
    """A function that answers multiples of a step, at inputs of N(0, I)."""

    def __init__(self, function, dim_in, seed):
        self.function, self.dim_in, self.n_queries = function, dim_in, 0
        self.rng = np.random.default_rng(seed)

    def __call__(self, n):
        self.n_queries += n
        X = self.rng.standard_normal((n, self.dim_in))
        Y = np.rint(self.function(X) / STEP) * STEP
        return Samples(X, Y, np.full(Y.shape, ROUNDING))


def search(ask, width, dim_out=1, how=None):
    rng = np.random.default_rng(0)
    how = how or NeuronExchange()
    return how.find((width, width), Sizes(ask.dim_in, dim_out), ask(10), ask, 1.2, rng)


@pytest.mark.parametrize("seed", range(2))
def test_a_network_that_few_answers_do_not_show_is_found_and_no_wider(seed):
    truth = zoo.random_network([6, 16, 1], seed=seed)
    ask = Rounding(truth, 6, seed)
    found, samples = search(ask, 24)
    X = np.random.default_rng([seed, 1]).standard_normal((5000, 6))
    assert np.std(found(X) - truth(X)) < 3.0 * ROUNDING
    assert found.architecture[1] <= 16
    assert ask.n_queries == len(samples.X) <= 9 * Sizes(6, 1).n_parameters(24)


def test_a_search_that_exchanges_in_vain_ends():
    ask = Rounding(lambda X: np.sin(3.0 * X).sum(axis=1, keepdims=True), 6, 0)
    assert search(ask, 12) is None


def test_a_search_ends_where_work_does():
    truth = zoo.random_network([6, 16, 1], seed=3)
    assert search(Rounding(truth, 6, 3), 24, how=NeuronExchange(most_work=1e6)) is None


@pytest.mark.slow
def test_what_is_no_network_is_refused_or_explained_to_its_digits_in_a_box():
    def waves(X):
        return np.round(np.sin(4.0 * X).sum(axis=1), 2)

    recovery = revelu.extract(waves, dim_in=2, box=(-1.0, 1.0), seed=1)
    assert recovery.ledger.n_queries < 20_000
    if recovery.status is revelu.Status.RECOVERED:
        X = np.random.default_rng(3).uniform(-1.0, 1.0, (20_000, 2))
        off = np.abs(recovery.network(X)[:, 0] - waves(X))
        assert (off > recovery.certificate.tolerance).mean() <= recovery.certificate.share_wrong
    else:
        assert recovery.status in {revelu.Status.UNVERIFIED, revelu.Status.NOT_IN_CLASS}
