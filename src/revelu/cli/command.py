"""What commands share: their options, and how they work, write, print and end."""

import inspect
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer
from typer.models import ArgumentInfo

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
    target_of,
)
from revelu.cli.exit_codes import ExitCode
from revelu.cli.failures import failures
from revelu.cli.logs import logs
from revelu.cli.options import (
    Activation,
    AsJson,
    Columns,
    DimIn,
    Fixed,
    ImageShape,
    InputName,
    InputShape,
    KeepDiscrete,
    Like,
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
from revelu.cli.output import Rows, account_of, print_account, print_json
from revelu.cli.progress import ProgressLine
from revelu.errors import FormatError, InputError
from revelu.recovery import Result
from revelu.report.sections import Table

if TYPE_CHECKING:
    from revelu.network import Network
    from revelu.network.span import Span
    from revelu.oracle import Oracle

R = TypeVar("R", bound=Result)


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
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in (*own, *shared.values())]
    parameters.sort(key=lambda p: not isinstance(get_args(p.annotation)[-1], ArgumentInfo))

    def run(**given: Any) -> None:
        options = last.annotation(**{name: given.pop(name) for name in shared})
        options.name = work.__name__
        with options.guarded():
            code = work(**given, **{last.name: options})
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
    seconds : float
        Of the work that is done.
    figures : mapping
        Of the page that ``--report`` asks for.
    written, unwritten : list of str
        Files, and why others are not there.
    notes : list of str
        What was chosen of the target where it leaves a choice.
    """

    report: Path | None
    as_json: bool
    quiet: bool
    verbose: int = 0
    seed: int = 0
    dim_in: int | None = None
    name: str = ""

    def __post_init__(self) -> None:
        self.line = ProgressLine(quiet=self.quiet or self.verbose > 0)
        self.seconds = 0.0
        self.figures: Mapping[str, Any] = {}
        self.written: list[str] = []
        self.unwritten: list[str] = []
        self.notes: list[str] = []

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Log, and report what is raised inside."""
        asked, dim_in = lambda: self.line.n_queries, self.dim_in
        with logs(self.verbose), failures(as_json=self.as_json, n_queries=asked, dim_in=dim_in):
            yield

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
        if self.report is not None:
            _check_report(self.report, [*kept, *(path.resolve() for path in paths)])
        for path in paths:
            if path.resolve() in kept:
                raise InputError(f"{path}: {kept[path.resolve()]}; write to another file")
            if check is not None:
                check(path)
        return paths

    def write(self, paths: Iterable[Path | None], save: Callable[[Path], object]) -> None:
        """Write files; one that fails spares the others."""
        for path in paths:
            if path is None:
                continue
            try:
                save(path)
                self.written.append(f"{path}")
            except FormatError as error:
                self.unwritten.append(f"{error}")

    def picture(self, found: "Network | Span | None") -> None:
        """Put the figures of what was found on the page, where one is wanted."""
        if self.report is not None and found is not None:
            from revelu.tasks.report_data import ReportData

            self.figures = ReportData().of(found)

    def account(
        self, target: str, result: Result, own: Mapping[str, Any], *warnings: str
    ) -> dict[str, Any]:
        """Return the JSON-able account of a result, whose files are written."""
        found = account_of(target, result, own, self.seconds, self.seed)
        found["notes"] = self.notes
        found["warnings"] = [*result.warnings, *self.unwritten, *warnings]
        return found | {"outputs": self.written}

    def show(self, account: dict[str, Any], *parts: Table | Rows | None) -> None:
        """Write the page of an account, and print the account.

        Parameters
        ----------
        account : dict
        *parts
            For people, above what it cost and what was written.

        Raises
        ------
        FormatError
            If the page cannot be written.
        """
        if self.report is not None:
            from revelu.formats.arrays import replace_file
            from revelu.report.page import page

            outputs = [*account.get("outputs", []), f"{self.report}"]
            account |= {"figures": self.figures, "outputs": outputs}
            replace_file(self.report, page(self.name, account).encode("utf-8"))
        if self.as_json:
            print_json(account)
        else:
            print_account(self.name, account, *parts, verdict_only=self.quiet)


def _check_report(path: Path, taken: Iterable[Path]) -> None:
    from revelu.report.page import check_installed

    if path.suffix.lower() not in {".html", ".htm"}:
        raise FormatError(f"{path}: a report ends in .html")
    if not path.parent.is_dir():
        raise FormatError(f"{path}: the folder {path.parent} does not exist")
    if path.resolve() in taken:
        raise InputError(f"{path}: is in use already; write the report to another file")
    check_installed()


@dataclass
class Reading(Command):
    """Options of a command that reads files."""

    report: Report = None
    as_json: AsJson = False
    quiet: Quiet = False


@dataclass
class Learning(Command):
    """Options of a command that works on samples."""

    report: Report = None
    seed: Seed = 0
    as_json: AsJson = False
    verbose: Verbose = 0
    quiet: Quiet = False


@dataclass
class Asking(Command):
    """Options of a command that asks a target."""

    target: Target = ""
    report: Report = None
    budget: Annotated[int | None, optional("Most queries ever asked, all phases counted.")] = None
    max_seconds: Annotated[
        float | None, optional("Ask nothing later than this; computing may go on.")
    ] = None
    seed: Seed = 0
    dim_in: DimIn = None
    trust: Annotated[bool, flag("Open a target even though that executes its code.", "--trust")] = (
        False
    )
    journal: Annotated[
        Path | None,
        optional("Keep every answer here, and ask for none that is here already.", metavar="FILE"),
    ] = None
    workers: Annotated[int | None, optional("Requests at a time.")] = None
    dask: Annotated[str | None, optional("Ask from a Dask cluster.", metavar="ADDRESS")] = None
    batch: Annotated[int | None, optional("Most rows of one request; 1,024 by default.")] = None
    rate: Annotated[
        str | None, optional("Most requests to an endpoint, per s, min or h.", metavar="N/s")
    ] = None
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
    like: Like = None
    columns: Columns = None
    mean: Mean = None
    std: Std = None
    keep_discrete: KeepDiscrete = False
    as_json: AsJson = False
    verbose: Verbose = 0
    quiet: Quiet = False

    def __post_init__(self) -> None:
        super().__post_init__()
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
        self, box: tuple[float, float] | None = None, dim_in: int | None = None
    ) -> Iterator["Oracle"]:
        """Open the target, and close its journal and its workers at the end.

        Parameters
        ----------
        box : (lo, hi), optional
        dim_in : int, optional
            Inputs of a target of which neither it nor the user says how many.
        """
        from revelu.adapters import open_oracle
        from revelu.adapters.executors import executor
        from revelu.cli.domains import domain_of

        domain = domain_of(self, box)
        with (
            self.timed(),
            executor(self.workers, self.dask) as pool,
            open_oracle(
                target_of(self),
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
            ) as oracle,
        ):
            self.notes = list(getattr(getattr(oracle, "target", None), "notes", ()))
            yield oracle

    def with_pictures(self, oracle: "Oracle", result: R, network: "Network | None") -> R:
        """Ask for what the pictures of a page need, where one is wanted."""
        if self.report is None:
            return result
        from revelu.tasks.report_data import ReportData

        self.figures = ReportData().of_target(oracle, network, self.seed)
        return replace(result, ledger=oracle.ledger())
