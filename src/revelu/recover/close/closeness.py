"""Nearly equal neurons: how close, which way round, what they merge into (CKM21, section 3).

The paper writes a neuron ``relu(<v, x> - b)``; here it is ``relu(w x + b)``.  Closeness is
the same for both.  A network is ``sum_i s_i relu(w_i x + b_i)`` with real ``s_i``: the
paper's ``±1`` is the case of which it follows by scaling, and its own Lemma 3.12 returns
real coefficients.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from revelu.types import BoolArray, FloatArray


def closeness(W: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least (Δ, α) for which every two neurons are close (Definition 3.7).

    Parameters
    ----------
    W : ndarray, shape (m, d)
        No row is zero.
    b : ndarray, shape (m,)

    Returns
    -------
    delta : ndarray, shape (m, m)
        ``|sin|`` of the angles of the rows.
    alpha : ndarray, shape (m, m)
        ``|b_i w_j - b_j w_i| / (|w_i| |w_j|)``.

    Notes
    -----
    With unit rows ``|sin| = |u - u'| |u + u'| / 2``, which keeps its digits at small angles.
    So does ``|b u' - b' u|^2 = (b - s b')^2 + s b b' |u - s u'|^2`` for ``s = ±1``, the one
    for which ``u`` and ``s u'`` are nearer.

    Examples
    --------
    >>> delta, alpha = closeness(np.array([[1.0, 0.0], [-3.0, 0.0]]), np.array([2.0, -6.0]))
    >>> float(delta.max()), float(alpha.max())
    (0.0, 0.0)
    """
    norms = np.linalg.norm(W, axis=1)
    U, offsets = W / norms[:, None], b / norms
    apart, turned = cdist(U, U), cdist(U, -U)
    side = np.where(apart <= turned, 1.0, -1.0)
    crossed = side * offsets
    shifted = (offsets[:, None] - crossed) ** 2
    mixed = shifted + offsets[:, None] * crossed * np.minimum(apart, turned) ** 2
    return np.asarray(apart * turned / 2.0), np.sqrt(mixed)


def orientation(W: FloatArray) -> BoolArray:
    """Which rows point as the first one does (Lemma 3.9), shape (m,).

    Where all are pairwise close with ``Δ < sqrt(2)/2``, any two of one side have a
    positive inner product, and any two of different sides a negative one.

    Parameters
    ----------
    W : ndarray, shape (m, d)
    """
    return np.asarray(W @ W[0] >= 0.0)


@dataclass(frozen=True)
class Representative:
    """One hyperplane that stands for many: ``v x + b`` of Lemma 3.21.

    Attributes
    ----------
    v : ndarray, shape (d,)
    b : float
    plus, minus : float
        Coefficients of ``relu(v x + b)`` and ``relu(-v x - b)`` (Lemma 3.12).
    """

    v: FloatArray
    b: float
    plus: float
    minus: float


def represent(s: FloatArray, W: FloatArray, b: FloatArray) -> Representative:
    """Merge neurons that are pairwise close into two on one hyperplane (Lemma 3.21, case 2).

    The hyperplane is that of the change of the gradient from one side of all of them to
    the other, which is all that an algorithm sees of them.

    Parameters
    ----------
    s : ndarray, shape (m,)
    W : ndarray, shape (m, d)
    b : ndarray, shape (m,)

    Raises
    ------
    ZeroDivisionError
        If the change is exactly zero: the neurons cancel to :func:`affine_part`.
    """
    first = orientation(W)
    turned = np.where(first, s, -s)
    v, offset = turned @ W, float(turned @ b)
    if not v.any():
        raise ZeroDivisionError("the neurons cancel: they have no hyperplane in common")
    gamma = W @ v / float(v @ v)
    # (s, v, b) merges by adding s γ within each side (Definition 3.14 and Fact 3.16).
    along = gamma >= 0.0
    return Representative(
        v, offset, float(s[along] @ gamma[along]), float(s[~along] @ -gamma[~along])
    )


def affine_part(s: FloatArray, W: FloatArray, b: FloatArray) -> tuple[FloatArray, float]:
    """The affine map that close neurons which cancel come near to (Lemma 3.19).

    It is what they compute where those that point as the first one are on.

    Parameters
    ----------
    s : ndarray, shape (m,)
    W : ndarray, shape (m, d)
    b : ndarray, shape (m,)

    Returns
    -------
    v : ndarray, shape (d,)
    c : float
    """
    first = orientation(W)
    return np.asarray(s[first] @ W[first]), float(s[first] @ b[first])
