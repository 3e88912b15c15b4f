"""ONNX files as tools export them: several inputs and outputs, images, short and whole numbers."""

import io
import warnings

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn
from typer.testing import CliRunner

import revelu
from revelu import Network, Status, zoo
from revelu.adapters.onnx_ports import OnnxInput
from revelu.cli.app import app
from revelu.errors import FormatError, InputError, TargetError

TYPES = {
    np.float64: TensorProto.DOUBLE,
    np.float32: TensorProto.FLOAT,
    np.float16: TensorProto.FLOAT16,
    np.uint8: TensorProto.UINT8,
    np.int64: TensorProto.INT64,
    str: TensorProto.STRING,
}
GEMM = {"transB": 1}
TRUTH = zoo.random_network([12, 6, 3], seed=4)


def rows(d=12, n=40, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def chain(network=TRUTH, dtype=np.float64, start="x"):
    """Nodes and tensors of a network from ``start`` to ``logits``."""
    (W, A), (b, c) = network.weights, network.biases
    tensors = {"W": W, "b": b, "A": A, "c": c}
    nodes = [
        ("Gemm", f"{start} W b", "z", GEMM),
        ("Relu", "z", "h", {}),
        ("Gemm", "h A c", "logits", GEMM),
    ]
    return nodes, {name: a.astype(dtype) for name, a in tensors.items()}


def write(path, nodes, inputs, outputs, tensors=None, opsets=(("", 17),), ir_version=10):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node(
                kind.split(":")[-1], i.split(), o.split(), domain=kind.rpartition(":")[0], **a
            )
            for kind, i, o, a in nodes
        ],
        "exported",
        [value(name, TYPES[t], shape) for name, t, shape in inputs],
        [value(name, TYPES[t], shape) for name, t, shape in outputs],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in (tensors or {}).items()],
    )
    model = helper.make_model(
        graph, ir_version=ir_version, opset_imports=[helper.make_opsetid(*o) for o in opsets]
    )
    path.write_bytes(model.SerializeToString())
    return path


def image_classifier(path, shape, dtype=np.float32):
    """Images to features, logits, probabilities and a label."""
    nodes, tensors = chain(dtype=dtype)
    return write(
        path,
        [
            ("Flatten", "image", "x", {}),
            *nodes,
            ("Softmax", "logits", "probabilities", {"axis": 1}),
            ("ArgMax", "logits", "label", {"axis": 1, "keepdims": 0}),
        ],
        [("image", dtype, shape)],
        [
            ("label", np.int64, ["N"]),
            ("h", dtype, ["N", 6]),
            ("logits", dtype, ["N", 3]),
            ("probabilities", dtype, ["N", 3]),
        ],
        tensors,
    )


# --- outputs


@pytest.mark.parametrize(
    ("name", "width"), [(None, 3), ("logits", 3), ("probabilities", 3), ("h", 6), ("label", 1)]
)
def test_of_several_outputs_logits_are_asked_and_labels_by_name_alone(tmp_path, name, width):
    path = image_classifier(tmp_path / "n.onnx", ["N", 1, 3, 4], np.float64)
    oracle = revelu.open_oracle(path, output_name=name)
    answers = oracle(rows())
    assert answers.shape == (40, width)
    if name in {None, "logits"}:
        np.testing.assert_allclose(answers, TRUTH(rows()), rtol=1e-12, atol=1e-12)
    if name == "label":
        np.testing.assert_array_equal(answers[:, 0], TRUTH(rows()).argmax(axis=1))
    assert f"{name or 'logits'} is asked, not" in oracle.target.notes[0]


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (["label"], "has the output label: nothing that shows weights"),
        (["z", "h"], "has the outputs z, h: give output_name"),
    ],
)
def test_where_no_output_is_to_be_preferred_they_are_listed(tmp_path, outputs, words):
    nodes, tensors = chain()
    nodes = [*nodes, ("ArgMax", "logits", "label", {"axis": 1, "keepdims": 0})]
    kinds = {"label": ("label", np.int64, ["N"])}
    declared = [kinds.get(name, (name, np.float64, ["N", 6])) for name in outputs]
    path = write(tmp_path / "n.onnx", nodes, [("x", np.float64, ["N", 12])], declared, tensors)
    with pytest.raises(InputError, match=words):
        revelu.open_oracle(path)
    with pytest.raises(InputError, match="not the output_name other"):
        revelu.open_oracle(path, output_name="other")


