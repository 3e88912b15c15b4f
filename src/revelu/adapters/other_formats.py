"""Files of other programs: named as what they are, with the callable that makes targets of them."""

import json
from pathlib import Path
from typing import NamedTuple

from revelu.errors import InputError


class ModelKind(NamedTuple):
    """A kind of model that is asked through a function of a few lines.

    Attributes
    ----------
    name : str
    code : str
        The function, in which ``FILE`` is the model's file and ``X (n, d)`` are rows.
    """

    name: str
    code: str


_KERAS = ModelKind(
    "a Keras model", "model = keras.models.load_model(FILE); f = lambda X: model.predict(X)"
)
_TENSORFLOW = ModelKind(
    "a TensorFlow SavedModel",
    'model = tf.saved_model.load(FILE).signatures["serving_default"]; '
    "f = lambda X: next(iter(model(tf.constant(X, tf.float32)).values())).numpy()",
)
_TFLITE = ModelKind(
    "a TensorFlow Lite model",
    "run = ai_edge_litert.interpreter.Interpreter(FILE).get_signature_runner(); "
    "f = lambda X: next(iter(run(**{INPUT: X.astype('float32')}).values()))",
)
_XGBOOST = ModelKind(
    "an XGBoost model, trees and no ReLU network",
    "model = xgboost.Booster(model_file=FILE); f = lambda X: model.inplace_predict(X)",
)
_LIGHTGBM = ModelKind(
    "a LightGBM model, trees and no ReLU network",
    "model = lightgbm.Booster(model_file=FILE); f = model.predict",
)
_CATBOOST = ModelKind(
    "a CatBoost model, trees and no ReLU network",
    "model = catboost.CatBoost().load_model(FILE); f = model.predict",
)
_JAX = ModelKind("a Flax checkpoint", "f = lambda X: np.asarray(model.apply(parameters, X))")

_BY_SUFFIX = {
    ".keras": _KERAS,
    ".h5": _KERAS,
    ".hdf5": _KERAS,
    ".pb": _TENSORFLOW,
    ".tflite": _TFLITE,
    ".ubj": _XGBOOST,
    ".xgb": _XGBOOST,
    ".lgb": _LIGHTGBM,
    ".cbm": _CATBOOST,
    ".msgpack": _JAX,
    ".mlmodel": ModelKind("a Core ML model", "f = lambda X: model.predict({INPUT: X})[OUTPUT]"),
    ".mlpackage": ModelKind("a Core ML model", "f = lambda X: model.predict({INPUT: X})[OUTPUT]"),
    ".pmml": ModelKind("a PMML model", "model = pypmml.Model.load(FILE); f = model.predict"),
    ".gguf": ModelKind("a model of llama.cpp, which takes text and no rows of numbers", ""),
}

# Flavours of MLflow, whose names are those of packages.
_BY_FLAVOUR = {
    "keras": _KERAS,
    "tensorflow": _KERAS,
    "xgboost": _XGBOOST,
    "lightgbm": _LIGHTGBM,
    "catboost": _CATBOOST,
}


def kind_of_file(path: Path) -> ModelKind | None:
    """Tell which other program a file or a folder is of; None where nothing says it."""
    suffix = path.suffix.lower()
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if path.is_dir() and (path / "saved_model.pb").is_file():
        return _TENSORFLOW
    if suffix == ".json" and _is_xgboost(path):
        return _XGBOOST
    if suffix == ".txt" and path.is_file() and path.read_bytes()[:5] == b"tree\n":
        return _LIGHTGBM
    return None


def kind_of_flavour(flavour: str) -> ModelKind | None:
    """Tell which program a flavour of MLflow is of."""
    return _BY_FLAVOUR.get(flavour)


def refusal(path: Path, kind: ModelKind) -> InputError:
    """Return what is said of such a file."""
    if not kind.code:
        return InputError(f"{path}: {kind.name}")
    return InputError(f"{path}: {kind.name}, which revelu does not open: {as_function(kind)}")


def as_function(kind: ModelKind) -> str:
    """Say how a model of a kind is asked through a function."""
    return (
        "write it as a function f in mymodel.py and name that (mymodel:f --trust --dim-in N): "
        f"{kind.code}"
    )


def _is_xgboost(path: Path, most: int = 2**20) -> bool:
    """Whether a JSON file begins as XGBoost's do."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(most)
    try:
        found = json.loads(head)
    except ValueError:  # longer than what was read, or no JSON at all
        return b'"learner"' in head and b'"gradient_booster"' in head
    return isinstance(found, dict) and "learner" in found
