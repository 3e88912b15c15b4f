"""Which pieces of a line are worth a Jacobian.

With k outputs a kink's jump along the line is already the neuron's output column, so
the rows of several neurons between two measured Jacobians follow from one difference
``dJ = sum_j a_j w_j^T`` while their columns are independent.  Two outputs are left
spare where there are enough: they show a corrupted coordinate.
"""

from dataclasses import dataclass

import numpy as np

from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Costs:
    """What makes the error of a line's neurons worse, as parts of one more measured piece."""

    unsolved: float = 1e3
    """A kink without its neuron."""
    narrow: float = 0.02
    worst_narrow: float = 0.3
    """A piece as wide as the median, and at most; narrower ones cost more, squared."""
    condition: float = 0.05
    """Output columns of a smallest singular value of a tenth."""
    independent: float = 0.02
    """Columns whose smallest singular value is below this are too dependent to tell apart."""


@dataclass(frozen=True)
class Block:
    """The kinks between two measured pieces: kinks ``start`` to ``stop - 1``.

    The measured pieces have the numbers ``start`` and ``stop``.
    """

    start: int
    stop: int
    is_solvable: bool


def choose_blocks(
    columns: FloatArray,
    half_gaps: FloatArray,
    is_single: BoolArray,
    min_half_gap: float,
    costs: Costs = Costs(),
    is_known: BoolArray | None = None,
) -> tuple[int, list[Block]]:
    """Cut a line into blocks, by dynamic programming over its pieces.

    Parameters
    ----------
    columns : ndarray, shape (m, k)
        Unit output columns, a row a kink.
    half_gaps : ndarray, shape (m + 1,)
        Half the angle that each piece covers.
    is_single : ndarray of bool, shape (m,)
        Whether a kink is one neuron.
    min_half_gap : float
        A piece narrower than this gives no Jacobian worth having.
    is_known : ndarray of bool, shape (m,), optional
        Kinks whose neurons are known, none by default: they are not to be solved for.

    Returns
    -------
    first : int
        The leftmost piece to measure.
    blocks : list of Block
        From left to right, the first from piece ``first`` on.  Kinks outside of them
        have no Jacobian on their far side.
    """
    m, k = columns.shape
    longest = max(1, k - 2)
    wide = half_gaps >= min(min_half_gap, float(half_gaps.max()))
    share = np.divide(
        np.median(half_gaps), half_gaps, out=np.full(m + 1, np.inf), where=half_gaps > 0
    )
    narrow = np.minimum(costs.narrow * share**2, costs.worst_narrow)
    is_known = np.zeros(m, dtype=bool) if is_known is None else is_known
    n_left = np.append(0, np.cumsum(~is_known))
    # Kinks left of the first measured piece are unsolved; it need not be piece 0.
    best = np.where(wide, costs.unsolved * n_left + 1.0 + narrow, np.inf)
    before = np.full(m + 1, -1)
    solvable = np.zeros(m + 1, dtype=bool)
    for stop in (int(i) for i in np.flatnonzero(wide)):
        for start in range(stop - 1, -1, -1):
            if np.isfinite(best[start]):
                unknown = columns[start:stop][~is_known[start:stop]]
                cost, ok = _block_cost(unknown, is_single[start:stop], longest, costs)
                total = best[start] + cost + 1.0 + narrow[stop]
                if total < best[stop]:
                    best[stop], before[stop], solvable[stop] = total, start, ok
                if not ok and n_left[stop] - n_left[start] > longest:
                    break
    stop = int(np.argmin(best + costs.unsolved * (n_left[-1] - n_left)))
    blocks = []
    while before[stop] >= 0:
        start = int(before[stop])
        blocks.append(Block(start, stop, bool(solvable[stop])))
        stop = start
    return stop, blocks[::-1]


def _block_cost(
    columns: FloatArray, is_single: BoolArray, longest: int, costs: Costs
) -> tuple[float, bool]:
    r = len(columns)
    if r <= 1 and is_single.all():
        return 0.0, True
    if r <= longest and is_single.all():
        smallest = float(np.linalg.svd(columns, compute_uv=False)[-1])
        if smallest >= costs.independent:
            return -costs.condition * np.log10(smallest), True
    return costs.unsolved * r, False
