"""Places between the kinks of a line along a pixel, and how far moves of other pixels shift them.

Between two places on either side of a kink of neuron ``w``, and nowhere beyond another one,

    g(y) = f(x0 + y + t e_p) - f(x0 + y + t' e_p),    g(y) - g(0) = J (w . y) / w_p,

for a move ``y`` of other pixels: what it does to all other neurons cancels.
"""

from dataclasses import dataclass

import numpy as np

from revelu.network.images import Image
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.structured.seen import Seen
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["BracketSteps", "Brackets"]


@dataclass(frozen=True)
class BracketSteps:
    """How far pixels are moved beside kinks."""

    share: float = 0.25
    """Of the distance to the neighbours of a kink that a step may move it, if all weights are as
    large as the pixel's."""
    shrink: float = 0.15
    """Of a step, where the kink went past its neighbours."""
    n_tries: int = 3
    """Steps, each shorter than the last."""
    short: float = 1e-2
    short_if_rounded: float = 0.2
    """Share of a step in all pixels that checks them, of float64 answers and of others."""
    linear: float = 10.0
    """How much that check may be off, relative to the largest shift, in units of half of the
    answers' digits, which is what changes of slope have."""
    nearest: float = 0.02
    """Kinks nearer than this share of the median distance are left to another line."""
    outer: float = 1.0
    """How far beyond the outermost kinks the function is asked."""


