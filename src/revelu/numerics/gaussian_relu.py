"""Gaussian inner products of ReLUs in closed form (CKM21, Fact 3.2, with biases).

For ``x ~ N(0, I)``, ``z = w x + b`` and ``y = v x + c`` are jointly normal, and the moments
of the part where both are positive are known (Rosenbaum 1961).  With unit rows, offsets
``h`` and ``k``, correlation ``r`` and ``q = sqrt(1 - r^2)``:

    L    = P(u > -h, v > -k)          (bivariate normal, by Owen's T)
    [u]  = φ(h) Φ(A) + r φ(k) Φ(B)    A = (k - r h) / q,  B = (h - r k) / q
    [uu] = L - h φ(h) Φ(A) - r^2 k φ(k) Φ(B) + r q^2 φ2

and ``φ2`` the bivariate density at ``(h, k)``.  In the orthonormal basis of ``u`` and
``e = (v - r u) / q`` nothing cancels where the normals are nearly parallel:

    [e]  = q φ(k) Φ(B)
    [ue] = q (q^2 φ2 - r k φ(k) Φ(B))
    [ee] = L - q^2 k φ(k) Φ(B) - r q^2 φ2
"""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist
from scipy.special import ndtr, owens_t

from revelu.numerics.hermite import density
from revelu.types import FloatArray, IntArray

Affine = tuple[FloatArray, FloatArray]
"""Rows and constants of affine functions: (m, d) and (m,)."""

# Stands for 0 where a quotient is wanted: a quotient of two is still one.
_TINY = 1e-100


