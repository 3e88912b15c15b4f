"""Answers that are labels: the names of classes, as numbers, and nothing else."""

from dataclasses import dataclass, field

import numpy as np

from revelu.types import FloatArray


@dataclass
class LabelTally:
    """The different labels among all answers of a target, as long as those may be labels.

    Attributes
    ----------
    most : float
        So many different whole numbers that they are a larger share of the answers are none.
    labels : ndarray, shape (m,)
        The labels so far, ascending.
    n : int
        Of so many answers.
    may_be_labels : bool
        Whether each answer was a whole number, or a row with a single 1.
    """

    most: float = 0.5
    labels: FloatArray = field(default_factory=lambda: np.empty(0), init=False)
    n: int = field(default=0, init=False)
    may_be_labels: bool = field(default=True, init=False)

    def add(self, Y: FloatArray) -> None:
        """Take in answers ``Y (n, k)``."""
        if not self.may_be_labels:
            return
        self.n += len(Y)
        is_column = Y.shape[1] == 1
        self.may_be_labels = _are_whole(Y) if is_column else _are_one_hot(Y)
        if self.may_be_labels:
            self.labels = np.union1d(self.labels, as_labels(Y))
            many = is_column and len(self.labels) > max(self.most * self.n, 1.0)
            self.may_be_labels = not many

    @property
    def are_labels(self) -> bool:
        """Whether they are labels.  One label alone is none: a constant is as likely."""
        return self.may_be_labels and len(self.labels) > 1


def are_labels(Y: FloatArray) -> bool:
    """Whether answers ``Y (n, k)`` are labels, as :class:`LabelTally` says."""
    tally = LabelTally()
    tally.add(Y)
    return tally.are_labels


def _are_whole(Y: FloatArray) -> bool:
    return np.array_equal(Y, np.rint(Y))


def _are_one_hot(Y: FloatArray) -> bool:
    return bool(((Y == 0.0) | (Y == 1.0)).all() and (Y.sum(axis=1) == 1.0).all())


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
