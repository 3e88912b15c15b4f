"""The domain that options of a command name."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from revelu.errors import FormatError, InputError

if TYPE_CHECKING:
    from revelu.oracle import Domain
    from revelu.oracle.column_names import NamedRows
    from revelu.types import FloatArray


class Placed(Protocol):
    """Options that say where a target is asked."""

    like: Path | None
    columns: str | None
    mean: str | None
    std: str | None
    keep_discrete: bool
    has_inputs: bool


def domain_of(options: Placed, box: tuple[float, float] | None) -> "Domain | None":
    """Return the domain of a command's options; None where they name none, or a box alone.

    Raises
    ------
    InputError
        If options contradict each other, or make no domain.
    FormatError
        If a file cannot be read.
    """
    from revelu.oracle import Domain

    is_gaussian = options.mean is not None or options.std is not None
    if options.like is None and options.keep_discrete:
        raise InputError("--keep-discrete is for --like DATA")
    if options.like is None and options.columns is not None and not options.has_inputs:
        raise InputError("--columns is for tables: --like DATA, or --inputs of what has them")
    if options.like is not None and is_gaussian:
        raise InputError("--like DATA has a mean and a std of its own: leave out --mean and --std")
    if options.like is not None:
        names, table = _table(options.like, columns_of(options))
        name, keep = options.like.name, options.keep_discrete
        domain = Domain.like(table, name=name, names=names, keep_discrete=keep)
    elif is_gaussian:
        domain = Domain.gaussian(_numbers(options.mean, 0.0), _numbers(options.std, 1.0))
        if files := [
            given for given in (options.mean, options.std) if given and not _is_number(given)
        ]:
            domain = replace(domain, words=f"{domain.words} in {' and '.join(files)}")
    else:
        return None
    return domain if box is None else domain.within(*box)


def columns_of(options: Placed) -> list[str]:
    """Return which columns are inputs, by name or number; nothing where all are."""
    return [name.strip() for name in (options.columns or "").split(",") if name.strip()]


def inputs_of(options: Placed, inputs: Path | None) -> "NamedRows | None":
    """Return the inputs of a command's options, by the columns chosen; None where it has none.

    Raises
    ------
    FormatError
        If the file cannot be read, or lacks a column.
    """
    if inputs is None:
        return None
    from revelu.formats.tables import read_rows
    from revelu.oracle.column_names import NamedRows

    options.has_inputs = True
    return NamedRows(*read_rows(inputs, columns_of(options)), f"{inputs}")


def _table(path: Path, chosen: list[str]) -> "tuple[list[str], FloatArray]":
    """A table of numbers, by the columns chosen; all of one with words in it is refused."""
    from revelu.formats.columns import read_table_of
    from revelu.formats.tables import read_named_table

    try:
        return read_named_table(path, chosen)
    except FormatError as error:
        table = read_table_of(path)
        numbers = [table.name(i) for i, a in enumerate(table.arrays) if a.dtype.kind in "biuf"]
        if chosen or not numbers:
            raise
        listed = ",".join(numbers[:12]) + (",..." if len(numbers) > 12 else "")
        raise FormatError(f"{error}; choose those of numbers: --columns {listed}") from None


def _is_number(given: str) -> bool:
    try:
        float(given)
    except ValueError:
        return False
    return True


def _numbers(given: str | None, default: float) -> "FloatArray | float":
    """A number, or those of a file: one a column."""
    if given is None:
        return default
    if _is_number(given):
        return float(given)
    from revelu.formats.inputs import read_inputs
    from revelu.formats.tables import read_table

    table = read_inputs(given) if given.lower().endswith(".npy") else read_table(given)
    if table.ndim != 1 and 1 not in table.shape:
        raise InputError(f"{given}: expected one number a column, got shape {table.shape}")
    return table.ravel()
