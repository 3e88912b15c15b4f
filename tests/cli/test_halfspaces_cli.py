"""``revelu learn --halfspaces``."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from revelu.cli.app import app
from threshold_networks import halfspaces


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    W, t = halfspaces((4, 2), thresholds=(1.6, 2.0), seed=0)
    X = np.random.default_rng(0).standard_normal((20_000, 4))
    path = tmp_path_factory.mktemp("labels") / "alarms.npz"
    np.savez(path, X=X, y=(X @ W.T - t >= 0).any(axis=1).astype(int))
    return path, W, t


def run(*arguments):
    return CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(app, ["learn", *arguments])


def test_rules_come_back_from_a_file(labels, tmp_path):
    path, W, _ = labels
    out = tmp_path / "rules.npz"
    result = run(str(path), "--halfspaces", "or", "-o", str(out), "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["certified"]
    assert report["status"] == "recovered"
    assert len(report["errors"]) == 2
    with np.load(out) as arrays:
        gaps = np.linalg.norm(arrays["normals"][:, None] - W, axis=2)
    assert gaps.min(axis=0).max() < 0.03


def test_people_see_every_error(labels):
    result = run(str(labels[0]), "--halfspaces", "or")
    assert result.exit_code == 0
    assert "any of 2 halfspaces" in result.stdout
    heading, *rows = result.stdout.splitlines()[1:4]
    assert heading.split()[:2] == ["halfspace", "threshold"]
    assert heading.count("(95%)") == 2
    assert [len([float(x) for x in row.split()]) for row in rows] == [4, 4]
    assert len(run(str(labels[0]), "--halfspaces", "or", "-q").stdout.splitlines()) == 1


def test_too_few_positives_end_with_one_and_advice(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 6))
    np.savez(tmp_path / "few.npz", X=X, y=(X[:, 0] > 2.4).astype(int))
    result = run(str(tmp_path / "few.npz"), "--halfspaces", "or")
    assert result.exit_code == 1
    assert "more samples" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    "arguments", [("--halfspaces", "xor"), ("--halfspaces", "or", "-o", "rules.onnx")]
)
def test_nonsense_is_refused(labels, arguments):
    result = run(str(labels[0]), *arguments)
    assert result.exit_code == 2


def test_the_wrong_way_to_combine_writes_nothing(labels, tmp_path):
    out = tmp_path / "rules.npz"
    result = run(str(labels[0]), "--halfspaces", "and", "-o", str(out))
    assert result.exit_code == 1
    assert not out.exists()
    assert "is not written" in " ".join(result.stdout.split())
    assert "--halfspaces or" in " ".join(result.stdout.split())
    out.write_bytes(b"kept")
    assert run(str(labels[0]), "--halfspaces", "and", "-o", str(out), "--force").exit_code == 1
    assert out.read_bytes() == b"kept"


def test_wrong_labels_are_counted_for_people(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 3))
    np.savez(tmp_path / "l.npz", X=X, y=((X[:, 0] > 1.5) ^ (rng.random(20_000) < 0.01)).astype(int))
    result = run(str(tmp_path / "l.npz"), "--halfspaces", "or", "-o", str(tmp_path / "r.npz"))
    assert result.exit_code == 0
    assert "wrong labels" in result.stdout
    with np.load(tmp_path / "r.npz") as arrays:
        assert arrays["bounds"].shape == arrays["threshold_bounds"].shape == (1,)
