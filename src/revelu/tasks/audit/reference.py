"""Inputs, and what the undefended target answers: what copies and defences are held against."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from revelu.certify.labels import predict_labels
from revelu.network import Network
from revelu.numerics.links import NONE, Link
from revelu.oracle.labels import are_labels, as_labels
from revelu.oracle.log_ratios import SMALLEST_DIFFERENCE
from revelu.tasks.audit.defences import Defence
from revelu.types import FloatArray


@dataclass(frozen=True)
class Reference:
    """Inputs, and what the undefended target answers.

    Attributes
    ----------
    X : ndarray, shape (n, d)
        The target's own inputs.
    Y : ndarray, shape (n, k)
    link : Link
        What is between a copy and its answers.
    one_class : float
        Share of inputs from which on their commonest class is called the only one: who names that
        always is right as often.
    """

    X: FloatArray
    Y: FloatArray
    link: Link = NONE
    one_class: float = 0.99

    @property
    def deviation(self) -> float:
        """Root mean square deviation of an output from its mean."""
        return float(np.sqrt(((self.Y - self.Y.mean(axis=0)) ** 2).mean()))

    def answers_of(self, copy: Network, X: FloatArray) -> FloatArray:
        """Return what a copy answers: probabilities where the target does."""
        return self.link.answers(copy(X))

    def compare(
        self, copy: Network, classes: Sequence[float] = ()
    ) -> tuple[float | None, float | None, float | None]:
        """Return fidelity, label agreement and relative error of a copy.

        Parameters
        ----------
        classes : sequence of float
            What the outputs of a copy stand for that was made of labels; these tell of no
            answers.
        """
        if classes:
            same = float((self._labels_by(copy, classes) == self.labels).mean())
            return None, None if self.is_of_one_class else same, None
        Y = self.answers_of(copy, self.X)
        agreement = None if self.is_of_one_class else self._same_classes(Y)
        error = float(np.sqrt(((Y - self.Y) ** 2).mean()))
        if self.deviation == 0.0:
            return None, agreement, None
        relative = error / self.deviation
        return 1.0 - relative**2, agreement, relative

    def likeness(self, copy: Network, classes: Sequence[float] = ()) -> float | None:
        """Return the share that a copy explains of how answers vary, or labels.

        Of labels it is 1 where all are equal, and 0 of a copy that errs as often as who names the
        commonest class always.  None where answers do not vary.
        """
        if not classes:
            return self.compare(copy)[0]
        _, counts = np.unique(self.labels, return_counts=True)
        by_chance = len(self.labels) - int(counts.max())
        wrong = int((self._labels_by(copy, classes) != self.labels).sum())
        return 1.0 - wrong / by_chance if by_chance else None

    @property
    def middle(self) -> float | None:
        """Above which a single probability says one of two classes; None of other answers."""
        is_one = self.link.name == "logit" and self.Y.shape[1] == 1
        return 0.5 * self.link.scale if is_one else None

    @property
    def labels(self) -> FloatArray:
        """The classes that answers name, shape (n,)."""
        return self._classes(self.Y)

    def _classes(self, Y: FloatArray) -> FloatArray:
        if self.middle is not None:
            return np.asarray(Y[:, 0] > self.middle, dtype=np.float64)
        return as_labels(Y)[:, 0]

    @property
    def largest_class(self) -> float:
        """The share of inputs of the commonest class."""
        _, counts = np.unique(self.labels, return_counts=True)
        return float(counts.max() / len(self.labels))

    @property
    def is_of_one_class(self) -> bool:
        """Whether a constant names as good as all classes."""
        return self.largest_class >= self.one_class

    def _labels_by(self, copy: Network, classes: Sequence[float]) -> FloatArray:
        return predict_labels(copy, np.array(classes), self.X)

    def costs(self, defence: Defence) -> tuple[float | None, float | None]:
        """Return the share of classes that a defence keeps, and how far it shifts answers.

        The largest probability alone does not say the class.
        """
        if defence.leaves != "numbers":
            return None if defence.leaves == "top" else 1.0, None
        Y = defence.of(self.Y)
        kept = self._same_classes(Y)
        shift = float(np.sqrt(((Y - self.Y) ** 2).mean()))
        return kept, shift / self.deviation if self.deviation else None

    def _same_classes(self, Y: FloatArray) -> float | None:
        """The share of inputs whose class is as before; one number has none."""
        if Y.shape[1] == 1 and self.middle is None:
            return None
        return float((self._classes(Y) == self.labels).mean())

    def is_silent(self, defence: Defence) -> bool:
        """Whether answers behind a defence are all one, or probabilities that have lost digits."""
        Y = defence.of(self.Y)
        if defence.leaves == "top" and self.link.name == "softmax":
            return bool((1.0 - self.Y.max(axis=1) < SMALLEST_DIFFERENCE).all())
        return bool((Y[0] == Y).all())

    def changes(self, defence: Defence) -> bool:
        """Whether a defence changes any answer."""
        return not np.array_equal(defence.of(self.Y), self.Y)

    def shows_labels(self, defence: Defence) -> bool:
        """Whether answers are labels, which who rounds has again behind a defence."""
        return are_labels(self.Y) and np.array_equal(np.rint(defence.of(self.Y)), self.Y)
