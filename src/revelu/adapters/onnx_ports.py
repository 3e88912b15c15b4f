"""Inputs and outputs of an ONNX file: what rows become, and what answers are read as."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from revelu.adapters.ports import Ports, chosen_output, row_shape
from revelu.errors import InputError, TargetError
from revelu.types import FloatArray

FLOATS = {"tensor(double)": np.float64, "tensor(float)": np.float32, "tensor(float16)": np.float16}
_WHOLE = {
    f"tensor({name})": np.dtype(name)
    for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bool")
}
_WORDS = "tensor(string)"

# What a classifier of scikit-learn becomes: one dictionary a row, from class to probability.
_MAPS = ("seq(map(int64,tensor(float)))", "seq(map(string,tensor(float)))")


@dataclass(frozen=True)
class OnnxInput:
    """An input that varies.

    Attributes
    ----------
    name : str
    dtype : numpy.dtype
    row : tuple of int
        Shape of one row.
    n_rows : int or None
        Rows of every batch, where the file takes no other number.
    """

    name: str
    dtype: np.dtype
    row: tuple[int, ...]
    n_rows: int | None

    @property
    def size(self) -> int:
        """Numbers in a row."""
        return prod(self.row)

    def taken(self, X: FloatArray) -> np.ndarray:
        """Return rows ``(n, size)`` as the file takes them; whole numbers are the nearest ones."""
        shaped = X.reshape(len(X), *self.row)
        if self.dtype.kind in "iu":
            limits = np.iinfo(self.dtype)
            # The largest whole numbers of 64 bits are none of float64, and would overflow.
            most = np.nextafter(float(limits.max), 0) if limits.bits == 64 else limits.max
            return np.clip(np.rint(shaped), float(limits.min), most).astype(self.dtype)
        if self.dtype.kind == "b":
            return np.asarray(shaped >= 0.5)
        with np.errstate(over="ignore"):  # what is beyond float16 is answered as infinity
            return shaped.astype(self.dtype)


def varying_inputs(
    path: Any, values: Sequence[Any], ports: Ports, dim_in: int | None
) -> list[OnnxInput]:
    """Return the inputs that queries are brought into.

    Raises
    ------
    InputError
        If there is none of that name, none of numbers, or no one to prefer.
    """
    chosen = _chosen_inputs(path, values, ports.input_name)
    found = []
    for value in chosen:
        dtype = FLOATS.get(value.type, _WHOLE.get(value.type))
        where = f"{path}: input {value.name!r}"
        if dtype is None:
            raise InputError(f"{where} is a {value.type}, not real numbers")
        if len(value.shape) < 2:
            raise InputError(f"{where} has shape {value.shape}, not rows")
        only = len(chosen) == 1
        declared = value.shape[1:]
        given = ports.row(len(declared)) if only else None
        row = row_shape(where, declared, given, dim_in if only else None)
        first = value.shape[0]
        n_rows = first if isinstance(first, int) and first > 0 else None
        found.append(OnnxInput(value.name, np.dtype(dtype), row, n_rows))
    return found


def _chosen_inputs(path: Any, values: Sequence[Any], given: str | None) -> list[Any]:
    by_name = {value.name: value for value in values}
    listed = ", ".join(by_name) or "none"
    if given is not None:
        names = [name.strip() for name in given.split(",")]
        if missing := [name for name in names if name not in by_name]:
            raise InputError(f"{path} has the inputs {listed}, not the input_name {missing[0]}")
        if len(set(names)) < len(names):
            raise InputError(f"input_name {given} names an input twice")
        return [by_name[name] for name in names]
    if len(values) == 1:
        return list(values)
    # What converters make of a table is an input for each column.
    are_columns = all(list(value.shape[1:]) == [1] for value in values)
    real = [value for value in values if value.type in FLOATS]
    if are_columns and real:
        return real
    raise InputError(f"{path} has {len(values)} inputs ({listed}): give input_name")


def fixed_inputs(
    path: Any, values: Sequence[Any], varying: Sequence[OnnxInput], ports: Ports
) -> dict[str, tuple[np.ndarray, bool]]:
    """Return where the other inputs stay, each with whether it is one row of many.

    Raises
    ------
    InputError
        If an array is of none of them, or fits no row of it, or a table lacks one of them.
    """
    others = {value.name: value for value in values if value.name not in {v.name for v in varying}}
    given = dict(ports.fixed or {})
    # A table may have other columns, too, but an array that is meant for none is a mistake.
    if given and not set(given) & set(others):
        names = ", ".join(others) or "none"
        raise InputError(f"{path}: nothing to be fixed is in {', '.join(given)}; that is: {names}")
    ports.check_columns(list(others))
    return {name: _fixed(path, value, given.get(name)) for name, value in others.items()}


def _fixed(path: Any, value: Any, given: Any) -> tuple[np.ndarray, bool]:
    """Zeros, or what is given, as the input declares it; sizes left open are 1."""
    dtype = FLOATS.get(value.type, _WHOLE.get(value.type))
    if dtype is None and value.type != _WORDS:
        raise InputError(f"{path}: input {value.name!r} is a {value.type}, which cannot be fixed")
    shape = [size if isinstance(size, int) and size > 0 else 1 for size in value.shape]
    by_row = bool(value.shape) and not (isinstance(value.shape[0], int) and value.shape[0] > 0)
    shape = shape[1:] if by_row else shape
    if given is None and dtype is None:
        raise InputError(
            f"{path}: input {value.name!r} takes words: say where it stays (--fixed DATA.csv, "
            "fixed=)"
        )
    if given is None:
        return np.zeros(shape, dtype), by_row
    array = np.asarray(given)
    if by_row and array.ndim and array.size > prod(shape):  # of several rows the commonest
        array = _commonest(array.astype(str) if dtype is None else array)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(
            f"{path}: input {value.name!r} is to stay where it is {array[~np.isfinite(array)][0]}"
        )
    try:
        return array.astype(dtype or object).reshape(shape or array.shape), by_row
    except (TypeError, ValueError):
        raise InputError(
            f"{path}: input {value.name!r} takes {value.type} of shape {value.shape}, not what is "
            "given for it"
        ) from None


def _commonest(rows: np.ndarray) -> np.ndarray:
    values, counts = np.unique(rows, axis=0, return_counts=True)
    return np.asarray(values[counts.argmax()])


def read_outputs(path: Any, values: Sequence[Any], given: str | None) -> tuple[list[str], np.dtype]:
    """Return names and type of the outputs to read; what shows weights goes before labels.

    They are several where each is a column, of a class or a target.

    Raises
    ------
    InputError
        If there is no such output, or no one to prefer.
    """
    known: dict[str, Any] = {**FLOATS, **_WHOLE, **dict.fromkeys(_MAPS, np.float32)}
    numbers = [v for v in values if v.type in FLOATS or v.type in _MAPS]
    are_columns = all(v.type in FLOATS and list(v.shape[1:]) in ([], [1]) for v in numbers)
    names = [v.name for v in numbers]
    chosen: list[str | None] = [given]
    if given is not None and "," in given:
        chosen = [name.strip() for name in given.split(",")]
    elif given is None and len(names) > 1 and are_columns:
        chosen = list(names)
    others = [v.name for v in values if v.name not in names]
    found = [chosen_output(f"{path}", names, others, name) for name in chosen]
    if len(set(found)) < len(found):
        raise InputError(f"output_name {given} names an output twice")
    by_name = {v.name: v.type for v in values}
    for name in found:
        if by_name[name] not in known:
            raise InputError(f"{path}: output {name!r} is a {by_name[name]}, not real numbers")
    return found, np.dtype(known[by_name[found[0]]])


def rows_of(path: Any, answer: Any, n: int) -> np.ndarray:
    """Return what was answered to n rows, shape (n, k).

    Raises
    ------
    TargetError
        If it is not an answer to each.
    """
    if isinstance(answer, list):
        classes = sorted(answer[0]) if answer and isinstance(answer[0], dict) else []
        if not all(isinstance(row, dict) and sorted(row) == classes for row in answer):
            raise TargetError(f"{path} answered rows of different classes")
        answer = np.array([[row[name] for name in classes] for row in answer])
    if np.shape(answer)[:1] != (n,):
        raise TargetError(f"{path} answered shape {np.shape(answer)} to a batch of {n} rows")
    return np.asarray(answer).reshape(n, -1)
