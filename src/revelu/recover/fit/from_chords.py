"""A network from the critical points of chords of a cube.

A chord meets the hyperplanes that part its ends, which few chords do where a neuron is on, or off,
near some corners only.  So

1. chords are measured until several in a row show no new neuron;
2. all weights are fitted, to answers on both sides of each hyperplane among others;
3. where that leaves more than noise, the next chord ends where the rows, held to their errors,
   leave most; where it shows nothing, neurons are fitted to what is left.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network
from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask
from revelu.probe.region import Cube
from revelu.recover.fit.from_lines import FromLines, NoRowsError, network_of
from revelu.recover.fit.price import Price
from revelu.recover.fit.sizes import Sizes
from revelu.recover.refine.network_fit import Samples
from revelu.recover.rows import Rows
from revelu.types import FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FromChords(FromLines):
    """How a network is found in a cube.

    Attributes
    ----------
    cube : Cube
    patience : int
        Chords in a row without a new row that end the first ones.
    sided : float
        Equations on either side of a hyperplane, for each parameter of its neuron.
    """

    max_lines: int = 60
    cube: Cube = field(default_factory=Cube)
    patience: int = 5
    sided: float = 1.5

    def in_cube(self) -> "FromChords":
        """The same where every question is asked in the cube."""
        return self.within(self.cube)

    def find(
        self,
        ask: Ask,
        sample: Callable[[FloatArray], Samples],
        sizes: Sizes,
        noise: NoiseFloor,
        limit: float,
        rng: np.random.Generator,
    ) -> tuple[Network, Samples] | None:
        """Find a network that explains what is asked, as :meth:`FromLines.find` does."""
        rows, samples, worst = Rows.none(sizes.d, sizes.k), None, None
        price, idle = Price(limit, known=True), 0
        for turn in range(self.max_lines):
            seen = self.rows.look(ask, sizes.d, noise, rows, rng, worst)
            if seen is None:
                raise NoRowsError
            more = seen[0]
            rows, idle = rows.joined(more), 0 if len(more) else idle + 1
            log.debug("chord %d: %d rows, %d of them new", turn, len(rows), len(more))
            if worst is None and idle < self.patience:
                continue
            if not len(rows):
                raise NoRowsError
            if worst is None:
                self._go_on(ask, noise, rows, rng)
            n_spare = 0 if worst is None or len(more) else self.n_spare
            samples = self._enough(rows, samples, n_spare, sample, sizes, rng)
            found = self._fitted(rows, samples, n_spare, limit, rng)
            cost = samples.reduced_cost(found.network)
            log.debug("%d spare neurons: %d answers, cost %.3g", n_spare, len(samples.X), cost)
            if cost <= self.near * limit:
                settled = self._settled(found, samples, sample, price, rng)
                if settled is not None:
                    return settled
            worst = self._worst(rows, samples)
        return None

    def _enough(
        self,
        rows: Rows,
        samples: Samples | None,
        n_spare: int,
        sample: Callable[[FloatArray], Samples],
        sizes: Sizes,
        rng: np.random.Generator,
    ) -> Samples:
        """Answers for all parameters, and for those of each row on both of its sides."""
        n = self._n_samples(len(rows) + n_spare, sizes)
        X = np.empty((0, sizes.d)) if samples is None else samples.X
        more = [self.region.points(rng, max(n - len(X), 0), sizes.d)]
        wanted = int(np.ceil(self.sided * (sizes.d + 1 + sizes.k) / sizes.k))
        Z = np.vstack([X, *more]) @ rows.W.T + rows.b
        for side in (-1.0, 1.0):
            lacking = np.maximum(wanted - (side * Z > 0).sum(axis=0), 0)
            which = np.repeat(np.arange(len(rows)), lacking)
            on, normals = self.region.points_on_hyperplanes(rng, rows.W[which], rows.b[which])
            beside = on + self.region.inside(on, side * self.beside * normals)
            more.append(beside[self.region.room(beside) >= 0])
        new = np.vstack(more)
        if samples is None:
            return sample(new)
        return samples.joined(sample(new)) if len(new) else samples

    def _worst(self, rows: Rows, samples: Samples) -> FloatArray:
        """The input where rows leave most, held to their errors: others would bend to it."""
        held = self.from_rows.held(network_of(rows, samples), rows, samples)
        left = np.linalg.norm(samples.residual(held.network), axis=1)
        return samples.X[int(left.argmax())]
