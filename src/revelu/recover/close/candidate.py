"""A network that is held against fresh answers, some of its neurons replaced by better ones."""

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from revelu.network import Network, add_networks, simplify
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.residual import Residual
from revelu.recover.close.merging import turned, without
from revelu.recover.close.zoom import Zoom
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass
class Draft:
    """A network of one hidden layer under way."""

    oracle: Oracle
    noise: NoiseFloor
    rng: np.random.Generator
    network: Network
    zoom: Zoom = field(default_factory=Zoom)
    """How close neurons are looked at."""
    close: float = 2e-3
    """Neurons this close (Definition 3.7) are looked at together, and merged in the end where
    the answers cannot tell them apart."""
    clear: float = 4.0
    """Nothing else may bend the function within ``clear`` lengths of a look."""
    same_jump: float = 1e-3
    """Changes of the gradient this near each other, relative to their size, are the same."""
    max_taken: int = 4
    """How many neurons one such change is sought in."""
    slight: float = 1e-6
    """Changes across a cluster that differ by this share are one but for errors."""
    rough: float = 1e-2
    """The same of several outputs, where a merged kink has kept one direction only."""
    independent: float = 1e-3
    """Output columns of which some sum has a smaller share than this of the largest are
    dependent."""
    typical: float = 30.0
    """An error is none of a missing neuron's unless it is ``typical`` times the median."""
    floor: float = field(default=0.0, init=False)
    """Errors up to this are those of the network's neurons, and no missing ones."""
    blurred: float = field(default=0.0, init=False)
    """What neurons that no view has told apart change in L2 under N(0, I), about."""

    def shares_wrong(self, n_points: int) -> tuple[float, float]:
        """At which share of fresh points the network is wrong, and at which by much.

        Where close neurons of several outputs are still one, it is wrong everywhere, by
        their distance.
        """
        X = self.rng.standard_normal((n_points, self.oracle.dim_in))
        Y = self.oracle(X)
        self.note_errors(X, Y)
        wrong = self.is_wrong(X, Y)
        coarse = self.rough * float(np.linalg.norm(self.noise.scale))
        with np.errstate(invalid="ignore"):
            apart = np.abs(self.network(X) - Y).max(axis=1)
        return float(wrong.mean()), float((wrong & (apart > coarse)).mean())

    def replace(
        self,
        rows: IntArray,
        p: FloatArray,
        n: FloatArray,
        half_length: float,
        room: float,
        pool: IntArray,
    ) -> bool:
        """Put what is seen around ``p`` in the place of some neurons.

        Parameters
        ----------
        rows : ndarray of int
            The neurons to replace.
        p, n, half_length, room
            As for :meth:`Zoom.look`.
        pool : ndarray of int
            Neurons whose place may have been taken too.

        Returns
        -------
        bool
            Whether what is there is understood, and the network no worse than before.
        """
        others = without(turned(self.network, rows, n), rows)
        target = Residual(self.oracle, others)
        view = self.zoom.look(target, self.noise, p, n, half_length, room, self.rng)
        if view is not None and view.is_one_neuron and len(rows) == 1:
            return True
        if view is None or (found := view.neurons(self.rng)) is None:
            return False
        off = change_across(found, n) - change_across(self.network, n, rows)
        if np.linalg.norm(off) > self.slight * _size(found):
            more = self._miscounted(off, n, np.setdiff1d(pool, rows))
            if more is not None:
                rows = np.concatenate([rows, more])
                return self.replace(rows, p, n, half_length, room, rows)
            if len(off) == 1 or np.linalg.norm(off) > self.rough * _size(found):
                return False
            # Of several outputs a merged kink keeps one direction: what is found is better.
            off = np.zeros_like(off)
        new = simplify(add_networks(others, self._shifted(found, off)))
        T = half_length * np.concatenate([[-1.0, 1.0], self.rng.uniform(-1, 1, 3)])
        X = p + np.outer(T, n)
        Y = self.oracle(X)
        now, before = (np.abs(network(X) - Y).max() for network in (new, self.network))
        if now > max(before, self.limit(X).max()):
            return False
        self.network = new
        self.blurred += view.blurred
        return True

    def _shifted(self, found: Network, off: FloatArray) -> Network:
        """Move rows by the least that takes ``off`` from their change."""
        (W, A), (b, c) = found.weights, found.biases
        rows = np.column_stack([W, b])
        if not len(rows):
            return found
        # Columns that are nearly parallel must not blow up what is off beside them.
        rows = rows - np.linalg.pinv(A, rcond=self.independent) @ off
        return Network([rows[:, :-1], A], [rows[:, -1], c])

    def _miscounted(self, off: FloatArray, n: FloatArray, pool: IntArray) -> IntArray | None:
        """Other neurons whose place was taken too, if their change across all makes up for it.

        Close neurons that cancel may have been merged into some on hyperplanes that are
        none of theirs.
        """
        jumps = [change_across(self.network, n, pool[[j]]) for j in range(len(pool))]
        for count in range(1, min(len(pool), self.max_taken) + 1):
            for chosen in combinations(range(len(pool)), count):
                left = off - sum(jumps[j] for j in chosen)
                if np.linalg.norm(left) < self.same_jump * np.linalg.norm(off):
                    return pool[list(chosen)]
        return None

    def limit(self, X: FloatArray) -> FloatArray:
        """Return the largest error that counts as none, shape (n, k), of rows ``X (n, d)``."""
        growth = self.noise.growth(X)[:, None]
        nu = max(self.noise.faint, float(self.noise.nu.max()))
        return np.asarray(np.maximum(SIGMAS * nu * self.noise.scale, self.floor) * growth)

    def note_errors(self, X: FloatArray, Y: FloatArray) -> None:
        """What is typical of the network as it is, no missing neuron explains."""
        seen = np.isfinite(Y).all(axis=1)
        apart = np.abs(self.network(X[seen]) - Y[seen]).max(axis=1)
        most = self.noise.half_digits * float(self.noise.scale.max())
        self.floor = min(self.typical * float(np.median(apart)), most) if len(apart) else 0.0

    def is_wrong(self, X: FloatArray, Y: FloatArray) -> BoolArray:
        """Tell at which of the rows ``X (n, d)``, answered ``Y (n, k)``, the network is wrong."""
        seen = np.isfinite(Y)  # a saturated target says nothing
        return np.asarray(
            (np.abs(self.network(X) - np.where(seen, Y, np.inf)) > self.limit(X)).any(axis=1)
            & seen.all(axis=1)
        )


def change_across(network: Network, n: FloatArray, rows: IntArray | None = None) -> FloatArray:
    """By how much some neurons change the affine map in the direction ``n``, (k, d + 1).

    Outside of the strips between hyperplanes this is all that they do, and a coarse network
    has it right already.
    """
    (W, A), b = network.weights, network.biases[0]
    rows = np.arange(len(W)) if rows is None else rows
    signs = np.where(W[rows] @ n < 0, -1.0, 1.0)
    return np.asarray((A[:, rows] * signs) @ np.column_stack([W, b])[rows])


def _size(network: Network) -> float:
    """How strong the strongest neuron is."""
    (W, A), b = network.weights, network.biases[0]
    norms = np.hypot(np.linalg.norm(W, axis=1), b) * np.linalg.norm(A, axis=0)
    return float(norms.max(initial=0.0))
