"""Exact recovery of one hidden layer from queries (DG21, Algorithm 6).

    f(x) = A relu(W x + b) + V x + c

The paper's steps, in batched rounds and with every output used: the kinks of one
line (Algorithm 1), the affine maps of its pieces (Algorithm 2), each neuron from the
change between two pieces (Algorithms 3 and 4), the affine rest (line 6).  Beyond the
paper: pieces shared by neighbouring neurons, several neurons from one difference
where there are several outputs, coordinates that a neighbour's kink corrupted asked
again, kinks too near each other recovered on another line, and the signs of the
hidden layer wherever a vanishing rest determines them.
"""

import logging
from dataclasses import dataclass, field

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.hyperplane import are_as_strong, kink_strengths, points_on_hyperplanes
from revelu.recover.method import Candidate, Disagreement, Law, Method, Search, Why
from revelu.recover.paid import Paid
from revelu.recover.shallow.affine_rest import add_affine_rest
from revelu.recover.shallow.boxed import BoxedSearch
from revelu.recover.shallow.lines import add_line, ended, first_line
from revelu.recover.shallow.worst_rows import fit_worst_rows
from revelu.recover.signs import resolve_signs
from revelu.types import FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BendTest:
    """Whether hyperplanes bend the function elsewhere as they do on the line."""

    max_tests: int = 16
    """Hyperplanes tested."""
    min_tests: int = 3
    """Fewer say nothing, nor does less than half of those chosen."""
    bent: float = 0.5
    """A larger share of kinks of another strength is more than a few corrupted neurons."""
    faint: float = 1e-3
    """Neurons fainter than this share of the strongest drown in the errors of those."""
    blur: float = 1e-10
    """Outputs whose error is a larger share of their variation say nothing."""
    step: float = 1e-3
    """To either side of the hyperplane, relative to the norm of the point, or to 1."""

    def __call__(
        self, oracle: Oracle, network: Network, noise: NoiseFloor, rng: np.random.Generator
    ) -> str:
        """Return the evidence that hyperplanes end or bend, as a deeper network's do."""
        W, b = network.weights[0], network.biases[0]
        error = noise.nu * noise.scale
        blurred = (error > self.blur * noise.spread) & (noise.spread > 0)
        if not len(W) or blurred.any():
            return ""
        chosen = rng.permutation(len(W))[: self.max_tests]
        X, normals = points_on_hyperplanes(rng, W[chosen], b[chosen])
        step = self.step * np.maximum(np.linalg.norm(X, axis=1), 1.0)
        found = kink_strengths(oracle, X, normals, step)
        wanted = kink_strengths(network, X, normals, step)
        strength = np.linalg.norm(wanted, axis=1)
        strong = np.isfinite(found).all(axis=1) & (strength > self.faint * strength.max())
        off = ~are_as_strong(found, wanted, error, step, noise.growth(X))[strong]
        if len(off) < max(self.min_tests, len(chosen) / 2) or off.mean() <= self.bent:
            return ""
        return (
            f"{off.sum()} of {len(off)} hyperplanes seen on a line are absent, or bend the "
            "function differently, elsewhere: the target has more than one hidden layer, or "
            "is not piecewise affine"
        )


