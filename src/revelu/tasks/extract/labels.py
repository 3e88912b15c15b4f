"""Extraction from labels alone: a network whose labels agree, and what labels leave open."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from revelu.certify.labels import (
    LabelExamination,
    among_equals,
    certify_labels,
    examine_labels,
    fidelity_of_labels,
    predict_labels,
)
from revelu.errors import InputError, LimitReachedError
from revelu.network import Network
from revelu.oracle import NoiseFloor, Oracle
from revelu.oracle.labels import are_labels, as_labels
from revelu.oracle.numbers import Numbers
from revelu.oracle.sentinels import Sentinels
from revelu.recover.labels import FromLabels
from revelu.recover.labels.borders import Pool
from revelu.recover.labels.precision import noise_of_places
from revelu.recover.labels.search import LabelSearch
from revelu.recover.method import Candidate, Disagreement, Why
from revelu.recovery import Certificate, Fidelity, Recovery, Status
from revelu.tasks.extract.job import FEWEST_CHECKS, CertifyingJob
from revelu.tasks.extract.labelled import Labelled
from revelu.tasks.job import Refusal
from revelu.tasks.units import layer_in_units
from revelu.types import FloatArray

_STATUS = {
    Why.UNRESOLVED: Status.UNVERIFIED,
    Why.CURVED: Status.NOT_IN_CLASS,
    Why.DISCONTINUOUS: Status.NOT_IN_CLASS,
    Why.HYPERPLANES_END: Status.NOT_IN_CLASS,
    Why.REFUTED: Status.NOT_DETERMINISTIC,
    Why.LIMIT: Status.BUDGET_EXHAUSTED,
}
_OPEN = (
    "labels leave open a positive factor, and what is added to all classes alike; neurons whose "
    "hyperplane meets no border, and classes that no input was seen to have, are left out, and "
    "neurons that change fewer labels than the certificate counts may be"
)
_ONE_INPUT = (
    "with one input, borders of classes are points, which show where labels change and no weight"
)
_FIRST_ALONE = (
    "the first hidden layer is exact as far as bends of borders tell; the whole network has the "
    "label of the target at {share:.2%} of the inputs asked, borders included"
)
_DIFFER = "fresh labels disagree with the network: it is not the target's"
_TIED = "at most inputs no answer is the largest: such labels do not tell networks apart"
_CHANGED = "{n} of {of} inputs got another label when asked again"


def extract_labels(job: CertifyingJob) -> Recovery:
    """Recover a network of one hidden layer, or two, whose labels agree with a target's."""
    oracle = Labelled(job.oracle)
    job.oracle.names.are_expected = True
    if oracle.dim_in == 1:
        return _recovery(job, Status.UNVERIFIED, _ONE_INPUT)
    try:
        changed = _watch(job, oracle)
    except LimitReachedError as error:
        return _recovery(job, Status.BUDGET_EXHAUSTED, str(error))
    if changed:
        return _recovery(job, Status.NOT_DETERMINISTIC, changed)
    rng = np.random.default_rng(job.new_seed())
    search = FromLabels().start(oracle, _NO_NUMBERS, rng, job.tell)
    if not isinstance(search, LabelSearch):  # pragma: no cover - it is what the method starts
        raise TypeError
    candidate: Candidate | None = search.propose()
    seen: list[LabelExamination] = []
    best: Recovery | None = None
    while candidate is not None and candidate.network is not None:
        job.tell("verifying on fresh labels")
        best = _certified(job, oracle, candidate, search, seen)
        now = [of.by(candidate.network, search.classes) for of in seen]
        wrong = [of for of in now if len(of.wrong)]
        if best.status is not Status.UNVERIFIED or not wrong:
            return _with_layers(job, best, candidate)
        last = candidate
        with oracle.phase("repair"):
            candidate = search.repair(_disagreement(wrong[-1]))
    if best is not None:
        return _with_layers(job, best, last, now)
    if candidate is None:  # pragma: no cover - it is repaired only after it was certified
        raise TypeError
    return _without_network(job, oracle, candidate)


