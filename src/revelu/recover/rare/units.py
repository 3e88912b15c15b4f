"""Units that rarely fire, as the files of this package hand them on, and what a method says."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import chdtri, ndtri

from revelu.numerics.confidence import CONFIDENCE
from revelu.recover.method import Why
from revelu.recover.rare.rare_samples import Constant, too_few
from revelu.recover.rare.smooth_units import SmoothFit
from revelu.types import BoolArray, FloatArray

GUESS = 0.5
"""Error, in radians, beyond which a direction is a guess: two standard errors are then the
angle between the directions of neighbouring units."""


def _unknown() -> FloatArray:
    """Bounds that are left out."""
    return np.empty(0)


@dataclass(frozen=True)
class Units:
    """Units ``u(w x - t)`` with their errors."""

    directions: FloatArray
    """Shape (k, d).  Rows of norm 1; a unit fires on the side that its row points to."""
    thresholds: FloatArray
    """Shape (k,).  NaN where the activation leaves them open."""
    errors: FloatArray
    """Shape (k,).  Standard error of each direction's angle, its root mean square, in radians;
    infinite where data contradict the unit."""
    threshold_errors: FloatArray
    """Shape (k,).  NaN where nothing tells them."""
    bounds: FloatArray = field(default_factory=_unknown, kw_only=True)
    threshold_bounds: FloatArray = field(default_factory=_unknown, kw_only=True)
    """Shape (k,).  What the angle and the threshold are off by at most, at 95% confidence.  Left
    out, those of Gaussian errors: of an angle's d - 1 directions chi is the law."""

    def __post_init__(self) -> None:
        if len(self.bounds) != len(self.errors):
            m = max(self.directions.shape[-1] - 1, 1)
            wide = np.sqrt(chdtri(m, 1.0 - CONFIDENCE) / m)
            object.__setattr__(self, "bounds", wide * self.errors)
        if len(self.threshold_bounds) != len(self.errors):
            wide = ndtri(0.5 + 0.5 * CONFIDENCE)
            object.__setattr__(self, "threshold_bounds", wide * self.threshold_errors)

    @property
    def told(self) -> BoolArray:
        """Which directions are no guesses, shape (k,)."""
        return np.asarray(self.errors <= GUESS)

    @staticmethod
    def none(d: int) -> "Units":
        """No unit at all, of ``d`` inputs."""
        return Units(np.empty((0, d)), np.empty(0), np.empty(0), np.empty(0))

    @staticmethod
    def one(
        w: FloatArray,
        t: float,
        error: float,
        threshold_error: float,
        bounds: tuple[float, float] | None = None,
    ) -> "Units":
        """Return a single unit, of direction (d,)."""
        unit = Units(w[None], np.array([t]), np.array([error]), np.array([threshold_error]))
        if bounds is None:
            return unit
        return replace(unit, bounds=np.array(bounds[:1]), threshold_bounds=np.array(bounds[1:]))

    @staticmethod
    def of_columns(columns: Iterable[FloatArray]) -> "Units":
        """Put all six arrays together, as :attr:`columns` has them."""
        *four, bounds, threshold_bounds = columns
        return Units(*four, bounds=bounds, threshold_bounds=threshold_bounds)

    def joined(self, others: "Units") -> "Units":
        """Return these units and others."""
        pairs = zip(self.columns, others.columns, strict=True)
        return Units.of_columns(map(np.concatenate, pairs))

    def where(self, chosen: BoolArray, others: "Units") -> "Units":
        """Return these units where a mask says so, shape (k,), and others elsewhere."""
        pairs = zip(self.columns, others.columns, strict=True)
        return Units.of_columns(np.where(chosen, a.T, b.T).T for a, b in pairs)

    @property
    def columns(self) -> tuple[FloatArray, ...]:
        """All six arrays, in their order."""
        return (
            self.directions,
            self.thresholds,
            self.errors,
            self.threshold_errors,
            self.bounds,
            self.threshold_bounds,
        )

    def __len__(self) -> int:
        return len(self.directions)

    def __getitem__(self, kept: BoolArray) -> "Units":
        """Return the units of a mask, shape (k,)."""
        return Units.of_columns(column[kept] for column in self.columns)

    def margins(self, X: FloatArray) -> FloatArray:
        """``w x - t``, (n, d) -> (n, k): a unit fires where its margin is positive."""
        return np.asarray(X @ self.directions.T - self.thresholds)

    def with_one_more(self, rest: FloatArray) -> "Units":
        """Add a unit along the mean of samples that fire while no unit here does, (m, d).

        Of N(0, I) beyond a threshold the mean is along the normal.  A tenth of the samples may
        be another unit's: the threshold is where the others begin.
        """
        mean = rest.mean(axis=0)
        w = mean / np.linalg.norm(mean)
        # The mean of m normal vectors errs by sqrt(d / m), and its length is above 1.
        error = float(np.sqrt(rest.shape[1] / len(rest)))
        return self.joined(Units.one(w, float(np.quantile(rest @ w, 0.1)), error, error))


def largest_other(margins: FloatArray, i: int | np.intp) -> FloatArray:
    """Return the largest margin of the units but ``i``, (n, k) -> (n,); -inf of a single unit."""
    return np.asarray(np.delete(margins, i, axis=1).max(axis=1, initial=-np.inf))


def without_guesses(units: Units, n_rare: int, n: int) -> tuple[Units, tuple[str, ...]]:
    """Leave out directions that are guesses, and say how many of ``n`` samples would tell them."""
    told = units.told
    if told.all():
        return units, ()
    needed = samples_to_tell(units.errors, n_rare)
    left_out = f"{int((~told).sum())} directions are left out: {too_few(n_rare, needed, n)}"
    return units[told], (left_out,)


def samples_to_tell(errors: FloatArray, n: int) -> int:
    """Samples that bring the largest error of ``n`` to half of a guess's, as 1 / sqrt(n)."""
    worst = min(float(errors.max()), np.pi / 2.0)
    return int(n * (2.0 * worst / GUESS) ** 2)


@dataclass(frozen=True)
class UnitsCandidate:
    """What a method says of the units that it looked for."""

    why: Why
    """``EXPLAINED``: the search is complete, and fresh inputs can put it to the test.
    ``UNRESOLVED``: units are missing, or known from moments alone.  ``REFUTED``: the target
    is none of the kind.  ``LIMIT``: queries ran out."""
    units: Units
    notes: tuple[str, ...] = ()
    """What was seen, in sentences; where units are missing, what to try next."""
    method: str = ""
    """How the units were found."""
    centre: FloatArray | None = None
    """Shape (d,).  A place where no unit fires, of a search by queries."""
    n_quiet: int = 0
    """Rays in a row, the last ones, that met no unit that was not known, of such a search."""
    constant: Constant | None = None
    """What the target answers where no unit fires, unless units are smooth."""
    fit: SmoothFit | None = None
    """Units and all that is above them, of smooth units that explain the answers."""
    noise: tuple[float, float] | None = None
    """Shares of wrong labels, outside of the units and inside; None where no label is wrong."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """For reports: nothing reads them to decide."""

    @classmethod
    def none(cls, d: int, why: Why, reason: str, method: str = "") -> "UnitsCandidate":
        """No unit of ``d`` inputs was found, and why."""
        return cls(why, Units.none(d), (reason,), method)
