"""The span of a function's gradients: how few directions of its inputs it looks at.

A two-layer network's gradient at ``x`` is a combination of the rows of ``W`` that are
on there.  Gradients at Gaussian points, taken by finite differences at steps that noise
allows, span those rows; the singular values tell how many there are.
"""

from dataclasses import dataclass

import numpy as np

from revelu.oracle import NoiseFloor, Oracle
from revelu.types import FloatArray

# The step that balances the noise of a difference, nu / h, against the kinks that it
# crosses, a share of about h of the coordinates.
_STEP_FACTOR = 2.0

# Rows over and above the rank: they show where it ends.
_SPARE_ROWS = 2


@dataclass(frozen=True)
class GradientSpan:
    """An orthonormal basis of the directions that matter.

    Attributes
    ----------
    basis : ndarray, shape (r, d)
    singular_values : ndarray
        Of all gradients measured, largest first.
    """

    basis: FloatArray
    singular_values: FloatArray


def gradient_span(
    oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, max_rank: int
) -> GradientSpan | None:
    """Measure gradients until they add no direction.

    What lies under the noise of a difference is not counted: the last fit, in all
    coordinates, finds it.  The first two points are ``x`` and ``-x``: a neuron that is off
    at one is mostly on at the other.  More such pairs would be wasted, for the sum of both
    gradients is about the same everywhere.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
    rng : numpy.random.Generator
    max_rank : int
        Give up beyond it.

    Returns
    -------
    GradientSpan or None
        None where there are more than ``max_rank`` directions.
    """
    d = oracle.dim_in
    h = _STEP_FACTOR * float(np.cbrt(noise.nu.max()))
    rows: list[FloatArray] = []
    x = rng.standard_normal(d)
    points = [x, -x]
    while True:
        with oracle.round():
            for centre in points:
                X = np.vstack([centre, centre + h * np.eye(d)]).astype(np.float32)
                X = X.astype(np.float64)
                Y = oracle(X) / _unit(noise)
                rows.append(((Y[1:] - Y[0]) / np.diag(X[1:] - X[0])[:, None]).T)
        points = [rng.standard_normal(d)]
        gradients = np.vstack(rows)
        if not np.isfinite(gradients).all():
            return None
        _, values, vt = np.linalg.svd(gradients, full_matrices=False)
        # The norm of a random matrix is about the sum of the roots of its sides.
        sides = np.sqrt(len(gradients)) + np.sqrt(d)
        error = float((noise.nu * noise.scale / _unit(noise)).max())
        rank = int((values > 2.0 * error / h * sides).sum())
        if rank <= min(len(values) - _SPARE_ROWS, max_rank):
            return GradientSpan(vt[:rank], values)
        if len(gradients) >= max_rank + 2 * noise.scale.size + _SPARE_ROWS:
            return None


def _unit(noise: NoiseFloor) -> FloatArray:
    return np.where(noise.scale > 0, noise.scale, 1.0)
