"""Bisection of many brackets, those among them that hold no change at first."""

import numpy as np
import pytest

from revelu.numerics.bisection import find_changes


@pytest.mark.parametrize("first_halvings", [0, 3])
def test_changes_are_found_where_brackets_hold_none_yet(first_halvings):
    places = np.array([0.3, -0.99, 7.0, -60.0, 1e9])
    asked = []

    def is_inside(rows, t):
        asked.append(len(rows))
        return t < places[rows]

    found = find_changes(is_inside, np.zeros(5), 1.0, 1e-9, first_halvings=first_halvings)
    np.testing.assert_allclose(found[:4], places[:4], atol=1e-9)
    # Six times four is not as far as that.
    assert np.isnan(found[4])
    assert sum(asked) < 5 * 60


def test_expected_places_take_few_questions():
    places = np.linspace(-1.0, 1.0, 40)
    counts = []
    for halvings in (0, 3):
        asked = []

        def is_inside(rows, t, asked=asked):
            asked.extend(rows)
            return t < places[rows] + 1e-4

        found = find_changes(is_inside, places, 1e-3, 1e-6, first_halvings=halvings)
        np.testing.assert_allclose(found, places + 1e-4, atol=1e-6)
        counts.append(len(asked))
    assert counts[1] < counts[0]
