"""Why borders are not flat: they curve, labels change to and fro, or few digits tell them."""

from dataclasses import dataclass

import numpy as np

from revelu.recover.labels.borders import Borders
from revelu.recover.labels.facets import Facets, Precision
from revelu.recover.labels.heights import Ask, heights
from revelu.recover.method import Why

_ROUGH = (
    "labels change back and forth beside {share:.0%} of {n} borders: they depend on the input as "
    "if at random"
)
_FEW_DIGITS = (
    "borders are told to {noise:.0e} of an input only, not to the last digits of float64: labels "
    "of a target that computes in float32, or rounds its inputs, do not tell its weights yet"
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
    off: float = 64.0
    most_rough: float = 0.3
    fewest_flat: float = 0.25
    fewest: int = 12


def objection(
    ask: Ask,
    borders: Borders,
    facets: Facets,
    precision: Precision,
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
    if len(facets) >= roughness.fewest_flat * n:
        return _parallel(facets, roughness)
    some = borders.take(rng.permutation(n)[: roughness.n_places])
    share = _rough_share(ask, some, roughness, rng)
    if share > roughness.most_rough:
        return Why.REFUTED, _ROUGH.format(share=share, n=len(some))
    noise = _noise(ask, some, precision, rng)
    if noise > roughness.off * precision.rtol:
        return Why.UNRESOLVED, _FEW_DIGITS.format(noise=noise)
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


def _noise(ask: Ask, borders: Borders, precision: Precision, rng: np.random.Generator) -> float:
    """How far heights beside a place are off those of a plane, relative to an input's size.

    Over so short a distance every border is flat: ``t(u) + t(-u)`` is the noise of two heights.
    """
    n, d = borders.X.shape
    atol = precision.atol(borders.X)
    size = atol / precision.rtol
    U = rng.standard_normal((n, d))
    U *= (1e-8 * size / np.linalg.norm(U, axis=1))[:, None]
    X, E = np.vstack([borders.X + U, borders.X - U]), np.vstack([borders.E, borders.E])
    twice = np.tile(borders.a, 2)
    t = heights(ask, X, E, twice, np.tile(1e-7 * size, 2), np.tile(atol, 2)).reshape(2, n)
    return float(np.nanmedian(np.abs(t.sum(axis=0)) / size))
