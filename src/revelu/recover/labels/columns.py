"""The output layer, where all rows of the hidden layer are known.

At a point x of the border of the classes a and b both outputs are equal:

    <A_a - A_b, relu(V x~)> + <G_a - G_b, x> + c_a - c_b = 0.

That is linear in A, in c, and in a skip G, which stands for the signs of rows that are not known
yet.  The output layer is a null vector of all such equations.  Others are *idle*: they change no
difference of outputs at any border.  One is what all classes have in common (class 0 is put to 0,
so none of it is left); another stands for a neuron that is on, or off, at all borders between a
set of classes and the others, where what it adds to the set is affine, and G takes it up.  An
idle vector has no slope across borders, which tells it from the output layer.

Classes may fall into sets that share borders with one class alone, as 0 and 2 do that have 1
between them.  Each set then has a positive *factor* of its own, and no equation tells the ratio.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from revelu.network import Network
from revelu.numerics.records import Records
from revelu.probe.heights import input_sizes
from revelu.recover.labels.borders import Borders
from revelu.recover.labels.precision import Told
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Spectrum:
    """When a system of equations has null vectors."""

    largest: float = 1e-5
    """A singular value that counts as none, at most, over the largest one."""
    floor: float = 1e-9
    """Smaller ones are all alike: rows of neurons are known no better."""
    gap: float = 30.0
    """The next one is ``gap`` times as large, at least."""
    lonely: float = 0.1
    """Points at which the slope is so large, relative to the largest, show a null vector."""
    sloping: float = 1e-6
    """A null vector whose slopes across borders are a smaller share of the largest is idle."""

    def at(self, told: Told) -> "Spectrum":
        """Return what serves where labels tell few digits.

        Equations of norm 1 are off by as much as rows; by no less than normals, where these have
        been measured again.  Slopes are off by as much, too.
        """
        off = 4.0 * told.rows
        return replace(
            self,
            largest=max(self.largest, off),
            floor=max(self.floor, told.normals),
            sloping=max(self.sloping, off),
        )


@dataclass(frozen=True, eq=False)
class Added(Records):
    """What null vectors of some kind add to an output layer."""

    A: FloatArray
    G: FloatArray
    c: FloatArray


@dataclass(frozen=True, eq=False)
class OutputEquations:
    """What equations say of the output layer."""

    A: FloatArray
    G: FloatArray
    c: FloatArray
    idle: Added
    """What idle null vectors add to them,"""
    factors: Added
    """and null vectors that change ratios of factors."""
    n_scales: int
    """Null vectors that are neither: one, unless points are missing."""
    lonely: BoolArray
    """Shape (n,).  Points that the others of them leave: there are too few like them."""
    smallest: float
    next: float
    """The largest singular value that counts as none, and the next one."""

    def is_found(self, spectrum: Spectrum) -> bool:
        """Whether there is a null vector, clearly, and one factor stays open, no more."""
        is_null = self.smallest < spectrum.largest
        least = spectrum.gap * max(self.smallest, spectrum.floor)
        return is_null and self.next > least and self.n_scales == 1

    def network(self, V: FloatArray) -> Network:
        """The network of these outputs, whose rows are ``V (m, d + 1)``."""
        if not self.G.any():
            return Network([V[:, :-1], self.A], [V[:, -1], self.c])
        zero = np.zeros(len(self.c))
        return Network([V[:, :-1], self.A], [V[:, -1], zero], (self.G, self.c))


def fit_columns(
    V: FloatArray,
    borders: Borders,
    pairs: tuple[IntArray, IntArray],
    k: int,
    spectrum: Spectrum,
    *,
    skip: bool,
    wide: bool = False,
) -> OutputEquations:
    """Solve for the output layer.

    Parameters
    ----------
    V : ndarray, shape (m, d + 1)
        Affine maps of neurons; with their signs, where no skip is fitted.
    borders : Borders
    pairs : (a, b)
        The classes before and behind each point, as numbers below ``k``.
    skip : bool
        Whether G is fitted,
    wide : bool
        to all directions, not only to those that the rows span.
    """
    X, (a, b) = borders.X, pairs
    n, d = X.shape
    m = len(V)
    on = X @ V[:, :d].T + V[:, d] > 0
    # Without a neuron borders are planes, whatever they are normal to.
    every = np.eye(d) if wide or not m else _row_space(V[:, :d], spectrum.floor)
    basis = every if skip else np.empty((0, d))
    phi = np.column_stack([np.where(on, X @ V[:, :d].T + V[:, d], 0.0), X @ basis.T, np.ones(n)])
    M, scale = _equations(phi, a, b, k, spectrum.floor)
    sizes, right = _right_vectors(M)
    for q in range(_n_null(sizes, spectrum), len(sizes)):
        null = (right[len(right) - q :].T / scale[:, None]).reshape(k - 1, -1, q)
        blocks = np.concatenate([np.zeros((1, *null.shape[1:])), null])
        A, G, c = blocks[:, :m], np.einsum("krq,rd->kdq", blocks[:, m:-1], basis), blocks[:, -1]
        S = np.stack([_slopes(A[..., j], G[..., j], V, borders, pairs) for j in range(q)], axis=1)
        _, steep, mix = np.linalg.svd(S, full_matrices=False)
        n_scales = int((steep > spectrum.sloping * np.sqrt(n)).sum())
        # Where a neuron is missing, all null vectors may be idle: then the next one is looked at.
        if n_scales:
            break
    scales = mix[:n_scales]
    along = _along_all(S @ scales.T, np.minimum(a, b) * k + np.maximum(a, b), spectrum)
    is_whole = along is not None
    if along is None:  # the output of the class behind grows across
        along = np.sign((S @ scales[0]).sum()) * np.eye(n_scales)[0]
    best, others = along @ scales, np.linalg.svd(along[None])[2][1:] @ scales
    factors, lacking = (others, others[:0]) if is_whole else (others[:0], others)

    def added(mix: FloatArray) -> Added:
        return Added(*(np.moveaxis(part @ mix.T, -1, 0) for part in (A, G, c)))

    return OutputEquations(
        A @ best,
        G @ best,
        c @ best,
        added(mix[n_scales:]),
        added(factors),
        1 + len(lacking),
        _lonely(S @ lacking.T, spectrum),
        float(sizes[-q]),
        float(sizes[-q - 1]) if q < len(sizes) else np.inf,
    )


def _equations(
    phi: FloatArray, a: IntArray, b: IntArray, k: int, floor: float
) -> tuple[FloatArray, FloatArray]:
    """One row of norm 1 a point, class 0 left out, and what its columns were divided by.

    A column that is 0 but for the rounding of points, as of a border through the origin across a
    coordinate, is a null vector by itself, and stays as it is.
    """
    n, p = phi.shape
    unit = phi / np.linalg.norm(phi, axis=1)[:, None]
    by_class = np.zeros((n, k, p))
    by_class[np.arange(n), b] += unit
    by_class[np.arange(n), a] -= unit
    M = by_class[:, 1:].reshape(n, -1)
    scale = np.linalg.norm(M, axis=0)
    scale = np.where(scale > floor * np.sqrt(n), scale, 1.0)
    return M / scale, scale


def _right_vectors(M: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Singular values over the largest, and right singular vectors, one a row; falling."""
    R = np.linalg.qr(M, mode="r") if len(M) > M.shape[1] else M
    _, sizes, right = scipy.linalg.svd(R, full_matrices=True, check_finite=False)
    sizes = np.append(sizes, np.zeros(len(right) - len(sizes)))
    return sizes / sizes[0], np.asarray(right)


