"""The audit: what is found behind each defence, against known truth."""

from functools import partial
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

import revelu
from revelu.errors import InputError, TargetError
from revelu.oracle import Float32, Labels, Oracle, Rounded, degrade, softmax
from revelu.recovery import Recovery, Status
from revelu.tasks.audit import audit as audits
from revelu.tasks.audit.attack import Finding, Limits, attack
from revelu.tasks.partial import partial_of
from revelu.tasks.progress import Progress
from serving import serving

TRUTH = revelu.zoo.random_network([5, 3, 3], seed=3)
X = np.random.default_rng(1).standard_normal((1500, 5))
NAMES = [
    "none",
    "float32",
    "6 digits",
    "4 digits",
    "3 digits",
    "2 digits",
    "noise 1e-4",
    "noise 1e-2",
    "grid 2^-16",
    "top-1 probability",
    "labels",
]
# As they are attacked: those of which others can be made come early.
IN_TURN = [
    "none",
    "float32",
    "4 digits",
    "6 digits",
    "2 digits",
    "3 digits",
    "noise 1e-2",
    "noise 1e-4",
    "grid 2^-16",
    "top-1 probability",
    "labels",
]
# The rows below ask some 20,000: every one searches, certifies and compares.  The network behind
# labels, whose turn is the last, is cut at twice that: ``test_audit_labels.py`` is about it.
MOST_QUERIES = 40_000


@pytest.fixture(scope="module")
def found():
    return revelu.audit(TRUTH, inputs=X, price=2.0, budget=MOST_QUERIES)


@pytest.fixture
def hurried(monkeypatch):
    """What takes long is cut soon: looks at the clock count, so that no machine is too slow."""
    looks = count()
    counted = SimpleNamespace(process_time=lambda: float(next(looks)), monotonic=lambda: 0.0)
    for module in ("audit", "attack"):
        monkeypatch.setattr(f"revelu.tasks.audit.{module}.time", counted)
    monkeypatch.setattr(
        audits, "_Audit", partial(audits._Audit, seconds=6000.0, seconds_of_small=6000.0)
    )


def row(audit, name):
    return next(r for r in audit.rows if r.defence == name)


def failing_after(n, message="out of order"):
    """The truth, until it has answered ``n`` rows."""
    asked = 0

    def target(Z):
        nonlocal asked
        asked += len(Z)
        if asked > n:
            raise RuntimeError(message)
        return TRUTH(Z)

    return target


def test_rows_are_the_defences_in_order(found):
    assert [r.defence for r in found.rows] == NAMES
    assert (found.missing, found.error, found.served) == ((), "", False)
    assert [r.defence for r in found.rows if r.cut] == ["labels"]
    assert (found.status, found.run_again) == (Status.BUDGET_EXHAUSTED, "--budget 160000")
    assert (found.dim_in, found.dim_out) == (5, 3)
    assert found.facts["depth"].endswith("5-3-3")
    assert found.ledger.n_queries <= MOST_QUERIES


def test_weights_are_the_truths(found):
    first = found.rows[0]
    assert (first.recovered, first.certified, first.extrapolated) == ("weights", True, False)
    assert revelu.align(first.finding.copy, TRUTH).max_parameter_error < 1e-8
    assert (first.label_agreement, first.label_agreement_on_inputs) == (1.0, 1.0)
    weights = [r for r in found.rows if r.recovered == "weights"]
    assert {"none", "float32", "6 digits"} <= {r.defence for r in weights}
    for r in weights:
        # As far as answers of so many digits show them.
        assert revelu.align(r.finding.copy, TRUTH).max_parameter_error < 0.1


@pytest.mark.parametrize("name", NAMES[:9])
def test_fidelity_is_what_other_inputs_show(found, name):
    r = row(found, name)
    Z = np.random.default_rng(2).standard_normal((4000, 5))
    Y, copied = TRUTH(Z), r.finding.copy(Z)
    unexplained = np.square(copied - Y).sum() / np.square(Y - Y.mean(axis=0)).sum()
    assert r.fidelity == pytest.approx(1.0 - unexplained, abs=unexplained + 1e-12)
    same = (copied.argmax(axis=1) == Y.argmax(axis=1)).mean()
    assert r.label_agreement == pytest.approx(same, abs=0.01)


