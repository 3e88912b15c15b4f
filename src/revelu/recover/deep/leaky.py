"""Leaky units: LeakyReLU and PReLU, any number of hidden layers that do not grow wider.

    h_i = max(z_i, 0) + s_i min(z_i, 0),    z_i = W_i h_{i-1} + b_i,    s_i > 0

A leaky neuron passes a signal on at both sides of its hyperplane, and never loses what it reads:
where no layer is wider than the one below, with independent rows, every ``h`` is what a layer makes
of ``x = W^+ (z - b)``, with ``z = h`` where that is positive and ``h / s`` elsewhere.  What lies
above a layer so becomes a target of its own, everywhere and not on an orthant alone, and its lowest
layer is recovered as the first was:

1. the first layer's hyperplanes go straight on (:mod:`revelu.recover.deep.first_layer`);
2. along a column of ``W^+`` one neuron's sum changes and no other's: on the two sides of its
   hyperplane the function changes by 1 and by s;
3. the layer is undone; what is left is one hidden layer (:mod:`revelu.recover.shallow`), or there
   is another one like it;
4. the skip of the last layer says its slopes (:mod:`revelu.network.slopes`), and all layers are
   fitted to fresh answers.
"""

import logging
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.network import LayeredNetwork, Network, with_slopes
from revelu.network.layers import Dense, Layer, Prelu, Relu
from revelu.oracle import NoiseFloor, Oracle, measure_noise
from revelu.probe.hyperplane import points_on_hyperplanes
from revelu.recover.deep.first_layer import FirstLayerRows, FirstLayerSearch
from revelu.recover.line import Peeling
from revelu.recover.method import Candidate, Disagreement, Method, Search, Why
from revelu.recover.refine.layered_fit import fit_layers
from revelu.recover.refine.network_fit import Samples
from revelu.recover.shallow.lines import ended, first_line
from revelu.recover.shallow.one_hidden import OneHidden
from revelu.recover.signs import resolve_signs
from revelu.types import FloatArray

log = logging.getLogger(__name__)


class LeakyLayer:
    """A layer of leaky units that can be undone.

    Parameters
    ----------
    W : ndarray, shape (k, d)
        Independent rows.
    b : ndarray, shape (k,)
    slopes : ndarray, shape (k,)
        Positive.
    """

    def __init__(self, W: FloatArray, b: FloatArray, slopes: FloatArray) -> None:
        self.dense, self.units = Dense(W, b), Prelu(slopes)
        self.inverse = np.linalg.pinv(W)

    def __call__(self, X: FloatArray) -> FloatArray:
        """What it puts out, (n, d) -> (n, k)."""
        return self.units(self.dense(X))

    def undone(self, H: FloatArray) -> FloatArray:
        """The shortest inputs that it takes to ``H``, (n, k) -> (n, d)."""
        return np.asarray((self.units.inverse()(H) - self.dense.b) @ self.inverse.T)

    def above(self, oracle: Oracle) -> Oracle:
        """What lies above it as a target of its own, whose queries are the oracle's."""
        whole = 2**30  # the oracle itself cuts rows into requests

        def ask(H: FloatArray) -> FloatArray:
            return oracle(self.undone(H))

        return Oracle(ask, len(self.dense.b), name=oracle.name, batch_rows=whole)


