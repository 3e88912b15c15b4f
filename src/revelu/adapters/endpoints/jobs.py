"""Jobs: an endpoint that takes a request now, and answers at another address later."""

import re
import time
from typing import Any
from urllib.parse import urljoin

from revelu.adapters.addresses import origin_of
from revelu.adapters.credentials import shown
from revelu.adapters.endpoints.answers import AnswerError, compiled
from revelu.adapters.endpoints.shapes import opened
from revelu.adapters.error_pages import error_of
from revelu.adapters.http_client import Client, Reply
from revelu.adapters.json_text import read_document
from revelu.errors import InputError, LimitReachedError, TargetError

_IN_BRACES = re.compile(r"\{(\$[^{}]*)\}")
_FAILED = {"aborted", "canceled", "cancelled", "error", "expired", "failed", "failure", "timeout"}


class Jobs:
    """How a job is followed to its end.

    Parameters
    ----------
    client : Client
    url : str
        Of the endpoint, which other addresses are relative to.
    poll : str
        The job's address: a JSONPath of it in the answer to the request, ``"Location"`` for that
        header, or an address with such paths in braces, ``"/jobs/{$.id}"``.
    done : str
        When it is done: a JSONPath that has something then, or ``$.status == VALUE``.
    timeout : float
        Seconds that a job may take.
    shortest, longest : float
        Seconds between two looks, which double from one to the other.

    Raises
    ------
    InputError
        If a path is none.
    """

    def __init__(
        self,
        client: Client,
        url: str,
        poll: str,
        done: str,
        timeout: float,
        *,
        shortest: float = 0.05,
        longest: float = 5.0,
    ) -> None:
        self._client, self._url, self._timeout = client, url, timeout
        self._shortest, self._longest = shortest, longest
        self._poll = poll
        template = poll if _IN_BRACES.search(poll) or not poll.startswith("$") else f"{{{poll}}}"
        pieces = _IN_BRACES.split(template)
        # Every second piece was in braces.
        self._pieces = [compiled(p, "poll") if i % 2 else p for i, p in enumerate(pieces)]
        path, _, wanted = done.partition("==")
        self._done, self._path = compiled(path.strip(), "done"), path.strip()
        self._wanted = wanted.strip().strip("'\"")
        if poll != "Location" and len(pieces) == 1:
            raise InputError(
                f"poll {shown(poll)!r} names no job: write $.PATH, Location or /jobs/{{$.id}}"
            )

    def finished(self, reply: Reply) -> Reply:
        """Return the answer of the job that a reply tells of.

        Raises
        ------
        TargetError
            If it fails, or is at another host.
        LimitReachedError
            If it takes too long.
        """
        address, _, query = self._address(reply).partition("?")
        began, pause = time.monotonic(), self._shortest
        while True:
            reply = self._client.request("GET", address, query=query)
            if reply.status >= 400:
                said = error_of(reply.content)
                raise TargetError(f"{self._url}: its job answers {reply.status}: {said}")
            if self._is_done(reply):
                return reply
            now = time.monotonic()
            if now + pause > self._client.until:
                raise LimitReachedError(f"the seconds allowed are over: {self._url}: a job runs")
            if now + pause > began + self._timeout:
                raise TargetError(
                    f"{self._url}: a job is not done within {self._timeout:g} s, by {self._path}; "
                    "a profile may allow more (timeout)"
                )
            time.sleep(pause)
            pause = min(2.0 * pause, self._longest)

    def _address(self, reply: Reply) -> str:
        if self._poll == "Location":
            there = reply.headers.get("location", "")
        else:
            document = _document(reply, "job")
            there = "".join(
                piece if isinstance(piece, str) else _text_at(piece, document)
                for piece in self._pieces
            )
        if not there:
            raise TargetError(
                f"{self._url} names no job at {shown(self._poll)}: {shown(_body(reply))}"
            )
        address = urljoin(self._url, there)
        try:
            is_same = origin_of(address) == origin_of(self._url)
        except ValueError:
            is_same = False
        if not is_same:
            raise TargetError(f"{self._url}: its job is at another host, which is asked nothing")
        return address

    def _is_done(self, reply: Reply) -> bool:
        found = list(self._done.findall(_document(reply, "answer of a job")))
        if not self._wanted:
            return any(one is not None and one is not False for one in found)
        said = {str(one).lower() for one in found}
        if self._wanted.lower() not in said and said & _FAILED:
            raise TargetError(f"{self._url}: a job failed: {shown(_body(reply))}")
        return self._wanted.lower() in said


def _document(reply: Reply, what: str) -> Any:
    try:
        return opened(read_document(reply.content), 0)
    except (ValueError, RecursionError):
        raise AnswerError(f"answers no {what} in JSON: {shown(_body(reply))}") from None


def _text_at(query: Any, document: Any) -> str:
    found = list(query.findall(document))
    return f"{found[0]}" if found and isinstance(found[0], str | int) else ""


def _body(reply: Reply) -> str:
    return reply.content.decode(errors="replace")
