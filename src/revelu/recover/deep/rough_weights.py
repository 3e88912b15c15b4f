"""Weights of upper rows that few answers tell, as those at which a network is wrong tell them.

Let all of a network be exact but one upper row, of preactivation ``z`` and output column ``a``.
Where the residual of an answer is ``r``, what the neuron has to put out is

    t = relu(z) + r . a / |a|^2

so that the sum ``z + h . s``, with what is below it ``h`` and what the row lacks ``s``, is ``t``
where that is positive, and no more than 0 where it is 0.  Equations and inequalities that are
linear in ``s``, of which least squares are convex: they say what a row lacks where the neuron is
off in the network and on in the target, too, and a fit has no derivative there, and where two
weights hide a third.  Answers that are right say what a row does not lack.

Which of the wrong answers are one neuron's is open.  A few that are close to each other are taken
for it, and those that then agree are kept (Fischler and Bolles 1981).  A bias is the weight of 1.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import solve_normal
from revelu.recover.refine.network_fit import Samples, top_of, with_top
from revelu.types import FloatArray, IntArray

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class _Row:
    """What answers say of one upper row."""

    H: FloatArray
    z: FloatArray
    t: FloatArray
    e: FloatArray
    """Shape (n, m + 1) and (n,).  Of wrong answers that may be its: what is below, its sum, what
    that is to be (0 where it is to be no more), and how exactly."""
    X: FloatArray
    """Shape (n, d).  Their inputs."""
    H_off: FloatArray
    z_off: FloatArray
    e_off: FloatArray
    """The same of answers that are right, where it is off."""
    P: FloatArray
    """Shape (m + 1, m + 1).  Of those where it is on, the normal matrix; and how wide rows are."""

    def off(self, lack: FloatArray) -> FloatArray:
        """By how many errors each answer contradicts what the row lacks, shape (n,)."""
        left = self.z + self.H @ lack - self.t
        return np.asarray(np.where(self.t > 0.0, np.abs(left), np.maximum(left, 0.0)) / self.e)

    def solved(
        self, some: IntArray, lack: FloatArray, n_steps: int, *, stays_off: bool
    ) -> FloatArray:
        """What the row lacks by some of the answers: least deviations, in steps from a guess.

        ``stays_off`` says whether right answers count where the neuron is off.
        """
        weights: FloatArray = np.ones(len(some))
        H, z, t, e = self.H[some], self.z[some], self.t[some], self.e[some]
        for _ in range(n_steps):
            tells = (t > 0.0) | (z + H @ lack > 0.0)
            A = H[tells] * (weights[tells] / e[tells])[:, None]
            G, g = A.T @ A + self.P, A.T @ ((t - z)[tells] * weights[tells] / e[tells])
            if stays_off:
                is_on = self.z_off + self.H_off @ lack > 0.0
                B = self.H_off[is_on] / self.e_off[is_on, None]
                G += B.T @ B
                g -= B.T @ (self.z_off[is_on] / self.e_off[is_on])
            lack = solve_normal(G, g)(0.0)
            np.power(1.0 + self.off(lack)[some] ** 2, -0.25, out=weights)
        return lack


@dataclass(frozen=True)
class WeightCorrections:
    """How weights are corrected that few answers tell."""

    wrong: float = 3.0
    """An answer is wrong by ``wrong`` times what counts as right."""
    wide: float = 10.0
    """A weight lacks no more than ``wide`` times what weights of its row are in the mean."""
    n_starts: int = 12
    """All wrong answers are begun with, then those next to one of them, so often,"""
    near: tuple[int, ...] = (4, 8, 16, 32)
    """as many as these say by turns,"""
    n_steps: int = 30
    """in ``n_steps`` steps,"""
    n_more: int = 4
    """and ``n_more`` more of what agrees, as long as that grows."""
    about: float = 3.0
    """Those agree that contradict what a row lacks by ``about`` times the error, at first;"""
    fewest: int = 4
    """``fewest`` have to, at least."""
    n_tried: int = 8
    """What most agree on is tried, of ``n_tried`` rows,"""
    max_corrections: int = 8
    """and one after another is corrected, at most ``max_corrections``,"""
    less: float = 0.99
    """if that leaves no larger a share of what is wrong."""

    def corrected(
        self,
        network: Network,
        samples: Samples,
        size_of_wrong: Callable[[Network, Samples], float],
        off: float,
        rng: np.random.Generator,
    ) -> Network:
        """A network that is wrong at fewer answers for rows that these agree on, or itself.

        Parameters
        ----------
        samples : Samples
            Answers, those among them at which the network is wrong.
        size_of_wrong : callable
            What a network leaves of answers, what is right counting next to nothing.
        off : float
            To as many errors an answer tells the rest of a network.
        """
        for _ in range(self.max_corrections):
            least = size_of_wrong(network, samples)
            tried = [
                _changed(network, j, lack) for j, lack in self._lacks(network, samples, off, rng)
            ]
            better = min(tried, key=lambda n: size_of_wrong(n, samples), default=network)
            if not tried or size_of_wrong(better, samples) > self.less * least:
                break
            log.info("a row is corrected as wrong answers tell it")
            network = better
        return network

    def _lacks(
        self, network: Network, samples: Samples, off: float, rng: np.random.Generator
    ) -> list[tuple[int, FloatArray]]:
        """Upper neurons, and what their rows lack; by how many answers agree, the most first."""
        found = []
        for j, row in self._rows(network, samples, off):
            n, lack = self._agreed(row, rng)
            if n >= self.fewest:
                found.append((n, j, lack))
        found.sort(key=lambda one: -one[0])
        return [one[1:] for one in found[: self.n_tried]]

    def _rows(self, network: Network, samples: Samples, most_off: float) -> list[tuple[int, _Row]]:
        """What answers say of each upper row that may be wrong."""
        rest = samples.Y - network(samples.X)
        sigma = most_off * np.broadcast_to(samples.sigma, rest.shape)
        share = np.abs(rest / sigma).max(axis=1)
        is_wrong, is_right = share > self.wrong, share <= 1.0
        H = np.column_stack([network.activations(samples.X)[-2], np.ones(len(rest))])
        Z, (V, A) = network.preactivations(samples.X)[-1], network.weights[-2:]
        rows = []
        for j, a in enumerate(A.T):
            size, z = float(a @ a), Z[:, j]
            if not size or not V[j].any():
                continue
            e = sigma.max(axis=1) / np.sqrt(size)
            along = rest @ a / size
            # What does not go along its column is another neuron's.
            is_its = (np.abs(rest - along[:, None] * a) <= sigma).all(axis=1)
            t = along + np.maximum(z, 0.0)
            mine = np.flatnonzero(is_wrong & is_its & (t > -e))
            if len(mine) < self.fewest:
                continue
            on, off = is_right & (z > 0.0), is_right & (z <= 0.0)
            right = H[on] / e[on, None]
            P = right.T @ right
            P[np.diag_indices_from(P)] += (self.wide * np.abs(V[j]).mean()) ** -2.0
            t = np.where(t > e, t, 0.0)
            those = H[mine], z[mine], t[mine], e[mine], samples.X[mine]
            rows.append((j, _Row(*those, H[off], z[off], e[off], P)))
        return rows

    def _agreed(self, row: _Row, rng: np.random.Generator) -> tuple[int, FloatArray]:
        """How many answers agree on what a row lacks, and that."""
        most, best = 0, np.zeros(len(row.P))
        starts = [np.arange(len(row.t))]
        for turn, one in enumerate(rng.permutation(len(row.t))[: self.n_starts]):
            apart = np.linalg.norm(row.X - row.X[one], axis=1)
            starts.append(np.argsort(apart, kind="stable")[: self.near[turn % len(self.near)]])
        for start in starts:
            lack = row.solved(start, np.zeros(len(row.P)), self.n_steps, stays_off=False)
            agree = np.flatnonzero(row.off(lack) <= self.about)
            n_before = max(self.fewest - 1, most)
            while len(agree) > n_before:
                n_before = len(agree)
                lack = row.solved(agree, lack, self.n_more, stays_off=True)
                agree = np.flatnonzero(row.off(lack) <= self.about)
                n = int((row.off(lack) <= 1.0).sum())
                if n > most:
                    most, best = n, lack
        return most, best


def _changed(network: Network, j: int, lack: FloatArray) -> Network:
    """A network with what a row lacks added to upper neuron ``j``."""
    top = top_of(network)
    V, c = top.weights[0].copy(), top.biases[0].copy()
    V[j] += lack[:-1]
    c[j] += lack[-1]
    return with_top(network, Network([V, top.weights[1]], [c, top.biases[1]], top.skip))