def answers_labels(job: CertifyingJob, noise: NoiseFloor | Refusal, n: int = 256) -> bool:
    """Whether a target answers labels.

    Where all answers were one whole number, or rows with a single 1, which probabilities are as
    well where they are certain, ``n`` more of them tell.
    """
    oracle = job.oracle
    if oracle.names:
        return oracle.names.n_seen > 1
    if oracle.box is not None:
        return not isinstance(noise, Refusal) and noise.of_labels
    if isinstance(noise, Refusal):
        if oracle.link.name != "softmax":
            return False
    elif noise.of_labels or noise.varies(noise.spread).any():
        return noise.of_labels
    X = job.rng.standard_normal((n, oracle.dim_in))
    first = n // 32
    with oracle.phase("noise"), oracle.as_answered():
        if not oracle.affords(n):
            return False
        Y = oracle(X[:first])
        if not np.array_equal(Y, np.rint(Y)):
            return False
        return are_labels(np.vstack([Y, oracle(X[first:])]))


_NO_NUMBERS = NoiseFloor(
    "float64",
    nu=np.zeros(1),
    scale=np.ones(1),
    spread=np.ones(1),
    curved=0.0,
    repeat_difference=0.0,
    numbers=Numbers("float64"),
    of_labels=True,
)
"""Labels have no noise floor: they agree or not."""


def _watch(job: CertifyingJob, oracle: Oracle, n: int = 128, *, n_kept: int = 8) -> str:
    """Ask inputs twice, and watch some from now on; say how many labels have changed, if any.

    Parameters
    ----------
    n : int
        Where a share p of labels is drawn anew, that shows but for ``(1 - 2p + 2p²)^n``.
    """
    X = job.rng.standard_normal((n, oracle.dim_in))
    with oracle.phase("noise"):
        first, again = oracle(X), oracle(X)
    if changed := int((first != again).any(axis=1).sum()):
        return _CHANGED.format(n=changed, of=n)
    kept = first[:n_kept, :1]
    job.oracle.watch(Sentinels(X[:n_kept], kept, np.zeros(kept.shape), as_labels))
    return ""


def _certified(
    job: CertifyingJob,
    oracle: Oracle,
    candidate: Candidate,
    search: LabelSearch,
    seen: list[LabelExamination],
) -> Recovery:
    """Ask fresh labels; what a network that was tried before was asked must agree, too."""
    classes, network = search.classes, candidate.network
    if network is None:  # pragma: no cover - the caller has looked
        raise TypeError
    try:
        certificate = _examined(job, oracle, network, classes, seen, search.noise_of_places)
    except LimitReachedError as error:
        found = _recovery(job, Status.BUDGET_EXHAUSTED, str(error))
        return replace(found, network=network, classes=tuple(classes.tolist()))
    status = _status_of(job, certificate)
    if status is Status.RECOVERED and candidate.why is not Why.EXPLAINED:
        status = Status.PARTIAL
    return Recovery(
        status,
        network,
        certificate,
        ledger=job.oracle.ledger(),
        evidence=(*candidate.notes, *candidate.obstacles),
        method=FromLabels.name,
        warnings=(*candidate.warnings, _OPEN),
        classes=tuple(classes.tolist()),
        details=dict(candidate.figures),
    )


