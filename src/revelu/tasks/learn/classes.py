"""Probabilities of classes as samples: one log-ratio to the last class is learned after another."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from revelu.errors import FormatError
from revelu.formats.samples import CheckedChunk, row_name
from revelu.network import Network
from revelu.network.logits import from_log_ratios
from revelu.network.simplify import simplify
from revelu.numerics.links import Link
from revelu.oracle import log_ratios
from revelu.oracle.log_ratios import are_probabilities
from revelu.recovery import Certificate, Recovery, Result, Status
from revelu.tasks.partial import keep_partial, partial_of
from revelu.types import FloatArray

# From best to worst: a network of several outputs is as good as the worst of them.
_STATUSES = (
    Status.RECOVERED,
    Status.PARTIAL,
    Status.BUDGET_EXHAUSTED,
    Status.UNVERIFIED,
)

Learn = Callable[[Any, Any], Recovery]


def n_classes(y: Any, digits: float = 1e-6) -> int:
    """Tell of how many classes some answers are probabilities.

    Parameters
    ----------
    y : ndarray, shape (n, k)
    digits : float
        By how much rounding in a file may move a sum of k probabilities, for each.

    Returns
    -------
    int
        0 where they are none: of one output, or not positive, or of another sum than 1.
    """
    Y = np.asarray(y)
    if Y.ndim != 2 or Y.shape[1] < 2 or not len(Y) or Y.dtype.kind not in "fiu":
        return 0
    slack = np.full(len(Y), digits * Y.shape[1])
    both = are_probabilities(Y.astype(np.float64), float(np.finfo(np.float64).eps), slack)
    return Y.shape[1] if both.all() and not np.isin(Y, (0.0, 1.0)).all() else 0


def learn_classes(
    X: Any, y: Any, shards: Sequence[CheckedChunk] | None, k: int, learn: Learn
) -> Recovery:
    """Learn the logits behind probabilities of ``k`` classes; the last one's are 0.

    Parameters
    ----------
    X, y
        Arrays; or nothing, where there are
    shards : sequence of CheckedChunk, optional
        Samples in files.
    learn : callable, (X, y) -> Recovery
        Learns one output.
    """
    found: list[Recovery] = []
    some = np.asarray(X) if shards is None else np.asarray(shards[0].read()[0])
    for j in range(k - 1):
        try:
            if shards is None:
                ratios = ratio_to_last(np.asarray(y), j, "")
                found.append(learn(X, ratios))
            else:
                found.append(learn(partial(_chunks, shards, j), None))
        except KeyboardInterrupt as error:
            # The network of one log-ratio is not what was asked for.
            last = partial_of(error)
            if found or last:
                keep_partial(error, _cut_short(found, last, k - 1, some))
            raise
    return _together(found, some)


def _cut_short(found: Sequence[Recovery], last: Result | None, n: int, X: FloatArray) -> Recovery:
    """What an interrupt left of ``n`` log-ratios; a network only where each has one."""
    told = [*found, last] if isinstance(last, Recovery) else [*found]
    together = _together(told, X)
    if len(told) < n:
        together = replace(together, network=None, certificate=None)
    where = f"interrupted at log-ratio {len(found) + 1} of {n}"
    evidence = (where, *together.evidence)
    return replace(together, status=Status.UNVERIFIED, evidence=evidence)


def ratio_to_last(Y: FloatArray, j: int, where: str, first_line: int = 0) -> FloatArray:
    """Return ``log(y_j / y_last)``.

    Parameters
    ----------
    where, first_line
        As of :func:`revelu.formats.samples.check_samples`.

    Raises
    ------
    FormatError
        If a probability has no digits, as one of 0; the message names its row.
    """
    ratios = log_ratios(np.asarray(Y, dtype=np.float64))
    if len(bad := np.flatnonzero(~np.isfinite(ratios[:, j]))):
        raise FormatError(
            f"{where}{row_name(int(bad[0]), first_line)} holds a probability of 0, of which no "
            f"logit is known ({len(bad):,} such rows)"
        )
    return np.asarray(ratios[:, j])


def _chunks(shards: Sequence[CheckedChunk], j: int) -> list[CheckedChunk]:
    return [replace(s, read=partial(_read, s, j), width=None) for s in shards]


def _read(shard: CheckedChunk, j: int) -> tuple[Any, FloatArray]:
    X, Y = shard.read()
    if n_classes(Y) <= j + 1:
        raise FormatError(f"{shard.name}: its answers are not probabilities as those before it")
    return X, ratio_to_last(Y, j, f"{shard.name}: ", shard.first_line)


def _together(found: Sequence[Recovery], X: FloatArray) -> Recovery:
    """One network of what each output has shown."""
    first = found[0]
    certificates = [r.certificate for r in found if r.certificate is not None]
    networks = [r.network for r in found if r.network is not None]
    status = max((r.status for r in found), key=_STATUSES.index)
    network = None
    if len(networks) == len(found):
        within = min((c.tolerance for c in certificates), default=0.0)
        network = from_log_ratios(_stacked(networks, X, within))
    note = "the answers are probabilities: logits are learned up to a common shift"
    return replace(
        first,
        status=status,
        network=network,
        certificate=_worst(certificates) if len(certificates) == len(found) else None,
        evidence=tuple(dict.fromkeys(text for r in found for text in r.evidence)),
        warnings=(note, *dict.fromkeys(text for r in found for text in r.warnings)),
        link=Link.named("softmax"),
    )


def _stacked(
    networks: Sequence[Network], X: FloatArray, within: float, same: float = 1e-7
) -> Network:
    """The outputs side by side, each with its own neurons; those that they share are merged.

    Merging moves a neuron by as much as two outputs differ about it, so that it is kept only
    where no sample's answer moves by more than a tenth of what a certificate allows.  Rows that
    exact samples show of one neuron differ by less than ``same``.
    """
    W = np.concatenate([n.weights[0] for n in networks])
    b = np.concatenate([n.biases[0] for n in networks])
    A = np.zeros((len(networks), len(W)))
    start = 0
    for j, network in enumerate(networks):
        stop = start + len(network.weights[0])
        A[j, start:stop] = network.weights[1][0]
        start = stop
    c = np.concatenate([n.biases[1] for n in networks])
    skip = None
    if any(n.skip is not None for n in networks):
        V, e = zip(*(n.affine for n in networks), strict=True)
        skip = (np.concatenate(V), np.concatenate(e))
    whole = Network([W, A], [b, c], skip)
    if len(networks) == 1 or not within:
        return whole
    merged = simplify(whole, same)
    rows = X.astype(np.float64)
    return merged if np.abs(merged(rows) - whole(rows)).max() <= 0.1 * within else whole


def _worst(certificates: Sequence[Certificate]) -> Certificate:
    """What all certificates say: the statement of the worst."""
    worst = min(certificates, key=lambda c: (c.passed, c.fraction_within, -c.tolerance))
    if len(certificates) == 1:
        return worst
    return replace(
        worst,
        max_abs_error=max(c.max_abs_error for c in certificates),
        nrmse=max(c.nrmse for c in certificates),
        passed=all(c.passed for c in certificates),
        statement=f"of each of {len(certificates)} log-ratios, of the worst: {worst.statement}",
    )
