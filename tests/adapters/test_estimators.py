"""Fitted scikit-learn models as targets, as objects and in files."""

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier, MLPRegressor

import revelu
from revelu import Network, Status
from revelu.errors import FormatError, InputError


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300, 20:28] / 16.0, y[:300] % 3


def truth_of(model):
    return Network([W.T for W in model.coefs_], model.intercepts_)


@pytest.fixture(scope="module")
def regressor(digits):
    return MLPRegressor(hidden_layer_sizes=[5], random_state=0, max_iter=30, tol=10).fit(*digits)


def test_a_regressor_is_recovered_within_its_budget(regressor):
    recovery = revelu.extract(regressor, budget=500, checks=200)
    assert recovery.status is Status.RECOVERED
    assert revelu.align(recovery.network, truth_of(regressor)).max_parameter_error < 1e-6


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_classifier_is_recovered_through_its_probabilities(tmp_path, digits, n_classes):
    X, y = digits
    model = MLPClassifier([5], random_state=0, max_iter=30, tol=10).fit(X, y % n_classes)
    recovery = revelu.extract(model, budget=800, checks=200, seed=2)
    assert recovery.status is Status.RECOVERED
    save = recovery.network
    for suffix in (".npz", ".onnx"):
        save.save(tmp_path / f"n{suffix}")
        Z = revelu.load(tmp_path / f"n{suffix}")(X)
        P = np.exp(Z - Z.max(axis=1, keepdims=True))
        np.testing.assert_allclose(
            P / P.sum(axis=1, keepdims=True), model.predict_proba(X), atol=1e-8
        )


def test_a_model_in_a_file_opens_with_trust(tmp_path, regressor, digits):
    path = tmp_path / "model.joblib"
    joblib.dump(regressor, path)
    X = digits[0]
    np.testing.assert_array_equal(
        revelu.open_oracle(path, trust=True)(X)[:, 0], regressor.predict(X)
    )
    np.testing.assert_allclose(
        revelu.open_oracle(path)(X)[:, 0], regressor.predict(X), rtol=1e-12, atol=1e-12
    )
    path.write_bytes(b"no pickle")
    with pytest.raises(FormatError, match="look for a whole copy"):
        revelu.open_oracle(path)
    with pytest.raises(FormatError, match="cannot be opened by joblib"):
        revelu.open_oracle(path, trust=True)


def test_models_that_cannot_be_asked_are_refused():
    with pytest.raises(InputError, match="not fitted"):
        revelu.open_oracle(MLPRegressor())

    class Labels(BaseEstimator):
        n_features_in_, classes_ = 3, np.array([0, 1])

    with pytest.raises(InputError, match="labels alone"):
        revelu.open_oracle(Labels())

    class Nothing(BaseEstimator):
        n_features_in_ = 3

    with pytest.raises(InputError, match="no predict"):
        revelu.open_oracle(Nothing())


@pytest.mark.parametrize("kind", [MLPRegressor, MLPClassifier])
def test_only_a_classifier_has_a_largest_output_that_counts(digits, kind):
    X, y = digits
    answers = np.column_stack([y, 1.0 - y]) if kind is MLPRegressor else y
    model = kind(hidden_layer_sizes=[5], random_state=0, max_iter=30, tol=10).fit(X, answers)
    recovery = revelu.extract(model, budget=1_000, checks=200, inputs=X[:50])
    fidelity = recovery.certificate.fidelity
    assert fidelity.n_inputs == 50
    assert (fidelity.labels_equal is None) == (kind is MLPRegressor)
    assert ("largest output" in recovery.certificate.statement) == (kind is MLPClassifier)
