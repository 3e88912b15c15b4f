"""JWZ20, Algorithms 1 and 2, as printed: slow, plain, and sharing no code with revelu.

What differs from print, beside the errata marked below: ranks are by the experiments' rule,
1e-5 of the largest singular value; N and epsilon_0 are what float64 bears, for the
perturbations of line 5 of Algorithm 2 are all but parallel, and errors grow 2^N-fold.
"""

import math

import numpy as np

RANK_RULE = 1e-5


def gradient(M, g, epsilon, rng):
    """Lemma 3.2: n random directions, differences, a linear system."""
    n = len(g)  # erratum: the lemma draws g from N(0, I_k)
    u = rng.standard_normal((n, n))
    v = epsilon * u / (2 * np.linalg.norm(u, axis=1, keepdims=True))
    slopes = [(M(g + row) - M(g)) / np.linalg.norm(row) for row in v]
    return np.linalg.solve(v / np.linalg.norm(v, axis=1, keepdims=True), slopes)


def rank_of(rows):
    """The experiments' rule."""
    values = np.linalg.svd(rows, compute_uv=False)
    return int((values > RANK_RULE * values[0]).sum())


def span_non_adaptive(M, n, k, gamma, epsilon, rng):
    """Algorithm 1."""
    r = math.ceil(k * math.log(k) / gamma)
    z = []
    for _ in range(1, r + 1):  # erratum: printed as i = 0, ..., r
        g = rng.standard_normal(n)
        z.append(gradient(M, g, epsilon, rng))
    return np.linalg.svd(np.array(z))[2][: rank_of(np.array(z))]


def span_adaptive(M, n, k, N, epsilon_0, eta, rng):
    """Algorithm 2; M answers 0 or 1."""
    V = np.empty((0, n))
    for _ in range(1, k + 1):  # erratum: printed as i = 0, ..., k

        def M_V(x, V=V):  # noqa: N802 - the paper's name
            return M(x - V.T @ (V @ x))

        c = None
        while c is None:
            g = rng.standard_normal(n)  # line 3
            while M_V(g) != 1:
                g = rng.standard_normal(n)
            x = scaled_to_threshold(M_V, g, epsilon_0)  # line 4
            u = rng.standard_normal((n, n)) * 2.0**-N - x / np.linalg.norm(x)  # line 5
            c = crossings(M_V, x, u, 10 * epsilon_0 / eta)  # lines 6, 7
            # Erratum: line 7 goes back to line 5, which keeps x; the Gaussian is of line 3.
        y = np.linalg.solve(u, 1 / np.array(c))  # erratum: b_i = 1/c_i gives -grad
        y -= V.T @ (V @ y)
        V = np.vstack([V, y / np.linalg.norm(y)])
    return V


def scaled_to_threshold(M_V, g, epsilon_0):
    """Proposition 4.1: bisect the ray, then step outward by epsilon_0."""
    lo, hi = 0.0, 1.0
    for _ in range(60):
        middle = (lo + hi) / 2
        lo, hi = (lo, middle) if M_V(middle * g) == 1 else (middle, hi)
    return hi * g + epsilon_0 * g / np.linalg.norm(g)


def crossings(M_V, x, u, largest):
    """Line 6: how far along each u_i the threshold lies; None where line 7 restarts."""
    found = []
    for row in u:
        lo, hi = 0.0, largest
        if M_V(x + hi * row) == 1:
            return None
        for _ in range(60):
            middle = (lo + hi) / 2
            lo, hi = (middle, hi) if M_V(x + middle * row) == 1 else (lo, middle)
        found.append(hi)
    return found
