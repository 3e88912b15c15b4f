"""A certificate of a recovered network, by fresh queries only."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from revelu.network import Network
from revelu.numerics.confidence import upper_bound
from revelu.oracle import NoiseFloor, Oracle, log_ratios
from revelu.recovery import Certificate
from revelu.types import BoolArray, FloatArray
from revelu.verify.borders import border_inputs
from revelu.verify.checks import gaussian_inputs, heavy_tailed_inputs, hyperplane_inputs

CONFIDENCE = 0.95

# Half of the digits, but no laxer than this, unless the answers themselves are noisier.
_LAXEST = 1e-6
_NOISE_FACTOR = 32.0

# Of answers that lack digits, so many errors: the largest of a hundred thousand normal
# ones is half of that.
_COARSE_FACTOR = 8.0

# Answers on a grid err by half a unit, and the network may err by as much again; twice
# that is agreement.  Noise drawn anew for every answer exceeds six of its deviations
# once in five hundred million answers.
_GRID_UNITS = 2.0
_RANDOM_FACTOR = 6.0

# Where such tolerances leave room for a wrong network, the errors of all checks
# together, root mean square, may not exceed the answers' own by this factor.
_RMS_FACTOR = 2.5

# Deviations of an output that its size is taken to be, at most.
_SPREADS = 4.0

# A target saturated where the network gives a probability this much (in logarithms)
# above the smallest one is another function.
_SATURATION_MARGIN = 0.1


@dataclass(frozen=True)
class Examination:
    """Answers and predictions on fresh inputs.

    Attributes
    ----------
    X : ndarray, shape (n, d)
    ratio : ndarray, shape (n,)
        Largest error of a row over its tolerance; at most 1 where they agree.
        NaN where both are saturated alike: their logits cannot be compared.
    errors : ndarray, shape (n, k)
    own_errors : ndarray, shape (n, k)
        Standard errors of the target's answers.
    is_gaussian : ndarray of bool, shape (n,)
    n_skipped : int
        Structural checks that the budget did not allow.
    """

    X: FloatArray
    ratio: FloatArray
    errors: FloatArray
    own_errors: FloatArray
    is_gaussian: BoolArray
    n_skipped: int = 0

    @property
    def passed(self) -> bool:
        """Whether every row that could be compared agrees."""
        compared = self.ratio[~np.isnan(self.ratio)]
        return bool(len(compared) and (compared <= 1.0).all())

    @property
    def worst_point(self) -> FloatArray:
        """The input with the largest error, shape (d,); a Gaussian one where one is wrong.

        One where the target is not saturated, if any: a line through the others says
        nothing.
        """
        ratio = np.nan_to_num(self.ratio, nan=0.0)
        finite = np.where(np.isfinite(ratio), ratio, 0.0)
        ratio = finite if finite.max(initial=0.0) > 1.0 else ratio
        gaussian = np.where(self.is_gaussian, ratio, 0.0)
        chosen = gaussian if gaussian.max(initial=0.0) > 1.0 else ratio
        return np.asarray(self.X[int(np.argmax(chosen))])

    def __add__(self, other: "Examination") -> "Examination":
        return Examination(
            np.vstack([self.X, other.X]),
            np.concatenate([self.ratio, other.ratio]),
            np.vstack([self.errors, other.errors]),
            np.vstack([self.own_errors, other.own_errors]),
            np.concatenate([self.is_gaussian, other.is_gaussian]),
            self.n_skipped + other.n_skipped,
        )


def tolerances(noise: NoiseFloor) -> FloatArray:
    """The largest |error| of each output that counts as agreement on N(0, I).

    Half of the digits that a float64 answer has: recovery divides differences of
    answers by the distance of kinks, and kinks nearer than the square root of the noise
    floor are not told apart by any of its steps.  Of noisier answers the square root
    would be lax: there it is a small multiple of the noise itself, and of rounded answers
    two units of their rounding.

    Returns
    -------
    ndarray, shape (k,)
        In units of the outputs.
    """
    # |x|^2 = d on N(0, I), so the terms of an answer are sqrt(2) times the scale.
    scale = np.sqrt(2.0) * noise.scale
    if noise.grid is not None:
        # Root mean square over all answers: a spacing changes tenfold at powers of ten.
        return np.asarray(_GRID_UNITS * np.sqrt(12.0) * noise.nu * scale)
    if noise.law == "random":
        return np.asarray(_RANDOM_FACTOR * noise.nu * scale)
    # A constant that hides the variation must not buy a tolerance.
    varying = np.minimum(scale, _SPREADS * noise.spread)
    rounding = (_NOISE_FACTOR if noise.is_exact else _COARSE_FACTOR) * noise.nu * scale
    least = float((noise.nu * scale).max())
    lax = min(noise.half_digits, _LAXEST) * varying
    return np.asarray(np.maximum(lax, np.maximum(rounding, least)))


def examine(
    network: Network,
    oracle: Oracle,
    noise: NoiseFloor,
    n_gaussian: int,
    rng: np.random.Generator,
    *,
    structural: bool = True,
) -> Examination:
    """Compare a network with its target on fresh inputs, in one round.

    Parameters
    ----------
    network : Network
    oracle : Oracle
        Queries are booked under ``verify``.
    noise : NoiseFloor
    n_gaussian : int
        Points of N(0, I); fewer where the budget is smaller.
    rng : numpy.random.Generator
    structural : bool
        Also ask heavy tails and both sides of every neuron's hyperplane or border.
    """
    d = oracle.dim_in
    X = gaussian_inputs(rng, n_gaussian, d)
    extra = np.empty((0, d))
    if structural:
        extra = np.vstack(
            [
                hyperplane_inputs(rng, network),
                border_inputs(rng, network),
                heavy_tailed_inputs(rng, n_gaussian, d),
            ]
        )
    room = len(X) + len(extra) if oracle.remaining is None else oracle.remaining
    n_skipped = max(len(X) + len(extra) - room, 0)
    # The statement rests on the Gaussian points; of a tight budget they get half or more.
    extra = extra[: max(room // 2, room - len(X))]
    X = X[: room - len(extra)]
    rows = np.vstack([X, extra])
    if not noise.is_exact:
        # Of what a float32 target is asked it must not lose any digits.
        rows = rows.astype(np.float32).astype(np.float64)
    with oracle.phase("verify"), oracle.as_answered():
        Y = oracle(rows)
    if not len(rows):
        none = np.empty((0, network.dim_out))
        return Examination(rows, np.empty(0), none, none, np.empty(0, bool))
    return _compare(network, oracle, noise, rows, Y, len(X), n_skipped)


def _compare(
    network: Network,
    oracle: Oracle,
    noise: NoiseFloor,
    X: FloatArray,
    Y: FloatArray,
    n_gaussian: int,
    skipped: int,
) -> Examination:
    answered = Y
    if oracle.takes_log_ratios:
        Y = log_ratios(answered, oracle.smallest_probability)
    seen = np.asarray(np.isfinite(Y).all(axis=1))
    errors = np.where(seen[:, None], np.where(seen[:, None], Y, 0.0) - network(X), np.nan)
    # Beyond the radius of N(0, I) the terms of an answer, and its errors, grow with |x|.
    growth = np.maximum(np.sqrt((1.0 + (X**2).mean(axis=1)) / 2.0), 1.0)
    tolerance = tolerances(noise) * growth[:, None]
    if noise.grid is not None and not oracle.takes_log_ratios:
        tolerance = np.maximum(tolerance, _GRID_UNITS * noise.grid.spacing(Y))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(errors) / tolerance
    ratio = np.where(errors == 0.0, 0.0, ratio).max(axis=1)
    if not seen.all():
        ratio[~seen] = _saturated_ratio(
            network(X[~seen]),
            answered[~seen],
            tolerance[~seen].max(axis=1),
            oracle.smallest_probability,
        )
    own = np.broadcast_to(noise.sigma(Y), errors.shape)
    return Examination(X, ratio, errors, own, np.arange(len(X)) < n_gaussian, skipped)


def _saturated_ratio(
    logits: FloatArray, probabilities: FloatArray, tolerance: FloatArray, smallest: float
) -> FloatArray:
    """NaN where the network is saturated as the target is, in the same class, else infinite.

    A probability changes by less than its logits do, so their tolerance is more than
    enough.
    """
    full = np.column_stack([logits, np.zeros(len(logits))])
    log_p = full - logsumexp(full, axis=1)[:, None]
    as_saturated = log_p.min(axis=1) <= np.log(smallest) + _SATURATION_MARGIN
    as_probable = np.abs(np.exp(log_p) - probabilities).max(axis=1) <= tolerance
    return np.where(as_saturated & as_probable, np.nan, np.inf)


def certify(examination: Examination, noise: NoiseFloor) -> Certificate:
    """State what an examination proves.

    Parameters
    ----------
    examination : Examination
    noise : NoiseFloor
    """
    compared = ~np.isnan(examination.ratio)
    finite = np.isfinite(examination.errors).all(axis=1)
    gaussian = compared & examination.is_gaussian
    structural = compared & ~examination.is_gaussian
    n = int(gaussian.sum())
    within = examination.ratio <= 1.0
    errors = examination.errors[gaussian & finite]
    tolerance = float(tolerances(noise).max())
    fraction = float(within[gaussian].mean()) if n else 0.0
    bound = upper_bound(int((gaussian & ~within).sum()), n, CONFIDENCE)
    spread = float(np.sqrt((noise.spread**2).mean()))
    rms = float(np.sqrt((errors**2).mean())) if len(errors) else 0.0
    varies = spread > _NOISE_FACTOR * float((noise.nu * noise.scale).max())
    n_structural = int(structural.sum())
    excess = _excess(examination, noise)
    limit = f"{tolerance:.2g}{_in_units(noise)}"
    statement = _statement(examination, n, fraction, bound, limit, n_structural)
    if excess:
        statement += f"; the errors are {excess:.2g} times what the answers' own would be"
    return Certificate(
        n_checks=n,
        max_abs_error=float(np.abs(errors).max(initial=0.0)),
        nrmse=rms / spread if varies else rms,
        fraction_within=fraction,
        tolerance=tolerance,
        confidence=CONFIDENCE,
        statement=statement,
        n_structural=n_structural,
        structural_within=float(within[structural].mean()) if n_structural else 1.0,
        passed=examination.passed and n > 0 and not excess,
    )


def _excess(examination: Examination, noise: NoiseFloor) -> float | None:
    """By which factor errors of N(0, I) inputs exceed the answers' own, if by too much.

    Of a target with all its digits nothing is asked here: its tolerance is strict.
    """
    if noise.is_exact:
        return None
    compared = examination.is_gaussian & np.isfinite(examination.errors).all(axis=1)
    errors, own = examination.errors[compared], examination.own_errors[compared]
    if not own.any():
        return None
    excess = float(np.sqrt((errors**2).mean() / (own**2).mean()))
    return excess if excess > _RMS_FACTOR else None


def _in_units(noise: NoiseFloor) -> str:
    """What a tolerance is, in terms of what the target's answers lack themselves."""
    if noise.grid is not None:
        return f", {_GRID_UNITS:g} units of the target's rounding to {noise.grid}"
    if noise.law == "random":
        return f", {_RANDOM_FACTOR:g} deviations of the target's noise"
    if noise.law == "float32":
        return f", {_COARSE_FACTOR:g} errors of its float32 answers"
    return ""


def _statement(
    examination: Examination,
    n: int,
    fraction: float,
    bound: float,
    limit: str,
    n_structural: int,
) -> str:
    if not n:
        return "nothing was verified: no fresh query was left"
    checks = "1 fresh check" if n == 1 else f"{n:,} fresh checks"
    if fraction < 1.0:
        text = f"{_percent(1.0 - fraction)} of N(0, I) inputs differ by more than {limit}"
    else:
        text = (
            f"at {CONFIDENCE:.0%} confidence less than {_percent(bound)} of N(0, I) inputs "
            f"differ by more than {limit}"
        )
    text += f" ({checks}"
    if n_structural:
        text += f", and {n_structural:,} more at hyperplanes and in the tails"
    text += ")"
    if examination.n_skipped:
        text += f"; the budget left out {examination.n_skipped:,} checks"
    n_silent = int(np.isnan(examination.ratio).sum())
    if n_silent:
        text += (
            f"; on {n_silent:,} inputs the target is saturated: only probabilities were compared"
        )
    return text


def _percent(fraction: float) -> str:
    return "100%" if fraction > 0.995 else f"{100 * fraction:.2g}%"
