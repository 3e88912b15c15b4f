"""Unions and intersections of halfspaces, from labels of samples (GP18, Section 2.3, Theorem 6).

An intersection is the complement of the union of its halfspaces' complements, so that both
are unions here: of halfspaces that fire.  The union must be rare: directions come from
moments, then all halfspaces are fitted to the labels.  With queries it may be anywhere; see
:mod:`revelu.recover.rare.facets`.

Labels may be wrong, as :mod:`revelu.recover.rare.label_noise` has it, which scales all moments
alike.  A halfspace counts only where wrong labels, by chance, would not look like one.
"""

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from scipy.special import ndtri

from revelu.recover.method import Tell, Why
from revelu.recover.rare.firing import border_width
from revelu.recover.rare.halfspace_search import find_halfspace
from revelu.recover.rare.label_noise import (
    LabelNoise,
    departures,
    fewest_seen,
    least_evidence,
    unexplained,
)
from revelu.recover.rare.rare_directions import estimate_directions
from revelu.recover.rare.rare_samples import fewest_samples, rare_samples, too_few
from revelu.recover.rare.union_fit import fit_union
from revelu.recover.rare.units import Units, UnitsCandidate, largest_other
from revelu.recover.rare.version_space import version_space
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
        Whether each is in the union, but for wrong labels.
    n_halfspaces : int, optional
        If known.

    Returns
    -------
    UnitsCandidate
        ``UNRESOLVED`` where halfspaces are missing or wrong labels do not come at random.
    """
    d, n, n_rare = X.shape[1], len(X), int(fires.sum())
    needed = fewest_samples(d, n_halfspaces or 1)
    if n_rare > n // 2 and n_rare >= needed:
        return UnitsCandidate.none(d, Why.REFUTED, _NOT_RARE.format(share=n_rare / n), "labels")
    if n_rare < needed:
        return UnitsCandidate.none(d, Why.UNRESOLVED, too_few(n_rare, needed, n), "labels")
    # 1. Directions from the moments of the labels.
    tell("estimating directions")
    samples = rare_samples(X, fires.astype(np.float64), 0.0)
    start = estimate_directions(samples, "sign", n_halfspaces, rng)
    # 2. All units at once; more, from the samples that none explains.
    fit = _Fit(X, fires, rng, tell)
    union = fit.grown(start, n_halfspaces)
    if union.doubts and start is not None:
        # Moments mix directions where there are more of them than inputs: without them.
        other = fit.grown(None, n_halfspaces)
        union = max(union, other, key=lambda found: found.likelihood)
    if not len(union.W):
        reason = _NOTHING.format(n=n_rare, least=fewest_seen(union.noise, n, d))
        return UnitsCandidate.none(d, Why.UNRESOLVED, reason, "labels")
    # 3. Each unit is the mean of all that agree with labels, which tells its error.
    tell(f"walking among what agrees with labels, {len(union.W)} halfspaces")
    units = fit.walked(union)
    told = units.told
    notes = union.doubts
    if not told.all():
        notes = (_LEFT_OUT.format(m=int((~told).sum())), *notes)
    if n_halfspaces is not None and told.sum() < n_halfspaces:
        notes = (_FEWER.format(k=int(told.sum()), wanted=n_halfspaces), *notes)
    why = Why.UNRESOLVED if notes else Why.EXPLAINED
    seen = fewest_seen(union.noise, n, d)
    beyond = _BEYOND.format(n=seen, share=seen / n, t=-ndtri(min(seen / n, 0.5)))
    noise = None if union.noise.is_none else (union.noise.raised, union.noise.missed)
    return UnitsCandidate(
        why,
        units[told],
        (*notes, beyond),
        "labels",
        noise=noise,
        figures={"label_noise": union.noise, "fewest_seen": seen},
    )


@dataclass(frozen=True)
class _Union:
    """Units fitted to labels, how often labels are wrong, and what that does not explain."""

    W: FloatArray
    t: FloatArray
    noise: LabelNoise
    width: float
    """Farther from a border labels are wrong where they differ."""
    likelihood: float
    """Logarithm of the labels' likelihood."""
    doubts: tuple[str, ...]

    def margins(self, X: FloatArray) -> FloatArray:
        """(n, d) -> (n, k)."""
        return np.asarray(X @ self.W.T - self.t)


