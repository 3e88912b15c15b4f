"""The span of a first layer from numbers, by gradients (JWZ20, Algorithm 1).

Every gradient of ``f(x) = g(A x)`` is ``A^T ∇g(A x)``, a combination of A's rows.  (In
print, section 2 has g in place of ∇g, and Lemma 3.2 draws its points from N(0, I_k) in
place of N(0, I_n).)  Algorithm 1 as stated is in ``one_round``.  Here is its thrifty form:
of the r directions known so far and their complement, only the complement's n - r
coordinates of a gradient are measured, of all outputs at once, at points where a move
inside the complement changes an answer.
"""

from dataclasses import dataclass

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network.span import Span, complement
from revelu.numerics.complement import Complement
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.float64 import TINY
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.gradient import Differences, Step, unit_rows
from revelu.recover.method import Tell, Why
from revelu.recover.span.candidate import SpanCandidate
from revelu.types import FloatArray

_UNSEEN = (
    "answers still change by up to {change:.1g} of their size outside of the span, but no "
    "gradient there stands out of the noise"
)


@dataclass(frozen=True)
class Adaptive:
    """JWZ20, Algorithm 1 and Lemma 3.2, gradients one after another."""

    smooth: bool = False
    """Whether the target curves everywhere: differences are then central."""
    n_points: int = 16
    n_empty_looks: int = 2
    """Points of a look around, and looks that must find nothing to add: nothing is then left that
    more than a tenth of N(0, I) shows, at 95% confidence (0.9^28 > 0.05 > 0.9^29)."""
    n_lines: int = 2
    """Lines through a point that choose its step and tell whether it has something to add."""
    share: float = 0.02
    relax: float = 4.0
    """Directions are taken where they weigh this share of the strongest gradient, for errors grow
    by its inverse; where no point offers one, ``relax`` times less, again and again.  Of k outputs,
    which bring k directions at once, a k-th of that is enough."""
    estimate: float = 0.4
    """What counts as a direction along a few lines only, as a share of what will count."""
    shortest: float = 1e-7
    longest: float = 1.0
    """Steps worth trying at first."""
    fraction: float = 0.02
    multiple: float = 3.0
    """Later, in units of the usual step.  Shorter ones, which err more, wait as weak directions
    do."""

    def find(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, tell: Tell
    ) -> SpanCandidate:
        """Recover the row span of the first layer, adaptively."""
        search = _AdaptiveSearch(self, Differences(oracle, noise, self.smooth), rng)
        why, n_empty = Why.EXPLAINED, 0
        notes: tuple[str, ...] = ()
        try:
            while search.rank < oracle.dim_in:
                # 1. Points where a move that the basis does not know of changes an answer.
                points = search.look_around()
                n_empty = 0 if points else n_empty + 1
                if n_empty == self.n_empty_looks:
                    break
                # 2. The complement's coordinates of the gradients there, while they add to it.
                before = search.rank
                is_moved = bool(points)
                while search.rank < oracle.dim_in and (point := search.best_of(points)):
                    tell(f"{search.rank} directions")
                    search.learn_at(point)
                # 3. Nothing strong is left: take what is weaker, down to the noise.
                if is_moved and search.rank == before:
                    search.share /= self.relax
                    if search.share * self.relax < search.floor:
                        why, notes = Why.UNRESOLVED, (_UNSEEN.format(change=search.change),)
                        break
        except LimitReachedError as error:
            why, notes = Why.LIMIT, (str(error),)
        return SpanCandidate(
            search.span(),
            why,
            notes,
            expected_angle=search.angle,
            leak=search.leak,
            figures={"gradients": search.n_gradients},
        )


@dataclass(eq=False)
class _Point:
    """A point, its answer in units, its step, and how many directions it may add.

    ``gain`` was counted from ``slopes (m, k)`` along the lines of the search at that time.  It
    never grows: the more is known, the less is left of the same gradients.
    """

    x: FloatArray
    fx: FloatArray
    gain: int
    step: Step | None = None
    slopes: FloatArray | None = None


