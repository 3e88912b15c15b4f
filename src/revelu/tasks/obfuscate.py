"""Obfuscate: inputs changed beyond recognition that a model answers as before."""

from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from revelu.errors import InputError, LimitReachedError
from revelu.network.span import Span
from revelu.numerics.box_projection import nearest_in_box
from revelu.oracle import Domain, Oracle, checked_inputs, softmax, whole_number
from revelu.recovery import SpanRecovery, Status
from revelu.tasks.job import open_target, random_seeds
from revelu.tasks.progress import Listener
from revelu.tasks.span import recover_span
from revelu.types import BoolArray, FloatArray


def obfuscate(
    X: ArrayLike,
    span: Span,
    norm: float = 10.0,
    box: tuple[float, float] | None = None,
    seed: int = 0,
) -> FloatArray:
    """Add Gaussian noise in the null space of a span.

    Parameters
    ----------
    X : array_like, shape (m, n)
        Inputs.
    span : Span
    norm : float
        Length of the noise, as a multiple of each input's own norm.
    box : (lo, hi), optional
        Every coordinate of the result lies in it: of all points there that look the same
        to the span, it is the nearest to the one drawn; where that is correlated with the
        input, the noise leans away from it.
    seed : int

    Returns
    -------
    ndarray, shape (m, n)
        An input that is all 0 has no length, and stays as it is.

    Raises
    ------
    InputError
        If an argument makes no sense, an input lies outside of the box, or the span leaves
        no null space.

    Examples
    --------
    >>> span = Span([[1.0, 0.0, 0.0]])
    >>> Y = obfuscate([[3.0, 4.0, 0.0]], span, norm=100.0)
    >>> float(Y[0, 0]), round(float(np.linalg.norm(Y - [[3.0, 4.0, 0.0]])), 9)
    (3.0, 500.0)
    """
    rows = checked_inputs(X, span.dim_in, box)
    if span.rank == span.dim_in:
        raise InputError("the span is all of the input: it leaves no null space to change")
    if isinstance(norm, bool) or not np.isfinite(norm) or norm <= 0:
        raise InputError(f"norm must be a positive number, got {norm!r}")
    rng = np.random.default_rng(random_seeds("obfu", whole_number("seed", seed, 0)))
    noise = span.remove(rng.standard_normal(rows.shape))
    lengths = norm * np.linalg.norm(rows, axis=1) / np.linalg.norm(noise, axis=1)
    noise *= lengths[:, None]
    if box is None:
        return np.asarray(rows + noise)
    pairs = zip(rows, noise, strict=True)
    return np.array([_out_of_shadow(x, z, span.basis, box) for x, z in pairs])


def _out_of_shadow(
    x: FloatArray,
    noise: FloatArray,
    basis: FloatArray,
    box: tuple[float, float],
    *,
    shadow: float = 0.05,
    first: float = 0.5,
    most: float = 8.0,
    max_trials: int = 12,
) -> FloatArray:
    """Add noise in the null space of ``basis``, in the box, that leaves nothing of the image.

    Of noise ``z - s c``, c the image's pixels less their mean, the more s, the less the result
    correlates with the image.  All are as long as z, and projecting makes none longer.

    Parameters
    ----------
    x, noise : ndarray, shape (n,)
    basis : ndarray, shape (k, n)
    box : (lo, hi)
    shadow : float
        Correlation that counts as none.
    first, most : float
        The first s that is tried, and the largest.
    max_trials : int
    """
    length = float(np.linalg.norm(noise))

    def scaled(z: FloatArray) -> FloatArray:
        return z * (length / max(float(np.linalg.norm(z)), np.finfo(np.float64).tiny))

    centred = scaled(x - x.mean())

    def lean(s: float) -> tuple[FloatArray, float]:
        y = nearest_in_box(x, x + scaled(noise - s * centred), basis, box)
        return y, float(_correlations(x[None], y[None])[0])

    best, least = lean(0.0)
    positive = least > 0
    s, near, far = first if positive else -first, 0.0, np.inf
    for _ in range(max_trials):
        if abs(least) <= shadow or abs(s) > most:
            break
        y, correlation = lean(s)
        if abs(correlation) < abs(least):
            best, least = y, correlation
        # Farther, until the sign changes; then between.
        near, far = (s, far) if (correlation > 0) == positive else (near, s)
        s = (near + far) / 2.0 if np.isfinite(far) else 2.0 * s
    return best


@dataclass(frozen=True)
class AnswersApart:
    """What a target says to inputs before and after.

    Attributes
    ----------
    labels : ndarray, shape (2, m)
        The largest answer's index, or the answer itself where there is one.  A single
        answer that is no whole number is no label: it is as before to six digits of the
        largest.
    confidences : ndarray, shape (2, m)
        Softmax probability of the label; NaN where only labels are answered.
    largest_change : float
        Of any answer.
    correlations : ndarray, shape (m,)
        Of the pixels before and after.
    """

    labels: FloatArray
    confidences: FloatArray
    largest_change: float
    correlations: FloatArray

    @property
    def same(self) -> BoolArray:
        """Whether the label of each input is as before, shape (m,)."""
        before, after = self.labels
        if (self.labels == np.round(self.labels)).all():
            return np.asarray(before == after)
        # A multiple of what a float32 target's rounding does to the largest.
        rounding = 8.0 * np.finfo(np.float32).eps * np.abs(self.labels).max()
        return np.asarray(np.abs(after - before) <= rounding)


