"""Extract: recover the network behind a target, verify it, repair what is missing."""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from revelu.adapters.open_models import open_read
from revelu.certify.certificate import Standard
from revelu.errors import InputError, LimitReachedError, TargetError
from revelu.network import from_log_ratios
from revelu.numerics.links import Link
from revelu.numerics.threads import in_one_thread
from revelu.oracle import Domain, NoiseFloor, whole_number
from revelu.oracle.whole_columns import in_whole_numbers
from revelu.recover.labels import FromLabels
from revelu.recover.method import Why
from revelu.recover.signs import SAME_FUNCTION
from revelu.recover.structured import Image, PixelNoise
from revelu.recover.table import named_method, select_methods
from revelu.recovery import Recovery, Status
from revelu.tasks.extract.advice import advised
from revelu.tasks.extract.chain import recover
from revelu.tasks.extract.clipped_inputs import box_of_file
from revelu.tasks.extract.forecast import Forecast, forecast
from revelu.tasks.extract.job import CertifyingJob
from revelu.tasks.extract.labels import answers_labels, extract_labels
from revelu.tasks.extract.polish import polished
from revelu.tasks.extract.precision import (
    in_view_of_steps,
    refusal,
    saying_constant,
    steps_at_once,
    text_refusal,
    without_invention,
)
from revelu.tasks.extract.read import is_to_be_read, read_recovery
from revelu.tasks.extract.slopes import in_own_slopes
from revelu.tasks.extract.weight_errors import with_standard_errors
from revelu.tasks.extract.where import run_where_it_bends
from revelu.tasks.extract.widths import checked_widths, compared, no_deeper
from revelu.tasks.images import found_image, in_words
from revelu.tasks.job import Refusal, given_rows, open_target
from revelu.tasks.progress import Listener
from revelu.tasks.units import in_units

log = logging.getLogger(__name__)

_CERTAIN = (
    "rows with a single 1 were taken for labels; probabilities that are certain wherever they are "
    "asked look alike, and show more where they are not (--like DATA)"
)
_BOXED = (
    "the answers are labels, which are asked for everywhere; inside a box they are not supported"
)
_BY_THEMSELVES = (
    "the answers look like class labels ({labels}) and were taken for such; labels=True, or "
    "--labels, takes them so from the first query"
)


