"""Tell step functions: answers that are constant but for jumps, as those of trees and neighbours.

A network of ReLUs is continuous.  Between two inputs of different answers a step function has a
jump, which halving closes in on until no float64 number is left between its two sides; there the
answers still differ, and do not change at all a million times as far off on either side.  A network
would have to change along ``1e-15`` of an input by what it does not along ``1e-6`` of it.

Rounding makes steps, too, of continuous functions.  Those of answers are of one unit each: what
tells a step function is steps that are larger.  A target that computes in half precision rounds its
inputs, and what is between its layers, as well, by steps of all sizes; where its answers are
half-precision numbers, none is looked for.
"""

from dataclasses import dataclass

import numpy as np

from revelu.errors import LimitReachedError
from revelu.oracle import NoiseFloor, Oracle
from revelu.oracle.grid import Grid
from revelu.oracle.numbers import read_numbers
from revelu.types import BoolArray, FloatArray

JUMPS = "the answers are constant but for jumps"

_STEPS = (
    JUMPS + ": at {n} of {of} places they change by up to "
    "{share:.0%} of their range between inputs that differ in the last digit of float64, and not "
    "at all up to {beside:.0e} of an input to either side. A network of ReLUs is continuous; "
    "trees, forests and nearest neighbours jump so"
)


@dataclass(frozen=True, eq=False)
class Sides:
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

    def __len__(self) -> int:
        return len(self.P)

    def take(self, rows: BoolArray) -> "Sides":
        """Some of them."""
        return Sides(self.P[rows], self.Q[rows], self.E[rows], self.A[rows], self.B[rows])


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
        Of each, and after how many it is seen whether there may be a jump.
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
        A step of no more than so many units of float32 may be of rounding, too: so jump the answers
        of a network that computes in float32, at inputs between which they hardly vary.
    steady : float
        Share of neighbouring inputs of the noise floor whose answers are the same: where fewer
        are, none is worth a query.
    """

    n_inputs: int = 32
    n_places: int = 12
    n_halvings: int = 56
    n_between: int = 8
    beside: tuple[float, ...] = (1e-9, 1e-8, 1e-7, 1e-6)
    share: float = 0.75
    units: float = 1.5
    fewest_larger: int = 3
    coarse: float = 0.1
    rounded: float = 16.0
    steady: float = 0.5

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
        try:
            with oracle.as_answered():
                return self._evidence(oracle, grid, rng)
        except LimitReachedError:
            return ""

    def _evidence(self, oracle: Oracle, grid: Grid | None, rng: np.random.Generator) -> str:
        X = _drawn(oracle, self.n_inputs, rng)
        Y = oracle(X)
        kinds = np.unique(Y, axis=0, return_inverse=True)[1].ravel()
        if kinds.max() == 0:
            return ""
        first = rng.choice(len(X), self.n_places)
        second = np.array([rng.choice(np.flatnonzero(kinds != kinds[i])) for i in first])
        P, Q, A, B = X[first], X[second], Y[first], Y[second]
        fewest = int(np.ceil(self.share * self.n_places))
        ends = (P.copy(), Q.copy())
        for n in range(self.n_halvings):
            middle = P + (Q - P) / 2.0
            answers = oracle(middle)
            same = (answers == A).all(axis=1)
            P[same], Q[~same], B[~same] = middle[same], middle[~same], answers[~same]
            moved = (ends[0] != P).any(axis=1)
            if (n + 1) % self.n_between == 0 and moved.sum() < fewest:
                return ""
        E = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0], axis=1)[:, None]
        sides = Sides(P, Q, E, A, B)
        is_step = self._are_steps(oracle, sides)
        steps = sides.take(is_step)
        # The few values that a noise floor has seen may not have shown a grid.
        grid = grid or read_numbers(np.vstack([Y, A, B])).grid
        is_told = is_step.sum() >= fewest and self._are_no_rounding(steps, np.ptp(Y, axis=0), grid)
        return self._told(steps, self.n_places, np.ptp(Y, axis=0)) if is_told else ""

    def _are_steps(self, oracle: Oracle, sides: Sides) -> BoolArray:
        """Where no number is left between both sides, whose answers go on as they are."""
        size = np.maximum(np.abs(sides.P).max(axis=1), 1.0)[:, None]
        found = _near(sides.P, sides.Q) & ~_rounded_apart(oracle, sides.P, sides.Q)
        for side, way, answers in ((sides.P, -1.0, sides.A), (sides.Q, 1.0, sides.B)):
            for far in self.beside:
                X = _inside(oracle, side + way * far * size * sides.E)
                found &= (oracle(X) == answers).all(axis=1)
        return found

    def _are_no_rounding(self, steps: Sides, ranges: FloatArray, grid: Grid | None) -> bool:
        """Whether enough steps are larger than those of rounding."""
        jumps = np.abs(steps.B - steps.A)
        sizes = np.maximum(np.abs(steps.A), np.abs(steps.B))
        if grid is not None:
            unit = grid.spacing(sizes)
        else:
            # Steps of one size are of rounding, unless they are coarser than any rounding is.
            unit = np.where(jumps > 0, jumps, np.inf).min(axis=0)
            unit = np.minimum(unit, self.coarse * ranges / self.units)
            single = float(np.finfo(np.float32).eps) * sizes
            unit = np.maximum(unit, self.rounded * single / self.units)
        return int((jumps > self.units * unit).any(axis=1).sum()) >= self.fewest_larger

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
