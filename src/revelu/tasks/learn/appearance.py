"""What a table looks like that a network is to be learned from, and what to do with it instead."""

from collections.abc import Sequence

import numpy as np

from revelu.errors import InputError
from revelu.numerics.quadratic import fit_quadratic
from revelu.types import FloatArray


def refuse_labels(y: FloatArray, fewest: int = 20) -> None:
    """Refuse answers of two values: no network with a hidden layer gives them.

    Parameters
    ----------
    fewest : int
        Of ``fewest`` answers two values are no chance.

    Raises
    ------
    InputError
        Which says what is for such answers.
    """
    values = np.unique(y)
    if len(values) == 2 and len(y) > fewest:
        low, high = values
        rules = "--halfspaces or, or --halfspaces and, finds rules behind them"
        raise InputError(
            f"y is {low:g} or {high:g} in every sample: labels, not a network's numbers; "
            + (rules if (low, high) == (0.0, 1.0) else f"as 0 and 1, {rules}")
            + "; of a model that can be asked, `revelu extract MODEL --labels` takes them"
        )


def of_answers(y: FloatArray, repeats: int = 20) -> str:
    """Say of answers that no network explains what else they look like; nothing of others.

    Parameters
    ----------
    repeats : int
        Answers that have each value so often, on average, are labels, grades, or a tree's leaves.
    """
    n = len(np.unique(y))
    if n * repeats > len(y):
        return ""
    return (
        f"y has {n:,} values in {len(y):,} samples: it is rounded, or the leaves of a tree, or "
        "classes by number, whose probabilities, several --target, would say more"
    )


def are_few(y: FloatArray, most: int = 32) -> bool:
    """Whether answers repeat, and have so few values that hardly a network gave them."""
    return len(np.unique(y)) <= most and bool(of_answers(y))


def other_answers(
    X: FloatArray,
    weights: FloatArray,
    names: Sequence[str],
    *,
    explained: float = 0.5,
    rows: int = 20_000,
) -> list[str]:
    """Name the inputs of an affine law that the others determine: answers, as it seems.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    weights : ndarray, shape (d,)
        Of the affine law.
    names : sequence of str
        Of the columns; empty where they have numbers.
    explained : float
        A column of which a quadratic in the others explains more than this share is no input of a
        law of its own.
    rows : int
        That show it.
    """
    X = X[:rows]
    deviations = X.std(axis=0)
    sizes = np.abs(weights) * deviations
    found = []
    for j in np.flatnonzero(sizes > 1e-6 * sizes.max(initial=0.0)):
        rest = np.delete(X, j, axis=1)
        varies = rest.std(axis=0) > 0
        if len(X) < 3 * (varies.sum() + 1) * (varies.sum() + 2) / 2 or not varies.any():
            continue
        rest = (rest[:, varies] - rest[:, varies].mean(axis=0)) / rest[:, varies].std(axis=0)
        left = X[:, j] - fit_quadratic(rest, X[:, j])(rest)
        if left.var() < (1.0 - explained) * X[:, j].var():
            found.append(names[int(j)] if names else f"{j}")
    return found
