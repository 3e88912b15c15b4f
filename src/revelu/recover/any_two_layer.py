"""Any two-layer network, whatever its weights (CKM21), as nearly as queries allow.

    f(x) = A relu(W x + b) + V x + c

The paper differences the gradients at the midpoints of equal intervals of a line
(Algorithm 3) and fits the coefficients by regression (Algorithm 4).  Here the grid of the
line adapts (the search for kinks), coefficients are the jumps of the gradient, and

1. kinks that no measurable piece parts are one neuron, the sum (Lemma 3.12);
2. at every hyperplane found the target is looked at through a magnifying glass: what is a
   cluster of (Δ, α)-close neurons comes apart there, as far as answers have digits;
3. points of N(0, I) are asked for what the network leaves unexplained: bumps, which no line
   shows between two of its points (Example 1.2), and neurons that lines have missed;
4. the affine part is fitted last, by regression, and nothing else: regression of all
   coefficients errs by 1e-2 on neurons that fire rarely;
5. neurons that the answers cannot tell apart are merged, the error of it measured.
"""

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network, add_networks, affine_network, l2_distance, l2_norm, simplify
from revelu.network.merging import close_groups, merge_close, turned, without
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.coarsening import coarsen
from revelu.probe.kinks import SIGMAS
from revelu.probe.line import Line
from revelu.probe.residual import Residual
from revelu.recover.magnified import magnify
from revelu.recover.peeling import Peeling, peel
from revelu.recover.signs import resolve_signs
from revelu.recover.two_layer import recover_rest, scan_line
from revelu.recovery import Recovery, Status
from revelu.types import BoolArray, FloatArray, IntArray

# Pieces of a line whose half-angle is under sqrt(nu) times this give no gradient worth
# having: the kinks between them are merged.
_NARROW = 400.0

# Neurons this close are looked at together, at least so far to their sides; a wider cluster
# is seen on an ordinary line.
_CLOSE = 2e-3
_VIEW = 5e-3

# Neighbours on a line whose kinks are this near, in angle, may be too near to be measured.
_NEIGHBOURS = 5e-4

# Smaller singular values than this share of the largest are rounding.
_RANK = 1e-10

# Points of a hyperplane that are looked at until its neurons are told apart; and how far
# apart changes of the gradient are that are the same, relative to their size.
_MAX_VIEWS = 3
_SAME_JUMP = 1e-3
_MOST_TAKEN = 4

# Changes across a cluster that differ by this share are one but for errors.
_SLIGHT = 1e-6
_ROUGH = 1e-2

# Candidates for a point of a hyperplane that is far from all others.
_CANDIDATES = 64

# Points asked for what is unexplained: so many a neuron at first; after a bump, until one
# like the smallest would have been met so many times; in all no more than so many times
# k (d + 2).
_POINTS_A_NEURON = 32
_EXPECTED_HITS = 8.0
_MOST_SEARCH = 60
_BATCH = 2_000

# A residual that vanishes further from a wrong point than this is no bump.
_WIDEST_BUMP = 0.3
_MOST_FAILURES = 12
_CLEAR = 4.0

# What is fainter than a hundredth of half the digits is the errors of what is known.
_FAINT = 0.01

# Lines tried where the target is saturated on one.
_MAX_LINES = 4

# The largest change that merging close neurons may make: a share of half the digits.
_MERGED = 1e-3

# An error is none of a missing neuron's unless it is so many times the median.
_TYPICAL = 30.0

# A first network that is wrong at more of so many points comes from a bad line: strips between
# close hyperplanes, and bumps, are met less often.
_TRIAL_POINTS = 64
_MOSTLY_RIGHT = 0.1
_HOPELESS = 0.5
_NOT_TWO = "networks of one hidden layer that explain a line are wrong elsewhere"

# Points of the regression, over its unknowns.
_OVERSAMPLING = 1.25


# Neurons that are looked at together, and the hyperplane to look at, ``n x + offset = 0``.
_Group = tuple[IntArray, FloatArray, float]


