"""Answers that are labels: the names of classes, or numbers for them, and nothing else."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from revelu.errors import TargetError
from revelu.oracle.journal import Journal
from revelu.types import FloatArray


class TextsError(TargetError):
    """Texts that hardly repeat: names of many classes, or no labels at all."""


class ClassNames:
    """Names of classes that a target answers, numbered in the order in which they are seen.

    A journal, and other processes, know a name by its code, which depends on the name alone.

    Parameters
    ----------
    names : sequence of str
        Those that are known before, in their order.
    most, first : int
        More different texts than ``most`` among the ``first`` answers are no labels: of 100
        equally frequent ones 52 are expected, and 65 are four standard deviations more.
    fewest : int
        Answers from which on that shows.

    Attributes
    ----------
    are_expected : bool
        Whether texts are labels however many there are.
    """

    def __init__(
        self, names: Iterable[str] = (), *, most: int = 64, first: int = 72, fewest: int = 56
    ) -> None:
        self.most, self.first, self.fewest = most, first, fewest
        self._names: dict[float, str] = {}
        self._places: dict[float, int] = {}
        self._n, self.are_expected = 0, False
        for name in names:
            self._names[code := _code(name)] = name
            self._places[code] = len(self._places)
        self._n_given = len(self._places)

    def __bool__(self) -> bool:
        """Whether any was answered."""
        return self._n > 0

    @property
    def n_given(self) -> int:
        """How many were told before anything was answered."""
        return self._n_given

    @property
    def are_given(self) -> bool:
        """Whether their order was told, and is not that in which they are answered."""
        return self._n_given > 0

    @property
    def n_seen(self) -> int:
        """How many different ones were answered, or are known before."""
        return len(self._places)

    @property
    def n_missing(self) -> int:
        """Answers that it takes to tell, besides those that are there."""
        return max(self.first - self._n, 0)

    def coded(self, raw: Any, n: int, journal: Journal | None = None) -> Any:
        """Return an answer to n rows as it is, or the codes of texts, one a row.

        A journal has the names of codes that are new before it has those.
        """
        is_listed = isinstance(raw, list) and all(isinstance(one, str) for one in raw)
        texts = np.asarray(raw) if is_listed or isinstance(raw, np.ndarray) else np.empty(0)
        if texts.dtype.kind != "U" or texts.shape not in {(n,), (n, 1)}:
            return raw
        names, places = np.unique(texts, return_inverse=True)
        codes = [_code(f"{name}") for name in names]
        known = dict(zip(codes, map(str, names), strict=True))
        new = {code: name for code, name in known.items() if code not in self._names}
        if new and journal is not None:
            journal.note_names(new)
        self._names |= new
        return np.array(codes)[places].reshape(-1, 1)

    def learn(self, names: Mapping[float, str]) -> None:
        """Know names by their codes."""
        self._names |= names

    def numbers(self, codes: FloatArray) -> FloatArray:
        """Return the numbers of names for their codes (n, 1); those of numbers are themselves.

        Raises
        ------
        TargetError
            If one is none of those that were told.
        """
        if not self._names.keys() >= set(codes[:1].ravel().tolist()) or codes.shape[1] != 1:
            return codes
        others = set(codes.ravel().tolist()) - self._places.keys() if self.are_given else set()
        if others:
            known = ", ".join(self.name(place) for place in range(self._n_given))
            raise TargetError(
                f"the answer is {self._names[min(others)]!r}, which is none of the classes {known}"
            )
        self._n += len(codes)
        for code in codes.ravel().tolist():
            self._places.setdefault(code, len(self._places))
        return np.array([[float(self._places[code])] for code in codes.ravel().tolist()])

    def check(self) -> None:
        """Doubt texts that hardly repeat, before more is asked.

        Raises
        ------
        TextsError
        """
        is_open = not (self._n_given or self.are_expected) and self._n >= self.fewest
        if is_open and self.n_seen * self.first > self.most * self._n:
            raise TextsError(self.refusal)

    @property
    def refusal(self) -> str:
        """Why texts are no labels."""
        some = ", ".join(f'"{self.name(place)}"' for place in range(3))
        return (
            f"the answers are texts that hardly repeat, {self.n_seen} different ones among "
            f"{self._n}: {some}, ...; if they are names of classes, say so: --labels"
        )

    def name(self, number: float) -> str:
        """The name that a number stands for; the number, where it is none."""
        names = [self._names[code] for code in self._places]
        return names[int(number)] if 0 <= number < len(names) else f"{number:g}"


def _code(name: str) -> float:
    # 48 bits: exact in float64, and any two of 1,000 names differ but once in 5e8.
    return float(int.from_bytes(hashlib.sha256(name.encode()).digest()[:6]))


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
        Number of answers.
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
