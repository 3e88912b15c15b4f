"""ATV21's numbered listings as printed, small and plain, errata applied.

Nothing here comes from revelu.  House orientation: rows of W are the paper's columns.

Errata: Algorithm 2 for l >= 2 needs its index shifted by 2; Theorem 4.2's proof needs
He_{2l-1} and He_{2l}, which changes no step; Algorithm 4's thresholds are parameters.
"""

import itertools
import math

import numpy as np


def hermite(k, z):
    """Probabilists' polynomials by their explicit sum."""
    terms = [
        (-1) ** j / (math.factorial(j) * math.factorial(k - 2 * j) * 2**j) * z ** (k - 2 * j)
        for j in range(k // 2 + 1)
    ]
    return math.factorial(k) * sum(terms)


def coefficient(k, a, W, b):
    """Lemma 3.5: the k-th Hermite coefficient, a tensor of order k."""
    total = 0.0
    for ai, w, bi in zip(a, W, b, strict=True):
        phi = math.exp(-(bi**2) / 2) / math.sqrt(2 * math.pi)
        Phi = 0.5 * (1 + math.erf(bi / math.sqrt(2)))
        if k == 0:
            g = bi * Phi + phi
        elif k == 1:
            g = Phi
        else:
            g = (-1) ** k * hermite(k - 2, bi) * phi
        total = total + ai * g * tensor_power(w, k)
    return total


def tensor_power(w, k):
    T = np.array(1.0)
    for _ in range(k):
        T = np.multiply.outer(T, w)
    return T


def hermite_tensor_mean(X, y, k):
    """Estimate E[y He_k(x)] entry by entry."""
    d = X.shape[1]
    T = np.zeros((d,) * k)
    for entry in itertools.product(range(d), repeat=k):
        value = y.copy()
        for j in range(d):
            value = value * hermite(entry.count(j), X[:, j])
        T[entry] = value.mean()
    return T


def jennrich(T, k, rng):
    """Jennrich's algorithm: the first factors of k rank-one terms of T (p, q, r)."""
    v1, v2 = rng.standard_normal((2, T.shape[2]))
    M1, M2 = T @ v1, T @ v2
    U = np.linalg.svd(M1)[0][:, :k]
    V = np.linalg.svd(M1)[2][:k].T
    pencil = (U.T @ M1 @ V) @ np.linalg.inv(U.T @ M2 @ V)
    return (U @ np.real(np.linalg.eig(pencil)[1])).T


def unit_root(u, d):
    """The w a power of which is proportional to u."""
    left = np.linalg.svd(u.reshape(d, -1))[0]
    return left[:, 0]


def algorithm_1(f, order, rng):
    """Recover a, b, W from exact coefficients; for order 1, signs included."""
    W = _steps_1_to_4(f, order, rng, eta1=1e-9, eta2=0.0, eta3=1e-6)
    a, b = algorithm_2(W, f, order)
    return algorithm_3(f[1], a, b, W) if order == 1 else (a, b, W)


def algorithm_4(T, order, rng, eta1, eta2, eta3):
    """Algorithm 1 with thresholds for estimates; signs are free."""
    W = _steps_1_to_4(T, order, rng, eta1, eta2, eta3)
    a, b = algorithm_2(W, T, order)
    return a, b, W


def _steps_1_to_4(T, order, rng, eta1, eta2, eta3):
    d = T[1].shape[0] if 1 in T else T[order].shape[0]
    found = []
    for k, last in ((2 * order + 1, 1), (2 * order + 2, 2)):
        third = T[k].reshape(d**order, d**order, d**last)
        sizes = np.linalg.svd(third.reshape(d**order, -1), compute_uv=False)
        rank = int((sizes > eta1).sum())
        if rank == 0:
            continue
        rows = [unit_root(u, d) for u in jennrich(third, rank, rng)]
        # Step 4: the terms' weights; those below eta2 go.
        powers = np.array([tensor_power(w, k).ravel() for w in rows]).T
        weights = np.linalg.lstsq(powers, T[k].ravel(), rcond=None)[0]
        found += [w for w, alpha in zip(rows, weights, strict=True) if abs(alpha) >= eta2]
    distinct = []
    for w in found:
        if all(min(np.linalg.norm(w - v), np.linalg.norm(w + v)) > eta3 for v in distinct):
            distinct.append(w)
    return np.array(distinct)


def algorithm_2(W, T, order):
    """RECOVERSCALARS."""

    def zeta(j):
        powers = np.array([tensor_power(w, j).ravel() for w in W]).T
        return np.linalg.lstsq(powers, T[j].ravel(), rcond=None)[0]

    if order == 1:
        z2, z3 = zeta(2), zeta(3)
        b = -z3 / z2
        return z2 * math.sqrt(2 * math.pi) * np.exp(b**2 / 2), b
    z = {j: zeta(j) for j in range(order, order + 4)}
    a, b = np.zeros(len(W)), np.zeros(len(W))
    for i in range(len(W)):
        q = max((order + 1, order + 2), key=lambda j: abs(z[j][i]))
        b[i] = -(z[q + 1][i] + (q - 2) * z[q - 1][i]) / z[q][i]
        scale = math.sqrt(2 * math.pi) * math.exp(b[i] ** 2 / 2)
        a[i] = (-1) ** q * scale * z[q][i] / hermite(q - 2, b[i])
    return a, b


def algorithm_3(f1, a, b, W):
    """FIXSIGNS."""
    z = np.linalg.lstsq((a[:, None] * W).T, f1, rcond=None)[0]
    xi = np.sign(z)
    return a, xi * b, xi[:, None] * W


def algorithm_5(X, y, order, rng, eta1, eta2, eta3, tau=np.inf, ball=np.inf):
    """A function near f: both signs of every unit found, and an affine map, by regression.

    Projected gradient descent on the truncated loss is replaced by its minimiser, which
    least squares gives, projected onto the ball.
    """
    half = len(X) // 2
    T = {k: hermite_tensor_mean(X[:half], y[:half], k) for k in range(2 * order + 3)}
    _, b, W = algorithm_4(T, order, rng, eta1, eta2, eta3)
    features = unit_features(X[half:], W, b)
    kept = np.linalg.norm(features, axis=1) < tau
    beta = np.linalg.lstsq(features[kept], y[half:][kept], rcond=None)[0]
    beta *= min(1.0, ball / np.linalg.norm(beta))
    return W, b, beta


def unit_features(X, W, b):
    z = X @ W.T + b
    return np.column_stack([np.maximum(z, 0), np.maximum(-z, 0), X, np.ones(len(X))])


def claim_b5(W, b, beta):
    """Consolidate units, their negatives and an affine map into m + 2 units."""
    m, d = W.shape
    alpha, negative, v, c = beta[:m], beta[m : 2 * m], beta[2 * m : 2 * m + d], beta[-1]
    v, c = v - negative @ W, c - negative @ b
    beta0 = np.linalg.norm(v)
    w0, b0 = v / beta0, c / beta0
    rows = np.vstack([W, w0, -w0])
    return np.concatenate([alpha + negative, [beta0, -beta0]]), rows, np.concatenate([b, [b0, -b0]])


def algorithm_6(T, rng, eta1, eta2, eta3):
    """The robust full-rank algorithm: Algorithm 4, then FIXSIGNS."""
    a, b, W = algorithm_4(T, 1, rng, eta1, eta2, eta3)
    return algorithm_3(T[1], a, b, W)
