"""Real servers of JSON: MLflow's scoring server, and FastAPI under uvicorn."""

import contextlib
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import PATIENCE_SECONDS, one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from test_mlserver import free_ports, wait_for

pytestmark = pytest.mark.slow

# FastAPI and uvicorn come with MLflow, whose server is made of them.
PACKAGES = ("mlflow==3.17.2",)
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

# What someone who serves a model writes first.
APPLICATION = """
import numpy as np
from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel

with np.load("regressor.npz") as arrays:
    (W, A), (b, c) = (
        [arrays[f"{kind}_{i}"] for i in range(2)] for kind in ("weights", "biases")
    )
app = FastAPI()


def answers(X):
    return np.maximum(np.asarray(X) @ W.T + b, 0) @ A.T + c


class Batch(BaseModel):
    features: list[list[float]]


class Row(BaseModel):
    x: list[float]


@app.post("/predict")
def predict(batch: Batch, x_api_key: str = Header()):
    if x_api_key != "ff-do-not-tell":
        raise HTTPException(403, "who are you?")
    return {"prediction": answers(batch.features).tolist(), "model": "digits"}


@app.post("/row")
def row(one: Row):
    scores = answers([one.x])[0]
    return {"scores": {f"digit {i}": v for i, v in enumerate(scores.tolist())}}
"""


def make_environment(folder):
    """A virtual environment with MLflow, made once; its Python."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = folder / "complete"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        done.write_text("\n".join(PACKAGES))
    return python


@pytest.fixture(scope="module")
def python(request):
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return make_environment(Path(request.config.cache.mkdir(f"mlflow-3.17.2-{version}")))


@pytest.fixture(scope="module")
def folder(python, tmp_path_factory):
    """Models and an application."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "service.py").write_text(APPLICATION)
    subprocess.run([python, "-c", FIT], cwd=folder, env=bare(), check=True, capture_output=True)
    return folder


def bare(**more):
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | more


@contextlib.contextmanager
def uvicorn(python, folder, application, ready, **environment):
    """Serve an application; gives its address."""
    (port,) = free_ports(1)
    command = [python, "-m", "uvicorn", application, "--host", "127.0.0.1", "--port", f"{port}"]
    log = folder / f"{port}.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=bare(**environment), stdout=out, stderr=out
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}{ready}", process, log)
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


@contextlib.contextmanager
def mlflow_of(python, folder, model):
    """MLflow's own scoring server, as `mlflow models serve` starts it."""
    application = "mlflow.pyfunc.scoring_server.app:app"
    with uvicorn(
        python, folder, application, "/ping", __pyfunc_model_path__=str(folder / model)
    ) as url:
        yield f"{url}/invocations"


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
        with mlflow_of(python, folder, name) as url:
            done = invoke("extract", url, "--dim-in", 64, "-o", "a.npz", "--json")
            assert done.exit_code == 0, done.stderr
            assert one_object(done.stdout)["queries"] < 5000
            assert_found("a.npz", folder, name, logits=name == "classifier")
            for request in ('{"instances": $rows}', '{"dataframe_split": {"data": $rows}}'):
                done = invoke("probe", url, "--dim-in", 64, "--request", request)
                assert done.exit_code == 0, done.stderr


def test_mlflow_with_the_columns_of_a_table(python, folder, invoke):
    request = json.dumps({"dataframe_split": {"columns": COLUMNS, "data": "@"}})
    with mlflow_of(python, folder, "table") as url:
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
    with mlflow_of(python, folder, "labels") as url:
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
    with uvicorn(python, folder, "service:app", "/openapi.json") as url:
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
