"""A task under way: its target, its random choices, what it tells, how it ends."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from revelu.adapters import open_oracle
from revelu.errors import (
    DependsOnBatchError,
    InputError,
    LimitReachedError,
    SaturatedError,
)
from revelu.oracle import Domain, NoiseFloor, Oracle, checked_inputs, measure_noise, whole_number
from revelu.oracle.column_names import NamedRows, in_order_of
from revelu.oracle.company import BY_BATCH
from revelu.oracle.labels import TextsError
from revelu.oracle.stencils import Stencils
from revelu.recovery import Result, Status
from revelu.tasks.notebook import listener
from revelu.tasks.progress import Listener, Pace, Progress
from revelu.types import FloatArray

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Result)


class Refusal(NamedTuple):
    """Why a task ends before it has begun.

    Attributes
    ----------
    reason : str
    saturated : bool
        Whether the target's probabilities have no digits wherever it was asked.
    answers : mapping, optional
        What an account says of the answers, as :attr:`NoiseFloor.answers`.
    """

    status: Status
    reason: str
    saturated: bool = False
    answers: Mapping[str, Any] | None = None


def open_target(
    target: Any,
    seed: int,
    progress: Listener | None,
    *,
    everywhere: str = "",
    most_inputs: int | None = None,
    domain: Domain | None = None,
    **options: Any,
) -> Oracle:
    """Check what every task is given, and open its target.

    Parameters
    ----------
    target : Oracle, Network, callable or str
    everywhere : str
        What the task is called in messages, such as "an audit", if it cannot stay inside a box.
    domain : Domain, optional
        Where the target is asked; without one where it suggests itself.
    **options
        As of :func:`revelu.open_oracle`.

    Raises
    ------
    InputError
        If an argument makes no sense or the target cannot be opened.
    """
    whole_number("seed", seed, 0)
    if isinstance(target, Oracle):
        if domain is not None:
            raise InputError("an oracle has its own domain")
        oracle = open_oracle(target, **options)
    else:
        oracle = open_oracle(target, domain=domain, suggested=True, **options)
    if everywhere and oracle.box is not None:
        raise InputError(f"{everywhere} asks everywhere; inside a box it is not supported")
    if most_inputs is not None and oracle.dim_in > most_inputs:
        raise InputError(f"{oracle.dim_in:,} inputs; this version takes {most_inputs:,} at most")
    check_progress(progress)
    return oracle


def check_progress(progress: Any) -> None:
    """Raise InputError where ``progress`` is neither None nor callable."""
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be callable, got {type(progress).__name__}")


def given_inputs(inputs: Any, oracle: Oracle) -> FloatArray | None:
    """Return the inputs that matter to a user, as queries, (n, d); None where there are none.

    Raises
    ------
    InputError
        If they are no rows that the oracle takes.
    """
    rows = given_rows(inputs, oracle)
    return rows if rows is None or oracle.domain is None else oracle.domain.to_coordinates(rows)


def given_rows(inputs: Any, oracle: Oracle) -> FloatArray | None:
    """Return the inputs that matter to a user as the target reads them, (n, m), or None.

    Raises
    ------
    InputError
        If they are no rows that the oracle takes, or lie outside its domain.
    """
    if inputs is None:
        return None
    box = oracle.box if oracle.domain is None else None
    try:
        rows = rows_for(inputs, oracle, box)
    except InputError as error:
        if box is None or box != getattr(oracle.target, "clips_to", None):
            raise
        raise InputError(f"{error}, to which the file clips its inputs: clip them first") from None
    if oracle.domain is not None:
        oracle.domain.to_coordinates(rows)
    if not len(rows):
        raise InputError("inputs has no row")
    return rows


def rows_for(inputs: Any, oracle: Oracle, box: tuple[float, float] | None) -> FloatArray:
    """Return a table's rows as the target reads them, (n, d), in its own units.

    Raises
    ------
    InputError
        If they are no rows that it takes.
    """
    # A table names its columns, and a model that was fitted on one knows them by name.
    wanted = getattr(oracle.target, "column_names", ())
    file = inputs.file if isinstance(inputs, NamedRows) else ""
    given = in_order_of(inputs, wanted, file or "inputs")
    if file and np.ndim(given) == 2 and np.shape(given)[1] != oracle.dim_target:
        width = f"{file} has {np.shape(given)[1]} columns"
        raise InputError(f"{width}, {oracle.name} has {oracle.dim_target} inputs")
    return checked_inputs(given, oracle.dim_target, box, f"inputs of {file}" if file else "inputs")


def stream(name: str) -> int:
    """Return the number that keeps the random choices of a task apart from all others.

    Targets, too, are drawn by small seeds, and must not be drawn by the same numbers.
    """
    return int.from_bytes(name.encode(), "big")


def random_seeds(name: str, seed: int) -> np.random.SeedSequence:
    """Return the root of all random choices of a task."""
    return np.random.SeedSequence([stream(name), seed])


@dataclass
class Job:
    """A task under way.

    Attributes
    ----------
    oracle : Oracle
        Its journal, if it has one, is from now on that of this task and seed.
    seed : int
    progress : callable or None
        Called with a :class:`revelu.tasks.progress.Progress` after every batch.
    command : str
        What a journal calls the task.
    stream : str
        Of the random choices; see :func:`stream`.
    seeds : numpy.random.SeedSequence
        Their root.
    message : str
        What is being done.
    expected : (int, int) or None
        Fewest and most queries that it is expected to ask in all, where something is.
    """

    oracle: Oracle
    seed: int
    progress: Listener | None
    command: str
    stream: str
    message: str = field(default="", init=False)
    expected: tuple[int, int] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.seed = whole_number("seed", self.seed, 0)
        self.oracle.declare(command=self.command, seed=self.seed)
        self.seeds = random_seeds(self.stream, self.seed)
        self.progress = listener(self.progress)
        self._pace = Pace(self.oracle.n_answered)
        self.oracle.listener = self._listen

    def tell(self, message: str) -> None:
        """Say what is being done."""
        log.debug("%s", message)
        self.message = message
        self._listen(self.oracle, self.oracle.current_phase)

    def measure_noise(self, seed: np.random.SeedSequence) -> NoiseFloor | Refusal:
        """Measure the noise floor of the target, or say why that is not possible."""
        self.tell("measuring the noise floor")
        try:
            return self._measured(seed)
        except LimitReachedError as error:
            # Time may be over, too, which is said without a number of queries.
            least, budget = Stencils().n_queries, self.oracle.budget
            few = budget is not None and budget < least
            more = f"; the noise floor alone takes {least}" if few else ""
            return Refusal(Status.BUDGET_EXHAUSTED, f"{error}{more}")
        except SaturatedError as error:
            return Refusal(Status.UNVERIFIED, f"{error}", saturated=True)
        except DependsOnBatchError as error:
            answers = {"law": BY_BATCH, "step": None, "sigma": None, "by_batch": error.apart}
            return Refusal(Status.NOT_DETERMINISTIC, f"{error}", answers=answers)

    def _measured(self, seed: np.random.SeedSequence) -> NoiseFloor:
        """The noise floor; of names of classes too, as long as enough of them repeat.

        Raises
        ------
        TextsError
            If more texts differ than labels do.
        """
        try:
            return measure_noise(self.oracle, seed)
        except TextsError:
            names = self.oracle.names
            names.are_expected = True
            rng = np.random.default_rng(seed.spawn(1)[0])
            with self.oracle.phase("noise"):
                self.oracle(self._drawn(rng, names.n_missing))
            if names.n_seen > names.most:
                raise TextsError(names.refusal) from None
            return measure_noise(self.oracle, seed)

    def _drawn(self, rng: np.random.Generator, n: int) -> FloatArray:
        if self.oracle.box is not None:
            return np.asarray(rng.uniform(*self.oracle.box, (n, self.oracle.dim_in)))
        return rng.standard_normal((n, self.oracle.dim_in))

    def finished(self, result: R, *advice: str) -> R:
        """Attach the final ledger, what the journal has to say, and advice.

        Raises
        ------
        TargetError
            If the target is not the one that was asked first.
        """
        try:
            self.oracle.check_unchanged()
            unseen: tuple[str, ...] = ()
        except LimitReachedError as limit:
            unseen = (f"it could not be asked whether the target is still the same: {limit}",)
        self.oracle.listener = None
        journal = self.oracle.journal
        notes = () if journal is None else journal.notes()
        return replace(
            result,
            ledger=self.oracle.ledger(),
            evidence=(*result.evidence, *advice),
            warnings=(*result.warnings, *unseen, *notes),
        )

    def _listen(self, oracle: Oracle, phase: str) -> None:
        if self.progress is None:
            return
        most = None if self.expected is None else self.expected[1]
        left = None if most is None else self._pace.seconds_to(most, oracle.n_answered)
        self.progress(
            Progress.of(oracle, phase, self.message, seconds_left=left, expected=self.expected)
        )
