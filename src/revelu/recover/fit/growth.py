"""From samples whose noise is unknown to the network behind them, neuron by neuron.

Neurons are added while they explain more than chance would (Akaike 1974), and of all
widths that was best where n log(cost^2) and the price of the parameters (Schwarz 1978) are
least.  A search that is stuck keeps its best neurons and goes on.  It ends where nothing is
left, or where several searches agree on the rest.
"""

import logging
from dataclasses import dataclass

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import Stop
from revelu.recover.fit.pruning import by_worth, prune
from revelu.recover.fit.wide_fit import affine_fit, grow
from revelu.recover.refine.network_fit import Fit, Samples, degrees_of_freedom, fit
from revelu.types import FloatArray

log = logging.getLogger(__name__)

# A residual of this share of the variation is rounding, or soon will be.
EXACT = 1e-9

# Equations a parameter that a search may go down to, and those at which searches that
# agree may be trusted: fewer can be explained in many ways.
_LEAST_EQUATIONS = 1.3
_MANY_EQUATIONS = 4.0

# Neurons added in a row that explain nothing, and searches that must agree; every second
# of them has forgotten the others.
_PATIENCE = 3
_AGREEING = 3

# Of a search that failed this share of the neurons stays; every so many, none.
_KEPT = 0.65
_FRESH_START_EVERY = 2

# Searches at most, and multiplications that all of them may take.
_MOST_SEARCHES = 60
_FEWEST_SEARCHES = 4
_MOST_WORK = 4e11
_STEPS_A_NEURON = 25

# What pruning may add to a cost that is all noise.
_SLACK = 1.02
_MOST_NEURONS = 96


@dataclass(frozen=True)
class Explanation:
    """The end of all searches.

    Attributes
    ----------
    network : Network
        With an affine rest.
    cost : float
        Share of the variation that is left.
    settled : bool
        Nothing is left, or independent searches end at the same.
    """

    network: Network
    cost: float
    settled: bool

    @property
    def is_exact(self) -> bool:
        """Whether nothing is left."""
        return self.cost <= EXACT


def in_units_of_spread(X: FloatArray, y: FloatArray) -> Samples:
    """Samples whose costs are shares of what varies."""
    return Samples(X, y[:, None], np.array([max(float(y.std()), np.finfo(np.float64).tiny)]))


def widest(n: int, d: int) -> int:
    """The most neurons that ``n`` samples in ``d`` variables can determine."""
    return int(np.clip((n / _LEAST_EQUATIONS - d - 1) / (d + 2), 0, _MOST_NEURONS))


def explain_by_growth(
    rng: np.random.Generator,
    samples: Samples,
    start: Network | None = None,
    most_searches: int | None = None,
) -> Explanation:
    """Search until nothing is left, or until searches agree on what is.

    Parameters
    ----------
    rng : numpy.random.Generator
    samples : Samples
        In units of their spread.
    start : Network, optional
        Neurons for the first search to begin with.
    most_searches : int, optional

    Returns
    -------
    Explanation
    """
    limit = most_searches or _n_searches(samples)
    best, agreeing = grow_while_worth(rng, samples, start), 1
    last = best
    for attempt in range(1, limit + 1):
        settled = agreeing >= _AGREEING and _is_determined(best.network, samples)
        if best.cost <= EXACT or settled or attempt == limit:
            break
        last = grow_while_worth(rng, samples, _remembered(last.network, samples, attempt))
        gain = price(best.network, samples) - price(last.network, samples)
        chance = np.log(samples.n_equations)
        if gain > chance:
            best, agreeing = last, 1
        elif gain > -chance:
            agreeing += 1
    log.debug(
        "%d neurons after %d searches: cost %.3g", best.network.architecture[1], attempt, best.cost
    )
    settled = best.cost <= EXACT or settled
    return Explanation(best.network, best.cost, settled)


def grow_while_worth(
    rng: np.random.Generator,
    samples: Samples,
    start: Network | None = None,
    most_neurons: int = _MOST_NEURONS,
) -> Fit:
    """Add neurons while they explain more than chance would; then take out the idle ones."""
    cap = min(widest(*samples.X.shape), most_neurons)
    found = fit(start or affine_fit(samples), samples, Stop(_STEPS_A_NEURON, goal=EXACT))
    best, idle, least = found, 0, _chance_price(found.network, samples)
    while found.cost > EXACT and found.network.architecture[1] < cap and idle < _PATIENCE:
        found = grow(rng, samples, found.network.architecture[1] + 1, EXACT, found.network)
        if price(found.network, samples) < price(best.network, samples):
            best = found
        now = _chance_price(found.network, samples)
        idle, least = (0, now) if now < least else (idle + 1, least)
    bar = max(EXACT * 10.0, _SLACK * samples.reduced_cost(best.network))
    pruned = prune(best.network, samples, bar)
    # What is exact stays exact.
    worse = best.cost <= EXACT < pruned.cost / 10.0
    return best if worse else pruned


def price(network: Network, samples: Samples) -> float:
    """Schwarz's criterion: what is left, and the parameters that it took."""
    n = samples.n_equations
    cost = max(samples.cost(network), EXACT / 10.0)
    return float(2.0 * n * np.log(cost) + degrees_of_freedom(network) * np.log(n))


def _chance_price(network: Network, samples: Samples) -> float:
    """Akaike's criterion: what a parameter that explains nothing gains by chance, twice."""
    cost = max(samples.cost(network), EXACT / 10.0)
    return float(2.0 * samples.n_equations * np.log(cost) + 2.0 * degrees_of_freedom(network))


def _remembered(network: Network, samples: Samples, attempt: int) -> Network | None:
    if attempt % _FRESH_START_EVERY == 0 or network.architecture[1] < 2:
        return None
    order = by_worth(network, samples)
    return network.take(np.sort(order[int((1.0 - _KEPT) * len(order)) :]))


def _is_determined(network: Network, samples: Samples) -> bool:
    return samples.n_equations >= _MANY_EQUATIONS * degrees_of_freedom(network)


def _n_searches(samples: Samples) -> int:
    n, d = samples.X.shape
    width = widest(n, d)
    work = n * (width * (d + 2.0)) ** 2 * width * _STEPS_A_NEURON / 3.0
    return int(np.clip(_MOST_WORK / max(work, 1.0), _FEWEST_SEARCHES, _MOST_SEARCHES))
