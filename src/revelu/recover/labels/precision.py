"""How precisely labels tell places, and how that error travels to facets and to neurons.

A target that computes in float32 rounds inputs and outputs: a bisection ends where labels change to
and fro.  Heights around a place then leave its plane by that much, however near they are, and all
that is told by heights inherits it.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.probe.heights import Ask, heights, input_sizes
from revelu.recover.labels.borders import Borders
from revelu.types import FloatArray


@dataclass(frozen=True)
class Rounding:
    """How the noise of places is measured, and what is derived from it."""

    n_places: int = 24
    """Places looked at."""
    nearest: tuple[float, ...] = (1e-8, 1e-7, 1e-6)
    farther: float = 1e-5
    """How far around them, relative to an input's size: all borders are flat so near, but for less
    than ``off``; and where inputs are rounded alike, farther apart they are not."""
    off: float = 64.0
    """Noise that is ``off`` times as large as the precision of float64 is another one's."""
    normals: float = 1e-6
    """Normals are to be told to this, in radians,"""
    shortest: float = 4e-3
    longest: float = 0.1
    """by heights no nearer and no farther out than this, relative to an input's size: other bends
    lie farther out."""
    bend: float = 0.1
    """A bend as slight as this, in radians, is to tell its neuron."""
    largest: float = 1e-3
    """Neurons that would be told less precisely cannot be told from each other."""


@dataclass(frozen=True)
class Told:
    """To what labels tell, one from the other."""

    places: float
    """Of borders, relative to an input's size."""
    step: float
    """How far beside a place, relative to an input's size, heights tell its normal."""
    normals: float
    """Of facets, in radians: ``places / step``."""
    rows: float
    """Of neurons, by the two normals at a bend: ``2 normals / bend``."""
    bend: float
    """As of :class:`Rounding`."""

    @classmethod
    def to(cls, places: float, rounding: Rounding) -> "Told":
        """What follows where labels tell ``places``."""
        step = min(max(places / rounding.normals, rounding.shortest), rounding.longest)
        normals = places / step
        return cls(places, step, normals, 2.0 * normals / rounding.bend, rounding.bend)


@dataclass(frozen=True)
class Precision:
    """How precisely labels tell places."""

    rtol: float = 1e-13
    """Borders are told to this share of an input's size: some roundings of float64."""
    flat: float = 8.0
    """A facet is flat where its plane tells the labels at this many times that distance."""
    n_tests: int = 4
    """Places around a point at which that is seen."""
    shrink: float = 8.0
    """What is not flat is measured again so much nearer."""
    attempts: int = 3
    coarse: tuple[float, int] = (2.5, 4)
    """``shrink`` and ``attempts`` where labels tell few digits."""

    def at(self, told: Told) -> "Precision":
        """Return what serves where labels tell few digits.

        Normals are the better the wider the places lie apart, and a piece that just fits into its
        facet is found by smaller steps.
        """
        shrink, attempts = self.coarse
        return replace(self, rtol=told.places, shrink=shrink, attempts=attempts)

    def atol(self, X: FloatArray) -> FloatArray:
        """Return how precisely places of borders beside ``X (n, d)`` are told, (n,)."""
        return np.asarray(self.rtol * input_sizes(X))


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
