"""Where the coordinate axes meet the critical hyperplanes of a network, from its weights.

Along an axis a network is piecewise affine in ``t``, layer by layer: on a stretch where
the states of the layers below are fixed, a neuron's input is affine in ``t`` and has at
most one zero.  That zero ends the stretch, and the gradient of the input is the normal of
the critical hyperplane met there (Daniely & Granot 2023, section 3.2 and Lemma 5).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from revelu.network.network import Network
from revelu.types import BoolArray, FloatArray, IntArray

# Two zeros are one if they differ by no more than this share of their distance from 0.
_SAME = 8.0 * float(np.finfo(np.float64).eps)

Neuron = tuple[int, int, bytes]


@dataclass(frozen=True)
class AxisCut:
    """A piecewise affine function along one coordinate axis, ``t -> f(t e_i)``.

    Attributes
    ----------
    axis : int
    kinks : ndarray, shape (n,)
        Increasing, in units of the input.
    pieces : ndarray, shape (n + 1, 2, k)
        Value at ``t = 0`` and slope of the affine function of each piece, left to right.
    errors : ndarray, shape (n + 1,)
        Standard error of the entries of each piece; 0 where weights gave them.
    hyperplanes : ndarray of int, shape (n,)
        Which hyperplane of the arrangement a kink lies on; -1 where that is unknown.
    n_clusters : int
        Gaps in which kinks lie too near each other to be told apart.
    cluster_width : float
        Width of the widest such gap.
    n_hidden : int
        Points that were asked and lie on no piece: a kink between was not found.
    start : float
        0 where only ``t > 0`` is looked at, else minus infinity.
    """

    axis: int
    kinks: FloatArray
    pieces: FloatArray
    errors: FloatArray
    hyperplanes: IntArray
    n_clusters: int = 0
    cluster_width: float = 0.0
    n_hidden: int = 0
    start: float = -np.inf


@dataclass(frozen=True)
class Arrangement:
    """Critical hyperplanes, and the critical points on the axes.

    Attributes
    ----------
    dim_in : int
    normals : ndarray, shape (m, d)
        Unit rows.
    offsets : ndarray, shape (m,)
        Hyperplane ``j`` is ``normals[j] @ x + offsets[j] = 0``.
    errors : ndarray, shape (m,)
        Standard error of the entries of a normal; 0 where weights gave them.
    neurons : tuple or None
        Layer, neuron and state of the layers below of each hyperplane; None where
        queries found them, which do not tell.
    n_shared : int
        Neurons whose hyperplane is another neuron's, too.
    tied : ndarray of bool, shape (m,)
        Hyperplanes of deeper neurons that may be parallel to others whatever the weights:
        where a single neuron of a layer is on, all that read it share its normal.  Of those
        that queries found, the ones that end between axes.
    """

    dim_in: int
    cuts: tuple[AxisCut, ...]
    normals: FloatArray
    offsets: FloatArray
    errors: FloatArray
    tied: BoolArray
    neurons: tuple[Neuron, ...] | None = None
    n_shared: int = 0


@dataclass
class _Stretch:
    """Part of an axis: the input of the next layer is ``p + t q``."""

    lo: float
    hi: float
    p: FloatArray
    q: FloatArray
    masks: list[BoolArray] = field(default_factory=list)


def arrangement(network: Network, axes: Sequence[int], start: float = -np.inf) -> Arrangement:
    """Cut axes by a network, exactly; only their positive halves where ``start`` is 0.

    The hyperplanes are those of the first hidden layer that show in an output, and those of
    further layers that an axis meets.
    """
    known = _Known(network)
    cuts = tuple(_Cutting(network, known, axis, start).cut() for axis in axes)
    d = network.dim_in
    return Arrangement(
        dim_in=d,
        cuts=cuts,
        normals=np.asarray(known.normals, dtype=np.float64).reshape(-1, d),
        offsets=np.asarray(known.offsets, dtype=np.float64),
        errors=np.zeros(len(known.normals)),
        tied=np.asarray(known.tied, dtype=bool),
        neurons=tuple(known.neurons),
        n_shared=len(known.shared),
    )


class _Known:
    """Hyperplanes found so far; at first those of the first layer."""

    def __init__(self, network: Network) -> None:
        self.normals: list[FloatArray] = []
        self.offsets: list[float] = []
        self.neurons: list[Neuron] = []
        self.tied: list[bool] = []
        self.index: dict[Neuron, int] = {}
        self.shared: set[tuple[int, int]] = set()
        if not network.n_hidden:
            return
        for j, (w, b) in enumerate(zip(network.weights[0], network.biases[0], strict=True)):
            if w.any() and network.readers(0)[:, j].any():
                self.add((0, j, b""), w, float(b))

    def add(
        self, neuron: Neuron, gradient: FloatArray, offset: float, *, tied: bool = False
    ) -> int:
        """Return the hyperplane's index; one that is known already is not added again."""
        if neuron not in self.index:
            length = float(np.linalg.norm(gradient))
            n, b = gradient / length, offset / length
            # Several neurons of the first layer may share a hyperplane, which is listed once.
            same = self._same(n, b) if neuron[0] == 0 else None
            if same is None:
                self.normals.append(n)
                self.offsets.append(b)
                self.neurons.append(neuron)
                self.tied.append(tied)
            else:
                self.shared.add(neuron[:2])
            self.index[neuron] = len(self.normals) - 1 if same is None else same
        return self.index[neuron]

    def _same(self, n: FloatArray, b: float) -> int | None:
        if not self.normals:
            return None
        rows = np.column_stack([self.normals, self.offsets])
        row = np.append(n, b)
        atol = _SAME * max(abs(b), 1.0)
        same = np.minimum(np.abs(rows - row).max(axis=1), np.abs(rows + row).max(axis=1)) <= atol
        return int(np.argmax(same)) if same.any() else None


