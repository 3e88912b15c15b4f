"""The files that people have, made by the programs that make them; for benchmarks/targets.py.

A way in is a function of a random generator that writes into the working folder and returns a
``Made``; adding one is adding it to ``WAYS``.
"""

import gzip
import io
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import targets_onnx as by_hand
from targets_way import CLASSES, HIDDEN, D, Made, Rng, Way, points

import revelu
from revelu import Network
from revelu.types import FloatArray

# --- scikit-learn


def cancer(d: int = 8) -> tuple[FloatArray, FloatArray]:
    """Measurements of tumours in their units, and which are benign."""
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415 - optional

    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :d], y


def diabetes() -> tuple[FloatArray, FloatArray]:
    """Measurements of patients in their units, and whose disease went on faster.

    They do not tell the classes apart as well as those of tumours do, so that probabilities in
    float32 keep their digits.
    """
    from sklearn.datasets import load_diabetes  # noqa: PLC0415

    X, y = load_diabetes(return_X_y=True, scaled=False)
    return X[:, :8], (y > np.median(y)).astype(int)


def fitted(X: Any, y: Any, first: Any = None) -> Any:
    """A pipeline that classifies; ``first`` in place of its scaler."""
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    model = MLPClassifier(hidden_layer_sizes=(HIDDEN,), max_iter=60, random_state=0)
    return make_pipeline(first or StandardScaler(), model).fit(X, y)


def log_ratio(P: FloatArray) -> FloatArray:
    """Logits of two classes as they come back."""
    L = np.log(np.asarray(P, dtype=np.float64))
    return L - L[:, -1:]


def middle(X: FloatArray, rng: Rng) -> FloatArray:
    """Inputs like those trained on, where no probability is lost."""
    return X.mean(axis=0) + 0.5 * X.std(axis=0) * points(rng, X.shape[1])


def classified(command: str, model: Any, X: FloatArray, rng: Rng, rounding: float = 1e-5) -> Made:
    """A classifier of scikit-learn, in a file that is written."""

    def truth(Z: FloatArray) -> FloatArray:
        return log_ratio(model.predict_proba(Z))

    return Made(command, truth, inputs=middle(X, rng), rounding=rounding)


def skl2onnx_model(rng: Rng, *, zipmap: Any, double: bool) -> Made:
    """A pipeline as skl2onnx exports it."""
    import skl2onnx  # noqa: PLC0415
    from skl2onnx.common import data_types  # noqa: PLC0415

    X, y = diabetes()
    model = fitted(X, y)
    kind = data_types.DoubleTensorType if double else data_types.FloatTensorType
    exported = skl2onnx.to_onnx(
        model,
        initial_types=[("X", kind([None, X.shape[1]]))],
        options={id(model): {"zipmap": zipmap}},
    )
    Path("model.onnx").write_bytes(exported.SerializeToString())
    return classified("extract model.onnx", model, X, rng, 1e-5 if double else 2e-2)


def frame_and_words() -> tuple[Any, Any]:
    """The measurements as a DataFrame, with two columns of words."""
    import pandas as pd  # noqa: PLC0415

    X, y = cancer(4)
    table = pd.DataFrame(X, columns=["radius", "texture", "perimeter", "area"])
    table.insert(1, "sex", np.where(np.arange(len(X)) % 3, "f", "m"))
    table["ward"] = np.where(np.arange(len(X)) % 5, "B", "A")
    return table, y


def sklearn_frame(_: Rng) -> Made:
    """A pipeline that was fitted on a DataFrame."""
    import joblib  # noqa: PLC0415

    table, y = frame_and_words()
    numbers = table.drop(columns=["sex", "ward"])
    model = fitted(numbers, y)
    joblib.dump(model, "model.joblib")

    def truth(Z: FloatArray) -> FloatArray:
        return log_ratio(model.predict_proba(type(table)(Z, columns=numbers.columns)))

    X = middle(numbers.to_numpy(), np.random.default_rng(1))
    return Made("extract model.joblib --trust", truth, inputs=X, rounding=1e-5)


def sklearn_words(_: Rng, *, name: str = "model.joblib") -> Made:
    """A ColumnTransformer of numbers and words, which stay where a table has them."""
    import joblib  # noqa: PLC0415
    from sklearn.compose import make_column_transformer  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: PLC0415

    table, y = frame_and_words()
    words = ["sex", "ward"]
    numbers = [column for column in table if column not in words]
    model = fitted(
        table, y, make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), words))
    )
    joblib.dump(model, name)
    table.to_csv("table.csv", index=False)

    def truth(Z: FloatArray) -> FloatArray:
        rows = type(table)(Z, columns=numbers).assign(sex="f", ward="B")
        return log_ratio(model.predict_proba(rows[list(table.columns)]))

    X = middle(table[numbers].to_numpy(), np.random.default_rng(1))
    return Made(f"extract {name} --trust --fixed table.csv", truth, inputs=X, rounding=1e-5)


