"""``revelu audit``: what a target gives away under each defence."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from revelu.cli.baseline import FAILURES, failed, read_baseline
from revelu.cli.command import Asking, command
from revelu.cli.domains import inputs_of
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.cli.options import Box, Labels, flag, optional
from revelu.errors import InputError
from revelu.report.sections import audit_table
from revelu.report.summary import parts_of

if TYPE_CHECKING:
    from revelu.tasks.audit.rows import Audit

FORMATS = ("text", "json", "sarif", "junit", "markdown")


@dataclass
class Auditing(Asking):
    """Options of the audit: those of what asks a target, and the form of its account."""

    format: Annotated[
        str,
        typer.Option(
            metavar="|".join(FORMATS),
            help="What is printed: text, or the form that a pipeline reads.",
        ),
    ] = "text"
    details: Annotated[bool, flag("Print all that was measured, too, as a table.", "--details")] = (
        False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.format not in FORMATS:
            known = ", ".join(FORMATS)
            raise typer.BadParameter(f"--format is one of {known}, got {self.format!r}")
        if self.format != "text" and (self.as_json or self.as_csv):
            raise typer.BadParameter("--format, --json and --csv are forms of one output: give one")
        self.as_json |= self.format == "json"
        self.form = _form(self.format)


def _form(name: str) -> Callable[[Mapping[str, Any]], str] | None:
    """What writes an account in a form of others; None of text and of JSON."""
    if name == "sarif":
        from revelu.report.sarif import sarif as form
    elif name == "junit":
        from revelu.report.junit import junit as form
    elif name == "markdown":
        from revelu.report.markdown import markdown as form
    else:
        return None
    return form


@command
def audit(
    inputs: Annotated[
        Path | None,
        optional("Inputs as users send them, one a row, to compare on.", metavar="X.csv"),
    ] = None,
    price: Annotated[
        float | None, optional("What a thousand queries cost, in any currency.", metavar="P")
    ] = None,
    baseline: Annotated[
        Path | None,
        optional(
            "Account of an earlier audit, as --json printed it: say what changed.",
            metavar="OLD.json",
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        optional(
            "End with exit code 5 if the answers as they are give away this or more; with worse, "
            "if any row is worse than in --baseline. May be given again.",
            metavar="|".join(FAILURES),
        ),
    ] = None,
    every_row: Annotated[
        bool, flag("Attack every row, also those that follow from coarser answers.", "--every-row")
    ] = False,
    box: Box = None,
    labels: Labels = False,
    *,
    asking: Auditing,
) -> ExitCode:
    """Find out what TARGET gives away, as it is and under each defence.

    Example:
      revelu audit model.onnx --inputs X.csv --price 1.5 --report audit.html

    Without --max-seconds an audit computes for eight minutes at most, for a network of one
    hidden layer of up to 100 neurons one minute.  The rows share that time, and say where
    they were cut.  A served model is attacked as it is; the other rows are extrapolated.

    Exit codes:
      0  finished
      1  finished, but an attack broke off by a defect
      2  usage or bad input
      3  budget or time exhausted, or what --fail-on asks cannot be told
      4  target unreachable, or it stopped answering or answered nonsense
      5  more is given away than --fail-on allows
    130  interrupted
    After 3, 4 and 130 the rows that are done are printed.
    """
    _check(fail_on or [], baseline)
    asking.reserve([], {inputs: "holds the inputs", baseline: "is the baseline"})
    before = None if baseline is None else read_baseline(baseline)
    options = {"price": price, "every_row": every_row, "labels": labels}
    found, ended = _examined(asking, inputs, box, **options)
    account = asking.account(asking.target, found, _changes(found.fields(), before))
    account["fail_on"] = {name: failed(account, name) for name in fail_on or []} or None
    _show(asking, account, found, ended)
    if ended is not None:
        raise ended
    return _code(account, found)


def _examined(
    asking: Auditing, inputs: Path | None, box: tuple[float, float] | None, **options: Any
) -> "tuple[Audit, BaseException | None]":
    """Return the audit, and what ended it before its time with the rows that are done."""
    from revelu.tasks.audit.audit import audit as examine
    from revelu.tasks.audit.rows import Audit
    from revelu.tasks.partial import partial_of

    # Its rows are kept by the task, at whatever ends it.
    asking.ends_by_itself = False
    X = inputs_of(asking, inputs)
    found: Audit | None = None
    with asking.opened(box) as oracle:
        try:
            found = examine(oracle, inputs=X, seed=asking.seed, progress=asking.line, **options)
            # Of what was not found there is no picture worth a query.
            if found.copy is not None:
                found = asking.with_pictures(oracle, found, found.copy)
        except BaseException as error:
            partial = partial_of(error)
            found = partial if isinstance(partial, Audit) else found
            if found is None:
                raise
            asking.picture(found.copy)
            return found, error
    return found, None


def _check(fail_on: Sequence[str], baseline: Path | None) -> None:
    unknown = [name for name in fail_on if name not in FAILURES]
    if unknown:
        raise InputError(f"--fail-on is one of {', '.join(FAILURES)}, got {unknown[0]!r}")
    if "worse" in fail_on and baseline is None:
        raise InputError("--fail-on worse needs --baseline OLD.json")


def _changes(found: dict[str, Any], before: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return what an account says of an audit, with what became better or worse since another."""
    if before is None:
        return found
    from revelu.tasks.audit.changes import changes

    return {**found, "changes": [asdict(change) for change in changes(before, found["rows"])]}


def _show(
    asking: Auditing, account: dict[str, Any], found: "Audit", ended: BaseException | None
) -> None:
    """Print and write what was found, however it ended."""
    if isinstance(ended, KeyboardInterrupt):
        account["status"] = "interrupted"
    elif found.error:
        account["status"] = "error"
        account["error"] = found.error + ("" if found.changed else asking.after())
        if ended is None:
            sys.stderr.write(f"revelu: {' '.join(account['error'].split())}\n")
    if asking.as_csv:
        asking.show(account, audit_table(account))
    else:
        asking.show(account, *parts_of(found, account, details=asking.details))


def _code(account: Mapping[str, Any], found: "Audit") -> ExitCode:
    """The exit code; what was asked for by --fail-on comes before time that ran out."""
    if found.error:
        return ExitCode.TARGET
    failures = (account["fail_on"] or {}).values()
    if True in failures:
        return ExitCode.GIVEN_AWAY
    if found.status is not None:
        return of_status(found.status)
    if None in failures:
        return ExitCode.EXHAUSTED
    return ExitCode.NOT_CERTIFIED if found.broke_off else ExitCode.CERTIFIED
