"""Requests over HTTP: repeated where that is safe, slowed down where asked for.

Nothing goes to another host than the one in the address.
"""

import email.utils
import ipaddress
import logging
import math
import socket
import ssl
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from revelu.adapters.addresses import Address, WithoutParameters, origin_of
from revelu.adapters.connection import Connection
from revelu.adapters.credentials import AUTHORIZATION, shown
from revelu.adapters.error_pages import error_of
from revelu.adapters.pace import RequestPace
from revelu.adapters.patience import PassingError, Patience, Spell, UnsentError
from revelu.errors import InputError, LimitReachedError, ReveluError, TargetError
from revelu.extras import import_extra

log = logging.getLogger(__name__)

# httpx has whole addresses in its own log.
_without_parameters = WithoutParameters()

_REDIRECTS = {301, 302, 303, 307, 308}
# Where a key may be named.
_VARIABLES = "a variable by --key-env VARIABLE or --header 'NAME: $VARIABLE'"
# Statuses after which a request is sent again; servers answer 500 under load, too.
_PASSING = {429, 500, 502, 503, 504}


@dataclass(frozen=True)
class Reply:
    """What a server answered.

    Attributes
    ----------
    status : int
    headers : mapping of str to str
    """

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True)
class Exchange:
    """A request and its reply, with nothing secret in them.

    Attributes
    ----------
    method, url : str
    headers : mapping of str to str
        Of the request; variables stand for secrets.
    content : bytes
        Of the request.
    reply : Reply
    seconds : float
    """

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes
    reply: Reply
    seconds: float


class TooLargeError(TargetError):
    """The server takes no request of this size."""


