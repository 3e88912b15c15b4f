"""What a search for directions beside the borders of labels knows, and its steps.

A place on a border waits until it is known how well it shows a direction beside others; the
best are measured first.  The whole algorithm is :mod:`revelu.recover.span.labels`.
"""

import itertools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from revelu.numerics.complement import Complement
from revelu.oracle import Oracle
from revelu.probe.slopes import unit_rows
from revelu.recover.span.boundary import (
    Border,
    crosses_once,
    find_bend,
    find_borders,
    height_noise,
    heights,
)
from revelu.recover.span.normals import (
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
from revelu.recovery import Status
from revelu.types import BoolArray, FloatArray

Watch: TypeAlias = Callable[[FloatArray, FloatArray], None]

# Places of a look around.
N_PLACES = 8

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
# while the usual one is that of one direction.  Where others only wait, the best is taken: of
# this many on smooth borders, where normals are short and to weigh another costs a third of one.
_POSTPONED, _FEW = 5.0, 4.0
_ENOUGH = 5
_HOPELESS = 1e4
# So often the other kind of border is looked for before a direction is given up.
_MAX_CHANGES = 4


class Search:
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
        return int(np.clip(len(self.rest.basis) // _COST, 1, N_PLACES))

    @property
    def has_enough(self) -> bool:
        """Whether the best of the places that wait may be taken."""
        return self.smooth and self.n_choices == 1 and len(self.places) >= _ENOUGH

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
        X = self.radius * self.rng.standard_normal((N_PLACES, self.oracle.dim_in))
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
            if borders and len(usual) < self.n_choices and not self.has_enough:
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
        self.places = sorted(again, key=lambda other: other.angle)[:N_PLACES]
        return True

    def _step_at(self, border: Border, lines: FloatArray, atol: float) -> Step | None:
        """A step beside a place, as its border is a piece of a plane or smooth."""
        noise = height_noise(self.oracle, border, self.rng, self.near * self.radius, atol)
        if np.isnan(noise):
            return None
        bend = None
        if len(self.votes) < _N_VOTES or self.smooth:
            known = len(self.votes) == _N_VOTES and not self.n_changes
            bend = find_bend(self.oracle, border, lines, COARSE * self.radius, smooth=known)
            self.votes = [*self.votes, bend is not None][:_N_VOTES]
        if self.smooth:
            return None if bend is None else balanced_step(bend, noise, self.radius)
        return flat_step(self.oracle, border, lines, noise, self.radius)


_ONE_LABEL = (
    "all {n:,} inputs, at radii from {lo:g} to {hi:g}, got the label {label:g}: no border was "
    "found, and nothing is known; scale or shift the inputs to where labels differ"
)
