"""Networks that answers show farther out, where their errors do not grow as they do.

Rounding to a step errs by half of it at most, however large an answer is.  A network of one hidden
layer grows as its inputs do: answers ``R`` times as far from the middle have ``log10(R)`` digits
more, and hyperplanes that all but coincide in the middle lie ``R`` times as far apart.

1. Look how far out the target answers, and grows as a network does.  Measure the noise of
   ``f(R z)`` there: what computes in few digits errs by a share of its answers.
2. Measure rows on lines there.  A row that errs by ``e`` tells its bias to ``e R``.
3. Fit all weights to answers nearer by, and at last in the middle, half of them on hyperplanes:
   between two that are all but parallel one neuron is on and the other off, and nothing else tells
   their rows and biases apart.
4. Take out the neurons that are not needed.
"""

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from revelu.errors import TargetError
from revelu.network import Network
from revelu.numerics.interruption import WorkEndedError, at_most
from revelu.oracle import NoiseFloor, Oracle, measure_noise
from revelu.probe.reach import answered_region
from revelu.probe.region import Cube
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
    """How a network is found from answers far from the middle."""

    finest: float = 5e-14
    """Error of an answer over its variation where lines are asked: some hundred roundings of
    float64, whose own errors are not to show."""
    nearer: float = 1e3
    stretch: float = 30.0
    """The first fit asks ``nearer`` times nearer, where rows' errors move kinks by less than
    hyperplanes are apart, the next one ``stretch`` times as far as the middle: certificates do.
    What does not answer so far out is asked ``stretch`` times nearer."""
    equations: float = 1.2
    """Answers for each parameter, of each fit, at Gaussian inputs and on hyperplanes each."""
    most_work: float = 1e12
    """Multiplications of all fits."""

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
        finest = noise.typical_coarseness / self.finest
        # Lines go on to where an answer tells no place of a kink.
        reach, region = answered_region(oracle, finest, self.finest**-0.5, self.stretch, rng)
        rows = self._rows(oracle, noise, reach, lines.of_faint_kinks().within(region), rng)
        if not len(rows):
            return None
        stretch = min(self.stretch, reach / 3)  # Gaussian inputs go on to five, a cube to 3^(1/2)
        price, (d, k) = Price(limit, known=True), (rows.W.shape[1], rows.A.shape[1])

        def asked(scale: float, W: FloatArray, b: FloatArray) -> Samples:
            each = int(np.ceil(self.equations * (d + 1 + k) / k))
            n = int(np.ceil(self.equations * Sizes(d, k).n_parameters(len(W)) / k))
            on = lines.region.points_on_hyperplanes(rng, W.repeat(each, 0), b.repeat(each) / scale)
            return ask(scale * np.vstack([lines.region.points(rng, n, d), on[0]]))

        def fitted(network: Network, samples: Samples) -> NetworkFit:
            found = lines.fits.by_full_steps(network, samples)
            if lines.fits.is_near(found, samples, limit):
                return found
            return lines.fits.completed(found.network, samples, limit, rng)

        try:
            with at_most(self.most_work):
                samples = asked(max(reach / self.nearer, stretch), rows.W, rows.b)
                found = fitted(network_of(rows, samples), samples)
                for scale in (stretch, 1.0):
                    # Nearer by, what lies farthest out tells nothing more.
                    n, more = len(samples.X), asked(scale, *found.network.hyperplanes())
                    samples = samples.take(np.arange(max(n - len(more.X), 0), n)).joined(more)
                    found = fitted(found.network, samples)
                if not price.is_explained(found.network, samples):
                    network = complete(rng, found.network, samples, limit)
                    found = NetworkFit(network, samples.cost(network))
                network = prune(found, samples, price).network
        except (WorkEndedError, TargetError):
            return None
        return (network, samples) if price.is_explained(network, samples) else None

    def _rows(
        self,
        oracle: Oracle,
        noise: NoiseFloor,
        reach: float,
        lines: FromLines,
        rng: np.random.Generator,
    ) -> Rows:
        """Steps 1 and 2: rows, until each has been met again and a line shows no new one."""
        d, region, link = oracle.dim_in, lines.region, "none"
        box = (-region.bound, region.bound) if isinstance(region, Cube) else None
        asked = Oracle(lambda Z: oracle(reach * Z), d, batch_rows=sys.maxsize, link=link, box=box)
        known = Sightings(Rows.none(d, oracle.dim_out))
        # Half of the digits are to be there: what is no network grows less, or errs by more.
        finer = noise.typical_coarseness / np.sqrt(reach)
        # What answers nothing so far out shows nothing there.
        with suppress(TargetError):
            found = measure_noise(asked, int(rng.integers(2**32)))
            # Of answers of one size a step looks like a number of digits.
            nu = np.maximum(found.nu, noise.nu * noise.scale / found.scale)
            found = replace(found, numbers=noise.numbers, nu=nu)
            log.debug("%s at %.3g, coarse by %.3g", found.law, reach, found.typical_coarseness)
            is_finer = found.is_deterministic and found.typical_coarseness <= finer
            for _ in range(lines.max_lines if is_finer else 0):
                seen = lines.look(asked, known, found, rng)
                if seen is None or (not seen[0] and known.n_met.all()):
                    break
        # Two kinks that look like one make a row that no other line meets.
        rows = known.near_middle(float(np.sqrt(d)) / reach).rows.take(known.n_met > 0)
        return replace(rows, W=rows.W / reach, X=reach * rows.X)
