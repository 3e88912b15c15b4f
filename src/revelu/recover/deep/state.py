"""What is known of a deep network, and the witnesses that are gathered to know more.

Critical points show rows well where many neurons below are on: there they give most equations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.distance import cdist

from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.deep.gradient_rows import AlwaysOnSearch
from revelu.recover.deep.gradient_signs import SignSearch
from revelu.recover.deep.hypotheses import Hypotheses
from revelu.recover.deep.layer_estimate import FoundLayer, stack_of
from revelu.recover.deep.output_layer import OutputFit
from revelu.recover.deep.rows_from_kinks import RowSearch
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.test_inputs import InputChoice
from revelu.recover.deep.witnesses import Witnesses, WitnessSearch
from revelu.types import BoolArray, FloatArray, IntArray

Pair = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class DeepTuning:
    """What tunes the search of a deep network, layer by layer."""

    witnesses: WitnessSearch = field(default_factory=WitnessSearch)
    rows: RowSearch = field(default_factory=RowSearch)
    signs: SignSearch = field(default_factory=SignSearch)
    always_on: AlwaysOnSearch = field(default_factory=AlwaysOnSearch)
    outputs: OutputFit = field(default_factory=OutputFit)
    inputs: InputChoice = field(default_factory=InputChoice)
    rounds: tuple[int, ...] = (8, 16, 24, 24, 24, 24)
    """Segments of one round after the other: where the first few tell all, no more are asked."""
    quiet_rounds: int = 2
    """Rounds that find nothing new end the search of a layer."""
    arm: float = 8.0
    """Long segments reach this many standard deviations to either side."""
    spreads: tuple[float, ...] = (1.0, 3.0)
    """Standard deviations of the inputs that other segments connect."""
    n_inputs: int = 3000
    n_rare: int = 20_000
    """Inputs among which their ends are chosen, and where a weight's input is to be on."""
    n_across: int = 8
    """Segments for the undetermined weights of one layer after a repair."""
    n_extremes: int = 4
    """Segments for the critical points of a row that is always on."""
    min_members: int = 3
    min_members_again: int = 2
    """Critical points that must agree on a row: at first, when most are deeper neurons', and
    when all is solved again from what is known."""
    n_tests: int = 16
    min_tests: int = 4
    """Points that test where a row bends the function, and the fewest of them that must show
    anything."""
    bent: float = 0.8
    """The share of those that must bend: each may meet another hyperplane."""
    min_borders: int = 4
    """Points on borders of where a network is wrong that speak for a row where no others can."""
    few_undetermined: int = 2
    """Rows with more undetermined weights come last."""