@dataclass
class AnyTwoLayer:
    """A two-layer network that grows until it explains what is asked.

    Attributes
    ----------
    oracle : Oracle
    noise : NoiseFloor
    rng : numpy.random.Generator
    line : Line
        The one that the first network was found on.
    network : Network
    n_searched : int
        Gaussian points that bumps were looked for with.
    """

    oracle: Oracle
    noise: NoiseFloor
    rng: np.random.Generator
    line: Line
    network: Network
    n_searched: int = 0
    rarest: float = field(default=np.inf, init=False)
    floor: float = field(default=0.0, init=False)
    failures: int = field(default=0, init=False)
    notes: list[str] = field(default_factory=list, init=False)
    out_of_budget: bool = field(default=False, init=False)

    def run(self, wrong: FloatArray | None = None) -> Recovery:
        """Resolve clusters, or explain the points given; then search, fit and merge.

        Parameters
        ----------
        wrong : ndarray, shape (n, d), optional
            Points where the network is known to be wrong.
        """
        try:
            if wrong is None:
                self._resolve_clusters()
            else:
                self._explain(wrong)
            self._search()
            self._fit_affine()
        except LimitReachedError as error:
            self.out_of_budget = True
            self.notes.append(str(error))
        return self._recovery()

    def share_wrong(self, n_points: int) -> float:
        """At which share of fresh points the network is wrong."""
        X = self.rng.standard_normal((n_points, self.oracle.dim_in))
        Y = self.oracle(X)
        self._note_errors(X, Y)
        return float(self._is_wrong(X, Y).mean())

    def repair(self, wrong: FloatArray) -> Recovery:
        """Go on where fresh points have found the network wrong, shape (n, d)."""
        return self.run(wrong)

    # Clusters

    def _resolve_clusters(self) -> None:
        """Look at every hyperplane found, close ones together (Lemma 3.21)."""
        todo = self._close_neurons(self._merge_runs())
        runs = self._runs(_CLOSE)
        before = self.network.weights[0]
        for rows, n, offset in todo:
            now = self._indices(before[rows])
            if not len(now):
                continue
            pool = self._indices(before[np.isin(runs, runs[rows])])
            for _ in range(_MAX_VIEWS):
                p, room = self._clear_point(n, offset, now)
                # Where the others of the group pass.
                W, b = self.network.weights[0][now], self.network.biases[0][now]
                along = np.abs(W @ n) > (1.0 - _CLOSE) * np.linalg.norm(W, axis=1)
                spread = np.abs(W @ p + b) / np.linalg.norm(W, axis=1) * along
                half_length = min(max(_VIEW, 4.0 * float(spread.max())), room / _CLEAR)
                if self._replace(now, p, n, half_length, room, pool):
                    break

    def _merge_runs(self) -> list[_Group]:
        """Make one of neighbours on the line, where any two of them are close.

        Of neurons that narrow pieces part only the sum is sure.  What it is put on is the
        sum's hyperplane; where they are looked for, that of the strongest.
        """
        runs = self._runs(_NEIGHBOURS)
        number = np.empty(len(runs), dtype=np.intp)
        for i, group in enumerate(close_groups(self.network, _CLOSE)):
            number[group] = i
        runs_to_merge = []
        for run in np.unique(runs):
            rows = np.flatnonzero(runs == run)
            if len(np.unique(number[rows])) < len(rows):
                runs_to_merge.append(rows)
        if not runs_to_merge:
            return []
        old = self.network
        gone = np.concatenate(runs_to_merge)
        self.network = without(turned(old, gone, self.line.v), gone)
        groups = []
        for rows in runs_to_merge:
            first = len(self.network.biases[0])
            total = _sum(old, rows, self.line.v)
            self.network = add_networks(self.network, total)
            added = np.arange(first, first + len(total.biases[0]))
            groups.append((added, *_hyperplane(old, rows)))
        return groups

    def _close_neurons(self, sums: list[_Group]) -> list[_Group]:
        """All neurons of the network, close ones together; sums stay on their hyperplanes."""
        summed = np.concatenate([np.empty(0, dtype=np.intp), *(rows for rows, _, _ in sums)])
        groups = list(sums)
        for rows in close_groups(self.network, _CLOSE):
            others = np.setdiff1d(rows, summed)
            with_ = [i for i, (own, _, _) in enumerate(sums) if np.isin(own, rows).any()]
            if with_:
                own, n, offset = groups[with_[0]]
                groups[with_[0]] = (np.concatenate([own, others]), n, offset)
            elif len(others):
                groups.append((others, *_hyperplane(self.network, others)))
        return groups

    def _runs(self, gap: float) -> IntArray:
        """A number for every neuron: the same where neighbouring kinks of the line are near."""
        W, b = self.network.weights[0], self.network.biases[0]
        theta = np.arctan2(-(W @ self.line.x0 + b), W @ self.line.v)
        theta = (theta + np.pi / 2) % np.pi
        order = np.argsort(theta)
        runs = np.empty(len(b), dtype=np.intp)
        runs[order] = np.concatenate([[0], np.cumsum(np.diff(theta[order]) > gap)])[: len(b)]
        return runs

    def _indices(self, rows: FloatArray) -> IntArray:
        """Where rows of an earlier network are now; none where they were replaced."""
        same = np.abs(self.network.weights[0][:, None]) == np.abs(rows[None])
        return np.flatnonzero(same.all(axis=2).any(axis=1))

    def _clear_point(self, n: FloatArray, offset: float, own: IntArray) -> tuple[FloatArray, float]:
        """A point of the hyperplane ``n x + offset = 0``, and its distance from all others."""
        X = self.rng.standard_normal((_CANDIDATES, len(n)))
        X -= np.outer(X @ n + offset, n)
        others = np.delete(np.arange(len(self.network.biases[0])), own)
        W, b = self.network.weights[0][others], self.network.biases[0][others]
        if not len(W):
            return X[0], 1.0
        apart = np.abs(X @ W.T + b) / np.linalg.norm(W, axis=1)
        best = int(np.argmax(apart.min(axis=1)))
        return X[best], float(apart[best].min())

    def _replace(
        self,
        rows: IntArray,
        p: FloatArray,
        n: FloatArray,
        half_length: float,
        room: float,
        pool: IntArray,
    ) -> bool:
        """Put what the magnifying glass shows around ``p`` in the place of some neurons.

        ``pool`` are neurons whose place may have been taken too.  Returns whether the network
        has got better at ``p`` and beside it.
        """
        others = without(turned(self.network, rows, n), rows)
        target = Residual(self.oracle, others)
        view = magnify(target, self.noise, p, n, half_length, room, self.rng)
        if view is not None and view.is_one_neuron and len(rows) == 1:
            return True
        found = None if view is None else view.neurons(self.rng)
        if found is None:
            return False
        off = _change_across(found, n) - _change_across(self.network, n, rows)
        if float(np.linalg.norm(off)) > _SLIGHT * _size(found):
            more = self._miscounted(off, n, np.setdiff1d(pool, rows))
            if more is not None:
                rows = np.concatenate([rows, more])
                return self._replace(rows, p, n, half_length, room, rows)
            if len(off) == 1 or float(np.linalg.norm(off)) > _ROUGH * _size(found):
                return False
            # Of several outputs a merged kink keeps one direction: what is found is better.
            off = np.zeros_like(off)
        new = add_networks(others, _shifted(found, off))
        new = simplify(new)
        T = half_length * np.concatenate([[-1.0, 1.0], self.rng.uniform(-1, 1, 3)])
        X = p + np.outer(T, n)
        Y = self.oracle(X)
        now, before = (np.abs(network(X) - Y).max() for network in (new, self.network))
        if now > max(before, self._limit(X).max()):
            return False
        self.network = new
        return True

    def _miscounted(self, off: FloatArray, n: FloatArray, pool: IntArray) -> IntArray | None:
        """Other neurons whose place was taken too, if their change across all makes up for it.

        Close neurons that cancel may have been merged into some on hyperplanes that are
        none of theirs.
        """
        jumps = [_change_across(self.network, n, pool[[j]]) for j in range(len(pool))]
        for count in range(1, min(len(pool), _MOST_TAKEN) + 1):
            for chosen in combinations(range(len(pool)), count):
                left = off - sum(jumps[j] for j in chosen)
                if np.linalg.norm(left) < _SAME_JUMP * np.linalg.norm(off):
                    return pool[list(chosen)]
        return None

    # Bumps

    def _search(self) -> None:
        """Ask points of N(0, I) until nothing as rare as what was found can be left."""
        while self.failures < _MOST_FAILURES:
            d, m = self.oracle.dim_in, max(len(self.network.biases[0]), 1)
            wanted = _POINTS_A_NEURON * m
            if np.isfinite(self.rarest):
                wanted = max(wanted, int(_EXPECTED_HITS / self.rarest))
            wanted = min(wanted, _MOST_SEARCH * m * (d + 2))
            n = min(wanted - self.n_searched, _BATCH)
            if n <= 0:
                return
            X = self.rng.standard_normal((n, d))
            Y = self.oracle(X)
            self.n_searched += n
            self._note_errors(X, Y)
            self._explain(X[self._is_wrong(X, Y)])

    def _explain(self, X: FloatArray) -> None:
        """Explain wrong points one after another."""
        left = X
        while len(left) and self.failures < _MOST_FAILURES:
            x, left = left[0], left[1:]
            if not self._is_wrong(x[None], self.oracle(x[None])).any():
                continue
            if not self._explain_one(x):
                self.failures += 1

    def _explain_one(self, x: FloatArray) -> bool:
        """Add the bump at a point, or the neurons on a line through it."""
        residual = Residual(self.oracle, self.network)
        r = residual(x[None])[0]
        u = r / np.linalg.norm(r)
        gradient = self._gradient(residual, x, u, float(np.linalg.norm(r)))
        steepness = float(np.linalg.norm(gradient))
        if steepness > 0:
            n, reach = gradient / steepness, float(np.linalg.norm(r)) / steepness
            while reach < _WIDEST_BUMP:
                if self._vanishes_beyond(residual, x, n, 3.0 * reach):
                    return self._add_bump(x, n, 3.0 * reach)
                reach *= 3.0
        before = self.network
        self.network, _ = recover_rest(self.oracle, self.network, self.noise, self.rng, x)
        if self._is_wrong(x[None], self.oracle(x[None])).any():
            self.network = before
            return False
        return True

    def _add_bump(self, x: FloatArray, n: FloatArray, half_length: float) -> bool:
        """Resolve what bends around a wrong point, known neurons there included."""
        W, b = self.network.weights[0], self.network.biases[0]
        norms = np.linalg.norm(W, axis=1)
        cosines, apart = W @ n / norms, np.abs(W @ x + b) / norms
        near = (np.abs(cosines) > 1.0 - _CLOSE) & (apart < half_length)
        others = apart[~near] / np.sqrt(np.maximum(1.0 - cosines[~near] ** 2, _CLOSE))
        room = float(others.min(initial=1.0))
        if room < _CLEAR * half_length:
            return True  # another hyperplane crosses here: the bump will be met elsewhere
        rows = np.flatnonzero(near)
        done = self._replace(rows, x, n, half_length, room, rows)
        if done:
            # A fresh point meets it with about this probability.
            density = float(np.exp(-((x @ n) ** 2) / 2) / np.sqrt(2.0 * np.pi))
            self.rarest = min(self.rarest, max(density * half_length / 2, 1e-12))
        return done

    def _gradient(
        self, residual: Residual, x: FloatArray, u: FloatArray, size: float
    ) -> FloatArray:
        """The gradient of ``u (F - f)`` at a wrong point, by steps that stay in its piece."""
        W, A = self.network.weights
        steepest = float((np.linalg.norm(W, axis=1) * np.linalg.norm(A, axis=0)).max(initial=0.0))
        steepest = steepest or float(np.linalg.norm(self.noise.scale))
        h = 1e-3 * min(size / steepest, 1.0)
        Q = np.linalg.qr(self.rng.standard_normal((len(x), len(x))))[0]
        Y = residual(np.vstack([x, x + h * Q])) @ u
        return np.asarray((Y[1:] - Y[0]) / h @ Q)

    def _vanishes_beyond(
        self, residual: Residual, x: FloatArray, n: FloatArray, distance: float
    ) -> bool:
        X = x + np.outer(distance * np.array([-1.0, -0.8, 0.8, 1.0]), n)
        return bool((np.abs(residual(X)) <= self._limit(X)).all())

    # The rest

    def _limit(self, X: FloatArray) -> FloatArray:
        growth = np.sqrt(1.0 + (X**2).mean(axis=1))[:, None]
        nu = max(_FAINT * self.noise.half_digits, float(self.noise.nu.max()))
        return np.asarray(np.maximum(SIGMAS * nu * self.noise.scale, self.floor) * growth)

    def _note_errors(self, X: FloatArray, Y: FloatArray) -> None:
        """What is typical of the network as it is, no missing neuron explains."""
        seen = np.isfinite(Y).all(axis=1)
        apart = np.abs(self.network(X[seen]) - Y[seen]).max(axis=1)
        most = self.noise.half_digits * float(self.noise.scale.max())
        self.floor = min(_TYPICAL * float(np.median(apart)), most) if len(apart) else 0.0

    def _is_wrong(self, X: FloatArray, Y: FloatArray) -> BoolArray:
        seen = np.isfinite(Y)  # a saturated target says nothing
        return np.asarray(
            (np.abs(self.network(X) - np.where(seen, Y, np.inf)) > self._limit(X)).any(axis=1)
            & seen.all(axis=1)
        )

    def _fit_affine(self) -> None:
        """Regress what is left on ``V x + c`` (Algorithm 4, of its affine part alone)."""
        d = self.oracle.dim_in
        n = int(_OVERSAMPLING * (d + 1)) + 8
        X = self.rng.standard_normal((n, d))
        rest = self.oracle(X) - self.network(X)
        size = np.abs(rest).max(axis=1)
        kept = size <= _TYPICAL * float(np.median(size))  # not those in strips, or at bumps
        spare = int(kept.sum()) - (d + 1)
        if spare < 1:
            return
        Z = np.column_stack([X, np.ones(n)])
        solution = np.linalg.lstsq(Z[kept], rest[kept], rcond=None)[0]
        left = np.linalg.norm(rest[kept] - Z[kept] @ solution) * np.sqrt(kept.sum() / spare)
        if left < np.linalg.norm(rest[kept]) / 2:
            V, c = np.asarray(solution[:d].T), np.asarray(solution[d])
            self.network = add_networks(self.network, affine_network(V, c))

    def _recovery(self) -> Recovery:
        atol = _MERGED * self.noise.half_digits * l2_norm(self.network)
        self.network, merges = merge_close(self.network, _CLOSE, atol)
        network, notes = resolve_signs(self.network, self.noise.half_digits)
        if l2_distance(network, self.network) > atol:
            # Close neurons turned round make up for each other, nearly.
            network, notes = self.network, ["the affine skip is kept; the function is the same"]
        status = Status.BUDGET_EXHAUSTED if self.out_of_budget else Status.UNVERIFIED
        notes = [*self.notes, *notes]
        if merges:
            notes.append(
                f"{sum(m.n_neurons for m in merges)} neurons were merged into {len(merges)}, each "
                f"with a change of {max(m.error for m in merges):.1e} in L2 at most"
            )
        return Recovery(
            status,
            network,
            self.oracle.ledger(),
            evidence=tuple(notes),
            method="any_two_layer",
            details={"searched": self.n_searched, "merges": len(merges)},
        )


