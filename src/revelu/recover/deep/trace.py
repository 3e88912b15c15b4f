"""An upper neuron's row, traced along its surface above a first layer that is known exactly.

With ``F(x) = (relu(W x + b), 1)`` the neuron's sum is ``F(x) theta``, and every point of its
surface is a linear equation for the 1 + m unknowns, however many walls lie between: only which
points are this neuron's is in question.  The unknowns have a normal distribution, at first as wide
as rows are, and each point narrows it (Kalman 1960).  So it is told where the surface is beyond a
wall, and how surely:

1. From points of the surface steps go along it, beyond the next wall or a few of them.
2. Where the surface is foretold well enough, so that no wall and no known neuron's kink lies in the
   range that it may be in, four points on a line across it say where it is and how much the slope
   changes.  The line is orthogonal to gradients of what has just turned on and is not known: along
   it the neuron's own slope is.  Places that would say little are not asked for.
3. A kink is this neuron's if it is where it was foretold and as strong; it then says where the sum
   is 0, and what its slope is there.

Of the first layer no signs need be known: ``relu(-z) = relu(z) - z``, so that beside neurons as
they come inputs are what sums are linear in (:class:`Below`).
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network
from revelu.numerics.float64 import EPS, TINY
from revelu.numerics.gaussian import Gaussian
from revelu.numerics.records import Records
from revelu.numerics.reweighting import cauchy, larger_than_said
from revelu.oracle import NoiseFloor
from revelu.probe.kink_lines import KinkLines
from revelu.probe.line import Ask
from revelu.recover.deep.seeds import Seed
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Below:
    """What sums above a first layer are linear in: its neurons, 1, inputs while signs are open."""

    W: FloatArray
    b: FloatArray
    """Shape (m, d) and (m,).  The first layer, as its neurons turn on, or as it happens."""
    errors: FloatArray
    """Shape (m,).  Standard errors of rows of ``W``, relative to them."""
    is_signed: bool = True
    """Whether they are known to turn on there: else inputs are among the features."""
    reach: float = 100.0
    """Inputs farther out than this are not asked: neurons that are on up to there pass them on."""

    @property
    def size(self) -> int:
        """How many features there are."""
        return len(self.b) + 1 + (0 if self.is_signed else int(self.W.shape[1]))

    def on(self, X: FloatArray) -> BoolArray:
        """Which neurons' sums are positive, shape (n, m)."""
        return np.asarray(X @ self.W.T + self.b > 0)

    def states(self, X: FloatArray, rows: FloatArray) -> BoolArray:
        """Which neurons are on, those of the first layer and rows above it, shape (n, m + r)."""
        return np.hstack([self.on(X), self.features(X) @ rows.T > 0])

    def features(self, X: FloatArray) -> FloatArray:
        """What sums are linear in, shape (n, size)."""
        neurons, one = np.maximum(X @ self.W.T + self.b, 0.0), np.ones(len(X))
        return np.column_stack([neurons, one] if self.is_signed else [neurons, X, one])

    def slopes(self, X: FloatArray, M: FloatArray) -> FloatArray:
        """How features change along directions ``M (n, d)``, shape (n, size)."""
        neurons, none = (M @ self.W.T) * self.on(X), np.zeros(len(X))
        return np.column_stack([neurons, none] if self.is_signed else [neurons, M, none])

    def sum_errors(self, X: FloatArray, theta: FloatArray) -> FloatArray:
        """Standard errors that rows' give to a sum, shape (n,).

        An error of ``w`` that has no direction moves ``w x + b`` as it does at an input of
        independent coordinates, and ``b`` by as much as one of them.
        """
        each = theta[: len(self.b)] * self.errors * np.linalg.norm(self.W, axis=1)
        growth = np.sqrt(1.0 + (X**2).mean(axis=1))
        return np.asarray(growth * np.linalg.norm(self.on(X) * each, axis=1))

    def gradients(self, X: FloatArray, theta: FloatArray) -> FloatArray:
        """Gradients of a sum, shape (n, d)."""
        m = len(self.b)
        of_neurons = (self.on(X) * theta[:m]) @ self.W
        return of_neurons if self.is_signed else np.asarray(of_neurons + theta[m:-1])

    def network(self, rows: FloatArray, C: FloatArray) -> Network:
        """The network of rows (r, size), and outputs C (r + size, k) of these and of features."""
        r, (m, d) = len(rows), self.W.shape
        W, b, rest, more = self.W, self.b, C[r:-1], np.zeros(r)
        last = C[-1]
        if not self.is_signed:
            W, b = np.vstack([W, np.eye(d)]), np.append(b, np.full(d, self.reach))
            more, last = (
                -self.reach * rows[:, m:-1].sum(axis=1),
                last - self.reach * rest[m:].sum(0),
            )
        weights, biases = [W, rows[:, :-1], C[:r].T], [b, rows[:, -1] + more, last]
        return Network(weights, biases, skip=(rest.T, np.zeros(C.shape[1])))