@pytest.mark.parametrize("name", ["top-1 probability", "labels"])
def test_spans_are_the_truths(found, name):
    r = row(found, name)
    # The search for the network behind labels is cut by the budget.
    assert (r.recovered, r.certified, r.cut) == ("span", name != "labels", name == "labels")
    assert (r.fidelity, r.finding.certifies("span")) == (None, True)
    assert r.finding.span.span.rank == 3
    assert r.finding.span.span.angles(TRUTH.weights[0]).max() < 1e-4


def test_costs_of_defences_are_those_on_the_given_inputs(found):
    Y, rounded = TRUTH(X), degrade(TRUTH, Rounded(2))(X)
    r = row(found, "2 digits")
    assert r.labels_kept == (rounded.argmax(axis=1) == Y.argmax(axis=1)).mean()
    deviation = np.sqrt(Y.var(axis=0).mean())
    assert 1e-3 < r.shift == pytest.approx(np.sqrt(np.square(rounded - Y).mean()) / deviation)
    assert row(found, "none").shift == 0.0
    assert row(found, "labels").shift is None


def test_prices_follow_from_queries(found):
    for r in found.rows:
        assert r.cost == pytest.approx(2.0 * r.queries / 1000.0)


def test_extraction_starts_to_work_where_the_advice_says(found):
    n = found.rows[0].queries
    least = min(r.queries for r in found.rows if r.recovered in {"weights", "function"})
    assert any(f"at about {least:,} queries" in text for text in found.advice)
    assert revelu.extract(TRUTH, budget=n - 1).status is revelu.Status.BUDGET_EXHAUSTED
    enough = revelu.extract(TRUTH, budget=n + 2 * 59)
    assert enough.status is revelu.Status.RECOVERED


def test_same_seed_same_rows():
    target = revelu.zoo.random_network([3, 1, 3], seed=1)
    first, second = (revelu.audit(target, seed=5, budget=30_000) for _ in "ab")
    assert first.rows == second.rows
    assert first.ledger == second.ledger


@pytest.mark.usefixtures("hurried")
def test_what_changes_no_answer_is_the_same_row():
    target = degrade(revelu.zoo.random_network([4, 2, 3], seed=1), Labels())
    found = revelu.audit(target, dim_in=4, budget=2_000)
    assert "the same as none" in row(found, "float32").notes[0]
    assert row(found, "4 digits").recovered == found.rows[0].recovered
    target = degrade(revelu.zoo.random_network([4, 2, 3], seed=1), Float32())
    found = revelu.audit(target, dim_in=4, budget=30_000)
    assert row(found, "float32").queries == found.rows[0].queries
    assert "the same as none" in row(found, "float32").notes[0]
    assert "float32" in found.facts["precision"]


@pytest.mark.usefixtures("hurried")
def test_probabilities_are_compared_as_such():
    found = revelu.audit(lambda Z: softmax(TRUTH(Z)), dim_in=5, budget=40_000)
    assert found.facts["answers"] == "probabilities"
    assert found.rows[0].recovered == "weights"
    assert found.rows[0].fidelity > 1.0 - 1e-9


@pytest.mark.usefixtures("hurried")
def test_two_classes_hide_nothing_behind_the_larger_probability():
    network = revelu.zoo.random_network([4, 2, 2], seed=4)
    found = revelu.audit(network, budget=30_000)
    assert row(found, "top-1 probability").recovered == found.rows[0].recovered == "weights"


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
def test_smooth_targets_are_said_to_be_smooth():
    found = revelu.audit(lambda Z: np.tanh(Z).sum(axis=1), dim_in=4, budget=20_000)
    assert found.facts["shape"].startswith("smooth")
    assert found.rows[0].recovered == "nothing"  # its span is all of the input
    assert any("no limit on queries follows" in text for text in found.advice)


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
def test_deep_networks_give_away_their_span():
    deep = revelu.zoo.random_network([12, 4, 4, 3, 2], seed=3)
    found = revelu.audit(deep, budget=12_000)
    first = found.rows[0]
    assert first.recovered == "span"
    assert first.finding.span is None or first.finding.span.span.rank == 4


def test_a_target_that_stops_keeps_the_rows_that_are_done(found):
    within = sum(found.rows[i].queries for i in (0, 1)) + 3 * 2084
    stopped = revelu.audit(failing_after(within), dim_in=5)
    assert stopped.error.endswith("out of order")
    assert {r.defence for r in stopped.rows} == set(IN_TURN[: len(stopped.rows)])
    assert set(stopped.missing) == set(IN_TURN[len(stopped.rows) :])
    assert stopped.conclusion == "inconclusive"
    assert "give away is not known" in stopped.decision
    assert stopped.rows
    assert stopped.missing
    assert stopped.rows[0].queries == found.rows[0].queries
    with pytest.raises(TargetError, match="out of order"):
        revelu.audit(failing_after(100), dim_in=5)


