"""Answers side by side: the worst rows first, the share of equal classes, a figure to sign."""

import csv
import hashlib
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import revelu
from revelu import zoo
from revelu.cli.app import app
from revelu.cli.networks import save_network
from revelu.numerics.links import Link
from revelu.tasks.side_by_side import side_by_side

X = np.random.default_rng(16_120_000).normal(size=(40, 3))
TRUTH = zoo.random_network([3, 5, 2], seed=3)


def invoke(*arguments):
    return CliRunner(env={"COLUMNS": "300", "NO_COLOR": "1"}).invoke(
        app, [str(a) for a in arguments]
    )


def table(path, X, names=("a", "b", "c")):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *X.tolist()])
    return path


def shifted(network, by):
    """The network with an addition to its first output."""
    *biases, c = network.biases
    return revelu.Network(network.weights, [*biases, c + np.array([by, 0.0])], network.skip)


def test_the_worst_rows_come_first(tmp_path):
    a, b, diff = (tmp_path / name for name in ("a.npz", "b.npz", "diff.csv"))
    TRUTH.save(a)
    gap = TRUTH(X)[:, 0] - TRUTH(X)[:, 1]
    by = np.sort(np.abs(gap[gap < 0]))[:4].mean()  # moves some rows to the other class
    changed = shifted(TRUTH, by)
    changed.save(b)
    rows = table(tmp_path / "t.csv", X)
    done = invoke("compare", a, b, "--inputs", rows, "-o", diff, "--json")
    account = json.loads(done.stdout)
    assert (done.exit_code, account["status"]) == (1, "differ")
    n_other = int((TRUTH(X).argmax(axis=1) != changed(X).argmax(axis=1)).sum())
    assert 0 < n_other < 10
    answers = account["answers"]
    assert answers["equal_classes"] == pytest.approx(1.0 - n_other / 40)
    assert answers["max_abs_difference"] == pytest.approx(by)
    assert f"the classes of {40 - n_other} are equal" in answers["statement"]
    for path in (a, b, rows):
        assert answers["sha256"][str(path)] == hashlib.sha256(path.read_bytes()).hexdigest()
    with diff.open() as file:
        head, *lines = csv.reader(file)
    assert head[:5] == ["row", "difference", "a.npz class", "b.npz class", "equal"]
    assert sorted(int(line[0]) for line in lines) == list(range(1, 41))
    assert [line[4] for line in lines] == ["no"] * n_other + ["yes"] * (40 - n_other)
    for line in lines:
        i = int(line[0]) - 1
        np.testing.assert_array_equal(np.array(line[5:7], float), TRUTH(X)[i])
        np.testing.assert_array_equal(np.array(line[7:9], float), changed(X)[i])


def test_rows_that_differ_more_come_before_others(tmp_path):
    weights = [W.copy() for W in TRUTH.weights]
    weights[1][:, 0] *= 1.001
    TRUTH.save(tmp_path / "a.npz")
    revelu.Network(weights, TRUTH.biases).save(tmp_path / "b.npz")
    table(tmp_path / "t.csv", X)
    arguments = [tmp_path / name for name in ("a.npz", "b.npz")]
    done = invoke(
        "compare",
        *arguments,
        "--inputs",
        tmp_path / "t.csv",
        "-o",
        tmp_path / "d.csv",
        "--tolerance",
        "0.1",
    )
    assert done.exit_code == 0, done.output
    with (tmp_path / "d.csv").open() as file:
        differences = [float(line["difference"]) for line in csv.DictReader(file)]
    assert differences == sorted(differences, reverse=True)
    assert differences[0] > differences[-1]


def test_a_read_model_agrees_with_the_file_it_became(tmp_path):
    classes = np.array(["no", "yes"])[(X @ [1.0, 2.0, 3.0] > 0.1).astype(int)]
    model = LogisticRegression().fit(X, classes)
    old = tmp_path / "old.pkl"
    old.write_bytes(pickle.dumps(model))
    rows = table(tmp_path / "t.csv", X)
    for name in ("new.onnx", "new.npz"):  # with its softmax, and without
        assert invoke("extract", old, "-o", tmp_path / name).exit_code == 0
        diff = tmp_path / "diff.csv"
        done = invoke("compare", old, tmp_path / name, "--inputs", rows, "-o", diff)
        assert done.exit_code == 0, done.output
        assert "the classes of 40 are equal, 100.00%" in done.stdout
        with diff.open() as file:
            for line in csv.DictReader(file):
                i = int(line["row"]) - 1
                assert line["old.pkl class"] == line[f"{name} class"] == classes_of(model)[i]


def classes_of(model):
    return model.predict(X).tolist()


