"""Learn: the network behind samples ``(x, f(x))``, without a query."""

import logging
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import norm

from revelu.certify.held_out import FEWEST_CHECKS, certify_held_out
from revelu.errors import InputError
from revelu.network import Network
from revelu.numerics.gaussianity import Law, measure_law
from revelu.oracle import whole_number
from revelu.probe.streams import Chunk, Mapped
from revelu.recover.fit.growth import widest
from revelu.recover.fit.hermite import GaussianSamples, recover_from_samples
from revelu.recovery import Certificate, Recovery, Status
from revelu.tasks.job import check_progress
from revelu.tasks.learn.samples import FEWEST_TO_CERTIFY, Drawn, gather
from revelu.tasks.progress import Listener, teller
from revelu.types import FloatArray

log = logging.getLogger(__name__)

ORDERS = ("auto", "1", "2")

# Samples of which all but this share agree are explained but for what hardly ever fires.
_MOSTLY = 0.99

# Noise of more than this share of what varies leaves nothing to be sure of; nor do fewer
# samples a parameter.
_HOPELESS_NOISE = 0.3
_FEWEST_SAMPLES = 4.0

# Rows that are evaluated at a time.
_ROWS = 65_536

# Answers to one input that lie so far apart by chance alone are one such set in a thousand.
_BY_CHANCE = 1e-3

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
) -> Recovery:
    """Recover a network with one hidden layer and one output from samples alone.

    Parameters
    ----------
    X : array_like, shape (n, d), path, or callable
        Inputs, drawn from N(0, I) or another Gaussian.  Or, ``y`` being left out, samples
        that need not fit in memory: their file or folder (``.npz`` with ``X`` and ``y``,
        Parquet with a column ``y``, a folder of such shards); or a function that returns, at
        each call anew, an iterable of chunks, each of them a pair ``(X, y)`` or a function
        that returns one, which is called where the chunk is worked on.
    y : array_like, shape (n,)
        The network's outputs, with or without independent noise.  Of several outputs each is
        learned for itself.
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

    Returns
    -------
    Recovery
        Rows of weights have norm 1.  The certificate rests on samples kept apart; of fewer
        than 232 different inputs too few can be, and the status is never ``RECOVERED``.
        ``details`` has ``exact``, ``noise`` (its standard deviation), ``standard_errors`` of
        all parameters, in coordinates in which inputs have mean 0 and covariance I,
        ``sign_patterns``, where more than one explains the samples, and ``order``, the least
        at which the theorems apply to the rows found, with ``independence``, the least singular
        value of their products of that order.

    Raises
    ------
    InputError
        If an argument makes no sense, a number is not finite, ``y`` is constant, or the
        samples are fewer than the parameters.

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

    tell = teller(log, progress)
    tell("reading samples")
    seeds = np.random.SeedSequence([_STREAM, seed])
    drawn = gather(X, y, seeds.spawn(1)[0], executor)
    _check_enough(drawn, n_neurons)
    law, unit = measure_law(drawn.X), _unit(drawn.y)
    recovery = recover_from_samples(
        _whitened(drawn, law, unit),
        n_neurons,
        str(order),
        seeds.spawn(1)[0],
        tell,
        max_searches,
        executor,
    )
    tell("verifying on samples kept apart")
    return _certified(_as_before(_with_unit(recovery, unit), law), drawn, law)


def _unit(y: FloatArray) -> float:
    """The power of 2 that answers vary by: dividing by it loses nothing."""
    return float(np.ldexp(1.0, int(np.frexp(np.ptp(y))[1])))


def _whitened(drawn: Drawn, law: Law, unit: float) -> GaussianSamples:
    """The samples in coordinates of mean 0 and covariance I, answers in a unit of theirs."""
    chunks: Iterable[Chunk] | None = drawn.chunks
    whiten = _as_they_are if law.is_standard else law.whiten
    if chunks is not None:
        chunks = Mapped(chunks, whiten, unit)
    return GaussianSamples(whiten(drawn.X), drawn.y / unit, chunks, is_gaussian=not law.objection)


def _as_they_are(X: FloatArray) -> FloatArray:
    return X


def _with_unit(recovery: Recovery, unit: float) -> Recovery:
    """The network, and all that is known of its answers, in the samples' own unit."""
    if recovery.network is None:  # pragma: no cover - a fit always leaves one
        return recovery
    (W, A), (b, c), skip = recovery.network.weights, recovery.network.biases, recovery.network.skip
    if skip is not None:
        skip = (unit * skip[0], unit * skip[1])
    details = dict(recovery.details)
    details["noise"] = unit * details["noise"]
    for name in ("eigenvalues", "moment_errors"):
        if name in details:
            details[name] = [unit * value for value in details[name]]
    if (errors := details["standard_errors"]) is not None:
        V = None if errors.V is None else unit * errors.V
        errors = replace(errors, A=unit * errors.A, c=unit * errors.c, V=V)
        details["standard_errors"] = errors
    if (start := details.get("tensor_estimate")) is not None:
        details["tensor_estimate"] = {**start, "a": unit * start["a"]}
    return replace(
        recovery, network=Network([W, unit * A], [b, unit * c], skip=skip), details=details
    )


def _n_off(network: Network, X: FloatArray, y: FloatArray, tolerance: float) -> int:
    """How many samples a network misses; block by block, for it may have many neurons."""
    blocks = (slice(i, i + _ROWS) for i in range(0, len(X), _ROWS))
    return sum(int((np.abs(network(X[b])[:, 0] - y[b]) > tolerance).sum()) for b in blocks)


