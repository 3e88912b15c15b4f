"""Two layers of neurons in a cube, as far as chords have shown them."""

import logging
from dataclasses import dataclass, field

import numpy as np

from revelu.oracle import NoiseFloor
from revelu.probe.line import Askable
from revelu.recover.deep.answers import Judging
from revelu.recover.deep.first_in_box import FirstInBox
from revelu.recover.deep.seeds import Seed
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.upper_rows import UpperRows
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class InBox:
    """How two layers are found in a box."""

    first: FirstInBox = field(default_factory=FirstInBox)
    judging: Judging = field(default_factory=Judging)
    quiet_first: int = 4
    """Rounds of chords in a row without anything new that end the search for the first layer, where
    its rows look in all directions that anything above them does,"""
    quiet: int = 12
    """and where they do not, and that above it, which finds rows that are missing below, too;"""
    max_rounds: int = 120
    """rounds at most."""
    n_pool: int = 4000
    """Points drawn, not asked, among which the ends of chords and telling inputs are chosen."""
    quiet_fills: int = 2
    """Draws in a row that lead to none of the weights that no chord has told."""
    n_equations: float = 16.0
    """Answers for each parameter of the upper layer: the states below it are many."""
    n_fresh: int = 500
    """Fresh answers that a network is held against."""
    max_fits: int = 12
    """Fits at most; after each chords lead to where the network is wrong,"""
    n_aimed: int = 6
    """to ``n_aimed`` of these inputs."""
    n_each: int = 3
    """Inputs asked for each weight that no chord has told."""
    margin: float = 0.98
    """Chords to inputs end short of a face, where differences have no room."""
    robust_steps: int = 30
    """Steps of the fit of the affine rest, by least absolute deviations."""


