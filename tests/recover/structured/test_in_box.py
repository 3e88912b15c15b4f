"""Filters that crowd, from float32 answers inside a box."""

from itertools import product

import numpy as np
import pytest

import revelu
from revelu.network import LayeredNetwork
from revelu.network.layers import Convolution, Dense, Pooling, Prelu, Relu
from revelu.network.open_filters import OpenFilters
from revelu.numerics.lone_kinks import LoneKinks, second_differences, without_kink
from revelu.oracle import Domain
from revelu.probe.corner_rows import CornerRows
from revelu.probe.draws import Draws
from revelu.probe.kink_faces import Face
from revelu.probe.window_images import WindowImages


def small(kind: str, seed: int = 0, n_filters: int = 4) -> LayeredNetwork:
    rng = np.random.default_rng(seed)
    conv = Convolution(
        rng.standard_normal((n_filters, 1, 2, 2)), -0.3 * rng.random(n_filters), (1, 9, 9)
    )
    pool = Pooling(kind, conv.shape_out, (4, 4), (4, 4))
    A = rng.standard_normal((5, pool.size_out)) / np.sqrt(pool.size_out)
    return LayeredNetwork([conv, Relu(), pool, Dense(A, rng.standard_normal(5))])


def in_float32(network: LayeredNetwork):
    return lambda X: network(X).astype(np.float32)


@pytest.mark.parametrize(("n_rows", "size"), [(2, 4), (3, 3), (2, 2)])
def test_largest_of_windows_come_back_from_float32_answers_in_a_box(n_rows, size):
    rng = np.random.default_rng(n_rows)
    kernels = rng.standard_normal((2, 1, n_rows, n_rows))
    conv = Convolution(kernels, 0.3 * rng.standard_normal(2), (1, 9, 9))
    pool = Pooling("max", conv.shape_out, (size, size), (size, size))
    A = rng.standard_normal((5, pool.size_out)) / np.sqrt(pool.size_out)
    true = LayeredNetwork([conv, Relu(), pool, Dense(A, rng.standard_normal(5))])
    found = extracted(true)
    assert found.status is revelu.Status.RECOVERED, found.evidence
    assert found.ledger.n_recovery <= 25_000
    assert found.network.layers[2] == pool
    X = np.random.default_rng(2).random((1000, 81))
    assert np.abs(found.network(X) - true(X)).max() < 1e-5


@pytest.mark.parametrize("seed", [4, 5])
def test_windows_that_overlap_come_back_without_filters_that_are_always_on(seed):
    rng = np.random.default_rng(seed)
    conv = Convolution(rng.standard_normal((3, 1, 3, 3)), 0.1 * rng.standard_normal(3), (1, 9, 9))
    A = rng.standard_normal((5, conv.size_out)) / np.sqrt(conv.size_out)
    true = LayeredNetwork([conv, Relu(), Dense(A, rng.standard_normal(5))])
    found = extracted(true)
    assert found.status is revelu.Status.RECOVERED, found.evidence
    assert len(found.network.layers[0].kernels) == 3
    assert found.ledger.n_recovery <= 15_000


def test_pooled_filters_come_back_from_float32_answers_in_a_box():
    true = small("average")
    found = revelu.extract(
        in_float32(true), dim_in=81, image="9x9x1", domain=Domain.box(0.0, 1.0), seed=1
    )
    assert found.status is revelu.Status.RECOVERED, found.evidence
    assert found.ledger.n_recovery <= 15_000
    corners = np.array(list(product([0.0, 1.0], repeat=4)))
    z = corners @ true.layers[0].kernels.reshape(-1, 4).T + true.layers[0].biases
    n_bending = np.count_nonzero((z.min(axis=0) < 0.0) & (z.max(axis=0) > 0.0))
    assert len(found.network.layers[0].kernels) == n_bending
    X = np.random.default_rng(2).random((1000, 81))
    assert np.abs(found.network(X) - true(X)).max() < 1e-5


