"""Stated errors held against the truth: a small version of benchmarks/calibration.py."""

import itertools

import numpy as np
import pytest
from calibration import FAR, HIGH, LAWS, LOW, MOST_FAR, NETWORKS, Found, measure

from revelu.oracle import Oracle, measure_noise

SEED = 8_661_000


def are_true(z):
    z = np.concatenate(z)
    z = z[np.isfinite(z)]
    assert len(z) > 10
    assert LOW <= np.sqrt(np.mean(z**2)) <= HIGH
    assert np.mean(np.abs(z) > FAR) <= MOST_FAR


@pytest.mark.parametrize(
    ("law", "name"),
    [
        *itertools.product(
            (
                "4 decimals",
                "6 decimals",
                "5 significant digits",
                "noise of 1e-03",
                "noise of 1e-05",
            ),
            ("narrow, 6-4-1", "wide, 4-10-2", "two layers, 6-4-3-1"),
        ),
        *itertools.product(
            ("float64", "float32", "float16"), ("wide, 4-10-2", "10-16-1", "20-30-3")
        ),
        ("float16", "narrow, 6-4-1"),
    ],
)
def test_places_jumps_and_gradients_err_by_what_they_say(law, name):
    found = Found()
    # Of a computation's errors a few places of one network are most.
    for seed in range(SEED, SEED + (8 if law in {"float64", "float16"} else 3)):
        measure(law, NETWORKS[name](seed), seed, found, recovers=False)
    for kind in ("place", "jump", "gradient"):
        are_true(found.z[kind])


@pytest.mark.parametrize("seed", [9_520_001, 9_520_003])
def test_sums_of_half_precision_numbers_on_one_grid_err_by_more_than_its_step(seed):
    target, truth = LAWS["float16"](NETWORKS["narrow, 6-4-1"](seed))
    with Oracle(target, truth.dim_in) as oracle:
        noise = measure_noise(oracle, seed)
    X = np.random.default_rng(seed).standard_normal((4000, truth.dim_in))
    Y = target(X)
    assert noise.law == "half-precision"
    z = (Y - truth(X)) / noise.typical_at(X, Y)
    assert LOW <= np.sqrt(np.mean(z**2)) <= HIGH
    # Where the budget has no room for more, they are what they look like.
    with Oracle(target, truth.dim_in, budget=80) as oracle:
        noise = measure_noise(oracle, np.random.SeedSequence(seed).spawn(1)[0])
        assert noise.law == "rounded"
        assert oracle.n_queries <= 80


@pytest.mark.parametrize("law", ["float32", "6 decimals", "noise of 1e-05"])
@pytest.mark.parametrize("name", ["10-16-1", "20-30-3"])
def test_rows_that_lines_have_met_err_by_what_they_say(law, name):
    found = Found()
    for seed in range(SEED, SEED + 3):
        measure(law, NETWORKS[name](seed), seed, found, recovers=False)
    are_true(found.z["row"])


@pytest.mark.parametrize(
    ("law", "name"),
    [
        ("float64", "narrow, 6-4-1"),
        ("float32", "narrow, 6-4-1"),
        ("float32", "wide, 4-10-2"),
        pytest.param("float64", "two layers, 6-4-3-1", marks=pytest.mark.slow),
        pytest.param("float16", "narrow, 6-4-1", marks=pytest.mark.slow),
        pytest.param("4 decimals", "narrow, 6-4-1", marks=pytest.mark.slow),
        pytest.param("float32", "two layers, wide, 4-8-5-1", marks=pytest.mark.slow),
    ],
)
def test_weights_err_by_what_they_say(law, name):
    found = Found()
    for seed in range(SEED, SEED + 2):
        measure(law, NETWORKS[name](seed), seed, found)
    assert found.n_certified
    are_true(found.z["weights"])