@pytest.mark.parametrize("budget", [40, 1_000, 3_000])
def test_no_query_over_the_budget(budget):
    asked = []

    def target(Z):
        asked.append(len(Z))
        return TRUTH(Z)

    found = revelu.audit(target, dim_in=5, budget=budget)
    assert found.ledger.n_queries == sum(asked) <= budget
    assert found.status is revelu.Status.BUDGET_EXHAUSTED


@pytest.mark.usefixtures("hurried")
def test_served_models_are_asked_for_the_first_row_alone():
    with serving(TRUTH) as server:
        found = revelu.audit(server.url, budget=MOST_QUERIES)
    assert found.served
    assert [r.defence for r in found.rows] == NAMES
    assert [r.extrapolated for r in found.rows] == [False] + [True] * 10
    first = found.rows[0]
    assert first.recovered == "weights"
    assert row(found, "4 digits").recovered in {"weights", "function"}
    # What was asked: the attack, its certificate, the comparison, and the watch.
    assert found.ledger.n_queries < first.queries + 64 + 1000 + 3200 + 100


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"price": -1.0}, "price"),
        ({"inputs": np.zeros((3, 4))}, "shape"),
        ({"inputs": [[np.nan] * 5]}, "finite"),
        ({"inputs": "x"}, "numeric"),
        ({"seed": -1}, "seed"),
        ({"progress": 3}, "progress"),
    ],
)
def test_arguments_that_make_no_sense(arguments, words):
    with pytest.raises(InputError, match=words):
        revelu.audit(TRUTH, **arguments)


@pytest.mark.usefixtures("hurried")
def test_progress_says_what_is_left():
    seen = []
    target = revelu.zoo.random_network([3, 1, 1], seed=1)
    found = revelu.audit(target, budget=20_000, progress=seen.append)
    # One output has no class.
    assert [r.defence for r in found.rows] == NAMES[:9]
    assert {r.label_agreement for r in found.rows} == {r.labels_kept for r in found.rows} == {None}
    fractions = [event.fraction for event in seen]
    assert 0.0 <= min(fractions) < 0.1
    # Of nine rows the last three take no time, where those before have told of them.
    assert 5 / 9 < max(fractions) <= 1.0
    assert all(event.seconds_left >= 0.0 for event in seen)
    assert any(event.message.startswith("row 2 of 9, float32") for event in seen)


def test_numbers_may_take_twice_as_long_until_finer_ones_were_tried_in_vain(monkeypatch):
    allowed = {}

    def pretend(*arguments):
        allowed[IN_TURN[len(allowed)]] = arguments[3].seconds
        return Finding(10, None, None, len(allowed) == 1 + IN_TURN.index("4 digits"), False, ())

    monkeypatch.setattr("revelu.tasks.audit.audit.attack", pretend)
    # No second passes: what is left is that of the first row.
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    monkeypatch.setattr("revelu.tasks.audit.audit.try_again", lambda _: None)
    revelu.audit(TRUTH, max_seconds=600)
    # A tenth is kept for computing that goes on.
    shares = [allowed[name] / 540 for name in IN_TURN]
    assert shares[0] == pytest.approx(0.5)
    # Each of ten, of nine ... may take twice what those after it may.
    assert shares[1:4] == pytest.approx([2 / 11, 2 / 10, 2 / 9])
    # 2 and 3 digits, and noise of 1e-2, change answers more than 4 digits, tried in vain.
    assert shares[4:7] == pytest.approx([1 / 7, 1 / 6, 1 / 5])
    assert shares[9:] == pytest.approx([1 / 2, 1])


