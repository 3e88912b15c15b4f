"""Which side of its hyperplane a neuron is on at, from gradients alone.

Above a layer with rows W, seen through the local map M of those below it, a gradient is a
combination of the rows of ``W M`` of the neurons that are on.  Where fewer of them are on than
M has rank, a gradient lies in their span if the signs are right, and by no chance if they are not:
each such point is a proof.  Nothing is asked of what stands above the layer.
"""

from dataclasses import dataclass

import numpy as np

from revelu.types import BoolArray, FloatArray, IntArray

# A gradient is in a span if this share of it, at most, is not.
_IN_SPAN = 1e-5

# Directions fainter than this share, squared, of all are none.
_RIDGE = 1e-13

# The search: points, turns of one sign from each start, starts beside the vote with so many of
# its signs turned by chance, turns of which the best is taken, multiplications, and the share of
# points that must be explained to end it.
_MOST_POINTS = 250
_MAX_TURNS = 60
_FEWEST_STARTS, _MAX_STARTS = 3, 12
_FLIPPED = 0.2
_TRIED = 4
_MOST_WORK = 1e10
_MOSTLY = 0.5
_SURELY = 0.9

# Points that are looked at before all others for whether a neuron is needed.
_FIRST = 30

# Fewer telling points prove nothing.
_FEWEST_TELLING = 8


@dataclass(frozen=True)
class Orientation:
    """Signs of a layer's neurons, and what speaks for them.

    Attributes
    ----------
    signs : ndarray, shape (k,)
        +1 where a neuron is on where its sum is positive as given, else -1.
    n_telling : int
        Points at which fewer neurons are on than the map has rank.
    n_explained : int
        Those whose gradients are in the span of their neurons.
    explained, unexplained : ndarray of int
        Which they are, and the other ones.
    needed : ndarray of bool, shape (k,)
        Neurons without which, one after the other, fewer gradients would be explained.  A row
        that is none of the layer's is not needed.
    idle : ndarray of bool, shape (k,)
        Neurons that are on at none of the explained points, which thus say nothing of them.
    """

    signs: FloatArray
    n_telling: int
    n_explained: int
    explained: IntArray
    unexplained: IntArray
    needed: BoolArray
    idle: BoolArray


def orient(
    W: FloatArray,
    Z: FloatArray,
    M: FloatArray,
    gradients: FloatArray,
    rng: np.random.Generator,
    doubtful: BoolArray | None = None,
    *,
    oriented: bool = False,
) -> Orientation:
    """Find the signs that explain most gradients.

    A vote comes first: the shortest combination of all rows that gives a gradient weighs a
    neuron that is on more than one that is off.  Then signs are turned while that explains
    more points.

    Parameters
    ----------
    W : ndarray, shape (k, m)
        Rows of the layer, each with either sign.
    Z : ndarray, shape (n, k)
        Their sums at points.
    M : ndarray, shape (n, m, d)
        Local maps of the layers below.
    gradients : ndarray, shape (n, outputs, d)
    rng : numpy.random.Generator
        Chooses points where there are many.
    doubtful : ndarray of bool, shape (k, m), optional
        Entries that are not known.  Where such an input is on, its neuron counts as on, whatever
        its sum, and so does one that reads this input alone.
    """
    if doubtful is None:
        doubtful = np.zeros(W.shape, dtype=bool)
    spans = _Spans.of(W, M, gradients, doubtful)
    positive = Z > 0
    chosen = rng.permutation(len(Z))[:_MOST_POINTS]
    few, above = spans.take(chosen), positive[chosen]
    vote = np.ones(len(W)) if oriented else spans.vote(positive)
    signs, most = vote, -1
    known = oriented and few.share_explained(above, vote) >= _SURELY
    left = int(_MOST_WORK / max(few.rows.size * few.rows.shape[1], 1))
    for turn in range(0 if known else _MAX_STARTS):
        flips = rng.random(len(W)) < (_FLIPPED if turn else 0.0)
        found, n_turns = _climb(few, above, np.where(flips, -vote, vote), left)
        left -= n_turns
        n = few.n_explained(above, found)
        if n > most:
            signs, most = found, n
        is_found = few.share_explained(above, signs) >= _MOSTLY
        if left <= 0 or (turn >= _FEWEST_STARTS and is_found):
            break
    on = positive == (signs > 0)
    telling, explained = spans.judge(on)
    return Orientation(
        signs,
        int(telling.sum()),
        int((telling & explained).sum()),
        np.flatnonzero(telling & explained),
        np.flatnonzero(telling & ~explained),
        _needed(spans, on),
        ~on[telling & explained].any(axis=0),
    )