class FailingError(TargetError):
    """The server answers a status of failure, however often it is asked.

    Parameters
    ----------
    status : int
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """A connection to one host; threads share it, and a pickled copy opens its own.

    Parameters
    ----------
    address : str
        Whatever is asked for must have its scheme, host and port, and gets its parameters.
    rate : str, optional
        Most requests, such as ``"50/s"``, ``"600/min"`` or ``"1000/h"``.
    timeout : float
        Seconds that a request may take in all.
    connection : Connection
        Headers and certificates.
    patience : Patience
        How long what fails is sent again.
    shortest : float
        Seconds that a request may take where ``until`` is near, or has passed.
    max_redirects : int
    max_bytes : int
        Of an answer: one that is larger is none to a few thousand rows.

    Attributes
    ----------
    listener : callable or None
        Told each :class:`Exchange`.
    until : float
        Of the monotonic clock; what is asked is to be answered by then, and not asked again.
    allowed : float or None
        Seconds that there were until then, for messages.

    Raises
    ------
    InputError
        If the address holds what it should not, or ``rate`` is none.
    MissingExtraError
        If httpx or stamina is not installed.
    """

    def __init__(
        self,
        address: str,
        rate: str | None,
        timeout: float,
        connection: Connection | None = None,
        *,
        patience: Patience = Patience(),  # noqa: B008 - frozen
        shortest: float = 1.0,
        max_redirects: int = 3,
        max_bytes: int = 2**28,
    ) -> None:
        self.address = Address.read(address)
        parts = urlsplit(address)
        self.timeout, self.patience = timeout, patience
        self.max_redirects, self.max_bytes = max_redirects, max_bytes
        self.shortest = shortest
        self.connection = Connection() if connection is None else connection
        self.listener: Callable[[Exchange], None] | None = None
        self.until, self.allowed = math.inf, None
        # Replies, and the seconds that they took.
        self._n_replies, self._seconds, self._is_away = 0, 0.0, False
        self._pace = RequestPace(rate)
        self._origin = origin_of(self.address.base)
        self._is_local = _is_local(parts.hostname)
        self._libraries()
        if self._has_secret and parts.scheme == "http" and not self._is_local:
            log.warning("the authorisation travels to %s unencrypted", parts.hostname)
        self._open()

    @property
    def _has_secret(self) -> bool:
        return self.connection.has_secret or bool(self.address.variables)

    def __getstate__(self) -> dict[str, Any]:
        left_out = {"listener", "until", "allowed", "_client"}
        return {n: v for n, v in self.__dict__.items() if n not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Another process has another clock.
        self.listener, self.until, self.allowed = None, math.inf, None
        self._open()

    def request(
        self,
        method: str,
        url: str,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        query: str = "",
        patient: bool = True,
        n_rows: int = 0,
    ) -> Reply:
        """Send a request, again and again where what failed may be over soon.

        Parameters
        ----------
        method : {"GET", "POST"}
        headers : mapping of str to str, optional
            Those of the connection come before them.
        query : str
            Parameters besides those of the address; no message shows them.
        patient : bool
            Try again where there is no connection, too.
        n_rows : int
            Rows that it carries; an error says where these were not sent.

        Returns
        -------
        Reply
            With a status of 200 to 299, or of 400 to 499.

        Raises
        ------
        TargetError
            If there is no such reply.
        TooLargeError
            If the server says that the request is too large.
        FailingError
            If it fails each time.
        LimitReachedError
            If there is none by ``until``.
        """
        httpx, stamina = self._libraries()
        spell = Spell(self.patience, self.patience.seconds(has_replied=self._n_replies > 0))

        def pause(error: Exception) -> bool | float:
            if not isinstance(error, PassingError) or not spell.goes_on(error, self.until):
                return False
            log.info("%s: %s; asking again", url, error)
            self._say_that_it_waits(url, error, spell)
            return error.pause or True

        attempts = stamina.retry_context(
            on=pause, attempts=None, timeout=None, wait_jitter=0.1, wait_max=2.0
        )
        try:
            for attempt in attempts:
                with attempt:
                    try:
                        return self._once(method, url, query, content, headers or {})
                    except httpx.ConnectError as error:
                        if (untrusted := _untrusted(error)) is not None:
                            raise TargetError(f"{url}: {untrusted}") from None
                        hint = "" if self._n_replies else _what_to_look_at(error)
                        lost = " any more" if self._n_replies else ""
                        reason = f"no connection{lost}: {shown(error)}{hint}"
                        if not patient:
                            raise TargetError(f"{url}: {reason}") from None
                        raise UnsentError(reason) from None
                    except httpx.RequestError as error:
                        reason = shown(error) or type(error).__name__
                        slow = isinstance(error, httpx.TimeoutException)
                        failed = f"the connection failed: {reason}"
                        raise PassingError(failed, slow=slow) from None
                    except (httpx.InvalidURL, UnicodeError) as error:
                        raise InputError(f"{url}: is no address: {shown(error)}") from None
        except (PassingError, LimitReachedError) as error:
            failure = self._given_up(url, error) if isinstance(error, PassingError) else error
            failure.n_unsent = 0 if spell.was_sent else n_rows
            raise failure from None
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    def _say_that_it_waits(
        self, url: str, error: PassingError, spell: Spell, noticed: float = 2.0
    ) -> None:
        """Say once that a service is waited for, where that takes longer than ``noticed`` s."""
        pause = error.pause or 0.0
        if self._is_away or max(spell.waited, pause) < noticed:
            return
        self._is_away = True
        asked = f" and asks to wait {pause:,.0f} s" if pause else ""
        most = f"up to {spell.seconds:,.0f} s in all" if error.is_away else "and asking again"
        log.warning("%s: %s%s; waiting, %s", url, error, asked, most)

    def _given_up(self, url: str, error: PassingError) -> ReveluError:
        """Return what is raised where asking again has not helped."""
        said, pause = f"{url}: {error}", error.pause or 0.0
        if time.monotonic() + pause >= self.until:
            if error.slow:
                said = f"{url}: {self.speed or 'the server had answered no request by then'}"
            elif pause:
                said += f"; it asks to wait {pause:,.0f} s, more than is left"
            seconds = "" if self.allowed is None else f" {self.allowed:g}"
            limit = LimitReachedError(f"the{seconds} seconds allowed are over: {said}")
            limit.heard = said
            return limit
        if pause > self.patience.longest:
            waited = f"the {self.patience.longest:,.0f} s that are waited"
            said += (
                f"; it asks to wait {pause:,.0f} s, more than {waited}: --retry-for {pause:.0f}s"
            )
        return TargetError(said) if error.status is None else FailingError(said, error.status)

    @property
    def speed(self) -> str:
        """How fast the server is, in words; nothing before its first reply."""
        n = self._n_replies
        requests = "1 request" if n == 1 else f"{n:,} requests"
        seconds = self._seconds / max(n, 1)
        return f"the server answers in {seconds:.2g} s; it has answered {requests}" if n else ""

    def _once(
        self, method: str, url: str, query: str, content: bytes, given: Mapping[str, str]
    ) -> Reply:
        """Send it once, and wherever on the same host it is redirected to."""
        own = self.connection.sent()
        named = {name.lower() for name in own}
        headers = {name: value for name, value in given.items() if name.lower() not in named} | own
        sent = _joined(self.address.query(), query)
        told = _joined(self.address.told.partition("?")[2], query)
        for _ in range(self.max_redirects + 1):
            self._pace.wait(self.until)
            began = time.monotonic()
            reply = self._exchange(method, f"{url}?{sent}" if sent else url, content, headers)
            if self.listener is not None:
                seconds, shown_url = time.monotonic() - began, f"{url}?{told}" if told else url
                listened = self.connection.told(), content, reply, seconds
                self.listener(Exchange(method, shown_url, *listened))
            if reply.status not in _REDIRECTS:
                return _judged(url, reply, has_secret=self._has_secret)
            try:
                there = urljoin(url, reply.headers.get("location", ""))
                is_same = origin_of(there) == self._origin
            except ValueError:
                raise TargetError(f"{url}: redirects to what is no address") from None
            if not is_same:
                raise TargetError(
                    f"{url}: redirects to another host, {shown(_named(there))}, which is asked "
                    "nothing: if you trust it, name its address"
                )
            # It has the parameters that it is to be asked with.
            url, _, sent = there.partition("?")
            told = "..." if sent else ""
        raise TargetError(f"{url}: redirects in circles")

    def _exchange(self, method: str, url: str, content: bytes, headers: dict[str, str]) -> Reply:
        """One request and its reply; a time-out for each read would let a drip go on for ever."""
        now = time.monotonic()
        seconds = min(self.timeout, max(self.until - now, self.shortest))
        deadline = now + seconds
        with self._client.stream(
            method, url, content=content, headers=headers, timeout=seconds
        ) as response:
            chunks, size = [], 0
            for chunk in response.iter_bytes():
                chunks.append(chunk)
                size += len(chunk)
                if size > self.max_bytes:
                    raise TargetError(f"{url}: answers more than {self.max_bytes:,} bytes")
                if time.monotonic() > deadline:
                    raise PassingError(f"no whole answer within {seconds:.3g} s", slow=True)
            self._n_replies += 1
            self._is_away &= response.status_code in _PASSING
            self._seconds += time.monotonic() - now
            found = {name.lower(): value for name, value in response.headers.items()}
            return Reply(response.status_code, found, b"".join(chunks))

    def _open(self) -> None:
        httpx, _ = self._libraries()
        _without_parameters.origins.add(self._origin)
        logging.getLogger("httpx").addFilter(_without_parameters)
        # Of the environment only the proxies are used, and those not for this machine itself;
        # httpx reads passwords of a .netrc file only where it is told to.
        self._client = httpx.Client(
            verify=self.connection.context(),
            trust_env=not self._is_local,
            follow_redirects=False,
            timeout=self.timeout,
            headers={"User-Agent": "revelu"},
        )
        weakref.finalize(self, self._client.close)

    @staticmethod
    def _libraries() -> tuple[Any, Any]:
        httpx, stamina = (
            import_extra(name, f"served models need {name}", "http")
            for name in ("httpx", "stamina")
        )
        # Repeated requests are in our own log; without this they are on standard error, too.
        logging.getLogger("stamina").addHandler(logging.NullHandler())
        return httpx, stamina


def _what_to_look_at(error: BaseException) -> str:
    """What may be wrong where there is no connection."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            return "; is the name of the host right?"
        if isinstance(cause, ConnectionRefusedError):
            return "; is the server running, and the port right?"
        cause = cause.__cause__ or cause.__context__
    return ""


