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

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network.span import Span
from revelu.numerics.complement import Complement
from revelu.oracle import Oracle
from revelu.probe.boundary import (
    Bend,
    Border,
    crosses_once,
    find_bend,
    find_borders,
    height_noise,
    heights,
)
from revelu.probe.slopes import unit_rows
from revelu.recovery import SpanRecovery, Status
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)

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

# A tolerance is this many standard errors of a height; bisection ends at a bracket of a few,
# whose own error, a sqrt(12)th of it, is less than two.
_SIGMAS = 16.0
_BRACKET = 6.0
_HEIGHT_ERROR = (1.0 + _BRACKET**2 / 12.0) ** 0.5
_ROUGHLY = 0.1

# How far off noise is measured; farther where no place will do: inputs may be rounded.
_NEAR, _FARTHER = 1e-9, 1e-5

# Steps tried beside a place, in units of an input's coordinates, from the longest on.
# Hundreds of directions follow the two lines that choose it, some steeper: the reserve.
_LONGEST, _SHRINK, _SHORTEST = 0.4, 4.0, 1e-5
_N_LINES = 2
_RESERVE = 16.0
_MAX_RETRIES = 2
_BLOCK, _N_MIXES = 64, 6

# Curvature is measured at this step and its double.
_COARSE = 2e-2
# Places where the even part of the heights tells a smooth border from one with kinks.
_N_VOTES = 3

# A place is put off while its error would be this many times the usual one.
_POSTPONED = 5.0
_HOPELESS = 1e4


