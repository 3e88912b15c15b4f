"""A network from the critical points of chords of a cube.

A chord meets the hyperplanes that part its ends, which few chords do where a neuron is on, or off,
near some corners only.  So

1. chords are measured until several in a row show no new neuron;
2. all weights are fitted, to answers on both sides of each hyperplane among others;
3. where that leaves more than noise, the next chord ends where the rows, held to their errors,
   leave most; where it shows nothing, neurons are fitted to what is left.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import Damping, Iterative, Stop
from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask, Line
from revelu.probe.region import Cube
from revelu.recover.fit.from_lines import FromLines, NoRowsError, network_of
from revelu.recover.fit.from_rows import FromRows
from revelu.recover.fit.price import Price
from revelu.recover.fit.sizes import Sizes
from revelu.recover.refine.network_fit import Automatic, Fit, Samples, fit
from revelu.recover.rows import Rows
from revelu.types import FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FromChords(FromLines):
    """How a network is found in a cube.

    Attributes
    ----------
    cube : Cube
    from_rows : FromRows
        How rows are held.
    far : float
        Rows that leave more, in errors, lack a neuron.
    patience : int
        Chords in a row without a new row that end the first ones.
    max_fits : int
        Fits of what rows and chords have shown.
    n_aimed : int
        Inputs that a fit leaves most of, to each of which two chords lead then.
    max_mended : int
        Repairs that look for neurons.
    off : float
        An answer further off, in errors, is not explained: half of what counts as agreement.
    sided : float
        Equations on either side of a hyperplane, for each parameter of its neuron.
    n_between : int
        Inputs between wrong ones that are looked at for such that answers determine least.
    n_sided : int
        Points of a hyperplane of which one is asked beside it.
    """

    max_lines: int = 120
    most_dense: int = 6000
    far: float = 100.0
    most_work: float = 3e11
    cube: Cube = field(default_factory=Cube)
    from_rows: FromRows = field(default_factory=FromRows)
    patience: int = 16
    max_fits: int = 12
    n_aimed: int = 4
    max_mended: int = 8
    off: float = 4.0
    sided: float = 1.5
    n_between: int = 300
    n_sided: int = 4

    def in_cube(self) -> Self:
        """The same where every question is asked in the cube."""
        return self.within(self.cube)

    def find(
        self,
        ask: Ask,
        sample: Callable[[FloatArray], Samples],
        sizes: Sizes,
        noise: NoiseFloor,
        limit: float,
        rng: np.random.Generator,
    ) -> tuple[Network, Samples] | None:
        """Find a network that explains what is asked, as :meth:`FromLines.find` does."""
        rows, idle = Rows.none(sizes.d, sizes.k), 0
        for turn in range(self.max_lines):
            more = self.shown(ask, noise, rows, self.region.line(rng, sizes.d), rng)
            rows, idle = rows.joined(more), 0 if len(more) else idle + 1
            log.debug("chord %d: %d rows, %d of them new", turn, len(rows), len(more))
            if idle == self.patience:
                break
        if not len(rows):
            raise NoRowsError
        self._go_on(ask, noise, rows, rng)
        near = np.empty((0, sizes.d))
        return Explaining(self, ask, sample, sizes, noise, limit, rng, near).run(rows, None)

    def shown(
        self, ask: Ask, noise: NoiseFloor, rows: Rows, line: Line, rng: np.random.Generator
    ) -> Rows:
        """New rows of a chord; none of one without affine pieces, or length."""
        if not line.v.any():
            return rows.take(np.arange(0))
        seen = self.rows.look(ask, rows.W.shape[1], noise, rows, rng, line)
        return rows.take(np.arange(0)) if seen is None else seen[0]

    def fitted(
        self,
        held: Network,
        rows: Rows,
        samples: Samples,
        n_spare: int,
        limit: float,
        rng: np.random.Generator,
    ) -> Fit:
        """Let rows go that were held, or add neurons to them first."""
        if n_spare:
            return self._fitted(rows, samples, n_spare, limit, rng)
        found = self._by_full_steps(held, samples)
        left = np.abs(samples.residual(found.network)).max()
        if left <= self.off or found.cost > self.faint * limit:
            return found
        # Whole steps do not settle what few answers determine.
        solver = Automatic(
            Iterative(self.n_iterations, white=True), self.most_dense, self.most_work
        )
        stop, damping = Stop(15, rtol=0.05), Damping(1e-6)
        return fit(found.network, samples, stop, solver=solver, damping=damping)

    def n_samples(self, width: int, sizes: Sizes) -> int:
        """How many answers determine a network."""
        return self._n_samples(width, 0, sizes)

    def weak_inputs(
        self, network: Network, samples: Samples, near: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Inputs whose answers the samples determine least, some between inputs among them."""
        pairs = rng.integers(0, max(len(near), 1), (2, self.n_between * (len(near) > 0)))
        shares = rng.random((pairs.shape[1], 1))
        between = shares * near[pairs[0]] + (1.0 - shares) * near[pairs[1]]
        return self._weak_inputs(network, samples, self.most_work, rng, (between,))

    def mended(
        self,
        network: Network,
        samples: Samples,
        wrong: FloatArray,
        ask: Ask,
        sample: Callable[[FloatArray], Samples],
        noise: NoiseFloor,
        limit: float,
        rng: np.random.Generator,
    ) -> tuple[Network, Samples] | None:
        """Explain inputs, too, where a network is wrong that explains its samples.

        Parameters
        ----------
        wrong : ndarray, shape (n, d)
        ask, sample, noise, limit, rng
            Those of :meth:`find`.
        """
        (W, A), (b, _) = network.weights, network.biases
        rows = Rows(W, b, A.T, np.full(len(b), noise.half_digits), np.zeros_like(W))
        sizes = Sizes(network.dim_in, network.dim_out)
        search = Explaining(self, ask, sample, sizes, noise, limit, rng, wrong)
        rows = search.aimed(rows, wrong[: self.n_aimed])
        return search.run(search.between(rows, wrong), samples.joined(sample(wrong)))