def test_time_left_over_goes_to_attacks_that_were_cut(monkeypatch):
    allowed, seen = [], []

    def pretend(*arguments):
        """Ends at once, but for that on 4 digits, which wants more than it gets at first."""
        *_, limits, _, _, listener = arguments
        allowed.append(limits.seconds)
        listener(Progress("recover", 0, 0, "fitting"))
        return Finding(10, None, None, len(allowed) == 1 + IN_TURN.index("4 digits"), False, ())

    monkeypatch.setattr("revelu.tasks.audit.audit.attack", pretend)
    found = revelu.audit(TRUTH, max_seconds=600, progress=seen.append)
    assert [r.defence for r in found.rows] == NAMES
    assert not any(r.cut for r in found.rows)
    # The last one is for the network behind labels.
    assert len(allowed) == len(NAMES) + 2
    assert 2.0 * allowed[IN_TURN.index("4 digits")] < allowed[-2] < 600.0
    assert seen[-2].message == "row 4 again, 4 digits: fitting"
    assert seen[-1].message == "row 11 again, labels: fitting"


def test_no_attack_is_begun_again_where_no_time_is_left(monkeypatch):
    allowed = []

    def pretend(*arguments):
        allowed.append(arguments[3].seconds)
        return Finding(10, None, None, True, False, ())

    monkeypatch.setattr("revelu.tasks.audit.audit.attack", pretend)
    # Seconds that were allowed are over.
    monkeypatch.setattr("time.monotonic", lambda: sum(allowed))
    found = revelu.audit(TRUTH, max_seconds=600)
    assert all(r.cut for r in found.rows)
    assert len(allowed) == len(NAMES)
    assert row(found, "labels").not_tried[0].startswith("the network: its turn is the last")


@pytest.mark.parametrize(("seconds", "cut"), [(1.0, False), (100.0, True)])
def test_a_search_that_fails_as_its_time_ends_is_cut(monkeypatch, seconds, cut):
    now = 0.0

    def extract(oracle, **_):
        nonlocal now
        oracle(X)
        now += seconds
        return Recovery(Status.NOT_DETERMINISTIC, None, ledger=oracle.ledger())

    def recover_span(*_, **__):
        raise InputError("none here")

    monkeypatch.setattr("revelu.tasks.audit.attack.extract", extract)
    monkeypatch.setattr("revelu.tasks.audit.attack.recover_span", recover_span)
    limits = Limits(50.0, None, lambda: now)
    found = attack(Oracle(TRUTH, 5), TRUTH, "numbers", limits, 0, lambda _: False, lambda _: None)
    assert found.cut == cut
    assert found.kind(None) == "nothing"


def test_what_coarser_answers_tell_is_not_attacked_again(found):
    implied = {r.defence: r.implied_by for r in found.rows if r.implied_by}
    wanted = {"6 digits": "4 digits", "3 digits": "2 digits"}
    # Whether so much noise leaves the weights to be told is a matter of chance.
    if next(r for r in found.rows if r.defence == "noise 1e-2").recovered == "weights":
        wanted |= {"noise 1e-4": "noise 1e-2", "grid 2^-16": "noise 1e-2"}
    elif row(found, "noise 1e-4").recovered == "weights":
        wanted["grid 2^-16"] = "noise 1e-4"
    assert implied == wanted
    for r in found.rows:
        if r.implied_by:
            assert (r.recovered, r.cut, r.extrapolated) == ("weights", False, True)
            assert r.queries == row(found, r.implied_by).queries
            assert r.not_tried[0].startswith("an attack of its own")
            assert r.shift < row(found, r.implied_by).shift
    assert row(found, "top-1 probability").not_tried[0].startswith("a search for the network")


def test_every_row_is_attacked_on_demand():
    # Whether noise hides a neuron is a matter of luck: of this seed it does not.
    found = revelu.audit(TRUTH, budget=MOST_QUERIES, seed=2)
    every = revelu.audit(TRUTH, budget=2 * MOST_QUERIES, every_row=True, seed=2)
    assert not any(text.startswith("an attack") for r in every.rows for text in r.not_tried)
    assert [r.recovered for r in every.rows] == [r.recovered for r in found.rows]
    assert every.advice[:2] == found.advice[:2]
    for r in every.rows[:9]:
        assert revelu.align(r.finding.copy, TRUTH).max_parameter_error < 0.1


