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
    rows = list(
        zip(targets.WAYS, (recovered, named, missing, targets.Found("wrong")), strict=False)
    )
    assert targets.table(rows).endswith("2 of 3 recovered or named.")


def test_rows_that_were_tried_again_stand_beside_the_others():
    one, other, third = targets.WAYS[:3]
    before = targets.table([(one, targets.Found("wrong")), (third, targets.Found("named", "a"))])
    again = targets.table([(one, targets.Found("named", "b")), (other, targets.Found("wrong"))])
    found = targets.beside_others(again, before).splitlines()
    assert [line.split(" | ")[2] for line in found[2:5]] == ["named", "wrong", "named"]
    assert found[-1] == "2 of 3 recovered or named."
