"""Exact recovery of two hidden layers, the first no wider than the input (DG21, section 3.5).

    f(x) = A relu(V relu(W x + b) + c) + e,    d1 <= d independent rows w_j

The paper's four steps (Theorem 3): the hyperplanes of a line (3.5.1); which of them are the
first layer's (3.5.2, Algorithm 7); their signs (3.5.3); and the top two layers, asked through a
right inverse of W, as a two-layer network on the positive orthant (3.5.4, Theorem 2).
Beyond the paper: any number of outputs, and a last fit of all layers together.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from revelu.errors import SaturatedError
from revelu.network import Network
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.box import Box
from revelu.probe.view import AboveLayer
from revelu.recover.deep.first_layer import FirstLayerRows, FirstLayerSearch
from revelu.recover.deep.layers_in_box import InBox
from revelu.recover.deep.rough_wide import RoughWide, RoughWideSearch
from revelu.recover.method import Candidate, Disagreement, Law, Method, Search, Why
from revelu.recover.paid import Paid
from revelu.recover.refine.network_fit import top_of
from revelu.recover.refine.polish import fit_above, fit_most, fit_to_last_digits
from revelu.recover.rows import Rows
from revelu.recover.shallow.lines import ended, first_line
from revelu.recover.shallow.one_hidden import OneHidden
from revelu.recover.shallow.restricted import RestrictedSearch
from revelu.recover.signs import resolve_signs
from revelu.types import FloatArray

log = logging.getLogger(__name__)


@dataclass
class LayeredSearch(Search):
    """Two known layers of neurons, which grow where fresh answers disagree."""

    method: "TwoHidden"
    first: FirstLayerRows | None = field(default=None, init=False)
    top: AboveLayer = field(init=False)
    upper: RestrictedSearch = field(init=False)
    """The upper layer's, on the positive orthant,"""
    is_settled: bool = field(default=False, init=False)
    """once a base point was found."""
    block: tuple[FloatArray, FloatArray] | None = field(default=None, init=False)
    """The answers of the last fit, which every later one uses again."""
    affine: Search | None = field(default=None, init=False)
    """Of a target without a kink on the line: that of one hidden layer."""

    def propose(self) -> Candidate:
        """Find the first layer, then grow the upper one until it explains N(0, I)."""
        self.tell("recovering two hidden layers")
        return self.until_limit(self._found)

    def cut_short(self, why: Why, said: str) -> Candidate:
        """What was found, where queries, time or answers have ended the search."""
        if not self.is_settled:
            return self._nothing(why, said)
        return self._candidate(why, *self._network(), said)

    def _found(self) -> Candidate:
        line = self.paid.line or first_line(self.oracle, self.noise, self.rng)
        if not line.scan.complete:
            return ended(line.scan)
        if not len(line.scan.kinks):
            self.affine = OneHidden().start(
                self.oracle, self.noise, self.rng, self.tell, Paid(line)
            )
            return self.affine.propose()
        first = FirstLayerSearch(self.oracle, self.noise, self.rng)
        n_numbers = len(line.scan.kinks) * self.oracle.dim_in**2 / len(self.noise.scale)
        if n_numbers > self.method.many_numbers:
            # No fit of all layers will do it.
            first.imprecise = self.method.imprecise
        self.first = first.find(line)
        if self.first.is_others:
            n, n_missing = len(self.first.W), self.first.n_missing
            self.first = None
            return self._nothing(
                Why.HYPERPLANES_END,
                f"gradients show {n_missing} directions beside the {n} of hyperplanes that go "
                "on everywhere: what lines show is not a first layer's",
            )
        if not len(self.first.W):
            return self._nothing(
                Why.HYPERPLANES_END,
                f"none of the {self.first.n_candidates} hyperplanes found bends the function "
                "wherever it goes: they are not a first layer's",
            )
        if self.first.is_leaky:
            return self._leaky(self.first)
        obstacle = self._obstacle(self.first)
        if obstacle:
            return self._nothing(Why.UNRESOLVED, obstacle)
        self.top = AboveLayer(self.oracle, self.first.W, self.first.b)
        self.upper, self.is_settled = self._settled(), True
        return self._finish(self._explained())

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Look for what is missing at inputs where the network was wrong."""
        if self.affine is not None:
            return self.affine.repair(seen)
        if self.n_repairs == self.method.max_repairs or self.upper.roughly_wrong().any():
            return None
        self.n_repairs += 1
        self.tell("looking for neurons that fire where the network was wrong")

        def go_on() -> Candidate:
            self.upper.hold_against(self.top.hidden(seen.X), self.oracle(seen.X))
            return self._finish(self.upper.explain())

        return self.until_limit(go_on)

    def _leaky(self, first: FirstLayerRows) -> Candidate:
        """Hand the first layer's hyperplanes on to a method for units that are no ReLUs."""
        (n, d), k = first.W.shape, len(self.noise.scale)
        rows = Rows(first.W, first.b, np.zeros((n, k)), np.zeros(n), np.zeros((n, d)))
        said = f"of {first.n_leaky} of {n} first-layer neurons both sides pass a signal on"
        return Candidate(None, Why.BOTH_SIDES, obstacles=(said,), paid=Paid(first=rows))

    def _obstacle(self, first: FirstLayerRows) -> str:
        """Why the top layers cannot be asked through the first, if they cannot."""
        d1, d = first.W.shape
        if d1 > d:
            return f"at least {d1} first-layer neurons for {d} inputs: they cannot be set at will"
        if first.is_dependent():
            return (
                f"the {d1} rows of the first layer are dependent (condition number "
                f"{first.condition:.1e}): its neurons cannot be set at will"
            )
        return ""

    def _settled(self) -> RestrictedSearch:
        """Find a base point where every first-layer neuron is on.

        Raises
        ------
        SaturatedError
            If the function is affine around none of those tried.
        """
        top, d = self.top, self.oracle.dim_in
        box = Box(np.zeros(top.dim_in), np.full(top.dim_in, np.inf))
        for _ in range(self.method.max_bases):
            X = self.rng.standard_normal((1, d))
            base = np.abs(X @ top.W.T + top.b)[0]
            noise = top.noise(self.noise, base[None])
            try:
                return RestrictedSearch(top, box, noise, self.rng, base, rough=self.method.rough)
            except SaturatedError:
                continue
        raise SaturatedError(
            f"no affine piece was found above the first layer of {top.dim_in} neurons, at "
            f"{self.method.max_bases} points"
        )

    def _draw(self, n: int) -> tuple[FloatArray, FloatArray]:
        X = self.rng.standard_normal((n, self.oracle.dim_in))
        return self.top.hidden(X), self.oracle(X)

    def _explained(self) -> bool:
        """Grow until fresh points are explained; fit what is known where that leads no further.

        What each neuron is off by adds up, until it hides the kinks of those that are missing.
        """
        upper = self.upper
        if upper.explain_all(self._draw, blurred=False):
            return True
        if not upper.is_blurred:
            return False
        if not self._holds_block():
            return upper.explain()
        explained = False
        for _ in range(self.method.max_fits):
            n_wrong = int(upper.wrong().sum())
            right = ~upper.roughly_wrong()
            upper.network = fit_most(upper.network, upper.X[right], upper.Y[right], upper.noise)
            upper.is_fitted = True
            explained = upper.explain()
            log.info(
                "upper layer: %d wrong, now %d, typically by %.0e",
                n_wrong,
                upper.wrong().sum(),
                np.median(upper.errors()),
            )
            if not upper.is_blurred or not (explained or upper.wrong().sum() < n_wrong):
                break
        return explained

    def _finish(self, explained: bool) -> Candidate:
        if explained and self._holds_block():
            explained = self.upper.explain()
        network, notes = self._network()
        if explained:
            return self._candidate(Why.EXPLAINED, self._polished(network), notes)
        upper, first = self.upper, self.first
        obstacles = [
            (
                f"a first layer of {self.top.dim_in} neurons was found; what lies above it is not "
                f"one layer of neurons: {float(upper.wrong().mean()):.1%} of the inputs asked are "
                "not explained"
            )
        ]
        if upper.bends:
            obstacles.append(
                f"{upper.n_bent} of {upper.n_bent + upper.n_straight} hyperplanes above the first "
                "layer end or bend: the network is deeper, or has more first-layer neurons than "
                "inputs"
            )
        elif first is not None and first.n_missing:
            n = first.n_missing
            directions = "1 more direction" if n == 1 else f"{n} more directions"
            obstacles.append(
                f"gradients show {directions} in which the function changes: first-layer neurons "
                "are missing"
            )
        elif upper.message:
            obstacles.append(upper.message)
        why = Why.HYPERPLANES_END if upper.bends else Why.UNRESOLVED
        return self._candidate(why, network, notes, *obstacles)

    def _network(self) -> tuple[Network, list[str]]:
        """Both layers, the upper one's signs resolved where that can be done."""
        upper, notes = resolve_signs(self.upper.network, self.noise.half_digits)
        W, b = self.top.W, self.top.b
        if not len(upper.weights[0]) and upper.skip is not None:
            # Nothing bends above the first layer: it is the only one.
            V, c = upper.skip
            return Network([W, V], [b, c + upper.biases[-1]]), []
        network = Network([W, *upper.weights], [b, *upper.biases], skip=upper.skip)
        return network, notes

    def _holds_block(self) -> bool:
        """Ask the answers of the last fit, once and where they cost little; say if there are any.

        The upper layer is held against them, too.
        """
        if self.block is None:
            n = self._n_answers(self._network()[0])
            dear = n > self.method.polish_share * self.oracle.n_queries
            if dear or not self.oracle.affords(n):
                return False
            X = self.rng.standard_normal((n, self.oracle.dim_in))
            with self.oracle.phase("polish"):
                self.block = X, self.oracle(X)
            self.upper.hold_against(self.top.hidden(X), self.block[1])
        return True

    def _n_answers(self, network: Network) -> int:
        """How many answers determine the weights that are fitted."""
        method = self.method
        n_equations = method.n_equations * network.n_parameters
        if self._is_large(network):
            n_equations = method.n_equations_above * top_of(network).n_parameters
        return int(np.ceil(n_equations / network.dim_out))

    def _is_large(self, network: Network) -> bool:
        """Whether the inputs that determine all weights are more numbers than should be held."""
        n = self.method.n_equations * network.n_parameters / network.dim_out
        return n * network.dim_in > self.method.many_numbers

    def _polished(self, network: Network) -> Network:
        """Fit all layers to the block of answers, if there is one.

        Of a large network only those above the first are: its rows are known better than so few
        answers tell.
        """
        if self.block is None:
            return network
        if not self._is_large(network):
            return fit_to_last_digits(network, *self.block, self.noise)
        return fit_above(network, *self.block, self.noise)

    def _candidate(
        self, why: Why, network: Network, notes: list[str], *obstacles: str
    ) -> Candidate:
        worst = 0.0 if why is Why.EXPLAINED else float(self.upper.apart().max(initial=0.0))
        nothing = self._nothing(why, *obstacles)
        return replace(nothing, network=network, notes=tuple(notes), worst_error=worst)

    def _nothing(self, why: Why, *obstacles: str) -> Candidate:
        """What is known without an upper layer."""
        if self.first is None or not len(self.first.W):
            return Candidate(None, why, obstacles=obstacles)
        n_unsigned = int(self.first.unsigned.sum())
        if n_unsigned:
            told = f"of {n_unsigned} rows of the first layer the hyperplane is known, not the sign"
            obstacles = (*obstacles, told)
        layer = (self.first.W, self.first.b)
        figures = {"first_layer": layer, "condition": self.first.condition}
        # Rows that look everywhere show no direction that is missing, and what bends above them
        # may do so at neurons beside them.
        may_lack = why is Why.HYPERPLANES_END and len(self.first.W) == self.oracle.dim_in
        layers = () if n_unsigned or may_lack else (layer,)
        return Candidate(None, why, layers=layers, obstacles=obstacles, figures=figures)


