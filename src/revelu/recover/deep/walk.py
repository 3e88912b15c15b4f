"""The walk along one neuron's surface, which reads its row entry by entry.

A critical point with its gradients, the seed, shows the neuron's sum on one side of every wall.
Rays run from it along the surface to walls whose entry is not known; beyond each the surface is
sought again, and where it is says what the entry is.  That it is this neuron's surface is told by
the change of slope across it, which only layers above can alter.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.kink_lines import KinkLines, Kinks
from revelu.recover.deep.estimate import Estimate
from revelu.recover.deep.frame import ActivationRegions, KnownLayers
from revelu.recover.deep.seeds import Seed
from revelu.recover.deep.surface import RayTuning, Stops, Surface, to_face
from revelu.types import BoolArray, FloatArray, IntArray

Questions = Generator[FloatArray, FloatArray, None]
"""It yields inputs (n, d) and is sent the answers (n, k)."""


@dataclass(frozen=True)
class WalkTuning:
    """What tunes a walk."""

    rays: RayTuning = field(default_factory=RayTuning)
    n_rays: int = 96
    """Rays of one round."""
    aimed: float = 0.67
    """The share of them that are aimed at a wall whose entry is not known."""
    wander: float = 0.5
    """By how much an aimed ray is turned aside at random."""
    tries: tuple[tuple[float, float], ...] = ((0.25, 8.0), (0.1, 32.0), (0.5, 4.0), (0.05, 100.0))
    """How far beyond a wall the surface is sought, as a share of half the way to the next one;
    and in which range, in standard deviations of what the turn may be.  Entries of trained rows
    have heavy tails: a range is widened nearer the wall, where it is short."""
    n_tries: int = 2
    """Of these, as long as other walls bring new entries."""
    clear: float = 0.7
    """It is sought no further than where the range is this share of the way to other walls."""
    narrowest: float = 1e-5
    """The narrowest range, relative to the point."""
    sure: float = 1e-4
    """A range, relative to the point, that is too narrow for another neuron's kink."""
    exact: float = 1e-9
    """What rounding leaves of a predicted place, relative to the point, and of features there: a
    row whose relative error is no larger is known well enough."""
    caution: float = 10.0
    """Points of the surface err by ``caution`` times what answers let them: rows below err, too."""
    wide: float = 10.0
    """The range at predicted points, in standard errors."""
    same_jump: float = 1e-6
    """A change of slope is this neuron's if it is off by this share, beyond what errors explain;"""
    vague: float = 1e-4
    """and by this much at most, whatever they explain."""
    n_rounds: int = 2
    """Times that all entries are solved for anew while they are found."""
    n_refine: int = 12
    """Points of the surface that are asked then, where it is least certain, at most;"""
    refine: float = 0.25
    """and for each unknown."""
    n_last: int = 3
    """Times that they are solved for at most when all are found."""
    n_flat: int = 4
    """Points, of the piece around a seed or beyond as many walls, of which one has to tell whether
    the surface turns where known neurons of its layer change, as a deeper one's; moves to each,"""
    far: float = 0.9
    """by this share of the way to the next wall."""
    is_put_off: bool = False
    """Whether a walk ends where none change there."""
    n_fresh: int = 12
    """Predicted points at which a row is tested;"""
    n_fresh_if_open: int = 36
    """and where some entries are not known: a deeper neuron's surface is flat for a while."""
    n_tests: int = 4
    """Times that points are drawn for a test, at most, where around some no answer changes."""
    found: float = 0.9
    found_if_open: float = 0.95
    """The share of them at which the surface has to be, and where entries are not known, which
    hides that a deeper neuron's turns elsewhere."""
    most_open: float = 0.25
    """The share of unknowns that may be left undetermined, twice that where its layer has told:
    what little is known of a row may hold for a deeper neuron, too, or for one below."""
    n_shared: int = 3
    """Points of another walk that have to be on a surface which is not all known, at least."""
    patience: int = 3
    """Rounds without a new entry that end a walk."""
    atol: float = 1e-6
    """An unknown is undetermined if its axis lies this far in what is."""


