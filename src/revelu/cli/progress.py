"""Progress of a long command: the ledger so far, on standard error."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, RenderableType
from rich.progress import Progress as Display
from rich.progress import ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.text import Text

if TYPE_CHECKING:
    from revelu.tasks.progress import Progress


class _Bar(ProgressColumn):
    """Draws the fraction that is done, of a task that knows it."""

    def render(self, task: Task) -> RenderableType:
        """Draw it."""
        return ProgressBar(1.0, task.completed, width=20) if task.total else Text()


class ProgressLine:
    """Shows the moments of a task that it is called with, and remembers the count.

    Parameters
    ----------
    quiet : bool
        Show nothing.  Nothing is shown either where standard error is no terminal.

    Attributes
    ----------
    n_queries : int
        Queries answered so far.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.n_queries = 0
        self._display = Display(
            SpinnerColumn(),
            _Bar(),
            TextColumn("{task.description}"),
            TextColumn("{task.fields[figures]}", style="dim"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            # Standard error may be closed, and then is None.
            disable=quiet or sys.stderr is None or not sys.stderr.isatty(),
        )
        self._task = self._display.add_task("starting", total=None, figures="")

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
        self.n_queries = event.n_queries
        self._display.update(
            self._task,
            total=None if event.fraction is None else 1.0,
            completed=event.fraction or 0.0,
            description=event.title,
            figures="  ".join(event.figures()),
        )
