"""The library's log on standard error, for the length of a command."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


class _Lines(logging.Handler):
    """Writes to what is standard error at the time: a progress line puts itself in its place."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        if sys.stderr is not None:
            sys.stderr.write(f"{self.format(record)}\n")


@contextmanager
def logs(verbosity: int) -> Iterator[None]:
    """Show the logger ``revelu``: warnings, with ``-v`` info, with ``-vv`` debug."""
    logger = logging.getLogger("revelu")
    before = logger.level
    handler = _Lines()
    form = "%(levelname)s %(name)s: %(message)s" if verbosity else "revelu: %(message)s"
    handler.setFormatter(logging.Formatter(form))
    logger.addHandler(handler)
    logger.setLevel(_LEVELS[min(verbosity, len(_LEVELS) - 1)])
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
