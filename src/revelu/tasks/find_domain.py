"""Where a target bends that does not near N(0, I): its domain, found by some hundred queries.

Far out a network of ReLU layers is a cone: but for its biases, each of its affine pieces takes the
same value at the place that the kinks lie around.  That place solves linear equations, one for
each piece and output; how much the gradients of the pieces differ says how far each input has to
move to change as much as others.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.errors import LimitReachedError, TargetError
from revelu.oracle import Domain, NoiseFloor, Oracle
from revelu.recover.method import Tell
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class DomainSearch:
    """How a domain is looked for.

    Attributes
    ----------
    hides : float
        Only where the answers vary by less than this share of their size may all bends be far.
    n_near : int
        Lines near N(0, I) on which every target is affine that is moved away from there.
    n_lines : int
        Long lines.
    decades : (float, float)
        Least and largest power of ten that they reach to.
    a_decade : int
        Points on them.
    step : float
        Between the points that a gradient is taken from, as a share of how far out they lie.
    spare : tuple of float
        Pieces for each that the equations need, in one round after another; before them, two tell
        how far to move each input.
    most_pieces : int
        With fewer than the equations need, the place is the nearest one that solves them.
    within : float
        Share of all bends, as large as they are, that lie within one standard deviation.
    """

    hides: float = 0.1
    n_near: int = 4
    n_lines: int = 4
    decades: tuple[float, float] = (-1.0, 8.0)
    a_decade: int = 2
    step: float = 1e-3
    spare: tuple[float, ...] = (1.2, 2.0)
    most_pieces: int = 64
    within: float = 0.95

    def bends_near(self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator) -> bool:
        """Whether the target is seen to bend near N(0, I), or likely to.

        Raises
        ------
        LimitReachedError
            If the budget does not allow it.
        """
        varies = noise.varies(noise.spread)
        if (noise.spread > self.hides * noise.scale)[varies].any():
            return True
        t = np.linspace(-2.0, 2.0, 5)
        x0, v = rng.standard_normal((2, self.n_near, 1, oracle.dim_in))
        with oracle.phase("noise"):
            Y = oracle((x0 + t[:, None] * v).reshape(-1, oracle.dim_in))
        Y = Y.reshape(self.n_near, len(t), -1)
        # The error of second differences; the terms of an answer are larger along the line.
        allowed = 16.0 * np.sqrt(6.0) * noise.errors
        if not np.isfinite(Y).all():
            return True
        return bool((np.abs(np.diff(Y, 2, axis=1)) > allowed).any())

    def elsewhere(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, tell: Tell
    ) -> Domain | None:
        """Look for the domain of a target that is seen to have no bend near N(0, I).

        A few queries tell of most that have some there.
        """
        if oracle.domain is not None or oracle.box is not None or not noise.is_deterministic:
            return None
        if noise.grid is not None:
            # On a grid of few digits slight bends and none look alike.
            return None
        try:
            near = self.bends_near(oracle, noise, rng)
        except (LimitReachedError, TargetError):
            return None
        return None if near else self.find(oracle, noise, rng, tell)

    def find(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, tell: Tell
    ) -> Domain | None:
        """Look for the domain of a target without one; None where it bends nowhere.

        Parameters
        ----------
        oracle : Oracle
            Queries are booked under ``noise``.
        """
        tell("looking for the place where the target bends")
        try:
            with oracle.phase("noise"):
                return self._found(oracle, noise, rng)
        # Far out a target may refuse to answer; then nothing is known of it there.
        except (LimitReachedError, TargetError):
            return None

    def _found(self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator) -> Domain | None:
        d = oracle.dim_in
        center, spread = np.zeros(d), np.ones(d)
        seen = self._bends(oracle, noise, rng, Domain(center, spread))
        if seen is None:
            return None
        # Beyond all bends, where directions decide; rounding grows with the distance.
        reach = seen[0].max() * float(noise.nu.max()) ** (-1.0 / 3.0)
        first = self._pieces(oracle, rng, Domain(center, spread), reach, 2)
        if not len(first.gradients):
            return None
        spread = spread * _unit_moves(first.gradients, noise.half_digits)
        k = first.gradients.shape[2]
        for spare in self.spare:
            n = min(int(np.ceil(spare * (d + k) / k)) + 2, self.most_pieces)
            pieces = self._pieces(oracle, rng, Domain(center, spread), reach, n)
            if len(pieces.gradients) < 2:
                return None
            center = center + spread * _meeting_point(pieces)
            apart = pieces.gradients - pieces.gradients.mean(axis=0)
            spread = spread * _unit_moves(apart, noise.half_digits)
        seen = self._bends(oracle, noise, rng, Domain(center, spread))
        if seen is None:
            return None
        scale, least = _quantile(*seen, self.within), _least_scale(center, spread, noise)
        if _quantile(*seen, 0.5) <= 2.0 * least:
            # All bends meet: a cone has no scale of its own, and takes one that keeps digits.
            scale = least / noise.half_digits**0.5
        return _named(Domain.gaussian(center, spread * scale))

    def _bends(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, around: Domain
    ) -> tuple[FloatArray, FloatArray] | None:
        """How far out long lines bend, and by how much; None where they do not."""
        d = oracle.dim_in
        low, high = self.decades
        least = _least_scale(around.center, around.spread, noise)
        low = low if least == 0 else min(low, float(np.log10(least)))
        r = 10.0 ** np.arange(low, high + 0.5 / self.a_decade, 1.0 / self.a_decade)
        t = np.concatenate([-r[::-1], [0.0], r])
        V = rng.standard_normal((self.n_lines, 1, d))
        Y = oracle(around.to_target((t[:, None] * V).reshape(-1, d)))
        Y = Y.reshape(self.n_lines, len(t), -1)
        # Where probabilities are saturated nothing is seen.
        Y = np.where(np.isfinite(Y), Y, np.nan)
        slopes = np.diff(Y, axis=1) / np.diff(t)[:, None]
        # The value in the middle, as the neighbours have it, against the digits of all three.
        size = np.maximum(np.abs(Y[:, :-2]), np.maximum(np.abs(Y[:, 1:-1]), np.abs(Y[:, 2:])))
        bend = np.abs(np.diff(slopes, axis=1))
        short = np.minimum(np.diff(t)[1:], np.diff(t)[:-1])[:, None]
        is_bend = bend * short > noise.half_digits * size
        if not is_bend.any():
            return None
        far = np.broadcast_to(np.abs(t[1:-1])[:, None], bend.shape)
        unit = np.where(is_bend, bend, 0.0).max(axis=(0, 1))
        weight = bend / np.where(unit > 0, unit, 1.0)
        return far[is_bend], weight[is_bend]

    def _pieces(
        self, oracle: Oracle, rng: np.random.Generator, around: Domain, reach: float, n: int
    ) -> "_Pieces":
        """Affine pieces far out, each from as many answers as it has numbers, and one more."""
        d, h = oracle.dim_in, reach * self.step
        Z = reach * rng.standard_normal((n, 1, d))
        moves = np.vstack([np.zeros(d), h * np.eye(d), np.full(d, -h / 2.0)])
        Y = oracle(around.to_target((Z + moves).reshape(-1, d))).reshape(n, d + 2, -1)
        seen = np.isfinite(Y).all(axis=(1, 2))
        Y, Z = Y[seen], Z[seen]
        G = (Y[:, 1:-1] - Y[:, :1]) / h
        predicted = Y[:, 0] - 0.5 * h * G.sum(axis=1)
        # What bends between the points is no piece.
        allowed = self.step * h * np.abs(G).sum(axis=1)
        one = (np.abs(Y[:, -1] - predicted) <= allowed).all(axis=1)
        E = Y[:, 0] - np.einsum("pd,pdk->pk", Z[:, 0], G)
        return _Pieces(G[one], E[one])


@dataclass(frozen=True)
class _Pieces:
    """Affine pieces ``x -> gradients' x + offsets``, (n, d, k) and (n, k)."""

    gradients: FloatArray
    offsets: FloatArray


