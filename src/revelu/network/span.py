"""The row span of a first layer: the only directions that a network looks at."""

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from revelu.errors import FormatError, InputError
from revelu.formats import check_writable
from revelu.formats.arrays import check_is_file, naming_system_errors
from revelu.formats.npz import read_archive, write_archive
from revelu.formats.pictures import draw_singular_values
from revelu.network.network import frozen_array
from revelu.shown import SCHEMA, Shown, plain
from revelu.types import FloatArray


@dataclass(frozen=True, eq=False)
class Span(Shown):
    """A linear subspace of inputs, by an orthonormal basis.

    Parameters
    ----------
    basis : array_like, shape (k, n)
        Orthonormal rows; ``k`` may be 0.
    singular_values : array_like, optional
        Of the gradients that it was read from, largest first, in units of the largest.
    floor : float
        What noise alone makes of such a singular value.
    errors : array_like, optional
        About how far each row is off, in radians.
    certified : bool, optional
        Whether fresh moves across it changed no answer; None where nobody looked.

    Raises
    ------
    InputError
        If the rows are not orthonormal or a number is not finite.

    Examples
    --------
    >>> span = Span([[1.0, 0.0, 0.0]])
    >>> span.project([[3.0, 4.0, 5.0]]).tolist()
    [[3.0, 0.0, 0.0]]
    >>> span.null_basis.shape
    (2, 3)
    """

    basis: FloatArray
    singular_values: FloatArray = field(default_factory=lambda: np.empty(0))
    floor: float = 0.0
    errors: FloatArray = field(default_factory=lambda: np.empty(0))
    certified: bool | None = None

    told_by: ClassVar[str] = "span"

    def __post_init__(self) -> None:
        basis = frozen_array(self.basis, 2, "a span's basis")
        values = frozen_array(self.singular_values, 1, "a span's singular_values")
        errors = frozen_array(self.errors, 1, "a span's errors")
        if basis.shape[1] < 1:
            raise InputError(f"a span's basis needs shape (k, n), got {basis.shape}")
        if errors.shape not in {(0,), (len(basis),)} or not (errors >= 0.0).all():
            raise InputError(f"a span of {len(basis)} rows has as many errors, or none")
        # A basis that was stored in float32 is orthonormal to about 1e-7.
        if not np.allclose(basis @ basis.T, np.eye(len(basis)), rtol=0.0, atol=1e-6):
            raise InputError("the rows of a span's basis must be orthonormal")
        object.__setattr__(self, "basis", basis)
        object.__setattr__(self, "errors", errors)
        object.__setattr__(self, "singular_values", values)
        object.__setattr__(self, "floor", float(self.floor))

    @property
    def dim_in(self) -> int:
        """Number of inputs, n."""
        return int(self.basis.shape[1])

    @property
    def rank(self) -> int:
        """Number of directions, k."""
        return int(self.basis.shape[0])

    @property
    def null_basis(self) -> FloatArray:
        """An orthonormal basis of the null space, shape (n - k, n)."""
        return complement(self.basis)

    def __repr__(self) -> str:
        mark = ", not certified" if self.certified is False else ""
        return f"<Span of {self.rank} of {self.dim_in} directions{mark}>"

    def project(self, X: ArrayLike) -> FloatArray:
        """Return the part of ``X (m, n)`` that lies in the span.

        Raises
        ------
        InputError
            If ``X`` has another shape.
        """
        rows = self._rows(X)
        return np.asarray(rows @ self.basis.T @ self.basis)

    def remove(self, X: ArrayLike) -> FloatArray:
        """Return the part of ``X (m, n)`` that lies in the null space.

        Raises
        ------
        InputError
            If ``X`` has another shape.
        """
        rest = self._rows(X) - self.project(X)
        # The second projection removes what rounding left of the span in the first.
        return np.asarray(rest - self.project(rest))

    def angles(self, other: "Span | ArrayLike") -> FloatArray:
        """Principal angles to another subspace, in radians, largest first.

        There are as many as the smaller of both ranks.  Small angles are read from sines:
        a cosine of 1 - 1e-17 is 1 in float64.

        Parameters
        ----------
        other : Span, or array_like of shape (m, n)
            Rows that span it; they need not be orthonormal.

        Raises
        ------
        InputError
            If ``other`` has another number of inputs.
        """
        rows = other.basis if isinstance(other, Span) else row_space(np.asarray(other))
        if rows.ndim != 2 or rows.shape[1] != self.dim_in:
            raise InputError(f"a subspace of {self.dim_in} inputs is needed, got {rows.shape}")
        small, large = sorted((rows, self.basis), key=len)
        if not len(small):
            return np.empty(0)
        cosines = np.linalg.svd(small @ large.T, compute_uv=False)
        sines = np.linalg.svd(small - small @ large.T @ large, compute_uv=False)[: len(small)]
        return np.asarray(np.sort(np.arctan2(np.sort(sines), np.sort(cosines)[::-1]))[::-1])

    def save(self, path: str | PathLike[str]) -> None:
        """Write an ``.npz`` archive; it appears whole or not at all.

        Raises
        ------
        FormatError
            If the suffix is another or the file cannot be written.
        """
        path = _archive(path)
        check_writable(path)
        named = {
            "span": self.basis,
            "singular_values": self.singular_values,
            "floor": np.array(self.floor),
            "errors": self.errors,
        }
        if self.certified is not None:
            named["certified"] = np.array(float(self.certified))
        write_archive(path, named)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Span":
        """Read what :meth:`save` wrote.

        Raises
        ------
        FormatError
            If the file cannot be read or holds no span.
        """
        path = _archive(path)
        with naming_system_errors(path, "read"):
            check_is_file(path)
        named = read_archive(path)
        if "span" not in named:
            raise FormatError(f"{path}: holds no span")
        try:
            values = named.get("singular_values", np.empty(0))
            floor = float(named.get("floor", np.zeros(())))
            mark = named.get("certified")
            certified = None if mark is None else bool(float(mark) == 1.0)
            return cls(named["span"], values, floor, named.get("errors", np.empty(0)), certified)
        except (InputError, TypeError, ValueError) as error:
            raise FormatError(f"{path}: {error}") from None

    def fields(self) -> dict[str, Any]:
        """Return what an account says of it."""
        return {"rank": self.rank, "inputs": self.dim_in, "errors": plain(self.errors)}

    def to_dict(self) -> dict[str, Any]:
        """Return ``rank``, ``inputs``, ``errors``, ``basis`` and whether it is certified."""
        status = {True: "recovered", False: "unverified", None: "not certified"}[self.certified]
        return {"schema": SCHEMA, "status": status, **self.fields(), "basis": plain(self.basis)}

    def plot(self, path: str | PathLike[str] | None = None) -> Any:
        """Draw the singular values and the floor of noise under them.

        Parameters
        ----------
        path : path ending in ``.png`` or ``.svg``, optional
            Where to write them; without one they are returned, and a notebook shows them.

        Raises
        ------
        FormatError
            If the suffix is another or the file cannot be written.
        MissingExtraError
            If matplotlib is not installed.
        """
        if path is None:
            return super().plot()
        return draw_singular_values(Path(path), self.singular_values, self.floor, self.rank)

    def _rows(self, X: ArrayLike) -> FloatArray:
        try:
            rows = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"inputs are no numeric array: {error}") from None
        if rows.ndim != 2 or rows.shape[1] != self.dim_in:
            raise InputError(f"expected inputs of shape (m, {self.dim_in}), got {rows.shape}")
        return rows


def _archive(path: str | PathLike[str]) -> Path:
    if Path(path).suffix.lower() != ".npz":
        raise FormatError(f"{path}: a span is an .npz archive")
    return Path(path)


def complement(basis: FloatArray) -> FloatArray:
    """Orthonormal rows orthogonal to the orthonormal rows ``basis (k, n)``, shape (n - k, n)."""
    k, n = basis.shape
    if not k:
        return np.eye(n)
    return np.ascontiguousarray(np.linalg.qr(basis.T, mode="complete")[0].T[k:])


def row_space(rows: FloatArray) -> FloatArray:
    """Orthonormal basis of what ``rows (m, n)`` span, up to rounding."""
    if rows.ndim != 2:
        raise InputError(f"rows of shape (m, n) are needed, got {rows.shape}")
    if not rows.size:
        return np.empty((0, rows.shape[1]))
    _, values, vt = np.linalg.svd(rows, full_matrices=False)
    floor = max(rows.shape) * np.finfo(np.float64).eps * values[0]
    return np.asarray(vt[values > floor])