def test_outputs_of_a_column_each_are_read_together(tmp_path):
    nodes, tensors = chain()
    nodes = [*nodes, ("Split", "logits", "p q r", {"axis": 1})]
    declared = [(name, np.float64, ["N", 1]) for name in "pqr"]
    path = write(tmp_path / "n.onnx", nodes, [("x", np.float64, ["N", 12])], declared, tensors)
    np.testing.assert_allclose(revelu.open_oracle(path)(rows()), TRUTH(rows()), atol=1e-12)
    some = revelu.open_oracle(path, output_name="r,p")(rows())
    np.testing.assert_allclose(some, TRUTH(rows())[:, [2, 0]], atol=1e-12)


# --- inputs


@pytest.mark.parametrize("shape", [["N", 1, 3, 4], ["N", 3, 4], [5, 12, 1, 1], ["N", 2, 6]])
def test_rows_of_any_declared_shape_are_flattened(tmp_path, shape):
    path = image_classifier(tmp_path / "n.onnx", shape)
    np.testing.assert_allclose(revelu.open_oracle(path)(rows()), TRUTH(rows()), atol=1e-4)


def test_sizes_left_open_are_asked_for_by_their_names(tmp_path):
    path = image_classifier(tmp_path / "n.onnx", ["N", 1, "height", "width"])
    with pytest.raises(InputError, match="say height and width by image heightxwidthx1"):
        revelu.open_oracle(path)
    for shape in ("1x3x4", (1, 4, 3), [1, 12, 1]):
        oracle = revelu.open_oracle(path, input_shape=shape)
        np.testing.assert_allclose(oracle(rows()), TRUTH(rows()), atol=1e-4)
    with pytest.raises(InputError, match="1 x height x width, not 3x2x2"):
        revelu.open_oracle(path, input_shape="3x2x2")
    with pytest.raises(InputError, match="has 12 inputs, not 13"):
        revelu.open_oracle(path, 13, input_shape="1x3x4")


def test_one_size_left_open_follows_from_the_number_of_inputs(tmp_path):
    path = image_classifier(tmp_path / "n.onnx", ["N", 3, "width"])
    np.testing.assert_allclose(revelu.open_oracle(path, 12)(rows()), TRUTH(rows()), atol=1e-4)
    with pytest.raises(InputError, match="say width"):
        revelu.open_oracle(path, 13)


@pytest.mark.parametrize("shape", ["1xx8", "", "axb", "0x3", "-1", (), ("a",), 2.5])
def test_a_shape_that_is_none_is_refused(tmp_path, shape):
    path = image_classifier(tmp_path / "n.onnx", ["N", 12])
    with pytest.raises(InputError, match="input_shape must be sizes such as 1x8x8"):
        revelu.open_oracle(path, input_shape=shape)


@pytest.fixture
def sides(tmp_path):
    """A network of 12 inputs, 5 on the left and 7 on the right."""
    nodes, tensors = chain()
    inputs = [("left", np.float64, ["N", 5]), ("right", np.float64, ["N", 7])]
    return write(
        tmp_path / "sides.onnx",
        [("Concat", "left right", "x", {"axis": 1}), *nodes],
        inputs,
        [("logits", np.float64, ["N", 3])],
        tensors,
    )


