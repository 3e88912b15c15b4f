"""Verify: a certificate of a network against a target, by fresh queries."""

from concurrent.futures import Executor
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from revelu.adapters import named_network
from revelu.certify.certificate import Standard
from revelu.certify.labels import predict_labels
from revelu.errors import InputError
from revelu.network import LayeredNetwork, Network, to_log_ratios
from revelu.numerics.threads import in_one_thread
from revelu.oracle import Domain, Oracle, whole_number
from revelu.oracle.labels import as_labels
from revelu.recovery import Recovery, Status
from revelu.tasks.extract.advice import MUTE
from revelu.tasks.extract.clipped_inputs import box_of_file
from revelu.tasks.extract.job import CertifyingJob
from revelu.tasks.extract.labels import verify_labels
from revelu.tasks.extract.precision import refusal
from revelu.tasks.job import Refusal, given_rows, open_target
from revelu.tasks.progress import Listener
from revelu.tasks.units import network_in_coordinates, within_rounding

_DISAGREES = "fresh queries disagree with the network: it is not the target's"
_SATURATED = (
    "{share:.0%} of the answers are 0 and 1 alone, and the network says the same classes there: "
    "saturated answers do not tell networks apart; say by a domain where the target decides "
    "(--like DATA), or compare classes (--labels)"
)


@in_one_thread
def verify(
    network: Network | str | PathLike[str],
    target: Any,
    budget: int | None = None,
    seed: int = 0,
    box: tuple[float, float] | None = None,
    checks: int = Standard.checks,
    executor: Executor | None = None,
    progress: Listener | None = None,
    *,
    dim_in: int | None = None,
    trust: bool = False,
    max_seconds: float | None = None,
    domain: Domain | None = None,
    inputs: Any = None,
    link: str = "auto",
    labels: bool = False,
) -> Recovery:
    """Certify a network against a target, by fresh queries alone.

    Parameters
    ----------
    network : Network or path
        What the target is said to be; a path ends as :func:`revelu.load` knows it, or is
        ``demo:NAME``.  Where the target answers probabilities, its outputs are logits.
    seed : int
        Decides the checks, which are not those of an extraction of the same seed.
    box : (lo, hi), optional
        No coordinate of any query leaves it; the certificate speaks of the inside.
    checks : int
        Size of the certificate.
    dim_in : int, optional
        Number of inputs, where the target does not say: the network's otherwise.
    inputs : array_like, shape (n, d), optional
        Inputs that matter to you, which must agree, too.
    labels : bool
        Compare labels alone: of several outputs which is the largest, of a single one the sign.
        They are asked for everywhere, not inside a box.
    target, budget, executor, progress, trust, max_seconds, domain, link
        As of :func:`revelu.extract`.

    Returns
    -------
    Recovery
        ``RECOVERED`` where every check agrees, ``UNVERIFIED`` where one does not, or where
        answers are ``saturated`` and tell no networks apart; ``network`` is the one given.

    Raises
    ------
    InputError
        If an argument makes no sense, or network and target differ in inputs or outputs.
    TargetError
        If the target fails or answers nonsense.

    Examples
    --------
    >>> import revelu
    >>> truth = revelu.zoo.random_network([5, 4, 1], seed=1)
    >>> revelu.verify(truth, lambda X: truth(X)).status.value
    'recovered'
    """
    network = network if isinstance(network, Network) else named_network(network)
    checks = whole_number("checks", checks, 1)
    if dim_in is None and not isinstance(target, Oracle):
        dim_in = network.dim_in
    oracle = open_target(
        target,
        seed,
        progress,
        dim_in=dim_in,
        budget=budget,
        box=box,
        trust=trust,
        executor=executor,
        max_seconds=max_seconds,
        domain=domain,
        link=link,
    )
    if oracle.dim_target != network.dim_in:
        raise InputError(f"the network has {network.dim_in} inputs, the target {oracle.dim_target}")
    if oracle.box is not None and labels:
        raise InputError("labels are asked for everywhere; inside a box they are not supported")
    boxed = "" if labels else box_of_file(oracle)
    # The checks of an extraction's own certificate must not be asked again: another stream.
    rows = given_rows(inputs, oracle)
    job = CertifyingJob(oracle, seed, progress, "verify", "verify", checks, rows)
    try:
        with oracle.phase("verify"):
            found = job.finished((_with_labels if labels else _verified)(job, network))
            return replace(found, evidence=(boxed, *found.evidence)) if boxed else found
    finally:
        oracle.listener = None


