"""Where units fire, from samples: a union of halfspaces, from yes and no alone.

GP18, Section 2.3: whatever a monotone polynomial does above, the set where an answer leaves
its constant is the union of ``w_i x >= t_i``.  In place of RefineEstimate's chance moves a
noisy OR of falling temperature is fitted to all units at once, and each unit is then the mean
of all halfspaces that agree with the samples it decides.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.union_fit import fit_union
from revelu.numerics.version_space import version_space
from revelu.types import BoolArray, FloatArray

# A sample that fires is another unit's where that unit's margin passes this many times the
# width of the border as n samples show it: d k / n.
_BORDER = 20.0


@dataclass(frozen=True)
class Firing:
    """Units by where they fire.

    Attributes
    ----------
    directions : ndarray, shape (k, d)
    thresholds, errors, threshold_errors : ndarray, shape (k,)
        Infinite errors where samples contradict a unit.
    n_unexplained : int
        Samples whose label the units do not give.
    """

    directions: FloatArray
    thresholds: FloatArray
    errors: FloatArray
    threshold_errors: FloatArray
    n_unexplained: int


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
        decides = ~fires | (others < -width)
        found.append(version_space(X[decides], fires[decides], W[i], float(t[i]), rng))
    directions = np.array([v.w for v in found]).reshape(k, d)
    thresholds = np.array([v.t for v in found])
    margins = X @ directions.T - thresholds
    unexplained = (margins >= 0).any(axis=1) != fires
    return Firing(
        directions,
        thresholds,
        np.array([v.angle for v in found]),
        np.array([v.deviation for v in found]),
        int(unexplained.sum()),
    )
