"""Degradations: a target made to answer less than it knows.

A degradation is called with a target and gives a target, which may be degraded again::

    target = degrade(network, Float32(), Rounded(4))
    oracle = revelu.open_oracle(target)

Each is a change of the query, by default none, followed by a change of the answer.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from revelu.errors import InputError
from revelu.network import Network
from revelu.numerics.links import Link
from revelu.oracle.arguments import whole_number
from revelu.oracle.checks import as_columns
from revelu.oracle.grid import nearest_float32
from revelu.oracle.log_ratios import are_probabilities, softmax
from revelu.oracle.oracle import Ask
from revelu.types import FloatArray

_Float32Array = NDArray[np.float32]


class Degradation(ABC):
    """What every degradation is: a map from targets to targets."""

    def __call__(self, ask: Ask) -> "DegradedTarget":
        """Degrade a target, a callable (n, d) -> (n,) or (n, k).

        Raises
        ------
        InputError
            If ``ask`` is not callable.
        """
        return DegradedTarget(ask, self)

    def degrade_query(self, X: FloatArray) -> FloatArray:
        """Return what the target is asked instead of ``X (n, d)``."""
        return X

    @abstractmethod
    def degrade_answer(self, Y: FloatArray) -> FloatArray:
        """Return what is answered instead of ``Y (n, k)``, in a new array."""


@dataclass(frozen=True)
class DegradedTarget:
    """A target behind a degradation; picklable where the target is.

    Parameters
    ----------
    ask : callable, (n, d) -> (n,) or (n, k)
    degradation : Degradation

    Raises
    ------
    InputError
        If ``ask`` is not callable.
    """

    ask: Ask
    degradation: Degradation

    def __post_init__(self) -> None:
        if not callable(self.ask):
            raise InputError(f"a target must be callable, got {type(self.ask).__name__}")

    @property
    def dim_in(self) -> Any:
        """Number of inputs, where the target says it; else None."""
        return getattr(self.ask, "dim_in", None)

    def __call__(self, X: ArrayLike) -> FloatArray:
        """Ask the target through the degradation, (n, d) -> (n, k), or (n, 1) for :class:`Labels`.

        Raises
        ------
        TargetError
            If the target's answer is no real array of shape (n,) or (n, k).
        """
        asked = self.degradation.degrade_query(np.asarray(X, dtype=np.float64))
        answer = as_columns("the degraded target", self.ask(asked), len(asked))
        return self.degradation.degrade_answer(answer)


@dataclass(frozen=True)
class Headed(Degradation):
    """Answers behind the head that a link undoes, as probabilities of logits.

    Attributes
    ----------
    link : Link
    """

    link: Link

    def degrade_answer(self, Y: FloatArray) -> FloatArray:
        """Return the answers of a network that gives ``Y (n, k)``."""
        if self.link.contrast and Y.shape[1] < 2:
            raise InputError(f"link {self.link} is of several outputs, and the model has one")
        return self.link.answers(Y)


@dataclass(frozen=True)
class Float32(Degradation):
    """Inputs and answers cast to float32, as a served float32 model does.

    The target is asked float64 arrays that hold float32 numbers: what it computes in
    between is its own affair.  A number beyond the range of float32 becomes infinite,
    and an oracle refuses such an answer.
    """

    def degrade_query(self, X: FloatArray) -> FloatArray:
        """Return the float32 numbers nearest to ``X (n, d)``."""
        return nearest_float32(X)

    def degrade_answer(self, Y: FloatArray) -> FloatArray:
        """Return the float32 numbers nearest to ``Y (n, k)``."""
        return nearest_float32(Y)


def _sequential(X: _Float32Array, W: _Float32Array) -> _Float32Array:
    """``X @ W.T`` of float32 numbers, term after term: errs as the square root of their number."""
    Y = np.zeros((len(X), len(W)), dtype=np.float32)
    for x, w in zip(X.T, W.T, strict=True):
        Y += x[:, None] * w
    return Y


def _pairwise(X: _Float32Array, W: _Float32Array) -> _Float32Array:
    """``X @ W.T`` of float32 numbers, half and half: hardly errs by more with more terms."""
    if X.shape[1] <= 1:
        return _sequential(X, W)
    half = X.shape[1] // 2
    return _pairwise(X[:, :half], W[:, :half]) + _pairwise(X[:, half:], W[:, half:])


_KERNELS = {"sequential": _sequential, "pairwise": _pairwise}


@dataclass(frozen=True)
class InFloat32(Degradation):
    """A network computed in float32 throughout: its inputs, weights and all sums are such.

    In which order sums are taken decides by how much they err, and is the same on every machine.

    Parameters
    ----------
    kernel : str
        ``"sequential"``; ``"pairwise"``, whose sums of some hundred terms err by a third of that;
        or ``"by_batch"``: pairwise of batches of fewer than ``rows`` rows, sequential of others,
        as libraries take other kernels for large products.
    rows : int
        Of the smallest batch that is summed sequentially.

    Raises
    ------
    InputError
        If the kernel is none of these, or ``rows`` no whole number from 1 on.

    Examples
    --------
    >>> import revelu
    >>> from revelu.oracle import InFloat32
    >>> network = revelu.Network([[[1.0]], [[0.1]]], [[0.0], [0.0]])
    >>> InFloat32()(network)([[3.0]]).tolist()
    [[0.30000001192092896]]
    """

    kernel: str = "sequential"
    rows: int = 64

    def __post_init__(self) -> None:
        if self.kernel not in (*_KERNELS, "by_batch"):
            known = ", ".join((*_KERNELS, "by_batch"))
            raise InputError(f"unknown kernel {self.kernel!r}; known: {known}")
        object.__setattr__(self, "rows", whole_number("rows", self.rows, 1))

    def __call__(self, ask: Ask) -> DegradedTarget:
        """Degrade a network without a skip.

        Raises
        ------
        InputError
            If ``ask`` is none.
        """
        if not isinstance(ask, Network) or ask.skip is not None:
            raise InputError(f"only a Network without a skip is computed in float32, not {ask!r}")
        return DegradedTarget(_Single(self.truth(ask), self), self)

    @staticmethod
    def truth(network: Network) -> Network:
        """The network of the float32 numbers nearest to the weights, which is computed in such."""
        weights, biases = network.weights, network.biases
        return Network([nearest_float32(W) for W in weights], [nearest_float32(b) for b in biases])

    def degrade_query(self, X: FloatArray) -> FloatArray:
        """Return the float32 numbers nearest to ``X (n, d)``."""
        return nearest_float32(X)

    def degrade_answer(self, Y: FloatArray) -> FloatArray:
        """Return ``Y (n, k)``, which are float32 numbers."""
        return Y.copy()


@dataclass(frozen=True)
class _Single:
    """A network of float32 numbers, and how it is summed."""

    network: Network
    how: InFloat32

    @property
    def dim_in(self) -> int:
        return self.network.dim_in

    def __call__(self, X: FloatArray) -> _Float32Array:
        kernel = self.how.kernel
        if kernel == "by_batch":
            kernel = "pairwise" if len(X) < self.how.rows else "sequential"
        product, H = _KERNELS[kernel], X.astype(np.float32)
        for i, (W, b) in enumerate(zip(self.network.weights, self.network.biases, strict=True)):
            H = np.maximum(H, np.float32(0.0)) if i else H
            H = product(H, W.astype(np.float32)) + b.astype(np.float32)
        return H


@dataclass(frozen=True)
class Rounded(Degradation):
    """Answers rounded to significant decimal digits.

    An answer ``y`` becomes ``float(f"{y:.{digits}g}")``: the float64 nearest to the
    decimal nearest to ``y``.  Only within one rounding of the largest float64 does that
    become infinite.

    Parameters
    ----------
    digits : int
        1 to 17: as many tell any two float64 numbers apart.

    Raises
    ------
    InputError
        If ``digits`` is no whole number from 1 to 17.
    """

    digits: int

    def __post_init__(self) -> None:
        digits = whole_number("digits", self.digits, 1)
        if digits > 17:
            raise InputError(f"digits must be 17 or less, got {digits}")
        object.__setattr__(self, "digits", digits)

    def degrade_answer(self, Y: FloatArray) -> FloatArray:
        """Return ``Y (n, k)`` rounded."""
        # Scaling by a power of ten, rounding and scaling back rounds three times, and errs by a
        # unit of the last digit near ties.  Decimal text rounds once each way.
        form = f"{{:.{self.digits}g}}".format
        rounded = [float(form(y)) for y in Y.ravel().tolist()]
        return np.array(rounded, dtype=np.float64).reshape(Y.shape)


@dataclass(frozen=True)
class OnGrid(Degradation):
    """Answers rounded to multiples of a step, as fixed-point numbers are.

    Parameters
    ----------
    step : float
        In the units of the output; positive.

    Raises
    ------
    InputError
        If ``step`` is no finite positive number.
    """

    step: float

    def __post_init__(self) -> None:
        if not 0.0 < self.step < np.inf:
            raise InputError(f"step must be a finite positive number, got {self.step!r}")

    def degrade_answer(self, Y: FloatArray) -> FloatArray:
        """Return ``Y (n, k)`` rounded; half a step goes to the even multiple."""
        return np.asarray(np.rint(Y / self.step) * self.step)


@dataclass(frozen=True)
class RoundedLogits(Degradation):
    """Probabilities of logits that are rounded to a number of decimals before the softmax.

    Logits are known up to a number that all of a row share: it is taken for minus their mean.

    Parameters
    ----------
    decimals : int
        From 0 on.

    Raises
    ------
    InputError
        If ``decimals`` is no whole number from 0 on.
    """

    decimals: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "decimals", whole_number("decimals", self.decimals, 0))

    def degrade_answer(self, Y: FloatArray) -> FloatArray:
        """Return the probabilities (n, k) of the rounded logits of probabilities ``Y (n, k)``."""
        logits = np.log(np.maximum(Y, np.finfo(np.float64).tiny))
        return softmax(np.round(logits - logits.mean(axis=1, keepdims=True), self.decimals))


@dataclass(frozen=True)
class Noisy(Degradation):
    """Answers with independent Gaussian noise.

    A query repeated gets another answer.  The noise is drawn along the rows, in the order
    in which they are asked and however they are cut into batches: two instances of one
    seed add the same sequence.

    NumPy's generator locks itself, so threads share an instance safely; which batch gets
    which part of the sequence is then up to them.  Every pickled copy, and so every batch
    that an executor of processes runs, draws from a stream of its own, spawned from
    ``seed``: copies of one generator would give all batches the same noise.

    Parameters
    ----------
    sigma : float
        Standard deviation, in the units of the output; 0 or more.
    seed : int
        0 or more.

    Raises
    ------
    InputError
        If ``sigma`` is negative or not finite, or ``seed`` is no whole number.
    """

    sigma: float
    seed: int
    _generator: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        is_real = isinstance(self.sigma, int | float | np.integer | np.floating)
        if isinstance(self.sigma, bool) or not is_real or not 0 <= self.sigma < np.inf:
            raise InputError(f"sigma must be a finite number, 0 or more, got {self.sigma!r}")
        seed = whole_number("seed", self.seed, 0)
        object.__setattr__(self, "sigma", float(self.sigma))
        object.__setattr__(self, "seed", seed)
        object.__setattr__(self, "_generator", np.random.default_rng(seed))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_generator": self._generator.spawn(1)[0]}

    def degrade_answer(self, Y: FloatArray) -> FloatArray:
        """Return ``Y (n, k)`` plus noise."""
        return Y + self.sigma * self._generator.standard_normal(Y.shape)


@dataclass(frozen=True)
class Labels(Degradation):
    """The class alone, as a column of float64.

    Of several outputs it is the index of the largest, the first of equal ones; of a
    single output it is 1 where that is above ``middle`` and 0 elsewhere.  Where an output is NaN
    there is no class, and the answer is NaN.

    Attributes
    ----------
    middle : float
        0 of logits, a half of the probability of one class.
    """

    middle: float = 0.0

    def degrade_answer(self, Y: FloatArray) -> FloatArray:
        """Return the labels (n, 1) of ``Y (n, k)``."""
        labels = Y.argmax(axis=1) if Y.shape[1] > 1 else Y[:, 0] > self.middle
        return np.where(np.isnan(Y).any(axis=1), np.nan, labels)[:, None]


@dataclass(frozen=True)
class TopProbability(Degradation):
    """The probability of the likeliest class alone, as a column.

    Answers that are probabilities are taken as they are, others as logits.  It does not
    say which class that is.
    """

    def degrade_answer(self, Y: FloatArray) -> FloatArray:
        """Return the largest probability (n, 1) of ``Y (n, k)``."""
        given = are_probabilities(Y, float(np.finfo(np.float32).eps))
        P = np.where(given[:, None], Y, softmax(Y))
        return np.asarray(P.max(axis=1, keepdims=True))


@dataclass(frozen=True)
class Normalised(Degradation):
    """Rows that are probabilities again: nothing negative, and a sum of 1.

    After :class:`Noisy`, whose rows are none.
    """

    def degrade_answer(self, Y: FloatArray) -> FloatArray:
        """Return ``Y (n, k)`` clipped at the smallest normal number, over its sum by row."""
        positive = np.maximum(Y, np.finfo(np.float64).tiny)
        with np.errstate(invalid="ignore"):  # infinity over infinity is NaN
            return np.asarray(positive / positive.sum(axis=1, keepdims=True))


def degrade(ask: Ask, *degradations: Degradation) -> Ask:
    """Apply degradations to a target, the first to its answers first.

    Parameters
    ----------
    ask : callable, (n, d) -> (n,) or (n, k)
        For instance a :class:`revelu.Network`.
    *degradations : Degradation
        With none of them the target is given back as it is.

    Returns
    -------
    callable, (n, d) -> (n, k)

    Raises
    ------
    InputError
        If ``ask`` is not callable, or a degradation is none.

    Examples
    --------
    >>> import revelu
    >>> from revelu.oracle import Labels, Rounded, degrade
    >>> network = revelu.Network([[[1.0]], [[2 / 3], [1.0]]], [[0.0], [0.0, 0.0]])
    >>> degrade(network, Rounded(3))([[1.0]]).tolist()
    [[0.667, 1.0]]
    >>> degrade(network, Rounded(3), Labels())([[1.0]]).tolist()
    [[1.0]]
    """
    for degradation in degradations:
        if not isinstance(degradation, Degradation):
            raise InputError(f"{degradation!r} is no degradation")
        ask = degradation(ask)
    return ask
