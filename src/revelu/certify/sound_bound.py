"""How far two networks may differ in a box, with certainty: of their weights, without a query.

1. **Pair** (``certify/pairs.py``): neurons side by side, so that the difference is small by itself
   and not by cancellation.
2. **Relax**: with ``z`` the sum of a neuron of the first network and ``z + e`` of its partner, the
   graphs of ``p = relu(z)`` and ``q = relu(z + e) - relu(z)`` lie between lines: a triangle, and
   a parallelogram, since q lies between 0 and e.  The bounds of z and e come from the layer below.
3. **Maximise** each output of the difference over that polytope, a linear program, by HiGHS.
4. **Round outward**: the solver is not trusted.  Any multipliers y >= 0 of its inequalities
   ``M v <= r`` bound the maximum of ``c v`` over ``low <= v <= high`` by
   ``y r + sum_j max(g_j low_j, g_j high_j)``, ``g = c - M^T y`` (weak duality; Neumaier and
   Shcherbina, 2004).  All that was rounded on the way is a ball, whose radius widens its row.

The bound is of the functions that the weights are in exact arithmetic; a program that evaluates
them in floating point adds its own rounding.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import linprog

from revelu.certify.pairs import Pair, PairedLayer
from revelu.certify.sound_statement import SoundBound
from revelu.errors import InputError
from revelu.network import Network
from revelu.numerics.balls import TINY, Ball, product_error
from revelu.numerics.links import Link
from revelu.types import FloatArray

# Coefficients of some of the variables, by the index of their part.
Blocks: TypeAlias = dict[int, Ball]
Ends: TypeAlias = tuple[FloatArray, FloatArray]


def sound_bound(
    first: Network,
    second: Network,
    box: tuple[float, float],
    seed: int = 0,
    starts: int = 20,
    *,
    link: Link | None = None,
) -> SoundBound:
    """Bound the largest difference of two networks in a box.

    Parameters
    ----------
    first, second : Network
        Of the same inputs, outputs and depth.  The bound is close where their neurons match one
        to one, and valid in any case.
    box : (lo, hi)
        Smallest and largest value of every input.
    seed : int
        Decides where the search begins; the bound does not depend on it.
    starts : int
        Random places where the search begins, besides those that the linear programs propose.
    link : Link, optional
        What undoes the target's last step, where that is known.  Of a contrast outputs less the
        last one are compared, as logits are that are known up to a common shift.

    Raises
    ------
    InputError
        If inputs, outputs or depth differ, or the box is none.

    Examples
    --------
    >>> import revelu
    >>> f = revelu.Network([[[1.0]], [[1.0]]], [[0.0], [0.0]])
    >>> g = revelu.Network([[[1.0]], [[1.5]]], [[0.0], [0.0]])
    >>> round(sound_bound(f, g, (-1.0, 2.0)).largest, 6)
    1.0
    """
    lo, hi = map(float, box)
    if not -np.inf < lo < hi < np.inf:
        raise InputError(f"a box is two finite numbers, the smaller first: got {box!r}")
    pair = Pair.of(first, second)
    pair = pair.contrasted() if link is not None and link.contrast else pair
    dim, n_outputs = first.dim_in, len(pair.layers[-1].D.mid)
    polytope = _Polytope(pair, Ball.between(np.full(dim, lo), np.full(dim, hi)))
    sides = [polytope.maximum(sign, o) for o in range(n_outputs) for sign in (1.0, -1.0)]
    values = np.array([value for value, _ in sides]).reshape(-1, 2)
    rng = np.random.default_rng(seed)
    begin = np.vstack(
        [*(x[None, :dim] for _, x in sides), rng.uniform(lo, hi, (starts, dim))]
    ).clip(lo, hi)
    found, where = _search(pair, begin, lo, hi)
    widths = first.to_dense().architecture[1:-1]
    bounds = np.maximum(values.max(axis=1, initial=0.0), 0.0)
    return SoundBound((lo, hi), bounds, found, where, pair.n_matched, sum(widths), link)


class _Passed(NamedTuple):
    """What a layer passes on: ``a`` of the first network, ``a + q`` of the second.

    ``at`` and ``moved`` are the parts of the variables that stand for ``a`` and for ``q`` over
    ``scale``; the inputs have no q, and ``moved`` is None.
    """

    a: Ball
    q: Ball
    scale: float
    at: int
    moved: int | None

    def sums(self, layer: PairedLayer) -> tuple[Ball, Ball]:
        """Return ``z`` and ``e`` of the layer above, by intervals."""
        z = _times(Ball.exactly(layer.W), self.a) + Ball.exactly(layer.b)
        return z, _times(layer.V, self.q) + layer.d + _times(layer.D, self.a)

    def surplus(self, layer: PairedLayer, unit: float) -> Blocks:
        """Return the coefficients of ``e`` over ``unit``."""
        own = {self.at: layer.D.scaled(1.0 / unit)}
        if self.moved is None:
            return own
        return own | {self.moved: layer.V.scaled(self.scale / unit)}


class _Polytope:
    """What is linear of a pair in a box: ``M v <= r`` and ``lower <= v <= upper``.

    The variables are ``v = (x, p_1, q_1 / s_1, p_2, q_2 / s_2, ...)``: the units ``s`` keep the
    surplus of a layer as large as its values.
    """

    def __init__(self, pair: Pair, x: Ball) -> None:
        self.parts: list[tuple[FloatArray, FloatArray]] = [(x.low, x.high)]
        self.rows: list[tuple[Blocks, Ball]] = []
        top = below = _Passed(x, Ball.exactly(np.zeros_like(x.mid)), 1.0, 0, None)
        for layer in pair.layers[:-1]:
            top, below = self._relaxed(layer, top), top
        self._assemble(pair, top, below)

    def _relaxed(self, layer: PairedLayer, below: _Passed) -> _Passed:
        """Add a layer's variables, their bounds and their rows."""
        z, e = below.sums(layer)
        s = _power_of_two(e)
        low, high = np.maximum(z.low, 0.0), np.maximum(z.high, 0.0)
        small, other = e.scaled(1.0 / s), z + e
        both = (z.low >= 0.0) & (other.low >= 0.0)
        neither = (z.high <= 0.0) & (other.high <= 0.0)
        # q lies between 0 and e: above min(0, e) and below max(0, e); it is e where both are on.
        ends = small.low, small.high
        least, most = (
            [np.where(both, y, f(y, 0.0)) for y in ends] for f in (np.minimum, np.maximum)
        )
        q_low, q_high = np.where(neither, 0.0, least[0]), np.where(neither, 0.0, most[1])
        self.parts += [(low, high), (q_low, q_high)]
        at = len(self.parts) - 2
        moved = at + 1
        eye = Ball.exactly(np.eye(len(low)))
        Z, b = {below.at: Ball.exactly(layer.W)}, Ball.exactly(layer.b)
        E, d = below.surplus(layer, s), layer.d.scaled(1.0 / s)
        p, q, minus_q = {at: eye}, {moved: eye}, {moved: -eye}
        self._between(p, Z, b, (z.low, z.high), (low, high))
        self._under(q, E, d, ends, (most[0], most[1]))
        self._under(minus_q, E, d, ends, (-least[0], -least[1]))
        # p + s q is relu(z + e).
        total = _sum(Z, {part: block.scaled(s) for part, block in E.items()})
        on = np.maximum(other.low, 0.0), np.maximum(other.high, 0.0)
        whole = {at: eye, moved: eye.scaled(s)}
        self._between(whole, total, b + d.scaled(s), (other.low, other.high), on)
        self.rows.append(({part: -block for part, block in whole.items()}, Ball.exactly(0.0 * low)))
        q_ball = Ball.between(q_low, q_high).scaled(s)
        return _Passed(Ball.between(low, high), q_ball, s, at, moved)

    def _between(self, y: Blocks, Z: Blocks, b: Ball, ends: Ends, on: Ends) -> None:
        """Put ``y = relu(z)``, ``z = Z v + b``, between z and the line through its ends."""
        self.rows.append((_sum({part: -block for part, block in y.items()}, Z), -b))
        self._under(y, Z, b, ends, on)

    def _under(
        self,
        y: Blocks,
        Z: Blocks,
        b: Ball,
        ends: Ends,
        values: Ends,
    ) -> None:
        """Put y under the line through the values that it has at both ends of z.

        Any slope will do; the offset is rounded so that the line is above both.
        """
        (left, right), (low, high) = values, ends
        width = np.where(high > low, high - low, 1.0)
        slope = Ball.exactly(np.where(high > low, (right - left) / width, 0.0))
        above = [
            (Ball.exactly(v) - slope * Ball.exactly(x)).high
            for v, x in zip(values, ends, strict=True)
        ]
        line = {part: -(slope.column() * block) for part, block in Z.items()}
        self.rows.append((_sum(y, line), slope * b + Ball.exactly(np.maximum(*above))))

    def _assemble(self, pair: Pair, top: _Passed, below: _Passed) -> None:
        """Write the rows, and the outputs in units of ``scale``, as matrices."""
        difference = top.sums(pair.layers[-1])[1]
        if pair.skip is not None:
            difference = difference + below.sums(pair.skip)[1]
        self.scale = _power_of_two(difference)
        self.difference = difference.scaled(1.0 / self.scale)
        c, d = top.surplus(pair.layers[-1], self.scale), pair.layers[-1].d
        if pair.skip is not None:
            c, d = _sum(c, below.surplus(pair.skip, self.scale)), d + pair.skip.d
        sizes = [len(low) for low, _ in self.parts]
        self.lower = np.concatenate([low for low, _ in self.parts])
        self.upper = np.concatenate([high for _, high in self.parts])
        self.reach = np.maximum(np.abs(self.lower), np.abs(self.upper))
        self.c, self.d = _assembled(c, sizes), d.scaled(1.0 / self.scale)
        rows = [(_assembled(blocks, sizes), r) for blocks, r in self.rows]
        self.M = np.vstack([np.zeros((0, sum(sizes))), *(M.mid for M, _ in rows)])
        # What was rounded in a row widens it, by as much as the variables allow.
        room = [np.nextafter(r.high + _dot(M.rad, self.reach), np.inf) for M, r in rows]
        self.r = np.concatenate([np.zeros(0), *room])

    def maximum(self, sign: float, output: int) -> tuple[float, FloatArray]:
        """Bound ``sign`` times an output of the difference from above; and where it may be so."""
        c = sign * self.c.mid[output]
        found = linprog(
            -c,
            A_ub=self.M,
            b_ub=self.r,
            bounds=np.column_stack([self.lower, self.upper]),
            method="highs",
        )
        y, x = np.zeros(len(self.r)), self.lower
        if found.x is not None:
            x = found.x
            y = np.maximum(np.nan_to_num(-found.ineqlin.marginals), 0.0)
        parts = [
            *self._dual(c, y),
            float(_dot(self.c.rad[output], self.reach)),
            sign * float(self.d.mid[output]),
            float(self.d.rad[output]),
        ]
        value = sum(parts) + product_error(len(parts)) * sum(map(abs, parts)) + TINY
        by_intervals = self.difference.high if sign > 0 else -self.difference.low
        return min(value, float(by_intervals[output])) * self.scale, x

    def _dual(self, c: FloatArray, y: FloatArray) -> tuple[float, float, float]:
        """What ``c v`` does not exceed on the polytope, whatever y >= 0: terms of a sum."""
        g = c - self.M.T @ y
        error = product_error(len(y) + 1) * (np.abs(c) + np.abs(self.M).T @ y)
        terms = np.maximum(g * self.lower, g * self.upper)
        sizes = float(y @ np.abs(self.r) + np.abs(terms).sum())
        return (
            float(y @ self.r + terms.sum()),
            product_error(len(y) + len(c)) * sizes,
            float(_dot(error, self.reach)),
        )


