"""Deep targets of every kind: nothing silently wrong, no layer wrongly called exact."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import revelu

FOLDER = Path(__file__).parents[3] / "benchmarks"

# Seeds of tests; those of the benchmark are others.
FIRST = 910_000


@pytest.fixture
def deep_targets(monkeypatch):
    """The benchmark that draws and judges the targets."""
    monkeypatch.syspath_prepend(str(FOLDER))
    module = __import__("deep_targets")
    yield module
    for name in ("deep_targets", "many_targets", "extraction", "page"):
        sys.modules.pop(name, None)


def test_targets_are_of_every_kind_and_follow_their_seed(deep_targets):
    targets = [deep_targets.draw(seed) for seed in range(FIRST, FIRST + 200)]
    assert {t.kind for t in targets} == {*deep_targets.INSIDE, *deep_targets.OUTSIDE}
    assert {len(t.widths) for t in targets} == {4, 5, 6, 7}
    for target in targets[:40]:
        X = np.ones((2, target.widths[0]))
        assert target(X).shape == (2, target.widths[-1])
        assert np.isfinite(target(X)).all()
    X = np.ones((2, targets[0].widths[0]))
    np.testing.assert_array_equal(deep_targets.draw(FIRST)(X), targets[0](X))


def test_a_layer_that_is_not_the_targets_is_found_out(deep_targets, monkeypatch):
    seed = next(s for s in range(FIRST, FIRST + 99) if deep_targets.draw(s).kind == "random")
    truth = deep_targets.draw(seed).function
    claimed = [(truth.weights[0], truth.biases[0])]

    said = SimpleNamespace(
        status=revelu.Status.PARTIAL,
        first_layer=None,
        details={"layers": claimed},
        ledger=SimpleNamespace(n_queries=0),
    )
    monkeypatch.setattr(revelu, "extract", lambda *_, **__: said)
    assert deep_targets.one(seed)["verdict"] == ""
    claimed[0] = claimed[0][0][1:], claimed[0][1][1:]
    assert deep_targets.one(seed)["verdict"] == deep_targets.LAYER_WRONG


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [2.0, 3.0, 600.0])
def test_rows_of_a_recovered_network_have_the_digits_of_its_fit(deep_targets, monkeypatch, seconds):
    # Upper neurons are on nearly nowhere: two rows of the first layer were measured to 1e-6, and
    # two that a search cut short has are a deeper neuron's.
    monkeypatch.setattr(deep_targets, "MAX_SECONDS", seconds)
    assert deep_targets.one(41_002_394)["verdict"] == ""


@pytest.mark.slow
def test_neurons_that_were_dropped_may_be_passed_on_again(deep_targets):
    target = deep_targets.draw(41_003_550)
    recovery = revelu.extract(target, dim_in=5, seed=41_003_550, budget=45_000)
    assert recovery.ledger.n_queries <= 45_000


@pytest.mark.slow
def test_a_few_deep_targets(deep_targets):
    runs = [deep_targets.one(seed) for seed in range(FIRST, FIRST + 6)]
    assert not [run for run in runs if run["verdict"]]
