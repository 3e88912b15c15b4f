"""The black box: asked in batches, counted, budgeted, checked."""

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from revelu.errors import InputError, LimitReachedError, ReveluError, TargetError
from revelu.oracle.ledger import PHASES, Ledger
from revelu.oracle.log_ratios import SMALLEST, log_ratios
from revelu.types import FloatArray

log = logging.getLogger(__name__)

# Rows in one request.  A constant, so that batches are cut alike whatever the
# number of workers, and small enough that a request of 784 float64 is 6 MB.
BATCH_ROWS = 1024

Ask = Callable[[FloatArray], Any]
Listener = Callable[["Oracle", str], None]


class Oracle:
    """A target that can be asked, and nothing else.

    Parameters
    ----------
    ask : callable, (n, dim_in) -> (n,) or (n, k)
        The target.  Rows are cut into batches of ``batch_rows``.
    dim_in : int
        Number of inputs.
    name : str
        What messages and reports call it.
    budget : int, optional
        Most queries that may ever be asked; never one over.
    box : (lo, hi), optional
        Every coordinate of every query must lie in it.
    executor : concurrent.futures.Executor, optional
        Where batches run; ``ask`` must be picklable if it is made of processes.
    batch_rows : int
        Most rows of one request.
    max_seconds : float, optional
        No batch is begun later than this after the first question.

    Raises
    ------
    InputError
        If an argument makes no sense.
    """

    def __init__(
        self,
        ask: Ask,
        dim_in: int,
        *,
        name: str = "callable",
        budget: int | None = None,
        box: tuple[float, float] | None = None,
        executor: Executor | None = None,
        batch_rows: int = BATCH_ROWS,
        max_seconds: float | None = None,
    ) -> None:
        if not callable(ask):
            raise InputError(f"a target must be callable, got {type(ask).__name__}")
        self.dim_in = whole_number("dim_in", dim_in, 1)
        self.budget = None if budget is None else whole_number("budget", budget, 0)
        self.batch_rows = whole_number("batch_rows", batch_rows, 1)
        if box is not None and not _is_interval(box):
            raise InputError(f"box needs finite lo < hi, got {box!r}")
        if max_seconds is not None and not _is_positive(max_seconds):
            raise InputError(f"max_seconds must be a positive number, got {max_seconds!r}")
        self._ask = ask
        self.name = name
        self.box = None if box is None else (float(box[0]), float(box[1]))
        self.executor = executor
        self.max_seconds = max_seconds
        self.listener: Listener | None = None
        self.takes_log_ratios = False
        self.smallest_probability = SMALLEST
        self._dim_out: int | None = None
        self._counts = dict.fromkeys(PHASES, 0)
        self._n_rounds = 0
        self._phase = "recover"
        self._joined = self._in_round = False
        self._started: float | None = None

    @property
    def dim_out(self) -> int:
        """Number of outputs (of log-ratios, where they are taken); known from an answer on.

        Raises
        ------
        InputError
            Before the first answer.
        """
        if self._dim_out is None:
            raise InputError("dim_out is known once a query has been answered")
        return self._dim_out - self.takes_log_ratios

    @property
    def n_queries(self) -> int:
        """Queries asked so far."""
        return sum(self._counts.values())

    @property
    def remaining(self) -> int | None:
        """Queries that the budget still allows; None where there is no budget."""
        return None if self.budget is None else self.budget - self.n_queries

    @property
    def current_phase(self) -> str:
        """The phase that queries are booked under."""
        return self._phase

    def affords(self, n_queries: int) -> bool:
        """Whether ``n_queries`` more are within the budget."""
        return self.remaining is None or n_queries <= self.remaining

    def ledger(self) -> Ledger:
        """Return a snapshot of the counts."""
        return Ledger(self.n_queries, self._n_rounds, dict(self._counts))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Book the queries made inside under ``name``."""
        if name not in PHASES:
            raise InputError(f"unknown phase {name!r}; known: {', '.join(PHASES)}")
        before, self._phase = self._phase, name
        try:
            yield
        finally:
            self._phase = before

    @contextmanager
    def round(self) -> Iterator[None]:
        """Count the calls made inside as one round: none depends on another's answer."""
        before, self._joined, self._in_round = self._joined, True, False
        try:
            yield
        finally:
            self._joined, self._in_round = before, False

    @contextmanager
    def as_answered(self) -> Iterator[None]:
        """Give probabilities as they are, where otherwise log-ratios are taken."""
        before, self.takes_log_ratios = self.takes_log_ratios, False
        try:
            yield
        finally:
            self.takes_log_ratios = before

    def __call__(self, X: ArrayLike) -> FloatArray:
        """Ask one round of queries.

        Parameters
        ----------
        X : array_like, shape (n, dim_in)

        Returns
        -------
        ndarray, shape (n, dim_out)

        Raises
        ------
        InputError
            If ``X`` has another shape, is not finite or leaves the box.
        LimitReachedError
            If the round does not fit the budget or the time is over; nothing of
            it has been asked then.
        TargetError
            If an answer is not finite or has another shape.

        Notes
        -----
        Where log-ratios are taken, a probability that has underflowed gives an
        infinite answer: the target is *saturated* there and says nothing.
        """
        X = self._checked_queries(X)
        if not len(X):
            return np.empty((0, self.dim_out if self._dim_out else 0))
        self._check_limits(len(X))
        batches = [X[i : i + self.batch_rows] for i in range(0, len(X), self.batch_rows)]
        self._n_rounds += not self._in_round
        self._in_round = self._in_round or self._joined
        answers: list[FloatArray] = []
        for batch, raw in zip(batches, self._answers(batches), strict=True):
            done = sum(map(len, answers))
            answers.append(self._checked_answer(raw, batch, done))
            if self.listener is not None:
                self.listener(self, self._phase)
        Y = np.concatenate(answers)
        return log_ratios(Y, self.smallest_probability) if self.takes_log_ratios else Y

    def _answers(self, batches: list[FloatArray]) -> Iterator[Any]:
        """Send the batches; what is sent is booked before it is sent."""
        if self.executor is not None:
            self._counts[self._phase] += sum(map(len, batches))
            with self._naming_failures():
                yield from self.executor.map(self._ask, batches)
            return
        for batch in batches:
            self._check_time()
            self._counts[self._phase] += len(batch)
            with self._naming_failures():
                # A copy: a target may write into what it is given.
                raw = self._ask(batch.copy())
            yield raw

    @contextmanager
    def _naming_failures(self) -> Iterator[None]:
        """Turn what a target raises into a TargetError that names the target."""
        try:
            yield
        except (ReveluError, GeneratorExit):
            raise
        except (Exception, SystemExit) as error:
            reason = next(iter(str(error).splitlines()), "")
            raise TargetError(
                f"{self.name} failed on a query: {type(error).__name__}: {reason}"
            ) from error

    def _checked_queries(self, X: ArrayLike) -> FloatArray:
        X = np.ascontiguousarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.dim_in:
            raise InputError(f"expected queries of shape (n, {self.dim_in}), got {X.shape}")
        if not np.isfinite(X).all():
            raise InputError("a query holds a number that is not finite")
        if self.box is not None and len(X):
            lo, hi = self.box
            outside = np.flatnonzero((np.clip(X, lo, hi) != X).any(axis=1))
            if len(outside):
                raise InputError(f"query {outside[0]} leaves the box [{lo:g}, {hi:g}]")
        return X

    def _check_limits(self, n_queries: int) -> None:
        self._check_time()
        if not self.affords(n_queries):
            raise LimitReachedError(
                f"{n_queries} more queries do not fit the budget of {self.budget} "
                f"({self.n_queries} asked)"
            )

    def _check_time(self) -> None:
        now = time.monotonic()
        if self._started is None:
            self._started = now
        if self.max_seconds is not None and now - self._started > self.max_seconds:
            raise LimitReachedError(f"the {self.max_seconds:g} seconds allowed are over")

    def _checked_answer(self, raw: Any, batch: FloatArray, first: int) -> FloatArray:
        """Give an answer the shape (n, k), or name what is wrong with it."""
        if np.ma.isMaskedArray(raw):
            raise TargetError(f"{self.name} answered masked numbers, not real numbers")
        try:
            kind = np.asarray(raw).dtype
            if kind.kind not in "biufO":
                raise TargetError(f"{self.name} answered {kind} values, not real numbers")
            # A copy: a target may answer into one buffer again and again.
            Y = np.array(raw, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TargetError(f"{self.name} answered what is not numbers: {error}") from None
        if Y.ndim == 1:
            Y = Y[:, None]
        if Y.ndim != 2 or len(Y) != len(batch) or Y.shape[1] == 0:
            raise TargetError(
                f"{self.name} answered shape {np.shape(raw)} to {len(batch)} queries; "
                f"expected ({len(batch)},) or ({len(batch)}, k)"
            )
        if self._dim_out is None:
            self._dim_out = Y.shape[1]
        elif Y.shape[1] != self._dim_out:
            raise TargetError(
                f"{self.name} answered {Y.shape[1]} outputs after {self._dim_out} before"
            )
        if not np.isfinite(Y).all():
            row, column = (int(i) for i in np.argwhere(~np.isfinite(Y))[0])
            where = np.array2string(batch[row], precision=6, threshold=6, edgeitems=3)
            raise TargetError(
                f"{self.name} answered {Y[row, column]} in output {column} to row "
                f"{first + row} of round {self._n_rounds}, x = {where}"
            )
        return Y


def whole_number(name: str, value: Any, least: int) -> int:
    """Return ``value`` as an int.

    Raises
    ------
    InputError
        If it is no whole number, or less than ``least``; the message says ``name``.
    """
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < least:
        raise InputError(f"{name} must be a whole number, {least} or more, got {value!r}")
    return int(value)


def _is_interval(box: Any) -> bool:
    try:
        lo, hi = (float(edge) for edge in box)
    except (TypeError, ValueError):
        return False
    return bool(np.isfinite([lo, hi]).all() and lo < hi)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and bool(0 < value < np.inf)
