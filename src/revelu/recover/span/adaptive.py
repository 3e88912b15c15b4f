"""The span of a first layer from numbers, by gradients (JWZ20, Algorithm 1).

Every gradient of ``f(x) = g(A x)`` is ``A^T ∇g(A x)``, a combination of A's rows.  (In
print, section 2 has g in place of ∇g, and Lemma 3.2 draws its points from N(0, I_k) in
place of N(0, I_n).)  Algorithm 1 as stated is in `span_at_once`.  Here is its thrifty form:
of the r directions known so far and their complement, only the complement's n - r
coordinates of a gradient are measured, of all outputs at once, at points where a move
inside the complement changes an answer.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network.span import Span, complement
from revelu.numerics.complement import Complement
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.slopes import (
    RESERVE,
    Step,
    differences,
    error_at,
    find_step,
    measure_gradient,
    unit_of,
    unit_rows,
)
from revelu.recovery import SpanRecovery, Status
from revelu.types import FloatArray

log = logging.getLogger(__name__)

# Points of a look around.  Where none of two looks has anything to add, nothing is left
# that more than a tenth of N(0, I) shows, at 95% confidence.
_N_POINTS = 16
_N_EMPTY_LOOKS = 2

# Lines through a point that choose its step and tell whether it has something to add.
_N_LINES = 2

# Directions are taken where they weigh this share of the strongest gradient, for errors
# grow by its inverse; where no point offers such a one, by less and less.  Of k outputs,
# which bring k directions at once, a k-th of that is enough.
_SHARE = 0.02
_RELAX = 4.0
_ESTIMATE = 0.4

# Steps worth trying at first; later, in those that are usual.  Shorter ones, which err more,
# wait as weak directions do.
_SHORTEST, _LONGEST = 1e-7, 1.0
_FRACTION, _MULTIPLE = 0.02, 3.0


@dataclass(eq=False)
class _Place:
    """A point, its answer in units, its step, and how many directions it added at most.

    ``gain`` was counted when ``rank`` directions were known, from ``slopes (m, k)`` along
    the search's lines of that rank.  It never grows: what is known leaves less of the same
    gradients.
    """

    x: FloatArray
    fx: FloatArray
    gain: int
    rank: int = -1
    step: Step | None = None
    slopes: FloatArray | None = None


class _Search:
    """The adaptive search: a basis, its complement, and what is known of their errors."""

    def __init__(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, smooth: bool
    ) -> None:
        self.oracle, self.noise, self.rng, self.smooth = oracle, noise, rng, smooth
        self.rest = Complement(oracle.dim_in, rng)
        self.sizes: list[float] = []
        self.errors: list[float] = []
        self.leaked: list[float] = []
        self.largest = 0.0
        self.share = _SHARE / self.n_outputs
        self.steps: list[float] = []
        self.change = 0.0
        self.n_gradients = 0
        self.lines = np.empty((0, oracle.dim_in))

    @property
    def rank(self) -> int:
        """Directions found so far."""
        return len(self.sizes)

    @property
    def n_left(self) -> int:
        """Directions of the input outside of those."""
        return len(self.rest.basis)

    @property
    def n_outputs(self) -> int:
        """How many gradients a point brings."""
        return int(self.noise.scale.size)

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

    def look_around(self) -> list[_Place]:
        """Points where a move inside the complement changes an answer."""
        n = self.oracle.dim_in
        X = self.rng.standard_normal((_N_POINTS, n))
        moves = self.rng.standard_normal((_N_POINTS, n - self.rank)) @ self.rest.basis
        Y = self.oracle(np.vstack([X, X + moves])) / unit_of(self.noise)
        with np.errstate(invalid="ignore"):
            changes = np.abs(Y[_N_POINTS:] - Y[:_N_POINTS]).max(axis=1)
        limit = SIGMAS * np.array([error_at(self.noise, x) for x in X + moves]) * 2.0**0.5
        limit += SIGMAS * self.leak * self.largest
        moved = np.isfinite(changes) & (changes > limit)
        self.change = float(changes[moved].max(initial=0.0))
        return [_Place(X[i], Y[i], self.n_outputs) for i in np.flatnonzero(moved)]

    def best_of(self, places: list[_Place]) -> _Place | None:
        """Take the place that adds most off a list, and what adds nothing; None if none does.

        Greedy and lazy: a gain is counted again only where it may be the largest, for others
        have not grown.  Nor can one place add more than several show together, along the
        same lines.  Another one is weighed where that costs less than it may save: what a
        direction costs is (n - r) / k queries.
        """
        n_lines = min(self.n_outputs + _N_LINES, self.n_left)
        self.lines = np.linalg.qr(self.rng.standard_normal((self.n_left, n_lines)))[0].T
        least = 0.0
        seen: list[FloatArray] = []
        chosen, bound = None, self.n_outputs
        while places and bound:
            best = max(places, key=lambda place: place.gain)
            if min(best.gain, bound) <= least:
                break
            before = self.oracle.n_queries
            self._weigh(best)
            if best.slopes is not None and best.step is not None:
                seen.append(best.slopes)
                bound = self._count(np.hstack(seen), best.step) if len(seen) > 1 else bound
            if not best.gain:
                places.remove(best)
            elif chosen is None or best.gain > chosen.gain:
                chosen = best
            if chosen is not None:
                cost = self.oracle.n_queries - before
                least = chosen.gain + cost * self.n_outputs / self.n_left
        if chosen is None:
            places.clear()
        else:
            places.remove(chosen)
        return chosen

    def _weigh(self, place: _Place) -> None:
        """Count what the gradients at a place add, by a few lines in the complement."""
        x, fx, step, lines = place.x, place.fx, place.step, self.lines @ self.rest.basis
        place.rank, place.slopes = self.rank, None
        if step is None:
            few, ends = lines[:_N_LINES], self._steps()
            step = find_step(self.oracle, self.noise, x, fx, few, ends, smooth=self.smooth)
            place.step = step
            place.gain = 0 if step is None else self._count(step.slopes, step)
            if step is None or not place.gain or self.n_outputs == 1:
                return
        place.gain = 0
        # Of many lines the steepest tells how near a kink is: where they hold farther out,
        # hundreds of others hold here.
        reserve = 1.0 if step.central else RESERVE
        place.step = step.scaled(reserve)
        measured = self._measure(place, lines)
        if measured is None:
            return
        place.step = measured[1].scaled(1.0 / reserve)
        if place.step.h >= self._steps()[0]:
            place.slopes, place.gain = measured[0], self._count(*measured)

    def _count(self, slopes: FloatArray, step: Step) -> int:
        """Count directions in slopes along random lines (m, k) of the complement.

        A random unit vector has 1 / (n - r) of the squared length on each axis.
        """
        growth = np.sqrt(self.n_left / len(slopes))
        values = np.linalg.svd(slopes, compute_uv=False) * growth
        return int((values >= _ESTIMATE * self._least(step)).sum())

    def learn_at(self, place: _Place) -> int:
        """Measure the gradients there in the complement; return how many directions they add."""
        if place.slopes is None:
            found = self._measure(place, self.rest.basis)
            gradients = None if found is None else found[0].T
        else:
            # Along the lines that weighed it they are known.
            others = complement(self.lines)
            found = self._measure(place, others @ self.rest.basis)
            across = place.slopes.T @ self.lines
            gradients = None if found is None else across + found[0].T @ others
        if found is None or gradients is None:
            return 0
        self.steps.append(found[1].h)
        known = self._known_slopes(place)
        # Where even these cannot be told, nothing is added.
        return 0 if known is None else self._add(gradients, found[1], known)

    def _known_slopes(self, place: _Place) -> FloatArray | None:
        """Slopes there along random lines inside of the span, (m, k), as long as its gradients."""
        if not self.rank or place.step is None:
            return np.zeros((1, self.n_outputs))
        lines = unit_rows(self.rng, _N_LINES, self.rank) @ self.rest.taken
        slopes = differences(self.oracle, self.noise, place.x, place.fx, lines, place.step)
        return None if slopes is None else slopes * np.sqrt(self.rank / _N_LINES)

    def _measure(self, place: _Place, rows: FloatArray) -> tuple[FloatArray, Step] | None:
        if place.step is None:
            return None
        return measure_gradient(
            self.oracle, self.noise, self.rng, place.x, place.fx, rows, place.step
        )

    def _steps(self) -> tuple[float, float]:
        """The shortest and the longest step worth trying, from those that were good."""
        if not self.steps:
            return _SHORTEST, _LONGEST
        usual = float(np.median(self.steps))
        patience = self.share * self.n_outputs / _SHARE
        return usual * patience * _FRACTION, min(_MULTIPLE * usual, _LONGEST)

    def _least(self, step: Step) -> float:
        """The least that a direction may weigh here: its share, and what noise allows."""
        noise = step.error * (np.sqrt(self.n_left) + np.sqrt(self.n_outputs))
        return float(max(self.share * self.largest, SIGMAS * (noise + self.leak * self.largest)))

    def _add(self, gradients: FloatArray, step: Step, known: FloatArray) -> int:
        """Take the directions of gradients (k, n - r) that stand out of noise and leak.

        What leaks here is of the gradients here, ``known (m, k)`` inside of the span.
        """
        self.n_gradients += len(gradients)
        mixes, values, vt = np.linalg.svd(gradients, full_matrices=False)
        leaks = self.leak * np.linalg.norm(known @ mixes, axis=0)
        least = max(self._least(step), SIGMAS * self.leak * float(np.linalg.norm(known)))
        self.largest = max(self.largest, float(values[0]))
        new = int((values >= max(least, self._least(step))).sum())
        error = step.error * np.sqrt(self.n_left)
        self.errors += [float(error / value) for value in values[:new]]
        self.leaked += [
            float(leak / value) for leak, value in zip(leaks, values[:new], strict=False)
        ]
        self.sizes += [float(value) for value in values[:new]]
        self.rest.take(vt[:new])
        return new

    @property
    def floor(self) -> float:
        """Below this share of the strongest gradient a direction cannot be told from noise."""
        if not self.steps:
            return _SHARE
        sigma = error_at(self.noise, np.ones(1)) / float(np.median(self.steps))
        noise = 3.0 * sigma * np.sqrt(self.oracle.dim_in)
        return SIGMAS * float(noise / max(self.largest, 1e-300) + self.leak)

    def span(self) -> Span:
        """What was found."""
        sizes = np.sort(self.sizes)[::-1] / max(self.largest, 1e-300)
        floor = self.floor if self.rank else 0.0
        return Span(self.rest.taken, sizes, floor, np.hypot(self.errors, self.leaked))


def recover_span(
    oracle: Oracle,
    noise: NoiseFloor,
    seed: int | np.random.SeedSequence,
    *,
    smooth: bool = False,
    tell: Callable[[str], None] | None = None,
) -> SpanRecovery:
    """Recover the row span of the first layer, adaptively.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
    seed : int or SeedSequence
    smooth : bool
        Whether the target curves everywhere: differences are then central.
    tell : callable, (str) -> None
        Told what is being done.

    Returns
    -------
    SpanRecovery
        ``UNVERIFIED`` where the search ended, for the caller to check; ``PARTIAL`` where
        answers still change but no gradient shows it; ``BUDGET_EXHAUSTED``.

    Notes
    -----
    Source: JWZ20, Algorithm 1 and Lemma 3.2, gradients one after another.
    """
    search = _Search(oracle, noise, np.random.default_rng(seed), smooth)
    status, reason, n_empty = Status.UNVERIFIED, "", 0
    try:
        while search.rank < oracle.dim_in:
            # 1. Points where a move that the basis does not know of changes an answer.
            candidates = search.look_around()
            n_empty = 0 if candidates else n_empty + 1
            if n_empty == _N_EMPTY_LOOKS:
                break
            # 2. The complement's coordinates of the gradients there, while they add to it.
            before = search.rank
            is_moved = bool(candidates)
            while search.rank < oracle.dim_in and (place := search.best_of(candidates)):
                if tell is not None:
                    tell(f"{search.rank} directions")
                search.learn_at(place)
            # 3. Nothing strong is left: take what is weaker, down to the noise.
            if is_moved and search.rank == before:
                search.share /= _RELAX
                if search.share * _RELAX < search.floor:
                    status = Status.PARTIAL
                    reason = (
                        f"answers still change by up to {search.change:.1g} of their size "
                        "outside of the span, but no gradient there stands out of the noise"
                    )
                    break
    except LimitReachedError as error:
        status, reason = Status.BUDGET_EXHAUSTED, str(error)
    return SpanRecovery(
        status,
        search.span(),
        ledger=oracle.ledger(),
        evidence=(reason,) if reason else (),
        method="gradients",
        details={
            "gradients": search.n_gradients,
            "expected_angle": search.angle,
            "leak": search.leak,
        },
    )
