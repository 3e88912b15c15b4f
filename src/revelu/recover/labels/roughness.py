"""Why borders are none of a network: they curve, change to and fro, or are parallel to axes."""

from dataclasses import dataclass

import numpy as np

from revelu.recover.labels.borders import Borders
from revelu.recover.labels.facets import Facets, Precision
from revelu.recover.labels.heights import Ask
from revelu.recover.labels.noise import second_differences
from revelu.recover.method import Why
from revelu.types import BoolArray, FloatArray

_ROUGH = (
    "labels change back and forth beside {share:.0%} of {n} borders: they depend on the input as "
    "if at random"
)
_CURVED = (
    "of {n} places on borders {curved} leave their tangents by the square of the distance, down to "
    "what labels tell{flat}: borders of a network of one hidden layer of ReLUs are flat but for "
    "bends"
)
_PARALLEL = (
    "all {n} pieces of borders that were measured are parallel to axes, to {axes} of them: "
    "a tree, or several, not a network"
)

_ROUNDED = (
    "all {n} pieces of borders that were measured are parallel to axes, where inputs round to "
    "another float16: labels of a target that rounds its inputs to so few digits do not tell its "
    "weights yet"
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
    most_rough : float
        A larger share of places, beside which labels change to and fro, is rough.
    fewest_flat : float
        As flat as a network's borders are those of which a larger share is.
    fewest : int
        Facets that are needed to call all of them parallel to axes.
    farthest, n_halvings : float, int
        Where labels tell few digits, borders are looked at so far around a place, relative to an
        input's size, and at halves of that, as far as they are off a plane there
    room : float
        by more than so many times the noise.
    ratios : tuple of float
        At half the distance a curved border is off its tangent by a quarter, between so many
        times less.  One bend at a distance s is off by ``κ (h - s)``, which less than 3 times
        less is at h / 2 where any of it is left at h / 4; several bends may come to 4 by chance.
    fewest_known, most_curved : int, float
        A larger share of so many places at least is not curved by chance.
    """

    n_places: int = 12
    n_points: int = 24
    near: float = 1e-5
    most_rough: float = 0.3
    fewest_flat: float = 0.25
    fewest: int = 12
    farthest: float = 0.1
    n_halvings: int = 6
    room: float = 16.0
    ratios: tuple[float, float] = (3.2, 5.0)
    fewest_known: int = 6
    most_curved: float = 0.7


def are_rough(borders: Borders, facets: Facets, roughness: Roughness) -> bool:
    """Whether so few of the facets sought at borders were flat that a network has others."""
    return len(facets) < roughness.fewest_flat * len(borders)


def objection(facets: Facets, roughness: Roughness) -> tuple[Why, str] | None:
    """Say why pieces of borders that are flat are none of a network; None if they may be.

    Normals may be axes, several of them.
    """
    size = np.abs(facets.N)
    axes = len(np.unique(size.argmax(axis=1)))
    is_parallel = np.sort(size, axis=1)[:, :-1].max(initial=0.0) < 1e-6
    if len(facets) < roughness.fewest or axes < 2 or not is_parallel:
        return None
    if _are_of_float16(facets):
        return Why.UNRESOLVED, _ROUNDED.format(n=len(facets))
    return Why.DISCONTINUOUS, _PARALLEL.format(n=len(facets), axes=axes)


def _are_of_float16(facets: Facets, room: float = 64.0) -> bool:
    """Whether all pieces, which are parallel to axes, are where inputs round to another float16.

    The thresholds of a tree are there by chance alone, which one in thousands is.
    """
    x = np.take_along_axis(facets.X, np.abs(facets.N).argmax(axis=1)[:, None], axis=1)[:, 0]
    off = room * facets.off
    with np.errstate(over="ignore"):
        below, above = (x - off).astype(np.float16), (x + off).astype(np.float16)
    return bool((below != above).all())


def restlessness(
    ask: Ask, borders: Borders, noise: float, roughness: Roughness, rng: np.random.Generator
) -> tuple[Why, str] | None:
    """Say that labels change to and fro beside borders, farther off than ``noise``; or None."""
    some = borders.take(rng.permutation(len(borders))[: roughness.n_places])
    share = _rough_share(ask, some, max(roughness.near, 32.0 * noise), rng, roughness.n_points)
    if share > roughness.most_rough:
        return Why.REFUTED, _ROUGH.format(share=share, n=len(some))
    return None


def curvature(
    ask: Ask,
    borders: Borders,
    facets: Facets,
    precision: Precision,
    roughness: Roughness,
    rng: np.random.Generator,
) -> tuple[Why, str] | None:
    """Say that borders are seen to curve, of which ``facets`` were flat; None if they need not.

    Pieces of borders may be flat, and smaller than labels tell.
    """
    some = borders.take(rng.permutation(len(borders))[: roughness.n_places])
    known, curved = _are_curved(ask, some, precision, roughness, rng)
    if known.sum() < roughness.fewest_known or curved.sum() <= roughness.most_curved * known.sum():
        return None
    # Where few digits are told, small pieces of curved borders pass for flat.
    flat = "" if len(facets) else ", and none are flat, however near one looks"
    return Why.CURVED, _CURVED.format(n=known.sum(), curved=curved.sum(), flat=flat)


def _are_curved(
    ask: Ask,
    borders: Borders,
    precision: Precision,
    roughness: Roughness,
    rng: np.random.Generator,
) -> tuple[BoolArray, BoolArray]:
    """Whether places are off their tangents at three distances, the least that tell, and evenly."""
    apart = roughness.farthest * 0.5 ** np.arange(roughness.n_halvings, dtype=np.float64)
    off, size = second_differences(ask, borders, precision, rng, apart)
    told = np.abs(off) > roughness.room * precision.rtol * size
    lo, hi = roughness.ratios
    known, curved = np.zeros(len(size), bool), np.zeros(len(size), bool)
    for i, places in enumerate(told.T):
        n_told = len(places) if places.all() else int(places.argmin())
        if n_told < 3:
            continue
        three: FloatArray = off[n_told - 3 : n_told, i]
        ratios = three[:-1] / three[1:]
        known[i], curved[i] = True, bool(((ratios > lo) & (ratios < hi)).all())
    return known, curved


def _rough_share(
    ask: Ask, borders: Borders, near: float, rng: np.random.Generator, n_points: int
) -> float:
    """Share of places at which the line through them crosses several borders, so near."""
    n, d = borders.X.shape
    t = np.sort(rng.uniform(-1.0, 1.0, (n, n_points)), axis=1)
    t *= near * np.maximum(np.abs(borders.X).max(axis=1), 1.0)[:, None]
    X = borders.X[:, None] + t[:, :, None] * borders.E[:, None]
    inside = ask(X.reshape(-1, d)).reshape(t.shape) == borders.a[:, None]
    return float(((inside[:, 1:] != inside[:, :-1]).sum(axis=1) > 1).mean())
