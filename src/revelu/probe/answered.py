"""Where a target answers with numbers: of the log-ratios of probabilities lines have ends.

A probability that has lost its digits says nothing of the logits, and there the log-ratios are
infinite.  Far along any line some logit falls behind by so much.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.probe.line import Ask, Line
from revelu.probe.region import Everywhere, Region
from revelu.types import FloatArray


def reach(
    ask: Ask,
    line: Line,
    interval: tuple[float, float] = (-np.inf, np.inf),
    *,
    n_nearer: int = 8,
) -> tuple[float, float]:
    """How far along a line the target answers, each way, in two rounds.

    Of two classes one commonly is 1 less the other, and saturated far nearer than that one.

    Parameters
    ----------
    ask : callable, (n, d) -> (n, k)
    interval : (float, float)
        Where it may be asked, 0 among it.
    n_nearer : int
        Places between the last answer and the first that is saturated, where it is told to one
        of them.

    Returns
    -------
    (float, float)
        Both 0 where the target is saturated at ``t = 0``.
    """
    t = np.concatenate([[0.0], 2.0 ** np.arange(-2.0, 14.0)])
    t = t[: np.searchsorted(t, max(-interval[0], interval[1])) + 1]
    ways = np.stack([np.minimum(t, interval[1]), np.maximum(-t, interval[0])])
    n_first = _n_answered(ask, line, ways[:, 1:])
    last = [way[n] for way, n in zip(ways, n_first, strict=True)]
    first = [way[min(n + 1, len(t) - 1)] for way, n in zip(ways, n_first, strict=True)]
    nearer = np.linspace(last, first, n_nearer + 2, axis=1)
    n_more = _n_answered(ask, line, nearer[:, 1:-1])
    after, before = (float(way[n]) for way, n in zip(nearer, n_more, strict=True))
    return before, after


def _n_answered(ask: Ask, line: Line, t: FloatArray) -> list[int]:
    """How many places of each row come before the first that is saturated, for ``t (m, n)``."""
    finite = np.isfinite(ask(line.points(t.ravel()))).all(axis=1)
    rows = np.reshape(finite, t.shape)
    return [int(n) for n in np.cumprod(rows, axis=1).sum(axis=1)]


@dataclass(frozen=True)
class Answered:
    """A region of which lines are followed as far as a target answers with numbers.

    Single points may be saturated.

    Attributes
    ----------
    ask : callable, (n, d) -> (n, k)
    inner : Region
        Where points and lines are drawn.
    max_lines : int
        Lines that are drawn until the target answers in the middle of one.
    """

    ask: Ask
    inner: Region = field(default_factory=Everywhere)
    max_lines: int = 16

    def points(self, rng: np.random.Generator, n: int, d: int) -> FloatArray:
        """Points of the region, shape (n, d)."""
        return self.inner.points(rng, n, d)

    def points_on_hyperplanes(
        self, rng: np.random.Generator, W: FloatArray, b: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """A point of each hyperplane, and the unit normals, shape (m, d)."""
        return self.inner.points_on_hyperplanes(rng, W, b)

    def line(self, rng: np.random.Generator, d: int) -> Line:
        """A line in the middle of which the target answers, or the last of those drawn."""
        line = self.inner.line(rng, d)
        for _ in range(self.max_lines - 1):
            if np.isfinite(self.ask(line.x0[None])).all():
                break
            line = self.inner.line(rng, d)
        return line

    def interval(self, line: Line) -> tuple[float, float]:
        """How far the target answers, inside of the region: 34 questions in two rounds."""
        return reach(self.ask, line, self.inner.interval(line))

    def shares(self, x: FloatArray, moves: FloatArray) -> FloatArray:
        """Those of the region."""
        return self.inner.shares(x, moves)

    def inside(self, X: FloatArray, moves: FloatArray) -> FloatArray:
        """Those of the region."""
        return self.inner.inside(X, moves)

    def clip(self, X: FloatArray) -> FloatArray:
        """Those of the region."""
        return self.inner.clip(X)
