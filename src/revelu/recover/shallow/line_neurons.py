"""One line of a two-layer network: every neuron that it separates.

DG21, Algorithm 6, lines 1 to 6: the kinks of the line, the affine maps of its pieces,
and from the change between two pieces the neurons whose kinks lie between them.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network, affine_network
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.float64 import TINY
from revelu.probe.gradient import Stencil
from revelu.probe.line import Askable
from revelu.probe.scan import LineScan
from revelu.recover.line import Peeling
from revelu.recover.shallow.blocks import Block, choose_blocks
from revelu.types import BoolArray, FloatArray


def peel(target: Askable, scan: LineScan, nu: float, rng: np.random.Generator) -> Peeling:
    """Recover every neuron that one line separates (DG21, Algorithm 6, lines 2 to 6).

    Parameters
    ----------
    target : Askable
        An oracle, or a residual.
    scan : LineScan
        The line's kinks.
    nu : float
        Noise floor of the answers, which is what a Jacobian suffers from.

    Returns
    -------
    Peeling
        Nothing but kinks where the scan is incomplete; what was paid for where the
        budget ended.
    """
    if not scan.complete:
        return Peeling(_nothing(scan), scan.kinks, scan)
    return _Peeler(target, scan, nu, rng).run()


def _nothing(scan: LineScan) -> Network:
    shape = (len(scan.sigma), len(scan.line.v))
    return affine_network(np.zeros(shape), np.zeros(shape[0]))


@dataclass
class _Peeler:
    """Jacobians of the chosen pieces, mended where a kink corrupted them; then neurons.

    ``values[p]``, shape (d - 1, k), holds one derivative a row, in the directions of
    ``basis``, at ``centres[p]`` on piece ``p``; ``steps[p]`` the steps it was taken with.
    """

    target: Askable
    scan: LineScan
    nu: float
    rng: np.random.Generator
    """As for :func:`peel`."""
    retry_steps: tuple[float, ...] = (-0.5, 0.125, -0.03, 0.008, -0.002, 0.0005)
    """Signs and sizes of the steps with which a corrupted coordinate is asked again."""
    check_step: float = 0.25
    """The step, as a share of the others, of the one query that checks a mended Jacobian."""
    margin: float = 0.03
    """A query whose predicted pre-activation is this near 0, relative to the piece's, may have been
    bent by that very neuron, which then is predicted to be exactly 0 there."""
    digits: float = 0.03
    """A Jacobian is worth having if it loses less than this multiple of half the digits."""
    centres: dict[int, float] = field(default_factory=dict, init=False)
    steps: dict[int, FloatArray] = field(default_factory=dict, init=False)
    values: dict[int, FloatArray] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        scan = self.scan
        # Neurons are oriented along the line: z_j = slopes[j] * (t - kinks[j]).
        self.slopes = np.linalg.norm(scan.jumps, axis=1)
        self.columns = scan.jumps / np.where(self.slopes > 0, self.slopes, 1.0)[:, None]
        self.edges, self.half_gaps = scan.edges(), scan.half_gaps()
        # A step is a tenth of a half-gap.
        min_half_gap = float(np.sqrt(self.nu)) / (self.digits * 0.1)
        self.first, self.blocks = choose_blocks(
            self.columns, self.half_gaps, scan.is_single, min_half_gap
        )
        self.basis = scan.line.complement()

    def run(self) -> Peeling:
        out_of_budget = False
        try:
            self._measure()
            self._mend()
        except LimitReachedError:
            out_of_budget = True
        if not self.values:
            return Peeling(_nothing(self.scan), self.scan.kinks, self.scan, out_of_budget)
        rows = self._rows()
        measured = sorted(self.values)
        return Peeling(
            self._assemble(rows),
            np.delete(self.scan.kinks, sorted(rows)),
            self.scan,
            out_of_budget,
            self.scan.line.points(np.array([self.centres[p] for p in measured])),
            np.array([self._jacobian(p) for p in measured]),
            self._row_errors(rows),
        )

    def _measure(self) -> None:
        """Measure the Jacobians at both ends of every block, in one round."""
        with self.target.round():
            for p in [self.first, *(block.stop for block in self.blocks)]:
                t = np.tan((self.edges[p] + self.edges[p + 1]) / 2)
                t = float(np.clip(t, *self.scan.interval))
                # A wide piece gains little by a longer step: the narrow ones set the error.
                room = min(self.half_gaps[p], float(np.median(self.half_gaps)))
                h = self.scan.line.step_beside(t, room)
                steps = np.full(len(self.basis), h)
                self.centres[p] = t
                anew = self.scan.n_faint > 0
                self.steps[p] = steps
                self.values[p] = self._derivatives(p, self.basis, steps, anew=anew)

    def _mend(self) -> None:
        """Ask suspect coordinates again with shorter steps until none is left."""
        unchecked: set[int] = set()
        for factor in self.retry_steps:
            suspects = self._suspects()
            if not suspects and unchecked:
                suspects = self._failed_checks(unchecked)
                unchecked = set()
            if not suspects:
                return
            unchecked |= set(suspects)
            with self.target.round():
                for p, mask in suspects.items():
                    h = np.full(int(mask.sum()), factor * np.abs(self.steps[p]).max())
                    self.values[p][mask] = self._derivatives(p, self.basis[mask], h, anew=True)
                    self.steps[p][mask] = h

    def _derivatives(
        self, p: int, directions: FloatArray, h: FloatArray, *, anew: bool = False
    ) -> FloatArray:
        """Differences at the centre of a piece, whose value the line already knows.

        It is asked anew where steps are short, which would magnify an error of it.
        """
        t = self.centres[p]
        x = self.scan.line.points(np.array([t]))[0]
        fx = None if anew else self._value(p, t)
        slopes = Stencil(x, directions, h, fx).measure(self.target)
        if not slopes.is_finite:
            raise SaturatedError("the target is saturated beside a line")
        return slopes.values

    def _value(self, p: int, t: float) -> FloatArray:
        return np.asarray(self.scan.pieces[p].extrapolate(t)[0] * np.hypot(1.0, t))

    def _rows(self) -> dict[int, FloatArray]:
        """Solve ``dJ = sum_j a_j w_j^T`` for the weights orthogonal to the line."""
        rows = {}
        for block in self.blocks:
            if block.is_solvable and block.stop in self.values:
                A = self.columns[block.start : block.stop].T
                for j, w in enumerate(np.linalg.pinv(A) @ self._change(block).T):
                    rows[block.start + j] = w
        return rows

    def _row_errors(self, rows: dict[int, FloatArray]) -> FloatArray:
        """Standard errors of the rows that the answers' noise makes, relative to them."""
        errors = {}
        unit = float(np.linalg.norm(self.scan.sigma))
        for block in self.blocks:
            ends = [
                np.sqrt((self._error(p, self.steps[p]) ** 2).sum())
                for p in (block.start, block.stop)
                if p in self.steps
            ]
            for j in range(block.start, block.stop):
                size = np.hypot(np.linalg.norm(rows.get(j, 0.0)), self._length(j))
                errors[j] = unit * float(np.linalg.norm(ends)) / max(size, TINY)
        return np.array([errors[j] for j in sorted(rows)])

    def _length(self, j: int) -> float:
        """What of a neuron's row lies along the line."""
        return float(self.slopes[j] / np.linalg.norm(self.scan.line.v))

    def _change(self, block: Block) -> FloatArray:
        return self.values[block.stop] - self.values[block.start]

    def _suspects(self) -> dict[int, BoolArray]:
        """Coordinates that a kink between a centre and its query may have corrupted."""
        rows = self._rows()
        known = sorted(rows)
        W = np.array([rows[j] for j in known]).reshape(len(known), len(self.basis))
        suspects = {}
        for p, h in self.steps.items():
            z = self.slopes[known] * (self.centres[p] - self.scan.kinks[known])
            moved = (z[:, None] + W * h) * np.sign(z)[:, None]
            suspects[p] = (moved < self.margin * np.abs(z)[:, None]).any(axis=0)
        for block in self.blocks:
            if block.is_solvable and self.columns.shape[1] > block.stop - block.start:
                bad = self._inconsistent(block)
                suspects[block.start] |= bad
                suspects[block.stop] |= bad
        return {p: mask for p, mask in suspects.items() if mask.any()}

    def _inconsistent(self, block: Block) -> BoolArray:
        """Coordinates whose change is no combination of the block's output columns."""
        change = self._change(block)
        if not len(change):
            return np.zeros(0, dtype=bool)
        unit = np.where(self.scan.sigma > 0, self.scan.sigma, 1.0)
        A = (self.columns[block.start : block.stop] / unit).T
        U, _, _ = np.linalg.svd(A, full_matrices=False)
        scaled = (change / unit).T
        rest = np.linalg.norm(scaled - U @ (U.T @ scaled), axis=0)
        error = np.hypot(*(self._error(p, self.steps[p]) for p in (block.start, block.stop)))
        # The columns themselves err too, hence the median.
        floor = np.maximum(np.sqrt(self.columns.shape[1]) * error, np.median(rest))
        return np.asarray(rest > SIGMAS * floor)

    def _error(self, p: int, h: FloatArray) -> FloatArray:
        """Standard error of a derivative of piece ``p``, in units of ``sigma``."""
        return np.asarray(np.sqrt(2.0) * np.hypot(1.0, self.centres[p]) / np.abs(h))

    def _failed_checks(self, pieces: set[int]) -> dict[int, BoolArray]:
        """Test Jacobians by one derivative in a random direction each, in one round.

        Neighbouring pieces corrupted by one kink can agree with each other.  All of a
        piece that fails is suspect.
        """
        failed = {}
        with self.target.round():
            for p in sorted(pieces):
                u = self.rng.standard_normal(len(self.basis))
                u /= np.linalg.norm(u)
                h = np.array([self.check_step * float(np.abs(self.steps[p]).min())])
                direction = (u @ self.basis)[None]
                found = self._derivatives(p, direction, h)[0]
                combined = float(np.linalg.norm(u * self._error(p, self.steps[p])))
                atol = SIGMAS * self.scan.sigma * np.hypot(self._error(p, h)[0], combined)
                if (np.abs(found - u @ self.values[p]) > atol).any():
                    failed[p] = np.ones(len(self.basis), dtype=bool)
        return failed

    def _assemble(self, rows: dict[int, FloatArray]) -> Network:
        """Neurons that are off on one measured piece, whose affine map is the skip."""
        line = self.scan.line
        # The best known piece: wide, and not far out, where the constant cancels.
        base = max(
            self.values, key=lambda p: float(self.half_gaps[p] / np.hypot(1.0, self.centres[p]))
        )
        known = sorted(rows)
        away = np.where(np.array(known, dtype=int) < base, -1.0, 1.0)
        u = line.v / (line.v @ line.v)
        W = np.array([rows[j] @ self.basis + self.slopes[j] * u for j in known])
        W = W.reshape(len(known), len(u))
        b = -self.slopes[known] * self.scan.kinks[known] - W @ line.x0
        V = self._jacobian(base)
        t = self.centres[base]
        c = self._value(base, t) - V @ line.points(np.array([t]))[0]
        if not all(np.isfinite(a).all() for a in (W, b, V, c)):
            return _nothing(self.scan)
        return Network(
            [W * away[:, None], self.columns[known].T], [b * away, np.zeros(len(c))], skip=(V, c)
        )

    def _jacobian(self, p: int) -> FloatArray:
        """All derivatives on piece ``p``, shape (k, d): the line knows the one along it."""
        piece, v = self.scan.pieces[p], self.scan.line.v
        lo, hi = (piece.ts[i] for i in piece.support())
        slope = (self._value(p, hi) - self._value(p, lo)) / (hi - lo)
        return np.asarray(self.values[p].T @ self.basis + np.outer(slope, v / (v @ v)))
