"""The application ``revelu``: its commands and its version."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from revelu._version import __version__
from revelu.cli.audit import audit
from revelu.cli.bench import bench
from revelu.cli.compare import compare
from revelu.cli.demos import demos
from revelu.cli.diagnose import diagnose
from revelu.cli.exit_codes import ExitCode
from revelu.cli.export import export
from revelu.cli.extract import extract
from revelu.cli.failures import refuse, standard_output
from revelu.cli.inspection import inspect
from revelu.cli.journal import journal
from revelu.cli.learn import learn
from revelu.cli.methods import methods
from revelu.cli.obfuscate import obfuscate
from revelu.cli.probe import probe
from revelu.cli.serve import serve
from revelu.cli.span import span
from revelu.cli.verify import verify

START = """\
revelu recovers ReLU networks from what they answer. Five things one does:

  revelu extract TARGET -o FILE.onnx      recover the network behind a target
  revelu audit TARGET --report PAGE.html  see what a model of yours gives away
  revelu learn DATA.csv --target COLUMN   recover a network from samples alone
  revelu span TARGET                      find the directions a target looks at
  revelu verify FILE TARGET               check a file against a target

To try it: revelu extract demo:digits -o digits.onnx
More: revelu -h lists all commands, revelu COMMAND -h explains one."""


class Commands(TyperGroup):
    """The commands, of which bad usage is told as any other error: a line, or JSON."""

    def main(self, *args: Any, **more: Any) -> Any:
        """Run a command and exit."""
        if not more.pop("standalone_mode", True):
            return super().main(*args, **{**more, "standalone_mode": False})
        given = args[0] if args else more.get("args")
        try:
            code = super().main(*args, **{**more, "standalone_mode": False})
        except Exception as error:
            # What typer refuses, of whichever class its version has for that.
            if not hasattr(error, "format_message"):
                raise
            _refuse(error, sys.argv[1:] if given is None else given)
        sys.exit(code if isinstance(code, int) else ExitCode.CERTIFIED)


def _refuse(error: Any, given: Sequence[str]) -> NoReturn:
    """Say what of a command line makes no sense, and where to read more."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "revelu"
    message = f"{error.format_message()}".removeprefix("Invalid value: ").strip().rstrip(".")
    if "--csv" in given and "unexpected extra argument" in message:
        message += "; --csv writes to standard output: --csv > FILE"
    refuse(f"{message} ({path} -h says more)", as_json="--json" in given)
    sys.exit(ExitCode.USAGE)


app = typer.Typer(
    name="revelu",
    cls=Commands,
    help="Recover ReLU networks from what they answer: exactly, with a certificate and a ledger.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group, works in {
    "Recover": (extract, learn, span, obfuscate),
    "Judge": (audit, diagnose, verify, compare, export),
    "Look around": (inspect, demos, methods, probe, serve, bench),
}.items():
    for work in works:
        app.command(rich_help_panel=group)(work)
app.add_typer(journal, rich_help_panel="Look around")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"revelu {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    _version: Annotated[
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
    """Say how to start where no command is given; ``--version`` has done its work by now."""
    if context.invoked_subcommand is None:
        typer.echo(START)


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