class Brackets:
    """Pairs of places on either side of each kink, and what moves of other pixels do there.

    Kinks too near their neighbours are left out.

    Attributes
    ----------
    kinks : ndarray, shape (m,)
        Values of the pixel.
    jumps : ndarray, shape (m, k)
    room : ndarray, shape (m,)
        How far the nearer place is.
    places : ndarray of int, shape (m,)
        Which of the kinks of the line they are.
    """

    def __init__(self, oracle: Oracle, noise: NoiseFloor, seen: Seen, how: "BracketSteps") -> None:
        self.oracle, self.noise, self.seen, self.how = oracle, noise, seen, how
        gaps = np.diff(seen.kinks)
        typical = float(np.median(gaps)) if len(gaps) else how.outer
        outer = max(typical, how.outer)
        edges = np.concatenate([[-outer], gaps, [outer]]) / 2
        edges[0] *= -2.0
        edges[-1] *= 2.0
        middles = (
            np.concatenate(
                [
                    [seen.kinks[0] - edges[0]],
                    seen.kinks[:-1] + gaps / 2,
                    [seen.kinks[-1] + edges[-1]],
                ]
            )
            if len(seen.kinks)
            else np.empty(0)
        )
        room = np.minimum(edges[:-1], edges[1:]) if len(seen.kinks) else np.empty(0)
        clear = np.flatnonzero(seen.is_single & (room > how.nearest * typical))
        self.kinks, self.jumps, self.room = seen.kinks[clear], seen.jumps[clear], room[clear]
        self.places, self._at = clear, middles
        if len(clear):
            self._base = self._answers(np.zeros((1, oracle.dim_in)))[0]

    def _answers(self, moves: FloatArray, kinks: IntArray | None = None) -> FloatArray:
        """Change of the answers from before to after some kinks, (n, m, k), in one round."""
        chosen = np.arange(len(self.places)) if kinks is None else kinks
        places = self.places[chosen]
        # Neighbours share a place between them.
        used, where = np.unique(np.concatenate([places, places + 1]), return_inverse=True)
        X = np.repeat((self.seen.x0 + moves)[:, None], len(used), axis=1)
        X[:, :, self.seen.pixel] += self._at[used]
        Y = self.oracle(X.reshape(-1, X.shape[2])).reshape(len(moves), len(used), -1)
        before, after = np.split(where, 2)
        return np.asarray(Y[:, after] - Y[:, before])

    @property
    def error(self) -> float:
        """Standard error of a change of four answers, in all outputs."""
        size = float(self.noise.growth(self.seen.x0))
        return 2.0 * float(np.linalg.norm(self.noise.nu * self.noise.scale)) * size

    def shifts(self, moves: FloatArray, kinks: IntArray) -> tuple[FloatArray, BoolArray]:
        """How far moves shift some kinks, (n, m), and whether that holds.

        It does while the kink stays between its two places.
        """
        jumps = self.jumps[kinks]
        changes = self._answers(moves, kinks) - self._base[kinks]
        size = np.linalg.norm(jumps, axis=1)
        shifts = (changes * jumps).sum(axis=2) / size**2
        rest = np.linalg.norm(changes - shifts[:, :, None] * jumps, axis=2)
        # Jumps are known to half of the digits.
        slack = SIGMAS * self.error + 1e-2 * np.abs(shifts) * size
        holds = (rest <= slack) & (np.abs(shifts) < 0.9 * self.room[kinks])
        return -shifts, holds

    def are_moved(self, pixels: IntArray) -> bool:
        """Whether a move of these pixels shifts any kink, by one query a place."""
        return bool(self._moved(pixels, self.how.share, np.arange(len(self.kinks))).any())

    def _moved(self, pixels: IntArray, step: float, kinks: IntArray) -> BoolArray:
        """Whether a move of these pixels shifts some kinks, (m,)."""
        if not len(pixels):
            return np.zeros(len(kinks), dtype=bool)
        moves = np.zeros((1, self.oracle.dim_in))
        moves[0, pixels] = step * _irregular(len(pixels))
        changes = self._answers(moves, kinks)[0] - self._base[kinks]
        return np.asarray(np.linalg.norm(changes, axis=1) > SIGMAS * self.error)

    def radii(self, image: Image, most: int) -> IntArray:
        """Rows or columns to the farthest pixel that each neuron sees, (m,), if it is no farther.

        Moves are short ones: what lies above a filter must not change its mind.
        """
        everything = np.arange(image.size)
        step = self.how.short * self.how.share * float(np.median(self.room))
        low = np.zeros(len(self.kinks), dtype=np.intp)
        high = np.full(len(self.kinks), most + 1)
        while (low < high).any():
            # First whether it is a filter's at all.
            middle = np.where(high > most, most, (low + high) // 2)
            for radius in np.unique(middle[low < high]):
                asked = np.flatnonzero((low < high) & (middle == radius))
                near = image.around(self.seen.pixel, int(radius))
                moved = self._moved(np.setdiff1d(everything, near), step, asked)
                low[asked[moved]] = radius + 1
                high[asked[~moved]] = radius
        return low

    def ratios(self, pixels: IntArray, kinks: IntArray) -> tuple[FloatArray, BoolArray]:
        """``w_q / w_p`` of each neuron, (m, pixels), and of which of some kinks all are known.

        Where the largest of a window is taken, a long step may make another place the largest:
        a short one in all pixels at once shows that.
        """
        found = np.zeros((len(self.kinks), len(pixels)))
        known = np.zeros(len(self.kinks), dtype=bool)
        step = self.how.share * float(np.median(self.room))
        for _ in range(self.how.n_tries):
            todo = kinks[~known[kinks]]
            if not len(todo):
                break
            self._measure(found, todo, pixels, step)
            move = np.zeros((1, self.oracle.dim_in))
            short = step * (self.how.short if self.noise.is_exact else self.how.short_if_rounded)
            move[0, pixels] = short * _irregular(len(pixels))
            move = self._exact(move)
            shifts, holds = self.shifts(move, todo)
            off = np.abs(shifts[0] + found[todo] @ move[0, pixels])
            error = self.error / np.linalg.norm(self.jumps[todo], axis=1)
            # Each weight has an error of its own, of an answer over its step.
            slack = SIGMAS * error * (1.0 + short / step * np.sqrt(len(pixels)))
            linear = self.how.linear * self.noise.half_digits
            slack += linear * short * np.abs(found[todo]).max(axis=1, initial=0.0)
            known[todo] = holds[0] & (off <= slack)
            step *= self.how.shrink
        return found, known

    def _measure(self, found: FloatArray, todo: IntArray, pixels: IntArray, step: float) -> None:
        """Put in the ratios of some kinks, by a step in each pixel, shorter where need be."""
        left = np.ones((len(todo), len(pixels)), dtype=bool)
        for _ in range(self.how.n_tries):
            which = np.flatnonzero(left.any(axis=0))
            if not len(which):
                return
            kinks = todo[left.any(axis=1)]
            moves = np.zeros((len(which), self.oracle.dim_in))
            moves[np.arange(len(which)), pixels[which]] = step
            moves = self._exact(moves)
            steps = moves[np.arange(len(which)), pixels[which]]
            shifts, holds = self.shifts(moves, kinks)
            at = np.flatnonzero(left.any(axis=1))
            rows, columns = np.nonzero(holds.T & left[np.ix_(at, which)])
            # w . y + w_p dt = 0: the kink goes to -w_q y_q / w_p.
            found[kinks[rows], which[columns]] = -(shifts / steps[:, None]).T[rows, columns]
            left[at[rows], which[columns]] = False
            step *= self.how.shrink

    def _exact(self, moves: FloatArray) -> FloatArray:
        """What float32 makes of moves, where answers have no more digits."""
        if self.noise.is_exact:
            return moves
        x0 = self.seen.x0
        return np.asarray(self.oracle.in_float32(x0 + moves) - x0)


def _irregular(n: int) -> FloatArray:
    """Numbers of size about 1 and of both signs, no few of which cancel."""
    at = np.arange(n)
    return np.asarray(np.where(at % 3 == 1, -1.0, 1.0) * (0.5 + np.modf(at * 0.618)[0]))
