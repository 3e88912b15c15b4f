"""How a command asks its target: what its options open, and close again."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from revelu.errors import InputError

if TYPE_CHECKING:
    from revelu.oracle import Oracle


@dataclass(frozen=True)
class Asking:
    """The options of one target, as given.

    Attributes
    ----------
    target : str
    dim_in, budget : int or None
    box : (lo, hi) or None
    trust : bool
    max_seconds : float or None
    journal : pathlib.Path or None
    batch : int or None
        Most rows of one request.
    workers : int or None
        Requests at a time.
    dask : str or None
        Address of a cluster.
    rate, input_name, output_name : str or None
        Of a served model.
    """

    target: str
    dim_in: int | None = None
    budget: int | None = None
    box: tuple[float, float] | None = None
    trust: bool = False
    max_seconds: float | None = None
    journal: Path | None = None
    batch: int | None = None
    workers: int | None = None
    dask: str | None = None
    rate: str | None = None
    input_name: str | None = None
    output_name: str | None = None

    def check_outputs(self, paths: Iterable[Path | None]) -> None:
        """Refuse to write over the journal.

        Raises
        ------
        InputError
        """
        if self.journal is None:
            return
        for path in paths:
            if path is not None and path.resolve() == self.journal.resolve():
                raise InputError(f"{path}: is the journal; write to another file")

    @contextmanager
    def opened(self) -> Iterator["Oracle"]:
        """Open the target, and close its journal and its workers at the end."""
        from revelu.adapters import open_oracle
        from revelu.adapters.executors import executor

        with (
            executor(self.workers, self.dask) as pool,
            open_oracle(
                self.target,
                dim_in=self.dim_in,
                budget=self.budget,
                journal=self.journal,
                box=self.box,
                trust=self.trust,
                executor=pool,
                max_seconds=self.max_seconds,
                batch=self.batch,
                input_name=self.input_name,
                output_name=self.output_name,
                rate=self.rate,
            ) as oracle,
        ):
            yield oracle
