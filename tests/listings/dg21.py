"""DG21, Algorithms 1 to 7 and Theorems 1 to 3, as printed: slow, plain, and sharing no code
with revelu.

What differs from print: equality of affine maps is up to ``ATOL``, since answers are
rounded; Algorithm 1's ``x_L`` starts at the left limit ``a``, which is what its line 3
makes of it anyway; line 6 of Algorithm 6 asks at one fixed point, any general one doing.  In
the restricted case (section 3.4.1) Algorithms 3 and 4 step along the ray they found the point
on, as the proof of Theorem 2 does: their ``x - e1`` would leave the orthant.  Line 4 of
Algorithm 7 is misprinted: ``d(z, P) > R`` cannot hold for a ``z`` of ``P``; Lemma 11, which it
serves, has the distance to the other hyperplane.
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


def recover_restricted(f, d, delta):
    """Section 3.4.1, Theorem 2: Algorithm 6 from queries in the positive orthant alone.

    Returns a function equal to ``f`` there, and the neurons that change their state on one
    of the rays ``(0, 1/delta) e_i``.
    """
    neurons = []
    for e in np.eye(d):
        a = 0.0
        while (t := find_cp(delta, lambda s, e=e: f(s * e), a)) is not None:
            x, a = t * e, t + delta
            w1, b1 = affine(f, x + delta / 2 * e, (delta / 2) ** 2)
            w2, b2 = affine(f, x - delta / 2 * e, (delta / 2) ** 2)
            w, b = w1 - w2, b1 - b2
            convex = f(x + delta * e) - f(x) > f(x) - f(x - delta * e)
            u = 1.0 if convex else -1.0
            if not any(same_map(w, b, v, c) for _, v, c in neurons):
                neurons.append((u, u * w, u * b))

    def known(x):
        return sum(u * max(w @ x + b, 0.0) for u, w, b in neurons)

    w0, b0 = affine(lambda x: f(x) - known(x), np.full(d, 0.123), delta)
    return (lambda x: w0 @ x + b0 + known(x)), neurons


def same_map(w, b, v, c):
    """Whether two affine maps are one, up to sign."""
    first, second = np.append(w, b), np.append(v, c)
    apart = min(np.abs(first - second).max(), np.abs(first + second).max())
    return apart <= ATOL * np.abs(first).max()


def critical_hyperplanes(f, d, delta):
    """Section 3.5.1: the list L of pairs ``(x, (w, b))`` on the axis ``R e1``, |w| = 1."""
    e1 = np.eye(d)[0]
    pairs, a = [], -1 / delta + delta
    while (t := find_cp(delta, lambda s: f(s * e1), a)) is not None:
        w, b = find_hp(f, delta, t * e1)
        pairs.append((t * e1, (w / np.linalg.norm(w), b / np.linalg.norm(w))))
        a = t + delta
    return pairs


def printed_delta_prime(delta, d, m, q):
    """Algorithm 7, line 1: the largest delta' for ``q`` neurons and ``m`` pairs.

    It halves with every input and quarters with every neuron: 4-3-3-1 has about 1e-9, which
    float64 still resolves; 10-10-10-1 has 1e-17, which it does not.
    """
    return 2.0 ** (-d - 1) / m**2 * math.sqrt(math.pi / 2) * delta / 2.0 ** (2 * q)


def printed_radius(delta_prime, d, m):
    """Algorithm 7, line 2: the least R."""
    return delta_prime + math.sqrt(2 * math.log(m**2 * 2.0 ** (d + 1)))


def is_first_layer(f, pairs, i, delta_prime, radius, rng):
    """Algorithm 7: whether the hyperplane of pair ``i`` belongs to the first layer."""
    x, (w, b) = pairs[i]
    for k, (_, (v, c)) in enumerate(pairs):
        if k == i:
            continue
        direction = v - (v @ w) * w
        side = v @ x + c
        # Lines 4 and 5: z of P, beyond the other hyperplane by more than R, and Z around it.
        step = -(side + math.copysign(1.01 * radius, side)) / (v @ direction)
        noise = rng.standard_normal(len(x))
        point = x + step * direction + noise
        point -= (point @ w + b) * w  # a point of P to rounding, as x is not
        if is_general(f, delta_prime, point):
            return False
    return True


def first_layer_signs(f, rows, epsilon, rng):
    """Section 3.5.3: turn each row so that its neuron is on where it is positive."""
    W, b = np.array([w for w, _ in rows]), np.array([c for _, c in rows])
    for j in range(len(W)):
        x = rng.standard_normal(W.shape[1])
        x -= (W[j] @ x + b[j]) * W[j]
        others = np.delete(W, j, axis=0)
        z = W[j] - others.T @ np.linalg.lstsq(others.T, W[j], rcond=None)[0]
        z /= np.linalg.norm(z)
        if abs(f(x + epsilon * z) - f(x)) <= ATOL * epsilon:
            W[j], b[j] = -W[j], -b[j]
    return W, b


def recover_depth_three(f, d, delta, rng, q, delta_prime=None):
    """Section 3.5, Theorem 3: returns a function equal to ``f``, and ``(W, b)``.

    ``q`` is the number of neurons, which line 1 of Algorithm 7 takes as known; where its
    delta' is beyond float64 another one is passed.
    """
    pairs = critical_hyperplanes(f, d, delta)
    m = len(pairs)
    chosen = delta_prime or printed_delta_prime(delta, d, m, q)
    radius = printed_radius(chosen, d, m)
    kept = [i for i in range(m) if is_first_layer(f, pairs, i, chosen, radius, rng)]
    W, b = first_layer_signs(f, [pairs[i][1] for i in kept], delta**2, rng)
    inverse = W.T @ np.linalg.inv(W @ W.T)
    top, _ = recover_restricted(lambda h: f(inverse @ (h - b)), len(W), delta)
    return (lambda x: top(np.maximum(W @ x + b, 0.0))), (W, b)
