"""CKM21, Algorithms 1 to 4, as printed: slow, plain, and sharing no code with the recovery.

The bounds (14), the distribution of Definition 4.12 and the regression (19) are those of
``revelu.numerics.relu_features``, which no method of revelu uses.

``Network`` here is the paper's: ``sum_i s_i relu(<w_i, x> - b_i)``, minus bias.  What differs
from print: the constants hidden in O(.) and the polynomial of Theorem 4.8 are arguments
(``r``, ``tau``, ``alpha``); i, j of Theorem 4.8 range over the m intervals, not over k; the
bias of a neuron is ``-(F(x) - <∇F(x), x>)`` differenced, where the intercept of Algorithm 1,
in t, also holds ``<w, x0>``; GetGradient asks d + 1 queries, its base point included; the
free index in (13) goes with τ as an argument; the coefficients are the real ones of
Lemma 3.21, which regression finds anyway, and not ±1.
"""

import numpy as np

from revelu.numerics.relu_features import (
    bounded_least_squares,
    draw_in_ball,
    features,
    may_be_neurons,
)

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
    neurons = []
    for i in range(len(affine)):
        for j in range(len(affine)):
            w, c = affine[i][0] - affine[j][0], affine[i][1] - affine[j][1]
            if i == j or np.linalg.norm(w) <= ATOL:
                continue
            if may_be_neurons(w[None], np.array([c]), *bounds)[0]:
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
    X = draw_in_ball(rng, n, d, np.sqrt(d) + 3.0)
    W, b = np.array([w for w, _ in neurons]), -np.array([b for _, b in neurons])
    y = np.array([f(x) for x in X])
    v = bounded_least_squares(features(W, b, X), y, np.sqrt(tau / r) + k * (R + B))
    return lambda x: features(W, b, x[None])[0] @ v, neurons
