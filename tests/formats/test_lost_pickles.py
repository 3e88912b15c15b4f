"""Pickles of scikit-learn are read and not run: what they hold, what is written and refused."""

import json
import os
import pickle
import subprocess
import sys
from collections import OrderedDict
from fractions import Fraction
from pathlib import Path

import joblib
import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import sklearn
from hostile_files import opened_in_a_process
from hostile_pickles import hostile
from lost_models import answers_of, fitted, worst_of, written
from old_pickles import RELEASES, dumps, is_recorded, recorded
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from typer.testing import CliRunner

import revelu
from revelu.adapters.open_models import open_read
from revelu.cli.app import app
from revelu.errors import FormatError, InputError, UntrustedError
from revelu.status import Status

RNG = np.random.default_rng(16_110_000)
X = RNG.normal(size=(60, 4)) * [1.0, 20.0, 0.1, 3.0] + [0.0, 50.0, 1.0, -3.0]
TRUTH = X @ [1.0, 0.05, 10.0, 0.3] - 11.5
CLASSES = np.array(["low", "middle", "high"])[np.digitize(TRUTH, np.quantile(TRUTH, [0.3, 0.6]))]


@pytest.fixture(scope="module")
def models():
    """Every kind of model that is read, fitted."""
    return list(fitted(n=80))


@pytest.fixture(scope="module")
def pipeline():
    """A classifier of words behind a scaler."""
    network = MLPClassifier((6,), max_iter=20, random_state=0)
    with pytest.warns():
        return make_pipeline(StandardScaler(), network).fit(X, CLASSES)


def invoke(*arguments):
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(
        app, [str(a) for a in arguments]
    )


def ran(path, X):
    """What the runtime answers to rows of a file, by the names of its outputs."""
    session = onnxruntime.InferenceSession(path)
    (given,) = session.get_inputs()
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {given.name: X}), strict=True))


# --- what is read


def test_every_kind_of_model_in_every_way_of_writing(models, tmp_path):
    for found in models:
        for suffix, content in written(found.model):
            path = tmp_path / f"model{suffix}"
            path.write_bytes(content)
            assert worst_of(path, found.X, found.answers) < 1e-12, (found.name, suffix)


@pytest.mark.parametrize("release", RELEASES, ids=lambda r: f"{r.version}-python{r.python}")
def test_what_older_releases_wrote(models, tmp_path, release):
    path, n = tmp_path / "old.pkl", 0
    for found in models:
        if not is_recorded(found.model):
            continue
        for protocol in (0, 2) if release.python == 2 else (2, 4):
            for packed in (False, True) if protocol else (False,):
                content = dumps(recorded(found.model, release), release, protocol, packed=packed)
                assert b"numpy._core" not in content
                path.write_bytes(content)
                assert worst_of(path, found.X, found.answers) < 1e-12, (found.name, protocol)
                n += 1
    assert n >= 12
    assert release.version in open_read(path).model.words


def test_two_classes_with_a_softmax_of_their_own(tmp_path):
    """Of 0.20 to 1.7 the probability of a multinomial model of two classes is sigmoid(2 z)."""
    model = LogisticRegression().fit(X, TRUTH > 0)
    for version, factor in (("0.19.2", 1.0), ("0.24.0", 2.0)):
        release = RELEASES[3]._replace(version=version)
        made = recorded(model, release)
        made.multi_class = "multinomial"
        path = tmp_path / "m.pkl"
        path.write_bytes(dumps(made, release, 3))
        p = 1.0 / (1.0 + np.exp(-factor * model.decision_function(X)))
        np.testing.assert_allclose(open_read(path)(X)[:, 1], p, atol=1e-12)


