"""Whether a hyperplane bends a function (DG21, Algorithms 4 and 5).

Both algorithms compare the slopes of ``f`` on the two sides of a point.  Their difference, the
*strength* of a kink, is 0 at a general point; its sign tells convex from concave.
"""

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask
from revelu.types import BoolArray, FloatArray, IntArray


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
    before, on, after = _across(ask, X, step[:, None] * normals)
    with np.errstate(invalid="ignore"):  # infinite where the target is saturated
        return np.asarray((after - 2.0 * on + before) / step[:, None])


def are_as_strong(
    seen: FloatArray,
    wanted: FloatArray,
    error: FloatArray,
    step: FloatArray,
    growth: FloatArray,
    *,
    rtol: float = 0.1,
) -> BoolArray:
    """Whether kinks are as strong as they are to be, as far as answers tell, shape (n,).

    Parameters
    ----------
    seen, wanted : ndarray, shape (n, k)
    error : ndarray, shape (k,)
        Standard error of an answer,
    step, growth : ndarray, shape (n,)
        how far off it was asked, and by how much more answers err there.
    rtol : float
        What is off by a larger share of its strength is another kink.
    """
    # A strength is the second difference of three answers, 1, -2, 1, over the step: the noise of
    # four answers is more than that of these.
    atol = 4.0 * SIGMAS * float(np.linalg.norm(error)) * growth / step
    off = np.linalg.norm(seen - wanted, axis=1) - rtol * np.linalg.norm(wanted, axis=1)
    return np.asarray(~(off > atol))


def _across(ask: Ask, X: FloatArray, moves: FloatArray) -> FloatArray:
    """Answers before, at and after each point, shape (3, n, k), in one round."""
    Y = ask(np.concatenate([X - moves, X, X + moves]))
    return Y.reshape(3, len(X), Y.shape[-1])


def points_on_hyperplanes(
    rng: np.random.Generator,
    W: FloatArray,
    b: FloatArray,
    spread: FloatArray | float = 1.0,
    *,
    bound: float = np.inf,
    n_projections: int = 50,
) -> tuple[FloatArray, FloatArray]:
    """A Gaussian point projected onto each hyperplane ``W x + b = 0``.

    Projections onto a cube and onto the hyperplane in turn lead to a point of both, where there
    is one (Bregman 1965).

    Parameters
    ----------
    W : ndarray, shape (m, d)
        No row is zero.
    b : ndarray, shape (m,)
    spread : float or ndarray, shape (m,)
        Standard deviation of the Gaussian points, 1 by default.
    bound : float
        The largest coordinate of a point, as far as a hyperplane has such.
    n_projections : int
        Onto a cube.

    Returns
    -------
    X : ndarray, shape (m, d)
    normals : ndarray, shape (m, d)
        Unit rows.
    """
    norms = np.linalg.norm(W, axis=1)
    normals = W / norms[:, None]
    X = rng.standard_normal(W.shape) * np.reshape(spread, (-1, 1))
    X -= normals * ((X * normals).sum(axis=1) + b / norms)[:, None]
    if np.isfinite(bound):
        inner = 0.999 * bound  # what projections in turn come near
        for _ in range(n_projections):
            X = np.clip(X, -inner, inner)
            X -= normals * ((X * normals).sum(axis=1) + b / norms)[:, None]
    return X, normals


def bend_everywhere(
    ask: Ask,
    noise: NoiseFloor,
    W: FloatArray,
    b: FloatArray,
    rng: np.random.Generator,
    *,
    wanted: int = 3,
    wanted_if_mixed: int = 8,
    mostly: float = 0.7,
    refuted: int = 2,
    dead: int = 6,
    max_points: int = 16,
    many_points: int = 24,
    bound: float = np.inf,
) -> BoolArray:
    """Tell which hyperplanes belong to the first layer, shape (m,) (DG21, Algorithm 7).

    The paper tests one point beyond each of the other hyperplanes.  A random point lies beyond
    many of them at once, so that a few points are enough.

    Parameters
    ----------
    ask : callable, (n, d) -> (n, k)
    W : ndarray, shape (m, d)
    b : ndarray, shape (m,)
    wanted : int
        Points at which a first-layer hyperplane must bend the function.
    wanted_if_mixed, mostly : int, float
        Where the function went straight on at some point, the hyperplane is a deeper neuron's,
        or the later neurons that read it were off there: ``wanted_if_mixed`` points are looked
        at, and this share of them must bend.
    refuted : int
        This many straight points, and no more that bend, refute a hyperplane.
    dead : int
        A hyperplane beside which nothing changes at this many points is given up.
    max_points : int
        Points tried.
    many_points : int
        Points, near and far, that decide about a hyperplane with straight points in the end.
    bound : float
        The largest coordinate of a point.
    """
    bent = np.zeros(len(W), dtype=int)
    straight = np.zeros(len(W), dtype=int)
    for turn in range(max_points):
        sure = np.where(straight == 0, wanted, wanted_if_mixed)
        lost = (straight >= refuted) & (bent <= straight)
        lost |= (bent == 0) & (turn >= dead)
        todo = np.flatnonzero((bent + straight < sure) & ~lost)
        if not len(todo):
            break
        X, normals = points_on_hyperplanes(rng, W[todo], b[todo], bound=bound)
        is_bent, is_straight = look_across(ask, noise, X, normals)
        bent[todo] += is_bent
        straight[todo] += is_straight
    chosen = (bent >= wanted) & (bent >= mostly * (bent + straight))
    mixed = np.flatnonzero(chosen & (straight > 0))
    if len(mixed):
        shares = bend_shares(ask, noise, W[mixed], b[mixed], rng, many_points, bound=bound)
        chosen[mixed] = shares >= mostly
    return np.asarray(chosen)