def _examined(
    job: CertifyingJob,
    oracle: Oracle,
    network: Network,
    classes: FloatArray,
    seen: list[LabelExamination],
    noise: float,
) -> Certificate:
    """Ask fresh labels, add them to what was ``seen``, and say what all of it proves.

    Raises
    ------
    LimitReachedError
        If the budget or the time ends first.
    """
    with oracle.spread_out(job.rows_a_request):
        seen.append(examine_labels(network, classes, oracle, job.checks, job.rng, noise=noise))
        agrees = not len(seen[-1].wrong)
        fidelity = _on_rows(job, network, classes) if agrees else None
    # A network is tried again and again until it passes: it must pass all that was asked on the
    # way, too, or the confidence of the last trial would be no one's.
    earlier = [of.by(network, classes) for of in seen[:-1]]
    agrees = not any(len(of.wrong) for of in earlier)
    examined = seen[-1] if agrees else LabelExamination.joined([*earlier, seen[-1]])
    n_requests = -(-job.checks // job.rows_a_request) if job.oracle.is_remote else 0
    domain = job.oracle.domain
    return certify_labels(examined, "" if domain is None else domain.words, fidelity, n_requests)


def _status_of(job: CertifyingJob, certificate: Certificate) -> Status:
    if not certificate.passed:
        return Status.UNVERIFIED
    few = certificate.n_checks < min(FEWEST_CHECKS, job.checks)
    return Status.BUDGET_EXHAUSTED if few else Status.RECOVERED


def verify_labels(job: CertifyingJob, network: Network) -> Recovery:
    """Certify that a network has a target's labels, by fresh ones alone.

    Parameters
    ----------
    job : CertifyingJob
    network : Network
        Of the oracle's coordinates.

    Raises
    ------
    InputError
        If the network's outputs stand for another number of classes than the target has.
    """
    oracle = Labelled(job.oracle, with_ties=True)
    job.oracle.names.are_expected = True
    given = replace(_recovery(job, Status.UNVERIFIED), network=network, method="verify")
    try:
        if changed := _watch(job, oracle):
            return replace(given, status=Status.NOT_DETERMINISTIC, evidence=(changed,))
        classes = _classes_of(job, oracle, network)
        certificate = _examined(job, oracle, network, classes, [], noise=0.0)
        if certificate.fraction_within == 1.0 and certificate.structural_within < 1.0:
            # Labels nearer to borders than a target rounds are its rounding's, not a network's.
            noise = _rounding_of(oracle, job.rng)
            if noise:
                certificate = _examined(job, oracle, network, classes, [], noise)
    except LimitReachedError as error:
        return replace(given, status=Status.BUDGET_EXHAUSTED, evidence=(f"{error}",))
    status = _status_of(job, certificate)
    are_tied = certificate.is_mute and certificate.structural_within == 1.0
    differs = (_TIED if are_tied else _DIFFER,)
    return replace(
        given,
        status=status,
        certificate=certificate,
        evidence=differs if status is Status.UNVERIFIED else (),
        classes=tuple(classes.tolist()),
        class_names=_named(job, classes),
    )


def _named(job: CertifyingJob, classes: FloatArray) -> tuple[str, ...]:
    """What classes are called, where the target answers names."""
    names = job.oracle.names
    return tuple(names.name(place) for place in classes.tolist()) if names else ()


def _rounding_of(oracle: Oracle, rng: np.random.Generator) -> float:
    """How precisely labels tell borders, relative to an input's size; 0 where float64 does."""
    how = FromLabels()

    def ask(X: FloatArray) -> FloatArray:
        return oracle(X)[:, 0]

    with oracle.phase("verify"):
        pool = Pool(ask, oracle.dim_in, rng)
        pool.fill()
        if len(pool.classes) == 1:
            return 0.0
        borders = pool.borders(how.n_starts, how.precision.rtol)
        return noise_of_places(ask, borders, how.precision, how.rounding, rng)


def _classes_of(job: CertifyingJob, oracle: Oracle, network: Network) -> FloatArray:
    """The labels that a network's outputs stand for, in their order.

    They are the places of the target's own answers where it has as many, or of names in the order
    told; else the labels seen, ascending.

    Raises
    ------
    InputError
        If they are another number, or names in no order.
    """
    n_classes, names = max(network.dim_out, 2), job.oracle.names
    if names and not names.are_given:
        raise InputError(
            "the answers are names: say which output stands for which, --classes A,B or "
            'open_oracle(..., classes=["A", "B"])'
        )
    if names and names.n_given != n_classes:
        raise InputError(
            f"{names.n_given} names of classes are given, and the network's outputs stand for "
            f"{n_classes}"
        )
    is_sign = job.oracle.dim_out == 1 and not job.oracle.tally.may_be_labels
    if names or is_sign or job.oracle.dim_out == n_classes:
        return np.arange(float(n_classes))
    left = oracle.remaining
    n = job.checks if left is None else max(min(job.checks, left // 3), 1)
    X = job.rng.standard_normal((n, oracle.dim_in))
    with oracle.phase("verify"):
        seen = np.unique(oracle(X)[:, 0])
    if len(seen) < n_classes and n < job.checks:
        raise LimitReachedError(f"the budget left {n:,} labels, too few to see every class")
    if len(seen) != n_classes:
        counted = f"{len(seen)} labels were seen at {len(X):,} inputs"
        raise InputError(f"{counted}, and the network's outputs stand for {n_classes}")
    return seen


def _on_rows(job: CertifyingJob, network: Network, classes: FloatArray) -> Fidelity | None:
    """Compare labels of the inputs given, and of rows of the data that the domain is like."""
    found = None
    for rows, source in job.rows_given():
        if not len(rows):
            continue
        with job.oracle.phase("verify"), job.oracle.as_answered():
            Y = job.oracle.at(rows)
        domain = job.oracle.domain
        X = rows if domain is None else domain.to_coordinates(rows)
        names = () if domain is None else domain.names
        predicted = predict_labels(network, classes, X)
        # Where several answers are the largest, a row says no label.
        is_told = ~among_equals(Y.max(axis=1, keepdims=True) == Y, predicted)
        if not is_told.any():
            continue
        of = source if is_told.all() else f"{source} with one largest answer"
        labels = as_labels(Y[is_told])[:, 0]
        said = fidelity_of_labels(labels, predicted[is_told], rows[is_told], names, of)
        if found is None or said.fraction_within < found.fraction_within:
            found = said
    return found


def _disagreement(examined: LabelExamination, most: int = 16) -> Disagreement:
    """Inputs whose labels differ, as a search takes them."""
    wrong = examined.wrong
    share = float((examined.labels == examined.predicted).mean())
    return Disagreement(wrong[:most], wrong[0], share, lambda _: False)


def _without_network(
    job: CertifyingJob, oracle: Oracle, candidate: Candidate, n_again: int = 2000
) -> Recovery:
    """Say how a search ended that found no network.

    Labels of which a few are drawn anew are asked twice at ``n_again`` inputs before they are
    called anything else.
    """
    evidence, status = candidate.obstacles, _STATUS[candidate.why]
    if candidate.why is Why.UNRESOLVED and oracle.affords(2 * n_again):
        changed = _watch(job, oracle, n_again)
        if changed:
            status, evidence = Status.NOT_DETERMINISTIC, (changed, *evidence)
    found = replace(_recovery(job, status, *evidence), details=dict(candidate.figures))
    return _with_layers(job, found, candidate)


def _with_layers(
    job: CertifyingJob,
    found: Recovery,
    candidate: Candidate,
    examined: Sequence[LabelExamination] = (),
) -> Recovery:
    """Add the first layer to a recovery that failed, where that layer is known."""
    if not candidate.layers or found.status in {Status.RECOVERED, Status.NOT_DETERMINISTIC}:
        return found
    first = layer_in_units(candidate.layers[0], job.oracle.domain)
    evidence = found.evidence
    if examined:
        # Rounded down: a share of 1 would contradict the certificate.
        same = np.concatenate([of.labels == of.predicted for of in examined])
        share = int(same.mean() * 1e4) / 1e4
        evidence = (*evidence, _FIRST_ALONE.format(share=share))
    is_failed = found.status is Status.UNVERIFIED
    return replace(
        found,
        status=Status.PARTIAL if is_failed else found.status,
        evidence=evidence,
        first_layer=candidate.layers[0],
        details={**found.details, "layers": [first]},
    )


def _recovery(job: CertifyingJob, status: Status, *evidence: str) -> Recovery:
    return Recovery(
        status, None, ledger=job.oracle.ledger(), evidence=evidence, method=FromLabels.name
    )
