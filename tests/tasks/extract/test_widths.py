"""Widths that are told: never dearer than without, and a wrong one is seen and said."""

import pytest
from typer.testing import CliRunner

import revelu
from revelu.cli.app import app
from revelu.errors import InputError
from revelu.recovery import Status

SHAPES = [(6, 5, 2), (5, 9, 1), (8, 5, 4, 1), (5, 8, 4, 1)]


def truth_of(shape, seed=1):
    return revelu.zoo.random_network(list(shape), seed=seed)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_told_right_costs_nothing_and_changes_nothing(shape):
    truth = truth_of(shape)
    alone, told = (revelu.extract(truth, seed=3, checks=200, widths=w) for w in (None, shape))
    assert told.status is alone.status is Status.RECOVERED
    assert told.ledger.n_queries == alone.ledger.n_queries
    assert told.network == alone.network
    assert told.warnings == alone.warnings
    assert told.network.architecture == shape


@pytest.mark.parametrize(("shape", "told"), [((6, 5, 2), (6, 4, 2)), ((8, 5, 4, 1), (8, 5, 5, 1))])
def test_a_wrong_width_is_said_and_the_network_stands(shape, told):
    truth = truth_of(shape)
    found = revelu.extract(truth, checks=200, widths=told)
    assert found.status is Status.RECOVERED
    assert found.network.architecture == shape
    assert revelu.align(found.network, truth).max_parameter_error < 1e-6
    (said,) = [w for w in found.warnings if "as was told" in w]
    assert "-".join(map(str, shape)) in said
    assert "-".join(map(str, told)) in said


def test_a_target_that_is_deeper_than_told_is_not_called_something_else():
    truth = truth_of((8, 5, 4, 1))
    found = revelu.extract(truth, checks=200, widths=(8, 5, 1))
    assert found.status is not Status.RECOVERED
    assert any("no more than 1 hidden layer were looked for" in said for said in found.evidence)
    assert found.ledger.n_queries < 10_000


@pytest.mark.parametrize(
    ("widths", "said"),
    [
        ((5, 3, 1), "begin with 5 inputs, and the target has 6"),
        ((6,), "inputs, hidden layers and outputs"),
        ((6, 0, 2), "whole number, 1 or more"),
    ],
)
def test_widths_that_cannot_be_are_refused(widths, said):
    with pytest.raises(InputError, match=said):
        revelu.extract(truth_of((6, 5, 2)), widths=widths)


def test_the_command_line_takes_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truth_of((6, 5, 2)).save("t.npz")
    done = CliRunner().invoke(app, ["extract", "t.npz", "--widths", "6,4,2", "--checks", "100"])
    assert done.exit_code == 0
    assert "not 6-4-2 as was told" in " ".join(done.stdout.split())
    done = CliRunner().invoke(app, ["extract", "t.npz", "--widths", "6-4-2"])
    assert done.exit_code == 2
    assert "whole numbers between commas" in done.output
