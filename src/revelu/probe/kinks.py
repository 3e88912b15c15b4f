"""All kinks of a piecewise affine function along a line (DG21, Algorithm 1).

Algorithm 1 bisects for one kink at a time and compares gradients for equality.
Here all kinks are sought together, one round of queries a level: every two
neighbouring pieces are intersected, and the intersection ``t*`` is *proved* by a
query on either side of it: one must lie on the left piece, the other on the right
one.  (That ``f(t*)`` lies on both proves nothing: the left piece can re-enter
inside the right one's line.)  Where the proof fails, its two points are the seed of
a piece in between.  About five queries a kink.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.errors import SaturatedError
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.reweighting import larger_than_said
from revelu.probe.line import Ask, Line
from revelu.probe.piece import Answer, Piece
from revelu.probe.scan import LineScan
from revelu.types import FloatArray

Errors = Callable[[FloatArray, FloatArray], FloatArray]
"""Standard errors of answers ``(n, k)`` at inputs ``(n, d)``, same shape as the answers."""


@dataclass
class _Gap:
    """What is to be done between two neighbouring pieces."""

    verdict: str  # "ask" | "kink" | "cluster" | "jump"
    ask: list[float] = field(default_factory=list)
    kink: float = np.nan


@dataclass(eq=False)
class KinkSearch:
    """The search of :func:`find_kinks`, whose parameters come first; state between its rounds.

    Attributes
    ----------
    side : float
        Half-distance delta of a proof, as a multiple of ``sqrt(nu)``.  Two points delta apart
        give a slope to nu/delta, which puts the intersection with a piece a distance away to
        about nu/delta: delta must exceed that by far.
    wide : float
        Pieces this many times as wide as the median are looked at inside, too: a short piece goes
        on as far as its error lets it, past bends that are fainter than that.
    closed : float
        A gap this many half-distances wide between two proved pieces is a kink, or a cluster
        that the proof cannot take apart.
    outer : float
        The end pieces are met at ``|t| = 1/delta`` or where the interval ends, by two points
        this many half-distances apart.
    max_rounds : int
    many_pieces : int
        At this many pieces, and at four times as many, the search looks whether they are flat.
    max_pieces : int
        No line is followed further than this: a staircase has no end of pieces.
    errors : callable, optional
        What each answer errs by, where that is not the same along a line.
    """

    ask: Ask
    line: Line
    nu: float
    scale: FloatArray
    rng: np.random.Generator
    interval: tuple[float, float]
    through: bool
    side: float = 10.0
    wide: float = np.inf
    closed: float = 4.0
    outer: float = 7.0
    max_rounds: int = 64
    many_pieces: int = 192
    max_pieces: int = 4_000
    errors: Errors | None = None
    fewest: int = 16
    """Pieces of two points, or points inside pieces, that say something of all."""

    def __post_init__(self) -> None:
        self.delta = self.side * float(np.sqrt(self.nu))
        unit = np.where(self.scale > 0, self.scale, 1.0)
        self.projection = self.rng.standard_normal(len(self.scale)) / unit
        farthest = 1.0 / self.delta
        self.interval = (max(self.interval[0], -farthest), min(self.interval[1], farthest))
        self.pieces: list[Piece] = []
        self.sum_squares = np.zeros_like(self.scale)
        self.n_asked, self.strain = 0, 1.0

    @property
    def sigma(self) -> FloatArray:
        """Standard error of a lifted answer, by output; the unit of each answer's own."""
        size = np.maximum(self.scale, self._seen)
        if self.errors is not None:
            size = np.where(self.scale > 0.0, self.scale, size)
        return np.asarray(self.strain * self.nu * size)

    @property
    def _seen(self) -> FloatArray:
        """Root mean square of the answers."""
        return np.asarray(np.sqrt(self.sum_squares / max(self.n_asked, 1)))

    def query(self, ts: list[float]) -> list[Answer]:
        """Ask one round and remember how large the answers are."""
        t = np.asarray(ts)
        g = self.line.lifted(self.ask, t)
        told = np.isfinite(g).all(axis=1)
        if not told.all():
            raise _SaturatedBeyondError(self._interval_between(t[told], t[~told]))
        self.sum_squares = self.sum_squares + (g**2).sum(axis=0)
        self.n_asked += len(ts)
        return [Answer(*each) for each in zip(ts, g, self._own_errors(t, g), strict=True)]

    def _interval_between(self, told: FloatArray, saturated: FloatArray) -> tuple[float, float]:
        """How far from 0 the places that answered go before any that is saturated."""
        known = np.concatenate([[0.0], told, *(piece.ts for piece in self.pieces)])
        before = saturated[saturated < 0.0].max(initial=-np.inf)
        after = saturated[saturated >= 0.0].min(initial=np.inf)
        inside = known[(known > before) & (known < after)]
        return float(inside.min(initial=0.0)), float(inside.max(initial=0.0))

    def _own_errors(self, t: FloatArray, g: FloatArray) -> FloatArray:
        """Standard errors of lifted answers in units of the line's, (n, k)."""
        if self.errors is None:
            return np.ones_like(g)
        lift, unit = np.hypot(1.0, t)[:, None], self.sigma / self.strain
        errors = self.errors(self.line.points(t), g * lift) / lift
        return np.where(unit > 0.0, errors / np.where(unit > 0.0, unit, 1.0), 1.0)

    def run(self) -> LineScan:
        """Alternate between analysing the gaps and one round of queries."""
        self._start()
        message, ran_out = "", False
        many = self.many_pieces
        for _ in range(self.max_rounds):
            gaps = self._merge_and_analyse()
            wanted = [t for gap in gaps for t in gap.ask] + self._companions()
            wanted = wanted or self._unseen()
            if not wanted:
                break
            if len(self.pieces) > many:
                many *= 4
                if not self._are_flat():
                    message = (
                        f"{len(self.pieces)} places on a line all belong to different pieces: "
                        "the function has no affine pieces that can be resolved"
                    )
                    break
            if len(self.pieces) > self.max_pieces:
                message = (
                    f"more than {self.max_pieces:,} pieces on a line: no end of them is in sight"
                )
                break
            self._insert(sorted(set(wanted)))
        else:
            gaps = self._merge_and_analyse()
            message, ran_out = "the search did not end within its rounds", True
        return replace(self._scan(gaps, message), ran_out=ran_out)

    def _start(self) -> None:
        """End pieces and three pairs between them."""
        lo, hi = self.interval
        angle = _angle(lo, hi)
        spacing = min(self.outer * self.delta, angle / 16)
        inner = [_turned(lo, angle * (i + float(self.rng.uniform(0.2, 0.8))) / 3) for i in range(3)]
        inner = sorted([*inner, 0.0]) if self.through and lo < 0.0 < hi else inner
        starts = [(lo, _turned(lo, spacing))]
        starts += [(t, _turned(t, min(2 * self.delta, angle / 16))) for t in inner]
        starts += [(_turned(hi, -spacing), hi)]
        answers = self.query([t for pair in starts for t in pair])
        self.pieces = [Piece.of(*pair) for pair in zip(answers[::2], answers[1::2], strict=True)]

    def _merge_and_analyse(self) -> list[_Gap]:
        """Merge what is one piece, absorb outliers, then look at every gap."""
        self._weigh()
        self._absorb()
        i = 0
        while i + 1 < len(self.pieces):
            if self._is_one(self.pieces[i], self.pieces[i + 1]):
                self.pieces[i] = self.pieces[i].joined(self.pieces.pop(i + 1))
                i = max(i - 1, 0)
            else:
                i += 1
        return [self._analyse(a, b) for a, b in zip(self.pieces, self.pieces[1:], strict=False)]

    def _weigh(self) -> None:
        """Take for the line's errors what inner points are off by, where that is more.

        Terms that cancel are larger on some lines than where the law was measured.
        """
        if self.errors is None:
            return
        off = np.concatenate([piece.off(self.sigma / self.strain) for piece in self.pieces])
        if len(off) >= self.fewest:
            self.strain = larger_than_said(off)

    def _fits(self, piece: Piece, answer: Answer) -> bool:
        """Whether a point lies on the line of a piece, which takes two points."""
        return len(piece.ts) > 1 and piece.holds(answer, self.sigma)

    def _is_straight(self, piece: Piece) -> bool:
        """Whether the inner points of a piece lie on its line."""
        return all(self._fits(piece, answer) for answer in piece.answers[1:-1])

    def _is_one(self, left: Piece, right: Piece) -> bool:
        """Whether two pieces lie on one line, by the widest support there is."""
        if len(left.ts) < 2 and len(right.ts) < 2:
            return False
        if len(left.ts) > 1 and not self._fits(left, right.answers[-1]):
            return False
        if len(right.ts) > 1 and not self._fits(right, left.answers[0]):
            return False
        return self._is_straight(left.joined(right))

    def _absorb(self) -> None:
        """Hand an outlier to the neighbour on whose line it lies.

        The line through a pair with a kink between its points is no piece: the points belong
        to its neighbours.
        """
        for left, right in zip(self.pieces, self.pieces[1:], strict=False):
            for taker, giver, end in ((left, right, 0), (right, left, -1)):
                while 0 < len(giver.ts) <= 2 and self._takes(taker, giver, end):
                    taker.add(giver.pop(end))
        self.pieces = [piece for piece in self.pieces if piece.ts]

    def _takes(self, taker: Piece, giver: Piece, end: int) -> bool:
        answer = giver.answers[end]
        if not self._fits(taker, answer):
            return False
        wide = taker.part(0)
        wide.add(answer)
        return self._is_straight(wide)

    def _analyse(self, left: Piece, right: Piece) -> _Gap:
        a, b = left.ts[-1], right.ts[0]
        width = _angle(a, b)
        if len(left.ts) < 2 or len(right.ts) < 2:
            return _Gap("ask")  # its companion is asked for
        cut = left.meet(right, self.sigma)
        proved = len(left.ts) > 2 and len(right.ts) > 2
        delta = max(self.delta, SIGMAS * cut.error)
        single = cut.excess <= SIGMAS
        if a < cut.t < b and cut.error < width <= self.closed * delta and proved:
            return _Gap("kink" if single else "cluster", kink=cut.t)
        # Several kinks: the intersection is no kink, but a good place to split at.
        # One fixed projection of the outputs makes it the scalar search.
        guess = cut.t if single else left.meet_projected(right, self.projection)
        if a < guess < b and cut.error < width:
            # A side whose piece already reaches this near is proved there.
            rooms = ((-1.0, _angle(a, guess)), (1.0, _angle(guess, b)))
            ask = [
                _turned(guess, side * min(delta, room / 2)) for side, room in rooms if room > delta
            ]
            if ask:
                return _Gap("ask", ask)
        if proved and width <= self.closed * self.delta:
            return _Gap("jump" if self._jumps(left, right) else "cluster", kink=_between(a, b, 0.5))
        if width <= 2.0 * self.delta:
            pairs = [piece for piece in (left, right) if len(piece.ts) == 2]
            return _Gap("ask", [(piece.ts[0] + piece.ts[1]) / 2 for piece in pairs])
        middle = _between(a, b, self.rng.uniform(0.3, 0.7))
        step = min(self.delta, float(width) / 8) * (1.0 + middle**2)
        return _Gap("ask", [middle - step, middle + step])

    def _jumps(
        self, left: Piece, right: Piece, *, steeper: float = 1e4, sigmas: float = 100.0
    ) -> bool:
        """Whether the two sides of a closed gap differ by more than slopes explain.

        Across a gap a continuous function changes by its width times the slopes around it at
        most; a jump, by ``steeper`` times that.  Where large terms cancel, answers err by more
        than was measured elsewhere, so that a jump must also exceed ``sigmas`` errors.
        """
        a, b = left.ts[-1], right.ts[0]
        apart = np.abs(right.gs[0] - left.extrapolate(b)[0])
        slopes = steeper * _angle(a, b) * np.maximum(self.scale, self._seen)
        return bool((apart > np.maximum(slopes, sigmas * self.sigma)).any())

    def _are_flat(self, *, farther: float = 1000.0) -> bool:
        """Whether two of three pieces of two points or more are affine, by one more query each.

        The line through a pair must still hold ``farther`` half-distances on, that through more
        points between these: on a line of hundreds of kinks the pairs that are left are between
        kinks that are not found yet, and four of five pieces pass.  Where answers err by twenty
        times as much as they are said to, half of them do.  Few pairs are not judged.
        """
        sizes = [len(piece.ts) for piece in self.pieces[:-1]]
        if sizes.count(2) < self.fewest:
            return True
        several = [i for i, size in enumerate(sizes) if size > 1]
        chosen = [int(i) for i in self.rng.permutation(several)[: self.many_pieces]]
        ts = []
        for i in chosen:
            first, t, after = self.pieces[i].ts[0], self.pieces[i].ts[-1], self.pieces[i + 1].ts[0]
            step = min(farther * self.delta * (1.0 + t * t), (after - t) / 3)
            ts.append(t + step if sizes[i] == 2 else _between(first, t, 0.4))
        answers = self.query(ts)
        fits = [self._fits(self.pieces[i], g) for i, g in zip(chosen, answers, strict=True)]
        return 3 * sum(fits) > 2 * len(fits)

    def _companions(self) -> list[float]:
        """A second point for every piece that has one only."""
        wanted = []
        for i, piece in enumerate(self.pieces):
            if len(piece.ts) > 1:
                continue
            t = piece.ts[0]
            # Into the wider of the two gaps; an end piece has one only.
            lo = self.pieces[i - 1].ts[-1] if i else t
            hi = self.pieces[i + 1].ts[0] if i + 1 < len(self.pieces) else t
            step = 2.0 * self.delta * (1.0 + t * t)
            right = hi - t > t - lo
            wanted.append(t + min(step, (hi - t) / 3) if right else t - min(step, (t - lo) / 3))
        return wanted

    def _unseen(self, *, middle: float = 0.1) -> list[float]:
        """A point inside each wide piece that has none further from its ends than ``middle``.

        That three points are on one line says little where two of them are close together.
        """
        if np.isinf(self.wide):
            return []
        widths = [_angle(piece.ts[0], piece.ts[-1]) for piece in self.pieces]
        least, wanted = self.wide * float(np.median(widths)), []
        for piece, width in zip(self.pieces, widths, strict=True):
            shares = [_angle(piece.ts[0], t) / width for t in piece.ts[1:-1]] if width > 0 else []
            if width > least and not any(middle < share < 1.0 - middle for share in shares):
                share = float(self.rng.uniform(0.3, 0.7))
                wanted.append(_between(piece.ts[0], piece.ts[-1], share))
        return wanted

    def _insert(self, ts: list[float]) -> None:
        """Ask at ``ts`` and give each answer to the piece it lies on, or a new one."""
        answers = {answer.t: answer for answer in self.query(ts)}
        updated = [self.pieces[0]]
        for right in self.pieces[1:]:
            left = updated[-1]
            # Where answers are blurred, pieces overlap: a point belongs to the first of two gaps.
            new = [t for t in ts if left.ts[-1] < t < right.ts[0] and t in answers]
            while new and self._fits(left, answers[new[0]]):
                left.add(answers.pop(new.pop(0)))
            n_left = len(new)
            while n_left and self._fits(right, answers[new[n_left - 1]]):
                n_left -= 1
            if n_left:
                updated.append(Piece.of(*(answers.pop(t) for t in new[:n_left])))
            for t in new[n_left:]:
                right.add(answers.pop(t))
            updated.append(right)
        for t, answer in answers.items():  # a point within a piece
            for piece in updated:
                if piece.ts[0] < t < piece.ts[-1] and t not in piece.ts:
                    piece.add(answer)
        self.pieces = [part for piece in updated for part in self._split(piece)]

    def _split(self, piece: Piece) -> list[Piece]:
        """Take a piece apart where an inner point does not lie on its line."""
        if self._is_straight(piece):
            return [piece]
        if len(piece.ts) == 3:
            # Two of the three may share a piece; the next round tells which.
            return [Piece.of(answer) for answer in piece.answers]
        half = len(piece.ts) // 2
        return [*self._split(piece.part(0, half)), *self._split(piece.part(half))]

    def _scan(self, gaps: list[_Gap], message: str) -> LineScan:
        kinks, jumps, single = [], [], []
        for gap, left, right in zip(gaps, self.pieces, self.pieces[1:], strict=False):
            cut = left.meet(right, self.sigma) if min(len(left.ts), len(right.ts)) > 1 else None
            kinks.append(gap.kink)
            single.append(gap.verdict == "kink")
            jumps.append(cut.jump if cut is not None else np.full_like(self.scale, np.nan))
        torn = [i for i, gap in enumerate(gaps) if gap.verdict not in ("kink", "cluster")]
        is_torn = bool(torn) and not message
        contradiction = self._contradiction(torn) if is_torn else ""
        if is_torn:
            jumps_at = f"the answers jump at {len(torn)} place(s) of a line: not continuous"
            message = contradiction or jumps_at
        return LineScan(
            line=self.line,
            sigma=self.sigma,
            pieces=self.pieces,
            kinks=np.asarray(kinks, dtype=np.float64),
            jumps=np.asarray(jumps, dtype=np.float64).reshape(len(kinks), len(self.scale)),
            is_single=np.asarray(single, dtype=bool),
            complete=not message,
            interval=self.interval,
            message=message,
            is_torn=is_torn and not contradiction,
            contradicts=bool(contradiction),
        )

    def _contradiction(
        self, torn: list[int], *, near: int = 3, times: int = 2, sigmas: float = 100.0
    ) -> str:
        """Ask again what is beside a jump; say so where the same rows are answered otherwise.

        Parameters
        ----------
        torn : list of int
            Gaps that jump, by the piece on their left.
        near : int
            Points asked on either side of each.
        times : int
            An answer that is wrong now and then is seldom wrong in the same way twice running.
        sigmas : float
            As of :meth:`_jumps`: errors that are no rounding.
        """
        known: dict[float, FloatArray] = {}
        for i in torn:
            left, right = self.pieces[i], self.pieces[i + 1]
            known |= dict(zip(left.ts[-near:], left.gs[-near:], strict=True))
            known |= dict(zip(right.ts[:near], right.gs[:near], strict=True))
        before = np.array([*known.values()])
        largest = 0.0
        for _ in range(times):
            apart = np.abs(np.array([answer.g for answer in self.query([*known])]) - before)
            if (apart > sigmas * self.sigma).any():
                largest = max(largest, float((apart / np.maximum(self._seen, self.sigma)).max()))
        if not largest:
            return ""
        return (
            "the target contradicts itself: beside a jump the same rows are answered otherwise "
            f"when they are asked again, by up to {largest:.2g} of their size"
        )


