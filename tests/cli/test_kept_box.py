"""A file says in which box its network was recovered, and is verified there."""

import json

from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.formats import kept_of

CLIPPED = """
import numpy as np

A, B = np.random.default_rng(0).standard_normal((2, 3, 4))

def clipped(X):
    return np.maximum(np.clip(X, -1.0, 1.0) @ A.T, 0.0) @ B
"""


def test_a_network_is_verified_in_the_box_that_its_file_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "behind_clip.py").write_text(CLIPPED)
    target = ["behind_clip:clipped", "--trust", "--dim-in", "4"]
    found = CliRunner().invoke(app, ["extract", *target, "--box", "-1", "1", "-o", "found.onnx"])
    assert found.exit_code == ExitCode.CERTIFIED, found.output
    assert kept_of(tmp_path / "found.onnx").box == (-1.0, 1.0)
    verified = CliRunner().invoke(app, ["verify", "found.onnx", *target, "--json"])
    assert verified.exit_code == ExitCode.CERTIFIED, verified.output
    assert "recovered in [-1, 1]" in json.dumps(one_object(verified.stdout)["evidence"])
    inspected = CliRunner().invoke(app, ["inspect", "found.onnx", "--json"])
    assert one_object(inspected.stdout)["box"] == [-1.0, 1.0]
    assert "asked only in [-1, 1]" in CliRunner().invoke(app, ["inspect", "found.onnx"]).stdout
    revelu.load("found.onnx").save("bare.onnx")
    assert kept_of(tmp_path / "bare.onnx").box is None
    outside = CliRunner().invoke(app, ["verify", "bare.onnx", *target])
    assert outside.exit_code == ExitCode.NOT_CERTIFIED
