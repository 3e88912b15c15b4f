"""Polynomials of a layer's outputs: what stands above it in GP18.

``P(X) = sum_r c_r prod_j X_j^{r_j}``, a term being its coefficient and its exponents.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import comb

import numpy as np

from revelu.types import FloatArray

Exponents = tuple[int, ...]


@dataclass(frozen=True)
class Polynomial:
    """A polynomial in k variables.

    Parameters
    ----------
    terms : mapping of tuple of int to float
        Exponents, one for each variable, to coefficients.

    Examples
    --------
    >>> P = Polynomial({(0, 0): 1.0, (1, 0): 2.0, (1, 1): -3.0})
    >>> P(np.array([[1.0, 2.0]])).tolist()
    [-3.0]
    """

    terms: Mapping[Exponents, float]

    @property
    def n_variables(self) -> int:
        """How many variables there are."""
        return len(next(iter(self.terms)))

    def __call__(self, X: FloatArray) -> FloatArray:
        """Evaluate, (n, k) -> (n,)."""
        total = np.zeros(len(X))
        for exponents, c in self.terms.items():
            total += c * np.prod([X[:, j] ** r for j, r in enumerate(exponents) if r], axis=0)
        return total

    def part(self, n_variables: int) -> "Polynomial":
        """The terms in which at most so many variables occur; 1: ``f_uni``, and ``f_lin``.

        With one variable this is Assumption 4's sum of the ``q_i`` (GP18, B.7), which is the
        linear part where no degree in one variable exceeds 1.
        """
        kept = {r: c for r, c in self.terms.items() if np.count_nonzero(r) <= n_variables}
        return Polynomial(kept or {(0,) * self.n_variables: 0.0})

    def shifted(self, mu: float) -> "Polynomial":
        """``P(mu (X + 1))``, whose linear terms Corollary 1 and Theorem 8 ask for."""
        terms: dict[Exponents, float] = {}
        for r, c in self.terms.items():
            for lower in product(*(range(e + 1) for e in r)):
                ways = np.prod([comb(e, j) for e, j in zip(r, lower, strict=True)])
                terms[lower] = terms.get(lower, 0.0) + c * mu ** sum(r) * float(ways)
        return Polynomial(terms)

    def linear(self) -> FloatArray:
        """Coefficients of the linear terms, shape (k,)."""
        k = self.n_variables
        return np.array(
            [self.terms.get(tuple(int(i == j) for i in range(k)), 0.0) for j in range(k)]
        )

    def largest_product(self) -> float:
        """Largest absolute coefficient of a term of two or more factors."""
        sizes = [abs(c) for r, c in self.terms.items() if sum(r) > 1]
        return max(sizes, default=0.0)