def sklearn_decision(rng: Rng) -> Made:
    """A classifier without probabilities."""
    import joblib  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415
    from sklearn.svm import LinearSVC  # noqa: PLC0415

    X, y = cancer()
    model = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(X, y)
    joblib.dump(model, "model.joblib")
    return Made("extract model.joblib --trust", model.decision_function, inputs=middle(X, rng))


def sklearn_calibrated(rng: Rng) -> Made:
    """A calibrated classifier."""
    import joblib  # noqa: PLC0415
    from sklearn.calibration import CalibratedClassifierCV  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    X, y = cancer()
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    model = CalibratedClassifierCV(inner, ensemble=False).fit(X, y)
    joblib.dump(model, "model.joblib")
    return classified("extract model.joblib --trust", model, X, rng)


def sklearn_labels(rng: Rng) -> Made:
    """Several labels at once, of which one is asked."""
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415

    X = rng.standard_normal((400, 5))
    labels = np.column_stack([X[:, 0] > 0, X[:, 1] + X[:, 2] > 0.5])
    model = MLPClassifier(hidden_layer_sizes=(HIDDEN,), max_iter=60, random_state=0).fit(X, labels)
    Path("model.pkl").write_bytes(pickle.dumps(model))

    def truth(Z: FloatArray) -> FloatArray:
        p = model.predict_proba(Z)[:, 1:]
        return log_ratio(np.column_stack([1.0 - p, p]))

    command = "extract model.pkl --trust --output-name 1"
    return Made(command, truth, inputs=0.5 * points(rng, 5), rounding=1e-5)


def sklearn_skops(rng: Rng) -> Made:
    """A file that executes nothing."""
    import skops.io  # noqa: PLC0415

    X, y = cancer()
    model = fitted(X, y)
    skops.io.dump(model, "model.skops")
    return classified("extract model.skops", model, X, rng)


# --- torch


