"""What an answer owes to the rows beside it.

A product of matrices is summed in another order where a batch has more rows, and its last rows in
another than those before: the last digits of an answer depend on its batch, and so does its error.
Where rows are normalised or quantised together, the answer itself does.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import fdtri

from revelu.errors import DependsOnBatchError
from revelu.oracle.numbers import Numbers
from revelu.oracle.oracle import Oracle
from revelu.oracle.sentinels import Repeats
from revelu.oracle.stencils import Stencils
from revelu.types import FloatArray

# The law of answers that depend on the rows beside them.
BY_BATCH = "by batch"

Batch = tuple[FloatArray, FloatArray]
"""Rows (n, d) that were asked together, and their answers (n, k)."""


@dataclass(frozen=True)
class Witnesses:
    """Rows that are asked in several batches, and what their answers say of these.

    Attributes
    ----------
    oracle : Oracle
    X : ndarray, shape (n, d)
    growth : ndarray, shape (n,)
        How terms grow with the radius of each.
    Ys : tuple of ndarray, shape (n, k)
        Their answers by batch, as answered.
    numbers : Numbers
        What those are.
    repeats : Repeats
        How far rounding brings two answers to one row apart.
    same : float
        A batch repeats its answers where they differ by less than this share of what another
        batch makes.  Noise drawn anew differs so little at each of eight rows once in a thousand;
        a service that answers by one of two models repeats itself half of the time.
    false_alarm : float
        Probability that answers whose errors are of one size seem to err by more in a batch.
    """

    oracle: Oracle
    X: FloatArray
    growth: FloatArray
    Ys: tuple[FloatArray, ...]
    numbers: Numbers
    repeats: Repeats
    same: float = 0.25
    false_alarm: float = 1e-3

    def depend_on_batch(self, size: FloatArray, batches: Iterable[Batch]) -> bool:
        """Whether the last two batches differ by more than rounding, and repeat their answers.

        Parameters
        ----------
        size : ndarray, shape (k,)
            Root mean square of answers.
        batches : iterable of (X, Y)
            Some that the last consists of, to be asked again.

        Raises
        ------
        DependsOnBatchError
            If they differ by more than the rounding of float32 numbers, of which float64 ones
            may be made.
        """
        d, (before, last) = self.oracle.dim_in, self.Ys[-2:]
        lifted = np.abs(last - before) / self.growth[:, None]
        apart = float((lifted / np.where(size > 0, size, 1.0)).max())
        limit, single = (self.repeats.rounding(n, d) for n in (self.numbers, Numbers("float32")))
        differ = apart > limit
        if self.numbers.grid is not None:
            differ = self.repeats.leave_grid(self.numbers.grid, before, last)
        is_alone = self.oracle.batch_rows == 1
        absolute = float(np.abs(last - before).max())
        if not differ or is_alone or not self._repeat(batches, absolute):
            return False
        if apart > max(limit, single):
            error = DependsOnBatchError(
                f"a row's answer depends on its batch: beside other rows {self.oracle.name} "
                f"answers otherwise, by up to {apart:.2g} of its size, and beside the same ones "
                "as before; ask for one row at a time (--batch 1, or batch=1 of open_oracle), or "
                "have a model in its evaluation mode, with fixed ranges where it is quantised"
            )
            error.apart = absolute
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

    def ask_beside(self, X: FloatArray) -> tuple[FloatArray, "Witnesses"]:
        """Ask one batch of these rows and of others, and each of these alone, in one round.

        They are the first of it, the last, and evenly in between.

        Returns
        -------
        ndarray, shape (len(X), k)
            The answers at ``X``, as answered.
        Witnesses
            With their answers alone, and as the last those in the large batch.
        """
        n = len(X) + len(self.X)
        is_witness = np.zeros(n, dtype=bool)
        is_witness[np.linspace(0, n - 1, len(self.X)).round().astype(int)] = True
        rows = np.empty((n, X.shape[1]))
        rows[is_witness], rows[~is_witness] = self.X, X
        oracle = self.oracle
        with oracle.phase("noise"), oracle.as_answered(), oracle.round():
            Y = oracle(rows)
            alone = np.vstack([oracle(x) for x in self.X[:, None]])
        return Y[~is_witness], replace(self, Ys=(*self.Ys, alone, Y[is_witness]))

    def apart(self) -> list[FloatArray]:
        """Lifted answers in each batch but the last less those in the last, (n, k).

        Of the log-ratios that the oracle takes, as far as they are finite.
        """
        Ys = [self.oracle.as_taken(Y) for Y in self.Ys]
        finite = np.isfinite(Ys).all(axis=(0, 2))
        return [(Y - Ys[-1])[finite] / self.growth[finite, None] for Y in Ys[:-1]]

    def factor(self, sigma: FloatArray, n_free: int) -> float:
        """By how much answers err more in the worst of the batches than in the last.

        Where both err independently, the mean square of what they lie apart is the sum of those
        of their errors.

        Parameters
        ----------
        sigma : ndarray, shape (k,)
            Standard error of a lifted answer in the last, of ``n_free`` degrees of freedom.
        """
        errs, largest = sigma > 0.0, 1.0
        for differences in self.apart():
            if not errs.any() or not len(differences):
                continue
            # The outputs of one row err by what the same neurons do: a row counts once.
            ratio = float(((differences[:, errs] / sigma[errs]) ** 2).mean())
            if ratio > 2.0 * fdtri(len(differences), n_free, 1.0 - self.false_alarm):
                largest = max(largest, ratio - 1.0)
        return float(np.sqrt(largest))


@dataclass(frozen=True)
class More:
    """Answers on more stencils; none where the budget does not allow it.

    Attributes
    ----------
    Y, lifted : ndarray, shape (n_stencils, n_points, k)
    seen : Witnesses or None
        Asked in the same batch, and in others.
    """

    Y: FloatArray
    lifted: FloatArray
    seen: Witnesses | None

    def error(self, stencils: Stencils, otherwise: FloatArray) -> FloatArray:
        """Standard error of a lifted answer by output, in the batches in which they err most.

        Without answers that of ``otherwise``, lifted ones of other stencils.
        """
        lifted = self.lifted if len(self.lifted) else otherwise
        measured = stencils.pooled_noise(lifted)
        n_free = len(lifted) * stencils.n_free
        return measured if self.seen is None else measured * self.seen.factor(measured, n_free)

    def largest_difference(self, unit: FloatArray) -> float:
        """How far lifted answers to one row lie apart at most, in units ``(k,)``."""
        apart = [] if self.seen is None else self.seen.apart()
        return max((float(np.abs(A / unit).max(initial=0.0)) for A in apart), default=0.0)


def ask_more(
    oracle: Oracle, more: Stencils, rng: np.random.Generator, seen: Witnesses | None
) -> More:
    """Answers on more stencils, in one batch with rows that were asked before.

    Those are given where answers are computed in few digits: then no batch is larger from now on.

    Raises
    ------
    DependsOnBatchError
        If a row is answered otherwise alone, by more than rounding.
    """
    X = more.inputs(rng, oracle.dim_in, oracle.box)
    if not oracle.affords(len(X) + (0 if seen is None else 2 * len(seen.X))):
        nothing = np.empty((0, more.n_points, oracle.dim_out))
        if seen is not None:
            oracle.batch_rows = min(oracle.batch_rows, len(seen.X) * more.n_points)
        return More(nothing, nothing, None)
    growth = more.growth(X, oracle.box)[:, None]
    if seen is None:
        with oracle.phase("noise"):
            Y = oracle(X)
    else:
        answered, seen = seen.ask_beside(X)
        alone = zip(seen.X[:, None], seen.Ys[-2][:, None], strict=True)
        seen.depend_on_batch(root_mean_square(answered / growth), alone)
        oracle.batch_rows = min(oracle.batch_rows, len(X) + len(seen.X))
        Y = oracle.as_taken(answered)
    lifted = more.grouped(Y / growth)
    alive = np.isfinite(lifted).all(axis=(1, 2))
    return More(more.grouped(Y)[alive], lifted[alive], seen)


def root_mean_square(Y: FloatArray) -> FloatArray:
    """Root mean square by output, (n, k) -> (k,)."""
    return np.asarray(np.sqrt((Y**2).mean(axis=0)))
