"""The pace of requests: kept apart, whichever thread sends them."""

import math
import re
import threading
import time
from typing import Any

from revelu.errors import InputError, LimitReachedError

_RATE = re.compile(r"(\d+(?:\.\d+)?)/(s|min|h)")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h)?")


class RequestPace:
    """One line that all threads stand in; a pickled copy begins one of its own.

    Parameters
    ----------
    rate : str or None
        Most requests, such as ``"50/s"``, ``"600/min"`` or ``"1000/h"``; None lets all go at once.

    Raises
    ------
    InputError
        If ``rate`` is none.
    """

    def __init__(self, rate: str | None) -> None:
        self._interval, self._free_from = _interval(rate), 0.0
        self._turn = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"_interval": self._interval}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._interval, self._free_from = state["_interval"], 0.0
        self._turn = threading.Lock()

    def wait(self, until: float = math.inf) -> None:
        """Return when it is the caller's turn.

        Parameters
        ----------
        until : float
            Of the monotonic clock.

        Raises
        ------
        LimitReachedError
            If that is later than ``until``.
        """
        if not self._interval:
            return
        with self._turn:
            now = time.monotonic()
            mine = max(self._free_from, now)
            if mine > max(until, now):
                raise LimitReachedError("the seconds allowed are over: the rate allows no request")
            self._free_from = mine + self._interval
        time.sleep(mine - now)


def requests_within(rate: str | None, most: int, seconds: float = 60.0) -> int:
    """Return how many requests a rate allows for something that may take some seconds.

    Examples
    --------
    >>> [requests_within(rate, 400) for rate in (None, "50/s", "60/min", "10/h")]
    [400, 400, 60, 1]
    """
    interval = _interval(rate)
    return most if interval * most <= seconds else max(int(seconds / interval), 1)


def seconds_of(name: str, given: object) -> float:
    """Return a duration such as ``60``, ``"60s"``, ``"5min"`` or ``"1h"`` in seconds.

    Raises
    ------
    InputError
        If it is none; ``name`` is the argument that it was given as.
    """
    found = _DURATION.fullmatch(f"{given}".strip())
    if found is None:
        raise InputError(f"{name} must be like 60s, 5min or 1h, got {given!r}")
    return float(found[1]) * _SECONDS[found[2] or "s"]


def _interval(rate: str | None) -> float:
    """Seconds between two requests."""
    if rate is None:
        return 0.0
    found = _RATE.fullmatch(rate)
    if found is None or not float(found[1]) > 0:
        raise InputError(f"rate must be like 50/s, 600/min or 1000/h, got {rate!r}")
    return _SECONDS[found[2]] / float(found[1])
