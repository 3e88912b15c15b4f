"""The last digits of a two-layer network that is right but for small errors.

With its activation patterns fixed an answer is smooth in the parameters, and a network
that errs by 1e-11 has the patterns of the true one nearly everywhere: one Gauss-Newton
step on fresh answers squares the error.  What is left is the noise of the answers times
the condition of the system, and the rounding of the residual, which is therefore taken in
extended precision (iterative refinement, Wilkinson 1963).

The condition is a matter of which inputs are asked.  As many random ones as there are
unknowns make a system whose smallest singular value is close to 0; out of three times as
many, those that a QR decomposition with column pivoting takes first (Businger and Golub
1965) make one that hardly amplifies at all.
"""

import numpy as np
import scipy.linalg

from revelu.recover.fit.levenberg_marquardt import fit
from revelu.recover.fit.two_layer import Derivative, Samples, TwoLayer
from revelu.types import FloatArray, IntArray

_STEPS = 3

# Singular values under this share of the largest belong to the neurons' free scales.
_RANK_RTOL = 1e-10

# Steps, and iterations of LSMR each, of a network too large for a matrix; a step that
# gains less than this share is the last.
_FREE_STEPS = 8
_ITERATIONS = 30
_GAIN = 0.3
_DAMPING = 1e-12

# Rows whose residual is taken at a time: extended numbers take 16 bytes.
_CHUNK = 2048


def choose_inputs(network: TwoLayer, X: FloatArray) -> IntArray:
    """Choose inputs whose answers determine a network of one output well.

    Parameters
    ----------
    network : TwoLayer
        Nearly right, of one output.
    X : ndarray, shape (n, d)
        To choose from; three times as many as the network has degrees of freedom will do.

    Returns
    -------
    ndarray of int
        As many rows of ``X`` as there are degrees of freedom.
    """
    samples = Samples(X, np.zeros((len(X), 1)), np.ones(1))
    J = Derivative(network.balanced(), samples).matrix()
    order = scipy.linalg.qr(J.T, mode="r", pivoting=True)[1]
    return np.asarray(order[: network.n_parameters], dtype=np.intp)


def refine(network: TwoLayer, X: FloatArray, Y: FloatArray) -> TwoLayer:
    """Fit a network that is nearly right to answers, to the last digits.

    Parameters
    ----------
    network : TwoLayer
        Small enough for its derivative to be written out.
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, k)

    Returns
    -------
    TwoLayer
        That with the least error of all steps.
    """
    best = network.balanced()
    rest = _residual(best, X, Y)
    for _ in range(_STEPS):
        derivative = Derivative(best, Samples(X, Y, np.ones(Y.shape[1])))
        step = scipy.linalg.lstsq(derivative.matrix(), rest.ravel(), cond=_RANK_RTOL)[0]
        new = best.like(best.to_vector() + step * derivative.scales)
        new_rest = _residual(new, X, Y)
        if not float((new_rest**2).sum()) < float((rest**2).sum()):
            break
        best, rest = new, new_rest
    return best


def refine_matrix_free(
    network: TwoLayer, X: FloatArray, Y: FloatArray, sigma: FloatArray
) -> TwoLayer:
    """Fit a network that is nearly right to answers, without writing its derivative out.

    Parameters
    ----------
    network : TwoLayer
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, k)
    sigma : ndarray, shape (k,)
        Standard error of an answer.
    """
    samples = Samples(X, Y, sigma)
    return fit(
        network,
        samples,
        max_steps=_FREE_STEPS,
        rtol=_GAIN,
        patience=1,
        damping=_DAMPING,
        iterations=_ITERATIONS,
        whiten=True,
    ).network


def _residual(network: TwoLayer, X: FloatArray, Y: FloatArray) -> FloatArray:
    """Answers less the network's, computed in extended precision, shape (n, k)."""
    exact = [None if p is None else p.astype(np.longdouble) for p in vars(network).values()]
    wide = TwoLayer(*exact)  # type: ignore[arg-type]
    rows = []
    for i in range(0, len(X), _CHUNK):
        chunk = X[i : i + _CHUNK].astype(np.longdouble)
        H = np.maximum(chunk @ wide.W.T + wide.b, 0.0)
        value = H @ wide.A.T + wide.c
        if wide.V is not None:
            value = value + chunk @ wide.V.T
        rows.append((Y[i : i + _CHUNK] - value).astype(np.float64))
    return np.concatenate(rows)
