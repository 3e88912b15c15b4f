"""Networks of any depth and width, layer by layer.

    f(x) = A relu(W_L ... relu(W_2 relu(W_1 x + b_1) + b_2) ... + b_L) + c

Beyond DG21, which closes with "we believe it is possible to prove similar results ... for
deeper models".  From the input up: the first layer from lines (``first_rows``); the rows of every
other layer from walks along the surfaces of its neurons (``layers``), and with them the signs of
the layer below; the outputs where the layer is the last (``output_layer``); what no walk has told,
and neurons that are missing, from where fresh answers begin to disagree; a fit of all layers at
once.
"""

import logging
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.spatial.distance import cdist

from revelu.network import Network
from revelu.numerics.confidence import SIGMAS
from revelu.probe.blank import blank_share
from revelu.recover.deep.answers import JudgedAnswers
from revelu.recover.deep.deep import Deep
from revelu.recover.deep.frame import KnownLayers
from revelu.recover.deep.layers import Layers, Level
from revelu.recover.deep.open_weights import OpenWeights
from revelu.recover.deep.output_layer import is_faint
from revelu.recover.deep.seeds import Seed
from revelu.recover.deep.segments import CriticalPoints
from revelu.recover.deep.stack import Stack
from revelu.recover.method import Candidate, Disagreement, Layer, Search, Why
from revelu.recover.paid import Paid
from revelu.recover.refine.network_fit import Samples, fit, fit_top, top_of
from revelu.recover.refine.polish import polish_to_known
from revelu.recover.refine.some_neurons import fit_neurons, neurons_off
from revelu.recover.shallow.lines import ended, first_line
from revelu.recover.shallow.one_hidden import OneHidden
from revelu.types import BoolArray

log = logging.getLogger(__name__)


