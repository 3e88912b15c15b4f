"""Rows of hidden neurons from the critical points of lines, each with its error.

The kinks of a line tell the neurons apart, and the gradients of the pieces on both sides of one
differ by ``a w'``: by a row and an output column (DG21, Algorithms 1 to 4).  Of answers of few
digits a gradient has half of those digits at best, so that every row has an error, by which
kinks of other lines are told to be known neurons' or new ones'.  No row is exact, nor is every
kink one neuron's: a least-squares fit has to start from them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.numerics.matching import match_within
from revelu.oracle import NoiseFloor
from revelu.probe.answered import Answered
from revelu.probe.kinks import find_kinks
from revelu.probe.line import Ask, Line
from revelu.probe.piece import Answer
from revelu.probe.region import Everywhere, Region
from revelu.probe.scan import LineScan
from revelu.recover.rows import Rows
from revelu.recover.shallow.blocks import Costs, choose_blocks
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class LineRows:
    """How rows are measured on a line."""

    side: float = 3.0
    """Half-distance of a kink's proof, as a multiple of the root of that: nearer kinks look like
    one, further ones are placed more exactly."""
    wide: float = np.inf
    """Pieces this many times as wide as the median are looked at inside: coarse answers hide what
    bends there."""
    precision: float = 3e-3
    """Steps are as short as rows of this relative error allow,"""
    shortest: float = 0.03
    longest: float = 0.25
    """but no shorter and no longer than these shares of a piece's half-width: longer ones cross
    other neurons' hyperplanes more often."""
    block: int = 12
    """Directions whose derivatives one more query checks together."""
    shrink: float = 6.0
    """Where the check fails, a kink is too near, and steps are divided by this,"""
    max_tries: int = 4
    """so often in all."""
    worst: float = 0.1
    """Rows of a larger error are left out."""
    borrowed: float = 0.0
    """Known rows between two pieces are taken off the difference of their gradients where they err
    by less than this share of the median of them: never, where other layers bend them."""
    narrow: float = 100.0
    """A piece whose half-width is less than this many noise floors has no gradient worth having."""
    matching: float = 4.0
    """Standard errors within which a kink is where a row says."""
    same_jump: float = 0.1
    """Share by which a kink's jump may differ from what a neuron of exact row would make: the
    pieces beside it are short."""
    region: Region = field(default_factory=Everywhere)
    """Which lines go through,"""
    within: float = np.inf
    """and how far from their middle kinks are in it."""
    max_lines: int = 2
    """Lines tried where the search along a random one does not end in its rounds: of hundreds of
    kinks two may be so close that rounding always shows a piece between them."""

    def find_new(
        self,
        ask: Ask,
        d: int,
        noise: NoiseFloor,
        known: Rows,
        rng: np.random.Generator,
        line: Line | None = None,
    ) -> Rows | None:
        """Measure the rows of the kinks of a line that known rows do not explain.

        Parameters
        ----------
        ask : callable, (n, d) -> (n, k)
        d : int
            Number of inputs.
        line : Line, optional
            Drawn from the region by default.

        Returns
        -------
        Rows or None
            None where the line has no affine pieces.

        Raises
        ------
        SaturatedError
            If the target is saturated somewhere on the line.
        """
        scan = self.scan(ask, d, noise, rng, line)
        if scan is None:
            return None
        made_by = self.known_of_kinks(scan, known, noise)
        return self.measure(ask, scan, known, made_by, noise, rng)

    def scan(
        self,
        ask: Ask,
        d: int,
        noise: NoiseFloor,
        rng: np.random.Generator,
        line: Line | None = None,
    ) -> LineScan | None:
        """Find the kinks of a line, or of a random one; None where it has no affine pieces.

        Behind a head it ends where the target has no answers.
        """
        nu, given = float(noise.nu.max()), line
        region = Answered(ask, self.region) if noise.link.saturates else self.region
        for _ in range(self.max_lines if given is None else 1):
            line = region.line(rng, d) if given is None else given
            interval = region.interval(line)
            if not interval[0] < interval[1]:
                return None
            scan = find_kinks(
                ask,
                line,
                nu,
                noise.scale,
                rng,
                interval,
                side=self.side,
                wide=self.wide,
                errors=noise.sigma_at,
            )
            if scan.complete:
                return scan
            if not scan.ran_out:
                break
        return None

    def measure(
        self,
        ask: Ask,
        scan: LineScan,
        known: Rows,
        made_by: IntArray,
        noise: NoiseFloor,
        rng: np.random.Generator,
    ) -> Rows:
        """Measure the rows of the new kinks of a line.

        Parameters
        ----------
        known : Rows
            Those of the others.
        made_by : ndarray of int, shape (n,)
            Which of them makes each kink; -1 of a new one.
        """
        nu, is_new = float(noise.nu.max()), made_by < 0
        scan = _without_pairs(ask, scan, is_new)
        is_taken, told = self._taken_off(scan, known, made_by)
        blocks = self._blocks(scan, is_new, is_taken, nu)
        return _Measurement(self, ask, scan, is_new, is_taken, told, noise, rng).rows(blocks)

    def _taken_off(self, scan: LineScan, known: Rows, made_by: IntArray) -> tuple[BoolArray, Rows]:
        """Kinks of known rows that can be taken off a difference of gradients, and these rows.

        Returns
        -------
        (is_taken, told) : ndarray of bool, shape (n,), and Rows
            One a kink, turned to go on along the line; of new ones 0.
        """
        d, k = known.W.shape[1], known.A.shape[1]
        nobody = Rows(*(np.zeros(shape) for shape in ((1, d), 1, (1, k), 1, (1, d))))
        told = known.joined(nobody).take(made_by)
        told = told.turned(np.where(told.W @ scan.line.v < 0.0, -1.0, 1.0))
        sizes, is_made = _sizes(told), made_by >= 0
        least = float(np.median(sizes[is_made])) if is_made.any() else 0.0
        is_exact = told.errors * sizes <= self.borrowed * least
        return is_made & is_exact & scan.is_single, told

    def _blocks(
        self, scan: LineScan, is_new: BoolArray, is_taken: BoolArray, nu: float
    ) -> list[tuple[int, int]]:
        """Kinks between two pieces to be measured: known ones between them are taken off."""
        half_gaps = np.diff(self.edges(scan)) / 2
        narrow = self.narrow * nu
        if np.isinf(self.within) and (self.borrowed > 0.0 or is_new.all()):
            # A block of a known row that cannot be taken off has no other use.
            is_clean = scan.is_single & (is_new | is_taken)
            args = _columns(scan), half_gaps, is_clean, narrow
            _, blocks = choose_blocks(*args, is_known=~is_new)
            return [
                (block.start, block.stop)
                for block in blocks
                if block.is_solvable and is_new[block.start : block.stop].any()
            ]
        wide = np.minimum(half_gaps[:-1], half_gaps[1:]) > narrow
        inside = np.abs(scan.kinks) < self.within
        new = np.flatnonzero(scan.is_single & wide & is_new & inside)
        return _joined_blocks(new, _columns(scan), scan.is_single)

    def edges(self, scan: LineScan) -> FloatArray:
        """Angles at which the pieces of a line begin and end, shape (m + 2,)."""
        start, stop = scan.interval
        return np.arctan([start, *scan.kinks, stop])

    def known_of_kinks(self, scan: LineScan, known: Rows, noise: NoiseFloor) -> IntArray:
        """Tell which row makes each kink of a line, one to one; -1 where none does."""
        line, found = scan.line, np.full(len(scan.kinks), -1, dtype=np.intp)
        if not len(known) or not len(found):
            return found
        norms, columns = (np.linalg.norm(a, axis=1) for a in (known.W, known.A))
        slopes, size = known.W @ line.v, norms * float(np.linalg.norm(line.v))
        # A hyperplane along the line meets it, to rounding, far out.
        least = np.finfo(np.float64).eps * np.where(size > 0.0, size, 1.0)
        slopes = np.where(np.abs(slopes) > least, slopes, least)
        t = -(known.W @ line.x0 + known.b) / slopes
        reach = known.errors * norms * np.linalg.norm(line.points(t), axis=1)
        angle = self.matching * (
            reach / np.abs(slopes) / (1.0 + t**2) + SIGMAS * float(noise.nu.max())
        )
        jumps = known.A * np.abs(slopes)[:, None]
        along = known.errors * size / np.sqrt(len(line.v))
        jump = self.same_jump * np.linalg.norm(jumps, axis=1) + self.matching * along * columns
        apart = np.abs(np.arctan(scan.kinks)[:, None] - np.arctan(t)) / angle
        differ = np.linalg.norm(scan.jumps[:, None] - jumps, axis=2) / jump
        return match_within(np.maximum(apart, differ))


