"""Methods one after another as the table says, started afresh where that may find more."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from revelu.network.caps import of_clipped
from revelu.numerics.interruption import at_most
from revelu.oracle import NoiseFloor
from revelu.recover.method import Candidate, Law, Method, Why
from revelu.recover.paid import NOTHING
from revelu.recover.table import AFTER, select_methods
from revelu.recovery import Recovery, Status
from revelu.tasks.extract.attempt import Attempt, attempt, settled
from revelu.tasks.extract.caps import are_explained, capped, caps_seen, in_words, inside
from revelu.tasks.extract.claims import doubt_about, doubt_about_class, is_smooth
from revelu.tasks.extract.clipped_inputs import ClippedInputs, in_box, may_be_clipped
from revelu.tasks.extract.clipped_inputs import in_words as in_words_of_inputs
from revelu.tasks.extract.job import CertifyingJob
from revelu.tasks.job import Refusal, random_seeds
from revelu.tasks.units import layer_in_units

log = logging.getLogger(__name__)

_OPEN = {Status.UNVERIFIED, Status.PARTIAL, Status.BUDGET_EXHAUSTED}
_NO_PIECES = {Why.CURVED, Why.DISCONTINUOUS, Why.STEPS}


@dataclass(frozen=True)
class Worth:
    """How many queries a target is worth that nothing was certified of yet.

    Attributes
    ----------
    least : int
        So many in any case.
    each : float
        Queries for each parameter that was told, of layers that are exact or of a network that is
        right at most inputs: twenty times what deep networks take at least.
    """

    least: int = 100_000
    each: float = 100.0

    def is_spent(
        self, n_queries: int, attempts: Sequence[Attempt], n_more: int = 0, n_seen: int = 0
    ) -> str:
        """Say why neither another method nor another start is paid for; empty where one is.

        Parameters
        ----------
        n_more : int
            Queries that it will take for all that is known.
        n_seen : int
            Numbers of the hyperplanes that are handed over: where inputs are many one line takes
            more than ``least``, and what it has shown is what a deeper method begins with.
        """
        n_told = max(map(_n_told, attempts), default=0)
        if n_queries + n_more <= max(self.least, self.each * max(n_told, n_seen)):
            return ""
        return (
            f"given up: {n_queries:,} queries have told {n_told:,} parameters, and another start "
            "or method is not worth as many"
        )


def _n_told(tried: Attempt) -> int:
    """Parameters that an attempt has told, for all that is known."""
    network, layers = tried.candidate.network, tried.candidate.layers
    n = sum(W.size + b.size for W, b in layers)
    return n if network is None or tried.share <= 0.5 else max(n, network.n_parameters)


def recover(
    job: CertifyingJob,
    noise: NoiseFloor,
    methods: Sequence[Method],
    *,
    rounder: float = 30.0,
    worth: Worth = Worth(),
) -> tuple[Recovery, Candidate]:
    """Run methods until a network is certified, or none is left that could find one.

    Parameters
    ----------
    methods : sequence of Method
        The first one begins; the others take over from it as :data:`AFTER` says.
    rounder : float
        Where large terms cancel, and where the answers change at few inputs, they err up to this
        many times as much as was measured at others, and look curved: none is called no network
        before it is taken to err so much.
    worth : Worth
        Of queries that go on where nothing was certified yet.

    Returns
    -------
    recovery : Recovery
    candidate : Candidate
        What the method that it rests on has said.
    """
    attempts: list[Attempt] = []
    phase, start, is_rounder, unsure, worked = "recover", 1, False, "", 0.0
    while True:
        n_before = job.oracle.n_queries
        with at_most(np.inf) as work:
            chain = _run(job, noise, methods, phase, worth)
        attempts += chain
        worked += work.spent
        curved = chain[-1].why is Why.CURVED and not is_rounder
        if curved and not is_smooth(job, noise):
            unsure = doubt_about_class(job, noise)
            log.info("curved; starting afresh with errors %g times as large", rounder)
            noise = replace(noise, nu=rounder * noise.nu)
            phase, is_rounder = "repair", True
            attempts = [a for a in attempts if a.why is not Why.CURVED]
            continue
        ended = _reported(attempts).status not in {Status.UNVERIFIED, Status.PARTIAL}
        in_vain = any(a.why in {Why.REFUTED, Why.NEARLY} for a in chain)
        in_vain = in_vain or _is_off_in_tails(chain[-1])
        in_vain = in_vain or job.oracle.tally.are_labels or chain[-1].differs_at_rows_alone
        is_last = start >= min(a.method.max_starts for a in chain)
        # Another start takes about as many queries as this one.
        n_asked = job.oracle.n_queries
        spent = worth.is_spent(n_asked, attempts, n_asked - n_before)
        in_vain = in_vain or bool(spent)
        is_long = Law.of(noise) is Law.FLOAT32
        is_long &= worked > min(a.method.most_work for a in chain)
        log.debug("%.2g multiplications up to start %d", worked, start)
        if ended or in_vain or is_last or is_long:
            break
        log.info("start %d: %s; starting afresh", start, chain[-1].status.value)
        phase, start = "repair", start + 1
    if _reported(attempts).status in _OPEN:
        holds = settled(job, noise, _reported(attempts))
        attempts += [] if holds is None else [holds]
    recovery = _recovery(job, noise, attempts, chain)
    if spent and recovery.status in {Status.UNVERIFIED, Status.PARTIAL}:
        recovery = replace(recovery, evidence=(*recovery.evidence, spent))
    if _next({m.name: m for m in methods}, chain[-1]) is not None:
        # What a method that was passed over would have found is not refuted.
        unsure = unsure or spent
    if unsure and recovery.status is Status.NOT_IN_CLASS:
        recovery = replace(
            recovery, status=Status.UNVERIFIED, evidence=(*recovery.evidence, unsure)
        )
    return recovery, _reported(attempts).candidate


def _run(
    job: CertifyingJob, noise: NoiseFloor, methods: Sequence[Method], phase: str, worth: Worth
) -> list[Attempt]:
    """One method after another, with what the one before has paid for."""
    known = {m.name: m for m in methods}
    method: Method | None = methods[0]
    attempts: list[Attempt] = []
    paid = NOTHING
    while method is not None:
        tried = attempt(job, noise, method, phase, paid)
        attempts.append(tried)
        paid = tried.candidate.paid | paid
        whole = _with_caps(job, noise, tried, phase, worth)
        whole = whole or _of_clipped_inputs(job, noise, tried, phase, worth)
        if whole is not None:
            return [*attempts, whole]
        # Answers that have turned out to be labels have no slopes to go by.
        is_over = job.oracle.tally.are_labels or tried.differs_at_rows_alone
        is_over |= tried.status is Status.NOT_DETERMINISTIC
        method = None if is_over else _next(known, tried)
        n_seen = 0 if paid.line is None else paid.line.network.weights[0].size
        if method is not None and worth.is_spent(job.oracle.n_queries, attempts, n_seen=n_seen):
            log.info("%s after %s: not worth its queries", method.name, tried.method.name)
            method = None
        if method is not None:
            log.info("%s after %s: %s", method.name, tried.method.name, _reason(tried))
    return attempts


def _with_caps(
    job: CertifyingJob,
    noise: NoiseFloor,
    tried: Attempt,
    phase: str,
    worth: Worth,
    *,
    max_runs: int = 4,
) -> Attempt | None:
    """What was found with the caps on that answers show, or what its method finds inside them.

    A method for more layers is not run again: it finds many caps by itself, and takes regions for
    some where all neurons of a layer are off.

    Parameters
    ----------
    max_runs : int
        Of the method inside caps: each may show another cap.
    """
    found = tried
    for left in reversed(range(max_runs + 1)):
        link = caps_seen(job, noise, tried)
        if link is None:
            return None
        whole = capped(job, noise, link, found)
        if whole is not None or tried.method.hidden != (1, 1):
            return whole
        if are_explained(job, link, found) or not (left and job.caps_are_new(in_words(link))):
            return None
        log.info("%s", in_words(link))
        with inside(job, link):
            found = _run(job, replace(noise, link=link), (tried.method,), phase, worth)[-1]
    return None


def _of_clipped_inputs(
    job: CertifyingJob, noise: NoiseFloor, tried: Attempt, phase: str, worth: Worth
) -> Attempt | None:
    """What is found where inputs are not clipped, behind the layer that clips them, certified."""
    oracle = job.oracle
    if not may_be_clipped(job, noise, tried):
        return None
    job.has_sought_clip = True
    with oracle.phase(phase):
        rng = np.random.default_rng(random_seeds("clip", job.seed))
        ends = ClippedInputs().find(oracle, noise, rng)
    if ends is None:
        return None
    log.info("%s", in_words_of_inputs(ends))
    with in_box(job, ends):
        inside_box = job.measure_noise(job.new_seed())
        if isinstance(inside_box, Refusal):
            return None
        found = _run(job, inside_box, select_methods(inside_box, oracle), phase, worth)[-1]
    network = found.candidate.network
    if found.status is not Status.RECOVERED or network is None:
        return None
    low, high = (np.full(oracle.dim_in, end) for end in ends)
    whole = of_clipped(network.to_dense(), low, high)
    verdict = job.verify(whole, noise)
    if verdict.status is not Status.RECOVERED:
        return None
    notes = (*found.candidate.notes, in_words_of_inputs(ends))
    said = replace(found.candidate, network=whole, layers=(), notes=notes)
    return replace(found, candidate=said, status=verdict.status, certificate=verdict.certificate)


def _next(known: Mapping[str, Method], tried: Attempt) -> Method | None:
    """The method that takes over; one that the target does not allow is passed over."""
    name = AFTER.get((tried.method.name, tried.why))
    while name is not None and name not in known:
        name = AFTER.get((name, tried.why))
    return None if name is None else known[name]


def _is_off_in_tails(tried: Attempt) -> bool:
    """Whether a network is wrong far out only, where a deep one is nearly always left so."""
    agrees = tried.certificate is not None and tried.share == 1.0
    return agrees and tried.method.hidden[1] is None and tried.why is not Why.LIMIT


def _reported(attempts: Sequence[Attempt]) -> Attempt:
    """The attempt to report: the last one where it decides, else the one worth most.

    A network is worth its agreement where it agrees at most inputs, else its exact layers, and
    where it has none how near its answers come: one that is right nowhere to the last digits may
    be a hundred times as near as another.
    """
    last = attempts[-1]
    # Another start has resolved what this one took for curved: deep networks bend so often.
    resolved = (a.method == last.method and a.why not in _NO_PIECES for a in attempts)
    is_certain = last.status in {Status.RECOVERED, Status.NOT_DETERMINISTIC}
    if is_certain or (last.why in _NO_PIECES and not any(resolved)):
        return last
    found = [a for a in attempts if a.candidate.network is not None]
    if found:
        best = max(reversed(found), key=_worth)
        # Where the budget ended the search, more of it may help whatever was found.
        return replace(best, status=last.status) if last.why is Why.LIMIT else best
    if last.why is Why.LIMIT:
        return last
    layered = [a for a in attempts if a.candidate.layers]
    if layered:
        return layered[-1]
    # What a deeper method could not tell is not refuted by a shallower one.
    unresolved = [a for a in attempts if a.why is Why.UNRESOLVED]
    return unresolved[-1] if unresolved else attempts[0]


def _worth(tried: Attempt) -> tuple[float, int, float]:
    mostly = tried.share if tried.share > 0.5 else 0.0
    said = tried.certificate
    error = said.nrmse if said is not None and said.n_checks else np.inf
    return mostly, len(tried.candidate.layers), -error


def _reason(tried: Attempt) -> str:
    """Why another method takes over."""
    said = "; ".join(tried.candidate.obstacles)
    return said or "fresh queries disagree with its network"


def _obstacles(attempts: Sequence[Attempt], best: Attempt) -> list[str]:
    """What stood in the way of methods; of one that began afresh its last words on each.

    What the attempt to report says of its own stands for what others say of the same.
    """
    found = {
        (a.method.name, said.partition(":")[0]): said
        for a in (*attempts, best)
        for said in a.candidate.obstacles
    }
    return list(found.values())


def _recovery(
    job: CertifyingJob, noise: NoiseFloor, attempts: Sequence[Attempt], chain: Sequence[Attempt]
) -> Recovery:
    """Tell of the attempt to report, and of what led to it or stood beside it."""
    best = _reported(attempts)
    evidence = list(best.evidence)
    if best.status is Status.RECOVERED:
        took_over = (
            f"{a.method.name} gave way to {b.method.name}: {_reason(a)}"
            for a, b in pairwise(chain)
            # What a method said before caps were known is no reason any more.
            if a.method is not b.method
        )
        evidence = [*took_over, *evidence]
    else:
        # Notes on another attempt's network are not about the one that is reported.
        evidence += _obstacles(attempts, best)
    said = best.candidate
    # Of a certified network all layers are known; of what is no network none is.
    is_open = best.status not in {Status.RECOVERED, Status.NOT_IN_CLASS}
    by = next((a for a in (best, *reversed(attempts)) if a.candidate.layers), best)
    claimed = by.candidate.layers if is_open else ()
    doubt, status = _undecided(by, attempts) if claimed else "", best.status
    if claimed and not doubt:
        doubt = doubt_about(job, noise, claimed)
    layers = () if doubt else claimed
    figures = {name: v for a in (*attempts, best) for name, v in a.candidate.figures.items()}
    if doubt:
        evidence.append(doubt)
        figures = {name: v for name, v in figures.items() if name != "first_layer"} | {"layers": []}
        status = Status.UNVERIFIED if status is Status.PARTIAL else status
    elif status is Status.PARTIAL and best.certificate is not None:
        evidence.append(_agreement(best))
    domain = job.oracle.domain
    if "first_layer" in figures:
        figures["first_layer"] = layer_in_units(figures["first_layer"], domain)
    shown = [layer_in_units(layers[0], domain), *layers[1:]] if layers else []
    deeper = next((a.n_before for a in chain[1:] if a.method.hidden[1] != 1), None)
    return Recovery(
        status=status,
        network=None if status is Status.NOT_IN_CLASS else said.network,
        ledger=job.oracle.ledger(),
        certificate=best.certificate,
        evidence=tuple(dict.fromkeys(evidence)),
        method=best.method.name,
        warnings=said.warnings,
        first_layer=layers[0] if layers else None,
        details={
            **figures,
            **({"layers": shown} if layers else {}),
            **({} if deeper is None else {"queries_before_depth": deeper}),
        },
        saturated=noise.link.has_head
        and best.why is Why.SATURATED
        and status is not Status.RECOVERED,
    )


def _undecided(by: Attempt, attempts: Sequence[Attempt]) -> str:
    """Say why a layer is not to be called exact before the method that took over has ended.

    Where a function is constant nearly everywhere, pieces of a deeper neuron's surface pass for
    hyperplanes of the first layer; a network on them is wrong at most inputs, and walks along
    surfaces, as the next method's, tell them apart.
    """
    is_cut = any(a.why is Why.LIMIT and a.method.name != by.method.name for a in attempts)
    if not is_cut or by.candidate.network is None or by.share >= 0.5:
        return ""
    return (
        "no layer is called exact: the network found above it is wrong at most inputs, and the "
        "search that would have told why was cut"
    )


def _agreement(tried: Attempt) -> str:
    """What the whole of a network is worth whose lower layers are exact."""
    # Rounded down: a share of 1 would contradict the certificate.
    share, n = int(tried.share * 1e4) / 1e4, len(tried.candidate.layers)
    layers = "1 hidden layer is" if n == 1 else f"{n} hidden layers are"
    return (
        f"{layers} exact as far as gradients tell; the whole network agrees at {share:.2%} of the "
        "inputs"
    )
