"""Chords of a cube that show a first layer narrower than the input, and whose rows are its.

Most of a cube's volume is where few neurons turn: of 784 pixels drawn evenly a sum of them hardly
varies.  Chords lead from the corner that is farthest along a combination of known normals to the
one opposite, and turn many.  As elsewhere a hyperplane of the first layer bends the function
wherever it goes (DG21, Algorithm 7): here where it meets other chords, crossed along them.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from revelu.oracle import NoiseFloor
from revelu.probe.gradient import CheckedGradients
from revelu.probe.hyperplane import look_across
from revelu.probe.line import Askable
from revelu.probe.region import Cube
from revelu.recover.deep.seeds import Seed, SeedSearch, are_among, new_hyperplanes
from revelu.recover.deep.segments import CriticalPoints
from revelu.recover.deep.stack import Stack
from revelu.recover.method import Layer
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class FirstInBox:
    """The search for the rows of a first layer along chords of a cube, and what tunes it."""

    cube: Cube = field(default_factory=lambda: Cube(nearest=0.995, farthest=0.9999))
    seeds: SeedSearch = field(
        default_factory=lambda: SeedSearch(
            gradients=CheckedGradients(steps=(0.3, 0.04, 0.006, 0.001))
        )
    )
    n_chords: int = 2
    """Chords of a round: the first of three along combinations of all normals, the second where no
    row looks yet, the third from corners at which any share of the inputs is large."""
    n_points: int = 12
    """Points at which a row has to bend the function,"""
    mostly: float = 0.9
    """and the share of them, of those beside which it changes at all."""
    faint: float = 1e-5
    """Normals of norm 1 look in a direction that no row does if more than this is left of them."""
    side: float = 1e-3
    """How far off its hyperplane the sides of a row are looked at, along what moves no other,"""
    off: float = 1e-3
    """and the share of what one side changes that the other does where the neuron is off."""
    n_places: int = 40
    """Places among which the one of most room is where a row is measured again."""

    def starts(
        self, rng: np.random.Generator, W: FloatArray, normals: FloatArray, turn: int
    ) -> FloatArray:
        """Near corners, where the chords of a round start, shape (n_chords, d)."""
        n, d = self.n_chords, normals.shape[1]
        if turn % 3 == 2 or not len(normals):
            return self.cube.near_corners(rng, rng.random((n, 1)) - rng.random((n, d)))
        missing = self.left_out(W, normals)
        if not (len(missing) and turn % 3):
            return self.corners(rng, normals, n)
        along, others = (
            rng.standard_normal((n, len(directions))) @ directions
            for directions in (missing, normals)
        )
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        others *= rng.random((n, 1)) / np.linalg.norm(others, axis=1, keepdims=True)
        return np.asarray(self.cube.near_corners(rng, along + others))

    def corners(self, rng: np.random.Generator, normals: FloatArray, n: int) -> FloatArray:
        """Points near corners that are farthest along combinations of directions, shape (n, d)."""
        # Of heavy tails: few directions decide, each time others.
        along = rng.standard_normal((n, len(normals))) ** 3 @ normals
        return np.asarray(self.cube.near_corners(rng, along))

    def left_out(self, W: FloatArray, normals: FloatArray) -> FloatArray:
        """Orthonormal directions of normals that no row looks in, shape (r, d)."""
        Q = np.linalg.qr(W.T)[0]
        rest = normals - (normals @ Q) @ Q.T
        if not len(rest):
            return np.asarray(rest)
        _, sizes, vt = np.linalg.svd(rest, full_matrices=False)
        return np.asarray(vt[sizes > self.faint])

    def seen(
        self,
        ask: Askable,
        noise: NoiseFloor,
        points: CriticalPoints,
        W: FloatArray,
        rng: np.random.Generator,
    ) -> list[Seed]:
        """Measure seeds in the span of rows alone, if a direction aside tells that to be enough."""
        m, d = W.shape
        if not m or m >= d - 1:
            return self.seeds.measure(ask, noise, points, rng)
        Q = np.linalg.qr(W.T)[0].T
        aside = rng.standard_normal(d)
        aside -= (aside @ Q.T) @ Q
        basis = np.vstack([Q, aside / np.linalg.norm(aside)])
        inside, outside = list[Seed](), set[bytes]()
        for seed in self.seeds.measure(ask, noise, points, rng, basis):
            if abs(seed.normal[-1]) <= self.faint:
                inside.append(replace(seed, normal=seed.normal @ basis))
            else:
                outside.add(seed.x.tobytes())
        others = points.take(np.array([x.tobytes() in outside for x in points.X], dtype=bool))
        return inside + self.seeds.measure(ask, noise, others, rng)

    def crossings(
        self, rng: np.random.Generator, W: FloatArray, b: FloatArray, normals: FloatArray, n: int
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Where hyperplanes meet chords that they part, n each.

        Returns
        -------
        X, arms : ndarray, shape (m n, d)
            And the unit vectors along the chords.
        is_met : ndarray of bool, shape (m n,)
        """
        rows = np.repeat(np.arange(len(W)), n)
        starts = self.corners(rng, normals, len(rows))
        starts[::2] *= rng.random((len(starts[::2]), 1))
        sums = (starts * W[rows]).sum(axis=1) + b[rows]
        # From there to a corner on the other side, the farthest there is.
        ends = self.cube.near_corners(rng, -np.sign(sums)[:, None] * W[rows])
        rise = (ends * W[rows]).sum(axis=1) + b[rows] - sums
        with np.errstate(divide="ignore", invalid="ignore"):
            t = -sums / rise
        is_met = np.isfinite(t) & (t > 0.0) & (t < 1.0)
        arms = ends - starts
        X = starts + np.where(is_met, t, 0.0)[:, None] * arms
        return X, arms / np.linalg.norm(arms, axis=1)[:, None], is_met

    def new_rows(
        self,
        ask: Askable,
        noise: NoiseFloor,
        found: list[Seed],
        rows: FloatArray,
        normals: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """The seeds that are new rows of the first layer, shape (n, d + 1), the most precise."""
        new = new_hyperplanes(found, rows)
        if not new:
            return np.empty((0, rows.shape[1]))
        some = np.array([seed.hyperplane for seed in new])
        X, arms, is_met = self.crossings(rng, some[:, :-1], some[:, -1], normals, self.n_points)
        bent, straight = (
            (flags & is_met).reshape(len(some), -1).sum(axis=1)
            for flags in look_across(ask, noise, X, arms)
        )
        return np.asarray(some[(bent > 0) & (bent >= self.mostly * (bent + straight))])

    def signed(
        self, ask: Askable, noise: NoiseFloor, layer: Layer, rng: np.random.Generator
    ) -> tuple[Layer, BoolArray]:
        """Turn rows so that they are on at their positive sides; which of them that is known of.

        Where no other neuron moves, one that is off changes nothing (DG21, 3.5.3).
        """
        W, b = layer
        X, _, is_met = self.crossings(rng, W, b, W, self.n_points)
        alone = np.repeat(np.linalg.pinv(W).T, self.n_points, axis=0)
        step = self.side * np.linalg.norm(X, axis=1) / np.linalg.norm(alone, axis=1)
        moves = step[:, None] * alone
        Y = ask(np.vstack([X - moves, X, X + moves])).reshape(3, len(X), -1) / noise.unit
        below, above = np.abs(np.diff(Y, axis=0)).max(axis=2)
        votes = 1 * (below < self.off * above) - 1 * (above < self.off * below)
        votes = np.where(is_met, votes, 0).reshape(len(W), -1).sum(axis=1)
        sign = np.where(votes < 0, -1.0, 1.0)
        return (W * sign[:, None], b * sign), votes != 0

    def sharp(
        self,
        ask: Askable,
        noise: NoiseFloor,
        stack: Stack,
        rows: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Measure rows again, each where it has most room among what is known, shape (n, d + 1)."""
        W, b = rows[:, :-1], rows[:, -1]
        X, _, is_met = self.crossings(rng, W, b, W, self.n_places)
        room = np.zeros(len(X))
        for i in np.flatnonzero(is_met):
            room[i] = self._room(stack, X[i], W[i // self.n_places])
        best = room.reshape(len(W), -1).argmax(axis=1) + self.n_places * np.arange(len(W))
        steps = 0.5 * room[best][:, None] * W
        starts, ends = X[best] - steps, X[best] + steps
        points = self.seeds.scan.find(ask, noise, starts, ends, [np.empty(0)] * len(W), rng)
        rows = rows.copy()
        for seed in self.seeds.measure(ask, noise, points, rng):
            row = seed.hyperplane
            own = are_among(rows, row[None])
            rows[own] = np.sign(rows[own] @ row)[:, None] * row
        return rows

    def _room(self, stack: Stack, x: FloatArray, w: FloatArray) -> float:
        """How far a point is from where another neuron turns, or a face is met, along a normal."""
        size = 2.0 * self.cube.bound * float(np.sqrt(len(x)))
        breaks = np.abs(stack.breaks(x, w, -size, size))
        own = breaks.argmin() if len(breaks) else 0
        others = np.delete(breaks, own)
        with np.errstate(divide="ignore"):
            faces = ((self.cube.bound - np.abs(x)) / np.abs(w)).min()
        return float(min(others.min(initial=size), faces))