def find_kinks(
    ask: Ask,
    line: Line,
    nu: float,
    scale: FloatArray,
    rng: np.random.Generator,
    interval: tuple[float, float] = (-np.inf, np.inf),
    *,
    through: bool = False,
    side: float = 10.0,
    wide: float = np.inf,
    errors: Errors | None = None,
    max_cuts: int = 4,
) -> LineScan:
    """Find every kink of a piecewise affine function along a line.

    Where the target is saturated at a place between others, the line ends before it.

    Parameters
    ----------
    ask : callable, (n, d) -> (n, k)
    line : Line
    nu : float
        Noise of a lifted answer relative to ``scale``, or to what the line shows.
    scale : ndarray, shape (k,)
    rng : numpy.random.Generator
        Decides where a gap without an intersection is split.
    interval : (float, float)
        Least and largest ``t`` to ask at.
    through : bool
        Whether something is known to be at ``t = 0``, which is then asked first.
    side : float
        Half-distance of the two points that prove a kink, as a multiple of ``sqrt(nu)``.
    wide : float
        Pieces this many times as wide as the median are looked at inside, too.
    errors : callable, (n, d), (n, k) -> (n, k), optional
        Standard errors of answers at inputs, where each has its own; by default ``nu`` is that of
        all, relative to the largest there are.
    max_cuts : int
        How often a line is cut off where it is saturated and searched again.

    Returns
    -------
    LineScan
        ``complete`` is False, with a message, where the search gave up.

    Raises
    ------
    SaturatedError
        If nothing is left of the line, or it was cut off too often.

    Notes
    -----
    Source: DG21, Algorithm 1 and section 3.2.2, for all kinks at once.
    """
    for _ in range(max_cuts + 1):
        search = KinkSearch(ask, line, nu, scale, rng, interval, through, side, wide, errors=errors)
        try:
            return search.run()
        except _SaturatedBeyondError as error:
            interval = error.interval
        if interval[0] == interval[1]:
            break
    raise SaturatedError("the target is saturated on a line")


class _SaturatedBeyondError(Exception):
    """A place on a line is saturated; the target answers in an interval nearer to 0."""

    def __init__(self, interval: tuple[float, float]) -> None:
        super().__init__()
        self.interval = interval


def _angle(a: float, b: float) -> float:
    """The angle from ``a`` to ``b``: ``arctan(b) - arctan(a)``, without cancellation."""
    return float(np.arctan2(b - a, 1.0 + a * b))


def _turned(t: float, angle: float) -> float:
    """The point an angle on from ``t``: ``tan(arctan(t) + angle)``."""
    turn = np.tan(angle)
    return float((t + turn) / (1.0 - t * turn))


def _between(a: float, b: float, fraction: float) -> float:
    """The point a fraction of the angle on from ``a`` to ``b``."""
    return _turned(a, fraction * _angle(a, b))
