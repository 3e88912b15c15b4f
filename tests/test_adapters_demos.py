"""Demos: they open by name, come along, and do what they say."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import revelu
from revelu.adapters import demos, open_oracle
from revelu.adapters.demos import demo_path
from revelu.errors import InputError


def test_the_demo_opens_by_name():
    oracle = open_oracle("demo:digits")
    queries = np.random.default_rng(0).normal(size=(5, 64))
    wanted = revelu.load(demo_path("digits"))(queries)
    np.testing.assert_allclose(oracle(queries), wanted, rtol=1e-12, atol=1e-12)
    assert (oracle.dim_in, oracle.dim_out, oracle.name) == (64, 10, "demo:digits")


def test_unknown_demos_list_the_known():
    with pytest.raises(InputError, match="no demo 'letters'; there are: digits"):
        open_oracle("demo:letters")


@pytest.mark.parametrize("name", demos())
def test_demos_come_along(name):
    assert demo_path(name).is_file()
    assert demos()[name]


def right_digits(network):
    """The fraction of scikit-learn's digits that a network classifies right."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    return (np.argmax(network(pixels / 16.0), axis=1) == digits).mean()


def test_the_demo_reads_digits():
    network = revelu.load(demo_path("digits"))
    assert network.architecture == (64, 32, 10)
    assert right_digits(network) >= 0.95


@pytest.mark.slow
def test_the_script_trains_such_a_demo():
    script = Path(__file__).parents[1] / "scripts" / "train_digits.py"
    spec = spec_from_file_location("train_digits", script)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    network, accuracy = module._train(0)
    assert network.architecture == (64, 32, 10)
    assert accuracy >= 0.95
    assert right_digits(network) >= 0.95
