"""Inputs that a target clips: beyond some size no coordinate changes an answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from revelu.errors import LimitReachedError, TargetError
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.recovery import Status
from revelu.tasks.extract.attempt import Attempt
from revelu.tasks.extract.caps import NO_NETWORK
from revelu.tasks.extract.job import CertifyingJob
from revelu.tasks.job import random_seeds
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class ClippedInputs:
    """How the ends are found beyond which inputs are clipped.

    Attributes
    ----------
    near, far : float
        At corners of cubes of these sizes answers are the same; a network of other inputs grows
        from one to the other, or is constant at all of them.
    n_corners : int
        That are asked, of which ``fewest`` have answers of their own.
    sigmas : float
        Standard errors by which the same answers differ.
    n_halvings : int
        Of the place where an end lies: until its last digit.
    beside : float
        So far inside of an end, relative to it, answers have to change.
    """

    near: float = 2.0**10
    far: float = 2.0**14
    n_corners: int = 4
    fewest: int = 3
    sigmas: float = 16.0
    n_halvings: int = 64
    beside: float = 1e-3

    def find(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator
    ) -> tuple[float, float] | None:
        """Return the ends of all inputs; None where they have none, or not the same."""
        signs = rng.choice([-1.0, 1.0], (self.n_corners, oracle.dim_in))
        try:
            Y = oracle(np.vstack([self.near * signs, self.far * signs]))
            near, far = np.split(Y, 2)
            if not self._same(near, far, noise).all():
                return None
            if len(np.unique(near, axis=0)) < self.fewest:
                return None
            ends = [self._end(oracle, noise, signs, near, side) for side in (-1.0, 1.0)]
        except (LimitReachedError, TargetError):
            return None
        low, high = ends
        return None if low is None or high is None or low >= high else (low + 0.0, high + 0.0)

    def _same(self, Y: FloatArray, other: FloatArray, noise: NoiseFloor) -> BoolArray:
        size = self.sigmas * np.maximum(noise.errors, noise.rounding(Y))
        return np.asarray((np.abs(Y - other) <= size).all(axis=1))

    def _exactly(
        self, oracle: Oracle, noise: NoiseFloor, x: FloatArray, j: int, end: float
    ) -> float:
        """An end that is known roughly, from where the line of two answers inside meets it.

        At ``n`` steps inside the answers are off by ``n`` slopes: the difference of twice the first
        and the second is the answer at the end, which errs by less than three of theirs.
        """
        step = -np.sign(x[j]) * self.beside * max(abs(end), self.beside)
        X = np.repeat(x[None], 3, axis=0)
        X[1:, j] = end + step * np.array([1.0, 2.0])
        Y = oracle(X)
        slopes, off = (Y[2] - Y[1]) / step, 2.0 * Y[1] - Y[2] - Y[0]
        sigma = np.maximum(noise.errors, noise.rounding(Y).max(axis=0))
        k = int(np.argmax(np.abs(slopes) / np.where(sigma > 0.0, sigma, np.inf)))
        if slopes[k] == 0.0:
            return end
        return shortest_decimal(end - off[k] / slopes[k], 3.0 * SIGMAS * sigma[k] / abs(slopes[k]))

    def _end(
        self, oracle: Oracle, noise: NoiseFloor, signs: FloatArray, near: FloatArray, side: float
    ) -> float | None:
        """The end on one side: halved for where one coordinate has it, and seen of all others."""
        rows = [int(np.flatnonzero(column == side)[:1].sum()) for column in signs.T]
        has_side = (signs == side).any(axis=0)
        j = int(np.argmax(has_side))
        inner, outer = -self.near, self.near
        for _ in range(self.n_halvings):
            middle = inner + (outer - inner) / 2.0
            if middle in (inner, outer):
                break
            x = self.near * signs[rows[j]]
            x[j] = side * middle
            same = self._same(oracle(x[None]), near[[rows[j]]], noise)[0]
            inner, outer = (inner, middle) if same else (middle, outer)
        outer = self._exactly(oracle, noise, self.near * signs[rows[j]], j, side * outer) * side
        beside = self.beside * max(abs(outer), self.beside)
        X = np.repeat(self.near * signs[rows], 2, axis=0)
        places = np.repeat(np.arange(oracle.dim_in), 2)
        X[np.arange(len(X)), places] = side * np.tile(
            [outer + beside, outer - beside], oracle.dim_in
        )
        same = self._same(oracle(X), np.repeat(near[rows], 2, axis=0), noise).reshape(-1, 2)
        told = has_side & ~same[:, 1]
        # A corner where no neuron reads a coordinate says nothing of its end.
        if not same[has_side, 0].all() or told.sum() < has_side.sum() / 2.0:
            return None
        return side * outer


def shortest_decimal(value: float, error: float) -> float:
    """The number of the fewest decimals within an error of another: ends are mostly such."""
    rounded = (round(value, places) for places in range(16))
    return next((short for short in rounded if abs(short - value) <= error), value)


def may_be_clipped(job: CertifyingJob, noise: NoiseFloor, tried: Attempt) -> bool:
    """Whether it was not seen yet that they are, where one hidden layer does not explain all."""
    oracle = job.oracle
    is_open = tried.status not in {Status.RECOVERED, Status.NOT_DETERMINISTIC}
    is_plain = oracle.box is None and oracle.domain is None and not noise.link.saturates
    is_plain &= noise.is_deterministic
    is_shallow = tried.method.hidden == (1, 1) and tried.why not in NO_NETWORK
    return is_open and is_plain and is_shallow and not job.has_sought_clip


@contextmanager
def in_box(
    job: CertifyingJob, ends: tuple[float, float], first_checks: int = 256
) -> Iterator[None]:
    """Ask inside a box alone, and certify by few checks what is certified again outside.

    The draws of what comes after stay as they are.
    """
    oracle, before = job.oracle, (job.earlier, job.given, job.inputs, job.checks)
    seeds, rng = job.seeds, job.rng
    job.earlier, job.given, job.inputs = [], None, None
    job.checks, job.seeds = min(job.checks, first_checks), random_seeds("clin", job.seed)
    job.rng, oracle.box = np.random.default_rng(job.new_seed()), ends
    try:
        yield
    finally:
        job.earlier, job.given, job.inputs, job.checks = before
        oracle.box, job.seeds, job.rng = None, seeds, rng


def in_words(ends: tuple[float, float]) -> str:
    """Say what inputs are clipped to, and how the network alone is asked for."""
    low, high = ends
    return (
        f"the inputs are clipped to [{low:g}, {high:g}]: the first hidden layer does that, and the "
        f"network inside is the layers above; --box {low:g} {high:g} recovers it alone"
    )


def box_of_file(oracle: Oracle) -> str:
    """Keep queries of images where their file clips them, unless a place was said; say so.

    Beyond it no method for images reads anything: along a pixel answers are constant, and inside
    most pixels do not move them.

    Returns
    -------
    str
        Words for evidence; empty where queries stay as they are.
    """
    ends = getattr(oracle.target, "clips_to", None)
    is_said = oracle.box is not None or oracle.domain is not None
    if ends is None or is_said or oracle.image is None:
        return ""
    oracle.box = ends
    low, high = ends
    box = f"{low:g} {high:g}"
    return (
        f"the file clips its inputs to [{low:g}, {high:g}]: asked and checked there, as by --box "
        f"{box}; the network found does not clip"
    )
