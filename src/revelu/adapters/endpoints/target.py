"""A model behind an address, asked by a template."""

import hashlib
import re
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from revelu.adapters.endpoints.answers import ASKED_FOR_LATER, AnswerError, Answers
from revelu.adapters.endpoints.endpoint import Endpoint
from revelu.adapters.endpoints.jobs import Jobs
from revelu.adapters.error_pages import error_of, says_too_many
from revelu.adapters.http_client import Client, FailingError, Reply, TooLargeError
from revelu.adapters.patience import Patience
from revelu.adapters.portions import Portions, in_turn, joined
from revelu.errors import InputError, TargetError, UnansweredError, WholeNumbersError
from revelu.oracle import agreed_dim_in
from revelu.oracle.limits import limits_said
from revelu.types import BoolArray, FloatArray

# Keys, methods, waiting and gateways have nothing to do with the rows that were asked, and a
# check of fields says itself what is wrong.
_NOT_OF_ROWS = {401, 403, 405, 408, 413, 422, 429, 502, 503, 504}

_WHOLE = re.compile(
    r"\b(int(eger)?s?|int(32|64)|(?<!too )long|whole numbers?|fractional)\b", re.IGNORECASE
)

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, */*;q=0.5"}


class EndpointTarget:
    """An endpoint that answers ``(n, d) -> (n, k)``.

    Parameters
    ----------
    endpoint : Endpoint
    dim_in : int, optional
        Number of inputs, where the endpoint does not say.
    rate : str, optional
        Most requests, in place of the endpoint's.
    attempts : int
        Times that a request is sent whose answer is not understood, once another one was.
    finite_attempts : int
        Times that it is sent where an answer is not finite, or rows are refused, which a model may
        mean.
    one_by_one_rows : int
        Rows of a batch, where each is a request: those answers may be lost with a connection.
    job_rows : int
        Rows of a batch that is a job, which takes seconds however few they are.

    Attributes
    ----------
    client : Client
        What it is asked through.
    batch_rows : int or None
        Rows of a batch, where not any number will do.
    column_names : tuple of str
        Names of the inputs, where the request has some.
    facts : dict of str to str
        What decides the answers, besides the address.

    Raises
    ------
    InputError
        If the address is none, or its number of inputs is not said.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        dim_in: int | None = None,
        *,
        rate: str | None = None,
        attempts: int = 5,
        finite_attempts: int = 3,
        one_by_one_rows: int = 32,
        job_rows: int = 16_384,
    ) -> None:
        # The client comes first: it refuses addresses with a password, which no message may show.
        rate = endpoint.rate if rate is None else rate
        patience = Patience(endpoint.retry_for)
        self.client = Client(
            endpoint.url, rate, endpoint.timeout, endpoint.connection, patience=patience
        )
        self.url, self._attempts = self.client.address.base, attempts
        self._finite_attempts = finite_attempts
        self._template = endpoint.template()
        one_by_one = self._template.one_by_one
        self.column_names = self._template.names
        self._answers = Answers(endpoint.answer, endpoint.classes, one_by_one=one_by_one)
        self._portions, self._has_answered = Portions(), False
        self._has_answered_many = False
        declared = self._template.n_columns
        if endpoint.dim_in is not None:
            declared = agreed_dim_in(self.url, declared, endpoint.dim_in)
        self.dim_in = agreed_dim_in(self.url, declared, dim_in)
        if self.dim_in < self._template.n_least:
            last = self._template.n_least - 1
            raise InputError(f"the request has $row[{last}], and there are {self.dim_in} inputs")
        self.batch_rows = one_by_one_rows if self._template.one_by_one else None
        self._jobs: Jobs | None = None
        if endpoint.poll is not None and endpoint.done is not None:
            timeout, self.batch_rows = endpoint.timeout, self.batch_rows or job_rows
            self._jobs = Jobs(self.client, self.url, endpoint.poll, endpoint.done, timeout)
        if endpoint.batch is not None:
            self.batch_rows = endpoint.batch
        self.facts = {**_facts(endpoint), **self.client.address.facts}

    def with_whole(self, columns: BoolArray) -> "EndpointTarget":
        """Return the target with whole numbers in some columns (d,) written without a fraction."""
        other = copy(self)
        other._template = self._template.with_whole(columns)  # noqa: SLF001 - its own class
        return other

    def __call__(self, X: FloatArray) -> np.ndarray:
        """Ask for the rows of ``X (n, d)``, shape (n, k).

        Raises
        ------
        TargetError
            If there is no answer, or one to something else.
        """
        try:
            # Texts are read once all of them are there: one does not tell what they are.
            return self._answers.numbers(self._in_requests(X))
        except AnswerError as error:
            raise self._failed(error) from None

    def _in_requests(self, X: FloatArray) -> np.ndarray:
        """Ask for the rows of ``X (n, d)`` in as many requests as it takes."""
        if self._template.one_by_one:
            return self._one_by_one(X)
        if self._has_answered or len(X) == 1:
            return self._portions.ask(self.ask, X)
        # The first request has one row: a template that does not fit costs no more.
        return joined(in_turn(partial(self._portions.ask, self.ask), [X[:1], X[1:]]))

    def _one_by_one(self, X: FloatArray) -> np.ndarray:
        """Ask for one row a request, and for none after one that is no answer."""
        first: list[np.ndarray] = []

        def ask(x: FloatArray) -> np.ndarray:
            y = self.ask(x)
            if y.dtype == np.float64 and not np.isfinite(y).all():
                wrong = y[~np.isfinite(y)][0]
                said = f"{self.url} answers {wrong} in one of {y.shape[1]} outputs"
                raise UnansweredError(said, 0)
            first.append(y[:0])
            joined([first[0], y])  # of another number of outputs, too
            return y

        return joined(in_turn(ask, [X[i : i + 1] for i in range(len(X))]))

    def ask(self, X: FloatArray) -> np.ndarray:
        """Ask for the rows of ``X (n, d)`` in one request, shape (n, k).

        Raises
        ------
        TargetError
            If there is no answer, or one to something else.
        """
        query, content = self._template.filled(X)
        for attempt in range(1, self._attempts + 1):
            try:
                reply = self.client.request(
                    self._template.method,
                    self.url,
                    content,
                    _HEADERS,
                    query=query,
                    n_rows=len(X),
                )
            except FailingError as error:
                raise TargetError(f"{error}{self._what_to_look_at(error.status)}") from None
            if reply.status >= 400:
                refused = self._refused(reply, len(X))
                if attempt < self._finite_attempts and self._may_pass(refused):
                    continue
                raise refused
            try:
                Y = self._answer(reply, len(X))
            except AnswerError as error:
                may_pass = error.passing or self._has_answered
                # A path that fits one row may fit no more: that is not asked for again and again.
                is_like_others = error.passing or len(X) == 1 or self._has_answered_many
                if attempt >= (self._attempts if is_like_others else 2) or not may_pass:
                    raise self._failed(error) from None
            else:
                # What is not finite is asked for again, and then for the oracle to name.
                is_whole = Y.dtype != np.float64 or bool(np.isfinite(Y).all())
                if not is_whole and self._has_answered and attempt < self._finite_attempts:
                    continue
                self._has_answered |= is_whole
                self._has_answered_many |= is_whole and len(X) > 1
                return Y
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    def _answer(self, reply: Reply, n: int) -> np.ndarray:
        """What was answered to n rows, by the reply or by the job that it tells of."""
        if self._jobs is not None:
            reply = self._jobs.finished(reply)
        elif reply.status == 202:
            raise TargetError(f"{self.url} answers 202, a job: {ASKED_FOR_LATER}")
        return self._answers.read(reply.content, n, reply.headers.get("content-type", ""))

    def _failed(self, error: AnswerError) -> TargetError:
        said = f"{self.url} {error}"
        failed = TargetError(said) if error.row is None else UnansweredError(said, error.row)
        failed.options = () if error.path is None else ("--answer", error.path)
        return failed

    def _refused(self, reply: Reply, n: int) -> TargetError:
        """What is raised for a reply of another status than that of success."""
        said = error_of(reply.content)
        is_of_rows = reply.status in {400, 422}
        if is_of_rows and n > 1 and self._has_answered and says_too_many(said):
            return TooLargeError(f"{self.url} answers {reply.status}: {said}")
        hint = self._what_to_look_at(reply.status)
        if is_of_rows and _WHOLE.search(said):
            hint = (
                "; a column of whole numbers stays at one, a number in the place of $row[I], or "
                "$objects(age=40, income)"
            )
            return WholeNumbersError(f"{self.url} answers {reply.status}: {said}{hint}")
        message = f"{self.url} answers {reply.status}: {said}{hint}"
        # Before anything is answered, only a limit that is said tells it from a wrong request.
        is_limit = is_of_rows and (self._has_answered or bool(limits_said(said)))
        return UnansweredError(message) if is_limit else TargetError(message)

    def _may_pass(self, refused: TargetError) -> bool:
        """Whether a refusal may be one of now and then: not of limits that it says."""
        has_answered = self._has_answered
        if isinstance(refused, WholeNumbersError):  # which one row after another is asked about
            has_answered = self._has_answered_many
        is_of_rows = isinstance(refused, UnansweredError)
        return is_of_rows and has_answered and not limits_said(f"{refused}")

    def _what_to_look_at(self, status: int) -> str:
        """What may be wrong with the first request; later ones are like those that did."""
        if self._has_answered or status in _NOT_OF_ROWS:
            return ""
        if status == 404:
            return "; is the path of the address right?"
        return f"; it was given rows of {self.dim_in} numbers: does the model take that many?"


def _facts(endpoint: Endpoint) -> dict[str, str]:
    """What decides the answers; a request may hold what is not to be told."""
    digest = hashlib.sha256((endpoint.request or "").encode()).hexdigest()
    facts: dict[str, Any] = {
        "request": f"{endpoint.method} {digest[:16]}",
        "answer": endpoint.answer or "all of it",
        "headers": ", ".join(sorted(endpoint.headers)) or "none",
        "classes": ", ".join(endpoint.classes) or "none",
    }
    return facts
