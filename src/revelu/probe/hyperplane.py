"""Whether a hyperplane bends the function where it is said to (DG21, Algorithms 4 and 5).

Both algorithms compare the slopes of ``f`` on the two sides of a point.  Their
difference, the *strength* of a kink, is 0 at a general point, and its sign says
whether the function is convex or concave there.
"""

import numpy as np

from revelu.probe.line import Ask
from revelu.types import FloatArray


def kink_strengths(ask: Ask, X: FloatArray, normals: FloatArray, step: FloatArray) -> FloatArray:
    """Slope on the far side minus slope on the near side, across each point.

    Parameters
    ----------
    ask : callable, (n, d) -> (n, k)
    X : ndarray, shape (n, d)
    normals : ndarray, shape (n, d)
        Unit rows, the directions to cross in.
    step : ndarray, shape (n,)
        How far to go to either side.

    Returns
    -------
    ndarray, shape (n, k)
        ``(f(x + s e) - 2 f(x) + f(x - s e)) / s``, by one round of 3 n queries; not
        finite where the target is saturated.
    """
    moved = step[:, None] * normals
    n = len(X)
    Y = ask(np.concatenate([X - moved, X, X + moved]))
    with np.errstate(invalid="ignore"):  # infinite where the target is saturated
        return np.asarray((Y[2 * n :] - 2.0 * Y[n : 2 * n] + Y[:n]) / step[:, None])


def points_on_hyperplanes(
    rng: np.random.Generator, W: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """A Gaussian point projected onto each hyperplane ``W x + b = 0``.

    Parameters
    ----------
    rng : numpy.random.Generator
    W : ndarray, shape (m, d)
        No row is zero.
    b : ndarray, shape (m,)

    Returns
    -------
    X : ndarray, shape (m, d)
    normals : ndarray, shape (m, d)
        Unit rows.
    """
    norms = np.linalg.norm(W, axis=1)
    normals = W / norms[:, None]
    X = rng.standard_normal(W.shape)
    X -= normals * ((X * normals).sum(axis=1) + b / norms)[:, None]
    return X, normals
