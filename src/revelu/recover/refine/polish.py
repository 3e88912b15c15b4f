"""Polish: from a recovered network to the last digits that the answers have.

Recovery divides differences of answers by the distance of kinks, and so loses digits.
Fresh answers at well-conditioned inputs, one round of them, have them all.

With its activation patterns fixed an answer is smooth in the weights, and a network that
errs by 1e-11 has the patterns of the true one nearly everywhere: one Gauss-Newton step
squares the error.  What is left is the noise of the answers times the condition of the
system.  The condition is a matter of which inputs are asked.  As many random ones as there
are unknowns make a system whose smallest singular value is close to 0; out of three times
as many, those that a QR decomposition with column pivoting takes first (Businger and Golub
1965) make one that hardly amplifies at all.
"""

from dataclasses import replace

import numpy as np
import scipy.linalg

from revelu.network import Network
from revelu.network.derivative import NetworkDerivative, ParameterArrays
from revelu.numerics.gauss_newton import UNDAMPED, Chord, Iterative, Orthogonal, Solver, Stop
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.refine.network_fit import (
    AUTOMATIC,
    Samples,
    degrees_of_freedom,
    fit,
    fit_top,
    top_of,
)
from revelu.types import FloatArray, IntArray

# Steps of a fit end with the first that leaves more than a third less.
_QUICK = Stop(3, rtol=0.3, patience=1)

# Equations for each unknown where inputs are not chosen.  The singular values of a random
# matrix lie within 1 -+ 1/sqrt(1.3) of a common size (Marchenko and Pastur): the smallest is
# 0.123 / 1.877, a fifteenth of the largest.
_EQUATIONS = 1.3


