"""scikit-learn as it is fitted: on DataFrames, on columns of words, with several outputs."""

import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from typer.testing import CliRunner

import revelu
from revelu import Network, Status
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.errors import InputError, UntrustedError

NUMBERS = ["a", "b", "c", "d"]


def network_of(model):
    return Network([W.T for W in model.coefs_], model.intercepts_)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:200, :4], y[:200]


@pytest.fixture(scope="module")
def frame(cancer):
    """Numbers and words, and what a model of all of them is fitted to."""
    pandas = pytest.importorskip("pandas")
    X, y = cancer
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(X, columns=NUMBERS)
    table.insert(1, "sex", rng.choice(["f", "m"], len(X), p=[0.3, 0.7]))
    table["port"] = rng.choice(["C", "Q", "S"], len(X), p=[0.2, 0.2, 0.6])
    table["ignored"] = "x"
    return table, y


@pytest.fixture(scope="module")
def mixed(frame):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer([("n", numbers, NUMBERS), ("w", OneHotEncoder(), ["sex", "port"])])
    model = MLPRegressor(hidden_layer_sizes=[5], random_state=0, max_iter=30, tol=10)
    return make_pipeline(columns, model).fit(*frame)


def test_a_model_of_a_dataframe_is_asked_without_a_warning(frame):
    table, y = frame
    model = MLPRegressor(hidden_layer_sizes=[4], random_state=0, max_iter=30, tol=10)
    pipeline = make_pipeline(StandardScaler(), model).fit(table[NUMBERS], y)
    recovery = revelu.extract(pipeline, budget=700, checks=200)  # warnings are errors here
    assert recovery.status is Status.RECOVERED
    X = table[NUMBERS].to_numpy()
    np.testing.assert_allclose(
        recovery.network(X)[:, 0], pipeline.predict(table[NUMBERS]), atol=1e-8
    )


@pytest.mark.parametrize("way", ["data", "inputs", "like", "remote"])
def test_columns_of_a_table_are_told_by_their_names(frame, way):
    table, y = frame
    model = MLPRegressor(hidden_layer_sizes=[6], random_state=0, max_iter=60, tol=1.0)
    pipeline = make_pipeline(StandardScaler(), model).fit(table[NUMBERS], y)
    turned = table[NUMBERS[::-1]]
    given = {
        "data": {"data": turned},
        "inputs": {"inputs": turned},
        "like": {"domain": revelu.Domain.like(turned)},
        "remote": {"data": turned, "remote": True},
    }[way]
    recovery = revelu.extract(pipeline, checks=300, **given)
    assert recovery.status is Status.RECOVERED
    found = recovery.network(table[NUMBERS].to_numpy())[:, 0]
    np.testing.assert_allclose(found, pipeline.predict(table[NUMBERS]), atol=1e-8)


def test_a_table_that_has_some_of_the_columns_is_refused(frame):
    table, y = frame
    model = LogisticRegression(max_iter=50, tol=1.0).fit(table[NUMBERS], y)
    some = table[NUMBERS[:3]].assign(other=1.0 * np.arange(len(table)))
    with pytest.raises(InputError, match="the target reads the columns"):
        revelu.extract(model, data=some)
    with pytest.raises(InputError, match="the target reads the columns"):
        revelu.extract(model, inputs=some)


def test_numbers_vary_and_words_stay(frame, mixed):
    table, _ = frame
    oracle = revelu.open_oracle(mixed, suggested=True, budget=1000)
    assert oracle.dim_in == 4
    assert "sex at 'f', port at 'C', ignored at" in oracle.target.notes[0]
    np.testing.assert_allclose(oracle.domain.center, table[NUMBERS].mean(), rtol=1e-12)
    recovery = revelu.extract(oracle, checks=200)
    assert recovery.status is Status.RECOVERED
    said = table.assign(sex="f", port="C")
    np.testing.assert_allclose(
        recovery.network(table[NUMBERS].to_numpy())[:, 0], mixed.predict(said), atol=1e-8
    )


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_words_stay_where_a_table_has_them_most_often(tmp_path, frame, mixed, suffix):
    table, _ = frame
    path = tmp_path / f"table{suffix}"
    table.to_parquet(path) if suffix == ".parquet" else table.to_csv(path, index=False)
    oracle = revelu.open_oracle(mixed, fixed=path)
    X = table[NUMBERS].to_numpy()
    said = table.assign(sex="m", port="S")
    np.testing.assert_allclose(oracle(X)[:, 0], mixed.predict(said), rtol=1e-12)
    given = revelu.open_oracle(mixed, fixed={"sex": "f", "port": "Q"})
    np.testing.assert_allclose(
        given(X)[:, 0], mixed.predict(table.assign(sex="f", port="Q")), rtol=1e-12
    )