@dataclass
class LineSearch(Search):
    """Neurons from lines: one that shows most, and more where something is missing."""

    method: "OneHidden"
    network: Network = field(init=False)
    """What is known."""

    def propose(self) -> Candidate:
        """Recover every neuron that a line shows (DG21, Algorithm 6 and Theorem 1)."""
        self.tell("finding kinks and neurons")
        oracle, method = self.oracle, self.method
        try:
            line = self.paid.line or first_line(
                oracle, self.noise, self.rng, max_lines=method.max_lines
            )
        except (LimitReachedError, SaturatedError) as error:
            return Candidate(None, Why.of(error), obstacles=(str(error),))
        self.paid = Paid(line)
        if not line.scan.complete:
            return ended(line.scan)
        self.network, left, out_of_budget = line.network, line.n_unresolved, line.out_of_budget
        try:
            # Where they end, other lines would see other kinks, and explain nothing.
            bent = left and not out_of_budget and self._bent()
            if bent:
                return self._candidate(Why.HYPERPLANES_END, bent)
            for last in (i == method.max_lines - 1 for i in range(method.max_lines)):
                if not left or out_of_budget:
                    break
                left = self._add_line(split_clusters=not last)
            if not (left or out_of_budget or any(self.network.architecture[1:-1])):
                self.network = add_affine_rest(oracle, self.network, self.rng)
        except LimitReachedError:
            out_of_budget = True
        unresolved = f"{left} kinks on the line were not resolved into neurons"
        if out_of_budget:
            n = self.network.architecture[1]
            spent = f"{oracle.n_queries} queries gave {n} neurons"
            return self._candidate(Why.LIMIT, *([unresolved] if left else []), spent)
        if left:
            return self._candidate(Why.UNRESOLVED, unresolved)
        return self._candidate(Why.EXPLAINED)

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Look for what is missing on a line through a point that is wrong.

        The first time, whether hyperplanes end or bend: then no line will do.
        """
        method = self.method
        if self.n_repairs == (
            method.max_with_short_lines if self.noise.link.saturates else method.max_lines
        ):
            return None
        self.n_repairs += 1
        try:
            if self.n_repairs == 1:
                self.tell("testing whether hyperplanes bend")
                bent = self._bent()
                if bent:
                    return self._candidate(Why.HYPERPLANES_END, bent)
            if self._sharpens(seen):
                return self._candidate(Why.EXPLAINED)
            self.tell("looking for missing neurons")
            if self.noise.link.saturates:
                self._add_short_lines(np.vstack([seen.worst, seen.X]))
            else:
                self._add_line(seen.worst)
        except LimitReachedError as error:
            return self._candidate(Why.LIMIT, str(error))
        log.info("repair: %s", self.network)
        return self._candidate(Why.EXPLAINED, is_whole=seen.agrees(self.network))

    def _candidate(self, why: Why, *obstacles: str, is_whole: bool = True) -> Candidate:
        line = self.paid.line
        figures = {} if line is None else {"kinks": len(line.scan.kinks)}
        if why is Why.HYPERPLANES_END:
            return Candidate(None, why, obstacles=obstacles, paid=self.paid, figures=figures)
        network, notes = resolve_signs(self.network, self.noise.half_digits, is_whole=is_whole)
        self.network = network
        return Candidate(
            network, why, notes=tuple(notes), obstacles=obstacles, paid=self.paid, figures=figures
        )

    def _sharpens(self, seen: Disagreement) -> bool:
        """Fit the rows that are worse than the rest, where the network is wrong by little."""
        network, method = self.network, self.method
        if seen.error > method.nearly or not len(network.weights[0]):
            return False
        n = method.fresh * (network.dim_in + 1)
        n = int(np.clip(method.fresh_share * network.n_parameters, n, 3 * n))
        X = self.rng.standard_normal((min(n, network.n_parameters), network.dim_in))
        Y = self.oracle(X)
        alive = np.isfinite(Y).all(axis=1)
        X, Y, unit = X[alive], Y[alive], self.noise.unit
        if not len(X) or np.abs((network(X) - Y) / unit).max() > method.nearly:
            return False
        self.network = fit_worst_rows(network, X, Y, unit)
        return self.network is not network

    def _add_short_lines(self, X: FloatArray) -> None:
        """Add lines through inputs that are wrong, such as leave fewer wrong than before.

        A line ends where a probability has no digits left, and so shows few neurons.

        Parameters
        ----------
        X : ndarray, shape (n, d)
            Some such inputs, the worst of which comes first.
        """
        rng, method = self.rng, self.method
        n_beside = min(method.n_beside, self.network.n_parameters)
        X = np.vstack([X, rng.standard_normal((n_beside, X.shape[1]))])
        Y, tried = self.oracle(X), np.zeros(len(X), dtype=bool)
        X, Y = (values[np.isfinite(Y).all(axis=1)] for values in (X, Y))
        tried, left = tried[: len(X)], self._wrong(X, Y)
        for _ in range(method.max_short_lines):
            todo = np.flatnonzero((left > 1.0) & ~tried)
            if not len(todo):
                break
            worst = int(todo[np.argmax(left[todo])])
            tried[worst], before = True, self.network
            self._add_line(X[worst])
            now = self._wrong(X, Y)
            if (now > 1.0).sum() < (left > 1.0).sum():
                left = now
            else:
                self.network = before

    def _wrong(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Largest errors of answers, shape (n,), over half of the digits that answers have."""
        apart = np.abs((self.network(X) - Y) / self.noise.unit)
        return np.asarray(apart.max(axis=1) / self.noise.half_digits)

    def _bent(self) -> str:
        """What speaks for hyperplanes that end or bend, as a deeper network's do."""
        return self.method.bends(self.oracle, self.network, self.noise, self.rng)

    def _add_line(self, through: FloatArray | None = None, *, split_clusters: bool = True) -> int:
        """Add what a line shows of what is unexplained; return how many kinks stay so."""
        self.network, left = add_line(
            self.oracle,
            self.network,
            self.noise,
            self.rng,
            through,
            split_clusters=split_clusters,
        )
        return left


@dataclass(frozen=True)
class OneHidden(Method):
    """One hidden layer, exactly (DG21, Algorithm 6; in a box, Theorem 2)."""

    name = "one_hidden"
    purpose = "one hidden layer, exactly"
    hidden = (1, 1)
    cost = "about 1"
    spends = (1.0, 1.5)
    search = LineSearch
    search_in_box = BoxedSearch

    max_lines: int = 4
    """Lines tried where the target is saturated on one, where kinks are too near each other, and on
    what fresh answers find wrong."""
    max_short_lines: int = 16
    """Lines in place of each of those, where lines end,"""
    max_with_short_lines: int = 10
    """``max_with_short_lines`` times,"""
    n_beside: int = 256
    """and answers beside that tell which of them to keep, one a parameter at most."""
    nearly: float = 1e-4
    """A network that is wrong by less, relative to the size of the answers, lacks no neuron: some
    of its rows have lost digits."""
    fresh: int = 40
    """Answers for each input of a row, from which those are fitted;"""
    fresh_share: float = 0.1
    """up to three times as many where that is this share of the parameters."""
    bends: BendTest = BendTest()
    """Of the hyperplanes of a first line, elsewhere."""

    def obstacle(self, oracle: Oracle, noise: NoiseFloor) -> str:
        """In a box differences are short: they need all digits."""
        if oracle.box is None or Law.of(noise) in self.answers:
            return ""
        if noise.law != "float64":
            return (
                "the answers lack the digits that recovery inside a box needs: float64 ones, "
                f"not {noise.law}"
            )
        return "what varies inside the box leaves too few digits of the answers"