@dataclass
class DeepSearch:
    """What is known of a deep network, from the input up.

    Attributes
    ----------
    stack : Stack
        The layers known.
    witnesses : Witnesses
        All critical points found so far that the layers known at the time did not make.
    is_border : ndarray of bool
        Which of them lie where a network begins to be wrong.
    above : Stack
        All layers, where they were found before: what it explains is no new neuron's.
    hypotheses : dict
        Of every layer, by its depth.
    """

    oracle: Oracle
    noise: NoiseFloor
    rng: np.random.Generator
    stack: Stack
    tuning: DeepTuning = field(default_factory=DeepTuning)
    witnesses: Witnesses = field(init=False)
    is_border: BoolArray = field(init=False)
    above: Stack = field(init=False)
    hypotheses: dict[int, Hypotheses] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.witnesses = Witnesses.none(self.oracle.dim_in, len(self.noise.scale))
        self.is_border = np.empty(0, dtype=bool)
        self.above = Stack(self.oracle.dim_in)

    @property
    def is_last(self) -> bool:
        """Whether the next layer was the last when all was found before."""
        return len(self.above) == len(self.stack) + 1

    @property
    def knows_above(self) -> bool:
        """Whether rows above the next layer are known."""
        return any(depth > len(self.stack) for depth in self.hypotheses)

    def forget_from(self, depth: int) -> None:
        """Forget what was known of the layers from a depth on."""
        self.hypotheses = {i: h for i, h in self.hypotheses.items() if i < depth}
        self.above = self.above[:depth]

    def inputs(self) -> FloatArray:
        """Random inputs, near and far."""
        return self.stack.draw(self.tuning.n_inputs, self.tuning.spreads, self.rng)

    def gather(self, layer: FoundLayer, n: int) -> None:
        """Gather witnesses on a round of segments, some for undetermined weights of the layer."""
        places = np.argwhere(layer.undetermined)
        # Where only weights are missing, most segments are for them.
        is_known = layer.is_complete and len(places) > 0
        starts, ends = self._segments(n // 4 if is_known else n)
        places = np.repeat(places, -(-n // len(places)) if is_known else 1, axis=0)
        places = self.rng.permutation(places)[: 3 * n // 4 if is_known else n]
        across, extremes = self._across(layer, places), self._extremes(layer)
        pairs = [*across, *self._around(layer, n), *extremes]
        if pairs:
            starts = np.concatenate([starts, [a for a, _ in pairs]])
            ends = np.concatenate([ends, [b for _, b in pairs]])
        self.gather_on(starts, ends)

    def gather_across(self, layers: Sequence[FoundLayer]) -> None:
        """Gather witnesses for undetermined weights, of layers one above the other."""
        stack = self.stack
        for i, layer in enumerate(layers):
            if layer.undetermined.any():
                self.stack = stack_of(layers[:i], self.oracle.dim_in)
                self.gather(layer, self.tuning.n_across)
        self.stack = stack

    def gather_on(self, starts: FloatArray, ends: FloatArray, *, border: bool = False) -> None:
        """Gather witnesses on given segments, which may be borders of where a network is wrong."""
        collect = self.tuning.witnesses.collect
        found = collect(self.oracle, self.noise, self.stack, starts, ends, self.rng)
        self.witnesses += found
        self.is_border = np.append(self.is_border, np.full(len(found), border))

    def _segments(self, n: int) -> Pair:
        """A third of them long, the others between inputs that show rows well."""
        d = self.oracle.dim_in
        n_long = n // 3 if len(self.stack) else n
        x = self.rng.standard_normal((n_long, d))
        arms = self.tuning.arm * self.rng.standard_normal((n_long, d))
        starts, ends = [x - arms], [x + arms]
        if len(self.stack):
            is_narrow = len(self.stack.biases[0]) <= d
            pools = [self.inputs(), self._all_on()] if is_narrow else [self.inputs()]
            for X in pools:
                a, b = self._lit_pairs(X, (n - n_long) // len(pools))
                starts.append(a)
                ends.append(b)
        return np.concatenate(starts), np.concatenate(ends)

    def _all_on(self) -> FloatArray:
        """Inputs at which all of a narrow first layer is on (DG21, section 3.5.4)."""
        W, b = self.stack.weights[0], self.stack.biases[0]
        H = np.abs(self.inputs() @ W.T + b)
        return np.asarray((H - b) @ np.linalg.pinv(W).T)

    def _lit_pairs(self, X: FloatArray, n: int) -> Pair:
        """Pairs of inputs at which many neurons are on.

        A critical point shows its row where the inputs of the layer that are on are as many as the
        map below it has rank, which no layer's count exceeds.  Among the inputs of one least count
        those are better at which the highest layer has it; else chance decides.
        """
        counts = np.array([on.sum(axis=1) for on in self.stack.states(X)])
        least = counts.min(axis=0)
        worth = least + 0.5 * (counts[-1] == least) + 0.4 * self.rng.random(len(X))
        lit = np.argsort(-worth)[: len(X) // 20]
        chosen = self.rng.permutation(lit)[: 2 * n].reshape(2, -1)
        return X[chosen[0]], X[chosen[1]]

    def _across(self, layer: FoundLayer, places: IntArray) -> list[Pair]:
        """Pairs at which a weight's input is on, and between which its row's sum turns, if it does.

        ``places (n, 2)``: rows and columns of the weights.
        """
        X = self.stack.draw(self.tuning.n_rare, self.tuning.spreads, self.rng)
        h, pairs = self.stack.outputs(X), []
        for j, i in places:
            live = np.flatnonzero(h[:, i] > 0)
            z = h[live] @ layer.W[j] + layer.b[j]
            on, off = live[z > 0], live[z <= 0]
            if len(on) and len(off):
                pairs.append((X[self.rng.choice(on)], X[self.rng.choice(off)]))
            elif len(live) > 1:
                # What the weight itself adds may turn it.
                pairs.append((X[live[z.argmax()]], X[live[z.argmin()]]))
        return pairs

    def _extremes(self, layer: FoundLayer) -> list[Pair]:
        """Pairs between which the sum of a row that is always on goes from least to largest."""
        pairs: list[Pair] = []
        for w in layer.W[: layer.n_always_on]:
            X = self.stack.draw(self.tuning.n_rare, (1.0,), self.rng)
            order, n = np.argsort(self.stack.outputs(X) @ w), self.tuning.n_extremes
            pairs += zip(X[order[:n]], X[order[-n:]], strict=True)
        return pairs

    def _around(self, layer: FoundLayer, n: int) -> list[Pair]:
        """From points whose gradients the layer does not explain to near ones that it does."""
        if layer.orientation is None:
            return []
        points = self.witnesses.points
        bad, good = layer.orientation.unexplained, layer.orientation.explained
        if not len(bad) or not len(good):
            return []
        bad = self.rng.permutation(bad)[:n]
        order = cdist(points[bad], points[good]).argsort(axis=1)
        near = self.rng.integers(3, size=len(bad)) % len(good)
        near = good[order[np.arange(len(bad)), near]]
        return list(zip(points[bad], points[near], strict=True))
