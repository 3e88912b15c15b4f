"""Why borders are not flat: they curve, labels change to and fro, or few digits tell them."""

from dataclasses import dataclass, replace

import numpy as np

from revelu.recover.labels.borders import Borders
from revelu.recover.labels.facets import Facets, Precision
from revelu.recover.labels.heights import Ask, heights
from revelu.recover.method import Why

_ROUGH = (
    "labels change back and forth beside {share:.0%} of {n} borders: they depend on the input as "
    "if at random"
)
_CURVED = (
    "of {n} places on borders {flat} are flat, however near one looks: borders of a network of "
    "one hidden layer of ReLUs are flat but for bends"
)
_PARALLEL = (
    "all {n} pieces of borders that were measured are parallel to axes, to {axes} of them: "
    "a tree, or several, not a network"
)


@dataclass(frozen=True)
class Roughness:
    """When borders are none of a network of ReLUs.

    Attributes
    ----------
    n_places : int
        Places looked at.
    n_points, near : int, float
        Labels asked along the line through each, as far off as this share of an input's size.
    apart : float
        Places are so far apart, relative to an input's size, that tell how large noise is.
    most_noise : float
        From labels that are noisier, relative to an input's size, no weights are told.
    off : float
        Noise that is so many times as large as the precision of float64 is another one's.
    most_rough : float
        A larger share of places, beside which labels change to and fro, is rough.
    fewest_flat : float
        As flat as a network's borders are those of which a larger share is.
    fewest : int
        Facets that are needed to call all of them parallel to axes.
    """

    n_places: int = 12
    n_points: int = 24
    near: float = 1e-5
    apart: float = 1e-5
    most_noise: float = 3e-6
    off: float = 64.0
    most_rough: float = 0.3
    fewest_flat: float = 0.25
    fewest: int = 12


def are_rough(borders: Borders, facets: Facets, roughness: Roughness) -> bool:
    """Whether so few of the facets sought at borders were flat that a network has others."""
    return len(facets) < roughness.fewest_flat * len(borders)


def noise_floor(
    ask: Ask,
    borders: Borders,
    precision: Precision,
    roughness: Roughness,
    rng: np.random.Generator,
) -> float | None:
    """How precisely labels tell borders, relative to an input's size; None where precisely enough.

    Heights very near a place tell that they are off a plane, however borders curve.  Those of
    targets that round their inputs are off alike so near, and tell by how much farther apart.
    """
    some = borders.take(rng.permutation(len(borders))[: roughness.n_places])
    noise = _noise(ask, some, precision, rng, 1e-8)
    if not noise > roughness.off * precision.rtol:
        return None
    coarse = replace(precision, rtol=noise / 8.0)
    return max(noise, _noise(ask, some, coarse, rng, roughness.apart))


def objection(
    ask: Ask,
    borders: Borders,
    facets: Facets,
    roughness: Roughness,
    rng: np.random.Generator,
) -> tuple[Why, str] | None:
    """Say why borders, of which ``facets`` were flat, are none of a network; None if they may be.

    Parameters
    ----------
    ask : Ask
    borders : Borders
        Where facets were sought.
    """
    n = len(borders)
    if not are_rough(borders, facets, roughness):
        return _parallel(facets, roughness)
    some = borders.take(rng.permutation(n)[: roughness.n_places])
    share = _rough_share(ask, some, roughness, rng)
    if share > roughness.most_rough:
        return Why.REFUTED, _ROUGH.format(share=share, n=len(some))
    return Why.CURVED, _CURVED.format(n=n, flat=len(facets) or "none")


def _parallel(facets: Facets, roughness: Roughness) -> tuple[Why, str] | None:
    """Whether normals are axes, several of them."""
    size = np.abs(facets.N)
    axes = len(np.unique(size.argmax(axis=1)))
    is_parallel = np.sort(size, axis=1)[:, :-1].max(initial=0.0) < 1e-6
    if len(facets) < roughness.fewest or axes < 2 or not is_parallel:
        return None
    return Why.DISCONTINUOUS, _PARALLEL.format(n=len(facets), axes=axes)


def _rough_share(
    ask: Ask, borders: Borders, roughness: Roughness, rng: np.random.Generator
) -> float:
    """Share of places at which the line through them crosses several borders."""
    n, d = borders.X.shape
    t = np.sort(rng.uniform(-1.0, 1.0, (n, roughness.n_points)), axis=1)
    t *= roughness.near * np.maximum(np.abs(borders.X).max(axis=1), 1.0)[:, None]
    X = borders.X[:, None] + t[:, :, None] * borders.E[:, None]
    inside = ask(X.reshape(-1, d)).reshape(t.shape) == borders.a[:, None]
    return float(((inside[:, 1:] != inside[:, :-1]).sum(axis=1) > 1).mean())


def _noise(
    ask: Ask, borders: Borders, precision: Precision, rng: np.random.Generator, apart: float
) -> float:
    """How far heights beside a place are off those of a plane, relative to an input's size.

    Over so short a distance every border is flat: ``t(u) + t(-u)`` is the noise of two heights.
    """
    n, d = borders.X.shape
    atol = precision.atol(borders.X)
    size = atol / precision.rtol
    U = rng.standard_normal((n, d))
    U *= (apart * size / np.linalg.norm(U, axis=1))[:, None]
    X, E = np.vstack([borders.X + U, borders.X - U]), np.vstack([borders.E, borders.E])
    twice = np.tile(borders.a, 2)
    width = np.tile(10.0 * apart * size, 2)
    t = heights(ask, X, E, twice, width, np.tile(atol, 2)).reshape(2, n)
    return float(np.nanmedian(np.abs(t.sum(axis=0)) / size))
