"""Rows that a line along a single pixel shows.

Along ``x0 + t e_p`` only neurons that see pixel p bend the function, and of

    g(t, t'; y) = f(x0 + y + t e_p) - f(x0 + y + t' e_p)

all others cancel, whatever the move ``y`` of other pixels does to them.  Between ``t`` and ``t'``
on either side of a single kink of neuron ``w``, and nowhere beyond another one,

    g(y) - g(0) = J (w . y) / w_p,

``J`` being the change of slope at the kink: the neuron's weights, one pixel a query, at steps as
long as its neighbours on the line allow.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.kinks import find_kinks
from revelu.probe.line import Line
from revelu.probe.scan import LineScan
from revelu.recover.structured.images import Image
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["PixelRows", "Row", "Seen"]


@dataclass(frozen=True)
class Row:
    """A neuron as a pixel shows it, its sign open.

    Attributes
    ----------
    w : ndarray, shape (channels, height, width)
        Of norm 1.
    b : float
    pixel : int
        Along which it was seen.
    jump : ndarray, shape (k,)
        Change of slope along that pixel, upwards.
    """

    w: FloatArray
    b: float
    pixel: int
    jump: FloatArray


@dataclass(frozen=True)
class Seen:
    """What a line along a pixel shows.

    Attributes
    ----------
    kinks : ndarray, shape (m,)
        Values of the pixel.
    jumps : ndarray, shape (m, k)
        Changes of slope there.
    x0 : ndarray, shape (d,)
        Where the pixel is 0.
    slopes : (ndarray, ndarray), shape (k,)
        Far below and far above all kinks.
    is_single : ndarray of bool, shape (m,)
        Proved to be one kink each.
    """

    pixel: int
    x0: FloatArray
    kinks: FloatArray
    jumps: FloatArray
    slopes: tuple[FloatArray, FloatArray]
    is_single: BoolArray


@dataclass(frozen=True)
class PixelRows:
    """How rows are measured.

    Attributes
    ----------
    reach : float
        Length of the direction of a line: values of a pixel at which half of the kinks are.
    share : float
        Of the distance to the neighbours of a kink that a step may move it, if all weights are
        as large as the pixel's.
    shrink : float
        Of a step, where the kink went past its neighbours,
    n_tries : int
        so many times.
    short, short_if_rounded : float
        Share of a step in all pixels that checks them, of float64 answers and of others,
    linear : float
        and by how much that may be off, relative to the largest shift, in units of half of the
        answers' digits, which is what changes of slope have.
    nearest : float
        Kinks nearer than this share of the median distance are left to another line.
    outer : float
        How far beyond the outermost kinks the function is asked.
    most_kinks : int
        More than this of one line are those of no filter.
    n_pairs : int
        Inputs, four queries each, at which pixels that are far apart are looked at.
    local : float
        Share of the image's rows or columns that a filter sees at most.
    """

    reach: float = 4.0
    share: float = 0.25
    shrink: float = 0.15
    n_tries: int = 3
    short: float = 1e-2
    short_if_rounded: float = 0.2
    linear: float = 10.0
    nearest: float = 0.02
    outer: float = 1.0
    most_kinks: int = 400
    n_pairs: int = 4
    local: float = 0.75

    def scan(
        self,
        oracle: Oracle,
        noise: NoiseFloor,
        pixel: int,
        rng: np.random.Generator,
        start: FloatArray | None = None,
    ) -> Seen | None:
        """Find the kinks of a line along a pixel; None where that is no piecewise affine one."""
        x0 = rng.standard_normal(oracle.dim_in) if start is None else start.copy()
        x0 = x0 if noise.is_exact else oracle.in_float32(x0[None])[0]
        x0[pixel] = 0.0
        direction = np.zeros(oracle.dim_in)
        direction[pixel] = self.reach
        scan = find_kinks(oracle, Line(x0, direction), float(noise.nu.max()), noise.scale, rng)
        scan = scan.without_faint_kinks(noise.faint_slope)
        if not scan.complete or len(scan.kinks) > self.most_kinks:
            return None
        slopes = _end_slopes(scan)
        kinks, jumps = scan.kinks * self.reach, scan.jumps / self.reach
        ends = slopes[0] / self.reach, slopes[1] / self.reach
        return Seen(pixel, x0, kinks, jumps, ends, scan.is_single)

    def act_together(
        self, oracle: Oracle, noise: NoiseFloor, image: Image, rng: np.random.Generator
    ) -> bool:
        """Whether some neuron sees a corner's pixel and others that no filter sees with it.

        If none does, ``f(x + p + q) - f(x + p) - f(x + q) + f(x) = 0`` for moves p and q of them.
        """
        pixel, (_, height, width) = image.pixel(0, 0, 0), image.shape
        rows, columns = (int(np.ceil(self.local * size)) for size in (height, width))
        far = np.union1d(
            image.pixels((rows, height), (0, width)) if height > 1 else np.empty(0, dtype=np.intp),
            image.pixels((0, height), (columns, width)),
        )
        X, P, Q = (np.zeros((self.n_pairs, image.size)) for _ in range(3))
        X[:] = rng.standard_normal(X.shape)
        P[:, pixel] = self.reach * rng.standard_normal(len(P))
        Q[:, far] = rng.standard_normal((len(Q), len(far)))
        rounded = [x if noise.is_exact else oracle.in_float32(x) for x in (X, X + P, X + Q)]
        both = rounded[1] + rounded[2] - rounded[0]
        Y = oracle(np.concatenate([both, *rounded])).reshape(4, self.n_pairs, -1)
        size = noise.growth(both)[:, None] * noise.nu * noise.scale
        apart = np.abs(Y[0] + Y[1] - Y[2] - Y[3])
        return bool((np.abs(apart) > 3.0 * SIGMAS * size).any())

    def measure(
        self, oracle: Oracle, noise: NoiseFloor, image: Image, seen: Seen
    ) -> list[Row] | None:
        """Measure the weights of the neurons seen; None where they are those of no filter."""
        brackets = _Brackets(oracle, noise, seen, self)
        if not len(brackets.kinks):
            return []
        box = self._box(brackets, image)
        if box is None:
            return None
        pixels = np.setdiff1d(image.pixels(*box), [seen.pixel])
        ratios = np.zeros((len(brackets.kinks), oracle.dim_in))
        ratios[:, seen.pixel] = 1.0
        ratios[:, pixels], known = brackets.ratios(pixels)
        rows = []
        for j in np.flatnonzero(known):
            # The neuron's sum is 0 at the kink.
            b = -(ratios[j] @ seen.x0 + brackets.kinks[j])
            norm = float(np.linalg.norm(ratios[j]))
            w = ratios[j].reshape(image.shape) / norm
            rows.append(Row(w, float(b / norm), seen.pixel, brackets.jumps[j]))
        return rows

    def _box(
        self, brackets: "_Brackets", image: Image
    ) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Rows and columns that the neurons seen see; None where that is most of the image."""
        found = []
        for axis, size in enumerate(image.shape[1:]):
            place = image.place(brackets.seen.pixel)[1 + axis]
            ends = []
            for side, most in ((-1, place), (1, size - 1 - place)):
                nearest, farthest = 0, most  # of the pixels seen
                while nearest < farthest:
                    middle = (nearest + farthest) // 2
                    if brackets.are_moved(image.beyond(axis, place, side, middle)):
                        nearest = middle + 1
                    else:
                        farthest = middle
                ends.append(place + side * nearest)
            if size > 1 and ends[1] - ends[0] >= self.local * size:
                return None
            found.append((ends[0], ends[1] + 1))
        return found[0], found[1]


