"""What commands share: their options, and how they work, write, print and end."""

import inspect
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from revelu.cli.endpoints import (
    Answer,
    CaCert,
    Classes,
    ClientCert,
    ClientKey,
    EndpointFile,
    Get,
    Headers,
    KeyEnv,
    PresetName,
    Remote,
    Request,
    RetryFor,
    classes_of,
    target_of,
)
from revelu.cli.exit_codes import ExitCode
from revelu.cli.failures import failures, interrupted
from revelu.cli.files import Files, check_report
from revelu.cli.groups import in_groups
from revelu.cli.heard import Heard
from revelu.cli.logs import logs
from revelu.cli.options import (
    Activation,
    AsCsv,
    AsJson,
    Budget,
    Columns,
    DimIn,
    Fixed,
    ImageShape,
    InputName,
    InputShape,
    KeepDiscrete,
    Like,
    LinkName,
    Mean,
    OutputName,
    Quiet,
    Report,
    Seed,
    Std,
    Target,
    Verbose,
    flag,
    optional,
)
from revelu.cli.output import account_of, print_account, print_csv, print_json, versions
from revelu.cli.provenance import command_line, today
from revelu.errors import FormatError, InputError
from revelu.report.summary import ending
from revelu.report.terminal import Part
from revelu.shown import SCHEMA

if TYPE_CHECKING:
    from revelu.network import Network
    from revelu.network.span import Span
    from revelu.oracle import Domain, Oracle
    from revelu.recovery import Result

R = TypeVar("R", bound="Result")


def command(work: Callable[..., ExitCode]) -> Callable[..., None]:
    """Make a function a command, with the options that commands share.

    Parameters
    ----------
    work : callable
        Its last parameter is annotated with a dataclass that extends :class:`Command`.  The
        command has an option for each other parameter, then one for each field of that class,
        and ends with the exit code that ``work`` returns.
    """
    *own, last = inspect.signature(work).parameters.values()
    shared = inspect.signature(last.annotation).parameters
    parameters = in_groups(p.replace(kind=p.KEYWORD_ONLY) for p in (*own, *shared.values()))
    own_line = inspect.Parameter(
        "context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context
    )
    parameters.append(own_line)

    def run(*, context: typer.Context, **given: Any) -> None:
        options = last.annotation(**{name: given.pop(name) for name in shared})
        options.name, options.command_line = work.__name__, command_line(context)
        with options.guarded():
            code = work(**given, **{last.name: options})
        code = ExitCode.INTERRUPTED if options.was_cut else code
        raise typer.Exit(ExitCode.USAGE if options.unwritten else code)

    run.__name__, run.__doc__, run.__module__ = work.__name__, work.__doc__, work.__module__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


