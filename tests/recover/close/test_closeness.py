"""Closeness, orientation, merging and the separations of CKM21, held against the zoo."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from listings.ckm21_merging import affine_part, orientation, represent
from revelu.network import Network, l2_distance, zoo
from revelu.network.sums import affine_network
from revelu.probe.line import random_line
from revelu.recover.close.closeness import closeness


def clustered(angle, seed, m=6, d=5):
    network = zoo.with_clusters([d, m, 1], 1, angle, seed=seed)
    return network.weights[1][0], network.weights[0], network.biases[0]


def as_network(s, W, b):
    return Network([W, s[None]], [b, np.zeros(1)])


@given(st.integers(0, 10**6), st.floats(1e-3, 1e3), st.floats(-1e3, -1e-3))
def test_closeness_knows_no_scale_and_no_sign(seed, up, down):
    rng = np.random.default_rng(seed)
    w, b = rng.standard_normal(4), float(rng.standard_normal())
    W, biases = np.outer([1.0, up, down], w), b * np.array([1.0, up, down])
    delta, alpha = closeness(W, biases)
    assert delta.max() < 1e-7
    assert alpha.max() < 1e-9 * (1 + abs(b) / np.linalg.norm(w))


@given(st.integers(0, 10**6))
def test_closeness_obeys_the_triangle_of_lemma_3_11(seed):
    rng = np.random.default_rng(seed)
    W, b = rng.standard_normal((3, 4)), rng.standard_normal(3)
    delta, alpha = closeness(W, b)
    assert delta[0, 2] <= delta[0, 1] + delta[1, 2] + 1e-12
    assert alpha[0, 2] <= 2 * (alpha[0, 1] + alpha[1, 2]) + 1e-12


@pytest.mark.parametrize("angle", [1e-1, 1e-4, 1e-8])
def test_clusters_of_the_zoo_are_as_close_as_they_say(angle):
    _, W, b = clustered(angle, 5)
    delta, _ = closeness(W, b)
    np.testing.assert_allclose(delta[0, 1:], np.sin(angle), rtol=1e-6)
    assert delta.max() <= 2 * np.sin(angle) * (1 + 1e-6)


@given(st.integers(0, 10**6), st.sampled_from([0.3, 1e-2, 1e-6]))
def test_orientation_polarises_as_lemma_3_9_says(seed, angle):
    _, W, _ = clustered(angle, seed)
    first = orientation(W)
    signs = np.where(first, 1.0, -1.0)
    assert (np.sign(W @ W.T) == np.outer(signs, signs)).all()


@given(st.integers(0, 10**6), st.sampled_from([1e-2, 1e-4, 1e-6]))
def test_two_neurons_on_one_hyperplane_stand_for_a_cluster(seed, angle):
    s, W, b = clustered(angle, seed)
    v, offset, coefficients = represent(s, W, b)
    merged = Network([np.stack([v, -v]), [coefficients]], [[offset, -offset], [0.0]])
    size = float(np.abs(s) @ np.linalg.norm(W, axis=1))
    # Away from the strip one side may be off by the part orthogonal to v, of order Δ; the
    # hyperplane is as far off as the sum is small against its terms.
    conditioned = size / float(np.linalg.norm(v))
    assert l2_distance(as_network(s, W, b), merged) < 20 * angle * size * conditioned


@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1e-5]))
def test_a_cluster_that_cancels_is_nearly_affine(seed, angle):
    s, W, b = clustered(angle, seed)
    # Lemma 3.19: make the change of the gradient vanish, up to Δ.
    lengths = np.linalg.norm(W, axis=1)
    s = np.append(s[:-1], -float((s * lengths)[:-1].sum()) / lengths[-1])
    v, c = affine_part(s, W, b)
    size = float(np.abs(s) @ lengths)
    apart = l2_distance(as_network(s, W, b), affine_network(v[None], np.array([c])))
    assert apart < 20 * angle * size


def test_neurons_that_cancel_exactly_have_no_hyperplane():
    W = np.array([[1.0, 2.0], [1.0, 2.0]])
    with pytest.raises(ZeroDivisionError):
        represent(np.array([1.0, -1.0]), W, np.zeros(2))


def test_kinks_of_a_random_line_are_near_and_apart_as_lemmas_4_3_and_4_4_say():
    # 200 lines, δ = 1/10: at most a tenth of them may break either bound, whose constants
    # are taken as 1.  v is a unit vector in the paper, of length |x0| here.
    delta, d, m = 0.1, 8, 12
    network = zoo.random_network([d, m, 1], seed=7)
    W, b = network.weights[0], network.biases[0]
    sizes = np.linalg.norm(W, axis=1)
    root = np.sqrt(d) + np.sqrt(np.log(m / delta))
    farthest = m * root * (np.abs(b).max() / sizes.min() + np.sqrt(np.log(m / delta))) / delta
    apart, shifted = closeness(W, b)
    closest = float(np.maximum(apart, shifted)[~np.eye(m, dtype=bool)].min())
    nearest = closest * delta**2 / (m**4 * root)
    rng = np.random.default_rng(0)
    far = near = 0
    for _ in range(200):
        line = random_line(rng, d)
        t = -(W @ line.x0 + b) / (W @ line.v) * np.linalg.norm(line.v)
        far += bool(np.abs(t).max() > farthest)
        near += bool(np.diff(np.sort(t)).min() < nearest)
    assert far <= 200 * delta
    assert near <= 200 * delta
