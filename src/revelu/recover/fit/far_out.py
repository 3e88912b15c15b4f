"""Networks that answers show farther out, where their errors do not grow as they do.

Rounding to a step errs by half of it at most, however large an answer is.  A network of one hidden
layer grows as its inputs do: answers ``R`` times as far from the middle have ``log10(R)`` digits
more, and hyperplanes that all but coincide in the middle lie ``R`` times as far apart.

1. Measure the noise of ``f(R z)``: what computes in few digits errs by a share of its answers, and
   is asked no further.
2. Measure rows on lines there.  A row that errs by ``e`` is off by ``e R`` where it crosses a line,
   so that its bias is not known yet.
3. Fit all weights to answers nearer by, and at last in the middle.  Half of these are asked on the
   hyperplanes: between two that are all but parallel, where few other inputs lie, one neuron is on
   and the other off, and nothing else tells their rows and biases apart.
4. Take out the neurons that are not needed.
"""

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from revelu.errors import TargetError
from revelu.network import Network
from revelu.numerics.interruption import WorkEndedError, at_most
from revelu.oracle import NoiseFloor, Oracle, measure_noise
from revelu.recover.fit.from_lines import FromLines
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import prune
from revelu.recover.fit.row_fits import network_of
from revelu.recover.fit.search import complete
from revelu.recover.fit.sightings import Sightings
from revelu.recover.fit.sizes import Sizes
from revelu.recover.refine.network_fit import NetworkFit, Samples
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
    nearer, stretch : float
        How many times nearer the first fit asks: there rows' errors move kinks by less than
        hyperplanes are apart.  The next one asks ``stretch`` times as far as the middle, as
        certificates do.
    equations : float
        Answers for each parameter, of each fit, at Gaussian inputs and on hyperplanes each.
    most_work : float
        Multiplications of all fits: a minute's.
    """

    finest: float = 5e-14
    nearer: float = 1e3
    stretch: float = 30.0
    equations: float = 1.2
    most_work: float = 1e12

    def find(
        self,
        oracle: Oracle,
        noise: NoiseFloor,
        lines: FromLines,
        ask: Callable[[FloatArray], Samples],
        limit: float,
        rng: np.random.Generator,
    ) -> tuple[Network, Samples] | None:
        """Find a network that explains what is asked; None where answers are no finer far out.

        Parameters
        ----------
        noise : NoiseFloor
            In the middle.
        limit : float
            The reduced cost that noise alone may leave.
        """
        reach, rest = noise.typical_coarseness / self.finest, sys.maxsize
        asked = Oracle(lambda Z: oracle(reach * Z), oracle.dim_in, batch_rows=rest, link="none")
        try:
            found = measure_noise(asked, int(rng.integers(2**32)))
            log.debug("%s at %.3g, coarse by %.3g", found.law, reach, found.typical_coarseness)
            # What is no network grows less, or errs by more: half of the digits are to be there.
            finer = np.sqrt(self.finest * noise.typical_coarseness)
            if not found.is_deterministic or found.typical_coarseness > finer:
                return None
            rows = self._rows(asked, found, lines, rng)
        except TargetError as error:
            log.debug("no answers so far out: %s", error)
            return None
        if not len(rows):
            return None
        rows = replace(rows, W=rows.W / reach, X=reach * rows.X)
        return self._fitted(rows, reach, lines, ask, limit, rng)

    def _rows(
        self, asked: Oracle, noise: NoiseFloor, lines: FromLines, rng: np.random.Generator
    ) -> Rows:
        """Step 2: rows, until each has been met again and a line shows no new one."""
        known = Sightings(Rows.none(asked.dim_in, asked.dim_out))
        for _ in range(lines.max_lines):
            seen = lines.look(asked, known, noise, rng)
            if seen is None or (not seen[0] and known.n_met.all()):
                break
        # Two kinks that look like one make a row that no other line meets.
        log.debug("%d rows, %d of them met again", len(known), int((known.n_met > 0).sum()))
        return known.rows.take(known.n_met > 0)

    def _fitted(
        self,
        rows: Rows,
        reach: float,
        lines: FromLines,
        ask: Callable[[FloatArray], Samples],
        limit: float,
        rng: np.random.Generator,
    ) -> tuple[Network, Samples] | None:
        """Steps 3 and 4; None where the fits do not explain answers."""
        price, (d, k) = Price(limit, known=True), (rows.W.shape[1], rows.A.shape[1])

        def asked(scale: float, W: FloatArray, b: FloatArray) -> Samples:
            each = int(np.ceil(self.equations * (d + 1 + k) / k))
            n = int(np.ceil(self.equations * Sizes(d, k).n_parameters(len(W)) / k))
            on = lines.region.points_on_hyperplanes(rng, W.repeat(each, 0), b.repeat(each) / scale)
            return ask(scale * np.vstack([lines.region.points(rng, n, d), on[0]]))

        def fitted(network: Network, samples: Samples) -> NetworkFit:
            found = lines.fits.by_full_steps(network, samples)
            log.debug("%s leaves %.3g", found.network, found.cost)
            if lines.fits.is_near(found, samples, limit):
                return found
            return lines.fits.completed(found.network, samples, limit, rng)

        try:
            with at_most(self.most_work):
                samples = asked(max(reach / self.nearer, self.stretch), rows.W, rows.b)
                found = fitted(network_of(rows, samples), samples)
                for scale in (self.stretch, 1.0):
                    # Nearer by, what lies farthest out tells nothing more.
                    n, more = len(samples.X), asked(scale, *found.network.hyperplanes())
                    samples = samples.take(np.arange(max(n - len(more.X), 0), n)).joined(more)
                    found = fitted(found.network, samples)
                if not price.is_explained(found.network, samples):
                    network = complete(rng, found.network, samples, limit)
                    found = NetworkFit(network, samples.cost(network))
                network = prune(found, samples, price).network
        except WorkEndedError:
            return None
        return (network, samples) if price.is_explained(network, samples) else None