def _meeting_point(pieces: _Pieces) -> FloatArray:
    """The place where all pieces take one value, as nearly as may be, output by output.

    ``G_p' x + e_p = f`` for unknown ``x (d,)`` and ``f (k,)``.
    """
    G, E = pieces.gradients, pieces.offsets
    n, d, k = G.shape
    unit = np.sqrt((G**2).mean(axis=(0, 1)))
    unit = np.where(unit > 0, unit, 1.0)
    rows = (G / unit).transpose(2, 0, 1).reshape(k * n, d)
    values = np.repeat(-np.eye(k), n, axis=0)
    solution = np.linalg.lstsq(np.hstack([rows, values]), -(E / unit).T.ravel(), rcond=1e-10)[0]
    return np.asarray(solution[:d])


def _unit_moves(G: FloatArray, resolved: float) -> FloatArray:
    """By how much to move each input, (d,), for gradients (n, d, k) alike in size.

    One without a gradient that differs from rounding moves as the others do.
    """
    unit = np.sqrt((G**2).mean(axis=(0, 1)))
    sizes = np.sqrt(((G / np.where(unit > 0, unit, 1.0)) ** 2).mean(axis=(0, 2)))
    is_seen: BoolArray = sizes > resolved**2 * sizes.max()
    if not is_seen.any():
        return np.ones(len(sizes))
    typical = float(np.exp(np.log(sizes[is_seen]).mean()))
    return np.asarray(typical / np.where(is_seen, sizes, typical))


def _quantile(places: FloatArray, weights: FloatArray, share: float) -> float:
    """The distance that this share of the weight lies within."""
    order = np.argsort(places)
    heard = np.cumsum(weights[order])
    return float(places[order][np.searchsorted(heard, share * heard[-1])])


def _least_scale(center: FloatArray, spread: FloatArray, noise: NoiseFloor) -> float:
    """The smallest scale whose inputs keep half of their digits beside the center."""
    return noise.half_digits * float(np.sqrt(((center / spread) ** 2).mean()))


def _named(domain: Domain) -> Domain:
    """Say what was found in one line."""
    ends = (domain.center.min(), domain.center.max(), domain.spread.min(), domain.spread.max())
    m0, m1, s0, s1 = (f"{end:.3g}" for end in ends)
    note = (
        "no domain was given, and near N(0, I) the target does not bend: it was asked where it was "
        f"found to, around means from {m0} to {m1}, with standard deviations from {s0} to {s1}"
    )
    words = "around the place where the target was found to bend"
    return replace(domain, words=words, notes=(note,))
