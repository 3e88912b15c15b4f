"""Long computations that can be cancelled from outside.

A fit of many parameters takes minutes between two queries, and only its caller knows when it
has taken too long.  Long loops call :func:`check_cancelled`; :func:`interruptible`, around the
whole computation, decides what that raises.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


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