def compare_answers(oracle: Oracle, X: FloatArray, Y: FloatArray) -> AnswersApart:
    """Ask for answers before and after.

    Parameters
    ----------
    X, Y : ndarray, shape (m, n)
    """
    rows = np.vstack([X, Y])
    if oracle.domain is not None:
        rows = oracle.domain.to_coordinates(rows)
    with oracle.phase("verify"), oracle.as_answered():
        answers = oracle(rows)
    if answers.shape[1] == 1:
        labels, confidences = answers[:, 0], np.full(len(answers), np.nan)
    else:
        labels = answers.argmax(axis=1).astype(np.float64)
        confidences = _probabilities(answers).max(axis=1)
    m = len(X)
    return AnswersApart(
        labels=labels.reshape(2, m),
        confidences=confidences.reshape(2, m),
        largest_change=float(np.abs(answers[m:] - answers[:m]).max(initial=0.0)),
        correlations=_correlations(X, Y),
    )


def _probabilities(Y: FloatArray) -> FloatArray:
    """Probabilities; answers that are such already stay as they are."""
    if (Y >= 0).all() and np.allclose(Y.sum(axis=1), 1.0, rtol=0.0, atol=1e-5):
        return Y
    return softmax(Y)


def _correlations(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Pearson correlation by row; 0 where a row is constant."""
    A, B = X - X.mean(axis=1, keepdims=True), Y - Y.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(A, axis=1) * np.linalg.norm(B, axis=1)
    return np.asarray((A * B).sum(axis=1) / np.where(lengths > 0, lengths, 1.0))


@dataclass(frozen=True)
class Obfuscation:
    """Changed inputs, and what a target says to them.

    Attributes
    ----------
    recovery : SpanRecovery
        Where the null space comes from.
    outputs : ndarray, shape (m, n)
        The inputs as they were where no direction was found.
    answers : AnswersApart or None
        None where no direction was found.
    """

    recovery: SpanRecovery
    outputs: FloatArray
    answers: AnswersApart | None


def obfuscate_target(
    target: Any,
    X: ArrayLike,
    *,
    span: Span | str | PathLike[str] | None = None,
    norm: float = 10.0,
    box: tuple[float, float] | None = None,
    labels: bool = False,
    seed: int = 0,
    progress: Listener | None = None,
    domain: Domain | None = None,
) -> Obfuscation:
    """Recover a span, change inputs in its null space, and ask the target again.

    Parameters
    ----------
    target : Oracle, Network, callable or str
    X : array_like, shape (m, n)
    span : Span or path, optional
        Where it is known already.
    norm, box, seed
        As of :func:`obfuscate`.
    labels : bool
        Recover the span from labels alone.
    domain : Domain, optional
        Where the span is recovered; inputs are those of the target all the same.

    Raises
    ------
    InputError
        If an argument makes no sense, or there is no null space.
    """
    oracle = open_target(target, seed, progress, domain=domain)
    dim_in = oracle.dim_target
    rows = checked_inputs(X, dim_in, box)
    if span is None:
        recovery = recover_span(oracle, labels=labels, seed=seed, progress=progress)
    else:
        given = span if isinstance(span, Span) else Span.load(span)
        if given.dim_in != dim_in:
            raise InputError(f"the span has {given.dim_in} inputs, {oracle.name} {dim_in}")
        # What is known of a span from elsewhere is what it says of itself.
        recovery = SpanRecovery(Status.RECOVERED, given, ledger=oracle.ledger(), method="given")
        if given.certified is False:
            recovery = replace(recovery, status=Status.PARTIAL, evidence=(_MARKED,))
    if not recovery.span.rank:
        return Obfuscation(recovery, rows, None)
    outputs = obfuscate(rows, recovery.span, norm, box, seed)
    try:
        answers = compare_answers(oracle, rows, outputs)
        oracle.check_unchanged()
    except LimitReachedError as error:
        evidence = (*recovery.evidence, str(error))
        recovery = replace(recovery, status=Status.BUDGET_EXHAUSTED, evidence=evidence)
        return Obfuscation(recovery, rows, None)
    notes = () if oracle.journal is None else oracle.journal.notes()
    if (same := np.flatnonzero((outputs == rows).all(axis=1))).size:
        said = f"row {same[0]} is NOT changed ({len(same):,} of {len(rows):,} rows are not)"
        notes = (*notes, f"{said}: noise is a multiple of an input's length, which may be 0")
    recovery = replace(recovery, ledger=oracle.ledger(), warnings=notes)
    if not answers.same.all():
        evidence = (*recovery.evidence, _too_long(recovery.span, norm))
        recovery = replace(recovery, evidence=evidence)
    return Obfuscation(recovery, outputs, answers)


def _too_long(span: Span, norm: float, leak: float = 1e-3) -> str:
    """Say how much of the noise the span's own error lets through, and how long it may be.

    Parameters
    ----------
    leak : float
        Of an input's length: what next to no label depends on.
    """
    error = max(float(span.errors.max(initial=0.0)), float(np.finfo(np.float64).eps))
    most = leak / error
    return (
        f"the span is known to {error:.1g} rad, so that noise of {norm:g} times an input moves it "
        f"by {norm * error:.1g} of its length outside the null space; up to --norm {most:.1g} it "
        f"is {leak:g} at most"
    )


_MARKED = "the span that was given is marked as not certified: answers may change"
