"""Where units fire, from samples: a union of halfspaces, from yes and no alone.

GP18, Section 2.3: whatever a monotone polynomial does above, the set where an answer leaves
its constant is the union of ``w_i x >= t_i``.  In place of RefineEstimate's random moves a
noisy OR of falling temperature is fitted to all units at once, and each unit is then the mean
of all halfspaces that agree with the samples it decides.
"""

from dataclasses import replace
from functools import reduce

import numpy as np
from scipy.special import ndtri

from revelu.recover.rare.union_fit import fit_union
from revelu.recover.rare.units import Units, largest_other
from revelu.recover.rare.version_space import version_space
from revelu.types import BoolArray, FloatArray


def border_width(k: int, d: int, n: int, *, times: float = 20.0) -> float:
    """Half of a border's width: beyond it a label that differs is wrong.

    Parameters
    ----------
    k, d, n : int
        ``n`` samples that fire place one of ``k`` borders in ``d`` dimensions to ``k d / n``.
    times : float
        So many of those.
    """
    return times * k * d / max(n, 1)


def fit_firing(
    X: FloatArray,
    fires: BoolArray,
    start: Units,
    rng: np.random.Generator,
) -> tuple[Units, BoolArray]:
    """Fit the union of halfspaces from a start, and walk among those that agree.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    fires : ndarray of bool, shape (n,)

    Returns
    -------
    units : Units
        Infinite errors where samples contradict a unit.
    unexplained : ndarray of bool, shape (n,)
        Samples whose label the units do not give, and that are beside no border.
    """
    W, t = fit_union(X, fires, start.directions, start.thresholds)
    k, d = W.shape
    width = border_width(k, d, int(fires.sum()))
    margins = X @ W.T - t
    found = []
    for i in range(k):
        decides = ~fires | ((largest_other(margins, i) < -width) & (margins[:, i] > -width))
        found.append(version_space(X[decides], fires[decides], W[i], float(t[i]), rng))
    units = reduce(Units.joined, found, Units.none(d))
    margins = units.margins(X)
    wrong = (margins >= 0).any(axis=1) != fires
    return units, np.asarray(wrong & (np.abs(margins).min(axis=1) > width))


def with_start(
    X: FloatArray,
    fires: BoolArray,
    found: tuple[Units, BoolArray],
    start: Units,
    *,
    max_unexplained: float = 0.02,
) -> tuple[Units, tuple[str, ...]]:
    """Replace units that labels contradict by their start, and say so.

    Labels with noise, a wrong number of units, or no halfspace at all: how softly samples
    begin to fire tells how far off a direction is, whatever moments or few labels say.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    fires : ndarray of bool, shape (n,)
    found : (Units, ndarray of bool)
        As of :func:`fit_firing`.
    max_unexplained : float
        Share of the samples that fire beyond which those unexplained put every unit in doubt,
        and not only the ones that labels contradict.
    """
    fitted, unexplained = found
    failed = ~np.isfinite(fitted.errors)
    units = replace(start, threshold_errors=start.errors).where(failed, fitted)
    many = unexplained.sum() > max_unexplained * fires.sum()
    for i in np.flatnonzero(failed | many):
        tan = estimate_tan_alpha(X, fires, units, int(i))
        for errors in (units.errors, units.threshold_errors):
            errors[i] = max(errors[i], np.arctan(tan))
    notes = []
    if failed.any():
        notes.append(_CONTRADICTED.format(m=int(failed.sum()), k=len(failed)))
    if unexplained.any():
        notes.append(_UNEXPLAINED.format(m=int(unexplained.sum())))
    return units, tuple(notes)


def estimate_tan_alpha(
    X: FloatArray, fires: BoolArray, units: Units, i: int, *, window: int = 40
) -> float:
    """How far a unit's direction may be off, by how softly samples begin to fire along it.

    GP18's EstimateTanAlpha, from stored samples: where other units do not fire, the share that
    does passes 0.4 and 0.6 at places ``2 z_0.6 tan(alpha)`` apart, z_0.6 being the normal
    quantile (Lemma 3).  What is no halfspace fires softly, too.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    fires : ndarray of bool, shape (n,)
    i : int
        The unit.
    window : int
        Neighbouring samples whose share is taken: of 40 it errs by 0.08, less than the 0.1 from
        a half to either level.

    Returns
    -------
    float
        Infinite where the share never passes 0.6.
    """
    low, high = 0.4, 0.6
    margins = units.margins(X)
    alone = largest_other(margins, i) < 0
    order = np.argsort(margins[alone, i])
    places, count = margins[alone, i][order], np.cumsum(np.append(0, fires[alone][order]))
    share = (count[window:] - count[:-window]) / window
    rises, full = np.flatnonzero(share >= low), np.flatnonzero(share >= high)
    if not len(full):
        return np.inf
    # From centre to centre, and half a window, which is what it blurs.
    first, last = rises[0] + window // 4, full[0] + 3 * window // 4
    return float(places[last] - places[first]) / float(ndtri(high) - ndtri(low))


_CONTRADICTED = (
    "{m} of {k} halfspaces are contradicted by labels, and known by their moments alone: labels "
    "with noise, more halfspaces than were fitted, or another function"
)
_UNEXPLAINED = "{m:,} labels are not explained: halfspaces are missing, or labels have noise"
