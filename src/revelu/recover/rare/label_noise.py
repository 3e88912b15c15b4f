"""Wrong labels: a law of their own, and how much evidence a halfspace needs against it.

``P(y = 1 | x)`` is ``1 - missed`` inside the union and ``raised`` outside, whatever x is
(random classification noise; Angluin and Laird, 1988).  Both rates are counted where no error
of a border reaches.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc, gammaln

from revelu.numerics.confidence import FALSE_ALARM
from revelu.numerics.quadratic import row_blocks
from revelu.types import BoolArray, FloatArray

Features = Callable[[slice], FloatArray]
"""Functions of some of the inputs, (m, p)."""


@dataclass(frozen=True)
class LabelNoise:
    """Rates of wrong labels."""

    raised: float = 0.0
    """Share of the labels outside that say inside."""
    missed: float = 0.0
    """Share of the labels inside that say outside."""
    n_raised: int = 0
    n_outside: int = 0
    n_missed: int = 0
    n_inside: int = 0
    """Wrong labels, and labels, that the rates were counted from."""

    @classmethod
    def measured(cls, depth: FloatArray, fires: BoolArray, width: float) -> "LabelNoise":
        """Count wrong labels farther than a width from every border.

        Parameters
        ----------
        depth : ndarray, shape (n,)
            Largest margin of all units.
        fires : ndarray of bool, shape (n,)
        width : float

        Notes
        -----
        Jeffreys' prior: half a wrong label is added outside.  Inside there may be few labels;
        one more, as often wrong as those outside, is added to them.
        """
        outside, within = fires[depth < -width], fires[depth > width]
        n_raised, n_missed = int(outside.sum()), int((~within).sum())
        raised = (n_raised + 0.5) / (len(outside) + 1.0)
        missed = (n_missed + raised) / (len(within) + 1.0)
        # Rates that add up to 1 leave no information in a label.
        raised, missed = np.minimum((raised, missed), 0.45).tolist()
        return cls(raised, missed, n_raised, len(outside), n_missed, len(within))

    @property
    def is_none(self) -> bool:
        """Whether no wrong label was counted."""
        return not (self.n_raised or self.n_missed)

    @property
    def signal(self) -> float:
        """By how much more often a label is 1 inside than outside."""
        return 1.0 - self.raised - self.missed

    def gains(self, fires: BoolArray) -> FloatArray:
        """Log-likelihood of labels inside, less that outside, shape (n,)."""
        for_one = np.log1p(-self.missed) - np.log(self.raised)
        for_none = np.log(self.missed) - np.log1p(-self.raised)
        return np.asarray(np.where(fires, for_one, for_none))

    def likelihood(self, depth: FloatArray, fires: BoolArray) -> float:
        """Log-likelihood of labels, by the largest margin of each input, (n,)."""
        one = np.where(depth > 0, 1.0 - self.missed, self.raised)
        return float(np.log(np.where(fires, one, 1.0 - one)).sum())


def least_evidence(n: int, d: int) -> float:
    """Log-likelihood ratio that noise gives any halfspace with `FALSE_ALARM` probability.

    Under noise alone the likelihood ratio of one halfspace has mean 1, so that it passes e^c
    with a probability of e^-c at most; n samples of d inputs are divided by halfspaces in
    ``2 sum_{j <= d} C(n - 1, j)`` ways (Cover, 1965).
    """
    j = np.arange(min(d, n - 1) + 1)
    ways = gammaln(n) - gammaln(j + 1) - gammaln(n - j)
    return float(np.log(2.0) + np.logaddexp.reduce(ways) - np.log(FALSE_ALARM))


def fewest_seen(noise: LabelNoise, n: int, d: int) -> int:
    """Samples that a halfspace has to hold to be told from wrong labels."""
    for_one, for_none = noise.gains(np.array([True, False]))
    mean = (1.0 - noise.missed) * for_one + noise.missed * for_none
    return int(np.ceil(least_evidence(n, d) / mean))


def unexplained(noise: LabelNoise, d: int) -> int:
    """Count wrong labels that are too few to be told from a region of their own.

    Wrong labels are a law where as many of them in one halfspace would have been found there, or
    where they are no more frequent than on the other side, where they are one.
    """
    ones, none = np.array([True]), np.array([False])
    sides = (
        (noise.n_raised, noise.n_outside, float(noise.gains(ones)[0]), noise.missed),
        (noise.n_missed, noise.n_inside, -float(noise.gains(none)[0]), noise.raised),
    )
    is_law = [m > 0 and m * gain >= least_evidence(n, d) for m, n, gain, _ in sides]
    total = 0
    for (m, n, _, other), own, beside in zip(sides, is_law, is_law[::-1], strict=True):
        alike = beside and float(bdtrc(m - 1, n, other)) >= FALSE_ALARM
        if m and not (own or alike):
            total += m
    return total


def departures(
    X: FloatArray, margins: FloatArray, fires: BoolArray, noise: LabelNoise, width: float
) -> list[str]:
    """Say where wrong labels do not come at random: beside borders, along inputs, deep inside.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    margins : ndarray, shape (n, k)
    fires : ndarray of bool, shape (n,)
    width : float
        Nearer to a border a label may differ without being wrong.
    """
    depth = margins.max(axis=1)
    found = []
    for side, rate, where in (
        (depth < -width, noise.raised, "outside"),
        (depth > width, noise.missed, "inside"),
    ):
        wrong = fires[side] != (where == "inside")
        if not wrong.any():
            continue
        tests = _tests(X[side], margins[side], inside=where == "inside")
        none = slice(0, 0)
        n_tests = 2 * sum(features(none).shape[1] for _, features in tests)
        for name, features in tests:
            if _is_off(features, wrong, rate, n_tests):
                found.append(_NOT_RANDOM.format(m=int(wrong.sum()), where=where, name=name))
                break
    return found


def _tests(
    X: FloatArray, margins: FloatArray, *, inside: bool, most_units: int = 16
) -> list[tuple[str, Features]]:
    """What wrong labels at random do not go with, and how that is called."""
    n, d = X.shape
    rank = np.empty(n, dtype=np.int64)
    rank[np.argsort(np.abs(margins.max(axis=1)))] = np.arange(n)
    # The nearest half, quarter, ... of the labels.
    shares = n >> np.arange(1, 9)
    i, j = np.triu_indices(d)
    tests: list[tuple[str, Features]] = [
        ("nearer to borders", lambda rows: (rank[rows, None] < shares).astype(np.float64)),
        ("along an input", lambda rows: np.hstack([X[rows], X[rows][:, i] * X[rows][:, j]])),
    ]
    k = min(margins.shape[1], most_units)
    if inside and k > 1:
        a, b = np.triu_indices(k, 1)
        fires = margins > 0
        tests.append(
            (
                "where two halfspaces overlap",
                lambda rows: (fires[rows][:, a] & fires[rows][:, b]).astype(np.float64),
            )
        )
    return tests


def _is_off(features: Features, wrong: BoolArray, rate: float, n_tests: int) -> bool:
    """Whether wrong labels go with a feature more than chance explains.

    Bernstein's inequality: a sum of independent terms of variance V in all, none beyond M,
    passes ``M L / 3 + sqrt((M L / 3)^2 + 2 V L)`` with a probability of e^-L.
    """
    n, L = len(wrong), np.log(n_tests / FALSE_ALARM)
    rate = max(rate, float(wrong.mean()))
    # Sums of a feature, its square and what it has to do with wrong labels; its least and largest.
    m = features(slice(0, 0)).shape[1]
    first, second, both = np.zeros((3, m))
    least, largest = np.full(m, np.inf), np.full(m, -np.inf)
    for rows in row_blocks(n):
        F = features(rows)
        first += F.sum(axis=0)
        second += (F**2).sum(axis=0)
        both += (wrong[rows] - rate) @ F
        least, largest = np.minimum(least, F.min(axis=0)), np.maximum(largest, F.max(axis=0))
    mean = first / n
    total = np.abs(both - mean * (wrong - rate).sum())
    V = rate * (1.0 - rate) * np.maximum(second - n * mean**2, 0.0)
    M = np.maximum(largest - mean, mean - least) * max(rate, 1.0 - rate)
    return bool((total > M * L / 3.0 + np.sqrt((M * L / 3.0) ** 2 + 2.0 * V * L)).any())


_NOT_RANDOM = (
    "{m:,} labels {where} are wrong, and not at random: there are more of them {name}, as where "
    "the target is something else"
)
