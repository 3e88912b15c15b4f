"""One attack on answers of one kind: the network, or else the span that it looks at."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from revelu.errors import InputError, LimitReachedError
from revelu.network import Network
from revelu.oracle import Oracle
from revelu.probe.steps import JUMPS
from revelu.recover.close import NearDuplicates
from revelu.recover.fit import Fit
from revelu.recovery import Recovery, SpanRecovery, Status
from revelu.tasks.extract.extract import extract
from revelu.tasks.progress import Listener
from revelu.tasks.span import recover_span
from revelu.types import FloatArray

R = TypeVar("R", Recovery, SpanRecovery)


@dataclass(frozen=True)
class Limits:
    """What an attack may take.

    Attributes
    ----------
    seconds : float
    queries : int or None
        None where there is no limit.
    clock : callable, () -> float
        What counts the seconds: those of computing, so that what else the machine does, or
        waits for, decides nothing; or those of a limit that a user gave.
    checks : int
        Fresh queries of a network's certificate; an attacker would not ask them.
    inputs : ndarray, shape (n, d), optional
        The target's own inputs that a certificate asks, too.
    labels : bool
        Whether answers are to be taken for labels, as an extraction is told.
    are_numbers : bool
        Whether answers are numbers, though they are whole: rounded ones look like labels.
    """

    seconds: float
    queries: int | None
    clock: Callable[[], float] = time.process_time
    checks: int = 1000
    inputs: FloatArray | None = None
    labels: bool = False
    are_numbers: bool = False

    def share(self, share: float) -> "Limits":
        """Return a part of both."""
        queries = None if self.queries is None else int(share * self.queries)
        return replace(self, seconds=share * self.seconds, queries=queries)


@dataclass(frozen=True)
class Finding:
    """What an attack found.

    Attributes
    ----------
    n_queries : int
        Those of the noise floor and of the search; a certificate is none of an attacker's.
    network : Recovery or None
        The end of the search for the network, where there was one.
    span : SpanRecovery or None
        The end of the search for the span, where there was one.
    cut : bool
        Whether time or queries ran out before the attack came to an end.
    out_of_queries : bool
        Whether it was the queries.
    notes : tuple of str
        What was seen, in sentences.
    """

    n_queries: int
    network: Recovery | None
    span: SpanRecovery | None
    cut: bool
    out_of_queries: bool
    notes: tuple[str, ...]

    @property
    def classes(self) -> tuple[float, ...]:
        """What the outputs of a copy of labels stand for; none where answers were numbers."""
        return () if self.network is None else self.network.classes

    @property
    def copy(self) -> Network | None:
        """The network found, even one that its certificate did not allow to be called so."""
        found = self.network
        if found is None:
            return None
        return found.rejected if found.network is None else found.network

    @property
    def digits(self) -> float | None:
        """Decimal digits that half of the weights found have at least, where their errors say."""
        known = None if self.network is None else self.network.digits
        found = np.concatenate([np.zeros(0), *(known or ())])
        return float(np.median(found)) if len(found) else None

    @property
    def saturated(self) -> bool:
        """Whether a search met no probabilities with digits wherever it asked."""
        return any(of is not None and of.saturated for of in (self.network, self.span))

    @property
    def not_in_class(self) -> bool:
        """Whether the target was seen to be none of the networks that are looked for."""
        return self.network is not None and self.network.status is Status.NOT_IN_CLASS

    @property
    def of_steps(self) -> bool:
        """Whether the target was seen to be constant but for jumps."""
        said = () if self.network is None else self.network.evidence
        return self.not_in_class and any(text.startswith(JUMPS) for text in said)

    @property
    def has_first_layer(self) -> bool:
        """Whether a first layer was found without what is above it."""
        found = self.network
        return (
            found is not None
            and found.status is Status.PARTIAL
            and found.first_layer is not None
            and len(found.first_layer[0]) > 0
        )

    def certifies(self, kind: str) -> bool:
        """Whether fresh queries agree with what was found of that kind.

        A span that they agree with says nothing of a copy that they do not.
        """
        of_copy = self.network if self.copy is not None else None
        by = of_copy if kind in {"weights", "function"} else self.span
        return by is not None and by.status is Status.RECOVERED

    def kind(self, likeness: float | None) -> str:
        """Tell what can be recovered: ``weights``, ``function``, ``span`` or ``nothing``.

        Parameters
        ----------
        likeness : float or None
            Of the copy to the target, on fresh inputs.
        """
        network, copy = self.network, self.copy
        if network is not None and copy is not None:
            all_known = copy.skip is None or not any(copy.architecture[1:-1])
            # Merged neurons compute the same and are not the target's.
            exact = network.method != NearDuplicates.name
            if network.status is Status.RECOVERED:
                return "weights" if all_known and exact else "function"
            if explains(likeness):
                return "function"
        if self.has_first_layer:
            return "span"
        # A span that is everything says nothing.
        span = self.span
        known = span is not None and 0 < span.span.rank < span.span.dim_in and is_known(span)
        return "span" if known else "nothing"


def explains(likeness: float | None, least: float = 0.99) -> bool:
    """Whether a copy explains enough of the answers' variation to count as one."""
    return likeness is not None and likeness >= least


