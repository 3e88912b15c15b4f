"""What a diagnosis says: regularity, what it costs in digits, what the theorems ask."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from revelu.network import Network
from revelu.network.arrangement import Arrangement
from revelu.network.regularity import Condition, Regularity
from revelu.network.separations import rooms
from revelu.network.top_layers import TopLayers
from revelu.numerics.links import NONE, Link
from revelu.oracle import NoiseFloor
from revelu.recovery import Result
from revelu.tasks.diagnose.kind import Kind
from revelu.types import FloatArray


@dataclass(frozen=True)
class DigitsNeeded:
    """How many digits the narrowest place costs.

    A row is the change of a gradient at a kink, and a gradient is a difference of two
    answers over a step ``h``.  Answers err by ``sigma``, hence the change by about
    ``2 sigma / h``, relative to its size ``J``: ``error = 2 sigma / (h J)``.  The step must
    not leave the piece: ``h`` is a fifth of the room beside the kink, which is half a
    piece, or less where another hyperplane is nearer.

    Attributes
    ----------
    answer : float
        Relative standard error of an answer.
    step : float
        The step at the worst kink.
    worst, typical : float
        Relative error of the row found at the worst kink, and the median over kinks.
    """

    answer: float
    step: float
    worst: float
    typical: float

    @property
    def digits_lost(self) -> float:
        """Digits of the worst row that are fewer than those of an answer."""
        return float(np.log10(self.worst / self.answer))

    @property
    def text(self) -> str:
        """The same in words."""
        left = (
            f"there a row is good to {self.worst:.1g} of its size, "
            f"{max(self.digits_lost, 0.0):.0f} digits fewer than the answers, which are good to "
            f"{self.answer:.1g}"
        )
        if self.worst > 0.1:  # of its size: not even the first digit
            left = "there no digit of a row is left"
        return (
            "rows come from differences of answers over a step that stays inside a piece; the "
            f"narrowest place on an axis allows a step of {self.step:.1g}, and {left}; a typical "
            f"row is good to {self.typical:.1g}"
        )


@dataclass(frozen=True)
class Perturbed:
    """A smoothed network, and what that did to its regularity.

    Attributes
    ----------
    amplitude : float
    regularity : Regularity
        After; before is :attr:`Diagnosis.exact`.
    failure_bound : float or None
        What Lemma 6 or 7 bounds the probability of a smaller delta by, at this amplitude.
    lemma_amplitude : float
        The ``2^-d`` of Lemma 2.
    """

    amplitude: float
    network: Network
    regularity: Regularity
    failure_bound: float | None
    lemma_amplitude: float


@dataclass(frozen=True, repr=False)
class Diagnosis(Result):
    """Which assumptions of the theorems hold of a target, measured.

    Attributes
    ----------
    status : Status or None
        None for a finished diagnosis; otherwise why figures are missing.
    dim_in : int
    n_axes : int
        Axes looked at by queries.
    noise : NoiseFloor or None
    measured : Regularity or None
        By queries; None where the answers do not allow it.
    exact : Regularity or None
        From the weights; None where they are not known.
    precision : DigitsNeeded or None
    top_layers : TopLayers or None
        Of a network with two or more hidden layers whose weights are known.
    query_counts : mapping of str to float or None
        Of Theorems 1 to 4 at the delta found, each with constant 1.
    network : Network or None
        The weights, where they are known.
    perturbed : Perturbed or None
    link : Link
        What was applied to the answers, as logits are looked at of probabilities.
    kind : Kind or None
        Which kind of function the target is, as far as a few answers tell; None where it was not
        asked.
    domain : str
        Where the target was asked, in words that follow "inputs"; lines and axes go farther out.
    """

    dim_in: int
    n_axes: int = 0
    noise: NoiseFloor | None = None
    measured: Regularity | None = None
    exact: Regularity | None = None
    precision: DigitsNeeded | None = None
    top_layers: TopLayers | None = None
    query_counts: Mapping[str, float | None] = field(default_factory=dict)
    network: Network | None = None
    perturbed: Perturbed | None = None
    link: Link = NONE
    kind: Kind | None = None
    domain: str = "of N(0, I)"

    told_by: ClassVar[str] = "diagnose"

    def subject(self) -> list[str]:
        """What it is, and delta."""
        said = [] if self.kind is None else [self.kind.text]
        return [*said, *self._regular()]

    def _regular(self) -> list[str]:
        return ["no delta" if self.delta is None else f"delta {self.delta:.2g}"]

    @property
    def probabilities(self) -> bool:
        """Whether the answers are probabilities, looked at as logits."""
        return self.link.name == "softmax"

    def fields(self) -> dict[str, Any]:
        """Return what an account says of a diagnosis."""
        network, noise, risk = self.network, self.noise, self.at_risk
        top, digits = self.top_layers, self.precision
        return {
            "architecture": None if network is None else list(network.architecture),
            "parameters": None if network is None else network.n_parameters,
            "softmax": self.probabilities,
            "link": f"{self.link}",
            "domain": self.domain,
            "kind": None if self.kind is None else self.kind.fields(),
            "noise": None if noise is None else {"law": noise.law, "nu": float(noise.nu.max())},
            "delta": self.delta,
            "at_risk": None if risk is None else risk.name,
            "measured": _regularity(self.measured),
            "exact": _regularity(self.exact),
            "precision": None
            if digits is None
            else {**asdict(digits), "digits_lost": digits.digits_lost},
            "top_layers": None if top is None else asdict(top),
            "query_counts": dict(self.query_counts),
            "perturbation": self._perturbation(),
        }

    def _perturbation(self) -> dict[str, Any] | None:
        if self.perturbed is None or self.exact is None:
            return None
        return {
            "amplitude": self.perturbed.amplitude,
            "lemma_amplitude": self.perturbed.lemma_amplitude,
            "failure_bound": self.perturbed.failure_bound,
            "before": _regularity(self.exact),
            "after": _regularity(self.perturbed.regularity),
        }

    @property
    def regularity(self) -> Regularity | None:
        """The better figures of the two: from the weights where they are known."""
        return self.exact or self.measured

    @property
    def delta(self) -> float | None:
        """The largest delta with which the target is regular, as far as was seen."""
        return None if self.regularity is None else self.regularity.delta

    @property
    def at_risk(self) -> Condition | None:
        """The condition that fails, or else comes nearest to failing."""
        return None if self.regularity is None else self.regularity.at_risk


def _regularity(found: Regularity | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "delta": found.delta,
        "axes": found.n_axes,
        "kinks": found.n_kinks,
        "hyperplanes": found.n_hyperplanes,
        "conditions": [asdict(condition) for condition in found.conditions],
    }


def precision(found: Arrangement, noise: NoiseFloor, *, share: float = 0.2) -> DigitsNeeded | None:
    """Estimate how exactly rows can be found at the kinks of the axes.

    Parameters
    ----------
    share : float
        Of the room beside a kink, what a step takes that is to stay inside a piece.

    Returns
    -------
    DigitsNeeded or None
        None where no kink has a known hyperplane.
    """
    strengths, places = _strengths(found)
    # A step under one rounding is lost in the rounding of the point itself.
    step = np.maximum(share * rooms(found), np.finfo(np.float64).eps)
    sigma = float(np.linalg.norm(noise.nu * noise.scale))
    growth = np.sqrt(1.0 + places**2 / found.dim_in)
    usable = np.isfinite(strengths) & (strengths > 0)
    if not usable.any() or sigma == 0.0:
        return None
    errors = (2.0 * sigma * growth)[usable] / (step * strengths)[usable]
    worst = int(np.argmax(errors))
    return DigitsNeeded(
        answer=float(noise.nu.max()),
        step=float(step[usable][worst]),
        worst=float(errors[worst]),
        typical=float(np.median(errors)),
    )


def _strengths(found: Arrangement) -> tuple[FloatArray, FloatArray]:
    """Size of the gradient's change at each kink, and its ``|x|``, shape (n_kinks,).

    Along an axis the slope changes by the component of that change.
    """
    strengths: list[float] = []
    for cut in found.cuts:
        for (left, right), own in zip(pairwise(cut.pieces), cut.hyperplanes, strict=True):
            along = abs(float(found.normals[own, cut.axis])) if own >= 0 else 0.0
            change = float(np.linalg.norm(right[1] - left[1]))
            strengths.append(change / along if along else np.nan)
    places = np.concatenate([np.empty(0), *(np.abs(cut.kinks) for cut in found.cuts)])
    return np.asarray(strengths, dtype=np.float64), places


def query_counts(delta: float, d: int, widths: tuple[int, ...]) -> dict[str, float | None]:
    """The orders of Theorems 1 to 4, as if every constant were 1.

    Parameters
    ----------
    d : int
        Inputs.
    widths : tuple of int
        Of the hidden layers.

    Returns
    -------
    dict of str to float or None
        None where a theorem does not speak of such a network, or delta is 0.

    Notes
    -----
    With ``L = log2(1 / delta)``.  Theorem 1 has ``d1 L + d1 d``, Theorem 2
    ``d d1 L + d1 d``.  Theorem 4 is Theorem 1's algorithm: its time has the same number of
    queries as a factor.  Theorem 3 says a polynomial; the steps of section 3.5 add up to

        d1 d2 (L + d) + (d1 d2)^2 + 2 d1 + (d1 d2 L + d1 d2):

    the critical points of an axis with their hyperplanes, Algorithm 7 on every pair of
    them, two queries a sign, Theorem 2 for the top two layers.
    """
    names = ("theorem_1", "theorem_2", "theorem_3", "theorem_4")
    counts: dict[str, float | None] = dict.fromkeys(names)
    if delta <= 0.0:
        return counts
    L = float(np.log2(1.0 / delta))
    if len(widths) == 1:
        d1 = widths[0]
        counts["theorem_1"] = counts["theorem_4"] = d1 * L + d1 * d
        counts["theorem_2"] = d * d1 * L + d1 * d
    elif len(widths) == 2:
        d1, d2 = widths
        m = d1 * d2
        counts["theorem_3"] = m * (L + d) + m**2 + 2 * d1 + m * L + m
    return counts


def notes_on_top(network: Network, top: TopLayers | None) -> list[str]:
    """What Theorem 3 asks and the network does not have."""
    notes = []
    if len(network.weights) > 3:
        notes.append("the theorems speak of two hidden layers at most")
    if top is None:
        return notes
    if top.gradients_vanish:
        notes.append(
            "some input of the last hidden layer turns all its neurons off: a gradient vanishes "
            "there, and a first-layer hyperplane that passes does not show (appendix E)"
        )
    if not top.narrowing:
        notes.append("the first hidden layer is wider than the input, which two layers must not be")
    elif np.isinf(top.first_layer_condition):
        notes.append(
            "the rows of the first layer are linearly dependent, which two layers must not have"
        )
    return notes


# What a condition that is nearly violated costs.
COSTS = {
    "nearest_kink": "the search of the paper starts that finely: more bisection steps, no digits",
    "farthest_kink": "answers that far out are larger by that factor, and err by as much more",
    "shortest_piece": "steps beside that kink must be shorter than the piece",
    "shared_piece": "a search that compares the ends of a stretch does not see what is between",
    "grid": "the paper's bisection asks at points that may hit a kink; a random line does not",
    "degeneracy": "steps beside that kink must not reach the other hyperplane",
    "shared_hyperplane": "only the sum of such neurons can be known",
    "hyperplane_distance": "telling the two neurons apart multiplies errors by one over the sine",
    "axis_angle": "on that axis the kink is faint and far out; from another line it is neither",
    "layer_state": "the test that tells first-layer hyperplanes by their going on straight errs",
    "top_layers": "the same holds one layer on, where inputs cannot be chosen freely",
}
