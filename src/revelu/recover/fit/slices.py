"""A network known on a random slice of its inputs, carried over to all of them.

On any slice of the inputs, ``x = s U' z``, a two-layer network is one of few inputs, of
the same output weights and thresholds, and the search for its neurons is as hard as the
slice is wide, however many inputs there are.  Where it is known, so is which neurons are
on at a point of the slice; along a direction ``v`` outside the slice the slopes at such
points,

    d f / d v (x) = sum over the neurons that are on of a_j <w_j, v>  +  <V, v>,

are linear equations for what the rows of ``W`` are outside.  The points are chosen: far
from all hyperplanes, so that the steps can be long and the answers' digits serve, and
with sets of neurons that determine the rows well.
"""

from collections.abc import Callable

import numpy as np
import scipy.linalg

from revelu.errors import SaturatedError
from revelu.network import Network
from revelu.recover.refine.network_fit import Samples
from revelu.recover.subspace import Subspace
from revelu.types import FloatArray, IntArray

# Points among which those to take slopes at are chosen, and the share of them, furthest
# from hyperplanes, that is left to choose from.
_CANDIDATES = 20_000
_FAR_SHARE = 0.02

# A row of d entries has a component along a random direction of its norm over sqrt(d),
# and seldom one of this many times that.
_LONG = 6.0

# Points more than the unknowns of a direction need, and the share of all equations' squares
# that is rounding.
_SPARE_POINTS = 1
_NOTHING_NEW = 1e-16


def random_slice(rng: np.random.Generator, d: int, r: int) -> Subspace:
    """Draw a slice on which inputs of N(0, I) are as long as in all coordinates.

    Parameters
    ----------
    d, r : int
        Inputs, and coordinates of the slice.
    """
    basis = np.linalg.qr(rng.standard_normal((d, r)))[0].T
    return Subspace(basis, float(np.sqrt(d / r)))


def carry_over(
    ask: Callable[[FloatArray], Samples],
    rng: np.random.Generator,
    network: Network,
    slice_: Subspace,
) -> tuple[Network, Samples]:
    """Find what the rows are outside the slice.

    Parameters
    ----------
    ask : callable
        Answers inputs of shape (n, d).
    network : Network
        In the coordinates of the slice.

    Returns
    -------
    network : Network
        In all coordinates, good to the error of a slope.
    samples : Samples
        What was asked: good equations for a last fit.

    Raises
    ------
    SaturatedError
        Where some of the points are not answered with numbers.
    """
    Z, margin = _far_points(rng, network)
    chosen = _determining(network, Z)
    X = slice_.points(Z[chosen])
    d = X.shape[1]
    outside = scipy.linalg.null_space(slice_.basis).T
    outside = np.linalg.qr(rng.standard_normal((len(outside),) * 2))[0] @ outside
    h = margin[chosen].min() * np.sqrt(d) / _LONG
    samples = ask((X[:, None, :] + h * np.vstack([np.zeros(d), outside])).reshape(-1, d))
    if len(samples.X) < len(X) * (1 + len(outside)):
        raise SaturatedError("the target is saturated where slopes are taken")
    Y = samples.Y.reshape(len(X), 1 + len(outside), -1)
    slopes = (Y[:, 1:] - Y[:, :1]) / h
    equations = _design(network, Z[chosen])
    solution = np.linalg.lstsq(
        equations, slopes.transpose(0, 2, 1).reshape(len(equations), -1), rcond=None
    )[0]
    rows, V = np.split(solution @ outside, [network.architecture[1]])
    lifted = slice_.in_all_coordinates(network)
    (W, A), skip = lifted.weights, lifted.skip
    skip = None if skip is None else (skip[0] + V, skip[1])
    return Network([W + rows, A], lifted.biases, skip), samples


def _far_points(rng: np.random.Generator, network: Network) -> tuple[FloatArray, FloatArray]:
    """Points far from all hyperplanes, and how far, in standard deviations of ``w' x``."""
    Z = rng.standard_normal((_CANDIDATES, network.dim_in))
    norms = np.linalg.norm(network.weights[0], axis=1)
    tiny = np.finfo(np.float64).tiny
    margin = (np.abs(network.preactivations(Z)[0]) / np.maximum(norms, tiny)).min(
        axis=1, initial=np.sqrt(Z.shape[1])
    )
    far = np.argsort(-margin, kind="stable")[: int(_FAR_SHARE * _CANDIDATES)]
    return Z[far], margin[far]


def _design(network: Network, Z: FloatArray) -> FloatArray:
    """Each point's and output's equation for a direction's unknowns, shape (n k, m [+ k])."""
    on, k = network.activations(Z)[1] > 0.0, network.dim_out
    n_rest = 0 if network.skip is None else k
    neurons = np.where(on[:, None, :], network.weights[1], 0.0)
    rest = np.broadcast_to(np.eye(k)[:, :n_rest], (len(Z), k, n_rest))
    both = np.concatenate([neurons, rest], axis=2)
    return both.reshape(len(Z) * k, on.shape[1] + n_rest)


def _determining(network: Network, Z: FloatArray) -> IntArray:
    """Choose points whose equations determine the unknowns, and a few to spare.

    Pivoting by blocks: each time the point whose equations say most that those of the
    points before it do not.
    """
    equations = _design(network, Z)
    size = np.linalg.norm(equations, axis=0)
    scaled = (equations / np.where(size > 0, size, 1.0)).reshape(len(Z), network.dim_out, -1)
    points: list[int] = []
    new = scaled
    while (gain := (new**2).sum(axis=(1, 2))).max() > _NOTHING_NEW * (scaled**2).sum():
        points.append(int(gain.argmax()))
        _, values, vt = np.linalg.svd(new[points[-1]], full_matrices=False)
        axes = vt[values**2 > _NOTHING_NEW * (scaled**2).sum()]
        new = new - (new @ axes.T) @ axes
    others = np.setdiff1d(np.arange(len(Z)), points)
    return np.array([*points, *others[:_SPARE_POINTS]], dtype=np.intp)