@dataclass
class Climb(Search):
    """A deep network under way, from the input up."""

    method: Deep
    layers: Layers = field(init=False)
    answers: JudgedAnswers = field(init=False)
    """What the network is held against."""
    network: Network | None = field(default=None, init=False)
    """The best so far."""
    is_explained: bool = field(default=False, init=False)
    """Whether it was wrong nowhere in the end."""
    has_pairs: bool = field(default=False, init=False)
    """It has neurons in pairs, that pass on an affine map everywhere: it is not mended any more."""
    share_wrong: float = field(default=np.inf, init=False)
    """The share of plain inputs at which it was wrong before the last repair."""
    _polished_with: tuple[Network, int] | None = field(default=None, init=False)
    open_weights: OpenWeights = field(init=False)
    """What no walk has told of its last hidden layer."""

    def __post_init__(self) -> None:
        target = self.oracle, self.noise, self.rng
        self.layers = Layers(*target, self.method.layers, self.tell)
        self.answers = JudgedAnswers(*target, self.method.judging)

    def propose(self) -> Candidate:
        """Climb, then look again until fresh points find nothing wrong."""
        self.tell("recovering layer by layer")
        return self.until_limit(self._climb)

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Look for what is missing at inputs where the network was wrong."""
        is_spent = self.n_repairs == self.method.max_repairs
        if self.network is None or is_spent or self.has_pairs:
            return None
        is_in_vain = self.n_repairs > 0 and not self.is_explained
        share = self.answers.share_wrong(self.network)
        helps = share <= max((1.0 - self.method.helps) * self.share_wrong, self.method.few_wrong)
        if is_in_vain and not (helps and self.answers.is_wrong_plainly(self.network)):
            # What is left lies far out, or is as much as before, and was looked for in vain.
            return None
        self.share_wrong = share
        self.n_repairs += 1
        network = self.network
        self.tell("looking for neurons that fire where the network was wrong")

        is_second = self.n_repairs > 1 and self.is_explained

        def go_on() -> Candidate | None:
            n = len(self.answers)
            self.answers.add(seen.X)
            if is_second and not self.answers.wrong(network)[n:].any():
                # It errs there as everywhere, and another fit of all layers has not helped.
                return None
            return self._explain(network)

        return self.until_limit(go_on)

    def cut_short(self, why: Why, said: str) -> Candidate:
        """What was found, where queries, time or answers have ended the search."""
        if why is Why.CURVED:
            return super().cut_short(why, said)
        return self._candidate(why, said)

    def _climb(self) -> Candidate:
        line = self.paid.line or first_line(self.oracle, self.noise, self.rng)
        scan = line.scan
        if not scan.complete and not scan.ran_out:
            return ended(scan)
        if scan.complete and not len(scan.kinks):
            # An affine map, as far as a line tells.
            one = OneHidden().start(self.oracle, self.noise, self.rng, self.tell, Paid(line))
            return one.propose()
        find = self.method.first.find
        return self._climb_from(*find(self.oracle, self.noise, line, self.rng))

    def _climb_from(self, first: Layer, seeds: list[Seed]) -> Candidate:
        """Find what is above a first layer whose signs are not known."""
        layers, (W, b) = self.layers, first
        layers.seeds = seeds
        if not len(b):
            return self._without_first_layer()
        if len(b) < len(layers.basis):
            layers.narrow_to(np.linalg.qr(W.T)[0].T)
        frame = KnownLayers(Stack(len(layers.basis)), W @ layers.basis.T, b)
        found = alone = layers.outputs_above(frame, OpenWeights.of([], frame.stack.dim_out))
        if alone is not None and self._is_wrong_anywhere(alone[0]):
            # What is missing is above: neurons that are always on, or seldom, pass for none.
            found, (self.network, self.open_weights) = None, alone
            layers.is_passed_on = True
        unknown = np.zeros(frame.W.shape, dtype=bool)
        # What the highest level stands on, which is not the frame above it that finds none.
        below = frame, unknown
        while found is None and len(layers.levels) < self.method.max_layers:
            level, before = Level(frame, unknown), [len(lower.walks) for lower in layers.levels]
            layers.find_rows(level)
            if layers.lacks_inputs:
                return self._climb_with_others(first)
            # What was looked for above may have been of the highest level.
            is_more = [len(lower.walks) for lower in layers.levels] != before
            if not (level.walks or is_more or layers.find_more()):
                break
            if level.walks:
                layers.drop_unread(level)
                layers.sign(level, surely=False)
                layers.find_below(level)
            if level.walks:
                layers.drop_unread(level)
                layers.levels.append(level)
                below = frame, unknown
            if sum(not level.is_signed for level in layers.levels) > self.method.max_unsure:
                break
            top = layers.levels[-1]
            found = layers.outputs(top)
            if found is None and not top.is_signed and not layers.is_passed_on:
                # More neurons are always on than the rows found tell of.
                found = layers.outputs_passing_on(top, *below)
            frame, unknown = top.above, top.rows.undetermined
        if found is None and alone is not None:
            layers.levels, found = [], alone
        if found is None:
            n = len(layers.levels) + 1
            looked = "1 hidden layer was" if n == 1 else f"{n} hidden layers were"
            told = f"{looked} looked into; what is above was not understood"
            return self._candidate(Why.UNRESOLVED, told)
        network, self.open_weights = found
        return self._explain(network)

    def _is_wrong_anywhere(self, network: Network) -> bool:
        """Whether half of the digits are wrong at some fresh input of N(0, I)."""
        answers = self.answers
        if not len(answers):
            answers.look(self.method.n_look)
        is_wrong = answers.errors(network) > answers.judging.wrong
        return bool((is_wrong & answers.is_plain).any())

    def _without_first_layer(self) -> Candidate:
        """Say that no hyperplane goes on, or that the answers change too seldom to tell."""
        bound = self.method.layers.bound
        share = blank_share(self.oracle, self.noise, self.oracle.dim_in, self.rng, bound=bound)
        if share > self.method.blank:
            return self._candidate(
                Why.UNRESOLVED,
                f"around {share:.0%} of the inputs no answer changes: whether a hyperplane goes "
                "on there, as a first layer's do, cannot be told",
            )
        return self._candidate(
            Why.HYPERPLANES_END,
            "none of the hyperplanes found bends the function wherever it goes: there is no "
            "first layer of ReLUs that each see all inputs (max-pooling looks like this)",
        )

    def _climb_with_others(self, first: Layer) -> Candidate:
        """Climb from a first layer of more rows: some reach beyond the span of those found."""
        log.info("first layer: more rows than the %d found", len(first[1]))
        rows = np.column_stack(first)
        (W, b), _ = self.method.first.find_others(
            self.oracle, self.noise, rows, np.zeros(len(rows)), self.rng
        )
        self.layers = Layers(self.oracle, self.noise, self.rng, self.method.layers, self.tell)
        if len(b) > len(rows):
            return self._climb_from((W, b), [])
        told = "a neuron of the first layer reads what its others do not, and was not found"
        return self._candidate(Why.UNRESOLVED, told)

    def _explain(self, network: Network) -> Candidate:
        """Look at fresh inputs; find the neurons that are missing where the network is wrong."""
        answers, self.network = self.answers, network
        self._look(network)
        if not len(answers):
            return self._candidate(Why.SATURATED, "no fresh input was answered by numbers")
        network = self._filled(network)
        is_looked_at, is_polished, in_vain, patience = True, False, 0, self.method.patience
        for _ in range(self.method.max_rounds):
            network = self.network = self._fitted(network, is_first=not in_vain)
            wrong = answers.wrong(network)
            log.info(
                "%d of %d wrong, by %.0e, typically %.0e, %d queries",
                wrong.sum(),
                len(wrong),
                answers.errors(network).max(),
                np.median(answers.errors(network)),
                self.oracle.n_queries,
            )
            if wrong.any() and in_vain >= patience:
                break
            if wrong.any():
                self.tell(f"{wrong.sum():,} of {len(wrong):,} inputs are not explained")
                is_faint = answers.errors(network).max() <= self.method.judging.wrong
                mend = self._sharpened if is_polished and is_faint else self._mended
                network = mend(network, wrong)
                left = answers.wrong(network)[: len(wrong)].sum()
                in_vain = 0 if left <= (1.0 - self.method.helps) * wrong.sum() else in_vain + 1
                # What no plain input shows hardly counts.
                patience = self.method.patience if answers.is_wrong_plainly(network) else 1
                is_looked_at = False
            elif is_looked_at:
                # To the last digits, which may show that a rare weight is still off.
                network = self.network = self._polished(network, wrong)
                if not answers.wrong(network).any():
                    return self._candidate(Why.EXPLAINED)
                is_looked_at, is_polished = False, True
            else:
                self._look(network)
                is_looked_at = True
        passing = self._passing_on_everywhere(network)
        if passing is not None:
            self.network, self.has_pairs = passing, True
            return self._candidate(Why.EXPLAINED)
        wrong = answers.wrong(network)
        self.network = self._polished(network, wrong)
        told = f"the network was wrong at {wrong.sum():,} of {len(wrong):,} inputs asked"
        if not answers.is_wrong_plainly(network):
            told += ", all of them sought where few inputs are"
        return self._candidate(Why.UNRESOLVED, told)

    def _passing_on_everywhere(self, network: Network) -> Network | None:
        """The network with pairs for neurons that are always on, if it is wrong nowhere so.

        Where a layer reads what another one has read, too, as ``relu(x + g(x))`` does, the neurons
        that pass that on are off far out; ``relu(z) - relu(-z)`` is ``z`` everywhere.
        """
        answers = self.answers
        if network.skip is not None or answers.is_wrong_plainly(network):
            return None
        are_on = self._are_always_on(network)
        found = network
        for i, is_on in enumerate(are_on[:-1]):
            if is_on.sum() <= self.method.layers.max_always_on:
                continue
            W, b = found.weights[i], found.biases[i]
            pairs = np.hstack([np.eye(len(b)), -np.eye(len(b))[:, is_on]])
            W, b = np.vstack([W, -W[is_on]]), np.append(b, -b[is_on])
            found = found.with_layer(i, W, b, pairs)
        if found is network or answers.wrong(found).any():
            return None
        self._look(found)
        return None if answers.wrong(found).any() else found

    def _look(self, network: Network) -> None:
        """Ask fresh inputs, enough for a fit of all layers, and those that rare states show."""
        n_parameters = self.layers.inner(network).n_parameters
        enough = int(self.method.equations * n_parameters / network.dim_out)
        least = self.method.n_look_again if len(self.answers) else self.method.n_look
        n = max(least, enough - len(self.answers))
        self.answers.look(n)
        self.answers.add(self.answers.extremes(network))

    def _fitted(self, network: Network, *, is_first: bool) -> Network:
        """Fit all layers at once to what was asked; the outcome is wrong nowhere else.

        Where the network is plainly wrong, what takes long waits until it was mended in vain: no
        weights make up for neurons that are missing.
        """
        answers = self.answers
        if network.skip is None:
            kept = ~is_faint(network)
            plain = network.take(kept)
            if not kept.all() and answers.best([plain, network]) is plain:
                network, self.open_weights = plain, self.open_weights.of_rows(kept)
                self.layers.keep(kept)
        wrong = answers.wrong(network)
        inner, Z = self.layers.inner(network), answers.X @ self.layers.basis.T
        is_small = inner.n_parameters <= self.method.dense
        # With a skip there is no quick way to their normal equations.
        is_quick = network.skip is None and wrong.mean() <= self.method.few_wrong
        is_quick &= not is_first or answers.errors(network).max() <= self.method.judging.wrong
        is_quick &= top_of(network).n_parameters <= self.method.dense_top
        if wrong.any() and (is_small or is_quick):
            # A few weights may be off that most inputs do not show.
            samples, stop = Samples.near(Z, answers.Y, self.noise), self.method.steps
            fitted = (
                fit(inner, samples, stop).network
                if is_small
                else fit_top(inner, samples, stop, damping=self.method.damping)
            )
            network = answers.best([self.layers.outer(fitted), network])
            wrong = answers.wrong(network)
        if is_small or float(np.median(answers.errors(network))) > self.method.vague:
            network = self._polished(network, wrong)
        return self._fitted_in_part(network)

    def _fitted_in_part(self, network: Network) -> Network:
        """The network with those neurons fitted that small errors are of, where outputs tell."""
        answers, method = self.answers, self.method
        wrong = answers.wrong(network)
        if not wrong.any() or answers.errors(network).max() > method.judging.wrong:
            return network
        n_weights = network.weights[-2].shape[1] + network.dim_out + 1
        most = min(method.max_fitted, method.dense_top // n_weights)
        at = answers.X[wrong], answers.Y[wrong]
        neurons = neurons_off(network, *at, self.noise.unit, most=most)
        if not len(neurons):
            return network
        samples = Samples.near(answers.X, answers.Y, self.noise)
        other = fit_neurons(network, neurons, samples, method.steps)
        log.info("%d neurons fitted: wrong at %d", len(neurons), answers.wrong(other).sum())
        return answers.best([network, other])

    def _polished(self, network: Network, wrong: BoolArray) -> Network:
        """The network to its last digits, from the answers that it has right."""
        answers = self.answers
        if wrong.all() or self._polished_with == (network, len(answers)):
            return network
        right = X, Y = answers.X[~wrong], answers.Y[~wrong]
        inner, layers = self.layers.inner(network), self.layers
        polished = layers.outer(polish_to_known(inner, X @ layers.basis.T, Y, self.noise))
        before, after = (float(np.median(answers.errors(n, right))) for n in (network, polished))
        # What no answer shows has no reason to move.
        X = answers.drawn(answers.judging.n_drawn)
        apart = answers.errors(polished, (X, network(X)))
        if after < before and apart.max() <= answers.judging.wrong:
            network = polished
        self._polished_with = network, len(answers)
        return network

    def _always_on(self) -> tuple[str, ...]:
        """What is to be said of neurons that pass on an affine map."""
        network = self.network
        if network is None or not self.answers.is_plain.any():
            return ()
        counts = [int(is_on.sum()) for is_on in self._are_always_on(network)]
        return tuple(
            f"{n} of the {network.architecture[i]} neurons of hidden layer {i} are on at every "
            "input asked: together they pass on an affine map; another seed may find a smaller "
            "network"
            for i, n in enumerate(counts, start=1)
            if n > self.method.layers.max_always_on
        )

    def _are_always_on(self, network: Network) -> list[BoolArray]:
        """Which neurons of each hidden layer are on at all plain inputs."""
        X = self.answers.X[self.answers.is_plain]
        return [np.all(z > 0.0, axis=0) for z in network.preactivations(X)[: network.n_hidden]]

    def _without_dead_outputs(self, network: Network) -> Network:
        """The network with outputs that were always 0 made so exactly: they have no other unit."""
        dead = (self.answers.Y == 0.0).all(axis=0)
        if not dead.any():
            return network
        *weights, A = network.weights
        *biases, c = network.biases
        A, c = np.where(dead[:, None], 0.0, A), np.where(dead, 0.0, c)
        skip = network.skip
        if skip is not None:
            skip = np.where(dead[:, None], 0.0, skip[0]), np.where(dead, 0.0, skip[1])
        return Network([*weights, A], [*biases, c], skip)

    def _sharpened(self, network: Network, wrong: BoolArray) -> Network:
        """The network fitted to more answers like those that rare weights make faintly wrong."""
        self.answers.add(self.answers.around(self.answers.X[wrong]))
        return self._polished(network, np.zeros(len(self.answers), dtype=bool))

    # What is missing.

    def _mended(self, network: Network, wrong: BoolArray) -> Network:
        """Insert neurons that are missing where the network is wrong, or ask more there."""
        X = self.answers.X[wrong]
        self.layers.seeds, self.layers.places = [], self._borders(network, wrong)
        inserted = self._inserted(network)
        if inserted is None:
            # Weights may be missing that few inputs show: more of those tell them.
            self.answers.add(self.answers.around(X))
        return self._filled(inserted or network)

    def _filled(self, network: Network) -> Network:
        """Solve for what no walk has told, if that helps, from inputs that show it."""
        if not len(self.open_weights):
            return network
        open_weights, answers = self.open_weights, self.answers
        answers.add(answers.chosen(lambda X: np.abs(np.multiply(*open_weights.shown(network, X)))))
        # Most answers are right, and small errors say nothing; or hardly any, and they say all.
        typical, right = float(np.median(answers.errors(network))), self.method.judging.right
        target, n_wrong = (answers.X, answers.Y, self.noise.unit), int(answers.wrong(network).sum())
        if not n_wrong:
            return network
        noises = {max(typical, right): None, right: None}
        filled = [open_weights.fill(network, *target, noise=noise) for noise in noises]
        network = answers.best([network, *filled])
        for row in np.unique(open_weights.rows):
            errors, wrong = answers.errors(network), answers.wrong(network)
            if not wrong.any():
                break
            at = answers.X[wrong], answers.Y[wrong]
            other = open_weights.fill_row(network, int(row), *at, self.noise.unit, noise=right)
            if (answers.errors(other, at) < errors[wrong]).any():
                network = answers.best([network, other])
        left = int(answers.wrong(network).sum())
        log.info("%d open directions: wrong at %d, now %d", len(open_weights), n_wrong, left)
        return network

    def _inserted(self, network: Network) -> Network | None:
        """Insert the neurons of the seeds, at the lowest level that takes them, if that helps."""
        layers = self.layers
        before = [replace(level, walks=list(level.walks)) for level in layers.levels]
        is_wider = layers.add_first_rows(self.method.first)
        for i, level in enumerate(layers.levels):
            n = len(level.walks)
            layers.walk_from(level, set(), self.method.layers.mending_walk)
            if len(level.walks) == n and not is_wider:
                continue
            # What is above has new neurons below.
            for lower, upper in zip(layers.levels[i:], layers.levels[i + 1 :], strict=False):
                upper.frame, upper.unknown_below = lower.above, lower.rows.undetermined
                layers.rebase(upper.walks, upper.frame)
                layers.sign(upper, surely=False)
        counts = [[len(level.walks) for level in levels] for levels in (before, layers.levels)]
        if counts[0] == counts[1] and not is_wider:
            return None
        now, found = self.open_weights, layers.outputs(layers.levels[-1])
        if found is not None:
            inserted, self.open_weights = found
            inserted = self._filled(inserted)
            if self.answers.mends(inserted, network):
                return inserted
        layers.levels, self.open_weights = before, now
        for level in layers.levels:
            for walk in level.walks:
                if walk.frame is not level.frame:
                    walk.rebase(level.frame)
        return None

    def _borders(self, network: Network, wrong: BoolArray) -> CriticalPoints:
        """Where the network begins to be wrong: there a missing neuron changes its state."""
        method, answers, layers = self.method, self.answers, self.layers
        Z = answers.X @ layers.basis.T
        bad = Z[self.rng.permutation(np.flatnonzero(wrong))[: method.n_wrong]]
        good = Z[~wrong]
        if not len(good):
            return CriticalPoints.none(Z.shape[1])
        near = cdist(bad, good).argsort(axis=1)[:, : method.n_near]
        bad, good = np.repeat(bad, near.shape[1], axis=0), good[near.ravel()]
        # What is missing sets in from nothing: its border is where the network errs at all.
        typical = np.median(answers.errors(network)[~wrong])
        least = SIGMAS * max(answers.sigma, float(typical))
        lo, hi = np.zeros((len(bad), 1)), np.ones((len(bad), 1))
        for _ in range(method.n_halvings):
            middle = (lo + hi) / 2
            X = (good + middle * (bad - good)) @ layers.basis
            is_wrong = answers.errors(network, (X, self.oracle(X)))[:, None] > least
            lo, hi = np.where(is_wrong, lo, middle), np.where(is_wrong, middle, hi)
        width = method.beside * (hi - lo)
        starts, ends = good + (lo - width) * (bad - good), good + (hi + width) * (bad - good)
        inner, pairs = layers.inner(network), zip(starts, ends - starts, strict=True)
        known = [inner.kinks_on_line(x, v, (0.0, 1.0)) for x, v in pairs]
        find = method.layers.seeds.scan.find
        return find(layers.ask, self.noise, starts, ends, known, self.rng)

    def _candidate(self, why: Why, *obstacles: str) -> Candidate:
        self.is_explained = why is Why.EXPLAINED
        if self.network is not None and len(self.answers):
            self.network = self._without_dead_outputs(self.network)
        layers = self._exact_layers(why)
        worst = 0.0
        if why is Why.UNRESOLVED and self.network is not None and len(self.answers):
            worst = float(np.abs(self.network(self.answers.X) - self.answers.Y).max())
        return Candidate(
            self.network,
            why,
            layers=layers,
            notes=self._always_on(),
            obstacles=(*obstacles, *self._seen(why)),
            worst_error=worst,
            figures={"layers": list(layers)},
        )

    def _seen(self, why: Why) -> tuple[str, ...]:
        """What is to be said of hidden neurons above the first layer that were seen in vain."""
        if why is Why.EXPLAINED or not self.layers.levels:
            return ()
        counts = enumerate((len(level.walks) for level in self.layers.levels), start=2)
        seen = ", ".join(f"{n} in hidden layer {i}" for i, n in counts)
        told = f"neurons seen by their surfaces: {seen}; what is above was not finished"
        return (f"{told}: more queries or seconds go on there",) if why is Why.LIMIT else (told,)

    def _exact_layers(self, why: Why) -> tuple[Layer, ...]:
        """The first layer, if all signs agree; of deeper ones a rare neuron may be missing.

        A line crosses every hyperplane of the first layer, but few surfaces of deeper neurons.
        """
        if not self.layers.levels:
            return ()
        level = self.layers.levels[0]
        # Rows with open weights may be deeper neurons', unless the network is explained.
        is_whole = why is Why.EXPLAINED or not level.rows.undetermined.any()
        # Where the search was cut short, what no row explains may be a row's that is missing.
        is_cut = why is Why.LIMIT and bool(self.layers.n_unexplained)
        is_short = why is not Why.EXPLAINED and self.layers.has_dropped
        if not level.is_sure or not is_whole or is_cut or is_short:
            return ()
        W, b = level.frame.stack.weights[0], level.frame.stack.biases[0]
        layer = W @ self.layers.basis, b
        if why is Why.EXPLAINED and self.network is not None:
            layer = _as_fitted(layer, (self.network.weights[0], self.network.biases[0]))
        return (layer,)


def _as_fitted(layer: Layer, fitted: Layer, *, same: float = 1e-3) -> Layer:
    """Rows of a layer with the last digits that a fit to the answers has given them.

    Parameters
    ----------
    layer : tuple of ndarray
        Weights, of rows whose norms stay, and biases.
    fitted : tuple of ndarray
        Of the network that explains the answers, in any order and scale.
    same : float
        How far a row may be off the fitted one of its neuron, relative to its norm.
    """
    rows, others = np.column_stack(layer), np.column_stack(fitted)
    sizes = np.linalg.norm(others[:, :-1], axis=1)
    others = others[sizes > 0.0] / sizes[sizes > 0.0, None]
    if not len(others):
        return layer
    size = np.linalg.norm(rows[:, :-1], axis=1)[:, None]
    apart = cdist(rows / size, others)
    nearest = apart.argmin(axis=1)
    # Two rows near one fitted row stay as they are.
    is_only = np.bincount(nearest, minlength=len(others))[nearest] == 1
    near = (apart.min(axis=1) <= same) & is_only
    rows[near] = (size * others[nearest])[near]
    return rows[:, :-1], rows[:, -1]
