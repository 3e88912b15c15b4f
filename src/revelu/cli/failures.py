"""Errors and interrupts of a command: one line, one exit code."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from revelu.cli.exit_codes import ExitCode, of_error
from revelu.cli.output import failure_document, print_json
from revelu.errors import ReveluError


@contextmanager
def failures(*, as_json: bool, n_queries: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Report what a command raises: a line on standard error, and its exit code.

    Parameters
    ----------
    as_json : bool
        Print a JSON object on standard output, too.
    n_queries : callable, () -> int
        Queries answered until an interrupt.

    Raises
    ------
    typer.Exit
        In place of a :class:`revelu.ReveluError` or a KeyboardInterrupt; any other
        exception is a defect and keeps its traceback.
    """
    try:
        yield
    except ReveluError as error:
        message, status, code = f"{error}", "error", of_error(error)
    except KeyboardInterrupt:
        message = f"interrupted after {n_queries():,} queries"
        status, code = "interrupted", ExitCode.INTERRUPTED
    else:
        return
    sys.stderr.write(f"revelu: {' '.join(message.split())}\n")
    if as_json:
        print_json(failure_document(status, message))
    raise typer.Exit(code)