def _along_all(slopes: FloatArray, pairs: IntArray, spectrum: Spectrum) -> FloatArray | None:
    """The mix of null vectors across which outputs grow at all borders; None where points lack.

    Between two classes one factor is open at most.  Where null vectors change slopes there in
    other ways, points that would tell are missing.

    Parameters
    ----------
    slopes : ndarray, shape (n, t)
    pairs : ndarray of int, shape (n,)
        Which two classes points are between.

    Returns
    -------
    ndarray, shape (t,), of norm 1
    """
    flat, directions = spectrum.sloping * np.sqrt(len(slopes)), []
    for pair in np.unique(pairs):
        own = slopes[pairs == pair]
        _, sizes, right = np.linalg.svd(own, full_matrices=False)
        if sizes[0] <= flat or (sizes[1:] > flat).any():
            return None
        directions.append(right[0] * np.sign((own @ right[0]).sum()))
    E = np.array(directions)
    along = np.linalg.lstsq(E, np.ones(len(E)))[0]
    return along / np.linalg.norm(along) if (E @ along > 0.0).all() else None


def _lonely(slopes: FloatArray, spectrum: Spectrum) -> BoolArray:
    """Which points null vectors of these slopes ``(n, t)`` change most, (n,)."""
    if not slopes.size:
        return np.zeros(len(slopes), bool)
    size = np.abs(slopes)
    return np.asarray((size > spectrum.lonely * size.max(axis=0)).any(axis=1))


