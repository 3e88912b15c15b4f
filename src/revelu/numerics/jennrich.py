"""Tensors as sums of rank-one terms: simultaneous diagonalisation.

``sum_i u_i (x) v_i (x) z_i`` contracted with two vectors along the last axis gives
``U diag(s) V'`` and ``U diag(t) V'``; the eigenvectors of the one times the pseudo-inverse
of the other are the columns of U (Harshman 1970, after Jennrich).
"""

import numpy as np

from revelu.numerics.hermite import power
from revelu.numerics.joint_diagonalisation import diagonalise_jointly
from revelu.types import FloatArray


def root(u: FloatArray, d: int, order: int) -> FloatArray:
    """Return the ``w`` of norm 1 with ``w^(order)`` nearest to ``u``, up to sign."""
    left, _, _ = np.linalg.svd(u.reshape(d, d ** (order - 1)), full_matrices=False)
    return np.asarray(left[:, 0])


def directions_of_pencil(
    base: FloatArray,
    odd: FloatArray,
    even: FloatArray,
    rank: int,
    order: int,
    rng: np.random.Generator,
    n_best: int = 1,
    *,
    n_pencils: int = 150,
    exact: float = 1e-22,
) -> list[FloatArray]:
    """Find the directions in consecutive coefficients by one combined pencil.

    Parameters
    ----------
    base, odd, even : ndarray
        Coefficients of orders ``2 order``, ``2 order + 1``, ``2 order + 2``.
    n_best : int
        How many candidates to return at most.
    n_pencils : int
        Random contractions tried.
    exact : float
        Squared share of the tensors that exact ones leave unexplained, after the rounding of
        eigenvectors; as many candidates of no more end the search.

    Returns
    -------
    list of ndarray, shape (rank, d)
        Rows of norm 1, signs arbitrary; of all contractions tried those that explain
        ``base`` and ``odd`` best, the best first.

    Notes
    -----
    ``(odd(v) + even(V)) base^-1`` has the eigenvectors ``w_i^(order)`` and the eigenvalues
    ``(g_odd <v, w_i> + g_even <V, w_i w_i'>) / g_base``.  For ``order = 1`` the weights of
    ``base``, ``a phi(b)``, never vanish: no bias is a special case.  For higher orders base
    itself lacks the roots of ``He_{2 order - 2}``; it is mixed with contractions of the
    other two.

    One contraction of estimates has eigenvalues so near to each other that noise mixes
    their eigenvectors.  The best pencils are starts for a joint diagonalisation of all
    contractions; so is no pencil at all.
    """
    d = base.shape[0]
    B = base.reshape(d**order, d**order)
    T, E = odd.reshape(d**order, d**order, d), even.reshape(d**order, d**order, d**2)
    found: list[tuple[float, FloatArray]] = []
    for _ in range(n_pencils):
        directions = _pencil(B, T, E, rank, order, rng)
        if directions is not None:
            found.append((_unexplained(directions, (base, odd)), directions))
            if sum(left < exact for left, _ in found) >= n_best:
                break
    found = _best(found, n_best)
    for start in [None, *(directions for _, directions in found)]:
        rows = _jointly(B, T, E, rank, order, start)
        if rows is not None:
            found.append((_unexplained(rows, (base, odd)), rows))
    return [directions for _, directions in _best(found, n_best)]


def _best(candidates: list[tuple[float, FloatArray]], n: int) -> list[tuple[float, FloatArray]]:
    return sorted(candidates, key=lambda candidate: candidate[0])[:n]


def _jointly(
    B: FloatArray, T: FloatArray, E: FloatArray, rank: int, order: int, start: FloatArray | None
) -> FloatArray | None:
    """Diagonalise base and all contractions of the others at once; None if that is singular.

    In the columns' space each is ``U diag(s) U'``.  Entries of order k have a variance of up
    to k!, by which matrices are weighted.
    """
    d, k = T.shape[2], 2 * order
    scales = 1.0, np.sqrt(k + 1.0), np.sqrt((k + 1.0) * (k + 2.0))
    parts = [P.reshape(len(B), len(B), -1) / s for P, s in zip((B, T, E), scales, strict=True)]
    # The space of all: a bias may make a neuron vanish from base.
    together = np.concatenate([P.reshape(len(B), -1) for P in parts], axis=1)
    U = np.linalg.eigh(together @ together.T)[1][:, -rank:]
    C = np.concatenate([np.einsum("pa,pqr,qb->rab", U, P, U, optimize=True) for P in parts])
    try:
        V = np.eye(rank)
        if start is not None:
            V = np.linalg.inv(np.array([power(w, order).ravel() for w in start]) @ U).T
        terms = np.linalg.inv(diagonalise_jointly((C + C.transpose(0, 2, 1)) / 2.0, V)).T @ U.T
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(terms).all():
        return None
    return np.array([root(u, d, order) for u in terms])


def _pencil(
    B: FloatArray, T: FloatArray, E: FloatArray, rank: int, order: int, rng: np.random.Generator
) -> FloatArray | None:
    """One random contraction; None where its eigenvectors are not real."""
    d = T.shape[2]
    if order > 1:
        B = B + T @ rng.standard_normal(d) + E @ rng.standard_normal((d, d)).ravel()
    U = np.linalg.svd(B)[0][:, :rank]
    A = T @ rng.standard_normal(d) + E @ rng.standard_normal((d, d)).ravel()
    try:
        values, vectors = np.linalg.eig(np.linalg.solve((U.T @ B @ U).T, (U.T @ A @ U).T).T)
    except np.linalg.LinAlgError:
        return None
    if np.abs(np.imag(values)).max(initial=0.0) > 0:
        return None
    terms = (U @ np.real(vectors)).T
    return np.array([root(u, d, order) for u in terms])


def _unexplained(directions: FloatArray, tensors: tuple[FloatArray, ...]) -> float:
    """Share of tensors that no weights of the directions' powers explain."""
    left = 0.0
    for T in tensors:
        weights = power_weights(directions, T)
        rest = T - sum(c * power(w, T.ndim) for c, w in zip(weights, directions, strict=True))
        left += float(np.sum(rest**2) / max(np.sum(T**2), np.finfo(np.float64).tiny))
    return left


def power_weights(directions: FloatArray, T: FloatArray) -> FloatArray:
    """Solve ``sum_i c_i w_i^(k) = T`` for ``c`` by least squares, shape (m,).

    The Gram matrix of powers is ``<w_i, w_j>^k``, and ``<T, w^(k)>`` is a contraction:
    no power is formed.
    """
    k = T.ndim
    gram = (directions @ directions.T) ** k
    right = np.array([contract(T, w) for w in directions])
    return np.asarray(np.linalg.lstsq(gram, right, rcond=None)[0])


def contract(T: FloatArray, w: FloatArray) -> float:
    """``<T, w^(k)>``."""
    for _ in range(T.ndim):
        T = T @ w
    return float(T)