def _end_slopes(scan: LineScan) -> tuple[FloatArray, FloatArray]:
    """Slopes of the function on the first and on the last piece of a line."""
    found = []
    for piece in (scan.pieces[0], scan.pieces[-1]):
        i, j = piece.support()
        start, end = (piece.gs[k] * np.hypot(1.0, piece.ts[k]) for k in (i, j))
        found.append((end - start) / (piece.ts[j] - piece.ts[i]))
    return found[0], found[1]


class _Brackets:
    """Pairs of places on either side of each kink, and what moves of other pixels do there."""

    def __init__(self, oracle: Oracle, noise: NoiseFloor, seen: Seen, how: PixelRows) -> None:
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
        self._places, self._at = clear, middles
        if len(clear):
            self._base = self._answers(np.zeros((1, oracle.dim_in)))[0]

    def _answers(self, moves: FloatArray, kinks: IntArray | None = None) -> FloatArray:
        """Change of the answers from before to after some kinks, (n, m, k), in one round."""
        chosen = np.arange(len(self._places)) if kinks is None else kinks
        places = self._places[chosen]
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
        if not len(pixels):
            return False
        moves = np.zeros((1, self.oracle.dim_in))
        moves[0, pixels] = self.how.share * _irregular(len(pixels))
        changes = self._answers(moves)[0] - self._base
        return bool((np.linalg.norm(changes, axis=1) > SIGMAS * self.error).any())

    def ratios(self, pixels: IntArray) -> tuple[FloatArray, BoolArray]:
        """``w_q / w_p`` of each neuron, (m, pixels), and of which all are known.

        Where the largest of a window is taken, a long step may make another place the largest:
        a short one in all pixels at once shows that.
        """
        found = np.zeros((len(self.kinks), len(pixels)))
        known = np.zeros(len(self.kinks), dtype=bool)
        step = self.how.share * float(np.median(self.room))
        for _ in range(self.how.n_tries):
            todo = np.flatnonzero(~known)
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
        return np.asarray((x0 + moves).astype(np.float32).astype(np.float64) - x0)


def _irregular(n: int) -> FloatArray:
    """Numbers of size about 1 and of both signs, no few of which cancel."""
    at = np.arange(n)
    return np.asarray(np.where(at % 3 == 1, -1.0, 1.0) * (0.5 + np.modf(at * 0.618)[0]))
