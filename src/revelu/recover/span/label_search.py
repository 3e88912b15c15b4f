"""What a search for directions beside the borders of labels knows, and its steps.

A place on a border waits until it is known how well it shows a direction beside others; the
best are measured first.  The whole algorithm is :mod:`revelu.recover.span.labels`.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from revelu.numerics.complement import Complement
from revelu.oracle import Oracle
from revelu.probe.gradient import unit_rows
from revelu.recover.method import Why
from revelu.recover.span.boundary import Border, find_borders
from revelu.recover.span.normals import BorderPlace, Normals, StepLength
from revelu.types import BoolArray, FloatArray

Watch: TypeAlias = Callable[[FloatArray, FloatArray], None]

_ONE_LABEL = (
    "all {n:,} inputs, at radii from {lo:g} to {hi:g}, got the label {label:g}: no border was "
    "found, and nothing is known; scale or shift the inputs to where labels differ"
)


@dataclass(eq=False)
class KnownDirections:
    """Directions that normals have shown one after another, and how far off they are.

    Each normal is known along the directions before it, and its part outside of them, measured
    anew, is the next one: normals are ``T Q``, with T triangular and rows of Q orthonormal, and
    errors N of the normals make ``E = T^-1 N`` of Q.
    """

    rest: Complement
    triangle: FloatArray = field(init=False)
    """Shape (r, r).  T."""
    noise: FloatArray = field(init=False)
    """Shape (r,).  Sizes of N's rows."""
    leaks: FloatArray = field(init=False)
    """Shape (r,).  How much of its known part each normal's complement saw."""

    def __post_init__(self) -> None:
        self.triangle, self.noise, self.leaks = np.empty((0, 0)), np.empty(0), np.empty(0)

    @property
    def rank(self) -> int:
        """How many there are."""
        return len(self.noise)

    def take(self, normal: FloatArray, error: float, known: FloatArray, leak: float) -> None:
        """Take in a normal.

        Parameters
        ----------
        normal : ndarray, shape (n - r,)
            Its coordinates in the complement.
        error : float
            Of those, in all.
        known : ndarray, shape (r,)
            Its slopes along the directions so far.
        leak : float
            As :meth:`leak` tells it.
        """
        r, size = self.rank, float(np.linalg.norm(normal))
        self.triangle = np.pad(self.triangle, (0, 1))
        self.triangle[r, :r], self.triangle[r, r] = known, size
        self.noise, self.leaks = np.append(self.noise, error), np.append(self.leaks, leak)
        self.rest.take((normal / size)[None])

    def leak(self, known: FloatArray) -> float:
        """How much of slopes ``known (r,)`` along the directions the complement sees."""
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
    def usual_error(self) -> float:
        """What a direction is off by its own normal alone, at the median; infinite of none."""
        return float(np.median(self.noise / np.diag(self.triangle))) if self.rank else np.inf

    @property
    def usual_leak(self) -> float:
        """What leaks at the median; 0 of none."""
        return float(np.median(self.leaks)) if self.rank else 0.0


