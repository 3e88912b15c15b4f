"""Two layers where questions must stay in a box (DG21, Theorem 2 and section 3.4.1).

    f(x) = A relu(W x + b) + V x + c    for every x in the box

The paper searches the rays along the axes of the positive orthant.  Here, in any box,
the affine map at one point of it, the *base point*, comes first; every neuron is oriented so
that it is off there.  Then a point of the box at which the neurons found so far give a wrong
answer lies beyond the hyperplane of a missing one, and the segment from the base point to
that point crosses it.  A neuron whose hyperplane misses the box is affine in it, and no
neuron of the answer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.errors import SaturatedError
from revelu.network import Network, affine_network
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.float64 import TINY
from revelu.oracle import NoiseFloor
from revelu.probe.box import Box, Confined, inward_jacobian, segment
from revelu.probe.hyperplane import are_as_strong, kink_strengths
from revelu.probe.kinks import find_kinks
from revelu.probe.line import Askable
from revelu.probe.residual import Residual
from revelu.probe.scan import LineScan
from revelu.recover.shallow.blocks import Costs, choose_blocks
from revelu.recover.shallow.lines import with_more
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class SegmentNeurons:
    """How the neurons that a segment shows are measured."""

    box: Box
    base: FloatArray
    """Shape (d,).  A point where all of them are to be off."""
    error: FloatArray
    """Shape (k,).  Standard error of an answer."""
    rng: np.random.Generator
    jump_rtol: float = 1e-4
    """A jump along a segment is the change of the Jacobians to this share of its size."""
    inside: float = 0.1
    """How far inside a piece its slope is measured, as a share of it."""

    def find(self, residual: Residual, scan: LineScan) -> Network | None:
        """Find the neurons of a scan's single kinks (DG21, Algorithms 3 and 4), off at the base."""
        scan = self._measured_again(residual, scan)
        sizes = np.linalg.norm(scan.jumps, axis=1)
        columns = scan.jumps / np.where(sizes > 0.0, sizes, 1.0)[:, None]
        first, blocks = choose_blocks(
            columns, scan.half_gaps(*scan.interval), scan.is_single, 0.0, Costs(independent=0.3)
        )
        with residual.round():
            jacobians = {
                p: self._jacobian(residual, scan, p) for p in (first, *(b.stop for b in blocks))
            }
        W, b, A = [], [], []
        for block in blocks:
            left, right = jacobians[block.start], jacobians[block.stop]
            if not block.is_solvable or left is None or right is None:
                continue
            rows = np.linalg.pinv(columns[block.start : block.stop].T) @ (right - left)
            for i, w in enumerate(rows, start=block.start):
                offset = -float(w @ scan.line.points(scan.kinks[[i]])[0])
                off_by = np.linalg.norm(columns[i] * (w @ scan.line.v) - scan.jumps[i])
                if off_by > self.jump_rtol * sizes[i]:
                    continue
                off = -1.0 if w @ self.base + offset > 0 else 1.0
                W.append(off * w)
                b.append(off * offset)
                A.append(columns[i])
        if not W:
            return None
        return Network([np.array(W), np.array(A).T], [np.array(b), np.zeros(len(self.error))])

    def _measured_again(self, residual: Residual, scan: LineScan) -> LineScan:
        """The scan with its kinks and jumps from two answers near the ends of every piece.

        A jump is a neuron's output column, whose error enters the rows of all neurons between two
        Jacobians; the search stops at what tells a kink.
        """
        edges = np.array([scan.interval[0], *scan.kinks, scan.interval[1]])
        inside = self.inside * np.diff(edges)
        t = np.stack([edges[:-1] + inside, edges[1:] - inside])
        Y = residual(scan.line.points(t.ravel())).reshape(2, len(edges) - 1, -1)
        before, after = t[1, :-1], t[0, 1:]
        # Infinite where the target is saturated.
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = (Y[1] - Y[0]) / (t[1] - t[0])[:, None]
            jumps = np.diff(slopes, axis=0)
            # To the next piece the answer rises by slope (t' - t) + jump (t' - kink).
            rise = Y[0, 1:] - Y[1, :-1] - slopes[:-1] * (after - before)[:, None]
            kinks = after - (rise * jumps).sum(axis=1) / (jumps**2).sum(axis=1)
        if not ((kinks > before) & (kinks < after)).all():
            return scan
        return replace(scan, kinks=kinks, jumps=jumps)

    def _jacobian(self, residual: Residual, scan: LineScan, p: int) -> FloatArray | None:
        """Derivatives of the residual on a piece; none are asked where it vanishes."""
        piece = scan.pieces[p]
        if (np.abs(np.array(piece.gs)) <= SIGMAS * scan.sigma).all() and len(piece.ts) > 1:
            return np.zeros((len(scan.sigma), residual.dim_in))
        edges, half_gaps = scan.edges(*scan.interval), scan.half_gaps(*scan.interval)
        t = float(np.tan((edges[p] + edges[p + 1]) / 2))
        room = min(float(half_gaps[p]), float(np.median(half_gaps)))
        x = self.box.clip(scan.line.points(np.array([t]))[0])
        h = scan.line.step_beside(t, room)
        error = self.error * np.sqrt(1.0 + t * t)
        return inward_jacobian(residual, x, h, self.box, error, self.rng)


