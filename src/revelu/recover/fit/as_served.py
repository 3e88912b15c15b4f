"""The end of a search behind a head: rounded answers fitted as they are served.

1. Fit all weights to most answers as they are served (:mod:`revelu.recover.refine.served_fit`).
2. Where one is off by more than rounding and the fit explain, a neuron is missing that few inputs
   turn on: ask around there, and look for it.
3. Ask where the answers determine the network least, until it errs by less than they do.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network
from revelu.probe.region import Region
from revelu.recover.fit.graded import Graded
from revelu.recover.refine.network_fit import Samples
from revelu.recover.refine.served_fit import Served, fit_served, foretold_answers
from revelu.types import FloatArray

log = logging.getLogger(__name__)

ROUNDED = float(np.sqrt(3.0))
"""Standard errors by which rounding moves an answer at most: those of a uniform law."""


@dataclass(frozen=True)
class AsServed:
    """How answers are fitted as they are served."""

    determined: float = 0.8
    """Inputs are asked until a network errs by no more than this many of an answer's own errors:
    with six of these and the target's own half unit it stays within two units of rounding."""
    n_rounds: int = 8
    """Rounds of such inputs at most."""
    n_foretold: int = 8000
    few: float = 0.01
    """Answers that are looked at in each, every output counted; where it errs by more at no more
    than this share of the inputs, the round is the last."""
    near: float = 2.0
    """Reduced cost, in units of what noise may leave, up to which neurons that a search has missed
    are looked for here: it is left by few answers, and more are asked around these."""
    n_missing: int = 6
    n_more: int = 4
    """Searches for neurons that are missing, at most, and neurons that each adds."""
    n_around: float = 8.0
    around: float = 0.3
    """``n_around`` inputs for each weight of a neuron are asked around those that show one, about
    so far away, in standard deviations of the inputs."""
    far: float = 2.0
    """Beyond ``far`` times the radius of most inputs answers show none: those are hardly asked."""
    graded: Graded = field(default_factory=Graded)
    """How they are looked for."""

    def finished(
        self,
        network: Network,
        samples: Samples,
        served: Callable[[], Served],
        ask: Callable[[FloatArray], Samples],
        region: Region,
        limit: float,
        rng: np.random.Generator,
    ) -> tuple[Network, Samples]:
        """Fit a network that explains what is behind the head, and complete it.

        Parameters
        ----------
        samples : Samples
            What is behind the head, which the network explains.
        served : callable, () -> Served
            All that was answered until then.
        ask : callable, (n, d) -> Samples
            Adds to it.
        limit : float
            The reduced cost that noise alone may leave.

        Returns
        -------
        network, samples
            The samples with what was asked.
        """
        n_missing = n_rounds = 0
        while True:
            answers = served()
            network = fit_served(network, answers)
            wrong = self._wrong(network, answers)
            log.debug("as served: %s, %d of %d wrong", network, len(wrong), len(answers.X))
            if len(wrong):
                if n_missing == self.n_missing:
                    break
                n_missing += 1
                samples = samples.joined(ask(self._around(wrong, rng)))
                network = self.graded.completed(rng, samples, network, self.n_more, limit)
                continue
            if n_rounds == self.n_rounds:
                break
            n_weak, weak = self._weak(network, answers, region, rng)
            if not len(weak):
                break
            samples = samples.joined(ask(weak))
            is_last = n_weak <= self.few * self.n_foretold
            n_rounds = self.n_rounds if is_last else n_rounds + 1
        return network, samples

    def _wrong(self, network: Network, answers: Served) -> FloatArray:
        """Inputs whose answers a network does not explain, none of them far out."""
        is_far = (answers.X**2).mean(axis=1) > self.far**2
        is_wrong = answers.off(network) > ROUNDED + 5.0 * self.determined
        return np.asarray(answers.X[is_wrong & ~is_far])

    def _around(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Inputs around some of these."""
        n = int(self.n_around * (X.shape[1] + 2))
        moves = self.around * rng.standard_normal((n, X.shape[1]))
        return np.asarray(X[rng.integers(len(X), size=n)] + moves)

    def _weak(
        self, network: Network, answers: Served, region: Region, rng: np.random.Generator
    ) -> tuple[int, FloatArray]:
        """How many answers of the region are undetermined, and inputs that tell them."""
        X = region.points(rng, self.n_foretold // network.dim_out, network.dim_in)
        foretold = foretold_answers(network, answers, X)
        chosen = foretold.telling(self.determined, network.n_parameters)
        return foretold.n_open(self.determined) * network.dim_out, X[chosen]
