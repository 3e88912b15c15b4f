"""What samples kept apart, and those that were fitted, say of a network."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from revelu.certify.held_out import FEWEST_CHECKS, certify_held_out
from revelu.network import Network
from revelu.numerics.confidence import FALSE_ALARM, standard_errors
from revelu.numerics.error_law import ErrorLaw
from revelu.recover.fit.learned import Learned
from revelu.recover.method import Why
from revelu.recovery import Certificate, Ledger, Recovery, Status
from revelu.tasks.learn.appearance import of_answers
from revelu.tasks.learn.samples import FEWEST_TO_CERTIFY, Drawn
from revelu.types import FloatArray

# Where the network holds, in words that follow "inputs": nothing was asked elsewhere.
DRAWN_LIKE = "drawn like the samples"


@dataclass
class SampleVerdict:
    """The status of a network that was learned from samples.

    Attributes
    ----------
    learned : Learned
        In the coordinates and the unit of the samples.
    objection : str
        Why the theorems do not apply to the inputs, if they do not.
    widest : int
        The most neurons that were looked for.
    scales : callable, (n, d) -> (n,)
        How far answers are expected to err at inputs; 0 where the network is exact.
    mostly : float
        Samples of which this share agrees are explained but for what hardly ever fires.
    hopeless_noise : float
        Noise of more than this share of what varies leaves nothing to be sure of;
    fewest_samples : float
        nor do fewer samples a parameter.
    plenty : float
        With ``plenty`` samples a parameter a network of the class would have been found.
    """

    learned: Learned
    drawn: Drawn
    objection: str
    widest: int
    scales: Callable[[FloatArray], FloatArray]
    mostly: float = 0.99
    hopeless_noise: float = 0.3
    fewest_samples: float = 4.0
    plenty: float = 20.0
    evidence: list[str] = field(default_factory=list, init=False)
    warnings: list[str] = field(default_factory=list, init=False)

    def recovery(self) -> Recovery:
        """Return the network with its status and its certificate."""
        learned, drawn = self.learned, self.drawn
        noise = 0.0 if learned.is_exact else learned.noise
        scales, law = self.scales(drawn.X_held), learned.law
        certificate = certify_held_out(
            learned.network, drawn.X_held, drawn.y_held, noise, scales, law
        )
        status = (
            self._of_exact(certificate) if learned.is_exact else self._of_noisy(certificate, noise)
        )
        if drawn.disagreement > self._explained(certificate.tolerance, noise):
            status = Status.UNVERIFIED
            self.evidence.append(
                f"the same input has answers that differ by {drawn.disagreement:.2g}, and what was "
                "fitted is their mean: samples of two functions are not those of one"
            )
        if self.objection:
            told = f"{self.objection}; fitted all the same, outside the theorems"
            self.warnings.insert(0, told)
        return Recovery(
            status,
            learned.network,
            certificate,
            ledger=Ledger(0, 0, {}),
            evidence=(*learned.notes, *self.evidence),
            method="hermite",
            warnings=(*learned.warnings, *self.warnings),
            domain=DRAWN_LIKE,
            details={
                **learned.figures,
                "n_samples": drawn.n_samples,
                "objection": self.objection,
            },
        )

    def _of_exact(self, certificate: Certificate) -> Status:
        """Status of a network that leaves nothing of the samples fitted."""
        if certificate.n_checks < FEWEST_CHECKS and certificate.fraction_within == 1.0:
            self.evidence.append(
                f"the {certificate.n_checks} samples kept apart agree, which are too few to "
                f"certify it: of {FEWEST_TO_CERTIFY} samples of different inputs there are enough"
            )
            return Status.UNVERIFIED
        n_off = self._n_off(certificate.tolerance)
        if certificate.passed and not n_off:
            return Status.RECOVERED
        if certificate.passed:
            self.evidence.append(
                f"{n_off:,} of the {len(self.drawn.y):,} samples that were fitted differ by more "
                f"than {certificate.tolerance:.2g}: they come from another function, or from "
                "neurons that hardly ever fire"
            )
            return Status.PARTIAL
        if certificate.fraction_within >= self.mostly:
            self.evidence.append(
                "all but a few samples agree: neurons that hardly ever fire are missing"
            )
            return Status.PARTIAL
        self.evidence.append(
            f"the network that explains the {len(self.drawn.y):,} samples fitted is not that of "
            f"those kept apart: {self._more_samples()}"
        )
        return Status.UNVERIFIED

    def _of_noisy(self, certificate: Certificate, noise: float) -> Status:
        """Status of a network that leaves what is taken to be noise."""
        n, learned = len(self.drawn.y), self.learned
        network, law = learned.network, learned.law
        far = _scales_of_none(law, n)
        if n_off := self._n_off(far):
            self.warnings.append(
                f"{n_off:,} of the {n:,} samples that were fitted differ by more than "
                f"{far:.3g} times their noise, typically {noise:.2g}: they may come from another "
                "function"
            )
        if reason := self._why_not(certificate, noise):
            self.evidence += filter(None, (reason, of_answers(self.drawn.y)))
            return Status.UNVERIFIED
        self.warnings.append(
            f"the answers are taken to have noise of {noise:.2g}, errors that {law.words(noise)}; "
            "a difference smaller than it would go unnoticed"
        )
        if self.drawn.disagreement > 0.0:
            self.warnings.append(
                f"an input that repeats, up to {self.drawn.n_repeats:,} times, counts once, with "
                "the mean of its answers: their noise is that of such means, a single answer's is "
                "larger"
            )
        if network.architecture[1]:
            self.evidence.append(
                "each neuron explains more than these errors do but in one run of "
                f"{1.0 / FALSE_ALARM:,.0f}"
            )
        # A function of another kind, fitted piece by piece, keeps an affine rest.
        if network.skip is None or not network.architecture[1]:
            return Status.RECOVERED
        return Status.PARTIAL

    def _why_not(self, certificate: Certificate, noise: float) -> str:
        """Why a network among noise is not certified; nothing where it is."""
        n, network = len(self.drawn.y), self.learned.network
        if not certificate.n_checks >= FEWEST_CHECKS:
            return (
                f"{certificate.n_checks} samples kept apart are too few to certify it: of "
                f"{FEWEST_TO_CERTIFY} samples of different inputs there are enough"
            )
        if noise >= self.hopeless_noise * typical_spread(self.drawn.y):
            return (
                f"what no network of up to {self.widest} neurons explains, {noise:.2g}, is nearly "
                "as large as what the answers vary by: the inputs do not determine them, or not "
                "by such a network; of a model that gave them, `revelu extract MODEL --like DATA` "
                "recovers more, since it can be asked"
            )
        if n < self.fewest_samples * network.n_parameters:
            return (
                f"{n:,} samples are too few to tell noise from {network.n_parameters:,} "
                f"parameters: of {int(self.fewest_samples * network.n_parameters):,} there are "
                "enough"
            )
        if not certificate.passed:
            return "samples kept apart differ by more than the noise of those fitted"
        if self.learned.why is not Why.EXPLAINED:
            return (
                "searches from several starts end at different networks, none of which leaves as "
                f"little as the others together: {self._more_samples()}"
            )
        return ""

    def _more_samples(self) -> str:
        """What is likely, by how many samples a parameter there are."""
        n = len(self.drawn.y)
        if n < self.plenty * self.learned.network.n_parameters and not of_answers(self.drawn.y):
            return "more samples may help"
        return "the function is hardly a network of one hidden layer"

    def _n_off(self, tolerance: float, rows: int = 65_536) -> int:
        """How many samples the network misses; some at a time, for it may have many neurons.

        Parameters
        ----------
        tolerance : float
            In scales of the noise, where there is any.
        """
        X, y, exact = self.drawn.X, self.drawn.y, self.learned.is_exact
        blocks = (slice(i, i + rows) for i in range(0, len(X), rows))
        return sum(
            int(
                (self._errors(X[b], y[b]) > tolerance * (1.0 if exact else self.scales(X[b]))).sum()
            )
            for b in blocks
        )

    def _errors(self, X: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.abs(self.learned.network(X)[:, 0] - y))

    def _explained(self, tolerance: float, noise: float) -> float:
        """The largest difference between answers to one input that noise explains.

        The mean of r answers has the noise of one by the square root of r, and the difference of
        two of them times the square root of 2.
        """
        n, r = self.drawn.n_samples, self.drawn.n_repeats
        if r == 1 or not noise:
            return tolerance
        return float(standard_errors(n * r) * np.sqrt(2.0 * r) * noise)


def typical_spread(y: FloatArray) -> float:
    """Return what answers vary by, outliers apart: their deviation if they were Gaussian."""
    low, high = np.quantile(y, (0.16, 0.84))
    return float(0.5 * (high - low)) or float(y.std())


def cut_short(network: Network, drawn: Drawn, why: str = "interrupted") -> Recovery:
    """Return the best network of a search that something ended, as good as samples say."""
    return Recovery(
        Status.UNVERIFIED,
        network,
        certify_held_out(network, drawn.X_held, drawn.y_held, 0.0),
        ledger=Ledger(0, 0, {}),
        evidence=(f"{why}: the best network until then, fitted to a part of the samples",),
        method="hermite",
        domain=DRAWN_LIKE,
        details={"n_samples": drawn.n_samples},
    )


def _scales_of_none(law: ErrorLaw, n: int) -> float:
    """How many scales none of ``n`` errors of the law exceeds but by a false alarm."""
    scales = standard_errors(n)
    while n * law.beyond(scales) > FALSE_ALARM:
        scales *= 2.0
    return scales
