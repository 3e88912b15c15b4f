"""All faces of a convex region, from yes and no: what is inside, ray by ray.

The complement of a union of halfspaces is convex, and so is an intersection (GP18, Section
2.3).  Where the paper estimates directions from samples and refines them by chance moves
(Algorithm 1), a ray from inside meets exactly one face, which is measured there and then to
the last digits.  A ray whose face is known costs one query: just before the predicted
crossing it must still be inside.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from revelu.errors import LimitReachedError
from revelu.numerics.confidence import upper_bound
from revelu.recover.rare.face import Facet, Inside, crossings, find_facet
from revelu.types import FloatArray

# Rays of a look; so many in a row without a new face end the search.
_LOOK = 64
_LAST_LOOK = 512

# N(0, I) in d dimensions ends at about sqrt(d) and so much more.
_BEYOND = 6.0

# A predicted crossing is checked so much before it, relative to its radius, or so many
# standard errors of the face; a face within as many of a known one is that one.
_BEFORE = 1e-6
_SIGMAS = 30.0

# A ray's radius is wanted to so much; it stands beside the smallest step of a face's search.
_RTOL = 1e-7

# Failures to measure a face, in a row, after which the border is taken to be no face.
_MAX_FAILURES = 12

_CONFIDENCE = 0.95


@dataclass
class Facets:
    """What was found.

    Attributes
    ----------
    normals : ndarray, shape (k, d)
        Rows of norm 1, leading out of the region.
    thresholds, errors, threshold_errors : ndarray, shape (k,)
    n_quiet : int
        Rays in a row, the last ones, that met no face that was not known.
    n_failures : int
        Rays at whose crossings the border was not flat, since the last face.
    ending : {"complete", "bent", "budget"}
    """

    normals: FloatArray
    thresholds: FloatArray
    errors: FloatArray
    threshold_errors: FloatArray
    n_quiet: int = 0
    n_failures: int = 0
    ending: str = "complete"
    reason: str = field(default="")

    @property
    def missed(self) -> float:
        """Share of rays that may meet an unknown face, at 95% confidence."""
        return upper_bound(0, self.n_quiet, _CONFIDENCE)


def recover_facets(
    inside: Inside,
    centre: FloatArray,
    rng: np.random.Generator,
    tell: Callable[[str], None] = lambda _: None,
) -> Facets:
    """Find the faces of a convex region as far as N(0, I) reaches.

    Parameters
    ----------
    inside : callable, (m, d) -> (m,) of bool
        Asks; may raise LimitReachedError.
    centre : ndarray, shape (d,)
        Inside, and best not near a face.
    rng : numpy.random.Generator
    tell : callable, (str) -> None

    Returns
    -------
    Facets
        ``ending`` is ``"bent"`` where the border is not made of faces, ``"budget"`` where
        queries ran out.
    """
    d = len(centre)
    far = np.linalg.norm(centre) + np.sqrt(d) + _BEYOND
    found: list[Facet] = []
    n_quiet = n_failures = 0
    ending, reason = "complete", ""
    try:
        while n_quiet < _LAST_LOOK:
            V = rng.standard_normal((_LOOK, d))
            V /= np.linalg.norm(V, axis=1, keepdims=True)
            before = np.minimum(before_crossing(found, centre, V), far)
            new = np.flatnonzero(~inside(centre + before[:, None] * V))
            if not len(new):
                n_quiet += _LOOK
                continue
            n_quiet, v = 0, V[new[:1]]
            radius = crossings(inside, centre, v, np.zeros(1), before[new[:1]], _RTOL)[0]
            facet = find_facet(inside, centre, v[0], float(radius), rng)
            if facet is not None and not any(_are_one(facet, known) for known in found):
                found.append(facet)
                n_failures = 0
                tell(f"{len(found)} faces")
                continue
            n_failures += 1
            if n_failures == _MAX_FAILURES:
                ending = "bent"
                break
    except LimitReachedError as error:
        ending, reason = "budget", str(error)
    return Facets(
        np.array([f.normal for f in found]).reshape(-1, d),
        np.array([f.threshold for f in found]),
        np.array([f.error for f in found]),
        np.array([f.threshold_error for f in found]),
        n_quiet,
        n_failures,
        ending,
        reason,
    )


def before_crossing(found: list[Facet], centre: FloatArray, V: FloatArray) -> FloatArray:
    """Radii just before rays leave the region that is known so far, infinite if they do not.

    Parameters
    ----------
    found : list of Facet
    centre : ndarray, shape (d,)
    V : ndarray, shape (m, d)
        Directions of norm 1.

    Returns
    -------
    ndarray, shape (m,)
    """
    if not found:
        return np.full(len(V), np.inf)
    W = np.array([f.normal for f in found])
    room = np.array([f.threshold for f in found]) - W @ centre
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = room / (V @ W.T)
        # (w + dw) (centre + r v) = t + dt moves r by (dt - r dw v) / (w v).
        moved = [f.threshold_error + f.error * np.linalg.norm(centre) for f in found]
        slack = np.maximum(
            _BEFORE, _SIGMAS * (np.array(moved) + np.array([f.error for f in found]) * reach) / room
        )
        radius = reach * (1.0 - slack)
    return np.asarray(np.where(reach > 0, np.maximum(radius, 0.0), np.inf).min(axis=1))


def _are_one(a: Facet, b: Facet) -> bool:
    near = float(np.linalg.norm(a.normal - b.normal)) <= _SIGMAS * (a.error + b.error)
    apart = abs(a.threshold - b.threshold)
    reach = 1.0 + abs(a.threshold)
    errors = a.threshold_error + b.threshold_error + reach * (a.error + b.error)
    return near and apart <= _SIGMAS * errors
