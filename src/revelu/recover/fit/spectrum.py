"""How many eigenvalues of an estimated symmetric matrix are more than chance."""

import numpy as np

from revelu.types import FloatArray


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


def rank_by_gap(
    sizes: FloatArray,
    chance: float,
    known: int | None = None,
    *,
    needs_gap: bool = True,
    gap: float = 1.7,
    margin: float = 1.5,
) -> int:
    """Count eigenvalues that are no chance, where a gap makes that clear.

    Parameters
    ----------
    sizes : ndarray, shape (d,)
        Descending and positive.
    chance : float
        The largest that chance gives.
    known : int, optional
        The rank, if known: it is returned if there is a gap after it.
    needs_gap : bool
        Whether nothing is clear without a gap.
    gap : float
        After a gap the next eigenvalue is smaller by this factor,
    margin : float
        and by no more than this factor larger than chance.

    Returns
    -------
    int
        0 where nothing is clear.
    """
    ratios = sizes[:-1] / np.maximum(sizes[1:], np.finfo(np.float64).tiny)
    clear = (sizes[:-1] > chance) & (sizes[1:] < margin * chance) & (ratios > gap)
    if known is not None and known < len(sizes):
        return known if clear[known - 1] else 0
    if clear.any():
        return int(np.argmax(np.where(clear, ratios, 0.0))) + 1
    return 0 if needs_gap else int((sizes > margin * chance).sum())