def test_an_attack_that_breaks_off_spares_the_others(monkeypatch, found):
    def breaking(base, ask, *more):
        if getattr(ask, "degradation", None) == Rounded(2):
            raise np.linalg.LinAlgError("SVD did not converge")
        return attack(base, ask, *more)

    monkeypatch.setattr("revelu.tasks.audit.audit.attack", breaking)
    broken = revelu.audit(TRUTH, budget=MOST_QUERIES)
    r = row(broken, "2 digits")
    assert (r.recovered, r.cut, r.broke_off, broken.broke_off) == ("nothing", True, True, True)
    assert "LinAlgError" in r.notes[0]
    assert "a defect: the attack on 2 digits" in broken.warnings[0]
    # 3 digits were attacked themselves.
    assert row(broken, "3 digits").recovered == "weights"
    assert row(broken, "3 digits").implied_by == ""
    assert not found.broke_off


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError, MemoryError])
def test_whatever_ends_an_audit_carries_the_rows_that_are_done(monkeypatch, found, kind):
    limits = audits._Audit._limits

    def failing(self, defence):
        if defence.name == "4 digits":
            raise kind("here")
        return limits(self, defence)

    monkeypatch.setattr(audits._Audit, "_limits", failing)
    with pytest.raises(kind) as caught:
        revelu.audit(TRUTH, budget=MOST_QUERIES)
    check_partial(partial_of(caught.value), found)


def test_an_interrupt_amid_an_attack_carries_the_rows_that_are_done(found):
    def interrupting(event):
        if "4 digits" in event.message:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        revelu.audit(TRUTH, budget=MOST_QUERIES, progress=interrupting)
    check_partial(caught.value.partial, found)
    assert partial_of(ValueError()) is None


def check_partial(partial, found):
    """What an audit has that ended at its third row."""
    assert [r.defence for r in partial.rows] == ["none", "float32"]
    assert partial.rows[0].queries == found.rows[0].queries
    assert set(partial.missing) == set(IN_TURN[2:])
    assert partial.conclusion == "inconclusive"
    assert "give away is not known" in partial.decision
    assert partial.error
    assert partial.ledger.n_queries > 0


@pytest.mark.parametrize(("budget", "option"), [(None, "--max-seconds"), (3_000, "--budget")])
def test_what_would_end_attacks_follows_from_what_they_took(monkeypatch, budget, option):
    now = [0.0]

    def pretend(*_):
        now[0] += 10.0
        return Finding(10, None, None, True, budget is not None, ())

    monkeypatch.setattr("revelu.tasks.audit.audit.attack", pretend)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    cut = revelu.audit(TRUTH, budget=budget, max_seconds=95.0)
    name, number = cut.run_again.split()
    assert name == option
    assert cut.advice[0].startswith(f"inconclusive: run again with {cut.run_again}")
    if budget is None:
        # Nine attacks of ten seconds are over, and each is to have four times as much.
        assert 350 <= int(number) <= 400
    else:
        assert int(number) == 4 * budget


@pytest.mark.slow
def test_a_defence_holds_after_attacks_with_other_seeds_alone(monkeypatch):
    seeds = {}

    def luckless(base, ask, leaves, limits, seed, *more):
        """Finds nothing behind 2 digits, but for the last seed."""
        if getattr(ask, "degradation", None) == Rounded(2):
            tried = seeds.setdefault("2 digits", [])
            tried.append(seed)
            if len(set(tried)) < 3:
                return Finding(10, None, None, False, False, ("nothing here",))
        return attack(base, ask, leaves, limits, seed, *more)

    monkeypatch.setattr("revelu.tasks.audit.audit.attack", luckless)
    found = revelu.audit(TRUTH, budget=2 * MOST_QUERIES)
    r = row(found, "2 digits")
    assert r.recovered in {"weights", "function"}
    assert (r.tries, len(set(seeds["2 digits"]))) == (3, 3)
    assert r.queries > 20
    assert found.conclusion == "none helps"
    # Who had no time for another seed does not call it a defence.
    monkeypatch.setattr(audits._Audit, "is_over", lambda self: len(self.rows) == len(self.all))
    seeds.clear()
    hurried = row(revelu.audit(TRUTH, budget=2 * MOST_QUERIES), "2 digits")
    assert (hurried.recovered, hurried.cut, hurried.is_judged) == ("nothing", True, False)


@pytest.mark.usefixtures("hurried")
def test_what_was_not_found_is_not_certified():
    """That the first layer looks everywhere is certified, and gives nothing away."""
    found = revelu.audit(revelu.zoo.random_network([2, 3, 3], seed=1), budget=60_000)
    r = row(found, "top-1 probability")
    assert r.finding.certifies("span")
    assert (r.recovered, r.certified, r.labels_kept, r.shift) == ("nothing", False, None, None)
    assert row(found, "labels").labels_kept == 1.0