def half_space_products(
    on: Affine, p: Affine, on_too: Affine, p_too: Affine, *, most_numbers: int = 2**22
) -> FloatArray:
    """Return ``E[1(z_i > 0) p_i(x) 1(z'_j > 0) p'_j(x)]``, (m, n), for affine ``z, p, z', p'``.

    Parameters
    ----------
    on, p : (ndarray (m, d), ndarray (m,))
        Rows and constants of ``z`` and ``p``; no row of ``z`` is zero.
    on_too, p_too : (ndarray (n, d), ndarray (n,))
        Likewise of ``z'`` and ``p'``.
    most_numbers : int
        Held at a time, one for every two rows and input: 32 MB.

    Examples
    --------
    >>> z = (np.eye(1), np.zeros(1))  # relu(z) is 1(z > 0) z
    >>> half_space_products(z, z, z, z).round(12).item()
    0.5
    """
    size = max(1, most_numbers // max(on_too[0].size, 1))
    cuts = [slice(start, start + size) for start in range(0, max(len(on[1]), 1), size)]
    return np.vstack(
        [_products((on[0][i], on[1][i]), (p[0][i], p[1][i]), on_too, p_too) for i in cuts]
    )


def _products(on: Affine, p: Affine, on_too: Affine, p_too: Affine) -> FloatArray:
    """Inner products, with a number for every two rows and input."""
    U, h = _unit(on)
    V, k = _unit(on_too)
    # q^2 = 1 - r^2 without cancellation at small angles, and r to match.
    q = np.sqrt(cdist(U, V, "sqeuclidean") * cdist(U, -V, "sqeuclidean")) / 2.0
    q = np.clip(q, _TINY, 1.0)
    r = np.clip(U @ V.T, -1.0, 1.0)
    r = np.where(q < 0.5, np.copysign(np.sqrt(1.0 - q**2), r), r)
    L, u, e, uu, ue, ee = _truncated_moments(h[:, None], k[None], r, q)
    # What of p and q is orthogonal to both normals is independent of the half-spaces.
    (P, p0), (Q, q0) = p, p_too
    p_u, q_u = np.broadcast_to((P * U).sum(axis=1)[:, None], r.shape), U @ Q.T
    # e = (v - r u) / q, where v - r u = v -+ u +- (1 - |r|) u has its digits.
    side = np.copysign(1.0, r)
    apart, left = V[None] - side[:, :, None] * U[:, None], side * q / (1.0 + np.abs(r))
    p_e = np.einsum("id,ijd->ij", P, apart) / q + left * p_u
    q_e = np.einsum("jd,ijd->ij", Q, apart) / q + left * q_u
    square = p_u * q_u * (uu - L) + (p_u * q_e + p_e * q_u) * ue + p_e * q_e * (ee - L)
    return np.asarray(
        (P @ Q.T + np.outer(p0, q0)) * L
        + square
        + p0[:, None] * (q_u * u + q_e * e)
        + q0[None] * (p_u * u + p_e * e)
    )


def squared_norm(
    A: FloatArray, W: FloatArray, b: FloatArray, V: FloatArray, c: FloatArray
) -> float:
    """Return ``E |A relu(W x + b) + V x + c|^2`` under N(0, I).

    Also where neurons nearly cancel: a network minus one that equals it but for 1e-12
    has a squared norm of 1e-24, and not of 1e-16.  What is lost in rounding counts as there.

    Parameters
    ----------
    A : ndarray, shape (k, m)
    W : ndarray, shape (m, d)
    b : ndarray, shape (m,)
    V : ndarray, shape (k, d)
    c : ndarray, shape (k,)

    Notes
    -----
    Neurons that share a hyperplane but for Δ are written as one of them times the sum of
    the coefficients, plus differences: ``sum a_i relu_i = (sum a_i) relu_0 + sum a_i (relu_i -
    relu_0)``.  A difference is ``1(z > 0) (z_i - z_0)`` with the hyperplane half-way, but for a
    strip whose squared norm is of order Δ^3 (Lemma 3.12 has ``Δ^{2/5}``); inner products
    among the differences of one group keep the strip: ``<f, g> = (|f|^2 + |g|^2 -
    |f - g|^2) / 2``, and the norm of the difference of two ReLUs is one integral.
    """
    norms = np.linalg.norm(W, axis=1)
    fixed = norms == 0.0
    c = c + A[:, fixed] @ np.maximum(b[fixed], 0.0)
    # No normal variable is 40 deviations from its mean, exp(-40^2 / 2) being 0: a neuron whose
    # bias is as large is on, or off, wherever x is, and an affine map.
    far = ~fixed & (np.abs(b) > 40.0 * norms)
    on = far & (b > 0)
    V, c = V + A[:, on] @ W[on], c + A[:, on] @ b[on]
    left = ~(fixed | far)
    W, b, A, norms = W[left], b[left], A[:, left], norms[left]
    U, beta, coefficients = W / norms[:, None], b / norms, A * norms
    rows = np.column_stack([U, beta]) / np.hypot(1.0, beta)[:, None]
    leaders = _groups(rows)
    back = (rows * rows[leaders]).sum(axis=1) < 0
    # relu(z) = relu(-z) + z
    V = V + coefficients[:, back] @ U[back]
    c = c + coefficients[:, back] @ beta[back]
    U, beta = np.where(back[:, None], -U, U), np.where(back, -beta, beta)
    heads = np.unique(leaders)
    others = np.flatnonzero(leaders != np.arange(len(leaders)))
    lead = leaders[others]
    totals = coefficients @ (leaders[:, None] == heads).astype(np.float64)
    half_spaces = (
        np.vstack([U[heads], (U[others] + U[lead]) / 2]),
        np.concatenate([beta[heads], (beta[others] + beta[lead]) / 2]),
    )
    p = (
        np.vstack([U[heads], U[others] - U[lead]]),
        np.concatenate([beta[heads], beta[others] - beta[lead]]),
    )
    weights = np.hstack([totals, coefficients[:, others]])
    G = half_space_products(half_spaces, p, half_spaces, p)
    n = len(heads)
    G[n:, n:] = _with_strips(G[n:, n:], U, beta, others, lead)
    quadratic = float(np.einsum("oi,ij,oj->", weights, G, weights))
    linear = 2.0 * float((weights * _with_affine(half_spaces, p, V, c)).sum())
    # What cancels leaves rounding, which is no proof of zero.
    sizes = np.einsum("oi,ij,oj->", *(np.abs(a) for a in (weights, G, weights)))
    rounding = float(np.finfo(np.float64).eps * sizes)
    return max(quadratic + linear + float((V**2).sum() + c @ c), rounding)


def difference_norms(
    U: FloatArray,
    beta: FloatArray,
    V: FloatArray,
    gamma: FloatArray,
    *,
    n_nodes: int = 40,
    reach: float = 9.0,
) -> FloatArray:
    """Return ``E (relu(u_i x + β_i) - relu(v_i x + γ_i))^2`` for unit rows, shape (n,).

    Parameters
    ----------
    U, V : ndarray, shape (n, d)
    beta, gamma : ndarray, shape (n,)
    n_nodes : int
        Of the integral over ``e``, on each side of 0.
    reach : float
        Standard deviations of ``e`` that are integrated over: beyond 9 are 2e-19 of it.

    Notes
    -----
    As both rows have one length, ``s = (z + y)/2`` and ``e = z - y`` are independent.  Where
    ``s > |e|/2`` the difference is ``e``, where ``|s| < |e|/2`` it is ``±(s + |e|/2)``, else 0.
    """
    deviation = np.linalg.norm(U - V, axis=1)[:, None]
    mean_e = (beta - gamma)[:, None]
    mean_s, sigma_s = (beta + gamma)[:, None] / 2, np.linalg.norm(U + V, axis=1)[:, None] / 2
    nodes, node_weights = np.polynomial.legendre.leggauss(n_nodes)
    total = np.zeros(len(U))
    # Both signs of e apart: the integrand has a corner at 0.
    for lo, hi in ((-np.inf, 0.0), (0.0, np.inf)):
        left = np.clip(mean_e - reach * deviation, lo, hi)
        right = np.clip(mean_e + reach * deviation, lo, hi)
        e = (left + right) / 2 + (right - left) / 2 * nodes
        scale = np.where(deviation > 0, deviation, 1.0)
        law = density((e - mean_e) / scale) / scale * (right - left) / 2 * node_weights
        total += (law * _given_difference(e, mean_s, sigma_s)).sum(axis=1)
    exact = _given_difference(mean_e, mean_s, sigma_s)[:, 0]
    return np.where(deviation[:, 0] > 0, total, exact)


def _given_difference(
    e: FloatArray, mean: FloatArray, sigma: FloatArray, n_nodes: int = 6
) -> FloatArray:
    """The squared difference of two ReLUs whose arguments differ by ``e``.

    The strip is narrow beside ``sigma``: a few nodes integrate over it.
    """
    size = np.abs(e)
    whole = size**2 * ndtr((mean - size / 2) / np.where(sigma > 0, sigma, 1e-300))
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    y = size[..., None] * (nodes + 1) / 2
    standardised = (y - size[..., None] / 2 - mean[..., None]) / sigma[..., None]
    strip = (y**2 * density(standardised) * weights).sum(axis=-1) * size / 2 / sigma
    return np.asarray(whole + strip)


def _with_strips(
    G: FloatArray, U: FloatArray, beta: FloatArray, others: IntArray, lead: IntArray
) -> FloatArray:
    """Replace inner products of differences of one group by exact ones."""
    i, j = np.nonzero(lead[:, None] == lead[None])
    to_lead = difference_norms(U[others], beta[others], U[lead], beta[lead])
    apart = difference_norms(U[others[i]], beta[others[i]], U[others[j]], beta[others[j]])
    exact = G.copy()
    exact[i, j] = (to_lead[i] + to_lead[j] - apart) / 2
    return exact


def _with_affine(on: Affine, p: Affine, V: FloatArray, c: FloatArray) -> FloatArray:
    """``E[1(z_i > 0) p_i (V x + c)]``, shape (k, n)."""
    (U, h), (P, p0) = _unit(on), p
    L, first = ndtr(h), density(h)
    along_p, along_v = (P * U).sum(axis=1), V @ U.T
    return np.asarray(
        (V @ P.T + np.outer(c, p0)) * L
        - along_v * along_p * (h * first)
        + c[:, None] * along_p * first
        + along_v * p0 * first
    )


def _groups(rows: FloatArray, near: float = 1e-2, same: float = 1e-14) -> IntArray:
    """The first row of the group of each hyperplane.

    The hierarchy of nearest neighbours is cut where the distances leap most: what is
    within a group is then small beside what is between groups.  Hyperplanes may share a group
    if they are ``near`` each other; below ``same`` distances are rounding, and no leap.
    """
    if len(rows) < 2:
        return np.zeros(len(rows), dtype=np.intp)
    i, j = np.triu_indices(len(rows), 1)
    apart = np.minimum(cdist(rows, rows), cdist(rows, -rows))
    tree = linkage(apart[i, j], "single")
    heights = np.append(np.maximum(tree[:, 2], same), 1.0)
    leaps = np.where(heights[:-1] <= near, heights[1:] / heights[:-1], 0.0)
    if not leaps.any():
        return np.arange(len(rows), dtype=np.intp)
    cut = float(heights[int(np.argmax(leaps))])
    labels = fcluster(tree, cut, "distance")
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first[inverse], dtype=np.intp)