def torch_chain(*, normed: bool = False) -> Any:
    """Layers with ReLUs between, and batch normalisation that has seen numbers."""
    import torch  # noqa: PLC0415
    from torch import nn  # noqa: PLC0415

    torch.manual_seed(0)
    norm = [nn.BatchNorm1d(HIDDEN)] if normed else []
    module = nn.Sequential(nn.Linear(D, HIDDEN), *norm, nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
    module.double()(torch.randn(200, D).double())
    return module.eval()


def torch_images() -> Any:
    """A convolution of images."""
    import torch  # noqa: PLC0415
    from torch import nn  # noqa: PLC0415

    torch.manual_seed(0)
    layers = nn.Conv2d(1, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(12, CLASSES)
    return nn.Sequential(*layers).double().eval()


def answered(module: Any, *row: int) -> Callable[[FloatArray], FloatArray]:
    """What a module answers to rows, brought into their shape."""

    def truth(X: FloatArray) -> FloatArray:
        import torch  # noqa: PLC0415

        with torch.no_grad():
            found = module(torch.tensor(X.reshape(len(X), *row)))
        return np.asarray(found)

    return truth


def torch_module(rng: Rng) -> Made:
    """A pickled module of images."""
    import torch  # noqa: PLC0415

    module = torch_images()
    torch.save(module, "cnn.pt")
    command = "extract cnn.pt --trust --input-shape 1x3x4"
    return Made(command, answered(module, 1, 3, 4), inputs=points(rng))


def torch_state(rng: Rng, *, kind: str) -> Made:
    """A state dict, a checkpoint, or safetensors."""
    import torch  # noqa: PLC0415

    module = torch_chain(normed=True)
    state = module.state_dict()
    name = "model.safetensors" if kind == "safetensors" else "model.pt"
    if kind == "safetensors":
        import safetensors.torch  # noqa: PLC0415

        safetensors.torch.save_file(state, name)
    else:
        whole = {"epoch": 9, "loss": 0.25, "state_dict": state}
        torch.save(whole if kind == "checkpoint" else state, name)
    return Made(f"extract {name} --activation relu", answered(module, D), inputs=points(rng))


def torch_no_chain(_: Rng) -> Made:
    """The state dict of a convolution."""
    import torch  # noqa: PLC0415

    torch.save(torch_images().state_dict(), "cnn.pt")
    return Made("extract cnn.pt --activation relu", words="no chain of linear layers: 0.weight")


def torch_silent(_: Rng) -> Made:
    """A state dict of which no activation was said."""
    import torch  # noqa: PLC0415

    torch.save(torch_chain().state_dict(), "model.pt")
    return Made("extract model.pt", words="say --activation relu; read as the chain 0 (12 to 6)")


def torch_script(rng: Rng) -> Made:
    """A program of TorchScript."""
    import torch  # noqa: PLC0415

    module = torch_images()
    torch.jit.save(torch.jit.trace(module, torch.zeros(2, 1, 3, 4).double()), "script.pt")
    command = "extract script.pt --trust --input-shape 1x3x4"
    return Made(command, answered(module, 1, 3, 4), inputs=points(rng))


def torch_program(rng: Rng) -> Made:
    """A program of torch.export."""
    import torch  # noqa: PLC0415

    module, rows = torch_images(), torch.zeros(2, 1, 3, 4).double()
    program = torch.export.export(module, (rows,), dynamic_shapes=({0: torch.export.Dim("n")},))
    torch.export.save(program, "program.pt2")
    return Made("extract program.pt2 --trust", answered(module, 1, 3, 4), inputs=points(rng))


def torch_onnx(rng: Rng, *, dynamo: bool) -> Made:
    """What torch's exporters write, the older and the newer one."""
    import torch  # noqa: PLC0415

    # The runtime has no convolution in float64.
    module, rows = torch_images().float(), torch.zeros(2, 1, 3, 4)
    if dynamo:
        free = ({0: torch.export.Dim("n")},)
        torch.onnx.export(
            module, (rows,), "model.onnx", dynamo=True, dynamic_shapes=free, verbose=False
        )
    else:
        written = io.BytesIO()
        torch.onnx.export(
            module,
            (rows,),
            written,
            dynamo=False,
            input_names=["image"],
            dynamic_axes={"image": {0: "n"}},
        )
        Path("model.onnx").write_bytes(written.getvalue())
    truth = answered(module.double(), 1, 3, 4)
    return Made("extract model.onnx", truth, inputs=points(rng), rounding=1e-4)


# --- tables


def learned(rng: Rng, *, name: str) -> Made:
    """Samples in a table with other columns."""
    network = revelu.zoo.random_network([4, 2, 1], seed=3)
    X = rng.standard_normal((400, 4))
    columns = {"id": [f"n{i}" for i in range(400)], **dict(zip("abcd", X.T, strict=True))}
    columns["price"] = network(X)[:, 0]
    if name.endswith(".parquet"):
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415

        pyarrow.parquet.write_table(pa.table(columns), name)
    else:
        rows = zip(*columns.values(), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        content = ("\n".join(lines) + "\n").encode()
        Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return Made(f"learn {name} --target price --drop id", network, inputs=points(rng, 4))


def learned_classes(rng: Rng) -> Made:
    """Probabilities of three classes."""
    W = np.array([[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, -0.5]])
    A = np.array([[1.0, 0.5], [0.7, 1.2], [0.0, 0.0]])
    network = Network([W, A], [[0.3, -0.2], [0.1, 0.4, 0.0]])
    X = rng.standard_normal((400, 4))
    E = np.exp(network(X))
    table = np.column_stack([X, E / E.sum(axis=1, keepdims=True)])
    np.savetxt("log.csv", table, delimiter=",", header="a,b,c,d,p,q,r", comments="", fmt="%.17g")
    return Made("learn log.csv --target p,q,r", network, inputs=points(rng, 4))


def no_such_column(rng: Rng) -> Made:
    """A column that is not there."""
    learned(rng, name="log.csv")
    return Made("learn log.csv --target cost", words="it has id, a, b, c, d, price")


# --- folders, and other programs


def mlflow_folder(rng: Rng, *, flavour: str) -> Made:
    """What MLflow saves."""
    import mlflow  # noqa: PLC0415

    if flavour == "onnx":
        import mlflow.onnx  # noqa: PLC0415

        made = by_hand.onnx_open_sizes(rng)
        mlflow.onnx.save_model(onnx.load("model.onnx"), "saved")
        return Made("extract saved --input-shape 1x3x4", made.truth, inputs=made.inputs)
    if flavour == "pytorch":
        import mlflow.pytorch  # noqa: PLC0415

        module = torch_chain()
        mlflow.pytorch.save_model(module, "saved", input_example=points(rng)[:3])
        return Made("extract saved --trust", answered(module, D), inputs=points(rng))
    import mlflow.sklearn  # noqa: PLC0415

    X, y = cancer()
    model = fitted(X, y)
    trusted = ["sklearn.neural_network._stochastic_optimizers.AdamOptimizer"]
    given = {"skops_trusted_types": trusted} if flavour == "skops" else {}
    mlflow.sklearn.save_model(model, "saved", serialization_format=flavour, **given)
    command = "extract saved" if flavour == "skops" else "extract saved --trust"
    return classified(command, model, X, rng)


def hub_folder(rng: Rng) -> Made:
    """A folder of the hub, with its model in a folder of its own."""
    Path("hub/onnx").mkdir(parents=True)
    made = by_hand.onnx_open_sizes(rng)
    Path("model.onnx").rename("hub/onnx/model.onnx")
    Path("hub/config.json").write_text(json.dumps({"model_type": "mlp"}), encoding="utf-8")
    return Made("extract hub --input-shape 1x3x4", made.truth, inputs=made.inputs)


def other(_: Rng, *, name: str, content: str, words: str) -> Made:
    """A file of another program, which is named."""
    Path(name).write_text(content, encoding="utf-8")
    return Made(f"extract {name}", words=words)


def with_(function: Callable[..., Made], **given: Any) -> Callable[[Rng], Made]:
    """A way of which something is said."""

    def make(rng: Rng) -> Made:
        return function(rng, **given)

    return make


SKL, TORCH = ("sklearn",), ("torch",)

WAYS = (
    Way("onnx: images in, label and probabilities out", by_hand.onnx_images),
    Way("onnx: sizes left open", by_hand.onnx_open_sizes),
    Way("onnx: written to stand in its place", by_hand.onnx_in_its_place),
    Way("onnx: two inputs, one fixed by a file", by_hand.onnx_two_inputs),
    Way("onnx: labels alone", by_hand.onnx_labels),
    Way("onnx: float16", by_hand.onnx_half),
    Way("onnx: int64", with_(by_hand.onnx_whole, dtype=np.int64)),
    Way("onnx: uint8", with_(by_hand.onnx_whole, dtype=np.uint8)),
    Way("onnx: a foreign operator", by_hand.onnx_foreign),
    Way("onnx: a later opset", by_hand.onnx_newer),
    *(
        Way(
            f"skl2onnx: {words}",
            with_(skl2onnx_model, zipmap=zipmap, double=double),
            (*SKL, "skl2onnx"),
        )
        for words, zipmap, double in (
            ("ZipMap", True, False),
            ("probabilities, float32", False, False),
            ("probabilities, float64", False, True),
            ("a column for each class", "columns", False),
        )
    ),
    Way("torch.onnx: the older exporter", with_(torch_onnx, dynamo=False), TORCH),
    Way("torch.onnx: the newer exporter", with_(torch_onnx, dynamo=True), (*TORCH, "onnxscript")),
    Way("torch: a module of images", torch_module, TORCH),
    *(
        Way(f"torch: {words}", with_(torch_state, kind=kind), (*TORCH, *more))
        for words, kind, more in (
            ("a state dict with batch norm", "state", ()),
            ("a checkpoint", "checkpoint", ()),
            ("a state dict as .safetensors", "safetensors", ("safetensors",)),
        )
    ),
    Way("torch: a state dict, nothing said", torch_silent, TORCH),
    Way("torch: a state dict that is no chain", torch_no_chain, TORCH),
    Way("torch: TorchScript", torch_script, TORCH),
    Way("torch: torch.export", torch_program, TORCH),
    Way("scikit-learn: fitted on a DataFrame", sklearn_frame, (*SKL, "pandas")),
    Way("scikit-learn: ColumnTransformer with words", sklearn_words, (*SKL, "pandas")),
    Way("scikit-learn: decision_function", sklearn_decision, SKL),
    Way("scikit-learn: CalibratedClassifierCV", sklearn_calibrated, SKL),
    Way("scikit-learn: one label of several", sklearn_labels, SKL),
    Way("scikit-learn: .skops", sklearn_skops, (*SKL, "skops")),
    *(
        Way(f"table: {name}", with_(learned, name=name), needs)
        for name, needs in (
            ("log.csv", ()),
            ("log.csv.gz", ()),
            ("log.parquet", ("pyarrow",)),
        )
    ),
    Way("table: probabilities of classes", learned_classes),
    Way("table: a column that is not there", no_such_column),
    *(
        Way(f"MLflow: {flavour}", with_(mlflow_folder, flavour=flavour), ("mlflow", *needs))
        for flavour, needs in (
            ("cloudpickle", SKL),
            ("skops", (*SKL, "skops")),
            ("onnx", ()),
            ("pytorch", TORCH),
        )
    ),
    Way("Hugging Face: config.json and ONNX", hub_folder),
    *(
        Way(f"named: {name}", with_(other, name=name, content=content, words=words))
        for name, content, words in (
            ("model.keras", "", "Keras model"),
            ("model.tflite", "", "TensorFlow Lite model"),
            ("model.ubj", "", "an XGBoost model"),
            ("model.json", '{"learner": {"gradient_booster": {}}}', "an XGBoost model"),
        )
    ),
)