def polish_network(
    oracle: Oracle,
    network: Network,
    noise: NoiseFloor,
    seed: int | np.random.SeedSequence,
    *,
    pool: int = 3,
) -> Network:
    """Refine a recovered network by one round of fresh queries.

    Parameters
    ----------
    oracle : Oracle
        Exact; queries are booked under ``polish``.
    network : Network
        Right but for small errors.
    seed : int or SeedSequence
    pool : int
        Inputs to choose from, for each that is asked.

    Returns
    -------
    Network
        Of the same shape.  A small network of one hidden layer and one output is asked about
        one query a parameter; others 1.3 answers a parameter.

    Raises
    ------
    LimitReachedError
        If the budget forbids the round; nothing is asked then.
    """
    rng = np.random.default_rng(seed)
    is_shallow = network.n_hidden == 1
    n = -(-(degrees_of_freedom(network) if is_shallow else network.n_parameters) // network.dim_out)
    if is_shallow and network.dim_out == 1 and network.n_parameters <= AUTOMATIC.most_parameters:
        X = rng.standard_normal((pool * n, network.dim_in))
        X = X[choose_inputs(network, X)]
    else:
        X = rng.standard_normal((int(np.ceil(_EQUATIONS * n)), network.dim_in))
    with oracle.phase("polish"):
        Y = oracle(X)
    # A saturated answer says nothing.
    answered = np.isfinite(Y).all(axis=1)
    return fit_to_last_digits(network, X[answered], Y[answered], noise)


def polish_to_known(
    network: Network,
    X: FloatArray,
    Y: FloatArray,
    noise: NoiseFloor,
    *,
    most: float = 8.0,
    most_of_all: float = 2.0,
) -> Network:
    """Refine a recovered network by answers that were asked anyway.

    Parameters
    ----------
    network : Network
        Right at these points but for small errors.
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, k)
    most, most_of_all : float
        Equations a parameter that are used, and for all layers of a large deep network.

    Returns
    -------
    Network
        As given where there are fewer than 1.3 equations a parameter.
    """
    if Y.size < _EQUATIONS * network.n_parameters:
        return network
    rows = _telling(network, X, Y, noise, most)
    return fit_to_last_digits(network, X[rows], Y[rows], noise, most=most_of_all)


def _telling(
    network: Network, X: FloatArray, Y: FloatArray, noise: NoiseFloor, most: float
) -> IntArray:
    """Choose equations, at least a number for each parameter.

    Where the network errs most, for few inputs show a rare neuron's weights; and evenly: what was
    asked last was asked because it says something else.
    """
    n = int(np.ceil(most * network.n_parameters / network.dim_out))
    if n >= len(X):
        return np.arange(len(X))
    errors = (np.abs(network(X) - Y) / noise.unit).max(axis=1)
    order = np.argsort(-errors, kind="stable")
    worst, rest = order[: n // 2], np.sort(order[n // 2 :])
    return np.union1d(worst, rest[np.linspace(0, len(rest) - 1, n - n // 2).astype(np.intp)])


def fit_to_last_digits(
    network: Network,
    X: FloatArray,
    Y: FloatArray,
    noise: NoiseFloor,
    *,
    most_square: int = 9000,
    settled: float = 300.0,
    most: float = np.inf,
    most_work: float = 4e11,
) -> Network:
    """Fit all weights of a network that is right but for small errors.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, k)
        ``n k`` should exceed the number of weights.
    most_square : int
        Parameters up to which normal equations are factorised, of half a GiB; larger networks
        are solved for by iterations.
    settled : float
        Errors of an answer that end the fit of a large deep network: about what rounding makes.
    most : float
        Equations a parameter that are used for all layers of one.
    most_work : float
        Multiplications that the iterations of one step take, about.

    Returns
    -------
    Network
        With the least root-mean-square error on ``X`` of all steps.

    Notes
    -----
    Gauss-Newton steps are not damped: each is as good as the patterns are right.  A small
    network's are solved for by an orthogonal factorisation, since weights that few answers
    show are as good as free beside the others, and from a residual in extended precision,
    whose rounding is what the last digits would be lost to (iterative refinement, Wilkinson
    1963).  A larger deep network's weights are those of rare neurons, too, which iterations hardly
    move: normal equations do, and what their squared condition loses the next steps give back.
    Of the last two layers they are quick, and the layers below may be right as they are.
    """
    samples = Samples.near(X, Y, noise)
    if network.n_parameters <= AUTOMATIC.most_parameters:
        found = fit(
            network,
            samples,
            Stop(3, rtol=0.0),
            solver=Orthogonal(),
            damping=UNDAMPED,
            extended=True,
        )
        return found.network
    stop = replace(_QUICK, max_steps=8)
    solver: Solver = Iterative(iterations=80, white=True)
    if network.n_hidden > 1:
        if top_of(network).n_parameters <= most_square:
            network = fit_top(network, samples, stop, solver=Chord(), damping=UNDAMPED)
        if samples.cost(network) <= settled:
            return network
        n = min(len(X), most * network.n_parameters / network.dim_out)
        rows = np.linspace(0, len(X) - 1, int(np.ceil(n))).astype(np.intp)
        samples = samples.take(rows)
        work = 4.0 * len(rows) * network.n_parameters
        iterations = int(np.clip(most_work / work, 20, 200))
        solver = Iterative(iterations, rtol=1e-4, white=True)
        if network.n_parameters <= most_square:
            solver = Chord()
    return fit(network, samples, stop, solver=solver, damping=UNDAMPED).network


def fit_most(
    network: Network,
    X: FloatArray,
    Y: FloatArray,
    noise: NoiseFloor,
    *,
    iterations: int = 60,
    max_trims: int = 4,
    stands_out: float = 10.0,
) -> Network:
    """Fit all weights to most points: some show a neuron that the network lacks.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, k)
    iterations : int
        Of a step.
    max_trims : int
        Times that points are left out,
    stands_out : float
        where the fit leaves ``stands_out`` times as much as at the median of them.
    """
    samples = Samples.near(X, Y, noise)
    stop, solver = _QUICK, Iterative(iterations, white=True)
    for _ in range(max_trims):
        network = fit(network, samples, stop, solver=solver, damping=UNDAMPED).network
        left = np.abs(samples.residual(network)).max(axis=1, initial=0.0)
        kept = left <= stands_out * np.median(left)
        if kept.all():
            break
        samples = samples.take(kept)
    return network


def fit_above(network: Network, X: FloatArray, Y: FloatArray, noise: NoiseFloor) -> Network:
    """Fit the layers above the first to most points, as :func:`fit_most` does all of them."""
    (W, *weights), (b, *biases) = network.weights, network.biases
    above = Network(weights, biases, network.skip)
    above = fit_most(above, network.activations(X)[1], Y, noise, iterations=200, max_trims=2)
    return Network([W, *above.weights], [b, *above.biases], above.skip)


def choose_inputs(network: Network, X: FloatArray) -> IntArray:
    """Choose inputs whose answers determine a network of one output well.

    Parameters
    ----------
    network : Network
        Nearly right, of one output.
    X : ndarray, shape (n, d)
        To choose from; three times as many as the network has degrees of freedom will do.

    Returns
    -------
    ndarray of int
        As many rows of ``X`` as there are degrees of freedom.
    """
    J = NetworkDerivative(ParameterArrays.of(network), X, np.ones(1)).matrix()
    sizes = np.sqrt(np.einsum("ij,ij->j", J, J))
    J /= np.where(sizes > 0.0, sizes, 1.0)
    order = scipy.linalg.qr(J.T, mode="r", pivoting=True)[1]
    return np.asarray(order[: degrees_of_freedom(network)], dtype=np.intp)