def test_without_scikit_learn(tmp_path, pipeline):
    path = tmp_path / "m.joblib"
    path.write_bytes(pickle.dumps(pipeline))
    code = (
        "import sys, revelu\n"
        "found = revelu.extract(sys.argv[1])\n"
        "assert found.network.architecture == (4, 6, 3)\n"
        "print(sorted({'sklearn', 'joblib', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_recovery_says_that_it_was_read(tmp_path, pipeline):
    path = tmp_path / "m.pkl"
    path.write_bytes(pickle.dumps(pipeline))
    found = revelu.extract(path)
    assert (found.status, found.method, found.ledger.n_queries) == (Status.RECOVERED, "read", 0)
    assert found.certified is None
    assert found.network.certified is None
    assert found.class_names == ("high", "low", "middle")
    assert found.certificate.statement.startswith("read from the file")
    assert found.to_dict()["certified"] is None
    np.testing.assert_allclose(
        found.link.answers(found.network(X)), pipeline.predict_proba(X), atol=1e-12
    )
    asked = revelu.extract(path, method="one_hidden", budget=100)
    assert asked.ledger.n_queries > 0
    with pytest.raises(InputError, match="no file whose weights are read"):
        revelu.extract(revelu.zoo.random_network([3, 2, 1]), method="read")


# --- what is written


def test_names_and_scaler_are_kept(tmp_path, pipeline):
    old, new, kept = (tmp_path / name for name in ("old.pkl", "new.onnx", "kept.onnx"))
    old.write_bytes(pickle.dumps(pipeline))
    done = invoke("extract", old, "-o", new)
    assert done.exit_code == 0, done.output
    assert "read from the file; nothing was asked" in done.stdout
    assert "high, low, middle" in done.stdout
    assert invoke("extract", old, "-o", kept, "--keep-scaler").exit_code == 0
    for path in (new, kept):
        answers = ran(path, X)
        np.testing.assert_allclose(answers["output"], pipeline.predict_proba(X), atol=1e-12)
        assert answers["label"].tolist() == pipeline.predict(X).tolist()
        network = revelu.load(path)
        assert network.certified is None
        np.testing.assert_allclose(network(X), revelu.load(old)(X), atol=1e-12)
    scaler = pipeline.named_steps["standardscaler"]
    session = onnxruntime.InferenceSession(kept)
    said = session.get_modelmeta().custom_metadata_map
    assert json.loads(said["classes"]) == ["high", "low", "middle"]
    assert "certified" not in said
    held = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(kept).graph.initializer}
    np.testing.assert_allclose(held["scaling.factors"][0], 1.0 / scaler.scale_)
    assert "scaling.factors" not in {t.name for t in onnx.load(new).graph.initializer}


@pytest.mark.parametrize(
    ("model", "outputs", "head"),
    [
        (
            MLPClassifier((5,), max_iter=5, random_state=1),
            np.column_stack([TRUTH > 0, TRUTH > 3]),
            True,
        ),
        (LinearRegression(), TRUTH, False),
        (LogisticRegression(), TRUTH > 0, False),
    ],
    ids=["labels", "regressor", "two"],
)
@pytest.mark.filterwarnings("ignore")
def test_heads_are_written(tmp_path, model, outputs, head):
    model.fit(X, outputs)
    old, new = tmp_path / "old.pkl", tmp_path / "new.onnx"
    old.write_bytes(pickle.dumps(model))
    arguments = ["--head"] if head else []
    assert invoke("extract", old, "-o", new, *arguments).exit_code == 0
    answers = ran(new, X)
    np.testing.assert_allclose(answers["output"], answers_of(model, X), atol=1e-12)
    assert ("label" in answers) == isinstance(model, LogisticRegression)


def test_of_one_score_the_label_is_its_sign(tmp_path):
    model = LinearSVC().fit(X / 10, np.where(np.median(TRUTH) < TRUTH, "yes", "no"))
    old, new = tmp_path / "old.pkl", tmp_path / "new.onnx"
    old.write_bytes(pickle.dumps(model))
    assert invoke("extract", old, "-o", new).exit_code == 0
    answers = ran(new, X / 10)
    np.testing.assert_allclose(answers["output"][:, 0], model.decision_function(X / 10))
    assert answers["label"].tolist() == model.predict(X / 10).tolist()


