"""What a fit to samples says."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from revelu.network import Network
from revelu.numerics.error_law import EXACT, ErrorLaw
from revelu.recover.fit.covariance import StandardErrors
from revelu.recover.fit.tensors import UnitNeurons
from revelu.recover.fit.weighing import slopes_of
from revelu.recover.method import Why
from revelu.types import FloatArray


@dataclass(frozen=True)
class Learned:
    """A network from samples; samples that had no part in it decide what it is worth."""

    network: Network
    """With a skip where no choice of signs explains the samples without."""
    why: Why
    """``EXPLAINED`` where it leaves rounding, or independent searches agree that what it leaves
    is noise; else ``UNRESOLVED``."""
    is_exact: bool
    """Whether it leaves rounding only."""
    noise: float
    """Standard deviation of what it leaves; where its law is not even, a typical answer's scale."""
    standard_errors: StandardErrors | None
    """Of all parameters, rows of weights having norm 1; None of too many."""
    signs: tuple[FloatArray, ...]
    """Shape (m,).  The choices of signs that explain the samples, relative to the first."""
    order: int
    """The least at which the theorems apply to the rows found; 0 where no low one is."""
    independence: float
    """The least singular value of the rows' products of that order."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    eigenvalues: FloatArray | None = None
    """Shape (d,), or None.  Of the second Hermite coefficient, the largest first, without signs."""
    moment_errors: tuple[float, ...] = ()
    """The largest of each order, where moments were estimated."""
    tensor_estimate: UnitNeurons | None = None
    """Where the search began."""
    law: ErrorLaw = EXACT
    """Of what it leaves, where that is more than rounding."""
    ratios: FloatArray | None = None
    """Shape (m,), or None.  Likelihood ratio of each neuron of a network that is not exact: what
    it explains over what errors are."""

    def in_unit(self, unit: float) -> "Learned":
        """Return the same of answers ``unit`` times as large."""
        errors, units, values = self.standard_errors, self.tensor_estimate, self.eigenvalues
        if errors is not None:
            V = None if errors.V is None else unit * errors.V
            errors = replace(errors, A=unit * errors.A, c=unit * errors.c, V=V)
        return replace(
            self,
            network=self.network.then(np.array([[unit]])),
            noise=unit * self.noise,
            standard_errors=errors,
            eigenvalues=None if values is None else unit * values,
            moment_errors=tuple(unit * e for e in self.moment_errors),
            tensor_estimate=None if units is None else replace(units, a=unit * units.a),
            law=self.law.in_unit(unit),
        )

    def scales(self, X: FloatArray) -> FloatArray:
        """Return the scale of each answer's error, in the coordinates of the fit, shape (n,)."""
        if self.is_exact or self.law.is_even:
            return np.full(len(X), 0.0 if self.is_exact else self.noise)
        return self.law.scales(slopes_of(self.network, X), self.network(X)[:, 0])

    @property
    def figures(self) -> dict[str, Any]:
        """What reports tell of it."""
        figures: dict[str, Any] = {
            "exact": self.is_exact,
            "settled": self.why is Why.EXPLAINED,
            "noise": self.noise,
            "standard_errors": self.standard_errors,
            "sign_patterns": list(self.signs),
            "n_neurons": self.network.architecture[1],
            "order": self.order,
            "independence": self.independence,
        }
        if not self.is_exact:
            figures["law"] = {**vars(self.law), "words": self.law.words(self.noise)}
        if self.ratios is not None:
            figures["likelihood_ratios"] = self.ratios.tolist()
        if self.eigenvalues is not None:
            figures["eigenvalues"] = self.eigenvalues.tolist()
        if self.moment_errors:
            figures["moment_errors"] = list(self.moment_errors)
        if self.tensor_estimate is not None:
            figures["tensor_estimate"] = dict(vars(self.tensor_estimate))
        return figures
