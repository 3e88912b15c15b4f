"""All weights at once, to the last digits that border points have.

Where a network is known to a few digits it says where a segment meets a border, so that a point
of it costs half as many labels as without.  Gauss-Newton steps then put all such points on the
borders.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from revelu.network import Network
from revelu.network.derivative import Layout, MixedDerivative, NetworkDerivative, ParameterArrays
from revelu.numerics.bisection import bisect
from revelu.numerics.float64 import EPS
from revelu.numerics.gauss_newton import (
    Damping,
    Iterative,
    Solver,
    Stop,
    minimise,
    normal_equations,
)
from revelu.probe.heights import Ask, are_between, input_sizes
from revelu.recover.labels.borders import Borders, Pool
from revelu.recover.labels.precision import Told
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Polish:
    """How weights are refined."""

    surplus: float = 1.25
    """Points for each unknown,"""
    each_input: float = 4.0
    """on segments between that many inputs for each of a neuron's weights, at least: those between
    fewer lie in a subspace, and tell nothing of weights across it."""
    each_side: float = 2.0
    """Points on either side of each neuron's hyperplane, for each of its weights."""
    each_entry: int = 8
    """Points on either side among the borders of each class."""
    scales: tuple[float, ...] = (1.0, 2.5, 10.0, 40.0, 160.0)
    n_candidates: int = 20_000
    """Those that are missing there are chosen among these, between inputs of N(0, s²)."""
    most_weighed: int = 600
    """Of ``most_weighed`` weights at most it is seen which changes of them points hardly tell,"""
    weakest: float = 0.03
    """in units in which the derivative of their places has columns of norm 1,"""
    faintest: float = 1e-6
    n_choices: int = 3
    """and points that tell by more than this are added, ``n_choices`` times."""
    coarse: tuple[float, float] = (3.0, 3.0)
    """``surplus`` and ``each_side`` where labels tell few digits, of which they make up for
    some,"""
    told_by: float = 1e-3
    """and as what share of itself a weight is to be told."""
    widths: tuple[float, ...] = (1e-6, 1e-4)
    """How far around a predicted border it is sought, and then farther; relative to an input's
    size."""
    rtol: float = 2.0 * EPS
    """How precisely it is found: to roundings of float64."""
    n_rounds: int = 3
    fewest_met: float = 0.5
    """How often weights are fitted to borders that are met and more are predicted, where a smaller
    share is met at most not at all."""
    n_steps: int = 8
    """Steps of Gauss and Newton."""
    ridge: float = 1e-13
    """What is added to squared singular values, in units in which columns have norm 1."""
    most_parameters: int = 4000
    """Of more weights, whose normal equations take minutes, steps are iterated,"""
    n_iterations: int = 400
    rtol_step: float = 1e-6
    """at most so often each, to these digits."""
    most_points: int = 10_000
    """Of more weights, few borders may be others than predicted, and none are added."""

    def at(self, told: Told) -> "Polish":
        """Return what serves where labels tell few digits.

        More points make up for fewer digits of each.  Predicted borders are off by what rows are,
        and where they are crossed at an angle by more.  A weight that moves points by less than
        their noise as it moves by a share ``told_by`` is not told, and stays.
        """
        surplus, each_side = self.coarse
        first, last = max(self.widths[0], 32.0 * told.places), 64.0 * told.rows
        n = max(int(np.ceil(np.log(last / first) / np.log(8.0))), 1)
        return replace(
            self,
            surplus=surplus,
            each_side=each_side,
            widths=tuple(np.geomspace(first, max(last, self.widths[-1]), n + 1).tolist()),
            rtol=max(self.rtol, told.places / 4.0),
            ridge=max(self.ridge, (told.places / self.told_by) ** 2),
        )


def labels_of(network: Network, X: FloatArray) -> IntArray:
    """The places of the classes of inputs ``X (n, d)``, (n,)."""
    return np.asarray(network(X).argmax(axis=1))


def predicted_borders(
    network: Network, P: FloatArray, Q: FloatArray, classes: FloatArray
) -> tuple[Borders, IntArray]:
    """Where segments first leave the network's class of their first ends; no label is asked.

    Returns
    -------
    borders : Borders
    rows : ndarray of int
        Of the segments that do leave it.
    """
    length = np.linalg.norm(Q - P, axis=1)
    E = (Q - P) / length[:, None]
    first = labels_of(network, P)

    def is_inside(rows: IntArray, t: FloatArray) -> BoolArray:
        return np.asarray(labels_of(network, P[rows] + t[:, None] * E[rows]) == first[rows])

    t = bisect(is_inside, np.zeros(len(P)), length, 0.0)
    beyond = labels_of(network, P + (t + 1e-9 * length)[:, None] * E)
    met = beyond != first
    X = P + t[:, None] * E
    borders = Borders(X[met], E[met], classes[first[met]], classes[beyond[met]])
    return borders, np.flatnonzero(met)


def balanced_borders(network: Network, borders: Borders, pool: Pool, polish: Polish) -> Borders:
    """Predicted borders, with more of them where few are on one side of a neuron's hyperplane.

    What a neuron adds to all others is affine there, and hides in what they add.
    """
    classes, rng, domain = pool.classes, pool.rng, pool.domain
    d = network.dim_in
    if not len(network.weights[0]):
        return borders
    scales = rng.choice(polish.scales, size=(2 * polish.n_candidates, 1))
    P, Q = np.split(scales * domain.draw(rng, (2 * polish.n_candidates, d)), 2)
    more, _ = predicted_borders(network, P, Q, classes)
    has, has_more = (_sides(some, network) for some in (borders, more))
    chosen = np.zeros(len(more), bool)
    groups = [(slice(None), slice(None), int(polish.each_side * (d + 1)))]
    for c in classes:
        own, new = ((some.a == c) | (some.b == c) for some in (borders, more))
        groups.append((own, new, polish.each_entry))
    for own, new, wanted in groups:
        lacking = wanted - has[own].sum(axis=0)
        for side, i in np.argwhere(lacking > 0):
            rows = np.arange(len(more))[new][has_more[new][:, side, i]]
            chosen[rows[: lacking[side, i]]] = True
    borders = borders.joined(more.take(chosen))
    if network.n_parameters > polish.most_weighed:
        return borders
    return telling_borders(network, borders, more.take(~chosen), classes, polish)


