"""Neurons that are missing above a first layer, from what the others leave of the answers.

Where few are missing, what is left is 0 at most inputs, and ``relu(w . h) c`` where one neuron
alone is on: linear in ``w``, one equation an answer, to the digits of the answers.  A kink of what
is left, with its gradients, gives ``w`` around that place; answers farther and farther from it give
the rest, each ring told by what is known of the last, and least deviations forget the answers at
which another neuron is on, too.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.network import Network, add_networks
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.deep.seeds import Seed, SeedSearch
from revelu.recover.deep.stack import Stack
from revelu.recover.refine.network_fit import Samples, top_of, with_top
from revelu.types import BoolArray, FloatArray, IntArray

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Left:
    """What is left of answers, above a first layer.

    Attributes
    ----------
    X : ndarray, shape (n, d)
    F : ndarray, shape (n, m + 1)
        What the first layer puts out there, and 1.
    R : ndarray, shape (n, k)
        In units of the outputs.
    """

    X: FloatArray
    F: FloatArray
    R: FloatArray

    def less(self, neurons: Sequence["Missing"]) -> "Left":
        """What neurons leave of it."""
        given = sum((neuron.outputs(self.F) for neuron in neurons), np.zeros(self.R.shape))
        return replace(self, R=self.R - given)

    def take(self, rows: BoolArray | IntArray) -> "Left":
        """Some of it."""
        return Left(self.X[rows], self.F[rows], self.R[rows])

    def __add__(self, other: "Left") -> "Left":
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return Left(*(np.concatenate(pair) for pair in both))


@dataclass(frozen=True, eq=False)
class Missing:
    """A neuron ``relu(row . F) column``, the column a unit vector in units of the outputs."""

    row: FloatArray
    column: FloatArray

    def outputs(self, F: FloatArray) -> FloatArray:
        """What it gives, shape (n, k)."""
        return np.outer(np.maximum(F @ self.row, 0.0), self.column)


@dataclass(frozen=True, eq=False)
class _Start:
    """A seed, what is left on rings around it, and what it says of a row, up to its sign.

    ``normal`` and ``right`` are normal equations with what is likely of a row.
    """

    seed: Seed
    column: FloatArray
    rings: list[Left]
    normal: FloatArray
    right: FloatArray


@dataclass(frozen=True)
class RoughMissing:
    """How missing neurons are found.

    Attributes
    ----------
    seeds : SeedSearch
        How kinks of what is left are found,
    n_segments : int
        on so many segments, and as many from inputs at which answers are wrong,
    wrong : float
        so many times further off than most, to the nearest at which they are not.
    rings : tuple of float
        Standard deviations of inputs around the seed, one after the other; all of them at last.
    n_around : int
        Answers asked on each.
    n_steps : int
        Of least deviations on each,
    most : float
        which count this share of the answers as explained.
    size : float
        Of an entry of a row, in units of the change of the gradient at the seed,
    sharp : float
        the least error of which is this.
    explained : float
        Neurons explain all but this share of what is left where they are on.
    n_joint : int
        Steps of all neurons that are found.
    n_rounds : int
        Searches, each with what all others are known to by then.
    """

    seeds: SeedSearch = field(default_factory=SeedSearch)
    n_segments: int = 8
    wrong: float = 20.0
    rings: tuple[float, ...] = (0.1, 0.2, 0.35, 0.6, 1.0, 1.6)
    n_around: int = 30
    n_steps: int = 4
    most: float = 0.4
    size: float = 1.0
    sharp: float = 1e-3
    explained: float = 0.3
    n_joint: int = 6
    n_rounds: int = 6

    def find(
        self,
        oracle: Oracle,
        noise: NoiseFloor,
        rng: np.random.Generator,
        network: Network,
        samples: Samples,
        refined: Callable[[Network], Network],
    ) -> Network:
        """Add the neurons that what a network leaves shows, again with each better network.

        Parameters
        ----------
        network : Network
            With an affine rest.
        samples : Samples
            Answers at many inputs.
        refined : callable
            Fits all layers to most of them.
        """
        for _ in range(self.n_rounds):
            around = self._around(oracle, noise, rng, network, samples)
            left = _left(network, samples.X, samples.Y, noise.unit)
            tried = [self._start(network, *found, noise.unit) for found in around]
            found = self._found(tried, left, noise.relative)
            log.info("%d neurons more, of %d kinks", len(found), len(around))
            network = refined(_with(network, found, noise.unit))
            if not len(found):
                break
        return network

    def _around(
        self,
        oracle: Oracle,
        noise: NoiseFloor,
        rng: np.random.Generator,
        network: Network,
        samples: Samples,
    ) -> list[tuple[Seed, FloatArray, FloatArray]]:
        """Seeds of what a network leaves, with inputs on rings around each, and answers there."""
        starts, ends = rng.standard_normal((2, self.n_segments, oracle.dim_in))
        wrong, right = self._wrong_and_right(network, samples, rng)
        starts, ends = np.vstack([starts, wrong]), np.vstack([ends, right])
        known = Stack(oracle.dim_in, network.weights[:2], network.biases[:2])
        breaks = [known.breaks(x, v, 0.0, 1.0) for x, v in zip(starts, ends - starts, strict=True)]
        seeds = self.seeds.find(lambda X: oracle(X) - network(X), noise, starts, ends, breaks, rng)
        found = []
        for seed in seeds:
            Z = rng.standard_normal((len(self.rings), self.n_around, oracle.dim_in))
            X = seed.x + np.array(self.rings)[:, None, None] * Z
            X = X.reshape(-1, oracle.dim_in).astype(np.float32).astype(np.float64)
            found.append((seed, X, oracle(X)))
        return found

    def _wrong_and_right(
        self, network: Network, samples: Samples, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Inputs at which a network is wrong, and for each the nearest at which it is not."""
        X, off = samples.X, np.abs(samples.residual(network)).max(axis=1)
        typical = max(float(np.quantile(off, self.most)), SIGMAS)
        wrong = np.flatnonzero(off > self.wrong * typical)
        right = X[off <= typical]
        if not len(wrong):
            return X[:0], X[:0]
        # Those of neurons that count for much first.
        share = off[wrong] / off[wrong].sum()
        some = X[rng.choice(wrong, min(self.n_segments, len(wrong)), replace=False, p=share)]
        apart = np.linalg.norm(some[:, None] - right, axis=2)
        return some, right[apart.argmin(axis=1)]

    def _found(self, starts: Sequence[_Start], left: Left, sigma: float) -> list[Missing]:
        """Neurons one after another, each time the one that leaves least where it is on."""
        found: list[Missing] = []
        while len(found) < len(starts):
            rest = left.less(found)
            grown = [self._grown(start, rest, found, sigma) for start in starts]
            neuron, share = min(grown, key=lambda pair: pair[1])
            if share > self.explained:
                break
            log.info("a neuron more, but for %.3g of what is left where it is on", share)
            found = self._together([*found, neuron], left, sigma)
        return found

    def _start(
        self, base: Network, seed: Seed, X: FloatArray, Y: FloatArray, unit: FloatArray
    ) -> _Start:
        """What a seed says of a row above a network's first layer."""
        column = seed.column / unit
        jump, left = float(np.linalg.norm(column)), _left(base, X, Y, unit)
        rings = [left.take(i) for i in np.split(np.arange(len(X)), len(self.rings))]
        W, b = base.weights[0], base.biases[0]
        z = W @ seed.x + b
        # Where it is met its sum is 0, and the gradient of that is what the gradients jump by.
        gradients = np.column_stack([(W * (z > 0)[:, None]).T, np.zeros(len(seed.x))])
        A = np.vstack([gradients, np.append(np.maximum(z, 0.0), 1.0)])
        y = np.append(jump * seed.normal, 0.0)
        errors = jump * np.append(np.full(len(seed.x), max(seed.error, self.sharp)), self.sharp)
        normal = (A / errors[:, None]).T @ (A / errors[:, None])
        normal += np.eye(A.shape[1]) / (self.size * jump) ** 2
        return _Start(seed, column / jump, rings, normal, A.T @ (y / errors**2))

    def _grown(
        self, start: _Start, left: Left, found: Sequence[Missing], sigma: float
    ) -> tuple[Missing, float]:
        """The neuron of a seed, and the share that it leaves of what was left where it is on."""
        sides = (1.0, -1.0)
        rows = [
            np.asarray(side * np.linalg.solve(start.normal, start.right), dtype=np.float64)
            for side in sides
        ]
        apart = np.linalg.norm(left.X - start.seed.x, axis=1) / np.sqrt(left.X.shape[1])
        around = left.take(np.zeros(len(left.X), dtype=bool))
        for ring, there in zip((*self.rings, np.inf), (*start.rings, None), strict=True):
            around = around if there is None else around + there.less(found)
            some = around + left.take(apart < ring)
            r = some.R @ start.column
            rows = [
                self._fitted(row, some.F, r, start, side, sigma, forgets=there is None)
                for row, side in zip(rows, sides, strict=True)
            ]
        r = some.R @ start.column
        rests = [np.abs(r - np.maximum(some.F @ row, 0.0)) for row in rows]
        best = int(np.argmin([rest.sum() for rest in rests]))
        on = some.F @ rows[best] > 0
        # As many answers as entries are explained by any row.
        n_spare, whole = int(on.sum()) - len(rows[best]), float(np.abs(r[on]).sum())
        share = np.inf
        if n_spare > 0 and whole > 0.0:
            share = float(rests[best][on].sum()) / whole * on.sum() / n_spare
        return Missing(rows[best], start.column), share

    def _fitted(
        self,
        row: FloatArray,
        F: FloatArray,
        r: FloatArray,
        start: _Start,
        side: float,
        sigma: float,
        *,
        forgets: bool,
    ) -> FloatArray:
        """Least deviations of what is left from a neuron; in the end what is far off is forgotten.

        The weights are those of Huber's and of Cauchy's functions, about.
        """
        for turn in range(2 * self.n_steps if forgets else self.n_steps):
            z = F @ row
            off, on = r - np.maximum(z, 0.0), z > 0
            is_late = turn >= self.n_steps and bool(on.any())
            some = np.abs(off[on]) if is_late else np.abs(off)
            typical = max(float(np.quantile(some, self.most)), 3.0 * sigma)
            power = 1.0 if is_late else 0.5
            weights = (1.0 + (off / typical) ** 2) ** -power / typical**2
            J = F * on[:, None]
            G = J.T @ (J * weights[:, None]) + start.normal
            right = J.T @ (weights * off) + side * start.right - start.normal @ row
            row = row + np.linalg.solve(G, right)
        return row

    def _together(self, neurons: Sequence[Missing], left: Left, sigma: float) -> list[Missing]:
        """Least deviations of what is left from all neurons at once."""
        rows, columns = np.array([n.row for n in neurons]), np.array([n.column for n in neurons])
        best, least = rows, np.inf
        for _ in range(self.n_joint + 1):
            Z = left.F @ rows.T
            rest = left.R - np.maximum(Z, 0.0) @ columns
            off = np.abs(rest).max(axis=1)
            if float(off.sum()) < least:
                best, least = rows, float(off.sum())
            typical = max(float(np.quantile(off, self.most)), 3.0 * sigma)
            weights = (1.0 + (off / typical) ** 2) ** -0.25
            shares = [weights[:, None] * (Z > 0) * column for column in columns.T]
            system = [(left.F[:, None] * share[:, :, None]).reshape(len(Z), -1) for share in shares]
            J, y = np.vstack(system), (weights[:, None] * rest).T.ravel()
            sizes = np.maximum(np.linalg.norm(J, axis=0), 1e-300)
            G = (J / sizes).T @ (J / sizes)
            G[np.diag_indices_from(G)] += 1e-6
            rows = rows + (np.linalg.solve(G, J.T @ y / sizes) / sizes).reshape(rows.shape)
        return [Missing(row, column) for row, column in zip(best, columns, strict=True)]


def _left(network: Network, X: FloatArray, Y: FloatArray, unit: FloatArray) -> Left:
    F = np.column_stack([network.activations(X)[1], np.ones(len(X))])
    return Left(X, F, (Y - network(X)) / unit)


def _with(network: Network, found: Sequence[Missing], unit: FloatArray) -> Network:
    if not found:
        return network
    rows = np.array([neuron.row for neuron in found])
    A = np.array([neuron.column for neuron in found]).T * unit[:, None]
    more = Network([rows[:, :-1], A], [rows[:, -1], np.zeros(len(unit))])
    return with_top(network, add_networks(top_of(network), more))
