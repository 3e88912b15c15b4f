"""Measures the noise floor of a target's answers, and finds the link that they are behind."""

from dataclasses import dataclass, replace

import numpy as np

from revelu.errors import InputError, SaturatedError, TargetError
from revelu.numerics.float64 import EPS
from revelu.numerics.links import NONE, Link
from revelu.oracle.checks import checked_answer
from revelu.oracle.company import Company, ask_more, root_mean_square
from revelu.oracle.few_digits import RoundedAnswers
from revelu.oracle.grid import Grid, nearest_float32
from revelu.oracle.labels import are_labels
from revelu.oracle.link_search import LinkSearch, with_digits
from revelu.oracle.log_ratios import SMALLEST_DIFFERENCE, smallest_with_digits
from revelu.oracle.noise import NoiseFloor, rounding_behind
from revelu.oracle.numbers import Numbers, are_written_float32, read_numbers
from revelu.oracle.oracle import Oracle
from revelu.oracle.sentinels import Repeats
from revelu.oracle.stencils import Stencils
from revelu.oracle.whole_columns import in_whole_numbers
from revelu.types import BoolArray, FloatArray, IntArray


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
    Where they lie on a grid and are half-precision numbers, too, 35 tell which they are.
    What is computed in few digits errs by more or less with the rows of its batch: the 140 are
    one, 20 of them are asked in another, and eight of these alone, 232 queries in all.  From then
    on the oracle asks no larger batch, whose errors nobody has measured.
    Where the answers are behind a head, as probabilities are, the oracle is switched to what is
    behind it, and the floor is that of the latter; where ranges leave that open, up to 200 more
    are asked.  Where answers are decimals of float32 numbers, it is switched to those numbers.
    Where columns take whole numbers alone, it is moved to a domain that holds them.

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

    def begin() -> tuple[np.random.Generator, _First]:
        rng = np.random.default_rng(seed)
        return rng, _asked_twice(oracle, stencils, rng, repeats)

    rng, first = in_whole_numbers(oracle, begin)
    answered, numbers = first.answered, first.numbers
    company = Company(oracle, numbers, repeats)
    of_labels = answered.shape[1] == 1 and are_labels(answered)
    by_batch = _decided_by_batch(company, stencils, first, oracle.box)
    link = NONE
    if not of_labels:
        link, numbers = _link(oracle, links, rng, stencils.grouped(answered), numbers)
        first = replace(first, numbers=numbers)
    oracle.takes_infinite = link.overflows
    if not (_fit(answered).all() or link.overflows):
        _refuse_sizes(oracle.name, first.X, answered)
    link = oracle.link = with_digits(link, answered, numbers)
    if link.name == "softmax" and numbers.grid is None:
        apart = float(np.abs(first.answered_again - answered[first.again]).max())
        if apart > repeats.rounding(numbers, oracle.dim_in):
            return _of_noisy_probabilities(oracle, stencils, rng, first, apart)
    floor = _floor(company, stencils, rng, first, by_batch=by_batch)
    return replace(floor, of_labels=of_labels)


@dataclass(frozen=True)
class _First:
    """Answers to the first stencils, as answered.

    Attributes
    ----------
    X, answered : ndarray, shape (n, d) and (n, k)
    again : ndarray of int, shape (m,)
        Rows that were asked twice, and can be squared.
    answered_again : ndarray, shape (m, k)
    numbers : Numbers
        What they are.
    """

    X: FloatArray
    answered: FloatArray
    again: IntArray
    answered_again: FloatArray
    numbers: Numbers


def _decided_by_batch(
    company: Company, stencils: Stencils, first: _First, box: tuple[float, float] | None
) -> bool:
    """Whether the rows asked twice are answered by what was beside them."""
    X, again, growth = first.X, first.again, stencils.growth(first.X, box)
    # Of what overflows nothing can be squared.
    fits = _fit(first.answered)
    size = root_mean_square(first.answered[fits] / growth[fits, None])
    asked = X[again], first.answered_again
    pair = first.answered[again], first.answered_again
    return company.decides(pair, growth[again], size, (asked, asked))


