"""Errors and interrupts of a command, and its output: one line, one exit code."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from revelu.cli.exit_codes import ExitCode, of_error
from revelu.cli.heard import Heard, told
from revelu.cli.output import print_json
from revelu.cli.signals import EndableWork, raised_interrupts
from revelu.errors import ChangedError, InputError, ReveluError, TargetError
from revelu.shown import SCHEMA

# Arguments that the library's messages name; on the command line they are options.
_ARGUMENT = re.compile(
    r"(?<!\S)(?:ca_cert|client_cert|client_key|dim_in|input_name|input_shape"
    r"|key_env|max_seconds|output_name)(?![^\s,])|(?<![^\s(])image(?= \w+x)"
    r"|\A(?:batch|budget|checks|neurons|norm|perturb|preset|price|rate|retry_for|seed|workers)"
    r"(?= must | needs )"
)


@contextmanager
def failures(
    *,
    as_json: bool,
    n_queries: Callable[[], int] = lambda: 0,
    dim_in: int | None = None,
    heard: Heard | None = None,
    tell: Callable[[str, str], bool] = lambda _status, _message: False,
    work: EndableWork | None = None,
    after: Callable[[], str] = lambda: "",
    goes_on: Callable[[], str] = lambda: "",
) -> Iterator[None]:
    """Report what a command raises: a line on standard error, and its exit code.

    Parameters
    ----------
    as_json : bool
        Print a JSON object on standard output, too.
    n_queries : callable, () -> int
        Queries answered so far.
    dim_in : int, optional
        Inputs that the user says the target has.
    heard : Heard, optional
        What was warned of inside, told at the end if nobody took it before.
    tell : callable, (status, message) -> bool
        Tells of what was done until then; returns whether standard output was told.
    work : EndableWork, optional
        Is asked to end by itself at an interrupt.
    after : callable, () -> str
        Says of a target that fails how far it was asked, in words that follow.
    goes_on : callable, () -> str
        Says how what was interrupted goes on, in words that follow.

    Raises
    ------
    typer.Exit
        In place of a :class:`revelu.ReveluError` or a KeyboardInterrupt; any other
        exception is a defect and keeps its traceback.
    """
    try:
        with told(heard or Heard()), raised_interrupts(work):
            yield
    except ReveluError as error:
        message, status, code = f"{error}", "error", of_error(error)
        if isinstance(error, InputError):
            message = _ARGUMENT.sub(lambda found: f"--{found[0].replace('_', '-')}", message)
        # What the target itself raised, at the first rows that it got.
        elif isinstance(error, TargetError) and error.__cause__ and dim_in and not n_queries():
            message += f" (it was given rows of {dim_in} numbers: --dim-in {dim_in})"
        elif isinstance(error, TargetError) and not isinstance(error, ChangedError):
            message += after()
    except KeyboardInterrupt:
        message = f"{interrupted(n_queries())}{goes_on()}"
        status, code = "interrupted", ExitCode.INTERRUPTED
    except typer.Exit:
        raise
    except Exception as error:
        tell("error", f"a defect: {error!r}")
        raise
    else:
        return
    refuse(message, as_json=as_json, status=status, tell=tell)
    raise typer.Exit(code)


def interrupted(n_queries: int) -> str:
    """Say when an interrupt came; of work that asks nothing that it did."""
    return f"interrupted after {n_queries:,} queries" if n_queries else "interrupted"


def refuse(
    message: str,
    *,
    as_json: bool,
    status: str = "error",
    tell: Callable[[str, str], bool] = lambda _status, _message: False,
) -> None:
    """Say why there is no result: a line on standard error, and the JSON object if wanted."""
    sys.stderr.write(f"revelu: {' '.join(message.split())}\n")
    if not tell(status, message) and as_json:
        print_json({"schema": SCHEMA, "status": status, "error": message})


@contextmanager
def standard_output() -> Iterator[None]:
    """Report a standard output that is closed or full: a line on standard error.

    A pipe whose reader has gone stays quiet.

    Raises
    ------
    SystemExit
        With exit code 2, before anything runs if standard output is closed.
    """
    if sys.stdout is None:  # what Python makes of a closed descriptor
        _refuse_output("is closed")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes once more when it exits: that must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise SystemExit(ExitCode.NOT_CERTIFIED) from None
        if error.filename is not None:  # a file's error, not a stream's: a defect
            raise
        _refuse_output(f"cannot be written: {error.strerror}")


def _refuse_output(reason: str) -> NoReturn:
    sys.stderr.write(f"revelu: standard output {reason}\n")
    raise SystemExit(ExitCode.USAGE)
