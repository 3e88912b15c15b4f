"""Hermite moments of samples: estimates of a function's coefficients, with their errors.

``E[f(x) He_alpha(x)]`` over all monomials ``alpha`` of one order are the entries of the
symmetric tensor of that order.  What is averaged is the residual of a control variate, a
quadratic whose moments are known: it has a tenth of the variance.  Sums are associative,
so that chunks of samples may be added anywhere, in any grouping.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations_with_replacement

import numpy as np

from revelu.numerics.quadratic import Quadratic, row_blocks, weighted_gram
from revelu.probe.streams import Chunk, load, work_through
from revelu.types import FloatArray, IntArray

# The highest order that the method for no more neurons than inputs reads.
ORDER = 4


@dataclass(frozen=True)
class Monomials:
    """The monomials of one order in m variables, and how they come from lower orders.

    ``He_alpha`` with ``alpha = beta i``, i the last variable: ``z_i He_beta - c He_gamma``,
    c being how often i occurs in beta, and gamma being beta with one i less.

    Attributes
    ----------
    variables : ndarray of int, shape (p, k)
        Ascending in each row.
    beta, gamma : ndarray of int, shape (p,)
        Indices among the monomials of orders k - 1 and k - 2.
    counts : ndarray, shape (p,)
    factorials : ndarray, shape (p,)
        ``alpha!``, the variance of ``He_alpha``.
    """

    variables: IntArray
    beta: IntArray
    gamma: IntArray
    counts: FloatArray
    factorials: FloatArray


@lru_cache(maxsize=64)
def monomials(m: int, k: int) -> Monomials:
    """Return the monomials of order ``k`` in ``m`` variables, in lexicographic order."""
    rows = list(combinations_with_replacement(range(m), k))
    if k == 0:
        zero, one = np.zeros(1, dtype=np.intp), np.ones(1)
        return Monomials(np.zeros((1, 0), dtype=np.intp), zero, zero, np.zeros(1), one)
    lower = {row: j for j, row in enumerate(combinations_with_replacement(range(m), k - 1))}
    lowest = {
        row: j for j, row in enumerate(combinations_with_replacement(range(m), max(k - 2, 0)))
    }
    beta = np.array([lower[row[:-1]] for row in rows], dtype=np.intp)
    counts = np.array([float(row[:-1].count(row[-1])) for row in rows])
    # Equal variables stand together at the end: beta without its last one.
    gamma = np.array(
        [lowest[row[:-2]] if row[:-1].count(row[-1]) else 0 for row in rows], dtype=np.intp
    )
    factorials = monomials(m, k - 1).factorials[beta] * (counts + 1.0)
    return Monomials(np.array(rows, dtype=np.intp).reshape(-1, k), beta, gamma, counts, factorials)


def hermite_features(Z: FloatArray, order: int) -> list[FloatArray]:
    """Evaluate all ``He_alpha`` up to an order, shapes (n, p_k).

    Parameters
    ----------
    Z : ndarray, shape (n, m)
    """
    features = [np.ones((len(Z), 1))]
    for k in range(1, order + 1):
        table = monomials(Z.shape[1], k)
        rows = Z[:, table.variables[:, -1]] * features[k - 1][:, table.beta]
        if k > 1:
            rows -= table.counts * features[k - 2][:, table.gamma]
        features.append(rows)
    return features


@dataclass(frozen=True)
class Moments:
    """Estimated Hermite coefficients in m coordinates.

    Attributes
    ----------
    m, n : int
        Variables; samples.
    values, errors : tuple of ndarray, shape (p_k,)
        For each order, by monomial: the estimate and its standard error.
    """

    m: int
    n: int
    values: tuple[FloatArray, ...]
    errors: tuple[FloatArray, ...]

    @classmethod
    def of_sums(
        cls, m: int, n: int, sums: FloatArray, order: int, exact: Sequence[FloatArray] = ()
    ) -> "Moments":
        """Estimate from :func:`hermite_sums` over n samples and what is known of each order."""
        mean, square = sums / max(n, 1)
        ends = np.cumsum(_sizes(m, order))[:-1]
        errors = np.sqrt(np.maximum(square - mean**2, 0.0) / max(n, 1))
        values = np.split(mean, ends)
        for k, known in enumerate(exact[: order + 1]):
            values[k] += known
        return cls(m, n, tuple(values), tuple(np.split(errors, ends)))

    def tensor(self, k: int) -> FloatArray:
        """The whole tensor of order ``k``, shape (m,) * k."""
        return self.values[k][_places(self.m, k)]


@lru_cache(maxsize=16)
def _places(m: int, k: int) -> IntArray:
    """For each entry of a symmetric tensor, its monomial."""
    if k == 0:
        return np.zeros((), dtype=np.intp)
    entries = np.sort(np.indices((m,) * k).reshape(k, -1), axis=0)
    strides = m ** np.arange(k)[::-1]
    codes = strides @ monomials(m, k).variables.T
    return np.searchsorted(codes, strides @ entries).reshape((m,) * k)


def _sizes(m: int, order: int) -> list[int]:
    """How many monomials there are of each order."""
    return [len(monomials(m, k).factorials) for k in range(order + 1)]


def hermite_sums(Z: FloatArray, v: FloatArray, order: int) -> FloatArray:
    """Sum ``v He_alpha(z)`` and its square over samples.

    Parameters
    ----------
    Z : ndarray, shape (n, m)
    v : ndarray, shape (n,)

    Returns
    -------
    ndarray, shape (2, p)
        By monomial, one order after another.
    """
    sizes = _sizes(Z.shape[1], order)
    total = np.zeros((2, sum(sizes)))
    # Features of the rows summed at a time take two million numbers at most.
    n_rows = int(np.clip(2_000_000 / max(sizes), 16, 4096))
    for rows in row_blocks(len(Z), n_rows):
        features, y = hermite_features(Z[rows], order), v[rows]
        total[0] += np.concatenate([y @ F for F in features])
        total[1] += np.concatenate([y**2 @ F**2 for F in features])
    return total


def estimate_moments(
    chunks: Iterable[Chunk],
    control: Quadratic,
    basis: FloatArray | None = None,
    order: int = ORDER,
    executor: Executor | None = None,
) -> Moments:
    """Estimate the coefficients of a function from samples of it on N(0, I).

    Parameters
    ----------
    control : Quadratic
        Near the function; any one leaves the estimate without bias.
    basis : ndarray, shape (m, d), optional
        Orthonormal rows: the coordinates of the tensors.
    executor : concurrent.futures.Executor, optional
        Where chunks are summed; the result is the same up to rounding.
    """
    known = control.coefficients()
    B = np.eye(len(control.v)) if basis is None else basis
    n, total = 0, np.zeros((2, sum(_sizes(len(B), order))))
    work = partial(_sum_chunk, control=control, basis=basis, order=order)
    for size, part in work_through(work, chunks, executor):
        n, total = n + size, total + part
    exact = [known[0], B @ known[1], (B @ known[2] @ B.T)[np.triu_indices(len(B))]]
    return Moments.of_sums(len(B), n, total, order, exact)


def _sum_chunk(
    chunk: Chunk, control: Quadratic, basis: FloatArray | None, order: int
) -> tuple[int, FloatArray]:
    X, y = load(chunk)
    parts = [
        hermite_sums(
            X[rows] if basis is None else X[rows] @ basis.T, y[rows] - control(X[rows]), order
        )
        for rows in row_blocks(len(y), 4096)
    ]
    return len(y), np.sum(parts, axis=0)


def estimate_second_moment(
    chunks: Iterable[Chunk], control: Quadratic, executor: Executor | None = None
) -> tuple[FloatArray, int]:
    """Estimate ``E[f(x) (x x' - I)]``, shape (d, d), in all coordinates; and count samples."""
    work = partial(_second_chunk, control=control)
    n, total = 0, np.zeros_like(control.M)
    for size, part in work_through(work, chunks, executor):
        n, total = n + size, total + part
    return control.coefficients()[2] + total / max(n, 1), n


def _second_chunk(chunk: Chunk, control: Quadratic) -> tuple[int, FloatArray]:
    X, y = load(chunk)
    total = np.zeros_like(control.M)
    for rows in row_blocks(len(y), 4096):
        rest = y[rows] - control(X[rows])
        total += weighted_gram(X[rows], rest)
        total[np.diag_indices_from(total)] -= rest.sum()
    return len(y), total
