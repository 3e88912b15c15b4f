"""What known filters tell of the ends of lines at a corner, and where others bend."""

import numpy as np
import pytest

from revelu.adapters import open_oracle
from revelu.network import LayeredNetwork
from revelu.network.layers import Convolution, Dense, Pooling, Relu
from revelu.oracle import Domain, measure_noise
from revelu.probe.corner_ends import CornerEnds
from revelu.probe.corner_kinks import CornerKinks, CornerLines
from revelu.probe.draws import Draws
from revelu.probe.seen_filters import SeenFilter

SIDES = (slice(None), slice(None), slice(None))


def made(kind: str, seed: int = 0) -> LayeredNetwork:
    """Three filters of 2x2, that bend on about half of all images."""
    rng = np.random.default_rng(seed)
    conv = Convolution(rng.standard_normal((3, 1, 2, 2)), np.zeros(3), (1, 6, 6))
    conv = conv.with_filters(conv.kernels, 0.1 * rng.standard_normal(3))
    pool = Pooling(kind, conv.shape_out, (5, 5), (5, 5))
    A = rng.standard_normal((4, 3))
    return LayeredNetwork([conv, Relu(), pool, Dense(A, np.zeros(4))])


def ends_of(network: LayeredNetwork, entry: tuple[int, int] = (0, 0)) -> CornerEnds:
    """The ends of lines along a pixel near the first corner, from float32 answers."""
    oracle = open_oracle(
        lambda X: network(X).astype(np.float32), dim_in=36, domain=Domain.box(-1.0, 1.0)
    )
    rng = np.random.default_rng(1)
    noise = measure_noise(oracle, 1)
    pixels = np.arange(36).reshape(1, 6, 6)[:, :3, :3]
    along = 3 * entry[0] + entry[1]
    corner = CornerKinks(CornerLines(0.75), Draws(oracle, noise, rng), 36, pixels, along)
    return CornerEnds(corner, SIDES, entry)


def seen(network: LayeredNetwork, error: float = 1e-7) -> list[SeenFilter]:
    """Its filters, with errors."""
    conv, rng = network.layers[0], np.random.default_rng(2)
    rows = np.column_stack([conv.kernels.reshape(3, 4), conv.biases])
    rows = rows + error * rng.standard_normal(rows.shape)
    C = error**2 * np.eye(5)
    return [SeenFilter(row[:4].reshape(1, 2, 2), row[4], C, False, False) for row in rows]


@pytest.mark.parametrize("entry", [(0, 0), (1, 0)])
def test_filters_that_are_known_leave_nothing_of_the_ends_of_lines(entry):
    network = made("average")
    assert ends_of(network, entry).hold_against(seen(network), 24, ties=False) == 0.0


@pytest.mark.parametrize("size", [1e-4, 1e-2])
def test_errors_of_filters_leave_what_they_may(size):
    network = made("average")
    left = ends_of(network).hold_against(seen(network, size), 24, ties=False)
    assert 0.0 < left <= 1.0


def test_a_filter_that_is_missing_leaves_more_and_is_where_halving_ends():
    network = made("average")
    ends = ends_of(network)
    assert ends.hold_against(seen(network)[:2], 24, ties=False) > 10.0
    shown = ends.between(12)
    conv = network.layers[0]
    # The missing one is on at one end of a line there, and off at the other.
    z = conv(ends.corner.ends(shown).reshape(-1, 36)).reshape(12, 2, 3, 25)[:, :, 2, 0]
    assert (z[:, 0] * z[:, 1] < 0.0).sum() >= 9
