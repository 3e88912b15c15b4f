"""The span of a first layer from answers of few digits: whole gradients, then long moves.

Where answers have seven digits, elimination, one gradient after another, would drown in the
errors of the first.  Whole gradients at more points than directions, each weighed by its own
error, leave a gap in the singular values (JWZ20, Algorithm 1, with weights).  That basis Q, off
by a small E, is then refined, which is our own: along the null space of Q a function changes by
``(J Q^T) E`` only, so moves there may be hundreds of times longer than the distance to a kink,
and err by as much less.
"""

from dataclasses import dataclass

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network.span import Span, complement
from revelu.numerics.float64 import TINY
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.gradient import Differences, Stencil, Step, unit_rows
from revelu.recover.method import Tell, Why
from revelu.recover.span.candidate import SpanCandidate
from revelu.recover.span.span_of_rows import NO_GAP, expected_angle, span_of, with_errors
from revelu.types import FloatArray


@dataclass(frozen=True)
class Averaged:
    """Many whole gradients of answers of few digits, then moves in the null space."""

    smooth: bool = False
    """Whether the target curves everywhere: differences are then central."""
    batch: int = 8
    max_points: int = 400
    """Points at which gradients are measured before the rank is looked at again, and in all."""
    n_agreeing: int = 2
    """How often the rank must come out as before, with a gap below it."""
    start_angle: float = 1e-2
    """The weakest direction must be known to this, in radians, before the basis is refined, even if
    that takes many times the points that showed it."""
    n_refinements: int = 2
    overdetermined: float = 2.0
    """Equations for each of the basis's unknowns in a refinement."""
    most_more: int = 4
    better: float = 0.2
    """Up to ``most_more`` times as many, until the angle is expected to fall by the factor
    ``better``."""
    n_lines: int = 2
    """Lines through a point that choose its step."""
    shortest: float = 1e-3
    longest: float = 1.0
    """Steps worth trying."""

    def find(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, tell: Tell
    ) -> SpanCandidate:
        """Recover the row span of the first layer from answers of few digits."""
        target = Differences(oracle, noise, self.smooth)
        notes: tuple[str, ...] = (NO_GAP,)
        span, why = Span(np.empty((0, oracle.dim_in))), Why.UNRESOLVED
        n_points, angle = 0, 0.0
        rows = [np.zeros((1, oracle.dim_in))]
        ranks: list[int] = []
        try:
            while why is Why.UNRESOLVED and n_points < self.max_points:
                tell(f"{span.rank} directions")
                for _ in range(self.batch):
                    rows += self._gradients(target, rng)
                n_points += self.batch
                span, clear = span_of(np.vstack(rows))
                angle = expected_angle(span, oracle.dim_in)
                ranks = [*ranks, span.rank] if clear and angle < self.start_angle else []
                if len(ranks) > self.n_agreeing and len(set(ranks[-self.n_agreeing :])) == 1:
                    why, notes = Why.EXPLAINED, ()
            span = with_errors(span, np.vstack(rows))
            if why is Why.UNRESOLVED:
                # Refinement would take the directions that are missing for errors of the others.
                angle = float(np.linalg.norm(span.errors))
            elif 0 < span.rank < oracle.dim_in:
                for _ in range(self.n_refinements):
                    tell(f"refining {span.rank} directions")
                    span, angle = self._refine(target, rng, span, angle)
        except LimitReachedError as error:
            why, notes = Why.LIMIT, (str(error),)
        figures = {"gradients": n_points}
        return SpanCandidate(span, why, notes, expected_angle=angle, figures=figures)

    def _step(self, target: Differences, rng: np.random.Generator) -> Step | None:
        """A random point and a step for it."""
        x = rng.standard_normal(target.oracle.dim_in)
        fx = target.answers(x[None])[0]
        lines = unit_rows(rng, self.n_lines, len(x))
        step = target.find_step(x, fx, lines, self.shortest, self.longest)
        return step if np.isfinite(fx).all() else None

    def _gradients(self, target: Differences, rng: np.random.Generator) -> list[FloatArray]:
        """Whole gradients of all outputs at a random point, in units of their errors."""
        step = self._step(target, rng)
        found = step and target.gradient(step, np.eye(target.oracle.dim_in), rng)
        return [found[0].T / found[1].error] if found else []

    def _refine(
        self, target: Differences, rng: np.random.Generator, span: Span, angle: float
    ) -> tuple[Span, float]:
        """Solve ``(J Q^T) E = J C^T`` for the error E of the basis Q, C its null space.

        A move of length T inside the null space shifts what the network sees by T times the
        angle at most: as long as that is a step that crosses no kink, it crosses none either.
        Beyond the length of an input, the noise grows as fast as the move.  Equations are in
        units of the error of their right side; the left side errs, too, times E.
        """
        n, Q = span.dim_in, span.basis
        C = complement(Q)
        inside, across = np.empty((0, span.rank)), np.empty((0, len(C)))
        n_points = int(np.ceil(self.overdetermined * span.rank / len(target.noise.scale)))
        ratio, expected = 0.0, np.inf
        for i in range(self.most_more * n_points):
            if i >= n_points and expected <= self.better * angle:
                break
            start = self._step(target, rng)
            known = start and target.gradient(start, Q, rng)
            if not known:
                continue
            slopes, step = known
            reach = min(step.h / angle, np.sqrt(n))
            moved = Stencil(step.x, C, np.full(len(C), reach), step.fx).measure(target.answers)
            if not moved.is_finite:
                continue
            # A difference errs by two answers, the moved one sqrt(1 + T^2/n) times as much.
            error = target.error_at(np.ones(1)) * np.sqrt(2.0 + reach**2 / n) / reach
            inside = np.vstack([inside, slopes.T / error])
            across = np.vstack([across, moved.values.T / error])
            ratio = max(ratio, step.error / error)
            if len(inside) >= span.rank:
                least = np.linalg.svd(inside, compute_uv=False)[-1]
                left = angle * ratio * (np.sqrt(len(inside)) + np.sqrt(span.rank))
                expected = float(np.hypot(np.sqrt(len(C)), left) / max(least, TINY))
        if not expected < angle:
            return span, angle
        E = np.linalg.lstsq(inside, across, rcond=None)[0]
        basis = np.linalg.qr((Q + E @ C).T)[0].T
        return Span(basis, span.singular_values, span.floor, np.full(span.rank, expected)), expected
