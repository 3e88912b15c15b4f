"""Questions and answers as arrays; or what is wrong with them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from revelu.errors import InputError, TargetError, UnansweredError
from revelu.types import FloatArray


def checked_inputs(
    X: ArrayLike, dim_in: int, box: tuple[float, float] | None, what: str = "inputs"
) -> FloatArray:
    """Return what is to be asked as an array, or name what is wrong with it.

    Parameters
    ----------
    X : array_like, shape (n, d)
    box : (lo, hi) or None
    what : str
        What messages call the rows.

    Raises
    ------
    InputError
        If they are no real numbers, have another shape, are not finite or leave the box.
    """
    try:
        given = np.asarray(X)
        is_real = given.dtype.kind in "biufO"
        rows = np.array(given if is_real else [], dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} are no numeric array: {error}") from None
    if not is_real:
        raise InputError(f"{what} are no numeric array: of type {given.dtype}")
    if rows.ndim != 2 or rows.shape[1] != dim_in:
        raise InputError(f"expected {what} of shape (n, {dim_in}), got {rows.shape}")
    if not np.isfinite(rows).all():
        raise InputError(f"{what} hold a number that is not finite")
    if box is not None:
        lo, hi = box
        if not lo < hi:
            raise InputError(f"box needs lo < hi, got {box!r}")
        outside = np.flatnonzero(((rows < lo) | (rows > hi)).any(axis=1))
        if len(outside):
            raise InputError(f"row {outside[0]} of the {what} leaves the box [{lo:g}, {hi:g}]")
    return rows


def checked_answer(
    name: str,
    raw: Any,
    batch: FloatArray,
    dim_out: int | None,
    where: tuple[int, int] | None = None,
    *,
    infinite: bool = False,
) -> FloatArray:
    """Give the answer to a batch (n, d) the shape (n, k).

    Parameters
    ----------
    name : str
        What messages call the target.
    raw, batch
        What it answered to what.
    dim_out : int or None
        Number of outputs so far; None before the first answer.
    where : (row, round), optional
        The place of the batch among all queries.
    infinite : bool
        Answers may be infinite: exponentials overflow.

    Raises
    ------
    TargetError
        If it is no array of n finite real rows, or has another number of outputs.
    """
    Y = as_columns(name, raw, len(batch))
    if dim_out is not None and Y.shape[1] != dim_out:
        raise TargetError(f"{name} answered {Y.shape[1]} outputs after {dim_out} before")
    wrong = np.isnan(Y) if infinite else ~np.isfinite(Y)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        x = np.array2string(batch[row], precision=6, threshold=6, edgeitems=3)
        place = f"row {where[0] + row} of round {where[1]}, " if where else ""
        message = f"{name} answered {Y[row, column]} in output {column} to {place}x = {x}"
        raise UnansweredError(message, row)
    return Y


def as_columns(name: str, raw: Any, n: int) -> FloatArray:
    """Give an answer to n queries the shape (n, k); nonsense does not become numbers.

    Returns
    -------
    ndarray, shape (n, k)
        A copy: a target may answer into one buffer again and again.

    Raises
    ------
    TargetError
        If it is no array of n real rows.
    """
    if raw is None:
        raise TargetError(f"{name} answered None: does it return what it computes?")
    if np.ma.isMaskedArray(raw):
        raise TargetError(f"{name} answered masked numbers, not real numbers")
    try:
        kind = np.asarray(raw).dtype
        if kind.kind not in "biufO":
            raise TargetError(f"{name} answered {kind} values, not real numbers")
        Y = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TargetError(f"{name} answered what is not numbers: {error}") from None
    if Y.ndim == 1:
        Y = Y[:, None]
    if Y.ndim != 2 or len(Y) != n or Y.shape[1] == 0:
        raise TargetError(
            f"{name} answered shape {np.shape(raw)} to {n} queries; expected ({n},) or ({n}, k)"
        )
    return Y