class _Search:
    """The state of a search: a basis, its complement, and how borders behave."""

    def __init__(self, oracle: Oracle, rng: np.random.Generator) -> None:
        self.oracle, self.rng = oracle, rng
        self.rest = Complement(oracle.dim_in, rng)
        self.radius, self.near = 1.0, _NEAR
        self.inputs = np.empty((0, oracle.dim_in))
        self.labels = np.empty(0)
        self.errors: list[float] = []
        self.leaks: list[float] = []
        self.noise = np.empty(0)
        self.triangle = np.empty((0, 0))
        self.votes: list[bool] = []
        self.patience = _POSTPONED
        self.n_places = self.n_rough = 0

    @property
    def rank(self) -> int:
        """Directions found so far."""
        return len(self.errors)

    @property
    def width(self) -> float:
        """What counts as a shift of a border: more than the span's own error makes."""
        own = _SIGMAS * float(np.median(self.leaks)) if self.leaks else 0.0
        return self.radius * max(_SHIFT * float(np.sqrt(self.oracle.dim_in)), own)

    def leak(self, known: FloatArray) -> float:
        """How much of slopes ``known (r,)`` along the basis the complement sees.

        Normals are T Q, with T triangular; errors N of the normals make E = T^-1 N of Q.
        """
        return float(np.linalg.norm(np.linalg.solve(self.triangle.T, known) * self.noise))

    @property
    def angle(self) -> float:
        """About how far off the span is, in radians: the norm of all errors of its basis."""
        return float(np.linalg.norm(np.linalg.inv(self.triangle) * self.noise))

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
        n, m = self.oracle.dim_in, len(borders)
        moves = self.rng.standard_normal((m, n - self.rank)) @ self.rest.basis * self.radius
        X, E = (np.array([getattr(b, name) for b in borders]) for name in ("x", "e"))
        labels = np.array([b.label for b in borders])
        sides = np.vstack([X - self.width * E, X + self.width * E])
        Y = self.oracle(np.vstack([sides, sides + np.vstack([moves, moves])]))[:, 0]
        inside = Y.reshape(4, m) == labels
        clean = inside[0] & ~inside[1]
        self.n_places += m
        self.n_rough += m - int(clean.sum())
        moved = clean & ~(inside[2] & ~inside[3])
        return [borders[i] for i in np.flatnonzero(moved)]

    def _borders(self) -> list[Border]:
        """Places on borders between random inputs of different labels."""
        X = self.radius * self.rng.standard_normal((_N_PLACES, self.oracle.dim_in))
        labels = self.oracle(X)[:, 0]
        self.inputs, self.labels = np.vstack([self.inputs, X]), np.append(self.labels, labels)
        others = [self.rng.choice(np.flatnonzero(self.labels != label)) for label in labels]
        return find_borders(self.oracle, X, self.inputs[others], labels, _SHIFT / 8.0)

    def learn_at(self, border: Border) -> bool:
        """Measure a normal in the complement; return whether it adds a direction."""
        atol = float(np.finfo(np.float64).eps * np.abs(border.x).max())
        here = np.zeros((1, self.oracle.dim_in))
        t = heights(self.oracle, border, here, np.zeros(1), self.width, atol)
        if np.isnan(t[0]):
            return False
        border = Border(border.x + t[0] * border.e, border.e, border.label)
        lines = unit_rows(self.rng, _N_LINES, len(self.rest.basis)) @ self.rest.basis
        found = self._step_at(border, lines, atol)
        if found is None:
            return False
        h, slopes, noise, curvature = found
        m = len(self.rest.basis)
        expected = np.linalg.norm(slopes) * np.sqrt(m / _N_LINES)
        error = noise * _HEIGHT_ERROR / h * np.sqrt(m)
        if self.errors and error > self.patience * np.median(self.errors) * expected:
            return False
        steepest = 3.0 * float(np.abs(slopes).max())
        if not crosses_once(self.oracle, border, self.rng, steepest * h):
            return False
        measured = self._normal(border, noise, h, steepest, curvature)
        if measured is None:
            return False
        size = float(np.linalg.norm(measured))
        # What is known, and known not quite, leaks into the complement.
        known = self._known_slopes(border, h, steepest)
        leak = self.leak(known)
        if not size > _SIGMAS * (error + leak):
            return False
        self.errors.append(float(error / size))
        self.leaks.append(leak)
        self.noise = np.append(self.noise, error)
        r = self.rank - 1
        self.triangle = np.pad(self.triangle, (0, 1))
        self.triangle[r, :r], self.triangle[r, r] = known, size
        self.rest.take((measured / size)[None])
        return True

    def _known_slopes(self, border: Border, h: float, steepest: float) -> FloatArray:
        """The border's slopes along the basis, to a digit, shape (r,)."""
        Q = self.rest.taken
        atol = _ROUGHLY * steepest * h
        return heights(self.oracle, border, h * Q, np.zeros(len(Q)), steepest * h, atol) / h

    def _step_at(
        self, border: Border, lines: FloatArray, atol: float
    ) -> tuple[float, FloatArray, float, float] | None:
        """A step, the slopes along the lines, the noise of heights, and the curvature."""
        noise = height_noise(self.oracle, border, self.rng, self.near * self.radius, atol)
        if np.isnan(noise):
            return None
        bend = None
        if len(self.votes) < _N_VOTES or self.smooth:
            bend = find_bend(self.oracle, border, lines, _COARSE * self.radius)
            self.votes = [*self.votes, bend is not None][:_N_VOTES]
        if self.smooth:
            found = None if bend is None else self._balanced_step(bend, noise)
        else:
            found = self._flat_step(border, lines, noise)
        return None if found is None else (*found, noise, bend.curvature if bend else 0.0)

    def _flat_step(
        self, border: Border, lines: FloatArray, noise: float
    ) -> tuple[float, FloatArray] | None:
        """The longest step whose heights on both sides are one plane's, and the slopes."""
        h = _LONGEST * self.radius
        while h >= _SHORTEST * self.radius:
            t = heights(self.oracle, border, h * lines, np.zeros(len(lines)), h, _BRACKET * noise)
            if self._is_mirrored(border, h * lines, t, noise).all():
                return h / _RESERVE, t / h
            h /= _SHRINK
        return None

    def _is_mirrored(
        self, border: Border, offsets: FloatArray, t: FloatArray, noise: float
    ) -> BoolArray:
        """Whether the border is as far down on one side as it is up on the other.

        On a plane t(-u) = -t(u), and each is a free test for the kinks of ReLU.
        """
        atol = _SIGMAS * noise
        ends = np.concatenate([-t - atol, -t + atol])
        known = np.where(np.isnan(ends), 0.0, ends)
        inside = border.is_inside(self.oracle, -np.vstack([offsets, offsets]), known)
        return np.asarray(inside[: len(t)] & ~inside[len(t) :] & ~np.isnan(t))

    def _adds_up(self, border: Border, offsets: FloatArray, t: FloatArray, atol: float) -> bool:
        """Whether heights beside a place are one plane's, by random signs of blocks of them.

        Where borders are stairs, of rounded scores, each height may be of another step.
        """
        blocks = _N_MIXES * np.array_split(np.arange(len(t)), -(-len(t) // _BLOCK))
        mixes = np.zeros((len(blocks), len(t)))
        for mix, block in zip(mixes, blocks, strict=True):
            mix[block] = self.rng.choice([-1.0, 1.0], len(block)) / np.sqrt(len(block))
        expected = mixes @ t
        ends = np.concatenate([expected - atol, expected + atol])
        inside = border.is_inside(self.oracle, np.vstack([mixes, mixes]) @ offsets, ends)
        return bool((inside[: len(blocks)] & ~inside[len(blocks) :]).all())

    def _balanced_step(self, bend: Bend, noise: float) -> tuple[float, FloatArray]:
        """The step where the error of a smooth border's slope, A h² + noise / (√2 h), is least."""
        h = float(np.cbrt(noise / (2.0 * 2.0**0.5 * bend.third)))
        return min(max(h, _SHORTEST * self.radius), _COARSE * self.radius), bend.slopes

    def _normal(
        self, border: Border, noise: float, h: float, steepest: float, curvature: float
    ) -> FloatArray | None:
        """The border's slopes along all of the complement, shape (n - r,)."""
        C = self.rest.basis
        t = heights(self.oracle, border, h * C, np.zeros(len(C)), steepest * h, _BRACKET * noise)
        if self.smooth:
            # The odd part: heights on the other side are near -t, for the border is smooth.
            room = max(3.0 * curvature * h * h, 4.0 * _SIGMAS * noise)
            back = heights(self.oracle, border, -h * C, -t, room, _BRACKET * noise)
            slopes = (t - back) / (2.0 * h)
            if np.isnan(slopes).any() or not self._adds_up(border, h * C, h * slopes, room):
                return None
            return np.asarray(slopes)
        steps = np.full(len(C), h)
        kinked = np.flatnonzero(~self._is_mirrored(border, h * C, t, noise))
        for _ in range(_MAX_RETRIES):
            if not len(kinked):
                atol = _SIGMAS * noise * _HEIGHT_ERROR
                flat = self._adds_up(border, steps[:, None] * C, t, atol)
                return np.asarray(t / steps) if flat else None
            # A border bent there: once more, nearer.
            h /= _SHRINK
            near = C[kinked] * h
            t[kinked] = heights(
                self.oracle, border, near, np.zeros(len(kinked)), steepest * h, _BRACKET * noise
            )
            steps[kinked] = h
            kinked = kinked[~self._is_mirrored(border, near, t[kinked], noise)]
        return None


def recover_label_span(
    oracle: Oracle,
    seed: int | np.random.SeedSequence,
    *,
    tell: Callable[[str], None] | None = None,
) -> SpanRecovery:
    """Recover the row span of the first layer of a classifier that answers labels.

    Parameters
    ----------
    oracle : Oracle
        Answers one number, the label: of 0/1 thresholds or of the largest of many outputs.
    seed : int or SeedSequence
    tell : callable, (str) -> None
        Told what is being done.

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
    search = _Search(oracle, np.random.default_rng(seed))
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
            for border in places:
                if search.rank < oracle.dim_in:
                    if tell is not None:
                        tell(f"{search.rank} directions")
                    n_failed = 0 if search.learn_at(border) else n_failed + 1
            # 4. Take what is known less well.  A saturated activation's border is flat in one
            # place and curved in another: look the other way, too.
            if n_failed >= _N_PLACES:
                n_failed = 0
                search.patience *= _POSTPONED
                search.votes = [not search.smooth] * _N_VOTES
                search.near = _NEAR if search.smooth else _FARTHER
                if search.patience > _HOPELESS:
                    status, reason = Status.PARTIAL, _STUCK
                    break
    except LimitReachedError as error:
        status, reason = Status.BUDGET_EXHAUSTED, str(error)
    return SpanRecovery(
        status,
        Span(search.rest.taken),
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
