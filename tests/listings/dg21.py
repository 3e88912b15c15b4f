"""DG21, Algorithms 1 to 6, as printed: slow, plain, and sharing no code with revelu.

What differs from print: equality of affine maps is up to ``ATOL``, since answers are
rounded; Algorithm 1's ``x_L`` starts at the left limit ``a``, which is what its line 3
makes of it anyway; line 6 of Algorithm 6 asks at the origin, any general point doing.
"""

import math

import numpy as np

ATOL = 1e-5


def affine(f, x, epsilon):
    """Algorithm 2, AFFINE: the affine map at an epsilon-general point."""
    d = len(x)
    w = np.array([(f(x + epsilon * e) - f(x)) / epsilon for e in np.eye(d)])
    b = f(x) - sum((f(x + epsilon * e) - f(x)) / epsilon * x[i] for i, e in enumerate(np.eye(d)))
    return w, b


def find_cp(delta, f, a):
    """Algorithm 1, FIND_CP: the leftmost critical point in (a, 1/delta), or None."""

    def line(t):
        w, b = affine(lambda x: f(x[0]), np.array([t]), delta**2)
        return np.array([w[0], b])

    def same(p, q):
        return np.abs(p - q).max() <= ATOL * (1 + np.abs(p).max())

    left, right = a, 1 / delta
    for _ in range(math.ceil(math.log2(2 / delta**2)) + 1):
        middle = (left + right) / 2
        if same(line(left), line(middle)):
            left = middle
        else:
            right = middle
    (w1, b1), (w2, b2) = line(left), line(right)
    if same(np.array([w1, b1]), np.array([w2, b2])):
        return None
    return (b2 - b1) / (w1 - w2)


def find_hp(f, delta, x):
    """Algorithm 3, FIND_HP: the hyperplane through a critical point, up to sign."""
    epsilon = (delta / 2) ** 2
    e1 = np.eye(len(x))[0]
    w1, b1 = affine(f, x + delta / 2 * e1, epsilon)
    w2, b2 = affine(f, x - delta / 2 * e1, epsilon)
    return w1 - w2, b1 - b2


def is_convex(f, delta, x):
    """Algorithm 4, IS_CONVEX."""
    e1 = np.eye(len(x))[0]
    return f(x + delta * e1) - f(x) > f(x) - f(x - delta * e1)


def is_general(f, epsilon, x):
    """Algorithm 5, IS_GENERAL."""
    e1 = np.eye(len(x))[0]
    return abs((f(x + epsilon * e1) - f(x)) - (f(x) - f(x - epsilon * e1))) <= ATOL * epsilon


def recover_depth_two(f, d, delta):
    """Algorithm 6: returns a function equal to ``f``, and the neurons."""
    e1 = np.eye(d)[0]
    points, a = [], -1 / delta + delta
    while (t := find_cp(delta, lambda s: f(s * e1), a)) is not None:
        points.append(t * e1)
        a = t + delta
    neurons = []
    for x in points:
        w, b = find_hp(f, delta, x)
        u = 1.0 if is_convex(f, delta, x) else -1.0
        # FIND_HP gives the jump of the gradient, u times the neuron's affine map.
        neurons.append((u, u * w, u * b))

    def known(x):
        return sum(u * max(w @ x + b, 0.0) for u, w, b in neurons)

    w0, b0 = affine(lambda x: f(x) - known(x), np.full(d, 0.123), delta)
    return (lambda x: w0 @ x + b0 + known(x)), neurons
