"""Every way in of benchmarks/targets.py, from an empty folder by one command."""

import importlib.util
from pathlib import Path

import pytest
import targets

# Servers that need an environment of their own are slow to install, and stand in for each other:
# one of them is asked here, and all in the benchmark.
PROGRAMS = {"", "mlflow"}


def test_ways_have_names_of_their_own():
    assert len({way.name for way in targets.WAYS}) == len(targets.WAYS) >= 24


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", [way for way in targets.WAYS if way.program in PROGRAMS], ids=lambda way: way.name
)
def test_every_way_in_ends_as_it_should(way, request):
    if missing := [name for name in way.needs if importlib.util.find_spec(name) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    environments = Path(request.config.cache.mkdir("environments"))
    found = targets.tried(way, environments)
    assert found.outcome in {"recovered", "named"}, found


def test_a_wrong_file_is_called_wrong(tmp_path):
    import numpy as np

    import revelu

    network = revelu.zoo.random_network([3, 2, 1], seed=0)
    network.save(tmp_path / "found.npz")
    X = np.ones((2, 3))
    assert targets.largest_error(tmp_path / "found.npz", network, X) == 0.0
    assert targets.largest_error(tmp_path / "found.npz", lambda X: network(X) + 1.0, X) == 1.0


def test_the_table_counts_what_was_tried():
    recovered = targets.Found("recovered", "revelu extract x", 1e-9, 1e-8, 100, 1.0)
    named, missing = targets.Found("named", "revelu extract y"), targets.Found("not tried")
    ends = (recovered, named, missing, targets.Found("wrong"))
    rows = {targets.Row(way.name): [end] for way, end in zip(targets.WAYS, ends, strict=False)}
    assert targets.note(rows) == "2 of 3 recovered or named."
    shown = [targets.line(row, runs) for row, runs in rows.items()]
    assert [line["outcome"] for line in shown] == ["recovered", "named", "not tried", "wrong"]
    assert [line["queries"] for line in shown] == ["100", "", "", ""]
