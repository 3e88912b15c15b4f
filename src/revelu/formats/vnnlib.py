"""VNN-LIB: what verifiers of networks are asked, a box and what outputs must not be."""

from pathlib import Path

import numpy as np

from revelu.formats.arrays import replace_file
from revelu.types import FloatArray


def dump(path: Path, low: FloatArray, high: FloatArray, n_outputs: int, tolerance: float) -> None:
    """Ask for an input in a box at which some output is beyond a tolerance, either way.

    A verifier that answers ``unsat`` has proved that there is none.

    Parameters
    ----------
    path : Path
    low, high : ndarray, shape (d,)
        Smallest and largest value of each input.
    n_outputs : int
    tolerance : float
        Smallest size of an output that counts.

    Raises
    ------
    FormatError
        If the file cannot be written.
    """
    lines = [f"(declare-const X_{i} Real)" for i in range(len(low))]
    lines += [f"(declare-const Y_{o} Real)" for o in range(n_outputs)]
    for i, (lo, hi) in enumerate(zip(low, high, strict=True)):
        lines += [f"(assert (>= X_{i} {_number(lo)}))", f"(assert (<= X_{i} {_number(hi)}))"]
    lines.append("(assert (or")
    for o in range(n_outputs):
        lines.append(f"  (and (>= Y_{o} {_number(tolerance)}))")
        lines.append(f"  (and (<= Y_{o} {_number(-tolerance)}))")
    lines.append("))")
    replace_file(path, ("\n".join(lines) + "\n").encode("ascii"))


def _number(value: float) -> str:
    """A decimal to the last bit: the format knows no exponents."""
    return np.format_float_positional(value, trim="0")