@dataclass(frozen=True)
class TwoHidden(Method):
    """Two hidden layers, the first no wider than the input (DG21, Theorem 3)."""

    name = "two_hidden"
    purpose = "two hidden layers, the first no wider than the input"
    hidden = (2, 2)
    answers = frozenset({Law.FLOAT64, Law.FLOAT32})
    cost = "3 to 10; 10 to 100 in float32"
    most_work = 2e11
    search = LayeredSearch

    max_bases: int = 8
    """Points tried for the base point, around which the top layers must be affine."""
    max_repairs: int = 12
    n_equations: float = 1.5
    """Equations a parameter of the last fit of all layers."""
    many_numbers: float = 5e6
    """Numbers of its inputs, 8 bytes each, above which the first layer is left as it is."""
    imprecise: float = 3e-10
    """Rows of it that are known worse are then measured again,"""
    n_equations_above: float = 4.0
    """and the fit of the layers above has this many equations a parameter: up to half of the
    answers may show neurons that are missing."""
    polish_share: float = 0.5
    """Share of all queries so far that the last fit may cost: one output needs many more queries
    for as many equations as ten do."""
    rough: float = 1e-5
    """Errors up to this, relative to the answers, that are left to that fit."""
    max_fits: int = 4
    """Fits of the upper layer while neurons of it are missing."""
    rough_layers: RoughWide = field(default_factory=RoughWide)
    """How both are fitted where answers lack the digits of float64."""
    inside_box: InBox = field(default_factory=InBox)
    """How both are found inside a box."""

    def obstacle(self, oracle: Oracle, noise: NoiseFloor) -> str:
        """Inside a box it divides differences of answers."""
        if oracle.box is None or Law.of(noise) is Law.FLOAT64:
            return ""
        return f"inside a box two hidden layers take float64 answers, not {noise.law}"

    def search_of(self, oracle: Oracle, noise: NoiseFloor) -> Callable[..., Search]:
        """The search that the digits of a target's answers allow."""
        rough = partial(RoughWideSearch, how=self.rough_layers)
        return super().search_of(oracle, noise) if Law.of(noise) is Law.FLOAT64 else rough