@dataclass(frozen=True)
class _Fit:
    """Fits a union to labels."""

    X: FloatArray
    fires: BoolArray
    rng: np.random.Generator
    tell: Tell
    """As :func:`recover_union` takes them."""

    def grown(self, start: Units | None, n_halfspaces: int | None) -> _Union:
        """Add units to a start, those that moments show, as long as labels ask for more."""
        W, t = np.empty((0, self.X.shape[1])), np.empty(0)
        if start is not None:
            known = np.isfinite(start.thresholds)
            W, t = start.directions[known], start.thresholds[known]
        most = 2 * max(len(W), 1) + MOST_MORE if n_halfspaces is None else n_halfspaces
        union = self._fitted(W, t)
        while len(union.W) < most and (one := self._one_more(union)) is not None:
            more = self._fitted(
                np.vstack([union.W, one.directions]), np.append(union.t, one.thresholds)
            )
            if more.likelihood <= union.likelihood:
                break
            union = more
        return self._doubted(union)

    def _one_more(self, union: _Union) -> Units | None:
        outside = union.margins(self.X).max(axis=1, initial=-np.inf) < -union.width
        k = len(union.W)
        known = Units(union.W, union.t, np.zeros(k), np.zeros(k))
        return find_halfspace(self.X[outside], self.fires[outside], known, union.noise)

    def _fitted(self, W: FloatArray, t: FloatArray) -> _Union:
        """Fit all units; leave out, one by one, those that chance explains."""
        X, fires = self.X, self.fires
        n, d = X.shape
        needed = least_evidence(n, d)
        while True:
            self.tell(f"fitting {len(W)} halfspaces")
            if not len(W):
                depth = np.full(n, -np.inf)
                noise = LabelNoise.measured(depth, fires, 0.0)
                return _Union(W, t, noise, 0.0, noise.likelihood(depth, fires), ())
            depth = (X @ W.T - t).max(axis=1)
            W, t = fit_union(X, fires, W, t, noise=LabelNoise.measured(depth, fires, 0.5))
            margins = X @ W.T - t
            depth = margins.max(axis=1)
            width = border_width(len(W), d, int((fires & (depth > 0)).sum()))
            noise = LabelNoise.measured(depth, fires, width)
            alone = (margins > 0) & ((margins > 0).sum(axis=1) == 1)[:, None]
            own = noise.gains(fires) @ alone
            weakest = int(own.argmin())
            if own[weakest] >= needed:
                return _Union(W, t, noise, width, noise.likelihood(depth, fires), ())
            W, t = np.delete(W, weakest, axis=0), np.delete(t, weakest)

    def _doubted(self, union: _Union) -> _Union:
        """Say what units and wrong labels at random do not explain."""
        if not len(union.W):
            return replace(union, doubts=(_NONE,))
        X, fires = self.X, self.fires
        margins = union.margins(X)
        doubts = departures(X, margins, fires, union.noise, union.width)
        if few := unexplained(union.noise, X.shape[1]):
            doubts.append(_FEW_WRONG.format(m=few))
        if (more := self._one_more(union)) is not None:
            held = more.margins(X)[:, 0] > 0
            outside = margins.max(axis=1) < -union.width
            doubts.append(_UNEXPLAINED.format(m=int((held & outside & fires).sum())))
        within = margins.max(axis=1) > union.width
        flipped = LabelNoise(union.noise.missed, union.noise.raised)
        none = Units.none(X.shape[1])
        if find_halfspace(X[within], ~fires[within], none, flipped) is not None:
            doubts.append(_HOLE)
        return replace(union, doubts=tuple(doubts))

    def walked(self, union: _Union) -> Units:
        """The mean of all halfspaces that agree with labels, for each unit."""
        X, fires, noise = self.X, self.fires, union.noise
        margins = union.margins(X)
        costs = np.abs(noise.gains(fires))
        found = []
        for i in range(len(union.W)):
            others = largest_other(margins, i)
            w, t = union.W[i], float(union.t[i])
            if noise.is_none:
                decides = ~fires | ((others < -union.width) & (margins[:, i] > -union.width))
                unit = version_space(X[decides], fires[decides], w, t, self.rng)
                if np.isfinite(unit.errors[0]):
                    found.append(unit)
                    continue
            # A label inside others says nothing.
            decides = others < -union.width
            unit = version_space(X[decides], fires[decides], w, t, self.rng, costs=costs[decides])
            found.append(unit)
        return reduce(Units.joined, found, Units.none(X.shape[1]))


_NOT_RARE = (
    "{share:.0%} of the labels are on the side that must be rare, the 1s with --halfspaces or and "
    "the 0s with --halfspaces and: it is the other way to combine, or the halfspaces are too near "
    "to the origin for samples; with queries they may be anywhere"
)
_NONE = "no halfspace is seen"
_NOTHING = (
    "the {n:,} labels on the rare side show no halfspace that wrong labels would not show by "
    "chance, which one of {least:,} samples would: labels are wrong too often, or are of "
    "something else"
)
_LEFT_OUT = "{m} directions are left out: these samples do not tell them to 0.5 rad"
_FEWER = "{k} of {wanted} halfspaces are seen in these samples"
_UNEXPLAINED = (
    "{m:,} labels are not explained: a halfspace is missing that these samples do not place, or "
    "the target is something else"
)
_FEW_WRONG = (
    "{m:,} labels are not explained: they may be wrong, or of something rare, which so few do not "
    "tell apart"
)
_HOLE = (
    "inside of the halfspaces labels are wrong in a region of their own: the target is something "
    "else"
)
_BEYOND = (
    "what lies beyond is not seen: a halfspace that holds less than {share:.2g} of the inputs "
    "({n:,} of these samples; a threshold beyond {t:.2g} under N(0, I))"
)
