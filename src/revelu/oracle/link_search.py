"""Which link undoes a target's head: after the right one answers are piecewise affine.

Probabilities of all classes, and their logarithms, show themselves by their sums.  Of other heads
the range proposes some, and short rows of points decide: where no kink lies between them, what is
behind the right link is straight to the errors of the answers, and behind every other one curves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from revelu.numerics.links import NONE, Link
from revelu.oracle.log_ratios import SMALLEST, SMALLEST_DIFFERENCE, smallest_with_digits
from revelu.oracle.numbers import Numbers, read_numbers
from revelu.oracle.oracle import Oracle
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class _Chosen:
    """What rows say of links.

    Attributes
    ----------
    link : Link or None
        The one that explains them best; None where they do not tell.
    lead : float
        By how many log-likelihoods a head leads over none.
    is_sure : bool
        Whether no other link explains them alike, so that no more is to be asked.
    """

    link: Link | None
    lead: float
    is_sure: bool = False


@dataclass(frozen=True)
class LinkSearch:
    """How a link is looked for.

    Attributes
    ----------
    first : float
        Distance of neighbouring points, as a multiple of one at which a head curves by some fifty
        errors of an answer, relative to N(0, I).
    factor : float
        By which later rows are shorter where a kink lies in most, and longer where hardly any
        tells one link from another.
    most : int
        Distances that are tried, as long as no link is told: 200 queries.
    shows : float
        Those fifty errors: second differences are the square of a step, relative to what varies.
    longest : float
        The first distance is no longer than ``longest`` of those multiples.
    near : float
        How near neighbours of the first rows are to each other, over how far inputs vary.
    n_places : int
        Rows of points of each step.
    n_points : int
        Of a row.
    told : float
        A row counts where its answers move by as many errors as this; a hundredth of that is what
        a head that is unlike the right one adds to a row.
    own_digits : float
        What is behind the link errs by itself, by as many units of rounding.
    beyond : float
        Errors by which a row may be off a line: what is farther off is so for a kink or another
        head, and says no more than this (six are exceeded once in five hundred million).
    typical : float
        A row speaks against other links where it is off a line by no more than most are that are
        straight, whose largest of three to five errors this is.
    lead : float
        Rows that say nothing are as far off as the answers as they are: a link gains nothing by
        hiding them.  By as many log-likelihoods a link must lead over those: what four rows say
        that are straight behind it alone.
    wrong : float
        Share of the rows straight behind a link of which others are that are not, and are so
        behind another one: by chance, as a kink that undoes a curve, one is, or a few of many.
    kinked : float
        Share of short rows that may have a kink: of two layers of 64 neurons a sixth have.
    alike : float
        Links that differ by less are alike, as the logarithms of large y and y + 1 are: odds of
        one in a hundred.
    """

    first: float = 3.0
    factor: float = 3.0
    most: int = 5
    shows: float = 50.0
    longest: float = 0.05
    near: float = 1e-4
    n_places: int = 8
    n_points: int = 5
    told: float = 100.0
    own_digits: float = 8.0
    beyond: float = 6.0
    typical: float = 2.0
    lead: float = 72.0
    wrong: float = 0.1
    kinked: float = 0.34
    alike: float = 4.6

    def find(
        self, oracle: Oracle, rng: np.random.Generator, rows: FloatArray, numbers: Numbers
    ) -> tuple[Link, Numbers]:
        """Return the link behind which answers are piecewise affine; none where it is not told.

        And what the answers are, of which more may have been asked.

        Parameters
        ----------
        rows : ndarray, shape (n_rows, n_points, k)
            Answers at points in a row, already asked; infinite where they overflow.
        numbers : Numbers
            What those are.
        """
        Y = rows.reshape(-1, rows.shape[2])
        by_sum = _by_sum(Y, numbers)
        if by_sum is not None:
            return by_sum, numbers
        links = _by_range(Y)
        if len(links) == 1:
            return links[0], numbers
        share = self._share(Y, numbers)
        # Rounding finer than half of a row is long leaves few of them unchanged.
        length = 0.5 * (rows.shape[1] - 1) * self.near
        is_coarse = numbers.grid is not None and share > 12.0**-0.5 * length
        # Few neurons are all off at many places, and move answers all along others.
        moves = (rows[:, 1:] != rows[:, :-1]).any(axis=2).all(axis=1)
        if not (is_coarse or moves.any()):
            return links[0], numbers  # steps, which are steps behind any link
        found = self._chosen(links, [rows], numbers)
        # The digits of float64 show how heads curve between neighbours, if they do at all: more
        # are asked where too few of them say something.
        if found.is_sure or (numbers.law == "float64" and found.lead <= self.alike):
            return found.link or links[0], numbers
        asked, step = [rows], self.first * min(float(np.sqrt(self.shows * share)), self.longest)
        step = max(step, self.near)
        for _ in range(self.most):
            if (more := self._asked(oracle, rng, step)) is None:
                break
            asked.append(more)
            Y = np.concatenate([part.reshape(-1, Y.shape[1]) for part in asked])
            numbers, links = _read_again(numbers, Y), _by_range(Y)
            if len(links) == 1:
                return links[0], numbers
            found = self._chosen(links, asked, numbers)
            if found.is_sure:
                break
            step *= self._longer(links, more, numbers)
        return found.link or links[0], numbers

    def _longer(self, links: Sequence[Link], rows: FloatArray, numbers: Numbers) -> float:
        """By how much longer the next rows are to be than these."""
        ratio = self._off(links, rows, numbers)
        straight = ratio < self.beyond
        # Rows on which answers stay the same, as where all neurons are off, say nothing of it.
        moved = (rows != rows[:, :1]).any(axis=(1, 2))
        is_straight = np.any(straight[:, moved], axis=0)
        if len(is_straight) and is_straight.mean() < 0.5:
            return 1.0 / self.factor
        told = is_straight & np.any(ratio[:, moved] >= self.beyond, axis=0)
        return 1.0 if len(told) and told.mean() >= 0.25 else self.factor

    def _share(self, Y: FloatArray, numbers: Numbers) -> float:
        """Errors of answers ``Y (n, k)`` over how far they vary, of the worst output."""
        finite = Y[np.isfinite(Y).all(axis=1)]
        errors = np.median(numbers.error(finite), axis=0)
        spread = np.median(np.abs(finite - np.median(finite, axis=0)), axis=0)
        return float((errors / np.where(spread > 0, spread, np.inf)).max())

    def _asked(self, oracle: Oracle, rng: np.random.Generator, step: float) -> FloatArray | None:
        """Answers at longer rows of points; None where the budget has no room for them."""
        n, shape = self.n_places, (self.n_places, 1, oracle.dim_in)
        turns = (np.arange(self.n_points) - self.n_points // 2)[:, None]
        if oracle.box is None:
            X = rng.standard_normal(shape) + step * turns * rng.standard_normal(shape)
        else:
            lo, hi = oracle.box
            X = rng.uniform(lo, hi, shape) + step * turns * rng.uniform(lo - hi, hi - lo, shape)
            X = np.clip(X, lo, hi)
        if not oracle.affords(n * self.n_points):
            return None
        return oracle(X.reshape(-1, oracle.dim_in)).reshape(n, self.n_points, -1)

    def _chosen(
        self, links: Sequence[Link], asked: Sequence[FloatArray], numbers: Numbers
    ) -> "_Chosen":
        """The link that explains the rows best, as far as they tell."""
        off = [self._off(links, rows, numbers) for rows in asked]
        ratio = np.concatenate(off, axis=1)
        plain = np.where(np.isnan(ratio[0]), 0.0, ratio[0])
        told = np.where(np.isnan(ratio), plain, ratio)
        likelihood, straight = -0.5 * (told**2).sum(axis=1), ratio < self.beyond
        # A row with a kink is straight behind no link, and one without behind the right one.
        others = ((ratio < self.typical).any(axis=0) & (ratio >= self.beyond)).sum(axis=1)
        is_wrong = others > np.maximum(1.0, self.wrong * straight.sum(axis=1))
        likelihood[1:][is_wrong[1:]] = -np.inf
        # The first rows are short: few have a kink.
        kinked = (off[0] >= self.beyond).mean(axis=1)
        likelihood[1:][kinked[1:] > self.kinked] = -np.inf
        if likelihood[0] - likelihood[1:].max() > self.lead and not is_wrong[0]:
            return _Chosen(links[0], 0.0, is_sure=True)
        lead = float(likelihood.max() - likelihood[0])
        if lead <= self.lead:
            return _Chosen(None, lead)
        # Of those that explain answers alike, where they are far from an end, the first of those
        # behind which most rows say something.
        are_alike = likelihood > likelihood.max() - self.alike
        n_straight = np.where(are_alike, straight.sum(axis=1), -1)
        return _Chosen(links[int(np.argmax(n_straight))], lead, is_sure=are_alike.sum() == 1)

    def _off(self, links: Sequence[Link], rows: FloatArray, numbers: Numbers) -> FloatArray:
        """How far each row is off a line behind each link, in errors, (n_links, n_rows).

        At most ``beyond``; NaN of those that say nothing, since answers do not move.  Outputs that
        are saturated for one link say nothing of others, either: else it would gain by hiding them.
        """
        Y = rows.reshape(-1, rows.shape[2])
        ends = [_ends(link, Y, numbers) for link in links]
        ends[0] = np.full_like(ends[0], max(float(end.max()) for end in ends))
        behind = [
            self._behind(link, rows, numbers, end) for link, end in zip(links, ends, strict=True)
        ]
        if links[0] is NONE:
            # Answers as they are may err as any head says that they do: else one would gain by
            # saying that they err by more, as the small logarithms of large answers do.
            errors = np.fmax.reduce([error / slope for _, error, slope in behind])
            behind[0] = behind[0][0], errors, np.ones_like(errors)
        told = [self._off_lines(Z, error) for Z, error, _ in behind]
        ratio, moved = np.array([off for off, _ in told]), np.array([moves for _, moves in told])
        has_digits = np.isfinite(ratio).all(axis=0)
        most = np.where(has_digits, ratio, 0.0).max(axis=2)
        says = (moved & has_digits).any(axis=2)
        return np.where(says, np.minimum(most, self.beyond), np.nan)

    def _behind(
        self, link: Link, rows: FloatArray, numbers: Numbers, ends: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What is behind a link, its errors, and its derivative by answers, each as ``rows``.

        The derivative is NaN, and the error infinite, where an answer is saturated.

        Parameters
        ----------
        ends : ndarray, shape (k,)
            Sizes of what answers are computed from at least.
        """
        Y = rows.reshape(-1, 1)  # each by itself: others may be saturated
        errors = numbers.error(np.maximum(np.abs(rows), ends)).reshape(-1, 1)
        # Half-precision answers are written from sums in float32, mostly; those of sums in half
        # precision are straight behind no link.
        eps = np.finfo(np.float32).eps if numbers.is_half_precision else numbers.eps
        with np.errstate(all="ignore"):
            Z = link.inverse(Y).reshape(rows.shape)
            # Terms are as large as their sums are at most of the rows.
            size = np.abs(np.where(np.isfinite(Z), Z, 0.0)).max(axis=1, keepdims=True)
            own = self.own_digits * eps * np.maximum(size, np.median(size, axis=0))
            error = np.hypot(link.errors(Y, errors).reshape(rows.shape), own)
            slope = link.errors(Y, np.ones_like(Y)).reshape(rows.shape)
        return Z, error, np.where(np.isfinite(slope), slope, np.nan)

    def _off_lines(self, Z: FloatArray, error: FloatArray) -> tuple[FloatArray, BoolArray]:
        """How far each output ``Z`` is off a line, in errors, and whether it moves, (n_rows, k)."""
        n_points = Z.shape[1]
        with np.errstate(all="ignore"):
            line = np.linalg.qr(np.vander(np.arange(n_points, dtype=np.float64), 2))[0]
            off = Z - np.einsum("ij,sjk->sik", line @ line.T, Z)
            ratio = (np.abs(off) / error).max(axis=1)
            moves = np.ptp(Z, axis=1) > self.told * error.max(axis=1)
        return ratio, moves


