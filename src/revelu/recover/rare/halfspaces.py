"""Unions and intersections of halfspaces, from labels of samples (GP18, Section 2.3, Theorem 6).

An intersection is the complement of the union of its halfspaces' complements, so that both
are unions here: of halfspaces that fire.  The union must be rare: directions come from
moments, then all halfspaces are fitted to the labels.  With queries it may be anywhere; see
:mod:`revelu.recover.rare.facets`.
"""

from dataclasses import replace

import numpy as np

from revelu.recover.method import Tell, Why
from revelu.recover.rare.firing import fit_firing, with_start
from revelu.recover.rare.rare_directions import begin
from revelu.recover.rare.rare_samples import fewest_samples, rare_samples
from revelu.recover.rare.units import Units, UnitsCandidate, without_guesses
from revelu.types import BoolArray, FloatArray

MOST_MORE = 2
"""Units beyond those that moments show that are tried, while samples that fire are no unit's."""


def recover_union(
    X: FloatArray,
    fires: BoolArray,
    n_halfspaces: int | None,
    rng: np.random.Generator,
    tell: Tell,
) -> UnitsCandidate:
    """Recover the halfspaces of a rare union from labels of samples of N(0, I).

    Parameters
    ----------
    X : ndarray, shape (n, d)
    fires : ndarray of bool, shape (n,)
        Whether each is in the union.
    n_halfspaces : int, optional
        If known.

    Returns
    -------
    UnitsCandidate
        ``UNRESOLVED`` where a halfspace is known from moments alone or labels stay unexplained.
    """
    d, n, n_rare = X.shape[1], len(X), int(fires.sum())
    if n_rare > n // 2 and n_rare >= fewest_samples(d, n_halfspaces or 1):
        return UnitsCandidate.none(d, Why.REFUTED, _NOT_RARE.format(share=n_rare / n), "labels")
    # 1. Directions from the moments of the labels.
    samples = rare_samples(X, fires.astype(np.float64), 0.0)
    start = begin(samples, "sign", n_halfspaces, rng, tell)
    if isinstance(start, str):
        return UnitsCandidate.none(d, Why.UNRESOLVED, start, "labels")
    # 2. All units at once; one more, from the samples that none explains, while there are some.
    units: Units = start
    most = len(units) + MOST_MORE if n_halfspaces is None else n_halfspaces
    while True:
        tell(f"fitting {len(units)} halfspaces")
        fitted, unexplained = fit_firing(X, fires, units, rng)
        rest = X[unexplained & fires]
        if len(units) >= most or len(rest) < fewest_samples(d):
            break
        units = replace(fitted, errors=units.errors).with_one_more(rest)
    # 3. Units that labels contradict fall back on their moments; guesses are left out.
    weighed, doubts = with_start(X, fires, (fitted, unexplained), units)
    found, left_out = without_guesses(weighed, n_rare, n)
    notes = (*left_out, *doubts)
    return UnitsCandidate(Why.UNRESOLVED if notes else Why.EXPLAINED, found, notes, "labels")


_NOT_RARE = (
    "{share:.0%} of the labels are on the side that must be rare: the halfspaces are too near "
    "to the origin for the method, or it is the other way to combine; with queries they may be "
    "anywhere"
)
