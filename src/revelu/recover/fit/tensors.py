"""From Hermite coefficients to a network: Awasthi, Tang and Vijayaraghavan (2021).

``f(x) = sum_i a_i relu(w_i x + b_i)`` with ``|w_i| = 1`` has the coefficients
``T_k = sum_i a_i g_k(b_i) w_i^(k)``.  From exact coefficients the network is exact; from
estimates it is a start for a fit to the samples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from revelu.numerics.hermite import network_coefficient, recover_scalars, relu_coefficient
from revelu.numerics.jennrich import directions_of_pencil, power_weights
from revelu.numerics.quadratic import fit_quadratic
from revelu.probe.moments import ORDER, Moments, estimate_moments, monomials
from revelu.types import FloatArray, IntArray

# Pencils of least unexplained tensors that are polished.
_N_POLISHED = 2

# Weight of |w| = 1 beside coefficients of order 1, and steps of the polish.
_NORM_WEIGHT = 30.0
_POLISH_STEPS = 200

# Steps from a pencil's digits to all of them, and numbers that their derivative may take.
_SHARPENING_STEPS = 4
_MOST_NUMBERS = 4_000_000

# A polish over more entries takes longer than the fit to samples it prepares.
_MOST_POLISHED = 13


@dataclass(frozen=True)
class UnitNeurons:
    """Neurons with unit rows."""

    a: FloatArray
    """Shape (m,)."""
    W: FloatArray
    """Shape (m, d)."""
    b: FloatArray
    """Shape (m,)."""


def recover_units(
    tensors: Mapping[int, FloatArray], n_neurons: int, order: int, rng: np.random.Generator
) -> list[UnitNeurons]:
    """Find neurons from whole tensors, signs included where ``order`` is 1.

    Parameters
    ----------
    tensors : mapping of int to ndarray
        Coefficients of orders 1 to 4; for ``order = 2``, of 2 to 6.

    Returns
    -------
    list of UnitNeurons
        The best candidates first; empty where no pencil has real eigenvectors.

    Notes
    -----
    ATV21, Algorithm 6 (``order = 1``) and Algorithm 4, with one combined pencil in place of
    two decompositions, and Gauss-Newton steps for the digits that it loses.
    """
    base, odd, even = (tensors[2 * order + j] for j in range(3))
    candidates = directions_of_pencil(base, odd, even, n_neurons, order, rng, _N_POLISHED)
    found = []
    for W in candidates:
        orders: tuple[int, ...] = (2, 3) if order == 1 else tuple(range(order, order + 4))
        with np.errstate(all="ignore"):
            a, b = recover_scalars({k: power_weights(W, tensors[k]) for k in orders})
        if np.isfinite(a).all() and np.isfinite(b).all():
            units = UnitNeurons(a, W, b)
            if order == 1:
                units, orders = fix_signs(units, tensors[1]), (1, 2, 3)
            found.append(sharpen(units, {k: tensors[k] for k in orders}))
    return found


def fix_signs(units: UnitNeurons, first: FloatArray) -> UnitNeurons:
    """Turn each neuron so that ``sum_i a_i Phi(b_i) w_i`` is the first coefficient.

    ATV21, Algorithm 3: in ``sum_i z_i a_i w_i = T_1`` each ``|z_i| = Phi > 0``, its sign is
    the row's; the rows are linearly independent.
    """
    z = np.linalg.lstsq((units.a[:, None] * units.W).T, first, rcond=None)[0]
    signs = np.where(z < 0, -1.0, 1.0)
    return UnitNeurons(units.a, units.W * signs[:, None], units.b * signs)


def estimate_units(
    moments: Moments, n_neurons: int, rng: np.random.Generator
) -> UnitNeurons | None:
    """Find neurons from estimated moments; None where the noise forbids it.

    The best candidates are polished: least squares over all entries of orders 1 to 4,
    which is Proposition 3.6's statistical risk cut off after order 4.
    """
    tensors = {k: moments.tensor(k) for k in range(1, ORDER + 1)}
    candidates = recover_units(tensors, n_neurons, 1, rng)
    if not candidates:
        return None
    if moments.m > _MOST_POLISHED:
        return candidates[0]
    polished = [polish(units, moments) for units in candidates]
    units = min(polished, key=lambda found: found[1])[0]
    return polish(fix_signs(units, tensors[1]), moments)[0]


def estimate_again(
    units: UnitNeurons, basis: FloatArray, X: FloatArray, y: FloatArray
) -> tuple[UnitNeurons, FloatArray]:
    """Estimate from what units leave: they are the better control variate.

    A network's own coefficients are known without error, so that only the rest has to be
    averaged, and the errors of span and tensors shrink as it does: they are by the square
    root of n less than ``|y - f|``.

    Parameters
    ----------
    units : UnitNeurons
        In the coordinates of the basis.
    basis : ndarray, shape (m, d)
        Orthonormal rows, as many as units.
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)

    Returns
    -------
    units : UnitNeurons
    basis : ndarray, shape (m, d)
        As they were where the units explain nothing.
    """
    W = units.W @ basis
    rest = y - np.maximum(X @ W.T + units.b, 0.0) @ units.a
    if not rest.std() < y.std():
        return units, basis
    quadratic = fit_quadratic(X, rest)
    second = quadratic.coefficients()[2] + network_coefficient(2, units.a, W, units.b)
    values, U = np.linalg.eigh(second)
    basis = U[:, np.argsort(-np.abs(values))[: len(basis)]].T
    moments = estimate_moments([(X, rest)], quadratic, basis)
    W, m = W @ basis.T, len(basis)
    known = [
        np.atleast_1d(network_coefficient(k, units.a, W, units.b)[_places_of(m, k)])
        for k in range(ORDER + 1)
    ]
    sums = tuple(part + whole for part, whole in zip(moments.values, known, strict=True))
    start = UnitNeurons(units.a, W / np.linalg.norm(W, axis=1, keepdims=True), units.b)
    return polish(start, replace(moments, values=sums))[0], basis


def polish(units: UnitNeurons, moments: Moments) -> tuple[UnitNeurons, float]:
    """Fit all entries of orders 1 to 4; the units and the risk that is left."""
    m, d = units.W.shape
    entries = _Entries(m, d, {k: moments.values[k] for k in range(1, ORDER + 1)})
    start = entries.pack(UnitNeurons(units.a, units.W, np.clip(units.b, -4.0, 4.0)))
    fit = least_squares(
        entries.residual,
        start,
        jac=entries.jacobian,
        max_nfev=_POLISH_STEPS,
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
    )
    return entries.unpack(fit.x), float(fit.cost)


def sharpen(units: UnitNeurons, tensors: Mapping[int, FloatArray]) -> UnitNeurons:
    """Take Gauss-Newton steps on all entries of some orders, as long as these gain.

    Eigenvectors of a pencil lose as many digits as the rows are near to dependent,
    ``1 / s_m^2``; the equations that they solve are no worse for it.
    """
    m, d = units.W.shape
    sizes = sum(len(monomials(d, k).variables) for k in tensors)
    if sizes * m * (d + 2) > _MOST_NUMBERS:
        return units
    values = {k: T[_places_of(d, k)] for k, T in tensors.items()}
    entries = _Entries(m, d, values)
    p = entries.pack(units)
    rest = entries.residual(p)
    rounding = np.finfo(np.float64).eps * float(np.linalg.norm(entries.residual(0.0 * p)))
    for _ in range(_SHARPENING_STEPS):
        if np.linalg.norm(rest) <= rounding:
            break
        step = np.linalg.lstsq(entries.jacobian(p), rest, rcond=None)[0]
        new = entries.residual(p - step)
        if not np.linalg.norm(new) < np.linalg.norm(rest):
            break
        p, rest = p - step, new
    return entries.unpack(p)


@dataclass(frozen=True)
class _Entries:
    """The equations ``sum_i a_i g_k(b_i) w_i[alpha] = T_k[alpha]`` and ``|w_i| = 1``.

    Each entry is divided by its standard deviation under N(0, 1) answers.
    """

    m: int
    d: int
    values: Mapping[int, FloatArray]

    def pack(self, units: UnitNeurons) -> FloatArray:
        return np.concatenate([units.a, units.b, units.W.ravel()])

    def unpack(self, p: FloatArray) -> UnitNeurons:
        a, b, W = self._parts(p)
        return UnitNeurons(a, W / np.linalg.norm(W, axis=1, keepdims=True), b)

    def residual(self, p: FloatArray) -> FloatArray:
        a, b, W = self._parts(p)
        parts = [
            (_products(W, k).T @ (a * relu_coefficient(k, b)) - T) / _deviation(self.d, k)
            for k, T in self.values.items()
        ]
        return np.concatenate([*parts, _NORM_WEIGHT * (np.sum(W**2, axis=1) - 1.0)])

    def jacobian(self, p: FloatArray) -> FloatArray:
        a, b, W = self._parts(p)
        m, d = self.m, self.d
        blocks = [_jacobian_block(a, b, W, k) for k in self.values]
        norms = np.zeros((m, 2 * m + m * d))
        for i in range(m):
            norms[i, 2 * m + i * d : 2 * m + (i + 1) * d] = 2.0 * _NORM_WEIGHT * W[i]
        return np.vstack([*blocks, norms])

    def _parts(self, p: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        m = self.m
        return p[:m], p[m : 2 * m], p[2 * m :].reshape(m, self.d)


def _places_of(d: int, k: int) -> tuple[IntArray, ...]:
    """Where in a tensor its monomials stand."""
    return tuple(monomials(d, k).variables.T)


def _products(W: FloatArray, k: int) -> FloatArray:
    """``prod_j w_i[alpha_j]``, shape (m, p_k)."""
    return np.asarray(np.prod(W[:, monomials(W.shape[1], k).variables], axis=2))


def _deviation(d: int, k: int) -> FloatArray:
    """Standard deviation of ``He_alpha`` for each monomial."""
    return np.sqrt(monomials(d, k).factorials)


def _jacobian_block(a: FloatArray, b: FloatArray, W: FloatArray, k: int) -> FloatArray:
    """Derivative of the entries of order ``k`` by a, b and W, shape (p_k, m (d + 2))."""
    m, d = W.shape
    variables = monomials(d, k).variables
    products = _products(W, k)
    block = np.zeros((len(variables), 2 * m + m * d))
    block[:, :m] = (relu_coefficient(k, b)[:, None] * products).T
    block[:, m : 2 * m] = ((a * relu_coefficient(k + 1, b))[:, None] * products).T
    weights = a * relu_coefficient(k, b)
    rows = np.arange(len(variables))
    for j in range(k):
        others = np.prod(W[:, np.delete(variables, j, axis=1)], axis=2) * weights[:, None]
        for i in range(m):
            np.add.at(block, (rows, 2 * m + i * d + variables[:, j]), others[i])
    return block / _deviation(d, k)[:, None]
