"""Audit: what a target gives away, as it is and under each defence."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from revelu.certify.certificate import Standard
from revelu.errors import (
    ChangedError,
    DependsOnBatchError,
    InputError,
    LimitReachedError,
    ReveluError,
    SaturatedError,
    TargetError,
)
from revelu.numerics.links import NONE, SOFTMAX, Link
from revelu.numerics.threads import in_one_thread
from revelu.oracle import Ask, Domain, Labels, NoiseFloor, Oracle, degrade, measure_noise
from revelu.oracle.column_names import NamedRows
from revelu.oracle.labels import are_labels
from revelu.tasks.audit.again import doubt, look_behind_labels, try_again
from revelu.tasks.audit.attack import Finding, Limits, attack, explains
from revelu.tasks.audit.defences import Defence, defences, in_turn
from revelu.tasks.audit.implied import broken_by, with_its_class
from revelu.tasks.audit.judging import Judge, opened
from revelu.tasks.audit.nature import OTHERS, Nature, not_as_network, not_attacked
from revelu.tasks.audit.outcome import End, SeenInAudit, Spent, outcome, told_by_coarser, unseen
from revelu.tasks.audit.paid import PaidAnswers
from revelu.tasks.audit.reference import Reference
from revelu.tasks.audit.rows import NETWORK, Audit, AuditRow
from revelu.tasks.diagnose.kind import Kind
from revelu.tasks.job import given_rows, open_target, random_seeds
from revelu.tasks.notebook import listener
from revelu.tasks.partial import keep_partial
from revelu.tasks.progress import Listener, Progress
from revelu.types import FloatArray

log = logging.getLogger(__name__)


@in_one_thread
def audit(
    target: Any,
    inputs: Any = None,
    price: float | None = None,
    budget: int | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Listener | None = None,
    *,
    dim_in: int | None = None,
    trust: bool = False,
    max_seconds: float | None = None,
    domain: Domain | None = None,
    remote: bool = False,
    rate: str | None = None,
    link: str = "auto",
    every_row: bool = False,
    box: tuple[float, float] | None = None,
    labels: bool = False,
) -> Audit:
    """Find out what a target gives away under each defence.

    Every defence is simulated on a local target.  Of one that is elsewhere, behind an address or
    ``remote``, the answers as they are are attacked.  The other rows follow from attacks on the
    answers that were paid for then, and on the copy found where something else is asked: they
    cost no query, and are marked as extrapolated.

    The network behind labels is looked for last, in all that is left: it takes hundreds of them a
    weight.  Where the network is known from numbers, the search ends after 150 labels a weight, or
    five million where that is more; the row then says so, and counts as complete.

    Answers of few digits can be made of finer ones.  Where they give away the weights, so do
    these, which are then not attacked themselves, unless ``every_row`` is set.

    Parameters
    ----------
    inputs : array_like, shape (n, d), optional
        Inputs as users send them: what copies and defences are compared on besides N(0, I).
    price : float, optional
        Of a thousand queries.
    max_seconds : float, optional
        For the whole audit, by the clock; no query is asked later.  Where not given, 60 seconds
        of computing for a network of one hidden layer of up to 100 neurons, else 480.  The rows
        share them, those that were cut are begun again with
        what others left over, and say so where that was too little: how far an attack comes in
        its time depends on the machine.
    every_row : bool
        Attack the answers behind each defence, also where coarser ones have told.
    target, budget, seed, executor, progress, dim_in, trust, domain, remote, rate, link, box, labels
        As of :func:`revelu.extract`, which the first row is: the same options end it the same way.
        Labels, and spans, are asked for everywhere, and not attacked inside a box.

    Returns
    -------
    Audit
        With the rows that are done, where the target stops answering midway.

    Raises
    ------
    InputError
        If an argument makes no sense or the target cannot be opened.
    TargetError
        If the target fails before a row is begun.
    KeyboardInterrupt
        At an interrupt: its ``partial`` is the audit with the rows that are done.

    Examples
    --------
    >>> import revelu
    >>> found = revelu.audit(revelu.zoo.random_network([4, 2, 3], seed=1))
    >>> found.rows[0].defence, found.rows[0].recovered
    ('none', 'weights')
    """
    if price is not None and not 0 <= price < np.inf:
        raise InputError(f"price must be a number, 0 or more, got {price!r}")
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
        remote=remote,
        rate=rate,
        link=link,
    )
    if oracle.box is not None and labels:
        raise InputError("labels are asked for everywhere; inside a box they are not supported")
    given = partial(given_rows, inputs, oracle)
    given()  # before anything is asked
    oracle.declare(command="audit", seed=int(seed))
    name = Path(inputs.file).name if isinstance(inputs, NamedRows) else ""
    source = f"of {name}" if name else "given"
    return _Audit(oracle, given, price, seed, listener(progress), every_row, source, labels).run()


@dataclass
class _Audit:
    """An audit under way.

    Attributes
    ----------
    given : callable, () -> (n, d) or None
        Inputs as users send them.
    inputs : ndarray, shape (n, d), or None
        The same, once it was asked which columns take whole numbers alone.
    seed : int
    every_row : bool
    source : str
        Of the inputs, in words that follow "inputs".
    labels : bool
        Whether answers are taken for labels, as an extraction is told.
    seconds : float
        Of computing, where the oracle has no limit of its own.
    reserve : float
        Part of the seconds that a user allows which no attack is given: a step of a fit that has
        begun goes on beyond the end of its time, by a tenth of a minute where two share a core.
    seconds_of_small, small : float, int
        The same, once a network of one hidden layer is known that has no more neurons than
        ``small``: an owner waits a minute for it, and what its other rows do not show in that is
        little more.
    first_share : float
        Part of the time for the first row, on which the others build.
    promising : float
        What an attack may take on numbers no coarser than any that was in vain, as a multiple of
        what each later one may.
    n_reference : int
        Inputs on which copies are compared with the target.
    reference_share : float
        Largest part of a budget that they may take.
    worth_again : float
        An attack that was cut is repeated if this multiple of its first time is left.
    again : float
        Most time for the repeat, as a multiple of the first.
    tries : int
        Attacks with seeds of their own that a defence has to withstand, where others did not.
    longer : float
        What attacks that were cut are to have the next time, as a multiple of what they had.
    checks : int
        Fresh queries of the certificate of the answers as they are, as of an extraction.
    labels_each, labels_least : int
        Labels that the search for the network behind them may ask for each weight of the one that
        numbers gave away, and in all where that is more.  What took no more came back, and a
        search that goes on tells an owner no more than that labels are dear.
    """

    oracle: Oracle
    given: Callable[[], FloatArray | None]
    price: float | None
    seed: int
    progress: Listener | None
    every_row: bool = False
    source: str = "given"
    labels: bool = False
    seconds: float = 480.0
    reserve: float = 0.1
    seconds_of_small: float = 60.0
    small: int = 100
    first_share: float = 0.5
    promising: float = 2.0
    n_reference: int = 1000
    reference_share: float = 0.05
    worth_again: float = 2.0
    again: float = 4.0
    tries: int = 3
    longer: float = 4.0
    checks: int = Standard.checks
    labels_each: int = 150
    labels_least: int = 5_000_000

    def __post_init__(self) -> None:
        self.served = self.oracle.is_remote
        self.clock = time.process_time
        if self.oracle.max_seconds is not None:
            self.clock = time.monotonic
            self.seconds = (1.0 - self.reserve) * self.oracle.max_seconds
        self.started, self.began = self.clock(), time.monotonic()
        self.seeds = random_seeds("audi", self.seed).spawn(3)
        # By the place of their defence among all, in the order in which they were judged.
        self.rows: dict[int, AuditRow] = {}
        later = random_seeds("agai", self.seed).generate_state(self.tries - 1)
        self.attack_seeds, self.trial = [self.seed, *map(int, later)], 0
        self.warnings: list[str] = []
        self.all: list[Defence] = []
        # What attacks were allowed and took, by defence, and the row that is being judged.
        self.allowed: dict[str, Limits] = {}
        self.took: dict[str, float] = {}
        # The same by the clock that is shared out, which others on the machine do not move.
        self.needed: dict[str, float] = {}
        self.place = 0
        self.paid = PaidAnswers()
        self.inputs: FloatArray | None = None
        self.judge: Judge | None = None
        self.noise: NoiseFloor | None = None
        self.kind, self.nature, self.is_noise = Kind(), Nature(self.oracle, self.seed), False

    def run(self) -> Audit:
        """Look at the target, then at one defence after another."""
        self._tell("measuring the noise floor", 0.0)
        end = End(None, "")
        try:
            end = End(*self._measure())
            self.noise = end.noise
            # A target that is saturated everywhere is so with probabilities.
            self._ask_reference(SOFTMAX if end.noise is None else end.noise.link)
            self._tell("looking for jumps", 0.0)
            self.kind = self.nature.at_once(self.noise, self._asked.known.Y)
            for place in in_turn(self.all):
                if self.rows and self.is_over():
                    break
                self.place = place
                self.rows[place] = self.judged_row(self.all[place], self._limits(self.all[place]))
                if len(self.rows) == 1:
                    self.kind = self._nature_of(self.rows[place])
                    self._allow(self.rows[place])
            try_again(self)
            doubt(self)
            look_behind_labels(self)
            self._check_unchanged()
        except LimitReachedError as limit:
            end = replace(end, reason=end.reason or f"{limit}")
            self.warnings.append(f"{limit}")
        except TargetError as failure:
            if not self.rows:
                raise
            changed = isinstance(failure, ChangedError)
            end = replace(end, error=f"{failure}", changed=changed)
        except BaseException as ended:
            words = "interrupted" if isinstance(ended, KeyboardInterrupt) else f"{ended!r}"
            keep_partial(ended, self._finished(replace(end, error=words)))
            raise
        return self._finished(end)

    def _allow(self, first: AuditRow) -> None:
        """Take less time for a small network that its own answers have given away."""
        copy = None if first.finding is None else first.finding.copy
        if self.oracle.max_seconds is not None or first.recovered not in NETWORK or copy is None:
            return
        hidden = copy.architecture[1:-1]
        if len(hidden) == 1 and hidden[0] <= self.small:
            self.seconds = min(self.seconds, self.seconds_of_small)

    def _check_unchanged(self) -> None:
        """See whether the target is the one that was asked, for the last time.

        One that does not answer any more was asked all there is to ask: its rows stand.
        """
        try:
            self.oracle.check_unchanged()
        except ChangedError:
            raise
        except TargetError as failure:
            self.warnings.append(unseen(f"{failure}", self.judged))
        except LimitReachedError as limit:
            # It is the target that failed: time has but kept it from being asked again.
            if not limit.heard:
                raise
            self.warnings.append(unseen(limit.heard, self.judged))

    @property
    def judged(self) -> list[AuditRow]:
        """The rows so far, in the order of the defences."""
        return [self.rows[place] for place in sorted(self.rows)]

    def makes(self, finer: str, coarser: str) -> bool:
        """Whether answers behind one defence can be made to be those behind another."""
        by_name = {defence.name: defence for defence in self.all}
        given = by_name[finer]
        # What changes no answer is the same as none, of which all others can be made.
        is_none = given.leaves == "numbers" and not self._asked.known.changes(given)
        return finer != coarser and (is_none or given.makes(by_name[coarser]))

    def _measure(self) -> tuple[NoiseFloor | None, str]:
        """The noise floor; the oracle answers as the target does afterwards."""
        try:
            return measure_noise(self.oracle, self.seeds[0]), ""
        except (SaturatedError, DependsOnBatchError) as error:
            return None, f"{error}"
        finally:
            self.oracle.link = NONE

    def _ask_reference(self, link: Link) -> None:
        self.inputs = self.given()
        n, left = self.n_reference, self.oracle.remaining
        if left is not None:
            n = max(min(n, int(self.reference_share * left)), 16)
        X = self._drawn(n)
        self._tell("asking for answers to compare with", 0.0)
        with self.oracle.phase("verify"), self.oracle.round():
            Y = self._answers(X)
            given = None if self.inputs is None else self._answers(self.inputs)
        known, asked = Reference(X, Y, link), [f"{n:,} inputs {self.oracle.where}"]
        self.paid.keep(X, Y)
        of_users: Reference | None = None
        if self.inputs is not None and given is not None:
            of_users = Reference(self.inputs, given, link)
            asked.append(f"the {len(given):,} inputs {self.source}")
        self.judge = Judge(
            known, of_users, tuple(asked), self.price, self.oracle.domain is not None
        )
        probabilities = link.name == "softmax"
        self.all = defences(
            known.deviation,
            Y.shape[1],
            self.seed,
            probabilities=probabilities,
            middle=known.middle,
        )

    def _drawn(self, n: int) -> FloatArray:
        """Inputs of the target, drawn from where it is asked, (n, d)."""
        rng, shape = np.random.default_rng(self.seeds[1]), (n, self.oracle.dim_in)
        box, domain = self.oracle.box, self.oracle.domain
        Z = rng.standard_normal(shape) if box is None else rng.uniform(*box, shape)
        return Z if domain is None else domain.to_target(Z)

    def _answers(self, X: FloatArray) -> FloatArray:
        """What is audited answers to inputs: labels, where these alone are asked for."""
        Y = self.oracle.at(X)
        return Labels().degrade_answer(Y) if self.labels else Y

    def judged_row(self, defence: Defence, limits: Limits) -> AuditRow:
        """Judge one defence."""
        first, known = self.rows.get(0), self._asked.known
        is_other = self.kind.function in OTHERS
        # A smooth function may look in few directions.
        if is_other and (first is None or first.recovered == "nothing"):
            row = not_attacked(defence.name, self.kind if first is None else None)
        elif first is not None and defence.leaves == "numbers" and not known.changes(defence):
            note = f"changes none of {len(known.Y):,} answers: the same as none"
            row = replace(first, defence=defence.name, notes=(note,))
        elif first is not None and defence.leaves == "numbers" and known.shows_labels(defence):
            note = "rounded to whole numbers these are the labels again: the same as none"
            row = replace(first, defence=defence.name, notes=(note,))
        elif first is not None and defence.leaves == "top" and known.Y.shape[1] == 2:
            row = with_its_class(first, defence.name)
        elif not self.every_row and (coarser := self.broken_by(defence)) is not None:
            made = f"{coarser.defence} can be made of these answers, and gave away the weights"
            reason = f"an attack of its own: {made}"
            row = AuditRow(defence.name, "nothing", cut=True, not_tried=(reason,))
        elif defence.leaves != "numbers" and self.oracle.box is not None:
            reason = "an attack: it asks everywhere, and may not leave the box"
            row = AuditRow(defence.name, "nothing", cut=True, not_tried=(reason,))
        elif first is not None and self.served:
            row = self._extrapolated(defence, first, limits)
        else:
            asked = self.paid.keeping(self.oracle.at) if self.served else self.oracle.at
            before = (Labels(),) if self.labels else ()
            ask = degrade(asked, *before, *defence.degradations)
            row = self._attacked(defence, self.oracle, ask, limits)
        if first is not None and first.recovered in NETWORK and row.not_in_class:
            row = not_as_network(row)
        kept, shift = self._asked.of_users.costs(defence)
        log.info("%s: %s", row.defence, row.recovered)
        return replace(row, labels_kept=kept, shift=shift)

    def _nature_of(self, first: AuditRow) -> Kind:
        """What the target is, where the answers as they are gave away no network."""
        known = self._asked.known
        if first.recovered in NETWORK or self.kind.function in OTHERS:
            return self.kind
        self._tell("looking what kind of function it is", 0.0)
        self.is_noise = first.recovered == "nothing" and not first.cut
        self.is_noise = self.is_noise and self.nature.is_noise(self.noise, known.X, known.Y)
        return self.kind if self.is_noise else self.nature.after(first.notes, self.noise, known.Y)

    def broken_by(self, defence: Defence) -> AuditRow | None:
        """A row that tells of a defence what its own attack would."""
        return broken_by(defence.name, self.rows.values(), self.makes)

    def _attacked(self, defence: Defence, base: Oracle, ask: Ask, limits: Limits) -> AuditRow:
        """Attack what ``ask`` answers, and compare what is found with the target."""
        self.allowed[defence.name] = limits
        if defence.name == "none":
            limits = replace(limits, checks=self.checks, inputs=self.inputs, labels=self.labels)
        elif defence.rounds:
            known = self._asked.known
            are_numbers = not are_labels(known.Y) and (
                bool(self.rows) and self.rows[0].recovered in NETWORK
            )
            limits = replace(limits, are_numbers=are_numbers)
        began, on_clock = self.clock(), time.monotonic()

        def listen(event: Progress) -> None:
            within = min((self.clock() - began) / limits.seconds, 1.0)
            self._tell(f"{defence.name}: {event.message}", within, event.phase)

        seed = self.attack_seeds[self.trial]
        try:
            found = attack(base, ask, defence.leaves, limits, seed, self._is_copy, listen)
        except ReveluError:
            raise
        except Exception as error:
            log.debug("%s", defence.name, exc_info=True)
            del self.allowed[defence.name]
            self.warnings.append(f"a defect: the attack on {defence.name} broke off: {error!r}")
            note = f"the attack broke off: {error!r}"
            return AuditRow(defence.name, "nothing", cut=True, broke_off=True, notes=(note,))
        seconds = time.monotonic() - on_clock
        self.took[defence.name] = max(seconds, self.took.get(defence.name, 0.0))
        needed = self.clock() - began
        self.needed[defence.name] = max(needed, self.needed.get(defence.name, 0.0))
        return replace(self._asked.row(defence, found), seconds=seconds)

    def _is_copy(self, found: Finding) -> bool:
        """Whether a network that was found answers like the undefended target."""
        return explains(self._asked.likeness(found))

    @property
    def _asked(self) -> Judge:
        """What findings are held against, once it has been asked."""
        if self.judge is None:  # pragma: no cover - asked before any attack
            raise AssertionError
        return self.judge

    def _extrapolated(self, defence: Defence, first: AuditRow, limits: Limits) -> AuditRow:
        """What the copy would give away in the place of a served target."""
        copy = None if first.finding is None else first.finding.copy
        if copy is None or first.recovered not in NETWORK:
            note = f"coarser answers give away no more than the finer ones: {first.recovered}"
            reason = "an attack: no copy was found that could stand for the served model"
            return AuditRow(
                defence.name,
                first.recovered,
                cut=first.cut,
                saturated=first.saturated,
                extrapolated=True,
                not_tried=(reason,),
                notes=(note,),
            )
        ask: Ask = partial(self._asked.known.answers_of, copy)
        if defence.leaves != "label":  # a model chooses a class before it rounds
            ask = self._as_served(ask)
        certified = first.certified
        # Of a copy that is not certified the answers are others: the two make no one function.
        known = self.paid.or_else(ask) if certified else ask
        where = self.oracle.domain
        box = self.oracle.box if where is None else None
        base = Oracle(known, copy.dim_in, name="the copy", domain=where, box=box)
        row = self._attacked(defence, base, degrade(base.at, *defence.degradations), limits)
        note = "by an attack on the copy that was found, not on the served model"
        if certified and self.paid.n_paid:
            n = self.paid.n_paid + self.paid.n_others
            note += f"; {self.paid.n_paid:,} of its {n:,} answers are the model's, paid for before"
        untried = (*row.not_tried, "an attack on the served model behind this defence")
        # The copy's weights are the target's where fresh answers of the target have said so.
        most = row.recovered if certified or row.recovered != "weights" else "function"
        return replace(
            row,
            recovered=most,
            certified=False,
            extrapolated=True,
            not_tried=untried,
            notes=(note, *row.notes),
        )

    def _as_served(self, ask: Ask) -> Ask:
        """The answers of a copy as numbers of the kind that the served model answers.

        Beside answers that were paid for, others with more digits are those of another function.
        """
        numbers = None if self.noise is None else self.noise.numbers
        return ask if numbers is None else lambda X: numbers.nearest(np.asarray(ask(X)))

    def _limits(self, defence: Defence) -> Limits:
        """The first row may take half of what there is, the others share the rest.

        What nothing speaks against finding may take twice as much as each that is left.  Behind
        every defence labels are the same, so that one attack on them may take all.
        """
        left = self.left()
        if not self.rows and self._asked.known.shows_labels(defence):
            return left
        if self.rows:
            told = [not self.every_row and self.broken_by(d) is not None for d in self.all]
            n_left = sum(not (i in self.rows or known) for i, known in enumerate(told))
            weight = self._weight(defence)
            return left.share(weight / (weight + max(n_left - 1, 0)))
        if self.served:
            return replace(left, seconds=(1.0 - self.first_share / 2.0) * left.seconds)
        return left.share(self.first_share)

    def _weight(self, defence: Defence) -> float:
        """More for answers of numbers, unless an attack on finer ones was cut in vain."""
        shift = self._asked.of_users.costs(defence)[1]
        if shift is None:
            return 1.0
        in_vain = [
            r for r in self.judged if r.cut and r.finding is not None and r.recovered not in NETWORK
        ]
        finer = any(row.shift is not None and row.shift <= shift for row in in_vain)
        return 1.0 if finer else self.promising

    def left(self) -> Limits:
        """What time and queries are left; a copy in place of a served target costs none."""
        seconds = max(self.seconds - (self.clock() - self.started), 1.0)
        queries = None if self.served and self.rows else self.oracle.remaining
        return Limits(seconds, queries, self.clock)

    def is_over(self) -> bool:
        return self.oracle.remaining == 0 or self.clock() - self.started >= self.seconds

    def _finished(self, end: End) -> Audit:
        # What is asked next, for pictures, is compared with a copy's logits.
        self.oracle.link = NONE if end.noise is None else end.noise.link
        judge, done = self.judge, dict(self.rows)
        if judge is not None:
            done = told_by_coarser(done, self.all, judge, self.makes)
        rows = [opened(row) for _, row in sorted(done.items())]
        missing = [defence for i, defence in enumerate(self.all) if i not in done]
        spent = Spent(
            self.oracle.max_seconds or self.seconds,
            time.monotonic() - self.began,
            self.took,
            self.longer,
        )
        noted = [] if self.oracle.journal is None else self.oracle.journal.notes()
        said = (*self.warnings, *noted)
        found = SeenInAudit(judge, rows, missing, self.makes, said, self.kind, self.is_noise)
        return outcome(self.oracle, found, end, spent)

    def _tell(self, message: str, within: float, phase: str = "noise") -> None:
        """Say what is being done, and how much of it all is left at most."""
        if self.progress is None:
            return
        left = max(self.seconds - (self.clock() - self.started), 0.0)
        place, done = "", 0.0
        if self.all:
            n = len(self.all)
            place, done = f"row {self.place + 1} of {n}, ", (len(self.rows) + within) / n
        if self.place in self.rows:
            place, done = f"row {self.place + 1} again, ", 1.0 - left / self.seconds
        self.progress(Progress.of(self.oracle, phase, f"{place}{message}", done, left))
