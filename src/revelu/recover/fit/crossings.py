"""Whether hyperplanes that are known roughly go on: short lines across them, far from each other.

A hidden neuron's hyperplane is one wherever nothing below bends it: in the first layer everywhere.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.kink_lines import EXTRAPOLATED, KinkLines
from revelu.probe.line import Ask
from revelu.probe.region import Everywhere, Region
from revelu.recover.rows import Rows
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Crossed:
    """What short lines across m hyperplanes say, n each."""

    is_kink: BoolArray
    is_straight: BoolArray
    is_blank: BoolArray
    """Shape (m, n).  Whether the function bends once on the line, goes on as it is, or is
    constant; other lines cross several hyperplanes."""
    points: FloatArray
    """Shape (m, n, d + 1).  ``(x, 1)`` where it bends,"""
    errors: FloatArray
    """and how far off the hyperplane that may be, shape (m, n)."""
    bends: FloatArray
    """Shape (m, n).  How much, in units of what the row's line has shown."""
    same: float
    """A bend is the row's own that is as large up to this factor."""

    @property
    def is_own(self) -> BoolArray:
        """Where the function bends as it does where the row was found, shape (m, n)."""
        return np.asarray(self.is_kink & (self.bends < self.same) & (self.bends * self.same > 1.0))

    @property
    def goes_on(self) -> BoolArray:
        """Which hyperplanes are likelier to go on everywhere than not, shape (m,)."""
        n_kinks, n_straight = self.is_kink.sum(axis=1), self.is_straight.sum(axis=1)
        least = min(3, self.is_kink.shape[1] // 2)
        return np.asarray((n_kinks >= least) & (n_kinks >= 1.5 * n_straight))

    @property
    def ends(self) -> BoolArray:
        """Which hyperplanes certainly end: no line shows them, and two show that, shape (m,)."""
        return np.asarray((self.is_straight.sum(axis=1) >= 2) & ~self.is_kink.any(axis=1))


@dataclass(frozen=True)
class Crossings:
    """How lines across a hyperplane are asked."""

    margin: float = 5.0
    """They reach this many errors of the row to both sides of it, and place a kink within half,"""
    shortest: float = 3e-3
    longest: float = 0.15
    """but no less and no further than this, relative to the size of the point: shorter ones show no
    bend in float32, and longer ones meet other hyperplanes."""
    faint: float = 0.1
    """They are long enough for a bend of this share of the row's own."""
    n_tests: int = 4
    """Lines that tell whether a hyperplane goes on."""
    region: Region = field(default_factory=Everywhere)
    """Where they are."""
    n_rows: tuple[int, ...] = (8, 16, 32, 64)
    """Numbers of hyperplanes that are crossed, one after the other as long as it is open"""
    few_ended: float = 0.07
    many_ended: float = 0.4
    """because more than this share have ended, and less than that."""
    ended: float = 0.2
    """Share of all that were crossed, and two at least, that has to end: in one hidden layer of 100
    neurons 7% did at most, and a third and more in two."""
    same_bend: float = 1.25
    """A neuron below the output bends the function alike wherever it does, up to this factor;"""
    own: float = 0.33
    n_told: int = 100
    """or no more than this share of ``n_told`` bends or more has to be the row's own.  Where
    hyperplanes are dense lines across one that has ended meet another, which says that it goes on;
    but of one hidden layer of 100 neurons on four inputs half of the bends were the row's own at
    least, and a fifth at most of two layers of 64 or 128."""

    def cross(
        self, ask: Ask, noise: NoiseFloor, rows: Rows, n: int, rng: np.random.Generator
    ) -> Crossed:
        """Cross each hyperplane at ``n`` random points of it, in one round."""
        m, d = rows.W.shape
        which = np.repeat(np.arange(m), n)
        X, M = self.region.points_on_hyperplanes(rng, rows.W[which], rows.b[which])
        sigma = noise.relative
        # The change of slope that a row makes; differences of four answers, each over half of T.
        bend = np.linalg.norm(rows.A / noise.unit, axis=1) * np.linalg.norm(rows.W, axis=1)
        visible = SIGMAS * 4.0 * sigma / np.maximum(self.faint * bend, 1e-300)
        reach = np.maximum(self.margin * rows.errors, visible)[which]
        T = np.clip(reach, self.shortest, self.longest) * noise.growth(X)
        lines = KinkLines(X, M, np.zeros(len(X)), T)
        Y = ask(lines.points)
        seen = lines.read(Y, noise)
        inner = np.diff((Y / noise.unit).reshape(len(X), 4, -1), axis=1)
        slopes = inner / (T[:, None] * np.array([0.5, 1.0, 0.5]))[:, :, None]
        apart = np.abs(slopes[:, [0, 2]] - slopes[:, [1]]).max(axis=(1, 2))
        # Slopes of half a range and of a whole one differ by one answer beside two, over the range.
        error = SIGMAS * EXTRAPOLATED * sigma * noise.growth(X) / T
        # A bend that errors hide is none that is not there.
        is_straight = (apart <= error) & (error <= bend[which]) & ~seen.is_blank
        points = np.column_stack([lines.meets(seen), np.ones(len(X))])
        return Crossed(
            seen.is_kink.reshape(m, n),
            is_straight.reshape(m, n),
            seen.is_blank.reshape(m, n),
            points.reshape(m, n, d + 1),
            seen.tau_error.reshape(m, n),
            np.linalg.norm(seen.jumps, axis=1).reshape(m, n) / np.maximum(bend, 1e-300)[:, None],
            self.same_bend,
        )

    def some_end(self, ask: Ask, noise: NoiseFloor, rows: Rows, rng: np.random.Generator) -> bool:
        """Whether hyperplanes end: there is more than one hidden layer.

        A row that belongs to no neuron ends as well.  Such rows are few, but they are sums of two
        neurons', and long: among rows of the smallest relative errors they are many, and so rows
        are drawn at random, more of them while it is open.

        Parameters
        ----------
        rows : Rows
            Of one line: what later lines add has more rows of no neuron.
        """
        order = rng.permutation(len(rows))
        n_ended, n_bends, n_own, start, stop = 0, 0, 0, 0, 0
        for stop in sorted({min(n, len(rows)) for n in self.n_rows} - {0}):
            crossed = self.cross(ask, noise, rows.take(order[start:stop]), self.n_tests, rng)
            n_ended += int((crossed.is_straight.sum(axis=1) > crossed.is_kink.sum(axis=1)).sum())
            n_bends += int(crossed.is_kink.sum())
            n_own += int(crossed.is_own.sum())
            is_told = n_bends >= self.n_told or 2 * n_own > n_bends
            few = n_ended <= self.few_ended * stop and is_told
            if few or n_ended >= max(2.0, self.many_ended * stop):
                break
            start = stop
        differ = n_bends >= self.n_told and n_own <= self.own * n_bends
        return n_ended >= max(2.0, self.ended * stop) or differ