@dataclass
class Walk:
    """The walk from one seed."""

    frame: KnownLayers
    """The known layers below."""
    seed: Seed
    noise: NoiseFloor
    """Of the answers."""
    rng: np.random.Generator
    tuning: WalkTuning = field(default_factory=WalkTuning)
    sums_beside: Callable[[FloatArray], FloatArray] | None = None
    """Sums of the known neurons of its layer at inputs, (n, d) -> (n, k): a deeper neuron's
    surface turns where they change their state, and this one's does not."""
    estimate: Estimate = field(init=False)
    """Of the neuron's unknowns."""
    points: ActivationRegions = field(init=False)
    """Of the surface, as found, the seed first."""
    signs: FloatArray = field(init=False)
    """Shape (m,).  Of the rows on top of the frame, such that all of them are off at the seed."""
    is_accepted: bool = field(default=False, init=False)
    """Whether it passed the last test."""
    is_told: bool = field(default=False, init=False)
    """Whether neurons of its layer told that it is no deeper neuron's, or that it is."""
    gains_vary: bool = field(default=False, init=False)
    """Whether layers above have been seen to change what the outputs make of the neuron."""

    def __post_init__(self) -> None:
        self.gain = self.seed.column / self.noise.unit
        self.strength = float(np.linalg.norm(self.gain))
        growth = float(np.sqrt(1.0 + (self.seed.x**2).mean()))
        # A kink is known by four answers or more, whose errors add up.
        self.errors = [self.tuning.caution * self.noise.relative * growth / self.strength]
        self.points = self.frame.region(self.seed.x[None])
        self.rebase(self.frame)

    def rebase(self, frame: KnownLayers) -> None:
        """Write all that was found in another frame: one with more neurons, or with signs."""
        self.frame, seed = frame, self.seed
        self.points = frame.region(self.points.X)
        here = self.points.take(np.arange(1))
        self.signs = np.where(here.on[-1][0], -1.0, 1.0)
        self.scale = 1.0 / np.sqrt(max(len(frame.b), len(seed.x)))
        self.estimate = Estimate(frame.size, self.rng)
        for row, value in zip(frame.jacobian(here, self.signs).T, seed.normal, strict=True):
            self.estimate.add(row, float(value), seed.error)
        for row, error in zip(frame.features(self.points, self.signs), self.errors, strict=True):
            self.estimate.add(row, 0.0, error)
        if len(self.points) > 1:
            self.estimate.solve()

    @property
    def is_open(self) -> BoolArray:
        """Which unknowns are undetermined, shape (frame.size,)."""
        return np.asarray(np.linalg.norm(self.estimate.undetermined, axis=1) > self.tuning.atol)

    def has(self, other: "Walk", rtol: float) -> bool:
        """Whether most points of another walk lie on this surface, of those it tells of."""
        at = self.frame.region(other.points.X)
        F = self.frame.features(at, self.signs)
        is_told = np.ones(len(F), dtype=bool)
        if self.estimate.n_undetermined:
            left_open = np.linalg.norm(F @ self.estimate.undetermined, axis=1)
            is_told = left_open <= self.tuning.atol * np.linalg.norm(F, axis=1)
            if is_told.sum() < self.tuning.n_shared:
                return False
        theta = self.estimate.theta
        slope = np.linalg.norm(self.frame.gradients(at, self.signs, theta), axis=1)
        near = rtol * (1.0 + np.linalg.norm(at.X, axis=1)) * slope
        return bool((np.abs(F @ theta) <= near)[is_told].mean() > 0.5)

    def join(self, other: "Walk", rtol: float) -> None:
        """Take in the points of another walk, unless they are not all of one neuron."""
        before, errors = self.points, self.errors
        self.points, self.errors = before.joined(other.points), [*errors, *other.errors]
        self.rebase(self.frame)
        if not (self.has(self, rtol) and self.has(other, rtol)):
            self.points, self.errors = before, errors
            self.rebase(self.frame)

    def run(self) -> Questions:
        """Walk until every entry that can be reached is known; then test the row."""
        estimate, t = self.estimate, self.tuning
        todo = refined = estimate.n_undetermined
        in_vain = 0
        if len(self.points) == 1:
            is_deeper = yield from self._tell(self._piece())
            if is_deeper or (t.is_put_off and not self.is_told):
                return
        while estimate.n_undetermined and in_vain < t.patience:
            before = estimate.n_undetermined
            is_going_well = before < todo and not in_vain
            yield from self._advance(t.tries[: t.n_tries] if is_going_well else t.tries)
            in_vain = in_vain + 1 if estimate.n_undetermined >= before else 0
            if in_vain and before == todo:
                break
            if not self.is_told and (yield from self._tell(self._fresh(t.n_flat, uncertain=False))):
                return
            if in_vain or refined - estimate.n_undetermined >= max(todo // t.n_rounds, 4):
                refined = estimate.n_undetermined
                yield from self._refine()
        for _ in range(t.n_last):
            yield from self._refine()
            if estimate.spread <= t.exact:
                break
        yield from self._test(t.n_fresh_if_open if estimate.n_undetermined else t.n_fresh)

    def _surface(self) -> Surface:
        """The surface as known, with entries that are not known as large as those that are."""
        theta = self.estimate.theta[: len(self.frame.b) or -1]
        known = theta[~self.is_open[: len(theta)] & (theta != 0)]
        if len(known) >= 4:
            self.scale = float(np.median(np.abs(known)))
        return Surface(self.frame, self.signs, self.estimate.drawn(self.scale))

    def _advance(self, tries: Sequence[tuple[float, float]]) -> Questions:
        """Follow rays to walls whose entries are not known, and find the surface beyond each."""
        surface = self._surface()
        stops = surface.trace(*self._rays(aimed=True), self.tuning.rays)
        if stops is None:
            return
        stops = stops.best()
        sums = self.sums_beside
        if not self.is_told and sums is not None and sums(self.seed.x[None]).size:
            stops = stops.take(self.rng.permutation(len(stops))[: self.tuning.n_flat])
        for share, range_ in tries:
            if not len(stops):
                return
            normals = self.frame.normals(stops.at, stops.layers, stops.neurons)
            reach = 0.5 * share * stops.room
            clear = self._clear(surface, stops, 0.5 * reach, normals, range_)
            moves = np.minimum(reach, clear)[:, None] * stops.moves
            beyond = stops.at.moved(stops.at.X + moves)
            found, _ = yield from self._seek(beyond, normals, range_, -moves)
            stops = stops.take(~found)

    def _clear(
        self, surface: Surface, stops: Stops, reach: FloatArray, normals: FloatArray, range_: float
    ) -> FloatArray:
        """How far beyond walls no other wall comes into the range, about, shape (n,)."""
        at = stops.at.moved(stops.at.X + reach[:, None] * stops.moves)
        M, slope = surface.across(at, normals)
        rise = range_ * surface.slopes(at, stops.moves)[:, 1:].std(axis=1)
        other = np.minimum(*(self.frame.next_wall(at, side * M)[0] for side in (1.0, -1.0)))
        with np.errstate(divide="ignore", invalid="ignore"):
            clear = self.tuning.clear * other * slope / rise
        return np.where(np.isfinite(clear) & (slope > 0), clear, reach)

    def _rays(self, *, aimed: bool) -> tuple[ActivationRegions, FloatArray]:
        """Points of the surface, and directions to go from them, shape (n, d)."""
        t, m, rng = self.tuning, len(self.frame.b), self.rng
        at = self.points.take(rng.integers(len(self.points), size=t.n_rays))
        E = rng.standard_normal(at.X.shape)
        E /= np.linalg.norm(E, axis=1)[:, None]
        # Unknowns of neurons: those on top, and those of the stack's last layer.
        n_neurons = m + (self.frame.stack.dim_out if len(self.frame.stack) else 0)
        wanted = np.flatnonzero(self.is_open[:n_neurons])
        if aimed and len(wanted):
            n = int(t.aimed * t.n_rays)
            chosen = rng.choice(wanted, n)
            top = chosen < m
            layers = len(self.frame.stack) - 1 + top
            neurons = np.where(top, chosen, chosen - m)
            head = at.take(np.arange(n))
            N = self.frame.normals(head, layers, neurons)
            is_on = np.array(
                [head.on[i][r, j] for r, (i, j) in enumerate(zip(layers, neurons, strict=True))]
            )
            size = np.linalg.norm(N, axis=1)
            N *= (np.where(is_on, -1.0, 1.0) / np.where(size > 0, size, 1.0))[:, None]
            E[:n] = N + t.wander * E[:n]
        return at, E

    def _seek(
        self,
        at: ActivationRegions,
        normals: FloatArray,
        range_: float,
        back: FloatArray | None = None,
    ) -> Generator[FloatArray, FloatArray, tuple[BoolArray, BoolArray]]:
        """Look for the surface beside points; say at which it was found, and which show nothing.

        Parameters
        ----------
        at : ActivationRegions
        normals : ndarray, shape (n, d)
            Of walls that the surface may turn at in a way that is not known; 0 where it is.
        range_ : float
            In standard deviations of where it may be.
        back : ndarray, shape (n, d), optional
            Moves from the points to the walls; without them the surface is predicted.
        """
        t, surface = self.tuning, self._surface()
        M, slope = surface.across(at, normals)
        steep = slope > t.rays.steep * np.linalg.norm(surface.gradients(at), axis=1)
        found, blank = np.zeros((2, len(at)), dtype=bool)
        rows = np.flatnonzero(steep)
        if not len(rows):
            return found, blank
        at, M, slope = at.take(rows), M[rows], slope[rows]
        values = surface.values(at)
        radius = np.maximum(np.linalg.norm(at.X, axis=1), 1.0)
        T = np.maximum(range_ * values[:, 1:].std(axis=1) / slope, t.narrowest * radius)
        middle = -values[:, 0] / slope
        lines = KinkLines(at.X, M, middle, T)
        seen = lines.read((yield lines.points), self.noise)
        vague = surface.slopes(at, M)[:, 1:].std(axis=1) / slope + self.seed.error + seen.error
        apart = np.linalg.norm(seen.jumps - slope[:, None] * self.gain, axis=1)
        same = apart <= np.minimum(t.same_jump + SIGMAS * vague, t.vague) * self.strength * slope
        mine, other = seen.is_kink & same, seen.is_kink & ~same
        if back is None:
            # Exactly where it is predicted: layers above have changed their state.
            off = np.abs(seen.tau - lines.middle)
            near = SIGMAS * values[:, 1:].std(axis=1) / slope + t.exact * radius
            changed = other & (off <= near) & (t.sure * radius >= near)
            self.gains_vary |= bool(changed.any())
            mine |= changed
        elif self.gains_vary and other.any():
            those = np.flatnonzero(other)
            confirmed = yield from self._confirm(lines, those, seen, back[rows[those]])
            mine[those[confirmed]] = True
        kept = self._add(at, lines.meets(seen), slope * seen.tau_error, mine)
        found[rows[kept]] = True
        blank[rows] = seen.is_blank
        return found, blank

    def _confirm(
        self, lines: KinkLines, those: IntArray, seen: Kinks, back: FloatArray
    ) -> Generator[FloatArray, FloatArray, BoolArray]:
        """Whether kinks of another size are this neuron's, with another gain.

        Each is a single one, as two more points show, and half-way to the wall, where the surface
        is half as far off, there is one of the same size.
        """
        t = self.tuning
        single = lines.are_single(those, seen, (yield lines.beside(those, seen.tau)), self.noise)
        confirmed = np.zeros(len(those), dtype=bool)
        if not single.any():
            return confirmed
        rows = those[single]
        X, tau = lines.X[rows] + 0.5 * back[single], 0.5 * seen.tau[rows]
        radius = np.maximum(np.linalg.norm(X, axis=1), 1.0)
        # A fiftieth of the offset: the surface is known to be there if it is this neuron's.
        nearer = KinkLines(
            X, lines.M[rows], tau, np.maximum(0.02 * np.abs(tau), t.narrowest * radius)
        )
        near = nearer.read((yield nearer.points), self.noise)
        apart = np.linalg.norm(near.jumps - seen.jumps[rows], axis=1)
        size = np.linalg.norm(seen.jumps[rows], axis=1)
        error = t.same_jump + SIGMAS * (near.error + seen.error[rows])
        confirmed[single] = near.is_kink & (apart <= error * size)
        return confirmed

    def _add(
        self, at: ActivationRegions, X: FloatArray, errors: FloatArray, mine: BoolArray
    ) -> IntArray:
        """Take points of the surface into the estimate, and return which."""
        rows = np.flatnonzero(mine)
        there = at.take(rows).moved(X[rows])
        features = self.frame.features(there, self.signs)
        # The states hold if no other wall lies between.
        read = self.frame.features(self.frame.region(there.X), self.signs)
        limit = self.tuning.exact * (1.0 + np.linalg.norm(there.X, axis=1))
        holds = np.abs(read - features).max(axis=1, initial=0.0) <= limit
        for row, error in zip(features[holds], errors[rows[holds]], strict=True):
            self.errors.append(self.tuning.caution * float(error))
            self.estimate.add(row, 0.0, self.errors[-1])
        self.points = self.points.joined(there.take(holds))
        return np.asarray(rows[holds])

    def _fresh(self, n: int, *, uncertain: bool) -> ActivationRegions | None:
        """Predicted points after random numbers of turns, the least certain ones or any."""
        t = self.tuning
        at, E = self._rays(aimed=False)
        # A test goes farther than what the entries rest on.
        most = t.rays.max_turns // (4 if uncertain else 2)
        stops = self._surface().trace(at, E, t.rays, self.rng.integers(1, most, size=t.n_rays))
        if stops is None:
            return None
        radius = np.maximum(np.linalg.norm(stops.at.X, axis=1), 1.0)
        stops = stops.take(stops.doubt <= (100.0 if uncertain else 1.0) * t.sure * radius)
        if not uncertain:
            stops = stops.take(self.rng.permutation(len(stops)))
        scores = stops.doubt if uncertain else self._n_changed(stops.at.X)
        return stops.at.take(np.argsort(-scores, kind="stable")[:n])

    def _n_changed(self, X: FloatArray) -> FloatArray:
        """How many known neurons of its layer are in other states than at the seed, shape (n,)."""
        if self.sums_beside is None:
            return np.zeros(len(X))
        on = self.sums_beside(np.vstack([self.seed.x, X])) > 0.0
        return np.asarray((on[1:] != on[0]).sum(axis=1, dtype=np.float64))

    def _piece(self) -> ActivationRegions:
        """Points of the piece around the seed, up to its walls."""
        t = self.tuning
        surface, (at, E), parts = self._surface(), self._rays(aimed=False), list[FloatArray]()
        for _ in range(t.n_flat):
            E = surface.along(at, E)
            room = np.minimum(self.frame.next_wall(at, E)[0], to_face(at.X, E, t.rays.bound))
            at = at.moved(at.X + t.far * np.minimum(room, np.sqrt(at.X.shape[1]))[:, None] * E)
            parts.append(at.X)
            E = self.rng.standard_normal(E.shape)
        # Away from the walls.
        X = self.seed.x + t.far * (np.concatenate(parts) - self.seed.x)
        return at.take(np.zeros(len(X), dtype=np.intp)).moved(X)

    def _tell(self, at: ActivationRegions | None) -> Generator[FloatArray, FloatArray, bool]:
        """Whether the surface is not where predicted, as others of its layer have changed."""
        if at is None:
            return False
        n_changed = self._n_changed(at.X)
        order = np.argsort(-n_changed, kind="stable")[: self.tuning.n_flat]
        for row in order[n_changed[order] > 0]:
            some = at.take(row[None])
            found, blank = yield from self._seek(some, np.zeros(some.X.shape), self.tuning.wide)
            if not blank[0]:
                self.is_told, self.is_accepted = True, bool(found[0])
                return not self.is_accepted
        return False

    def _refine(self) -> Questions:
        """Ask where the surface is least certain, and solve for all entries at once."""
        t = self.tuning
        n = min(t.n_refine, int(np.ceil(t.refine * self.frame.size)))
        at = self._fresh(n, uncertain=True)
        if at is not None and len(at):
            yield from self._seek(at, np.zeros(at.X.shape), t.wide)
        self.estimate.solve()

    def _test(self, n: int) -> Questions:
        """Whether the surface is where the row says, at fresh points.

        Where layers above are off, all of a layer, no surface below is seen: other points are
        asked instead.
        """
        t, n_open = self.tuning, self.estimate.n_undetermined
        wanted, n_found, n_told = t.found_if_open if n_open else t.found, 0, 0
        few = n_open <= t.most_open * (1 + self.is_told) * self.frame.size
        for _ in range(t.n_tests):
            at = self._fresh(n - n_told, uncertain=False)
            if at is None or not len(at):
                break
            # A deeper neuron's surface is at none of the first ones.
            for rows in np.split(np.arange(len(at)), [t.n_flat]):
                some = at.take(rows)
                found, blank = yield from self._seek(some, np.zeros(some.X.shape), t.wide)
                n_found, n_told = n_found + int(found.sum()), n_told + int((~blank).sum())
                if n_told - n_found > (1.0 - wanted) * n:
                    few = False
                    break
            if not (few and blank.any()):
                break
        self.is_accepted = few and n_found >= wanted * max(n_told, 1)