class _AdaptiveSearch:
    """The adaptive search: a basis, its complement, and what is known of their errors."""

    def __init__(self, method: Adaptive, target: Differences, rng: np.random.Generator) -> None:
        self.method, self.target, self.rng = method, target, rng
        self.oracle = target.oracle
        self.n_outputs = len(target.noise.scale)  # how many gradients a point brings
        self.rest = Complement(self.oracle.dim_in, rng)
        self.sizes: list[float] = []
        self.errors: list[float] = []
        self.leaked: list[float] = []
        self.largest = 0.0
        self.share = method.share / self.n_outputs
        self.steps: list[float] = []
        self.change = 0.0
        self.n_gradients = 0
        self.lines = np.empty((0, self.oracle.dim_in))

    @property
    def rank(self) -> int:
        """Directions found so far."""
        return len(self.sizes)

    @property
    def n_left(self) -> int:
        """Directions of the input outside of those."""
        return len(self.rest.basis)

    @property
    def leak(self) -> float:
        """How far the basis may be off, in radians, where directions are as strong as usual.

        Triangular elimination amplifies the errors of single gradients about as much as
        the inverse of a random r x r matrix does, r-fold.
        """
        return float(np.median(self.errors) * self.rank) if self.errors else 0.0

    @property
    def angle(self) -> float:
        """About how far off the span is, in radians.

        By the errors of its gradients, and by what of the basis leaks into the direction
        that is weakest beside it: rows all but parallel are told apart no better.
        """
        own = float(np.linalg.norm(self.errors))
        return float(np.sqrt(self.leak**2 + own**2 + max(self.leaked, default=0.0) ** 2))

    def look_around(self) -> list[_Point]:
        """Points where a move inside the complement changes an answer."""
        n, n_points = self.oracle.dim_in, self.method.n_points
        X = self.rng.standard_normal((n_points, n))
        moves = self.rng.standard_normal((n_points, n - self.rank)) @ self.rest.basis
        Y = self.target.answers(np.vstack([X, X + moves]))
        with np.errstate(invalid="ignore"):
            changes = np.abs(Y[n_points:] - Y[:n_points]).max(axis=1)
        limit = SIGMAS * np.array([self.target.error_at(x) for x in X + moves]) * 2.0**0.5
        limit += SIGMAS * self.leak * self.largest
        moved = np.isfinite(changes) & (changes > limit)
        self.change = float(changes[moved].max(initial=0.0))
        return [_Point(X[i], Y[i], self.n_outputs) for i in np.flatnonzero(moved)]

    def best_of(self, points: list[_Point]) -> _Point | None:
        """Take the point that adds most off a list, and what adds nothing; None if none does.

        Greedy and lazy: a gain never grows, so that it is counted again only where it may be
        the largest.  Nor can one point add more than several show together along the same
        lines.  Another point is weighed while that costs less than it may save, a direction
        being worth (n - r) / k queries.
        """
        n_lines = min(self.n_outputs + self.method.n_lines, self.n_left)
        self.lines = np.linalg.qr(self.rng.standard_normal((self.n_left, n_lines)))[0].T
        least = 0.0
        seen: list[FloatArray] = []
        chosen, bound = None, self.n_outputs
        while points and bound:
            best = max(points, key=lambda point: point.gain)
            if min(best.gain, bound) <= least:
                break
            before = self.oracle.n_queries
            self._weigh(best)
            if best.slopes is not None and best.step is not None:
                seen.append(best.slopes)
                bound = self._count(np.hstack(seen), best.step) if len(seen) > 1 else bound
            if not best.gain:
                points.remove(best)
            elif chosen is None or best.gain > chosen.gain:
                chosen = best
            if chosen is not None:
                cost = self.oracle.n_queries - before
                least = chosen.gain + cost * self.n_outputs / self.n_left
        if chosen is None:
            points.clear()
        else:
            points.remove(chosen)
        return chosen

    def _weigh(self, point: _Point) -> None:
        """Count what the gradients at a point add, by a few lines in the complement."""
        lines = self.lines @ self.rest.basis
        point.slopes = None
        if point.step is None:
            few = lines[: self.method.n_lines]
            point.step = self.target.find_step(point.x, point.fx, few, *self._steps())
            point.gain = 0 if point.step is None else self._count(point.step.slopes, point.step)
            if point.step is None or not point.gain or self.n_outputs == 1:
                return
        point.gain = 0
        # The steepest of many lines tells how near a kink is: if all of them hold farther out,
        # hundreds of others hold here.
        reserve = 1.0 if self.target.smooth else self.target.reserve
        point.step = point.step.scaled(reserve)
        measured = self.target.gradient(point.step, lines, self.rng)
        if measured is None:
            return
        point.step = measured[1].scaled(1.0 / reserve)
        if point.step.h >= self._steps()[0]:
            point.slopes, point.gain = measured[0], self._count(*measured)

    def _count(self, slopes: FloatArray, step: Step) -> int:
        """Count directions in slopes along random lines (m, k) of the complement.

        A random unit vector has 1 / (n - r) of the squared length on each axis.
        """
        growth = np.sqrt(self.n_left / len(slopes))
        values = np.linalg.svd(slopes, compute_uv=False) * growth
        return int((values >= self.method.estimate * self._least(step)).sum())

    def learn_at(self, point: _Point) -> None:
        """Measure the gradients there in the complement, and take the directions they add."""
        if point.step is None:
            return
        # Along the lines that weighed the point they are known.
        others = None if point.slopes is None else complement(self.lines)
        rows = self.rest.basis if others is None else others @ self.rest.basis
        found = self.target.gradient(point.step, rows, self.rng)
        if found is None:
            return
        gradients = found[0].T
        if others is not None and point.slopes is not None:
            gradients = point.slopes.T @ self.lines + gradients @ others
        self.steps.append(found[1].h)
        # Slopes there inside of the span; where even these cannot be told, nothing is added.
        n_lines = self.method.n_lines
        known: FloatArray | None = np.zeros((1, self.n_outputs))
        if self.rank:
            lines = unit_rows(self.rng, n_lines, self.rank) @ self.rest.taken
            known = self.target.along(point.step, lines)
        if known is not None:
            self._add(gradients, found[1], known * np.sqrt(self.rank / n_lines))

    def _steps(self) -> tuple[float, float]:
        """The shortest and the longest step worth trying, from those that were good."""
        method = self.method
        if not self.steps:
            return method.shortest, method.longest
        usual = float(np.median(self.steps))
        patience = self.share * self.n_outputs / method.share
        return usual * patience * method.fraction, min(method.multiple * usual, method.longest)

    def _least(self, step: Step) -> float:
        """The least that a direction may weigh here: its share, and what noise allows."""
        noise = step.error * (np.sqrt(self.n_left) + np.sqrt(self.n_outputs))
        return float(max(self.share * self.largest, SIGMAS * (noise + self.leak * self.largest)))

    def _add(self, gradients: FloatArray, step: Step, known: FloatArray) -> None:
        """Take the directions of gradients (k, n - r) that stand out of noise and leak.

        What leaks here is of the gradients here, ``known (m, k)`` inside of the span, as long
        as they are.
        """
        self.n_gradients += len(gradients)
        mixes, values, vt = np.linalg.svd(gradients, full_matrices=False)
        leaks = self.leak * np.linalg.norm(known @ mixes, axis=0)
        least = max(self._least(step), SIGMAS * self.leak * float(np.linalg.norm(known)))
        self.largest = max(self.largest, float(values[0]))
        new = values >= max(least, self._least(step))
        error = step.error * np.sqrt(self.n_left)
        self.errors += [float(error / value) for value in values[new]]
        self.leaked += [float(a / b) for a, b in zip(leaks[new], values[new], strict=True)]
        self.sizes += [float(value) for value in values[new]]
        self.rest.take(vt[new])

    @property
    def floor(self) -> float:
        """Below this share of the strongest gradient a direction cannot be told from noise."""
        if not self.steps:
            return self.method.share
        sigma = self.target.error_at(np.ones(1)) / float(np.median(self.steps))
        noise = 3.0 * sigma * np.sqrt(self.oracle.dim_in)
        return SIGMAS * float(noise / max(self.largest, TINY) + self.leak)

    def span(self) -> Span:
        """What was found."""
        sizes = np.sort(self.sizes)[::-1] / max(self.largest, TINY)
        floor = self.floor if self.rank else 0.0
        return Span(self.rest.taken, sizes, floor, np.hypot(self.errors, self.leaked))