def _needed(spans: "_Spans", on: BoolArray) -> BoolArray:
    """Which rows explained gradients need: the others go, one after the other."""
    telling, explained = spans.judge(on)
    kept = np.flatnonzero(telling & explained)
    few, on = spans.take(kept), on[kept]
    needed = np.ones(on.shape[1], dtype=bool)
    for j in range(on.shape[1]):
        needed[j] = False
        # Elsewhere nothing changes, and a few points often show that it is needed.
        told = np.flatnonzero(on[:, j])
        parts = (told[:_FIRST], told[_FIRST:])
        needed[j] = any(not few.take(i).judge(on[i] & needed)[1].all() for i in parts if len(i))
    return needed


def _climb(
    spans: "_Spans", positive: BoolArray, signs: FloatArray, most: int
) -> tuple[FloatArray, int]:
    """Turn single signs while gradients come nearer their spans, then while more are inside.

    The first leads from far away, the second is what counts: signs that leave few points to
    tell anything explain those few with ease.  Returned with how many turns were looked for, of
    which there are ``most``, about.
    """
    n_turns = 0
    for worth, after in ((spans.nearness, _nearness), (spans.n_explained, _n_explained)):
        now = worth(positive, signs)
        for _ in range(min(_MAX_TURNS, most - n_turns)):
            n_turns += 1
            likely = np.argsort(-after(*spans.after_turns(positive == (signs > 0))))[:_TRIED]
            turns = _turns(signs)
            worths = [worth(positive, turns[j]) for j in likely]
            if not worths or max(worths) <= now:
                break
            now, signs = max(worths), turns[likely[int(np.argmax(worths))]]
    return signs, n_turns


def _nearness(telling: BoolArray, outside: FloatArray) -> FloatArray:
    """Minus the mean logarithm of what of the gradients is outside their spans, a column each."""
    logs = np.log(np.maximum(outside, _IN_SPAN**2))
    count = telling.sum(axis=0)
    mean = (logs * telling).sum(axis=0) / np.maximum(count, 1)
    return np.where(count < _FEWEST_TELLING, 0.0, -mean)


def _n_explained(telling: BoolArray, outside: FloatArray) -> FloatArray:
    """How many gradients are in their spans, a column each."""
    return np.asarray((telling & (outside <= _IN_SPAN**2)).sum(axis=0), dtype=np.float64)


def _turns(signs: FloatArray) -> list[FloatArray]:
    """All signs that differ in one."""
    return [np.where(np.arange(len(signs)) == j, -signs, signs) for j in range(len(signs))]