def _truncated_moments(
    h: FloatArray, k: FloatArray, r: FloatArray, q: FloatArray
) -> tuple[FloatArray, ...]:
    """``L, [u], [e], [uu], [ue], [ee]`` of the module's docstring."""
    # Owen's T wants offsets that are not 0.
    h, k = np.broadcast_arrays(*(np.where(np.abs(x) > _TINY, x, _TINY) for x in (h, k)))
    # k - r h = k -+ h +- (1 - |r|) h: what is small has its digits, and A and B agree on it.
    side = np.copysign(1.0, r)
    apart, left = (k - side * h) / q, side * q / (1.0 + np.abs(r))
    A, B = apart + left * h, -side * apart + left * k
    both = q * np.exp(-(h**2 + A**2) / 2) / (2 * np.pi)  # q^2 φ2
    # P(u > -h, v > -k), by Owen (1956).
    owen = owens_t(h, A / h) + owens_t(k, B / k)
    L = (ndtr(h) + ndtr(k)) / 2 - owen - 0.5 * (h * k < 0)
    at_h, at_k = density(h) * ndtr(A), density(k) * ndtr(B)
    return (
        L,
        at_h + r * at_k,
        q * at_k,
        L - h * at_h - r**2 * k * at_k + r * both,
        q * (both - r * k * at_k),
        L - q**2 * k * at_k - r * both,
    )


def _unit(affine: Affine) -> Affine:
    W, b = affine
    norms = np.linalg.norm(W, axis=1)
    return W / norms[:, None], b / norms