@in_one_thread
def extract(
    target: Any,
    method: str = "auto",
    budget: int | None = None,
    seed: int = 0,
    polish: bool = False,
    box: tuple[float, float] | None = None,
    inputs: Any = None,
    checks: int = Standard.checks,
    executor: Executor | None = None,
    progress: Listener | None = None,
    *,
    dim_in: int | None = None,
    trust: bool = False,
    max_seconds: float | None = None,
    domain: Domain | None = None,
    data: Any = None,
    elsewhere: bool = False,
    labels: bool = False,
    remote: bool = False,
    rate: str | None = None,
    image: str | Sequence[int] | None = None,
    link: str = "auto",
    widths: Sequence[int] | None = None,
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
        rounded and noisy answers; ``labels`` one hidden layer from labels alone.  ``auto``
        chooses by the noise measured, as :func:`revelu.select_methods` says, and looks for more
        hidden layers where hyperplanes end or bend.  The weights of a file in which they lie open,
        as a pickle of scikit-learn, are read (``read``), unless another method is named or the
        file is opened with ``trust``: then it is asked like any other target.
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
        function inside.
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
    domain : Domain, optional
        Where the target is asked, and what the certificate speaks of; N(0, I) without one, or
        where a scaler that the target begins with says that its inputs are, or, of a target that
        is affine on N(0, I) and not elsewhere, around the place where it is found to bend.  What
        is recovered is in the target's own units.
    data : array_like, shape (n, d), optional
        Inputs such as the target is used on: the domain is like them, and they are ``inputs``.
    elsewhere : bool
        Where no domain is given and the target does not bend near N(0, I), or is saturated there,
        look for the place where it does, and recover it there; the certificate speaks of that.
    labels : bool
        Use labels alone: of several answers which is the largest, of a single one the sign, or
        the number itself where it is a whole one.  Without it, too, where answers are labels:
        whole numbers, or rows with a single 1.
    remote : bool
        The target, a callable for instance, asks elsewhere, as :func:`revelu.open_oracle` says.
    rate : str, optional
        Most requests to an endpoint, or calls of a remote target, such as ``"50/s"``.
    image : str or sequence of int, optional
        Height, width and channels of inputs that are images, such as ``"28x28x1"``, where the
        target does not say so: then weights that are shared are looked for first.
    link : str
        What undoes the target's head, as :func:`revelu.open_oracle` takes it.
    widths : sequence of int, optional
        Inputs, hidden layers and outputs, where they are known: no more hidden layers are looked
        for, and a warning says where what was found has others.  What is asked stays the same.

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
    if is_to_be_read(target, method, trust=trust, labels=labels):
        return read_recovery(open_read(Path(target), dim_in))
    if method != "auto":
        method = named_method(method).name
    if not isinstance(polish, bool):
        raise InputError(f"polish must be True or False, got {polish!r}")
    if data is not None:
        if domain is not None or inputs is not None:
            raise InputError("data stands for a domain and for inputs: give it alone")
        domain, inputs = replace(Domain.like(data), rows=None), data
    oracle = open_target(
        target,
        seed,
        progress,
        # Jacobians are taken in a basis of d x d numbers.
        most_inputs=16_384,
        dim_in=dim_in,
        budget=budget,
        box=box,
        trust=trust,
        executor=executor,
        max_seconds=max_seconds,
        domain=domain,
        remote=remote,
        rate=rate,
        image=image,
        link=link,
    )
    boxed = box_of_file(oracle) if method == "auto" and not labels else ""
    if oracle.box is not None and labels:
        raise InputError("labels are asked for everywhere; inside a box they are not supported")
    if oracle.box is not None and method != "auto":
        named_method(method, box=True)
    checks = whole_number("checks", checks, 1)
    rows = given_rows(inputs, oracle)
    job = CertifyingJob(oracle, seed, progress, "extract", "revelu", checks, rows)
    told = checked_widths(widths, oracle.dim_target)
    found = _run(job, method, told, polish=polish, elsewhere=elsewhere, labels=labels)
    recovery = job.finished(found)
    if boxed:
        recovery = replace(recovery, evidence=(boxed, *recovery.evidence))
    if oracle.link.has_head and recovery.method != FromLabels.name:
        recovery = _behind(recovery, oracle.link)
    if recovery.status is not Status.RECOVERED:
        # As what it is the same is the target for a reader, which it is not.
        kept = tuple(said.removesuffix(SAME_FUNCTION) for said in recovery.evidence)
        recovery = replace(recovery, evidence=kept)
    if not oracle.was_ended:
        recovery = advised(recovery, oracle, method)
    if oracle.names:
        named = tuple(oracle.names.name(label) for label in recovery.classes)
        recovery = replace(recovery, class_names=named)
    held = {} if oracle.domain is None else oracle.domain.held
    recovery = replace(recovery, domain=oracle.where, held=held)
    return compared(in_units(recovery, oracle.domain, job.rng, job.rows), told)


def _run(
    job: CertifyingJob,
    method: str,
    widths: tuple[int, ...] | None,
    *,
    polish: bool,
    elsewhere: bool,
    labels: bool,
) -> Recovery:
    """Run to the end, whatever it is; a spent budget keeps what was found."""
    if labels or method == FromLabels.name:
        return in_whole_numbers(job.oracle, lambda: extract_labels(job))
    began, before, given = time.monotonic(), job.oracle.n_queries, job.oracle.domain
    measured = job.measure_noise(job.new_seed())
    # Answers that a journal has are there at once, and say nothing of the pace.
    n_asked = job.oracle.n_queries - before
    pace = (time.monotonic() - began) / max(n_asked, 1) if job.oracle.journal is None else None

    def run(noise: NoiseFloor | Refusal) -> Recovery:
        if method == "auto" and answers_labels(job, noise):
            found = _from_labels(job)
            if isinstance(noise, Refusal) and not job.oracle.names:
                found = replace(found, warnings=(*found.warnings, _CERTAIN))
            return found
        if isinstance(noise, Refusal):
            return in_view_of_steps(job, _refused(job, method, noise), noise)
        is_image = _found_image(job, noise) if method == "auto" else ""
        noise = _along_pixels(job, noise)
        refused = text_refusal(job.oracle) or refusal(noise)
        if refused is not None:
            return _refused(job, method, refused)
        log.info("noise floor: %s, %.2g relative", noise.law, noise.nu.max())
        if method == "auto" and (stepped := steps_at_once(job, noise)) is not None:
            return _refused(job, method, stepped)
        methods = no_deeper(select_methods(noise, job.oracle, method), widths)
        _foretell(job, forecast(methods[0], job.oracle.dim_in, len(noise.scale), job.checks, pace))
        recovery, candidate = recover(job, noise, methods)
        if method == "auto" and job.oracle.tally.are_labels:
            # All answers at first were one label, which a constant gives as well.
            return _from_labels(job)
        # Answers of a journal do not tell what they were; those that are asked for later do.
        if (refused := text_refusal(job.oracle)) is not None:
            return _refused(job, method, refused)
        # A method that was named, and refuses what answers lack, asks for nothing.
        if method == "auto" or candidate.why is Why.DISCONTINUOUS:
            recovery = in_view_of_steps(job, recovery, noise, candidate.why)
        recovery = saying_constant(without_invention(recovery, noise))
        # Inputs far larger than what moves them round away digits, which only many answers have.
        polishes = polish or job.oracle.domain is not given
        recovery = polished(job, recovery, candidate, noise) if polishes else recovery
        if is_image:
            recovery = replace(recovery, evidence=(is_image, *recovery.evidence))
        recovery = with_standard_errors(job.oracle, recovery, noise)
        return in_own_slopes(job, recovery, noise)

    def told(noise: NoiseFloor | Refusal) -> Recovery:
        return replace(run(noise), answers=noise.answers)

    return run_where_it_bends(job, measured, told) if elsewhere else told(measured)


def _from_labels(job: CertifyingJob) -> Recovery:
    """Go by labels, which are asked for everywhere; say so where that comes to nothing."""
    if job.oracle.box is not None:
        return _refused(job, FromLabels.name, Refusal(Status.UNVERIFIED, _BOXED))
    found, labels = extract_labels(job), job.oracle.tally.labels
    if found.status is Status.RECOVERED:
        return found
    named = [job.oracle.names.name(label) for label in labels[:6]]
    listed = ", ".join(named) + (", ..." if len(labels) > 6 else "")
    return replace(found, evidence=(_BY_THEMSELVES.format(labels=listed), *found.evidence))


def _along_pixels(job: CertifyingJob, noise: NoiseFloor) -> NoiseFloor:
    """The floor of an image model, where many neurons hide it from general directions."""
    oracle = job.oracle
    is_hidden = noise.law == "float64" and not noise.is_exact and not noise.link.has_head
    if oracle.image is None or not is_hidden:
        return noise
    try:
        with oracle.phase("noise"):
            rng = np.random.default_rng(job.new_seed())
            return PixelNoise().measured(oracle, noise, Image(oracle.image), rng)
    except (LimitReachedError, TargetError):
        return noise


def _found_image(job: CertifyingJob, noise: NoiseFloor) -> str:
    """Look whether inputs are images that the target does not call so; say what was found."""
    # The seeds of searches stay what they are without this look.
    rng = np.random.default_rng(job.seeds)
    try:
        with job.oracle.phase("recover"):
            shape = found_image(job.oracle, noise, rng)
    except (LimitReachedError, TargetError):
        return ""
    if shape is None:
        return ""
    job.oracle.take_for_images(shape)
    log.info("%s", in_words(shape))
    return in_words(shape)


def _foretell(job: CertifyingJob, expected: Forecast | None) -> None:
    """Say what the search is expected to need."""
    if expected is None:
        return
    job.expected = expected.in_all(job.oracle.n_queries)
    log.info("expected: %s", expected)
    job.tell(f"expected: {expected}")


def _refused(job: CertifyingJob, method: str, refused: Refusal) -> Recovery:
    return Recovery(
        refused.status,
        None,
        ledger=job.oracle.ledger(),
        evidence=(refused.reason,),
        method=method,
        saturated=refused.saturated,
    )


def _behind(recovery: Recovery, link: Link) -> Recovery:
    """Say of what is behind a link that it is; of a contrast the last output is 0."""
    network, rejected = recovery.network, recovery.rejected
    is_found = network is not None or rejected is not None
    if link.contrast:
        network = network and from_log_ratios(network)
        rejected = rejected and from_log_ratios(rejected)
    note = link.said("recovered")
    return replace(
        recovery,
        network=network,
        rejected=rejected,
        warnings=(*recovery.warnings, note) if is_found else recovery.warnings,
        link=link,
        details={**recovery.details, "probabilities": link.name == "softmax"},
    )
