"""Tell step functions: answers that are constant but for jumps, as those of trees and neighbours.

A network of ReLUs is continuous.  Between two inputs of different answers a step function has a
jump, which halving closes in on until no float64 number is left between its two sides; there the
answers still differ, and do not change at all a million times as far off on either side.  A network
would have to change along ``1e-15`` of an input by what it does not along ``1e-6`` of it.

Rounding makes steps, too, of continuous functions.  Those of answers are of one unit each: what
tells a step function is steps that are larger.  Where trees vote theirs are of one unit, too; but
they lie at values of a single input each, whatever the others are, and a rounded function that
changes with several inputs has a step where their sum makes one.

A target that computes in half precision rounds its inputs, and what is between its layers, as well,
by steps of all sizes; where its answers are half-precision numbers, none is looked for.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from revelu.errors import LimitReachedError
from revelu.numerics.records import Records
from revelu.oracle import NoiseFloor, Oracle
from revelu.oracle.grid import Grid, half_precision
from revelu.oracle.numbers import read_numbers
from revelu.types import BoolArray, FloatArray

JUMPS = "the answers are constant but for jumps"

_STEPS = (
    JUMPS + ": at {n} of {of} places they change by up to "
    "{share:.0%} of their range between inputs that differ in the last digit of float64, and not "
    "at all up to {beside:.0e} of an input to either side. A network of ReLUs is continuous; "
    "trees, forests and nearest neighbours jump so"
)

_ALONG = (
    "the answers change at values of single inputs, whatever the others are: {n} of {of} places "
    "where they jump stay when all other inputs move. So do trees and forests; a network whose "
    "coarsely rounded answers change with one input alone at each of these does, too"
)


@dataclass(frozen=True, eq=False)
class Sides(Records):
    """Places with a step: inputs on both sides, and answers there.

    Attributes
    ----------
    P, Q : ndarray, shape (n, r)
        Coordinates, which differ in their last digits.
    E : ndarray, shape (n, r)
        Unit vectors that lead across.
    A, B : ndarray, shape (n, k)
    """

    P: FloatArray
    Q: FloatArray
    E: FloatArray
    A: FloatArray
    B: FloatArray


class Jumps(NamedTuple):
    """What was seen of a step function, in sentences; empty where nothing was.

    Attributes
    ----------
    jumps : str
        That it is one, whose steps no rounding has made.
    along : str
        That its steps lie at values of single inputs, whatever has made them.
    """

    jumps: str = ""
    along: str = ""


@dataclass(frozen=True)
class Steps:
    """How a step function is told.

    Attributes
    ----------
    n_inputs : int
        Inputs between which places are sought.
    n_places : int
        Segments whose ends have other answers.
    n_halvings, n_between : int, int
        Of each, and after how many it is seen whether there may be a jump: a forest of a hundred
        trees has hundreds on a segment, and one in ``2**16`` of it lies between two.
    beside : tuple of float
        How far off on either side the answers must stay what they are, relative to an input's
        size: farther than inputs are rounded by a target that computes in float32.
    share : float
        Places that must be steps: a forest may have another step as near as that at some.
    units : float
        A step of rounding is one unit of its grid.
    fewest_larger : int
        Places with a larger step than that.
    coarse : float
        Where all steps are of one size, and on no known grid, they are of rounding if they are a
        smaller share of the range of the answers.
    rounded : float
        A step of ``rounded`` units of float32 or less may be of rounding, too: so jump the answers
        of a network that computes in float32, at inputs between which they hardly vary.
    steady : float
        Share of neighbouring inputs of the noise floor whose answers are the same: where fewer
        are, none is worth a query.
    n_turns : int
        Draws of half of the inputs that are moved beside a step, the others after them;
    moved : float
        by ``moved`` of their deviations,
    gap : float
        and how far apart the inputs on both sides are then, relative to an input's size: a step
        that is moved along is missed by what that is of ``moved``.
    """

    n_inputs: int = 32
    n_places: int = 12
    n_halvings: int = 56
    n_between: int = 16
    beside: tuple[float, ...] = (1e-9, 1e-8, 1e-7, 1e-6)
    share: float = 0.75
    units: float = 1.5
    fewest_larger: int = 3
    coarse: float = 0.1
    rounded: float = 16.0
    steady: float = 0.5
    n_turns: int = 3
    moved: float = 1e-3
    gap: float = 1e-7

    def may_be(self, noise: NoiseFloor) -> bool:
        """Whether what the noise floor has seen of a target allows steps."""
        is_half = noise.numbers.is_half_precision
        return noise.is_deterministic and not is_half and noise.steady >= self.steady

    def evidence(self, oracle: Oracle, grid: Grid | None, rng: np.random.Generator) -> str:
        """Say that a target is a step function; an empty string where it need not be one.

        Parameters
        ----------
        grid : Grid, optional
            Of which the answers are numbers; without one what these here say.

        Raises
        ------
        TargetError
            If the target does not answer.
        """
        return self._look(oracle, grid, rng, along=False, votes=False).jumps

    def look(
        self, oracle: Oracle, grid: Grid | None, rng: np.random.Generator, *, votes: bool = False
    ) -> "Jumps":
        """See whether a target is a step function, and whether its steps lie along single inputs.

        Parameters
        ----------
        grid : Grid, optional
            As of :meth:`evidence`.
        votes : bool
            Look, for four times the queries, whether steps lie so that may be of rounding, too.

        Raises
        ------
        TargetError
            If the target does not answer.
        """
        return self._look(oracle, grid, rng, along=True, votes=votes)

    def _look(
        self,
        oracle: Oracle,
        grid: Grid | None,
        rng: np.random.Generator,
        *,
        along: bool,
        votes: bool,
    ) -> "Jumps":
        try:
            with oracle.as_answered():
                steps, Y = self._sides(oracle, None if votes else grid, rng)
                if steps is None or len(steps) < self.fewest:
                    return Jumps()
                said = self._evidence(steps, Y, grid)
                # Few values, and several outputs, do not show all that answers are multiples of.
                is_open = bool(said) and not self._are_no_rounding(steps, np.ptp(Y, axis=0), [])
                along = votes or is_open or (along and bool(said))
                lie = self._along_inputs(oracle, steps, rng) if along else ""
                return Jumps("" if is_open and not lie else said, lie)
        except LimitReachedError:
            return Jumps()

    def _evidence(self, steps: Sides, Y: FloatArray, grid: Grid | None) -> str:
        """Say that steps are larger than those of rounding, where they are."""
        # The few values that a noise floor has seen may not have shown a grid.
        seen = np.vstack([Y, steps.A, steps.B])
        numbers = read_numbers(seen)
        if numbers.is_half_precision:
            return ""
        # Nor do few tell one grid from another: fixed places have larger units where numbers are
        # small, and half precision where they are large.
        grid = grid or numbers.grid
        grids = [] if grid is None else [grid, grid.at_fixed_places(seen)]
        grids += [half for half in half_precision() if grids and half.holds(seen).all()]
        ranges = np.ptp(Y, axis=0)
        are_larger = self._are_no_rounding(steps, ranges, grids)
        return self._told(steps, self.n_places, ranges) if are_larger else ""

    def _along_inputs(self, oracle: Oracle, steps: Sides, rng: np.random.Generator) -> str:
        """Say that steps lie at values of single inputs, where they do."""
        center, matrix = oracle.own_inputs
        if len(center) < 2:
            return ""
        moves = self.moved * np.linalg.pinv(matrix / np.linalg.norm(matrix, axis=0))
        n = int(self._stay(oracle, steps, moves, rng).sum())
        return _ALONG.format(n=n, of=self.n_places) if n >= self.fewest else ""

    @property
    def fewest(self) -> int:
        """Places that must be steps."""
        return int(np.ceil(self.share * self.n_places))

    def _stay(
        self, oracle: Oracle, steps: Sides, moves: FloatArray, rng: np.random.Generator
    ) -> BoolArray:
        """Which steps stay where they are when the inputs move that they are no step of.

        Of two halves of the inputs one has that input, and moves away from the step.

        Parameters
        ----------
        moves : ndarray, shape (m, r)
            What moves each input alone, in coordinates.
        """
        size = np.maximum(np.abs(steps.P).max(axis=1), 1.0)[:, None]
        across = self.gap * size * steps.E
        stay = np.ones(len(steps), dtype=bool)
        for _ in range(self.n_turns):
            ways = rng.choice([-1.0, 1.0], (len(steps), len(moves)))
            half = rng.permuted(np.tile(np.arange(len(moves)) % 2 == 0, (len(steps), 1)), axis=1)
            still = []
            for chosen in (half, ~half):
                M = (ways * chosen) @ moves
                sides = [_inside(oracle, side + M) for side in (steps.P - across, steps.Q + across)]
                still.append((oracle(sides[0]) != oracle(sides[1])).any(axis=1))
            stay &= still[0] != still[1]
        return stay

    def _sides(
        self, oracle: Oracle, grid: Grid | None, rng: np.random.Generator
    ) -> tuple[Sides | None, FloatArray]:
        """Steps between inputs of different answers, and these; None where there are too few.

        Nor are there where all are seen early to be of one unit of ``grid``.
        """
        X = _drawn(oracle, self.n_inputs, rng)
        Y = oracle(X)
        kinds = np.unique(Y, axis=0, return_inverse=True)[1].ravel()
        if kinds.max() == 0:
            return None, Y
        first = rng.choice(len(X), self.n_places)
        second = np.array([rng.choice(np.flatnonzero(kinds != kinds[i])) for i in first])
        P, Q, A, B = X[first], X[second], Y[first], Y[second]
        ends = (P.copy(), Q.copy())
        for n in range(self.n_halvings):
            middle = P + (Q - P) / 2.0
            answers = oracle(middle)
            same = (answers == A).all(axis=1)
            P[same], Q[~same], B[~same] = middle[same], middle[~same], answers[~same]
            moved = (ends[0] != P).any(axis=1)
            if (n + 1) % self.n_between == 0 and (
                moved.sum() < self.fewest or not self._may_be_larger(A, B, grid)
            ):
                return None, Y
        E = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0], axis=1)[:, None]
        sides = Sides(P, Q, E, A, B)
        return sides.take(self._are_steps(oracle, sides)), Y

    def _are_steps(self, oracle: Oracle, sides: Sides) -> BoolArray:
        """Where no number is left between both sides, whose answers go on as they are."""
        size = np.maximum(np.abs(sides.P).max(axis=1), 1.0)[:, None]
        found = _near(sides.P, sides.Q) & ~_rounded_apart(oracle, sides.P, sides.Q)
        for side, way, answers in ((sides.P, -1.0, sides.A), (sides.Q, 1.0, sides.B)):
            for far in self.beside:
                X = _inside(oracle, side + way * far * size * sides.E)
                found &= (oracle(X) == answers).all(axis=1)
        return found

    def _are_no_rounding(self, steps: Sides, ranges: FloatArray, grids: list[Grid]) -> bool:
        """Whether enough steps are larger than those of rounding to any of some grids."""
        jumps = np.abs(steps.B - steps.A)
        sizes = np.maximum(np.abs(steps.A), np.abs(steps.B))
        if grids:
            unit = np.maximum.reduce([grid.spacing(sizes) for grid in grids])
            # Of a difference to 1 the last digits are lost before it is rounded.
            unit = np.maximum(unit, float(np.finfo(np.float32).eps) * ranges)
        else:
            # Steps of one size are of rounding, unless they are coarser than any rounding is.
            unit = np.where(jumps > 0, jumps, np.inf).min(axis=0)
            unit = np.minimum(unit, self.coarse * ranges / self.units)
            single = float(np.finfo(np.float32).eps) * sizes
            unit = np.maximum(unit, self.rounded * single / self.units)
        return int((jumps > self.units * unit).any(axis=1).sum()) >= self.fewest_larger

    def _may_be_larger(self, A: FloatArray, B: FloatArray, grid: Grid | None) -> bool:
        """Whether enough sides still differ by more than a unit of a grid that is known."""
        if grid is None:
            return True
        unit = grid.spacing(np.maximum(np.abs(A), np.abs(B)))
        larger = (np.abs(B - A) > self.units * unit).any(axis=1)
        return int(larger.sum()) >= self.fewest_larger

    def _told(self, steps: Sides, of: int, ranges: FloatArray) -> str:
        jumps = np.abs(steps.B - steps.A)
        share = float((jumps / np.where(ranges > 0, ranges, np.inf)).max())
        return _STEPS.format(n=len(steps), of=of, share=min(share, 1.0), beside=self.beside[-1])


def _drawn(oracle: Oracle, n: int, rng: np.random.Generator) -> FloatArray:
    if oracle.box is None:
        return rng.standard_normal((n, oracle.dim_in))
    return rng.uniform(*oracle.box, (n, oracle.dim_in))


def _inside(oracle: Oracle, X: FloatArray) -> FloatArray:
    return X if oracle.box is None else np.clip(X, *oracle.box)


def _near(P: FloatArray, Q: FloatArray, ulps: float = 4.0) -> BoolArray:
    """Which inputs differ in their last digits alone."""
    size = np.maximum(np.abs(P).max(axis=1), np.abs(Q).max(axis=1))
    return np.asarray(np.abs(P - Q).max(axis=1) <= ulps * np.finfo(np.float64).eps * size)


def _rounded_apart(oracle: Oracle, P: FloatArray, Q: FloatArray) -> BoolArray:
    """Where some input of the target rounds to other numbers of 11 or of 8 bits on both sides.

    So near each other those of a tree's threshold do so by chance alone.  A target that rounds its
    inputs to float16 or bfloat16 may be a network of what they are rounded to.
    """
    center, matrix = oracle.own_inputs
    sides = [center + Z @ matrix for Z in (P, Q)]
    with np.errstate(over="ignore"):
        halves = [X.astype(np.float16) for X in sides]
        bits = [X.astype(np.float32).view(np.uint32) for X in sides]
    short = [(b + 0x7FFF + ((b >> 16) & 1)) >> 16 for b in bits]
    return np.asarray(((halves[0] != halves[1]) | (short[0] != short[1])).any(axis=1))
