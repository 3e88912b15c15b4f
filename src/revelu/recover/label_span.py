"""The span of a first layer from labels alone (JWZ20, Algorithm 2).

The border of a class is where a difference of logits, or a number under a threshold,
crosses zero; its normals are gradients, combinations of the first layer's rows.  A normal's
coordinates come from the border's heights beside a place on it, each found by bisection.

Where this differs from print.  Algorithm 2 asks at (I - P_V) x only: as V grows there are
ever fewer such points on the other side of the threshold, and a bias alone can leave none.
Here places on the border are free, anywhere, and only the *complement's* coordinates of a
normal are measured.  Its perturbations u_i = 2^-N g_i - x/|x| are all but parallel, which
magnifies errors 2^N-fold; orthogonal ones do not.  Its b_i = 1/c_i gives the gradient's
negative; its loops run once too often; its line 7 restarts before the Gaussian is drawn.
"""

import itertools
import logging
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network.span import Span
from revelu.numerics.complement import Complement
from revelu.oracle import Oracle
from revelu.probe.boundary import (
    Border,
    crosses_once,
    find_bend,
    find_borders,
    height_noise,
    heights,
)
from revelu.probe.normals import (
    COARSE,
    SIGMAS,
    Place,
    Step,
    balanced_step,
    flat_normal,
    flat_step,
    rough_slopes,
    smooth_normal,
)
from revelu.probe.slopes import unit_rows
from revelu.recovery import SpanRecovery, Status
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)

Watch: TypeAlias = Callable[[FloatArray, FloatArray], None]

# Places of a look around.  Where none of two looks has anything to add, less than a sixth
# of all would have, at 95% confidence.
_N_PLACES = 8
_N_EMPTY_LOOKS = 2

# Inputs drawn until two labels are seen, at these radii; and how many are asked again.
_N_INPUTS = (32, 1024)
_RADII = (1.0, 10.0, 100.0, 0.1)
_N_REPEATS = 16

# A move inside the complement that shifts the border by more than this share of an input's
# length shows a direction; where the span's own error may shift it by more than that, none does.
_SHIFT = 1e-5
_BLURRED = 0.05

# How far off noise is measured; farther where no place will do: inputs may be rounded.
_NEAR, _FARTHER = 1e-9, 1e-5

# Lines through a place that choose its step.  What it takes to weigh a place by them, in
# coordinates of a normal: where it is little, the best of several is taken.
_N_LINES, _COST = 2, 20
_EPS = float(np.finfo(np.float64).eps)

# Places where the even part of the heights tells a smooth border from one with kinks.
_N_VOTES = 3

# A place waits while its error would be this many times the usual one, and so many times more
# while the usual one is that of one direction.  Where others only wait, the best is taken.
_POSTPONED, _FEW = 5.0, 4.0
_HOPELESS = 1e4
# So often the other kind of border is looked for before a direction is given up.
_MAX_CHANGES = 4


