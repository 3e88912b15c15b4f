"""All faces of a convex region, from yes and no: what is inside, ray by ray.

The complement of a union of halfspaces is convex, and so is an intersection (GP18, Section
2.3).  Where the paper estimates directions from samples and refines them by random moves
(Algorithm 1), a ray from inside meets exactly one face, which is measured there and then to
the last digits.  A ray whose face is known costs one query: just before the predicted
crossing it must still be inside.
"""

import numpy as np

from revelu.errors import LimitReachedError
from revelu.numerics.confidence import SIGMAS, at_most, upper_bound
from revelu.probe.gradient import unit_rows
from revelu.recover.method import Tell, Why
from revelu.recover.rare.face import Inside, crossings, find_facet
from revelu.recover.rare.units import Units, UnitsCandidate
from revelu.types import FloatArray

# Standard errors of a face that its error explains.  The error comes from three spare places:
# Student's t of 3 degrees of freedom passes 30 once in 12,000.
_SIGMAS = 30.0


def recover_facets(
    inside: Inside,
    d: int,
    rng: np.random.Generator,
    tell: Tell,
    *,
    n_rays: int = 64,
    n_quiet_rays: int = 512,
    beyond: float = 6.0,
    rtol: float = 1e-7,
    max_failures: int = 12,
) -> UnitsCandidate:
    """Find the faces of a convex region as far as N(0, I) reaches.

    Parameters
    ----------
    inside : callable, (m, d) -> (m,) of bool
        Asks; may raise LimitReachedError.
    n_rays : int
        Rays of a look; all are asked in one round.
    n_quiet_rays : int
        Rays in a row without a new face that end the search: at 95% confidence less than 0.6%
        of the rays meet another one then.
    beyond : float
        How far beyond ``|centre| + sqrt(d)`` rays are followed.  The norm of N(0, I) is about
        sqrt(d) with a standard deviation below 1, so that six of them leave nothing out.
    rtol : float
        Relative precision of the radius of a crossing: a thousandth of the smallest step
        beside it.
    max_failures : int
        Crossings in a row at which no new flat face is found before the search gives up: a
        few rays may meet edges, but not that many.

    Returns
    -------
    UnitsCandidate
        Its units fire outside.  ``REFUTED`` where the border is not made of faces, ``LIMIT``
        where queries ran out, ``UNRESOLVED`` where no face is seen.
    """
    found = Units.none(d)
    n_quiet = n_failures = 0
    centre: FloatArray | None = None
    why = Why.EXPLAINED
    notes: tuple[str, ...] = ()
    try:
        centre = find_centre(inside, d, rng, SIGMAS * rtol)
        if centre is None:
            return UnitsCandidate.none(d, Why.UNRESOLVED, _ONE_ANSWER, "facets")
        far = np.linalg.norm(centre) + np.sqrt(d) + beyond
        while n_quiet < n_quiet_rays and n_failures < max_failures:
            V = unit_rows(rng, n_rays, d)
            before = np.minimum(_before_crossing(found, centre, V, SIGMAS * rtol), far)
            new = np.flatnonzero(~inside(centre + before[:, None] * V))
            if not len(new):
                n_quiet += n_rays
                continue
            n_quiet, v, hi = 0, V[new[:1]], before[new[:1]]
            radius = crossings(inside, centre, v, np.zeros(1), hi, rtol * float(hi[0]))
            face = find_facet(inside, centre, v[0], float(radius[0]), rng)
            if face is None or _is_known(face, found):
                n_failures += 1
                continue
            found = found.joined(face)
            n_failures = 0
            tell(f"{len(found)} faces")
        if n_failures == max_failures:
            why, notes = Why.REFUTED, (_BENT.format(n=n_failures, k=len(found)),)
        elif not len(found):
            why, notes = Why.UNRESOLVED, (_NO_FACE.format(n=n_quiet),)
        else:
            notes = (_BEYOND.format(bound=at_most(100 * upper_bound(0, n_quiet)), far=far),)
    except LimitReachedError as error:
        why, notes = Why.LIMIT, (str(error),)
    return UnitsCandidate(why, found, notes, "facets", centre, n_quiet)


def find_centre(
    inside: Inside,
    d: int,
    rng: np.random.Generator,
    beside: float,
    *,
    radii: tuple[float, ...] = (1.0, 0.1, 10.0),
    n_inputs: int = 256,
    n_around: int = 64,
) -> FloatArray | None:
    """Find a place inside a convex region: the origin, or the mean of what is found.

    Parameters
    ----------
    inside : callable, (m, d) -> (m,) of bool
    beside : float
        How near the origin it is seen whether that is on a border: there it is taken only where
        nothing else is found.
    radii : tuple of float
        Standard deviations of the inputs among which an inside one is sought.
    n_inputs : int
        For each radius.
    n_around : int
        Inputs that tell that.

    Returns
    -------
    ndarray, shape (d,), or None
    """
    origin = np.zeros(d)
    labels = inside(np.vstack([origin, beside * rng.standard_normal((n_around, d))]))
    if labels.all():
        return origin
    for radius in radii:
        X = radius * rng.standard_normal((n_inputs, d))
        within = inside(X)
        if within.any():
            return np.asarray(X[within].mean(axis=0))
    return origin if labels[0] else None


def _before_crossing(found: Units, centre: FloatArray, V: FloatArray, before: float) -> FloatArray:
    """Radii just before rays leave the region that is known so far, infinite if they do not.

    That is before the crossing by ``before``, relative to the radius, or by what the errors
    of the face explain.
    """
    room = -found.margins(centre[None])[0]
    moved = found.threshold_errors + found.errors * np.linalg.norm(centre)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = room / (V @ found.directions.T)
        # (w + dw) (centre + r v) = t + dt moves r by (dt - r dw v) / (w v).
        slack = np.maximum(before, _SIGMAS * (moved + found.errors * reach) / room)
        radius = reach * (1.0 - slack)
    ahead = np.where(reach > 0, np.maximum(radius, 0.0), np.inf)
    return np.asarray(ahead.min(axis=1, initial=np.inf))


def _is_known(face: Units, found: Units) -> bool:
    """Whether a face differs from one that was found by no more than their errors explain."""
    error = face.errors + found.errors
    apart = (1.0 + np.abs(face.thresholds)) * error + face.threshold_errors
    near = np.linalg.norm(face.directions - found.directions, axis=1) <= _SIGMAS * error
    off = np.abs(face.thresholds - found.thresholds)
    return bool((near & (off <= _SIGMAS * (apart + found.threshold_errors))).any())


_ONE_ANSWER = (
    "all inputs, near and far, got the same label, that of the side that must be rare: no "
    "halfspace is known; shift the inputs to where labels differ, or try the other way to combine"
)
_NO_FACE = "no ray of {n:,} met a border within reach of N(0, I): the labels are constant there"
_BEYOND = (
    "what lies beyond is not seen: at 95% confidence less than {bound}% of the directions from a "
    "place inside meet a border that was not found, within {far:.3g} of there; farther none was "
    "sought"
)
_BENT = (
    "at {n} crossings in a row the border was not flat, after {k} faces: this is no union or "
    "intersection of halfspaces combined that way; try the other one"
)
