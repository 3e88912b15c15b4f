"""Long computations that someone may break off.

A fit of many parameters takes minutes between two questions, and only who asked for it
knows when it is enough.  Loops that take long call :func:`look_up`; what that raises is
decided by :func:`interruptible`, around the whole of it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LOOK: ContextVar[Callable[[], None] | None] = ContextVar("look", default=None)


@contextmanager
def interruptible(look: Callable[[], None]) -> Iterator[None]:
    """Have long computations inside call ``look`` now and then.

    Parameters
    ----------
    look : callable, () -> None
        Raises what is to end the computation.
    """
    token = _LOOK.set(look)
    try:
        yield
    finally:
        _LOOK.reset(token)


def look_up() -> None:
    """Raise what ends the computation, if it is to end."""
    look = _LOOK.get()
    if look is not None:
        look()
