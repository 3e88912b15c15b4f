"""The noise floor of a target's answers: the unit of every tolerance."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from revelu.errors import InputError, SaturatedError, TargetError
from revelu.numerics.links import NONE, Link
from revelu.oracle.checks import checked_answer
from revelu.oracle.company import Company, ask_more, root_mean_square, rounding_of
from revelu.oracle.grid import Grid
from revelu.oracle.labels import are_labels
from revelu.oracle.link_search import LinkSearch, with_digits
from revelu.oracle.log_ratios import SMALLEST_DIFFERENCE, smallest_with_digits
from revelu.oracle.numbers import (
    Numbers,
    are_written_float32,
    nearest_float32,
    read_numbers,
)
from revelu.oracle.oracle import Oracle
from revelu.oracle.sentinels import Repeats
from revelu.oracle.stencils import Stencils, growth_of
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class NoiseFloor:
    """How precisely a target answers.

    The standard error of output ``k`` at ``x`` is modelled as
    ``nu[k] * scale[k] * sqrt(1 + |x|^2 / d)``: rounding is relative to the terms
    that are summed, and those grow with the radius.  Where a target computes in few
    digits, an answer that is large errs by more, as its own terms are (:meth:`rounding`).

    Attributes
    ----------
    law : str
        ``"float64"``, ``"float32"``, ``"rounded"`` to a grid of few digits, ``"half-precision"``
        where they are computed in such, or ``"random"`` where repeated rows differ.
    nu : ndarray, shape (k,)
        Relative standard error of an answer.
    scale : ndarray, shape (k,)
        Root mean square of ``|f(x)| / sqrt(1 + |x|^2 / d)``; in a box, of ``|f(x)| / sqrt(2)``.
    spread : ndarray, shape (k,)
        Standard deviation of the outputs over N(0, I), or the box, from the few inputs seen.
    curved : float
        Fraction of the places seen at which the target curves.
    repeat_difference : float
        Largest difference between two answers to one row, relative to ``scale``.
    numbers : Numbers
        What is answered, before a link is applied.
    link : Link
        What undoes the target's head; all this is of what is behind it.
    sizes : ndarray
        Root mean square of the answers themselves, where a link is applied to them.
    are_shares : bool
        Whether they lie between 0 and 1, and are not the probabilities of all classes.
    of_labels : bool
        Whether the answers are names of classes, as numbers.
    drawn_anew : ndarray, shape (k + 1,), or None
        Of probabilities, the standard error of each class's where it is noise that is drawn anew.
    steady : float
        Share of neighbouring inputs seen whose answers were the same, to the last digit; 0 where
        those of all inputs were.
    """

    law: str
    nu: FloatArray
    scale: FloatArray
    spread: FloatArray
    curved: float
    repeat_difference: float
    numbers: Numbers
    link: Link = NONE
    sizes: FloatArray = field(default_factory=lambda: np.zeros(0))
    are_shares: bool = False
    of_labels: bool = False
    drawn_anew: FloatArray | None = None
    steady: float = 0.0

    @property
    def grid(self) -> Grid | None:
        """What rounded answers were rounded to; None of what is not rounded any more."""
        is_rounded = self.law == "rounded" and not self.link.has_head
        return self.numbers.grid if is_rounded else None

    def sigma(self, Y: FloatArray) -> FloatArray:
        """Standard errors of answers at N(0, I), shape (n, k), or (k,) where all are alike.

        Parameters
        ----------
        Y : ndarray, shape (n, k)
        """
        if self.differs_by_answer:
            P = self.link.head(Y)
            return self.link.errors(P, self._of_heads(P))
        if self.grid is None:
            return self.errors
        # The target's own arithmetic is the floor where a spacing is tiny.
        floor = np.finfo(np.float32).eps * self.errors
        return np.asarray(np.maximum(self.grid.rounding_error(Y), floor))

    def sigma_at(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Standard errors of answers ``Y (n, k)`` at any inputs ``X (n, d)``, shape (n, k)."""
        typical = np.outer(self.growth(X) / np.sqrt(2.0), self.errors)
        return np.maximum(typical, self.rounding(Y)) if self.errs_inside else typical

    def rounding(self, Y: FloatArray) -> FloatArray:
        """What answers of that size err by where they are computed in few digits, shape (n, k)."""
        own = rounding_of(self.numbers, Y)
        if not self.link.has_head or not np.isfinite(Y).all():
            return own
        P = self.link.head(Y)
        return np.maximum(own, self.link.errors(P, rounding_of(self.numbers, P)))

    @property
    def answers(self) -> dict[str, Any]:
        """What an account says of the answers.

        ``law``; ``step``, the distance of neighbouring numbers at a typical answer; ``sigma``, its
        standard error, that of a logit where those are taken; ``by_batch``, by how much
        answers to one row differ beside other rows at most, None where they differ anyway.  All
        are those of the worst output, and in its units.
        """
        size = self.sizes if self.link.has_head else np.sqrt(2.0) * self.scale
        grid, is_rounded = self.numbers.grid, self.law == "rounded"
        step = self.numbers.eps * size if grid is None else grid.spacing(size)
        apart = self.repeat_difference * float(self.scale.max())
        return {
            "law": "labels" if self.of_labels else f"{self.numbers}" if is_rounded else self.law,
            "step": float(step.max()),
            "sigma": float(self.errors.max()),
            "by_batch": apart if self.is_deterministic else None,
        }

    @property
    def differs_by_answer(self) -> bool:
        """Whether what is behind a link errs by what the answers themselves do, each by its own."""
        is_rounded = self.law == "rounded" and self.numbers.grid is not None
        return self.link.has_head and (is_rounded or self.drawn_anew is not None)

    @property
    def compares_answers(self) -> bool:
        """Whether networks are held against the answers themselves, by their heads.

        Where answers are coarse, what is behind a link has no error of one size.
        """
        return self.differs_by_answer

    @property
    def of_answers(self) -> "NoiseFloor":
        """The floor of the answers themselves where those are compared; else this one."""
        if not self.compares_answers:
            return self
        if self.drawn_anew is None:
            sizes = np.where(self.sizes > 0.0, self.sizes, 1.0)
            nu, own = self.numbers.error(sizes) / sizes, np.zeros(len(sizes))
            return replace(self, nu=nu, scale=sizes / np.sqrt(2.0), spread=own, link=NONE)
        n = len(self.drawn_anew)
        return replace(
            self,
            nu=self.drawn_anew * np.sqrt(2.0),
            scale=np.full(n, 0.5),
            spread=np.zeros(n),
            link=NONE,
            are_shares=True,
            drawn_anew=None,
        )

    def _of_heads(self, P: FloatArray) -> FloatArray:
        """Standard errors of answers ``P``, same shape."""
        if self.drawn_anew is not None:
            return np.broadcast_to(self.drawn_anew, P.shape)
        return self.numbers.error(P)

    @staticmethod
    def growth(X: FloatArray) -> FloatArray:
        """How terms grow with the radius, ``sqrt(1 + |x|^2 / d)`` of each row, (..., d) -> (...).

        Rounding grows as they do: it is relative to the terms that are summed.
        """
        return growth_of(X)

    @property
    def coarseness(self) -> float:
        """Largest error of an answer over the variation of its output.

        A constant that hides the variation makes an answer coarse, however many digits
        it has.
        """
        return float(self._coarse.max(initial=0.0))

    @property
    def typical_coarseness(self) -> float:
        """The same of half of the outputs: one that hardly varies hides no kink of the others."""
        return float(np.median(self._coarse)) if len(self._coarse) else 0.0

    @property
    def _coarse(self) -> FloatArray:
        varies = self.spread > 0
        return np.asarray((self.nu * self.scale)[varies] / self.spread[varies])

    @property
    def is_exact(self) -> bool:
        """Whether answers are precise enough for derivatives by differences.

        Those have half of their digits: with a floor over 1e-10, fewer than five.
        """
        return self.law == "float64" and bool(self.nu.max() <= 1e-10)

    @property
    def unit(self) -> FloatArray:
        """What to divide each output by: its scale, or 1 where it is always 0, shape (k,)."""
        return np.where(self.scale > 0, self.scale, 1.0)

    @property
    def relative(self) -> float:
        """Standard error of an answer in its output's unit, of the worst output.

        It is that of a unit's rounding where every answer was 0, which says nothing of others.
        """
        share = float((self.nu * self.scale / self.unit).max())
        return share or float(np.finfo(np.float64).eps)

    @property
    def errors(self) -> FloatArray:
        """Standard errors of answers at N(0, I), typical ones, shape (k,)."""
        # |x|^2 = d on N(0, I), so the terms of an answer are sqrt(2) times the scale.
        return np.asarray(self.nu * self.scale * np.sqrt(2.0))

    def varies(self, spread: FloatArray, ulps: float = 4.0) -> BoolArray:
        """Tell which outputs of standard deviation ``spread (k,)`` are no constants.

        A constant may vary by ``ulps`` units in the last place.
        """
        ulp = np.finfo(np.float64).eps * self.scale
        return np.asarray(spread > ulps * ulp)

    def has_all_digits(self, spread: FloatArray, least: float = 3200.0) -> BoolArray:
        """Tell which outputs of standard deviation ``spread (k,)`` the exact method can take.

        A constant that hides the variation takes its digits: of one that varies by less than
        ``least`` times its error, 32 errors, the tolerance of what is exact, are a hundredth of
        all that varies.
        """
        hidden = self.varies(spread) & (spread < least * self.errors)
        return np.asarray(~hidden & self.is_exact)

    @property
    def is_smooth(self) -> bool:
        """Whether the target is no piecewise affine function.

        Half of the places curving is a smooth function; a quarter may be kinks.
        """
        return self.curved >= 0.5

    @property
    def is_deterministic(self) -> bool:
        """Whether repeated rows got the same answer up to rounding."""
        return self.law != "random"

    @property
    def errs_inside(self) -> bool:
        """Whether the target computes in few digits, so that its errors are an estimate."""
        return self.law in {"float32", "half-precision"}

    @property
    def half_digits(self) -> float:
        """The square root of the floor: half of the digits that an answer has."""
        return float(np.sqrt(self.nu.max()))

    @property
    def faint(self) -> float:
        """What is smaller than this share of an answer may be left out.

        A hundredth of half the digits: it stays under the tolerance of a certificate, and drowns
        in the errors of what is larger, whose derivatives have half of the digits.
        """
        return self.half_digits / 100.0

    @property
    def faint_slope(self) -> float:
        """A slope along a line, whose direction has norm sqrt(d), that may be left out."""
        return self.faint * float(np.linalg.norm(self.scale))