def _explained(drawn: Drawn, tolerance: float, noise: float) -> float:
    """The largest difference between answers to one input that noise explains.

    The mean of r answers has the noise of one by the square root of r, and the difference of
    two of them times the square root of 2; of so many pairs none passes this by chance.
    """
    if drawn.n_repeats == 1 or not noise:
        return tolerance
    n_pairs = drawn.n_samples * drawn.n_repeats
    sigmas = float(norm.isf(_BY_CHANCE / n_pairs))
    return float(sigmas * np.sqrt(2.0 * drawn.n_repeats) * noise)


def _counted(drawn: Drawn) -> str:
    n = len(drawn.y) + len(drawn.y_held)
    different = drawn.chunks is None and n < drawn.n_samples
    return f"{drawn.n_samples:,} samples" + (f" of {n:,} different inputs" if different else "")


def _check_enough(drawn: Drawn, n_neurons: int | None) -> None:
    n, d = drawn.X.shape
    m = 1 if n_neurons is None else n_neurons
    if widest(n, d) < m:
        raise InputError(
            f"{_counted(drawn)} are too few: {m} neuron{'s' * (m > 1)} of {d} inputs and "
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
    notes = ["the inputs have another mean or covariance than N(0, I): they were whitened"]
    r, d = law.whitening.shape
    if r < d:
        notes.append(
            f"the inputs vary in {r} of {d} dimensions: of other inputs the samples show nothing"
        )
    return replace(recovery, network=network, warnings=(*recovery.warnings, *notes))


def _certified(recovery: Recovery, drawn: Drawn, law: Law) -> Recovery:
    """The recovery with what samples kept apart, and those that were fitted, say of it."""
    network, details = recovery.network, recovery.details
    if network is None:  # pragma: no cover - a fit always leaves one
        return recovery
    noise = 0.0 if details["exact"] else float(details["noise"])
    certificate = certify_held_out(network, drawn.X_held, drawn.y_held, noise)
    if details["exact"]:
        status, evidence, warnings = _judged_exact(network, certificate, drawn)
    else:
        settled = bool(details["settled"])
        status, evidence, warnings = _judged_noisy(
            network, certificate, drawn, noise, settled=settled
        )
    if drawn.disagreement > _explained(drawn, certificate.tolerance, noise):
        status = Status.UNVERIFIED
        evidence.append(
            f"the same input has answers that differ by {drawn.disagreement:.2g}, and what was "
            "fitted is their mean: samples of two functions are not those of one"
        )
    elif status is Status.UNVERIFIED and not evidence:
        evidence.append(
            f"no network of up to {widest(*drawn.X.shape)} neurons that samples kept apart agree "
            "with was found; more samples may help"
        )
    if law.objection:
        warnings.insert(0, f"{law.objection}; fitted all the same, outside the theorems")
    return replace(
        recovery,
        status=status,
        certificate=certificate,
        evidence=(*recovery.evidence, *evidence),
        warnings=(*recovery.warnings, *warnings),
        details={**details, "n_samples": drawn.n_samples, "objection": law.objection},
    )


_Verdict: TypeAlias = tuple[Status, list[str], list[str]]


def _judged_exact(network: Network, certificate: Certificate, drawn: Drawn) -> _Verdict:
    """Status, evidence and warnings of a network that leaves nothing of the samples fitted."""
    if certificate.n_checks < FEWEST_CHECKS and certificate.fraction_within == 1.0:
        few = (
            f"the {certificate.n_checks} samples kept apart agree, which are too few to certify "
            f"it: of {FEWEST_TO_CERTIFY} samples of different inputs there are enough"
        )
        return Status.UNVERIFIED, [few], []
    n_off = _n_off(network, drawn.X, drawn.y, certificate.tolerance)
    if certificate.passed and not n_off:
        return Status.RECOVERED, [], []
    if certificate.passed:
        why = (
            f"{n_off:,} of the {len(drawn.y):,} samples that were fitted differ by more than "
            f"{certificate.tolerance:.2g}: they come from another function, or from neurons "
            "that hardly ever fire"
        )
        return Status.PARTIAL, [why], []
    if certificate.fraction_within >= _MOSTLY:
        why = "all but a few samples agree: neurons that hardly ever fire are missing"
        return Status.PARTIAL, [why], []
    return Status.UNVERIFIED, [], []


def _judged_noisy(
    network: Network, certificate: Certificate, drawn: Drawn, noise: float, *, settled: bool
) -> _Verdict:
    """Status, evidence and warnings of a network that leaves what is taken to be noise."""
    status, warnings = Status.UNVERIFIED, []
    limit = float(norm.isf(_BY_CHANCE / len(drawn.y))) * noise
    n_off = _n_off(network, drawn.X, drawn.y, limit)
    if n_off:
        warnings.append(
            f"{n_off:,} of the {len(drawn.y):,} samples that were fitted differ by more than "
            f"{limit:.2g}, which is more than noise of {noise:.2g} does: they may come from "
            "another function"
        )
    enough = len(drawn.y) >= _FEWEST_SAMPLES * network.n_parameters
    quiet = noise < _HOPELESS_NOISE * float(drawn.y.std())
    if certificate.passed and settled and enough and quiet:
        # A function of another kind, fitted piece by piece, keeps an affine rest.
        status = Status.RECOVERED if network.skip is None else Status.PARTIAL
        warnings.append(
            f"the answers are taken to have noise of {noise:.2g}, which is what no further "
            "neuron explains; a difference smaller than it would go unnoticed"
        )
    return status, [], warnings
