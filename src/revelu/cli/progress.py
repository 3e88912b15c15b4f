"""Progress of a long command: the ledger so far, on standard error."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Display

from revelu.tasks.progress import Progress


class ProgressLine:
    """Shows the moments of a task that it is called with, and remembers the count.

    Parameters
    ----------
    quiet : bool
        Show nothing.  Nothing is shown either where standard error is no terminal.
    counts : bool
        Show the ledger; a task that asks nothing has none.
    bar : bool
        Draw the fraction that is done, for a task that knows it.

    Attributes
    ----------
    n_queries : int
        Queries answered so far.
    """

    def __init__(self, *, quiet: bool = False, counts: bool = True, bar: bool = False) -> None:
        self.n_queries, self._counts = 0, counts
        bars: list[ProgressColumn] = [BarColumn(bar_width=20)] if bar else []
        self._display = Display(
            SpinnerColumn(),
            *bars,
            TextColumn("{task.description}"),
            TextColumn("{task.fields[percent]}{task.fields[ledger]}", style="dim"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            # Standard error may be closed, and then is None.
            disable=quiet or sys.stderr is None or not sys.stderr.isatty(),
        )
        self._task = self._display.add_task(
            "starting", total=1.0 if bar else None, percent="", ledger=""
        )

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

    def __call__(self, event: Progress) -> None:
        """Show a moment of the task."""
        self.n_queries = event.n_queries
        percent = "" if event.fraction is None else f"{event.fraction:.0%}  "
        ledger = f"{event.n_queries:,} queries in {event.n_rounds:,} rounds" if self._counts else ""
        if event.seconds_left is not None:
            minutes, seconds = divmod(round(event.seconds_left), 60)
            percent += f"at most {minutes}:{seconds:02d} left  "
        self._display.update(
            self._task,
            completed=event.fraction or 0.0,
            description=f"{event.phase}: {event.message}" if event.message else event.phase,
            percent=percent,
            ledger=ledger,
        )
