"""The span of a first layer from numbers, by gradients (JWZ20, Algorithm 1).

Every gradient of ``f(x) = g(A x)`` is ``A^T ∇g(A x)``, a combination of A's rows.  (In
print, section 2 has g in place of ∇g, and Lemma 3.2 draws its points from N(0, I_k) in
place of N(0, I_n).)  Algorithm 1 as stated is in `span_at_once`.  Here is its thrifty form:
of the r directions known so far and their complement, only the complement's n - r
coordinates of a gradient are measured, of all outputs at once, at points where a move
inside the complement changes an answer.
"""

import logging
from collections.abc import Callable

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network.span import Span
from revelu.numerics.complement import Complement
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.slopes import (
    SIGMAS,
    Step,
    error_at,
    find_step,
    measure_gradient,
    unit_of,
    unit_rows,
)
from revelu.recovery import SpanRecovery, Status
from revelu.types import FloatArray

log = logging.getLogger(__name__)

# Points of a look around.  Where none of two looks has anything to add, nothing is left
# that more than a tenth of N(0, I) shows, at 95% confidence.
_N_POINTS = 16
_N_EMPTY_LOOKS = 2

# Lines through a point that choose its step and tell whether it has something to add.
_N_LINES = 2

# Directions are taken where they weigh this share of the strongest gradient, for errors
# grow by its inverse; where no point offers such a one, by less and less.  Of k outputs,
# which bring k directions at once, a k-th of that is enough.
_SHARE = 0.02
_RELAX = 4.0
_ESTIMATE = 0.4

# Steps worth trying at first; later up to a multiple of the usual one.
_SHORTEST, _LONGEST = 1e-7, 1.0
_MULTIPLE = 9.0


class _Search:
    """The adaptive search: a basis, its complement, and what is known of their errors."""

    def __init__(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, smooth: bool
    ) -> None:
        self.oracle, self.noise, self.rng, self.smooth = oracle, noise, rng, smooth
        self.rest = Complement(oracle.dim_in, rng)
        self.sizes: list[float] = []
        self.errors: list[float] = []
        self.largest = 0.0
        self.share = _SHARE / noise.scale.size
        self.steps: list[float] = []
        self.change = 0.0
        self.n_gradients = 0

    @property
    def rank(self) -> int:
        """Directions found so far."""
        return len(self.sizes)

    @property
    def leak(self) -> float:
        """How far the basis may be off, in radians.

        Triangular elimination amplifies the errors of single gradients about as much as
        the inverse of a random r x r matrix does, r-fold.
        """
        return float(np.median(self.errors) * self.rank) if self.errors else 0.0

    def look_around(self) -> list[tuple[FloatArray, FloatArray]]:
        """Points where a move inside the complement changes an answer, and the answers."""
        n = self.oracle.dim_in
        X = self.rng.standard_normal((_N_POINTS, n))
        moves = self.rng.standard_normal((_N_POINTS, n - self.rank)) @ self.rest.basis
        Y = self.oracle(np.vstack([X, X + moves])) / unit_of(self.noise)
        with np.errstate(invalid="ignore"):
            changes = np.abs(Y[_N_POINTS:] - Y[:_N_POINTS]).max(axis=1)
        limit = SIGMAS * np.array([error_at(self.noise, x) for x in X + moves]) * 2.0**0.5
        limit += SIGMAS * self.leak * self.largest
        moved = np.isfinite(changes) & (changes > limit)
        self.change = float(changes[moved].max(initial=0.0))
        return [(X[i], Y[i]) for i in np.flatnonzero(moved)]

    def learn_at(self, x: FloatArray, fx: FloatArray) -> int:
        """Measure the gradients at ``x`` in the complement; return how many directions it adds."""
        lines = unit_rows(self.rng, _N_LINES, len(self.rest.basis)) @ self.rest.basis
        step = find_step(self.oracle, self.noise, x, fx, lines, self._steps(), smooth=self.smooth)
        if step is None:
            return 0
        # A random unit vector has 1 / (n - r) of the squared length on each axis.
        expected = np.sqrt((step.slopes**2).sum() / _N_LINES * len(self.rest.basis))
        if expected < _ESTIMATE * self._least(step):
            return 0
        measured = measure_gradient(self.oracle, self.noise, self.rng, x, fx, self.rest.basis, step)
        if measured is None:
            return 0
        self.steps.append(measured[1].h)
        return self._add(measured[0].T, measured[1])

    def _steps(self) -> tuple[float, float]:
        """The shortest and the longest step worth trying, from those that were good."""
        if not self.steps:
            return _SHORTEST, _LONGEST
        usual = float(np.median(self.steps))
        return usual * self.share, min(_MULTIPLE * usual, _LONGEST)

    def _least(self, step: Step) -> float:
        """The least that a direction may weigh here: its share, and what noise allows."""
        noise = step.error * (np.sqrt(len(self.rest.basis)) + np.sqrt(self.noise.scale.size))
        return float(max(self.share * self.largest, SIGMAS * (noise + self.leak * self.largest)))

    def _add(self, gradients: FloatArray, step: Step) -> int:
        """Take the directions of gradients (k, n - r) that stand out of noise and leak."""
        self.n_gradients += len(gradients)
        _, values, vt = np.linalg.svd(gradients, full_matrices=False)
        self.largest = max(self.largest, float(values[0]))
        new = int((values >= self._least(step)).sum())
        error = step.error * np.sqrt(len(self.rest.basis))
        self.errors += [float(error / value) for value in values[:new]]
        self.sizes += [float(value) for value in values[:new]]
        self.rest.take(vt[:new])
        return new

    @property
    def floor(self) -> float:
        """Below this share of the strongest gradient a direction cannot be told from noise."""
        if not self.steps:
            return _SHARE
        sigma = error_at(self.noise, np.ones(1)) / float(np.median(self.steps))
        noise = 3.0 * sigma * np.sqrt(self.oracle.dim_in)
        return SIGMAS * float(noise / max(self.largest, 1e-300) + self.leak)

    def span(self) -> Span:
        """What was found."""
        sizes = np.sort(self.sizes)[::-1] / max(self.largest, 1e-300)
        return Span(self.rest.taken, sizes, floor=self.floor if self.rank else 0.0)


