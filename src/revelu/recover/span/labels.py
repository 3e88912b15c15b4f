"""The span of a first layer from labels alone (JWZ20, Algorithm 2).

The border of a class is where a difference of logits, or a number under a threshold,
crosses zero; its normals are gradients, combinations of the first layer's rows.  A normal's
coordinates come from the border's heights beside a place on it, each found by bisection.

It differs from print.  Algorithm 2 asks at (I - P_V) x only: as V grows, ever fewer such points
lie on the other side of the threshold, and a bias alone can leave none.  Here places on the
border may lie anywhere, and only the *complement's* coordinates of a normal are measured.  The
printed perturbations u_i = 2^-N g_i - x/|x| are all but parallel, which amplifies errors
2^N-fold; orthogonal ones do not.  The printed b_i = 1/c_i gives the gradient's negative, the
loops run once too often, and line 7 restarts before the Gaussian is drawn.
"""

from dataclasses import dataclass

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network.span import Span
from revelu.oracle import Oracle
from revelu.recover.method import Tell, Why
from revelu.recover.span.candidate import SpanCandidate
from revelu.recover.span.label_search import LabelSpanSearch, Watch

_ROUGH = (
    "labels change back and forth beside most borders: they depend on the input as if at "
    "random, and tell no direction"
)
_STUCK = "borders still move outside of the span, but no normal there could be measured"
_HIDDEN = (
    "the directions found are off by about {angle:.1g} rad, which hides whether there are more: "
    "labels of a target that computes in float32, or rounds its inputs, tell no better"
)


@dataclass(frozen=True)
class LabelSpan:
    """JWZ20, Algorithm 2, Proposition 4.1 and Lemma 4.2, with the changes above."""

    n_empty_looks: int = 2
    """Looks around, of eight places each, that must find nothing to add: of all places fewer than
    17.1% would then, at 95% confidence (0.829^16 = 0.05)."""
    largest_angle: float = float("inf")
    """The search ends where the span is farther off, in radians,"""
    most_directions: float = 1.0
    """or is a larger share of the inputs: others are no use then."""

    def find(
        self, oracle: Oracle, rng: np.random.Generator, tell: Tell, watch: Watch | None = None
    ) -> SpanCandidate:
        """Recover the row span of the first layer of a classifier that answers labels.

        Parameters
        ----------
        oracle : Oracle
            Answers one number, the label: of 0/1 thresholds or of the largest of many outputs.
        watch : callable, ((m, n), (m,)) -> None
            Told rows on both sides of borders, and their labels, once: another target would
            answer them otherwise.
        """
        search = LabelSpanSearch(oracle, rng, watch)
        try:
            why, note = self.run(search, tell)
        except LimitReachedError as error:
            why, note = Why.LIMIT, str(error)
        return SpanCandidate(
            Span(search.known.rest.taken, errors=search.known.angles),
            why,
            (note,) if note else (),
            expected_angle=search.known.angle,
            figures={"borders": search.n_borders, "smooth": search.smooth},
        )

    def run(self, search: LabelSpanSearch, tell: Tell) -> tuple[Why, str]:
        """Go on with a search until nothing is left to add; say why it ended.

        A search that was ended, and has learnt more since, may be gone on with.
        """
        # 1. Inputs on both sides of a border.
        why, note = (Why.EXPLAINED, "") if search.rank else search.see_two_labels()
        n_empty = n_failed = 0
        most = self.most_directions * search.oracle.dim_in
        while why is Why.EXPLAINED and search.rank < most:
            if search.is_blurred or search.known.angle > self.largest_angle:
                return Why.UNRESOLVED, _HIDDEN.format(angle=search.known.angle)
            # 2. Places on borders that a move inside the complement shifts.
            places = search.look_around()
            if search.n_rough * 2 > search.n_borders:
                return Why.REFUTED, _ROUGH
            n_empty = 0 if places else n_empty + 1
            if n_empty == self.n_empty_looks:
                break
            # 3. The complement's coordinates of the normals there.
            tell(f"{search.rank} directions")
            before = search.rank
            n_last = search.learn_from(places)
            n_failed = n_last if search.rank > before else n_failed + n_last
            # 4. Take the best of what is known less well.  A saturated activation's border is
            # flat in one place and curved in another: where none will do, look the other way.
            is_late = n_failed >= search.n_places + 2 * (search.n_choices - 1)
            if (search.has_enough or is_late) and search.learn_from_best():
                n_failed = 0
            elif is_late:
                n_failed = 0
                if not search.look_otherwise():
                    return Why.UNRESOLVED, _STUCK
        return why, note