def _n_null(sizes: FloatArray, spectrum: Spectrum) -> int:
    """How many singular values, which fall, count as none: those below the widest gap; or one."""
    known = np.maximum(sizes, spectrum.floor)[::-1]
    small = int((known < spectrum.largest).sum())
    if not small or small == len(known):
        return max(small, 1)
    return int(np.argmax(known[1 : small + 1] / known[:small])) + 1


def _row_space(W: FloatArray, floor: float) -> FloatArray:
    """An orthonormal basis of the row space, (rank, d)."""
    _, sizes, right = np.linalg.svd(W, full_matrices=False)
    return np.asarray(right[sizes > floor * sizes.max(initial=0.0)])


def _slopes(
    A: FloatArray,
    G: FloatArray,
    V: FloatArray,
    borders: Borders,
    pairs: tuple[IntArray, IntArray],
) -> FloatArray:
    """How fast output b less output a grows across borders, over the size of A, G and V, (n,)."""
    size = np.sqrt((A**2).sum() + (G**2).sum())
    steep = (slopes(A, G, V, borders.X, *pairs) * borders.E).sum(axis=1)
    return np.asarray(steep / (size or 1.0))


def slopes(
    A: FloatArray, G: FloatArray, V: FloatArray, X: FloatArray, a: IntArray, b: IntArray
) -> FloatArray:
    """Gradients of output b less output a at points ``X (n, d)``, (n, d)."""
    d = X.shape[1]
    on = X @ V[:, :d].T + V[:, d] > 0
    return np.asarray(((A[b] - A[a]) * on) @ V[:, :d] + G[b] - G[a])


def distances(
    V: FloatArray, columns: OutputEquations, borders: Borders, pairs: tuple[IntArray, IntArray]
) -> FloatArray:
    """How far points are off the borders that columns have, to first order, (n,)."""
    X, (a, b) = borders.X, pairs
    Z = X @ V[:, :-1].T + V[:, -1]
    F = np.maximum(Z, 0.0) @ columns.A.T + X @ columns.G.T + columns.c
    i = np.arange(len(a))
    length = np.linalg.norm(slopes(columns.A, columns.G, V, X, a, b), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.abs(F[i, b] - F[i, a]) / length)


def allowances(
    V: FloatArray,
    err: FloatArray,
    columns: OutputEquations,
    borders: Borders,
    pairs: tuple[IntArray, IntArray],
    places: float,
) -> FloatArray:
    """How far points may be off those borders, by errors of places and of rows, (n,).

    Outputs are rounded, too: where their difference grows slowly across a border, the border is
    told less precisely than at the places at which that was measured, which are like most.

    Parameters
    ----------
    err : ndarray, shape (m,)
        About how far off rows are.
    places : float
        How precisely labels tell places, relative to an input's size.
    """
    X, (a, b) = borders.X, pairs
    length = np.linalg.norm(slopes(columns.A, columns.G, V, X, a, b), axis=1)
    size = input_sizes(X)
    rounded = places * np.maximum(size * length, np.median(size * length))
    on = X @ V[:, :-1].T + V[:, -1] > 0
    of_rows = np.linalg.norm((columns.A[b] - columns.A[a]) * on * err, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = (rounded + of_rows * np.linalg.norm(X, axis=1)) / length
    return np.asarray(np.nan_to_num(off, nan=np.inf))