@dataclass
class Explaining:
    """Rows and samples that grow until the one explains the other.

    Attributes
    ----------
    how : FromChords
    ask, sample, sizes, noise, limit, rng
        Those of :meth:`FromChords.find`.
    near : ndarray, shape (n, d)
        Inputs where a network was wrong: answers between them are to be determined, too.
    """

    how: FromChords
    ask: Ask
    sample: Callable[[FloatArray], Samples]
    sizes: Sizes
    noise: NoiseFloor
    limit: float
    rng: np.random.Generator
    near: FloatArray

    def run(self, rows: Rows, samples: Samples | None) -> tuple[Network, Samples] | None:
        """Fit, and look where that leaves most, or where answers determine it least."""
        how, price, n_spare = self.how, Price(self.limit, known=True), 0
        best: Network | None = None
        start: Network | None = None
        for _ in range(how.max_fits):
            samples = self._enough(rows, samples, n_spare)
            if start is None:
                start = how.from_rows.held(network_of(rows, samples), rows, samples).network
            found = self._fitted(start, rows, samples, n_spare)
            left = np.abs(samples.residual(found)).max(axis=1)
            is_explained = price.is_explained(found, samples)
            log.debug("%d rows, %d spare neurons, %d answers", len(rows), n_spare, len(left))
            log.debug("cost %.3g, at most %.3g", samples.cost(found), left.max())
            n_known, n_spare = len(rows), 0
            if is_explained and left.max() <= how.off:
                best, (more, is_settled) = found, self._looked(found, samples)
                samples = samples.joined(more)
                if is_settled:
                    break
                far = np.abs(more.residual(found)).max(axis=1) > how.far
                rows = self.aimed(rows, more.X[np.flatnonzero(far)[: how.n_aimed]])
            else:
                best = None
                left = np.linalg.norm(samples.residual(start), axis=1)
                worst = np.argsort(-left, kind="stable")[: how.n_aimed]
                rows = self.aimed(rows, samples.X[worst])
                n_spare = 0 if is_explained or len(rows) > n_known else how.n_spare
            start = found if is_explained and len(rows) == n_known else None
        return None if best is None or samples is None else (best, samples)

    def _fitted(self, start: Network, rows: Rows, samples: Samples, n_spare: int) -> Network:
        """Let rows go, unless they leave so much that one is missing."""
        how = self.how
        if not n_spare and samples.cost(start) > how.far:
            return start
        return how.fitted(start, rows, samples, n_spare, self.limit, self.rng).network

    def _looked(self, network: Network, samples: Samples) -> tuple[Samples, bool]:
        """Fresh answers, and some that are determined least; whether hardly any is needed."""
        how, n_fresh = self.how, self.sizes.n_held_out(len(samples.X))
        fresh = self.sample(how.region.points(self.rng, n_fresh, self.sizes.d))
        agrees = bool(np.abs(fresh.residual(network)).max() <= how.off)
        weak = how.weak_inputs(network, samples, self.near, self.rng)
        log.debug("%d inputs undetermined, fresh ones agree: %s", len(weak), agrees)
        more = fresh.joined(self.sample(weak)) if len(weak) else fresh
        return more, agrees and len(weak) <= how.few * how.n_foretold

    def aimed(self, rows: Rows, X: FloatArray) -> Rows:
        """Rows, and those of chords to inputs: from one another, and from opposite corners."""
        cube, n = self.how.cube, len(X)
        for start in (cube.near_corners(self.rng, -X), X[self.rng.permutation(n)]):
            for i in range(n):
                if np.linalg.norm(start[i] - X[i]) > 0:
                    line = cube.chord(start[i], X[i])
                    rows = rows.joined(self.how.shown(self.ask, self.noise, rows, line, self.rng))
        return rows

    def between(self, rows: Rows, X: FloatArray) -> Rows:
        """Rows, and those of chords from one of some inputs to another until none is new."""
        idle, cube = 0, self.how.cube
        for _ in range(self.how.max_lines):
            if idle == self.how.patience // 2 or len(X) < 2:
                break
            start, end = X[self.rng.choice(len(X), 2, replace=False)]
            line = cube.chord(start, end)
            more = self.how.shown(self.ask, self.noise, rows, line, self.rng)
            rows, idle = rows.joined(more), 0 if len(more) else idle + 1
        return rows

    def _enough(self, rows: Rows, samples: Samples | None, n_spare: int) -> Samples:
        """Answers for all parameters, and for those of each row on both of its sides."""
        d, k = self.sizes.d, self.sizes.k
        n = self.how.n_samples(len(rows) + n_spare, self.sizes)
        X = np.empty((0, d)) if samples is None else samples.X
        new = self.how.region.points(self.rng, max(n - len(X), 0), d)
        wanted = int(np.ceil(self.how.sided * (d + 1 + k) / k))
        new = np.vstack([new, self._beside(rows, np.vstack([X, new]), wanted)])
        if samples is None:
            return self.sample(new)
        return samples.joined(self.sample(new)) if len(new) else samples

    def _beside(self, rows: Rows, X: FloatArray, wanted: int) -> FloatArray:
        """Inputs beside the hyperplanes that lack some on a side, shape (n, d)."""
        how, found, Z = self.how, [np.empty((0, X.shape[1]))], X @ rows.W.T + rows.b
        for side in (-1.0, 1.0):
            lacking = np.maximum(wanted - (side * Z > 0.0).sum(axis=0), 0)
            which = np.repeat(np.arange(len(rows)), how.n_sided * lacking)
            W, b = rows.W[which], rows.b[which]
            on, normals = how.region.points_on_hyperplanes(self.rng, W, b)
            how_far = side * how.beside * self.rng.random((len(which), 1))
            at = how.region.clip(on + how_far * normals)
            is_there = side * ((at * W).sum(axis=1) + b) > 0.0
            found += [at[(which == j) & is_there][: lacking[j]] for j in np.flatnonzero(lacking)]
        return np.vstack(found)