@dataclass(frozen=True)
class _Spans:
    """Products of rows and gradients at every point: all that projections need.

    ``rows (n, k, k)``, ``cross (n, k, outputs)``, ``size (n,)``, ``ranks (n,)``, and which count
    as on in any case, ``forced (n, k)``; the last rows are those of doubtful inputs.
    """

    rows: FloatArray
    cross: FloatArray
    size: FloatArray
    ranks: IntArray
    forced: BoolArray

    @classmethod
    def of(
        cls, W: FloatArray, M: FloatArray, gradients: FloatArray, doubtful: BoolArray
    ) -> "_Spans":
        extra = np.flatnonzero(np.asarray(doubtful).any(axis=0))
        R = np.vstack([W, np.eye(W.shape[1])[extra]]) @ M
        flat = np.swapaxes(gradients, 1, 2)
        ranks = np.asarray(np.linalg.matrix_rank(M), dtype=np.intp)
        live: BoolArray = np.asarray(M.any(axis=2))
        forced = np.column_stack([live @ doubtful.T, live[:, extra]])
        size = (gradients**2).sum(axis=(1, 2))
        return cls(R @ np.swapaxes(R, 1, 2), R @ flat, size, ranks, forced)

    def take(self, rows: IntArray) -> "_Spans":
        return _Spans(*(a[rows] for a in vars(self).values()))

    def vote(self, positive: BoolArray) -> FloatArray:
        """Signs by the size of each neuron's part in the shortest combinations."""
        values, U = np.linalg.eigh(self.rows)
        kept = values > 1e-9 * values[:, -1:]
        inverse = (
            U * np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)[:, None]
        ) @ np.swapaxes(U, 1, 2)
        parts = np.sqrt(((inverse @ self.cross) ** 2).sum(axis=2))[:, : positive.shape[1]]
        total = parts.sum(axis=1, keepdims=True)
        share = np.where(total > 0, parts / np.where(total > 0, total, 1.0), 0.0)
        above = (share * positive).sum(axis=0) / np.maximum(positive.sum(axis=0), 1)
        below = (share * ~positive).sum(axis=0) / np.maximum((~positive).sum(axis=0), 1)
        return np.where(above >= below, 1.0, -1.0)

    def n_explained(self, positive: BoolArray, signs: FloatArray) -> int:
        """At how many telling points gradients are in their spans."""
        telling, explained = self.judge(positive == (signs > 0))
        return int((telling & explained).sum())

    def share_explained(self, positive: BoolArray, signs: FloatArray) -> float:
        """The same as a share of the telling points."""
        telling, explained = self.judge(positive == (signs > 0))
        return float((telling & explained).sum() / max(telling.sum(), 1))

    def nearness(self, positive: BoolArray, signs: FloatArray) -> float:
        """Minus the mean logarithm of what of the gradients is outside their spans."""
        telling, outside = self._outside(positive == (signs > 0))
        return float(_nearness(telling[telling, None], outside[:, None])[0])

    def after_turns(self, on: BoolArray) -> tuple[BoolArray, FloatArray]:
        """Which points tell, and what is outside, after each turn of one sign, shapes (n, k).

        A row more or less changes the projection of a gradient g by one direction's part.  With
        G the products of the rows that are on, u = G^-1 R g, and r what row j and g share outside
        the span: j adds ``r^2 / (R_jj - R_jS G^-1 R_Sj)``, and without j ``u_j^2 / (G^-1)_jj`` is
        lost.  Rounding grows where rows nearly depend on each other: a first look only.
        """
        n, k = on.shape
        m = self.forced.shape[1]
        on = np.column_stack([on, np.zeros((n, m - k), dtype=bool)]) | self.forced
        G = np.where(on[:, :, None] & on[:, None, :], self.rows, 0.0)
        trace = np.trace(self.rows, axis1=1, axis2=2)[:, None]
        ridge = _RIDGE * np.where(trace > 0, trace, 1.0)
        G[:, np.arange(m), np.arange(m)] += np.where(on, ridge, 1.0)
        inverse = np.linalg.inv(G)
        across = np.where(on[:, :, None], self.rows, 0.0)
        u = inverse @ np.where(on[:, :, None], self.cross, 0.0)
        inside = (u * self.cross).sum(axis=(1, 2))[:, None]
        new = np.diagonal(self.rows, axis1=1, axis2=2) - (across * (inverse @ across)).sum(axis=1)
        shared = self.cross - np.swapaxes(across, 1, 2) @ u
        gain = (shared**2).sum(axis=2) / np.maximum(new, ridge)
        loss = (u**2).sum(axis=2) / np.diagonal(inverse, axis1=1, axis2=2)
        change = np.where(on, -loss, gain) * ~self.forced
        counts = on.sum(axis=1)[:, None] + np.where(on, -1, 1) * ~self.forced
        size = self.size[:, None]
        telling = (counts < self.ranks[:, None]) & (size > 0)
        outside = 1.0 - (inside + change) / np.where(size > 0, size, 1.0)
        return telling[:, :k], outside[:, :k]

    def judge(self, on: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Which points tell, and at which the gradient is in the span of what is on."""
        telling, outside = self._outside(on)
        explained = np.zeros(len(on), dtype=bool)
        explained[telling] = outside <= _IN_SPAN**2
        return telling, explained

    def _outside(self, on: BoolArray) -> tuple[BoolArray, FloatArray]:
        """Which points tell, and the share of each gradient, squared, outside its span."""
        n, k = self.forced.shape
        on = np.column_stack([on, np.zeros((n, k - on.shape[1]), dtype=bool)]) | self.forced
        telling = (on.sum(axis=1) < self.ranks) & (self.size > 0)
        i = np.flatnonzero(telling)
        G = np.where(on[i, :, None] & on[i, None, :], self.rows[i], 0.0)
        trace = np.trace(G, axis1=1, axis2=2)[:, None]
        floor = np.where(on[i] & (trace > 0), _RIDGE * trace, 1.0)
        G[:, np.arange(k), np.arange(k)] += floor
        right = np.where(on[i, :, None], self.cross[i], 0.0)
        inside = (np.linalg.solve(G, right) * right).sum(axis=(1, 2))
        return telling, np.asarray(1.0 - inside / self.size[i])