def is_known(found: SpanRecovery, blurred: float = 0.1) -> bool:
    """Whether a span is given away: certified, or blurred but told from noise.

    Parameters
    ----------
    blurred : float
        In radians: a span this far off shows most of what it is to show, and no certificate.
    """
    return found.status is Status.RECOVERED or (
        found.status is Status.UNVERIFIED and found.expected_angle < blurred
    )


def attack(
    base: Oracle,
    ask: Callable[[FloatArray], FloatArray],
    leaves: str,
    limits: Limits,
    seed: int,
    is_copy: Callable[[Finding], bool],
    progress: Listener,
) -> Finding:
    """Find as much as answers give away, of numbers the network first.

    What is asked behind a defence is an oracle of its own, in the same domain or box: behind none
    a search is what :func:`revelu.extract` makes of the target, and ends as that does.

    Parameters
    ----------
    base : Oracle
        What is asked in the end, and counts.
    ask : callable, (n, d) -> (n, k)
        Asks it at the target's own inputs, behind a defence.
    leaves : {"numbers", "top", "label", "labels"}
        What answers are.  Of a label the span is looked for; the network, which takes many times
        as much, is with ``labels``.
    is_copy : callable, Finding -> bool
        Whether a network that was found, and not certified, answers like the target, which the
        owner can tell: what is beneath it is then not looked for.

    Raises
    ------
    TargetError
        If the target fails or answers nonsense.
    """
    run = _Attack(base, ask, limits, seed, progress)
    if leaves == "numbers":
        found = run.finding(
            run.find_network(limits.share(run.for_network), labels=limits.labels), None
        )
        is_found = found.copy is not None and (found.certifies("function") or is_copy(found))
        # What is constant nearly everywhere has no gradient that would show a span.
        if is_found or found.has_first_layer or found.of_steps:
            return found
        return run.finding(found.network, run.find_span(labels=False))
    if leaves == "labels":
        return run.finding(run.find_network(limits, labels=True), None)
    return run.finding(None, run.find_span(labels=leaves == "label"))