@dataclass(frozen=True)
class SlopeMeasurement:
    """The measurement of slopes."""

    n_points: int = 6
    """Of each hyperplane; those that say the same count, for some lie beside another neuron's."""
    steps: tuple[float, ...] = (1e-2, 1e-3)
    """Where the function is asked at either side, relative to the point, one after another until
    points say the same: the longer, the less is lost to rounding, and the more neurons above bend
    the function in between."""
    inner: float = 0.1
    """The share of a step where it is asked, too: what a row is off by moves the hyperplane, not
    the slopes."""
    alike: float = 1e-4
    """Two points of a hyperplane say the same slope if they differ by less than this share."""

    def measure(
        self,
        oracle: Oracle,
        noise: NoiseFloor,
        W: FloatArray,
        b: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return what the negative side passes on, of what the other does; nan if points differ.

        Parameters
        ----------
        W, b : ndarray, shape (k, d) and (k,)
            Of the whole layer.
        """
        slopes = np.full(len(W), np.nan)
        for step in self.steps:
            left = np.flatnonzero(np.isnan(slopes))
            if not len(left):
                break
            rows = np.repeat(left, self.n_points)
            X, _ = points_on_hyperplanes(rng, W[rows], b[rows])
            Z = np.linalg.pinv(W).T[rows]
            Z *= step * (np.linalg.norm(X, axis=1) / np.linalg.norm(Z, axis=1))[:, None]
            asked = [X + t * Z for t in (1.0, self.inner, -self.inner, -1.0)]
            Y = np.split(oracle(np.vstack(asked)) / noise.unit, 4)
            on, off = Y[0] - Y[1], Y[2] - Y[3]
            products = (on * off).sum(axis=1), (on * on).sum(axis=1)
            slopes[left] = self._agreed(*(p.reshape(len(left), -1) for p in products))
        return slopes

    def _agreed(self, products: FloatArray, squares: FloatArray) -> FloatArray:
        """Slopes of neurons whose points say the same, by least squares over these points."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = products / squares
            typical = np.median(ratios, axis=1, keepdims=True)
            near = np.abs(ratios - typical) <= self.alike * np.abs(typical)
            agreed = (products * near).sum(axis=1) / (squares * near).sum(axis=1)
        return np.where(near.sum(axis=1) > 1, agreed, np.nan)


@dataclass(frozen=True)
class _Looks:
    """Answers that an upper layer is held against."""

    H: FloatArray
    """Shape (n, k).  What the layers below put out."""
    Y: FloatArray
    """Shape (n, k')."""
    noise: NoiseFloor
    """Of what is above them."""

    def apart(self, upper: Network) -> FloatArray:
        """Largest errors, in units of the outputs, shape (n,)."""
        return np.asarray(np.abs((upper(self.H) - self.Y) / self.noise.unit).max(axis=1))

    def agree(self, upper: Network) -> bool:
        """Whether no error is larger than half of the digits."""
        return bool((self.apart(upper) <= self.noise.half_digits).all())

    def against(self, upper: Network, most: int = 16) -> Disagreement:
        """What they say against an upper layer."""
        apart = self.apart(upper)
        wrong = apart > self.noise.half_digits
        share = float(1.0 - wrong.mean())
        H = self.H[wrong][:most]
        return Disagreement(H, self.H[apart.argmax()], share, self.agree, float(apart.max()))


@dataclass
class LeakySearch(Search):
    """Layers of leaky units, undone one after another, and one hidden layer above them."""

    method: "Leaky"
    known: list[LeakyLayer] = field(default_factory=list, init=False)
    """The lowest first."""
    upper: Search = field(init=False)
    """Of what is above them."""

    def propose(self) -> Candidate:
        """Undo layer after layer until one hidden layer explains what is left."""
        self.tell("recovering layers of leaky units")
        return self.until_limit(self._undone)

    def _undone(self) -> Candidate:
        line = self.paid.line or first_line(self.oracle, self.noise, self.rng)
        if not line.scan.complete:
            return ended(line.scan)
        asked, noise = self.oracle, self.noise
        while True:
            obstacle = self._add_layer(asked, noise, line)
            if obstacle:
                return Candidate(None, Why.UNRESOLVED, obstacles=(obstacle,))
            asked = self.known[-1].above(asked)
            measured = measure_noise(asked, int(self.rng.integers(2**32)))
            noise = replace(measured, nu=np.maximum(measured.nu, self.method.blur))
            self.upper = OneHidden().start(asked, noise, self.rng, self.tell)
            said = self._settled(self.upper.propose(), noise)
            if said.why is not Why.HYPERPLANES_END or said.paid.line is None:
                return self._candidate(said)
            line = said.paid.line

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Look for what is missing above the known layers where the network was wrong."""
        if not self.known or self.n_repairs == self.method.max_repairs:
            return None
        self.n_repairs += 1

        def go_on() -> Candidate | None:
            said = self.upper.repair(self._lifted(seen))
            return None if said is None else self._candidate(said)

        return self.until_limit(go_on)

    def _add_layer(self, oracle: Oracle, noise: NoiseFloor, line: Peeling) -> str:
        """Find the lowest layer of what is asked, or say why it cannot be undone."""
        if self.paid.first is not None and not self.known:
            W, b = self.paid.first.W, self.paid.first.b
            first = FirstLayerRows(W, b, 0, np.ones(len(W), dtype=bool), len(W))
        else:
            first = FirstLayerSearch(oracle, noise, self.rng).find(line)
            W, b = first.W, first.b
        n, below = len(W), len(self.known)
        where = f"of hidden layer {below + 1}"
        if len(self.known) == self.method.max_layers:
            return f"{below} hidden layers were undone, and more are above"
        if not n or n > oracle.dim_in:
            return f"{n} neurons {where} read {oracle.dim_in} numbers: they cannot be undone"
        if first.is_dependent():
            return f"the {n} rows {where} are dependent: they cannot be undone"
        slopes = self.method.slopes.measure(oracle, noise, W, b, self.rng)
        is_leaky = slopes > self.method.least_slope
        if not is_leaky.all():
            return f"{int((~is_leaky).sum())} of the {n} neurons {where} are no leaky units"
        turned = slopes > 1.0
        signs, slopes = np.where(turned, -1.0, 1.0), np.where(turned, 1.0 / slopes, slopes)
        self.known.append(LeakyLayer(signs[:, None] * W, signs * b, slopes))
        log.info("leaky layer %d: %d neurons, %d queries", below + 1, n, self.oracle.n_queries)
        return ""

    def _settled(self, said: Candidate, noise: NoiseFloor) -> Candidate:
        """Repair the upper layer until fresh answers of N(0, I) agree."""
        for _ in range(self.method.max_repairs):
            if said.network is None or said.why is Why.LIMIT:
                break
            X = self.rng.standard_normal((self.method.n_looks, self.oracle.dim_in))
            looks = _Looks(self._hidden(X), self.oracle(X), noise)
            if looks.agree(said.network):
                break
            repaired = self.upper.repair(looks.against(said.network))
            if repaired is None:
                break
            said = repaired
        return said

    def _hidden(self, X: FloatArray) -> FloatArray:
        for layer in self.known:
            X = layer(X)
        return X

    def _lifted(self, seen: Disagreement) -> Disagreement:
        """The same as what the upper layer is asked."""

        def agrees(upper: Network) -> bool:
            return seen.agrees(self._whole(upper))

        X, worst = self._hidden(seen.X), self._hidden(seen.worst[None])[0]
        return Disagreement(X, worst, seen.share, agrees, seen.error)

    def _candidate(self, said: Candidate) -> Candidate:
        """The whole network, fitted to fresh answers where it can be."""
        n = len(self.known)
        below = f"{n} hidden layer{'s' * (n > 1)} of leaky units"
        if said.network is None:
            why = Why.LIMIT if said.why is Why.LIMIT else Why.UNRESOLVED
            return Candidate(None, why, obstacles=(f"above {below}", *said.obstacles))
        network = self._whole(self._without_shadows(said.network))
        if said.why is Why.EXPLAINED:
            network = self._fitted(network)
        # The upper layer's skip is no part of a network of layers.
        notes = () if isinstance(network, LayeredNetwork) else said.notes
        return Candidate(network, said.why, notes=notes, obstacles=said.obstacles)

    def _whole(self, upper: Network) -> Network:
        """The known layers below a network of what they put out."""
        layers: list[Layer] = [part for layer in self.known for part in (layer.dense, layer.units)]
        top = with_slopes(upper, self.noise.half_digits, is_likely=True)
        if isinstance(top, LayeredNetwork):
            return LayeredNetwork([*layers, *top.layers])
        (W, A), (b, c) = top.weights, top.biases
        plain = LayeredNetwork([*layers, Dense(W, b), Relu(), Dense(A, c)])
        if top.skip is None:
            return plain
        slopes = self.known[-1].units.slopes
        M = np.hstack([np.eye(len(slopes)), -np.diag(slopes)])
        dense = plain.to_dense()
        return Network(dense.weights, dense.biases, (top.skip[0] @ M, top.skip[1]))

    def _without_shadows(self, upper: Network) -> Network:
        """Leave out faint neurons on a coordinate's hyperplane: what the layer below is off by.

        Where a neuron below bends a little beside its own hyperplane, the difference bends twice.
        """
        W, A = upper.weights
        if not len(W):
            return upper
        rows = np.abs(W) / np.linalg.norm(W, axis=1, keepdims=True)
        strengths = np.linalg.norm(W, axis=1) * np.linalg.norm(A, axis=0)
        same = self.method.shadow
        is_shadow = (rows.max(axis=1, initial=0.0) > 1.0 - same) & (
            strengths < same * np.median(strengths)
        )
        if not is_shadow.any():
            return upper
        return resolve_signs(upper.take(np.flatnonzero(~is_shadow)), self.noise.half_digits)[0]

    def _fitted(self, network: Network) -> Network:
        """Fit all layers, where they are layers and not too many numbers."""
        p = network.n_parameters
        n = int(np.ceil(self.method.n_equations * p / network.dim_out))
        if not isinstance(network, LayeredNetwork) or p > self.method.most_fitted:
            return network
        if not self.oracle.affords(n):
            return network
        X = self._telling(network, n)
        with self.oracle.phase("polish"):
            samples = Samples.answered(X, self.oracle(X), self.noise)
        return fit_layers(network, samples)

    def _telling(self, network: LayeredNetwork, n: int) -> FloatArray:
        """Inputs that tell all numbers: some of N(0, I), others around every hyperplane.

        Few inputs of N(0, I) are on a side that a neuron hardly ever has, and tell its slope.
        """
        dense = [layer for layer in network.layers if isinstance(layer, Dense)][:-1]
        groups = [self.rng.standard_normal((n - n // 2, network.dim_in))]
        shares = np.array_split(np.arange(n // 2), len(dense))
        for below, (layer, share) in enumerate(zip(dense, shares, strict=True)):
            rows = share % len(layer.b)
            H, normals = points_on_hyperplanes(self.rng, layer.W[rows], layer.b[rows])
            H += self.rng.standard_normal((len(rows), 1)) * normals
            for known in reversed(self.known[:below]):
                H = known.undone(H)
            groups.append(H)
        return np.vstack(groups)


@dataclass(frozen=True)
class Leaky(Method):
    """Hidden layers of LeakyReLU or PReLU, none wider than the one below; the last one may be."""

    name = "leaky"
    purpose = "layers of LeakyReLU or PReLU, none wider than the one below"
    hidden = (2, None)
    cost = "2 to 6"
    search = LeakySearch

    least_slope: float = 1e-4
    """A slope that is less is a ReLU's, which loses what it reads."""
    slopes: SlopeMeasurement = field(default_factory=SlopeMeasurement)
    """How they are measured."""
    blur: float = 1e-11
    """What is asked through layers that were measured is taken to err so much at least, relative to
    its size: where they are off by little, it bends a little beside their hyperplanes."""
    max_layers: int = 12
    """That are undone."""
    n_looks: int = 128
    """Fresh answers that tell whether one hidden layer is left,"""
    max_repairs: int = 6
    """and searches for what that lacks."""
    shadow: float = 1e-6
    """Neurons fainter than this share of the others that lie on a coordinate's hyperplane are what
    the layer below is off by."""
    n_equations: float = 1.5
    """Answers a number for the fit of all layers,"""
    most_fitted: int = 4000
    """unless there are more numbers."""

    def obstacle(self, oracle: Oracle, noise: NoiseFloor) -> str:
        """Log-ratios end where a probability has no digits, and it asks far out."""
        del noise
        return "of probabilities, layers cannot be undone" if oracle.link.saturates else ""
