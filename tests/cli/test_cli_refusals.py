"""Bad input: one line, exit code 2, before the first query."""

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run the command line in this process."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["model.xyz"], "model.xyz"),
        (["missing.onnx"], "missing.onnx"),
        (["missing.joblib"], "missing.joblib: no such file"),
        (["broken.onnx"], "broken.onnx"),
        (["broken.npz"], "broken.npz"),
        (["demo:nothing"], "nothing"),
        (["answers:relu", "--dim-in", 3], "--trust"),
        (["demo"], "did you mean demo:digits?"),
        (["digits"], "did you mean demo:digits?"),
        (["folder.npz"], "folder.npz: is a folder"),
        (["folder.onnx"], "folder.onnx: is a folder"),
        (["transposed.npz"], "weights[0], whose shape is (neurons, inputs)"),
        (["answers:relu", "--trust"], "give --dim-in"),
        (["answers:relu", "--trust", "--dim-in", 0], "--dim-in must be"),
        (["answers:nothing", "--trust", "--dim-in", 3], "answers:nothing"),
        (["answers:relu", "--trust", "--dim-in", 3, "-o", "a.xyz"], "a.xyz"),
        (["answers:relu", "--trust", "--dim-in", 3, "-o", "no/such/a.npz"], "a.npz"),
        (["answers:relu", "--trust", "--dim-in", 3, "-o", "folder.npz"], "folder.npz"),
        (["answers:relu", "--trust", "--dim-in", 3, "--method", "guess"], "guess"),
        (["answers:relu", "--trust", "--dim-in", 3, "--checks", 0], "--checks must be"),
        (["answers:relu", "--trust", "--dim-in", 3, "--budget", -1], "--budget must be"),
        (["answers:relu", "--trust", "--dim-in", 3, "--seed", -1], "--seed must be"),
        (
            ["answers:relu", "--trust", "--dim-in", 3, "--max-seconds", 0],
            "revelu: --max-seconds must be",
        ),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else None,
)
def test_bad_input_is_one_line_and_exit_2(invoke, module, arguments, word):
    (module / "broken.onnx").write_bytes(b"not a model")
    (module / "broken.npz").write_bytes(b"not an archive")
    (module / "folder.npz").mkdir()
    (module / "folder.onnx").mkdir()
    np.savez(module / "transposed.npz", weights_0=np.ones((3, 2)), biases_0=np.ones(2))
    result = invoke("extract", *arguments)
    assert result.exit_code == ExitCode.USAGE
    assert result.stdout == ""
    assert result.stderr.startswith("revelu: ")
    assert result.stderr.count("\n") == 1
    assert word in result.stderr
    assert not (module / "asked").exists()


def test_error_is_one_json_object_too(invoke):
    result = invoke("extract", "missing.onnx", "--json")
    assert result.exit_code == ExitCode.USAGE
    report = one_object(result.stdout)
    assert (report["schema"], report["status"]) == (1, "error")
    assert result.stderr == f"revelu: {report['error']}\n"


def test_rows_of_a_wrong_length_are_named(invoke, module):
    (module / "maps.py").write_text("import numpy\nrelu = numpy.eye(3).__rmatmul__\n")
    result = invoke("extract", "maps:relu", "--trust", "--dim-in", 5)
    assert result.exit_code == ExitCode.TARGET
    assert result.stderr.count("\n") == 1
    assert "rows of 5 numbers: --dim-in 5" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        "extract truth.npz --inputs",
        "extract truth.npz --like",
        "audit truth.npz --inputs",
        "diagnose truth.npz --like",
        "obfuscate truth.npz -o Y.npy --inputs",
    ],
)
@pytest.mark.parametrize("file", ["three wide.csv", "three.npy"])
def test_inputs_of_another_width_are_named_with_both_widths(tmp_path, monkeypatch, command, file):
    monkeypatch.chdir(tmp_path)
    revelu.zoo.random_network([5, 4, 1], seed=1).save("truth.npz")
    X = np.random.default_rng(0).standard_normal((20, 3))
    np.save("three.npy", X)
    np.savetxt("three wide.csv", X, delimiter=",", header="a,b,c", comments="")
    done = CliRunner().invoke(app, [*command.split(), file])
    assert done.exit_code == ExitCode.USAGE
    (line,) = done.stderr.splitlines()
    assert file in line
    assert "3 columns" in line
    assert "truth.npz has 5 inputs" in line
