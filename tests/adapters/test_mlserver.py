"""The protocol's real server: MLServer with its scikit-learn runtime."""

import contextlib
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from program_serving import bare, environment, free_ports, wait_for
from typer.testing import CliRunner

import revelu
from conftest import PATIENCE_SECONDS, one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.errors import TargetError

pytestmark = pytest.mark.slow

# Fits two models and writes them, with the weights that they have.
FIT = """
import sys
from pathlib import Path

import joblib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier, MLPRegressor

X, y = load_digits(return_X_y=True)
X = (X - X.mean()) / X.std()
options = dict(hidden_layer_sizes=[32], random_state=int(sys.argv[1]), max_iter=30, tol=10)
models = {
    "regressor": MLPRegressor(**options).fit(X, np.eye(10)[y]),
    "classifier": MLPClassifier(**options).fit(X, y),
}
for name, model in models.items():
    folder = Path(name)
    folder.mkdir(exist_ok=True)
    joblib.dump(model, folder / "model.joblib")
    arrays = {f"weights_{i}": W.T for i, W in enumerate(model.coefs_)}
    arrays |= {f"biases_{i}": b for i, b in enumerate(model.intercepts_)}
    np.savez(folder / "truth.npz", **arrays)
"""


@contextlib.contextmanager
def mlserver(python, folder, seed=0, ports=None):
    """Serve a regressor and a classifier; gives the address of all models."""
    subprocess.run([python, "-c", FIT, str(seed)], cwd=folder, env=bare(), check=True)
    for name in ("regressor", "classifier"):
        settings = {
            "name": name,
            "implementation": "mlserver_sklearn.SKLearnModel",
            "parameters": {"uri": "./model.joblib"},
        }
        (folder / name / "model-settings.json").write_text(json.dumps(settings))
    names = ("http_port", "grpc_port", "metrics_port")
    ports = dict(zip(names, ports or free_ports(3), strict=True))
    common = {"host": "127.0.0.1", "parallel_workers": 0, "debug": False}
    (folder / "settings.json").write_text(json.dumps({**common, **ports}))
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [python, "-c", "from mlserver.cli import main; main()", "start", "."],
            cwd=folder,
            env=bare(),
            stdout=log,
            stderr=log,
        )
    try:
        url = f"http://127.0.0.1:{ports['http_port']}/v2"
        wait_for(f"{url}/health/ready", process, folder / "log")
        yield f"{url}/models"
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def python(request):
    return environment("mlserver", Path(request.config.cache.mkdir("environments")))


@pytest.fixture(scope="module")
def served(python, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlserver")
    with mlserver(python, folder) as url:
        yield url, folder


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


def test_regressor_comes_back(served, invoke):
    url, folder = served
    done = invoke(
        "extract", f"{url}/regressor", "--dim-in", 64, "--journal", "run.db", "-o", "a.onnx",
        "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    report = one_object(done.stdout)
    truth = revelu.load(folder / "regressor" / "truth.npz")
    assert report["architecture"] == list(truth.architecture)
    X = np.random.default_rng(0).standard_normal((500, 64))
    np.testing.assert_allclose(revelu.load("a.onnx")(X), truth(X), rtol=0, atol=1e-7)
    local = revelu.extract(truth.__call__, dim_in=64)
    # Its sums have other last bits, and so may have its lines.
    assert report["queries"] <= 1.1 * local.ledger.n_queries


def test_classifier_comes_back_as_logits(served):
    url, folder = served
    with revelu.open_oracle(f"{url}/classifier", 64, output_name="predict_proba") as oracle:
        found = revelu.extract(oracle, seed=1)
    assert found.status is revelu.Status.RECOVERED
    truth = revelu.load(folder / "classifier" / "truth.npz")
    X = np.random.default_rng(0).standard_normal((200, 64))
    Y, true = (Z - Z[:, -1:] for Z in (found.network(X), truth(X)))
    np.testing.assert_allclose(Y, true, atol=1e-6 * np.abs(true).max())


def test_absent_model_and_wrong_size_are_named(served, invoke):
    url, _ = served
    for name, dim_in in (("other", 64), ("regressor", 63)):
        done = invoke("extract", f"{url}/{name}", "--dim-in", dim_in)
        assert done.exit_code == ExitCode.TARGET
        assert done.stderr.count("\n") == 1
        assert name in done.stderr
    done = invoke("extract", f"{url}/regressor")
    assert done.exit_code == ExitCode.USAGE
    assert "give --dim-in" in done.stderr


def test_model_that_is_replaced_is_named(python, tmp_path):
    journal, ports = tmp_path / "run.db", free_ports(3)
    with mlserver(python, tmp_path, ports=ports) as url:
        name = f"{url}/regressor"
        with revelu.open_oracle(name, 64, budget=500, journal=journal) as oracle:
            assert revelu.extract(oracle).status is revelu.Status.BUDGET_EXHAUSTED
    with (
        mlserver(python, tmp_path, seed=1, ports=ports),
        revelu.open_oracle(name, 64, journal=journal) as oracle,
        pytest.raises(TargetError, match="has changed"),
    ):
        revelu.extract(oracle)