def _joined_blocks(
    new: IntArray, columns: FloatArray, is_single: BoolArray
) -> list[tuple[int, int]]:
    """Blocks around new kinks: of several outputs one block takes all that are near each other.

    Kinks between them are measured again, which costs nothing, while their columns, two fewer
    than there are outputs, can be told apart.
    """
    blocks: list[tuple[int, int]] = []
    for i in new.tolist():
        start = blocks[-1][0] if blocks else i
        inside = columns[start : i + 1]
        fits = len(inside) <= max(1, columns.shape[1] - 2) and is_single[start : i + 1].all()
        if blocks and fits and np.linalg.svd(inside, compute_uv=False)[-1] >= Costs().independent:
            blocks[-1] = (start, i + 1)
        else:
            blocks.append((i, i + 1))
    return blocks


def _without_pairs(ask: Ask, scan: LineScan, which: BoolArray) -> LineScan:
    """Mark the kinks that are two close ones: clusters, no longer single.

    At a single kink the answer lies on one of the pieces beside it, wherever noise has put it;
    between two close kinks, on neither.  Several outputs need no such query: their jumps show it.
    """
    todo = np.flatnonzero(scan.is_single & which)
    if len(scan.sigma) > 1 or not len(todo):
        return scan
    is_single = scan.is_single.copy()
    for i, g in zip(todo, scan.line.lifted(ask, scan.kinks[todo]), strict=True):
        beside = scan.pieces[i : i + 2]
        errors = np.max([error for piece in beside for error in piece.errors], axis=0)
        own = Answer(scan.kinks[i], g, errors)
        is_single[i] = any(piece.holds(own, scan.sigma) for piece in beside)
    return replace(scan, is_single=is_single)


