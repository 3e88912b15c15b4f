"""Progress of a long command: the ledger so far, on standard error."""

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, RenderableType
from rich.progress import Progress as Display
from rich.progress import ProgressColumn, SpinnerColumn, Task, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.table import Column
from rich.text import Text

if TYPE_CHECKING:
    from revelu.tasks.progress import Progress


class _Bar(ProgressColumn):
    """Draws the fraction that is done, of a task that knows it."""

    def render(self, task: Task) -> RenderableType:
        """Draw it."""
        return ProgressBar(1.0, task.completed, width=20) if task.total else Text()


class _Words(ProgressColumn):
    """What is being done and how far it is, as far as a terminal has room for it."""

    # Columns of the spinner and of the time beside it, and of the bar where there is one.
    beside, bar = 11, 21

    def __init__(self, console: Console) -> None:
        super().__init__(Column(no_wrap=True))
        self._console = console

    def render(self, task: Task) -> Text:
        """Draw them."""
        room = self._console.width - self.beside - (self.bar if task.total else 0)
        title, figures = fitted(task.description, task.fields["figures"], room)
        return Text.assemble(title, "  " if title and figures else "", (figures, "dim"))


def fitted(title: str, figures: Sequence[str], room: int, *, least: int = 10) -> tuple[str, str]:
    """Return a title and figures that have ``room`` columns together.

    The middle of the title is left out first, as long as ``least`` characters of it stay, then the
    last figures: the first ones say how many queries there were.
    """
    said = list(figures)
    while True:
        text = "  ".join(said)
        left = room - len(text) - 2
        if left >= min(len(title), least) or len(said) < 2:
            return _without_middle(title, left if text else room), text[: max(room, 0)]
        said.pop()


def _without_middle(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    if most < 3:
        return ""
    head = (most - 1) // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


class ProgressLine:
    """Shows the moments of a task that it is called with, and remembers the count.

    Where standard error is no terminal, a log or a pipe gets a plain line now and then.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    every : float
        Seconds between two plain lines, and before the first: short runs write none.

    Attributes
    ----------
    n_queries : int
        Queries answered so far.
    """

    def __init__(self, *, quiet: bool = False, every: float = 60.0) -> None:
        self.n_queries = 0
        self.every, self._began = every, time.monotonic()
        self._is_plain = not quiet and sys.stderr is not None and not sys.stderr.isatty()
        self._told = self._began
        console = Console(stderr=True)
        self._display = Display(
            SpinnerColumn(),
            _Bar(),
            _Words(console),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            # Standard error may be closed, and then is None.
            disable=quiet or sys.stderr is None or not sys.stderr.isatty(),
        )
        self._task = self._display.add_task("starting", total=None, figures=[])

    def __enter__(self) -> Self:
        self._display.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._display.stop()

    def __call__(self, event: "Progress") -> None:
        """Show a moment of the task."""
        self.n_queries = event.n_queries - event.n_underway
        now = time.monotonic()
        if self._is_plain and now - self._told >= self.every:
            self._told = now
            said = ", ".join([event.title, *event.figures()])
            sys.stderr.write(f"revelu: {now - self._began:.0f} s: {said}\n")
            sys.stderr.flush()
        self._display.update(
            self._task,
            total=None if event.fraction is None else 1.0,
            completed=event.fraction or 0.0,
            description=event.title,
            figures=event.figures(),
        )