def recover_span(
    oracle: Oracle,
    noise: NoiseFloor,
    seed: int | np.random.SeedSequence,
    *,
    smooth: bool = False,
    tell: Callable[[str], None] | None = None,
) -> SpanRecovery:
    """Recover the row span of the first layer, adaptively.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
    seed : int or SeedSequence
    smooth : bool
        Whether the target curves everywhere: differences are then central.
    tell : callable, (str) -> None
        Told what is being done.

    Returns
    -------
    SpanRecovery
        ``UNVERIFIED`` where the search ended, for the caller to check; ``PARTIAL`` where
        answers still change but no gradient shows it; ``BUDGET_EXHAUSTED``.

    Notes
    -----
    Source: JWZ20, Algorithm 1 and Lemma 3.2, gradients one after another.
    """
    search = _Search(oracle, noise, np.random.default_rng(seed), smooth)
    status, reason, n_empty = Status.UNVERIFIED, "", 0
    try:
        while search.rank < oracle.dim_in:
            # 1. Points where a move that the basis does not know of changes an answer.
            candidates = search.look_around()
            n_empty = 0 if candidates else n_empty + 1
            if n_empty == _N_EMPTY_LOOKS:
                break
            # 2. The complement's coordinates of the gradients there, while they add to it.
            before = search.rank
            for x, fx in candidates:
                if search.rank == oracle.dim_in:
                    break
                if tell is not None:
                    tell(f"{search.rank} directions")
                search.learn_at(x, fx)
            # 3. Nothing strong is left: take what is weaker, down to the noise.
            if candidates and search.rank == before:
                search.share /= _RELAX
                if search.share * _RELAX < search.floor:
                    status = Status.PARTIAL
                    reason = (
                        f"answers still change by up to {search.change:.1g} of their size "
                        "outside of the span, but no gradient there stands out of the noise"
                    )
                    break
    except LimitReachedError as error:
        status, reason = Status.BUDGET_EXHAUSTED, str(error)
    return SpanRecovery(
        status,
        search.span(),
        oracle.ledger(),
        evidence=(reason,) if reason else (),
        method="gradients",
        details={
            "gradients": search.n_gradients,
            "expected_angle": search.leak,
        },
    )