def _ends(link: Link, Y: FloatArray, numbers: Numbers) -> FloatArray:
    """Sizes of what each answer, (n, k) -> (k,), is computed from at least.

    Next to an end of a range it may be the other end less something; shares show whether they are.
    """
    form = link.form
    if not np.isfinite(form.low + form.high):
        return np.zeros(Y.shape[1])
    if form.low != 0.0 or numbers.grid is not None:
        return np.full(Y.shape[1], link.scale)
    low = smallest_with_digits(Y, numbers.format, scale=link.scale, is_paired=True)
    return np.where(low >= SMALLEST_DIFFERENCE, link.scale, 0.0)


def _read_again(numbers: Numbers, Y: FloatArray) -> Numbers:
    """What rounded answers are: few do not tell decimal places from significant digits."""
    if numbers.grid is None:
        return numbers
    again = read_numbers(Y[np.isfinite(Y).all(axis=1)])
    return numbers if again.grid is None else again


def _by_sum(Y: FloatArray, numbers: Numbers) -> Link | None:
    """The link of probabilities of all classes, or of their logarithms; None of others."""
    if Y.shape[1] < 2 or not np.isfinite(Y).all() or (Y[0] == Y).all():
        return None
    for link in (Link.named("softmax"), Link.named("softmax*100")):
        if numbers.are_probabilities(Y / link.scale).all():
            return link
    if (Y <= 0.0).all() and numbers.grid is None and numbers.are_probabilities(np.exp(Y)).all():
        return Link.named("log-softmax")
    return None


