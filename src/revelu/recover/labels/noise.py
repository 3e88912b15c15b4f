"""How precisely labels tell places, measured at a target.

One that computes in float32 rounds inputs and outputs: a bisection ends where labels change to
and fro.  Heights around a place then leave its plane by that much, however near they are, and all
that is told by heights inherits it.
"""

from dataclasses import replace

import numpy as np

from revelu.recover.labels.borders import Borders
from revelu.recover.labels.facets import Precision
from revelu.recover.labels.heights import Ask, heights
from revelu.recover.labels.told import Rounding
from revelu.types import FloatArray


def noise_of_places(
    ask: Ask, borders: Borders, precision: Precision, rounding: Rounding, rng: np.random.Generator
) -> float:
    """How precisely labels tell borders, relative to an input's size; 0 where float64 does.

    Heights very near a place tell that they are off a plane, however borders curve.  Those of
    targets that round their inputs are off alike so near, and tell by how much farther apart.
    """
    some = borders.take(rng.permutation(len(borders))[: rounding.n_places])
    noise = max(_off_planes(ask, some, precision, rng, apart) for apart in rounding.nearest)
    if not noise > rounding.off * precision.rtol:
        return 0.0
    coarse = replace(precision, rtol=noise / 8.0)
    return max(noise, _off_planes(ask, some, coarse, rng, rounding.farther))


def _off_planes(
    ask: Ask, borders: Borders, precision: Precision, rng: np.random.Generator, apart: float
) -> float:
    """How far heights beside a place are off those of a plane, relative to an input's size."""
    off, size = second_differences(ask, borders, precision, rng, np.array([apart]))
    return float(np.nanmedian(np.abs(off[0]) / size))


def second_differences(
    ask: Ask,
    borders: Borders,
    precision: Precision,
    rng: np.random.Generator,
    apart: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """``t(u) + t(-u)`` of heights at distances along a random direction u, and inputs' sizes.

    Parameters
    ----------
    apart : ndarray, shape (k,)
        Distances, relative to an input's size.

    Returns
    -------
    off : ndarray, shape (k, n)
        NaN where no border was found.  On a plane it is the noise of heights.
    size : ndarray, shape (n,)
    """
    (n, d), k = borders.X.shape, len(apart)
    atol = precision.atol(borders.X)
    size = atol / precision.rtol
    U = rng.standard_normal((n, d))
    # Along the border, heights stay small beside the distance.
    U -= (U * borders.E).sum(axis=1)[:, None] * borders.E
    U /= np.linalg.norm(U, axis=1)[:, None]
    steps = np.array([1.0, -1.0])[:, None] * apart
    X = borders.X + (steps[:, :, None] * size)[..., None] * U
    t = heights(
        ask,
        X.reshape(-1, d),
        np.tile(borders.E, (2 * k, 1)),
        np.tile(borders.a, 2 * k),
        np.tile((10.0 * apart[:, None] * size).ravel(), 2),
        np.tile(atol, 2 * k),
    ).reshape(2, k, n)
    return np.asarray(t.sum(axis=0)), size
