"""What Python and other packages warn of while a command works: once each, in a line of ours."""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

# Of arithmetic and of files left open: for those who look into the code, not for a user.
_FOR_THE_LOG = (RuntimeWarning, ResourceWarning, DeprecationWarning, ImportWarning)


class Heard(logging.Handler):
    """Collects warnings, and what packages without a handler log, instead of showing them.

    Each is kept once, as a line.  Those of arithmetic go to the log alone, with their place.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: dict[str, None] = {}
        self._n_taken = 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Collect what is said inside."""
        root = logging.getLogger()
        with warnings.catch_warnings():
            warnings.showwarning = self._warned
            root.addHandler(self)
            try:
                yield
            finally:
                root.removeHandler(self)

    def take(self) -> list[str]:
        """Return the lines since the last time."""
        lines = [*self._lines][self._n_taken :]
        self._n_taken += len(lines)
        return lines

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what another package logs; our own log has a handler."""
        package = record.name.partition(".")[0]
        if package != "revelu" and not logging.getLogger(package).handlers:
            self._keep(f"{package}: {record.getMessage()}")

    def _warned(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        *_: Any,
        **__: Any,
    ) -> None:
        said = " ".join(f"{message}".split())
        log.info("%s (%s, %s:%d)", said, category.__name__, Path(filename).name, lineno)
        if issubclass(category, _FOR_THE_LOG):
            return
        package = category.__module__.partition(".")[0]
        self._keep(said if package == "builtins" else f"{package}: {said}")

    def _keep(self, text: str) -> None:
        self._lines[" ".join(text.split())] = None


@contextmanager
def told(heard: Heard) -> Iterator[None]:
    """Listen inside, and say at the end what nobody has taken: a line each on standard error."""
    try:
        with heard.listening():
            yield
    finally:
        for text in heard.take():
            sys.stderr.write(f"revelu: warning: {text}\n")