@dataclass(frozen=True)
class TraceTuning:
    """How a surface is traced."""

    wide: float = 2.0
    """Standard deviation of unknowns at first, in those of known rows,"""
    constant: float = 10.0
    """and of the constant, and of what is linear in inputs."""
    n_steps: int = 300
    """Steps that are drawn in a round,"""
    n_walls: int = 8
    """beyond ``n_walls`` walls at most, most of them beyond the next one,"""
    first: float = 0.03
    farthest: float = 0.8
    """by these shares of the way to the one after, and no farther than ``longest``."""
    longest: float = 0.3
    n_asked: int = 6
    """Places that are asked then at most, those that say most:"""
    tells: float = 4.0
    """each leaves no more than ``exp(-tells / 2)``, about, of the error with which it is
    foretold."""
    n_rounds: int = 150
    """At most;"""
    patience: int = 8
    """rounds in vain that end the trace."""
    fewest: float = 2.0
    """Places asked for each unknown after which it is seen whether the surface is where it should
    be."""
    vague: float = 0.05
    """A turn is open if its weight may be off by this share of those of known rows, and a direction
    of the row in the end."""
    range_: float = 6.0
    """Half of the range that is asked, in standard errors of where the surface is,"""
    blur: float = 300.0
    """and in errors of an answer over the change of slope;"""
    widest: float = 0.25
    """no more than this."""
    turned: float = 0.3
    """The error that a slope may have, relative to it, where it is compared."""
    steep: float = 0.1
    """The share of the gradient that has to be left across a line."""
    surprise: float = 4.0
    """Standard errors by which a kink may be off, and more strongly forgotten in the end."""
    far: float = 2.5
    farther: float = 0.0
    """Standard deviations of an input to which it is traced, or ``farther`` times as far out as the
    seed is."""
    least: float = 0.5
    """The share of places at which the surface is found, and more of them than unknowns, if the row
    is one,"""
    confirms: int = 3
    """or more than ``confirms`` where the row was measured before."""


@dataclass(frozen=True, eq=False)
class _Places(Records):
    """Where the surface is foretold to be."""

    X: FloatArray
    M: FloatArray
    """Shape (n, d).  Points of it, and unit directions across."""
    T: FloatArray
    """Shape (n,).  The range that is asked."""
    F: FloatArray
    slopes: FloatArray
    """Shape (n, 1 + m).  What the sum is linear in there, and the slopes of that along ``M``."""
    slope: FloatArray
    doubt: FloatArray
    vague: FloatArray
    """Shape (n,).  The sum's slope, the standard error of the place, and of the slope."""