@dataclass
class _Attack:
    """An attack under way.

    Attributes
    ----------
    base, ask, limits, seed, progress
        As of :func:`attack`.
    for_network : float
        Of numbers, part of the time and of the queries for the network; the rest is for the span.
    patience : float
        Most seconds that are waited for answers, as a multiple of those of computing, which a
        slow target takes none of.  What else the machine does is no waiting for this one.
    span_checks : int
        Fresh queries of a span's certificate; an attacker would not ask them.
    """

    base: Oracle
    ask: Callable[[FloatArray], FloatArray]
    limits: Limits
    seed: int
    progress: Listener
    for_network: float = 0.7
    patience: float = 4.0
    span_checks: int = 300

    def __post_init__(self) -> None:
        self.started, self.waited = self.limits.clock(), 0.0
        self.n_asked = self.n_queries = 0
        self.cut = self.out_of_queries = False
        self.notes: list[str] = []

    def find_network(self, limits: Limits, *, labels: bool = False) -> Recovery | None:
        def search(oracle: Oracle) -> Recovery:
            return extract(
                oracle,
                method=Fit.name if self.limits.are_numbers else "auto",
                seed=self.seed,
                checks=self.limits.checks,
                progress=self.progress,
                labels=labels,
                inputs=self.limits.inputs,
            )

        found = self._searched(limits, search)
        if found is not None and labels and found.certificate is not None:
            self.notes += (found.certificate.statement, *found.warnings)
        if found is not None and (labels or found.status is not Status.RECOVERED):
            self.notes += found.evidence
        return found

    def find_span(self, *, labels: bool) -> SpanRecovery | None:
        def search(oracle: Oracle) -> SpanRecovery:
            return recover_span(
                oracle,
                labels=labels,
                seed=self.seed,
                checks=self.span_checks,
                progress=self.progress,
            )

        seconds = max(self.limits.seconds - (self.limits.clock() - self.started), 1.0)
        queries = self.limits.queries
        left = None if queries is None else max(queries - self.n_asked, 0)
        try:
            found = self._searched(Limits(seconds, left, self.limits.clock), search)
        except InputError as error:
            self.notes.append(f"no span: {error}")
            return None
        self.notes += () if found is None else found.evidence
        return found

    def _searched(self, limits: Limits, search: Callable[[Oracle], R]) -> R | None:
        outer = self._oracle(limits)
        try:
            found = search(outer)
        except LimitReachedError as error:
            self.notes.append(f"{error}")
            self._account(outer, Status.BUDGET_EXHAUSTED)
            return None
        self._account(outer, found.status)
        return found

    def finding(self, network: Recovery | None, span: SpanRecovery | None) -> Finding:
        notes = tuple(dict.fromkeys(self.notes))
        return Finding(self.n_queries, network, span, self.cut, self.out_of_queries, notes)

    def _oracle(self, limits: Limits) -> Oracle:
        """The target behind the defence, with limits of its own."""

        def ask(X: FloatArray) -> FloatArray:
            if self.waited > self.patience * self.limits.seconds:
                raise LimitReachedError(f"the {limits.seconds:.0f} seconds allowed are over")
            spread = self.base.spread_out(outer.rows_a_request)
            began = time.monotonic() - time.process_time()
            try:
                with self.base.phase(outer.current_phase), spread:
                    return self.ask(X)
            finally:
                self.waited += max(time.monotonic() - time.process_time() - began, 0.0)

        base = self.base
        outer = Oracle(
            ask,
            base.dim_target,
            name=base.name,
            budget=limits.queries,
            box=base.box if base.domain is None else None,
            domain=base.domain,
            batch_rows=sys.maxsize,
            max_seconds=round(limits.seconds, 1),
            clock=limits.clock,
            image=base.image,
        )
        # What is elsewhere is watched by the oracle that asks it, once.
        outer.is_remote = base.is_remote
        outer.told_link = base.told_link
        outer.check_requests = base.check_requests
        return outer

    def _account(self, outer: Oracle, status: Status) -> None:
        """Count what was asked; a search that failed as its time ended might have gone on."""
        ledger = outer.ledger()
        self.n_asked += ledger.n_queries
        self.n_queries += ledger.n_queries - ledger.by_phase["verify"]
        spent = status is Status.BUDGET_EXHAUSTED
        try:
            # The time of the whole audit may be over a moment before that of the attack.
            self.base.check_time()
            outer.check_time()
        except LimitReachedError:
            self.cut |= status is not Status.RECOVERED
        else:
            self.cut |= spent
            self.out_of_queries |= spent and outer.budget is not None
