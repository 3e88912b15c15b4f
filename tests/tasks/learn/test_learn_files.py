"""``revelu learn``: shards, their damage, and what is printed and written."""

import json

import numpy as np
import pytest
from test_learn import draw, largest_error, samples
from typer.testing import CliRunner

import revelu
from revelu.cli.app import app
from revelu.tasks.learn import samples as task


@pytest.fixture
def folder(tmp_path):
    """Four shards of 150 samples; 12 parameters."""
    truth = draw(4, 2, 30)
    (tmp_path / "samples").mkdir()
    for i in range(4):
        X, y = samples(truth, 150, 40 + i)
        np.savez(tmp_path / "samples" / f"{i}.npz", X=X, y=y)
    truth.save(tmp_path / "truth.npz")
    return tmp_path


def run(*arguments):
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, [*map(str, arguments)])


def test_a_folder_of_shards_becomes_a_file(folder):
    done = run("learn", folder / "samples", "-o", folder / "found.onnx", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["status"] == "recovered"
    assert found["samples"] == 600
    assert found["architecture"] == [4, 2, 1]
    assert np.shape(found["standard_errors"]["W"]) == (2, 4)
    truth = revelu.load(folder / "truth.npz")
    assert largest_error(revelu.load(folder / "found.onnx"), truth) < 1e-9


def test_summary_names_what_it_rests_on(folder):
    done = run("learn", folder / "samples")
    assert done.exit_code == 0
    for text in ("recovered and certified", "4-2-1", "kept apart", "error bars"):
        assert text in done.stdout


def test_uncertified_is_exit_code_1_and_written(folder):
    rng = np.random.default_rng(1)
    np.savez(folder / "noise.npz", X=rng.standard_normal((200, 3)), y=rng.standard_normal(200))
    done = run("learn", folder / "noise.npz", "-o", folder / "n.npz")
    assert done.exit_code == 1
    assert "NOT certified" in done.stdout
    assert (folder / "n.npz").exists()


def test_more_samples_than_memory_holds(folder, monkeypatch):
    whole = revelu.learn(folder / "samples")
    monkeypatch.setattr(task, "_MOST_NUMBERS", 4 * 300)
    part = revelu.learn(folder / "samples")
    assert part.details["n_samples"] == whole.details["n_samples"] == 600
    assert part.certificate.n_checks < whole.certificate.n_checks
    truth = revelu.load(folder / "truth.npz")
    assert largest_error(part.network, truth) < 1e-9


def damage(shard, what):
    X, y = np.load(shard)["X"], np.load(shard)["y"]
    if what == "nan":
        y[3] = np.inf
        np.savez(shard, X=X, y=y)
    elif what == "truncated":
        content = shard.read_bytes()
        shard.write_bytes(content[: len(content) // 2])
    elif what == "disagrees":
        np.savez(shard, X=X[:, :3], y=y)
    elif what == "missing":
        np.savez(shard, X=X)
    elif what == "objects":
        np.savez(shard, X=X.astype(object), y=y)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("nan", "row 3"),
        ("truncated", "not a readable"),
        ("disagrees", "rows of 3 inputs"),
        ("missing", "no array y"),
        ("objects", "not a readable"),
    ],
)
def test_a_damaged_shard_is_named_and_nothing_written(folder, what, message):
    damage(folder / "samples" / "2.npz", what)
    done = run("learn", folder / "samples", "-o", folder / "found.npz")
    assert done.exit_code == 2
    assert "2.npz" in done.stderr
    assert message in done.stderr
    assert not (folder / "found.npz").exists()


@pytest.mark.parametrize("name", ["nothing.npz", "truth.txt", "empty"])
def test_paths_without_samples_are_refused(folder, name):
    (folder / "empty").mkdir()
    done = run("learn", folder / name)
    assert done.exit_code == 2
    assert name in done.stderr


def test_samples_are_not_overwritten(folder):
    shard = folder / "samples" / "0.npz"
    before = shard.read_bytes()
    assert run("learn", shard, "-o", shard).exit_code == 2
    assert shard.read_bytes() == before


def test_the_span_comes_from_samples_that_are_not_in_memory(tmp_path, monkeypatch):
    truth = draw(30, 3, 60)
    for i in range(4):
        X, y = samples(truth, 5000, 61 + i)
        np.savez(tmp_path / f"{i}.npz", X=X, y=y)
    # Of 20,000 samples 600 stay: too few for 496 coefficients of a quadratic, six a parameter.
    monkeypatch.setattr(task, "_MOST_NUMBERS", 30 * 600)
    messages = []
    recovery = revelu.learn(tmp_path, progress=lambda event: messages.append(event.message))
    assert any("inside 3 of 30 dimensions" in message for message in messages)
    assert recovery.status is revelu.Status.RECOVERED
    assert largest_error(recovery.network, truth) < 1e-9


def test_two_functions_of_the_same_inputs_are_not_called_one():
    # Their mean is a network, too, and every sample would agree with it.
    X, y = samples(draw(4, 2, 30), 300, 50)
    _, other = samples(draw(4, 1, 31), 300, 50)
    twice = np.concatenate([X, X]), np.concatenate([y, other])
    recovery = revelu.learn(*twice)
    assert recovery.status is revelu.Status.UNVERIFIED
    assert "the same input has answers that differ by" in recovery.evidence[-1]


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_repeated_inputs_are_lived_with(noise):
    truth = draw(4, 2, 30)
    X, y = samples(truth, 400, 51)
    jitter = noise * np.random.default_rng(2).standard_normal(800)
    recovery = revelu.learn(np.concatenate([X, X]), np.concatenate([y, y]) + jitter)
    assert recovery.status is revelu.Status.RECOVERED
    assert any("up to 2 times" in said for said in recovery.warnings) == (noise > 0.0)


def test_answers_to_one_input_alone_say_so():
    X, y = samples(draw(4, 2, 30), 40, 51)
    with pytest.raises(revelu.InputError, match="all of the same input"):
        revelu.learn(np.repeat(X[:1], 40, axis=0), y)


@pytest.mark.slow
def test_a_few_samples_of_another_function_are_counted():
    for seed in (30, 33):
        X, y = samples(draw(5, 2, seed), 4000, 52)
        y[:4] = samples(draw(5, 2, 31), 4, 52)[1]
        recovery = revelu.learn(X, y)
        # Fitted exactly in spite of them, or with what is taken for noise.
        said = recovery.evidence if recovery.details["exact"] else recovery.warnings
        assert any("come from another function" in text for text in said)
        assert recovery.status is not revelu.Status.RECOVERED or not recovery.details["exact"]


@pytest.mark.parametrize("part", ["X", "y"])
def test_numbers_whose_moments_overflow_are_refused(part):
    X, y = samples(draw(4, 2, 30), 200, 53)
    {"X": X[:, 0], "y": y}[part][5] = 1e200
    with pytest.raises(revelu.InputError, match=r"row 5 holds a number beyond 1e\+30"):
        revelu.learn(X, y)