def measure_noise(
    oracle: Oracle,
    seed: int | np.random.SeedSequence,
    stencils: Stencils = Stencils(),  # noqa: B008 - frozen
    repeats: Repeats = Repeats(),  # noqa: B008 - frozen
    links: LinkSearch = LinkSearch(),  # noqa: B008 - frozen
) -> NoiseFloor:
    """Measure the noise floor with 64 queries in two rounds: 56 inputs, and eight asked again.

    Where the answers are float32 or half-precision numbers, or differ when they are asked again,
    140 more are asked as far as the budget allows: one error decides about all that follows.
    What is computed in few digits errs by more or less with the rows of its batch: the 140 are
    one, 20 of them are asked in another, and eight of these alone, 232 queries in all.  From then
    on the oracle asks no larger batch, whose errors nobody has measured.
    Where the answers are behind a head, as probabilities are, the oracle is switched to what is
    behind it, and the floor is that of the latter; where ranges leave that open, 120 more are
    asked.  Where answers are decimals of float32 numbers, it is switched to those numbers.

    Parameters
    ----------
    seed : int or SeedSequence
    stencils : Stencils
        Where to ask.
    repeats : Repeats
        How far two answers to one row may lie apart.
    links : LinkSearch
        How a link is looked for, where none was named.

    Raises
    ------
    TargetError
        If the answers are too large or too small to be squared.
    DependsOnBatchError
        If rows are answered otherwise beside others, by more than rounding.
    SaturatedError
        If the target is saturated everywhere.
    LimitReachedError
        If the budget is under 64.
    """
    rng = np.random.default_rng(seed)
    X = stencils.inputs(rng, oracle.dim_in, oracle.box)
    again = stencils.again
    growth = stencils.growth(X, oracle.box)
    oracle.takes_infinite = True
    answered, answered_again, again, numbers = _asked_twice(oracle, X, again, repeats)
    company = Company(oracle, numbers, repeats)
    # Of what overflows nothing can be squared.
    fits = _fit(answered)
    size = root_mean_square(answered[fits] / growth[fits, None])
    batches = (X[again], answered_again), (X[again], answered_again)
    by_batch = company.decides((answered[again], answered_again), growth[again], size, batches)
    of_labels = answered.shape[1] == 1 and are_labels(answered)
    link = NONE if of_labels else _link(oracle, links, rng, stencils.grouped(answered), numbers)
    oracle.takes_infinite = link.overflows
    if not (fits.all() or link.overflows):
        _refuse_sizes(oracle.name, X, answered)
    link = oracle.link = with_digits(link, answered, numbers)
    apart = float(np.abs(answered_again - answered[again]).max())
    far = apart > repeats.rounding(numbers, oracle.dim_in)
    if link.name == "softmax" and numbers.grid is None and far:
        return _of_noisy_probabilities(oracle, stencils, rng, X, answered, numbers, apart)
    Y, Y_again = link.inverse(answered), link.inverse(answered_again)
    alive = np.asarray(np.isfinite(stencils.grouped(Y)).all(axis=(1, 2)))
    if not alive.any():
        raise _saturated_everywhere(oracle, answered)
    lifted = stencils.grouped(Y / growth[:, None])[alive]
    scale = np.sqrt((lifted**2).mean(axis=(0, 1)))
    unit = np.where(scale > 0, scale, 1.0)
    is_finite = alive[again // stencils.n_points] & np.isfinite(Y_again).all(axis=1)
    differences = (Y_again[is_finite] - Y[again][is_finite]) / growth[again][is_finite, None]
    repeat_difference = float(np.abs(differences / unit).max(initial=0.0))
    is_random = repeat_difference > repeats.rounding(numbers, oracle.dim_in)
    if numbers.grid is not None:
        is_random = repeats.leave_grid(numbers.grid, answered[again], answered_again)
    sigma, law = stencils.noise(lifted), "random" if is_random else numbers.law
    measured = stencils.typical(sigma)
    spread = stencils.spread(stencils.grouped(Y)[stencils.is_gaussian(alive)])
    if law == "random":
        near = stencils.grouped(Y)[stencils.is_near(alive)] / np.sqrt(2.0)
        more = ask_more(oracle, stencils.more, rng, company if by_batch else None)
        measured = np.maximum(measured, stencils.pooled_noise(np.vstack([near, more.lifted])))
    elif law == "float32":
        # Inputs of the first ones are no float32 numbers, and rounding them errs, too.
        near = lifted[stencils.is_gaussian(alive)[alive]]
        more = ask_more(oracle, stencils.more, rng, company)
        measured = more.error(stencils, near, company)
        repeat_difference = max(repeat_difference, more.largest_difference(unit))
        if len(more.Y) > 1:
            # What neurons make that are rarely on few places show.
            spread = np.maximum(spread, stencils.spread(more.Y))
    nu = _relative_error(numbers, measured / unit, oracle.dim_in, stencils.places)
    if link.has_head:
        nu = np.maximum(nu, _least_behind(link, numbers) / unit)
    if numbers.grid is not None and not is_random:
        nu = _rounding_error(link, Y, answered, numbers.grid, growth) / unit
        if numbers.is_half_precision and not link.has_head:
            more = ask_more(oracle, stencils.more_of_half_precision, rng, company)
            computed = more.error(stencils, lifted, company) / unit
            law, nu = _of_half_precision(stencils, computed, nu)
            repeat_difference = max(repeat_difference, more.largest_difference(unit))
    return NoiseFloor(
        law=law,
        nu=nu,
        scale=scale,
        spread=spread,
        curved=stencils.fraction_curved(lifted, np.maximum(sigma, nu * scale)),
        repeat_difference=repeat_difference,
        numbers=numbers,
        link=link,
        sizes=root_mean_square(np.where(np.isfinite(answered), answered, 0.0)),
        are_shares=bool(((Y >= 0.0) & (Y <= 1.0)).all()) and not link.has_head,
        of_labels=of_labels,
        steady=stencils.fraction_steady(stencils.grouped(answered)),
    )


def _of_half_precision(
    stencils: Stencils, measured: FloatArray, rounding: FloatArray, *, inside: float = 1.5
) -> tuple[str, FloatArray]:
    """The law and the relative errors of half-precision answers, which may be computed in such.

    Then inputs, and what is between the layers, are rounded as well, and the answers err by more
    than ``inside`` times their own rounding.
    """
    measured = stencils.places * measured
    if (measured <= inside * rounding).all():
        return "rounded", rounding
    return "half-precision", np.maximum(measured, rounding)


def _link(
    oracle: Oracle,
    links: LinkSearch,
    rng: np.random.Generator,
    rows: FloatArray,
    numbers: Numbers,
) -> Link:
    """The link that was named, if such answers can be behind it, or else the one that is found."""
    told = oracle.told_link
    if told is None:
        with oracle.as_answered():
            # The draws of this generator stay as they are.
            return links.find(oracle, rng.spawn(1)[0], rows, numbers)
    Y = rows.reshape(-1, rows.shape[2])
    outside = ~told.holds(Y)
    if told.contrast and Y.shape[1] < 2:
        raise InputError(f"link {told} is of several outputs, and {oracle.name} has one")
    if outside.any():
        answer = Y[outside.argmax()]
        wrong = answer[~told.holds(answer[:, None])][0]
        low, high = (told.scale * end for end in (told.form.low, told.form.high))
        raise InputError(
            f"link {told}: answers lie between {low:g} and {high:g}, and {oracle.name} has "
            f"answered {wrong:g}"
        )
    return told


def _least_behind(link: Link, numbers: Numbers) -> float:
    """What is behind a link errs by at least, where a head is steepest or flattest."""
    form, worst = link.form, 1.0
    for end, at in ((form.low, link.low), (form.high, link.high)):
        if np.isfinite(end):
            # A number keeps its own digits next to 0, if it was not computed as a difference.
            u = np.asarray(at, dtype=np.float64)
            size = np.where((end == 0.0) & (u < SMALLEST_DIFFERENCE), np.abs(u), 1.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                loss = np.abs(form.slope(u)) * size
            worst = max(worst, float(np.where(np.isfinite(loss), loss, 0.0).max()))
    return numbers.eps * worst


def _saturated(
    oracle: Oracle, smallest: FloatArray, why: str = "whose digits are lost"
) -> SaturatedError:
    return SaturatedError(
        f"{oracle.name} is saturated: at every input seen some class has a probability "
        f"under {np.max(smallest):g}, {why}; ask it for logits, "
        "or say by a domain where it decides (--like DATA)"
    )


def _saturated_everywhere(oracle: Oracle, answered: FloatArray) -> SaturatedError:
    """What to raise where no input gave numbers that can be used; rounding may be why."""
    link = oracle.link
    if link.has_head and link.name != "softmax":
        return SaturatedError(
            f"{oracle.name} is saturated: at every input seen an answer lies next to an end of "
            f"its range, where {link.form.given} have no digits; say by a domain where it varies "
            "(--like DATA), or take answers as they are (--link none)"
        )
    grid = _decimal_places(answered) if link.has_head else None
    if grid is None:
        return _saturated(oracle, np.asarray(link.low))
    rounded_off = grid.spacing(np.zeros(1)) / 2.0
    return _saturated(oracle, rounded_off, f"which rounding to {grid} makes 0")


def _decimal_places(P: FloatArray, most: int = 12) -> Grid | None:
    """The fewest decimal places that hold all probabilities; None where none do, or none are left.

    Fewer different answers than :func:`read_numbers` asks for tell it where the others are 0.
    """
    between = P[(P > 0.0) & (P < 1.0)]
    grids = (Grid(10, places=n) for n in range(1, most + 1))
    return next((grid for grid in grids if between.size and grid.holds(between).all()), None)


def _of_noisy_probabilities(
    oracle: Oracle,
    stencils: Stencils,
    rng: np.random.Generator,
    X: FloatArray,
    answered: FloatArray,
    numbers: Numbers,
    repeat_difference: float,
    *,
    told: float = 8.0,
) -> NoiseFloor:
    """The floor of log-ratios where probabilities have noise that is drawn anew.

    Noise of one size for every probability is ``sigma / p`` of its logarithm: each answer has an
    error of its own, and small probabilities say nothing.

    Parameters
    ----------
    X, answered : ndarray, shape (n, d) and (n, k + 1)
        The first stencils.
    repeat_difference : float
        Largest difference of two answers to one row.
    told : float
        What a probability is told from its noise by, in standard errors: of smaller ones the
        logarithm is no longer linear in the noise, whose square moves it by ``1 / (2 told)``
        of its own error.
    """
    more, radii = stencils.more, np.repeat(stencils.radii, stencils.n_points)
    if oracle.remaining is None or oracle.remaining >= len(more.radii) * more.n_points:
        others = more.inputs(rng, oracle.dim_in, oracle.box)
        with oracle.phase("noise"), oracle.as_answered():
            answered = np.vstack([answered, oracle(others)])
        X, radii = np.vstack([X, others]), np.append(radii, np.ones(len(others)))
    errors = _scatter_of_probabilities(stencils, answered[radii < stencils.near])
    smallest = np.maximum(smallest_with_digits(answered, numbers.format), told * errors)
    link = oracle.link = oracle.link.within(smallest, np.inf)
    Y = link.inverse(answered)
    told_apart = np.isfinite(Y).all(axis=1)
    if not told_apart.any():
        raise _saturated(oracle, smallest, "which noise hides")
    growth = NoiseFloor.growth(X) if oracle.box is None else np.full(len(X), np.sqrt(2.0))
    growth, Y, P = growth[told_apart, None], Y[told_apart], answered[told_apart]
    scale = np.sqrt(((Y / growth) ** 2).mean(axis=0))
    unit = np.where(scale > 0, scale, 1.0)
    error = np.sqrt(((link.errors(P, errors) / growth) ** 2).mean(axis=0))
    gaussian = radii[told_apart] == 1.0
    return NoiseFloor(
        law="random",
        nu=error / unit,
        scale=scale,
        spread=(Y[gaussian] if gaussian.any() else Y).std(axis=0),
        curved=0.0,
        repeat_difference=repeat_difference,
        numbers=numbers,
        link=link,
        sizes=np.full(len(errors), 0.5),
        drawn_anew=errors,
    )


def _scatter_of_probabilities(
    stencils: Stencils, answered: FloatArray, above: float = 4.0
) -> FloatArray:
    """Standard error of each class's probability, from stencils ``(n, k + 1)`` of radius 1.

    Those whose probability is over ``above`` errors: smaller ones are clipped at 0, and err less.
    """
    P = answered.reshape(-1, stencils.n_points, answered.shape[1])
    scatter, sizes = stencils.scatter(P), P.mean(axis=1)
    errors = stencils.pooled(scatter)
    counted = np.where(sizes > above * errors, scatter, 0.0)
    n_counted = (sizes > above * errors).sum(axis=0)
    mean_square = (counted**2).sum(axis=0) / np.maximum(n_counted, 1)
    return np.asarray(np.maximum(errors, np.sqrt(mean_square)))


def _asked_twice(
    oracle: Oracle, X: FloatArray, again: IntArray, repeats: Repeats
) -> tuple[FloatArray, FloatArray, IntArray, Numbers]:
    """Answers at ``X``, and at some of it again, which is watched; which, and what numbers."""
    with oracle.phase("noise"), oracle.as_answered():
        answered = oracle(X)
        answered_again = oracle(X[again])
    if are_written_float32(answered):
        oracle.takes_float32 = True
        answered, answered_again = nearest_float32(answered), nearest_float32(answered_again)
    fits = _fit(answered)
    kept = fits[again] & _fit(answered_again)
    size = np.abs(answered[fits]).max(initial=0.0, keepdims=True)
    if not kept.any() or (size.any() and not _fit(1.0 / size).all()):
        _refuse_sizes(oracle.name, X, answered)
    numbers = read_numbers(answered[fits])
    again, answered_again = again[kept], answered_again[kept]
    oracle.watch(repeats.sentinels(X[again], answered[again], answered_again, numbers))
    return answered, answered_again, again, numbers


def _fit(Y: FloatArray, largest: float = 1e140) -> BoolArray:
    """Tell which rows of answers, (n, k) -> (n,), do not overflow when squared and summed."""
    return np.asarray((np.abs(Y) <= largest).all(axis=1))


def _refuse_sizes(name: str, X: FloatArray, answered: FloatArray) -> None:
    """Raise TargetError for answers that are infinite, or whose squares are, or are nothing."""
    size = float(np.abs(checked_answer(name, answered, X, None)).max())
    flow = "overflow" if size > 1.0 else "underflow"
    raise TargetError(f"{name} answers numbers of size {size:.1g}: their squares {flow}")


def _relative_error(numbers: Numbers, measured: FloatArray, d: int, places: float) -> FloatArray:
    """What was measured, but no less than rounding makes of a sum."""
    if numbers.law == "float32":
        # Rounding an answer errs by 0.14 to 0.29 of eps, uniform in half a unit on both sides.
        return np.asarray(np.maximum(places * measured, 0.25 * numbers.eps))
    # The rounding of an inner product of length d.
    return np.asarray(np.maximum(measured, 0.5 * numbers.eps * np.sqrt(d)))


def _rounding_error(
    link: Link, Y: FloatArray, answered: FloatArray, grid: Grid, growth: FloatArray
) -> FloatArray:
    """Standard error by output of lifted answers that lie on a grid.

    Of log-ratios, ``log(p_i / p_last)``, it is that of both probabilities.
    """
    error = link.errors(answered, grid.rounding_error(answered))
    finite = np.isfinite(Y).all(axis=1)
    return np.asarray(np.sqrt(np.mean((error / growth[:, None])[finite] ** 2, axis=0)))
