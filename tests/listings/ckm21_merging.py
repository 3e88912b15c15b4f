"""CKM21, section 3: what neurons that are pairwise close merge into, as its lemmas say.

A network is ``sum_i s_i relu(w_i x + b_i)`` with real ``s_i``: the paper's ``±1`` is the case
of which it follows by scaling, and its own Lemma 3.12 returns real coefficients.
"""

import numpy as np


def orientation(W):
    """Which rows point as the first one does (Lemma 3.9), shape (m,).

    Where all are pairwise close with ``Δ < sqrt(2)/2``, any two of one side have a positive
    inner product, and any two of different sides a negative one.
    """
    return W @ W[0] >= 0.0


def represent(s, W, b):
    """Merge close neurons into two on one hyperplane (Lemma 3.21, case 2).

    The hyperplane ``v x + offset = 0`` is that of the change of the gradient from one side of
    all of them to the other.  Returned with the coefficients of ``relu(v x + offset)`` and of
    ``relu(-v x - offset)`` (Lemma 3.12).
    """
    turned = np.where(orientation(W), s, -s)
    v, offset = turned @ W, turned @ b
    if not v.any():
        raise ZeroDivisionError("the neurons cancel: they have no hyperplane in common")
    gamma = W @ v / (v @ v)
    # (s, v, b) merges by adding s γ within each side (Definition 3.14 and Fact 3.16).
    along = gamma >= 0.0
    return v, offset, (s[along] @ gamma[along], -s[~along] @ gamma[~along])


def affine_part(s, W, b):
    """The affine map that close neurons which cancel come near to (Lemma 3.19).

    It is what they compute where those that point as the first one are on.
    """
    first = orientation(W)
    return s[first] @ W[first], s[first] @ b[first]