def _times(W: Ball, a: Ball) -> Ball:
    return (W @ a.column()).row()


def _power_of_two(ball: Ball) -> float:
    """A power of 2 as large as the largest member; 1 where all are as good as 0."""
    size = float(ball.size.max(initial=0.0))
    return float(2.0 ** np.ceil(np.log2(size))) if size > 1e-280 else 1.0


def _sum(first: Blocks, second: Blocks) -> Blocks:
    """Add coefficients, part by part."""
    shared = {part: first[part] + second[part] for part in first.keys() & second.keys()}
    return first | second | shared


def _assembled(blocks: Blocks, sizes: list[int]) -> Ball:
    """Coefficients of all variables, side by side."""
    k = len(next(iter(blocks.values())).mid)
    columns = [blocks.get(part, Ball.exactly(np.zeros((k, n)))) for part, n in enumerate(sizes)]
    return Ball(np.hstack([b.mid for b in columns]), np.hstack([b.rad for b in columns]))


def _dot(radii: FloatArray, reach: FloatArray) -> FloatArray:
    """Return no less than the exact sums of products of numbers that are not negative."""
    return np.asarray(radii @ reach * (1.0 + product_error(len(reach))) + TINY)


def _search(
    pair: Pair, X: FloatArray, lo: float, hi: float, most: int = 30, n_steps: int = 8
) -> tuple[FloatArray, FloatArray]:
    """Climb from each input, for each output, towards the corner that its slope points to."""
    seen = [X]
    steps = np.arange(1, n_steps + 1) / n_steps
    for o in range(len(pair.layers[-1].D.mid)):
        for sign in (1.0, -1.0):
            at, values = X.copy(), sign * pair.difference(X)[:, o]
            for _ in range(most):
                J = sign * pair.with_gradients(at)[1][:, o]
                corner = np.where(J > 0, hi, np.where(J < 0, lo, at))
                # The slope changes on the way, and the best place may be before the corner.
                ways = at + steps[:, None, None] * (corner - at)
                new = sign * pair.difference(ways.reshape(-1, X.shape[1]))[:, o]
                new = new.reshape(n_steps, -1)
                best, row = new.argmax(axis=0), np.arange(len(at))
                better = new[best, row] > values
                if not better.any():
                    break
                at[better] = ways[best, row][better]
                values[better] = new[best, row][better]
            seen.append(at)
    points = np.vstack(seen).clip(lo, hi)
    sizes = np.abs(pair.difference(points))
    return sizes.max(axis=0, initial=0.0), points[int(sizes.max(axis=1).argmax())]
