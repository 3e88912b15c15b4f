"""One output of a table: read, whitened, learned, and brought back to the table's coordinates."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from revelu.errors import InputError
from revelu.network import Network
from revelu.numerics.cut_columns import are_cut, steps_of
from revelu.numerics.gaussianity import InputLaw, measure_law
from revelu.numerics.interruption import WorkEndedError, at_most, interruptible
from revelu.probe.streams import Chunk, Mapped
from revelu.recover.fit.growth import affine_fit
from revelu.recover.fit.hermite import GaussianSamples, Hermite
from revelu.recover.fit.learned import Learned
from revelu.recovery import Recovery, Status
from revelu.tasks.learn.appearance import are_few, of_answers, other_answers, refuse_labels
from revelu.tasks.learn.samples import Drawn, counted, gather
from revelu.tasks.learn.verdict import SampleVerdict, cut_short
from revelu.tasks.notebook import listener
from revelu.tasks.partial import keep_partial
from revelu.tasks.progress import Listener, teller
from revelu.types import FloatArray

log = logging.getLogger(__name__)

Whiten = Callable[[FloatArray], FloatArray]

_CUT = (
    "the inputs are whole multiples of a step and were cut toward zero: half a step was given "
    "back, and the network is that of inputs that were not cut"
)

# Keeps these random choices apart from those that drew the samples.
_STREAM = 0x6C65_6172_6E


class _TimeIsOverError(Exception):
    """As much time as was given is over."""


def learn_one(
    X: Any,
    y: Any,
    *,
    n_neurons: int | None,
    order: str,
    seed: int,
    executor: Executor | None,
    max_searches: int | None,
    progress: Listener | None,
    until: float,
    names: Sequence[str] = (),
    work_on_few: float = 2e10,
) -> Recovery:
    """Learn one output.

    Parameters
    ----------
    until : float
        When, by the monotonic clock, the best network until then is returned.
    names : sequence of str
        Of the inputs, where they have any.
    work_on_few : float
        Multiplications of a search where answers are of few values, and hardly those of a
        network: some seconds.
    others
        As of :func:`revelu.learn`.
    """
    tell = teller(log, listener(progress))
    tell("reading samples")
    seeds = np.random.SeedSequence([_STREAM, seed])
    drawn = gather(X, y, seeds.spawn(1)[0], executor)
    method = Hermite(n_neurons, order, max_searches)
    refuse_labels(drawn.y)
    _check_enough(drawn, method)
    rngs = [np.random.default_rng(s) for s in seeds.spawn(2)]
    work = _Work(method, drawn, rngs[0], tell, executor)
    most = work_on_few if are_few(drawn.y) else np.inf
    try:
        with interruptible(partial(_check_time, until)), at_most(most):
            learned = work.run(rngs[1])
    except WorkEndedError:
        why = f"{of_answers(drawn.y)}, and the search was ended"
        return cut_short(work.found_until_now(), work.drawn, why)
    except KeyboardInterrupt as error:
        if work.best:
            keep_partial(error, cut_short(work.found_until_now(), work.drawn))
        raise
    except _TimeIsOverError:
        found = cut_short(work.found_until_now(), work.drawn, "the time is over")
        return replace(found, status=Status.BUDGET_EXHAUSTED)
    tell("verifying on samples kept apart")
    return _judged(work, learned, names)


@dataclass
class _Work:
    """The search for one output's network.

    Attributes
    ----------
    best : list of Network
        Ever better ones, whitened.
    """

    method: Hermite
    drawn: Drawn
    rng: np.random.Generator
    tell: Callable[[str], None]
    executor: Executor | None
    best: list[Network] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.unit = _unit(self.drawn.y)
        self.law = measure_law(self.drawn.X)

    @property
    def whiten(self) -> Whiten:
        """What makes inputs those of mean 0 and covariance I."""
        return _as_they_are if self.law.is_standard else self.law.whiten

    def run(self, trial: np.random.Generator) -> Learned:
        """Learn from the inputs as they are written, or were measured."""
        self.drawn, other = self._as_measured(trial)
        self.law = measure_law(self.drawn.X)
        samples = self._samples(self.drawn)
        learned = self._learned(samples)
        if other is None or learned.is_exact:
            return learned
        others = self._samples(other)
        if not self.method.explains_more(learned, samples, others):
            return learned
        self.tell("fitting inputs that were rounded otherwise")
        self.drawn = other
        return self._learned(others)

    def found_until_now(self) -> Network:
        """The best network so far, or an affine map, in the coordinates of the samples."""
        samples = self._samples(self.drawn)
        found = self.best[-1] if self.best else affine_fit(self.method.fitted(samples))
        return _network_as_before(found.then(np.array([[self.unit]])), self.law)

    def _learned(self, samples: GaussianSamples) -> Learned:
        keep, method = self.best.append, self.method
        return method.recover(samples, self.rng, self.tell, self.executor, keep)

    def _as_measured(self, trial: np.random.Generator) -> tuple[Drawn, Drawn | None]:
        """The samples, and the same otherwise, where columns may have been cut toward zero."""
        drawn = self.drawn
        steps = steps_of(drawn.X)
        if not steps.any():
            return drawn, None
        left = self.method.left_by_one_search(self._samples(drawn), trial)
        if left <= self.method.agrees:  # a function of the numbers as they are written
            return drawn, None
        cut = drawn.as_measured(steps)
        return (cut, drawn) if are_cut(drawn.X, steps) else (drawn, cut)

    def _samples(self, drawn: Drawn) -> GaussianSamples:
        """Coordinates of mean 0 and covariance I, answers in a unit of theirs."""
        chunks: Iterable[Chunk] | None = drawn.chunks
        if chunks is not None:
            chunks = Mapped(chunks, self.whiten, self.unit)
        gaussian = not self.law.objection
        X = self.whiten(drawn.X)
        return GaussianSamples(X, drawn.y / self.unit, chunks, is_gaussian=gaussian)


def _judged(work: _Work, learned: Learned, names: Sequence[str]) -> Recovery:
    """What was learned, in the coordinates of the samples, with its status and certificate."""
    drawn, law = work.drawn, work.law
    learned = learned.in_unit(work.unit)
    scales = partial(_scales, learned, work.whiten)
    learned = _as_before(learned, law)
    widest = work.method.widest(*drawn.X.shape)
    found = SampleVerdict(learned, drawn, law.objection, widest, scales).recovery()
    said = [_CUT] if drawn.was_cut else []
    network = learned.network
    if not network.architecture[1] and found.status is Status.RECOVERED:
        said += [
            f"input {name} is itself determined by the others, as an answer would be: if it is "
            f"one, --drop {name}"
            for name in other_answers(drawn.X, network.affine[0][0], names)
        ]
    return replace(found, warnings=(*found.warnings, *said))


def _check_time(until: float) -> None:
    if time.monotonic() > until:
        raise _TimeIsOverError


def _unit(y: FloatArray) -> float:
    """The power of 2 that answers vary by: dividing by it loses nothing."""
    return float(np.ldexp(1.0, int(np.frexp(np.ptp(y))[1])))


def _scales(learned: Learned, whiten: Whiten, X: FloatArray) -> FloatArray:
    """How far answers are expected to err at inputs as they came."""
    return learned.scales(whiten(X))


def _as_they_are(X: FloatArray) -> FloatArray:
    return X


def _check_enough(drawn: Drawn, method: Hermite) -> None:
    (n, d), m = drawn.X.shape, method.n_neurons or 1
    if method.widest(n, d) < m:
        raise InputError(
            f"{counted(drawn)} are too few: {m} neuron{'s' * (m > 1)} of {d} inputs and "
            f"an affine rest have {m * (d + 2) + d + 1:,} parameters, and some samples are kept "
            "apart"
        )


def _network_as_before(network: Network, law: InputLaw) -> Network:
    """The network in the coordinates of the samples, rows of norm 1."""
    if law.is_standard:
        return network
    (W, A), (b, c), skip = network.weights, network.biases, network.skip
    W = W @ law.whitening
    b = b - W @ law.mean
    norms = np.linalg.norm(W, axis=1)
    if skip is not None:
        V = skip[0] @ law.whitening
        skip = (V, skip[1] - V @ law.mean)
    return Network([W / norms[:, None], A * norms], [b / norms, c], skip=skip)


def _as_before(learned: Learned, law: InputLaw) -> Learned:
    """What was learned, in the coordinates of the samples."""
    if law.is_standard:
        return learned
    network = _network_as_before(learned.network, law)
    notes = ["the inputs have another mean or covariance than N(0, I): they were whitened"]
    r, d = law.whitening.shape
    if r < d:
        notes.append(
            f"the inputs vary in {r} of {d} dimensions: of other inputs the samples show nothing"
        )
    return replace(learned, network=network, warnings=(*learned.warnings, *notes))
