"""Learn: the network behind samples ``(x, f(x))``, without a query."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from revelu.certify.held_out import certify_held_out
from revelu.errors import InputError
from revelu.formats.samples import SampleFiles, check_samples
from revelu.network import Network
from revelu.numerics.gaussianity import Law, measure_law
from revelu.oracle import whole_number
from revelu.probe.moments import Chunk
from revelu.recover.growth import widest
from revelu.recover.hermite import GaussianSamples, recover_from_samples
from revelu.recovery import Recovery, Status
from revelu.tasks.progress import Listener, Progress
from revelu.types import FloatArray

log = logging.getLogger(__name__)

ORDERS = ("auto", "1", "2")

# What is kept in memory for fits, in numbers; moments see all samples.
_MOST_NUMBERS = 40_000_000

# Kept apart for the certificate: this share, within limits.
_HELD_OUT = 0.05
_LEAST_HELD_OUT = 16
_MOST_HELD_OUT = 3000

# Samples of which all but this share agree are explained but for what hardly ever fires.
_MOSTLY = 0.99

# Noise of more than this share of what varies leaves nothing to be sure of; nor do fewer
# samples a parameter.
_HOPELESS_NOISE = 0.3
_FEWEST_SAMPLES = 4.0

# Keeps these random choices apart from those that drew the samples.
_STREAM = 0x6C65_6172_6E


def learn(
    X: Any,
    y: Any = None,
    n_neurons: int | None = None,
    order: str | int = "auto",
    seed: int = 0,
    *,
    max_searches: int | None = None,
    progress: Listener | None = None,
) -> Recovery:
    """Recover a network with one hidden layer and one output from samples alone.

    Parameters
    ----------
    X : array_like, shape (n, d), or path
        Inputs, drawn from N(0, I) or another Gaussian; or the samples' file or folder,
        ``y`` being left out then (``.npz`` with ``X`` and ``y``, Parquet with a column ``y``,
        a folder of such shards, which need not fit in memory).
    y : array_like, shape (n,)
        The network's outputs, with or without independent noise.
    n_neurons : int, optional
        If known; else found.
    order : {"auto", 1, 2}
        1: rows of weights are linearly independent (no more neurons than inputs).  2: they
        need not be.
    seed : int
        Decides every random choice.
    max_searches : int, optional
        Give up after so many; else when the work is out of proportion.
    progress : callable, optional
        Called with a :class:`revelu.tasks.progress.Progress` now and then.

    Returns
    -------
    Recovery
        Rows of weights have norm 1.  The certificate rests on samples kept apart.
        ``details`` has ``exact``, ``noise`` (its standard deviation), ``standard_errors`` of
        all parameters, in coordinates in which inputs have mean 0 and covariance I, and
        ``sign_patterns``, where more than one explains the samples.

    Raises
    ------
    InputError
        If an argument makes no sense, a number is not finite, ``y`` is constant, or the
        samples are fewer than the parameters.

    Notes
    -----
    After Awasthi, Tang and Vijayaraghavan, NeurIPS 2021; see :mod:`revelu.recover.hermite`.

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
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be callable, got {type(progress).__name__}")

    def tell(message: str) -> None:
        log.debug("%s", message)
        if progress is not None:
            progress(Progress("recover", 0, 0, message))

    tell("reading samples")
    seeds = np.random.SeedSequence([_STREAM, seed])
    drawn = _gather(X, y, np.random.default_rng(seeds.spawn(1)[0]))
    _check_enough(drawn, n_neurons)
    law = measure_law(drawn.X)
    samples = GaussianSamples(
        law.whiten(drawn.X),
        drawn.y,
        None if drawn.shards is None else _Whitened(drawn.shards, law),
        is_gaussian=not law.objection,
    )
    recovery = recover_from_samples(
        samples, n_neurons, str(order), seeds.spawn(1)[0], tell, max_searches
    )
    tell("verifying on samples kept apart")
    return _certified(_as_before(recovery, law), drawn, law)


@dataclass(frozen=True)
class _Drawn:
    """Samples in memory, those kept apart, and where the rest is."""

    X: FloatArray
    y: FloatArray
    X_held: FloatArray
    y_held: FloatArray
    n_samples: int
    shards: SampleFiles | None


@dataclass(frozen=True)
class _Whitened:
    """All samples again, chunk by chunk."""

    shards: Iterable[Chunk]
    law: Law

    def __call__(self) -> Iterator[Chunk]:
        for X, y in self.shards:
            yield self.law.whiten(X), y


