"""The estimator keeps scikit-learn's contract, and is exact where samples allow it."""

import warnings

import numpy as np
import pytest
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils.estimator_checks import check_estimator
from test_learn import draw, samples

import revelu


@pytest.mark.slow
def test_it_keeps_the_contract():
    with warnings.catch_warnings():
        # The checks' samples are few and not Gaussian, of which it warns.
        warnings.simplefilter("ignore")
        check_estimator(revelu.HermiteRegressor(max_searches=1), on_skip=None)


def test_it_is_exact_from_few_samples():
    truth = draw(4, 2, 50)
    X, y = samples(truth, 240, 1)  # 24 a parameter
    model = revelu.HermiteRegressor().fit(X, y)
    Z, true = samples(truth, 500, 2)
    np.testing.assert_allclose(model.predict(Z), true, atol=1e-9)


def test_it_warns_of_what_too_few_samples_certify_and_uses_it():
    truth = draw(4, 2, 50)
    with pytest.warns(UserWarning, match="too few to certify"):
        model = revelu.HermiteRegressor().fit(*samples(truth, 150, 1))
    Z, true = samples(truth, 500, 2)
    np.testing.assert_allclose(model.predict(Z), true, atol=1e-9)


def test_several_outputs_are_learned_one_at_a_time():
    truths = draw(4, 2, 51), draw(4, 1, 52)
    X, _ = samples(truths[0], 300, 1)
    Y = np.column_stack([truth(X)[:, 0] for truth in truths])
    with pytest.raises(ValueError, match="1d array"):
        revelu.HermiteRegressor().fit(X, Y)
    model = MultiOutputRegressor(revelu.HermiteRegressor()).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-9)


def test_it_warns_and_falls_back_to_an_affine_map():
    X = np.random.default_rng(2).standard_normal((8, 3))
    y = X @ [1.0, 2.0, 3.0] + 4.0
    with pytest.warns(UserWarning, match="affine"):
        model = revelu.HermiteRegressor().fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-9)
    assert model.recovery_ is None


def test_it_warns_of_a_fit_that_is_not_certified():
    X = np.random.default_rng(3).uniform(-2, 2, (300, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
    with pytest.warns(UserWarning, match="is used"):
        model = revelu.HermiteRegressor(max_searches=2).fit(X, y)
    assert model.score(X, y) > 0.8
