"""Archives of weights and biases that other programs wrote."""

from itertools import chain

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from revelu.adapters import open_oracle
from revelu.cli.app import app
from revelu.errors import FormatError

NETWORK = revelu.zoo.random_network([5, 6, 4, 3], seed=1)
X = np.random.default_rng(0).standard_normal((20, 5))
PAIRS = list(zip(NETWORK.weights, NETWORK.biases, strict=True))
TURNED = [(W.T, b) for W, b in PAIRS]


def numbered(pairs, start=1):
    return {
        f"{kind}{i}": a for i, p in enumerate(pairs, start) for kind, a in zip("Wb", p, strict=True)
    }


@pytest.mark.parametrize("pairs", [PAIRS, TURNED], ids=["neurons first", "inputs first"])
@pytest.mark.parametrize("named", [False, True])
def test_lists_are_read_whichever_axis_is_the_neurons(tmp_path, pairs, named):
    path = tmp_path / "lists.npz"
    if named:
        np.savez(path, **numbered(pairs))
    else:
        np.savez(path, *chain(*pairs))
    with open_oracle(path, activation="relu") as oracle:
        np.testing.assert_allclose(oracle(X), NETWORK(X), rtol=0, atol=1e-12)


def test_more_than_ten_layers_keep_their_order(tmp_path):
    deep = revelu.zoo.random_network([3, *[4, 5] * 6, 2], seed=2)
    np.savez(tmp_path / "d.npz", *chain(*zip(deep.weights, deep.biases, strict=True)))
    with open_oracle(tmp_path / "d.npz", activation="relu") as oracle:
        np.testing.assert_allclose(oracle(X[:, :3]), deep(X[:, :3]), rtol=0, atol=1e-9)


def test_what_is_between_the_layers_has_to_be_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("lists.npz", *chain(*PAIRS))
    done = CliRunner().invoke(app, ["extract", "lists.npz"])
    assert done.exit_code == 2
    assert "--activation relu" in done.output


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ([np.eye(3), np.zeros(3), np.eye(3), np.zeros(3)], "are square"),
        ([np.ones((4, 3)), np.zeros(4), np.ones((2, 5)), np.zeros(2)], "fit no chain"),
    ],
)
def test_what_makes_no_chain_or_two_is_refused(tmp_path, arrays, said):
    np.savez(tmp_path / "x.npz", *arrays)
    with pytest.raises(FormatError, match=said):
        open_oracle(tmp_path / "x.npz", activation="relu")


def test_what_is_no_list_is_no_network(tmp_path):
    np.savez(tmp_path / "x.npz", np.ones((4, 3)), np.zeros(4), np.ones((2, 4)))
    with pytest.raises(FormatError, match="not a network"):
        open_oracle(tmp_path / "x.npz")


def test_own_files_are_read_as_ever(tmp_path):
    for certified in (None, True):
        NETWORK.marked(certified).save(tmp_path / "own.npz")
        with open_oracle(tmp_path / "own.npz") as oracle:
            np.testing.assert_array_equal(oracle(X), NETWORK(X))
