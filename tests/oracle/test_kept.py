"""Answers that are kept: evenly among all, however many a round has, and within their room."""

import numpy as np
import pytest

from revelu.oracle.kept import KeptAnswers


@pytest.mark.parametrize("sizes", [[1] * 200, [200], [7, 1, 90, 2, 100]])
def test_answers_are_kept_evenly(sizes):
    kept, n = KeptAnswers(most_numbers=100), 0
    for size in sizes:
        numbers = np.arange(n, n + size, dtype=np.float64)[:, None]
        kept.add(numbers, -numbers, is_check=n > 100)
        n += size
    X, Y, is_check = kept.all()
    np.testing.assert_array_equal(X[:, 0], np.arange(0, 200, 4))
    np.testing.assert_array_equal(Y, -X)
    assert len(is_check) == 50