class Command:
    """A command at work; subclasses declare its options.

    Attributes
    ----------
    name : str
    line : ProgressLine
        What a task is to tell its progress.
    heard : Heard
        What was warned of.
    seconds : float
        Of the work that is done.
    figures : mapping
        Of the page that ``--report`` asks for.
    written, unwritten : list of str
        Files, and why others are not there.
    files : Files
        Which have those.
    notes : list of str
        What was chosen of the target where it leaves a choice.
    command_line : str
        As it was given, without what may be secret.
    is_shown : bool
        Whether the account has been printed.
    has_inputs : bool
        Whether a table of inputs was given, of which --columns chooses, too.
    was_cut : bool
        Whether an interrupt has ended the work, with what it had found.
    form : callable or None
        Writes an account as something else than text, JSON or CSV.
    """

    report: Path | None
    as_json: bool
    as_csv: bool
    quiet: bool
    verbose: int = 0
    seed: int = 0
    dim_in: int | None = None
    name: str = ""
    command_line: str = ""
    form: Callable[[Mapping[str, Any]], str] | None = None
    has_inputs = False

    def __post_init__(self) -> None:
        from revelu.cli.progress import ProgressLine

        self.heard = Heard()
        self.line = ProgressLine(quiet=self.quiet or self.verbose > 0)
        self.seconds = 0.0
        self.is_shown = self.was_cut = False
        self.figures: Mapping[str, Any] = {}
        self.files = Files()
        self.written, self.unwritten = self.files.written, self.files.unwritten
        self.notes: list[str] = []

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Log, and report what is raised inside."""
        asked, dim_in = lambda: self.line.n_queries, self.dim_in
        form, heard = {"as_json": self.as_json}, self.heard
        tell = self.tell_what_was_done
        told = failures(
            **form,
            n_queries=asked,
            dim_in=dim_in,
            heard=heard,
            tell=tell,
            work=self,
            after=self.after,
            goes_on=self.goes_on,
        )
        with logs(self.verbose), told:
            check_form(**form, as_csv=self.as_csv)
            yield

    @property
    def opened_target(self) -> Any:
        """What is asked, as it was opened; None of what asks nothing."""
        return None

    @property
    def is_waiting(self) -> bool:
        """Whether a question is with the target."""
        return False

    @property
    def has_answers(self) -> bool:
        """Whether a target has answered anything."""
        return False

    def end(self) -> bool:
        """Have the task end with what it has found; return whether there is one that does."""
        return False

    @property
    def was_interrupted(self) -> bool:
        """Whether that has kept anything from being asked, or computed."""
        return False

    def after(self) -> str:
        """Say how far a target was asked that fails; nothing where it answered nothing."""
        return ""

    def goes_on(self) -> str:
        """Say how work goes on that was interrupted; nothing where it begins again."""
        return ""

    def spent(self) -> dict[str, Any]:
        """Return what an account says of work that something ended; nothing without queries."""
        return {}

    def _origin(self) -> dict[str, str]:
        return {"command_line": self.command_line, "date": today()}

    def tell_what_was_done(self, status: str, message: str) -> bool:
        """Tell of work that something ended; return whether standard output has been told.

        What an account says was found has been shown by then; here is what was spent.
        """
        if self.is_shown or not (known := self.spent()):
            if self.report is not None and self.opened_target is not None and not self.is_shown:
                sys.stderr.write(f"revelu: {self.report} was not written: nothing was answered\n")
            return self.is_shown
        account = {
            "schema": SCHEMA,
            **known,
            **self._origin(),
            "status": status,
            "error": message,
            "seed": self.seed,
            "versions": versions(),
            "evidence": [],
            "warnings": [],
            "outputs": [],
        }
        self._write_page(account)
        if self.report is not None:
            said = self.unwritten or [f"what was asked until then is in {self.report}"]
            sys.stderr.writelines(f"revelu: {text}\n" for text in said)
        if self.as_json:
            print_json(account)
        elif sys.stderr is not None and self.has_answers:
            asked = ", ".join(f"{text}" for _, text in ending(account))
            sys.stderr.write(f"revelu: asked until then: {asked}\n")
        return True

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Show progress and count the seconds inside."""
        started = time.monotonic()
        # What a target prints must not mix with the JSON object.
        with self.line, redirect_stdout(sys.stderr):
            yield
        self.seconds = time.monotonic() - started

    def reserve(
        self,
        outputs: Iterable[Path | None],
        read: Mapping[Any, str],
        check: Callable[[Path], object] | None = None,
    ) -> list[Path]:
        """Refuse what cannot be written before anything is asked.

        Parameters
        ----------
        read : mapping
            Files that must not be replaced, None for none, and what they are.
        check : callable, optional
            Raises :class:`FormatError` for a path that cannot be written.

        Returns
        -------
        list of Path
            Each output once.

        Raises
        ------
        FormatError
            If a path is no place for what is to be written.
        InputError
            If a file is needed otherwise.
        MissingExtraError
            If what draws pages is not installed.
        """
        paths = list(dict.fromkeys(path for path in outputs if path is not None))
        kept = {Path(name).resolve(): words for name, words in read.items() if name is not None}
        self.files.taken.update(kept)
        if self.report is not None:
            check_report(self.report, [*kept, *(path.resolve() for path in paths)])
        for path in paths:
            if path.resolve() in kept:
                raise InputError(f"{path}: {kept[path.resolve()]}; write to another file")
            if check is not None:
                check(path)
        return paths

    def write(
        self,
        paths: Iterable[Path | None],
        save: Callable[[Path], object],
        *,
        certified: bool = True,
        force: bool = False,
    ) -> None:
        """Write files, as :meth:`Files.write` does."""
        self.files.write(paths, save, certified=certified, force=force)

    def picture(self, found: "Network | Span | None") -> None:
        """Put the figures of what was found on the page, where one is wanted."""
        if self.report is not None and found is not None:
            from revelu.tasks.report_data import ReportData

            self.figures = ReportData().of(found)

    def account(
        self, target: str, result: "Result", own: Mapping[str, Any], *warnings: str
    ) -> dict[str, Any]:
        """Return the JSON-able account of a result, whose files are written."""
        from revelu.adapters import identity_of

        own = {"identity": identity_of(target, self.opened_target), **own}
        found = account_of(target, result, own, self.seconds, self.seed)
        found |= {**self._origin(), "notes": self.notes}
        said = (*self.files.moved, *self.unwritten)
        found["warnings"] = [*result.warnings, *said, *warnings, *self.heard.take()]
        # What was interrupted and finished all the same is whole.
        self.was_cut = self.was_interrupted and found["status"] not in {"recovered", "finished"}
        if self.was_cut:
            error = f"{interrupted(result.ledger.n_queries)}{self.goes_on()}"
            sys.stderr.write(f"revelu: {error}\n")
            found |= {"status": "interrupted", "error": error}
        return found | {"outputs": self.written}

    def show(self, account: dict[str, Any], *parts: Part) -> None:
        """Write the page of an account, and print the account.

        Parameters
        ----------
        account : dict
        *parts
            For people, above what it cost and what was written.
        """
        self._write_page(account)
        self.is_shown = True
        if self.quiet and not (
            self.as_json or self.form
        ):  # of an account only the verdict is printed then
            self.files.tell()
        if self.as_json:
            print_json(account)
        elif self.form is not None:
            sys.stdout.write(self.form(account))
        elif self.as_csv:
            print_csv(self.name, account, *parts)
        else:
            print_account(self.name, account, *parts, verdict_only=self.quiet)
        self.files.print_rest()

    def _write_page(self, account: dict[str, Any]) -> None:
        """Write the page of an account, where one is wanted; one that fails spares the account."""
        if self.report is None:
            return
        from revelu.formats.arrays import replace_file
        from revelu.report.page import page

        outputs = [*account.get("outputs", []), f"{self.report}"]
        account |= {"figures": self.figures, "outputs": outputs}
        try:
            replace_file(self.report, page(self.name, account).encode("utf-8"))
        except FormatError as error:
            self.unwritten.append(f"{error}")
            account["outputs"] = outputs[:-1]
            account["warnings"] = [*account.get("warnings", []), f"{error}"]