def _untrusted(error: BaseException) -> str | None:
    """What is wrong with the certificate of a server; None where it is another matter."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return (
                f"its certificate is not trusted: {shown(cause.verify_message)}; --ca-cert "
                "FILE.pem (ca_cert in Python) names those to trust"
            )
        cause = cause.__cause__ or cause.__context__
    return None


def _joined(*queries: str) -> str:
    return "&".join(filter(None, queries))


def _judged(url: str, reply: Reply, *, has_secret: bool) -> Reply:
    """A reply that is final, or an exception that says what it is instead."""
    if reply.status in _PASSING:
        reason = f"answers {reply.status}: {error_of(reply.content)}"
        raise PassingError(reason, _pause(reply.headers.get("retry-after")), reply.status)
    if reply.status == 413:
        raise TooLargeError(f"{url}: takes no request of this size")
    if reply.status in {401, 403}:
        needed = f"is needed: set {AUTHORIZATION}, or name {_VARIABLES}"
        hint = "was refused" if has_secret else needed
        raise TargetError(f"{url}: answers {reply.status}: authorisation {hint}")
    if not (200 <= reply.status < 300 or 400 <= reply.status < 500):
        raise TargetError(f"{url}: answers {reply.status}")
    return reply


def _pause(text: str | None) -> float | None:
    """Seconds that ``Retry-After`` asks for: a number, or a date."""
    if text is None:
        return None
    if text.strip().isdigit():
        return float(text)
    try:
        date = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(date.timestamp() - time.time(), 0.0)


def _named(url: str) -> str:
    scheme, host, port = origin_of(url)
    return f"{scheme}://{host}:{port}"


def _is_local(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False
