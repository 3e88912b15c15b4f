"""How large a dense network of a function would be, from how often a line bends.

Where sums are N(0, s^2) at one input and, independently, at another, those of a neuron change sign
between ``x - r v`` and ``x + r v`` with probability ``2 arctan(r) / pi``.  So a line that bends
``m`` times there crosses some ``m pi / (2 arctan(r))`` neurons in all.
"""

from dataclasses import dataclass

import numpy as np

from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.kinks import KinkSearch
from revelu.probe.line import random_line

__all__ = ["Density"]


@dataclass(frozen=True)
class Density:
    """How it is estimated."""

    reach: float = 0.1
    """How far a line is followed to both sides, in its own length."""
    max_pieces: int = 128
    """No further than ``max_pieces`` pieces."""

    def n_parameters(self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator) -> int:
        """Estimate the parameters of a dense network of one hidden layer, to one digit, from below.

        Raises
        ------
        LimitReachedError
            If the budget ends.
        """
        scan = KinkSearch(
            oracle,
            random_line(rng, oracle.dim_in),
            float(noise.nu.max()),
            noise.scale,
            rng,
            (-self.reach, self.reach),
            through=False,
            max_pieces=self.max_pieces,
        ).run()
        share = 2.0 * np.arctan(self.reach) / np.pi
        n_bends = len(scan.kinks) if scan.complete else self.max_pieces
        n = int(n_bends / share) * (oracle.dim_in + 1 + len(noise.scale))
        return round(n, 1 - len(str(n)))