def _change_across(network: Network, n: FloatArray, rows: IntArray | None = None) -> FloatArray:
    """By how much some neurons change the affine map in the direction ``n``, (k, d + 1).

    Outside of the strips between hyperplanes this is all that they do, and a coarse network
    has it right already.
    """
    (W, A), b = network.weights, network.biases[0]
    rows = np.arange(len(W)) if rows is None else rows
    signs = np.where(W[rows] @ n < 0, -1.0, 1.0)
    return np.asarray((A[:, rows] * signs) @ np.column_stack([W, b])[rows])


def _hyperplane(network: Network, rows: IntArray) -> tuple[FloatArray, float]:
    """The unit normal and the offset of the strongest of some neurons."""
    (W, A), b = network.weights, network.biases[0]
    strength = np.linalg.norm(W[rows], axis=1) * np.linalg.norm(A[:, rows], axis=0)
    j = rows[int(np.argmax(strength))]
    size = float(np.linalg.norm(W[j]))
    return W[j] / size, float(b[j]) / size


def _sum(network: Network, rows: IntArray, n: FloatArray) -> Network:
    """Neurons that change the affine map in the direction ``n`` as some do together.

    One neuron, where there is one output; else the change has more directions, whose
    hyperplanes mean nothing but whose sum is right on both sides.
    """
    U, sizes, Vt = np.linalg.svd(_change_across(network, n, rows), full_matrices=False)
    kept = sizes > _RANK * sizes[0]
    W = Vt[kept] * np.where(Vt[kept, :-1] @ n < 0, -1.0, 1.0)[:, None]
    A = U[:, kept] * sizes[kept] * np.where(Vt[kept, :-1] @ n < 0, -1.0, 1.0)
    return Network([W[:, :-1], A], [W[:, -1], np.zeros(len(A))])