def test_against_a_target_the_usual_certificate_follows(tmp_path, pipeline):
    old, new, other = (tmp_path / name for name in ("old.pkl", "new.onnx", "other.pkl"))
    old.write_bytes(pickle.dumps(pipeline))
    invoke("extract", old, "-o", new)
    done = invoke("extract", old, "-o", tmp_path / "c.onnx", "--against", new, "--checks", 200)
    assert done.exit_code == 0, done.output
    assert f"{old}: read from the file, and certified" in done.stdout
    assert f"asked          {new}" in done.stdout
    assert "inputs where the file's scaling puts them" in done.stdout
    assert revelu.load(tmp_path / "c.onnx").certified is True
    changed = pickle.loads(pickle.dumps(pipeline))  # noqa: S301 - our own
    changed[-1].coefs_[0][0, 0] += 0.5
    other.write_bytes(pickle.dumps(changed))
    done = invoke("extract", other, "--against", new, "--checks", 200, "--json")
    account = json.loads(done.stdout)
    assert (done.exit_code, account["status"], account["certified"]) == (1, "unverified", False)
    assert 200 <= account["queries"] <= 64 + 200 + 250


def test_a_file_says_that_it_was_read_and_from_what(tmp_path, pipeline):
    old, new = tmp_path / "old.pkl", tmp_path / "new.onnx"
    old.write_bytes(pickle.dumps(pipeline))
    invoke("extract", old, "-o", new)
    for path in (old, new):
        done = invoke("inspect", path, "--json")
        account = json.loads(done.stdout)
        assert (done.exit_code, account["method"], account["certified"]) == (0, "read", None)
        assert f"scikit-learn {sklearn.__version__}" in account["read_from"]
    assert "read from a file; no query has checked it" in invoke("inspect", old).stdout
    old.write_bytes(b"no pickle")
    assert invoke("inspect", old).exit_code == 2


# --- what is refused


