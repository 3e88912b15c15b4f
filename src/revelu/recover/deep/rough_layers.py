"""Two hidden layers from answers of few digits: rough rows, then one joint fit.

1. ``rough_rows`` finds the first layer, and rows of what is above it.
2. At a critical point of an upper neuron its gradient is ``sum_i v_i w_i`` over the first-layer
   neurons that are on: those entries of its row.  Points that agree where they share entries
   are of one neuron.
3. The upper layer is a network of one hidden layer in what the first puts out: fitted from those
   rows, beside random ones, and pruned.
4. All layers are fitted at once, which forgives errors of a hundredth in every weight, to ever
   more answers until fresh ones agree.
"""

import logging
from dataclasses import dataclass, field

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network, add_networks
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.gauss_newton import Iterative, Stop
from revelu.numerics.interruption import interruptible
from revelu.recover.deep.rough_rows import RoughRows
from revelu.recover.fit.growth import fit_at_once
from revelu.recover.fit.line_rows import Rows
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import prune, with_output_layer
from revelu.recover.method import Candidate, Disagreement, Search, Why
from revelu.recover.refine.network_fit import Automatic, Fit, Samples, fit, top_of
from revelu.recover.signs import resolve_signs
from revelu.types import FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RoughLayers:
    """How two hidden layers are fitted.

    Attributes
    ----------
    first : RoughRows
        How the first one is found.
    worst_seed : float
        A row of a larger error says nothing of an upper neuron,
    worst_rest : float
        nor one that the rows below leave more of.
    same : float
        Share by which entries of one neuron's row may differ.
    upper_equations : float
        Equations a parameter of the upper layer's fit,
    n_extra : tuple of int
        with so many random neurons beside the seeds' in turn,
    n_starts : int
        from so many random starts each.
    max_steps : int
        Of each fit.
    close : float
        The upper layer is found where it leaves no more than this many errors,
    promising : float
        or this share of the answers' variation: the rows below err, too;
    equations : float
        and all layers are fitted to so many equations a parameter, at least,
    most_equations : float
        and at most: those where the network errs most, and others.
    most_dense : int
        Parameters up to which the steps of that solve normal equations,
    most_work : float
        and multiplications.
    n_spare : int
        Neurons that are added at once where a fit leaves more than noise.
    limit : float
        The reduced cost that noise alone may leave.
    spreads : tuple of float
        Standard deviations of the inputs: neurons that are rarely on are so less far out.
    n_fresh : int
        Fresh answers that a fit has to agree with, twice as many each time that it does,
    n_agreeing : int
        until it has with so many in a row;
    max_rounds : int
        rounds at most.
    per_side : float
        Answers an unknown of a neuron's row on both sides of its hyperplane,
    n_drawn : int
        chosen among so many inputs where too few are there.
    n_around : int
        Inputs asked around each that disagrees,
    most_wrong : int
        of so many,
    around : float
        how far from it, in standard deviations.
    max_repairs : int
    """

    first: RoughRows = field(default_factory=RoughRows)
    worst_seed: float = 0.03
    worst_rest: float = 0.1
    same: float = 0.05
    upper_equations: float = 6.0
    n_extra: tuple[int, ...] = (0, 4, 8)
    n_starts: int = 3
    max_steps: int = 100
    close: float = 5.0
    promising: float = 0.05
    equations: float = 1.5
    most_equations: float = 3.0
    most_dense: int = 2500
    most_work: float = 1e10
    n_spare: int = 3
    limit: float = 1.5
    spreads: tuple[float, ...] = (1.0, 1.0, 1.5, 2.5)
    n_fresh: int = 500
    n_agreeing: int = 2
    max_rounds: int = 10
    per_side: float = 2.5
    n_drawn: int = 20_000
    n_around: int = 8
    most_wrong: int = 20
    around: float = 0.2
    max_repairs: int = 4


