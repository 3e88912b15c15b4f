"""The black box: asked in batches, counted, budgeted, checked."""

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from revelu.errors import (
    InputError,
    LimitReachedError,
    ReveluError,
    TargetError,
    UnansweredError,
    WholeNumbersError,
)
from revelu.numerics.links import NONE, Link
from revelu.oracle.arguments import is_interval, is_positive, whole_number
from revelu.oracle.asking import Answer, ask_batches, ask_one, naming_failures, request_sizes
from revelu.oracle.checks import checked_answer, checked_inputs
from revelu.oracle.domain import Domain
from revelu.oracle.extremes import Extremes
from revelu.oracle.grid import nearest_float32
from revelu.oracle.journal import Journal
from revelu.oracle.kept import KeptAnswers
from revelu.oracle.labels import ClassNames, LabelTally
from revelu.oracle.ledger import PHASES, Ledger
from revelu.oracle.limits import with_advice
from revelu.oracle.sentinels import Sentinels
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)

# Rows in one request: constant, so that batches do not depend on the number of workers, and
# small enough that 784 float64 inputs make a request of 6 MB.
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
    domain : Domain, optional
        Queries are its coordinates, ``dim_in`` of them; the target is asked at the inputs that
        they stand for, and the box is that of the domain.
    executor : concurrent.futures.Executor, optional
        Where batches run; ``ask`` must be picklable if it is made of processes.
    batch_rows : int
        Most rows of one request; ``sys.maxsize`` where another oracle is asked, which cuts rounds.
    parts : int
        Requests that a round is cut into, or a multiple of that, as far as it has rows: of those
        who ask at a time, each has one.
    max_seconds : float, optional
        No batch is begun later than this after the first question.
    clock : callable, () -> float
        What counts the seconds; ``time.process_time`` counts those of computing.
    is_remote : bool
        The target is elsewhere, and may change: rows are asked again now and then, to see that it
        has not become another one, and an audit asks it no more than it must.
    client : object, optional
        What requests go through, for those who want to see them; its ``until`` is set to when the
        time is over, and its ``allowed`` to how much there is; its ``speed`` says how fast it is.
    image : (int, int, int), optional
        Channels, height and width, where an input is an image.
    classes : sequence of str
        Names of classes that are answered, in their order.

    link : str
        What undoes the target's head, as :meth:`Link.named` takes it; ``auto`` looks for it.

    Attributes
    ----------
    told_link : Link or None
        What was named.
    link : Link
        What is applied to answers from now on.
    is_waiting : bool
        Whether a question is with the target.
    n_answered : int
        Queries that were answered, be it with nonsense; the others, which ``n_queries``
        counts too, were sent.
    tally : LabelTally
        Of all answers, as the target gave them: whether they are labels.
    extremes : Extremes
        Of all answers: whether caps show.
    kept : KeptAnswers
        Queries of the domain that is now, and their answers as the target gave them.
    check_requests : int
        That a certificate's checks may take; 0.99^390 < 0.02 miss a model of one in a hundred.
    rows_a_request : int or None
        On average, of a round that is :meth:`spread_out`.
    names : ClassNames
        Of classes, where those are answered: their numbers stand for them.
    was_ended : bool
        Whether :meth:`end` has kept anything from being asked, or computed.
    has_met_limit : bool
        Whether the budget or the time has kept anything from being asked.

    Raises
    ------
    InputError
        If an argument makes no sense.
    """

    check_requests: int = 400

    def __init__(
        self,
        ask: Ask,
        dim_in: int,
        *,
        name: str = "callable",
        budget: int | None = None,
        box: tuple[float, float] | None = None,
        domain: Domain | None = None,
        executor: Executor | None = None,
        batch_rows: int = BATCH_ROWS,
        parts: int = 1,
        max_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        is_remote: bool = False,
        client: Any = None,
        image: tuple[int, int, int] | None = None,
        classes: Sequence[str] = (),
        link: str = "auto",
    ) -> None:
        if not callable(ask):
            raise InputError(f"a target must be callable, got {type(ask).__name__}")
        self.dim_in = whole_number("dim_in", dim_in, 1)
        self.budget = None if budget is None else whole_number("budget", budget, 0)
        self.batch_rows = whole_number("batch_rows", batch_rows, 1)
        self._parts = whole_number("parts", parts, 1)
        if box is not None and not is_interval(box):
            raise InputError(f"box needs finite lo < hi, got {box!r}")
        if max_seconds is not None and not is_positive(max_seconds):
            raise InputError(f"max_seconds must be a positive number, got {max_seconds!r}")
        if domain is not None and box is not None:
            raise InputError("a box goes into the domain: give one of the two")
        if executor is not None and not callable(getattr(executor, "submit", None)):
            raise InputError(
                f"executor must be a concurrent.futures.Executor, got {executor!r}; for threads, "
                "ThreadPoolExecutor(4)"
            )
        self._ask = ask
        self.name = name
        self.box = None if box is None else (float(box[0]), float(box[1]))
        self.domain: Domain | None = None
        self.kept = KeptAnswers()
        if domain is not None:
            self.move_to(domain)
        self.executor = executor
        self.max_seconds = max_seconds
        self._clock = clock
        self.listener: Listener | None = None
        # Answers that are decimals of float32 numbers are taken for those.
        self.takes_float32 = False
        self.told_link = None if link == "auto" else Link.named(link)
        self.link = NONE
        # Exponentials overflow.
        self.takes_infinite = False
        self._dim_out: int | None = None
        self._inside: FloatArray | None = None
        self.tally, self.names = LabelTally(), ClassNames(classes)
        self.extremes = Extremes()
        self._counts = dict.fromkeys(PHASES, 0)
        self._n_rounds = self.n_answered = 0
        self._phase = "recover"
        self._joined = self._in_round = False
        self._started: float | None = None
        self._ending = ""
        self.is_waiting = self.was_ended = self.has_met_limit = False
        self.journal: Journal | None = None
        self._sentinels: Sentinels | None = None
        self.is_remote = self._watched = is_remote
        self.client = client
        self.rows_a_request: int | None = None
        self._image: tuple[int, int, int] | None = None
        if image is not None:
            self.take_for_images(image)
        # Rows since the target was last seen to be the same.
        self._n_unwatched: float = 0
        self._asked_anew = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the journal, where there is one."""
        if self.journal is not None:
            self.journal.close()

    def keep(self, journal: Journal, **facts: object) -> None:
        """Have every answer in a journal before it is used, and do not ask for those in it.

        The budget counts what is in it, and the target is watched from now on.

        Parameters
        ----------
        journal : Journal
        **facts : object
            What decides the answers, besides what the oracle knows.

        Raises
        ------
        InputError
            If it is the journal of another target.
        """
        box = None if self.box is None else list(self.box)
        domain = "N(0, I)" if self.domain is None else self.domain.digest
        # A journal has answers by batch: whoever goes on cuts rounds as the first run did.
        cut_before = journal.facts().get("parts", "1" if journal.n_queries else None)
        self._parts = self._parts if cut_before is None else int(cut_before)
        size = {"dim_in": self.dim_in, "batch": self.batch_rows, "parts": self._parts}
        try:
            journal.bind({**facts, **size, "box": box, "domain": domain})
        except BaseException:
            journal.close()
            raise
        self.journal, self._watched = journal, True
        self.names.learn(journal.names())
        # The target may have changed since the earlier run: it is looked at before it is asked.
        self._n_unwatched = np.inf if journal.n_queries else 0
        for phase, n in journal.kept_apart().items():
            self._counts[phase] += n

    def move_to(self, domain: Domain | None) -> None:
        """Take the coordinates of a domain for queries from now on; the inputs themselves of None.

        Raises
        ------
        InputError
            If the domain has another number of columns than the target has inputs.
        """
        # Rows that tell this target from another one were coordinates of the domain before.
        self._sentinels = None
        self.kept.clear()
        if domain is None:
            self.domain, self.dim_in, self.box = None, self.dim_target, None
            return
        if not isinstance(domain, Domain):
            raise InputError(f"domain must be a revelu.Domain, got {type(domain).__name__}")
        self.domain = domain.of(self.dim_target, self.name)
        self.dim_in, self.box = self.domain.dim_in, self.domain.unit_box

    @property
    def target(self) -> Ask:
        """What is asked, as it was opened."""
        return self._ask

    @property
    def writes_whole(self) -> bool:
        """Whether :meth:`write_whole` may be called."""
        return hasattr(self._ask, "with_whole")

    def write_whole(self, columns: BoolArray) -> None:
        """Have whole numbers in some of the target's columns, (d,), written without a fraction."""
        self._ask = self._ask.with_whole(columns)  # type: ignore[attr-defined]

    @property
    def image(self) -> tuple[int, int, int] | None:
        """Channels, height and width of a query; None where it is no image, or coordinates."""
        return self._image if self.domain is None and self.box is None else None

    @property
    def pixels(self) -> tuple[int, int, int] | None:
        """As :attr:`image`, where coordinates move all pixels alike, too."""
        is_image = self.domain is None or self.domain.moves_alike
        return self._image if is_image else None

    def take_for_images(self, shape: tuple[int, int, int]) -> None:
        """Take inputs for images of a number of channels, rows and columns.

        Raises
        ------
        InputError
            If those are not as many numbers as an input has.
        """
        if (n := int(np.prod(shape))) != self.dim_target:
            channels, height, width = shape
            raise InputError(
                f"image {height}x{width}x{channels} has {n} inputs, and {self.name} has "
                f"{self.dim_target}"
            )
        self._image = shape

    @property
    def dim_target(self) -> int:
        """Number of inputs of the target, which may be more than a domain has coordinates."""
        return self.dim_in if self.domain is None else len(self.domain.center)

    @property
    def own_inputs(self) -> tuple[FloatArray, FloatArray]:
        """The target's inputs as functions of a query z: ``c + z @ M``; c (m,), M (dim_in, m)."""
        if self.domain is None:
            return np.zeros(self.dim_in), np.eye(self.dim_in)
        return self.domain.own_inputs

    @property
    def where(self) -> str:
        """What inputs are drawn from, in words that follow "inputs"."""
        if self.domain is not None:
            return self.domain.words
        if self.box is not None:
            return f"uniform in [{self.box[0]:g}, {self.box[1]:g}]^{self.dim_in}"
        return "of N(0, I)"

    def declare(self, **facts: object) -> None:
        """Say what decides the questions, such as a seed.

        Raises
        ------
        InputError
            If the journal is that of a run with others.
        """
        if self.journal is not None:
            self.journal.bind(facts)

    @property
    def dim_out(self) -> int:
        """Number of outputs of the network behind the link; known from an answer on.

        Raises
        ------
        InputError
            Before the first answer.
        """
        if self._dim_out is None:
            raise InputError("dim_out is known once a query has been answered")
        return self._dim_out - self.link.contrast

    @property
    def n_queries(self) -> int:
        """Queries asked so far."""
        return sum(self._counts.values())

    @property
    def remaining(self) -> int | None:
        """Queries that the budget still allows; None where there is no budget."""
        if self.budget is None:
            return None
        # While this run repeats an earlier one, the queries that are left of that one are still
        # to come.  Once the two differ, those were paid for in addition.
        waiting = self.journal.n_waiting if self.journal and self._asked_anew else 0
        return max(self.budget - self.n_queries - waiting, 0)

    @property
    def current_phase(self) -> str:
        """The phase that queries are booked under."""
        return self._phase

    def end(self, reason: str) -> None:
        """Have nothing more asked, as if the seconds allowed were over.

        An interrupt of the question that is with the target then counts as that end, too.
        """
        self._ending = reason

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
    def spread_out(self, rows_a_request: int | None) -> Iterator[None]:
        """Send the rounds asked inside in requests of that many rows on average, of all sizes."""
        before, self.rows_a_request = self.rows_a_request, rows_a_request
        try:
            yield
        finally:
            self.rows_a_request = before

    def request_sizes(self, n: int) -> list[int]:
        """Return how many of ``n`` rows each request carries."""
        if self.batch_rows == sys.maxsize:  # another oracle cuts what this one asks
            return [n]
        return request_sizes(n, self.batch_rows, self.rows_a_request, self._parts)

    @contextmanager
    def overtime(self, share: float | None = None) -> Iterator[None]:
        """Let a few more answers be asked for after the seconds allowed: what a result is worth.

        For a ``share`` of those seconds from now on; without one there is no limit.
        """
        before, self.max_seconds = self.max_seconds, None
        if before is not None and share is not None and self._started is not None:
            self.max_seconds = max(before, self._clock() - self._started + share * before)
        try:
            yield
        finally:
            self.max_seconds = before

    @contextmanager
    def as_answered(self) -> Iterator[None]:
        """Give answers as they are, where otherwise a link is applied."""
        before, self.link = self.link, NONE
        try:
            yield
        finally:
            self.link = before

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
        Behind a link, an answer that has lost its digits, as a probability that has underflowed,
        is infinite: the target is *saturated* there and says nothing.
        """
        queries = checked_inputs(X, self.dim_in, self.box, "queries")
        return self._answers(self._placed(queries), queries)

    def at(self, X: ArrayLike) -> FloatArray:
        """Ask one round at the target's own inputs (n, dim_target), as a call does at queries."""
        box = self.box if self.domain is None else None
        return self._answers(checked_inputs(X, self.dim_target, box, "inputs"))

    def _answers(self, X: FloatArray, queries: FloatArray | None = None) -> FloatArray:
        """Answers to a round of the target's own inputs, which stand for queries."""
        if not len(X):
            return np.empty((0, self.dim_out if self._dim_out else 0))
        self._check_limits(len(X))
        self.names.check()
        ends = np.cumsum(self.request_sizes(len(X)))
        batches = np.split(X, ends[:-1])
        known = self.journal
        answers = [None if known is None else known.find(batch) for batch in batches]
        fresh = [i for i, answer in enumerate(answers) if answer is None]
        self._check_fresh(sum(len(batches[i]) for i in fresh))
        self._n_rounds += not self._in_round
        self._in_round = self._in_round or self._joined
        for batch, answer in zip(batches, answers, strict=True):
            if answer is not None:
                self._dim_out = answer.shape[1]
                self._book(len(batch))
        if fresh:
            try:
                self._ask_fresh(batches, fresh, answers)
            except WholeNumbersError:
                raise  # which says what it is about
            except UnansweredError as error:
                most = 0 if not self.is_remote else self.remaining
                raise with_advice(error, self._is_answered, self._inside, most) from None
            except TargetError as error:
                if self._inside is None or not isinstance(error.__cause__, ValueError):
                    raise
                # A function that has answered refuses values, as an endpoint does in its own way.
                unanswered = UnansweredError(f"{error}")
                raise with_advice(unanswered, self._is_answered, self._inside, 0) from error
        if any(answer is None for answer in answers):  # pragma: no cover - they were asked
            raise AssertionError
        Y = np.concatenate([answer for answer in answers if answer is not None])
        Y = self.names.numbers(Y)
        self.tally.add(Y)
        Y = nearest_float32(Y) if self.takes_float32 else Y
        self.extremes.add(X, Y)
        if queries is not None:
            self.kept.add(queries, Y, is_check=self._phase == "verify")
        return self.as_taken(Y)

    def as_taken(self, Y: FloatArray) -> FloatArray:
        """What is given for answers ``(n, k)``: what is behind the link."""
        return self.link.inverse(Y)

    def _placed(self, X: FloatArray) -> FloatArray:
        """What the target is asked for queries."""
        return X if self.domain is None else self.domain.to_target(X)

    def in_float32(self, X: FloatArray) -> FloatArray:
        """Queries near others that a float32 target need not round, (n, d) -> (n, d).

        In a box they are those whose inputs are numbers of float32; none leaves it.
        """
        if self.box is None:
            return nearest_float32(X)
        inputs = nearest_float32(self._placed(X))
        if self.domain is None:
            return np.clip(inputs, *self.box)
        inputs = np.where(self.domain.is_held, self.domain.center, inputs)
        return self.domain.to_coordinates(np.clip(inputs, *(self.domain.bounds or self.box)))

    def watch(self, sentinels: Sentinels) -> None:
        """Take note of rows whose answers tell this target from another one."""
        self._sentinels = sentinels

    def check_unchanged(self, n_following: int = 0) -> None:
        """Ask the sentinels again, where some are known and anything was asked since.

        Nothing is asked where the budget has no room for them beside ``n_following``
        queries, or where work is to end.

        Raises
        ------
        ChangedError
            If the target has become another one.
        TargetError
            If it does not answer now, which does not say that it has.
        """
        sentinels = self._sentinels
        if sentinels is None or not (self._watched and self._asked_anew and self._n_unwatched):
            return
        X = self._placed(sentinels.X)
        if self._ending or not self._affords_fresh(n_following + len(X)):
            return
        self._n_unwatched = 0
        sizes, Ys = request_sizes(len(X), self.batch_rows), list[FloatArray]()
        for batch in np.split(X, np.cumsum(sizes)[:-1]):
            self._counts[self._phase] += len(batch)
            with self._booked_as_sent():
                raw = ask_one(self._ask, batch, self.executor)
            raw = self.names.coded(raw, len(batch), self.journal)
            Ys.append(checked_answer(self.name, raw, batch, None, infinite=self.takes_infinite))
        Y = np.concatenate(Ys)
        if self.journal is not None:
            self.journal.add(X, self._phase, Y, replayed=False)
        self.n_answered += len(X)
        sentinels.check(self.name, self.names.numbers(Y))

    def _ask_fresh(
        self, batches: list[FloatArray], fresh: list[int], answers: list[FloatArray | None]
    ) -> None:
        """Ask the batches that no journal has, and put their answers in their places."""
        self._asked_anew = True
        if self._sentinels is not None and self._n_unwatched >= self._sentinels.every:
            self.check_unchanged(sum(len(batches[i]) for i in fresh))
        missing = len(fresh)

        def begin(i: int) -> None:
            if self.executor is None:
                self.check_time()
            # Queries are booked before they are sent.
            self._counts[self._phase] += len(batches[fresh[i]])
            self._tell()

        def take(i: int, answer: Answer) -> None:
            nonlocal missing
            place, missing = fresh[i], missing - 1
            try:
                with self._booked_as_sent():
                    raw = answer()
                first = sum(map(len, batches[:place]))
                answers[place] = self._taken(raw, batches[place], first)
            except UnansweredError as error:
                error.asked = batches[place]
                raise
            if missing and self.executor is not None:
                self.check_time()

        def withdraw(i: int) -> None:
            self._counts[self._phase] -= len(batches[fresh[i]])

        asked = [batches[i] for i in fresh]
        self.is_waiting = True
        try:
            ask_batches(self._ask, asked, self.executor, begin, take, withdraw)
        except KeyboardInterrupt:
            self._check_ending()
            raise
        finally:
            self.is_waiting = False

    def _taken(self, raw: Any, batch: FloatArray, first: int) -> FloatArray:
        """Check an answer, whose batch begins at row ``first``, and write it down, or nonsense."""
        where = (first, self._n_rounds)
        self.n_answered += len(batch)
        try:
            Y = checked_answer(
                self.name,
                self.names.coded(raw, len(batch), self.journal),
                batch,
                self._dim_out,
                where,
                infinite=self.takes_infinite,
            )
        except TargetError:
            if self.journal is not None:
                self.journal.add(batch, self._phase, np.empty((len(batch), 0)), replayed=False)
            raise
        self._dim_out, self._inside = Y.shape[1], batch[0]
        if self.journal is not None:
            self.journal.add(batch, self._phase, Y)
        self._n_unwatched += len(batch)
        self._tell()
        return Y

    def is_answered(self, query: FloatArray) -> bool:
        """Whether a query (dim_in,) is answered: asked alone, of what may well be refused."""
        self._check_limits(1)
        try:
            return self._is_answered(self._placed(query[None])[0])
        except TargetError:  # a function of the user's refuses in its own way
            return False

    def _is_answered(self, x: FloatArray) -> bool:
        """Whether a row (d,) is answered."""
        self.check_time()
        self._counts[self._phase] += 1
        try:
            with self._booked_as_sent():
                self._taken(self._ask(x[None].copy()), x[None], 0)
        except UnansweredError:
            return False
        return True

    @contextmanager
    def _booked_as_sent(self) -> Iterator[None]:
        """Name what fails, and take rows off the ledger that never left."""
        try:
            with naming_failures(self.name):
                yield
        except ReveluError as error:
            self._counts[self._phase] -= error.n_unsent
            raise

    def _book(self, n_queries: int) -> None:
        self._counts[self._phase] += n_queries
        self.n_answered += n_queries
        self._tell()

    def _tell(self) -> None:
        if self.listener is not None:
            self.listener(self, self._phase)

    def _check_limits(self, n_queries: int) -> None:
        self.check_time()
        if not self.affords(n_queries):
            self.has_met_limit = True
            raise LimitReachedError(
                f"{n_queries} more queries do not fit the budget of {self.budget} "
                f"({self.n_queries} asked)"
            )

    def _check_fresh(self, n_queries: int) -> None:
        """Whatever is asked anew must fit the budget beside all that was ever answered."""
        if n_queries and not self._affords_fresh(n_queries):
            self._asked_anew = True  # this run differs from the earlier one, see `remaining`
            self.has_met_limit = True
            asked = self.journal.n_queries if self.journal else self.n_queries
            raise LimitReachedError(
                f"{n_queries} more queries do not fit the budget of {self.budget} "
                f"({asked} asked, with those in the journal)"
            )

    def _affords_fresh(self, n_queries: int) -> bool:
        paid = self.n_queries
        if self.journal is not None:
            paid = max(paid, self.journal.n_queries)
        return self.budget is None or paid + n_queries <= self.budget

    def check_time(self) -> None:
        """Raise LimitReachedError where the seconds allowed are over, or work is to end."""
        self._check_ending()
        now = self._clock()
        if self._started is None:
            self._started = now
        left = math.inf if self.max_seconds is None else self.max_seconds - (now - self._started)
        if self.client is not None:
            # What is under way then ends soon after.
            self.client.until, self.client.allowed = time.monotonic() + left, self.max_seconds
        if left < 0.0:
            self.has_met_limit = True
            speed = getattr(self.client, "speed", "")
            why = f": {speed}" if speed else ""
            raise LimitReachedError(f"the {self.max_seconds:g} seconds allowed are over{why}")

    def _check_ending(self) -> None:
        if self._ending:
            self.was_ended = True
            raise LimitReachedError(self._ending) from None