class Runs:
    """An object whose unpickling leaves a trace."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (Path.touch, (self.trace,))


@pytest.mark.parametrize("protocol", range(6))
def test_code_is_named_and_never_run(tmp_path, protocol, pipeline):
    path, trace = tmp_path / "m.pkl", tmp_path / "trace"
    hidden = pickle.loads(pickle.dumps(pipeline))  # noqa: S301 - our own
    hidden.extra = Runs(trace)
    for found in (Runs(trace), hidden, [OrderedDict(a=Runs(trace))]):
        path.write_bytes(pickle.dumps(found, protocol))
        done = invoke("extract", path)
        assert done.exit_code == 2
        assert done.stdout == ""
        assert "nothing was run" in done.stderr
        assert "athlib" in done.stderr or "getattr" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        for act in (revelu.load, revelu.open_oracle):
            with pytest.raises(UntrustedError):
                act(path)
    assert not trace.exists()


@pytest.mark.parametrize("call", [os.system, eval, exec])
def test_nobody_is_told_to_trust_what_no_model_is_made_of(tmp_path, call):
    class Calls:
        def __reduce__(self):
            return call, ("1",)

    path = tmp_path / "m.pkl"
    path.write_bytes(pickle.dumps([Calls()]))
    done = invoke("extract", path)
    assert done.exit_code == 2
    assert "do not open it" in done.stderr
    assert "--trust" not in done.stderr


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("model", "said"),
    [
        (RandomForestRegressor(2), r"RandomForestRegressor"),
        (MLPRegressor(hidden_layer_sizes=(3,), activation="tanh", max_iter=3), "'tanh'"),
        (make_pipeline(FunctionTransformer(np.abs), LinearRegression()), r"numpy.*"),
    ],
)
def test_what_is_no_network_of_relus_is_named(tmp_path, model, said):
    path = tmp_path / "m.pkl"
    path.write_bytes(pickle.dumps(model.fit(X, TRUTH)))
    with pytest.raises(InputError, match=said):
        revelu.load(path)


def test_words_are_no_inputs_of_a_network(tmp_path):
    words = np.array([["a", "b"][i % 2] for i in range(60)])[:, None]
    model = make_pipeline(OneHotEncoder(), LinearRegression()).fit(words, TRUTH)
    path = tmp_path / "m.pkl"
    path.write_bytes(pickle.dumps(model))
    with pytest.raises(FormatError, match="holds words"):
        revelu.load(path)


@pytest.mark.parametrize(
    "found", [3, "text", [1, 2], {"a": 1}, None, np.zeros(3), LinearRegression()]
)
def test_what_is_no_fitted_model_is_refused(tmp_path, found):
    path = tmp_path / "m.pkl"
    path.write_bytes(pickle.dumps(found))
    with pytest.raises(FormatError):
        revelu.load(path)


def test_options_of_reading_are_for_files_that_are_read(tmp_path):
    revelu.zoo.random_network([3, 2, 1]).save(tmp_path / "m.onnx")
    done = invoke("extract", tmp_path / "m.onnx", "--keep-scaler")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "for files that are read" in done.stderr


@pytest.mark.parametrize("is_large", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_hostile_files_in_a_process_of_their_own(tmp_path, is_large):
    """Nothing is run, every one is refused, and memory stays under a gibibyte."""
    X = RNG.normal(size=(30, 5))
    model = MLPRegressor(hidden_layer_sizes=(3,), max_iter=500, tol=1.0).fit(X, X[:, 0])
    names = []
    for i, (name, content) in enumerate(hostile(model, bombs=is_large)):
        if is_large or "million" not in name:
            (tmp_path / f"{i:02}.pkl").write_bytes(content)
            names.append(name)
    assert len(names) >= (20 if is_large else 15)
    assert opened_in_a_process(tmp_path, "revelu.load(path)") == "True"
    assert len(list(tmp_path.iterdir())) == len(names)


@pytest.mark.parametrize("found", [Fraction(1, 2), Path("a"), range(3), complex(1, 2)])
def test_plain_objects_of_other_modules_are_refused_too(tmp_path, found):
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(found))
    with pytest.raises(UntrustedError, match="names "):
        revelu.load(tmp_path / "m.pkl")


# --- columns


def test_columns_that_names_or_selectors_chose(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(n=np.arange(60) % 3)
    steps = ColumnTransformer(
        [
            ("scaled", StandardScaler(), make_column_selector(dtype_include=float)),
            ("classes", OneHotEncoder(), ["n"]),
        ]
    )
    model = make_pipeline(steps, LinearRegression()).fit(frame, TRUTH)
    path = tmp_path / "m.pkl"
    path.write_bytes(pickle.dumps(model))
    target = open_read(path)
    np.testing.assert_allclose(target(frame.to_numpy())[:, 0], model.predict(frame), atol=1e-12)
    assert target.column_names == ["a", "b", "c", "d", "n"]


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (
            ColumnTransformer([("s", StandardScaler(), [0, 1])], transformer_weights={"s": 2.0}),
            "weighs",
        ),
        (PolynomialFeatures(2), "PolynomialFeatures"),
        (OneHotEncoder(min_frequency=9), "rare categories"),
    ],
)
def test_steps_that_would_be_misread_are_refused(tmp_path, steps, said):
    inputs = np.column_stack([np.arange(60) % 7, np.arange(60) ** 2 % 11])
    model = make_pipeline(steps, LinearRegression()).fit(inputs, TRUTH)
    path = tmp_path / "m.pkl"
    path.write_bytes(pickle.dumps(model))
    with pytest.raises(InputError, match=said):
        revelu.load(path)


@pytest.mark.parametrize("name", ["m.sav", "m.pkl.gz", "m.joblib.gz"])
def test_other_endings_of_pickles(tmp_path, name, pipeline):
    joblib.dump(pipeline, tmp_path / name, compress=("gzip", 3) if name.endswith("gz") else 0)
    found = revelu.extract(tmp_path / name)
    assert found.method == "read"
    assert invoke("extract", tmp_path / name, "--like-input").exit_code == 2  # it has no names
