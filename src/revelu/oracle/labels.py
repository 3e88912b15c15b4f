"""Answers that are labels: the names of classes, as numbers, and nothing else."""

import numpy as np

from revelu.types import FloatArray


def are_labels(Y: FloatArray, *, most: float = 0.5) -> bool:
    """Whether answers ``Y (n, k)`` are labels: whole numbers, or rows with a single 1.

    One label alone is none: a constant is as likely.  Nor are so many different ones that more
    than ``most`` of the answers are unlike all others.
    """
    if not np.array_equal(Y, np.rint(Y)):
        return False
    if Y.shape[1] > 1:
        is_one_hot = ((Y == 0.0) | (Y == 1.0)).all() and (Y.sum(axis=1) == 1.0).all()
        return bool(is_one_hot and (Y[0] != Y).any())
    return 1 < len(np.unique(Y)) <= most * len(Y)


def as_labels(Y: FloatArray) -> FloatArray:
    """Labels (n, 1) of answers ``Y (n, k)``.

    Of several answers the place of the largest; a single one is the label if it is a whole
    number, and else its sign, as 0 or 1.
    """
    if Y.shape[1] > 1:
        return np.asarray(Y.argmax(axis=1).astype(np.float64)[:, None])
    if np.array_equal(Y, np.rint(Y)):
        return Y
    return (Y > 0).astype(np.float64)
