"""The second hidden layer from answers of few digits, asked through the first.

1. Where the first layer has no more neurons than inputs, it puts out what one wants: ``h >= 0`` at
   ``x = W^+ (h - b)``, the shortest of all inputs that give it (DG21, section 3.5.4).
2. Of what lies above, the second layer is the first: on the orthant its hyperplanes go on
   everywhere, and those of the third end (:mod:`revelu.recover.deep.rough_rows`).
3. Where there is no third, lines on the orthant show rows of the second whole, which lines through
   the inputs show in part: of the neurons below that are on.

At a critical point of an upper neuron its gradient is ``sum_i v_i w_i`` over the first-layer
neurons that are on: those entries of its row.  Points that agree where they share entries are of
one neuron.
"""

import logging
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.errors import SaturatedError
from revelu.oracle import NoiseFloor
from revelu.probe.box import segment
from revelu.probe.line import Ask, Line
from revelu.probe.region import Orthant
from revelu.probe.view import AboveLayer
from revelu.recover.deep.rough_rows import RoughRows, unit
from revelu.recover.rows import Rows
from revelu.types import FloatArray

log = logging.getLogger(__name__)


def _in_orthant() -> RoughRows:
    """Lines are cheap there, where few of their kinks are new, and rows end at their first test."""
    region, how = Orthant(), RoughRows()
    return replace(
        how,
        rows=replace(how.rows, region=region, within=1.0),
        crossings=replace(how.crossings, region=region),
        max_lines=30,
        max_quiet=8,
        n_tests=(4, 8),
        straight=0.7,
        n_pairs=100,
    )


@dataclass(frozen=True)
class RoughAbove:
    """How the second layer is found."""

    rows: RoughRows = field(default_factory=_in_orthant)
    """On the orthant.  What a second neuron changes may vanish in some patterns of the third layer,
    so that more of its hyperplane's crossings may miss it than of the first layer's."""
    n_lines: int = 3
    """Lines that tell whether there are more than two layers."""
    nearly_off: float = 0.03
    """Lines that show rows of a last layer go from where a random half of the first layer puts out
    so small a share of what it does at random points to where the other half does: what adds up
    what few of it put out turns near walls.  Above a narrow one every other goes from where all of
    it does: that parts the corner from the other side of each hyperplane that is met."""
    narrow: int = 4
    max_quiet: int = 3
    """So many of these in turn that show none end them, or above no more neurons than ``narrow`` as
    many as on any lines through the orthant."""
    n_crossed: int = 4
    """Points of its hyperplane at which it is seen whether a row is a neuron's: at most of those
    that say something the answers bend as they have where it was found."""

    def find(
        self,
        ask: Ask,
        noise: NoiseFloor,
        first: Rows,
        rng: np.random.Generator,
        second: Rows | None = None,
    ) -> tuple[Rows, Rows]:
        """Find rows of the second layer, in what the first puts out, and others above it.

        Parameters
        ----------
        first : Rows
            Each as its neuron turns on.
        second : Rows, optional
            Of norm 1, of the second layer for sure.

        Returns
        -------
        second, others : Rows
            Of norm 1, their orientation open.
        """
        above, noise = self._above(ask, noise, first, rng)
        return self.rows.find(above, len(first), noise, rng, None, second)

    def last(self, ask: Ask, noise: NoiseFloor, first: Rows, rng: np.random.Generator) -> Rows:
        """Measure rows above a first layer of two or more until lines show hardly another one.

        Returns
        -------
        Rows
            Of norm 1 in what the first layer puts out, their orientation open, with their inputs.
        """
        above, noise = self._above(ask, noise, first, rng)
        how, rows, n_quiet = self.rows, Rows.none(len(first), len(noise.scale)), 0
        max_quiet = how.max_quiet if len(first) <= self.narrow else self.max_quiet
        for turn in range(how.max_lines):
            line = self._line_of_last(len(first), rng, is_odd=turn % 2 == 1)
            try:
                more = how.rows.find_new(above, len(first), noise, rows, rng, line)
            except SaturatedError:  # on this line alone, perhaps
                continue
            n_quiet = 0 if more is not None and len(more) else n_quiet + 1
            rows = rows if more is None else rows.joined(more)
            if n_quiet == max_quiet:
                break
        if not len(rows):
            return rows
        rows = unit(rows)
        crossed = how.crossings.cross(above, noise, rows, self.n_crossed, rng)
        is_clear = crossed.is_kink | crossed.is_straight
        is_neuron = 2 * crossed.is_own.sum(axis=1) >= np.maximum(is_clear.sum(axis=1), 1)
        log.info("%d of %d rows are neurons", is_neuron.sum(), len(rows))
        return replace(rows, X=above.inputs(rows.X)).take(is_neuron)

    def _line_of_last(self, m: int, rng: np.random.Generator, *, is_odd: bool) -> Line:
        """A line between two random points that are nearly at walls of the orthant of m neurons."""
        near = (rng.random(m) < 0.5) != np.array([[False], [True]])
        if m <= self.narrow:  # of few neurons it is the corner that the others see
            near = np.array([np.full(m, is_odd), np.zeros(m, dtype=bool)])
        points = self.rows.rows.region.points(rng, 2, m)
        return segment(*np.where(near, self.nearly_off * points, points))[0]

    def some_end(self, ask: Ask, noise: NoiseFloor, first: Rows, rng: np.random.Generator) -> bool:
        """Whether hyperplanes end where all of the first layer is on: two layers lie above."""
        if len(first) < 2:
            return False
        above, noise = self._above(ask, noise, first, rng)
        rows = Rows.none(len(first), len(noise.scale))
        for _ in range(self.n_lines):
            more = self.rows.rows.find_new(above, len(first), noise, rows, rng)
            rows = rows if more is None else rows.joined(more)
        return self.rows.crossings.some_end(above, noise, rows, rng)

    def _above(
        self, ask: Ask, noise: NoiseFloor, first: Rows, rng: np.random.Generator
    ) -> tuple[AboveLayer, NoiseFloor]:
        above = AboveLayer(ask, first.W, first.b)
        region = self.rows.crossings.region
        return above, above.noise(noise, region.points(rng, self.rows.n_pairs, len(first)))


