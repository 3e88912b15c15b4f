"""Patience: how long a service that fails, or is not there, is asked again."""

import math
import time
from dataclasses import dataclass, field

from revelu.adapters.pace import seconds_of

# Statuses of a service that is not there, or has too much to do: it may be back soon.
_AWAY = {429, 502, 503, 504}


class PassingError(Exception):
    """What may be over when asked again.

    Parameters
    ----------
    pause : float, optional
        Seconds that the server asks to wait.
    status : int, optional
        That it answers.
    slow : bool
        Whether no answer came in time.
    """

    def __init__(
        self,
        reason: str,
        pause: float | None = None,
        status: int | None = None,
        *,
        slow: bool = False,
    ) -> None:
        super().__init__(reason)
        self.pause, self.status, self.slow = pause, status, slow

    @property
    def is_away(self) -> bool:
        """Whether the service is not there for now."""
        return self.status in _AWAY


class UnsentError(PassingError):
    """There is no connection, so that nothing was sent."""

    @property
    def is_away(self) -> bool:
        """The service is not there."""
        return True


@dataclass(frozen=True)
class Patience:
    """How long a failing request is sent again.

    Attributes
    ----------
    given : str, float or None
        Seconds that a service which is away is waited for, such as ``"60s"`` or ``"5min"``, from
        the first request on.
    restart : float
        Seconds, where none are given, once the service has replied: a rolling restart takes half
        a minute and more, with a pod to be stopped and one to become ready.
    first : float
        Seconds before it has: an address that is wrong is told soon.
    attempts : int
        Times that a request is sent that fails otherwise, with waits of 0.1 s, 0.2 s and so on
        between them.
    longest_pause : float
        Seconds, where none are given, that a server may ask to wait.

    Raises
    ------
    InputError
        If the seconds are none.
    """

    given: str | float | None = None
    restart: float = 60.0
    first: float = 3.0
    attempts: int = 6
    longest_pause: float = 60.0

    def __post_init__(self) -> None:
        if self.given is not None:
            object.__setattr__(self, "given", seconds_of("retry_for", self.given))

    def seconds(self, *, has_replied: bool) -> float:
        """Return how long a service is waited for that is away."""
        if self.given is not None:
            return float(self.given)
        return self.restart if has_replied else self.first

    @property
    def longest(self) -> float:
        """The longest pause that a server may ask for."""
        return self.longest_pause if self.given is None else float(self.given)


@dataclass
class Spell:
    """A request that is sent until it is answered, or patience ends.

    Attributes
    ----------
    seconds : float
        That the service is waited for while it is away.
    was_sent : bool
        Whether any of it left.
    """

    patience: Patience
    seconds: float
    was_sent: bool = False
    n_failures: int = field(default=0, init=False)
    began: float = field(default_factory=time.monotonic, init=False)

    @property
    def waited(self) -> float:
        """Seconds since it was first sent."""
        return time.monotonic() - self.began

    def goes_on(self, error: PassingError, until: float = math.inf) -> bool:
        """Whether it is sent again after a failure; ``until`` is when time is over."""
        self.was_sent |= not isinstance(error, UnsentError)
        pause = error.pause or 0.0
        if pause > self.patience.longest or time.monotonic() + pause >= until:
            return False
        if error.is_away:
            return self.waited < self.seconds
        self.n_failures += 1
        return self.n_failures < self.patience.attempts
