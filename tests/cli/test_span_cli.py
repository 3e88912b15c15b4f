"""``revelu span`` and ``revelu obfuscate``: what is printed, written, refused."""

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode

TRUTH = revelu.zoo.random_network([16, 4, 3, 3], seed=1)
X = np.random.default_rng(0).uniform(size=(5, 16))


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run the command line in a folder with ``truth.npz`` and ``x.npy``."""
    monkeypatch.chdir(tmp_path)
    TRUTH.save(tmp_path / "truth.npz")
    revelu.zoo.random_network([3, 5, 1], seed=1).save(tmp_path / "wide.npz")
    np.save(tmp_path / "x.npy", X)
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    return lambda *arguments: runner.invoke(app, list(map(str, arguments)))


def test_span_json_has_its_fields(invoke, tmp_path):
    result = invoke("span", "truth.npz", "--json", "--seed", 8, "-o", "s.npz")
    assert (result.exit_code, result.stderr) == (0, "")
    report = one_object(result.stdout)
    assert (report["schema"], report["status"], report["seed"]) == (1, "recovered", 8)
    assert (report["rank"], report["inputs"], report["certified"]) == (4, 16, True)
    assert report["queries"] == sum(report["by_phase"].values())
    assert report["certificate"]["n_checks"] == 1000
    assert report["outputs"] == ["s.npz"]
    found = revelu.Span.load(tmp_path / "s.npz")
    assert found.angles(TRUTH.weights[0]).max() < 1e-8


def test_span_of_labels(invoke, tmp_path):
    result = invoke("span", "truth.npz", "--labels", "-o", "s.npz", "--json", "--checks", 50)
    assert (result.exit_code, one_object(result.stdout)["method"]) == (0, "labels")
    assert revelu.Span.load(tmp_path / "s.npz").angles(TRUTH.weights[0]).max() < 1e-7


def test_span_summary_and_quiet(invoke):
    text = invoke("span", "truth.npz").stdout
    assert text.startswith("truth.npz: 4 of 16 directions\n")
    for word in ("certificate", "queries", "angle"):
        assert word in text
    assert invoke("span", "truth.npz", "-q").stdout == "truth.npz: 4 of 16 directions\n"


def test_a_span_of_no_direction_replaces_none(invoke, tmp_path):
    assert invoke("span", "truth.npz", "-o", "s.npz").exit_code == 0
    revelu.Network([np.zeros((1, 16))], [[1.0]]).save(tmp_path / "constant.npz")
    invoke("span", "constant.npz", "-o", "s.npz", "--checks", 50)
    assert revelu.Span.load(tmp_path / "s.npz").rank == 4
    assert revelu.Span.load(tmp_path / "s.partial.npz").rank == 0


def test_a_table_comes_back_as_a_table(invoke, tmp_path):
    names = ",".join(f"pixel{i}" for i in range(16))
    np.savetxt(tmp_path / "x.csv", X, delimiter=",", header=names, comments="")
    done = invoke("obfuscate", "truth.npz", "--inputs", "x.csv", "-o", "y.csv")
    assert done.exit_code == 0
    assert (tmp_path / "y.csv").read_text().splitlines()[0] == names
    Y = np.loadtxt(tmp_path / "y.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(TRUTH(Y), TRUTH(X), atol=1e-6)
    assert np.abs(Y - X).max() > 0.1


def test_noise_that_is_too_long_is_told_what_the_span_allows(invoke):
    done = invoke("obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.npy", "--norm", "1e18")
    assert done.exit_code == 1
    assert "up to --norm" in done.stdout


def test_rows_of_zeros_are_said_to_be_as_they_were(invoke, tmp_path):
    np.save(tmp_path / "x.npy", np.vstack([X, np.zeros(16)]))
    done = invoke("obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.npy")
    assert "row 5 is NOT changed (1 of 6 rows are not)" in done.stdout


def test_span_in_one_round(invoke):
    report = one_object(
        invoke("span", "truth.npz", "--method", "at_once", "--neurons", 4, "--json").stdout
    )
    assert (report["status"], report["rounds"], report["method"]) == ("recovered", 4, "at_once")


def test_full_rank_is_said(invoke):
    result = invoke("span", "wide.npz")
    assert result.exit_code == 0
    assert "no null space" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [
        (["answers:relu"], 0, "recovered"),
        (["answers:tanh"], 0, "recovered"),
        (["answers:random"], 1, "not_deterministic"),
        (["answers:relu", "--budget", 70], 3, "budget_exhausted"),
        (["answers:fails"], 4, "error"),
        (["answers:nan", "--labels"], 4, "error"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else None,
)
@pytest.mark.usefixtures("module")
def test_exit_codes(invoke, arguments, code, status):
    result = invoke("span", *arguments, "--trust", "--dim-in", 3, "--json")
    report = one_object(result.stdout)
    assert (result.exit_code, report["status"]) == (code, status)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["span", "missing.npz"], "missing.npz"),
        (["span", "truth.npz", "-o", "a.onnx"], ".npz"),
        (["span", "truth.npz", "-o", "truth.npz"], "target itself"),
        (["span", "truth.npz", "-o", "no/such/a.npz"], "a.npz"),
        (["span", "truth.npz", "--method", "at_once"], "neurons"),
        (["span", "truth.npz", "--plot", "a.txt"], ".png"),
        (["span", "answers:relu", "--dim-in", 3], "--trust"),
        (["obfuscate", "truth.npz", "--inputs", "none.npy", "-o", "y.npy"], "none.npy"),
        (["obfuscate", "truth.npz", "--inputs", "truth.npz", "-o", "y.npy"], "truth.npz"),
        (["obfuscate", "wide.npz", "--inputs", "x.npy", "-o", "y.npy"], "x.npy has 16 columns"),
        (["obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.txt"], ".npy"),
        (["obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "no/y.npy"], "no"),
        (["obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.npy", "--norm", 0], "norm"),
        (["obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.npy", "--box", 0.5, 1], "box"),
        (
            ["obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.npy", "--span", "x.npy"],
            "x.npy",
        ),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else None,
)
@pytest.mark.usefixtures("module")
def test_bad_input_is_one_line_and_exit_2(invoke, arguments, word):
    result = invoke(*arguments)
    assert result.exit_code == ExitCode.USAGE
    assert result.stdout == ""
    error, *spent = result.stderr.splitlines()
    assert word in error
    assert not spent or "asked until then: " in "".join(spent)
    assert len(spent) <= 1
    assert word in result.stderr


def test_obfuscated_inputs_are_answered_as_before(invoke, tmp_path):
    result = invoke("obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.npy", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    report = one_object(result.stdout)
    assert (report["changed_labels"], report["inputs_changed"]) == (0, 5)
    assert report["largest_change"] < 1e-7
    Y = np.load(tmp_path / "y.npy")
    np.testing.assert_allclose(TRUTH(Y), TRUTH(X), atol=1e-7)
    lengths = np.linalg.norm(Y - X, axis=1) / np.linalg.norm(X, axis=1)
    np.testing.assert_allclose(lengths, 10.0)


def test_box_span_and_summary(invoke, tmp_path):
    invoke("span", "truth.npz", "-o", "s.npz")
    result = invoke(
        "obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.npy", "--box", 0, 1,
        "--span", "s.npz",
    )  # fmt: skip
    assert result.exit_code == 0
    assert result.stdout.startswith("truth.npz: 5 of 5 labels as before\n")
    Y = np.load(tmp_path / "y.npy")
    assert (Y.min() >= 0, Y.max() <= 1) == (True, True)


def test_full_rank_is_refused(invoke, tmp_path):
    np.save(tmp_path / "three.npy", np.ones((1, 3)))
    result = invoke("obfuscate", "wide.npz", "--inputs", "three.npy", "-o", "y.npy")
    assert result.exit_code == ExitCode.USAGE
    assert "no null space" in result.stderr
    assert not (tmp_path / "y.npy").exists()


def test_budget_ends_it(invoke, tmp_path):
    result = invoke(
        "obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.npy", "--budget", 80, "--json"
    )
    assert result.exit_code == ExitCode.EXHAUSTED
    assert one_object(result.stdout)["changed_labels"] is None
    assert not (tmp_path / "y.npy").exists()


def test_pictures_are_drawn(invoke, tmp_path):
    pytest.importorskip("matplotlib")
    result = invoke("obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.npy", "--png", "g.png")
    assert result.exit_code == 0, result.stderr
    assert invoke("span", "truth.npz", "--plot", "v.png").exit_code == 0
    for name in ("g.png", "v.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_picture_needs_square_inputs(invoke, tmp_path):
    pytest.importorskip("matplotlib")
    network = revelu.zoo.random_network([6, 2, 2], seed=1)
    network.save(tmp_path / "six.npz")
    np.save(tmp_path / "six.npy", np.ones((2, 6)))
    result = invoke("obfuscate", "six.npz", "--inputs", "six.npy", "-o", "y.npy", "--png", "g.png")
    assert result.exit_code == ExitCode.USAGE
    assert "square" in result.stderr


def test_a_span_that_is_not_certified_says_so(invoke, tmp_path):
    target = revelu.oracle.degrade(TRUTH, revelu.oracle.Rounded(2))
    found = revelu.recover_span(target, seed=5, checks=50)
    assert found.span.rank
    found.span.save(tmp_path / "part.npz")
    result = invoke(
        "obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.npy", "--span", "part.npz", "--json"
    )  # fmt: skip
    report = one_object(result.stdout)
    assert (result.exit_code, report["status"]) == (ExitCode.NOT_CERTIFIED, "partial")
    assert "not certified" in " ".join(report["evidence"])


def test_an_attack_is_kept_in_a_journal_and_asks_nothing_twice(invoke):
    command = (
        "obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.npy", "--journal", "run.db",
        "--batch", 64, "--workers", 2, "--json",
    )  # fmt: skip
    cut = invoke(*command, "--budget", 100)
    assert (cut.exit_code, one_object(cut.stdout)["status"]) == (3, "budget_exhausted")
    first, again = invoke(*command), invoke(*command)
    assert first.exit_code == again.exit_code == 0
    figures = [one_object(result.stdout) for result in (first, again)]
    assert figures[0]["queries"] == figures[1]["queries"]
    assert "asked nothing" in " ".join(figures[1]["warnings"])
    over = invoke("obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.npy",
                  "--journal", "y.npy")  # fmt: skip
    assert over.exit_code == ExitCode.USAGE
