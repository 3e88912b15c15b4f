"""Pools: how places are read through them."""

import numpy as np
import pytest

from revelu.network.layers import Pooling


@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
def test_places_are_read_as_small_moves_of_them_say(kind, strides):
    rng = np.random.default_rng(0)
    pool = Pooling(kind, (1, 5, 5), (3, 3), strides)
    A, H = rng.standard_normal((pool.size_out, 2)), rng.random((4, 25))
    # Windows overlap: some places are the largest of several.
    read = pool.read_by(A, H)
    for place in range(25):
        moved = H.copy()
        moved[:, place] += 1e-6
        slope = (pool(moved) - pool(H)) @ A / 1e-6
        np.testing.assert_allclose(read[:, place], slope, atol=1e-6)