def test_other_inputs_stay_at_zero_or_where_they_are_put(sides, tmp_path):
    X, stays = rows(5), rows(7, n=1)[0]
    np.savez(tmp_path / "stays.npz", right=stays)
    for fixed, at in (
        (None, np.zeros(7)),
        ({"right": stays}, stays),
        (tmp_path / "stays.npz", stays),
    ):
        oracle = revelu.open_oracle(sides, input_name="left", fixed=fixed)
        whole = np.column_stack([X, np.tile(at, (40, 1))])
        np.testing.assert_allclose(oracle(X), TRUTH(whole), atol=1e-12)
        assert "right stays" in oracle.target.notes[0]
    together = revelu.open_oracle(sides, input_name="left,right")
    np.testing.assert_allclose(together(rows()), TRUTH(rows()), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, r"has 2 inputs \(left, right\): give input_name"),
        ({"input_name": "middle"}, "has the inputs left, right, not the input_name middle"),
        ({"input_name": "left", "fixed": {"wrong": [1.0]}}, "nothing to be fixed is in wrong"),
        ({"input_name": "left", "fixed": {"right": [1.0, 2.0]}}, "takes tensor.double. of shape"),
        (
            {"input_name": "left", "fixed": {"right": [np.nan] * 7}},
            "'right' is to stay where it is",
        ),
        ({"input_name": "left,left"}, "names an input twice"),
        ({"input_name": "left,"}, "not the input_name"),
        ({"input_name": "left", "output_name": "logits,logits"}, "names an output twice"),
        ({"input_name": "left", "activation": "relu"}, "activation is not for ONNX files"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_line(sides, options, words):
    with pytest.raises(InputError, match=words) as caught:
        revelu.open_oracle(sides, **options)
    assert "\n" not in str(caught.value)


NUMBERS = zoo.random_network([2, 4, 1], seed=1)


@pytest.fixture
def columns(tmp_path):
    """A network of two columns of numbers, in a file that has an input for each column."""
    nodes, tensors = chain(NUMBERS, np.float64)
    inputs = [("age", np.float64, ["N", 1]), ("fare", np.float64, ["N", 1]), ("sex", str, ["N", 1])]
    return write(
        tmp_path / "n.onnx",
        [("Concat", "age fare", "x", {"axis": 1}), *nodes, ("Identity", "sex", "said", {})],
        inputs,
        [("logits", np.float64, ["N", 1]), ("said", str, ["N", 1])],
        tensors,
    )


def test_an_input_for_each_column_of_a_table_varies_where_it_is_of_numbers(columns, tmp_path):
    with pytest.raises(InputError, match="'sex' takes words"):
        revelu.open_oracle(columns)
    (tmp_path / "table.csv").write_text("sex,age\nf,1\nm,2\nm,3\n")
    oracle = revelu.open_oracle(columns, fixed=tmp_path / "table.csv")
    np.testing.assert_allclose(oracle(rows(2)), NUMBERS(rows(2)), atol=1e-4)
    assert oracle.target._fixed["sex"][0].tolist() == ["m"]
    (tmp_path / "lacks.csv").write_text("sex,age\nf,1\n")
    with pytest.raises(InputError, match=r"lacks.csv: has no column 'fare'.*it has sex, age"):
        revelu.open_oracle(columns, input_name="age", fixed=tmp_path / "lacks.csv")


def test_inputs_of_a_number_each_are_columns_of_a_table_by_name(columns):
    """Tables with their columns in another order are put in the file's."""
    X = 3.0 + rows(2, n=300)
    turned = revelu.open_oracle(columns, fixed={"sex": "f"}).target
    assert turned.column_names == ["age", "fare"]
    table = pd.DataFrame({"fare": X[:, 1], "age": X[:, 0]})
    for given in ({"data": table}, {"domain": revelu.Domain.like(table), "inputs": table}):
        found = revelu.extract(turned, checks=300, **given)
        assert found.status is Status.RECOVERED
        assert found.ledger.n_queries < 3000
        np.testing.assert_allclose(found.network(X), NUMBERS(X), atol=1e-4)
    with pytest.raises(InputError, match="the target reads the columns age, fare"):
        revelu.extract(turned, data=table.assign(other=1.0 * np.arange(300))[["fare", "other"]])


def test_an_input_of_several_numbers_has_no_names(tmp_path):
    path = image_classifier(tmp_path / "n.onnx", ["N", 12])
    assert revelu.open_oracle(path).target.column_names == []


# --- short and whole numbers


def test_half_precision_is_asked_in_half_precision(tmp_path):
    path = image_classifier(tmp_path / "n.onnx", ["N", 1, 3, 4], np.float16)
    Y = revelu.open_oracle(path)(rows())
    np.testing.assert_array_equal(Y, Y.astype(np.float16))
    np.testing.assert_allclose(Y, TRUTH(rows()), atol=0.05)


def whole_numbers(path, dtype, *, first="Cast"):
    """A network of whole numbers, which are made real by the first node, or by the second."""
    nodes, tensors = chain()
    heads = {
        "Cast": [("Cast", "pixels", "x", {"to": TensorProto.DOUBLE})],
        "Abs": [("Abs", "pixels", "size", {}), ("Cast", "size", "x", {"to": TensorProto.DOUBLE})],
    }
    inputs, outputs = [("pixels", dtype, ["N", 12])], [("logits", np.float64, ["N", 3])]
    return write(path, [*heads[first], *nodes], inputs, outputs, tensors)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_whole_numbers_are_the_nearest_ones_within_their_limits(tmp_path, dtype):
    X = 300.0 * rows()
    limits = np.iinfo(dtype)
    near = np.abs(np.clip(np.rint(X), float(limits.min), float(limits.max)))
    oracle = revelu.open_oracle(whole_numbers(tmp_path / "n.onnx", dtype, first="Abs"))
    np.testing.assert_allclose(oracle(X), TRUTH(near), rtol=1e-9, atol=1e-9)
    assert "asked at the nearest" in oracle.target.notes[0]


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.bool_])
def test_behind_a_cast_real_numbers_are_asked(tmp_path, dtype):
    TYPES[np.bool_] = TensorProto.BOOL
    path = whole_numbers(tmp_path / "n.onnx", dtype)
    recovery = revelu.extract(path, budget=2500, checks=300)
    assert recovery.status is Status.RECOVERED
    assert revelu.align(recovery.network, TRUTH).max_parameter_error < 1e-7
    oracle = revelu.open_oracle(path)
    assert "those are asked" in oracle.target.notes[0]
    assert oracle.target.frame.dtype == dtype  # which is what is written


