"""What one line has shown of a function, for every method that begins with a line."""

from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network
from revelu.probe.scan import LineScan
from revelu.types import FloatArray


@dataclass
class Peeling:
    """What one line gives of a function."""

    network: Network
    """The neurons found, turned off on one piece, and its affine map as the skip."""
    unresolved: FloatArray
    """Kinks seen, in ``t``, whose neurons were not recovered."""
    scan: LineScan
    out_of_budget: bool = False
    points: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    """Shape (n, d).  Where Jacobians were measured."""
    jacobians: FloatArray = field(default_factory=lambda: np.empty((0, 0, 0)))
    """Shape (n, k, d)."""
    row_errors: FloatArray = field(default_factory=lambda: np.empty(0))
    """Shape (m,).  Standard error of each neuron's row, relative to it."""

    @property
    def n_unresolved(self) -> int:
        """How many kinks were seen whose neurons were not recovered."""
        return len(self.unresolved)