def _size(network: Network) -> float:
    """How strong the strongest neuron is."""
    (W, A), b = network.weights, network.biases[0]
    norms = np.hypot(np.linalg.norm(W, axis=1), b) * np.linalg.norm(A, axis=0)
    return float(norms.max(initial=0.0))


def _shifted(found: Network, off: FloatArray) -> Network:
    """Move rows by the least that takes ``off`` from their change."""
    (W, A), (b, c) = found.weights, found.biases
    rows = np.column_stack([W, b])
    if not len(rows):
        return found
    rows = rows - np.linalg.pinv(A) @ off
    return Network([rows[:, :-1], A], [rows[:, -1], c])


def recover_any_two_layer(
    oracle: Oracle,
    noise: NoiseFloor,
    seed: int | np.random.SeedSequence,
    peeled: Peeling | None = None,
) -> tuple[Recovery, AnyTwoLayer | None]:
    """Recover a two-layer network about whose weights nothing is assumed.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
        Every tolerance comes from it.
    seed : int or SeedSequence
    peeled : Peeling, optional
        The kinks of a line, where they have been paid for.

    Returns
    -------
    recovery : Recovery
        ``UNVERIFIED`` with a network; ``NOT_IN_CLASS`` where a line has no affine pieces;
        ``BUDGET_EXHAUSTED`` with what was found.
    search : AnyTwoLayer or None
        Goes on where the network turns out to be wrong.

    Notes
    -----
    Source: CKM21, Algorithms 1 to 4, Lemmas 3.12 and 3.21, Theorem 4.8.
    """
    rng = np.random.default_rng(seed)
    best: tuple[float, AnyTwoLayer] | None = None
    for i in range(_MAX_LINES):
        try:
            peeled = _coarse(oracle, noise, rng, peeled)
            if not peeled.scan.complete:
                return _ended(oracle, Status.NOT_IN_CLASS, peeled.scan.message), None
            search = AnyTwoLayer(oracle, noise, rng, peeled.scan.line, peeled.network)
            share = search.share_wrong(_TRIAL_POINTS)
        except LimitReachedError as error:
            if best is None:
                return _ended(oracle, Status.BUDGET_EXHAUSTED, str(error)), None
            break
        except SaturatedError as error:
            if best is None:
                return _ended(oracle, Status.UNVERIFIED, str(error)), None
            break
        if best is None or share < best[0]:
            best = share, search
        if share <= _MOSTLY_RIGHT or (i and share > _HOPELESS):
            break
        peeled = None
    assert best is not None  # noqa: S101 - the loop has returned otherwise
    share, search = best
    if share > _HOPELESS:
        return _ended(oracle, Status.UNVERIFIED, _NOT_TWO), None
    return search.run(), search


