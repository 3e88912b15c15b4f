"""How close two neurons are (CKM21, Definition 3.7).

The paper writes a neuron ``relu(<v, x> - b)``; here it is ``relu(w x + b)``.  Closeness is
the same for both.
"""

import numpy as np
from scipy.spatial.distance import cdist

from revelu.types import FloatArray


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
