"""Neurons that a network lacks, from the answers at which it is wrong.

A neuron that is missing, and rarely on, leaves nothing but where it is on: there ``a (w x + b)``,
an affine function of rank 1, which as many answers tell as it has unknowns.
"""

import numpy as np

from revelu.network import Network
from revelu.recover.refine.network_fit import Samples


def neurons_where_wrong(left: Samples, n: int, off: float, n_more: int) -> Network:
    """Find neurons one after another, each from where most is left.

    Parameters
    ----------
    left : Samples
        What a network leaves of answers.
    n : int
        How many neurons there are, at most.
    off : float
        An answer is wrong that is off by more than so many errors.
    n_more : int
        Each is told by so many more answers than a row has weights, the nearest.

    Returns
    -------
    Network
        Of these neurons alone; none, where too few answers are wrong.
    """
    d, k = left.X.shape[1], left.Y.shape[1]
    rest, rows, columns = left.Y.copy(), [], []
    for _ in range(n):
        size = np.abs(rest / left.sigma).max(axis=1)
        wrong = np.flatnonzero(size > off)
        if len(wrong) <= d + 1:
            break
        worst = left.X[wrong[size[wrong].argmax()]]
        near = np.argsort(np.linalg.norm(left.X[wrong] - worst, axis=1), kind="stable")
        near = wrong[near[: d + n_more]]
        column = np.linalg.svd(rest[near], full_matrices=False)[2][0]
        sums = rest[near] @ column
        column, sums = (column, sums) if sums.sum() > 0 else (-column, -sums)
        H = np.column_stack([left.X[near], np.ones(len(near))])
        row = np.linalg.lstsq(H, sums, rcond=1e-6)[0]
        rows.append(row)
        columns.append(column)
        rest -= np.maximum(left.X @ row[:-1] + row[-1], 0.0)[:, None] * column
    W = np.array(rows).reshape(-1, d + 1)
    A = np.array(columns).reshape(-1, k).T
    return Network([W[:, :-1], A], [W[:, -1], np.zeros(k)])
