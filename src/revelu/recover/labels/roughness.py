"""Why borders are none of a network: they curve, change to and fro, or are parallel to axes."""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.probe.heights import Ask, input_sizes
from revelu.recover.labels.borders import Borders
from revelu.recover.labels.facets import Facets
from revelu.recover.labels.precision import Precision, second_differences
from revelu.recover.method import Why
from revelu.types import BoolArray, FloatArray, IntArray

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
    "all {n} pieces of borders that were measured are parallel to axes, to {axes} of them, in "
    "{planes} planes: labels of a tree, or of several; of networks only those have such whose "
    "maxima make boxes or whose slopes make steps"
)

_BOX = (
    "all {n} pieces of borders that were measured are parallel to axes, to {axes} of them, in "
    "{planes} planes, and bound a single box: labels of a tree, or of the maximum of as many "
    "neurons, which they do not tell apart"
)
_FEW = (
    "all {n} pieces of borders that were measured are parallel to axes, to {axes} of them, in "
    "{planes} planes: as few are a network's, too, of whose neurons few are on there"
)
_ROUNDED = (
    "all {n} pieces of borders that were measured are parallel to axes, where inputs round to "
    "another float16: labels of a target that rounds its inputs to so few digits do not tell its "
    "weights yet"
)


@dataclass(frozen=True)
class Roughness:
    """When borders are none of a network of ReLUs."""

    n_places: int = 12
    """Places looked at."""
    n_points: int = 24
    near: float = 1e-5
    """Labels asked along the line through each, as far off as this share of an input's size."""
    most_rough: float = 0.3
    """A larger share of places, beside which labels change to and fro, is rough."""
    fewest_flat: float = 0.25
    """As flat as a network's borders are those of which a larger share is."""
    fewest: int = 12
    parallel: float = 1e-6
    """Facets that are needed to call all of them parallel to axes, and the largest angle to one, in
    radians."""
    most_planes: int = 2
    """Planes parallel to one axis that the borders of a network's box have, a lower and an upper
    one: more of them, on average, each for a pair of classes, are a tree's at once."""
    fewest_planes: int = 4
    """Fewer in all are told from a network's by no corners: where all neurons but one or two are
    off, borders are parallel to axes, too."""
    n_generations: int = 6
    """Fewer planes are a tree's where walks across corners, all generations of them or up to where
    hyperplanes end, have met no others: at the corners of a box that neurons of one hidden layer
    make, borders have slanting pieces, too."""
    n_rowless: int = 2
    """Generations that tell no neuron to its digits after which it is seen whether borders curve by
    so little that pieces of them pass for flat."""
    farthest: float = 0.1
    n_halvings: int = 6
    """Where labels tell few digits, borders are looked at so far around a place, relative to an
    input's size, and at halves of that, as far as they are off a plane there"""
    room: float = 2.0 * SIGMAS
    """by more than ``room`` times the noise, as many as wherever heights are held against it."""
    beside: float = 64.0
    """Planes parallel to an axis are one where they are apart by no more than ``beside`` times what
    their facets may be off, and float16 rounds to another number where it does so near."""
    ratios: tuple[float, float] = (3.2, 5.0)
    """At half the distance a curved border is off its tangent by a quarter, between these times
    less.  One bend at a distance s is off by ``κ (h - s)``, which less than 3 times less is at h /
    2 where any of it is left at h / 4; several bends may come to 4 by chance."""
    fewest_known: int = 6
    most_curved: float = 0.7
    """A larger share than ``most_curved`` of ``fewest_known`` places is not curved by chance."""


def are_rough(borders: Borders, facets: Facets, roughness: Roughness) -> bool:
    """Whether so few of the facets sought at borders were flat that a network has others."""
    return len(facets) < roughness.fewest_flat * len(borders)


