"""What GP18 asks of the polynomial above a layer: how nearly linear it is."""

from itertools import product
from math import comb

import numpy as np
from scipy.stats import norm


def part(P, n_variables):
    """The terms in which at most so many variables occur; 1: ``f_uni``, and ``f_lin``.

    With one variable this is Assumption 4's sum of the ``q_i`` (B.7), which is the linear part
    where no degree in one variable exceeds 1.
    """
    kept = {r: c for r, c in P.terms.items() if np.count_nonzero(r) <= n_variables}
    n = len(next(iter(P.terms)))
    return type(P)(kept or {(0,) * n: 0.0})


def shifted(P, mu):
    """``P(mu (X + 1))``, whose linear terms Corollary 1 and Theorem 8 ask for."""
    terms = {}
    for r, c in P.terms.items():
        for lower in product(*(range(e + 1) for e in r)):
            ways = np.prod([comb(e, j) for e, j in zip(r, lower, strict=True)])
            terms[lower] = terms.get(lower, 0.0) + c * mu ** sum(r) * float(ways)
    return type(P)(terms)


def linear_coefficients(net):
    """Linear coefficients of ``P(mu (X + 1))`` over mu, mu = E[sgn(x - t)] (Corollary 1)."""
    mu = norm.sf(net.thresholds.mean())
    return shifted(net.polynomial, mu).linear() / mu


def nonlinearity(net, X):
    """``E|f - f_lin|`` over inputs (Lemma 2).

    With higher degrees in one variable ``f_lin`` is ``f_uni`` (B.7, Lemma 18).
    """
    U = net.units(X)
    return np.abs(net.polynomial(U) - part(net.polynomial, 1)(U)).mean()


def independence_ratio(U):
    """Largest ``E[X_i X_j] / min(E[X_i], E[X_j])`` of a cut's outputs (Appendix E).

    The outputs ``U (n, k)`` are not negative: of any layer, or of any cut through a network.
    The smaller the ratio, mu for pairs, the more linear is what is above the cut.
    """
    second = U.T @ U / len(U)
    means = U.mean(axis=0)
    ratios = second / np.minimum.outer(means, means)
    return ratios[~np.eye(len(means), dtype=bool)].max()
