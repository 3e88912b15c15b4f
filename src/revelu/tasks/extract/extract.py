"""Extract: recover the network behind a target, verify it, repair what is missing."""

import logging
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from revelu.adapters import open_oracle
from revelu.errors import InputError, LimitReachedError, SaturatedError
from revelu.network import from_log_ratios
from revelu.oracle import checked_inputs, measure_noise, whole_number
from revelu.recover.shallow.one_hidden import OneHidden
from revelu.recover.table import named_method, select_methods
from revelu.recovery import Recovery, Status
from revelu.tasks.extract.chain import recover
from revelu.tasks.extract.job import Job
from revelu.tasks.extract.polish import polished
from revelu.tasks.extract.precision import refusal, without_invention
from revelu.tasks.progress import Listener

log = logging.getLogger(__name__)

# Jacobians are taken in a basis of d x d numbers.
_MOST_INPUTS = 16_384


def extract(
    target: Any,
    method: str = "auto",
    budget: int | None = None,
    seed: int = 0,
    polish: bool = False,
    box: tuple[float, float] | None = None,
    inputs: Any = None,
    checks: int = 3000,
    executor: Executor | None = None,
    progress: Listener | None = None,
    *,
    dim_in: int | None = None,
    trust: bool = False,
    max_seconds: float | None = None,
) -> Recovery:
    """Recover the ReLU network behind a black box, by queries alone.

    Parameters
    ----------
    target : Oracle, Network, callable or str
        What to ask; see :func:`revelu.open_oracle`.
    method : str
        ``auto``, or the name of one of :data:`revelu.METHODS`.  ``one_hidden``, ``two_hidden``
        and ``deep`` (any number of hidden layers) are exact and need the digits of float64;
        ``near_duplicates`` too, and takes one hidden layer whose neurons may be as good as
        equal, or cancel but for narrow bumps; ``fit`` takes one hidden layer from float32,
        rounded and noisy answers.  ``auto`` chooses by the noise measured, as
        :func:`revelu.select_methods` says, and looks for more hidden layers where hyperplanes
        end or bend.
    budget : int, optional
        Most queries that may be asked, all phases counted; never one over.
    seed : int
        Decides every random choice: same seed, same queries, same result.
    polish : bool
        Refine the network to the last digits of float64 answers, by about one further query
        a parameter.
    inputs : array_like, shape (n, d), optional
        Inputs that matter to you: the target is asked at each of them, once.  The certificate
        fails where one disagrees, its ``fidelity`` reports on them, and neurons that are
        missing there are looked for there.
    box : (lo, hi), optional
        No coordinate of any query leaves it; what is recovered, and certified, is the
        function inside.  One hidden layer, exact answers.
    checks : int
        Size of the certificate.
    executor : concurrent.futures.Executor, optional
        Where batches of queries run.
    progress : callable, optional
        Called with a :class:`revelu.tasks.progress.Progress` after every batch.
    dim_in : int, optional
        Number of inputs, where the target does not say.
    trust : bool
        Allow a target whose opening executes code.
    max_seconds : float, optional
        No batch is begun later than this after the first.

    Returns
    -------
    Recovery
        A target that cannot be recovered is a status, not an exception.

    Raises
    ------
    InputError
        If an argument makes no sense or the target cannot be opened.
    TargetError
        If the target fails or answers nonsense.

    Examples
    --------
    >>> import revelu
    >>> recovery = revelu.extract(revelu.zoo.random_network([5, 4, 1], seed=1))
    >>> recovery.status.value, recovery.network.architecture
    ('recovered', (5, 4, 1))
    """
    if method != "auto":
        method = named_method(method).name
    checks = whole_number("checks", checks, 1)
    seed = whole_number("seed", seed, 0)
    if not isinstance(polish, bool):
        raise InputError(f"polish must be True or False, got {polish!r}")
    oracle = open_oracle(
        target,
        dim_in=dim_in,
        budget=budget,
        box=box,
        trust=trust,
        executor=executor,
        max_seconds=max_seconds,
    )
    if oracle.dim_in > _MOST_INPUTS:
        raise InputError(f"{oracle.dim_in:,} inputs; this version takes {_MOST_INPUTS:,} at most")
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be callable, got {type(progress).__name__}")
    if oracle.box is not None and method != "auto":
        named_method(method, box=True)
    oracle.declare(command="extract", seed=seed)
    rows = None if inputs is None else checked_inputs(inputs, oracle.dim_in, oracle.box)
    if rows is not None and not len(rows):
        raise InputError("inputs has no row")
    job = Job(oracle, checks, seed, progress, inputs=rows)
    return _finished(job, _run(job, method, polish=polish), method)


def _run(job: Job, method: str, *, polish: bool) -> Recovery:
    """Run to the end, whatever it is; a spent budget keeps what was found."""
    ledger = job.oracle.ledger
    try:
        job.tell("measuring the noise floor")
        noise = measure_noise(job.oracle, job.new_seed())
    except LimitReachedError as error:
        return Recovery(Status.BUDGET_EXHAUSTED, None, ledger=ledger(), evidence=(str(error),))
    except SaturatedError as error:
        return Recovery(Status.UNVERIFIED, None, ledger=ledger(), evidence=(str(error),))
    log.info("noise floor: %s, %.2g relative", noise.law, noise.nu.max())
    refused = refusal(noise)
    if refused is not None:
        status, reason = refused
        return Recovery(status, None, ledger=ledger(), evidence=(reason,), method=method)
    recovery, candidate = recover(job, noise, select_methods(noise, job.oracle, method))
    recovery = without_invention(recovery, noise)
    return polished(job, recovery, candidate, noise) if polish else recovery


def _finished(job: Job, recovery: Recovery, method: str) -> Recovery:
    """Attach the final ledger, advice and the shape of a classifier."""
    job.oracle.check_unchanged()
    job.oracle.listener = None
    recovery = replace(recovery, ledger=job.oracle.ledger())
    journal = job.oracle.journal
    if journal is not None:
        recovery = replace(recovery, warnings=(*recovery.warnings, *journal.notes()))
    if job.oracle.takes_log_ratios:
        recovery = _as_classifier(recovery)
    advice = _ADVICE.get(recovery.status)
    if recovery.status is Status.UNVERIFIED and recovery.certificate is None:
        advice = None
    if recovery.status is Status.NOT_IN_CLASS and job.oracle.box is not None:
        advice = "in a box only networks of one hidden ReLU layer are recovered"
    elif recovery.status is Status.NOT_IN_CLASS and method == OneHidden.name:
        advice = "method auto looks for more hidden layers, too"
    if advice:
        recovery = replace(recovery, evidence=(*recovery.evidence, advice))
    return recovery


_ADVICE = {
    Status.UNVERIFIED: "fresh queries disagree with the network: do not rely on it; "
    "another seed or a larger budget may help",
    Status.PARTIAL: "some neurons are missing; another seed or a larger budget may help",
    Status.BUDGET_EXHAUSTED: "raise the budget or the time allowed",
    Status.NOT_DETERMINISTIC: "remove the randomness",
    Status.NOT_IN_CLASS: "only networks of ReLU layers are recovered",
}


def _as_classifier(recovery: Recovery) -> Recovery:
    """Log-ratios against the last class are logits whose last one is 0."""
    note = "the answers are probabilities: logits are recovered up to a common shift"
    return replace(
        recovery,
        warnings=(*recovery.warnings, note),
        network=recovery.network and from_log_ratios(recovery.network),
        rejected=recovery.rejected and from_log_ratios(recovery.rejected),
        is_classifier=True,
        details={**recovery.details, "probabilities": True},
    )
