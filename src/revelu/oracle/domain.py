"""Where a target is asked: the inputs that matter, as an affine image of N(0, I) or of a box.

    x = center + z @ spread,    z of N(0, I), or uniform in the box [-1, 1]^r

Everything that asks and certifies works in the coordinates ``z``; what is recovered there is
written in the target's own units by folding the map into the first layer, exactly but for rounding.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from revelu.errors import InputError
from revelu.oracle.column_names import names_of, order_of
from revelu.types import BoolArray, FloatArray

__all__ = ["Domain"]

_AS_REAL = "asked as real numbers"


@dataclass(frozen=True, eq=False)
class Domain:
    """The inputs that are asked: Gaussian ones, or those of a box.

    Make one by :meth:`like`, :meth:`gaussian` or :meth:`box`.

    Attributes
    ----------
    center : ndarray, shape (d,) or ()
        A number stands for one in every column.
    spread : ndarray, shape (r, d), (d,) or ()
        How the coordinates move the inputs; of one dimension or none, column by column.
    bounds : (lo, hi) or None
        Each of shape (d,) or (): no input leaves them, not by a rounding.
    is_uniform : bool
        Whether inputs are drawn uniformly within the bounds, and not from a Gaussian.
    words : str
        What is drawn, in words that follow "inputs".
    notes : tuple of str
        What was seen in the data.
    names : tuple of str
        What the columns are called; empty where they have no names.
    rows : ndarray, shape (n, d), optional
        Of the data that it is like, those that have what it holds: inputs of the target, to the
        last bit, a sample of many, in random order.
    source : str
        What the data are called.
    """

    center: FloatArray
    spread: FloatArray
    bounds: tuple[FloatArray, FloatArray] | None = None
    is_uniform: bool = False
    words: str = ""
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    rows: FloatArray | None = None
    source: str = ""

    @classmethod
    def gaussian(cls, mean: ArrayLike = 0.0, std: ArrayLike = 1.0) -> "Domain":
        """Inputs of N(mean, std²), column by column.

        Parameters
        ----------
        mean, std : array_like, shape (d,) or ()

        Raises
        ------
        InputError
            If they are no finite numbers, or a standard deviation is not positive.
        """
        center, scale = _column("mean", mean), _column("std", std)
        if (scale <= 0).any():
            raise InputError("std must be positive in every column")
        if center.ndim and scale.ndim and len(center) != len(scale):
            raise InputError(f"mean has {len(center)} columns, std has {len(scale)}")
        one = center.ndim + scale.ndim == 0
        words = f"of N({center:g}, {scale:g}²)" if one else "of the Gaussian with the mean and std"
        return cls(center, scale, words=words if one else f"{words} given")

    @classmethod
    def box(cls, lo: ArrayLike, hi: ArrayLike) -> "Domain":
        """Inputs between bounds, uniformly.

        Parameters
        ----------
        lo, hi : array_like, shape (d,) or ()

        Raises
        ------
        InputError
            If they are no finite numbers with ``lo < hi``.
        """
        low, high = _column("lo", lo), _column("hi", hi)
        if low.ndim and high.ndim and len(low) != len(high):
            raise InputError(f"lo has {len(low)} columns, hi has {len(high)}")
        if (low >= high).any():
            raise InputError("a box needs lo < hi in every column")
        words = "uniform in the box given"
        bounds = np.broadcast_arrays(low, high)
        center, half = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
        return cls(center, half, (bounds[0], bounds[1]), is_uniform=True, words=words)

    @classmethod
    def like(
        cls,
        data: ArrayLike,
        *,
        name: str = "the data",
        names: Sequence[str] = (),
        keep_discrete: bool = False,
        rows_for_covariance: int = 10,
        most_values: int = 10,
        most_rows: int = 3000,
    ) -> "Domain":
        """Inputs drawn like data: normal, with their mean and covariance.

        Parameters
        ----------
        data : array_like, shape (n, d)
        name : str
            What messages call it.
        names : sequence of str
            What they call its columns: those of a data frame, or numbers from 0, by default.
        keep_discrete : bool
            Hold columns of few values at the one that is most frequent.
        rows_for_covariance : int
            Rows a column, from which the covariance is taken, shrunk as Ledoit and Wolf (2004)
            do; with fewer the columns are taken one by one.
        most_values : int
            Columns of no more values, and with a tenth of the rows at most, count as discrete.
        most_rows : int
            Rows that are kept, to be asked; of more, some that are drawn.

        Raises
        ------
        InputError
            If it is no table of finite numbers, of two rows or more that differ.
        """
        X = _table(name, data)
        n, d = X.shape
        own = [str(column) for column in names] or names_of(data)
        called = own if len(own) == d else [str(j) for j in range(d)]
        held = np.ptp(X, axis=0) == 0
        discrete = ~held & _are_discrete(X, min(most_values, max(n // 10, 2)))
        # The mean of a constant column may be off by a rounding.
        center, notes = np.where(held, X[0], X.mean(axis=0)), list[str]()
        if held.all():
            raise InputError(f"{name}: every column is constant")
        if held.any():
            notes.append(f"{_columns(held, name, called)} constant: held as in the data")
        if discrete.any() and keep_discrete:
            notes.append(
                f"{_columns(discrete, name, called)} of few values: held at the most frequent"
            )
            center[discrete] = [_most_frequent(X[:, j]) for j in np.flatnonzero(discrete)]
            held |= discrete
        elif discrete.any():
            notes.append(f"{_columns(discrete, name, called)} of few values: {_AS_REAL}")
        if held.all():
            raise InputError(f"{name}: every column is constant, or of few values")
        free = np.flatnonzero(~held)
        std, words = _deviations(name, X, free), "mean and standard deviations"
        moved, root = np.zeros((len(free), d)), np.eye(len(free))
        if n >= rows_for_covariance * len(free) and len(free) > 1:
            root, words = _shrunk_root((X[:, free] - center[free]) / std)
        moved[:, free] = root * std
        if held.any():
            words += f"; {_listed_values(held, center, called)}"
        said = f"drawn like {name} (normal with its {words})"
        rows = X[(X[:, held] == center[held]).all(axis=1)]
        rows = rows[np.random.default_rng(0).permutation(len(rows))[:most_rows]]
        domain = cls(center, moved, words=said, notes=tuple(notes), names=tuple(own))
        return replace(domain, rows=rows, source=name)

    def within(self, lo: ArrayLike, hi: ArrayLike) -> "Domain":
        """Return the part of a Gaussian that lies between bounds, asked as a box is.

        The box reaches four standard deviations from the mean at most.

        Raises
        ------
        InputError
            If the bounds are none, or the Gaussian has a covariance or lies outside of them.
        """
        box = Domain.box(lo, hi)
        if self.is_uniform:
            raise InputError("a domain has one box")
        if self.spread.ndim > 1:
            std, center = np.sqrt((self.spread**2).sum(axis=0)), self.center
        else:
            center, std = np.broadcast_arrays(self.center, self.spread)
        low = np.maximum(box.bounds[0] if box.bounds else -np.inf, center - 4.0 * std)
        high = np.minimum(box.bounds[1] if box.bounds else np.inf, center + 4.0 * std)
        inside = np.asarray(low < high)
        if not (inside | (std == 0)).all():
            raise InputError("the Gaussian lies outside the box, by four standard deviations")
        if not inside.all():
            raise InputError("a column that is held has no place in a box: leave it out")
        cut, rows = Domain.box(low, high), self.rows
        said = "uniform in the box given, where the data are"
        if rows is not None:
            rows = rows[((low <= rows) & (rows <= high)).all(axis=1)]
        return replace(
            cut, notes=self.notes, names=self.names, words=said, rows=rows, source=self.source
        )

    def of(self, dim_in: int, name: str = "the target") -> "Domain":
        """Return the domain with every column written out.

        Raises
        ------
        InputError
            If it has another number of columns than the target.
        """
        given = self.dim_target
        if given is not None and given != dim_in:
            more = ": choose among the columns" if given > dim_in else ""
            raise InputError(
                f"the domain, inputs {self.words}, has {given} columns, {name} has {dim_in} "
                f"inputs{more}"
            )
        center, spread = np.broadcast_to(self.center, dim_in), self.spread
        if not spread.ndim:
            spread = np.broadcast_to(spread, dim_in)
        bounds = self.bounds
        if bounds is not None:
            lo, hi = (np.broadcast_to(bound, dim_in) for bound in bounds)
            bounds = (lo, hi)
        return replace(self, center=center, spread=spread, bounds=bounds)

    def in_order_of(self, wanted: Sequence[str]) -> "Domain":
        """Return the domain with its columns in the order in which a target reads its own.

        Parameters
        ----------
        wanted : sequence of str
            The target's names; none where it does not know any.

        Raises
        ------
        InputError
            If names say that the columns are not the target's.
        """
        order = order_of(self.names, wanted, f"inputs {self.words}")
        if order is None:
            return self
        if len(order) != len(self.names):
            chosen, others = ", ".join(wanted), len(self.names) - len(order)
            raise InputError(f"the data have {others} columns more than {chosen}: choose those")
        names = tuple(self.names[j] for j in order)
        bounds = self.bounds and (self.bounds[0][order], self.bounds[1][order])
        center, spread = self.center[order], self.spread[..., order]
        rows = None if self.rows is None else self.rows[:, order]
        return replace(self, center=center, spread=spread, bounds=bounds, names=names, rows=rows)

    def holding(self, columns: BoolArray, at: FloatArray, note: str) -> "Domain":
        """Return the domain with more columns held; the others are drawn as before.

        Parameters
        ----------
        columns : ndarray of bool, shape (d,)
        at : ndarray, shape (d,)
            The values that they are held at.
        note : str
            Why.

        Raises
        ------
        InputError
            If no column is left.
        """
        held = self.is_held | columns
        free, center = np.flatnonzero(~held), np.where(columns, at, self.center)
        if not len(free):
            raise InputError(f"{note}: no other column is left to ask about")
        if ((self.matrix != 0).sum(axis=1) <= 1).all():
            spread = self.matrix[(self.matrix[:, free] != 0).any(axis=1)]
        else:
            spread = np.zeros((len(free), len(center)))
            std = np.linalg.norm(self.matrix[:, free], axis=0)
            Z = self.matrix[:, free] / std
            values, vectors = np.linalg.eigh(Z.T @ Z)
            spread[:, free] = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T * std
        called = self.names or [str(j) for j in range(len(center))]
        rows = self.rows
        if rows is not None:
            rows = rows[(rows[:, held] == center[held]).all(axis=1)]
        words = f"{self.words}, {_listed_values(columns, center, called)}"
        # Those of few values are asked as real numbers no more, where they are held.
        known = tuple(
            f"{said} but for what is held" if said.endswith(_AS_REAL) else said
            for said in self.notes
        )
        return replace(
            self, center=center, spread=spread, words=words, notes=(*known, note), rows=rows
        )

    @property
    def dim_target(self) -> int | None:
        """Inputs of the target; None where one number stands for all."""
        sizes = [a.shape[-1] for a in (self.center, self.spread) if a.ndim]
        return sizes[0] if sizes else None

    @property
    def dim_in(self) -> int:
        """Coordinates, of a domain whose columns are written out."""
        return len(self.spread)

    @property
    def unit_box(self) -> tuple[float, float] | None:
        """What the coordinates keep inside of."""
        return (-1.0, 1.0) if self.is_uniform else None

    @property
    def digest(self) -> str:
        """What tells it from another one."""
        found = hashlib.sha256(f"{self.is_uniform}".encode())
        for array in (self.center, self.spread, *(self.bounds or ())):
            found.update(f"{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    @property
    def matrix(self) -> FloatArray:
        """The spread as a matrix, shape (r, d)."""
        return np.diag(self.spread) if self.spread.ndim == 1 else self.spread

    @cached_property
    def inverse(self) -> FloatArray:
        """The right inverse of the matrix, shape (d, r): ``z = (x - center) @ inverse``.

        Columns may be of any size beside each other: they are scaled alike before.
        """
        if self.spread.ndim == 1:
            return np.diag(1.0 / self.spread)
        sizes = np.linalg.norm(self.spread, axis=0)
        free = sizes > 0
        found = np.zeros(self.spread.T.shape)
        found[free] = np.linalg.inv(self.spread[:, free] / sizes[free]) / sizes[free, None]
        return found

    @property
    def own_inputs(self) -> tuple[FloatArray, FloatArray]:
        """The columns that vary, ``c + z @ M`` of coordinates z; c (m,), M (r, m)."""
        varying = ~self.is_held
        return self.center[varying], self.matrix[:, varying]

    @property
    def moves_alike(self) -> bool:
        """Whether every input is one coordinate, moved as all others are."""
        is_each = self.spread.ndim < 2
        return is_each and not (np.ptp(self.center) or np.ptp(self.spread))

    @property
    def is_held(self) -> BoolArray:
        """Columns that do not vary, shape (d,)."""
        return np.asarray((np.atleast_2d(self.spread) == 0).all(axis=0))

    @property
    def held(self) -> dict[str, float]:
        """Columns that do not vary, by name or number, and the values that they are held at."""
        called = self.names or [str(j) for j in range(len(self.center))]
        return {called[j]: float(self.center[j]) for j in np.flatnonzero(self.is_held)}

    @property
    def condition(self) -> float:
        """How much more inputs move one way than another, for moves alike in coordinates."""
        varying = self.matrix[:, ~self.is_held]
        sizes = np.linalg.norm(varying, axis=0)
        return float(sizes.max() / sizes.min() * np.linalg.cond(varying / sizes))

    def to_target(self, Z: FloatArray) -> FloatArray:
        """Inputs of the target at coordinates, (n, r) -> (n, d)."""
        moved = Z * self.spread if self.spread.ndim == 1 else Z @ self.spread
        X = np.asarray(self.center + moved)
        X = X if self.bounds is None else np.clip(X, *self.bounds)
        return X if self.rows is None else self._back_to_rows(Z, X)

    @cached_property
    def coordinates(self) -> FloatArray:
        """Those of the rows, shape (n, r): at them the rows themselves are asked."""
        if self.rows is None:
            return np.empty((0, self.dim_in))
        return self.to_coordinates(self.rows, f"rows of {self.source}")

    @cached_property
    def _row_at(self) -> dict[bytes, FloatArray]:
        """Rows by their coordinates, and rounded ones by rounded coordinates."""
        if self.rows is None:
            return {}
        with np.errstate(over="ignore"):
            rounded, near = (
                a.astype(np.float32).astype(float) for a in (self.coordinates, self.rows)
            )
        near = np.where(self.is_held, self.rows, near)
        near = near if self.bounds is None else np.clip(near, *self.bounds)
        found = {z.tobytes(): x for z, x in zip(rounded, near, strict=True)}
        return found | {z.tobytes(): x for z, x in zip(self.coordinates, self.rows, strict=True)}

    def _back_to_rows(self, Z: FloatArray, X: FloatArray) -> FloatArray:
        """Inputs, of which those at the rows' coordinates are the rows, to their last bits.

        A target may tell a column's values apart by equality: it is another one a rounding away.
        """
        first = self.coordinates[:, 0]
        may_be = np.isin(Z[:, 0], np.append(first, first.astype(np.float32)))
        for i in np.flatnonzero(may_be):
            X[i] = self._row_at.get(Z[i].tobytes(), X[i])
        return X

    def to_coordinates(self, X: FloatArray, what: str = "inputs") -> FloatArray:
        """Coordinates of inputs of the target, (n, d) -> (n, r).

        Raises
        ------
        InputError
            If the domain holds a column at another value than a row, or has bounds that it leaves.
        """
        if X.ndim != 2 or X.shape[1] != len(self.center):
            raise InputError(f"expected {what} of shape (n, {len(self.center)}), got {X.shape}")
        held = self.is_held
        apart = X[:, held] != self.center[held]
        if apart.any():
            row, column = (int(i) for i in np.argwhere(apart)[0])
            column = int(np.flatnonzero(held)[column])
            raise InputError(
                f"row {row} of the {what} has {X[row, column]:g} in column {column}, which the "
                f"domain holds at {self.center[column]:g}"
            )
        if self.bounds is not None:
            lo, hi = self.bounds
            outside = np.flatnonzero(((lo > X) | (hi < X)).any(axis=1))
            if len(outside):
                raise InputError(f"row {outside[0]} of the {what} leaves the domain's box")
        moved = X - self.center
        Z = moved * (1.0 / self.spread) if self.spread.ndim == 1 else moved @ self.inverse
        return np.clip(Z, -1.0, 1.0) if self.is_uniform else Z


def _column(name: str, given: ArrayLike) -> FloatArray:
    """Numbers, one a column or one for all."""
    try:
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is no number, nor one for each column") from None
    if values.ndim > 1 or not values.size or not np.isfinite(values).all():
        raise InputError(f"{name} must be a finite number, or one for each column")
    return values


def _table(name: str, data: ArrayLike) -> FloatArray:
    try:
        X = np.array(data, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}: not a table of numbers") from None
    if X.ndim != 2 or not X.shape[1]:
        raise InputError(f"{name}: expected a table (n, d), got shape {X.shape}")
    if len(X) < 2:
        raise InputError(f"{name}: {len(X)} row is too few for a spread: two or more are needed")
    if not np.isfinite(X).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(X))[0])
        raise InputError(f"{name}: {X[row, column]} in row {row}, column {column}")
    return X


def _are_discrete(X: FloatArray, most: int) -> BoolArray:
    """Columns of few values."""
    return np.array([len(np.unique(column)) <= most for column in X.T])


def _most_frequent(column: FloatArray) -> float:
    values, counts = np.unique(column, return_counts=True)
    return float(values[counts.argmax()])


def _columns(chosen: BoolArray, name: str, names: Sequence[str]) -> str:
    """Columns of a table by name, with their verb."""
    meant = [names[j] for j in np.flatnonzero(chosen).tolist()]
    shown = ", ".join(meant[:8]) + (", ..." if len(meant) > 8 else "")
    if len(meant) == 1:
        return f"column {shown} of {name} is"
    return f"columns {shown} of {name} are"


def _listed_values(held: BoolArray, values: FloatArray, names: Sequence[str], n: int = 4) -> str:
    """Columns that are held, and at which values; of many the first."""
    columns = np.flatnonzero(held).tolist()
    listed = ", ".join(f"{names[j]} at {values[j]:g}" for j in columns[:n])
    more = len(columns) - n
    return f"held: {listed}" + (f" and {more} more" if more > 0 else "")


def _deviations(name: str, X: FloatArray, free: np.ndarray) -> FloatArray:
    """Standard deviations of the columns that vary."""
    with np.errstate(over="ignore", under="ignore"):
        std = X[:, free].std(axis=0)
        has_digits = np.isfinite(std) & (std > 0) & np.isfinite(std**2) & (std**2 > 0)
    if not has_digits.all():
        column = int(free[np.flatnonzero(~has_digits)[0]])
        raise InputError(f"{name}: column {column} is too large or too small to be squared")
    return np.asarray(std)


def _shrunk_root(
    Z: FloatArray, *, least: float = 1e-12, much: float = 0.05, widened: float = 3.0
) -> tuple[FloatArray, str]:
    """The symmetric root of the correlations of standardised data, shrunk, and its words.

    Ledoit and Wolf (2004): the share of the identity that leaves the least expected error.

    Parameters
    ----------
    least : float
        Of an eigenvalue, relative to the largest: less is what rounding leaves of columns that
        are as good as collinear, and would not be resolved.
    much : float
        A larger share is told,
    widened : float
        and where it widens a direction by more than this.
    """
    n, d = Z.shape
    S = Z.T @ Z / n
    distance = float(((S - np.eye(d)) ** 2).sum())
    # The variance of the entries of S, summed: E|z z' - S|^2 / n.
    scatter = float((((Z**2).sum(axis=1)) ** 2).mean() - (S**2).sum()) / n
    share = 1.0 if distance == 0 else min(max(scatter / distance, 0.0), 1.0)
    seen = np.linalg.eigvalsh(S)
    values, vectors = np.linalg.eigh((1.0 - share) * S + share * np.eye(d))
    words, floor = "mean and covariance", least * float(values[-1])
    if share > 1.0 - much:
        words = "mean and standard deviations"
    elif share > much:
        words += f", its correlations {share:.0%} weaker for want of rows"
    if seen[0] < max(values[0], floor) / widened**2:
        words += ", but wider where columns are all but collinear"
    # The symmetric root: coordinates stay near the columns that they are named by.
    root = (vectors * np.sqrt(np.maximum(values, floor))) @ vectors.T
    return np.asarray(root), words