def _verified(job: CertifyingJob, network: Network) -> Recovery:
    oracle = job.oracle
    given = Recovery(Status.UNVERIFIED, network, ledger=oracle.ledger(), method="verify")
    noise = job.measure_noise(job.new_seed())
    if isinstance(noise, Refusal):
        said = (noise.reason,)
        given = replace(given, answers=noise.answers, saturated=noise.saturated)
        return replace(given, status=noise.status, evidence=said)
    given = replace(given, answers=noise.answers)
    link = oracle.link
    n_outputs = oracle.dim_out + link.contrast
    if n_outputs != network.dim_out:
        raise InputError(f"the network has {network.dim_out} outputs, the target {n_outputs}")
    refused = refusal(noise)
    if refused is not None:
        given = replace(given, saturated=refused.saturated)
        return replace(given, status=refused.status, evidence=(refused.reason,))
    compared = network_in_coordinates(network, oracle.domain)
    compared = to_log_ratios(compared) if link.contrast else compared
    verdict = job.verify(compared, noise)
    if verdict.status is Status.UNVERIFIED:
        verdict = job.settle(compared, noise) or verdict
    evidence: tuple[str, ...] = (verdict.limit,) if verdict.limit else ()
    if verdict.status is Status.UNVERIFIED:
        if share := _share_saturated(job, compared):
            said = (_SATURATED.format(share=share),)
            return replace(given, evidence=said, saturated=True, domain=oracle.where)
        certificate = verdict.certificate
        is_mute = certificate is not None and certificate.is_mute
        evidence = (MUTE if is_mute else _DISAGREES,)
    warnings = () if verdict.status is Status.RECOVERED else _unread(network, oracle.domain)
    if link.has_head:
        warnings = (*warnings, link.said("compared"))
    found = replace(
        given,
        status=verdict.status,
        certificate=verdict.certificate,
        evidence=evidence,
        warnings=warnings,
        link=link,
        details={"probabilities": link.name == "softmax"},
        domain=oracle.where,
        held={} if oracle.domain is None else oracle.domain.held,
    )
    if oracle.domain is None:
        return found
    inner = network_in_coordinates(network, oracle.domain)
    return within_rounding(found, network, inner, oracle.domain, job.rng, job.rows)


def _share_saturated(job: CertifyingJob, network: Network) -> float:
    """Return the share of answers that are 0 and 1 alone, where the network says their classes.

    0 where any answer says another class, or where they are the lesser part of all: then answers
    do speak against the network.

    Parameters
    ----------
    network : Network
        Of the oracle's coordinates.
    """
    kept = job.oracle.kept.all()
    if job.oracle.link.has_head or kept is None:
        return 0.0
    X, Y, _ = kept
    is_blank = ((Y == 0.0) | (Y == 1.0)).all(axis=1)
    is_blank &= (Y.shape[1] == 1) | (Y.sum(axis=1) == 1.0)
    share = float(is_blank.mean())
    if share <= 0.5 or network.dim_out != Y.shape[1]:
        return 0.0
    said = predict_labels(network, np.arange(float(max(Y.shape[1], 2))), X)
    seen = as_labels(Y)[:, 0] if Y.shape[1] > 1 else (Y[:, 0] > 0.5).astype(np.float64)
    return share if np.array_equal(said, seen) else 0.0


def _with_labels(job: CertifyingJob, network: Network) -> Recovery:
    """Certify labels; what is compared reads coordinates, where there is a domain."""
    domain = job.oracle.domain
    inner = network_in_coordinates(network, domain)
    found = replace(verify_labels(job, inner), network=network, domain=job.oracle.where)
    if domain is None:
        return found
    found = replace(found, held=domain.held)
    return within_rounding(found, network, inner, domain, job.rng, job.rows)


def _unread(network: Network, domain: Domain | None) -> tuple[str, ...]:
    """Name columns that a network does not read, which may have been held where it was found."""
    if isinstance(network, LayeredNetwork) or not network.n_hidden:
        return ()
    read = (network.weights[0] != 0).any(axis=0)
    if network.skip is not None:
        read |= (network.skip[0] != 0).any(axis=0)
    unread = np.flatnonzero(~read).tolist()
    if not unread or not read.any():
        return ()
    names = () if domain is None else domain.names
    said = ", ".join(names[j] if j < len(names) else str(j) for j in unread[:8])
    are, they = ("is", "it was") if len(unread) == 1 else ("are", "they were")
    columns = f"column{'s' * (len(unread) > 1)} {said} {are} not read by the network"
    more = f"it may have been recovered where {they} held, and says nothing of other values"
    return (f"{columns}: {more}",)