def telling_borders(
    network: Network, borders: Borders, more: Borders, classes: FloatArray, polish: Polish
) -> Borders:
    """Predicted borders, with those of others that tell what these hardly do.

    Neurons are on together at some points and not at others.  Where the few points chosen leave
    out a combination, rows may change with each other and keep all of them in their places.  A
    pivoted QR factorisation chooses the points at which such changes show most.  What shows at
    none of them, such as scales, is left open.
    """
    both = _OnBorders.of(network, borders.joined(more), classes)
    # Labels tell places to a share of an input's size.
    size = input_sizes(both.X)
    J = both.derivative(network.to_vector()).matrix() / size[:, None]
    lengths = np.linalg.norm(J[: len(borders)], axis=0)
    J /= np.where(lengths > 0, lengths, 1.0)
    chosen = np.arange(len(J)) < len(borders)
    for _ in range(polish.n_choices):
        told, changes = np.linalg.eigh(J[chosen].T @ J[chosen])
        others = np.flatnonzero(~chosen)
        hidden = J[others] @ changes[:, told < polish.weakest**2]
        R, order = scipy.linalg.qr(hidden.T, mode="r", pivoting=True)
        shown = np.abs(np.diag(R)) > polish.faintest
        if not shown.any():
            break
        chosen[others[order[: len(shown)][shown]]] = True
    return borders.joined(more.take(chosen[len(borders) :]))


def _sides(borders: Borders, network: Network) -> BoolArray:
    """Whether points are on the side of each neuron where it is on, and off, (n, 2, m)."""
    on = np.hstack(network.preactivations(borders.X)) > 0
    return np.stack([on, ~on], axis=1)


def half_widths(ask: Ask, borders: Borders, polish: Polish) -> FloatArray:
    """How far off predicted borders are at most, (n,); NaN where they are not there."""
    n = len(borders)
    size = input_sizes(borders.X)
    widths, left = np.full(n, np.nan), np.arange(n)
    for share in polish.widths:
        if not len(left):
            break
        step = (share * size[left])[:, None] * borders.E[left]
        met = are_between(ask, borders.X[left], step, borders.a[left], borders.b[left])
        widths[left[met]] = share * size[left[met]]
        left = left[~met]
    return widths


def locate(ask: Ask, borders: Borders, widths: FloatArray, polish: Polish) -> Borders:
    """Bisect predicted borders, no farther off than ``widths (n,)``."""
    size = input_sizes(borders.X)

    def is_inside(rows: IntArray, t: FloatArray) -> BoolArray:
        X = borders.X[rows] + t[:, None] * borders.E[rows]
        return np.asarray(ask(X) == borders.a[rows])

    t = bisect(is_inside, -widths, widths, polish.rtol * size)
    return Borders(borders.X + t[:, None] * borders.E, borders.E, borders.a, borders.b)


def refine(network: Network, borders: Borders, classes: FloatArray, polish: Polish) -> Network:
    """Put all points on the borders of a network by Gauss-Newton steps; the best of all.

    What nothing tells, such as the scales of neurons and what all classes have in common, stays.

    Parameters
    ----------
    network : Network
        One output for each class; perhaps with a skip.
    """
    points = _OnBorders.of(network, borders, classes)
    solver: Solver = normal_equations
    if network.n_parameters > polish.most_parameters:
        solver = Iterative(polish.n_iterations, polish.rtol_step)
    ridge = Damping(polish.ridge, polish.ridge, attempts=1, lengths=(1.0,))
    start, stop = network.to_vector(), Stop(polish.n_steps, rtol=0.0)
    return network.like(minimise(points, start, solver, ridge, stop)[0])


@dataclass(frozen=True, eq=False)
class _OnBorders:
    """Points of borders, whose distances from those of a network least squares lowers."""

    X: FloatArray
    mixes: FloatArray
    """Shape (n, 1, k).  What makes distances of outputs, to first order: the difference of two,
    over the slope across the border."""
    layout: Layout

    @classmethod
    def of(cls, network: Network, borders: Borders, classes: FloatArray) -> "_OnBorders":
        """With the slopes of a network that is nearly right."""
        i, mixes = np.arange(len(borders)), np.zeros((len(borders), network.dim_out))
        for sign, places in zip((-1.0, 1.0), borders.pairs(classes), strict=True):
            mixes[i, places] += sign
        at = ParameterArrays.of(network)
        slope = NetworkDerivative(at, borders.X, np.ones(network.dim_out)).by_inputs(mixes)
        length = np.linalg.norm(slope, axis=1, keepdims=True)
        mixes /= np.where(length > 0, length, np.inf)
        return cls(borders.X, mixes[:, None], at.layout)

    def residual(self, p: FloatArray) -> FloatArray:
        """How far points are off, (n,), with the sign of what is wanted."""
        return np.asarray(-(self.mixes[:, 0] * ParameterArrays(self.layout, p)(self.X)).sum(axis=1))

    def derivative(self, p: FloatArray) -> MixedDerivative:
        """How distances change with weights."""
        return MixedDerivative(ParameterArrays(self.layout, p), self.X, self.mixes)
