"""Two hidden layers inside a box, the first narrower than the input.

Outside a box the upper layer is asked through a right inverse of the first (DG21, section 3.5.4),
which leaves a box.  Inside, chords show both layers, and what is seen of the upper one with the
lower in many states is put together; the affine rest, and what no chord has told, come from
answers.
"""

import logging
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from revelu.network import Network
from revelu.numerics.reweighting import LeastDeviations, reweighted
from revelu.oracle import Oracle
from revelu.recover.deep.answers import JudgedAnswers
from revelu.recover.deep.layers_in_box import InBox, LayersInBox
from revelu.recover.deep.narrow import TwoHidden
from revelu.recover.in_box import OracleInBox
from revelu.recover.method import Candidate, Disagreement, Search, Why
from revelu.recover.refine.network_fit import Samples, fit
from revelu.recover.signs import resolve_signs
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass
class LayersSearch(Search):
    """Two layers under way inside a box."""

    method: TwoHidden
    inside: OracleInBox = field(init=False)
    layers: LayersInBox = field(init=False)
    """What chords have shown."""
    answers: JudgedAnswers = field(init=False)
    """What the network is held against."""
    network: Network | None = field(default=None, init=False)
    """The best so far, in the coordinates of the cube."""

    def __post_init__(self) -> None:
        how = self.how
        self.inside = OracleInBox(self.oracle, how.first.cube.bound)
        self.inside.dim_out = len(self.noise.unit)
        self.layers = LayersInBox(self.inside, self.noise, how.first, self.rng)
        self.answers = JudgedAnswers(cast("Oracle", self.inside), self.noise, self.rng, how.judging)

    @property
    def how(self) -> InBox:
        """What tunes it."""
        return self.method.inside_box

    def propose(self) -> Candidate:
        """Find both layers along chords, then look at fresh inputs until none is wrong."""
        self.tell("finding two hidden layers inside the box")
        return self.until_limit(self._found)

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Look for what is missing at inputs where the network was wrong."""
        if self.network is None or self.n_repairs == self.method.max_repairs:
            return None
        self.n_repairs += 1
        self.tell("looking for neurons that fire where the network was wrong")
        X = self.how.first.cube.clip(self.inside.coordinates(seen.X))

        def go_on() -> Candidate:
            self.answers.add(X)
            return self._explained()

        return self.until_limit(go_on)

    def cut_short(self, why: Why, said: str) -> Candidate:
        """What was found, where queries, time or answers have ended the search."""
        return self._candidate(why, said)

    def _found(self) -> Candidate:
        """Chords first; then the first layer to more digits, and what no chord has told yet."""
        layers, how, d = self.layers, self.how, self.oracle.dim_in
        layers.search(how.quiet_first, how.max_rounds)
        if len(layers.left_out):
            layers.search(how.quiet, how.max_rounds)
        n = len(layers.rows)
        if n >= d:
            told = f"at least {n} first-layer neurons for {d} inputs: they cannot be set at will"
            return self._candidate(Why.UNRESOLVED, told)
        if not n:
            return self._candidate(
                Why.UNRESOLVED, "no hyperplane was found that bends the function all over the box"
            )
        layers.add_always_on()
        layers.settle()
        self.tell(f"{n} neurons of the first layer; looking above them")
        layers.search(how.quiet, how.max_rounds)
        layers.sharpen()
        quiet = 0
        while quiet < how.quiet_fills:
            quiet = 0 if layers.fill(how.margin * self._draw(how.n_pool)) else quiet + 1
        return self._explained()

    def _explained(self) -> Candidate:
        how, answers, is_fresh, n_wrong = self.how, self.answers, False, 0
        if not len(answers):
            upper = self.layers.upper
            n_parameters = upper.V.size + upper.A.size + upper.V.shape[1] * len(self.noise.unit)
            answers.add(self._draw(int(how.n_equations * n_parameters / len(self.noise.unit))))
        for _ in range(how.max_fits):
            network = self.network = self._fitted()
            wrong = answers.wrong(network)
            n_wrong = int(wrong.sum())
            log.info("%d of %d wrong, %d queries", n_wrong, len(wrong), self.oracle.n_queries)
            if not n_wrong and is_fresh:
                return self._candidate(Why.EXPLAINED)
            if n_wrong:
                self._aim(wrong)
                answers.add(self._telling())
            else:
                answers.add(self._draw(how.n_fresh))
            is_fresh = not n_wrong
        told = f"the network was wrong at {n_wrong:,} of {len(answers):,} inputs asked"
        return self._candidate(Why.UNRESOLVED, told)

    def _aim(self, wrong: BoolArray) -> None:
        """Look along chords to wrong inputs, from right ones and from the corners opposite."""
        X, how = self.answers.X, self.how
        bad = self.rng.permutation(np.flatnonzero(wrong))[: how.n_aimed]
        starts, good = -X[bad], np.flatnonzero(~wrong)
        if len(good):
            starts[::2] = X[self.rng.choice(good, len(starts[::2]))]
        self.layers.look(how.margin * starts, how.margin * X[bad])

    def _draw(self, n: int) -> FloatArray:
        """Points of the cube: even or on faces, where neurons turn, and at all kinds of corners."""
        first, W = self.how.first, self.layers.rows[:, :-1]
        n_each, d = n // 3, W.shape[1]
        even = first.cube.points(self.rng, n - 2 * n_each, d)
        turning = first.corners(self.rng, W, n_each) * self.rng.random((n_each, 1))
        signs = np.sign(self.rng.random((n_each, 1)) - self.rng.random((n_each, d)))
        return np.vstack([even, turning, first.cube.bound * signs])

    def _telling(self) -> FloatArray:
        """Inputs that show most of the weights that no seed has told, shape (n, d)."""
        upper, X = self.layers.upper, self._draw(self.how.n_pool)
        H, sums = upper.sums(X)
        chosen = np.zeros(len(X), dtype=bool)
        for i, j in np.argwhere(~upper.is_known):
            shown = np.where(sums[:, i] > 0.0, H[:, j], 0.0)
            best = np.argsort(-shown, kind="stable")[: self.how.n_each]
            chosen[best[shown[best] > 0.0]] = True
        return X[chosen]

    def _fitted(self) -> Network:
        """The neurons known, and the affine rest that most answers agree on; or a fit to all."""
        answers, upper = self.answers, self.layers.upper
        (W, b), unit = upper.first, self.noise.unit
        H, sums = upper.sums(answers.X)
        rest = answers.Y / unit - np.maximum(sums, 0.0) @ upper.A
        F = np.column_stack([H, np.ones(len(H))])
        loss = LeastDeviations(self.noise.relative)
        S = reweighted(F, rest, loss, self.how.robust_steps) * unit
        skip = S[:-1].T, np.zeros(len(unit))
        held = Network([upper.V, (upper.A * unit).T], [upper.c, S[-1]], skip)
        fitted = fit(held, Samples.near(H, answers.Y, self.noise)).network
        return answers.best(
            [Network([W, *n.weights], [b, *n.biases], n.skip) for n in (fitted, held)]
        )

    def _candidate(self, why: Why, *obstacles: str) -> Candidate:
        network = self.network
        if network is None:
            return Candidate(None, why, obstacles=obstacles)
        worst = 0.0
        if why is not Why.EXPLAINED:
            worst = float(np.abs(network(self.answers.X) - self.answers.Y).max(initial=0.0))
        above = Network(network.weights[1:], network.biases[1:], network.skip)
        above, notes = resolve_signs(above, self.noise.half_digits)
        W, b = network.weights[0], network.biases[0]
        if not len(above.weights[0]) and above.skip is not None:
            # Nothing bends above the first layer: it is the only one.
            V, c = above.skip
            network = Network([W, V], [b, c + above.biases[-1]])
        else:
            network = Network([W, *above.weights], [b, *above.biases], above.skip)
        network = self.inside.network_of_inputs(network)
        return Candidate(network, why, notes=tuple(notes), obstacles=obstacles, worst_error=worst)
