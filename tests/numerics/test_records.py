"""Structures of arrays: cut and joined by row, whatever their fields are."""

from dataclasses import dataclass

import numpy as np
import pytest

from revelu.numerics.records import Records


@dataclass(frozen=True, eq=False)
class Points(Records):
    X: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True, eq=False)
class Walks(Records):
    start: Points
    states: tuple[np.ndarray, ...]


def walks(n, seed=0):
    rng = np.random.default_rng(seed)
    start = Points(rng.standard_normal((n, 3)), rng.integers(9, size=n))
    return Walks(start, (rng.random((n, 2)) < 0.5, rng.random((n, 4)) < 0.5))


@pytest.mark.parametrize("rows", [np.array([4, 0, 4]), np.arange(5) % 2 == 0])
def test_rows_are_taken_from_every_array(rows):
    whole, some = walks(5), walks(5).take(rows)
    assert isinstance(some, Walks)
    assert len(some) == len(some.start.X) == 3
    np.testing.assert_array_equal(some.start.labels, whole.start.labels[rows])
    np.testing.assert_array_equal(some.states[1], whole.states[1][rows])


def test_joined_records_are_those_of_each_in_order():
    parts = [walks(n, seed=n) for n in (2, 0, 3)]
    both = parts[0].joined(*parts[1:])
    assert len(both) == 5
    np.testing.assert_array_equal(both.start.X[2:], parts[2].start.X)
    np.testing.assert_array_equal(both.take(np.arange(2)).states[0], parts[0].states[0])
