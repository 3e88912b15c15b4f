"""The application ``revelu``: its commands and its version."""

import os
import sys
from typing import Annotated

import typer

from revelu._version import __version__
from revelu.cli.audit import audit
from revelu.cli.bench import bench
from revelu.cli.compare import compare
from revelu.cli.demos import demos
from revelu.cli.diagnose import diagnose
from revelu.cli.exit_codes import ExitCode
from revelu.cli.extract import extract
from revelu.cli.failures import standard_output
from revelu.cli.journal import journal
from revelu.cli.learn import learn
from revelu.cli.methods import methods
from revelu.cli.obfuscate import obfuscate
from revelu.cli.probe import probe
from revelu.cli.serve import serve
from revelu.cli.span import span
from revelu.cli.verify import verify

app = typer.Typer(
    name="revelu",
    help="Recover ReLU networks from what they answer: exactly, with a certificate and a ledger.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for work in (
    *(extract, learn, audit, diagnose, span, obfuscate),
    *(probe, verify, compare, demos, methods, bench, serve),
):
    app.command()(work)
app.add_typer(journal)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"revelu {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Options before a command; ``--version`` has done its work when this runs."""


def run() -> None:
    """Run the command that the arguments of the process name."""
    try:
        with standard_output():
            app()
    except SystemExit as end:
        if end.code != ExitCode.INTERRUPTED:
            raise
        # The interpreter would wait for threads that wait for a server, minutes perhaps.
        sys.stderr.flush()
        os._exit(end.code)