@dataclass
class LayersInBox:
    """Rows of the first layer, and what is put together above them."""

    ask: Askable
    """In coordinates in which the box is the cube of the method."""
    noise: NoiseFloor
    how: FirstInBox
    rng: np.random.Generator
    rows: FloatArray = field(init=False)
    """Shape (m, d + 1).  Weights of norm 1, and biases."""
    seeds: list[Seed] = field(default_factory=list, init=False)
    """Of whatever layer."""
    upper: UpperRows = field(init=False)
    """Nothing, until the rows below have signs."""
    is_signed: BoolArray = field(default_factory=lambda: np.empty(0, dtype=bool), init=False)
    """Shape (m,).  Which of their signs an answer has told, once they were asked for."""

    def __post_init__(self) -> None:
        self.rows = np.empty((0, self.ask.dim_in + 1))
        self._put_together()

    @property
    def is_settled(self) -> bool:
        """Whether what is above the first layer is put together."""
        return len(self.is_signed) > 0

    @property
    def normals(self) -> FloatArray:
        """What the function changes along, shape (n, d)."""
        return np.vstack([self.rows[:, :-1], *(seed.normal[None] for seed in self.seeds)])

    @property
    def stack(self) -> Stack:
        """All that is known."""
        below = Stack(self.ask.dim_in, [self.rows[:, :-1]], [self.rows[:, -1]])
        return below.with_layer(self.upper.V, self.upper.c) if self.is_settled else below

    def search(self, quiet: int, max_rounds: int) -> None:
        """Look along chords until ``quiet`` rounds in a row show nothing new, or rows are many."""
        idle, cube = 0, self.how.cube
        for turn in range(max_rounds):
            W = self.rows[:, :-1]
            starts = self.how.starts(self.rng, W, W if self.is_settled else self.normals, turn)
            idle = 0 if self.look(starts, cube.near_corners(self.rng, -starts)) else idle + 1
            if idle == quiet or len(self.rows) >= self.ask.dim_in:
                break
        log.info("%d rows, %d numbers above", len(self.rows), self.upper.n_known)

    def look(self, starts: FloatArray, ends: FloatArray) -> bool:
        """Look along chords; whether they show anything new."""
        stack, how, n_known = self.stack, self.how, self.upper.n_known
        breaks = stack.breaks_between(starts, ends)
        points = how.seeds.scan.find(self.ask, self.noise, starts, ends, breaks, self.rng)
        found = how.seen(self.ask, self.noise, points, self.rows[:, :-1], self.rng)
        self.seeds += found
        others = self.upper.add(found) if self.is_settled else found
        new = how.new_rows(self.ask, self.noise, others, self.rows, self.normals, self.rng)
        self.rows = np.vstack([self.rows, new])
        if len(new) and self.is_settled:
            self.settle()
        return len(new) > 0 or self.upper.n_known > n_known

    def fill(self, X: FloatArray) -> bool:
        """Look for weights that no seed has told; whether any was found.

        A chord along which one neuron below is on, from where one above is off to where it is on,
        crosses the latter's surface there.

        Parameters
        ----------
        X : ndarray, shape (n, d)
            Points to choose ends from.
        """
        H, sums = self.upper.sums(X)
        pairs = []
        for i, j in np.argwhere(~self.upper.is_known):
            on = H[:, j] > 0.0
            sides = [np.flatnonzero(on & side) for side in (sums[:, i] <= 0.0, sums[:, i] > 0.0)]
            if all(len(side) for side in sides):
                pairs.append([X[self.rng.choice(side)] for side in sides])
        if not pairs:
            return False
        starts, ends = np.array(pairs).transpose(1, 0, 2)
        return self.look(starts, ends)

    @property
    def left_out(self) -> FloatArray:
        """Directions that normals look in and no row does, shape (r, d)."""
        return self.how.left_out(self.rows[:, :-1], self.normals)

    def add_always_on(self) -> None:
        """Add rows for directions in which no neuron turns: of some that are on all over it."""
        R = self._rows_left_out()
        if len(R):
            cube, n = self.how.cube, self.how.n_points
            along = np.repeat(R, n, axis=0) * self.rng.choice([-1.0, 1.0], (n * len(R), 1))
            if self.look(cube.near_corners(self.rng, along), cube.near_corners(self.rng, -along)):
                R = self._rows_left_out()
        far = 2.0 * self.how.cube.bound * np.abs(R).sum(axis=1)
        self.rows = np.vstack([self.rows, np.column_stack([R, far])])

    def _rows_left_out(self) -> FloatArray:
        """A basis of the rows that are missing, shape (r, d), where they are on wherever seen.

        A normal above is ``sum_j v_j w_j`` over the neurons that are on.  With ``q`` its part in
        directions left out, the part along a row that is off is the same linear function of q in
        all normals, that of the missing rows; along one that is on it is not.
        """
        Q, W = self.left_out, self.rows[:, :-1]
        if not len(Q) or not len(self.seeds):
            return Q
        X = np.array([seed.x for seed in self.seeds])
        parts = np.linalg.lstsq(np.vstack([W, Q]).T, self.normals[len(W) :].T, rcond=None)[0].T
        P, q = parts[:, : len(W)], parts[:, len(W) :]
        is_seen = np.linalg.norm(q, axis=1) > self.how.faint
        R = Q.copy()
        for j, (w, b) in enumerate(zip(W, self.rows[:, -1], strict=True)):
            is_right = X @ w + b > 0.0
            fits = [
                self._linear(q[of], P[of, j]) for of in (is_seen & is_right, is_seen & ~is_right)
            ]
            slopes, _ = min(fits, key=lambda fit: fit[1])
            R += np.outer(slopes, w)
        return np.asarray(R / np.linalg.norm(R, axis=1)[:, None])

    def _linear(self, q: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
        """The linear function of q that y is, and by how much it is not one; 0 of too few."""
        r = q.shape[1]
        if len(y) < 2 * r + 2:
            return np.zeros(r), np.inf
        slopes = np.asarray(np.linalg.lstsq(q, y, rcond=None)[0], dtype=np.float64)
        return slopes, float(np.median(np.abs(q @ slopes - y)))

    def settle(self) -> None:
        """Turn the rows of the first layer on, and put together what is above them."""
        layer = self.rows[:, :-1], self.rows[:, -1]
        layer, self.is_signed = self.how.signed(self.ask, self.noise, layer, self.rng)
        self.rows = np.column_stack(layer)
        self._put_together()

    def sharpen(self) -> None:
        """Measure the first layer's rows again."""
        self.rows = self.how.sharp(self.ask, self.noise, self.stack, self.rows, self.rng)
        self._put_together()

    def _put_together(self) -> None:
        self.upper = UpperRows((self.rows[:, :-1], self.rows[:, -1]), self.noise.unit)
        if self.is_settled:
            self.upper.add(self.seeds)
