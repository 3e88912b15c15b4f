"""A network from the critical points of chords of a cube.

A chord meets the hyperplanes that part its ends, which few chords do where a neuron is on, or off,
near some corners only.  So

1. chords are measured until several in a row show no new neuron;
2. all weights are fitted, the rows being held to their errors, to answers on both sides of each
   hyperplane among others: answers that lack a neuron stand out;
3. the next chords end at those; where they show nothing, neurons are fitted to what is left;
4. where nothing stands out, rows are let go, and the network is asked where answers determine it
   least, and afresh, until that agrees.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from revelu.network import Network, add_networks
from revelu.numerics.gauss_newton import Damping, Iterative, Stop
from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask, Line
from revelu.probe.region import Cube
from revelu.recover.fit.from_lines import FromLines, NoRowsError
from revelu.recover.fit.from_rows import FromRows
from revelu.recover.fit.line_rows import LineRows
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import by_worth, with_output_layer
from revelu.recover.fit.sightings import Sightings
from revelu.recover.fit.sizes import Sizes
from revelu.recover.refine.network_fit import Automatic, Samples, fit
from revelu.recover.rows import Rows
from revelu.types import FloatArray, IntArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FromChords(FromLines):
    """How a network is found in a cube."""

    cube: Cube = field(default_factory=Cube)
    from_rows: FromRows = field(default_factory=FromRows)
    """How rows are held."""
    far: float = 20.0
    """An answer lacks a neuron that is further off than this many errors, or medians of all."""
    n_iterations: int = 60
    """Of each step of a fit that does not hold rows, where normal equations do not serve."""
    most_dense: int = 6000
    most_work: float = 3e11
    """Parameters up to which they do, and multiplications."""
    patience: int = 8
    """Chords in a row without a new row that end the first ones."""
    max_fits: int = 16
    """Fits of what rows and chords have shown."""
    n_aimed: int = 4
    """Inputs that a fit leaves most of, to each of which two chords lead then."""
    max_mended: int = 8
    """Repairs that look for neurons."""
    stop: Stop = field(default_factory=lambda: Stop(15, rtol=0.02, patience=2))
    """When fits end that do not hold rows."""
    off: float = 4.0
    """An answer further off, in errors, is not explained: half of what counts as agreement."""
    idle: float = 1000.0
    """A neuron that the output weights of the others replace to within this many errors may not be
    one."""
    sided: float = 1.2
    """Answers on either side of a hyperplane, for each unknown of its row: all outputs say the same
    of that."""
    n_fresh: int = 200
    """Fresh answers that tell whether a neuron is missing: fewer than a certificate takes."""
    n_between: int = 300
    """Inputs between wrong ones that are looked at for such that answers determine least."""
    n_sided: int = 4
    """Points around a corner of which one at least is on its side of a hyperplane."""
    rows: LineRows = field(default_factory=LineRows)
    max_lines: int = 120

    def in_cube(self) -> Self:
        """The same where every question is asked in the cube."""
        return self.within(self.cube)

    def search(
        self,
        ask: Ask,
        sample: Callable[[FloatArray], Samples],
        sizes: Sizes,
        noise: NoiseFloor,
        limit: float,
        rng: np.random.Generator,
    ) -> "Explaining":
        """A search of which nothing is known yet, by the arguments of :meth:`FromLines.find`."""
        return Explaining(self, ask, sample, sizes, noise, limit, rng)

    def fitted(self, held: Network, samples: Samples) -> Network:
        """Let rows go that were held."""
        # Whole steps do not settle what few answers determine.
        solver = Automatic(
            Iterative(self.n_iterations, white=True), self.most_dense, self.most_work
        )
        return fit(held, samples, self.stop, solver=solver, damping=Damping(1e-6)).network

    def n_samples(self, width: int, sizes: Sizes) -> int:
        """How many answers determine a network."""
        return self._n_samples(width, self._few(sizes), sizes)

    def weak_inputs(
        self, network: Network, samples: Samples, near: FloatArray, rng: np.random.Generator
    ) -> tuple[int, FloatArray]:
        """How many answers are undetermined, and inputs that tell them; between others, too."""
        pairs = rng.integers(0, max(len(near), 1), (2, self.n_between * (len(near) > 0)))
        shares = rng.random((pairs.shape[1], 1))
        between = shares * near[pairs[0]] + (1.0 - shares) * near[pairs[1]]
        return self._weak_inputs(network, samples, self.most_work, rng, (between,))


@dataclass
class Explaining:
    """Rows and samples that grow until the one explains the other."""

    how: FromChords
    ask: Ask
    sample: Callable[[FloatArray], Samples]
    sizes: Sizes
    noise: NoiseFloor
    limit: float
    rng: np.random.Generator
    """Those of :meth:`FromChords.search`."""
    known: Sightings = field(init=False)
    """Rows that chords have shown."""
    samples: Samples | None = field(default=None, init=False)
    best: Network | None = field(default=None, init=False)
    """What explained all samples when there were fewer; its first neurons are the first rows."""
    aimed_at: set[int] = field(default_factory=set, init=False)
    """Samples that chords have led to."""
    near: FloatArray = field(init=False)
    """Shape (n, d).  Inputs where a network was wrong: answers between them are to be
    determined, too."""

    def __post_init__(self) -> None:
        self.known = Sightings(Rows.none(self.sizes.d, self.sizes.k))
        self.near = np.empty((0, self.sizes.d))

    def find(self) -> Network | None:
        """Find a network that explains what is asked, or none.

        Raises
        ------
        NoRowsError, HyperplanesEndError, LimitReachedError, SaturatedError
            As of :meth:`FromLines.find`.
        """
        how, idle, n_first = self.how, 0, 0
        for turn in range(how.max_lines):
            n_new = self._look(how.region.line(self.rng, self.sizes.d))
            n_first = n_first or n_new
            idle = 0 if n_new else idle + 1
            log.debug("chord %d: %d rows, %d of them new", turn, len(self.known), n_new)
            if idle == how.patience:
                break
        if not len(self.known):
            raise NoRowsError
        how.check_layers(self.ask, self.noise, self.known.rows.take(np.arange(n_first)), self.rng)
        return self._explained()

    def mended(self, wrong: FloatArray) -> Network | None:
        """Explain inputs ``wrong (n, d)``, too, where a network is wrong that was found."""
        self.near = np.vstack([self.near, wrong])
        self._add(wrong)
        return self._explained()

    def _look(self, line: Line) -> int:
        """Take in a chord; how many of its rows are new.  One without length shows none."""
        if not line.v.any():
            return 0
        seen = self.how.look(self.ask, self.known, self.noise, self.rng, line)
        return 0 if seen is None else seen[0]

    def _explained(self) -> Network | None:
        """Fit, and look where that leaves most, or where answers determine it least."""
        how, price, n_spare = self.how, Price(self.limit, known=True), 0
        for _ in range(how.max_fits):
            samples = self._enough(n_spare)
            held = self._held(samples, n_spare)
            left = np.abs(samples.residual(held)).max(axis=1)
            log.debug("%d rows, %d spare, %d answers", len(self.known), n_spare, len(left))
            log.debug("held: %d off, median %.3g", (left > how.off).sum(), np.median(left))
            n_known = len(self.known)
            n_lacking = self._n_lacking(samples.X, left, how.far * max(1.0, float(np.median(left))))
            is_idle = len(self.known) == n_known and n_lacking > self._n_sided
            n_spare = how.n_spare if is_idle else 0
            if n_lacking:
                continue
            found = how.fitted(held, samples)
            left = np.abs(samples.residual(found)).max(axis=1)
            log.debug("cost %.3g, at most %.3g", samples.cost(found), left.max())
            if self._n_lacking(samples.X, left, how.off) or not price.is_explained(found, samples):
                continue
            # What is missing moves what is fitted: only what explained all is begun with again.
            self.best = found
            if self._is_settled(found):
                self._drop_idle(samples, price)
                return self.best
        return None

    def _drop_idle(self, samples: Samples, price: Price) -> None:
        """Take out rows while the others explain the samples: those of one neuron twice."""
        how = self.how
        while self.best is not None and len(self.known):
            kept = np.sort(by_worth(self.best, samples)[1:])
            smaller = with_output_layer(self.best.take(kept), samples)
            if samples.cost(smaller) > how.idle * price.noise:
                break
            smaller = how.fitted(smaller, samples)
            left = np.abs(samples.residual(smaller)).max()
            if not price.is_explained(smaller, samples) or left > how.off:
                break
            self.best = smaller
            self.known.keep(kept[kept < len(self.known)])
            log.debug("%d rows are enough", len(self.known))

    def _held(self, samples: Samples, n_spare: int) -> Network:
        """Fit with rows held, from a network of those that were known before."""
        start = self.how.from_rows.start(self.known.rows, self.best, samples)
        held = self.how.from_rows.held(start, self.known, samples)
        if not n_spare:
            return held
        left = np.linalg.norm(samples.residual(held), axis=1)
        worst = np.argsort(-left, kind="stable")
        some = Samples(samples.X[worst], samples.Y[worst], samples.sigma)
        more = self.how.fits.missing.find(held, some, n_spare, self.rng)
        return with_output_layer(add_networks(held, more), samples)

    def _n_lacking(self, X: FloatArray, left: FloatArray, most: float) -> int:
        """Look for what answers lack of which more than ``most`` is left.

        Returns
        -------
        int
            How many there are; where chords have shown nothing, more are asked around the worst.
        """
        lacking = np.flatnonzero(left > most)
        lacking = lacking[np.argsort(-left[lacking], kind="stable")]
        if len(lacking) and not self._aimed(X, lacking):
            self._add(self.how.cube.around(self.rng, X[lacking[0]], self._n_sided))
        return len(lacking)

    def _aimed(self, X: FloatArray, lacking: IntArray) -> int:
        """Look along chords to answers that lack a neuron; how many rows are new.

        They come from one another, and from opposite corners.
        """
        how, cube, n_known = self.how, self.how.cube, len(self.known)
        todo = [i for i in lacking.tolist() if i not in self.aimed_at]
        for start in range(0, len(todo), how.n_aimed):
            part = todo[start : start + how.n_aimed]
            self.aimed_at.update(part)
            ends = X[part]
            starts = (cube.near_corners(self.rng, -ends), ends[self.rng.permutation(len(part))])
            for begin, end in zip(np.vstack(starts), np.vstack([ends, ends]), strict=True):
                self._look(cube.chord(begin, end))
            if len(self.known) > n_known:
                break
        return len(self.known) - n_known

    def _is_settled(self, network: Network) -> bool:
        """Whether fresh answers agree, and hardly one is determined too little; all are kept."""
        how, samples = self.how, self.samples
        if samples is None:  # pragma: no cover - a network was fitted to some
            raise AssertionError
        fresh = how.region.points(self.rng, how.n_fresh, self.sizes.d)
        n_weak, weak = how.weak_inputs(network, samples, self.near, self.rng)
        n_before = len(samples.X)
        grown = self._add(np.vstack([fresh, weak]))
        left = np.abs(grown.residual(network)[n_before:]).max(axis=1, initial=0.0)
        agrees = bool((left <= how.off).all())
        log.debug("%d inputs undetermined, fresh ones agree: %s", n_weak, agrees)
        return agrees and n_weak <= how.few * how.n_foretold

    @property
    def _n_sided(self) -> int:
        """Answers on a side of a hyperplane that determine a row."""
        return int(np.ceil(self.how.sided * (self.sizes.d + 2)))

    def _enough(self, n_spare: int) -> Samples:
        """Answers for all parameters, and for those of each row on both of its sides."""
        d, rows = self.sizes.d, self.known.rows
        X = np.empty((0, d)) if self.samples is None else self.samples.X
        n = self.how.n_samples(len(rows) + n_spare, self.sizes) - len(X)
        new = self.how.region.points(self.rng, max(n, 0), d)
        return self._add(np.vstack([new, self._beside(rows, np.vstack([X, new]))]))

    def _add(self, X: FloatArray) -> Samples:
        """Ask at inputs, and keep the answers beside the others."""
        if self.samples is None:
            self.samples = self.sample(X)
        elif len(X):
            self.samples = self.samples.joined(self.sample(X))
        return self.samples

    def _beside(self, rows: Rows, X: FloatArray) -> FloatArray:
        """Inputs on the sides of hyperplanes that have too few, shape (n, d).

        Half are near the hyperplane, where that is found in the cube, the others share coordinates
        with the corner that is farthest from it.
        """
        how, found, Z = self.how, [np.empty((0, X.shape[1]))], X @ rows.W.T + rows.b
        for side in (-1.0, 1.0):
            lacking = np.maximum(self._n_sided - (side * Z > 0.0).sum(axis=0), 0)
            for j in np.flatnonzero(lacking):
                w, b, n = side * rows.W[j], side * rows.b[j], int(lacking[j])
                on, normals = how.region.points_on_hyperplanes(
                    self.rng, np.tile(w, (n, 1)), np.full(n, b)
                )
                near = how.region.clip(on + how.beside * self.rng.random((n, 1)) * normals)
                far = how.cube.around(self.rng, np.sign(w) * how.cube.bound, how.n_sided * n)
                near, far = (at[at @ w + b > 0.0] for at in (near, far))
                found.append(np.vstack([near[: n // 2], far])[:n])
        return np.vstack(found)