@pytest.mark.parametrize("kind", ["int64", "uint64", "int8", "bool", "float16"])
def test_no_number_wraps_around(kind):
    one = OnnxInput("x", np.dtype(kind), (1,), None)
    taken = one.taken(np.array([[-1e30], [-1.0], [0.4], [0.6], [1e30]]))
    assert np.all(np.diff(taken[:, 0].astype(float)) >= 0)


# --- what the runtime does not have


@pytest.mark.parametrize(
    ("kind", "opsets", "ir_version", "words"),
    [
        ("my.ops:Magic", (("", 17), ("my.ops", 1)), 10, "domain my.ops are none of the runtime's"),
        ("Relu", (("", 99),), 10, "asks for the operators ai.onnx 99.*earlier opset"),
        ("Relu", (("", 17),), 99, "ir_version 99|IR version 99"),
    ],
)
def test_operators_that_the_runtime_does_not_have_are_named(
    tmp_path, kind, opsets, ir_version, words
):
    value = ("x", np.float64, ["N", 3]), ("y", np.float64, ["N", 3])
    path = write(
        tmp_path / "n.onnx", [(kind, "x", "y", {})], [value[0]], [value[1]], {}, opsets, ir_version
    )
    with pytest.raises(FormatError, match=words) as caught:
        revelu.open_oracle(path)
    assert "\n" not in str(caught.value)


# --- what is written back


def test_what_is_written_takes_the_place_of_what_was_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = image_classifier(tmp_path / "n.onnx", ["N", 1, "height", "width"])
    command = ["extract", str(path), "--input-shape", "1x3x4", "--like-input", "--checks", "300"]
    done = CliRunner().invoke(app, [*command, "-o", "found.onnx", "-o", "found.npz", "--json"])
    assert done.exit_code == 0, done.output
    image = rows().reshape(-1, 1, 3, 4).astype(np.float32)
    answers = [
        onnxruntime.InferenceSession(name).run(["logits"], {"image": image})[0]
        for name in ("n.onnx", "found.onnx")
    ]
    assert answers[0].dtype == answers[1].dtype == np.float32
    np.testing.assert_allclose(*answers, atol=1e-4)
    assert revelu.load("found.onnx") == revelu.load("found.npz")


