"""What an examination proves of a recovered network."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincc

from revelu.certify.examination import Examination
from revelu.certify.given import fidelity_of, fidelity_statement
from revelu.numerics.confidence import CONFIDENCE, at_most, upper_bound
from revelu.recovery import Beyond, Certificate
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Standard:
    """What answers must show, beside agreeing, to prove anything.

    Attributes
    ----------
    checks : int
        Fresh queries, where nobody says how many: none of them differs where under 0.1% do.
    rms_factor : float
        Where tolerances leave room for a wrong network, the errors of all checks together, root
        mean square, may not exceed the answers' own by this factor, in any output.
    largest_share : float
        Answers that err by more than this share of what varies do not tell one network from
        another.
    above_noise : float
        The noise is known from a few dozen answers: what varies by no more than this many
        deviations of it may be noise alone, unless the network predicts it.
    sigmas : float
        Standard errors by which answers and predictions must correlate for that.
    more, failures, confidence : int, int, float
        Where a few inputs drawn may differ: ``more`` times the checks, of which ``failures``
        differ, bound their share, at that confidence, as none of the checks does at 95%: 11.6 / 4 n
        is less than 3.0 / n.
    """

    checks: int = 3000
    rms_factor: float = 2.5
    largest_share: float = 0.1
    above_noise: float = 1.5
    sigmas: float = 4.0
    more: int = 4
    failures: int = 4
    confidence: float = 0.99

    def drowned(self, examination: Examination) -> BoolArray:
        """Tell which outputs vary by less than ten times their answers' own errors, shape (k,).

        What varies by no more than that error may be a constant, and others beside it do not
        suffer from that; but where no output varies by more, nothing is known.
        """
        spread, own = examination.spread, examination.own_errors
        varies = self.varying(examination)
        signal = np.sqrt(np.maximum(spread**2 - own**2, 0.0))
        lost = varies & (own > self.largest_share * signal)
        moves = examination.noise.varies(spread)
        if (varies & ~lost).any() or not moves.any():
            return np.asarray(lost & moves)
        return moves

    def varying(self, examination: Examination) -> BoolArray:
        """Tell which outputs vary by more than their noise, or as predicted, shape (k,)."""
        spread = examination.spread
        larger = spread > self.above_noise * examination.own_errors
        finite = np.isfinite(examination.predicted).all(axis=1)
        chosen = examination.is_drawn & examination.is_seen & finite
        Y, P = examination.Y[chosen], examination.predicted[chosen]
        if len(Y) < 2:
            return np.asarray(larger)
        deviation = np.where(np.ptp(P, axis=0) > 0, P.std(axis=0), 0.0) * spread
        covariance = ((Y - Y.mean(axis=0)) * (P - P.mean(axis=0))).mean(axis=0)
        # The correlation of n independent pairs has a standard error of 1 / sqrt(n).
        predicted = covariance > self.sigmas / np.sqrt(len(Y)) * deviation
        return np.asarray(larger | (predicted & (deviation > 0)))

    def excess(self, examination: Examination) -> FloatArray:
        """By which factor errors at the inputs drawn exceed the answers' own, shape (k,).

        Of an output with all its digits nothing is asked here: its tolerance is strict.
        """
        own = examination.own_errors
        errors = examination.errors[examination.is_drawn & examination.is_seen]
        if not len(errors):
            return np.zeros(len(own))
        rms = np.sqrt((errors**2).mean(axis=0))
        asked = ~examination.noise.has_all_digits(examination.spread) & (own > 0)
        return np.asarray(np.where(asked, rms / np.where(asked, own, 1.0), 0.0))


def certify(
    examination: Examination,
    given: Examination | None = None,
    standard: Standard = Standard(),
    *,
    allows_failures: bool = False,
) -> Certificate:
    """State what an examination proves.

    The statement, and whether it is passed, are of inputs drawn.  What is seen at inputs that were
    sought where few are is told beside it.

    Parameters
    ----------
    given : Examination, optional
        Of inputs that somebody cares about: the certificate fails where one of them does.
    allows_failures : bool
        Whether some inputs drawn may differ, as few as the statement tells.
    """
    compared = examination.is_compared
    gaussian = compared & examination.is_drawn
    structural = compared & ~examination.is_drawn
    within = examination.ratio <= 1.0
    n, n_structural = int(gaussian.sum()), int(structural.sum())
    n_failures = int((gaussian & ~within).sum())
    errors = examination.errors[gaussian & examination.is_seen]
    applied = examination.tolerance[gaussian].max(axis=0, initial=0.0)
    spread = float(np.sqrt((examination.spread**2).mean()))
    own = float(np.sqrt((examination.own_errors**2).mean()))
    rms = float(np.sqrt((errors**2).mean())) if errors.size else 0.0
    objections = [*_foreign(examination), *_objections(examination, standard)]
    fidelity = None if given is None else fidelity_of(given)
    failed = given is not None and bool((given.ratio > 1.0).any())
    agrees = n_failures <= (standard.failures if allows_failures else 0)
    confidence = standard.confidence if n_failures and agrees else CONFIDENCE
    bound = upper_bound(n_failures, n, confidence) if n else 1.0
    beyond = _beyond(examination, structural & ~within, bound)
    sentences = [
        *objections,
        _statement(
            examination, gaussian, n_failures, applied, bound if agrees else None, confidence
        ),
        *([] if beyond is None else [beyond.words]),
        *([] if fidelity is None else [fidelity_statement(fidelity)]),
        *_remarks(examination, standard),
    ]
    return Certificate(
        n_checks=n,
        max_abs_error=float(np.abs(errors).max(initial=0.0)),
        nrmse=rms / spread if spread > standard.above_noise * own else rms,
        fraction_within=1.0 - n_failures / n if n else 0.0,
        tolerance=float(applied.max(initial=0.0)),
        confidence=confidence,
        statement="; ".join(sentences),
        n_structural=n_structural,
        structural_within=float(within[structural].mean()) if n_structural else 1.0,
        passed=n > 0 and agrees and not objections and not failed,
        fidelity=fidelity,
        n_requests=examination.n_requests,
        share_wrong=bound,
        beyond=beyond,
    )


def _foreign(examination: Examination) -> list[str]:
    """Answers that are no numbers of the kind that the first ones were."""
    n = int(examination.is_foreign.sum())
    if not n:
        return []
    what = "probabilities " if examination.noise.link.name == "softmax" else ""
    some = "1 answer is" if n == 1 else f"{n:,} answers are"
    return [f"{some} not {what}{examination.noise.numbers}, as the first ones were"]


def _beyond(examination: Examination, wrong: BoolArray, bound: float) -> Beyond | None:
    """Inputs that were sought and differ: how many, by how much, and how far out they begin."""
    n = int(wrong.sum())
    if not n:
        return None
    n_all = int((examination.is_compared & ~examination.is_drawn).sum())
    errors = np.abs(examination.errors[wrong & examination.is_seen])
    largest = float(errors.max(initial=0.0))
    differ, their = ("differs", "its") if n == 1 else ("differ", "their")
    words = (
        f"{n:,} of {n_all:,} other inputs (hyperplanes, {_far(examination)}) {differ} by more than "
        f"{their} tolerance, by up to {largest:.2g}"
    )
    if examination.box is not None:
        return Beyond(n_all, n, largest, None, bound, words)
    # |x|^2 of N(0, I) has the chi-squared law of d degrees of freedom.
    d = examination.X.shape[1]
    nearest = float((examination.X[wrong] ** 2).sum(axis=1).min())
    distance, share = float(np.sqrt(nearest / d)), float(gammaincc(d / 2, nearest / 2))
    if share >= bound:
        return Beyond(n_all, n, largest, distance, bound, words)
    times = "times as far from the middle as a typical input"
    so_few = f"{_percent(share)} of" if share > 1e-12 else "hardly any"
    words += f", the nearest {distance:.2g} {times}: {so_few} inputs lie farther out"
    return Beyond(n_all, n, largest, distance, share, words)


def _objections(examination: Examination, standard: Standard) -> list[str]:
    """Why nothing is proved although every check may agree."""
    found = []
    spread, own = examination.spread, examination.own_errors
    lost = standard.drowned(examination)
    if lost.any():
        k = int(np.argmax(np.where(lost, own / np.where(lost, spread, 1.0), 0.0)))
        found.append(
            f"the answers' own errors, about {own[k]:.1g}, drown what varies of "
            f"{_outputs(lost)}: with them it varies by {spread[k]:.2g}"
        )
    excess = standard.excess(examination)
    if excess.max(initial=0.0) > standard.rms_factor:
        found.append(
            f"the errors of {_outputs(excess > standard.rms_factor)} are {excess.max():.2g} times "
            "what the answers' own would be"
        )
    return found


def _statement(
    examination: Examination,
    gaussian: BoolArray,
    n_failures: int,
    applied: FloatArray,
    bound: float | None,
    confidence: float,
) -> str:
    """The sentence on the inputs drawn.

    Parameters
    ----------
    applied : ndarray, shape (k,)
        The largest tolerances used, by output.
    bound, confidence : float or None, float
        On the share of inputs that differ; None where more differ than may.
    """
    n = int(gaussian.sum())
    if not n:
        return "nothing was verified: no fresh query was left"
    limit = f"{applied.max():.2g}{examination.agreement.in_units(examination.noise)}"
    if applied.min() < applied.max() / 10.0:  # else they are spoken of as one, the largest
        limit = f"{applied.min():.2g} to {limit}, by output"
    inputs = examination.inputs
    if bound is None:
        text = f"{_percent(n_failures / n)} of {inputs} differ by more than {limit}"
    else:
        text = (
            f"at {confidence:.0%} confidence less than {_percent(bound)} of {inputs} "
            f"differ by more than {limit}"
        )
    text += " (1 fresh check" if n == 1 else f" ({n:,} fresh checks"
    if examination.is_remote:
        n_requests = examination.n_requests
        # Rows that travel together are answered together: they are one trial of who answers.
        other = _percent(upper_bound(0, n_requests, CONFIDENCE))
        text += f" in {n_requests:,} request{'s' * (n_requests != 1)}"
        text += f", less than {other} of which another model answers" if bound is not None else ""
    if n_failures and bound is not None:
        text += f", of which {n_failures} differ{'s' * (n_failures == 1)}"
    n_structural = int((examination.is_compared & ~examination.is_drawn).sum())
    if n_structural:
        text += f", and {n_structural:,} more at hyperplanes and in the {_far(examination)}"
    return f"{text})"


def _remarks(examination: Examination, standard: Standard) -> list[str]:
    """What was not checked."""
    found = []
    if examination.n_skipped:
        found.append(f"the budget left out {examination.n_skipped:,} checks")
    n_silent = int((~examination.is_compared).sum())
    if n_silent:
        link = examination.noise.link
        seen = "probabilities were" if link.contrast else "this was"
        found.append(
            f"on {n_silent:,} input{'s' * (n_silent != 1)} the target is saturated: only {seen} "
            "compared"
        )
    moves = examination.noise.varies(examination.spread)
    silent = moves & ~standard.varying(examination) & ~standard.drowned(examination)
    if silent.any():
        found.append(f"{_outputs(silent)}: no variation beyond the errors of the answers was seen")
    return found


def _far(examination: Examination) -> str:
    """Where structural checks lie that are not beside a hyperplane."""
    return "tails" if examination.box is None else "corners"


def _outputs(chosen: BoolArray) -> str:
    """Name outputs, the first of many."""
    indices = [str(k) for k in np.flatnonzero(chosen)]
    if len(indices) == 1:
        return f"output {indices[0]}"
    return f"outputs {', '.join(indices[:4])}{' ...' if len(indices) > 4 else ''}"


def _percent(fraction: float) -> str:
    return "100%" if fraction > 0.995 else f"{at_most(100 * fraction)}%"


def is_no_copy(certificate: Certificate, standard: Standard = Standard()) -> bool:
    """Whether a network is wrong at most inputs, by more than tells networks from one another.

    Parameters
    ----------
    standard : Standard
        Its ``largest_share`` of what varies.
    """
    is_mostly_wrong = certificate.n_checks > 0 and certificate.fraction_within <= 0.5
    return is_mostly_wrong and certificate.nrmse > standard.largest_share
