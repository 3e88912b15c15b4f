"""A piece of a line: where it was seen, what it extrapolates to, where two meet."""

import math
from bisect import bisect
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.types import FloatArray


@dataclass(frozen=True)
class Meeting:
    """Where the lines of two pieces meet.

    Attributes
    ----------
    t : float
    error : float
        Standard error of ``theta = arctan(t)``.
    jump : ndarray, shape (k,)
        Change of ``df/dt`` from the left piece to the right one.
    excess : float
        By how many standard errors the change is more than one kink makes: several
        outputs that change at one point change along one direction.
    """

    t: float
    error: float
    jump: FloatArray
    excess: float


class Answer(NamedTuple):
    """A lifted answer ``g (k,)`` at ``t``; ``error (k,)`` is in units of the line's errors."""

    t: float
    g: FloatArray
    error: FloatArray


@dataclass
class Piece:
    """Points of one line, and the lifted answers there.

    Attributes
    ----------
    ts : list of float
        Increasing.
    gs : list of ndarray, shape (k,)
    errors : list of ndarray, shape (k,)
        Standard errors of the answers, in units of the line's.
    """

    ts: list[float] = field(default_factory=list)
    gs: list[FloatArray] = field(default_factory=list)
    errors: list[FloatArray] = field(default_factory=list)

    @classmethod
    def of(cls, *answers: Answer) -> "Piece":
        """The piece through answers, from left to right."""
        return cls(*([*part] for part in zip(*answers, strict=True)))

    @property
    def answers(self) -> list[Answer]:
        """What it was seen by, from left to right."""
        return [Answer(*each) for each in zip(self.ts, self.gs, self.errors, strict=True)]

    def part(self, start: int, stop: int | None = None) -> "Piece":
        """Return the piece through some of its points."""
        which = slice(start, stop)
        return Piece(self.ts[which], self.gs[which], self.errors[which])

    def joined(self, right: "Piece") -> "Piece":
        """Return the piece through its points and those of one to its right."""
        return Piece(self.ts + right.ts, self.gs + right.gs, self.errors + right.errors)

    def support(self) -> tuple[int, int]:
        """The two points that span the line best: theta apart by nearest to a right angle.

        Points at both far ends of a line are a straight angle apart in the lift and
        say next to nothing of what lies between them.
        """
        ts = self.ts
        last = len(ts) - 1
        if last == 1:  # as of most pieces
            return 0, 1
        # sin(theta_b - theta_a) = (b - a) / sqrt((1 + a^2) (1 + b^2)); lists are short, and
        # arrays would take longer to make than to use.
        lifts = [math.hypot(1.0, t) for t in ts]
        from_first = [(t - ts[0]) / lift / lifts[0] for t, lift in zip(ts, lifts, strict=True)]
        to_last = [(ts[-1] - t) / lift / lifts[-1] for t, lift in zip(ts, lifts, strict=True)]
        i, j = to_last.index(max(to_last)), from_first.index(max(from_first))
        return (0, j) if from_first[j] >= to_last[i] else (i, last)

    def add(self, answer: Answer) -> None:
        """Put a point in its place."""
        i = bisect(self.ts, answer.t)
        self.ts.insert(i, answer.t)
        self.gs.insert(i, answer.g)
        self.errors.insert(i, answer.error)

    def pop(self, end: int) -> Answer:
        """Take the first or the last point away."""
        return Answer(self.ts.pop(end), self.gs.pop(end), self.errors.pop(end))

    def extent(self) -> float:
        """The sine of the angle between the two points that span the line."""
        i, j = (self.ts[i] for i in self.support())
        return float((j - i) / np.hypot(1.0, i) / np.hypot(1.0, j))

    def extrapolate(self, t: float) -> tuple[FloatArray, FloatArray]:
        """Return the lifted value at ``t`` and its error in units of the line's, both (k,).

        With ``c_i = 1/sqrt(1 + t_i^2)`` the lifted values obey
        ``g = w1 g1 + w2 g2``, ``w1 = c (t2 - t) / (c1 (t2 - t1))`` and likewise.
        """
        i, j = self.support()
        t1, t2 = self.ts[i], self.ts[j]
        c = 1.0 / np.hypot(1.0, t)
        w1 = c * (t2 - t) / (t2 - t1) * np.hypot(1.0, t1)
        w2 = c * (t - t1) / (t2 - t1) * np.hypot(1.0, t2)
        error = np.hypot(w1 * self.errors[i], w2 * self.errors[j])
        return w1 * self.gs[i] + w2 * self.gs[j], error

    def slope_error(self) -> FloatArray:
        """Error of the slope of its line, over the angle, in units of the line's, (k,)."""
        i, j = self.support()
        return np.asarray(np.hypot(self.errors[i], self.errors[j]) / self.extent())

    def off(self, sigma: FloatArray) -> FloatArray:
        """How far inner points lie off the line, in standard errors, shape (n, k).

        Parameters
        ----------
        sigma : ndarray, shape (k,)
            The line's errors.
        """
        unit = np.where(sigma > 0.0, sigma, 1.0)
        found = np.zeros((max(len(self.ts) - 2, 0), len(sigma)))
        for i, (t, g, error) in enumerate(self.answers[1:-1]):
            value, own = self.extrapolate(t)
            found[i] = np.abs(value - g) / unit / np.hypot(error, own)
        return found

    def strained(self, sigma: FloatArray) -> "Piece":
        """Return the same with errors that its inner points bear out: it may hide a faint bend.

        Parameters
        ----------
        sigma : ndarray, shape (k,)
            The line's errors.
        """
        strain = float(self.off(sigma).max(initial=1.0))
        return Piece(self.ts, self.gs, [strain * error for error in self.errors])

    def holds(self, answer: Answer, sigma: FloatArray) -> bool:
        """Whether a point lies on the piece's line, ``sigma (k,)`` being the line's errors."""
        t, g, error = answer
        value, own = self.extrapolate(t)
        return bool((np.abs(value - g) <= SIGMAS * sigma * np.hypot(error, own)).all())

    def meet(self, right: "Piece", sigma: FloatArray) -> Meeting:
        """Intersect with the piece to the right.

        The difference of the two, ``D(t) = right(t) - left(t)``, is affine in ``t``
        before the lift: ``D = jump (t - t*)``.  It is evaluated at a support point of
        either piece, where one of the two is known without extrapolation.
        """
        first, last = self.support()[0], right.support()[1]
        a, b = self.ts[first], right.ts[last]
        value_a, weight_a = right.extrapolate(a)
        value_b, weight_b = self.extrapolate(b)
        own_a, own_b = self.extrapolate(a)[0], right.extrapolate(b)[0]
        errors = np.hypot([self.errors[first], right.errors[last]], [weight_a, weight_b])
        # Outputs that err by less count for more.
        share = errors.max(axis=0)
        unit = np.where(sigma > 0, sigma * share, 1.0)
        D = np.stack([(value_a - own_a) / unit, (own_b - value_b) / unit])
        if not np.isfinite(D).all():
            return Meeting(np.nan, np.inf, np.zeros_like(sigma), np.inf)
        # One kink: D has rank one over the outputs.
        _, _, vt = np.linalg.svd(D, full_matrices=False)
        A, B = D @ vt[0]
        lift_a, lift_b = np.hypot(1.0, a), np.hypot(1.0, b)
        rest = np.linalg.norm(D - np.outer([A, B], vt[0]), axis=1)
        excess = float((rest / (errors / share).max(axis=1)).max()) if len(sigma) > 1 else 0.0
        rise = B * lift_b - A * lift_a
        if rise == 0.0:
            return Meeting(np.nan, np.inf, np.zeros_like(sigma), excess)
        t = a + (b - a) * (-A * lift_a) / rise
        # D(theta) = J sin(theta - theta*), so an error e of D moves theta* by e / J.
        slope = abs(rise) / (b - a) / np.hypot(1.0, t)
        at_kink = np.hypot(self.extrapolate(t)[1], right.extrapolate(t)[1])
        c = np.linalg.norm(vt[0] * at_kink / share)
        return Meeting(float(t), float(c / slope), self._jump(D, unit, t, a, b), excess)

    def meet_projected(self, right: "Piece", projection: FloatArray) -> float:
        """Where the two lines meet in one combination of the outputs."""
        one = np.ones(1)
        parts = [
            Piece(p.ts, [projection[None] @ g for g in p.gs], [one] * len(p.ts))
            for p in (self, right)
        ]
        return parts[0].meet(parts[1], one).t

    @staticmethod
    def _jump(D: FloatArray, unit: FloatArray, t: float, a: float, b: float) -> FloatArray:
        """Least squares for ``D_i = jump * (t_i - t) / lift_i`` over both ends."""
        arms = np.array([(a - t) / np.hypot(1.0, a), (b - t) / np.hypot(1.0, b)])
        return np.asarray(unit * (arms @ D) / (arms @ arms))
