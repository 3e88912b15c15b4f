"""Targets of every kind, none silently wrong, hung or crashed; ten thousand in benchmarks/."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import revelu
from revelu.network import zoo

FOLDER = Path(__file__).parents[2] / "benchmarks"

# Seeds of tests; those of the benchmark are others.
FIRST = 900_000
SEEDS = range(FIRST, FIRST + 1_000)


@pytest.fixture
def many_targets(monkeypatch):
    """The benchmark that draws and judges the targets."""
    monkeypatch.syspath_prepend(str(FOLDER))
    module = __import__("many_targets")
    yield module
    module.limit_cpu(0.0)
    for name in ("many_targets", "page"):
        sys.modules.pop(name, None)


def test_targets_are_of_every_kind_and_follow_their_seed(many_targets):
    targets = [many_targets.draw(seed) for seed in range(FIRST, FIRST + 400)]
    assert {target.kind for target in targets} == {*zoo.KINDS, "two_hidden", *zoo.OUTSIDE}
    scales = np.array([[target.input_scale, target.output_scale] for target in targets])
    assert scales.min() < 1e-9
    assert scales.max() > 1e9
    widths = np.array([target.widths for target in targets])
    assert widths.min(axis=0).tolist() == [1, 1, 1]
    assert (widths.max(axis=0) <= [100, 60, 12]).all()
    X = np.ones((2, many_targets.dim_in(targets[0])))
    again = many_targets.draw(FIRST)
    np.testing.assert_array_equal(again(X), targets[0](X))


@pytest.mark.parametrize("fault", ["wrong and silent", "hung", "crashed"])
def test_what_is_looked_for_is_found(many_targets, monkeypatch, fault):
    def extract(target, **options):
        if fault == "crashed":
            raise RuntimeError("no ReveluError")
        while fault == "hung":
            pass
        # A network of the right shape, and a certificate of another one.
        recovery = genuine(target, **options)
        (W, A), (b, c) = recovery.network.weights, recovery.network.biases
        wrong = revelu.Network([W, A], [b, c + 1.0], recovery.network.skip)
        return replace(recovery, network=wrong)

    genuine = revelu.extract
    monkeypatch.setattr(revelu, "extract", extract)
    small = (t.kind == "random" and np.prod(t.widths) < 200 for t in map(many_targets.draw, SEEDS))
    seed = next(s for s, chosen in zip(SEEDS, small, strict=True) if chosen)
    many_targets.limit_cpu(1.0)
    assert many_targets.one(seed)["verdict"] == fault


def attack(many_targets, seeds):
    return (many_targets.within_limit(None, seed) for seed in seeds)


def statuses(runs):
    runs = list(runs)
    assert not [run for run in runs if run["verdict"]]
    return Counter(run["status"] for run in runs)


def test_a_few_targets(many_targets):
    cheap = {"random", "affine", "constant", "duplicates", "dead_neurons", "step"}
    seeds = [s for s in SEEDS if many_targets.draw(s).kind in cheap]
    assert statuses(attack(many_targets, seeds[:10]))["recovered"] >= 5


@pytest.mark.slow
def test_every_twentieth_of_a_thousand_targets(many_targets):
    assert statuses(attack(many_targets, SEEDS[::20]))["recovered"] >= 25
