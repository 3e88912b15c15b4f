"""Answers that depend on the rows beside them: their errors, and what they are said to be."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from revelu.cli.app import app
from revelu.network import zoo
from revelu.oracle import InFloat32, Noisy, Oracle, degrade, measure_noise
from revelu.oracle.stencils import Stencils
from revelu.recovery import Status

NETWORK = zoo.random_network([6, 5, 2], seed=1)


class Seen:
    """A target that counts the rows of its batches."""

    def __init__(self, ask):
        self.ask, self.sizes = ask, []

    def __call__(self, X):
        self.sizes.append(len(X))
        return self.ask(X)


def mended(network):
    """In float32, and summed with small errors where a batch is large: the other way round."""
    few, many = (InFloat32(kernel)(network) for kernel in ("sequential", "pairwise"))
    return lambda X: few(X) if len(X) < 64 else many(X)


KERNELS = {
    "sequential": InFloat32(),
    "pairwise": InFloat32("pairwise"),
    **{f"from {n} rows": InFloat32("by_batch", n) for n in (3, 64, 200, 500)},
    "up to 63 rows": mended,
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))
@pytest.mark.parametrize("widths", [[200, 8, 4], [120, 20, 3]], ids=str)
def test_the_floor_is_that_of_the_batches_that_are_asked(kernel, widths):
    network = zoo.random_network(widths, seed=1)
    target = Seen(kernel(network))
    oracle, truth = Oracle(target, widths[0]), InFloat32.truth(network)
    noise = measure_noise(oracle, 5)
    assert noise.law == "float32"
    assert oracle.n_queries <= 256
    X = np.random.default_rng(2).standard_normal((1000, widths[0])).astype(np.float32)
    sizes = {1: 100, 3: 300, 64: 960, 300: 900, 1000: 1000}
    measured = max(target.sizes)
    ratios = []
    for size, n in sizes.items():
        Z = np.concatenate([oracle(X[i : i + size]) for i in range(0, n, size)])
        off = (Z - truth(X[:n])) / noise.errors
        ratios.append(np.sqrt((off**2).mean()))
    assert max(target.sizes) <= measured
    # The floor is twice what 80 degrees of freedom say: 1/2 to a third in four standard errors.
    # What small batches alone err by is met by a test of 20 rows, which may miss a factor of 2.5.
    assert 0.3 < max(ratios) < 1.3


def test_a_budget_without_room_for_a_large_batch_keeps_batches_small():
    target = Seen(InFloat32()(NETWORK))
    oracle = Oracle(target, 6, budget=400)
    oracle.budget = 200
    assert measure_noise(oracle, 1).law == "float32"
    oracle(np.zeros((100, 6)))
    assert max(target.sizes) == len(Stencils().radii) * Stencils().n_points


def test_float64_answers_are_asked_in_batches_of_any_size():
    target = Seen(NETWORK)
    oracle = Oracle(target, 6)
    assert measure_noise(oracle, 1).is_exact
    assert oracle.n_queries == 64
    oracle(np.zeros((1000, 6)))
    assert target.sizes[-1] == 1000


def quantised(X):
    """Inputs rounded to 8 bits of what the batch spans."""
    unit = np.abs(X).max() / 127.0
    return NETWORK(unit * np.round(X / unit)).astype(np.float32)


def normalised(X):
    """Sums less the mean of their batch, by their deviation in it; one row is left as it is."""
    if len(X) == 1:
        return NETWORK(X)
    return NETWORK((X - X.mean(axis=0)) / X.std(axis=0))


@pytest.mark.parametrize("target", [quantised, normalised])
def test_a_row_whose_answer_depends_on_its_batch_is_said_to(target):
    recovery = revelu.extract(target, dim_in=6, seed=1)
    assert recovery.status is Status.NOT_DETERMINISTIC
    assert recovery.evidence[0].startswith("a row's answer depends on its batch")
    assert "--batch 1" in recovery.evidence[0]
    assert not any("randomness" in said for said in recovery.evidence)
    assert recovery.to_dict()["answers"]["law"] == "by batch"
    assert recovery.to_dict()["answers"]["by_batch"] > 1e-3
    assert recovery.ledger.n_queries == recovery.ledger.by_phase["noise"] <= 256


def test_row_by_row_it_is_recovered_where_rows_alone_have_one_answer():
    oracle = revelu.open_oracle(normalised, dim_in=6, batch=1)
    recovery = revelu.extract(oracle, seed=1)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert revelu.align(recovery.network, NETWORK).max_parameter_error < 1e-8
    assert recovery.answers["law"] == "float64"


@pytest.mark.parametrize("task", ["verify", "span", "diagnose", "audit"])
def test_every_task_says_so(task):
    run = {
        "verify": lambda: revelu.verify(NETWORK, normalised, seed=1),
        "span": lambda: revelu.recover_span(normalised, dim_in=6, seed=1),
        "diagnose": lambda: revelu.diagnose(normalised, dim_in=6, seed=1),
        "audit": lambda: revelu.audit(normalised, dim_in=6, seed=1, max_seconds=5),
    }[task]
    found = run()
    said = json.dumps(found.to_dict())
    assert "depends on its batch" in said
    assert "remove the randomness" not in said


def test_the_verdict_names_the_batch(tmp_path, monkeypatch):
    (tmp_path / "together.py").write_text(
        "def answer(X):\n    return abs(X - X.mean(axis=0)).sum(axis=1)\n"
    )
    monkeypatch.chdir(tmp_path)
    arguments = ["extract", "together:answer", "--trust", "--dim-in", "4"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "a row's answer depends on its batch" in result.stdout.splitlines()[0]
    alone = CliRunner().invoke(app, [*arguments, "--batch", "1", "--json"])
    assert "by batch" not in alone.stdout


@pytest.mark.parametrize("sigma", [1e-6, 1e-2])
def test_noise_drawn_anew_is_not_the_batch(sigma):
    noise = measure_noise(Oracle(degrade(NETWORK, Noisy(sigma, 3)), 6), 1)
    assert noise.law == "random"
    assert noise.answers["by_batch"] is None
    assert noise.answers["sigma"] == pytest.approx(sigma, rel=0.3)


def test_rows_asked_again_are_asked_in_batches_as_they_were():
    with revelu.open_oracle(normalised, dim_in=6, batch=1, remote=True) as oracle:
        measure_noise(oracle, 1)
        oracle(np.zeros((9000, 6)))
        before = oracle.n_queries
        oracle.check_unchanged()
        assert oracle.n_queries == before + 8
