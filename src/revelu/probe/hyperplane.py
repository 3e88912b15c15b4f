"""Whether a hyperplane bends the function where it is said to (DG21, Algorithms 4 and 5).

Both algorithms compare the slopes of ``f`` on the two sides of a point.  Their
difference, the *strength* of a kink, is 0 at a general point, and its sign says
whether the function is convex or concave there.
"""

import numpy as np

from revelu.oracle import NoiseFloor
from revelu.probe.kinks import SIGMAS
from revelu.probe.line import Ask
from revelu.types import BoolArray, FloatArray

# Points at which a first-layer hyperplane must bend the function, and points tried: where
# all later neurons are off nothing bends.  A candidate that has not bent it at the first
# few is another layer's.
_WANTED = 3
_MOST_POINTS = 6
_FIRST_POINTS = 2

# How far a bend is looked for, relative to |x|: far enough for a row that errs by 1e-9,
# and near enough that another hyperplane is no nearer, but once in a thousand.
_SIDE = 1e-5


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


def bend_everywhere(
    ask: Ask, noise: NoiseFloor, W: FloatArray, b: FloatArray, rng: np.random.Generator
) -> BoolArray:
    """Tell which hyperplanes belong to the first layer (DG21, Algorithm 7).

    The paper tests a point of the hyperplane beyond every other one.  Random points lie
    beyond many at once, and a few of them do.

    Parameters
    ----------
    ask : callable, (n, d) -> (n, k)
    noise : NoiseFloor
    W : ndarray, shape (m, d)
    b : ndarray, shape (m,)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of bool, shape (m,)
    """
    bent = np.zeros(len(W), dtype=int)
    asked = np.zeros(len(W), dtype=int)
    for _ in range(_MOST_POINTS):
        open_ = (bent < _WANTED) & ((bent > 0) | (asked < _FIRST_POINTS))
        todo = np.flatnonzero(open_)
        if not len(todo):
            break
        X, normals = points_on_hyperplanes(rng, W[todo], b[todo])
        bent[todo] += _bends(ask, noise, X, normals)
        asked[todo] += 1
    return np.asarray(bent >= _WANTED)


def _bends(ask: Ask, noise: NoiseFloor, X: FloatArray, normals: FloatArray) -> BoolArray:
    """Whether the function is bent at points, across ``normals`` (DG21, Algorithm 5)."""
    step = _SIDE * np.maximum(np.linalg.norm(X, axis=1), 1.0)
    strengths = np.nan_to_num(kink_strengths(ask, X, normals, step))
    growth = np.sqrt(1.0 + (X**2).mean(axis=1))
    # f(x + s) - 2 f(x) + f(x - s) over s errs by four answers' noise over s at most.
    limit = 4.0 * SIGMAS * (growth / step)[:, None] * noise.nu * noise.scale
    return np.asarray((np.abs(strengths) > limit).any(axis=1))
