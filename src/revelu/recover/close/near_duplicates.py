"""Any two-layer network, whatever its weights (CKM21), as nearly as queries allow.

    f(x) = A relu(W x + b) + V x + c

The paper differences the gradients at the midpoints of equal intervals of a line
(Algorithm 3) and fits the coefficients by regression (Algorithm 4).  Here the grid of the
line adapts (the search for kinks), coefficients are the jumps of the gradient, and

1. kinks that no measurable piece parts are one neuron, the sum (Lemma 3.12);
2. at every hyperplane found the target is looked at through a magnifying glass: what is a
   cluster of (Δ, α)-close neurons comes apart there, as far as answers have digits;
3. points of N(0, I) are asked for what the network leaves unexplained: bumps, which no line
   shows between two of its points (Example 1.2), and neurons that lines have missed;
4. the affine part is fitted last, by regression, and nothing else: regression of all
   coefficients errs by 1e-2 on neurons that fire rarely;
5. neurons that the answers cannot tell apart are merged, the error of it measured.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network, add_networks, affine_network, l2_distance
from revelu.numerics.subset_sum import MAX_BITS
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.close.bumps import BumpSearch
from revelu.recover.close.candidate import FAINT, TYPICAL, Growing
from revelu.recover.close.clusters import CLOSE, Clusters
from revelu.recover.close.coarsening import coarsen
from revelu.recover.close.merging import merge_close
from revelu.recover.line import Peeling
from revelu.recover.shallow.line_neurons import peel
from revelu.recover.shallow.one_hidden import scan_line
from revelu.recover.signs import QUICK_BITS, resolve_signs
from revelu.recovery import Recovery, Status
from revelu.types import FloatArray

# Pieces of a line whose half-angle is under sqrt(nu) times this give no gradient worth
# having: the kinks between them are merged.
_NARROW = 400.0

# Lines tried where the target is saturated on one, or it misled.
_MAX_LINES = 4

# The largest change that merging close neurons may make: a share of half the digits.
_MERGED = 1e-3

# A first network that is wrong at more of so many points comes from a bad line: strips between
# close hyperplanes, and bumps, are met less often.
_TRIAL_POINTS = 64
_MOSTLY_RIGHT = 0.1
_HOPELESS = 0.5
_NOT_TWO = "networks of one hidden layer that explain a line are wrong elsewhere"

# Points of the regression, over its unknowns.
_OVERSAMPLING = 1.25


@dataclass
class AnyTwoLayer:
    """A search that can be taken up again where its network turns out to be wrong.

    Attributes
    ----------
    growing : Growing
    clusters : Clusters
    bumps : BumpSearch
    notes : list of str
    out_of_budget : bool
    merged : float
        What all merges have changed in L2 under N(0, I), at most.
    """

    growing: Growing
    clusters: Clusters
    bumps: BumpSearch
    notes: list[str] = field(default_factory=list, init=False)
    out_of_budget: bool = field(default=False, init=False)
    merged: float = field(default=0.0, init=False)

    def run(self) -> Recovery:
        """Resolve clusters, look for bumps, fit the affine part and merge."""
        return self._until_limit(self.clusters.resolve)

    def repair(self, wrong: FloatArray, agrees: Callable[[Network], bool]) -> Recovery:
        """Go on where fresh points have found the network wrong, shape (n, d).

        Of many signs the right ones are looked for once it agrees with all that was asked.
        """
        return self._until_limit(lambda: self.bumps.explain(wrong), agrees)

    def _until_limit(
        self, begin: Callable[[], None], agrees: Callable[[Network], bool] | None = None
    ) -> Recovery:
        try:
            begin()
            self.bumps.run()
            self._fit_affine()
        except LimitReachedError as error:
            self.out_of_budget = True
            self.notes.append(str(error))
        return self._recovery(agrees)

    def _fit_affine(self) -> None:
        """Regress what is left on ``V x + c`` (Algorithm 4, of its affine part alone)."""
        d = self.growing.oracle.dim_in
        n = int(_OVERSAMPLING * (d + 1)) + 8
        X = self.growing.rng.standard_normal((n, d))
        rest = self.growing.oracle(X) - self.growing.network(X)
        seen = np.isfinite(rest).all(axis=1)
        X, rest = X[seen], rest[seen]
        if len(X) <= d + 1:
            return
        size = np.abs(rest).max(axis=1)
        kept = size <= TYPICAL * float(np.median(size))  # not those in strips, or at bumps
        spare = int(kept.sum()) - (d + 1)
        if spare < 1:
            return
        Z = np.column_stack([X, np.ones(len(X))])
        solution = np.linalg.lstsq(Z[kept], rest[kept], rcond=None)[0]
        left = np.linalg.norm(rest[kept] - Z[kept] @ solution) * np.sqrt(kept.sum() / spare)
        if left < np.linalg.norm(rest[kept]) / 2:
            V, c = np.asarray(solution[:d].T), np.asarray(solution[d])
            self.growing.network = add_networks(self.growing.network, affine_network(V, c))

    def _recovery(self, agrees: Callable[[Network], bool] | None) -> Recovery:
        # Of what varies: a constant that hides it must not buy a merge.
        noise = self.growing.noise
        varying = float(np.linalg.norm(np.minimum(noise.scale, noise.spread)))
        atol = _MERGED * noise.half_digits * varying
        self.growing.network, merges = merge_close(self.growing.network, CLOSE, atol)
        self.merged += sum(merge.error for merge in merges)
        is_whole = agrees is None or agrees(self.growing.network)
        network, notes = resolve_signs(
            self.growing.network,
            noise.half_digits,
            max_bits=MAX_BITS if is_whole else QUICK_BITS,
        )
        if l2_distance(network, self.growing.network) > atol:
            # Close neurons turned round make up for each other, nearly.
            network, notes = (
                self.growing.network,
                ["the affine skip is kept; the function is the same"],
            )
        status = Status.BUDGET_EXHAUSTED if self.out_of_budget else Status.UNVERIFIED
        notes = [*self.notes, *notes]
        if merges:
            notes.append(
                f"{sum(m.n_neurons for m in merges)} neurons were merged into {len(merges)}, each "
                f"with a change of {max(m.error for m in merges):.1e} in L2 at most"
            )
        return Recovery(
            status,
            network,
            ledger=self.growing.oracle.ledger(),
            evidence=tuple(notes),
            method="any_two_layer",
            details={
                "searched": self.bumps.n_searched,
                "merged_l2": self.merged + self.growing.blurred,
            },
        )


def recover_any_two_layer(
    oracle: Oracle,
    noise: NoiseFloor,
    seed: int | np.random.SeedSequence,
    peeled: Peeling | None = None,
) -> tuple[Recovery, AnyTwoLayer | None]:
    """Recover a two-layer network about whose weights nothing is assumed.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
        Every tolerance comes from it.
    seed : int or SeedSequence
    peeled : Peeling, optional
        The kinks of a line, where they have been paid for.

    Returns
    -------
    recovery : Recovery
        ``UNVERIFIED`` with a network; ``NOT_IN_CLASS`` where a line has no affine pieces;
        ``BUDGET_EXHAUSTED`` with what was found.
    search : AnyTwoLayer or None
        Goes on where the network turns out to be wrong.

    Notes
    -----
    Source: CKM21, Algorithms 1 to 4, Lemmas 3.12 and 3.21, Theorem 4.8.
    """
    rng = np.random.default_rng(seed)
    best: tuple[float, float, AnyTwoLayer] | None = None
    for i in range(_MAX_LINES):
        try:
            peeled = _coarse(oracle, noise, rng, peeled)
            if not peeled.scan.complete:
                return _ended(oracle, Status.NOT_IN_CLASS, peeled.scan.message), None
            growing = Growing(oracle, noise, rng, peeled.network)
            clusters = Clusters(growing, peeled.scan.line)
            search = AnyTwoLayer(growing, clusters, BumpSearch(growing))
            share, far = growing.shares_wrong(_TRIAL_POINTS)
        except LimitReachedError as error:
            if best is None:
                return _ended(oracle, Status.BUDGET_EXHAUSTED, str(error)), None
            break
        except SaturatedError as error:
            if best is None:
                return _ended(oracle, Status.UNVERIFIED, str(error)), None
            break
        if best is None or (far, share) < best[:2]:
            best = far, share, search
        if share <= _MOSTLY_RIGHT or (i and far > _HOPELESS):
            break
        peeled = None
    assert best is not None  # noqa: S101 - the loop has returned otherwise
    far, _, search = best
    if far > _HOPELESS:
        return _ended(oracle, Status.UNVERIFIED, _NOT_TWO), None
    return search.run(), search


def _coarse(
    oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, peeled: Peeling | None
) -> Peeling:
    """One line, of which kinks that no measurable piece parts are one neuron.

    The function is right but for the strips between those kinks (Theorem 4.8).
    """
    nu = float(noise.nu.max())
    for i in range(_MAX_LINES):
        try:
            scan = scan_line(oracle, noise, rng) if peeled is None else peeled.scan
            if not scan.complete:
                return Peeling(_no_map(oracle), scan.kinks, scan)
            if peeled is not None and not peeled.n_unresolved:
                return peeled
            faint = FAINT * noise.half_digits * float(np.linalg.norm(noise.scale))
            scan = coarsen(oracle, scan, _NARROW * float(np.sqrt(nu)), faint)
            return peel(oracle, scan, nu, rng)
        except SaturatedError:
            peeled = None
            if i == _MAX_LINES - 1:
                raise
    raise AssertionError  # pragma: no cover - the last turn returns or raises


def _no_map(oracle: Oracle) -> Network:
    return affine_network(np.zeros((oracle.dim_out, oracle.dim_in)), np.zeros(oracle.dim_out))


def _ended(oracle: Oracle, status: Status, reason: str) -> Recovery:
    return Recovery(
        status, None, ledger=oracle.ledger(), evidence=(reason,), method="any_two_layer"
    )
