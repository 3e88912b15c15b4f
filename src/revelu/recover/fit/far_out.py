"""Networks that their answers show farther out, where errors do not grow as answers do.

Rounding to a step errs by half of it at most, however large an answer is.  A network of one hidden
layer grows as its inputs do: answers ``R`` times as far from the middle have ``log10(R)`` digits
more, and hyperplanes that all but coincide in the middle lie ``R`` times as far apart.

1. Measure the noise of ``f(R z)``: what computes in few digits errs by a share of its answers, and
   is asked no further.
2. Measure rows on lines there, until a line shows no new one.  A row that errs by ``e`` is off by
   ``e R`` where it crosses a line, so that its bias is not known yet.
3. Fit all weights to answers nearer by, and at last in the middle.  Half of the answers are asked
   on the hyperplanes: between two that are all but parallel, of which few others lie, one neuron is
   on and the other off, and nothing else tells their rows and biases apart.
4. Take out the neurons that are not needed.
"""

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.errors import SaturatedError, TargetError
from revelu.network import Network
from revelu.numerics.gauss_newton import Damping, Stop
from revelu.numerics.interruption import WorkEndedError, at_most
from revelu.oracle import NoiseFloor, Oracle, measure_noise
from revelu.recover.fit.from_lines import FromLines
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import prune
from revelu.recover.fit.row_fits import network_of
from revelu.recover.fit.search import complete
from revelu.recover.fit.sightings import Sightings
from revelu.recover.fit.sizes import Sizes
from revelu.recover.refine.network_fit import NetworkFit, Samples, fit
from revelu.recover.rows import Rows
from revelu.types import FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FarOut:
    """How a network is found from answers far from the middle.

    Attributes
    ----------
    finest : float
        Error of an answer over its variation where lines are asked: some hundred roundings of
        float64, whose own errors, of sums over neurons, are not to show.
    gain : float
        The most times this that it may be: what is no network grows less, or errs by more.
    max_lines : int
        Lines that rows are measured on.
    nearer : float
        How many times nearer the first fit asks, where rows' errors move kinks by less than
        hyperplanes are apart,
    stretch : float
        and how many times farther than the middle the next one: certificates ask there, too.
    equations : float
        Answers for each parameter, of each fit, at Gaussian inputs and on hyperplanes each.
    stop : Stop
        What ends damped steps, where whole ones leave more than errors.
    most_work : float
        Multiplications of all fits: a minute's.
    """

    finest: float = 5e-14
    gain: float = 30.0
    max_lines: int = 4
    nearer: float = 1e3
    stretch: float = 30.0
    equations: float = 1.2
    stop: Stop = field(default_factory=lambda: Stop(60, rtol=1e-2, patience=6))
    most_work: float = 1e12

    def look(
        self, oracle: Oracle, noise: NoiseFloor, lines: FromLines, rng: np.random.Generator
    ) -> tuple[Rows, float] | None:
        """Measure rows on lines far out; None where answers are no finer, or show none.

        Parameters
        ----------
        noise : NoiseFloor
            In the middle.
        lines : FromLines
            How rows are measured.

        Returns
        -------
        (rows, reach) or None
            In the middle's coordinates, and how many times as far out.

        Raises
        ------
        LimitReachedError
            If queries or seconds run out.
        """
        reach = noise.typical_coarseness / self.finest
        size = sys.maxsize
        asked = Oracle(lambda Z: oracle(reach * Z), oracle.dim_in, batch_rows=size, link="none")
        try:
            found = measure_noise(asked, int(rng.integers(2**32)))
            log.debug("%s at %.3g, coarse by %.3g", found.law, reach, found.typical_coarseness)
            if found.typical_coarseness > self.gain * self.finest or not found.is_deterministic:
                return None
            known = Sightings(Rows.none(oracle.dim_in, oracle.dim_out))
            for _ in range(self.max_lines):
                seen = lines.look(asked, known, found, rng)
                if seen is None or (not seen[0] and known.n_met.all()):
                    break
        except (TargetError, SaturatedError):
            # It answers no such inputs, or not by such numbers.
            return None
        # Two kinks that look like one make a row that no other line meets.
        rows = known.rows.take(known.n_met > 0)
        log.debug("%d rows, %d of them met again", len(known), len(rows))
        rows = replace(rows, W=rows.W / reach, X=reach * rows.X)
        return (rows, reach) if len(rows) else None

    def find(
        self,
        rows: Rows,
        reach: float,
        lines: FromLines,
        sizes: Sizes,
        ask: Callable[[FloatArray], Samples],
        limit: float,
        rng: np.random.Generator,
    ) -> tuple[Network, Samples] | None:
        """Fit all weights, nearer by step by step; None where the fits explain nothing.

        Parameters
        ----------
        rows : Rows
            Measured far out,
        reach : float
            so many times as far as the middle.
        ask : callable, (n, d) -> Samples
        limit : float
            The reduced cost that noise alone may leave.

        Returns
        -------
        (network, samples) or None
            With an affine rest, and what it explains.

        Raises
        ------
        LimitReachedError
            If queries or seconds run out.
        """
        price, far = Price(limit, known=True), max(reach / self.nearer, self.stretch)

        def asked(scale: float, W: FloatArray, b: FloatArray) -> Samples:
            return ask(scale * self._points(W, b / scale, lines, sizes, rng))

        try:
            with at_most(self.most_work):
                samples = asked(far, rows.W, rows.b)
                found = self._fitted(network_of(rows, samples), samples, lines, limit, rng)
                for scale in (self.stretch, 1.0):
                    log.debug("%s leaves %.3g", found.network, found.cost)
                    hidden = found.network.hyperplanes()
                    # Nearer by, what lies farthest out tells nothing more.
                    n, more = len(samples.X), asked(scale, *hidden)
                    samples = samples.take(np.arange(max(n - len(more.X), 0), n)).joined(more)
                    found = self._fitted(found.network, samples, lines, limit, rng)
                if not price.is_explained(found.network, samples):
                    network = complete(rng, found.network, samples, limit)
                    found = NetworkFit(network, samples.cost(network))
                found = prune(found, samples, price)
        except WorkEndedError:
            return None
        log.debug("pruned: %s leaves %.3g", found.network, found.cost)
        return (found.network, samples) if price.is_explained(found.network, samples) else None

    def _points(
        self,
        W: FloatArray,
        b: FloatArray,
        lines: FromLines,
        sizes: Sizes,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Gaussian inputs, and as many on hyperplanes, shape (n, d)."""
        n = int(np.ceil(self.equations * sizes.n_parameters(len(W)) / sizes.k))
        each = int(np.ceil(self.equations * (sizes.d + 1 + sizes.k) / sizes.k))
        W, b = W.repeat(each, axis=0), b.repeat(each)
        on = lines.region.points_on_hyperplanes(rng, W, b)[0]
        return np.vstack([lines.region.points(rng, n, sizes.d), on])

    def _fitted(
        self,
        network: Network,
        samples: Samples,
        lines: FromLines,
        limit: float,
        rng: np.random.Generator,
    ) -> NetworkFit:
        """Fit by whole steps, by damped ones where these fail, and with more neurons then."""
        fits = lines.fits
        found = fits.by_full_steps(network, samples)
        if not fits.is_near(found, samples, limit):
            stop = replace(self.stop, goal=limit)
            found = fit(found.network, samples, stop, damping=Damping(1e-6))
        if not fits.is_near(found, samples, limit):
            found = fits.completed(found.network, samples, limit, rng)
        return found
