"""Which side of its hyperplane a neuron is on at, from gradients alone.

With the right signs every informative gradient lies in the span of the neurons that are on
(:mod:`.gradient_spans`), with a wrong one hardly any does.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.recover.deep.gradient_spans import RIDGE, Products, gram
from revelu.recover.deep.kink_equations import PRECISION
from revelu.types import BoolArray, FloatArray, IntArray

Worth = Callable[[BoolArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Orientation:
    """Signs of a layer's neurons, and what speaks for them.

    Attributes
    ----------
    signs : ndarray, shape (k,)
        +1 where a neuron is on where its sum is positive as given, else -1.
    explained, unexplained : ndarray of int
        Informative points whose gradients are in the span of the neurons on there, and the
        others.
    needed : ndarray of bool, shape (k,)
        Neurons without which, one after the other, fewer gradients would be explained.  A row
        that is none of the layer's is not needed.
    idle : ndarray of bool, shape (k,)
        Neurons that are on at none of the explained points, which thus say nothing of them.
    is_complete : bool
        Whether gradients leave nothing to other neurons.
    is_refuted : bool
        Whether no signs explain more than some of many gradients: the layer lacks several neurons
        that are mostly on, or is no layer of ReLUs.
    """

    signs: FloatArray
    explained: IntArray
    unexplained: IntArray
    needed: BoolArray
    idle: BoolArray
    is_complete: bool
    is_refuted: bool

    @property
    def n_informative(self) -> int:
        """Points at which fewer neurons are on than the local map has rank."""
        return len(self.explained) + len(self.unexplained)


@dataclass(frozen=True)
class SignSearch:
    """The search for the signs that explain most gradients.

    A vote comes first: the shortest combination of all rows that gives a gradient weighs a neuron
    that is on more than one that is off.  Then signs are turned while that explains more points.
    """

    max_points: int = 250
    """Points that signs are tried at."""
    max_turns: int = 60
    """Turns of one sign from each start, each the best of those ``n_tried`` that promise most."""
    n_tried: int = 4
    min_starts: int = 3
    max_starts: int = 12
    """Starts beside the vote; once half of the points are explained the fewest will do."""
    flipped: float = 0.2
    """Share of the vote that such a start turns by chance."""
    max_work: float = 1e10
    """Multiplications after which no other start is made."""
    surely: float = 0.9
    """Signs known before that explain this share of the points are right."""
    fewest: int = 8
    """Fewer informative points prove nothing."""
    outliers: float = 0.002
    """A complete layer may leave this share of its gradients unexplained: noise has bent them."""
    many: int = 50
    few: float = 0.2
    """A layer is refuted by so many informative points of which no more than this share is
    explained: it need not be none, for where all neurons are on all is explained."""

    def find(
        self,
        W: FloatArray,
        Z: FloatArray,
        M: FloatArray,
        gradients: FloatArray,
        rng: np.random.Generator,
        doubtful: BoolArray | None = None,
        *,
        oriented: bool = False,
    ) -> Orientation:
        """Find the signs of a layer's rows.

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
            Weights that are undetermined.  Where such an input is on, its neuron counts as on,
            whatever its sum, and so does one that reads this input alone.
        oriented : bool
            Whether the rows have the signs that they had when all gradients were explained.
        """
        doubtful = np.zeros(W.shape, dtype=bool) if doubtful is None else doubtful
        spans = Spans.of(W, Z, M, gradients, doubtful)
        few = spans.take(rng.permutation(len(Z))[: self.max_points])
        vote = np.ones(len(W)) if oriented else spans.vote()
        signs, most = vote, -1
        known = oriented and few.share_explained(vote) >= self.surely
        left = int(self.max_work / max(few.rows.size * few.rows.shape[1], 1))
        for start in range(0 if known else self.max_starts):
            flips = rng.random(len(W)) < (self.flipped if start else 0.0)
            found, n_turns = self._climb(few, np.where(flips, -vote, vote), left)
            left -= n_turns
            n = int(few.judge(few.on(found))[1].sum())
            if n > most:
                signs, most = found, n
            is_found = few.share_explained(signs) >= 0.5
            if left <= 0 or (start >= self.min_starts and is_found):
                break
        on = spans.on(signs)
        informative, explained = spans.judge(on)
        n, n_explained = int(informative.sum()), int(explained.sum())
        return Orientation(
            signs,
            np.flatnonzero(explained),
            np.flatnonzero(informative & ~explained),
            spans.needed(on),
            np.asarray(~on[explained].any(axis=0)),
            n >= self.fewest and n - n_explained <= self.outliers * n,
            n >= self.many and n_explained <= self.few * n,
        )

    def _climb(self, spans: "Spans", signs: FloatArray, most: int) -> tuple[FloatArray, int]:
        """Turn single signs while gradients come nearer their spans, then while more are inside.

        The first leads from far away, the second is what counts: signs that leave few points
        informative explain those few with ease.  Returned with how many turns were looked for, of
        which there are ``most``, about.
        """
        n_turns = 0
        for worth in (self.nearness, n_explained):

            def worth_of(turn: FloatArray, worth: Worth = worth) -> float:
                informative, outside = spans.outside(spans.on(turn))
                return float(worth(informative[informative], outside))

            now = worth_of(signs)
            for _ in range(min(self.max_turns, most - n_turns)):
                n_turns += 1
                likely = np.argsort(-worth(*spans.after_turns(spans.on(signs))))[: self.n_tried]
                turns = turns_of(signs)[likely]
                worths = [worth_of(turn) for turn in turns]
                if not worths or max(worths) <= now:
                    break
                now, signs = max(worths), turns[int(np.argmax(worths))]
        return signs, n_turns

    def nearness(self, informative: BoolArray, outside: FloatArray) -> FloatArray:
        """Minus the mean logarithm of what of the gradients is outside their spans.

        Parameters
        ----------
        informative : ndarray of bool, shape (n,) or (n, k)
        outside : ndarray, of the same shape
            Shares of the gradients, squared.

        Returns
        -------
        ndarray, shape () or (k,)
        """
        logs = np.log(np.maximum(outside, PRECISION**2))
        count = informative.sum(axis=0)
        mean = (logs * informative).sum(axis=0) / np.maximum(count, 1)
        return np.where(count < self.fewest, 0.0, -mean)


def n_explained(informative: BoolArray, outside: FloatArray) -> FloatArray:
    """How many gradients are in their spans; as for :meth:`SignSearch.nearness`."""
    return np.asarray((informative & (outside <= PRECISION**2)).sum(axis=0), dtype=np.float64)


def turns_of(signs: FloatArray) -> FloatArray:
    """All signs that differ in one, shape (k, k)."""
    return np.asarray(signs * (1.0 - 2.0 * np.eye(len(signs))))


@dataclass(frozen=True)
class Spans(Products):
    """Products at points, and what is on there.

    Attributes
    ----------
    positive : ndarray of bool, shape (n, k)
        Where the rows' sums are positive.
    forced : ndarray of bool, shape (n, k + k')
        Rows that count as on in any case, the last ones being those of doubtful inputs.
    """

    positive: BoolArray
    forced: BoolArray

    @classmethod
    def of(  # type: ignore[override]
        cls,
        W: FloatArray,
        Z: FloatArray,
        M: FloatArray,
        gradients: FloatArray,
        doubtful: BoolArray,
    ) -> "Spans":
        """As for :meth:`SignSearch.find`."""
        extra = np.flatnonzero(np.asarray(doubtful).any(axis=0))
        products = Products.of(np.vstack([W, np.eye(W.shape[1])[extra]]), M, gradients)
        live: BoolArray = np.asarray(M.any(axis=2))
        forced = np.column_stack([live @ doubtful.T, live[:, extra]])
        return cls(**vars(products), positive=Z > 0, forced=forced)

    def on(self, signs: FloatArray) -> BoolArray:
        """Which neurons are on, shape (n, k)."""
        return np.asarray(self.positive == (signs > 0))

    def vote(self, faint: float = 1e-9) -> FloatArray:
        """Signs by the size of each neuron's part in the shortest combinations.

        Directions of a smaller share of the rows, squared, than ``faint`` are left out: gradients
        have no digits for them.
        """
        positive, inverse = self.positive, np.linalg.pinv(self.rows, rcond=faint, hermitian=True)
        parts = np.linalg.norm(inverse @ self.cross, axis=2)[:, : positive.shape[1]]
        total = parts.sum(axis=1, keepdims=True)
        share = parts / np.where(total > 0, total, 1.0)
        above, below = (
            (share * side).sum(axis=0) / np.maximum(side.sum(axis=0), 1)
            for side in (positive, ~positive)
        )
        return np.where(above >= below, 1.0, -1.0)

    def share_explained(self, signs: FloatArray) -> float:
        """The share of the informative gradients that are in their spans."""
        informative, explained = self.judge(self.on(signs))
        return float(explained.sum() / max(informative.sum(), 1))

    def judge(self, on: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Which points are informative, and of those, which gradients are in their spans."""
        informative, outside = self.outside(on)
        explained = informative.copy()
        explained[informative] = outside <= PRECISION**2
        return informative, explained

    def outside(self, on: BoolArray) -> tuple[BoolArray, FloatArray]:
        """Which points are informative; how much of their gradients, squared, is outside."""
        on = self._with_forced(on)
        informative = (on.sum(axis=1) < self.ranks) & (self.size > 0)
        i = np.flatnonzero(informative)
        right = np.where(on[i, :, None], self.cross[i], 0.0)
        G = gram(self.rows[i], on[i])
        inside = (np.linalg.solve(G, right) * right).sum(axis=(1, 2))
        return informative, np.asarray(1.0 - inside / self.size[i])

    def after_turns(self, on: BoolArray) -> tuple[BoolArray, FloatArray]:
        """The same after each turn of one sign, at all points, shapes (n, k).

        A row more or less changes the projection of a gradient g by one direction's part.  With
        G the products of the rows that are on, u = G^-1 R g, and r what row j and g share outside
        the span: j adds ``r^2 / (R_jj - R_jS G^-1 R_Sj)``, and without j ``u_j^2 / (G^-1)_jj`` is
        lost.  Rounding grows where rows nearly depend on each other: a first look only.
        """
        k = on.shape[1]
        on = self._with_forced(on)
        trace = np.trace(self.rows, axis1=1, axis2=2)[:, None]
        trace = np.where(trace > 0, trace, 1.0)
        inverse = np.linalg.inv(gram(self.rows, on, trace))
        across = np.where(on[:, :, None], self.rows, 0.0)
        u = inverse @ np.where(on[:, :, None], self.cross, 0.0)
        inside = (u * self.cross).sum(axis=(1, 2))[:, None]
        new = np.diagonal(self.rows, axis1=1, axis2=2) - (across * (inverse @ across)).sum(axis=1)
        shared = self.cross - np.swapaxes(across, 1, 2) @ u
        gain = (shared**2).sum(axis=2) / np.maximum(new, RIDGE * trace)
        loss = (u**2).sum(axis=2) / np.diagonal(inverse, axis1=1, axis2=2)
        change = np.where(on, -loss, gain) * ~self.forced
        counts = on.sum(axis=1)[:, None] + np.where(on, -1, 1) * ~self.forced
        size = self.size[:, None]
        informative = (counts < self.ranks[:, None]) & (size > 0)
        outside = 1.0 - (inside + change) / np.where(size > 0, size, 1.0)
        return informative[:, :k], outside[:, :k]

    def needed(self, on: BoolArray, n_first: int = 30) -> BoolArray:
        """Which rows explained gradients need: the others go, one after the other.

        The first points are looked at before all others: they often show that a row is needed.
        """
        kept = np.flatnonzero(self.judge(on)[1])
        few, on = self.take(kept), on[kept]
        needed = np.ones(on.shape[1], dtype=bool)
        for j in range(on.shape[1]):
            needed[j] = False
            points = np.flatnonzero(on[:, j])  # elsewhere nothing changes
            parts = points[:n_first], points[n_first:]
            needed[j] = any(not few.take(i).judge(on[i] & needed)[1].all() for i in parts)
        return needed

    def _with_forced(self, on: BoolArray) -> BoolArray:
        more = np.zeros((len(on), self.forced.shape[1] - on.shape[1]), dtype=bool)
        return np.column_stack([on, more]) | self.forced
