"""The library's log on standard error, for the length of a command."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


@contextmanager
def logs(verbosity: int) -> Iterator[None]:
    """Show the logger ``revelu``: warnings, with ``-v`` info, with ``-vv`` debug."""
    logger = logging.getLogger("revelu")
    before = logger.level
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(_LEVELS[min(verbosity, len(_LEVELS) - 1)])
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
