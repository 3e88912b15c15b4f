"""Every way in of benchmarks/targets.py, from an empty folder by one command."""

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


def imported(name):
    """A script of benchmarks/."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


TARGETS, WAYS = imported("targets"), imported("targets_made").WAYS

# Those that take no other package, and no longer than a test may.
QUICK = ("onnx: images in", "onnx: uint8", "table: probabilities", "table: a column that")


def test_ways_have_names_of_their_own():
    assert len({way.name for way in WAYS}) == len(WAYS) >= 24


@pytest.mark.parametrize("name", QUICK)
def test_a_way_in_ends_as_it_should(name):
    [way] = [way for way in WAYS if way.name.startswith(name)]
    found = TARGETS.tried(way)
    assert found.outcome in {"recovered", "named"}, found


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_way_in_ends_as_it_should(way):
    if missing := [name for name in way.needs if importlib.util.find_spec(name) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    found = TARGETS.tried(way)
    assert found.outcome in {"recovered", "named"}, found


def test_a_wrong_file_is_called_wrong(tmp_path):
    import numpy as np

    import revelu

    network = revelu.zoo.random_network([3, 2, 1], seed=0)
    network.save(tmp_path / "found.npz")
    X = np.ones((2, 3))
    assert TARGETS.largest_error(tmp_path / "found.npz", network, X) == 0.0
    assert TARGETS.largest_error(tmp_path / "found.npz", lambda X: network(X) + 1.0, X) == 1.0


def test_the_table_counts_what_was_tried():
    recovered = TARGETS.Found("recovered", "revelu extract x", 1e-9, 1e-8, 100, 1.0)
    named, missing = TARGETS.Found("named", "revelu extract y"), TARGETS.Found("not tried")
    rows = list(zip(WAYS, (recovered, named, missing, TARGETS.Found("wrong")), strict=False))
    assert TARGETS.table(rows).endswith("2 of 3 recovered or named.")
