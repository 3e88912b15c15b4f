"""Binary solutions against brute force."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from revelu.numerics.signs import find_binary_solutions


@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32 - 1), st.booleans())
def test_finds_what_brute_force_finds(n, m, seed, integral):
    rng = np.random.default_rng(seed)
    G = rng.integers(-2, 3, (n, m)).astype(float) if integral else rng.standard_normal((n, m))
    y = G @ rng.integers(0, 2, m)
    every = [x for x in product((0.0, 1.0), repeat=m) if np.linalg.norm(G @ x - y) < 1e-9]
    found = find_binary_solutions(G, y, 1e-9)
    assert len(found) == min(len(every), 2)
    assert {tuple(x) for x in found} <= set(every)


@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_finds_nothing_where_there_is_nothing(n, m, seed):
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((n, m))
    y = G @ np.full(m, 0.5)
    assert find_binary_solutions(G, y, 1e-9) == []


def test_wide_systems_are_left_alone():
    G = np.random.default_rng(0).standard_normal((1, 40))
    assert find_binary_solutions(G, G.sum(axis=1), 1e-9) == []


def test_no_unknowns():
    assert len(find_binary_solutions(np.zeros((3, 0)), np.zeros(3), 1e-9)) == 1
    assert find_binary_solutions(np.zeros((3, 0)), np.ones(3), 1e-9) == []
