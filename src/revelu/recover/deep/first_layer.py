"""The first of several hidden layers (DG21, sections 3.5.1 to 3.5.3).

A hyperplane of the first layer bends the function wherever it goes (Lemma 8); one of a
later layer ends or turns where a neuron below it changes its state.  That tells them
apart (Algorithm 7).  Their rows' signs follow from the gradients: with ``d1 <= d``
independent rows a gradient has unique coefficients in them, and a neuron that is off has
the coefficient 0.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.errors import SaturatedError
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.hyperplane import bend_everywhere, bend_shares, points_on_hyperplanes
from revelu.probe.kink_lines import Sharpening
from revelu.probe.kinks import find_kinks
from revelu.probe.line import Line
from revelu.recover.deep.seeds import are_among
from revelu.recover.line import Peeling
from revelu.recover.shallow.line_neurons import peel
from revelu.types import BoolArray, FloatArray


@dataclass
class FirstLayerRows:
    """Rows of norm 1 and what speaks for them."""

    W: FloatArray
    """Shape (d1, d)."""
    b: FloatArray
    """Shape (d1,)."""
    n_missing: int
    """Directions of the gradients that no row explains."""
    unsigned: BoolArray
    """Shape (d1,).  Rows whose sign nothing has told."""
    n_candidates: int
    """Hyperplanes that were tested."""
    n_leaky: int = 0
    """Rows without a sign of which both sides pass a signal on, in the same proportion wherever
    that was looked at."""

    @property
    def is_others(self) -> bool:
        """Whether what bends the function on lines is, for the most part, no first layer's.

        A line crosses every hyperplane of one: rows of fewer neurons than gradients show beside
        them are pieces of other surfaces, as of the largest of windows.
        """
        return self.n_missing > len(self.W)

    @property
    def is_leaky(self) -> bool:
        """Whether the neurons are leaky units, for all that is known."""
        return self.n_missing == 0 and 2 * self.n_leaky > len(self.W)

    @property
    def condition(self) -> float:
        """The condition number of W, by which its right inverse loses digits."""
        return float(np.linalg.cond(self.W)) if len(self.W) else 1.0

    def is_dependent(self, *, worst: float = 1e6) -> bool:
        """Whether rows have no right inverse.

        Parameters
        ----------
        worst : float
            With a larger condition number what derivatives leave of the digits, half or more, is
            gone.
        """
        return self.condition > worst


@dataclass
class FirstLayerSearch:
    """First-layer hyperplanes found so far, line by line."""

    oracle: Oracle
    noise: NoiseFloor
    rng: np.random.Generator
    max_lines: int = 4
    """Lines along missing directions, and crossings of one hyperplane."""
    few: float = 0.1
    """A line crosses every hyperplane: where more directions are missing than rows are known, one
    that shows fewer than this share of those is the last, for what it shows is others'."""
    max_blurred: int = 4
    """Lines on which no end of pieces is found after which others will be blurred, too."""
    nearby: float = 0.03
    """How far to either side, relative to the point, another line through it is followed."""
    imprecise: float = 1e-9
    """A row whose relative error is larger is measured again, the vaguest first,"""
    costly: float = 0.7
    """as far as that takes no more than this share of the queries so far,"""
    at_least: int = 1
    """and ``at_least`` in any case."""
    faint: float = 1e-6
    """A direction is missing when gradients leave more than this share of them in it, which is
    the root of what a derivative's digits leave; rows depend on each other when a singular
    value is less."""
    n_points: int = 24
    """Points at which rows that depend on each other are tested."""
    always: float = 0.95
    """Those of the first layer bend the function at a larger share of them."""
    off: float = 1e-4
    """A neuron is off where its coefficient is this share of what it is where the neuron is on."""
    uncorrupted: float = 0.9
    """The share of gradients that no kink has corrupted, at least."""
    step: float = 1e-3
    """Across a hyperplane, relative to the point, where that tells the sign of a row."""
    alike: float = 1e-3
    """The two sides pass on in the same proportion if it differs by less than this share,"""
    n_alike: int = 3
    """at ``n_alike`` places."""
    sharpening: Sharpening = field(default_factory=Sharpening)
    rows: FloatArray = field(init=False)
    """Shape (d1, d + 1).  Weights of norm 1 and biases."""
    errors: FloatArray = field(default_factory=lambda: np.empty(0), init=False)
    """Shape (d1,).  Standard errors of the rows."""
    n_candidates: int = field(default=0, init=False)
    n_blurred: int = field(default=0, init=False)
    """Hyperplanes tested, and blurred lines."""

    def __post_init__(self) -> None:
        self.rows = np.empty((0, self.oracle.dim_in + 1))

    def find(self, peeled: Peeling) -> FirstLayerRows:
        """Recover every first-layer neuron that the gradients show.

        Parameters
        ----------
        peeled : Peeling
            The kinks of one line, with a hyperplane each.

        Raises
        ------
        LimitReachedError
            If the budget ends.
        """
        self._test(peeled)
        if len(self.rows) > 2 * self.oracle.dim_in:
            # A few may be false, but whatever else there is, the layer cannot be set at will.
            return self._unsigned()
        for t in peeled.unresolved:
            if self.n_blurred == self.max_blurred:
                break
            self._test(self._peel_through(peeled.scan.line.points(np.array([t]))[0]))
        n_shown: float = np.inf
        for _ in range(self.max_lines):
            directions = self._left_out(peeled.jacobians)
            n_missing = len(directions)
            if not n_missing or n_shown < self.few * n_missing > self.few * len(self.rows):
                break
            n_before = len(self.rows)
            self._test(self._peel(self._line_along(directions), (-np.inf, np.inf)))
            n_shown = len(self.rows) - n_before
        self._drop_dependent()
        self._sharpen()
        W, b = self.rows[:, :-1], self.rows[:, -1]
        if len(W) > self.oracle.dim_in:
            return self._unsigned()
        n_missing = len(self._left_out(peeled.jacobians))
        signs = self._signs_by_gradients(W, b, peeled)
        n_leaky = 0
        for j in np.flatnonzero(signs == 0.0):
            signs[j], ratios = self._sign_by_crossing(W, b, int(j))
            n_leaky += signs[j] == 0.0 and self._are_alike(ratios)
        turned = np.where(signs < 0, -1.0, 1.0)
        W, b = W * turned[:, None], b * turned
        return FirstLayerRows(W, b, n_missing, signs == 0.0, self.n_candidates, n_leaky)

    def _unsigned(self) -> FirstLayerRows:
        W, b = self.rows[:, :-1], self.rows[:, -1]
        return FirstLayerRows(W, b, 0, np.ones(len(W), dtype=bool), self.n_candidates)

    def _peel(self, line: Line, interval: tuple[float, float]) -> Peeling | None:
        nu = float(self.noise.nu.max())
        try:
            scan = find_kinks(self.oracle, line, nu, self.noise.scale, self.rng, interval)
            self.n_blurred += not scan.complete
            return peel(self.oracle, scan, nu, self.rng)
        except SaturatedError:
            return None

    def _peel_through(self, x: FloatArray) -> Peeling | None:
        """Peel a short piece of a random line through a point.

        Kinks too near each other on one line are further apart, or not at all, on another.
        """
        v = self.rng.standard_normal(len(x))
        v *= max(float(np.linalg.norm(x)), len(x) ** 0.5) / np.linalg.norm(v)
        return self._peel(Line(x, v), (-self.nearby, self.nearby))

    def _test(self, peeled: Peeling | None) -> None:
        """Keep the new ones of a line's hyperplanes that bend the function everywhere."""
        if peeled is None:
            return
        rows, errors = _unit_rows(peeled)
        self.n_candidates += len(rows)
        new = ~are_among(rows, self.rows)
        rows, errors = rows[new], errors[new]
        chosen = bend_everywhere(self.oracle, self.noise, rows[:, :-1], rows[:, -1], self.rng)
        self.rows = np.vstack([self.rows, rows[chosen]])
        self.errors = np.append(self.errors, errors[chosen])

    def _drop_dependent(self) -> None:
        """Of dependent rows, drop those that bend the function least often, if not always.

        Above few first-layer neurons a second-layer one has few places to turn at, and a
        few points may all lie on the same of its pieces.
        """
        W, b = self.rows[:, :-1], self.rows[:, -1]
        n_spare = len(W) - int(np.linalg.matrix_rank(W, tol=self.faint))
        if n_spare <= 0:
            return
        shares = bend_shares(self.oracle, self.noise, W, b, self.rng, self.n_points)
        order = np.argsort(shares)[:n_spare]
        lost = order[shares[order] < self.always]
        self.rows, self.errors = np.delete(self.rows, lost, 0), np.delete(self.errors, lost)

    def _sharpen(self) -> None:
        """Measure imprecise rows again, from where their hyperplanes are at far apart points."""
        affordable = int(self.costly * self.oracle.n_queries / (4 * self.rows.shape[1]))
        order = np.argsort(-self.errors)[: max(affordable, self.at_least)]
        vague = order[self.errors[order] > self.imprecise]
        W, b = self.rows[vague, :-1], self.rows[vague, -1]
        rough = W, b, self.errors[vague]
        W, b, errors = self.sharpening.measure(self.oracle, self.noise, *rough, self.rng)
        self.rows[vague], self.errors[vague] = np.column_stack([W, b]), errors

    def _left_out(self, jacobians: FloatArray) -> FloatArray:
        """Orthonormal directions in which gradients change the function and no row looks.

        One Jacobian alone proves nothing: a kink may have corrupted it.
        """
        d = self.oracle.dim_in
        if not jacobians.size:
            return np.empty((0, d))
        Q = np.linalg.qr(self.rows[:, :-1].T)[0]
        rest = jacobians - (jacobians @ Q) @ Q.T
        sizes = np.linalg.norm(jacobians, axis=(1, 2))
        left_out = np.linalg.norm(rest, axis=(1, 2)) > self.faint * sizes
        if left_out.sum() < 2:
            return np.empty((0, d))
        _, values, vt = np.linalg.svd(rest[left_out].reshape(-1, d), full_matrices=False)
        return np.asarray(vt[values > self.faint * sizes.max()])

    def _line_along(self, directions: FloatArray) -> Line:
        """A line along which only missing neurons change."""
        d = directions.shape[1]
        x0 = self.rng.standard_normal(d)
        v = self.rng.standard_normal(len(directions)) @ directions
        v *= np.sqrt(d) / np.linalg.norm(v)
        return Line(x0 - v * (x0 @ v) / (v @ v), v)

    def _signs_by_gradients(self, W: FloatArray, b: FloatArray, peeled: Peeling) -> FloatArray:
        """+1, -1, or 0 where the gradients measured do not tell; no query is spent."""
        sizes = np.linalg.norm(peeled.jacobians @ np.linalg.pinv(W), axis=1)  # (n, d1)
        positive = peeled.points @ W.T + b > 0
        signs = np.zeros(len(W))
        if not sizes.size:
            return signs
        least = self.off * float(np.median(sizes))
        # The largest tell most; but a gradient that a kink has corrupted may be larger than any.
        for share in (1.0, self.uncorrupted):
            for j in np.flatnonzero(signs == 0.0):
                sides = positive[:, j], ~positive[:, j]
                if not all(side.any() for side in sides):
                    continue
                above, below = (float(np.quantile(sizes[side, j], share)) for side in sides)
                if max(above, below) > least:
                    signs[j] = float(below < self.off * above) - float(above < self.off * below)
        return signs

    def _are_alike(self, ratios: list[float]) -> bool:
        """Whether enough of what was seen of one hyperplane says the same."""
        typical = float(np.median(ratios)) if ratios else 0.0
        near = [abs(ratio - typical) <= self.alike * abs(typical) for ratio in ratios]
        return typical != 0.0 and sum(near) >= self.n_alike

    def _sign_by_crossing(self, W: FloatArray, b: FloatArray, j: int) -> tuple[float, list[float]]:
        """Which side of a hyperplane is flat when nothing else changes (DG21, 3.5.3).

        With what the negative side passes on, of what the other does, where both do.
        """
        noise, z = self.noise, np.linalg.pinv(W)[:, j]
        votes = 0
        ratios: list[float] = []
        for _ in range(self.max_lines):
            X, _ = points_on_hyperplanes(self.rng, W[[j]], b[[j]])
            step = self.step * np.linalg.norm(X) / np.linalg.norm(z)
            Y = self.oracle(np.vstack([X[0], X[0] + step * z, X[0] - step * z])) / noise.unit
            limit = 2.0 * SIGMAS * float(noise.nu.max()) * float(noise.growth(X[0]))
            with np.errstate(invalid="ignore"):  # infinite where the target is saturated
                on, off = Y[1] - Y[0], Y[0] - Y[2]
                up, down = float(np.abs(on).max()), float(np.abs(off).max())
            if min(up, down) > limit and np.isfinite(up + down):
                ratios.append(float(on @ off / (on @ on)))
            # The flat side is so but for what the rows are off by.
            votes += int(up > limit and down < self.off * up)
            votes -= int(down > limit and up < self.off * down)
            if abs(votes) > 1:
                break
        return float(np.sign(votes)), ratios


def _unit_rows(peeled: Peeling) -> tuple[FloatArray, FloatArray]:
    """Rows ``(w, b)`` with ``w`` of norm 1, and their errors."""
    rows = np.column_stack([peeled.network.weights[0], peeled.network.biases[0]])
    norms = np.linalg.norm(rows[:, :-1], axis=1)
    kept = norms > 0
    return rows[kept] / norms[kept, None], peeled.row_errors[kept]