def _by_range(Y: FloatArray) -> list[Link]:
    """Links whose heads give such answers, the simplest first."""
    finite = np.isfinite(Y)
    if not finite.all():
        # Only exponentials overflow.
        return [link for link in map(Link.named, ("log", "log1p")) if link.holds(Y).all()] or [NONE]
    # Small shares are exponentials, all but; of those of per cent that is likelier.
    shares = ("logit", "log", "log1p"), ("log", "log1p", "logit*100")
    named = map(Link.named, (*shares[int(np.abs(Y).max() > 1.0)], "atanh"))
    return [NONE, *(link for link in named if link.holds(Y).all())]


def with_digits(link: Link, Y: FloatArray, numbers: Numbers) -> Link:
    """Return a link that takes answers for saturated which have lost their digits.

    An answer next to an end of the range is that end plus or minus something, whose digits are
    lost: at ``SMALLEST_DIFFERENCE`` it has 12 of the 16 of float64, and at 1/64 all but 6 of the
    24 binary ones of float32.  Next to 0 a number keeps its own digits, unless it was computed as
    a difference, and so does a large one, up to where it overflows.

    Parameters
    ----------
    Y : ndarray, shape (n, k)
        Answers seen.
    """
    form = link.form
    if link.name == "softmax":
        return link.within(
            smallest_with_digits(Y, numbers.format, numbers.rounding, scale=link.scale), np.inf
        )
    if numbers.grid is not None:
        ends = np.full(Y.shape[1], link.scale)
        lost = 0.75 * float(numbers.grid.spacing(ends).max()) / link.scale
    else:
        lost = SMALLEST_DIFFERENCE if numbers.law == "float64" else 2.0**-6
    least = max(SMALLEST, 8.0 * float(numbers.format.tiny))
    if form.low == 0.0:
        # Of a share there is another one; an exponential is none.
        low: FloatArray | float = smallest_with_digits(
            Y, numbers.format, scale=link.scale, is_paired=not link.overflows
        )
        is_difference = (low == SMALLEST_DIFFERENCE) | (numbers.grid is not None)
        low = np.where(is_difference, lost, np.maximum(low, least))
    else:
        low = form.low + lost
    if link.overflows:
        return link.within(low, numbers.largest / 8.0)
    return link.within(low, form.high - lost if form.high else form.high)