@dataclass
class Trace:
    """The trace from one seed."""

    below: Below
    """The first layer."""
    others: FloatArray
    """Shape (r, size).  Known rows above it: no line crosses their kinks."""
    seed: Seed
    noise: NoiseFloor
    """Of the answers."""
    scale: float
    """How large entries of rows are whose gradients have norm 1."""
    rng: np.random.Generator
    how: TraceTuning = field(default_factory=TraceTuning)
    sigma: float = field(init=False)
    """Standard error of an answer in units of the outputs, where the seed is."""
    law: Gaussian = field(init=False)
    """Of the row, whose gradient at the seed has norm 1, about."""
    points: list[FloatArray] = field(init=False)
    """Of the surface."""
    n_asked: int = field(default=0, init=False)
    n_found: int = field(default=0, init=False)
    """Places that were asked, and at which the surface was found."""

    def __post_init__(self) -> None:
        how, seed = self.how, self.seed
        gain = seed.column / self.noise.unit
        self.strength = float(np.linalg.norm(gain))
        self.direction = gain / self.strength
        larger = float(self.noise.growth(seed.x[None])[0]) / np.sqrt(2.0)
        self.sigma = self.noise.relative * max(larger, 1.0)
        # Four answers or more tell a kink's place, whose errors add up.
        self.place = 6.0 * self.sigma / self.strength
        far = how.far * float(np.sqrt(len(seed.x)))
        # Far out all lengths are larger.
        self.size = max(1.0, how.farther * float(np.linalg.norm(seed.x)) / far)
        self.reach = far * self.size
        m = len(self.below.b)
        self.prior = np.full(self.below.size, how.constant * self.size)
        self.prior[:m] = how.wide * self.scale
        here = np.repeat(seed.x[None], len(seed.x), axis=0)
        self.rows = [*self.below.slopes(here, np.eye(len(seed.x)))]
        self.rows.append(self.below.features(seed.x[None])[0])
        self.values = [*map(float, seed.normal), 0.0]
        # Of an unknown row's weights no more is known than how large they are.
        rows = float(self.below.sum_errors(seed.x[None], np.full(m, self.scale))[0])
        self.errors = [float(np.hypot(seed.error, rows))] * len(seed.x)
        self.errors.append(float(np.hypot(rows, self.place)))
        self.points = [seed.x]
        if seed.row is not None:
            # A row that was measured says what each of the unknowns is.
            size = np.linalg.norm(seed.row) / np.sqrt(len(seed.row))
            self.rows += [*np.eye(len(seed.row))]
            self.values += [*map(float, seed.row)]
            self.errors += [seed.row_error * float(size)] * len(seed.row)
        self._solve()

    @property
    def theta(self) -> FloatArray:
        """The row, shape (size,)."""
        return self.law.mean

    @property
    def is_found(self) -> bool:
        """Whether the surface was where it was foretold to be, mostly, and more often than needed.

        Each place tells one of the unknowns; a row that is known each one confirms.
        """
        least = self.below.size if self.seed.row is None else self.how.confirms
        return bool(self.n_found > max(least, self.how.least * self.n_asked))

    @property
    def is_lost(self) -> bool:
        """Whether it went far, and the surface was not where it was foretold to be."""
        is_far = self.n_asked >= self.how.fewest * self.below.size
        return is_far and self.n_found <= self.how.least * self.n_asked

    def run(self, ask: Ask) -> None:
        """Trace until nothing more is told."""
        n_idle = 0
        for _ in range(self.how.n_rounds):
            n_idle = 0 if self._round(ask) else n_idle + 1
            if self.is_lost or n_idle == self.how.patience:
                return

    def _round(self, ask: Ask) -> int:
        """Ask at a few places; return at how many the surface was found."""
        places = self._chosen(self._foretold())
        if not len(places):
            return 0
        lines = KinkLines(places.X, places.M, np.zeros(len(places)), places.T)
        seen = lines.read(ask(lines.points), self.noise)
        jumps, foretold = seen.jumps @ self.direction, self.strength * places.slope
        aside = np.linalg.norm(seen.jumps - np.outer(jumps, self.direction), axis=1)
        of_rows = self.below.sum_errors(places.X, self.theta)
        # Slopes of sums, along directions of length 1, err by no more than sums do.
        error = np.hypot(
            seen.error * np.linalg.norm(seen.jumps, axis=1),
            np.hypot(self.seed.error * foretold, self.strength * of_rows),
        )
        most = self.how.surprise * np.hypot(error, self.strength * places.vague)
        mine = seen.is_kink & (np.abs(jumps - foretold) < most) & (aside < most)
        doubt = np.hypot(places.doubt, np.hypot(of_rows / places.slope, seen.tau_error))
        off = self.how.surprise * doubt
        those = np.flatnonzero(mine & (np.abs(seen.tau) < off))
        if len(those):
            beside = ask(lines.beside(those, seen.tau))
            those = those[lines.are_single(those, seen, beside, self.noise)]
        points, slope = lines.meets(seen), places.slope
        for i in those:
            self.rows += [self.below.features(points[i][None])[0], places.slopes[i]]
            self.values += [0.0, float(jumps[i] / self.strength)]
            self.errors.append(float(np.hypot(slope[i] * seen.tau_error[i], of_rows[i])))
            self.errors.append(float(error[i] / self.strength))
            self.points.append(points[i])
        self.n_asked, self.n_found = self.n_asked + len(places), self.n_found + len(those)
        self._solve()
        return len(those)

    def _solve(self) -> None:
        """The unknowns' distribution by all equations, those forgotten that contradict the rest."""
        e, prior = np.array(self.errors), np.diag(1.0 / self.prior)
        A, y, off = np.array(self.rows) / e[:, None], np.array(self.values) / e, np.zeros(len(e))
        for _ in range(4):
            sure = cauchy(off, self.how.surprise)
            left = np.append(sure * y, np.zeros(len(prior)))
            law = Gaussian.of(np.vstack([sure[:, None] * A, prior]), left)
            off = np.abs(A @ law.mean - y)
        # Where they agree less well than their errors say, all errors are that much larger.
        self.law = law.wider(larger_than_said(off))

    def _steps(self, open_: IntArray) -> tuple[FloatArray, FloatArray]:
        """Points of the surface, and others along it, beyond a few walls, shape (n, d) each."""
        how, rng, n = self.how, self.rng, self.how.n_steps
        W, b = self.below.W, self.below.b
        X = np.array(self.points)[rng.integers(len(self.points), size=n)]
        G = self.below.gradients(X, self.theta)
        G /= np.maximum(np.linalg.norm(G, axis=1), TINY)[:, None]
        E = rng.standard_normal(X.shape)
        E /= np.linalg.norm(E, axis=1)[:, None]
        Z = X @ W.T + b
        if len(open_):
            # Half of them are aimed at a wall that is not known.
            half = n // 2
            aims = rng.choice(open_, half)
            side = -np.sign(Z[np.arange(half), aims])[:, None]
            E[:half] = side * W[aims] + 0.5 * E[:half]
        E -= (E * G).sum(axis=1)[:, None] * G
        # On a line a surface is a point, which no step leaves.
        E /= np.maximum(np.linalg.norm(E, axis=1), TINY)[:, None]
        slopes = E @ W.T
        t = np.abs(Z) / np.maximum(np.abs(slopes), EPS)
        t = np.sort(np.where(Z * slopes < 0, t, 2.0 * self.reach), axis=1)[:, : how.n_walls]
        t = np.hstack([np.zeros((n, 1)), t])
        n_crossed = np.minimum(rng.geometric(0.4, n) - (rng.random(n) < 0.15), t.shape[1] - 2)
        n_crossed = np.where(rng.random(n) < 0.25, rng.integers(t.shape[1] - 1, size=n), n_crossed)
        rows = np.arange(n)
        before, room = t[rows, n_crossed], t[rows, n_crossed + 1] - t[rows, n_crossed]
        shares = np.exp(rng.uniform(np.log(how.first), np.log(how.farthest), n))
        return X, X + (before + shares * np.minimum(room, how.longest * self.size))[:, None] * E

    def _foretold(self) -> _Places:
        """Places of the surface where it is known well enough to be asked for."""
        how, below, longest = self.how, self.below, self.how.longest * self.size
        m, d = below.W.shape
        errors = np.linalg.norm(self.law.spread[:m], axis=1)
        is_open = errors > how.vague * self.scale
        start, X = self._steps(np.flatnonzero(is_open))
        before = below.on(start)
        for turn in range(5):
            G, F = below.gradients(X, self.theta), below.features(X)
            values = F @ self.theta
            turned = (below.on(X) != before) & is_open
            M = self._across(G, turned)
            size = np.maximum(np.linalg.norm(M, axis=1), EPS)
            M /= size[:, None]
            if turn < 4:
                X = X + np.clip(-values / size, -longest, longest)[:, None] * M
        gradient = np.linalg.norm(G, axis=1)
        slope = np.maximum((M * G).sum(axis=1), EPS)
        slopes = below.slopes(X, M)
        doubt = self.law.errors_of(F) / slope
        vague = self.law.errors_of(slopes)
        T = how.range_ * doubt + how.blur * self.sigma / (self.strength * slope)
        told = (turned.sum(axis=1) < min(3, d)) & (slope > how.steep * gradient)
        told &= (np.abs(values) < self.place) & (how.widest * self.size > T)
        told &= (vague < how.turned * slope) & (np.linalg.norm(X, axis=1) < self.reach)
        states = below.states(X, self.others)
        for side in (1.0, -1.0):
            there = X + side * T[:, None] * M
            told &= (below.states(there, self.others) == states).all(axis=1)
        return _Places(X, M, T, F, slopes, slope, doubt, vague).take(told)

    def _across(self, G: FloatArray, turned: BoolArray) -> FloatArray:
        """Gradients without what has turned on or off, whose weights are not known."""
        W = self.below.W
        rows, lengths = np.arange(len(G)), np.linalg.norm(W, axis=1)
        unit, left, M = W / lengths[:, None], turned.copy(), G.copy()
        crossed: list[FloatArray] = []
        # Where more have turned than two, nothing is asked.
        for _ in range(2):
            is_one, one = np.asarray(left.any(axis=1)), left.argmax(axis=1)
            w = unit[one] * is_one[:, None]
            for q in crossed:
                w = w - (w * q).sum(axis=1)[:, None] * q
            w = w / np.maximum(np.linalg.norm(w, axis=1), TINY)[:, None]
            M -= (M * w).sum(axis=1)[:, None] * w
            crossed.append(w)
            left[rows, one] = False
        return M

    def _chosen(self, places: _Places) -> _Places:
        """Those that say most, each beside what the others say."""
        if not len(places):
            return places
        noise = np.hypot(self.below.sum_errors(places.X, self.theta), self.place)
        C, chosen, F = self.law.covariance, list[int](), places.F
        spread = self.law.errors_of(F) ** 2
        for _ in range(self.how.n_asked):
            told = np.log1p(spread / noise**2)
            told[chosen] = -np.inf
            best = int(told.argmax())
            if told[best] < self.how.tells:
                break
            chosen.append(best)
            v = C @ F[best]
            size = float(F[best] @ v + noise[best] ** 2)
            C -= np.outer(v, v) / size
            spread = np.maximum(spread - (F @ v) ** 2 / size, 0.0)
        return places.take(np.array(chosen, dtype=np.intp))


def open_directions(law: Gaussian, n_weights: int, least: float) -> FloatArray:
    """Directions of a row whose standard error is more than ``least``, shape (size, q).

    Of the weights they are orthonormal, and what is beside them moves along: neurons below that are
    on all along a surface have sums that are constant there, if they are many.
    """
    weights, beside = np.split(law.spread, [n_weights])
    V, s, Zt = np.linalg.svd(weights, full_matrices=False)
    is_open = s > least
    V, s, Z = V[:, is_open], s[is_open], Zt[is_open].T
    return np.asarray(np.vstack([V, (beside @ Z) / s]))
