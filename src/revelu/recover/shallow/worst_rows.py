"""The few rows that are worse than the rest, of one hidden layer that is nearly right.

A row that is off by ``u`` leaves ``a on(x) (u . [x, 1])`` of the answers, ``a`` being its column:
linear in ``u``, where the neuron keeps its state.  Rows found between near kinks lose three digits
more than others, and are few: they are told by what they explain of the rest, those that explain
most first (orthogonal matching pursuit, Pati et al. 1993).
"""

import numpy as np
import scipy.linalg

from revelu.network import Network
from revelu.numerics.confidence import standard_errors
from revelu.numerics.float64 import EPS
from revelu.numerics.interruption import check_cancelled
from revelu.types import BoolArray, FloatArray


def fit_worst_rows(
    network: Network,
    X: FloatArray,
    Y: FloatArray,
    unit: FloatArray,
    *,
    max_rows: int = 64,
    faint: float = 1e-4,
    most: float = 0.7,
) -> Network:
    """Fit the rows that explain what a network leaves of answers, and the affine rest.

    Neurons much fainter than most may stand for what two near kinks were off by, and take rows'
    places: the fit is tried without them, too.

    Parameters
    ----------
    network : Network
        One hidden layer, right but for small errors.
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, k)
        Some forty answers for each input of a row.
    unit : ndarray, shape (k,)
        Units of the outputs.
    max_rows : int
    faint : float
        Neurons are that whose slope is less than this share of the typical one.
    most : float
        Unknowns an equation, at most.

    Returns
    -------
    Network
        As given where no row explains more than others; what leaves less of the answers.
    """
    W, A = network.weights
    slopes = np.linalg.norm(W, axis=1) * np.linalg.norm(A / unit[:, None], axis=0)
    strong = slopes >= faint * np.median(slopes)
    starts = [network] if strong.all() else [network, network.take(np.flatnonzero(strong))]
    fitted = [_fit(start, X, Y, unit, max_rows, most) for start in starts]
    return min(fitted, key=lambda found: float((((Y - found(X)) / unit) ** 2).sum()))


def _fit(
    network: Network,
    X: FloatArray,
    Y: FloatArray,
    unit: FloatArray,
    max_rows: int,
    most: float,
) -> Network:
    """Fit what explains most, as :func:`fit_worst_rows` says, of all neurons."""
    (W, A), k = network.weights, len(unit)
    p, scaled = W.shape[1] + 1, A / unit[:, None]
    inputs = np.column_stack([X, np.ones(len(X))])
    on = X @ W.T + network.biases[0] > 0
    rest = np.asarray((Y - network(X)) / unit)
    affine = inputs if network.skip is not None else inputs[:, -1:]
    columns = [np.kron(affine, np.eye(k))]
    grams = [inputs[on[:, j]].T @ inputs[on[:, j]] for j in range(len(W))]
    rows: list[int] = []
    while True:
        F = np.hstack(columns)
        x = scipy.linalg.lstsq(F, rest.ravel(), lapack_driver="gelsy", check_finite=False)[0]
        left = rest - (F @ x).reshape(rest.shape)
        check_cancelled()
        # Twice as many rows each time, if all of these are worse and can be solved for.
        room = int((most * rest.size - F.shape[1]) // p)
        n = min(max(1, len(rows)), max_rows - len(rows), room)
        gains = _gains(inputs, on, scaled, left, grams)
        gains[rows] = 0.0
        if rest.size <= F.shape[1]:
            break  # where lines end, few answers are left
        noise = float((left**2).sum()) / (rest.size - F.shape[1])
        # p unknowns explain p times the noise by chance, up to the deviation of chi squared.
        by_chance = p + standard_errors(len(W)) * np.sqrt(2.0 * p)
        worse = np.flatnonzero(gains > by_chance * noise)
        worse = worse[np.argsort(-gains[worse])][: max(n, 0)]
        if not len(worse):
            break
        rows += worse.tolist()
        columns += [np.kron(inputs * on[:, [j]], scaled[:, [j]]) for j in worse]
    if not rows:
        return network
    V, e = network.skip or (np.zeros((k, p - 1)), np.zeros(k))
    moved = x[: columns[0].shape[1]].reshape(-1, k).T * unit[:, None]
    changes = x[columns[0].shape[1] :].reshape(len(rows), p)
    W, b, c = W.copy(), network.biases[0].copy(), network.biases[1] + moved[:, -1]
    W[rows] += changes[:, :-1]
    b[rows] += changes[:, -1]
    skip = None if network.skip is None else (V + moved[:, :-1], e)
    return Network([W, A], [b, c], skip=skip)


def _gains(
    inputs: FloatArray,
    on: BoolArray,
    columns: FloatArray,
    left: FloatArray,
    grams: list[FloatArray],
) -> FloatArray:
    """How much of the squares left each row alone explains, shape (m,)."""
    p, gains = inputs.shape[1], np.zeros(len(grams))
    for j, gram in enumerate(grams):
        a = columns[:, j]
        if on[:, j].sum() < 2 * p or not a.any():
            continue
        right = inputs[on[:, j]].T @ (left[on[:, j]] @ a) / np.linalg.norm(a)
        ridge = EPS * np.trace(gram) * np.eye(p)
        gains[j] = right @ scipy.linalg.solve(gram + ridge, right, assume_a="pos")
    return gains