def test_a_word_that_the_model_does_not_know_is_refused(mixed):
    with pytest.raises(InputError, match="column 'port' has no X; it has C, Q, S"):
        revelu.open_oracle(mixed, fixed={"port": "X"})
    with pytest.raises(InputError, match=r"no column to be fixed.*it has sex, port, ignored"):
        revelu.open_oracle(mixed, fixed={"prot": "S"})


def test_a_table_that_says_of_a_column_not_where_it_stays_is_refused(tmp_path, frame, mixed):
    table, _ = frame
    table.drop(columns=["port"]).to_csv(tmp_path / "lacks.csv", index=False)
    with pytest.raises(InputError, match=r"lacks.csv: has no column 'port'.*it has .*sex"):
        revelu.open_oracle(mixed, fixed=tmp_path / "lacks.csv")
    table.assign(port=np.nan).to_csv(tmp_path / "empty.csv", index=False)
    table.assign(port=None).to_parquet(tmp_path / "empty.parquet")
    for given in (tmp_path / "empty.csv", tmp_path / "empty.parquet", {"port": np.nan}):
        with pytest.raises(InputError, match=r"column 'port' is empty.*it has C, Q, S"):
            revelu.open_oracle(mixed, fixed=given)
    some = table.copy()
    some.loc[:3, "port"] = None
    some.to_parquet(tmp_path / "some.parquet")
    oracle = revelu.open_oracle(mixed, fixed=tmp_path / "some.parquet")
    assert "port at 'S'" in oracle.target.notes[0]


