"""Whether rounded answers were computed in few digits, too: then they err by more than by a step.

In come the first answers, which lie on a grid, and an oracle to ask more of; out comes the law
that they follow, with its error by output.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.oracle.company import Company, More, ask_more
from revelu.oracle.grid import half_precision
from revelu.oracle.numbers import Numbers
from revelu.oracle.stencils import Stencils
from revelu.types import FloatArray


@dataclass(frozen=True)
class FewDigits:
    """What rounded answers are, and what they err by."""

    law: str
    nu: FloatArray
    """Shape (k,).  As of the noise floor."""
    numbers: Numbers
    shown: FloatArray | None = None
    """Shape (k,).  Root mean square of the errors of lifted answers; None where rounding is all."""
    repeat_difference: float = 0.0


@dataclass(frozen=True)
class RoundedAnswers:
    """Answers on a grid, by stencil and point.

    Attributes
    ----------
    rng : numpy.random.Generator
        Draws where more is asked.
    answered : ndarray, shape (n, k)
    lifted : ndarray, shape (n_stencils, n_points, k)
        Those that are finite.
    near : ndarray, shape (n_near, n_points, k)
        Those of them at N(0, I).
    unit : ndarray, shape (k,)
        Sizes of the outputs.
    inside : float
        What was computed in few digits errs by more than this many times its own rounding: of
        twenty degrees of freedom one in a thousand is so large by chance.
    n_few : int
        Stencils of half-precision steps that tell whether numbers of fixed places may be sums of
        half-precision ones, ``4 n_few`` degrees of freedom: the answers of two of six networks
        6-4-1 have places in common.
    """

    company: Company
    stencils: Stencils
    rng: np.random.Generator
    answered: FloatArray
    lifted: FloatArray
    near: FloatArray
    unit: FloatArray
    inside: float = 1.5
    n_few: int = 5

    def found(self, rounding: FloatArray) -> FewDigits:
        """What they are, ``rounding (k,)`` being what the grid makes them err by."""
        numbers, grid = self.company.numbers, self.company.numbers.grid
        by_output = grid is not None and bool(grid.by_output)
        inside = _computed(self.stencils, self.answered, numbers, larger=self.inside)
        if self.company.oracle.link.has_head:
            return FewDigits("rounded", rounding, replace(numbers, inside=inside))
        half = self._half_precision(numbers, rounding)
        if half is not None:
            return self._in_half_precision(half, rounding)
        if numbers.is_partly_float32 or (inside and not by_output):
            return self._in_float32(numbers, rounding)
        return FewDigits("rounded", rounding, replace(numbers, inside=inside))

    def _half_precision(self, numbers: Numbers, rounding: FloatArray) -> Numbers | None:
        """The half-precision numbers that they are or may be sums of; None where they are not."""
        if numbers.is_half_precision:
            return numbers
        grid = numbers.grid
        if grid is None or grid.base != 2:
            return None
        held = (half for half in half_precision() if half.holds(self.answered).all())
        half = next(held, None)
        if half is None:
            return None
        few = replace(self.stencils.more_of_half_precision, radii=(1.0,) * self.n_few)
        lifted = ask_more(self.company.oracle, few, self.rng, None).lifted
        if not len(lifted):
            return None
        errs_inside = (few.pooled_noise(lifted) / self.unit > self.inside * rounding).any()
        return replace(numbers, grid=half) if errs_inside else None

    def _in_half_precision(self, numbers: Numbers, rounding: FloatArray) -> FewDigits:
        """They may be computed in such: inputs, and what is between the layers, round as well."""
        company = replace(self.company, numbers=numbers)
        more = ask_more(company.oracle, self.stencils.more_of_half_precision, self.rng, company)
        shown, apart = self._shown(more, self.lifted, company)
        measured = self.stencils.places * shown / self.unit
        if (measured <= self.inside * rounding).all():
            return FewDigits("rounded", rounding, self.company.numbers, shown, apart)
        nu = np.maximum(measured, rounding)
        return FewDigits("half-precision", nu, numbers, shown, apart)

    def _in_float32(self, numbers: Numbers, rounding: FloatArray) -> FewDigits:
        """They are sums in float32, which were rounded to a grid."""
        numbers = replace(numbers, law="float32")
        company = replace(self.company, numbers=numbers)
        more = ask_more(company.oracle, self.stencils.more, self.rng, company)
        shown, apart = self._shown(more, self.near, company)
        nu = np.maximum(self.stencils.places * shown / self.unit, rounding)
        law = "float32" if nu.max() > 0.1 * np.finfo(np.float32).eps else "float64"
        return FewDigits(law, nu, replace(numbers, law=law), shown, apart)

    def _shown(
        self, more: More, otherwise: FloatArray, company: Company
    ) -> tuple[FloatArray, float]:
        """What lifted answers err by, (k,), and how far those to one row lie apart, in units."""
        shown = more.error(self.stencils, otherwise, company)
        return shown, more.largest_difference(self.unit)


def _computed(
    stencils: Stencils,
    answered: FloatArray,
    numbers: Numbers,
    *,
    larger: float,
    fewest: int = 3,
    worst: float = 0.9,
) -> float:
    """Which share of an answer its own arithmetic errs by, where that shows beside rounding.

    Parameters
    ----------
    answered : ndarray, shape (n, k)
    larger : float
        The errors together, root mean square, in those of rounding.
    fewest : int
        At least this number of the places err by more.
    worst : float
        The share is the quantile of that order of those at the places that show it.

    Returns
    -------
    float
        0 where rounding explains the errors.
    """
    Y = stencils.grouped(answered)
    rounding = np.sqrt((numbers.error(Y) ** 2).mean(axis=1))
    scatter = stencils.scatter(Y)
    # Terms are larger farther out, and what rounds them.
    over = (scatter > larger * rounding).sum(axis=0) >= fewest
    near = stencils.is_near(np.ones(len(stencils.radii), dtype=np.bool_))
    Y, rounding, scatter = Y[near], rounding[near], scatter[near]
    ratio = scatter / np.maximum(rounding, np.finfo(np.float64).tiny)
    # A kink makes of a stencil what no error does, in all outputs.
    straight = ratio <= stencils.few_digits_ratio * np.maximum(np.median(ratio, axis=0), 1.0)
    kept = straight.all(axis=1)
    if not kept.any():
        return 0.0
    # One or two stencils may have a faint kink.
    shows = ((ratio[kept] ** 2).mean(axis=0) > larger**2) & over
    if not shows.any():
        return 0.0
    more, size = np.sqrt(np.maximum(scatter**2 - rounding**2, 0.0)), np.abs(Y).mean(axis=1)
    told = kept[:, None] & shows & (more > larger * rounding)
    # Answers next to saturation err by less, of which a mean would be.
    return float(np.quantile(more[told] / size[told], worst)) if told.any() else 0.0
