"""What the noise floor of a target decides before and after a recovery."""

from dataclasses import replace

import numpy as np

from revelu.oracle import NoiseFloor
from revelu.recovery import Recovery, Status
from revelu.types import BoolArray, FloatArray

# Half of the places curving is a smooth function; a quarter may be kinks.
_CURVED = 0.5

# Outputs that vary by less than this many times their error have too few digits for the
# exact method: the certificate's tolerance, 32 errors, would be a hundredth of all that
# varies.
_FEWEST_DIGITS = 3200.0

# Answers whose error is more than a tenth of their variation tell nothing.  The variation
# is known from five places, which show a third of it or less once in fifty times; up to
# there the certificate decides, which knows it from thousands.
_HOPELESS_NOISE = 0.3

# A constant may vary by this many units in the last place.
_ULPS = 4.0


def refusal(noise: NoiseFloor) -> tuple[Status, str] | None:
    """What the noise floor alone rules out.

    Parameters
    ----------
    noise : NoiseFloor

    Returns
    -------
    (Status, str) or None
        How the recovery ends, and why, before it has begun.
    """
    if noise.curved >= _CURVED:
        return Status.NOT_IN_CLASS, (
            f"the answers curve at {noise.curved:.0%} of the places seen: a smooth function, "
            "not a piecewise affine one"
        )
    varies, error = _varying(noise)
    # A constant varies by its noise alone; beside an output that does vary it does no harm.
    clear = varies & (error <= _HOPELESS_NOISE * noise.spread)
    if clear.any() or not varies.any():
        return None
    if not noise.is_deterministic:
        return Status.NOT_DETERMINISTIC, (
            f"the same queries got other answers the second time, by up to "
            f"{noise.repeat_difference:.2g} of their size: more than a tenth of what varies"
        )
    if noise.of_log_ratios:
        return Status.UNVERIFIED, (
            f"the answers are probabilities ({noise.numbers}) so near 0 and 1 that their "
            "rounding leaves too few digits of the logits; ask it for logits, or scale its "
            "inputs so that N(0, I) is where it decides"
        )
    k = int(np.argmax(np.where(varies, error / np.where(varies, noise.spread, 1.0), 0.0)))
    return Status.UNVERIFIED, (
        f"output {k} varies by {noise.spread[k]:.2g} around {noise.scale[k]:.2g} and errs by "
        f"{error[k]:.1g}: too few digits are left of what varies; ask for more digits, or for "
        "answers without that constant"
    )


def has_all_digits(noise: NoiseFloor) -> bool:
    """Whether the exact method can be used."""
    varies, error = _varying(noise)
    return noise.is_exact and not (varies & (noise.spread < _FEWEST_DIGITS * error)).any()


def _varying(noise: NoiseFloor) -> tuple[BoolArray, FloatArray]:
    """Which outputs vary, and the error of an answer by output."""
    # |x|^2 = d on N(0, I), so the terms of an answer are sqrt(2) times the scale.
    error = np.sqrt(2.0) * noise.nu * noise.scale
    ulp = np.finfo(np.float64).eps * noise.scale
    return np.asarray(noise.spread > _ULPS * ulp), np.asarray(error)


def without_invention(recovery: Recovery, noise: NoiseFloor) -> Recovery:
    """Noise that no network explains to within its own size follows no law.

    Nor does noise so large that more than one network explains what it leaves: the
    certificate says which.
    """
    if noise.law != "random" or recovery.status is not Status.UNVERIFIED:
        return recovery
    reason = (
        f"repeated queries differ by up to {noise.repeat_difference:.2g} of their size, and no "
        "network was found whose answers are certain to differ from the target's by such noise "
        "only"
    )
    if recovery.certificate is not None:
        reason += f": {recovery.certificate.statement}"
    return replace(
        recovery,
        status=Status.NOT_DETERMINISTIC,
        network=None,
        certificate=None,
        evidence=(reason,),
    )