def check_form(*, as_json: bool, as_csv: bool) -> None:
    """Refuse two forms of one output.

    Raises
    ------
    InputError
    """
    if as_json and as_csv:
        raise InputError("--json and --csv are two forms of one output: leave one out")


@dataclass
class Reading(Command):
    """Options of a command that reads files."""

    report: Report = None
    as_json: AsJson = False
    as_csv: AsCsv = False
    quiet: Quiet = False


@dataclass
class Learning(Command):
    """Options of a command that works on samples."""

    report: Report = None
    seed: Seed = 0
    as_json: AsJson = False
    as_csv: AsCsv = False
    verbose: Verbose = 0
    quiet: Quiet = False


@dataclass
class Asking(Command):
    """Options of a command that asks a target."""

    target: Target = ""
    report: Report = None
    budget: Budget = None
    max_seconds: Annotated[
        float | None,
        optional(
            "Seconds, from the first query on, after which no more are asked; computing may go on."
        ),
    ] = None
    seed: Seed = 0
    dim_in: DimIn = None
    trust: Annotated[
        bool, flag("Open a target whose file runs code when it is opened.", "--trust")
    ] = False
    journal: Annotated[
        Path | None,
        optional(
            "File that keeps every answer; an answer in it is not asked for again.", metavar="FILE"
        ),
    ] = None
    workers: Annotated[int | None, optional("Requests sent at the same time; default: 1.")] = None
    dask: Annotated[
        str | None,
        optional("Address of a Dask cluster that sends the requests.", metavar="ADDRESS"),
    ] = None
    batch: Annotated[int | None, optional("Most rows in one request; default: 1,024.")] = None
    rate: Annotated[
        str | None,
        optional(
            "Most requests to an endpoint in a second, minute or hour, as 5/s, 100/min or 1000/h.",
            metavar="N/s",
        ),
    ] = None
    retry_for: RetryFor = None
    input_name: InputName = None
    output_name: OutputName = None
    input_shape: InputShape = None
    image: ImageShape = None
    activation: Activation = None
    fixed: Fixed = None
    request: Request = None
    answer: Answer = None
    header: Headers = None
    key_env: KeyEnv = None
    preset: PresetName = None
    endpoint: EndpointFile = None
    get: Get = False
    classes: Classes = None
    client_cert: ClientCert = None
    client_key: ClientKey = None
    ca_cert: CaCert = None
    remote: Remote = False
    link: LinkName = "auto"
    like: Like = None
    columns: Columns = None
    mean: Mean = None
    std: Std = None
    keep_discrete: KeepDiscrete = False
    as_json: AsJson = False
    as_csv: AsCsv = False
    verbose: Verbose = 0
    quiet: Quiet = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.oracle: Oracle | None = None
        self.is_open = False
        # Whether the task ends by itself at an interrupt, and has what it found.
        self.ends_by_itself = True
        self.began = time.monotonic()
        if not self.target and self.endpoint is None:
            raise typer.BadParameter("give a TARGET, or --endpoint FILE.toml")
        self.target = self.target or f"{self.endpoint}"

    def reserve(
        self,
        outputs: Iterable[Path | None],
        read: Mapping[Any, str] | None = None,
        check: Callable[[Path], object] | None = None,
    ) -> list[Path]:
        """Refuse what cannot be written, or would replace the target or the journal."""
        kept = {self.target: "is the target itself", self.journal: "is the journal"}
        kept |= {self.like: "holds the data", self.fixed: "holds what is fixed"}
        kept |= {self.endpoint: "describes the endpoint"}
        return super().reserve(outputs, {**(read or {}), **kept}, check)

    @contextmanager
    def opened(
        self,
        box: tuple[float, float] | None = None,
        dim_in: int | None = None,
        suggested: "Domain | None" = None,
    ) -> Iterator["Oracle"]:
        """Open the target, and close its journal and its workers at the end.

        Parameters
        ----------
        box : (lo, hi), optional
        dim_in : int, optional
            Inputs of a target of which neither it nor the user says how many.
        suggested : Domain, optional
            Where it is asked, unless the user says it.
        """
        from revelu.adapters import open_oracle
        from revelu.adapters.addresses import told
        from revelu.adapters.executors import executor
        from revelu.cli.domains import domain_of

        domain, target = domain_of(self, box), target_of(self)
        domain = suggested if domain is None and box is None else domain
        with (
            self.timed(),
            executor(self.workers, self.dask) as pool,
            open_oracle(
                target,
                dim_in=dim_in if self.dim_in is None else self.dim_in,
                budget=self.budget,
                journal=self.journal,
                box=None if domain is not None else box,
                domain=domain,
                suggested=True,
                trust=self.trust,
                executor=pool,
                max_seconds=self.max_seconds,
                batch=self.batch,
                input_name=self.input_name,
                output_name=self.output_name,
                input_shape=self.input_shape,
                image=self.image,
                activation=self.activation,
                fixed=self.fixed,
                rate=self.rate,
                remote=self.remote,
                link=self.link,
                classes=classes_of(self) if isinstance(target, str) else (),
            ) as oracle,
        ):
            self.target = told(self.target)
            self.oracle, self.is_open = oracle, True
            self.notes = list(getattr(self.opened_target, "notes", ()))
            if getattr(self.opened_target, "certified", None) is False:
                self.notes.append(f"{self.target} says of itself that it is NOT certified")
            try:
                yield oracle
            finally:
                self.is_open = False

    @property
    def is_waiting(self) -> bool:
        """Whether a question is with the target."""
        return self.oracle is not None and self.oracle.is_waiting

    @property
    def has_answers(self) -> bool:
        """Whether a target has answered anything."""
        return bool(getattr(self.oracle, "n_answered", 0))

    def end(self) -> bool:
        """Have the task ask nothing more; return whether there is one that ends by itself."""
        if self.oracle is None or not (self.is_open and self.ends_by_itself):
            return False
        self.oracle.end("interrupted")
        return True

    @property
    def was_interrupted(self) -> bool:
        """Whether that has kept anything from being asked, or computed."""
        return bool(getattr(self.oracle, "was_ended", False))

    def after(self) -> str:
        """Say how many queries were answered, and that a journal has them."""
        if self.oracle is None or not (n := getattr(self.oracle, "n_answered", 0)):
            return ""
        lost = self.oracle.n_queries - n
        more = f"; {lost:,} more were sent and not answered" if lost else ""
        return f" (after {n:,} answered queries{more}{self.goes_on()})"

    def goes_on(self) -> str:
        """Say that a journal has what was answered."""
        return "" if self.journal is None else "; the same command goes on from there"

    def spent(self) -> dict[str, Any]:
        """Return what was asked, of which target; nothing before the first query."""
        if self.oracle is None or not getattr(self.oracle, "n_queries", 0):
            return {}
        from revelu.adapters import identity_of

        ledger = self.oracle.ledger()
        return {
            "target": self.target,
            "identity": identity_of(self.target, self.opened_target),
            "queries": ledger.n_queries,
            "rounds": ledger.n_rounds,
            "by_phase": dict(ledger.by_phase),
            "seconds": time.monotonic() - self.began,
        }

    @property
    def opened_target(self) -> Any:
        """What is asked, as it was opened; None before."""
        return getattr(self.oracle, "target", None)

    def with_pictures(self, oracle: "Oracle", result: R, network: "Network | None") -> R:
        """Ask for what the pictures of a page need, where one is wanted."""
        if self.report is None or network is None:
            return result
        from revelu.tasks.report_data import ReportData

        data = ReportData()
        of_digits = data.of_digits(getattr(result, "digits", None))
        self.figures = {**data.of_target(oracle, network, self.seed), **of_digits}
        return replace(result, ledger=oracle.ledger())