class _Cutting:
    """One axis, cut layer by layer."""

    def __init__(self, network: Network, known: _Known, axis: int, start: float) -> None:
        self.network, self.known, self.axis, self.start = network, known, axis, start
        e = np.zeros(network.dim_in)
        e[axis] = 1.0
        self.stretches = [_Stretch(start, np.inf, np.zeros(network.dim_in), e)]
        self.zeros: dict[float, tuple[int, int]] = {}

    def cut(self) -> AxisCut:
        """Cut by every hidden layer, then keep the kinks that show in an output."""
        for layer in range(self.network.n_hidden):
            self.stretches = [
                part for stretch in self.stretches for part in self._split(stretch, layer)
            ]
        kinks: list[float] = []
        hyperplanes: list[int] = []
        ends = [0]
        for i, stretch in enumerate(self.stretches[1:], start=1):
            layer, j = self.zeros[stretch.lo]
            if self._shows(stretch, layer, j):
                kinks.append(stretch.lo)
                hyperplanes.append(self._hyperplane(stretch, layer, j))
                ends.append(i)
        return AxisCut(
            axis=self.axis,
            kinks=np.asarray(kinks, dtype=np.float64),
            pieces=np.stack([self._output(self.stretches[i]) for i in ends]),
            errors=np.zeros(len(ends)),
            hyperplanes=np.asarray(hyperplanes, dtype=np.intp),
            start=self.start,
        )

    def _split(self, stretch: _Stretch, layer: int) -> list[_Stretch]:
        """Cut one stretch at the zeros of one layer's neurons."""
        W, b = self.network.weights[layer], self.network.biases[layer]
        z0, z1 = W @ stretch.p + b, W @ stretch.q
        with np.errstate(divide="ignore", invalid="ignore"):
            roots = np.where(z1 != 0, -z0 / z1, np.nan)
        inside = np.flatnonzero((roots > stretch.lo) & (roots < stretch.hi))
        cuts = [stretch.lo]
        for j in inside[np.argsort(roots[inside], kind="stable")]:
            t = float(roots[j])
            near = min([*cuts[1:], stretch.lo, stretch.hi], key=lambda s: abs(s - t))
            if abs(t - near) <= _SAME * abs(t):
                self._coincide(stretch, layer, int(j), near)
            else:
                self.zeros[t] = (layer, int(j))
                cuts.append(t)
        parts = []
        for lo, hi in pairwise([*cuts, stretch.hi]):
            t = _inner(lo, hi)
            on = z0 + z1 * t > 0
            parts.append(
                _Stretch(lo, hi, np.where(on, z0, 0.0), np.where(on, z1, 0.0), [*stretch.masks, on])
            )
        return parts

    def _coincide(self, stretch: _Stretch, layer: int, j: int, t: float) -> None:
        """Two neurons at one point: on one hyperplane, or on two that meet on the axis."""
        first = self._hyperplane(stretch, layer, j)
        if t not in self.zeros or self.zeros[t] == (layer, j):
            return
        other_layer, other = self.zeros[t]
        second = self._hyperplane(stretch, other_layer, other)
        n1, n2 = self.known.normals[first], self.known.normals[second]
        parallel = min(np.abs(n1 - n2).max(), np.abs(n1 + n2).max()) <= _SAME
        if first != second and parallel:
            self.known.shared.add((layer, j))

    def _input(self, stretch: _Stretch, layer: int, j: int) -> tuple[FloatArray, float]:
        """Gradient and constant of a neuron's input in the state that a stretch has."""
        row, offset = self.network.weights[layer][j], float(self.network.biases[layer][j])
        for i in reversed(range(layer)):
            row = np.where(stretch.masks[i], row, 0.0)
            offset += float(row @ self.network.biases[i])
            row = row @ self.network.weights[i]
        return row, offset

    def _hyperplane(self, stretch: _Stretch, layer: int, j: int) -> int:
        masks = stretch.masks[:layer]
        neuron = (layer, j, _state(masks))
        tied = any(mask.sum() == 1 for mask in masks)
        return self.known.add(neuron, *self._input(stretch, layer, j), tied=tied)

    def _shows(self, stretch: _Stretch, layer: int, j: int) -> bool:
        """Whether the neuron reaches an output in the state that a stretch has."""
        e = np.zeros(len(self.network.weights[layer]))
        e[j] = 1.0
        y = np.zeros(self.network.dim_out)
        for i in range(layer + 1, self.network.n_hidden):
            if i == self.network.n_hidden - 1:
                y = self.network.affine[0] @ e
            e = np.where(stretch.masks[i], self.network.weights[i] @ e, 0.0)
        return bool((y + self.network.weights[-1] @ e).any())

    def _output(self, stretch: _Stretch) -> FloatArray:
        """Value at 0 and slope of the outputs, shape (2, k)."""
        # The last hidden layer's output is affine in t, and so is its input's.
        A, c = self.network.weights[-1], self.network.biases[-1]
        out = np.stack([A @ stretch.p + c, A @ stretch.q])
        if self.network.skip is not None:
            V, c = self.network.skip
            p, q = self._below(stretch)
            out += np.stack([V @ p + c, V @ q])
        return out

    def _below(self, stretch: _Stretch) -> tuple[FloatArray, FloatArray]:
        """The last hidden layer's input on a stretch."""
        p, q = np.zeros(self.network.dim_in), np.zeros(self.network.dim_in)
        q[self.axis] = 1.0
        layers = zip(self.network.weights, self.network.biases, stretch.masks[:-1], strict=False)
        for W, b, on in layers:
            p, q = np.where(on, W @ p + b, 0.0), np.where(on, W @ q, 0.0)
        return p, q


def _state(masks: Sequence[BoolArray]) -> bytes:
    return b"".join(np.packbits(mask).tobytes() for mask in masks)


def _inner(lo: float, hi: float) -> float:
    """A point well inside an interval that may be unbounded."""
    if np.isinf(lo) and np.isinf(hi):
        return 0.0
    if np.isinf(lo):
        return hi - 1.0 - abs(hi)
    return lo + 1.0 + abs(lo) if np.isinf(hi) else (lo + hi) / 2.0
