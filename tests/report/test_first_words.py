"""What somebody reads who has made a first mistake, or has nothing to be told."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import revelu
from revelu import Domain
from revelu.adapters.estimators import EstimatorTarget
from revelu.cli.app import app
from revelu.report.sections import facts


def said_by(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_a_budget_may_be_written_as_a_power_of_ten():
    ended = said_by("extract", "demo:digits", "--budget", "1e2")
    assert ended.exit_code == 3
    assert "96 in 6 rounds" in ended.output
    for wrong in ("many", "1.5", "1e400"):
        ended = said_by("extract", "demo:digits", "--budget", wrong)
        assert ended.exit_code == 2
        assert "is no whole number" in ended.output


@pytest.mark.parametrize("name", ["wine.joblb", "wine.onx", "wine.skop"])
def test_a_suffix_that_is_misspelt_says_that_there_is_no_such_file(name):
    with pytest.raises(revelu.InputError, match=r"no such file.*did you mean"):
        revelu.extract(name)


def test_a_skops_file_that_is_missing_is_called_so(monkeypatch):
    monkeypatch.setattr("revelu.adapters.estimators.import_extra", pytest.fail)
    with pytest.raises(revelu.ReveluError, match="no such file"):
        revelu.extract("missing.skops")


def test_columns_that_are_missing_are_not_to_be_chosen():
    truth = revelu.zoo.random_network([5, 4, 1], seed=1)
    for width, is_told in ((4, False), (6, True)):
        with pytest.raises(revelu.InputError) as told:
            revelu.extract(truth, domain=Domain.gaussian(np.zeros(width), np.ones(width)))
        assert ("choose among" in str(told.value)) is is_told


def test_a_mean_of_another_length_is_named_by_its_file(tmp_path):
    path = tmp_path / "means.npy"
    np.save(path, np.zeros(5))
    ended = said_by("extract", "demo:digits", "--mean", str(path))
    assert ended.exit_code == 2
    assert "means.npy" in "".join(ended.output.split())


def test_nothing_recovered_has_no_logits_up_to_a_shift():
    X, y = load_wine(return_X_y=True)
    found = revelu.extract(RandomForestClassifier(37, random_state=0).fit(X, y), data=X)
    assert found.network is None
    assert not any("common shift" in said for said in found.warnings)


def test_a_span_of_all_directions_is_off_by_no_angle():
    whole = {"rank": 8, "inputs": 8, "expected_angle": 1e-12}
    assert not facts("span", whole)
    assert facts("span", {**whole, "rank": 7}) == [("angle", "about 1e-12 rad off")]


def test_a_scaler_behind_what_fills_gaps_places_the_domain():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(SimpleImputer(), StandardScaler(), MLPClassifier((4,), max_iter=3000))
    found = EstimatorTarget(model.fit(X, y)).suggested_domain
    np.testing.assert_allclose(found.center, X.mean(axis=0))
    # Where a column is added, those of the scaler are others.
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.01, np.nan, X)
    model = make_pipeline(
        SimpleImputer(add_indicator=True), StandardScaler(), MLPClassifier((4,), max_iter=3000)
    )
    assert EstimatorTarget(model.fit(holes, y)).suggested_domain is None
