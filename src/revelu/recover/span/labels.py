"""The span of a first layer from labels alone (JWZ20, Algorithm 2).

The border of a class is where a difference of logits, or a number under a threshold,
crosses zero; its normals are gradients, combinations of the first layer's rows.  A normal's
coordinates come from the border's heights beside a place on it, each found by bisection.

Where this differs from print.  Algorithm 2 asks at (I - P_V) x only: as V grows there are
ever fewer such points on the other side of the threshold, and a bias alone can leave none.
Here places on the border are free, anywhere, and only the *complement's* coordinates of a
normal are measured.  Its perturbations u_i = 2^-N g_i - x/|x| are all but parallel, which
magnifies errors 2^N-fold; orthogonal ones do not.  Its b_i = 1/c_i gives the gradient's
negative; its loops run once too often; its line 7 restarts before the Gaussian is drawn.
"""

import logging
from collections.abc import Callable

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network.span import Span
from revelu.oracle import Oracle
from revelu.recover.span.label_search import N_PLACES, Search, Watch
from revelu.recovery import SpanRecovery, Status

log = logging.getLogger(__name__)

# Where none of two looks around has anything to add, less than a sixth of all places would
# have, at 95% confidence.
_N_EMPTY_LOOKS = 2


def recover_label_span(
    oracle: Oracle,
    seed: int | np.random.SeedSequence,
    *,
    tell: Callable[[str], None] | None = None,
    watch: Watch | None = None,
) -> SpanRecovery:
    """Recover the row span of the first layer of a classifier that answers labels.

    Parameters
    ----------
    oracle : Oracle
        Answers one number, the label: of 0/1 thresholds or of the largest of many outputs.
    seed : int or SeedSequence
    tell : callable, (str) -> None
        Told what is being done.
    watch : callable, ((m, n), (m,)) -> None
        Told rows on both sides of borders, and their labels, once: another target would
        answer them otherwise.

    Returns
    -------
    SpanRecovery
        ``UNVERIFIED`` where the search ended, for the caller to check; ``PARTIAL`` where no
        border is found, or borders still move but no normal shows it; ``NOT_DETERMINISTIC``
        where labels change at random; ``BUDGET_EXHAUSTED``.

    Notes
    -----
    Source: JWZ20, Algorithm 2, Proposition 4.1 and Lemma 4.2, with the changes above.
    """
    search = Search(oracle, np.random.default_rng(seed), watch)
    status, reason = Status.UNVERIFIED, ""
    try:
        # 1. Inputs on both sides of a border.
        status, reason = search.see_two_labels()
        n_empty = n_failed = 0
        while status is Status.UNVERIFIED and search.rank < oracle.dim_in:
            if search.is_blurred:
                status, reason = Status.PARTIAL, _HIDDEN.format(angle=search.angle)
                break
            # 2. Places on borders that a move inside the complement shifts.
            places = search.look_around()
            if search.n_rough * 2 > search.n_places:
                status, reason = Status.NOT_DETERMINISTIC, _ROUGH
                break
            n_empty = 0 if places else n_empty + 1
            if n_empty == _N_EMPTY_LOOKS:
                break
            # 3. The complement's coordinates of the normals there.
            if tell is not None:
                tell(f"{search.rank} directions")
            before = search.rank
            n_last = search.learn_from(places)
            n_failed = n_last if search.rank > before else n_failed + n_last
            # 4. Take the best of what is known less well.  A saturated activation's border is
            # flat in one place and curved in another: where none will do, look the other way.
            is_late = n_failed >= N_PLACES + 2 * (search.n_choices - 1)
            if (search.has_enough or is_late) and search.learn_from_best():
                n_failed = 0
            elif is_late:
                n_failed = 0
                if not search.look_otherwise():
                    status, reason = Status.PARTIAL, _STUCK
                    break
    except LimitReachedError as error:
        status, reason = Status.BUDGET_EXHAUSTED, str(error)
    return SpanRecovery(
        status,
        Span(search.rest.taken, errors=search.angles),
        ledger=oracle.ledger(),
        evidence=(reason,) if reason else (),
        method="labels",
        details={
            "borders": search.n_places,
            "smooth": search.smooth,
            "expected_angle": search.angle,
        },
    )


_ROUGH = (
    "labels change back and forth beside most borders: they depend on the input as if at "
    "random, and tell no direction"
)
_STUCK = "borders still move outside of the span, but no normal there could be measured"
_HIDDEN = (
    "the directions found are off by about {angle:.1g} rad, which hides whether there are more: "
    "labels of a target that computes in float32, or rounds its inputs, tell no better"
)
