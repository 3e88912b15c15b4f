"""Runs of the benchmarks deep, trained and strangers, and how they are judged."""

import json
import os
import sys
import zipfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import revelu

FOLDER = Path(__file__).parents[1] / "benchmarks"
TRUTH = revelu.zoo.random_network([6, 4, 3, 2], seed=941)


@pytest.fixture
def benchmark_module(monkeypatch):
    """Import a script of benchmarks/ by its name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    # The processes of runs are set to one core.
    monkeypatch.setattr(os, "environ", os.environ.copy())
    yield __import__
    for name in ("extraction", "page", "strangers", "trained"):
        sys.modules.pop(name, None)


@pytest.fixture
def extraction(benchmark_module):
    return benchmark_module("extraction")


@dataclass(frozen=True)
class Row:
    """A line of one network."""

    name: str = "6-4-3-2"
    networks: int = 1

    def truth(self, _):
        return TRUTH

    def data(self, _):
        return np.eye(6)


@pytest.mark.slow
def test_a_run_is_measured_in_a_process_of_its_own(extraction):
    run = extraction.one(Row(), 941, 30.0)
    assert run.exact
    assert run.architecture[1:-1] == run.hidden == (4, 3)
    assert (run.right, run.data_right, run.labels, run.silent) == (1.0, 1.0, 1.0, False)
    assert run.cost == run.queries / TRUTH.n_parameters
    assert run.queries > 3000
    assert extraction.recorded(**json.loads(json.dumps(asdict(run)))) == run
    lines = list(extraction.lines_and_all(extraction.cells, {Row(): [run]}))
    assert [line["network"] for line in lines] == ["6-4-3-2", "all"]
    assert {line["exact"] for line in lines} == {"1"}


def test_a_network_that_is_wrong_at_one_input_is_not_exact(extraction):
    X = np.random.default_rng(942).standard_normal((1000, 6))
    run = extraction.Run(0, "recovered", TRUTH.n_parameters, TRUTH.architecture[1:-1])
    *biases, c = TRUTH.biases
    off = revelu.Network(TRUTH.weights, [*biases, c + 1e-3])
    certificate = revelu.extract(TRUTH, seed=943).certificate
    assert extraction.judged(run, TRUTH, TRUTH, X, None, certificate).exact
    wrong = extraction.judged(run, off, TRUTH, X, X, certificate)
    assert not wrong.exact
    assert wrong.silent
    assert (wrong.right, wrong.data_right) == (0.0, 0.0)
    partial = replace(run, status="partial")
    assert not extraction.judged(partial, off, TRUTH, X, X, certificate).silent


def test_layers_are_the_targets_up_to_order_and_positive_scales(extraction):
    X = np.random.default_rng(944).standard_normal((1000, 6))
    (W, V, _), (b, c, _) = TRUTH.weights, TRUTH.biases
    order, scales = [2, 0, 3, 1], np.array([0.5, 2.0, 3.0, 4.0])
    W, b, V = scales[:, None] * W[order], scales * b[order], V[:, order] / scales
    assert extraction.n_right(TRUTH, [(W, b), (V, c)], X) == 2
    turned = np.array([1.0, 1.0, -1.0])
    assert extraction.n_right(TRUTH, [(W, b), (turned[:, None] * V, turned * c)], X) == 1
    for rows in ([0, 1, 2], [0, 1, 2, 3, 3]):  # one is missing, or there twice
        assert extraction.n_right(TRUTH, [(W[rows], b[rows])], X) == 0


def test_weights_are_read_from_a_package_that_does_not_run(benchmark_module, tmp_path):
    strangers = benchmark_module("strangers")
    script = "raise SystemExit\n" + "".join(
        f"weights_{name}_w = np.array({W.T.tolist()})\nweights_{name}_b = np.array({b.tolist()})\n"
        for name, W, b in zip(strangers.ARRAYS, TRUTH.weights, TRUTH.biases, strict=True)
    )
    wheel = tmp_path / "pybullet-3.2.7-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("examples/enjoy_TF_HopperBulletEnv_v0.py", script)
    assert strangers.from_wheel(wheel, "Hopper") == TRUTH
    assert strangers.fetched(tmp_path) == wheel
    with pytest.raises(ValueError, match="Hopper"):
        strangers.Row("pybullet_Hopper", (15, 128, 64, 3), wheel).truth(0)


def test_weights_are_read_from_a_folder(benchmark_module, tmp_path):
    strangers = benchmark_module("strangers")
    arrays = {f"weights_{i}": W for i, W in enumerate(TRUTH.weights)}
    arrays |= {f"biases_{i}": b for i, b in enumerate(TRUTH.biases)}
    np.savez(tmp_path / "pybullet_Ant.npz", **arrays)
    [row] = strangers.rows_of(tmp_path, tmp_path)
    assert strangers.from_npz(tmp_path / "pybullet_Ant.npz") == TRUTH
    assert row.name == "pybullet_Ant, 28-128-64-8"


def test_what_is_trained_follows_its_seed(benchmark_module, monkeypatch):
    trained = benchmark_module("trained")
    monkeypatch.setattr(trained, "PASSES", 2)
    for row in (trained.Row("wine", (4, 3)), trained.Row("sines", (3, 4, 3, 2))):
        first = row.truth(945)
        assert first == row.truth(945)
        assert first.architecture[1:-1] == row.hidden
        X = row.data(945)
        assert X.shape[1] == first.dim_in
        np.testing.assert_allclose(X.std(axis=0), 1.0, atol=0.1)


@pytest.fixture
def envelope(benchmark_module):
    yield benchmark_module("envelope")
    sys.modules.pop("envelope", None)


def test_the_same_code_asks_the_same_and_another_seed_something_else(envelope):
    [target] = (t for t in envelope.TARGETS if t.name == "10-8-1")
    first, again, other = (target.run(seed) for seed in (941, 941, 942))
    assert first == again
    assert (first.status, first.error < 1e-9) == ("recovered", True)
    assert envelope.unequal({"a, 1": first}, {"a, 1": again}) == []
    said = envelope.unequal({"a, 1": first}, {"a, 1": other})
    assert [line.split()[2] for line in said][:2] == ["asked", "found"]


def test_a_merge_may_cost_a_little_and_lose_nothing(envelope):
    before = {f"a, {i}": envelope.Run("", "", "recovered", 1000, 1e-9, 2.0) for i in range(5)}

    def after(**changes):
        return {key: replace(run, **changes) for key, run in before.items()}

    assert envelope.worse(before, after(queries=1049, error=2e-9, seconds=2.4)) == []
    assert "median queries" in envelope.worse(before, after(queries=1060))[0]
    assert "largest error" in envelope.worse(before, after(error=4e-9))[0]
    assert "median seconds" in envelope.worse(before, after(seconds=2.6))[0]
    one = {**before, "a, 3": replace(before["a, 3"], status="partial")}
    assert envelope.worse(before, one) == ["a: 1 no longer recovered"]


def test_targets_of_the_envelope_have_names_of_their_own(envelope):
    names = [target.name for target in envelope.TARGETS]
    assert len(set(names)) == len(names) >= 60