def _coarse(
    oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, peeled: Peeling | None
) -> Peeling:
    """One line, of which kinks that no measurable piece parts are one neuron.

    The function is right but for the strips between those kinks (Theorem 4.8).
    """
    nu = float(noise.nu.max())
    for i in range(_MAX_LINES):
        try:
            scan = scan_line(oracle, noise, rng) if peeled is None else peeled.scan
            if not scan.complete:
                return Peeling(_no_map(oracle), scan.kinks, scan)
            if peeled is not None and not peeled.n_unresolved:
                return peeled
            faint = _FAINT * noise.half_digits * float(np.linalg.norm(noise.scale))
            scan = coarsen(oracle, scan, _NARROW * float(np.sqrt(nu)), faint)
            return peel(oracle, scan, nu, rng)
        except SaturatedError:
            peeled = None
            if i == _MAX_LINES - 1:
                raise
    raise AssertionError  # pragma: no cover - the last turn returns or raises


def _no_map(oracle: Oracle) -> Network:
    return affine_network(np.zeros((oracle.dim_out, oracle.dim_in)), np.zeros(oracle.dim_out))


def _ended(oracle: Oracle, status: Status, reason: str) -> Recovery:
    return Recovery(status, None, oracle.ledger(), evidence=(reason,), method="any_two_layer")
