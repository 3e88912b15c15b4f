"""Progress in a notebook: a line below the cell, where nobody listens otherwise."""

import sys
import time
from collections.abc import Callable
from typing import Any

from revelu.tasks.progress import Listener, Progress


def listener(progress: Listener | None) -> Listener | None:
    """Return who is told of progress: who was named, or else the notebook that runs this."""
    return _notebook_line() if progress is None else progress


class NotebookLine:
    """Shows the moments of a task in one line, which changes.

    Parameters
    ----------
    display : callable
        IPython's, which returns a handle.
    pause : float
        Seconds between two changes: a browser draws no more than it can be seen to.
    """

    def __init__(self, display: Callable[..., Any], pause: float = 0.25) -> None:
        self._display = display
        self._pause = pause
        self._handle: Any = None
        self._shown = -pause

    def __call__(self, event: Progress) -> None:
        """Show a moment of the task, unless the last one is too fresh."""
        now = time.monotonic()
        if now - self._shown < self._pause:
            return
        self._shown = now
        said = {"text/plain": ", ".join([event.title, *event.figures()])}
        if self._handle is None:
            self._handle = self._display(said, raw=True, display_id=True)
        else:
            self._handle.update(said, raw=True)


def _notebook_line() -> Listener | None:
    """Return a line of the notebook that this runs in; None elsewhere, IPython's shell too."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if not hasattr(shell, "kernel"):
        return None
    return NotebookLine(ipython.display.display)  # type: ignore[union-attr]