class _Search:
    """The state of a search: a basis, its complement, and how borders behave."""

    def __init__(self, oracle: Oracle, rng: np.random.Generator, watch: Watch | None) -> None:
        self.oracle, self.rng = oracle, rng
        self.watch: Watch | None = watch
        self.rest = Complement(oracle.dim_in, rng)
        self.radius, self.near = 1.0, _NEAR
        self.inputs = np.empty((0, oracle.dim_in))
        self.labels = np.empty(0)
        self.errors, self.leaks = list[float](), list[float]()
        self.noise = np.empty(0)
        self.triangle = np.empty((0, 0))
        self.votes: list[bool] = []
        self.places: list[Place] = []
        self.n_places = self.n_rough = self.n_changes = 0

    @property
    def rank(self) -> int:
        """Directions found so far."""
        return len(self.errors)

    @property
    def n_choices(self) -> int:
        """Of how many places the best is taken: of the more, the less that costs."""
        return int(np.clip(len(self.rest.basis) // _COST, 1, _N_PLACES))

    @property
    def width(self) -> float:
        """What counts as a shift of a border: more than the span's own error makes."""
        own = SIGMAS * float(np.median(self.leaks)) if self.leaks else 0.0
        return self.radius * max(_SHIFT * float(np.sqrt(self.oracle.dim_in)), own)

    def leak(self, known: FloatArray) -> float:
        """How much of slopes ``known (r,)`` along the basis the complement sees.

        Normals are T Q, with T triangular; errors N of the normals make E = T^-1 N of Q.
        """
        return float(np.linalg.norm(np.linalg.solve(self.triangle.T, known) * self.noise))

    @property
    def angles(self) -> FloatArray:
        """About how far off each direction is, in radians, shape (r,)."""
        return np.asarray(np.linalg.norm(np.linalg.inv(self.triangle) * self.noise, axis=1))

    @property
    def angle(self) -> float:
        """About how far off the span is, in radians: the norm of all errors of its basis."""
        return float(np.linalg.norm(self.angles))

    @property
    def is_blurred(self) -> bool:
        """Whether the span's own error hides what a move inside the complement shifts."""
        return self.width > _BLURRED * self.radius * float(np.sqrt(self.oracle.dim_in))

    @property
    def smooth(self) -> bool:
        """Whether borders curve, by the votes of the first places."""
        return sum(self.votes) * 2 > len(self.votes)

    def see_two_labels(self) -> tuple[Status, str]:
        """Draw inputs until there are two labels; say what is wrong where there are not."""
        for n_inputs, radius in itertools.product(_N_INPUTS, _RADII):
            X = radius * self.rng.standard_normal((n_inputs, self.oracle.dim_in))
            labels = self.oracle(X)[:, 0]
            changed = int((self.oracle(X[:_N_REPEATS])[:, 0] != labels[:_N_REPEATS]).sum())
            if changed:
                text = f"{changed} of {_N_REPEATS} inputs got another label when asked again"
                return Status.NOT_DETERMINISTIC, text
            if (labels != labels[0]).any():
                self.radius, self.inputs, self.labels = radius, X, labels
                return Status.UNVERIFIED, ""
        return Status.PARTIAL, _ONE_LABEL.format(
            n=len(_RADII) * sum(_N_INPUTS), lo=min(_RADII), hi=max(_RADII), label=labels[0]
        )

    def look_around(self) -> list[Border]:
        """Places on borders which a move inside the complement shifts."""
        borders = self._borders()
        clean, moved = self._try(borders)
        self.n_places += len(borders)
        self.n_rough += len(borders) - int(clean.sum())
        return [borders[i] for i in np.flatnonzero(clean & moved)]

    def _try(self, borders: list[Border]) -> tuple[BoolArray, BoolArray]:
        """Whether borders are where they should be, and whether a move shifts them, (m,) each."""
        n, m = self.oracle.dim_in, len(borders)
        moves = self.rng.standard_normal((m, n - self.rank)) @ self.rest.basis * self.radius
        X, E = (np.array([getattr(b, name) for b in borders]) for name in ("x", "e"))
        labels = np.array([b.label for b in borders])
        sides = np.vstack([X - self.width * E, X + self.width * E])
        Y = self.oracle(np.vstack([sides, sides + np.vstack([moves, moves])]))[:, 0]
        inside = Y.reshape(4, m) == labels
        clean = inside[0] & ~inside[1]
        if self.watch is not None and clean.any():
            rows = np.flatnonzero(np.tile(clean, 2))
            self.watch(sides[rows], Y[rows])
            self.watch = None
        return clean, ~(inside[2] & ~inside[3])

    def _borders(self) -> list[Border]:
        """Places on borders between random inputs of different labels."""
        X = self.radius * self.rng.standard_normal((_N_PLACES, self.oracle.dim_in))
        labels = self.oracle(X)[:, 0]
        self.inputs, self.labels = np.vstack([self.inputs, X]), np.append(self.labels, labels)
        others = [self.rng.choice(np.flatnonzero(self.labels != label)) for label in labels]
        return find_borders(self.oracle, X, self.inputs[others], labels, _SHIFT / 8.0)

    def weigh(self, border: Border) -> Place | None:
        """Choose a step at a place, and estimate how well it shows a direction."""
        atol = float(_EPS * np.abs(border.x).max())
        t = heights(
            self.oracle, border, np.zeros((1, len(border.x))), np.zeros(1), self.width, atol
        )
        if np.isnan(t[0]):
            return None
        border = Border(border.x + t[0] * border.e, border.e, border.label)
        n_left = len(self.rest.basis)
        lines = unit_rows(self.rng, _N_LINES, n_left) @ self.rest.basis
        step = self._step_at(border, lines, atol)
        if step is None:
            return None
        known = rough_slopes(self.oracle, border, self.rest.taken, step)
        place = Place(border, step, known, self.leak(known), lines, step.slopes, n_left)
        return place if np.isfinite(place.angle) else None

    def _weigh_again(self, place: Place) -> Place:
        """The same place, now that a direction more is known, by one more slope."""
        q = self.rest.taken[-1:]
        slope = rough_slopes(self.oracle, place.border, q, place.step)
        part = place.lines @ q[0]
        lengths = np.sqrt(np.maximum(1.0 - part**2, _EPS))
        lines = (place.lines - part[:, None] * q) / lengths[:, None]
        slopes, known = (place.slopes - part * slope) / lengths, np.append(place.known, slope)
        n_left = len(self.rest.basis)
        return Place(place.border, place.step, known, self.leak(known), lines, slopes, n_left)

    def is_usual(self, place: Place) -> bool:
        """Whether a place shows a direction about as well as others did; few tell little."""
        if not self.errors:
            return True
        usual = float(np.median(self.errors)) * (1.0 + _FEW / self.rank)
        leaky = self.angle / np.sqrt(self.n_choices)
        return bool(
            place.error <= _POSTPONED * usual * place.size
            and place.leak <= _POSTPONED * leaky * place.size
        )

    def learn_from(self, borders: list[Border]) -> int:
        """Learn directions beside borders, the best of a few first; return how many last failed."""
        borders, n_failed, before = list(borders), 0, self.rank
        while self.rank < self.oracle.dim_in:
            usual = [place for place in self.places if self.is_usual(place)]
            if borders and len(usual) < self.n_choices:
                border = borders.pop()
                if self.rank > before and not self._try([border])[1][0]:
                    continue
                place = self.weigh(border)
                self.places += [place] if place else []
                n_failed += place is None or not self.is_usual(place)
            elif usual:
                best = min(usual, key=lambda place: place.angle)
                n_failed = 0 if self.learn_at(best) else n_failed + 1
            else:
                break
        return n_failed

    def learn_from_best(self) -> bool:
        """Learn a direction at the best of the places that wait; return whether one was added."""
        hopeless = _HOPELESS * float(np.median(self.errors)) if self.errors else np.inf
        self.places = [place for place in self.places if place.error < hopeless * place.size]
        while self.places:
            if self.learn_at(min(self.places, key=lambda place: place.angle)):
                return True
        return False

    def look_otherwise(self) -> bool:
        """Take smooth borders for flat ones, or flat for smooth; return whether there is hope."""
        self.votes = [not self.smooth] * _N_VOTES
        self.near = _NEAR if self.smooth else _FARTHER
        self.n_changes += 1
        return self.n_changes <= _MAX_CHANGES

    def learn_at(self, place: Place) -> bool:
        """Measure a normal in the complement; return whether it adds a direction."""
        self.places.remove(place)
        border, step = place.border, place.step
        if not crosses_once(self.oracle, border, self.rng, step.steepest * step.h):
            return False
        normal = smooth_normal if step.curvature else flat_normal
        measured = normal(self.oracle, self.rng, border, self.rest.basis, step)
        if measured is None:
            return False
        size = float(np.linalg.norm(measured))
        if not size > SIGMAS * (place.error + place.leak):
            return False
        self.n_changes = 0
        self.errors.append(place.error / size)
        self.leaks.append(place.leak)
        self.noise = np.append(self.noise, place.error)
        r = self.rank - 1
        self.triangle = np.pad(self.triangle, (0, 1))
        self.triangle[r, :r], self.triangle[r, r] = place.known, size
        self.rest.take((measured / size)[None])
        again = [self._weigh_again(other) for other in self.places]
        again = [other for other in again if np.isfinite(other.angle)]
        self.places = sorted(again, key=lambda other: other.angle)[:_N_PLACES]
        return True

    def _step_at(self, border: Border, lines: FloatArray, atol: float) -> Step | None:
        """A step beside a place, as its border is a piece of a plane or smooth."""
        noise = height_noise(self.oracle, border, self.rng, self.near * self.radius, atol)
        if np.isnan(noise):
            return None
        bend = None
        if len(self.votes) < _N_VOTES or self.smooth:
            bend = find_bend(self.oracle, border, lines, COARSE * self.radius)
            self.votes = [*self.votes, bend is not None][:_N_VOTES]
        if self.smooth:
            return None if bend is None else balanced_step(bend, noise, self.radius)
        return flat_step(self.oracle, border, lines, noise, self.radius)


def recover_label_span(
    oracle: Oracle,
    seed: int | np.random.SeedSequence,
    *,
    tell: Callable[[str], None] | None = None,
    watch: Watch | None = None,
) -> SpanRecovery:
    """Recover the row span of the first layer of a classifier that answers labels.

    Parameters
    ----------
    oracle : Oracle
        Answers one number, the label: of 0/1 thresholds or of the largest of many outputs.
    seed : int or SeedSequence
    tell : callable, (str) -> None
        Told what is being done.
    watch : callable, ((m, n), (m,)) -> None
        Told rows on both sides of borders, and their labels, once: another target would
        answer them otherwise.

    Returns
    -------
    SpanRecovery
        ``UNVERIFIED`` where the search ended, for the caller to check; ``PARTIAL`` where no
        border is found, or borders still move but no normal shows it; ``NOT_DETERMINISTIC``
        where labels change at random; ``BUDGET_EXHAUSTED``.

    Notes
    -----
    Source: JWZ20, Algorithm 2, Proposition 4.1 and Lemma 4.2, with the changes above.
    """
    search = _Search(oracle, np.random.default_rng(seed), watch)
    status, reason = Status.UNVERIFIED, ""
    try:
        # 1. Inputs on both sides of a border.
        status, reason = search.see_two_labels()
        n_empty = n_failed = 0
        while status is Status.UNVERIFIED and search.rank < oracle.dim_in:
            if search.is_blurred:
                status, reason = Status.PARTIAL, _HIDDEN.format(angle=search.angle)
                break
            # 2. Places on borders that a move inside the complement shifts.
            places = search.look_around()
            if search.n_rough * 2 > search.n_places:
                status, reason = Status.NOT_DETERMINISTIC, _ROUGH
                break
            n_empty = 0 if places else n_empty + 1
            if n_empty == _N_EMPTY_LOOKS:
                break
            # 3. The complement's coordinates of the normals there.
            if tell is not None:
                tell(f"{search.rank} directions")
            before = search.rank
            n_last = search.learn_from(places)
            n_failed = n_last if search.rank > before else n_failed + n_last
            # 4. Take the best of what is known less well.  A saturated activation's border is
            # flat in one place and curved in another: where none will do, look the other way.
            if n_failed >= _N_PLACES + 2 * (search.n_choices - 1):
                n_failed = 0
                if not search.learn_from_best() and not search.look_otherwise():
                    status, reason = Status.PARTIAL, _STUCK
                    break
    except LimitReachedError as error:
        status, reason = Status.BUDGET_EXHAUSTED, str(error)
    return SpanRecovery(
        status,
        Span(search.rest.taken, errors=search.angles),
        oracle.ledger(),
        evidence=(reason,) if reason else (),
        method="labels",
        details={
            "borders": search.n_places,
            "smooth": search.smooth,
            "expected_angle": search.angle,
        },
    )


_ROUGH = (
    "labels change back and forth beside most borders: they depend on the input as if at "
    "random, and tell no direction"
)
_STUCK = "borders still move outside of the span, but no normal there could be measured"
_HIDDEN = (
    "the directions found are off by about {angle:.1g} rad, which hides whether there are more: "
    "labels of a target that computes in float32, or rounds its inputs, tell no better"
)
_ONE_LABEL = (
    "all {n:,} inputs, at radii from {lo:g} to {hi:g}, got the label {label:g}: no border was "
    "found, and nothing is known; scale or shift the inputs to where labels differ"
)