def _columns(scan: LineScan) -> FloatArray:
    """Unit output columns of the kinks of a line."""
    slopes = np.linalg.norm(scan.jumps, axis=1)
    return np.asarray(scan.jumps / np.where(slopes > 0, slopes, 1.0)[:, None])


def _sizes(rows: Rows) -> FloatArray:
    """Norms of the changes of gradient that rows make, shape (m,)."""
    return np.asarray(np.linalg.norm(rows.W, axis=1) * np.linalg.norm(rows.A, axis=1))


@dataclass
class _Measurement:
    """Gradients on the pieces of a line, and the rows that their differences are."""

    how: LineRows
    ask: Ask
    scan: LineScan
    is_new: BoolArray
    is_taken: BoolArray
    told: Rows
    noise: NoiseFloor
    rng: np.random.Generator
    basis: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.basis = self.scan.line.complement()

    def rows(self, blocks: Sequence[tuple[int, int]]) -> Rows:
        """Solve ``dJ = sum_j a_j w_j'`` for the kinks of each block; one error a row."""
        scan, line = self.scan, self.scan.line
        d, k = len(line.v), len(scan.sigma)
        pieces = sorted({p for block in blocks for p in block})
        found = [Rows.none(d, k)]
        if not pieces:
            return found[0]
        slopes, columns = np.linalg.norm(scan.jumps, axis=1), _columns(scan)
        gradients, errors = self._gradients(np.array(pieces))
        at = {p: i for i, p in enumerate(pieces)}
        for start, stop in blocks:
            p, q, inside = at[start], at[stop], np.arange(start, stop)
            which = inside[~self.is_taken[inside]]
            told = self.told.take(inside[self.is_taken[inside]])
            inverse = np.linalg.pinv(columns[which].T)
            change = (gradients[q] - gradients[p]) - self.basis @ told.W.T @ told.A
            W = inverse @ change.T @ self.basis
            W += np.outer(slopes[which], line.v / (line.v @ line.v))
            b = -slopes[which] * scan.kinks[which] - W @ line.x0
            size = np.linalg.norm(inverse, axis=1) / np.linalg.norm(W, axis=1)
            borrowed = np.linalg.norm(told.errors * _sizes(told)) / np.sqrt(k)
            error = np.sqrt(errors[p] ** 2 + errors[q] ** 2 + borrowed**2) * size
            more = Rows(W, b, columns[which], error, line.points(scan.kinks[which]))
            found.append(more.take((error <= self.how.worst) & self.is_new[which]))
        rows = found[0]
        for more in found[1:]:
            rows = rows.joined(more)
        return rows

    def _gradients(self, pieces: IntArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives along the basis in the middle of pieces, (p, d - 1, k), and their errors.

        The error of a gradient, its norm, is not finite where it could not be measured.
        """
        scan, line, edges = self.scan, self.scan.line, self.how.edges(self.scan)
        half_gaps = np.diff(edges) / 2
        t = np.clip(np.tan((edges[pieces] + edges[pieces + 1]) / 2), *scan.interval)
        X, length, d = line.points(t), float(np.linalg.norm(line.v)), len(line.v)
        values = self.ask(X)
        told = np.where(np.isfinite(values), values, 0.0)
        sigma = self.noise.sigma_at(X, told)
        errors = np.sqrt((self.noise.typical_at(X, told) ** 2).mean(axis=1))
        room = np.minimum(half_gaps[pieces], np.median(half_gaps)) * length * np.hypot(1.0, t)
        # A jump's slope along the line is about the norm of its row over sqrt(d).
        row = float(np.median(np.linalg.norm(scan.jumps, axis=1))) * np.sqrt(d) / length
        wanted = np.full(len(errors), np.inf)
        if row > 0:
            wanted = np.sqrt(2.0 * d) * errors / (self.how.precision * row)
        steps = np.clip(wanted, self.how.shortest * room, self.how.longest * room)
        G, used = self._differences(X, values, sigma, steps)
        # A step of 0 says nothing: the gradient errs by anything.
        with np.errstate(divide="ignore"):
            return G, errors * np.sqrt(2.0 * (1.0 / used**2).sum(axis=1))

    def _differences(
        self, X: FloatArray, values: FloatArray, sigma: FloatArray, steps: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Differences along the basis, with their steps; 0 is the step of what crossed a kink.

        One more answer a block, twice a step along a mix of its directions, must agree.
        """
        m = len(self.basis)
        G = np.zeros((len(X), m, values.shape[1]))
        used = np.full((len(X), m), 1e-300)
        parts = np.array_split(np.arange(m), max(-(-m // self.how.block), 1))
        todo = [(i, part) for i in range(len(X)) for part in parts if len(part)]
        for _ in range(self.how.max_tries):
            if not todo:
                break
            mixes = [self.rng.choice([-1.0, 1.0], len(p)) / np.sqrt(len(p)) for _, p in todo]
            moves, sizes = [], []
            for n, (i, p) in enumerate(todo):
                shares = self._shares(X[i], steps[i] * self.basis[p])
                if (shares != 1.0).any():
                    # So that the mix of directions stays inside, too.
                    mixes[n] = np.abs(mixes[n]) * np.sign(shares)
                mix = 2.0 * mixes[n] @ self.basis[p]
                share = self._shares(X[i], steps[i] * mix[None])
                moves.append(np.vstack([shares[:, None] * self.basis[p], share * mix]))
                sizes.append((steps[i] * shares, steps[i] * share[0]))
            points = [X[i] + steps[i] * move for (i, _), move in zip(todo, moves, strict=True)]
            ends = np.cumsum([len(p) for p in points])[:-1]
            left = []
            answers = np.split(self.ask(np.concatenate(points)), ends)
            for (i, part), mix, (size, mixed), Y in zip(todo, mixes, sizes, answers, strict=True):
                slopes = (Y[:-1] - values[i]) / size[:, None]
                apart = np.abs(Y[-1] - values[i] - 2.0 * mixed * (mix @ slopes))
                # Two answers, and twice the error of a unit combination of differences.
                if (apart <= SIGMAS * np.sqrt(2.0 + 8.0) * sigma[i]).all():
                    G[i, part], used[i, part] = slopes, np.abs(size)
                else:
                    left.append((i, part))
            todo, steps = left, steps / self.how.shrink
        return G, used

    def _shares(self, x: FloatArray, moves: FloatArray) -> FloatArray:
        """Signed shares of moves that end inside; of none a trace, which errs beyond use."""
        shares = self.how.region.shares(x, moves)
        return np.where(shares == 0.0, 1e-12, shares)
