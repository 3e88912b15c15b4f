"""Idle vectors and factors of an output layer, told by labels instead of borders.

An entry of the output layer is idle where no border was met on one side of a neuron's hyperplane:
no equation tells it.  Whatever it is, it has borders there, and where the target has none they
are wrong.  The inputs asked on that side have labels, and these say which output is the largest:

    F_r(x) - F_s(x) + Σ_j λ_j (F_jr(x) - F_js(x)) >= 0    for the label r and every class s,

with the outputs F_j of idle vectors.  That is linear in λ, and the λ of the widest margin is taken.
Ratios of factors, which no border tells, are settled in the same way: a ratio that is far off
makes borders between classes that share none.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import linprog

from revelu.recover.labels.columns import Added, OutputEquations
from revelu.types import FloatArray, IntArray


def settled(
    columns: OutputEquations, V: FloatArray, X: FloatArray, labels: IntArray, *, faint: float = 1e-9
) -> OutputEquations:
    """Choose idle vectors and factors by labels; those chosen stay where all labels agree.

    Parameters
    ----------
    V : ndarray, shape (m, d + 1)
    X : ndarray, shape (n, d)
        Inputs asked.
    labels : ndarray of int, shape (n,)
        The places of their classes.
    faint : float
        Differences of outputs that change by a smaller share are not changed.
    """
    idle = columns.idle.joined(columns.factors)
    if not len(idle):
        return columns
    margins = _margins(columns, idle, V, X, labels)
    is_open = np.abs(margins[1:]).max(axis=0) > faint * np.abs(margins[0]).max()
    if not (margins[0, is_open] < 0.0).any():
        return columns
    mix = _widest(columns, idle, margins[:, is_open], faint)
    if mix is None:
        return columns
    A, G, c = (np.tensordot(mix, part, 1) for part in (idle.A, idle.G, idle.c))
    return replace(columns, A=columns.A + A, G=columns.G + G, c=columns.c + c)


def _margins(
    columns: OutputEquations, idle: Added, V: FloatArray, X: FloatArray, labels: IntArray
) -> FloatArray:
    """By how much the outputs of labels are above the others, and what idle vectors add to it.

    Returns
    -------
    ndarray, shape (1 + t, n k)
    """
    hidden = np.maximum(X @ V[:, :-1].T + V[:, -1], 0.0)
    parts = ((columns.A, idle.A), (columns.G, idle.G), (columns.c, idle.c))
    A, G, c = (np.concatenate([own[None], added]) for own, added in parts)
    F = hidden @ A.transpose(0, 2, 1) + X @ G.transpose(0, 2, 1) + c[:, None]
    own = np.take_along_axis(F, labels[None, :, None], axis=2)
    return np.asarray((own - F).reshape(len(F), -1))


def _widest(
    columns: OutputEquations, idle: Added, margins: FloatArray, faint: float
) -> FloatArray | None:
    """How much of each idle vector leaves the widest margin, (t,), with no entry above all others.

    Without that bound a margin that nothing ends grows for ever.
    """
    t = len(idle)
    is_open = np.abs(idle.A).max(axis=0) > faint
    entries, parts = columns.A[is_open], idle.A[:, is_open].T
    largest, zero = np.abs(columns.A).max(), np.zeros((len(entries), 1))
    wide = np.ones((margins.shape[1], 1))
    left = np.block([[-margins[1:].T, wide], [parts, zero], [-parts, zero]])
    right = np.concatenate([margins[0], largest - entries, largest + entries])
    found = linprog(np.append(np.zeros(t), -1.0), left, right, bounds=(None, None))
    return np.asarray(found.x[:t]) if found.success else None
