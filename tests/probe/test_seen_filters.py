"""Filters as corners show them, and which of them are one."""

import numpy as np
import pytest

from revelu.probe.seen_filters import SeenFilter, associated


def seen(
    row: np.ndarray,
    roots: np.ndarray,
    rng: np.random.Generator,
    scale: float = 1.0,
    *,
    is_least: bool = False,
    is_oriented: bool = False,
) -> SeenFilter:
    """A filter of 2x2 as it may be seen with such errors, ``roots`` in columns."""
    off = row + roots @ rng.standard_normal(len(row))
    covariance = scale**2 * roots @ roots.T
    kernel = scale * off[:-1].reshape(1, 2, 2)
    return SeenFilter(kernel, float(scale * off[-1]), covariance, is_least, is_oriented)


def errors(size: float, rng: np.random.Generator) -> np.ndarray:
    """Some directions are known a hundred times as well as others, and one entry for certain."""
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0] * np.geomspace(1e-2, 1.0, 4)
    found = np.zeros((5, 5))
    found[1:, 1:] = size * Q
    return found


def angle(one: SeenFilter, row: np.ndarray) -> float:
    """Sine of the angle between two rows, whatever their scales."""
    a, b = one.row / np.linalg.norm(one.row), row / np.linalg.norm(row)
    return float(np.linalg.norm(a - (a @ b) * b))


@pytest.mark.parametrize("seed", range(5))
def test_filters_seen_at_several_corners_are_one_and_known_better(seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((6, 5))
    rows[:, 0] = 1.0
    # Each is seen well, vaguely, and turned round.
    every = [
        seen(row, errors(size, rng), rng, scale)
        for row in rows
        for size, scale in ((1e-3, 1.0), (2e-2, 3.0), (1e-3, -0.5))
    ]
    found = associated([every[i] for i in rng.permutation(len(every))], [])
    assert len(found) == len(rows)
    for row in rows:
        nearest = min(found, key=lambda one: angle(one, row))
        assert angle(nearest, row) < 5e-3
    assert max(one.error for one in found) < max(one.error for one in every[::3])


def test_a_vague_filter_takes_no_other_ones_place():
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((6, 5))
    rows[:, 0] = 1.0
    known = [seen(row, errors(1e-4, rng), rng) for row in rows[:5]]
    new = seen(rows[5], errors(5e-2, rng), rng)
    found = associated([*known, new], [])
    assert len(found) == 6
    assert all(any(one is other for other in found) for one in known)


def test_what_was_known_is_kept_where_it_is_not_seen_any_more():
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((2, 5))
    rows[:, 0] = 1.0
    first, second = (seen(row, errors(1e-4, rng), rng) for row in rows)
    again = seen(rows[0], errors(1e-3, rng), rng)
    found = associated([again], [first, second])
    assert len(found) == 2
    assert any(one is first for one in found)
    assert any(one is second for one in found)


def test_a_row_with_another_one_s_kink_is_the_filter_that_it_is_near():
    rng = np.random.default_rng(9)
    row = rng.standard_normal(28)
    known = SeenFilter(row[:27].reshape(3, 3, 3), row[27], 1e-8 * np.eye(28), False, False)
    off = row + 0.02 * rng.standard_normal(28)
    other = SeenFilter(off[:27].reshape(3, 3, 3), off[27], 1e-6 * np.eye(28), False, False)
    assert known.compared(other)[1] > known.most_apart
    found = associated([known, other], [])
    assert len(found) == 1
    np.testing.assert_array_equal(found[0].row, known.row)


def test_a_sign_that_another_corner_tells_is_taken_and_a_bound_on_a_bias_is_not():
    rng = np.random.default_rng(10)
    row = rng.standard_normal(5)
    sure = seen(row, errors(1e-4, rng), rng, -1.0)
    bound = seen(
        row - np.append(np.zeros(4), 0.5), errors(1e-3, rng), rng, is_least=True, is_oriented=True
    )
    (found,) = associated([bound, sure], [])
    assert found.is_oriented
    assert not found.is_least
    np.testing.assert_allclose(
        found.row / np.linalg.norm(found.row), row / np.linalg.norm(row), atol=1e-3
    )


def test_rows_and_columns_turn_with_their_errors():
    rng = np.random.default_rng(11)
    roots = rng.standard_normal((9, 9))
    one = SeenFilter(rng.standard_normal((2, 2, 2)), 0.3, roots @ roots.T, False, False)
    sides = (slice(None), slice(None, None, -1), slice(None))
    turned = one.turned(sides)
    np.testing.assert_array_equal(turned.kernel, one.kernel[:, ::-1])
    x = rng.standard_normal((2, 2, 2))
    at = np.append(x, 0.0), np.append(x[:, ::-1], 0.0)
    np.testing.assert_allclose(at[1] @ turned.covariance @ at[1], at[0] @ one.covariance @ at[0])
    back = turned.turned(sides)
    np.testing.assert_array_equal(back.covariance, one.covariance)
    np.testing.assert_allclose(one.roots.T @ one.roots, one.covariance, atol=1e-9)
