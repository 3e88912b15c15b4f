"""Close neurons: summed where a line cannot part them, then looked at from near (CKM21).

Lemma 3.21: what the change of the gradient from one side of close neurons to the other says
is their sum.  Lemma 3.9 lets them be turned the same way first.
"""

from dataclasses import dataclass

import numpy as np

from revelu.network import Network, add_networks
from revelu.probe.line import Line
from revelu.recover.close.candidate import Draft, change_across
from revelu.recover.close.merging import close_groups, turned, without
from revelu.types import BoolArray, FloatArray, IntArray

# Neurons that are looked at together, and the hyperplane to look at, ``n x + offset = 0``.
_Group = tuple[IntArray, FloatArray, float]


@dataclass
class Clusters:
    """The close neurons of a network that one line has given."""

    draft: Draft
    line: Line
    """The one that the network was found on."""
    view: float = 5e-3
    """Neurons are looked at at least so far to their sides; a wider cluster is seen on an
    ordinary line."""
    neighbours: float = 5e-4
    """Kinks of the line this near, in angle, may be too near to be measured."""
    max_views: int = 3
    """Points of a hyperplane that are looked at until its neurons are told apart."""
    n_candidates: int = 64
    """Points of it among which one far from all other hyperplanes is chosen."""

    def resolve(self) -> None:
        """Look at every hyperplane found, close ones together (Lemma 3.21)."""
        todo = self._close_neurons(self._merge_runs())
        runs = self._runs(self.draft.close)
        before = self.draft.network.weights[0]
        for rows, n, offset in todo:
            now = self._indices(before[rows])
            if not len(now):
                continue
            pool = self._indices(before[np.isin(runs, runs[rows])])
            for _ in range(self.max_views):
                now = self._with_near_ones(now, n, offset, pool)
                old = self.draft.network.weights[0]
                if self._look(now, n, offset, pool):
                    self._look_again(n, offset, old)
                    break
                now = np.union1d(now, pool[self._along(n, pool)])

    def _with_near_ones(
        self, rows: IntArray, n: FloatArray, offset: float, pool: IntArray
    ) -> IntArray:
        """Some neurons, and those of their cluster that leave no room to look at them alone."""
        _, room = self._clear_point(n, offset, rows)
        return (
            rows
            if room >= self.draft.clear * self.view
            else np.union1d(rows, pool[self._along(n, pool)])
        )

    def _look(self, rows: IntArray, n: FloatArray, offset: float, pool: IntArray) -> bool:
        """Replace some neurons by what is seen across ``n x + offset = 0``, if understood."""
        p, room = self._clear_point(n, offset, rows)
        # Where the others of the group pass.
        W, b = self.draft.network.weights[0][rows], self.draft.network.biases[0][rows]
        spread = np.abs(W @ p + b) / np.linalg.norm(W, axis=1) * self._along(n, rows)
        half_length = min(max(self.view, 4.0 * float(spread.max())), room / self.draft.clear)
        return self.draft.replace(rows, p, n, half_length, room, pool)

    def _look_again(self, n: FloatArray, offset: float, old: FloatArray) -> None:
        """Look at a cluster that came apart from elsewhere: two that met here may part there.

        ``old`` has the rows of the network before.
        """
        fresh = np.setdiff1d(np.arange(len(self.draft.network.biases[0])), self._indices(old))
        if len(fresh) < 2:
            return
        before = self.draft.network
        self._look(fresh, n, offset, fresh)
        if len(self.draft.network.biases[0]) <= len(before.biases[0]):
            self.draft.network = before

    def _along(self, n: FloatArray, rows: IntArray) -> BoolArray:
        """Which neurons look in the direction ``n``, nearly."""
        W = self.draft.network.weights[0][rows]
        return np.asarray(np.abs(W @ n) > (1.0 - self.draft.close) * np.linalg.norm(W, axis=1))

    def _merge_runs(self) -> list[_Group]:
        """Make one of neighbours on the line, where any two of them are close.

        Of neurons that narrow pieces part only the sum is sure.  What it is put on is the
        sum's hyperplane; where they are looked for, that of the strongest.
        """
        runs = self._runs(self.neighbours)
        number = np.empty(len(runs), dtype=np.intp)
        for i, group in enumerate(close_groups(self.draft.network, self.draft.close)):
            number[group] = i
        runs_to_merge = []
        for run in np.unique(runs):
            rows = np.flatnonzero(runs == run)
            if len(np.unique(number[rows])) < len(rows):
                runs_to_merge.append(rows)
        if not runs_to_merge:
            return []
        old = self.draft.network
        gone = np.concatenate(runs_to_merge)
        self.draft.network = without(turned(old, gone, self.line.v), gone)
        groups = []
        for rows in runs_to_merge:
            first = len(self.draft.network.biases[0])
            total = _sum(old, rows, self.line.v)
            self.draft.network = add_networks(self.draft.network, total)
            added = np.arange(first, first + len(total.biases[0]))
            groups.append((added, *_hyperplane(old, rows)))
        return groups

    def _close_neurons(self, sums: list[_Group]) -> list[_Group]:
        """All neurons of the network, close ones together; sums stay on their hyperplanes."""
        summed = np.concatenate([np.empty(0, dtype=np.intp), *(rows for rows, _, _ in sums)])
        groups = list(sums)
        for rows in close_groups(self.draft.network, self.draft.close):
            others = np.setdiff1d(rows, summed)
            with_ = [i for i, (own, _, _) in enumerate(sums) if np.isin(own, rows).any()]
            if with_:
                own, n, offset = groups[with_[0]]
                groups[with_[0]] = (np.concatenate([own, others]), n, offset)
            elif len(others):
                groups.append((others, *_hyperplane(self.draft.network, others)))
        return groups

    def _runs(self, gap: float) -> IntArray:
        """A number for every neuron: the same where neighbouring kinks of the line are near."""
        W, b = self.draft.network.weights[0], self.draft.network.biases[0]
        theta = np.arctan2(-(W @ self.line.x0 + b), W @ self.line.v)
        theta = (theta + np.pi / 2) % np.pi
        order = np.argsort(theta)
        runs = np.empty(len(b), dtype=np.intp)
        runs[order] = np.concatenate([[0], np.cumsum(np.diff(theta[order]) > gap)])[: len(b)]
        return runs

    def _indices(self, rows: FloatArray) -> IntArray:
        """Where rows of an earlier network are now; none where they were replaced."""
        same = np.abs(self.draft.network.weights[0][:, None]) == np.abs(rows[None])
        return np.flatnonzero(same.all(axis=2).any(axis=1))

    def _clear_point(self, n: FloatArray, offset: float, own: IntArray) -> tuple[FloatArray, float]:
        """A point of the hyperplane ``n x + offset = 0``, and its distance from all others."""
        X = self.draft.rng.standard_normal((self.n_candidates, len(n)))
        X -= np.outer(X @ n + offset, n)
        others = np.delete(np.arange(len(self.draft.network.biases[0])), own)
        W, b = self.draft.network.weights[0][others], self.draft.network.biases[0][others]
        if not len(W):
            return X[0], 1.0
        apart = np.abs(X @ W.T + b) / np.linalg.norm(W, axis=1)
        best = int(np.argmax(apart.min(axis=1)))
        return X[best], float(apart[best].min())


def _hyperplane(network: Network, rows: IntArray) -> tuple[FloatArray, float]:
    """The unit normal and the offset of the strongest of some neurons."""
    (W, A), b = network.weights, network.biases[0]
    strength = np.linalg.norm(W[rows], axis=1) * np.linalg.norm(A[:, rows], axis=0)
    j = rows[int(np.argmax(strength))]
    size = float(np.linalg.norm(W[j]))
    return W[j] / size, float(b[j]) / size


def _sum(network: Network, rows: IntArray, n: FloatArray, rtol: float = 1e-10) -> Network:
    """Neurons that change the affine map in the direction ``n`` as some do together.

    One neuron, where there is one output; else the change has more directions, whose
    hyperplanes mean nothing but whose sum is right on both sides.  Singular values under a share
    ``rtol`` of the largest are rounding.
    """
    U, sizes, Vt = np.linalg.svd(change_across(network, n, rows), full_matrices=False)
    kept = sizes > rtol * sizes[0]
    signs = np.where(Vt[kept, :-1] @ n < 0, -1.0, 1.0)
    W, A = Vt[kept] * signs[:, None], U[:, kept] * sizes[kept] * signs
    return Network([W[:, :-1], A], [W[:, -1], np.zeros(len(A))])
