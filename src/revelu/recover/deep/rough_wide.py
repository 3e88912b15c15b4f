"""Two hidden layers of any widths from answers of few digits.

A first layer no wider than the input is fitted as :mod:`revelu.recover.deep.rough_layers` says, a
wider one from walks (:mod:`revelu.recover.deep.rough_walks`).
"""

import logging
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.recover.deep.rough_layers import RoughLayers, RoughLayersSearch
from revelu.recover.deep.rough_walks import RoughWalks
from revelu.recover.method import Candidate

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RoughWide(RoughLayers):
    """How two hidden layers are fitted.

    Attributes
    ----------
    walks : RoughWalks
        How they are found where the first is wider than the input.
    max_wide_steps : (int, int)
        Steps of fits of all layers, of the first and of later ones.
    """

    walks: RoughWalks = field(default_factory=RoughWalks)
    max_wide_steps: tuple[int, int] = (10, 8)


@dataclass
class RoughWideSearch(RoughLayersSearch):
    """Two hidden layers of any widths, fitted to answers."""

    how: RoughWide = field(default_factory=RoughWide)

    def _wide(self, n_rows: int) -> Candidate:
        """Both layers where the first is wider than the input: by walks, and fits of both."""
        walks = self.how.walks
        if not n_rows or self.paid.subspace is not None:
            return super()._wide(n_rows)
        first, _ = walks.rows.find(self._answers, self._dim, self.noise, self.rng)
        log.info("%d rows of a first layer wider than the input", len(first))
        found = None
        if len(first) > self._dim:
            found = walks.find(self.oracle, self.noise, self.rng, self.tell, first)
        if found is None:
            return self._ended(
                f"{len(first)} hyperplanes of a first layer were found, and no row above them"
            )
        self.network, samples = found
        self.X, self.Y = samples.X, samples.Y
        self.is_drawn = np.ones(len(self.X), dtype=bool)
        self.how = replace(
            self.how,
            most_dense=walks.most_dense,
            most_work=walks.most_work,
            max_joint_steps=self.how.max_wide_steps,
        )
        return self._settled(self.network)