def bend_shares(
    ask: Ask,
    noise: NoiseFloor,
    W: FloatArray,
    b: FloatArray,
    rng: np.random.Generator,
    n_points: int,
    *,
    farther: float = 10.0,
    bound: float = np.inf,
) -> FloatArray:
    """Measure the share of points at which each hyperplane bends a function.

    Parameters
    ----------
    ask, noise, W, b, rng
        As of :func:`bend_everywhere`.
    n_points : int
        Three queries each, on every hyperplane.
    farther : float
        A hyperplane that passes far from the origin meets few others near its foot: every
        other point lies this many times further out.
    bound : float
        The largest coordinate of a point.

    Returns
    -------
    ndarray, shape (m,)
        Of the points beside which anything changes; 1 where nothing does anywhere.
    """
    rows = np.repeat(np.arange(len(W)), n_points)
    far = farther * np.maximum(np.abs(b) / np.linalg.norm(W, axis=1), 1.0)
    spread = np.where(np.arange(len(rows)) % 2, far[rows], 1.0)
    X, normals = points_on_hyperplanes(rng, W[rows], b[rows], spread, bound=bound)
    bent, straight = (
        flags.reshape(len(W), n_points).sum(axis=1) for flags in look_across(ask, noise, X, normals)
    )
    live = bent + straight
    return np.where(live > 0, bent / np.maximum(live, 1), 1.0)


def shares_seen(
    ask: Ask,
    noise: NoiseFloor,
    W: FloatArray,
    b: FloatArray,
    rng: np.random.Generator,
    n_points: int,
    *,
    same: float = 1e-3,
    side: float = 1e-5,
    bound: float = np.inf,
) -> tuple[FloatArray, IntArray]:
    """See how much of each hyperplane tells whose it is.

    Parameters
    ----------
    ask, noise, W, b, rng, bound
        As of :func:`bend_everywhere`.
    n_points : int
        Six queries each, on every hyperplane.
    same : float
        Bends of sizes that differ by less, relative to the larger, are alike.
    side : float
        How far to go to either side, relative to the point.

    Returns
    -------
    live : ndarray, shape (m,)
        The share of its points beside which the function changes at all.
    kinds : ndarray of int, shape (m,)
        How many bends of different sizes there are, at least: one piece of a deeper neuron's
        surface has one nearly everywhere.
    """
    rows = np.repeat(np.arange(len(W)), n_points)
    X, normals = points_on_hyperplanes(rng, W[rows], b[rows], bound=bound)
    bent, straight = look_across(ask, noise, X, normals, side=side)
    size = np.maximum(np.linalg.norm(X, axis=1), 1.0)
    bends = np.linalg.norm(kink_strengths(ask, X, normals, side * size) / noise.unit, axis=1)
    kinds, seen = np.zeros(len(W), dtype=int), bent & np.isfinite(bends)
    for j in range(len(W)):
        ordered = np.sort(bends[(rows == j) & seen])
        kinds[j] = (np.diff(ordered, prepend=0.0) > same * ordered).sum()
    return np.asarray((bent | straight).reshape(len(W), n_points).mean(axis=1)), kinds


def look_across(
    ask: Ask, noise: NoiseFloor, X: FloatArray, normals: FloatArray, *, side: float = 1e-5
) -> tuple[BoolArray, BoolArray]:
    """Tell whether a function bends at points across ``normals``, or goes straight through.

    Where it does neither it is constant, no neuron above is on, and nothing is learnt (DG21,
    Algorithm 5, tells the three cases by the same answers).

    Parameters
    ----------
    ask : callable, (n, d) -> (n, k)
    X, normals : ndarray, shape (n, d)
        Unit normals.
    side : float
        How far to go to either side, relative to |x|: far enough for a row that errs by 1e-9,
        and so near that another hyperplane lies between at one point in a thousand only.

    Returns
    -------
    bent, straight : ndarray of bool, shape (n,)
    """
    step = side * np.maximum(np.linalg.norm(X, axis=1), 1.0)
    before, at, after = _across(ask, X, step[:, None] * normals)
    error = noise.growth(X)[:, None] * noise.nu * noise.scale
    with np.errstate(invalid="ignore"):  # infinite where the target is saturated
        back, on = at - before, after - at
        bent = np.asarray((np.abs(on - back) > 4.0 * SIGMAS * error).any(axis=1))
        changes = np.asarray((np.abs(on + back) > 4.0 * SIGMAS * error).any(axis=1))
    return bent, changes & ~bent
