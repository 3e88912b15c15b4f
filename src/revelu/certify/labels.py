"""Certificates about labels: fresh inputs, and both sides of borders that a network predicts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from revelu.certify.given import fidelity_statement, pattern_of
from revelu.network import Network
from revelu.numerics.bisection import bisect
from revelu.numerics.confidence import CONFIDENCE, at_most, upper_bound
from revelu.oracle import Oracle
from revelu.recovery import Certificate, Fidelity
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class LabelExamination:
    """Labels of fresh inputs, by a target and by a network.

    Attributes
    ----------
    X : ndarray, shape (n, d)
    labels, predicted : ndarray, shape (n,)
    is_drawn : ndarray of bool, shape (n,)
        Drawn from N(0, I); the others stand beside borders.
    n_skipped : int
        Checks that the budget did not allow.
    beside : float
        How far off borders those stand, relative to an input's size.
    largest : ndarray of bool, shape (n, k)
        Which answers of the target are as large as any; (n, 0) where it answers labels alone.
    """

    X: FloatArray
    labels: FloatArray
    predicted: FloatArray
    is_drawn: BoolArray
    n_skipped: int
    beside: float
    largest: BoolArray

    @property
    def is_tied(self) -> BoolArray:
        """Where the predicted label is one of several that the target does not tell apart, (n,)."""
        return among_equals(self.largest, self.predicted)

    @property
    def wrong(self) -> FloatArray:
        """Inputs whose labels differ, (m, d)."""
        return np.asarray(self.X[(self.labels != self.predicted) & ~self.is_tied])

    def by(self, network: Network, classes: FloatArray) -> "LabelExamination":
        """Return the same labels, held against those of another network."""
        return replace(self, predicted=predict_labels(network, classes, self.X))

    @classmethod
    def joined(cls, parts: Sequence["LabelExamination"]) -> "LabelExamination":
        """Return several as one, of which the last has left out what was left out."""
        X, labels, predicted, is_drawn = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("X", "labels", "predicted", "is_drawn")
        )
        beside = max(part.beside for part in parts)
        largest = np.concatenate([part.largest for part in parts])
        return cls(X, labels, predicted, is_drawn, parts[-1].n_skipped, beside, largest)


def among_equals(largest: BoolArray, predicted: FloatArray) -> BoolArray:
    """Where a predicted label is one of several answers that are the largest, (n,).

    Rounded probabilities are equal near a border: there they say no label.

    Parameters
    ----------
    largest : ndarray of bool, shape (n, k)
    predicted : ndarray, shape (n,)
        Places of answers.
    """
    if largest.shape[1] < 2:
        return np.zeros(len(predicted), dtype=bool)
    place = np.clip(predicted.astype(np.intp), 0, largest.shape[1] - 1)
    return np.asarray((largest.sum(axis=1) > 1) & largest[np.arange(len(place)), place])


def predict_labels(network: Network, classes: FloatArray, X: FloatArray) -> FloatArray:
    """Labels of inputs ``X (n, d)``: of two classes the sign decides, of more the largest."""
    Y = network(X)
    place = Y.argmax(axis=1) if Y.shape[1] > 1 else (Y[:, 0] > 0).astype(np.intp)
    return np.asarray(classes[place])


def examine_labels(
    network: Network,
    classes: FloatArray,
    oracle: Oracle,
    n_checks: int,
    rng: np.random.Generator,
    *,
    share_beside: float = 0.2,
    beside: float = 1e-6,
    noise: float = 0.0,
    room: float = 16.0,
) -> LabelExamination:
    """Compare labels at fresh inputs, in one round.

    Parameters
    ----------
    classes : ndarray, shape (k,)
        The labels that outputs stand for.
    oracle : Oracle
        Of labels, (m, d) -> (m, 1), or (m, 1 + k) with which answers are the largest behind.
        Queries are booked under ``verify``.
    n_checks : int
        Inputs of N(0, I); fewer where the budget is smaller.
    share_beside : float
        More inputs beside borders between some of those, as a share of them.
    beside : float
        How far off the borders, relative to an input's size,
    noise, room : float, float
        and ``room`` times as far as borders are told, at least: nearer, labels are the rounding's.
    """
    n_sides = 2 * int(np.ceil(share_beside * n_checks / 2.0))
    wanted = n_checks + n_sides
    n_asked = wanted if oracle.remaining is None else min(wanted, oracle.remaining)
    n_drawn = min(n_checks, max(n_asked - n_sides, n_asked // 2))
    drawn = rng.standard_normal((n_drawn, oracle.dim_in))
    sides, beside = _both_sides(network, classes, rng, oracle.dim_in, n_sides, beside, room * noise)
    sides = sides[: n_asked - n_drawn]
    X = np.vstack([drawn, sides])
    with oracle.phase("verify"):
        answered = oracle(X)
    return LabelExamination(
        X,
        answered[:, 0],
        predict_labels(network, classes, X),
        np.arange(len(X)) < n_drawn,
        n_checks - n_drawn,
        beside,
        answered[:, 1:] > 0.0,
    )


def fidelity_of_labels(
    labels: FloatArray,
    predicted: FloatArray,
    rows: FloatArray,
    names: Sequence[str] = (),
    source: str = "inputs given",
) -> Fidelity:
    """Say at how many inputs given the labels are the same.

    Parameters
    ----------
    rows : ndarray, shape (n, m)
        The target's inputs, and ``names`` of their columns.
    """
    wrong = labels != predicted
    share = float(1.0 - wrong.mean())
    pattern = pattern_of(rows, wrong, names)
    return Fidelity(len(rows), float(wrong.any()), share, share, source, pattern)


def _both_sides(
    network: Network,
    classes: FloatArray,
    rng: np.random.Generator,
    d: int,
    n: int,
    beside: float,
    noise: float,
    *,
    n_inputs: int = 4096,
) -> tuple[FloatArray, float]:
    """Both sides of borders between fresh inputs of different labels by a network, (n, d) or fewer.

    As many segments begin in each class as classes allow.  The distance that is returned is the
    largest, relative to an input's size: a target that rounds its outputs tells a border less
    precisely where these change slowly across it than ``noise``, which is what it is at most.
    """
    X = rng.standard_normal((n_inputs, d))
    labels = predict_labels(network, classes, X)
    members = [np.flatnonzero(labels == c) for c in np.unique(labels)]
    if len(members) < 2:
        return X[:0], beside
    first = rng.integers(len(members), size=n // 2)
    second = (first + rng.integers(1, len(members), size=n // 2)) % len(members)
    P, Q = (X[[rng.choice(members[c]) for c in some]] for some in (first, second))
    own = classes[np.searchsorted(classes, predict_labels(network, classes, P))]

    def is_inside(rows: IntArray, t: FloatArray) -> BoolArray:
        at = P[rows] + t[:, None] * (Q - P)[rows]
        return np.asarray(predict_labels(network, classes, at) == own[rows])

    t = bisect(is_inside, np.zeros(len(P)), np.ones(len(P)), 0.0)
    border, E = P + t[:, None] * (Q - P), (Q - P) / np.linalg.norm(Q - P, axis=1)[:, None]
    size = np.maximum(np.abs(border).max(axis=1), 1.0)
    step = beside * size
    if noise:
        near = step[:, None] * E
        change = (_lead(network, border - near) + _lead(network, border + near)) / beside
        least = np.median(change) / np.maximum(change, np.finfo(np.float64).tiny)
        step = np.maximum(step, noise * np.maximum(least, 1.0) * size)
    both = np.stack([border - step[:, None] * E, border + step[:, None] * E], axis=1)
    return both.reshape(-1, d), float((step / size).max())


def _lead(network: Network, X: FloatArray) -> FloatArray:
    """How far outputs of the classes of inputs ``X (n, d)`` are above the next ones, (n,)."""
    Y = network(X)
    if Y.shape[1] == 1:
        return np.abs(Y[:, 0])
    two = np.partition(Y, -2, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


def certify_labels(
    examination: LabelExamination,
    words: str = "",
    fidelity: Fidelity | None = None,
    n_requests: int = 0,
) -> Certificate:
    """State what an examination of labels proves.

    Parameters
    ----------
    words : str
        What a domain is called, of which the inputs are coordinates.
    fidelity : Fidelity, optional
        On inputs that were given, which must get the same labels.
    n_requests : int
        That carried the inputs drawn, of a target that is elsewhere.
    """
    # Where several answers are the largest, the label is not told: such inputs are no checks.
    is_told = ~examination.is_tied
    differs = (examination.labels != examination.predicted) & is_told
    drawn, beside = (is_told & on for on in (examination.is_drawn, ~examination.is_drawn))
    n, n_sides = int(drawn.sum()), int(beside.sum())
    n_bad, n_bad_sides = int(differs[drawn].sum()), int(differs[beside].sum())
    bound = upper_bound(n_bad, n, CONFIDENCE)
    n_tied = int((~is_told).sum())
    # Of a target whose labels are told at the lesser part of its inputs, most networks have them.
    is_mute = n < 0.5 * examination.is_drawn.sum()
    inputs = f"inputs {words}" if words else "N(0, I) inputs"
    inputs += " with one largest answer" if n_tied else ""
    if n_bad:
        said = f"{at_most(100 * n_bad / n)}% of {inputs} get another label"
    else:
        said = (
            f"at {CONFIDENCE:.0%} confidence less than {at_most(100 * bound)}% of {inputs} get "
            "another label"
        )
    said += f" ({n:,} fresh checks"
    said += f" in {n_requests:,} requests" if n_requests else ""
    if n_sides:
        said += f", and {n_sides:,} more within {examination.beside:g} of a border"
        said += f", {n_bad_sides:,} of which differ" if n_bad_sides else ""
    said += ")"
    if n_tied:
        said += f"; at {n_tied:,} more the largest answers are equal, and say no label"
    if examination.n_skipped:
        said += f"; the budget left out {examination.n_skipped:,} checks"
    if fidelity is not None:
        said += f"; {fidelity_statement(fidelity)}"
    return Certificate(
        n_checks=n,
        max_abs_error=float(n_bad > 0),
        nrmse=float(np.sqrt(n_bad / max(n, 1))),
        fraction_within=1.0 - n_bad / max(n, 1),
        tolerance=0.0,
        confidence=CONFIDENCE,
        statement=said,
        n_structural=n_sides,
        structural_within=1.0 - n_bad_sides / max(n_sides, 1),
        passed=n > 0
        and not is_mute
        and not n_bad
        and not n_bad_sides
        and (fidelity is None or fidelity.fraction_within == 1.0),
        fidelity=fidelity,
        n_requests=n_requests,
        share_wrong=bound,
    )
