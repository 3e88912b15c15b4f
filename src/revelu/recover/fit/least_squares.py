"""One hidden layer from answers of few digits, by least squares.

    f(x) = A relu(W x + b) + V x + c

Steps that divide differences of answers by small distances lose the digits that float32
or rounded answers do not have.  So no weight is read off differences: queries of N(0, I), and the
network that explains them.  Where answers have digits enough for lines, differences say where to
begin (:mod:`revelu.recover.fit.from_lines`); else steps 2 and 3 begin at random.

1. Where the inputs are many, ask in a few coordinates first: there the function is again
   a two-layer network, a smaller one.  With several outputs these are the directions that
   matter (JWZ20's row span), which few gradients show; with one, and where answers are too
   coarse for gradients, those of a random slice.
2. Ask Gaussian queries, more of them until a network with neurons to spare explains them; where
   that takes long, look along lines farther out (:mod:`revelu.recover.fit.far_out`); where more
   neurons gain nothing, many more, and exchange neurons.
3. Take out the neurons that are not needed, the affine rest being free.
4. Flip neurons so that the affine rest vanishes.
5. In all coordinates, to which slopes carry a network of a slice over, refit everything
   to fresh Gaussian queries, of rounded answers to those foretold to round least, and
   weigh each answer by its own error.
"""

import logging
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network
from revelu.numerics.interruption import at_most, interruptible
from revelu.probe.answered import Answered
from revelu.probe.gradient_span import gradient_span
from revelu.probe.kinks import find_kinks
from revelu.probe.region import Everywhere
from revelu.recover.fit.asking import FitQuestions
from revelu.recover.fit.from_lines import (
    HyperplanesEndError,
    NoRowsError,
    WorkEndsError,
)
from revelu.recover.fit.price import Price
from revelu.recover.fit.search import (
    complete,
    explain,
    is_near,
    refine,
    refine_as_weighed,
    sharpen,
)
from revelu.recover.fit.sightings import Sightings
from revelu.recover.fit.slices import carry_over, random_slice
from revelu.recover.fit.where_wrong import is_explained_far_out
from revelu.recover.method import Candidate, Disagreement, Why
from revelu.recover.paid import NOTHING, Paid
from revelu.recover.refine.network_fit import Samples, degrees_of_freedom
from revelu.recover.refine.served_fit import Served
from revelu.recover.rows import Rows
from revelu.recover.shallow.lines import ended
from revelu.recover.signs import resolve_signs
from revelu.recover.subspace import Subspace
from revelu.types import FloatArray

log = logging.getLogger(__name__)


class _NoPiecesError(Exception):
    """A line without affine pieces, or without one that could be measured."""

    def __init__(self, why: Why, message: str) -> None:
        super().__init__(message)
        self.why = why


