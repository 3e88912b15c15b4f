"""One hidden layer inside a box, from answers that a target computes in float32."""

import numpy as np
import pytest

import revelu
from revelu import Domain
from revelu.network import zoo
from revelu.oracle import Oracle
from revelu.probe.region import Cube
from revelu.recover.in_box import OracleInBox
from revelu.recovery import Status


class InFloat32:
    """A network that computes in float32, and keeps how far it was asked."""

    def __init__(self, network):
        self.weights = [W.astype(np.float32) for W in network.weights]
        self.biases = [b.astype(np.float32) for b in network.biases]
        self.truth = revelu.Network(
            [W.astype(float) for W in self.weights], [b.astype(float) for b in self.biases]
        )
        self.least, self.most = np.inf, -np.inf

    def __call__(self, X):
        self.least, self.most = min(self.least, X.min()), max(self.most, X.max())
        (W, A), (b, c) = self.weights, self.biases
        return np.maximum(X.astype(np.float32) @ W.T + b, np.float32(0)) @ A.T + c


def nrmse(found, truth, lo, hi):
    X = np.random.default_rng(3).uniform(lo, hi, (4000, truth.dim_in))
    return np.sqrt(((found(X) - truth(X)) ** 2).mean() / truth(X).var(axis=0).mean())


@pytest.mark.parametrize(
    ("widths", "lo", "hi", "queries"),
    [([6, 8, 1], -2.0, 2.0, 60.0), ([10, 12, 3], -0.9, 1.3, 25.0)],
    ids=["one output", "several"],
)
@pytest.mark.parametrize("seed", range(2))
def test_float32_networks_come_back_and_no_question_leaves_the_box(widths, lo, hi, queries, seed):
    target = InFloat32(zoo.random_network(widths, seed=seed))
    recovery = revelu.extract(target, dim_in=widths[0], seed=seed, domain=Domain.box(lo, hi))
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert recovery.method == "fit"
    assert nrmse(recovery.network, target.truth, lo, hi) < 1e-6
    assert lo <= target.least
    assert target.most <= hi
    assert recovery.ledger.n_recovery < queries * target.truth.n_parameters


@pytest.mark.parametrize("seed", [0, 2])
def test_neurons_that_fire_near_corners_alone_are_found(seed):
    network = zoo.random_network([10, 12, 3], seed=seed)
    (W, A), (b, c) = network.weights, network.biases
    # Three of the neurons are on at a few corners of [-1, 1]^10 alone.
    b = np.append(b[:9], -0.7 * np.abs(W[9:]).sum(axis=1))
    target = InFloat32(revelu.Network([W, A], [b, c]))
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (4000, 10))
    assert (X @ W[9:].T + b[9:] > 0).mean() < 3e-3
    domain = Domain.box(-1.0, 1.0)
    recovery = revelu.extract(target, dim_in=10, seed=seed, domain=domain)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert nrmse(recovery.network, target.truth, -1.0, 1.0) < 1e-6
    corners = np.sign(W[9:])
    assert np.abs(recovery.network(corners) - target.truth(corners)).max() < 1e-4
    assert recovery.ledger.n_recovery < 40.0 * target.truth.n_parameters


@pytest.mark.parametrize("seed", range(3))
def test_points_of_a_cube_are_inside_and_many_at_its_faces(seed):
    cube, rng = Cube(), np.random.default_rng(seed)
    X = cube.points(rng, 400, 6)
    is_outer = np.abs(X) == cube.bound
    assert np.abs(X).max() <= cube.bound
    assert 100 < is_outer.any(axis=1).sum() <= 200
    near = cube.around(rng, X[1], 300)
    assert np.abs(near).max() <= cube.bound
    shared = (near == X[1]).mean(axis=1)
    assert shared.min() < 0.4
    assert shared.max() > 0.9


def test_a_box_of_numbers_that_float32_does_not_have_is_not_left():
    lo, hi = 0.1, 0.7
    target = InFloat32(zoo.random_network([5, 6, 2], seed=4))
    revelu.extract(target, dim_in=5, seed=0, box=(lo, hi), budget=4000)
    assert lo <= target.least
    assert target.most <= hi


def test_coordinates_of_a_box_stand_for_inputs_of_float32():
    seen = []

    def ask(X):
        seen.append(X)
        return X[:, :1]

    oracle = Oracle(ask, 4, domain=Domain.box([0.0, -3.0, 10.0, 0.1], [1.0, 5.0, 11.0, 0.3]))
    inside = OracleInBox(oracle, 3.0**0.5)
    U = inside.in_float32(np.random.default_rng(0).uniform(-1.7, 1.7, (200, 4)))
    inside(U)
    X = seen[-1]
    near = X.astype(np.float32).astype(float)
    assert np.abs(X - near).max() <= 1e-14
    assert (np.abs(U) <= inside.bound).all()


@pytest.mark.parametrize("seed", range(5))
def test_moves_in_a_cube_end_inside(seed):
    rng, cube = np.random.default_rng(seed), Cube()
    x = cube.clip(rng.standard_normal(6) * 3.0)
    moves = rng.standard_normal((40, 6))
    for ends in (x + cube.shares(x, moves)[:, None] * moves, x + cube.inside(x[None], moves)):
        assert np.abs(ends).max() <= cube.bound + 1e-12
    # Of the two ways one always has room, but for a point of a corner.
    inner = 0.5 * x
    assert (np.abs(cube.shares(inner, 0.01 * moves)) == 1.0).all()
    line = cube.line(rng, 6)
    t = np.linspace(*cube.interval(line), 50)
    assert np.abs(line.points(t)).max() <= cube.bound + 1e-12
