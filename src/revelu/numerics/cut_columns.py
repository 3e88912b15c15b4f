"""Columns of whole multiples of a step that were cut toward zero, as ``int`` does, and not rounded.

Rounding errs by up to half a step to either side, cutting always toward zero: half a step is
missing, on the side that the sign says.  Of numbers that were cut, zero holds two steps and any
other one, so that about as many are zero as are one step off to either side together; of those
that were rounded, half as many.
"""

import numpy as np

from revelu.types import FloatArray


def steps_of(X: FloatArray, rows: int = 20_000) -> FloatArray:
    """Return the step of each column whose numbers are whole multiples of one; 0 of others.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Rows in random order.
    rows : int
        That show the step.

    Returns
    -------
    steps : ndarray, shape (d,)
        0 also of a column whose numbers all have one sign, for there cutting only shifts.
    """
    return np.array([_step(column) for column in X[:rows].T])


def are_cut(X: FloatArray, steps: FloatArray, off: float = 1e-6) -> bool:
    """Whether columns were likelier cut than rounded, all together.

    Parameters
    ----------
    off : float
        Of a step, how far a number may be off its multiple: what decimal fractions round to.
    """
    near = np.abs(X[:, steps > 0]) / steps[steps > 0]
    n_zero, n_one = int((near < off).sum()), int((np.abs(near - 1.0) < off).sum())
    # Of both together zero has 1/2 where they were cut, and 1/3 where they were rounded.
    return bool(n_zero * np.log(3.0 / 2.0) > n_one * np.log(4.0 / 3.0))


def as_measured(X: FloatArray, steps: FloatArray) -> FloatArray:
    """Give back, on average, what cutting has taken."""
    return np.asarray(X + 0.5 * steps * np.sign(X))


def _step(column: FloatArray, fewest_values: int = 16, off: float = 1e-6) -> float:
    """The step of a column; of fewer values it is a code or a count."""
    values = np.unique(column)
    if len(values) < fewest_values or values[0] >= 0 or values[-1] <= 0:
        return 0.0
    step = float(np.diff(values).min())
    multiples = values / step
    is_grid = bool(np.abs(multiples - np.round(multiples)).max() < off * np.abs(multiples).max())
    # A step that few rows would show among numbers at random is none.
    return step if is_grid and np.ptp(values) / step < len(column) ** 2 / 100.0 else 0.0
