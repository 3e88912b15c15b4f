"""How many decimal digits numbers have, beside standard errors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from revelu.types import FloatArray


def digits_of(values: Sequence[FloatArray], errors: Sequence[FloatArray]) -> FloatArray:
    """Return the decimal digits of numbers that are as large as each other, in one row.

    A number has as many as its error is smaller than the root mean square of all: of a weight that
    is nearly 0 nobody wants the relative error.  None, 0, where the error is larger, or infinite.
    """
    value, error = (np.concatenate([a.ravel() for a in arrays]) for arrays in (values, errors))
    size = np.sqrt(np.mean(value**2)) if value.size else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log10(size / error)
    most = float(np.finfo(np.float64).precision) + 1.0
    return np.asarray(np.clip(np.nan_to_num(found, posinf=most, neginf=0.0), 0.0, most))


def digits_in_words(digits: Sequence[FloatArray]) -> str:
    """Say how many digits half of all numbers have, and nine tenths, and how many have none."""
    found = np.concatenate([np.zeros(0), *digits])
    told = found[found > 0.0]
    if not told.size:
        return "none of the weights is told"
    half, tenth = np.quantile(told, (0.5, 0.1))
    open_ = found.size - told.size
    lacking = f"; {open_:,} of {found.size:,} are not told" if open_ else ""
    return f"{int(half)} or more of half of the weights, {int(tenth)} of nine tenths{lacking}"


def digits_by_layer(digits: Sequence[FloatArray]) -> list[dict[str, Any]]:
    """Return for each layer what half of its numbers have, the fewest, and how many have none."""
    return [
        {
            "half": float(np.median(found)) if found.size else None,
            "fewest": float(found.min()) if found.size else None,
            "untold": int((found == 0.0).sum()),
            "numbers": int(found.size),
        }
        for found in digits
    ]