@dataclass
class RestrictedSearch:
    """A network that grows until it explains what is asked."""

    target: Askable
    """Asked in the box only."""
    box: Box
    noise: NoiseFloor
    """Of the target's answers; its ``scale`` is their size in the box."""
    rng: np.random.Generator
    base: FloatArray
    """Shape (d,).  The base point."""
    network: Network = field(init=False)
    """Two layers with a skip; exact where only its own neurons bend the target."""
    X: FloatArray = field(init=False)
    Y: FloatArray = field(init=False)
    """Shape (n, d) and (n, k).  Points that the network is held against."""
    message: str = ""
    n_straight: int = 0
    n_bent: int = 0
    """Hyperplanes of new neurons that were found again elsewhere in the box, and those that were
    not: the latter are a deeper network's."""
    first_step: float = 0.1
    """Of the derivatives at the base point, relative to its largest coordinate."""
    side: float = 1e-5
    """A new hyperplane is looked for at another place, this far to its sides relative to the
    segment that leads there."""
    min_bent: int = 4
    """Fewer hyperplanes that end say nothing of the target's depth."""
    n_points: int = 30
    """Points in a row that must be right: what bends the function at fewer than one point in ten
    (0.9^30 < 0.05) is left to the certificate, whose points cost no recovery."""
    max_tries: int = 3
    """Segments to one wrong point before it is left to others."""
    unusual: float = 100.0
    """A point is wrong if the network is off there by ``unusual`` times what it is off at half of
    the points: where many neurons are known roughly, errors add up."""
    rough: float = 0.0
    """Errors up to this, relative to the answers, that no segment explains are left to a fit of
    what was found; 0 where there is none."""
    few: float = 0.25
    """The share of points that may be wrong beyond that where a fit helps."""
    patience: int = 3
    """Segments in a row that show nothing, after which such points are left to it."""
    is_fitted: bool = False
    """Whether it was made: all such points are left to it."""

    def __post_init__(self) -> None:
        self.target = Confined(self.target, self.box)
        d, k = self.target.dim_in, len(self.noise.scale)
        self.X, self.Y = np.empty((0, d)), np.empty((0, k))
        self.tries: list[int] = []
        answer = self.target(self.base[None])[0]
        size = self.first_step * float(np.abs(self.base).max())
        J = inward_jacobian(self.target, self.base, size, self.box, self._error, self.rng)
        if J is None:
            raise SaturatedError("no affine piece was found around a point of the box")
        self.network = affine_network(J, answer - J @ self.base)

    @property
    def _error(self) -> FloatArray:
        return np.asarray(self.noise.nu * self.noise.scale)

    @property
    def _nu(self) -> float:
        """What counts as noise of a residual: the known part errs by more than answers do."""
        return max(self.noise.faint, float(self.noise.nu.max()))

    @property
    def bends(self) -> bool:
        """Whether most of the hyperplanes found are no two-layer network's."""
        return self.n_bent >= self.min_bent and self.n_bent > self.n_straight

    def hold_against(self, X: FloatArray, Y: FloatArray) -> None:
        """Add points of the box, and the answers there, that the network must explain."""
        self.X, self.Y = np.vstack([self.X, X]), np.vstack([self.Y, Y])
        self.tries += [0] * len(X)

    def apart(self) -> FloatArray:
        """How far off the network is at each point asked, shape (n, k)."""
        return np.abs(self.network(self.X) - self.Y)

    def errors(self) -> FloatArray:
        """The same relative to the size of the answers, the worst of all outputs, shape (n,)."""
        worst = (self.apart() / self.noise.unit).max(axis=1, initial=0.0)
        return np.asarray(worst / self._growth(self.X))

    def wrong(self) -> BoolArray:
        """Which of the points asked the network does not explain, shape (n,)."""
        return self._are_wrong(self.errors())

    def roughly_wrong(self) -> BoolArray:
        """Which of them no fit would explain, either."""
        errors = self.errors()
        return self._are_wrong(errors) & (errors > self.rough)

    def _are_wrong(self, errors: FloatArray) -> BoolArray:
        least = SIGMAS * self._nu
        usual = self.unusual * float(np.median(errors)) if len(errors) else 0.0
        return np.asarray(errors > max(least, min(usual, self.rough)))

    @property
    def is_blurred(self) -> bool:
        """Whether neurons are off by more than what hides the kinks of those that are missing.

        A fit helps where most points show no such neuron.
        """
        errors = self.errors()
        few = bool((errors > self.rough).mean() <= self.few)
        return few and float(np.median(errors)) > SIGMAS * self._nu

    def explain(self, *, blurred: bool = True) -> bool:
        """Follow segments to wrong points until none is left; whether that was reached.

        Parameters
        ----------
        blurred : bool
            Whether to go on where a fit would help.
        """
        in_vain = 0
        while True:
            errors = self.errors()
            wrong, tries = self._are_wrong(errors), np.array(self.tries, dtype=int)
            left = np.flatnonzero(wrong & (tries < self.max_tries))
            plain = left[errors[left] > self.rough]
            is_left_to_fit = self.is_fitted or in_vain >= self.patience
            if not len(left) or self.bends or (is_left_to_fit and not len(plain)):
                return not (wrong & (errors > self.rough)).any()
            if not blurred and self.is_blurred:
                return False
            left = plain if len(plain) else left
            i = left[np.argmin(tries[left])]
            self.tries[i] += 1
            start = self.base
            if self.tries[i] > 1 and not wrong.all():
                # Kinks too near each other on one segment are apart on another.
                start = self.X[self.rng.choice(np.flatnonzero(~wrong))]
            in_vain = 0 if self.follow(start, self.X[i]) else in_vain + 1

    def explain_all(
        self, draw: Callable[[int], tuple[FloatArray, FloatArray]], *, blurred: bool = True
    ) -> bool:
        """Grow until fresh points find nothing wrong.

        Parameters
        ----------
        draw : callable, n -> (n, d), (n, k)
            Fresh points of the box, and the answers there.
        blurred : bool
            Whether to go on where a fit would help.

        Returns
        -------
        bool
            Whether every point asked is explained.
        """
        self.hold_against(*draw(self.n_points))
        while self.explain(blurred=blurred):
            self.hold_against(*draw(self.n_points))
            if not self.roughly_wrong().any():
                return True
        return False

    def follow(self, start: FloatArray, end: FloatArray) -> int:
        """Add the neurons that a segment shows; return how many."""
        line, interval = segment(start, end)
        if not np.linalg.norm(line.v):
            return 0
        residual = Residual(self.target, self.network)
        try:
            scan = find_kinks(residual, line, self._nu, self.noise.scale, self.rng, interval)
            scan = scan.without_faint_kinks(self.noise.faint * self._slope(line.v))
            if not scan.complete:
                self.message = scan.message
                return 0
            found = SegmentNeurons(self.box, self.base, self._error, self.rng).find(residual, scan)
        except SaturatedError as error:
            self.message = str(error)
            return 0
        if found is None:
            return 0
        found = found.take(self._are_elsewhere(found))
        self.network = with_more(self.network, found, self.noise)
        return len(found.weights[0])

    def _are_elsewhere(self, found: Network) -> BoolArray:
        """Which new hyperplanes bend the target at another place, too, by 3 queries each.

        Where the segment from the base point to a point beyond a hyperplane crosses it.  One that
        does not is a deeper neuron's, or was measured where another kink is near.
        """
        (W, A), b = found.weights, found.biases[0]
        at_base = W @ self.base + b
        beyond = self.X @ W.T + b > 0
        rows = [j for j in range(len(W)) if beyond[:, j].any() and at_base[j] < 0]
        are_elsewhere = np.ones(len(W), dtype=bool)
        if not rows:
            return are_elsewhere
        ends = np.array([self.X[self.rng.choice(np.flatnonzero(beyond[:, j]))] for j in rows])
        arms = ends - self.base
        rates = (W[rows] * arms).sum(axis=1)
        X = self.box.clip(self.base - (at_base[rows] / rates)[:, None] * arms)
        lengths = np.linalg.norm(arms, axis=1)
        step = np.minimum(self.side * lengths, 0.5 * np.linalg.norm(ends - X, axis=1))
        seen = kink_strengths(self.target, X, arms / lengths[:, None], step)
        wanted = A[:, rows].T * (rates / lengths)[:, None]
        are_elsewhere[rows] = are_as_strong(seen, wanted, self._error, step, self._growth(X))
        n_straight = int(are_elsewhere[rows].sum())
        self.n_bent += len(rows) - n_straight
        self.n_straight += n_straight
        return are_elsewhere

    def _growth(self, X: FloatArray) -> FloatArray:
        """How much larger than at the base point the terms of an answer are, shape (n,)."""
        at_base = max(float((self.base**2).mean()), TINY)
        return np.asarray(np.sqrt(1.0 + (X**2).mean(axis=1) / at_base))

    def _slope(self, v: FloatArray) -> float:
        """The slope along ``v`` of a function as large as the answers."""
        scale = float(np.linalg.norm(self.noise.scale))
        return scale * float(np.linalg.norm(v)) / max(float(np.linalg.norm(self.base)), TINY)
