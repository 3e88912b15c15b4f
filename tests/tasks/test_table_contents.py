"""Tables that hold something else than a network's answers say so, and what to do."""

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from revelu.cli.app import app

RNG = np.random.default_rng(41)
X = RNG.standard_normal((300, 3))
Y = np.maximum(X @ [0.6, 0.8, 0.0] + 0.2, 0.0) - np.maximum(X @ [0.0, 0.0, 1.0], 0.0)


def written(path, *columns, header="a,b,c,y"):
    rows = [header, *(",".join(map(str, row)) for row in zip(*columns, strict=True))]
    path.write_text("\n".join(rows) + "\n")
    return path


def said(*arguments):
    done = CliRunner(env={"COLUMNS": "400", "NO_COLOR": "1"}).invoke(app, [*map(str, arguments)])
    return done.exit_code, done.stdout + done.stderr


def test_labels_are_called_labels_with_the_option_that_takes_them():
    with pytest.raises(revelu.InputError, match=r"labels.*--halfspaces.* MODEL --labels`"):
        revelu.learn(X, (Y > 0).astype(int))


def test_answers_of_few_values_are_called_that():
    recovery = revelu.learn(X, np.digitize(Y, [-1.0, 0.0, 1.0]), max_searches=1)
    assert recovery.status is not revelu.Status.RECOVERED
    assert "y has 4 values in" in " ".join(recovery.evidence)


@pytest.mark.parametrize(
    ("cell", "column", "words"),
    [
        ("", 0, ("column 'a' is empty in line 8", "--drop")),
        ("nan", 0, ("line 8 holds a number that is not finite", "--drop")),
        ("benign", 3, ("column 'y' holds 'benign' in line 8", "--halfspaces")),
    ],
)
def test_cells_that_are_no_numbers_are_named_by_their_line(tmp_path, cell, column, words):
    columns = [*map(list, X.T), list(Y)]
    columns[column][6] = cell
    code, text = said("learn", written(tmp_path / "t.csv", *columns))
    assert code == 2
    for word in words:
        assert word in text


def test_inputs_that_are_other_answers_are_named(tmp_path):
    q = np.abs(X[:, 0]) + X[:, 1] ** 2
    path = written(tmp_path / "t.csv", *X.T, q, q + X[:, 2], header="a,b,c,q,p")
    code, text = said("learn", path, "--target", "p")
    assert code == 0
    assert "--drop q" in text
    assert "--drop a" not in text


def test_time_that_is_over_leaves_the_best_network_until_then(tmp_path):
    recovery = revelu.learn(X, Y, max_seconds=1e-9)
    assert recovery.status is revelu.Status.BUDGET_EXHAUSTED
    assert recovery.network.dim_in == 3
    code, text = said(
        "learn",
        written(tmp_path / "t.csv", *X.T, Y),
        *("--max-seconds", "1e-9", "-o", tmp_path / "n.npz"),
    )
    assert code == 3
    assert "not finished" in text
    assert revelu.load(tmp_path / "n.npz").certified is False
    with pytest.raises(revelu.InputError, match="max_seconds"):
        revelu.learn(X, Y, max_seconds=0)
