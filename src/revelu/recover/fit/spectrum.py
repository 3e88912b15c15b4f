"""How many eigenvalues of an estimated symmetric matrix are more than chance."""

import numpy as np

from revelu.types import FloatArray

# A gap is one where the first eigenvalue past it is this much smaller, and near to chance.
_GAP = 1.7
_CHANCE = 1.5

# From so many inputs a fit in all coordinates takes long: there a rank without a gap will do.
MANY_INPUTS = 30


def chance_eigenvalue(deviation: float, d: int, n: int) -> float:
    """The largest eigenvalue that the second Hermite coefficient of noise would have.

    Parameters
    ----------
    deviation : float
        Of what is averaged.
    d, n : int
        Inputs; samples.

    Notes
    -----
    Entries of the estimate have the variance ``s^2 / n``, twice that on the diagonal, and a
    random symmetric matrix of such entries has the norm ``2 s sqrt(d / n)``.
    """
    return float(2.0 * deviation * np.sqrt(d / max(n, 1)))


def rank_by_gap(sizes: FloatArray, chance: float, known: int | None = None) -> int:
    """Count eigenvalues that are no chance, where a gap, or many inputs, make that clear.

    Parameters
    ----------
    sizes : ndarray, shape (d,)
        Descending and positive.
    chance : float
        The largest that chance gives.
    known : int, optional
        The rank, if known: it is returned if there is a gap after it.

    Returns
    -------
    int
        0 where nothing is clear.
    """
    ratios = sizes[:-1] / np.maximum(sizes[1:], np.finfo(np.float64).tiny)
    clear = (sizes[:-1] > chance) & (sizes[1:] < _CHANCE * chance) & (ratios > _GAP)
    if known is not None and known < len(sizes):
        return known if clear[known - 1] else 0
    if clear.any():
        return int(np.argmax(np.where(clear, ratios, 0.0))) + 1
    return int((sizes > _CHANCE * chance).sum()) if len(sizes) >= MANY_INPUTS else 0