@dataclass(eq=False)
class LabelSpanSearch:
    """The state of a search: a basis, its complement, and how borders behave."""

    oracle: Oracle
    rng: np.random.Generator
    watch: Watch | None
    """Told, once, rows beside borders and their labels."""
    normals: Normals = field(default_factory=Normals)
    n_places: int = 8
    """Places of a look around, and places that wait at most."""
    shift: float = 1e-5
    """A move inside the complement that shifts the border by more than this share of an input's
    length shows a direction."""
    near: float = 1e-9
    farther: float = 1e-5
    """How far off noise is measured; farther where no place will do: inputs may be rounded."""
    n_lines: int = 2
    """Lines through a place that choose its step."""
    n_votes: int = 3
    """Places where the even part of the heights tells a smooth border from one with kinks."""

    def __post_init__(self) -> None:
        self.known = KnownDirections(Complement(self.oracle.dim_in, self.rng))
        self.radius, self.apart = 1.0, self.near
        self.inputs, self.labels = np.empty((0, self.oracle.dim_in)), np.empty(0)
        self.votes: list[bool] = []
        self.places: list[BorderPlace] = []
        self.n_borders = self.n_rough = self.n_changes = 0

    @property
    def rank(self) -> int:
        """Directions found so far."""
        return self.known.rank

    @property
    def nearness(self) -> float:
        """How near borders are come to, relative to a segment: well within what is a shift."""
        return self.shift / 8.0

    @property
    def n_choices(self) -> int:
        """Of how many places the best is taken: the cheaper a place is to weigh, the more.

        It takes about as much as 20 coordinates of a normal.
        """
        return int(np.clip(len(self.known.rest.basis) // 20, 1, self.n_places))

    @property
    def has_enough(self) -> bool:
        """Whether the best of the places that wait may be taken, though better ones may come.

        Of five on smooth borders, where normals are short and to weigh another place costs a
        third of one.
        """
        return self.smooth and self.n_choices == 1 and len(self.places) >= 5

    @property
    def width(self) -> float:
        """What counts as a shift of a border: more than the span's own error makes."""
        own = self.normals.sigmas * self.known.usual_leak
        return self.radius * max(self.shift * float(np.sqrt(self.oracle.dim_in)), own)

    @property
    def is_blurred(self) -> bool:
        """Whether the span's own error may shift a border by a twentieth of an input's length.

        It then hides what a move inside the complement shifts.
        """
        return self.width > 0.05 * self.radius * float(np.sqrt(self.oracle.dim_in))

    @property
    def smooth(self) -> bool:
        """Whether borders curve, by the votes of the first places."""
        return sum(self.votes) * 2 > len(self.votes)

    def see_two_labels(
        self,
        *,
        n_inputs: tuple[int, ...] = (32, 1024),
        radii: tuple[float, ...] = (1.0, 10.0, 100.0, 0.1),
        n_repeats: int = 16,
    ) -> tuple[Why, str]:
        """Draw inputs until there are two labels; say what is wrong where there are not.

        Parameters
        ----------
        n_inputs, radii : tuple
            How many are drawn at each radius, few at every radius first.
        n_repeats : int
            How many are asked again.
        """
        for n, radius in itertools.product(n_inputs, radii):
            X = radius * self.rng.standard_normal((n, self.oracle.dim_in))
            labels = self.oracle(X)[:, 0]
            changed = int((self.oracle(X[:n_repeats])[:, 0] != labels[:n_repeats]).sum())
            if changed:
                text = f"{changed} of {n_repeats} inputs got another label when asked again"
                return Why.REFUTED, text
            if (labels != labels[0]).any():
                self.radius, self.inputs, self.labels = radius, X, labels
                return Why.EXPLAINED, ""
        return Why.UNRESOLVED, _ONE_LABEL.format(
            n=len(radii) * sum(n_inputs), lo=min(radii), hi=max(radii), label=labels[0]
        )

    def look_around(self) -> list[Border]:
        """Places on borders which a move inside the complement shifts."""
        borders = self._borders()
        clean, moved = self._try(borders)
        self.n_borders += len(borders)
        self.n_rough += len(borders) - int(clean.sum())
        return [borders[i] for i in np.flatnonzero(clean & moved)]

    def _try(self, borders: list[Border]) -> tuple[BoolArray, BoolArray]:
        """Whether borders are where they should be, and whether a move shifts them, (m,) each."""
        n, m = self.oracle.dim_in, len(borders)
        moves = self.rng.standard_normal((m, n - self.rank)) @ self.known.rest.basis * self.radius
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
        X = self.radius * self.rng.standard_normal((self.n_places, self.oracle.dim_in))
        labels = self.oracle(X)[:, 0]
        self.inputs, self.labels = np.vstack([self.inputs, X]), np.append(self.labels, labels)
        others = [self.rng.choice(np.flatnonzero(self.labels != label)) for label in labels]
        return find_borders(self.oracle, X, self.inputs[others], labels, self.nearness)

    def weigh(self, border: Border) -> BorderPlace | None:
        """Choose a step at a place, and estimate how well it shows a direction."""
        atol = float(np.finfo(np.float64).eps * np.abs(border.x).max())
        t = border.heights(np.zeros((1, len(border.x))), np.zeros(1), self.width, atol)
        if np.isnan(t[0]):
            return None
        border = replace(border, x=border.x + t[0] * border.e)
        n_left = len(self.known.rest.basis)
        lines = unit_rows(self.rng, self.n_lines, n_left) @ self.known.rest.basis
        step = self._step_at(border, lines, atol)
        if step is None:
            return None
        known = self.normals.rough_slopes(border, self.known.rest.taken, step)
        place = BorderPlace(border, step, known, self.known.leak(known), lines, step.slopes, n_left)
        return place if np.isfinite(place.angle) else None

    def _weigh_again(self, place: BorderPlace) -> BorderPlace:
        """The same place, now that a direction more is known, by one more slope."""
        q = self.known.rest.taken[-1:]
        slope = self.normals.rough_slopes(place.border, q, place.step)
        part = place.lines @ q[0]
        lengths = np.sqrt(np.maximum(1.0 - part**2, np.finfo(np.float64).eps))
        lines = (place.lines - part[:, None] * q) / lengths[:, None]
        slopes, known = (place.slopes - part * slope) / lengths, np.append(place.known, slope)
        n_left = len(self.known.rest.basis)
        return BorderPlace(
            place.border, place.step, known, self.known.leak(known), lines, slopes, n_left
        )

    def is_usual(self, place: BorderPlace, *, worse: float = 5.0, few: float = 4.0) -> bool:
        """Whether a place shows a direction about as well as others did; few tell little.

        Parameters
        ----------
        place : BorderPlace
            It waits while its error would be ``worse`` times the usual one.
        worse : float
        few : float
            How much more than that while the usual error is that of one direction.
        """
        if not self.rank:
            return True
        usual = self.known.usual_error * (1.0 + few / self.rank)
        leaky = self.known.angle / np.sqrt(self.n_choices)
        return bool(
            place.error <= worse * usual * place.size and place.leak <= worse * leaky * place.size
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

    def learn_from_best(self, *, hopeless: float = 1e4) -> bool:
        """Learn a direction at the best of the places that wait; return whether one was added.

        Those whose error would be ``hopeless`` times the usual one are given up.
        """
        worst = hopeless * self.known.usual_error
        self.places = [place for place in self.places if place.error < worst * place.size]
        while self.places:
            if self.learn_at(min(self.places, key=lambda place: place.angle)):
                return True
        return False

    def look_otherwise(self, *, max_changes: int = 4) -> bool:
        """Take smooth borders for flat ones, or flat for smooth; return whether there is hope.

        After ``max_changes`` without a direction there is none.
        """
        self.votes = [not self.smooth] * self.n_votes
        self.apart = self.near if self.smooth else self.farther
        self.n_changes += 1
        return self.n_changes <= max_changes

    def learn_at(self, place: BorderPlace) -> bool:
        """Measure a normal in the complement; return whether it adds a direction."""
        self.places.remove(place)
        border, step = place.border, place.step
        if not border.crosses_once(self.rng, step.steepest * step.h):
            return False
        measured = self.normals.measure(border, self.known.rest.basis, step, self.rng)
        least = self.normals.sigmas * (place.error + place.leak)
        if measured is None or not np.linalg.norm(measured) > least:
            return False
        self.n_changes = 0
        self.known.take(measured, place.error, place.known, place.leak)
        again = [p for p in map(self._weigh_again, self.places) if np.isfinite(p.angle)]
        self.places = sorted(again, key=lambda other: other.angle)[: self.n_places]
        return True

    def _step_at(self, border: Border, lines: FloatArray, atol: float) -> StepLength | None:
        """A step beside a place, as its border is a piece of a plane or smooth."""
        noise = border.height_noise(self.rng, self.apart * self.radius, atol)
        if np.isnan(noise):
            return None
        bend = None
        if len(self.votes) < self.n_votes or self.smooth:
            known = len(self.votes) == self.n_votes and not self.n_changes
            bend = border.bend(lines, self.normals.coarse * self.radius, smooth=known)
            self.votes = [*self.votes, bend is not None][: self.n_votes]
        if self.smooth:
            return None if bend is None else self.normals.balanced_step(bend, noise, self.radius)
        return self.normals.flat_step(border, lines, noise, self.radius)
