"""Standard errors of a certified network's weights, of all answers that the run has asked."""

import logging
from dataclasses import dataclass, replace

import numpy as np

from revelu.network import LayeredNetwork, Network
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.method import Layer
from revelu.recover.refine.weight_errors import Asked, InputReading, WeightErrors
from revelu.recovery import Recovery, Status
from revelu.tasks.units import reading
from revelu.types import BoolArray, FloatArray, IntArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ErrorEffort:
    """How large a network's errors are computed, and of how many answers.

    Attributes
    ----------
    most_weights : int
        Their errors take matrices of its square, 50 MiB each.
    quick : float
        Multiplications that are no matter, a tenth of a second: answers times the weights' square.
    each : float
        Answers a weight, each output counted, that are used where more are not quick: of what the
        certificate has asked what they lack, evenly, and of the search's own answers up to
    most_own : float
        times as many.
    fewest : float
        Answers a weight, or else no errors are given.
    common : float
        Share of an answer's error that others may have, too, where it is made by the target's
        own arithmetic: sums of one size are rounded alike.  Up to so much was seen of networks
        of two layers; what is rounded to a grid, or noise, has nothing in common.
    """

    most_weights: int = 2500
    quick: float = 1e9
    each: float = 2.0
    most_own: float = 8.0
    fewest: float = 1.5
    common: float = 0.01

    def rows(self, p: int, k: int, is_check: BoolArray) -> IntArray:
        """Return which answers of ``k`` outputs are used for ``p`` weights."""
        most = int(max(self.each * p, self.quick / p**2) / k) + 1
        own = _evenly(np.flatnonzero(~is_check), int(self.most_own * most))
        checks = _evenly(np.flatnonzero(is_check), max(most - len(own), 0))
        return np.union1d(own, checks)


def _evenly(rows: IntArray, most: int) -> IntArray:
    """As many of some rows, evenly."""
    n = min(len(rows), most)
    return rows[np.linspace(0, len(rows) - 1, n).astype(np.intp)] if n else rows[:0]


def with_standard_errors(
    oracle: Oracle,
    recovery: Recovery,
    noise: NoiseFloor,
    effort: ErrorEffort = ErrorEffort(),
) -> Recovery:
    """Return a recovery with standard errors of its network's weights, in the target's units.

    Parameters
    ----------
    recovery : Recovery
        In the coordinates of the oracle's domain; what is not certified is given back as it is.
    noise : NoiseFloor
        The law that the answers' errors follow.
    """
    network = recovery.network
    if recovery.status is not Status.RECOVERED or network is None or recovery.classes:
        return recovery
    if isinstance(network, LayeredNetwork) or network.dim_in != oracle.dim_in:
        return recovery
    asked = _asked(oracle, network, noise, effort)
    if asked is None:
        return recovery
    domain = oracle.domain
    read = None if domain is None else InputReading(*reading(domain), domain.is_held)
    found = WeightErrors.of(network, asked)
    log.info("answers err by %.2g of what their law foretells", found.scale)
    layers = found.layers(network, read)
    if oracle.link.contrast:
        layers = [*layers[: network.n_hidden], *map(_with_zero, layers[network.n_hidden :])]
    return replace(recovery, standard_errors=layers)


def _asked(
    oracle: Oracle, network: Network, noise: NoiseFloor, effort: ErrorEffort
) -> Asked | None:
    """All that was answered, with its errors, or as much as there is time for."""
    kept, p = oracle.kept.all(), network.n_parameters
    if kept is None or p > effort.most_weights:
        return None
    X, answered, is_check = kept
    rows = effort.rows(p, network.dim_out, is_check)
    X, answered = X[rows], answered[rows]
    link = noise.link
    if noise.differs_by_answer:
        floor = noise.of_answers
        asked = Asked(X, answered, floor.sigma_at(X, answered), link)
    else:
        Y = link.inverse(answered)
        asked = Asked(X, Y, _errors(noise, X, Y))
    if asked.Y.shape[1] != (network.dim_out + (asked.link.contrast)):
        return None
    if noise.grid is None and noise.is_deterministic:
        asked = replace(asked, common=effort.common)
    is_told = np.isfinite(np.hstack([asked.Y, asked.sigma])).all(axis=1)
    asked = asked.take(np.asarray(is_told))
    return asked if asked.Y.size >= effort.fewest * p else None


def _errors(noise: NoiseFloor, X: FloatArray, Y: FloatArray) -> FloatArray:
    """Standard errors of answers; of an output that is always 0, rounding in its unit."""
    sigma = noise.sigma_at(X, Y)
    return np.where(sigma > 0.0, sigma, np.finfo(np.float64).eps * noise.unit)


def _with_zero(layer: Layer) -> Layer:
    """Errors of the last layer, and those of an output that is 0 by agreement."""
    W, b = layer
    return np.vstack([W, np.zeros((1, W.shape[1]))]), np.append(b, 0.0)
