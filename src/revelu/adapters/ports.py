"""Inputs and outputs of a model: which of them are asked, and in which shape."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import prod
from operator import index
from typing import Any, Self

import numpy as np

from revelu.errors import InputError
from revelu.oracle import agreed_dim_in

_SHAPE = re.compile(r"\d+(?:[x,]\d+)*")

# Of several outputs the first kind that one of them is named for: logits have more digits than
# the probabilities that are made of them.
_ANSWERS = (
    re.compile(r"logit", re.IGNORECASE),
    re.compile(r"score|decision", re.IGNORECASE),
    re.compile(r"prob", re.IGNORECASE),
)


@dataclass(frozen=True)
class Ports:
    """What a user says of a model besides its name and its number of inputs.

    Attributes
    ----------
    input_name : str, optional
        The input that varies; several, joined by commas, vary together.
    output_name : str, optional
        The output that is read.
    input_shape : tuple of int, optional
        Shape of one row, which queries are brought into.
    activation : str, optional
        What is between the layers of a state dict.
    image : tuple of int, optional
        Channels, height and width of a row that is an image.
    fixed : mapping of str to ndarray, optional
        Where the inputs that do not vary stay.
    table : str, optional
        The table that they were read of, which is to have all of them.
    """

    input_name: str | None = None
    output_name: str | None = None
    input_shape: tuple[int, ...] | None = None
    activation: str | None = None
    image: tuple[int, int, int] | None = None
    fixed: Mapping[str, np.ndarray] | None = None
    table: str | None = None

    @classmethod
    def said(
        cls,
        *,
        input_shape: str | int | Sequence[int] | None = None,
        image: tuple[int, int, int] | None = None,
        fixed: Any = None,
        **names: str | None,
    ) -> Self:
        """Make sense of what was given.

        Parameters
        ----------
        input_shape : str, int or sequence of int
            ``"1x8x8"`` or ``(1, 8, 8)``.
        fixed : mapping or path
            Arrays by name, or the file of a table or an archive of them.

        Raises
        ------
        InputError
            If it makes none.
        """
        shape = None if input_shape is None else _shape(input_shape)
        is_table = fixed is not None and not isinstance(fixed, Mapping)
        # An archive of arrays may have some of them; the others stay at zero.
        is_table = is_table and not f"{fixed}".lower().endswith(".npz")
        table = f"{fixed}" if is_table else None
        return cls(input_shape=shape, image=image, fixed=_arrays(fixed), table=table, **names)

    def row(self, n_axes: int) -> tuple[int, ...] | None:
        """Shape of one row of ``n_axes`` axes, as far as the user says it."""
        is_image = self.input_shape is None and n_axes == len(self.image or ())
        return self.image if is_image else self.input_shape

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks a column that stays.

        Raises
        ------
        InputError
            If it does; the message says which it has.
        """
        lacking = [name for name in names if name not in (self.fixed or {})]
        if self.table is not None and lacking:
            listed = ", ".join(list(self.fixed or {})[:12])
            raise InputError(
                f"{self.table}: has no column {lacking[0]!r}, which the model reads and which is "
                f"to stay; it has {listed}"
            )

    def only(self, where: str, *known: str) -> None:
        """Refuse what a target of this kind has no use for.

        Raises
        ------
        InputError
            If anything is given but what is ``known``.
        """
        for field in fields(self):
            if (
                field.name not in {*known, "image", "table"}
                and getattr(self, field.name) is not None
            ):
                raise InputError(f"{field.name} is not for {where}")


def _shape(given: Any) -> tuple[int, ...]:
    if isinstance(given, str) and _SHAPE.fullmatch(given):
        given = re.split("[x,]", given)
    try:
        each = (given,) if isinstance(given, int) else given
        sizes = tuple(int(size) if isinstance(size, str) else index(size) for size in each)
    except (TypeError, ValueError):
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise InputError(f"input_shape must be sizes such as 1x8x8, got {given!r}")
    return sizes


def image_shape(given: str | Sequence[int]) -> tuple[int, int, int]:
    """Return channels, height and width of ``"28x28x1"``, or of ``"28x28"``: height first.

    Raises
    ------
    InputError
        If it is no such shape.
    """
    try:
        sizes = _shape(given)
    except InputError:
        sizes = ()
    if len(sizes) not in {2, 3}:
        raise InputError(f"image must be height x width x channels, as 28x28x1, got {given!r}")
    return (1, *sizes) if len(sizes) == 2 else (sizes[2], sizes[0], sizes[1])