def test_lone_kinks_are_where_they_are_and_go_when_they_are_taken_away():
    t, place, jump = np.arange(20.0), 7.3, np.array([2.0, -1.0])
    Y = np.maximum(t - place, 0.0)[:, None] * jump + t[:, None] * [0.5, 3.0]
    D, error = second_differences(Y[None], np.full((1, 2), 1e-6))
    kinks = LoneKinks.of(D, error)
    np.testing.assert_allclose(kinks.place, [place], atol=1e-6)
    np.testing.assert_allclose(kinks.jump, [jump], atol=1e-6)
    left = without_kink(D, error, np.array([place]), jump)
    np.testing.assert_allclose(left, 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", ["average", "max"])
def test_layouts_are_told_by_what_they_explain(kind):
    true = small(kind)
    conv, pool = true.layers[0], true.layers[2]
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    open_ = OpenFilters(
        conv.kernels * signs[:, None, None, None],
        conv.biases * signs,
        np.ones(4, dtype=bool),
        np.zeros(4, dtype=bool),
        (1, 9, 9),
        1.0,
    )
    rng = np.random.default_rng(3)
    X = np.zeros((150, 81))
    X[:, :9] = rng.random((150, 9))
    found = open_.explaining(X, true(X), [*open_.layouts(8)], 1e-9)[0]
    assert found.window == (kind, pool.size, pool.strides)


def test_a_network_that_reads_a_box_s_coordinates_keeps_its_filters():
    network = small("max")
    moved = network.after(0.5 * np.eye(81), 0.5)
    assert isinstance(moved, LayeredNetwork)
    X = np.random.default_rng(4).standard_normal((50, 81))
    np.testing.assert_allclose(moved(X), network(0.5 * X + 0.5), atol=1e-12)


def without_the_last(monkeypatch):
    looked = CornerRows.look

    def look(self, window):
        looked(self, window)
        self.found.pop()
        for ends in self.corners.values():
            ends.corner.seen = []

    monkeypatch.setattr(CornerRows, "look", look)


def extracted(target: LayeredNetwork):
    return revelu.extract(
        in_float32(target),
        dim_in=target.dim_in,
        image="9x9x1",
        domain=Domain.box(0.0, 1.0),
        seed=1,
        method="shared_weights",
    )


def test_a_filter_that_was_missed_is_found_beside_the_others(monkeypatch):
    without_the_last(monkeypatch)
    true = small("average")
    found = extracted(true)
    assert found.status is revelu.Status.RECOVERED, found.evidence
    assert found.ledger.n_recovery <= 15_000
    X = np.random.default_rng(2).random((1000, 81))
    assert np.abs(found.network(X) - true(X)).max() < 1e-5


@pytest.mark.parametrize("kind", ["average", "max"])
def test_a_filter_that_is_on_near_one_corner_of_its_pixels_alone_is_found(kind):
    rng = np.random.default_rng(3)
    kernels = rng.standard_normal((3, 1, 3, 3))
    biases = 0.3 * rng.standard_normal(3)
    biases[1] = 0.4 - np.maximum(kernels[1], 0.0).sum()
    conv = Convolution(kernels, biases, (1, 9, 9))
    pool = Pooling(kind, conv.shape_out, (3, 3), (3, 3))
    A = rng.standard_normal((5, pool.size_out)) / np.sqrt(pool.size_out)
    true = LayeredNetwork([conv, Relu(), pool, Dense(A, rng.standard_normal(5))])
    found = extracted(true)
    assert found.status is revelu.Status.RECOVERED, found.evidence
    assert len(found.network.layers[0].kernels) == 3
    assert found.ledger.n_recovery <= 12_000
    brightest = (rng.random((1000, 81)) < 0.05) * 1.0
    rows = conv.reads[rng.integers(0, len(conv.reads), 1000)]
    brightest[np.arange(1000)[:, None], rows] = kernels[1].ravel() > 0.0
    assert np.abs(found.network(brightest) - true(brightest)).max() < 1e-5


def test_a_filter_that_no_corner_shows_is_said_to_be_missing(monkeypatch):
    without_the_last(monkeypatch)
    monkeypatch.setattr(CornerRows, "look_beside", lambda *_: False)
    found = extracted(small("average"))
    assert found.status is not revelu.Status.RECOVERED
    assert any("filters leave" in said for said in found.evidence), found.evidence
    assert found.ledger.n_recovery <= 30_000


def test_a_face_is_what_the_kinks_on_it_tell():
    rng = np.random.default_rng(5)
    true = np.array([0.5, -2.0, 0.0, 7.0])
    P = np.column_stack([rng.uniform(-1.0, 1.0, (30, 3)), np.ones(30)])
    spread = np.full(30, 1e-4)
    places = P @ true + spread * rng.standard_normal(30)
    places[::3] += 1.0
    rough = true[:3] + 0.02 * rng.standard_normal(3)
    face = Face.at(rough, np.full(3, 0.02), P[1, :3], places[1], spread[1])
    joined = face.joined(P, places, spread)
    np.testing.assert_array_equal(joined.agrees(P, places, spread), np.arange(30) % 3 > 0)
    assert (np.abs(joined.x - true) < 6.0 * np.sqrt(np.diag(joined.covariance))).all()
    assert np.sqrt(np.diag(joined.covariance)).max() < 1e-4
    known = joined.without(np.array([2]))
    assert known.x[2] == 0.0
    np.testing.assert_allclose(known.x, true, atol=3e-4)


@pytest.mark.parametrize("seed", [0, 1])
def test_trees_are_no_filters(seed):
    rng = np.random.default_rng(seed)
    at, pixels, values = rng.random(60), rng.integers(0, 81, 60), rng.standard_normal((60, 5))
    found = revelu.extract(
        lambda X: ((X[:, pixels] > at) @ values).astype(np.float32),
        dim_in=81,
        image="9x9x1",
        domain=Domain.box(0.0, 1.0),
        seed=seed,
        method="shared_weights",
    )
    assert found.status is not revelu.Status.RECOVERED
    assert found.network is None
    assert found.ledger.n_recovery <= 15_000


def strided(seed: int, n_filters: int) -> LayeredNetwork:
    """Filters of 3x3, two pixels apart, of which windows of 2x2 are hardly ever off."""
    rng = np.random.default_rng(seed)
    kernels = rng.standard_normal((n_filters, 1, 3, 3)) / 3.0
    conv = Convolution(kernels, 0.3 * rng.standard_normal(n_filters), (1, 10, 10), (2, 2))
    pool = Pooling("max", conv.shape_out, (2, 2), (2, 2))
    A = rng.standard_normal((4, pool.size_out)) / np.sqrt(pool.size_out)
    return LayeredNetwork([conv, Relu(), pool, Dense(A, 0.3 * rng.standard_normal(4))])


@pytest.mark.parametrize(
    ("seed", "n_filters", "n_queries"),
    # Of 104 ties alone bound the biases.  Steps of the fit of 118 went along its filters' sizes.
    # A filter of 110 and of 132 is on in one of 100,000 windows.
    [(104, 2, 13_000), (118, 4, 16_000), (110, 4, 25_000), (132, 2, 30_000)],
)
def test_windows_that_are_hardly_ever_off_or_on_are_right_everywhere(seed, n_filters, n_queries):
    true = strided(seed, n_filters)
    found = revelu.extract(
        in_float32(true),
        "shared_weights",
        dim_in=100,
        image="10x10x1",
        domain=Domain.box(0.0, 1.0),
        seed=seed,
        budget=40_000,
    )
    assert found.status is revelu.Status.RECOVERED, found.evidence
    assert found.ledger.n_recovery <= n_queries
    X = np.random.default_rng(2).random((60_000, 100))
    assert np.abs(found.network(X) - true(X)).max() < 1e-5


def test_what_is_affine_is_said():
    rng = np.random.default_rng(1)
    conv = Convolution(
        rng.standard_normal((3, 1, 3, 3)) / 3.0, 0.3 * rng.standard_normal(3), (1, 9, 9)
    )
    A = rng.standard_normal((4, conv.size_out)) / np.sqrt(conv.size_out)
    leaky = Prelu(np.full(conv.size_out, 0.1))
    found = extracted(LayeredNetwork([conv, leaky, Dense(A, np.zeros(4))]))
    assert found.status is revelu.Status.RECOVERED, found.evidence
    assert any("always on" in said for said in found.evidence), found.evidence
    plain = extracted(LayeredNetwork([conv, Relu(), Dense(A, np.zeros(4))]))
    assert not any("always on" in said for said in plain.evidence), plain.evidence


def test_a_window_is_shown_where_it_is_off_and_where_it_is_on():
    filters = OpenFilters(
        np.array([[[[1.0, -1.0]]], [[[1.0, 1.0]]]]),
        np.array([-0.5, -1.9]),
        np.zeros(2, dtype=bool),
        np.zeros(2, dtype=bool),
        (1, 1, 5),
        1.0,
        window=("max", (1, 2), (1, 2)),
    )

    class Box:
        box = (0.0, 1.0)

    draws = Draws(Box(), None, np.random.default_rng(0))
    shown = WindowImages(filters, draws).beside(np.full((3, 5), 0.5))
    on = np.maximum(filters.conv(shown), 0.0)
    n_on = (filters.pool(on).reshape(len(shown), 2, 2) > 0.0).sum(axis=0)
    assert (n_on >= 3).all(), n_on
    assert ((shown >= 0.0) & (shown <= 1.0)).all()
