"""A network from the critical points of lines: rows, one joint fit, and what it leaves.

1. Measure rows on lines, until a line shows hardly a new one.  What later lines say of known rows
   makes these exact (:mod:`revelu.recover.fit.sightings`).
2. Ask Gaussian queries, somewhat more than there are unknowns, and fit all weights at once.  The
   rows err by some thousandths, a few are sums of two neurons', and a few neurons are missing: a
   fit by whole Gauss-Newton steps forgives all that.
3. Where it leaves more than noise, find the neurons that are missing
   (:mod:`revelu.recover.fit.row_fits`); then measure another line.
4. Take out the neurons that are not needed, ask where the answers determine the network least,
   and look at fresh inputs, until these agree.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from revelu.network import Network
from revelu.network.derivative import NetworkDerivative, ParameterArrays
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.design import Foretold
from revelu.numerics.interruption import WorkEndedError, at_most
from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask, Line
from revelu.probe.region import Everywhere, Region
from revelu.recover.fit.crossings import Crossings
from revelu.recover.fit.line_rows import LineRows
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import prune
from revelu.recover.fit.row_fits import RowFits, least, network_of
from revelu.recover.fit.sightings import MeasuredKinks, Sightings
from revelu.recover.fit.sizes import Sizes
from revelu.recover.fit.where_wrong import WhereWrong, are_wrong, fitted_to_most
from revelu.recover.refine.network_fit import (
    NetworkFit,
    Samples,
    degrees_of_freedom,
)
from revelu.recover.rows import Rows
from revelu.types import FloatArray

log = logging.getLogger(__name__)


class HyperplanesEndError(Exception):
    """Hyperplanes of critical points end: there is more than one hidden layer.

    Attributes
    ----------
    rows : Rows
        What lines have shown of all layers.
    """

    def __init__(self, rows: Rows) -> None:
        super().__init__("hyperplanes end: there is more than one hidden layer")
        self.rows = rows


class WorkEndsError(Exception):
    """Fits have taken as long as they may, and have not explained what was asked.

    Attributes
    ----------
    network : Network
        What leaves least,
    samples : Samples
        of these.
    """

    def __init__(self, network: Network, samples: Samples) -> None:
        n, width = len(samples.X), network.architecture[1]
        super().__init__(
            f"fits to what lines show took as long as they may: {width} neurons leave "
            f"{samples.reduced_cost(network):.2g} times the errors of {n:,} answers"
        )
        self.network, self.samples = network, samples


class NoRowsError(Exception):
    """The pieces of a line are too short, or too few, to measure rows of hyperplanes."""


@dataclass(frozen=True)
class _Trial:
    """What a fit is tried with: neurons beside the rows, and equations a parameter."""

    n_spare: int
    equations: float


@dataclass(frozen=True)
class FromLines:
    """How a network is found from the critical points of lines."""

    rows: LineRows = field(default_factory=lambda: LineRows(wide=1.5, worst=0.04, borrowed=0.007))
    """How rows are measured: those of large errors claim other neurons' kinks, and are measured
    again on another line."""
    max_lines: int = 7
    explained: float = 1.0
    """Rows of the first line are fitted where, held, they leave no more than this many times what
    their errors explain."""
    new: float = 0.1
    """A line that adds no more than this share of the rows, or two, ends the first lines, and so
    does one after which no more neurons are unseen than are fitted beside the rows."""
    many_new: float = 0.3
    few_new: int = 3
    """One that adds more than this share of the rows, and than ``few_new``, asks for more layers:
    hyperplanes are followed."""
    met: float = 0.1
    """Where these do not end, but known rows make less than this share of its kinks, rows are those
    of no hyperplanes, for a line crosses most of them: the target is curved."""
    equations: float = 1.3
    several_equations: float = 1.8
    """Equations a parameter of the joint fit, of one output or two and of several, where they take
    few queries and spare many iterations.  Neurons beside the rows take as many equations as
    several outputs do."""
    last_equations: float = 1.5
    """Equations a parameter of the last fit.  From ``n`` of random inputs it errs at fresh ones by
    about ``sqrt(p / (n - p))`` errors of an answer: 1.8 from 1.3, and 1.4 from 1.5."""
    n_sided: int = 8
    """Answers on either side of each hyperplane: of fewer the fit may do without its neuron."""
    n_spare: int = 4
    spare: float = 0.14
    """Neurons that are fitted to what rows leave unexplained, or this share of the rows,"""
    last_spare: int = 8
    """but no more than ``last_spare`` where lines have shown all but a few."""
    fits: RowFits = field(default_factory=RowFits)
    """How all are fitted."""
    most_foretold: float = 1e10
    most_disagreeing: float = 8e10
    """Multiplications that foretelling errors may take, and where fresh answers disagree."""
    undetermined: float = 3.0
    """An answer that is foretold to err by more than this many of its own errors is asked."""
    few: float = 0.01
    """Where these are no more than this share of those looked at, what tells them is the last."""
    n_foretold: int = 1000
    """Answers to Gaussian inputs that are looked at for such,"""
    n_beside: int = 2
    """and inputs on either side of each hyperplane, besides those that are lacking there."""
    beside: float = 0.5
    """How far from it, in standard deviations of the inputs."""
    max_checks: int = 5
    """Rounds of fresh answers."""
    crossings: Crossings = field(default_factory=Crossings)
    """How hyperplanes are followed there, and where the first fit leaves too much."""
    where_wrong: WhereWrong = field(default_factory=WhereWrong)
    """How neurons are found that no line shows."""
    region: Region = field(default_factory=Everywhere)
    """Where the answers of fits are asked."""

    def within(self, region: Region) -> Self:
        """The same where every question is asked in a region."""
        rows, crossings = replace(self.rows, region=region), replace(self.crossings, region=region)
        return replace(self, rows=rows, crossings=crossings, region=region)

    def of_faint_kinks(self) -> Self:
        """The same where jumps differ by a million times.

        Pairs of answers go on past faint kinks, so that all pieces are looked at inside.
        """
        return replace(self, rows=replace(self.rows, wide=0.0, shortest=self.rows.longest))

    def find(
        self,
        ask: Ask,
        sample: Callable[[FloatArray], Samples],
        sizes: Sizes,
        noise: NoiseFloor,
        limit: float,
        rng: np.random.Generator,
    ) -> tuple[Network, Samples] | None:
        """Find a network that explains what is asked.

        Parameters
        ----------
        ask : callable, (n, d) -> (n, k)
            For lines.
        sample : callable
            The same with errors, for fits.
        limit : float
            The reduced cost that noise alone may leave.

        Returns
        -------
        (network, samples) or None
            With an affine rest, and what it explains; None where some neurons are not seen.

        Raises
        ------
        NoRowsError
            If the first line shows none, or a later one meets none of those.
        HyperplanesEndError
            If there is more than one hidden layer.
        WorkEndsError
            If fits take too long.
        LimitReachedError
            If queries or seconds run out.
        SaturatedError
            If the target is saturated.
        """
        known = Sightings(Rows.none(sizes.d, sizes.k))
        samples: Samples | None = None
        is_checked, n_first, n_fitted, best, spent = False, 0, 0, None, 0.0
        price = Price(limit, known=True)
        for turn in range(self.max_lines):
            n_known, n_met = len(known), int(known.n_met.sum())
            seen = self.look(ask, known, noise, rng)
            if seen is None or not len(known):
                raise NoRowsError
            n_new, met = seen
            n_met = int(known.n_met.sum()) - n_met
            n_first = n_first or len(known)
            first = known.rows.take(np.arange(n_first))
            log.debug("line %d: %d rows, %d of them new", turn, len(known), n_new)
            if n_known and n_new > max(self.few_new, self.many_new * n_known):
                is_checked = is_checked or self.check_layers(ask, noise, first, rng)
                if met < self.met:
                    # Those of the first line may be few, and of an upper layer.
                    self.check_layers(ask, noise, known.rows, rng)
                    raise NoRowsError
            rows = known.confirmed()
            if samples is None:
                samples = sample(self.region.points(rng, self._n_held(rows, sizes), sizes.d))
                trials = self._first_trials(rows, samples, sizes)
            elif len(rows) == n_fitted and not self.fits.is_dense(sizes.n_parameters(len(rows))):
                # What one fit of these rows left another leaves, too, and takes long.
                trials = []
            else:
                trials = self._trials(len(rows), n_known, n_new, n_met, sizes)
            held: NetworkFit | None = None
            for trial in trials:
                if trial.n_spare:
                    n_fitted = len(rows)
                    # Neurons beside the rows take queries, which another layer makes vain.
                    is_checked = is_checked or self.check_layers(ask, noise, first, rng)
                wanted = self._lacking(rows, trial, samples.X, sizes, rng)
                samples = samples.joined(sample(wanted)) if len(wanted) else samples
                most = self.fits.most_multiplications(sizes.n_parameters(len(rows)), samples)
                try:
                    with at_most(most - spent) as work:
                        found = self.fits.find(rows, samples, trial.n_spare, limit, rng, best)
                        held = held or found
                        best = least(samples, found, best)
                        log.debug("%s: %d answers, cost %.3g", trial, len(samples.X), found.cost)
                        if self.fits.is_near(found, samples, limit):
                            settled, samples = self._settled(found, samples, sample, price, rng)
                            if settled is not None:
                                log.debug("fits took %.2g multiplications", spent + work.spent)
                                return settled, samples
                except WorkEndedError:
                    self.check_layers(ask, noise, known.rows, rng)
                    if best is None:
                        return None
                    raise WorkEndsError(best.network, samples) from None
                spent += work.spent
            if held and n_known and not n_new:
                settled, samples = self._completed(held, samples, sample, price, rng)
                if settled is not None:
                    return settled, samples
        # Lines that nothing explains show rows of all layers: where the first line's seemed to go
        # on, a few of many may have.
        self.check_layers(ask, noise, known.rows, rng)
        return None

    def _first_trials(self, rows: Rows, samples: Samples, sizes: Sizes) -> list[_Trial]:
        """What to try after the first line: a fit of its rows where none seems to be missing.

        Rows that are held leave what their errors explain, or far more where neurons are missing:
        a neuron of slope ``s`` whose row errs by ``e`` is off by ``e s`` where it is on, at one
        input of two.
        """
        network, k = network_of(rows, samples), samples.Y.shape[1]
        n, n_features = len(samples.X), len(rows) + sizes.d + 1
        if n <= n_features:
            # Saturated answers are left out, and fewer than these leave nothing of any rows.
            return []
        even = samples.evenly()
        left = (even if samples.differ else samples).cost(network) * np.sqrt(n / (n - n_features))
        slopes = np.linalg.norm(rows.W, axis=1)[:, None] * rows.A
        # Where errors differ, the least of these is that of half of the answers.
        errors = rows.errors[:, None] * slopes / np.atleast_2d(even.sigma).min(axis=0)
        explained = np.sqrt((errors**2).sum() / (2.0 * k))
        log.debug("held rows leave %.3g, their errors %.3g", left, explained)
        is_complete = left <= self.explained * explained
        return [_Trial(0, self._few(sizes))] if is_complete else []

    def _trials(
        self, n_rows: int, n_known: int, n_new: int, n_met: int, sizes: Sizes
    ) -> list[_Trial]:
        """What to try after a line that has met known rows and shown new ones.

        A line that meets ``n_met`` of ``n_known`` neurons sees that share of all of them, so that
        about ``n_new (n_known / n_met - 1)`` are unseen still (Lincoln 1930, Petersen 1896).
        """
        n_spare, few = max(self.n_spare, int(self.spare * n_rows)), self._few(sizes)
        n_unseen = n_new * (n_known / max(n_met, 1) - 1.0)
        is_dense, new = self.fits.is_dense(sizes.n_parameters(n_rows + n_spare)), self.new
        if sizes.k >= sizes.several and not is_dense:
            # Rows of several outputs take few queries, and fits of many parameters long: another
            # line, until one shows hardly a row.
            n_spare, new = min(n_spare, self.last_spare), 0.0
        spares = sorted({few, self.several_equations}) if is_dense else [self.several_equations]
        if n_new > max(2.0, new * n_known) and not (is_dense and n_unseen <= n_spare):
            return [_Trial(0, few)] if n_unseen < 1.0 else []
        return [_Trial(0, few), *(_Trial(n_spare, each) for each in spares)]

    def check_layers(
        self, ask: Ask, noise: NoiseFloor, rows: Rows, rng: np.random.Generator
    ) -> bool:
        """Make sure that hyperplanes do not end."""
        if self.crossings.some_end(ask, noise, rows, rng):
            raise HyperplanesEndError(rows)
        return True

    def look(
        self,
        ask: Ask,
        known: Sightings,
        noise: NoiseFloor,
        rng: np.random.Generator,
        line: Line | None = None,
    ) -> tuple[int, float] | None:
        """Take in a line; how many rows are new, and what share of its kinks known ones make."""
        scan = self.rows.scan(ask, known.rows.W.shape[1], noise, rng, line)
        if scan is None:
            return None
        kinks = MeasuredKinks.of(scan, noise)
        made_by, tells = known.makers(kinks)
        more = self.rows.measure(ask, scan, known.rows, made_by, noise, rng)
        known.take(kinks, made_by, tells)
        known.join(more, kinks)
        return len(more), float((made_by >= 0).mean()) if len(made_by) else 1.0

    def _few(self, sizes: Sizes) -> float:
        """Equations a parameter that serve rows without neurons beside them."""
        return self.equations if sizes.k < sizes.several else self.several_equations

    def _n_held(self, rows: Rows, sizes: Sizes) -> int:
        """How many answers determine the output layer above rows."""
        return int(np.ceil(self.equations * (len(rows) + sizes.d + 1)))

    def _n_samples(self, width: int, equations: float, sizes: Sizes) -> int:
        d, k = sizes.d, sizes.k
        return int(np.ceil(equations * ((width + 1) * (d + k) + k * (d + 1)) / k))

    def _lacking(
        self, rows: Rows, trial: _Trial, X: FloatArray, sizes: Sizes, rng: np.random.Generator
    ) -> FloatArray:
        """Inputs that a trial asks beside ``X``, some on either side of each hyperplane."""
        n = self._n_samples(len(rows) + trial.n_spare, trial.equations, sizes)
        more = self.region.points(rng, max(n - len(X), 0), sizes.d)
        asked = np.vstack([X, more])
        return np.vstack([more, self._beside(rows.W, rows.b, asked, self.n_sided, rng)])

    def _settled(
        self,
        found: NetworkFit,
        samples: Samples,
        sample: Callable[[FloatArray], Samples],
        price: Price,
        rng: np.random.Generator,
    ) -> tuple[Network | None, Samples]:
        """Take out what is not needed, and ask until fresh answers agree; and what was asked."""
        d = samples.X.shape[1]
        for _ in range(self.max_checks):
            found = prune(found, samples, price)
            network = found.network
            if not price.is_explained(network, samples):
                return None, samples
            n_last = self.last_equations * degrees_of_freedom(network) / network.dim_out
            n_lacking = int(np.ceil(n_last)) - len(samples.X)
            n_fresh = max(Sizes(d, 1).n_held_out(len(samples.X)), n_lacking)
            fresh = sample(self.region.points(rng, n_fresh, d))
            agrees = np.abs(fresh.residual(network)).max() <= price.noise * SIGMAS
            n_weak, weak = self._weak_inputs(
                network, samples, self.most_foretold if agrees else self.most_disagreeing, rng
            )
            samples = samples.joined(fresh)
            log.debug("%s: %d inputs undetermined, fresh ones agree: %s", network, n_weak, agrees)
            if agrees and not len(weak):
                return network, samples
            if len(weak):
                samples = samples.joined(sample(weak))
            found = self.fits.by_full_steps(network, samples)
            # A few such inputs are asked; after that, fewer still are.
            if agrees and n_weak <= self.few * self.n_foretold / network.dim_out:
                break
        # More answers tell neurons that chance explains, which few could not.
        found = prune(found, samples, price)
        # Where fresh answers still disagree, the certificate says so, and more are fitted.
        is_explained = price.is_explained(found.network, samples)
        return (found.network if is_explained else None), samples

    def _completed(
        self,
        held: NetworkFit,
        samples: Samples,
        sample: Callable[[FloatArray], Samples],
        price: Price,
        rng: np.random.Generator,
    ) -> tuple[Network | None, Samples]:
        """Join what no line shows to rows that explain most answers; and what was asked.

        A faint neuron that few inputs turn on, or off, is seen where those rows are wrong.
        """
        most = self.fits.most_multiplications(held.network.n_parameters, samples)
        with suppress(WorkEndedError), at_most(most):
            network = fitted_to_most(held.network, samples, price.noise)
            wrong = are_wrong(network, samples, price.noise)
            if 2 * wrong.sum() < len(wrong):
                args = samples.X[wrong], sample, price.noise, rng
                network, samples = self.where_wrong.completed(network, samples, *args)
                found = NetworkFit(network, samples.cost(network))
                return self._settled(found, samples, sample, price, rng)
        return None, samples

    def _weak_inputs(
        self,
        network: Network,
        samples: Samples,
        most: float,
        rng: np.random.Generator,
        others: Sequence[FloatArray] = (),
    ) -> tuple[int, FloatArray]:
        """How many answers are undetermined, and inputs that tell them; of ``others``, too."""
        X, foretold = self.foretell(network, samples, most, rng, others)
        chosen = foretold.telling(self.undetermined, network.n_parameters)
        return foretold.n_open(self.undetermined), X[chosen]

    def foretell(
        self,
        network: Network,
        samples: Samples,
        most: float,
        rng: np.random.Generator,
        others: Sequence[FloatArray] = (),
    ) -> tuple[FloatArray, Foretold]:
        """Foretell how a network errs at inputs of the region and beside its hyperplanes.

        Parameters
        ----------
        most : float
            Multiplications that it may take.
        others : sequence of ndarray, shape (n, d)
            Inputs that are looked at, too.

        Returns
        -------
        X : ndarray, shape (n, d)
        foretold : Foretold
            Of none where it would take more.
        """
        (d, k), p = (network.dim_in, network.dim_out), network.n_parameters
        if samples.n_equations * p**2 > most or not len(network.weights[0]):
            return np.empty((0, d)), Foretold(np.empty((0, k, p)))
        # However many outputs there are, an input says one thing about a row and its bias, for
        # all outputs change with the neuron's value alone.
        W, b, wanted = network.weights[0], network.biases[0], int(np.ceil(self.equations * (d + 1)))
        drawn = self.region.points(rng, self.n_foretold // network.dim_out, d)
        beside = self._beside(W, b, samples.X, wanted, rng, self.n_beside)
        pool = np.vstack([drawn, beside, *others])
        at = ParameterArrays.of(network)
        sigma = samples.evenly().sigma if samples.errors_of is None else samples.sigma
        normal = NetworkDerivative(at, samples.X, 1.0 / sigma).normal()
        if samples.errors_of is not None:
            sigma = samples.errors_of(network(pool))
        return pool, Foretold.of(normal, NetworkDerivative(at, pool, 1.0 / sigma).matrix(), k)

    def _beside(
        self,
        W: FloatArray,
        b: FloatArray,
        X: FloatArray,
        wanted: int,
        rng: np.random.Generator,
        n_more: int = 0,
    ) -> FloatArray:
        """Inputs beside hyperplanes: what ``X`` lacks of ``wanted`` on either side, and more.

        Of a hyperplane that is far away few Gaussian inputs lie beyond.
        """
        found, Z = [np.empty((0, W.shape[1]))], X @ W.T + b
        for side in (-1.0, 1.0):
            lacking = np.maximum(wanted - (side * Z > 0.0).sum(axis=0), 0)
            which = np.repeat(np.arange(len(W)), lacking + n_more)
            at, normals = self.region.points_on_hyperplanes(rng, W[which], b[which])
            found.append(self.region.clip(at + side * self.beside * normals))
        return np.vstack(found)