def image_in_words(shape: tuple[int, int, int]) -> str:
    """Say channels, height and width as the argument that gives them: ``image 28x28x1``."""
    channels, height, width = shape
    return f"image {height}x{width}x{channels}"


def image_of_row(row: Sequence[int] | None) -> tuple[int, int, int] | None:
    """Return channels, height and width of a row's shape as tools have it; None of a vector.

    A series of several channels is an image of height 1.
    """
    if row is None or len(row) not in {2, 3}:
        return None
    return (row[0], 1, row[1]) if len(row) == 2 else (row[0], row[1], row[2])


def _arrays(given: Any) -> Mapping[str, np.ndarray] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        from revelu.formats.columns import read_columns  # noqa: PLC0415 - hardly ever needed

        return read_columns(given)
    return {str(name): np.asarray(value) for name, value in given.items()}


def row_shape(
    where: str,
    declared: Sequence[Any],
    given: tuple[int, ...] | None,
    dim_in: int | None,
) -> tuple[int, ...]:
    """Return the shape of one row.

    Parameters
    ----------
    where : str
        Begins every message.
    declared : sequence
        Sizes that the model declares, without the axis of rows; what is no positive number is
        a size that it leaves open, or the name of one.
    given : tuple of int, optional
        What the user says.
    dim_in : int, optional
        Numbers in a row.

    Raises
    ------
    InputError
        If sizes are left open, or contradict each other.
    """
    is_said = [isinstance(size, int) and size > 0 for size in declared]
    if given is None and sum(is_said) == len(declared) - 1 and dim_in is not None:
        rest = prod(size for size, said in zip(declared, is_said, strict=True) if said)
        if dim_in % rest == 0:
            given = tuple(
                size if said else dim_in // rest
                for size, said in zip(declared, is_said, strict=True)
            )
    if given is None and all(is_said):
        given = tuple(declared)
    if given is None and len(declared) == 1:
        return (agreed_dim_in(where, None, dim_in),)
    sizes = [
        f"{size}" if said else _name(size) for size, said in zip(declared, is_said, strict=True)
    ]
    if given is None:
        open_sizes = [name for name, said in zip(sizes, is_said, strict=True) if not said]
        # Channels first, as torch has them, is what an image is taken as.
        is_image = len(sizes) == 3 and is_said[0]
        as_image = f"image {'x'.join([*sizes[1:], sizes[0]])} or " if is_image else ""
        raise InputError(
            f"{where} has rows of shape {' x '.join(sizes)}: say {' and '.join(open_sizes)} by "
            f"{as_image}input_shape {'x'.join(sizes)}"
        )
    fits = len(given) == len(declared) and all(
        not said or size == wanted
        for size, wanted, said in zip(given, declared, is_said, strict=True)
    )
    if not fits:
        how = " (image HxWxC is taken as channels, height, width)" if len(sizes) == 3 else ""
        raise InputError(
            f"{where} has rows of shape {' x '.join(sizes)}, not {'x'.join(map(str, given))}{how}"
        )
    agreed_dim_in(where, prod(given), dim_in)
    return given


def _name(size: Any) -> str:
    """What an open size is called."""
    return f"{size}" if isinstance(size, str) and size else "N"


def chosen_output(
    where: str, names: Sequence[str], labels: Sequence[str], given: str | None
) -> str:
    """Return the name of the output to read.

    Parameters
    ----------
    where : str
        Begins every message.
    names, labels : sequence of str
        Outputs of numbers that show weights; and those that do not, such as labels.
    given : str, optional
        What the user says.

    Raises
    ------
    InputError
        If there is no such output, or no one to prefer.
    """
    every = [*names, *labels]
    listed = f"{where} has the output{'s' * (len(every) > 1)} {', '.join(every) or 'none'}"
    if given is not None:
        if given not in every:
            raise InputError(f"{listed}, not the output_name {given}")
        return given
    if not names:
        raise InputError(f"{listed}: nothing that shows weights, read by output_name alone")
    for kind in _ANSWERS if len(names) > 1 else ():
        if found := [name for name in names if kind.search(name)]:
            return found[0] if len(found) == 1 else _refused(listed)
    return names[0] if len(names) == 1 else _refused(listed)


def _refused(listed: str) -> str:
    raise InputError(f"{listed}: give output_name")