@dataclass
class RoughLayersSearch(Search):
    """Two hidden layers, fitted to answers.

    Attributes
    ----------
    how : RoughLayers
    network : Network, optional
        The best so far.
    X, Y : ndarray, shape (n, d) and (n, k)
        What was asked for fits.
    """

    how: RoughLayers = field(default_factory=RoughLayers)
    network: Network | None = field(default=None, init=False)
    X: FloatArray = field(init=False)
    Y: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.X = np.empty((0, self.oracle.dim_in))
        self.Y = np.empty((0, len(self.noise.scale)))

    def propose(self) -> Candidate:
        """Find the first layer, the upper one above it, and fit both."""
        self.tell("measuring rows of two hidden layers on lines")
        try:
            with interruptible(self.oracle.check_time):
                first, others = self.how.first.find(
                    self.oracle, self.oracle.dim_in, self.noise, self.rng
                )
                if not len(first) or len(first) > self.oracle.dim_in:
                    return self._ended(
                        f"{len(first)} hyperplanes of a first layer were found: where answers "
                        "have few digits it has to be no wider than the input"
                    )
                signs = self.how.first.signs(self.oracle, self.noise, first, self.rng)
                turned = np.where(signs < 0, -1.0, 1.0)
                W, b = turned[:, None] * first.W, turned * first.b
                log.info("%d rows of the first layer, %d unsigned", len(b), (signs == 0).sum())
                upper = self._upper(W, b, others, float(np.median(first.errors)))
                if upper is None:
                    return self._ended("no upper layer explains the answers")
                full = Network([W, *upper.weights], [b, *upper.biases], skip=upper.skip)
                return self._settled(full)
        except (LimitReachedError, SaturatedError) as error:
            return Candidate(self.network, Why.of(error), obstacles=(str(error),))

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Fit to where the network was wrong, too."""
        if self.network is None or self.n_repairs == self.how.max_repairs:
            return None
        self.n_repairs += 1
        try:
            with interruptible(self.oracle.check_time):
                self._ask(seen.X)
                return self._settled(self.network)
        except (LimitReachedError, SaturatedError) as error:
            return Candidate(self.network, Why.of(error), obstacles=(str(error),))

    def _ended(self, obstacle: str) -> Candidate:
        return Candidate(self.network, Why.UNRESOLVED, obstacles=(obstacle,))

    def _upper(self, W: FloatArray, b: FloatArray, others: Rows, error: float) -> Network | None:
        """Steps 2 and 3: the layer above known rows, as a network of what they put out."""
        V, c = self._starts(W, b, others)
        m, k, width = len(b), len(self.noise.scale), len(c)
        n_weights = (width + max(self.how.n_extra)) * (m + k + 1) + k * (m + 1)
        self._ask_fresh(int(np.ceil(self.how.upper_equations * n_weights / k)) - len(self.X))
        H = np.maximum(self.X @ W.T + b, 0.0)
        # What errors of the rows make of the answers, beside the answers' own.
        sigma = np.hypot(self._errors, 2.0 * error * self.Y.std(axis=0))
        samples = Samples(H, self.Y, sigma)
        empty = Network(
            [V, np.zeros((k, width))], [c, np.zeros(k)], (np.zeros((k, m)), np.zeros(k))
        )
        start = with_output_layer(empty, samples)
        best: Fit | None = None
        for n_extra in self.how.n_extra:
            self.tell(f"fitting {width + n_extra} neurons above {m} to {len(H):,} answers")
            for _ in range(self.how.n_starts if n_extra else 1):
                found = self._upper_fit(start, samples, n_extra)
                if best is None or found.cost < best.cost:
                    best = found
                if best.cost < self.how.close:
                    break
            log.info("%d neurons more: cost %.3g", n_extra, best.cost if best else np.inf)
            if best is not None and best.cost < self.how.close:
                break
        if best is None or best.cost > self.how.promising * samples.spread():
            return None
        # The rows below err, too: neurons that gain less than they do are the joint fit's.
        return prune(best, samples, Price(max(2.0, 1.3 * best.cost), known=True)).network

    def _upper_fit(self, start: Network, samples: Samples, n_extra: int) -> Fit:
        stop = Stop(self.how.max_steps, goal=self.how.limit)
        if not n_extra:
            return fit(start, samples, stop)
        return fit_at_once(
            self.rng,
            samples,
            start.architecture[1] + n_extra,
            self.how.limit,
            start,
            max_steps=self.how.max_steps,
        )

    def _starts(self, W: FloatArray, b: FloatArray, others: Rows) -> tuple[FloatArray, FloatArray]:
        """Rows above the first layer, as far as single critical points show them."""
        rows: list[FloatArray] = []
        for w, x, error in zip(others.W, others.X, others.errors, strict=True):
            on = W @ x + b > 0
            if error > self.how.worst_seed or not on.any():
                continue
            v, full = np.linalg.lstsq(W[on].T, w, rcond=None)[0], np.zeros(len(b) + 1)
            if np.linalg.norm(W[on].T @ v - w) > self.how.worst_rest:
                continue
            full[:-1][on] = v
            # The critical point itself gives the constant.
            full[-1] = -v @ (W[on] @ x + b[on])
            self._merge(rows, full)
        found = np.array(rows).reshape(-1, len(b) + 1)
        return found[:, :-1], found[:, -1]

    def _merge(self, rows: list[FloatArray], new: FloatArray) -> None:
        """Add a row, or its entries to the row that agrees where both have any."""
        for known in rows:
            common = (known != 0) & (new != 0)
            least = 0.5 * min((known != 0).sum(), (new != 0).sum())
            if common.sum() <= max(3, least):
                continue
            x, y = known[common], new[common]
            scale = (x @ y) / (y @ y)
            if np.linalg.norm(x - scale * y) < self.how.same * np.linalg.norm(x):
                missing = (known == 0) & (new != 0)
                known[missing] = scale * new[missing]
                return
        rows.append(new)

    def _settled(self, network: Network) -> Candidate:
        """Step 4: fit all layers until fresh answers agree; these come last of all."""
        n_agreed, n_fresh, self.network = 0, self.how.n_fresh, network
        is_resolved = network.skip is None
        for _ in range(self.how.max_rounds):
            need = int(np.ceil(self.how.equations * network.n_parameters / network.dim_out))
            self._ask_fresh(need - len(self.X))
            self._ask(self._rare(network))
            samples = self._telling(network)
            n_parameters, n = network.n_parameters, len(samples.X)
            self.tell(f"fitting {n_parameters:,} parameters to {n:,} answers")
            before, network = network, self._fitted(network, samples)
            cost = samples.reduced_cost(network)
            if cost > self.how.limit:
                # A fit to what a missing neuron makes moves the others there.
                start = network if cost < 0.1 * samples.reduced_cost(before) else before
                wider = self._wider(start, samples)
                if samples.reduced_cost(wider) < cost:
                    network, cost = wider, samples.reduced_cost(wider)
                is_resolved = False
            self.network = network
            bad = self._wrong(network, n_fresh)
            log.info("%s: cost %.3g, %d of %d fresh wrong", network, cost, len(bad), n_fresh)
            agrees = cost <= self.how.limit and not len(bad)
            if agrees and not is_resolved:
                self.network = network = self._smaller(network, samples)
                is_resolved = True
                continue
            n_agreed, n_fresh = (n_agreed + 1, 2 * n_fresh) if agrees else (0, self.how.n_fresh)
            if n_agreed == self.how.n_agreeing:
                return Candidate(network, Why.EXPLAINED, warnings=(self._resolution(),))
            if len(bad):
                near = np.repeat(bad[: self.how.most_wrong], self.how.n_around, axis=0)
                self._ask(near + self.how.around * self.rng.standard_normal(near.shape))
        return self._ended("the layers that were fitted do not explain fresh answers")

    def _rare(self, network: Network) -> FloatArray:
        """Inputs on those sides of hyperplanes that too few answers show."""
        pool = self.rng.standard_normal((self.how.n_drawn, network.dim_in))
        rows: list[int] = []
        layers = slice(0, network.n_hidden)
        of_asked, of_drawn = (network.preactivations(X)[layers] for X in (self.X, pool))
        for W, asked, drawn in zip(network.weights[layers], of_asked, of_drawn, strict=True):
            wanted = int(np.ceil(self.how.per_side * (W.shape[1] + 1) / network.dim_out))
            for sign in (1.0, -1.0):
                lacks = wanted - (sign * asked > 0).sum(axis=0)
                for j in np.flatnonzero(lacks > 0):
                    rows += list(np.flatnonzero(sign * drawn[:, j] > 0)[: lacks[j]])
        return np.asarray(pool[np.unique(rows).astype(np.intp)])

    def _telling(self, network: Network) -> Samples:
        """Choose answers to fit to: those where a network errs most, and some of all others."""
        sigma = self._sigma(self.X)
        n = int(np.ceil(self.how.most_equations * network.n_parameters / network.dim_out))
        if n >= len(self.X):
            return Samples(self.X, self.Y, sigma)
        off = (np.abs(self.Y - network(self.X)) / sigma).max(axis=1)
        order = np.argsort(-off, kind="stable")
        rest = self.rng.permutation(order[n // 3 :])[: n - n // 3]
        rows = np.concatenate([order[: n // 3], rest])
        return Samples(self.X[rows], self.Y[rows], sigma[rows])

    def _wrong(self, network: Network, n: int) -> FloatArray:
        """Ask fresh inputs, and return those at which a network is wrong, the worst first."""
        before = len(self.X)
        self._ask_fresh(n)
        X, Y = self.X[before:], self.Y[before:]
        off = np.abs(Y - network(X)) / self._sigma(X)
        off = off.max(axis=1)
        worst = np.argsort(-off, kind="stable")
        return np.asarray(X[worst[off[worst] > SIGMAS * self.how.limit]])

    def _fitted(self, network: Network, samples: Samples) -> Network:
        """Fit all layers; iterations hardly move the weights of rare neurons."""
        root = np.sqrt(max(samples.n_equations / network.n_parameters, 1.2))
        # As many iterations as the condition of a random matrix asks for.
        n = int(np.ceil(15.0 * (1.0 + 1.0 / root) / (1.0 - 1.0 / root)))
        iterations = Iterative(n, rtol=1e-3, white=True)
        solver = Automatic(iterations, self.how.most_dense, self.how.most_work)
        return fit(network, samples, Stop(60, rtol=0.02, patience=3), solver=solver).network

    def _wider(self, network: Network, samples: Samples) -> Network:
        """Add upper neurons that explain what is left, and fit all layers."""
        rest = samples.Y - network(samples.X)
        above = Samples(network.activations(samples.X)[-2], rest, samples.sigma)
        starts = [
            fit_at_once(self.rng, above, self.how.n_spare, self.how.limit, max_steps=40)
            for _ in range(self.how.n_starts)
        ]
        top = add_networks(top_of(network), min(starts, key=lambda found: found.cost).network)
        return self._fitted(_above(network, top), samples)

    def _smaller(self, network: Network, samples: Samples) -> Network:
        """Take out upper neurons that are not needed, and turn others until no rest is left.

        As far as the answers agree.
        """
        above = Samples(network.activations(samples.X)[-2], samples.Y, samples.sigma)
        top = top_of(network)
        pruned = prune(Fit(top, above.cost(top)), above, Price(2.0, known=True)).network
        plain, _ = resolve_signs(pruned, 1e-3, 0.3, 1.0)
        for smaller in (plain, pruned):
            found = self._fitted(_above(network, smaller), samples)
            if samples.reduced_cost(found) <= self.how.limit:
                return found
        return network

    def _resolution(self) -> str:
        """What such answers cannot show."""
        sigma = float(self.noise.errors.max())
        return (
            f"the answers are {self.noise.law}, with errors of about {sigma:.1g}: any neuron that "
            f"contributes less than {self.how.limit * sigma:.1g} (root mean square over N(0, I)) "
            "would be missing"
        )

    @property
    def _errors(self) -> FloatArray:
        """Standard errors at N(0, I); an output that never varies has none, and leaves nothing."""
        errors = self.noise.errors
        return np.asarray(np.where(errors > 0.0, errors, 1.0))

    def _sigma(self, X: FloatArray) -> FloatArray:
        """Standard errors of answers, shape (n, k): what is summed grows with the inputs."""
        return np.asarray(self._errors * (self.noise.growth(X) / np.sqrt(2.0))[:, None])

    def _ask_fresh(self, n: int) -> None:
        if n > 0:
            spreads = self.rng.choice(self.how.spreads, n)[:, None]
            self._ask(spreads * self.rng.standard_normal((n, self.oracle.dim_in)))

    def _ask(self, X: FloatArray) -> None:
        """Ask what a float32 target is asked exactly."""
        X = X.astype(np.float32).astype(np.float64)
        Y = self.oracle(X)
        answered = np.isfinite(Y).all(axis=1)
        self.X, self.Y = np.vstack([self.X, X[answered]]), np.vstack([self.Y, Y[answered]])


def _above(network: Network, top: Network) -> Network:
    """Put another upper layer and outputs above the first layer of a network."""
    weights, biases = [*network.weights[:-2], *top.weights], [*network.biases[:-2], *top.biases]
    return Network(weights, biases, skip=top.skip)
