"""Stated errors held against the truth: a small version of benchmarks/calibration.py."""

import numpy as np
import pytest
from calibration import FAR, HIGH, LOW, MOST_FAR, NETWORKS, Found, measure

SEED = 8_661_000


def are_true(z, low=LOW):
    z = np.concatenate(z)
    assert len(z) > 10
    assert low <= np.sqrt(np.mean(z**2)) <= HIGH
    assert np.mean(np.abs(z) > FAR) <= MOST_FAR


@pytest.mark.parametrize("law", ["4 decimals", "6 decimals", "noise of 1e-03", "noise of 1e-05"])
@pytest.mark.parametrize("name", ["narrow, 6-4-1", "wide, 4-10-2", "two layers, 6-4-3-1"])
def test_places_jumps_and_gradients_err_by_what_they_say(law, name):
    found = Found()
    for seed in range(SEED, SEED + 2):
        measure(law, NETWORKS[name](seed), seed, found, recovers=False)
    for kind in ("place", "jump", "gradient"):
        # A place is said to err by four answers, where the lines that meet there err by less.
        are_true(found.z[kind], low=0.3)


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
