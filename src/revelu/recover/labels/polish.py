"""All weights at once, to the last digits that border points have.

Where a network is known to a few digits it says where a segment meets a border, so that a point
of it costs half as many labels as without.  Gauss-Newton steps then put all such points on the
borders.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, lsqr

from revelu.network import Network
from revelu.numerics.bisection import bisect
from revelu.recover.labels.borders import Borders
from revelu.recover.labels.heights import Ask
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Polish:
    """How weights are refined.

    Attributes
    ----------
    surplus : float
        Points for each unknown.
    each_side : float
        Points on either side of each neuron's hyperplane, for each of its weights.
    each_entry : int
        Points on either side among the borders of each class.
    scales, n_candidates : tuple, int
        Those that are missing there are chosen among so many, between inputs of N(0, s²).
    widths : tuple of float
        How far around a predicted border it is sought, and then farther; relative to an input's
        size.
    rtol : float
        How precisely it is found: to roundings of float64.
    n_rounds, fewest_met : int, float
        How often weights are fitted to borders that are met and more are predicted, where a
        smaller share is met at most not at all.
    n_steps : int
        Steps of Gauss and Newton.
    ridge : float
        What is added to squared singular values, in units in which columns have norm 1.
    most_parameters : int
        Of more weights, whose normal equations take minutes, steps are iterated,
    n_iterations : int
        at most so often each.
    most_points : int
        No more points than for so many weights are asked: beyond it only the first digits are
        told.
    """

    surplus: float = 1.25
    each_side: float = 2.0
    each_entry: int = 8
    scales: tuple[float, ...] = (1.0, 2.5, 10.0, 40.0, 160.0)
    n_candidates: int = 20_000
    widths: tuple[float, ...] = (1e-6, 1e-4)
    rtol: float = 4e-16
    n_rounds: int = 3
    fewest_met: float = 0.5
    n_steps: int = 8
    ridge: float = 1e-13
    most_parameters: int = 4000
    n_iterations: int = 400
    most_points: int = 10_000


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


def balanced_borders(
    network: Network,
    borders: Borders,
    classes: FloatArray,
    rng: np.random.Generator,
    polish: Polish,
) -> Borders:
    """Predicted borders, with more of them where few are on one side of a neuron's hyperplane.

    What a neuron adds to all others is affine there, and hides in what they add.
    """
    (W, _), (b, _), d = network.weights, network.biases, network.dim_in
    if not len(W):
        return borders
    scales = rng.choice(polish.scales, size=(2 * polish.n_candidates, 1))
    P, Q = np.split(scales * rng.standard_normal((2 * polish.n_candidates, d)), 2)
    more, _ = predicted_borders(network, P, Q, classes)
    has, has_more = (_sides(some, W, b) for some in (borders, more))
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
    return borders.join(more.take(chosen))


def _sides(borders: Borders, W: FloatArray, b: FloatArray) -> BoolArray:
    """Whether points are on the side of each neuron where it is on, and off, (n, 2, m)."""
    on = borders.X @ W.T + b > 0
    return np.stack([on, ~on], axis=1)


def half_widths(ask: Ask, borders: Borders, polish: Polish) -> FloatArray:
    """How far off predicted borders are at most, (n,); NaN where they are not there."""
    n = len(borders)
    size = np.maximum(np.abs(borders.X).max(axis=1, initial=0.0), 1.0)
    widths, left = np.full(n, np.nan), np.arange(n)
    for share in polish.widths:
        if not len(left):
            break
        step = (share * size[left])[:, None] * borders.E[left]
        X = borders.X[left]
        before, behind = ask(np.concatenate([X - step, X + step])).reshape(2, -1)
        met = (before == borders.a[left]) & (behind == borders.b[left])
        widths[left[met]] = share * size[left[met]]
        left = left[~met]
    return widths


def locate(ask: Ask, borders: Borders, widths: FloatArray, polish: Polish) -> Borders:
    """Bisect predicted borders, no farther off than ``widths (n,)``."""
    size = np.maximum(np.abs(borders.X).max(axis=1, initial=0.0), 1.0)

    def is_inside(rows: IntArray, t: FloatArray) -> BoolArray:
        X = borders.X[rows] + t[:, None] * borders.E[rows]
        return np.asarray(ask(X) == borders.a[rows])

    t = bisect(is_inside, -widths, widths, polish.rtol * size)
    return Borders(borders.X + t[:, None] * borders.E, borders.E, borders.a, borders.b)


def refine(network: Network, borders: Borders, classes: FloatArray, polish: Polish) -> Network:
    """Put all points on the borders of a network by Gauss-Newton steps; the best of all.

    Parameters
    ----------
    network : Network
        One hidden layer, and perhaps a skip; one output for each class.
    """
    points = _OnBorders.of(network, borders, classes)
    p = best = network.to_vector()
    least = np.inf
    is_large = p.size > polish.most_parameters
    for _ in range(polish.n_steps):
        rest = points.residual(p)
        cost = float(np.linalg.norm(rest))
        if not cost < least:
            break
        best, least = p, cost
        if is_large:
            p = p + points.iterated_step(p, rest, polish.n_iterations)
        else:
            p = p + _step(points.derivative(p), rest, polish.ridge)
    return network.like(best)


def _step(J: FloatArray, rest: FloatArray, ridge: float) -> FloatArray:
    """The step of Gauss and Newton, in units in which the columns of J have norm 1.

    What nothing tells, such as the scales of neurons and what all classes have in common, stays.
    """
    sizes = np.linalg.norm(J, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    J /= sizes
    normal = J.T @ J
    # Rounding leaves of free directions' eigenvalues as much as this.
    normal[np.diag_indices_from(normal)] += max(ridge, float(np.finfo(np.float64).eps) * len(sizes))
    try:
        factors = scipy.linalg.cho_factor(normal, overwrite_a=True)
    except scipy.linalg.LinAlgError:
        return np.zeros(len(sizes))
    return np.asarray(scipy.linalg.cho_solve(factors, J.T @ rest) / sizes)


@dataclass(frozen=True, eq=False)
class _OnBorders:
    """Points of borders, whose distances from those of a network least squares lowers."""

    X: FloatArray
    a: IntArray
    b: IntArray
    like: Network
    weights: FloatArray

    @classmethod
    def of(cls, network: Network, borders: Borders, classes: FloatArray) -> "_OnBorders":
        """With weights that make differences of outputs distances, to first order."""
        a, b = (np.searchsorted(classes, labels) for labels in (borders.a, borders.b))
        (W, A), (bias, _) = network.weights, network.biases
        on = borders.X @ W.T + bias > 0
        G = _skip_of(network)[0]
        length = np.linalg.norm(((A[b] - A[a]) * on) @ W + G[b] - G[a], axis=1)
        return cls(borders.X, a, b, network, 1.0 / np.where(length > 0, length, np.inf))

    def residual(self, p: FloatArray) -> FloatArray:
        """How far points are off, (n,), with the sign of what is wanted."""
        Y = self.like.like(p)(self.X)
        i = np.arange(len(self.X))
        return np.asarray((Y[i, self.a] - Y[i, self.b]) * self.weights)

    def derivative(self, p: FloatArray) -> FloatArray:
        """Of how far points are off by all weights, (n, n_parameters)."""
        D, H = self._active(p)
        (k, m), d, n = self.like.weights[1].shape, self.X.shape[1], len(self.X)
        i = np.arange(n)
        J = np.zeros((n, p.size))
        ends = np.cumsum([m * d, k * m, m, k, k * d])
        of_W, of_A, of_bias, of_c, of_G, of_e = np.split(J, ends, axis=1)
        of_W[:] = (D[:, :, None] * self.X[:, None]).reshape(n, -1)
        of_bias[:] = D
        for side, sign in ((self.b, 1.0), (self.a, -1.0)):
            of_A.reshape(n, k, m)[i, side] += sign * H
            of_c[i, side] += sign * self.weights
            if of_G.size:
                of_G.reshape(n, k, d)[i, side] += sign * self.weights[:, None] * self.X
                of_e[i, side] += sign * self.weights
        return J

    def iterated_step(self, p: FloatArray, rest: FloatArray, n_iterations: int) -> FloatArray:
        """The step of Gauss and Newton by LSQR, which never forms the derivative.

        It starts from 0 and leaves alone what nothing tells.
        """
        D, H = self._active(p)
        n, k = len(self.X), len(self.like.biases[1])
        X, w, i = self.X, self.weights, np.arange(n)
        R = np.zeros((n, k))
        R[i, self.b], R[i, self.a] = 1.0, -1.0
        squares = self._gathered(D**2, H**2, X**2, np.abs(R), w**2, np.ones(n))
        sizes = np.sqrt(np.where(squares > 0, squares, 1.0))

        def forward(q: FloatArray) -> FloatArray:
            parts = self.like.like(q / sizes)
            (W, A), (bias, c), (G, e) = parts.weights, parts.biases, _skip_of(parts)
            moved = (D * (X @ W.T + bias)).sum(axis=1) + (R * (H @ A.T)).sum(axis=1)
            return np.asarray(moved + (R * (X @ G.T + c + e)).sum(axis=1) * w)

        def backward(r: FloatArray) -> FloatArray:
            return self._gathered(D, H, X, R, w, r) / sizes

        J = LinearOperator((n, p.size), matvec=forward, rmatvec=backward, dtype=np.float64)
        step = lsqr(J, rest, atol=0.0, btol=1e-6, conlim=0.0, iter_lim=n_iterations)[0]
        return np.asarray(step / sizes)

    def _active(self, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Differences of outputs by preactivations, and activations; both weighted, (n, m)."""
        net = self.like.like(p)
        (W, A), (bias, _) = net.weights, net.biases
        Z = self.X @ W.T + bias
        D = (A[self.b] - A[self.a]) * (Z > 0) * self.weights[:, None]
        return D, np.maximum(Z, 0.0) * self.weights[:, None]

    def _gathered(
        self,
        D: FloatArray,
        H: FloatArray,
        X: FloatArray,
        R: FloatArray,
        w: FloatArray,
        r: FloatArray,
    ) -> FloatArray:
        """What points ``r (n,)`` say of each weight: the transposed derivative times r."""
        Dr, Rr = D * r[:, None], R * r[:, None]
        of_c = w @ Rr
        parts = [Dr.T @ X, Rr.T @ H, Dr.sum(axis=0), of_c]
        if self.like.skip is not None:
            parts += [(Rr * w[:, None]).T @ X, of_c]
        return np.concatenate([part.ravel() for part in parts])


def _skip_of(network: Network) -> tuple[FloatArray, FloatArray]:
    """The skip of a network, or none: ``G (k, d)`` and ``e (k,)``."""
    if network.skip is not None:
        return network.skip
    return np.zeros((network.dim_out, network.dim_in)), np.zeros(network.dim_out)
