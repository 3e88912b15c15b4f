"""Where units fire, from samples: a union of halfspaces, from yes and no alone.

GP18, Section 2.3: whatever a monotone polynomial does above, the set where an answer leaves
its constant is the union of ``w_i x >= t_i``.  In place of RefineEstimate's chance moves a
noisy OR of falling temperature is fitted to all units at once, and each unit is then the mean
of all halfspaces that agree with the samples it decides.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from revelu.recover.rare.union_fit import fit_union
from revelu.recover.rare.version_space import version_space
from revelu.types import BoolArray, FloatArray

# A sample that fires is another unit's where that unit's margin passes this many times the
# width of the border as n samples show it: d k / n; and no unit's where all of them fail it.
_BORDER = 20.0

# Samples beside a border whose share is taken, and the shares that the width is read from.
_WINDOW = 40
_SHARES = (0.4, 0.6)


@dataclass(frozen=True)
class Firing:
    """Units by where they fire.

    Attributes
    ----------
    directions : ndarray, shape (k, d)
    thresholds, errors, threshold_errors : ndarray, shape (k,)
        Infinite errors where samples contradict a unit.
    unexplained : ndarray of bool, shape (n,)
        Samples whose label the units do not give, and that are beside no border.
    """

    directions: FloatArray
    thresholds: FloatArray
    errors: FloatArray
    threshold_errors: FloatArray
    unexplained: BoolArray


def fit_firing(
    X: FloatArray,
    fires: BoolArray,
    W: FloatArray,
    t: FloatArray,
    rng: np.random.Generator,
) -> Firing:
    """Fit the union of halfspaces from a start, and walk among those that agree.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    fires : ndarray of bool, shape (n,)
    W : ndarray, shape (k, d)
        Rows of norm 1.
    t : ndarray, shape (k,)
    rng : numpy.random.Generator
    """
    W, t = fit_union(X, fires, W, t)
    k, d = W.shape
    width = _BORDER * d * k / max(int(fires.sum()), 1)
    margins = X @ W.T - t
    found = []
    for i in range(k):
        others = np.delete(margins, i, axis=1).max(axis=1, initial=-np.inf)
        decides = ~fires | ((others < -width) & (margins[:, i] > -width))
        found.append(version_space(X[decides], fires[decides], W[i], float(t[i]), rng))
    directions = np.array([v.w for v in found]).reshape(k, d)
    thresholds = np.array([v.t for v in found])
    margins = X @ directions.T - thresholds
    wrong = (margins >= 0).any(axis=1) != fires
    return Firing(
        directions,
        thresholds,
        np.array([v.angle for v in found]),
        np.array([v.deviation for v in found]),
        np.asarray(wrong & (np.abs(margins).min(axis=1) > width)),
    )


def estimate_tan_alpha(
    X: FloatArray, fires: BoolArray, W: FloatArray, t: FloatArray, i: int
) -> float:
    """How far a unit's direction may be off, by how softly samples begin to fire along it.

    GP18's EstimateTanAlpha, from stored samples: where other units do not fire, the share that
    does passes 0.4 and 0.6 at places ``2 z_0.6 tan(alpha)`` apart, z_0.6 being the normal
    quantile (Lemma 3).  What is no halfspace fires softly, too.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    fires : ndarray of bool, shape (n,)
    W : ndarray, shape (k, d)
    t : ndarray, shape (k,)
    i : int
        The unit.

    Returns
    -------
    float
        Infinite where the share never passes 0.6.
    """
    margins = X @ W.T - t
    alone = np.delete(margins, i, axis=1).max(axis=1, initial=-np.inf) < 0
    order = np.argsort(margins[alone, i])
    places, count = margins[alone, i][order], np.cumsum(np.append(0, fires[alone][order]))
    share = (count[_WINDOW:] - count[:-_WINDOW]) / _WINDOW
    rises, full = np.flatnonzero(share >= _SHARES[0]), np.flatnonzero(share >= _SHARES[1])
    if not len(full):
        return np.inf
    # From centre to centre, and half a window, which is what it blurs.
    low, high = rises[0] + _WINDOW // 4, full[0] + 3 * _WINDOW // 4
    apart = float(places[high] - places[low])
    return apart / float(ndtri(_SHARES[1]) - ndtri(_SHARES[0]))
