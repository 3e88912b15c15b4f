"""Networks of any depth, layer by layer from kinks and the gradients beside them.

    f(x) = A relu(W_L ... relu(W_2 relu(W_1 x + b_1) + b_2) ... + b_L) + c

Beyond DG21, which closes with "we believe it is possible to prove similar results ... for
deeper models".  From the input up: the rows of a layer from the kinks that agree on them, their
signs and their number from gradients (``layer``), the outputs where the layer is the last
(``output_layer``).  What fresh points then find wrong is where kinks were missed: they are gathered
there, and all is solved again from all kinks, which asks next to nothing.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np
from scipy.spatial.distance import cdist

from revelu.errors import CurvedError, LimitReachedError
from revelu.network import Network
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.deep.layer import find_layer, last_layer, oriented, solve_layer
from revelu.recover.deep.layer_estimate import FoundLayer, stack_of
from revelu.recover.deep.missing_weights import WeightFit, absorb_skip
from revelu.recover.deep.output_layer import is_faint, within_neurons, without_skip
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.state import DeepSearch, DeepTuning
from revelu.recover.method import Candidate, Disagreement, Layer, Method, Search, Why
from revelu.recover.refine.polish import polish_to_known
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass
class Climb(Search):
    """A deep network under way, from the input up.

    Attributes
    ----------
    search : DeepSearch
    layers : list of FoundLayer
    network : Network, optional
        The best so far.
    X, Y : ndarray, shape (n, d) and (n, k)
        Points that it is held against.
    near : (ndarray, ndarray), shape (m, d) and (m, k)
        Points asked around those at which it was wrong, and the answers.
    latest : list of FoundLayer
        The layers as last solved for, whether the network was better for them or not.
    n_backtracks : int
        How often it has gone back to a layer that lacked a neuron.
    shares : list of float
        At which shares of all inputs asked networks agreed that did not pass.
    """

    method: "Deep"
    search: DeepSearch = field(init=False)
    layers: list[FoundLayer] = field(default_factory=list)
    network: Network | None = None
    X: FloatArray = field(init=False)
    Y: FloatArray = field(init=False)
    near: tuple[FloatArray, FloatArray] = field(init=False)
    latest: list[FoundLayer] = field(default_factory=list, init=False)
    n_backtracks: int = field(default=0, init=False)
    shares: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        d, k, tuning = self.oracle.dim_in, len(self.noise.scale), self.method.tuning
        self.search = DeepSearch(self.oracle, self.noise, self.rng, Stack(d), tuning)
        self.X, self.Y = np.empty((0, d)), np.empty((0, k))
        self.near = self.X, self.Y

    def propose(self) -> Candidate:
        """Climb, then look again until fresh points find nothing wrong."""
        self.tell("recovering layer by layer")
        return self._until_limit(self._begin)

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Look for what is missing at inputs where the network was wrong."""
        self.shares.append(seen.share)
        if self._gives_up():
            return None
        self.tell("looking for neurons that fire where the network was wrong")

        def go_on() -> None:
            self._hold_against(seen.X)
            self._explain(self.method.n_look)

        return self._until_limit(go_on)

    def _begin(self) -> None:
        self._climb()
        if self.network is not None:
            self._explain(self.search.tuning.inputs.n_last(self.network))

    def _gives_up(self) -> bool:
        """Whether another repair is in vain."""
        if self.network is None or self._wrong(self.network).any():
            return True
        if len(self.network.weights) > 2:
            return len(self.shares) > self.method.max_repairs
        best = max(range(len(self.shares)), key=self.shares.__getitem__)
        in_vain = len(self.shares) - 1 - best
        return in_vain >= self.method.shallow_patience or len(self.shares) > self.method.max_repairs

    def _until_limit(self, go_on: Callable[[], None]) -> Candidate:
        try:
            go_on()
            return self._finish()
        except LimitReachedError as error:
            return self._candidate(Why.LIMIT, str(error))
        except CurvedError as error:
            return Candidate(None, Why.CURVED, obstacles=(str(error),))

    def _climb(self) -> None:
        """Find layer after layer until one is the last; go back to one that lacks a neuron."""
        search = self.search
        while len(search.stack) < self.method.max_layers:
            layer = find_layer(search, is_in_vain=self._must_backtrack)
            if not layer.is_complete and self._must_backtrack():
                doubtful = self._doubtful()
                log.info("layer %d lacks a neuron", doubtful + 1)
                search.stack, self.layers = search.stack[:doubtful], self.layers[:doubtful]
                self.n_backtracks += 1
                continue
            # With no kink anywhere it is an affine map.
            if not len(layer.b) and (len(search.stack) or len(search.witnesses)):
                return
            last = last_layer(search, layer)
            self.network = self._fit(last)
            self.layers.append(layer if self.network is None else last)
            if self.network is not None or layer.is_refuted or not len(layer.b):
                return
            search.stack = search.stack.with_layer(layer.W, layer.b)

    def _must_backtrack(self) -> bool:
        """Whether gradients gathered since show that a layer below lacks a neuron."""
        return self.n_backtracks < self.method.max_backtracks and self._doubtful() < len(
            self.layers
        )

    def _doubtful(self) -> int:
        """The lowest layer that explained all gradients then and does not now; or how many."""
        search, stack = self.search, self.search.stack
        for i, layer in enumerate(self.layers):
            search.stack = stack[:i]
            is_doubtful = layer.is_complete and not oriented(search, layer).is_complete
            search.stack = stack
            if is_doubtful:
                return i
        return len(self.layers)

    def _fit(self, layer: FoundLayer) -> Network | None:
        search = self.search
        fit = search.tuning.outputs.find
        return fit(search.oracle, search.noise, search.stack, layer.turning, search.rng)

    def _solve_again(self) -> None:
        """Find the same number of layers from the kinks known; keep what explains more."""
        search, n_layers = self.search, len(self.layers)
        search.above = stack_of(self.layers, search.oracle.dim_in)
        search.stack, layers = Stack(search.oracle.dim_in), []
        for i in range(n_layers):
            layer = solve_layer(search)
            if not len(layer.b):
                return
            layers.append(layer)
            if i < n_layers - 1:
                search.stack = search.stack.with_layer(layer.W, layer.b)
        layers[-1] = last_layer(search, layers[-1])
        self.latest = layers
        network = self._fit(layers[-1])
        log.info("solved again: %s; %s", network, "; ".join(map(str, layers)))
        if network is None:
            return
        network = self._with_weights(network, layers)
        if self.network is None or self._is_no_worse(network, self.network):
            self.network, self.layers = network, layers

    def _with_weights(self, network: Network, layers: list[FoundLayer]) -> Network:
        """Fit what no kink has shown to the answers, where that explains more."""
        missing = [layer.undetermined for layer in (*layers[:-1], layers[-1].turning)]
        if len(network.weights) != len(missing) + 1 or len(network.weights[-2]) != len(missing[-1]):
            return network
        if any(rows.any() for rows in missing):
            X = self.search.tuning.inputs.informative(network, missing, self.search.rng)
            self.near = (
                np.vstack([self.near[0], X]),
                np.vstack([self.near[1], self.search.oracle(X)]),
            )
        X, Y = np.vstack([self.X, self.near[0]]), np.vstack([self.Y, self.near[1]])
        fit = WeightFit(missing, X, Y)
        network = self._better(fit.fit(network), network)
        network = self._better(absorb_skip(network, missing[-1]), network)
        network = self._better(fit.reactivate(network), network)
        return self._better(fit.fit_always_on(network, self.search.rng), network)

    def _better(self, network: Network, before: Network) -> Network:
        return network if self._is_no_worse(network, before) else before

    def _is_no_worse(self, network: Network, other: Network) -> bool:
        """Whether no more points are wrong, or as many and no more around those."""
        mine, others = (
            (self._wrong(n).sum(), self._is_wrong(*self.near, n).sum()) for n in (network, other)
        )
        return bool(mine <= others)

    def _hold_against(self, X: FloatArray) -> None:
        X, Y = self._asked(X)
        self.X, self.Y = np.vstack([self.X, X]), np.vstack([self.Y, Y])

    def _asked(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The inputs that are answered by numbers, and the answers: a target may be saturated."""
        Y = self.search.oracle(X)
        alive = np.isfinite(Y).all(axis=1)
        return X[alive], Y[alive]

    def _wrong(self, network: Network) -> BoolArray:
        """At which of the points asked a network is wrong, shape (n,)."""
        return self._is_wrong(self.X, self.Y, network)

    def _is_wrong(self, X: FloatArray, Y: FloatArray, network: Network) -> BoolArray:
        scale = self.noise.scale * self.noise.growth(X)[:, None]
        return np.asarray((np.abs(network(X) - Y) > self.method.wrong * scale).any(axis=1))

    def _explain(self, n_last: int) -> None:
        """Repair until so many fresh points in a row are right."""
        rng, d, inputs = self.rng, self.oracle.dim_in, self.search.tuning.inputs
        n_right = repairs = 0
        is_searched = False
        in_vain, fewest = 0, len(self.X) + n_last
        while self.network is not None:
            wrong = self._wrong(self.network)
            if not wrong.any() and n_right < n_last:
                if not n_right:
                    self._hold_against(inputs.rare(self.network, rng))
                n = min(max(self.method.n_look, n_right), n_last - n_right)
                X = rng.standard_normal((n, d)) * rng.choice(self.method.spreads, n)[:, None]
                self._hold_against(X)
                n_right += n
                continue
            if not wrong.any():
                if is_searched:
                    return
                is_searched = True
                found = inputs.suspects(self.network, self.search.witnesses, self.search.noise, rng)
                self._hold_against(found)
                continue
            if repairs == self.method.max_rounds or in_vain == self.method.patience:
                return
            log.info(
                "repair %d: %d of %d wrong, %s", repairs, wrong.sum(), len(wrong), self.network
            )
            # What was right before and is right now still counts.
            n_right, is_searched = min(n_right, n_last - self.method.n_look), False
            repairs += 1
            in_vain = in_vain + 1 if wrong.sum() >= fewest else 0
            fewest = int(wrong.sum())
            self._gather_around(self.network, wrong)
            self.search.gather_across(self.latest)
            self._solve_again()

    def _gather_around(self, network: Network, wrong: BoolArray) -> None:
        """Gather kinks where the network begins to be wrong, and around wrong points."""
        search, rng = self.search, self.search.rng
        bad = self.X[np.resize(rng.permutation(np.flatnonzero(wrong)), self.method.n_wrong)]
        size = np.linalg.norm(bad, axis=1)[:, None] / np.sqrt(bad.shape[1])
        away = bad + self.method.near * size * rng.standard_normal(bad.shape)
        stack, search.stack = search.stack, search.stack[:1]
        search.gather_on(bad, away)
        near, is_wrong = self._zoom(network, bad)
        bad = np.vstack([bad, rng.permutation(near[is_wrong])[: self.method.n_wrong]])
        good = np.vstack([self.X[~wrong], near[~is_wrong]])
        if len(good):
            order = cdist(bad, good).argsort(axis=1)
            chosen = order[np.arange(len(bad)), rng.integers(min(3, len(good)), size=len(bad))]
            search.gather_on(*self._borders(network, bad, good[chosen]), border=True)
        search.stack = stack

    def _zoom(self, network: Network, bad: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Points around wrong ones, shape (n, d), and which of them are wrong too.

        What is wrong once in a thousand points of N(0, I) is often wrong near where it was.
        """
        rng = self.search.rng
        centres = bad[rng.integers(len(bad), size=self.method.n_zoomed)]
        size = np.linalg.norm(centres, axis=1)[:, None] / np.sqrt(bad.shape[1])
        X = centres + self.method.zoom * size * rng.standard_normal(centres.shape)
        X, Y = self._asked(X)
        self.near = np.vstack([self.near[0], X]), np.vstack([self.near[1], Y])
        return X, self._is_wrong(X, Y, network)

    def _borders(
        self, network: Network, bad: FloatArray, good: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bisect for where the network begins to be wrong; short segments around there."""
        lo, hi = np.zeros((len(bad), 1)), np.ones((len(bad), 1))
        for _ in range(self.method.n_halvings):
            middle = (lo + hi) / 2
            X = good + middle * (bad - good)
            wrong = self._is_wrong(X, self.search.oracle(X), network)[:, None]
            lo, hi = np.where(wrong, lo, middle), np.where(wrong, middle, hi)
        width = self.method.beside * (hi - lo)
        return good + (lo - width) * (bad - good), good + (hi + width) * (bad - good)

    def _finish(self) -> Candidate:
        if self.network is None:
            self.network = self._lower()
            n = len(self._exact_layers)
            obstacles = [f"{n} layers were found; what is above them was not understood"]
            if self.layers and self.layers[-1].is_refuted:
                obstacles.append(
                    f"of layer {len(self.layers)} {len(self.layers[-1].b)} hyperplanes were found, "
                    "but as neurons that are off on one side they explain few gradients: they are "
                    "no ReLUs, or several neurons that hardly ever rest are missing"
                )
            return self._candidate(Why.UNRESOLVED, *obstacles)
        network = self.network.take(~is_faint(self.network))
        plain = (n for n in within_neurons(network) if self._is_no_worse(n, network))
        network = next(plain, None) or without_skip(network, self.search.rng)
        wrong, right = self._wrong(self.network), ~self._wrong(network)
        noise = self.search.noise
        self.network = polish_to_known(network, self.X[right], self.Y[right], noise)
        if wrong.any():
            told = f"the network was wrong at {wrong.sum():,} of {len(wrong):,} inputs asked"
            return self._candidate(Why.UNRESOLVED, told)
        return self._candidate(Why.EXPLAINED)

    @property
    def _exact_layers(self) -> list[FoundLayer]:
        """The lowest layers, as far as all are exact and no solution since has a neuron more."""
        latest = [len(layer.b) for layer in self.latest or self.layers]
        pairs = zip(self.layers, latest, strict=False)
        return [y for y, _ in takewhile(lambda p: p[0].is_exact and p[1] <= len(p[0].b), pairs)]

    def _lower(self) -> Network | None:
        """The exact layers, and what an affine map of the highest can do."""
        layers = self._exact_layers
        if not layers:
            return None
        weights, biases = [y.W for y in layers], [y.b for y in layers]
        search = self.search
        n = self.method.n_affine * (len(biases[-1]) + 1)
        X = search.rng.standard_normal((n, search.oracle.dim_in))
        X, Y = self._asked(X)
        h = Stack(search.oracle.dim_in, weights, biases).outputs(X)
        A = np.linalg.lstsq(np.column_stack([h, np.ones(len(X))]), Y, rcond=None)[0].T
        return Network([*weights, A[:, :-1]], [*biases, A[:, -1]])

    def _candidate(self, why: Why, *obstacles: str) -> Candidate:
        layers: list[Layer] = [(layer.W, layer.b) for layer in self._exact_layers]
        if self.network is not None and len(self.network.weights) == len(self.layers) + 1:
            polished_layers = zip(self.network.weights, self.network.biases, strict=True)
            layers = [
                new if self._is_same(new[0], old[0]) else old
                for old, new in zip(layers, polished_layers, strict=False)
            ]
        refuted = any(layer.is_refuted for layer in self.layers[:1])
        worst = 0.0
        if why is Why.UNRESOLVED and self.network is not None:
            worst = float(np.abs(self.network(self.X) - self.Y).max(initial=0.0))
        return Candidate(
            self.network,
            Why.REFUTED if refuted and why is Why.UNRESOLVED else why,
            layers=tuple(layers),
            obstacles=obstacles,
            worst_error=worst,
            figures={"layers": layers, "refuted": refuted},
        )

    def _is_same(self, W: FloatArray, other: FloatArray) -> bool:
        return W.shape == other.shape and bool((np.abs(W - other) < self.method.close).all())


@dataclass(frozen=True)
class Deep(Method):
    """Any number of hidden layers, of any width, layer by layer.

    Attributes
    ----------
    max_inputs : int
        A kink costs two gradients, and all of a layer's are compared with each other.
    max_layers : int
        Hidden layers after which the climb is given up.
    max_backtracks : int
        Times that it goes back to a layer that lacks a neuron.
    n_look : int
        Fresh points of one look for errors.
    spreads : tuple of float
        Standard deviations that they are drawn at.
    max_rounds : int
        Times that kinks are gathered around errors and all is solved again, in one search.
    patience : int
        Of those in a row that leave as many points wrong.
    max_repairs : int
        Searches after failed certificates.
    shallow_patience : int
        Of those in a row after which no more checks agree, of a network of one hidden layer:
        other methods have tried to repair that one.
    n_wrong : int
        Wrong points that one round looks at.
    near : float
        Length of the segments from a wrong point that lead anywhere, relative to its size.
    n_zoomed : int
        Points asked around wrong ones.
    zoom : float
        How far from those, relative to their size.
    n_halvings : int
        Halvings of the way from a right point to a wrong one.
    beside : float
        How much further to either side of what they leave a kink is looked for.
    close : float
        Rows of norm 1 that the last fit has moved no further are the same.
    wrong : float
        An error, relative to the size of the answers, that what is right stays under before
        the last fit.
    n_affine : int
        Points for each unknown of an affine map that stands for what was not understood.
    tuning : DeepTuning
        Of the search for one layer after the other.
    """

    name = "deep"
    hidden = (1, None)
    cost = "100 to 200"
    max_starts = 2
    search = Climb

    max_inputs: int = 128
    max_layers: int = 12
    max_backtracks: int = 4
    n_look: int = 1000
    spreads: tuple[float, ...] = (1.0, 1.0, 1.5, 2.0)
    max_rounds: int = 10
    patience: int = 4
    max_repairs: int = 6
    shallow_patience: int = 2
    n_wrong: int = 16
    near: float = 0.7
    n_zoomed: int = 64
    zoom: float = 0.4
    n_halvings: int = 12
    beside: float = 3.0
    close: float = 1e-3
    wrong: float = 1e-6
    n_affine: int = 4
    tuning: DeepTuning = field(default_factory=DeepTuning)

    def obstacle(self, oracle: Oracle, noise: NoiseFloor) -> str:
        """It divides differences of answers, and compares all kinks with each other."""
        if not noise.is_exact:
            return (
                "the answers lack the digits that deep networks need: float64 ones, not "
                f"{noise.law}; method fit takes one hidden layer"
            )
        if oracle.dim_in > self.max_inputs:
            return (
                f"networks of more than two hidden layers are recovered for {self.max_inputs} "
                f"inputs at most, not {oracle.dim_in:,}: where the first layer has fewer neurons, "
                "`revelu span` finds its row span, and a target that takes coordinates in that "
                "has fewer inputs"
            )
        return ""
