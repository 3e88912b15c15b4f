"""What is known of a deep network, and the kinks that are gathered to know more.

Kinks show rows well where many neurons below are on: there they give most equations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.distance import cdist

from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.deep.always_active import extreme_pairs, pairs_across
from revelu.recover.deep.hypotheses import Judged
from revelu.recover.deep.layer_estimate import FoundLayer, stack_of
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.witnesses import Witnesses, WitnessSearch
from revelu.types import BoolArray, FloatArray

# Long segments, and the spreads of the inputs that others connect.
_LONG = 8.0
_SPREADS = (1.0, 3.0)

# Inputs among which starts, and inputs on either side of a border, are chosen.
_POOL = 3000
_WIDE_POOL = 20_000

# Segments for the entries of one layer that no kink has shown.
_ACROSS = 8


@dataclass
class DeepSearch:
    """What is known of a deep network, from the input up.

    Attributes
    ----------
    oracle : Oracle
    noise : NoiseFloor
    rng : numpy.random.Generator
    stack : Stack
        The layers known.
    witnesses : Witnesses
        All kinks found so far that the layers known at the time did not make.
    is_border : ndarray of bool
        Which of them lie where a network begins to be wrong.
    above : Stack
        All layers, where they were found before: what it explains is no new neuron's.
    judged : dict
        Rows of every layer that were looked for where they predict kinks.
    """

    oracle: Oracle
    noise: NoiseFloor
    rng: np.random.Generator
    stack: Stack
    witnesses: Witnesses = field(init=False)
    is_border: BoolArray = field(init=False)
    above: Stack = field(init=False)
    judged: dict[int, Judged] = field(default_factory=dict)

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
        return any(depth > len(self.stack) for depth in self.judged)

    def gather(self, layer: FoundLayer, n: int) -> None:
        """Gather kinks on a round of segments, some where entries of the layer are unseen."""
        places = np.argwhere(layer.unseen)
        # Where only entries are missing, most segments are for them.
        is_known = layer.is_complete and len(places) > 0
        starts, ends = self._segments(n // 4 if is_known else n)
        places = np.repeat(places, -(-n // len(places)) if is_known else 1, axis=0)
        places = self.rng.permutation(places)[: 3 * n // 4 if is_known else n]
        across = pairs_across(layer, places, self.stack, self.inputs(_WIDE_POOL), self.rng)
        steady = layer.W[: layer.n_steady]
        extremes = [pair for w in steady for pair in extreme_pairs(w, self.stack, self.rng)]
        pairs = np.array([*across, *self._around(layer, n), *extremes])
        if len(pairs):
            starts = np.concatenate([starts, pairs[:, 0]])
            ends = np.concatenate([ends, pairs[:, 1]])
        self.gather_on(starts, ends)

    def gather_across(self, layers: Sequence[FoundLayer]) -> None:
        """Gather kinks that show entries which none has shown, of layers one above the other."""
        stack = self.stack
        for i, layer in enumerate(layers):
            if layer.unseen.any():
                self.stack = stack_of(layers[:i], self.oracle.dim_in)
                self.gather(layer, _ACROSS)
        self.stack = stack

    def gather_on(self, starts: FloatArray, ends: FloatArray, *, border: bool = False) -> None:
        """Gather kinks on given segments, which may be borders of where a network is wrong."""
        found = WitnessSearch().collect(self.oracle, self.noise, self.stack, starts, ends, self.rng)
        self.witnesses += found
        self.is_border = np.append(self.is_border, np.full(len(found), border))

    def _around(self, layer: FoundLayer, n: int) -> list[tuple[FloatArray, FloatArray]]:
        """From points whose gradients the layer does not explain to near ones that it does."""
        if layer.orientation is None:
            return []
        points = self.witnesses.points
        bad, good = layer.orientation.unexplained, layer.orientation.explained
        if not len(bad) or not len(good):
            return []
        bad = self.rng.permutation(bad)[:n]
        apart = cdist(points[bad], points[good])
        near = good[
            apart.argsort(axis=1)[
                np.arange(len(bad)), self.rng.integers(3, size=len(bad)) % len(good)
            ]
        ]
        return list(zip(points[bad], points[near], strict=True))

    def inputs(self, n: int = _POOL) -> FloatArray:
        """Random inputs, near and far."""
        X = self.rng.standard_normal((n, self.oracle.dim_in))
        return np.asarray(X * self.rng.choice(_SPREADS, n)[:, None])

    def _segments(self, n: int) -> tuple[FloatArray, FloatArray]:
        """A third of them long, the others between inputs that show rows well."""
        d = self.oracle.dim_in
        n_long = n // 3 if len(self.stack) else n
        x = self.rng.standard_normal((n_long, d))
        arms = _LONG * self.rng.standard_normal((n_long, d))
        starts, ends = [x - arms], [x + arms]
        if len(self.stack):
            pools = [self.inputs(), self._all_on()] if self._is_narrow else [self.inputs()]
            for X in pools:
                a, b = self._lit_pairs(X, (n - n_long) // len(pools))
                starts.append(a)
                ends.append(b)
        return np.concatenate(starts), np.concatenate(ends)

    @property
    def _is_narrow(self) -> bool:
        return len(self.stack.biases[0]) <= self.oracle.dim_in

    def _all_on(self) -> FloatArray:
        """Inputs at which all of a narrow first layer is on (DG21, section 3.5.4)."""
        W, b = self.stack.weights[0], self.stack.biases[0]
        H = np.abs(self.inputs() @ W.T + b)
        return np.asarray((H - b) @ np.linalg.pinv(W).T)

    def _lit_pairs(self, X: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
        """Pairs of inputs at which many neurons are on.

        A kink shows its row where the inputs of the layer that are on are as many as the map
        below it has rank, which no layer's count exceeds.
        """
        states = self.stack.states(X)
        counts = np.array([on.sum(axis=1) for on in states])
        least = counts.min(axis=0)
        worth = least + 0.5 * (counts[-1] == least) + 0.4 * self.rng.random(len(X))
        lit = np.argsort(-worth)[: len(X) // 20]
        chosen = self.rng.permutation(lit)[: 2 * n].reshape(2, -1)
        return X[chosen[0]], X[chosen[1]]
