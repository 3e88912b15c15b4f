"""CKM21, Algorithms 1 to 4, as printed: slow, plain, and sharing no code with the recovery.

``Network`` here is the paper's: ``sum_i s_i relu(<w_i, x> - b_i)``, minus bias.  What differs
from print: the constants hidden in O(.) and the polynomial of Theorem 4.8 are arguments
(``r``, ``tau``, ``alpha``, ``radius``); i, j of Theorem 4.8 range over the m intervals, not over
k; the bias of a neuron is ``-(F(x) - <∇F(x), x>)`` differenced, where the intercept of Algorithm
1, in t, also holds ``<w, x0>``; GetGradient asks d + 1 queries, its base point included; the
free index in (13) goes with τ as an argument; the coefficients are the real ones of
Lemma 3.21, which regression finds anyway, and not ±1.
"""

import numpy as np
from scipy.optimize import brentq

ATOL = 1e-6


def get_bias(f, line, interval):
    """Algorithm 1, GETBIAS: the intercept of the line's piece that holds the interval."""
    x0, v = line
    a, b = interval
    t_mid = (a + b) / 2
    y0 = f(x0 + t_mid * v)
    s = (f(x0 + b * v) - f(x0 + a * v)) / (b - a)
    return y0 - s * t_mid


def get_gradient(f, x, alpha, rng):
    """Algorithm 2, GETGRADIENT: by d random unit directions."""
    d = len(x)
    Z = rng.standard_normal((d, d))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    fx = f(x)
    v = np.array([(f(x + alpha * z) - fx) / alpha for z in Z])
    return np.linalg.solve(Z, v)


def get_neurons(f, d, r, tau, alpha, bounds, rng):
    """Algorithm 3, GETNEURONS: differences of gradients at midpoints, one pair a neuron.

    ``bounds`` are the two of (14).
    """
    x0 = rng.standard_normal(d)
    v = rng.standard_normal(d)
    v /= np.linalg.norm(v)
    edges = np.arange(-tau, tau, r)
    affine = []
    for a in edges:
        x = x0 + (a + r / 2) * v
        gradient = get_gradient(f, x, alpha, rng)
        t_intercept = get_bias(f, (x0, v), (a, a + r))
        # In x: F = <g, x> + c on the piece, and on the line c = intercept - <g, x0>.
        affine.append((gradient, t_intercept - gradient @ x0))
    longest, largest_bias = bounds
    neurons = []
    for i in range(len(affine)):
        for j in range(len(affine)):
            w, c = affine[i][0] - affine[j][0], affine[i][1] - affine[j][1]
            if i == j or np.linalg.norm(w) <= ATOL:
                continue
            if np.linalg.norm(w) <= longest and abs(c) <= largest_bias:
                neurons.append((w, -c))
    return _distinct(neurons)


def _distinct(neurons):
    """Pairs of intervals on the same two pieces give the same neuron again and again."""
    kept = []
    for w, b in neurons:
        row = np.append(w, b)
        if all(np.linalg.norm(row - other) > 1e-4 for other in kept):
            kept.append(row)
    return [(row[:-1], row[-1]) for row in kept]


def learn_from_queries(f, d, r, tau, alpha, scales, n, rng):
    """Algorithm 4, LEARNFROMQUERIES: a function close to ``f``, and the neurons it uses.

    ``scales`` are k, R, B and the slack of (14) in the bias.
    """
    k, R, B, slack = scales
    neurons = get_neurons(f, d, r, tau, alpha, (k * R, slack + k * B), rng)
    X = draw(n, d, np.sqrt(d) + 3.0, rng)
    Z = np.array([features(neurons, x) for x in X])
    y = np.array([f(x) for x in X])
    v = regress(Z, y, np.sqrt(tau / r) + k * (R + B))
    return lambda x: features(neurons, x) @ v, neurons


def features(neurons, x):
    """Definition 4.12: what the neurons compute, the entries of x, and 1."""
    return np.array([*(max(w @ x - b, 0.0) for w, b in neurons), *x, 1.0])


def draw(n, d, radius, rng):
    """Inputs of the distribution D of Definition 4.12: N(0, I), given ``|x| <= radius``."""
    X = []
    while len(X) < n:
        x = rng.standard_normal(d)
        if np.linalg.norm(x) <= radius:
            X.append(x)
    return np.array(X)


def regress(Z, y, bound):
    """The least squares of (19): the shortest solution of ``Z v = y`` with ``|v| <= bound``."""
    v = np.linalg.lstsq(Z, y, rcond=1e-12)[0]
    if np.linalg.norm(v) <= bound:
        return v

    def ridge(penalty):
        return np.linalg.solve(Z.T @ Z + penalty * np.eye(Z.shape[1]), Z.T @ y)

    # The norm of the ridge solution falls as the penalty grows, and is at most |Z^T y| / penalty.
    most = np.linalg.norm(Z.T @ y) / bound
    penalty = brentq(lambda p: np.linalg.norm(ridge(p)) - bound, most * 1e-15, most, xtol=1e-300)
    return ridge(penalty)
