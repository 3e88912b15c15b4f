"""What an answer owes to the rows beside it.

A product of matrices is summed in another order where a batch has more rows, and its last rows in
another than those before: the last digits of an answer depend on its batch, and so does its error.
Where rows are normalised or quantised together, the answer itself does.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtri

from revelu.errors import DependsOnBatchError
from revelu.oracle.numbers import Numbers
from revelu.oracle.oracle import Oracle
from revelu.oracle.sentinels import Repeats
from revelu.oracle.stencils import Stencils
from revelu.types import FloatArray, IntArray

# The law of answers that depend on the rows beside them.
BY_BATCH = "by batch"

Batch = tuple[FloatArray, FloatArray]
"""Rows (n, d) that were asked together, and their answers (n, k)."""


@dataclass(frozen=True)
class Company:
    """Compares answers to the same rows beside others.

    Attributes
    ----------
    oracle : Oracle
    numbers : Numbers
        What it answers.
    repeats : Repeats
        How far rounding brings two answers to one row apart.
    n_alone : int
        How many rows are asked alone: one a request.
    same : float
        A batch repeats its answers where they differ by less than this share of what another
        batch makes.  Noise drawn anew differs so little at each of eight rows once in a thousand;
        a service that answers by one of two models repeats itself half of the time.
    false_alarm : float
        Probability that answers whose errors are of one size seem to err by more in a batch.
    """

    oracle: Oracle
    numbers: Numbers
    repeats: Repeats
    n_alone: int = 8
    same: float = 0.25
    false_alarm: float = 1e-2

    def decides(
        self,
        answers: tuple[FloatArray, FloatArray],
        growth: FloatArray,
        size: FloatArray,
        batches: Iterable[Batch],
    ) -> bool:
        """Whether two batches answer the same rows by more than rounding apart, and repeat that.

        Parameters
        ----------
        answers : pair of ndarray, shape (n, k)
            Of the rows in the one and in the other, as answered.
        growth : ndarray, shape (n,)
            How terms grow with the radius of each.
        size : ndarray, shape (k,)
            Root mean square of lifted answers.
        batches : iterable of (X, Y)
            What the other consists of, to be asked again.

        Raises
        ------
        DependsOnBatchError
            If they lie further apart than the rounding of float32 numbers, of which float64 ones
            may be made, brings them.
        """
        (first, second), d = answers, self.oracle.dim_in
        apart = np.abs(second - first)
        # Terms are as large as their sum, which may be larger than others grow, as exponentials.
        sizes = np.maximum(growth[:, None] * np.where(size > 0, size, 1.0), np.abs(first))
        share = float((apart / sizes).max())
        limit, single = (self.repeats.rounding(n, d) for n in (self.numbers, Numbers("float32")))
        differ = share > limit
        if self.numbers.grid is not None:
            differ = self.repeats.leave_grid(self.numbers.grid, first, second)
        is_alone = self.oracle.batch_rows == 1
        if not differ or is_alone or not self._repeat(batches, float(apart.max())):
            return False
        if share > max(limit, single):
            error = DependsOnBatchError(
                f"a row's answer depends on its batch: beside other rows {self.oracle.name} "
                f"answers otherwise, by up to {share:.2g} of its size, and beside the same ones "
                "as before; ask for one row at a time (--batch 1, or batch=1 of open_oracle), or "
                "have a model in its evaluation mode, with fixed ranges where it is quantised"
            )
            error.apart = float(apart.max())
            raise error
        return True

    def _repeat(self, batches: Iterable[Batch], apart: float) -> bool:
        """Ask batches again; one that is answered otherwise, or is not affordable, ends that."""
        for X, Y in batches:
            if not self.oracle.affords(len(X)):
                return False
            with self.oracle.phase("noise"), self.oracle.as_answered():
                if np.abs(self.oracle(X) - Y).max() > self.same * apart:
                    return False
        return True

    def factor(self, sigma: FloatArray, apart: Iterable["Apart"], n_free: int) -> float:
        """By how much answers err more in the worst of some batches than in one.

        Where both err independently, the mean square of what they lie apart is the sum of those
        of their errors.

        Parameters
        ----------
        sigma : ndarray, shape (k,)
            Standard error of a lifted answer in the one, of ``n_free`` degrees of freedom.
        apart : iterable of Apart
            How the same rows are answered in the others.
        """
        errs, largest = sigma > 0.0, 1.0
        for seen in apart:
            if not errs.any() or not len(seen.differences):
                continue
            # Answers that are large err by more in any batch.
            own = np.maximum(sigma, seen.rounding)[:, errs]
            # The outputs of one row err by what the same neurons do: a row counts once.
            ratio = float(((seen.differences[:, errs] / own) ** 2).mean())
            if ratio > 2.0 * fdtri(len(seen.differences), n_free, 1.0 - self.false_alarm):
                largest = max(largest, ratio - 1.0)
        return float(np.sqrt(largest))


@dataclass(frozen=True)
class Apart:
    """Answers to the same rows in two batches.

    Attributes
    ----------
    differences : ndarray, shape (n, k)
        Of lifted answers.
    rounding : ndarray, shape (n, k)
        What the size of an answer alone makes it err by, lifted.
    """

    differences: FloatArray
    rounding: FloatArray


@dataclass(frozen=True)
class More:
    """Answers on more stencils, in one batch; none where the budget does not allow it.

    Attributes
    ----------
    Y, lifted : ndarray, shape (n_stencils, n_points, k)
    apart : tuple of Apart
        How some of these rows are answered beside a few others, and alone.
    """

    Y: FloatArray
    lifted: FloatArray
    apart: tuple[Apart, ...] = ()

    def error(self, stencils: Stencils, otherwise: FloatArray, company: Company) -> FloatArray:
        """Standard error of a lifted answer by output, in the batches in which they err most.

        Without answers that of ``otherwise``, lifted ones of other stencils.
        """
        lifted = self.lifted if len(self.lifted) else otherwise
        measured = stencils.pooled_noise(lifted)
        return measured * company.factor(measured, self.apart, len(lifted) * stencils.n_free)

    def largest_difference(self, unit: FloatArray) -> float:
        """How far lifted answers to one row lie apart at most, in units ``(k,)``."""
        differences = (np.abs(seen.differences / unit) for seen in self.apart)
        return max((float(A.max(initial=0.0)) for A in differences), default=0.0)


def ask_more(
    oracle: Oracle, more: Stencils, rng: np.random.Generator, company: Company | None
) -> More:
    """Ask more stencils, in one batch.

    Where answers are computed in few digits ``company`` is given: then a row of each stencil is
    asked in a small batch, too, and some of these alone.  They lie in the first place of the
    large batch, in the last and everywhere between.  From then on no batch is larger than that
    one, or, where the budget has no room for it, than the first was.

    Raises
    ------
    DependsOnBatchError
        If a row is answered otherwise alone, by more than rounding.
    """
    X = more.inputs(rng, oracle.dim_in, oracle.box)
    few, lone = np.empty(0, dtype=int), np.empty(0, dtype=int)
    if company is not None:
        n = len(more.radii)
        few = np.arange(n) * more.n_points + _spread(n, more.n_points)
        lone = few[_spread(company.n_alone, n)]
        if not oracle.affords(len(X) + len(few) + len(lone)):
            oracle.batch_rows = min(oracle.batch_rows, len(Stencils().radii) * more.n_points)
    if not oracle.affords(len(X) + len(few) + len(lone)):
        nothing = np.empty((0, more.n_points, oracle.dim_out))
        return More(nothing, nothing)
    growth, batches = more.growth(X, oracle.box)[:, None], [few, *lone[:, None]]
    with oracle.phase("noise"), oracle.as_answered(), oracle.round():
        answered = oracle(X)
        others = [oracle(X[rows]) for rows in batches if len(rows)]
    Y, lifted_apart = oracle.as_taken(answered), []
    if company is not None:
        oracle.batch_rows = min(oracle.batch_rows, len(X))
        of_few, of_lone = others[0], np.vstack(others[1:])
        alone = zip(X[lone, None], of_lone[:, None], strict=True)
        size = root_mean_square(answered / growth)
        company.decides((answered[lone], of_lone), growth[lone, 0], size, alone)
        for rows, Z in ((few, of_few), (lone, of_lone)):
            errors = rounding_of(company.numbers, Y[rows]) / growth[rows]
            lifted_apart.append(_apart(Y[rows], oracle.as_taken(Z), growth[rows], errors))
    lifted = more.grouped(Y / growth)
    alive = np.isfinite(lifted).all(axis=(1, 2))
    return More(more.grouped(Y)[alive], lifted[alive], tuple(lifted_apart))


def _spread(n: int, among: int) -> IntArray:
    """``n`` places of 0 to ``among - 1``, the first, the last and evenly between."""
    return np.linspace(0, among - 1, n).round().astype(int)


def _apart(Y: FloatArray, Z: FloatArray, growth: FloatArray, errors: FloatArray) -> Apart:
    """How answers ``Y`` and ``Z`` (n, k) lie apart where both are finite."""
    finite = (np.isfinite(Y) & np.isfinite(Z)).all(axis=1)
    return Apart((Z[finite] - Y[finite]) / growth[finite], errors[finite])


def rounding_of(numbers: Numbers, Y: FloatArray, share: float = 0.7) -> FloatArray:
    """What answers of that size err by where they are computed in few digits, same shape.

    The terms that are summed are no smaller than the sum.  Rounding errs by 0.2 of a unit in the
    last place, and by less of partial sums: those of 16 terms that grow evenly by 0.5 in all, and
    those of two layers by 0.7.

    Parameters
    ----------
    share : float
        Standard error in units in the last place.
    """
    return np.asarray(share * numbers.eps * np.abs(Y))


def root_mean_square(Y: FloatArray) -> FloatArray:
    """Root mean square by output, (n, k) -> (k,)."""
    return np.asarray(np.sqrt((Y**2).mean(axis=0)))
