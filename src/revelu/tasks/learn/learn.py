"""Learn: the network behind samples ``(x, f(x))``, without a query."""

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import InputError
from revelu.formats.samples import find_shards
from revelu.network import Network
from revelu.numerics.cut_columns import are_cut, steps_of
from revelu.numerics.gaussianity import Law, measure_law
from revelu.oracle import whole_number
from revelu.probe.streams import Chunk, Mapped
from revelu.recover.fit.hermite import GaussianSamples, Hermite
from revelu.recover.fit.learned import Learned
from revelu.recovery import Recovery
from revelu.tasks.job import check_progress
from revelu.tasks.learn.classes import learn_classes, n_classes
from revelu.tasks.learn.samples import Drawn, counted, gather
from revelu.tasks.learn.verdict import Verdict, cut_short
from revelu.tasks.notebook import listener
from revelu.tasks.partial import keep_partial
from revelu.tasks.progress import Listener, teller
from revelu.types import FloatArray

log = logging.getLogger(__name__)

Whiten = Callable[[FloatArray], FloatArray]

ORDERS = ("auto", "1", "2")

_CUT = (
    "the inputs are whole multiples of a step and were cut toward zero: half a step was given "
    "back, and the network is that of inputs that were not cut"
)

# Keeps these random choices apart from those that drew the samples.
_STREAM = 0x6C65_6172_6E


def learn(
    X: Any,
    y: Any = None,
    n_neurons: int | None = None,
    order: str | int = "auto",
    seed: int = 0,
    *,
    executor: Executor | None = None,
    max_searches: int | None = None,
    progress: Listener | None = None,
    target: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
) -> Recovery:
    """Recover a network with one hidden layer and one output from samples alone.

    Parameters
    ----------
    X : array_like, shape (n, d), path, or callable
        Inputs, drawn from N(0, I) or another Gaussian.  Or, ``y`` being left out, samples
        that need not fit in memory: their file or folder (``.npz`` with ``X`` and ``y``, or
        Parquet or CSV with a column ``y``, or a folder of such shards); or a function that
        returns, at each call anew, an iterable of chunks, each of them a pair ``(X, y)`` or a
        function that returns one, which is called where the chunk is worked on.
    y : array_like, shape (n,) or (n, k)
        The network's outputs, with or without independent noise.  Of several outputs each is
        learned for itself; only probabilities of k classes are learned together, as logits.
    n_neurons : int, optional
        If known; else found.
    order : {"auto", 1, 2}
        1: rows of weights are linearly independent (no more neurons than inputs).  2: they
        need not be.
    executor : concurrent.futures.Executor, optional
        Reads chunks and sums their moments: threads, processes, or a Dask cluster through
        ``client.get_executor()``.  The result is the same for any number of workers.
    max_searches : int, optional
        Give up after so many; else when the work is out of proportion.
    seed, progress
        As of :func:`revelu.extract`.
    target, drop : str or sequence of str
        Of tables in files: the columns of answers, ``"y"`` where not given, and those that are
        neither answers nor inputs; by name or by number from 0.

    Returns
    -------
    Recovery
        Rows of weights have norm 1.  The certificate rests on samples kept apart; of fewer
        than 232 different inputs too few can be, and the status is never ``RECOVERED``.
        ``details`` has ``exact``, ``noise`` (its standard deviation), ``standard_errors`` of
        all parameters, in coordinates in which inputs have mean 0 and covariance I,
        ``sign_patterns``, where more than one explains the samples, and ``order``, the least
        at which the theorems apply to the rows found, with ``independence``, the least singular
        value of their products of that order; of several outputs these are the first one's.

    Raises
    ------
    InputError
        If an argument makes no sense, a number is not finite, ``y`` is constant, or the
        samples are fewer than the parameters.
    KeyboardInterrupt
        At an interrupt: its ``partial`` is the best network until then, uncertified.

    Notes
    -----
    After Awasthi, Tang and Vijayaraghavan, NeurIPS 2021; see :mod:`revelu.recover.fit.hermite`.

    Examples
    --------
    >>> import numpy as np, revelu
    >>> X = np.random.default_rng(0).standard_normal((400, 4))
    >>> y = np.maximum(X @ [0.6, 0.8, 0, 0] + 0.5, 0) - np.maximum(X @ [0, 0, 1, 0], 0)
    >>> recovery = revelu.learn(X, y)
    >>> recovery.status.value, recovery.network.architecture
    ('recovered', (4, 2, 1))
    """
    if str(order) not in ORDERS:
        raise InputError(f"unknown order {order!r}; known: {', '.join(ORDERS)}")
    seed = whole_number("seed", seed, 0)
    if n_neurons is not None:
        n_neurons = whole_number("n_neurons", n_neurons, 1)
    if max_searches is not None:
        max_searches = whole_number("max_searches", max_searches, 1)
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise InputError(
            f"executor must be a concurrent.futures.Executor, got {type(executor).__name__}"
        )
    check_progress(progress)
    one = partial(
        _learn_one,
        n_neurons=n_neurons,
        order=str(order),
        seed=seed,
        executor=executor,
        max_searches=max_searches,
        progress=progress,
    )
    shards = None
    if isinstance(X, str | PathLike) and y is None:
        shards = find_shards(Path(X), _names(target), _names(drop))
        X, first = partial(list, shards), shards[0].several()
    elif target or drop:
        raise InputError("target and drop are for samples in files")
    else:
        first = y
    if first is not None and (k := n_classes(first)):
        return learn_classes(X, y, shards, k, one)
    return one(X, y)