@dataclass
class FitSearch(FitQuestions):
    """A network with neurons to spare, then without.

    In the span of the gradients (JWZ20, Theorem 3.4) as in all coordinates: a fit with neurons
    to spare, consolidated (ATV21, Algorithm 5, by another route).
    """

    best: Network | None = field(default=None, init=False)
    """The best so far, in coordinates of ``subspace`` if there is one."""
    samples: Samples | None = field(default=None, init=False)
    """What a network from lines, or of plenty of answers, was fitted to."""
    is_span: bool = field(default=False, init=False)
    """Whether the function looks at the coordinates that are searched alone."""
    is_far_out: bool = field(default=False, init=False)
    """Whether lines have been asked far out."""
    is_of_plenty: bool = field(default=False, init=False)
    """Whether neurons were exchanged where answers are plenty."""
    n_kinks: int | None = field(default=None, init=False)
    n_single: int | None = field(default=None, init=False)
    n_followed: int = field(default=0, init=False)
    notes: list[str] = field(default_factory=list, init=False)
    obstacles: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if self.oracle.link.saturates:
            from_lines = replace(self.method.from_lines, region=Answered(self._answers))
            if self._is_served:
                equations = self.method.line_equations_behind_head
                from_lines = replace(
                    from_lines, equations=equations, several_equations=1.3 * equations
                )
            self.method = replace(self.method, from_lines=from_lines)

    def propose(self) -> Candidate:
        """Fit ever more neurons to ever more samples until they explain them."""
        why = Why.EXPLAINED
        try:
            with interruptible(self.oracle.check_time):
                if not self._may_be_rounded:
                    self._refuse_steps()
                self._choose_coordinates()
                samples = self._from_lines_if_answered()
                fitted = self._finish(samples or self._search())
                is_rich = self.is_far_out or self.is_of_plenty
                is_kept = samples is not None or self._is_served or is_rich
                self.samples = fitted if is_kept and not self.obstacles else None
        except (LimitReachedError, SaturatedError) as error:
            why = Why.of(error)
            self.obstacles.append(str(error))
        except HyperplanesEndError as error:
            self.obstacles.append(str(error))
            return replace(self._candidate(Why.HYPERPLANES_END), paid=self._paid(error.rows))
        except _NoPiecesError as error:
            return Candidate(None, error.why, obstacles=(str(error),))
        if why is Why.EXPLAINED and self.obstacles:
            # Each of its fits has begun anew: another search would do the same.
            why = Why.REFUTED
        return self._candidate(why)

    def _from_lines_if_answered(self) -> Samples | None:
        """The fit of rows of lines; None where lines of a head's answers have gaps in them."""
        try:
            return self._from_lines()
        except SaturatedError:
            if not self.oracle.link.saturates:
                raise
            return None

    def _lacking_digits(self) -> list[str]:
        """Say how many digits more would show neurons along lines, where answers are too coarse."""
        lines = self.method.coarse_lines
        if not self._is_coarse() or self.noise.link.has_head or not self.noise.is_deterministic:
            return []
        n = int(np.ceil(np.log10(self.noise.typical_coarseness / lines)))
        more = "a digit" if n == 1 else f"{n} digits"
        return [f"these answers are too coarse to show neurons along lines, as {more} more would"]

    def _paid(self, rows: Rows) -> Paid:
        """What the next method can use of rows: of a slice that shows but a part, none."""
        if self.subspace is None or self.is_span:
            return Paid(rows=rows, subspace=self.subspace)
        return NOTHING

    def _candidate(self, why: Why) -> Candidate:
        return Candidate(
            None if self.best is None else self._network(),
            why,
            notes=tuple(self.notes),
            obstacles=(*self.obstacles, *self._lacking_digits()) if self.obstacles else (),
            warnings=() if self.best is None else (self._resolution(),),
            figures={"refuted": why is Why.REFUTED},
        )

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Fit a network from lines to more answers, those that disagree among them.

        What a search from random starts has found explains its answers: lines far out may show
        more, as where repairs end in vain.
        """
        try:
            with interruptible(self.oracle.check_time):
                if not (self._is_mended(seen) or self._is_found_far_out()):
                    return None
        except (LimitReachedError, SaturatedError) as error:
            self.obstacles.append(str(error))
            return self._candidate(Why.of(error))
        return self._candidate(Why.EXPLAINED)

    def _is_mended(self, seen: Disagreement) -> bool:
        how, before = self.method, self._best()
        is_large = not how.from_lines.fits.is_dense(before.n_parameters)
        most = how.max_large_repairs if is_large else how.max_repairs
        if self.samples is None or self.n_repairs == most:
            return False
        self.n_repairs += 1
        n = int(np.ceil(how.more_answers * len(self.samples.X)))
        X = np.vstack([self._foretold_worst(self.samples, n), seen.X])
        self.samples = samples = self.samples.joined(self._ask_far_out(X))
        self.best, wrong = refine(before, samples).network, how.where_wrong.far_out(seen.X)
        if not is_explained_far_out(self._best(), samples, self.limit):
            self.best, wrong = before, seen.X
        with at_most(how.from_lines.fits.most_multiplications(before.n_parameters, samples)):
            # Else what a fit of all explains stands.
            self.best, self.samples = how.where_wrong.completed(
                self._best(), samples, wrong, self._ask_far_out, self.limit, self.rng
            )
        is_right = is_explained_far_out(self._best(), self.samples, self.limit)
        is_wider = self._best().architecture[1] > before.architecture[1]
        if not (is_right or is_wider or seen.agrees(self._best())):
            return False
        if self._is_served:
            self.samples = self._finish_as_served(self.samples)
        return True

    def _is_found_far_out(self) -> bool:
        if (samples := self._from_far_out()) is None:
            return False
        self.samples, self.n_repairs = self._finish(samples), 0
        self.obstacles.clear()
        return True

    def _foretold_worst(self, samples: Samples, n: int) -> FloatArray:
        """Inputs of which the samples say least, shape (n, d); any, where that is not foretold."""
        how, network = self.method.from_lines, self._best()
        X, foretold = how.foretell(network, samples, how.most_foretold, self.rng)
        X = X[foretold.telling(0.0, n)]
        return np.vstack([X, self._region.points(self.rng, n - len(X), network.dim_in)])

    @property
    def limit(self) -> float:
        """The reduced cost that noise alone may leave."""
        return self.method.limit if self.noise.grid is None else self.method.grid_limit

    def _choose_coordinates(self) -> None:
        """Step 1: few coordinates, where that saves queries."""
        d = self.oracle.dim_in
        if d < self.method.many_inputs:
            return
        if not self._is_fine():
            # Gradients of coarse answers need many queries; a slice needs none.
            if self._is_too_wide():
                self.subspace = random_slice(self.rng, d, self.method.n_slice)
            return
        if self.oracle.dim_out < self._sizes().several:
            self.subspace = random_slice(self.rng, d, self.method.n_slice)
            return
        self.tell("measuring the span of the gradients")
        span = gradient_span(self.oracle, self.noise, self.rng, max_rank=d // 2)
        if span is not None:
            self.subspace, self.is_span = Subspace(span), True
            log.info("the gradients span %d of %d directions", len(span), d)

    def _first_width(self) -> int:
        """Neurons that the first samples in all coordinates could determine."""
        how = self.method
        least = how.first_width_behind_head if self._is_served else how.first_width
        return max(least, self.oracle.dim_in // 4)

    def _is_too_wide(self) -> bool:
        """Whether a search in all coordinates would end at its first step."""
        sizes = self._sizes()
        n = sizes.n_samples(self._first_width())
        return n * sizes.d * sizes.width(n) > self.method.ending.max_work

    def _from_lines(self) -> Samples | None:
        """Steps 2 and 3 from rows that lines show; None where they show too little."""
        if self._is_coarse() or self.oracle.dim_out > self.method.few_outputs:
            return None
        self.tell("measuring rows on lines")
        try:
            found = self._found_on_lines()
        except HyperplanesEndError:
            # Where a function bends all along, no hyperplane goes straight on either.
            self._refuse_smooth()
            raise
        except NoRowsError:
            self._refuse_smooth()
            if (samples := self._from_far_out()) is not None:
                return samples
            self._look_along_a_line()
            many = (self.n_kinks or 0) >= self.method.many_kinks
            if many or (self.n_single == 0 and (self.n_kinks or 0) >= self.method.few_kinks):
                # Where a line has hundreds another has them, too, and takes as long.
                endless = (self.n_kinks or 0) >= self.method.endless_kinks
                raise _NoPiecesError(
                    Why.REFUTED if endless else Why.UNRESOLVED,
                    f"{self.n_kinks} kinks along a line, and no piece between them on which a "
                    "gradient could be measured: these answers do not tell a network from a "
                    "function without affine pieces",
                ) from None
            return None
        except WorkEndsError as error:
            if (samples := self._from_far_out()) is not None:
                return samples
            self._refuse_smooth()
            if error.network.architecture[1] <= self._first_width():
                return None
            # Of more neurons random starts do no better than rows.
            self.obstacles.append(str(error))
            found = error.network, error.samples
        if found is None:
            self._refuse_smooth()
            return self._from_far_out()
        self.best, samples = found
        return samples

    def _found_on_lines(self) -> tuple[Network, Samples] | None:
        # Hyperplanes that are far away are asked beside.
        return self.method.from_lines.find(
            self._answers, self._ask_far_out, self._sizes(), self.noise, self.limit, self.rng
        )

    def _search(self) -> Samples:
        """Steps 2 and 3: more samples until a network explains them."""
        sizes = self._sizes()
        if self.subspace is None:
            n = max(sizes.n_samples(self._first_width()), 2 * (sizes.d + 1))
        else:
            n = sizes.n_samples(int(self.method.span_margin * sizes.d) + 2)
        samples = self._ask(n)
        start: Network | None = None
        left: list[tuple[int, float]] = []
        worked, may_be_steps = 0.0, self._may_be_rounded
        while True:
            worked += sizes.work(n)
            self._explain(samples, start)
            weighed = samples.evenly() if self.noise.drawn_anew is None else samples
            spread = max(weighed.spread(), np.finfo(np.float64).tiny)  # 0 of a constant
            left.append((sizes.width(n), weighed.cost(self._best()) / spread))
            invented = self._is_explained(samples)
            if invented:
                samples = samples.joined(self._ask(sizes.n_held_out(n)))
                if self._is_explained(samples):
                    return samples
                log.debug("fresh answers disagree: a neuron fires on few of the samples")
            if len(left) == self.method.n_before_smooth and not self._is_coarse():
                self._refuse_smooth()
            is_long = len(left) == self.method.n_before_steps
            if may_be_steps and (is_long or len(samples.X) >= self.method.before_steps):
                may_be_steps = False
                self._refuse_steps()
            if (ended := self._ended(samples, left)) is not None:
                return ended
            if not sizes.is_short(n) and (explained := self._from_far_out()) is not None:
                return explained
            # What interpolates is near, too, but no place to start from.
            wanted = self.method.no_interpolation * degrees_of_freedom(self._best())
            determined = samples.n_equations >= wanted
            near = (determined or not invented) and is_near(self._best(), samples)
            start = self._best() if near else None
            more = sizes.more(len(samples.X))
            if self._is_estimate and worked + sizes.work(more) > self.method.ending.most_work:
                self.obstacles.append(self.method.ending.too_long(left, samples))
                self._follow_hyperplanes(self.method.n_last_lines)
                return samples
            work = more * sizes.k * (sizes.width(more) * (sizes.d + sizes.k)) ** 2
            if len(left) == self.method.n_before_lines or work > self.method.before_lines:
                self._follow_hyperplanes()
            fails = len(left) >= self.method.n_before_line and not self._is_coarse()
            is_due = fails or not sizes.is_short(n)
            if is_due and self.n_kinks is None:
                self._look_along_a_line()
                wanted = int(self.method.line_margin * (self.n_kinks or 0))
                most = self.method.ending.most_neurons(sizes.d)
                if wanted > most:
                    self._refuse_smooth()
                more = max(more, sizes.n_samples(min(wanted, most)))
            samples = samples.joined(self._ask(more - len(samples.X)))
            n = more

    def _ended(self, samples: Samples, left: list[tuple[int, float]]) -> Samples | None:
        """What is explained where more neurons gain nothing; None where the search goes on."""
        said = self.method.ending.obstacle(
            left, samples, self.limit, self.n_kinks, is_estimate=self._is_estimate
        )
        if not said:
            return None
        if (explained := self._from_far_out()) is not None:
            return explained
        is_promising = min(share for _, share in left) < self.method.exchange.promising
        if is_promising and (explained := self._of_plenty(samples)) is not None:
            return explained
        self.obstacles.append(said)
        self._follow_hyperplanes(self.method.n_last_lines)
        return samples

    @property
    def _is_estimate(self) -> bool:
        """Whether the noise is estimated, of answers that show what they can on lines."""
        return self.noise.law == "float32"

    def _of_plenty(self, samples: Samples) -> Samples | None:
        """Search once more where answers are plenty; None where that finds nothing, too.

        It is untried where errors differ from answer to answer, and in a slice of the inputs; what
        cuts its answers is no network before that is undone.
        """
        is_cut = np.isfinite(self.oracle.extremes.caps()).any()
        if is_cut or samples.differ or self.subspace is not None or self._is_estimate:
            return None
        sizes, ending = self._sizes(), self.method.ending
        most = ending.most_neurons(sizes.d, self.n_kinks)
        width = min(most, 2 * sizes.width(len(samples.X)))
        self.tell(f"splitting neurons, {width} and more, where answers are plenty")
        how, even = self.method.exchange, samples.evenly()
        found = how.find((width, most), sizes, even, self._ask, self.limit, self.rng)
        if found is None:
            return None
        self.best, samples = found
        self.is_of_plenty = True
        return samples

    def _from_far_out(self) -> Samples | None:
        """Search by lines far out, once; what cuts its answers is undone before."""
        how, noise, lines = self.method.far_out, self.noise, self.method.from_lines
        is_cut = bool(np.isfinite(self.oracle.extremes.caps()).any())
        is_whole = self.subspace is None and isinstance(lines.region, Everywhere)
        is_absolute = noise.grid is not None and noise.grid.digits is None
        if self.is_far_out or is_cut or not is_absolute or not is_whole:
            return None
        self.is_far_out = True
        self.tell("measuring rows on lines far out")
        found = how.find(self.oracle, noise, lines, self._ask_at, self.limit, self.rng)
        if found is not None:
            self.best = found[0]
        return None if found is None else found[1]

    def _follow_hyperplanes(self, n_lines: int = 1) -> None:
        """Tell more hidden layers by lines, where answers have digits for that.

        Outputs that are many have not been asked along any yet.  A search that ends takes more
        lines than one that goes on: a hyperplane of three may end where one shows.
        """
        if self._is_coarse() or self.oracle.dim_out <= self.method.few_outputs:
            return
        if self.n_followed >= n_lines:
            return
        how, sizes = self.method.from_lines, self._sizes()
        known = Sightings(Rows.none(sizes.d, sizes.k))
        for _ in range(n_lines):
            how.look(self._answers, known, self.noise, self.rng)
        self.n_followed = n_lines
        if len(known) and how.crossings.some_end(self._answers, self.noise, known.rows, self.rng):
            self._refuse_smooth()
            raise HyperplanesEndError(known.rows)

    def _is_fine(self) -> bool:
        """Whether answers have digits for gradients, and for the kinks of a line."""
        return self.noise.typical_coarseness <= self.method.fine

    @property
    def _may_be_rounded(self) -> bool:
        """Whether steps of the answers may be those of rounding: a network is looked for first."""
        return self.noise.numbers.grid is not None

    @property
    def _is_stepped(self) -> bool:
        """Whether answers are log-ratios of rounded numbers: their steps look like jumps."""
        return self.noise.link.has_head and self.noise.law == "rounded"

    def _is_coarse(self) -> bool:
        """Whether answers have too few digits for rows along lines."""
        how = self.method
        coarse = how.coarse_log_ratios if self.noise.link.has_head else how.coarse_lines
        return self.noise.typical_coarseness > coarse

    def _explain(self, samples: Samples, start: Network | None) -> None:
        width = self._sizes().width(len(samples.X))
        self.tell(f"fitting up to {width} neurons to {len(samples.X):,} answers")
        sizes = self._sizes()
        self.best = explain(self.rng, self._tempered(samples), self.limit, start, sizes=sizes)
        if self.noise.drawn_anew is not None:
            self.best = refine_as_weighed(self.best, samples)

    def _tempered(self, samples: Samples) -> Samples:
        """Samples whose errors differ less, where they are noise that differs by far."""
        if self.noise.drawn_anew is None:
            return samples if samples.differ else samples.evenly()
        even = self.method.tempered * samples.evenly().sigma
        return replace(samples, sigma=np.hypot(samples.sigma, even))

    def _weighed(self, samples: Samples) -> Samples:
        """All answers alike, but those behind a head, whose errors are known and differ by far."""
        return samples if self.noise.differs_by_answer else samples.evenly()

    def _is_explained(self, samples: Samples) -> bool:
        """Whether what the best network leaves is noise; little more, where more will be asked."""
        limit = self.limit * (self.method.as_served.near if self._is_served else 1.0)
        return Price(limit).is_explained(self._best(), self._weighed(samples))

    def _look_along_a_line(self) -> None:
        """Count the kinks of a line, where answers have digits for that.

        It says how many neurons to look for, and tells smooth functions apart.
        """
        self.n_kinks = 0
        if not self._is_fine() or self._is_stepped:
            return
        self.tell("counting kinks along a line")
        line = self._region.line(self.rng, self.oracle.dim_in)
        nu = float(self.noise.nu.max())
        interval = self._region.interval(line)
        scan = find_kinks(self.oracle, line, nu, self.noise.scale, self.rng, interval)
        if not scan.complete:
            raise _NoPiecesError(ended(scan).why, scan.message)
        self.n_kinks, self.n_single = len(scan.kinks), int(scan.is_single.sum())
        log.info("%d kinks along a line", self.n_kinks)

    def _refuse_steps(self) -> None:
        """End the search where the answers are those of a step function.

        Steps of rounded answers may be a network's: it is looked for first.
        """
        steps = self.method.steps
        if not steps.may_be(self.noise):
            return
        self.tell("looking for jumps")
        if said := steps.evidence(self.oracle, self.noise.numbers.grid, self.rng):
            raise _NoPiecesError(Why.STEPS, said)

    def _refuse_smooth(self) -> None:
        """End the search where the answers are those of a smooth function.

        Its kinks with larger errors are no worse than a network's, and more neurons always explain
        a little more of it.
        """
        self.tell("looking at segments for pieces")
        how = self.method.smoothness
        if how.is_smooth(self.oracle, self.noise, self.oracle.dim_in, self.rng):
            raise _NoPiecesError(
                Why.CURVED,
                "on short segments the answers are those of a smooth function: they bend along "
                "all of each, and nowhere at once",
            )

    def _finish(self, samples: Samples) -> Samples:
        """Steps 4 and 5, for a network that explains its samples; what it is fitted to."""
        if not self._is_explained(samples):
            return samples
        in_coarse_slice = self.subspace is not None and not self._is_fine()
        if in_coarse_slice:
            samples = self._enough(samples)
            self.tell("looking for neurons that noise hides")
            self.best = complete(self.rng, self._best(), samples.evenly())
        notes = self._drop_rest(samples)
        if self.subspace is None:
            samples = self._enough(samples)
            self.best = self._refined(samples)
            if self._is_served:
                samples = self._finish_as_served(samples)
                if self._best().skip is not None:
                    # Neurons that were missing were part of the rest.
                    notes = self._drop_rest(samples)
                    samples = self._finish_as_served(samples)
        else:
            samples = self._in_all_coordinates(self.subspace, samples)
            if not (in_coarse_slice or self._is_explained(samples)):
                self.tell("looking for what lies outside the span")
                self._explain(samples, self._best())
                notes = self._drop_rest(samples)
                self.best = refine(self._best(), samples).network
        self.notes += notes
        return samples

    def _refined(self, samples: Samples) -> Network:
        """The last fit, where errors differ step by step."""
        several = samples.Y.shape[1] > 1 and self.noise.drawn_anew is None
        # What grows with the radius alone is much the same for all but a few.  Of fine answers
        # lines show the neurons, and few of them are left to tell more.
        if several or samples.sigma.ndim == 1 or not self._is_coarse():
            return refine(self._best(), samples).network
        self.tell("weighing each answer by its error")
        return sharpen(self.rng, self._best(), samples)

    def _in_all_coordinates(self, subspace: Subspace, known: Samples) -> Samples:
        """Refit in all coordinates, to fresh queries and what is known of the subspace."""
        d, found = self.oracle.dim_in, self._best()
        if not self.is_span:
            self.tell("measuring the rows of the neurons")
            network, answers = carry_over(self._answered, self.rng, found, subspace)
            # They tell of few patterns of neurons: coarse errors do not average out.
            slopes = answers if self._is_fine() else None
            equations = self.method.slope_equations if slopes else self.method.equations
            n = equations * degrees_of_freedom(network) / self.oracle.dim_out
        else:
            network, equations = subspace.in_all_coordinates(found), self.method.equations
            # An input tells of the neurons that are on there, half of them, whatever else it is
            # asked for.  What is known of the span tells of what lies in it.
            each = min(self.oracle.dim_out, max(found.architecture[1] / 2.0, 1.0))
            slopes = replace(known, X=self.oracle.in_float32(subspace.points(known.X)))
            wanted, inside = degrees_of_freedom(network), degrees_of_freedom(found)
            n = max(equations * wanted / each - len(known.X), equations * (wanted - inside) / each)
        samples = self._answered(self.rng.standard_normal((int(np.ceil(n)), d)))
        samples = samples if slopes is None else slopes.joined(samples)
        self.tell(f"refining {degrees_of_freedom(network):,} parameters")
        self.best, self.subspace = network, None
        self.best = refine(network, samples).network
        log.debug("all coordinates: %.3g", samples.reduced_cost(self.best))
        return samples

    def _enough(self, samples: Samples) -> Samples:
        """Samples enough to average coarse errors."""
        network = self._best()
        k = network.dim_out
        equations = (
            self.method.coarse_equations if k == 1 else self.method.coarse_equations_many_outputs
        )
        wanted = int(np.ceil(equations * degrees_of_freedom(network) / k))
        # Behind a head answers with few digits are among those with many, and say little.
        is_fine = self.noise.typical_coarseness < self.method.coarse
        if (is_fine and not samples.differ) or wanted <= len(samples.X):
            return samples
        return samples.joined(self._ask_where_precise(wanted - len(samples.X)))

    def _finish_as_served(self, samples: Samples) -> Samples:
        """Fit rounded answers behind a head as they are served, and what they lack."""

        def served() -> Served:
            if self.served is None:  # pragma: no cover - a network was fitted to some
                raise AssertionError
            return self.served

        def asked(X: FloatArray) -> Samples:
            # An answer that is saturated is served, too, and says as much.
            return self._ask_at(X, 0.0)

        self.tell("fitting answers as they are served")
        self.best, samples = self.method.as_served.finished(
            self._best(), samples, served, asked, self._region, self.limit, self.rng
        )
        return samples

    def _ask_where_precise(self, n: int) -> Samples:
        """Gaussian queries whose answers round least, as the network foretells them.

        A grid of significant digits is finer by ten where an answer is smaller by ten.
        """
        if self.noise.grid is None or self._sizes().k > 1:
            return self._ask(n)
        X = self._region.points(self.rng, self.method.n_foretold * n, self.oracle.dim_in)
        order = np.argsort(self.noise.sigma(self._best()(X))[:, 0], kind="stable")
        return self._answered(X[order[:n]])

    def _drop_rest(self, samples: Samples) -> list[str]:
        """Turn neurons round until no affine rest is left, if the samples agree."""
        best, even = self._best(), samples.evenly()
        # What noise leaves of the rest is less where answers are precise, and the fewer choices
        # of signs leave as little by chance.
        precise = self.method.rest_errors * self.noise.coarseness
        for rtol in (min(precise, self.method.rest_rtol), self.method.rest_rtol):
            network, notes = resolve_signs(best, rtol, self.method.sign_rounding, 1.0)
            if network.skip is None:
                break
        if notes or network.skip is not None:
            return notes
        plain = refine(network, even).network
        if even.reduced_cost(plain) > max(
            self.limit, self.method.rest_cost * even.reduced_cost(best)
        ):
            return ["the affine skip is kept: without it the answers do not fit"]
        self.best = plain
        return []

    def _resolution(self) -> str:
        """What these answers cannot show."""
        sigma = float((self.noise.nu * self.noise.scale).max()) * np.sqrt(2.0)
        return (
            f"the answers are {self.noise.kind}, with errors of about {sigma:.1g}: any neuron that "
            f"contributes less than {self.limit * sigma:.1g} (root mean square over inputs "
            f"{self._where}) would be missing"
        )

    def _best(self) -> Network:
        if self.best is None:  # pragma: no cover - a search always leaves one
            raise AssertionError
        return self.best

    def _network(self) -> Network:
        best = self._best()
        return best if self.subspace is None else self.subspace.in_all_coordinates(best)
