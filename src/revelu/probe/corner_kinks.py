"""Kinks along a pixel at a corner, and the faces that they lie on.

Along a pixel at a corner one place of each filter bends the function, by one and the same change of
slope ``|w_p| A`` in all outputs wherever the other pixels are.  A face is measured at a kink, by
moves of one pixel at a time: where nothing else bends between t and t' on either side of it,

    g(y) = f(t', y) - f(t, y),   g(y) - g(0) = -J (how far the kink moves).
"""

import logging
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.numerics.lone_kinks import LoneKinks, bends, second_differences, without_kink
from revelu.probe.draws import Draws
from revelu.probe.kink_faces import Face
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["CornerKinks", "CornerLines", "SeenFace"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CornerLines:
    """How they are asked.

    Attributes
    ----------
    local : float
        Share of the image's rows or columns that a filter sees at most.
    asked : (int, int, int)
        Lines of a round; evenly spaced points on each: the finer, the fewer kinks share a spacing;
        and lines of which one is asked where only the least is not known.
    most_rounds : (int, int)
        At the first corner, and at others, where other entries of a filter bend the function; as
        few as there in a row that show no filter are enough.
    starts : (int, int, int, int)
        Kinks alike at which faces are looked for, and faces measured, at most; steps tried, each a
        quarter of the one before; and kinks of a face at least, to be one.
    """

    local: float
    asked: tuple[int, int, int] = (24, 49, 8)
    most_rounds: tuple[int, int] = (3, 1)
    starts: tuple[int, int, int, int] = (6, 2, 3, 3)


@dataclass(frozen=True)
class SeenFace:
    """A face, and all kinks of its change of slope.

    Attributes
    ----------
    face : Face
    jump : ndarray, shape (k,)
    P : ndarray, shape (n, d)
        The other pixels, and a one.
    places, spread : ndarray, shape (n,)
    """

    face: Face
    jump: FloatArray
    P: FloatArray
    places: FloatArray
    spread: FloatArray

    @property
    def n_on(self) -> int:
        """How many of them lie on it."""
        return int(np.count_nonzero(self.face.agrees(self.P, self.places, self.spread)))

    @property
    def is_all(self) -> bool:
        """Whether all of them do."""
        return self.n_on == len(self.places)

    def without(self, pixels: IntArray) -> "SeenFace":
        """Return it where it is known not to depend on some pixels."""
        face = self.face.without(pixels).joined(self.P, self.places, self.spread)
        return SeenFace(face, self.jump, self.P, self.places, self.spread)


@dataclass
class CornerKinks:
    """Lines along one of some pixels.

    Attributes
    ----------
    pixels : ndarray of int, shape (channels, rows, columns)
        Those that act together.
    along : int
        Which of them lines go along.
    others : ndarray of int
        The pixels beside it.
    X : ndarray, shape (n, size)
        Where each line is.
    Y : ndarray, shape (n, points, k)
        Answers on it.
    D, errors : ndarray, shape (n, points - 2, k) and (n, k)
        Second differences of those, and their standard errors.
    seen : list of SeenFace
    """

    how: CornerLines
    draws: Draws
    size: int
    pixels: IntArray
    along: int
    others: IntArray = field(init=False)
    X: FloatArray = field(init=False)
    Y: FloatArray = field(init=False)
    D: FloatArray = field(init=False)
    errors: FloatArray = field(init=False)
    seen: list[SeenFace] = field(default_factory=list, init=False)
    _starts: dict[tuple[int, int], tuple[FloatArray, Face | None]] = field(
        default_factory=dict, init=False
    )

    def __post_init__(self) -> None:
        self.others = np.delete(self.pixels.ravel(), self.along)
        self.X = np.empty((0, self.size))
        self.Y = np.empty((0, self.how.asked[1], len(self.draws.noise.errors)))

    def look(self, n_rounds: int) -> None:
        """Ask lines in rounds, until all kinks are understood."""
        n_idle, others = 0, self._understand()
        for _ in range(n_rounds):
            is_idle, is_over = n_idle >= self.how.most_rounds[1], not len(others)
            if self.jumps or (is_over and self.seen) or (is_idle and (is_over or self.seen)):
                break
            n_before = len(self.seen)
            others = self.look_at(self._images(others))
            n_idle = n_idle + 1 if len(self.seen) == n_before else 0

    def look_at(self, X: FloatArray) -> IntArray:
        """Ask lines, (n, size), and return those of kinks that are not understood."""
        self._ask(X)
        # With more lines, kinks at which no face was measured are tried again.
        self._starts = {at: start for at, start in self._starts.items() if start[1] is not None}
        others = self._understand()
        log.debug("faces at a corner: %d, %d kinks of others", len(self.seen), len(others))
        return others

    @property
    def jumps(self) -> bool:
        """Whether lines bend, but at none of the places as piecewise affine functions do.

        Between the last two points of a line, a jump is as a kink.
        """
        places = LoneKinks.of(self.D, self.errors).place
        has_kinks = bool(((places >= 1.0) & (places <= self.D.shape[1])).any())
        return not has_kinks and bool(bends(self.D[:, 1:-1], self.errors[:, None]).any())

    def _images(self, others: IntArray) -> FloatArray:
        """Images of a round."""
        n = self.how.asked[0]
        X = self.drawn(n)
        if len(others) and self.pixels.size > 1:
            X[: n // 2] = self.near(others, n // 2)
        return X

    def near(self, lines: IntArray, n: int) -> FloatArray:
        """Images of some lines, with another value of a pixel each, (n, size)."""
        rng, X, near = self.draws.rng, self.drawn(n), self.X[self.draws.rng.choice(lines, n)]
        at, one = np.arange(n), rng.choice(self.others, n)
        near[at, one] = (near[at, one] + X[at, one]) / 2.0
        return np.asarray(near)

    def drawn(self, n: int) -> FloatArray:
        """Images, (n, size)."""
        return self.draws.rounded(self.draws.levels(n, self.size, self.pixels, self.uneven))

    @property
    def uneven(self) -> float:
        """Share of a random image in others, so that no two places that see even pixels tie."""
        return 2.0 / self.how.asked[1]

    def ends(self, X: FloatArray) -> FloatArray:
        """Images at the ends of lines, (n, 2, size)."""
        ends = np.repeat(X[:, None], 2, axis=1)
        ends[:, :, self.pixels.flat[self.along]] = self.draws.ends
        return ends

    @cached_property
    def t(self) -> FloatArray:
        """Values of the pixel that lines go along, (points,)."""
        return np.linspace(*self.draws.ends, self.how.asked[1])

    @property
    def given(self) -> FloatArray:
        """The other pixels on each line, and a one."""
        return np.column_stack([self.X[:, self.others], np.ones(len(self.X))])

    def row(self, face: Face) -> tuple[FloatArray, FloatArray]:
        """Return a face's weights, of ``along`` 1, and bias, (d + 1,), and their covariance."""
        step, at = self.t[1] - self.t[0], self.along
        w = np.insert(-step * face.x, at, 1.0)
        w[-1] -= self.t[0]
        return w, np.insert(np.insert(step**2 * face.covariance, at, 0.0, 0), at, 0.0, 1)

    def has_even(self, face: Face) -> bool:
        """Whether even images are on a face, as on those of two places that tie."""
        w, C = self.row(face)
        even = np.ones(len(w) - 1)
        sums = np.array([w[:-1].sum(), w[-1]])
        errors = np.sqrt([even @ C[:-1, :-1] @ even, C[-1, -1]])
        return bool((np.abs(sums) <= SIGMAS * errors).all())

    def _along(self, X: FloatArray) -> FloatArray:
        """Images of lines, (n, points, size)."""
        along = np.repeat(X[:, None], self.how.asked[1], axis=1)
        along[:, :, self.pixels.flat[self.along]] = self.t
        return self.draws.rounded(along.reshape(-1, self.size)).reshape(along.shape)

    def _ask(self, X: FloatArray) -> None:
        """Ask more lines."""
        X = self.draws.rounded(X)
        Y = self.draws.oracle(self._along(X).reshape(-1, self.size))
        self.X = np.concatenate([self.X, X])
        self.Y = np.concatenate([self.Y, Y.reshape(len(X), *self.Y.shape[1:])])

    def _understand(self) -> IntArray:
        """Find the faces of kinks alike, and return the lines of other kinks.

        What is understood is taken away, and shows what it hid.
        """
        flat = self.Y.reshape(-1, self.Y.shape[2])
        rounding = self.draws.noise.rounding(flat).reshape(self.Y.shape).max(axis=1, initial=0.0)
        # Answers of 0 are known to be exact to no one.
        rounding = np.maximum(rounding, np.finfo(np.float32).eps * self.draws.noise.errors)
        self.D, self.errors = second_differences(self.Y, rounding)
        D, P, fewest = self.D, self.given, self.how.starts[3]
        slack = np.sqrt(D.shape[2]) + SIGMAS
        self.seen = []
        while True:
            kinks = LoneKinks.of(D, self.errors)
            is_open = np.ones(len(kinks.line), dtype=bool)
            n_before = len(self.seen)
            # The strongest first: those of others are not taken for them.
            for seed in np.argsort(kinks.spread):
                alike = np.flatnonzero(kinks.apart(int(seed)) <= slack)
                if not is_open[seed] or np.count_nonzero(is_open[alike]) < fewest:
                    continue
                start = self._start(kinks, int(seed), slack)
                if start is None:
                    continue
                those = P[kinks.line[alike]], kinks.place[alike], kinks.spread[alike]
                face = start.joined(*those)
                agrees = alike[face.agrees(*those)]
                if len(agrees) < fewest:
                    continue
                is_open[agrees] = False
                weights = 1.0 / kinks.error[agrees] ** 2
                jump = (kinks.jump[agrees] * weights).sum(axis=0) / weights.sum(axis=0)
                D = without_kink(D, self.errors, P @ face.x, jump)
                self.seen.append(SeenFace(face, jump, *those))
            if len(self.seen) == n_before:
                self.seen = _confirmed(self.seen, self.D, self.errors, P, (slack, fewest))
                known = np.array([one.jump for one in self.seen]).reshape(-1, D.shape[2])
                apart = (kinks.jump[:, None] - known) / kinks.error[:, None]
                is_known = (np.linalg.norm(apart, axis=2) <= slack).any(axis=1)
                return np.asarray(kinks.line[~is_known])

    def _start(self, kinks: LoneKinks, i: int, slack: float) -> Face | None:
        """The face of a kink, measured once; None where those alike were tried often enough."""
        line, place, jump, error = kinks.line[i], kinks.place[i], kinks.jump[i], kinks.error[i]
        key = int(line), int(place)
        if key not in self._starts:
            alike = [
                face is not None
                for (at, _), (other, face) in self._starts.items()
                if np.linalg.norm((jump - other) / np.hypot(error, self.errors[at])) <= slack
            ]
            if len(alike) >= self.how.starts[0] or sum(alike) >= self.how.starts[1]:
                return None
            self._starts[key] = jump, self._measured(line, place, jump, error)
        return self._starts[key][1]

    def _measured(
        self, line: int, place: float, jump: FloatArray, error: FloatArray
    ) -> Face | None:
        """The face of a kink, by moves of one pixel at a time; None where others come between."""
        left, right = _ends(self.D[line], error, place)
        reach = min(place - left, right - place)
        base, pixels = self.X[line].copy(), self.others
        towards = np.where(base[pixels] > np.mean(self.draws.ends), -1.0, 1.0)
        moves = np.diag(towards * reach * (self.t[1] - self.t[0]))
        ends, shares = (left, right), self.draws.rng.random(len(pixels))
        spread = np.sqrt(4 / 6) / np.linalg.norm(jump / error)
        for _ in range(self.how.starts[2]):
            both, is_right = self._shifts(line, ends, (shares @ moves)[None], jump, error)
            if is_right[0] and abs(both[0]) <= reach:
                shifts, is_right = self._shifts(line, ends, moves, jump, error)
                # Where more than two places tie, moves do not add up.
                apart = abs(both[0] - shifts @ shares) / np.hypot(1.0, np.linalg.norm(shares))
                is_near = np.abs(shifts).max(initial=0.0) <= reach
                if is_right.all() and is_near and apart <= SIGMAS * spread:
                    steps = np.diag(moves)
                    errors = spread / np.abs(steps)
                    return Face.at(shifts / steps, errors, base[pixels], place, spread)
            moves /= 4
        return None

    def _shifts(
        self,
        line: int,
        ends: tuple[int, int],
        moves: FloatArray,
        jump: FloatArray,
        error: FloatArray,
    ) -> tuple[FloatArray, BoolArray]:
        """How far moves (n, d - 1) of the other pixels move a kink, and where nothing else does."""
        X = np.repeat(self.X[line][None, None], 2, axis=0).repeat(len(moves), axis=1)
        X[:, :, self.others] += moves
        X[:, :, self.pixels.flat[self.along]] = self.t[list(ends)][:, None]
        X = self.draws.rounded(X.reshape(-1, self.size))
        Y = self.draws.oracle(X).reshape(2, len(moves), len(jump))
        Y -= self.Y[line, list(ends)][:, None]
        G = (Y[1] - Y[0]) / error
        shifts = -(G @ (jump / error)) / float(np.linalg.norm(jump / error)) ** 2
        left = np.linalg.norm(G + np.outer(shifts, jump / error), axis=1)
        return shifts, left <= np.sqrt(len(jump)) + SIGMAS


def _confirmed(
    seen: list[SeenFace],
    D: FloatArray,
    errors: FloatArray,
    P: FloatArray,
    least: tuple[float, int],
) -> list[SeenFace]:
    """Faces on which enough kinks are left where the faces of more kinks are taken away.

    Kinks of two filters that are never far apart are as one, of both of their changes of slope,
    whose face is neither's: nothing is left of them where those faces are taken away.
    """
    slack, fewest = least
    is_seen = np.zeros(len(seen), dtype=bool)
    for i in np.argsort([-one.n_on for one in seen], kind="stable"):
        kinks, one = LoneKinks.of(D, errors), seen[i]
        apart = (kinks.jump - one.jump) / (np.sqrt(2.0) * kinks.error)
        is_alike = np.linalg.norm(apart, axis=1) <= slack
        those = P[kinks.line[is_alike]], kinks.place[is_alike], kinks.spread[is_alike]
        if np.count_nonzero(one.face.agrees(*those)) >= fewest:
            is_seen[i] = True
            D = without_kink(D, errors, P @ one.face.x, one.jump)
    return [one for one, kept in zip(seen, is_seen, strict=True) if kept]


def _ends(D: FloatArray, error: FloatArray, place: float) -> tuple[int, int]:
    """Points between which nothing bends but at a place, of second differences (points - 2, k)."""
    is_bent = np.pad(bends(D, error), 1)
    left, right = int(place), int(place) + 1
    while left > 0 and (left == int(place) or not is_bent[left]):
        left -= 1
    while right < len(is_bent) - 1 and (right == int(place) + 1 or not is_bent[right]):
        right += 1
    # Half of the way: others move as well.
    return (left + int(place)) // 2, (right + int(place) + 2) // 2