def test_only_onnx_files_have_names_to_be_written(tmp_path):
    done = CliRunner().invoke(app, ["extract", "zoo:none", "--like-input"])
    assert done.exit_code == 2
    zoo.random_network([3, 2, 1], seed=0).save(tmp_path / "n.npz")
    done = CliRunner().invoke(app, ["extract", str(tmp_path / "n.npz"), "--like-input"])
    assert done.exit_code == 2
    assert "--like-input is for ONNX files" in done.output


def test_a_journal_of_another_output_is_refused(tmp_path):
    path = image_classifier(tmp_path / "n.onnx", ["N", 12])
    with revelu.open_oracle(path, journal=tmp_path / "j.db") as oracle:
        oracle(rows())
    with pytest.raises(InputError):
        revelu.open_oracle(path, journal=tmp_path / "j.db", output_name="h")


def test_a_journal_knows_the_numbers_that_lie_beside_a_file(tmp_path):
    import onnx

    for seed in (0, 1):
        zoo.random_network([3, 50, 1], seed=seed).save(tmp_path / "whole.onnx")
        model = onnx.load(tmp_path / "whole.onnx")
        (tmp_path / "n.data").unlink(missing_ok=True)
        onnx.save_model(
            model,
            tmp_path / "n.onnx",
            save_as_external_data=True,
            location="n.data",
            size_threshold=0,
        )
        options = {"journal": tmp_path / "j.db"}
        if seed:
            with pytest.raises(InputError):
                revelu.open_oracle(tmp_path / "n.onnx", **options)
        else:
            with revelu.open_oracle(tmp_path / "n.onnx", **options) as oracle:
                oracle(rows(3))


# --- real exporters


@pytest.fixture(scope="module")
def classifier():
    X, y = load_breast_cancer(return_X_y=True)
    model = MLPClassifier(hidden_layer_sizes=[6], max_iter=40, random_state=0, tol=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(StandardScaler(), model).fit(X[:, :6], y)


@pytest.mark.parametrize("zipmap", [True, False, "columns"])
def test_what_skl2onnx_exports_answers_probabilities(tmp_path, classifier, zipmap):
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    kind = DoubleTensorType if zipmap is False else FloatTensorType
    model = skl2onnx.to_onnx(
        classifier,
        initial_types=[("X", kind([None, 6]))],
        options={id(classifier): {"zipmap": zipmap}},
    )
    path = tmp_path / "exported.onnx"
    path.write_bytes(model.SerializeToString())
    oracle = revelu.open_oracle(path)
    scaler = classifier[0]
    X = scaler.mean_ + scaler.scale_ * rows(6)
    np.testing.assert_allclose(oracle(X), classifier.predict_proba(X), atol=1e-4)
    assert "label" in oracle.target.notes[0]
    if zipmap is False:
        recovery = revelu.extract(path, budget=6000, checks=500, domain=scaled(scaler))
        assert recovery.status is Status.RECOVERED
        truth = np.log(classifier.predict_proba(X))
        np.testing.assert_allclose(
            recovery.network(X)[:, 0] - recovery.network(X)[:, 1],
            truth[:, 0] - truth[:, 1],
            atol=1e-6,
        )


def scaled(scaler):
    return revelu.Domain.gaussian(scaler.mean_, scaler.scale_)


def test_what_torch_exports_is_recovered(tmp_path):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 2)).double()
    exported = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather use its newer exporter
        torch.onnx.export(
            module,
            (torch.zeros(2, 1, 3, 4).double(),),
            exported,
            dynamo=False,
            input_names=["image"],
            dynamic_axes={"image": {0: "n"}},
        )
    path = tmp_path / "exported.onnx"
    path.write_bytes(exported.getvalue())
    recovery = revelu.extract(path, budget=2000, checks=300)
    assert recovery.status is Status.RECOVERED
    layers = [module[1], module[3]]
    truth = Network(*([getattr(m, k).detach().numpy() for m in layers] for k in ("weight", "bias")))
    assert revelu.align(recovery.network, truth).max_parameter_error < 1e-7


