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

# Answers whose error is more than this share of their variation tell nothing.
_HOPELESS_NOISE = 0.1

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
    hopeless = (varies & (error > _HOPELESS_NOISE * noise.spread)).any()
    if hopeless and not noise.is_deterministic:
        return Status.NOT_DETERMINISTIC, (
            f"the same queries got other answers the second time, by up to "
            f"{noise.repeat_difference:.2g} of their size: more than a tenth of what varies"
        )
    if hopeless:
        k = int(np.argmax(np.where(varies, error / np.where(varies, noise.spread, 1.0), 0.0)))
        return Status.NOT_DETERMINISTIC, (
            f"output {k} varies by {noise.spread[k]:.2g} around {noise.scale[k]:.2g} and errs by "
            f"{error[k]:.1g}: too few digits are left of what varies"
        )
    return None


def has_all_digits(noise: NoiseFloor) -> bool:
    """Whether the exact method can be used."""
    varies, error = _varying(noise)
    return noise.is_exact and not (varies & (noise.spread < _FEWEST_DIGITS * error)).any()


def _varying(noise: NoiseFloor) -> tuple[BoolArray, FloatArray]:
    """Which outputs vary, and the error of an answer by output."""
    error = noise.nu * noise.scale
    ulp = np.finfo(np.float64).eps * noise.scale
    return np.asarray(noise.spread > _ULPS * ulp), np.asarray(error)


def without_invention(recovery: Recovery, noise: NoiseFloor) -> Recovery:
    """Noise that no network explains to within its own size follows no law."""
    if noise.law != "random" or recovery.status is not Status.UNVERIFIED:
        return recovery
    reason = (
        f"repeated queries differ by up to {noise.repeat_difference:.2g} of their size, and no "
        "network was found whose answers differ from the target's by such noise only"
    )
    return replace(
        recovery,
        status=Status.NOT_DETERMINISTIC,
        network=None,
        certificate=None,
        evidence=(reason,),
    )
