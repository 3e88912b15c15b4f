"""The noise floor of a target's answers: the unit of every tolerance."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from revelu.numerics.float64 import EPS
from revelu.numerics.links import NONE, Link
from revelu.oracle.company import rounding_of
from revelu.oracle.grid import Grid
from revelu.oracle.log_ratios import SMALLEST_DIFFERENCE
from revelu.oracle.numbers import (
    Numbers,
)
from revelu.oracle.stencils import growth_of
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class NoiseFloor:
    """How precisely a target answers.

    The standard error of output ``k`` at ``x`` is modelled as
    ``nu[k] * scale[k] * sqrt(1 + |x|^2 / d)``: rounding is relative to the terms
    that are summed, and those grow with the radius.  Where a target computes in few
    digits, an answer that is large errs by more, as its own terms are (:meth:`rounding`).

    Attributes
    ----------
    law : str
        What decides by how much answers err: ``"float64"``, ``"float32"``, ``"rounded"`` to a
        grid of few digits or of any step, ``"half-precision"`` where they are computed in such, or
        ``"random"`` where repeated rows differ.
    nu : ndarray, shape (k,)
        Relative standard error of an answer, at the places at which answers err most: tests of
        single answers allow for those.
    scale : ndarray, shape (k,)
        Root mean square of ``|f(x)| / sqrt(1 + |x|^2 / d)``; in a box, of ``|f(x)| / sqrt(2)``.
    spread : ndarray, shape (k,)
        Standard deviation of the outputs over N(0, I), or the box, from the few inputs seen.
    curved : float
        Fraction of the places seen at which the target curves.
    repeat_difference : float
        Largest difference between two answers to one row, relative to ``scale``.
    numbers : Numbers
        What is answered, before a link is applied.
    link : Link
        What undoes the target's head; all this is of what is behind it.
    sizes : ndarray
        Root mean square of the answers themselves, where a link is applied to them.
    are_shares : bool
        Whether they lie between 0 and 1, and are not the probabilities of all classes.
    of_labels : bool
        Whether the answers are names of classes, as numbers.
    drawn_anew : ndarray, shape (k + 1,), or None
        Of probabilities, the standard error of each class's where it is noise that is drawn anew.
    typical : ndarray, shape (k,), or 1
        Root mean square of an answer's error at all places, in that of ``nu``.
    grows : bool
        Whether errors grow with the inputs, as terms that are summed do; noise that is added to
        the answers does not.
    steady : float
        Share of neighbouring inputs seen whose answers were the same, to the last digit; 0 where
        those of all inputs were.
    """

    law: str
    nu: FloatArray
    scale: FloatArray
    spread: FloatArray
    curved: float
    repeat_difference: float
    numbers: Numbers
    link: Link = NONE
    sizes: FloatArray = field(default_factory=lambda: np.zeros(0))
    are_shares: bool = False
    of_labels: bool = False
    drawn_anew: FloatArray | None = None
    typical: FloatArray | float = 1.0
    grows: bool = True
    steady: float = 0.0

    @property
    def grid(self) -> Grid | None:
        """What rounded answers were rounded to; None of what is not rounded any more."""
        is_rounded = self.law == "rounded" and not self.link.has_head
        return self.numbers.grid if is_rounded else None

    def sigma(self, Y: FloatArray) -> FloatArray:
        """Standard errors of answers at N(0, I), shape (n, k), or (k,) where all are alike.

        Parameters
        ----------
        Y : ndarray, shape (n, k)
        """
        if self.differs_by_answer:
            P = self.link.head(Y)
            return self.link.errors(P, self._of_heads(P))
        if self.grid is None:
            errs_by_answer = self.errs_inside and self.link.has_head
            return np.maximum(self.errors, self.rounding(Y)) if errs_by_answer else self.errors
        return np.asarray(np.maximum(self.numbers.error(Y), self._of_sums(np.sqrt(2.0))))

    def _of_sums(self, growth: FloatArray | float) -> FloatArray:
        """What is summed before it is rounded has the digits of float64 at best, (..., k)."""
        return EPS * np.multiply.outer(growth, self.scale)

    def sigma_at(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Standard errors of answers ``Y (n, k)`` at any inputs ``X (n, d)``, shape (n, k).

        What is rounded to a grid errs by its step, however far out; what is computed in few
        digits errs as the terms that are summed.  Tests of single answers have to allow for this
        much: some places err by more than others.
        """
        return self._errors_at(X, Y, 1.0)

    def typical_at(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """The same in the root mean square of all places, as errors of estimates follow from it."""
        return self._errors_at(X, Y, self.typical)

    def _errors_at(self, X: FloatArray, Y: FloatArray, share: FloatArray | float) -> FloatArray:
        if self.grid is not None:
            return np.maximum(self.numbers.error(Y), self._of_sums(self.growth(X)))
        growth = self.growth(X) / np.sqrt(2.0) if self.grows else np.ones(len(X))
        # An output that has answered 0 alone errs by its own rounding where it answers more.
        told = np.where(np.isfinite(Y), Y, 0.0)
        found = np.outer(growth, self.errors)
        found = np.maximum(found, self.rounding(Y)) if self.errs_inside else found
        return np.maximum(share * found, self.numbers.last_place(told))

    def rounding(self, Y: FloatArray) -> FloatArray:
        """What answers of that size err by where they are computed in few digits, shape (n, k)."""
        Y = np.where(np.isfinite(Y), Y, 0.0)
        own = rounding_of(self.numbers, Y)
        return np.maximum(own, rounding_behind(self.link, self.link.head(Y), self.numbers))

    def is_told(self, X: FloatArray, Y: FloatArray, most: float = 2.0) -> BoolArray:
        """Tell which answers ``Y (n, k)`` behind a head err as typical ones do, shape (n,).

        Where all answers are taken to have one error, as on lines, others say nothing: next to an
        end of its range an answer errs by orders of magnitude more.

        Parameters
        ----------
        most : float
            Typical errors that one may have.
        """
        seen = np.asarray(np.isfinite(Y).all(axis=1))
        if self.errs_inside and self.link.has_head:
            typical = np.outer(self.growth(X) / np.sqrt(2.0), self.errors)
            seen &= (self.rounding(Y) <= most * typical).all(axis=1)
        return seen

    @property
    def answers(self) -> dict[str, Any]:
        """What an account says of the answers.

        ``law``; ``step``, the distance of neighbouring numbers at a typical answer; ``sigma``, its
        standard error, that of a logit where those are taken; ``by_batch``, by how much
        answers to one row differ beside other rows at most, None where they differ anyway.  All
        are those of the worst output, and in its units.
        """
        size = self.sizes if self.link.has_head else np.sqrt(2.0) * self.scale
        grid, is_rounded = self.numbers.grid, self.law == "rounded"
        step = self.numbers.eps * size if grid is None else grid.spacing(size)
        apart = self.repeat_difference * float(self.scale.max())
        return {
            "law": "labels" if self.of_labels else f"{self.numbers}" if is_rounded else self.law,
            "step": float(step.max()),
            "sigma": float(self.errors.max()),
            "by_batch": apart if self.is_deterministic else None,
        }

    @property
    def differs_by_answer(self) -> bool:
        """Whether what is behind a link errs by what the answers themselves do, each by its own."""
        is_rounded = self.law == "rounded" and self.numbers.grid is not None
        return self.link.has_head and (is_rounded or self.drawn_anew is not None)

    @property
    def compares_answers(self) -> bool:
        """Whether networks are held against the answers themselves, by their heads.

        Where answers are coarse, what is behind a link has no error of one size; and what is
        clipped answers its caps.
        """
        return self.differs_by_answer or self.link.clips

    @property
    def of_answers(self) -> "NoiseFloor":
        """The floor of the answers themselves where those are compared; else this one."""
        if not self.differs_by_answer:
            return replace(self, link=NONE) if self.link.clips else self
        if self.drawn_anew is None:
            sizes = np.where(self.sizes > 0.0, self.sizes, 1.0)
            nu, own = self.numbers.error(sizes) / sizes, np.zeros(len(sizes))
            return replace(self, nu=nu, scale=sizes / np.sqrt(2.0), spread=own, link=NONE)
        n = len(self.drawn_anew)
        return replace(
            self,
            nu=self.drawn_anew * np.sqrt(2.0),
            scale=np.full(n, 0.5),
            spread=np.zeros(n),
            link=NONE,
            are_shares=True,
            drawn_anew=None,
        )

    def _of_heads(self, P: FloatArray) -> FloatArray:
        """Standard errors of answers ``P``, same shape."""
        if self.drawn_anew is not None:
            return np.broadcast_to(self.drawn_anew, P.shape)
        return self.numbers.error(P)

    @staticmethod
    def growth(X: FloatArray) -> FloatArray:
        """How terms grow with the radius, ``sqrt(1 + |x|^2 / d)`` of each row, (..., d) -> (...).

        Rounding grows as they do: it is relative to the terms that are summed.
        """
        return growth_of(X)

    @property
    def coarseness(self) -> float:
        """Largest error of an answer over the variation of its output.

        A constant that hides the variation makes an answer coarse, however many digits
        it has.
        """
        return float(self._coarse.max(initial=0.0))

    @property
    def typical_coarseness(self) -> float:
        """The same of half of the outputs: one that hardly varies hides no kink of the others."""
        return float(np.median(self._coarse)) if len(self._coarse) else 0.0

    @property
    def _coarse(self) -> FloatArray:
        varies = self.spread > 0
        return np.asarray((self.nu * self.scale)[varies] / self.spread[varies])

    @property
    def is_exact(self) -> bool:
        """Whether answers are precise enough for derivatives by differences.

        Those have half of their digits: with a floor over 1e-10, fewer than five.
        """
        return self.law == "float64" and bool(self.nu.max() <= 1e-10)

    @property
    def unit(self) -> FloatArray:
        """What to divide each output by: its scale, or 1 where it is always 0, shape (k,)."""
        return np.where(self.scale > 0, self.scale, 1.0)

    @property
    def relative(self) -> float:
        """Standard error of an answer in its output's unit, of the worst output.

        It is that of a unit's rounding where every answer was 0, which says nothing of others.
        """
        share = float((self.nu * self.scale / self.unit).max())
        return share or float(np.finfo(np.float64).eps)

    @property
    def overall(self) -> float:
        """Standard error of an answer relative to its size, all outputs together."""
        return float(np.linalg.norm(self.nu * self.scale) / np.linalg.norm(self.scale))

    @property
    def errors(self) -> FloatArray:
        """Standard errors of answers at N(0, I), typical ones, shape (k,)."""
        # |x|^2 = d on N(0, I), so the terms of an answer are sqrt(2) times the scale.
        return np.asarray(self.nu * self.scale * np.sqrt(2.0))

    def varies(self, spread: FloatArray, ulps: float = 4.0) -> BoolArray:
        """Tell which outputs of standard deviation ``spread (k,)`` are no constants.

        A constant may vary by ``ulps`` units in the last place.
        """
        ulp = np.finfo(np.float64).eps * self.scale
        return np.asarray(spread > ulps * ulp)

    def has_all_digits(self, spread: FloatArray, least: float = 3200.0) -> BoolArray:
        """Tell which outputs of standard deviation ``spread (k,)`` the exact method can take.

        A constant that hides the variation takes its digits: of one that varies by less than
        ``least`` times its error, 32 errors, the tolerance of what is exact, are a hundredth of
        all that varies.
        """
        hidden = self.varies(spread) & (spread < least * self.errors)
        return np.asarray(~hidden & self.is_exact)

    @property
    def is_smooth(self) -> bool:
        """Whether the target is no piecewise affine function.

        Half of the places curving is a smooth function; a quarter may be kinks.
        """
        return self.curved >= 0.5

    @property
    def is_deterministic(self) -> bool:
        """Whether repeated rows got the same answer up to rounding."""
        return self.law != "random"

    @property
    def errs_inside(self) -> bool:
        """Whether the target computes in few digits, so that its errors are an estimate."""
        return self.law in {"float32", "half-precision"}

    @property
    def kind(self) -> str:
        """What the answers are, in words that follow "the answers are"."""
        is_stepped = self.law == "float32" and are_steps(float(self.nu.max()), self.numbers.eps)
        steps = "in steps, as of a quantised network" if is_stepped else ""
        if self.numbers.grid is None or self.law not in {"rounded", "float32"}:
            return f"{self.law} numbers {steps}" if steps else self.law
        sums = "float32 sums " if self.law == "float32" else ""
        return f"{sums}rounded to {self.numbers.grid}{', ' if steps else ''}{steps}"

    @property
    def half_digits(self) -> float:
        """The square root of the floor: half of the digits that an answer has."""
        return float(np.sqrt(self.nu.max()))

    @property
    def faint(self) -> float:
        """What is smaller than this share of an answer may be left out.

        A hundredth of half the digits: it stays under the tolerance of a certificate, and drowns
        in the errors of what is larger, whose derivatives have half of the digits.
        """
        return self.half_digits / 100.0

    @property
    def faint_slope(self) -> float:
        """A slope along a line, whose direction has norm sqrt(d), that may be left out."""
        return self.faint * float(np.linalg.norm(self.scale))


def rounding_behind(link: Link, P: FloatArray, numbers: Numbers) -> FloatArray:
    """What rounding of answers ``P (n, K)`` makes of what is behind a link, shape (n, k).

    A number keeps its own digits next to 0, if it was not computed as a difference.
    """
    if not link.has_head:
        return rounding_of(numbers, P)
    U = np.clip(P / link.scale, link.low, link.high)
    keeps = (link.form.low == 0.0) & (np.asarray(link.low) < SMALLEST_DIFFERENCE)
    sizes = np.where(keeps | np.isinf(link.form.low), np.abs(U), np.maximum(np.abs(U), 1.0))
    return link.errors(link.scale * U, rounding_of(numbers, link.scale * sizes))


def are_steps(error: float, rounding: float, many: float = 1000.0) -> bool:
    """Whether errors are none of rounding, but of steps inside.

    Parameters
    ----------
    many : float
        Of ``many`` roundings: those of a sum of n terms grow with sqrt(n), and no layer adds up a
        million.
    """
    return error > many * rounding