@dataclass(frozen=True)
class RoughStarts:
    """How rows of lines become starts of the rows above a first layer."""

    worst: float = 0.01
    """A row of a larger error says nothing of an upper neuron,"""
    worst_rest: float = 0.1
    """nor one that the rows below leave more of."""
    same: float = 0.05
    """Share by which entries of one neuron's row may differ."""

    def find(
        self, first: Rows, others: Rows, whole: Rows | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return weights, shape (r, m), and biases, shape (r,), above ``m`` neurons.

        Parameters
        ----------
        first : Rows
            Each as its neuron turns on.
        others : Rows
            Of norm 1, as lines show them.
        whole : Rows, optional
            Rows above the first layer that are known in full, by what that puts out.
        """
        W, b = first.W, first.b
        rows = [] if whole is None else list(np.column_stack([whole.W, whole.b]))
        for w, x, error in zip(others.W, others.X, others.errors, strict=True):
            on = W @ x + b > 0
            if error > self.worst or not on.any():
                continue
            v, full = np.linalg.lstsq(W[on].T, w, rcond=None)[0], np.zeros(len(b) + 1)
            if np.linalg.norm(W[on].T @ v - w) > self.worst_rest:
                continue
            full[:-1][on] = v
            # The critical point itself gives the constant.
            full[-1] = -v @ (W[on] @ x + b[on])
            self._merge(rows, full)
        found = np.array(rows).reshape(-1, len(b) + 1)
        return found[:, :-1], found[:, -1]

    def _merge(self, rows: list[FloatArray], new: FloatArray) -> None:
        """Add a row, or its entries to the row that agrees where both have any."""
        for known in rows:
            common = (known != 0) & (new != 0)
            least = 0.5 * min((known != 0).sum(), (new != 0).sum())
            if common.sum() <= max(3, least):
                continue
            x, y = known[common], new[common]
            scale = (x @ y) / (y @ y)
            if np.linalg.norm(x - scale * y) < self.same * np.linalg.norm(x):
                missing = (known == 0) & (new != 0)
                known[missing] = scale * new[missing]
                return
        rows.append(new)
