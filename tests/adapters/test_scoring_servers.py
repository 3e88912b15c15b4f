"""Real servers of JSON: MLflow's and KServe's scoring servers, and FastAPI under uvicorn."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from program_serving import bare, environment, fastapi, kserve, mlflow
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode

pytestmark = pytest.mark.slow

COLUMNS = [f"pixel {i}" for i in range(64)]
ROWS = '{"inputs": $rows}'

# Fits models and writes them, with the weights that they have.
FIT = """
import mlflow
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier, MLPRegressor

X, y = load_digits(return_X_y=True)
X = (X - X.mean()) / X.std()
table = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
options = dict(hidden_layer_sizes=[32], random_state=0, max_iter=30, tol=10)
models = {
    "regressor": (MLPRegressor(**options).fit(X, np.eye(10)[y]), {}),
    "classifier": (MLPClassifier(**options).fit(X, y), {"pyfunc_predict_fn": "predict_proba"}),
    "labels": (MLPClassifier(**options).fit(X, y), {}),
    "table": (MLPRegressor(**options).fit(table, np.eye(10)[y]), {}),
}
for name, (model, more) in models.items():
    if name == "table":
        more["signature"] = mlflow.models.infer_signature(table[:5], model.predict(table[:5]))
    mlflow.sklearn.save_model(model, name, serialization_format="cloudpickle", **more)
    arrays = {f"weights_{i}": W.T for i, W in enumerate(model.coefs_)}
    arrays |= {f"biases_{i}": b for i, b in enumerate(model.intercepts_)}
    np.savez(f"{name}.npz", **arrays)
"""


@pytest.fixture(scope="module")
def python(request):
    return environment("mlflow", Path(request.config.cache.mkdir("environments")))


@pytest.fixture(scope="module")
def folder(python, tmp_path_factory):
    """Models, and the weights that they have."""
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([python, "-c", FIT], cwd=folder, env=bare(), check=True, capture_output=True)
    shutil.copy(folder / "regressor.npz", folder / "network.npz")  # what services answer with
    return folder


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


def assert_found(path, folder, name, *, logits=False):
    """Whether a file holds the network that was served."""
    X = np.random.default_rng(0).standard_normal((500, 64))
    Y, true = (revelu.load(p)(X) for p in (path, folder / f"{name}.npz"))
    if logits:
        Y, true = Y - Y[:, -1:], true - true[:, -1:]
    np.testing.assert_allclose(Y, true, rtol=0, atol=1e-6 * np.abs(true).max())


def test_mlflow_by_its_address(python, folder, invoke):
    for name in ("regressor", "classifier"):
        with mlflow(python, folder, name) as host:
            url = f"{host}/invocations"
            done = invoke("extract", url, "--dim-in", 64, "-o", "a.npz", "--json")
            assert done.exit_code == 0, done.stderr
            assert one_object(done.stdout)["queries"] < 5000
            assert_found("a.npz", folder, name, logits=name == "classifier")
            for request in ('{"instances": $rows}', '{"dataframe_split": {"data": $rows}}'):
                done = invoke("probe", url, "--dim-in", 64, "--request", request)
                assert done.exit_code == 0, done.stderr


def test_mlflow_with_the_columns_of_a_table(python, folder, invoke):
    request = json.dumps({"dataframe_split": {"columns": COLUMNS, "data": "@"}})
    with mlflow(python, folder, "table") as host:
        url = f"{host}/invocations"
        done = invoke("extract", url, "--dim-in", 64)
        assert done.exit_code == ExitCode.TARGET
        assert "schema" in done.stderr
        done = invoke(
            "extract", url, "--preset", "mlflow", "--request", request.replace('"@"', "$rows"),
            "--dim-in", 64, "-o", "a.npz",
        )  # fmt: skip
        assert done.exit_code == 0, done.stderr
    assert_found("a.npz", folder, "table")


def test_span_from_mlflows_labels(python, folder, invoke):
    with mlflow(python, folder, "labels") as host:
        url = f"{host}/invocations"
        done = invoke("probe", url, "--dim-in", 64)
        assert "whole numbers" in done.stdout
        done = invoke(
            "span", url, "--dim-in", 64, "--labels", "--json", "--max-seconds", 200, "-o", "a.npz"
        )
    assert done.exit_code in {0, 3}, done.stderr
    assert one_object(done.stdout)["rank"] > 0


def test_fastapi_by_a_template(python, folder, invoke, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "ff-do-not-tell")
    batch = ["--request", '{"features": $rows}', "--answer", "$.prediction", "--dim-in", 64]
    key = ["--header", "X-Api-Key: $SOME_KEY"]
    with fastapi(python, folder) as url:
        done = invoke("extract", f"{url}/predict", *batch, *key, "-o", "a.npz", "--json")
        assert done.exit_code == 0, done.stderr
        assert "do-not-tell" not in done.stdout + done.stderr
        assert_found("a.npz", folder, "regressor")
        one = ["--request", '{"x": $row}', "--dim-in", 64, "--workers", 4]
        done = invoke("extract", f"{url}/row", *one, "-o", "b.npz")
        assert done.exit_code == 0, done.stderr
        assert_found("b.npz", folder, "regressor")
        # What FastAPI says of requests that are none.
        done = invoke("extract", f"{url}/row", "--request", '{"y": $row}', "--dim-in", 64)
        assert done.exit_code == ExitCode.TARGET
        assert "Field required" in done.stderr
        done = invoke("extract", f"{url}/predict", *batch)
        assert done.exit_code == ExitCode.TARGET
        assert done.stderr.count("\n") == 1


def test_kserve_by_its_address(request, folder, invoke):
    """KServe's own server, version 1 of its protocol; the address is TensorFlow Serving's."""
    own = environment("kserve", Path(request.config.cache.mkdir("environments")))
    with kserve(own, folder) as host:
        url = f"{host}/v1/models/model:predict"
        for preset in ((), ("--preset", "kserve-v1")):
            done = invoke("extract", url, *preset, "--dim-in", 64, "-o", "a.npz", "--json")
            assert done.exit_code == 0, done.stderr
            assert one_object(done.stdout)["queries"] < 5000
            assert_found("a.npz", folder, "regressor")
        done = invoke("extract", url.replace("model:", "other:"), "--dim-in", 64)
        assert done.exit_code == ExitCode.TARGET
        assert "other" in done.stderr
        assert done.stderr.count("\n") == 1
