"""Learn: the network behind samples ``(x, f(x))``, without a query."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import InputError
from revelu.formats.samples import find_shards
from revelu.numerics.links import Link
from revelu.oracle import whole_number
from revelu.recovery import Recovery
from revelu.tasks.job import check_progress
from revelu.tasks.learn.classes import learn_classes, n_classes
from revelu.tasks.learn.linked import Behind, named_link, undone
from revelu.tasks.learn.one_output import learn_one
from revelu.tasks.partial import keep_partial, partial_of
from revelu.tasks.progress import Listener

ORDERS = ("auto", "1", "2")


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
    link: str = "auto",
    max_seconds: float | None = None,
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
        Give up after ``max_searches``; else when the work is out of proportion.
    seed, progress
        As of :func:`revelu.extract`.
    target, drop : str or sequence of str
        Of tables in files: the columns of answers, ``"y"`` where not given, and those that are
        neither answers nor inputs; by name or by number from 0.
    link : str
        What undoes the head that answers are behind, as of :func:`revelu.extract`: ``logit`` of
        probabilities of one class, which all lie between 0 and 1.  ``auto`` takes those of all
        classes for such, and other answers as they are.
    max_seconds : float, optional
        The best network until then is returned, ``BUDGET_EXHAUSTED``; what is being read is read
        to its end.

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
    named = named_link(link)
    seed = whole_number("seed", seed, 0)
    if n_neurons is not None:
        n_neurons = whole_number("n_neurons", n_neurons, 1)
    if max_searches is not None:
        max_searches = whole_number("max_searches", max_searches, 1)
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise InputError(
            f"executor must be a concurrent.futures.Executor, got {type(executor).__name__}"
        )
    if max_seconds is not None and not max_seconds > 0:
        raise InputError(f"max_seconds must be positive, got {max_seconds!r}")
    check_progress(progress)
    one = partial(
        learn_one,
        n_neurons=n_neurons,
        order=str(order),
        seed=seed,
        executor=executor,
        max_searches=max_searches,
        progress=progress,
        until=np.inf if max_seconds is None else time.monotonic() + max_seconds,
    )
    shards = None
    names: tuple[str, ...] = ()
    if isinstance(X, str | PathLike) and y is None:
        shards = find_shards(Path(X), _names(target), _names(drop))
        X, first, names = partial(list, shards), shards[0].several(), shards[0].inputs
    elif target or drop:
        raise InputError("target and drop are for samples in files")
    else:
        first = y
    k = n_classes(first) if first is not None else 0
    if named is not None and named.name == "softmax" and not k:
        raise InputError(f"link {named}: these are not probabilities of all classes")
    if k and (named is None or named.name == "softmax"):
        return learn_classes(X, y, shards, k, one)
    if named is None or not named.has_head:
        return one(X, y, names=names)
    return _learn_behind(named, partial(one, names=names), X, y)


def _learn_behind(link: Link, one: Callable[[Any, Any], Recovery], X: Any, y: Any) -> Recovery:
    """Learn what is behind a link, and say so, at an interrupt too."""
    try:
        if y is None and callable(X):
            return _behind(one(Behind(X, link), None), link)
        return _behind(one(X, y if y is None else undone(y, link)), link)
    except KeyboardInterrupt as error:
        if isinstance(partial_result := partial_of(error), Recovery):
            keep_partial(error, _behind(partial_result, link))
        raise


def _behind(found: Recovery, link: Link) -> Recovery:
    """Say of what was learned that it is behind a link."""
    return replace(found, link=link, warnings=(link.said("learned"), *found.warnings))


def _names(given: str | Sequence[str]) -> Sequence[str]:
    return [given] if isinstance(given, str) else list(given)