@dataclass(frozen=True, eq=False)
class OwnInputs:
    """The target's own inputs as functions of coordinates: ``c + z @ M``."""

    c: FloatArray
    M: FloatArray
    """Shape (m,) and (r, m)."""

    def inside(self, basis: FloatArray) -> "OwnInputs":
        """Return them as functions of coordinates of a subspace, ``basis (q, r)``."""
        return OwnInputs(self.c, basis @ self.M)

    def across(self, facets: Facets) -> tuple[IntArray, FloatArray, FloatArray]:
        """The input that varies most directly across each facet, which way, and the angle left."""
        sizes = np.linalg.norm(self.M, axis=0)
        units = self.M / np.where(sizes > 0, sizes, 1.0)
        along = facets.N @ units
        which = np.abs(along).argmax(axis=1)
        sign = np.sign(along[np.arange(len(which)), which])
        return which, sign, np.linalg.norm(facets.N - sign[:, None] * units.T[which], axis=1)

    def thresholds(self, facets: Facets, which: IntArray) -> tuple[FloatArray, FloatArray]:
        """Where facets lie along an input each, in its own unit, and how precisely, (n,)."""
        columns = self.M.T[which]
        x = self.c[which] + (facets.X * columns).sum(axis=1)
        return x, facets.off * np.linalg.norm(columns, axis=1)


def objection(
    facets: Facets, own: OwnInputs, roughness: Roughness, *, is_unexplained: bool = False
) -> tuple[Why, str] | None:
    """Say why pieces of borders that are flat are none of a network; None if they may be.

    Normals may be axes of the target's own inputs, several of them.

    Parameters
    ----------
    is_unexplained : bool
        Whether corners were walked across, and no network explains them.
    """
    if len(facets) < roughness.fewest:
        return None
    which, sign, angle = own.across(facets)
    axes = len(np.unique(which))
    if axes < 2 or angle.max() > roughness.parallel:
        return None
    x, off = own.thresholds(facets, which)
    off = roughness.beside * off
    plane = _planes(which, x, off)
    planes = int(plane.max()) + 1
    # A plane that parts several pairs of classes stands for as many.
    pairs = len(np.unique([plane, facets.a, facets.b], axis=1).T)
    if pairs <= roughness.most_planes * axes and not is_unexplained:
        return None
    if planes < roughness.fewest_planes:
        return Why.UNRESOLVED, _FEW.format(n=len(facets), axes=axes, planes=planes)
    if _are_of_float16(x, off):
        return Why.UNRESOLVED, _ROUNDED.format(n=len(facets))
    # Each side of a box has its own plane, which leads from one of two classes to the other.
    side = 2 * which + (sign * (facets.b - facets.a) > 0)
    is_box = planes == len(np.unique(side)) and len(np.unique([facets.a, facets.b])) == 2
    why, said = (Why.UNRESOLVED, _BOX) if is_box else (Why.DISCONTINUOUS, _PARALLEL)
    return why, said.format(n=len(facets), axes=axes, planes=planes)


def _planes(which: IntArray, x: FloatArray, off: FloatArray) -> IntArray:
    """Which plane each facet lies in, across one input at one place, (n,)."""
    order = np.lexsort((x, which))
    i, t, e = which[order], x[order], off[order]
    other = (i[1:] != i[:-1]) | (t[1:] - t[:-1] > e[1:] + e[:-1])
    found = np.empty(len(which), np.intp)
    found[order] = np.append(0, other.cumsum())
    return found


def _are_of_float16(x: FloatArray, off: FloatArray) -> bool:
    """Whether all pieces, which are parallel to axes, are where inputs round to another float16.

    The thresholds of a tree are there by chance alone, which one in thousands is.
    """
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
    t *= near * input_sizes(borders.X)[:, None]
    X = borders.X[:, None] + t[:, :, None] * borders.E[:, None]
    inside = ask(X.reshape(-1, d)).reshape(t.shape) == borders.a[:, None]
    return float(((inside[:, 1:] != inside[:, :-1]).sum(axis=1) > 1).mean())