def _gather(X: Any, y: Any, rng: np.random.Generator) -> _Drawn:
    """Take as many samples into memory as fits need, in random order."""
    if isinstance(X, str | PathLike):
        if y is not None:
            raise InputError("y belongs to arrays; a file of samples holds its own")
        shards = SampleFiles(Path(X))
        rows, answers, n = _sampled(shards, rng)
        left_out = n > len(rows)
    else:
        if y is None:
            raise InputError("y is missing")
        shards, left_out = None, False
        rows, answers = check_samples(_as_array("X", X), _as_array("y", y))
        n = len(rows)
        by_chance = rng.permutation(n)
        rows, answers = rows[by_chance], answers[by_chance]
    if n < 2 or np.ptp(answers) == 0:
        raise InputError(f"{n:,} samples, all with the same y: nothing to learn")
    held = int(np.clip(_HELD_OUT * len(rows), _LEAST_HELD_OUT, _MOST_HELD_OUT))
    held = min(held, len(rows) // 4)
    parts = rows[held:], answers[held:], rows[:held], answers[:held]
    return _Drawn(*parts, n, shards if left_out else None)


def _sampled(shards: SampleFiles, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, int]:
    """A uniform sample of all rows, and how many there are: those of the least random keys."""
    n = 0
    keys, rows, answers = np.zeros(0), np.zeros((0, 0)), np.zeros(0)
    for X, y in shards:
        rows = np.concatenate([rows, X]) if n else X
        keys = np.concatenate([keys, rng.random(len(y))])
        answers = np.concatenate([answers, y])
        n += len(y)
        order = np.argsort(keys)[: max(_MOST_NUMBERS // X.shape[1], 1)]
        keys, rows, answers = keys[order], rows[order], answers[order]
    if not n:
        raise InputError(f"{shards.path}: holds no samples")
    return rows, answers, n


def _as_array(name: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a numeric array: {error}") from None


def _check_enough(drawn: _Drawn, n_neurons: int | None) -> None:
    n, d = drawn.X.shape
    m = 1 if n_neurons is None else n_neurons
    if widest(n, d) < m:
        raise InputError(
            f"{drawn.n_samples:,} samples are too few: {m} neuron{'s' * (m > 1)} of {d} inputs and "
            f"an affine rest have {m * (d + 2) + d + 1:,} parameters, and some samples are kept "
            "apart"
        )


def _as_before(recovery: Recovery, law: Law) -> Recovery:
    """The network in the coordinates of the samples, rows of norm 1."""
    if recovery.network is None or law.is_standard:
        return recovery
    (W, A), (b, c), skip = recovery.network.weights, recovery.network.biases, recovery.network.skip
    W = W @ law.whitening
    b = b - W @ law.mean
    norms = np.linalg.norm(W, axis=1)
    if skip is not None:
        V = skip[0] @ law.whitening
        skip = (V, skip[1] - V @ law.mean)
    network = Network([W / norms[:, None], A * norms], [b / norms, c], skip=skip)
    note = "the inputs have another mean or covariance than N(0, I): they were whitened"
    return replace(recovery, network=network, warnings=(*recovery.warnings, note))


def _certified(recovery: Recovery, drawn: _Drawn, law: Law) -> Recovery:
    network, details = recovery.network, recovery.details
    if network is None:  # pragma: no cover - a fit always leaves one
        return recovery
    noise = 0.0 if details["exact"] else float(details["noise"])
    certificate = certify_held_out(network, drawn.X_held, drawn.y_held, noise)
    spread = float(drawn.y.std())
    warnings, evidence = list(recovery.warnings), list(recovery.evidence)
    status = Status.UNVERIFIED
    if law.objection:
        warnings.append(f"{law.objection}; fitted all the same, outside the theorems")
    if details["exact"]:
        if certificate.passed:
            status = Status.RECOVERED
        elif certificate.fraction_within >= _MOSTLY:
            status = Status.PARTIAL
            evidence.append(
                "all but a few samples agree: neurons that hardly ever fire are missing"
            )
    else:
        enough = len(drawn.y) >= _FEWEST_SAMPLES * network.n_parameters
        if (
            certificate.passed
            and details["settled"]
            and enough
            and noise < _HOPELESS_NOISE * spread
        ):
            # A function of another kind, fitted piece by piece, keeps an affine rest.
            status = Status.RECOVERED if network.skip is None else Status.PARTIAL
            warnings.append(
                f"the answers are taken to have noise of {noise:.2g}, which is what no further "
                "neuron explains; a difference smaller than it would go unnoticed"
            )
    if status is Status.UNVERIFIED:
        evidence.append(
            f"no network of up to {widest(*drawn.X.shape)} neurons that samples kept apart agree "
            "with was found; more samples may help"
        )
    return replace(
        recovery,
        status=status,
        certificate=certificate,
        evidence=tuple(evidence),
        warnings=tuple(warnings),
        details={**details, "n_samples": drawn.n_samples, "objection": law.objection},
    )
