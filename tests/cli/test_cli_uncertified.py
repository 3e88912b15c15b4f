"""A network that was not found is no file, unless it is asked for."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.certify import Examination, certify
from revelu.certify.certificate import is_no_copy
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.oracle import Oracle, measure_noise

WAVES = """
import numpy as np

def waves(X):
    return np.round(np.sin(4.0 * X).sum(axis=1), 2)
"""


@pytest.mark.parametrize("keep", [(), ("--keep-uncertified",)], ids=["", "keep"])
def test_a_network_that_is_wrong_nearly_everywhere_is_written_on_demand(
    tmp_path, monkeypatch, keep
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    module = f"waves_{len(keep)}"
    Path(f"{module}.py").write_text(WAVES)
    arguments = [f"{module}:waves", "--trust", "--dim-in", "2", "--budget", "3000", "--json"]
    result = CliRunner().invoke(app, ["extract", *arguments, "-o", "found.npz", *keep])
    report = one_object(result.stdout)
    assert result.exit_code == ExitCode.NOT_CERTIFIED
    assert report["queries"] <= 3000
    assert report["certificate"]["fraction_within"] < 0.5
    if keep:
        assert revelu.load("found.npz").certified is False
        assert report["outputs"] == ["found.npz"]
    else:
        assert not Path("found.npz").exists()
        assert report["outputs"] == []
        assert "found.npz: not written" in report["warnings"][-1]
        assert "--keep-uncertified writes it" in report["warnings"][-1]


@pytest.mark.parametrize(
    ("off", "share", "said"),
    [(0.0, 1.0, False), (0.05, 1.0, False), (0.5, 1.0, True), (0.5, 0.3, False)],
)
def test_no_copy_is_far_off_at_most_inputs(off, share, said):
    truth = revelu.zoo.random_network([4, 3, 1], seed=1)
    noise = measure_noise(Oracle(truth, 4), 0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    Y = truth(X)
    wrong = Y + off * Y.std() * rng.choice([-1.0, 1.0], Y.shape) * (rng.random(Y.shape) < share)
    certificate = certify(Examination(X, Y, wrong, np.ones(200, dtype=bool), noise))
    assert is_no_copy(certificate) is said
