"""What one line has shown of a function, for every method that begins with a line."""

from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network
from revelu.probe.scan import LineScan
from revelu.types import FloatArray


@dataclass
class Peeling:
    """What one line gives of a function.

    Attributes
    ----------
    network : Network
        The neurons found, turned off on one piece, and its affine map as the skip.
    unresolved : ndarray
        Kinks seen, in ``t``, whose neurons were not recovered.
    out_of_budget : bool
    points : ndarray, shape (n, d)
        Where Jacobians were measured.
    jacobians : ndarray, shape (n, k, d)
    row_errors : ndarray, shape (m,)
        Standard error of each neuron's row, relative to it.
    """

    network: Network
    unresolved: FloatArray
    scan: LineScan
    out_of_budget: bool = False
    points: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    jacobians: FloatArray = field(default_factory=lambda: np.empty((0, 0, 0)))
    row_errors: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def n_unresolved(self) -> int:
        """How many kinks were seen whose neurons were not recovered."""
        return len(self.unresolved)
