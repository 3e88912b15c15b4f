"""Where labels change: points on the border of a class, and the border's heights beside them.

Near a point ``x`` on the border of a class take a line ``x + t e`` that crosses it.  Beside
it, at ``x + u + t e``, the border is met at the *height* ``t(u)``: with ``f`` the function
whose sign decides, ``t(u) = -(∇f·u) / (∇f·e)`` to first order.  So heights give the gradient
up to a factor, from labels alone, and a vector is as good as its multiple for a span.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.bisection import bisect
from revelu.oracle import Oracle
from revelu.probe.heights import heights
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Bend:
    """How a smooth border bends."""

    slopes: FloatArray
    """Shape (m,).  Along the lines that tell it."""
    curvature: float
    """The largest even part of a height, over the step's square."""
    third: float
    """The largest A, where a central difference errs by A h²."""


@dataclass(frozen=True, eq=False)
class Border:
    """A place on the border of a class."""

    oracle: Oracle
    """Of labels, (m, d) -> (m, 1)."""
    x: FloatArray
    """Shape (d,)."""
    e: FloatArray
    """Shape (d,).  Unit vector that leads out of the class."""
    label: float
    """The class."""
    first_halvings: int = 3
    """Halvings before the ends of brackets are asked: what is known of a border tells its height so
    well that most brackets hold it, and few of their ends are then still unasked."""

    def is_inside(self, offsets: FloatArray, t: FloatArray) -> BoolArray:
        """Whether ``x + offsets + t e``, (m, d) and (m,), are in the class; one round."""
        return np.asarray(self.oracle(self.x + offsets + t[:, None] * self.e)[:, 0] == self.label)

    def heights(
        self,
        offsets: FloatArray,
        centres: FloatArray,
        half_width: float,
        atol: float,
    ) -> FloatArray:
        """Heights of the border beside the place, all bisected together.

        Parameters
        ----------
        offsets : ndarray, shape (m, d)
        centres : ndarray, shape (m,)
            Where they are expected.
        half_width : float
            How far off they may be; a border that is not there is sought farther out.
        atol : float
            How precisely they are wanted.

        Returns
        -------
        ndarray, shape (m,)
            NaN where no border was found.
        """
        return heights(
            lambda X: self.oracle(X)[:, 0],
            self.x + offsets,
            np.broadcast_to(self.e, offsets.shape),
            np.full(len(offsets), self.label),
            half_width,
            atol,
            centres=np.where(np.isnan(centres), 0.0, centres),
            first_halvings=self.first_halvings,
        )

    def passes_through(self, offsets: FloatArray, t: FloatArray, atol: float) -> BoolArray:
        """Whether the heights beside the place are ``t (m,)`` to within ``atol``, shape (m,)."""
        ends = np.concatenate([t - atol, t + atol])
        known = np.where(np.isnan(ends), 0.0, ends)
        inside = self.is_inside(np.vstack([offsets, offsets]), known)
        return np.asarray(inside[: len(t)] & ~inside[len(t) :] & ~np.isnan(t))

    def height_noise(
        self,
        rng: np.random.Generator,
        near: float,
        atol: float,
        *,
        n_lines: int = 2,
        roundings: float = 16.0,
    ) -> float:
        """Measure the standard error of a height, which rounding causes.

        Parameters
        ----------
        near : float
            How far off to look: so near that the border is flat, but farther than the spacing
            to which a target rounds its inputs, or a single rounding is all that shows.
        atol : float
            As precisely as numbers near ``x`` differ; ``x`` is on the border to within that.
        n_lines : int
            Lines looked along.
        roundings : float
            About how precisely a label tells a height, in units of ``atol``.

        Returns
        -------
        float
            NaN where the labels beside the place contradict each other.
        """
        U = rng.standard_normal((n_lines, len(self.x)))
        U *= near / np.linalg.norm(U, axis=1)[:, None]
        t = self.heights(U, np.zeros(len(U)), 8.0 * near, atol)
        # The border is flat to within rounding over so short a distance: t(u) + t(-u) - 2 t(0)
        # is the noise of three heights, times the root of 6.
        back = self.heights(-U, -t, roundings * atol, atol)
        if np.isnan(back).any():
            # Inputs are rounded: a step that is not the other's mirror.
            back = self.heights(-U, np.zeros(len(U)), 8.0 * near, atol)
        rest = t + back
        return float(np.sqrt((rest**2).mean() / 6.0 + atol**2 / 12.0))

    def crosses_once(self, rng: np.random.Generator, reach: float, *, n_points: int = 24) -> bool:
        """Whether the line through the place seems to cross one border only.

        Labels of rounded scores change to and fro, and bisection ends at any of the changes.
        Points as far as ``reach`` to either side are asked.
        """
        t = reach * rng.uniform(0.0, 1.0, n_points) * np.where(np.arange(n_points) % 2, 1.0, -1.0)
        inside = self.is_inside(np.zeros((n_points, len(self.x))), t)
        return bool((inside == (t < 0.0)).all())

    def bend(
        self, lines: FloatArray, h: float, *, smooth: bool = False, digits: float = 8e-7
    ) -> Bend | None:
        """Measure a smooth border by Richardson's extrapolation; None where it is not smooth.

        With D(h) = (t(h) - t(-h)) / 2h, D(2h) - D(h) is 3 A h² to leading order.  The even part
        of the heights is curvature, four times as much at twice the step; a border without it,
        or with another factor, is flat with kinks.

        Parameters
        ----------
        lines : ndarray, shape (m, d)
            Unit rows.
        h : float
            The shorter of two steps, the other its double.
        smooth : bool
            Whether borders are thought to be smooth: one line that curves is then enough.
        digits : float
            Heights are bisected to this share of the step's square.
        """
        atol, offsets = digits * h * h, h * lines
        up = self.heights(offsets, np.zeros(len(lines)), 4.0 * h, atol)
        # On a smooth border each height nearly tells the next one.
        down = self.heights(-offsets, -up, h * h, atol)
        near = up + down
        room = float(np.nanmax(np.abs(near), initial=0.0)) / 4.0 + 4.0 * atol
        up_far = self.heights(2.0 * offsets, up - down + 2.0 * near, room, atol)
        down_far = self.heights(-2.0 * offsets, 4.0 * near - up_far, room, atol)
        far = up_far + down_far
        curves = np.abs(near) > 4.0 * atol
        with np.errstate(invalid="ignore", divide="ignore"):
            as_expected = curves & (np.abs(far / near - 4.0) < 1.0)
        if smooth and as_expected.any():
            as_expected |= (np.abs(near) <= 4.0 * atol) & (np.abs(far) <= 20.0 * atol)
        if not as_expected.all():
            return None
        odd, wide = (up - down) / (2.0 * h), (up_far - down_far) / (4.0 * h)
        third = float(np.nanmax(np.abs(wide - odd))) / (3.0 * h * h)
        # No less of it can be told than the digits allow.
        curvature = max(float(np.nanmax(np.abs(near))), 4.0 * atol) / (h * h)
        return Bend(odd, curvature, max(third, digits / (2.0 * h)))


def find_borders(
    oracle: Oracle, A: FloatArray, B: FloatArray, labels: FloatArray, width: float
) -> list[Border]:
    """Bisect segments whose ends have different labels, all at once.

    Parameters
    ----------
    A, B : ndarray, shape (m, d)
        Ends; the class is that of A's.
    labels : ndarray, shape (m,)
        Of A.
    width : float
        How near to the border to come, relative to the length of the segment.
    """

    def is_inside(rows: IntArray, t: FloatArray) -> BoolArray:
        return np.asarray(oracle(A[rows] + t[:, None] * (B - A)[rows])[:, 0] == labels[rows])

    t = bisect(is_inside, np.zeros(len(A)), np.ones(len(A)), width)
    X = A + t[:, None] * (B - A)
    E = (B - A) / np.linalg.norm(B - A, axis=1)[:, None]
    return [Border(oracle, x, e, float(y)) for x, e, y in zip(X, E, labels, strict=True)]