def test_rows_of_different_classes_are_no_answer():
    from revelu.adapters.onnx_ports import rows_of

    mapped = [{"b": 0.25, "a": 0.75}, {"a": 1.0, "b": 0.0}]
    np.testing.assert_array_equal(rows_of("n", mapped, 2), [[0.75, 0.25], [1.0, 0.0]])
    with pytest.raises(TargetError, match="different classes"):
        rows_of("n", [{"a": 1.0}, {"b": 1.0}], 2)
    with pytest.raises(TargetError, match="answered shape"):
        rows_of("n", [{"a": 1.0}], 2)


# --- operators that the runtime has in float32 alone


def convolution(path, dtype):
    """One filter on images of 5 by 4, then a ReLU."""
    kernel = np.random.default_rng(3).normal(size=(1, 1, 2, 2)).astype(dtype)
    nodes = [
        ("Conv", "x k", "z", {}),
        ("Relu", "z", "h", {}),
        ("Flatten", "h", "y", {}),
    ]
    shape = ["N", 1, 5, 4]
    return kernel, write(
        path, nodes, [("x", dtype, shape)], [("y", dtype, ["N", 12])], {"k": kernel}
    )


def test_a_convolution_in_float64_is_asked_through_the_reference_evaluator(tmp_path):
    kernel, path = convolution(tmp_path / "c.onnx", np.float64)
    oracle = revelu.open_oracle(path)
    images = np.random.default_rng(4).normal(size=(6, 5, 4))
    windows = np.lib.stride_tricks.sliding_window_view(images, (2, 2), axis=(1, 2))
    wanted = np.maximum(np.einsum("nijab,ab->nij", windows, kernel[0, 0]), 0.0).reshape(6, 12)
    np.testing.assert_allclose(oracle(images.reshape(6, 20)), wanted, rtol=1e-13, atol=1e-13)
    assert "reference evaluator" in oracle.target.notes[0]
    assert oracle.image == (1, 5, 4)


def test_a_convolution_in_float32_is_asked_through_the_runtime(tmp_path):
    oracle = revelu.open_oracle(convolution(tmp_path / "c.onnx", np.float32)[1])
    assert not oracle.target.notes


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    "said",
    [
        {"strides": [2, 2]},
        {"strides": [2, 1]},
        {},
        {"strides": [2, 2], "pads": [1, 0, 0, 1]},
        {"strides": [2, 2], "ceil_mode": 1},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    ],
    ids=str,
)
def test_windows_in_float64_are_pooled_as_the_evaluator_of_onnx_pools_them(tmp_path, kind, said):
    from onnx.reference import ReferenceEvaluator

    kernel = np.random.default_rng(3).normal(size=(2, 1, 2, 2))
    nodes = [
        ("Conv", "x k", "z", {}),
        (kind, "z", "p", {"kernel_shape": [2, 2], **said}),
        ("Flatten", "p", "y", {}),
    ]
    path = tmp_path / "pooled.onnx"
    image, answer = ("x", np.float64, ["N", 1, 6, 6]), ("y", np.float64, ["N", "k"])
    write(path, nodes, [image], [answer], {"k": kernel})
    X = np.random.default_rng(5).normal(size=(7, 36))
    (wanted,) = ReferenceEvaluator(f"{path}").run(None, {"x": X.reshape(7, 1, 6, 6)})
    np.testing.assert_allclose(revelu.open_oracle(path)(X), wanted, rtol=1e-14, atol=1e-14)


def test_what_neither_evaluator_runs_is_told_the_way_round(tmp_path):
    kernel = np.ones((1, 1, 2, 2))
    nodes = [
        ("Conv", "x k", "z", {}),
        ("com.microsoft:Gelu", "z", "h", {}),
        ("Flatten", "h", "y", {}),
    ]
    image, answer = ("x", np.float64, ["N", 1, 5, 4]), ("y", np.float64, ["N", 12])
    opsets = (("", 17), ("com.microsoft", 1))
    path = write(tmp_path / "own.onnx", nodes, [image], [answer], {"k": kernel}, opsets)
    with pytest.raises(FormatError, match=r"neither ONNX Runtime.*: name the model.*--trust"):
        revelu.open_oracle(path)