def _floor(
    company: Company,
    stencils: Stencils,
    rng: np.random.Generator,
    first: _First,
    *,
    by_batch: bool,
) -> NoiseFloor:
    """The floor of what is behind the oracle's link; more is asked where answers are coarse."""
    oracle, numbers, repeats = company.oracle, first.numbers, company.repeats
    answered, again, link = first.answered, first.again, oracle.link
    growth = stencils.growth(first.X, oracle.box)
    Y, Y_again = link.inverse(answered), link.inverse(first.answered_again)
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
        # Sums in few digits fall on other numbers of a fine grid beside other rows.
        is_random = not by_batch and repeats.leave_grid(
            numbers.grid, answered[again], first.answered_again
        )
    sigma, law = stencils.noise(lifted), "random" if is_random else numbers.law
    measured = stencils.typical(sigma)
    near = lifted[stencils.is_gaussian(alive)[alive]]
    shown = stencils.pooled_noise(near)
    spread = stencils.spread(stencils.grouped(Y)[stencils.is_gaussian(alive)])
    if law == "random":
        near = stencils.grouped(Y)[stencils.is_near(alive)] / np.sqrt(2.0)
        more = ask_more(oracle, stencils.more, rng, company if by_batch else None)
        shown = stencils.pooled_noise(np.vstack([near, more.Y / np.sqrt(2.0)]))
        measured = np.maximum(measured, shown)
    elif law == "float32":
        more = ask_more(oracle, stencils.more, rng, company)
        shown = measured = more.error(stencils, near, company)
        repeat_difference = max(repeat_difference, more.largest_difference(unit))
        if len(more.Y) > 1:
            # What neurons make that are rarely on few places show.
            spread = np.maximum(spread, stencils.spread(more.Y))
    nu = _relative_error(numbers, measured / unit, oracle.dim_in, stencils.places)
    if link.has_head and law == "float32":
        # Each answer errs by what it lacks itself, half of them by no more than this.
        seen = np.isfinite(Y).all(axis=1)
        own = rounding_behind(link, answered[seen], numbers) / growth[seen, None]
        nu = np.maximum(nu, np.median(own, axis=0) / unit)
    elif link.has_head:
        nu = np.maximum(nu, _least_behind(link, numbers) / unit)
    if numbers.grid is not None and not is_random:
        sums = _of_sums(oracle.dim_in)
        nu = np.maximum(_rounding_error(link, Y, answered, numbers, growth) / unit, sums)
        company = replace(company, numbers=numbers)
        found = RoundedAnswers(company, stencils, rng, answered, lifted, near, unit).found(nu)
        law, nu, numbers = found.law, found.nu, found.numbers
        shown = shown if found.shown is None else found.shown
        repeat_difference = max(repeat_difference, found.repeat_difference)
        if numbers.inside:
            nu = np.maximum(_rounding_error(link, Y, answered, numbers, growth) / unit, sums)
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
        # What rounding to a grid errs by is known, and the same at all places.
        typical=1.0 if link.has_head or law == "rounded" else _typical(shown / unit, nu),
        grows=law != "random" or stencils.grow(lifted, growth[:: stencils.n_points][alive]),
        steady=stencils.fraction_steady(stencils.grouped(answered)),
    )


def _typical(shown: FloatArray, nu: FloatArray) -> FloatArray:
    """Root mean square of the errors that all places show, in those of the places of largest."""
    return np.where(shown > 0.0, np.minimum(shown / nu, 1.0), 1.0)


def _link(
    oracle: Oracle,
    links: LinkSearch,
    rng: np.random.Generator,
    rows: FloatArray,
    numbers: Numbers,
) -> tuple[Link, Numbers]:
    """The link that was named, if such answers can be behind it, or else the one that is found.

    And what the answers are, of which more may have been asked.
    """
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
    return told, numbers


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

    One answer tells it where the others are 0.
    """
    between = P[(P > 0.0) & (P < 1.0)]
    grids = (Grid(10, places=n) for n in range(1, most + 1))
    return next((grid for grid in grids if between.size and grid.holds(between).all()), None)


def _of_noisy_probabilities(
    oracle: Oracle,
    stencils: Stencils,
    rng: np.random.Generator,
    first: _First,
    repeat_difference: float,
    *,
    told: float = 8.0,
) -> NoiseFloor:
    """The floor of log-ratios where probabilities have noise that is drawn anew.

    Noise of one size for every probability is ``sigma / p`` of its logarithm: each answer has an
    error of its own, and small probabilities say nothing.

    Parameters
    ----------
    first : _First
    repeat_difference : float
        Largest difference of two answers to one row.
    told : float
        What a probability is told from its noise by, in standard errors: of smaller ones the
        logarithm is no longer linear in the noise, whose square moves it by ``1 / (2 told)``
        of its own error.
    """
    X, answered, numbers = first.X, first.answered, first.numbers
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
    oracle: Oracle, stencils: Stencils, rng: np.random.Generator, repeats: Repeats
) -> _First:
    """Ask the first stencils, and some of their rows again, which are watched."""
    X = stencils.inputs(rng, oracle.dim_in, oracle.box)
    again = stencils.again
    oracle.takes_infinite = True
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
    return _First(X, answered, again, answered_again, numbers)


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
    return np.asarray(np.maximum(measured, _of_sums(d)))


def _of_sums(d: int) -> float:
    """The rounding of an inner product of length d in float64, relative to its terms."""
    return float(0.5 * EPS * np.sqrt(d))


def _rounding_error(
    link: Link, Y: FloatArray, answered: FloatArray, numbers: Numbers, growth: FloatArray
) -> FloatArray:
    """Standard error by output of lifted answers that lie on a grid.

    Of log-ratios, ``log(p_i / p_last)``, it is that of both probabilities.  Behind a head it is
    the median: a mean square is that of the few answers next to saturation.
    """
    error = link.errors(answered, numbers.error(answered))
    lifted = (error / growth[:, None])[np.isfinite(Y).all(axis=1)]
    if link.has_head:
        return np.asarray(np.median(lifted, axis=0))
    return np.asarray(np.sqrt(np.mean(lifted**2, axis=0)))
