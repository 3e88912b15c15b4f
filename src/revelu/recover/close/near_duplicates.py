"""Any two-layer network, whatever its weights (CKM21), as nearly as queries allow.

    f(x) = A relu(W x + b) + V x + c

The paper differences the gradients at the midpoints of equal intervals of a line
(Algorithm 3) and fits the coefficients by regression (Algorithm 4).  Here the grid of the
line adapts (the search for kinks), coefficients are the jumps of the gradient, and

1. kinks that no measurable piece parts are one neuron, the sum (Lemma 3.12);
2. the target is rescaled around every hyperplane found: what is a cluster of
   (Δ, α)-close neurons comes apart there, as far as answers have digits;
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
from revelu.network import Network, l2_distance
from revelu.probe.scan import LineScan
from revelu.recover.close.bumps import BumpSearch
from revelu.recover.close.candidate import Draft
from revelu.recover.close.clusters import Clusters
from revelu.recover.close.coarsening import coarsen
from revelu.recover.close.merging import merge_close
from revelu.recover.line import Peeling
from revelu.recover.method import Candidate, Disagreement, Method, Search, Why
from revelu.recover.shallow.affine_rest import add_affine_rest
from revelu.recover.shallow.lines import ended, first_line
from revelu.recover.signs import SAME_FUNCTION, SKIP_KEPT, resolve_signs

_NOT_ONE = "networks of one hidden layer that explain a line are wrong elsewhere"


@dataclass
class CloseSearch(Search):
    """A line's neurons, the clusters among them, and the bumps between lines."""

    method: "NearDuplicates"
    draft: Draft = field(init=False)
    clusters: Clusters = field(init=False)
    bumps: BumpSearch = field(init=False)
    merged: float = field(default=0.0, init=False)
    """What all merges have changed in L2 under N(0, I), at most."""

    def propose(self) -> Candidate:
        """Choose a line, resolve clusters, look for bumps, fit the affine part and merge.

        Notes
        -----
        Source: CKM21, Algorithms 1 to 4, Lemmas 3.12 and 3.21, Theorem 4.8.
        """
        self.tell("recovering close neurons and bumps")
        ended = self._choose_line()
        return ended or self._until_limit(self.clusters.resolve)

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Go on where fresh points have found the network wrong.

        Of many signs the right ones are looked for once it agrees with all that was asked.
        """
        if self.n_repairs == self.method.max_repairs:
            return None
        self.n_repairs += 1
        self.tell("looking for neurons that fire where the network was wrong")
        return self._until_limit(lambda: self.bumps.explain(seen.X), seen.agrees)

    def _choose_line(self) -> Candidate | None:
        """Take the line whose neurons are wrong at the fewest fresh points; or the end."""
        method = self.method
        best: tuple[float, float, Draft, Clusters] | None = None
        for i in range(method.max_lines):
            try:
                peeled = self._coarse()
                if not peeled.scan.complete:
                    return ended(peeled.scan)
                draft = Draft(self.oracle, self.noise, self.rng, peeled.network)
                clusters = Clusters(draft, peeled.scan.line)
                share, far = draft.shares_wrong(method.n_trial_points)
            except (LimitReachedError, SaturatedError) as error:
                if best is not None:
                    break
                return Candidate(None, Why.of(error), obstacles=(str(error),))
            if best is None or (far, share) < best[:2]:
                best = far, share, draft, clusters
            if share <= method.mostly_right or (i and far > method.hopeless):
                break
        assert best is not None  # noqa: S101 - the loop has returned otherwise
        far, _, self.draft, self.clusters = best
        self.bumps = BumpSearch(self.draft)
        if far > method.hopeless:
            return Candidate(None, Why.UNRESOLVED, obstacles=(_NOT_ONE,))
        return None

    def _coarse(self) -> Peeling:
        """One line, of which kinks that no measurable piece parts are one neuron.

        The function is right but for the strips between those kinks (Theorem 4.8).
        """
        oracle, noise, most = self.oracle, self.noise, self.method.max_lines
        narrow = self.method.narrow * noise.half_digits

        def thinned(scan: LineScan) -> LineScan:
            return coarsen(oracle, scan, narrow, noise.faint_slope)

        return first_line(oracle, noise, self.rng, max_lines=most, thinned=thinned)

    def _until_limit(
        self, begin: Callable[[], None], agrees: Callable[[Network], bool] | None = None
    ) -> Candidate:
        try:
            begin()
            self.bumps.run()
            draft = self.draft
            # Of its affine part alone (Algorithm 4): strips and bumps are left out.
            draft.network = add_affine_rest(self.oracle, draft.network, self.rng)
        except LimitReachedError as error:
            return self._candidate(agrees, Why.LIMIT, str(error))
        return self._candidate(agrees, Why.EXPLAINED)

    def _candidate(
        self, agrees: Callable[[Network], bool] | None, why: Why, *obstacles: str
    ) -> Candidate:
        noise = self.noise
        # Of what varies: a constant that hides it must not buy a merge.
        varying = float(np.linalg.norm(np.minimum(noise.scale, noise.spread)))
        atol = self.method.merged * noise.half_digits * varying
        whole, merges = merge_close(self.draft.network, self.draft.close, atol)
        self.draft.network = whole
        self.merged += sum(merge.error for merge in merges)
        is_whole = agrees is None or agrees(whole)
        network, notes = resolve_signs(whole, noise.half_digits, is_whole=is_whole)
        if l2_distance(network, whole) > atol:
            # Close neurons turned round make up for each other, nearly.
            network, notes = whole, [f"{SKIP_KEPT}{SAME_FUNCTION}"]
        if merges:
            notes.append(
                f"{sum(m.n_neurons for m in merges)} neurons were merged into {len(merges)}, each "
                f"with a change of {max(m.error for m in merges):.1e} in L2 at most"
            )
        merged, n_searched = self.merged + self.draft.blurred, self.bumps.n_searched
        return Candidate(
            network,
            why,
            notes=tuple(notes),
            obstacles=obstacles,
            merged_l2=merged,
            n_searched=n_searched,
            figures={"searched": n_searched, "merged_l2": merged},
        )


@dataclass(frozen=True)
class NearDuplicates(Method):
    """One hidden layer about whose weights nothing is assumed (CKM21)."""

    name = "near_duplicates"
    purpose = "one hidden layer whose neurons are nearly equal, or make narrow bumps"
    hidden = (1, 1)
    cost = "1 to 15, more for bumps"
    search = CloseSearch

    max_lines: int = 4
    """Lines tried where the target is saturated on one, or it misled."""
    max_repairs: int = 12
    """Searches around points that fresh answers find wrong."""
    narrow: float = 400.0
    """Pieces of a line whose half-angle is under ``sqrt(nu)`` times this give no gradient worth
    having: the kinks between them are merged."""
    merged: float = 1e-3
    """The largest change that merging close neurons may make, as a share of half the digits."""
    n_trial_points: int = 64
    """Fresh points that judge a first network."""
    mostly_right: float = 0.1
    """A network wrong at a larger share of them comes from a bad line: strips between close
    hyperplanes, and bumps, are met less often."""
    hopeless: float = 0.5
    """Wrong far off at a larger share of them, from a second line, too, it is no network of one
    hidden layer."""
