"""Folders of MLflow and of Hugging Face's hub, and files of other programs, by their names."""

import json
import pickle

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn
from typer.testing import CliRunner

import revelu
from revelu import zoo
from revelu.cli.app import app
from revelu.errors import FormatError, InputError

NETWORK = zoo.random_network([3, 4, 2], seed=0)
X = np.random.default_rng(0).standard_normal((20, 3))

# What MLflow writes, but for what is of no interest here.
MLMODEL = """artifact_path: model
flavors:
  python_function:
    env:
      conda: conda.yaml
      virtualenv: python_env.yaml
    loader_module: mlflow.{flavour}
    python_version: 3.11.7
  {flavour}:
    code: null
    {entry}
mlflow_version: 2.22.0
model_size_bytes: 1234
signature:
  inputs: '[{{"type": "tensor", "tensor-spec": {{"dtype": "float64", "shape": [-1, 3]}}}}]'
"""


def mlflow(folder, flavour, entry):
    folder.mkdir()
    (folder / "MLmodel").write_text(MLMODEL.format(flavour=flavour, entry=entry))
    return folder


def test_mlflows_onnx_is_asked(tmp_path):
    folder = mlflow(tmp_path / "m", "onnx", "data: model.onnx")
    NETWORK.save(folder / "model.onnx")
    np.testing.assert_allclose(revelu.open_oracle(folder)(X), NETWORK(X), atol=1e-12)


def test_mlflows_scikit_learn_is_read_and_asked_with_trust(tmp_path):
    folder = mlflow(tmp_path / "m", "sklearn", "pickled_model: model.pkl")
    model = LinearRegression().fit(X, X[:, 0])
    (folder / "model.pkl").write_bytes(pickle.dumps(model))
    np.testing.assert_allclose(revelu.open_oracle(folder)(X)[:, 0], model.predict(X), atol=1e-12)
    found = revelu.open_oracle(folder, trust=True)(X)
    np.testing.assert_array_equal(found[:, 0], model.predict(X))


def test_mlflows_torch_is_asked_with_trust(tmp_path):
    folder = mlflow(tmp_path / "m", "pytorch", "model_data: data")
    (folder / "data").mkdir()
    module = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1)).double()
    torch.save(module, folder / "data" / "model.pth")
    found = revelu.open_oracle(folder, trust=True)(X)
    np.testing.assert_array_equal(found, module(torch.tensor(X)).detach().numpy())


@pytest.mark.parametrize(
    ("flavour", "entry", "words"),
    [
        ("xgboost", "data: model.xgb", "an XGBoost model, trees"),
        ("tensorflow", "data: data", "a Keras model"),
        ("spacy", "data: x", "flavours python_function, spacy"),
        ("onnx", "data: ../../elsewhere.onnx", "outside itself"),
        ("onnx", "data: missing.onnx", "no such file"),
    ],
)
def test_other_flavours_are_named(tmp_path, flavour, entry, words):
    (tmp_path / "elsewhere.onnx").touch()
    with pytest.raises(InputError, match=words) as caught:
        revelu.open_oracle(mlflow(tmp_path / "m", flavour, entry))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx"])
def test_a_folder_of_the_hub_has_its_onnx_asked(tmp_path, name):
    (tmp_path / "onnx").mkdir()
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mlp"}))
    NETWORK.save(tmp_path / name)
    np.testing.assert_allclose(revelu.open_oracle(tmp_path)(X), NETWORK(X), atol=1e-12)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"config.json": '{"model_type": "bert"}'}, "type bert, without a model.onnx.*optimum"),
        ({"config.json": "[]"}, "describes no model"),
        ({"config.json": "{"}, "not a readable JSON"),
        ({"saved_model.pb": ""}, "a TensorFlow SavedModel"),
        ({"weights.bin": ""}, "neither MLmodel nor config.json"),
        ({"MLmodel": "flavors:\n"}, "flavours none"),
        ({"MLmodel": "\x00\xff"}, "flavours none"),
    ],
)
def test_other_folders_are_named(tmp_path, files, words):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=words):
        revelu.open_oracle(tmp_path)


def test_a_description_that_is_no_text_is_damaged(tmp_path):
    (tmp_path / "MLmodel").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match="not a readable text"):
        revelu.open_oracle(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("m.ubj", "", "an XGBoost model.*xgboost.Booster"),
        ("m.json", '{"learner": {"gradient_booster": {}}}', "an XGBoost model"),
        ("m.txt", "tree\nversion=v4\n", "a LightGBM model"),
        ("m.cbm", "", "a CatBoost model"),
        ("m.gguf", "", "a model of llama.cpp"),
    ],
)
def test_files_of_other_programs_are_named_with_what_to_write(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    done = CliRunner().invoke(app, ["extract", str(tmp_path / name)])
    assert done.exit_code == 2
    with pytest.raises(InputError, match=words) as caught:
        revelu.open_oracle(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["other.json", "other.txt"])
def test_text_of_no_model_is_no_target(tmp_path, name):
    (tmp_path / name).write_text("[1, 2]")
    with pytest.raises(InputError, match="not a target; a target is"):
        revelu.open_oracle(tmp_path / name)