def test_words_in_a_table_of_a_domain_are_named_with_the_columns_of_numbers(
    tmp_path, frame, mixed, monkeypatch
):
    table, _ = frame
    monkeypatch.chdir(tmp_path)
    joblib.dump(mixed, "model.joblib")
    table.to_csv("table.csv", index=False)
    arguments = ["extract", "model.joblib", "--trust", "--like", "table.csv"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == ExitCode.USAGE
    assert done.stderr.count("\n") == 1
    assert f"choose those of numbers: --columns {','.join(NUMBERS)}" in done.stderr


def test_columns_are_told_apart_without_names(cancer):
    X, y = cancer
    table = np.column_stack([X[:, :3], np.arange(len(X)) % 3]).astype(object)
    columns = ColumnTransformer([("n", StandardScaler(), slice(0, 3)), ("w", OneHotEncoder(), [3])])
    model = make_pipeline(
        columns, MLPRegressor(hidden_layer_sizes=[3], random_state=0, max_iter=30, tol=10)
    )
    model.fit(table, y)
    oracle = revelu.open_oracle(model, fixed={"3": 2})
    said = table.copy()
    said[:, 3] = 2
    np.testing.assert_allclose(oracle(X[:, :3])[:, 0], model.predict(said), rtol=1e-12)


def test_a_model_of_words_alone_is_refused():
    texts = np.array([["good day"], ["bad day"]] * 10, dtype=object)
    columns = ColumnTransformer([("t", CountVectorizer(), 0)])
    model = make_pipeline(columns, LogisticRegression()).fit(texts, [0, 1] * 10)
    with pytest.raises(InputError, match="no column of numbers"):
        revelu.open_oracle(model)


# --- which method, and which output


def test_a_classifier_without_probabilities_answers_its_decision(cancer):
    X, y = cancer
    model = make_pipeline(StandardScaler(), LinearSVC()).fit(X, y)
    recovery = revelu.extract(model, budget=500, checks=200)
    assert (recovery.status, recovery.network.n_hidden) == (Status.RECOVERED, 1)
    np.testing.assert_allclose(recovery.network(X)[:, 0], model.decision_function(X), atol=1e-8)


def test_the_method_is_asked_that_is_named(cancer):
    X, y = cancer
    model = LogisticRegression(max_iter=5000).fit(X, np.array(["no", "yes"])[y])
    for name in ("predict_proba", "decision_function"):
        found = revelu.open_oracle(model, output_name=name)(X)
        truth = getattr(model, name)(X)
        np.testing.assert_array_equal(found, truth.reshape(len(X), -1))
    labels = revelu.open_oracle(model, output_name="predict")(X)[:, 0]
    np.testing.assert_array_equal(model.classes_[labels.astype(int)], model.predict(X))
    with pytest.raises(InputError, match="outputs predict_proba, decision_function, predict, not"):
        revelu.open_oracle(model, output_name="score")


def test_each_label_of_several_is_two_classes(cancer):
    X, y = cancer
    labels = np.column_stack([y, X[:, 0] > 14])
    model = MLPClassifier(hidden_layer_sizes=[4], random_state=0, max_iter=30, tol=10).fit(
        X / 100, labels
    )
    with pytest.raises(InputError, match="has the outputs 0, 1: give output_name"):
        revelu.open_oracle(model)
    oracle = revelu.open_oracle(model, output_name="1", budget=700)
    recovery = revelu.extract(oracle, checks=200)
    assert recovery.status is Status.RECOVERED
    p = model.predict_proba(X / 100)[:, 1]
    found = recovery.network(X / 100)
    np.testing.assert_allclose(found[:, 1] - found[:, 0], np.log(p / (1 - p)), atol=1e-7)


def test_each_of_several_classifiers_is_asked_for_itself(cancer):
    X, y = cancer
    both = np.column_stack([y, (X[:, 0] > 14).astype(int)])
    model = MultiOutputClassifier(LogisticRegression(max_iter=5000)).fit(X, both)
    with pytest.raises(InputError, match="outputs 0, 1: give output_name"):
        revelu.open_oracle(model)
    found = revelu.open_oracle(model, output_name="1")(X)
    np.testing.assert_array_equal(found, model.predict_proba(X)[1])


def test_a_calibrated_model_is_asked_and_what_it_calibrates_is_named(cancer):
    X, y = cancer
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    model = CalibratedClassifierCV(inner, ensemble=False).fit(X, y)
    oracle = revelu.open_oracle(model, suggested=True)
    assert "calibrated_classifiers_[0].estimator" in oracle.target.notes[0]
    assert oracle.domain.words == "where the target's StandardScaler was fitted"
    recovery = revelu.extract(model, budget=500, checks=200)
    assert recovery.status is Status.RECOVERED
    found = recovery.network(X)
    truth = np.log(model.predict_proba(X))
    np.testing.assert_allclose(found[:, 0] - found[:, 1], truth[:, 0] - truth[:, 1], atol=1e-7)


# --- files


@pytest.mark.parametrize("suffix", [".joblib", ".pkl", ".pickle"])
def test_pickled_models_are_opened_with_trust_and_read_without(tmp_path, cancer, suffix):
    X, y = cancer
    model, path = LogisticRegression(max_iter=5000).fit(X, y), tmp_path / f"m{suffix}"
    joblib.dump(model, path) if suffix == ".joblib" else path.write_bytes(pickle.dumps(model))
    found = revelu.open_oracle(path, trust=True)(X)
    np.testing.assert_array_equal(found, model.predict_proba(X))
    # Without it, too, but read and not run.
    np.testing.assert_allclose(revelu.open_oracle(path)(X), found, atol=1e-12)


def test_skops_files_need_no_trust(tmp_path, cancer):
    skops = pytest.importorskip("skops.io")
    X, y = cancer
    model = MLPClassifier(hidden_layer_sizes=[4], random_state=0, max_iter=30, tol=10).fit(X, y)
    skops.dump(make_pipeline(StandardScaler(), model).fit(X, y), tmp_path / "m.skops")
    oracle = revelu.open_oracle(tmp_path / "m.skops", suggested=True)
    assert oracle.dim_in == 4
    assert oracle.domain is not None


def test_skops_files_of_strange_parts_do(tmp_path, cancer):
    skops = pytest.importorskip("skops.io")
    from sklearn.preprocessing import FunctionTransformer

    X, y = cancer
    model = make_pipeline(FunctionTransformer(strange), LogisticRegression(max_iter=5000))
    skops.dump(model.fit(X, y), tmp_path / "m.skops")
    with pytest.raises(UntrustedError, match=r"strange.*--trust"):
        revelu.open_oracle(tmp_path / "m.skops")
    assert revelu.open_oracle(tmp_path / "m.skops", trust=True).dim_in == 4


def strange(X):
    return X / 100.0


def test_names_are_no_trouble_where_no_library_of_frames_is(tmp_path, frame):
    table, y = frame
    model = LogisticRegression(max_iter=5000).fit(table[NUMBERS], y)
    joblib.dump(model, tmp_path / "m.joblib")
    code = (
        "import sys, warnings; warnings.simplefilter('error'); sys.modules['pandas'] = None; "
        "import revelu; oracle = revelu.open_oracle('m.joblib', trust=True); "
        "print(oracle([[1.0, 2.0, 3.0, 4.0]]).shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "(1, 2)", done.stderr
