"""Long computations that can be cancelled from outside, or end after so much work.

A fit of many parameters takes minutes between two queries, and only its caller knows when it
has taken too long.  Long loops call :func:`check_cancelled`; :func:`interruptible`, around the
whole computation, decides what that raises.  Clocks differ from run to run, multiplications do
not: solvers say by :func:`spend` how many they take, and :func:`at_most` ends them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


class WorkEndedError(Exception):
    """A computation has taken as many multiplications as it may."""


@dataclass
class Work:
    """Multiplications of a computation.

    Attributes
    ----------
    most : float
        Of all together, at most.
    spent : float
    """

    most: float
    spent: float = 0.0


_WORK: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def interruptible(check: Callable[[], None]) -> Iterator[None]:
    """Have long computations inside call ``check`` now and then.

    Parameters
    ----------
    check : callable, () -> None
        Raises an exception to end the computation.
    """
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


def check_cancelled() -> None:
    """Raise what the caller of the computation has decided on, if it is to end."""
    check = _CHECK.get()
    if check is not None:
        check()


@contextmanager
def at_most(multiplications: float) -> Iterator[Work]:
    """Have solvers inside raise :class:`WorkEndedError` beyond a number of multiplications.

    Of these, one inside another, the innermost ends what it is around; the others count it then.
    """
    work = Work(multiplications)
    token = _WORK.set(work)
    try:
        yield work
    finally:
        _WORK.reset(token)
        around = _WORK.get()
        if around is not None:
            around.spent += work.spent


def spend(multiplications: float) -> None:
    """Count multiplications, and raise :class:`WorkEndedError` where that is too many."""
    work = _WORK.get()
    if work is None:
        return
    work.spent += multiplications
    if work.spent > work.most:
        raise WorkEndedError