def test_columns_are_found_by_their_names(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = LogisticRegression().fit(frame, X @ [1.0, 2.0, 3.0] > 0.1)
    old = tmp_path / "old.pkl"
    old.write_bytes(pickle.dumps(model))
    rows = table(tmp_path / "t.csv", X[:, ::-1], ("c", "b", "a"))
    done = invoke("compare", old, old, "--inputs", rows, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["answers"]["max_abs_difference"] == 0.0
    done = invoke("compare", old, old, "--inputs", table(tmp_path / "u.csv", X, ("c", "b", "z")))
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "d.csv"], "say which rows to ask for"),
        (["--inputs", "t.csv", "-o", "d.txt"], "ends in .csv"),
        (["--inputs", "t.csv", "-o", "t.csv"], "holds the inputs"),
        (["--inputs", "none.csv"], "no such file"),
        (["--inputs", "narrow.csv"], "2 columns for 3"),
    ],
)
def test_what_cannot_be_compared_is_refused(tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    TRUTH.save("a.npz")
    table(tmp_path / "t.csv", X)
    table(tmp_path / "narrow.csv", X[:, :2], ("a", "b"))
    done = invoke("compare", "a.npz", "a.npz", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_answers_to_inputs_drawn_are_compared(tmp_path):
    """In the box the neuron of which a weight was changed is off; elsewhere it is on."""
    network = revelu.Network(
        [np.array([[1.0, 0.0], [-1.0, 0.0]]), np.ones((2, 2))], [np.zeros(2), np.array([0.0, 1.0])]
    )
    changed = revelu.Network(
        [network.weights[0], np.array([[1.0, 2.0], [1.0, 0.0]])], [*network.biases]
    )
    a, b = tmp_path / "a.npz", tmp_path / "b.npz"
    network.save(a)
    changed.save(b)
    inside = invoke("compare", a, b, "--box", "0", "1", "--json")
    answers = json.loads(inside.stdout)["answers"]
    assert (inside.exit_code, answers["rows"], answers["max_abs_difference"]) == (0, 3000, 0.0)
    assert "3,000 inputs uniform in the box given" in answers["statement"]
    assert invoke("compare", a, b, "--std", "1").exit_code == 1
    like = table(tmp_path / "t.csv", np.abs(X), ("a", "b", "c"))
    drawn = invoke("compare", a, b, "--like", like, "--columns", "a,b", "--box", "0", "3")
    assert drawn.exit_code == 0, drawn.output
    refused = invoke("compare", a, b, "--inputs", like, "--box", "0", "1")
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (2, 1)


def test_classes_alone_or_what_is_behind_a_head_is_compared(tmp_path):
    (W, A), (b, c) = TRUTH.weights, TRUTH.biases
    twice = revelu.Network([W, 2.0 * A], [b, 2.0 * c + 1.0])
    one, two = tmp_path / "a.npz", tmp_path / "b.npz"
    TRUTH.save(one)
    twice.save(two)
    assert invoke("compare", one, two, "--mean", "0").exit_code == 1
    same = invoke("compare", one, two, "--labels")
    assert same.exit_code == 0, same.output
    assert "the classes of 3,000 are equal, 100.00%" in " ".join(same.stdout.split())
    heads = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for path, network in zip(heads, (TRUTH, twice), strict=True):
        save_network(network, Link.named("softmax"))(path)
    behind = json.loads(invoke("compare", *heads, "--link", "softmax", "--json").stdout)
    assert behind["answers"]["max_abs_difference"] > 1.0  # no two probabilities are so far apart
    refused = invoke("compare", one, two, "--link", "logit")
    assert (refused.exit_code, "logit cannot undo" in refused.stderr) == (2, True)


def test_columns_are_chosen_of_the_table_of_inputs(tmp_path):
    TRUTH.save(tmp_path / "a.npz")
    wide = np.column_stack([np.arange(40), X])
    rows = table(tmp_path / "wide.csv", wide, ("id", "a", "b", "c"))
    only = table(tmp_path / "only.csv", X)
    both = (tmp_path / "a.npz", tmp_path / "a.npz")
    for file, columns in ((rows, "a,b,c"), (rows, "1,2,3"), (only, "1,2,3"), (only, "a,b,c")):
        done = invoke("compare", *both, "--inputs", file, "--columns", columns)
        assert done.exit_code == 0, done.output
    assert invoke("compare", *both, "--inputs", rows).exit_code == 2
    lacking = invoke("compare", *both, "--inputs", rows, "--columns", "a,b,z")
    assert (lacking.exit_code, "no column 'z'" in lacking.stderr) == (2, True)
    for more in (("--inputs", rows), ("--inputs", rows, "--like", rows)):
        arguments = (*both, *more, "--columns", "a,b,c", "--checks", "100")
        assert invoke("verify", *arguments).exit_code == 0
    alone = invoke("verify", *both, "--columns", "a,b,c")
    assert (alone.exit_code, "--columns is for tables" in alone.stderr) == (2, True)


LOST = Path(__file__).parents[1] / "lost"


def test_images_are_asked_with_their_channels_first_or_last(tmp_path):
    with np.load(LOST / "image.npz") as known:  # what Keras answered, channels last
        images, answers = known["X"], known["Y"]
    file, rows = f"{LOST / 'image.keras'}", tmp_path / "X.npy"
    for shown in (images, images.transpose(0, 3, 1, 2)):
        np.save(rows, shown)
        found = side_by_side(file, f"{LOST / 'image.h5'}", rows)
        assert found.agree
        np.testing.assert_allclose(found.first, answers, atol=1e-5)
        assert "channel by channel, 2 of 12 x 10" in found.notes[0]
        assert "(n, 12, 10, 2)" in found.notes[0]
    np.save(rows, images[:, :5])
    with pytest.raises(revelu.InputError, match=r"images of shape \(5, 10, 2\)"):
        side_by_side(file, file, rows)
    np.save(rows, images.reshape(len(images), -1))
    done = invoke("compare", file, file, "--inputs", rows)
    assert (done.exit_code, "channel by channel" in done.stdout) == (0, True)