def _names(given: str | Sequence[str]) -> Sequence[str]:
    return [given] if isinstance(given, str) else list(given)


def _learn_one(
    X: Any,
    y: Any,
    *,
    n_neurons: int | None,
    order: str,
    seed: int,
    executor: Executor | None,
    max_searches: int | None,
    progress: Listener | None,
) -> Recovery:
    """Learn one output."""
    tell = teller(log, listener(progress))
    tell("reading samples")
    seeds = np.random.SeedSequence([_STREAM, seed])
    drawn = gather(X, y, seeds.spawn(1)[0], executor)
    method = Hermite(n_neurons, order, max_searches)
    _check_enough(drawn, method)
    drawn, other = _as_measured(drawn, method, np.random.default_rng(seeds.spawn(1)[0]))
    law, unit = measure_law(drawn.X), _unit(drawn.y)
    whiten = _as_they_are if law.is_standard else law.whiten
    rng = np.random.default_rng(seeds.spawn(1)[0])
    samples, best = _whitened(drawn, whiten, unit, law), list[Network]()
    try:
        learned = method.recover(samples, rng, tell, executor, best.append)
        if other is not None and not learned.is_exact:
            others = _whitened(other, whiten, unit, law)
            if method.explains_more(learned, samples, others):
                tell("fitting inputs that were rounded otherwise")
                drawn = other
                learned = method.recover(others, rng, tell, executor, best.append)
    except KeyboardInterrupt as error:
        if best:
            network = _network_as_before(best[-1].then(np.array([[unit]])), law)
            keep_partial(error, cut_short(network, drawn))
        raise
    tell("verifying on samples kept apart")
    learned = learned.in_unit(unit)
    scales = partial(_scales, learned, whiten)
    learned = _as_before(learned, law)
    widest = method.widest(*drawn.X.shape)
    found = Verdict(learned, drawn, law.objection, widest, scales).recovery()
    if drawn.was_cut:
        found = replace(found, warnings=(*found.warnings, _CUT))
    return found


def _as_measured(
    drawn: Drawn, method: Hermite, rng: np.random.Generator
) -> tuple[Drawn, Drawn | None]:
    """The samples, and the same otherwise, where columns may have been cut toward zero."""
    steps = steps_of(drawn.X)
    if not steps.any():
        return drawn, None
    law, unit = measure_law(drawn.X), _unit(drawn.y)
    left = method.left_by_one_search(_whitened(drawn, law.whiten, unit, law), rng)
    if left <= method.agrees:  # a function of the numbers as they are written
        return drawn, None
    cut = drawn.as_measured(steps)
    return (cut, drawn) if are_cut(drawn.X, steps) else (drawn, cut)


def _unit(y: FloatArray) -> float:
    """The power of 2 that answers vary by: dividing by it loses nothing."""
    return float(np.ldexp(1.0, int(np.frexp(np.ptp(y))[1])))


def _scales(learned: Learned, whiten: Whiten, X: FloatArray) -> FloatArray:
    """How far answers are expected to err at inputs as they came."""
    return learned.scales(whiten(X))


def _whitened(drawn: Drawn, whiten: Whiten, unit: float, law: Law) -> GaussianSamples:
    """The samples in coordinates of mean 0 and covariance I, answers in a unit of theirs."""
    chunks: Iterable[Chunk] | None = drawn.chunks
    if chunks is not None:
        chunks = Mapped(chunks, whiten, unit)
    return GaussianSamples(whiten(drawn.X), drawn.y / unit, chunks, is_gaussian=not law.objection)


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


def _network_as_before(network: Network, law: Law) -> Network:
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


def _as_before(learned: Learned, law: Law) -> Learned:
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
