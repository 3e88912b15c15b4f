"""How audits end: changed or silent targets, rows that are cut, inputs of one class."""

import importlib
import time
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.errors import ChangedError, LimitReachedError, TargetError
from revelu.oracle import Oracle
from revelu.recovery import Recovery, Status
from revelu.report.page import page
from revelu.report.sections import audit_table, thief
from revelu.report.verdicts import verdict
from revelu.tasks.audit import audit as audits
from revelu.tasks.audit.attack import Limits, attack
from revelu.tasks.audit.conclusion import concluded, so_far
from revelu.tasks.audit.implied import with_implied
from revelu.tasks.audit.reference import Reference
from revelu.tasks.audit.rows import AuditRow, document_rows

TRUTH = revelu.zoo.random_network([5, 3, 3], seed=3)
# Without classes, so that no row takes labels.
ONE = revelu.zoo.random_network([4, 2, 1], seed=1)
MOST_QUERIES = 40_000


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """The network behind labels, which takes most of an audit's time, is not looked for."""
    monkeypatch.setattr(audits, "look_behind_labels", lambda _: None)


class Served:
    """A model elsewhere, with something that becomes of it once all else was asked."""

    dim_in = ONE.dim_in

    def __init__(self, monkeypatch, becomes):
        self.now = ONE
        check = audits._Audit._check_unchanged

        def last_check(audit):
            self.now = becomes
            check(audit)

        monkeypatch.setattr(audits._Audit, "_check_unchanged", last_check)

    def __call__(self, X):
        return self.now(X)


def out_of_order(_):
    raise RuntimeError("connection refused")


def audited(target, **more):
    return revelu.audit(target, remote=True, budget=MOST_QUERIES, **more)


# The last look at a target.


def test_a_target_that_is_gone_at_the_last_look_leaves_rows_and_status(monkeypatch):
    whole = audited(ONE)
    gone = audited(Served(monkeypatch, out_of_order))
    assert (gone.error, gone.changed, gone.status) == ("", False, whole.status)
    assert gone.rows == whole.rows
    assert (gone.conclusion, gone.advice, gone.severity) == (
        whole.conclusion,
        whole.advice,
        "critical",
    )
    (said,) = set(gone.warnings) - set(whole.warnings)
    assert "could not be asked whether it is still the same" in said
    assert "connection refused" in said


def test_an_audit_asks_about_as_much_as_an_extraction():
    """What the guide says of a target elsewhere: a thousand answers more, to compare with."""
    assert audited(ONE).ledger.n_queries <= revelu.extract(ONE).ledger.n_queries + 1_100


def gone_late(_):
    failure = LimitReachedError("the seconds allowed are over: http://x: no connection any more")
    failure.heard = "http://x: no connection any more"
    raise failure


def test_a_target_that_is_gone_when_time_is_over_is_not_put_down_to_time(monkeypatch):
    found = audited(Served(monkeypatch, gone_late))
    (said,) = [text for text in found.warnings if "no connection any more" in text]
    assert "could not be asked whether it is still the same model" in said
    assert "the rows that it answered (as they are), and those that are concluded" in said
    assert "seconds allowed" not in said
    assert found.rows[0].recovered == "weights"


@pytest.mark.parametrize("becomes", [lambda X: 1.01 * ONE(X), lambda X: np.hstack([ONE(X), X])])
def test_a_target_that_is_another_one_at_the_last_look_invalidates(monkeypatch, becomes):
    found = audited(Served(monkeypatch, becomes))
    assert found.changed
    assert "has changed" in found.error
    assert (found.severity, found.conclusion, found.best, found.run_again) == (
        "unknown",
        "inconclusive",
        "",
        "",
    )
    assert len(found.advice) == 1
    assert "the rows are of no one model" in found.advice[0]
    account = {"target": "t", **found.to_dict(), "status": "error"}
    assert account["changed"] is True
    assert verdict("audit", account).words.startswith("unknown: the target changed")
    assert thief(account) == ""
    assert "Critical" not in page("audit", account)


def test_the_oracle_tells_the_two_apart():
    target = SimpleNamespace(now=ONE)

    def ask(X):
        return target.now(X)

    oracle = revelu.open_oracle(ask, dim_in=4, remote=True)
    revelu.extract(oracle)
    oracle(np.zeros((1, 4)))
    target.now = out_of_order
    with pytest.raises(TargetError) as caught:
        oracle.check_unchanged()
    assert not isinstance(caught.value, ChangedError)
    target.now = lambda X: ONE(X) + 1.0
    oracle._n_unwatched = 1
    with pytest.raises(ChangedError, match="has changed"):
        oracle.check_unchanged()


@pytest.mark.parametrize(
    ("becomes", "code"),
    [(out_of_order, ExitCode.CERTIFIED), (lambda X: ONE(X) + 1.0, ExitCode.TARGET)],
)
def test_the_shell_is_told_which(monkeypatch, tmp_path, becomes, code):
    monkeypatch.syspath_prepend(tmp_path)
    name = f"served_{code.name.lower()}"
    (tmp_path / f"{name}.py").write_text("target = None")
    importlib.import_module(name).target = Served(monkeypatch, becomes)
    arguments = ["audit", f"{name}:target", "--trust", "--dim-in", "4", "--remote", "--json"]
    result = CliRunner().invoke(app, [*arguments, "--budget", f"{MOST_QUERIES}"])
    assert result.exit_code == code, result.output
    account = one_object(result.stdout)
    assert account["status"] == ("finished" if code is ExitCode.CERTIFIED else "error")
    assert len(account["rows"]) == 9


# What is known of an audit that was cut.


def made(defence, recovered, kept=1.0, shift=0.0, **more):
    return AuditRow(defence, recovered, queries=100, labels_kept=kept, shift=shift, **more)


def said(*rows, missing=(), run_again="--max-seconds 90"):
    return so_far(concluded(rows, 3, missing), rows, run_again)


def test_what_rows_say_that_are_done_is_said():
    first = made("none", "weights")
    cut = made("2 digits", "nothing", cut=True)
    assert said(first, cut) == (
        "the answers as they are give away every weight; which defence helps is not known yet: "
        "run again with --max-seconds 90"
    )
    worse = made("3 digits", "weights", kept=0.5)
    assert said(first, worse, cut, run_again="") == (
        "the answers as they are give away every weight; 3 digits do not help; which defence "
        "helps is not known yet"
    )
    at_least = said(made("none", "span", cut=True), made("4 digits", "nothing"))
    assert at_least.startswith(
        "the answers as they are give away the span of the first layer at least; which defence"
    )


def test_nothing_is_said_of_what_was_cut():
    cut = made("none", "nothing", cut=True)
    assert said(cut, made("2 digits", "nothing")) == ""
    first, short = made("none", "weights"), made("2 digits", "span", cut=True)
    assert "2 digits" not in said(first, short)
    # A conclusion is no part of one: what was tried to its end decides, whatever else was cut.
    assert said(first, made("2 digits", "weights")) == ""
    assert said(first, made("4 digits", "function"), short) == ""


def test_an_audit_that_is_cut_says_what_is_known(monkeypatch):
    """Rows that coarser answers tell of are none that are missing."""
    monkeypatch.setattr(audits._Audit, "is_over", lambda self: "2 digits" in names(self))
    found = revelu.audit(TRUTH, budget=MOST_QUERIES)
    assert "3 digits" not in found.missing
    implied = next(row for row in found.rows if row.defence == "3 digits")
    assert (implied.implied_by, implied.recovered, implied.cut) == ("2 digits", "weights", False)
    assert found.missing[:3] == ("noise 1e-4", "noise 1e-2", "grid 2^-16")
    assert found.missing[3:] == ("top-1 probability", "labels")
    assert found.conclusion == "inconclusive"
    assert found.so_far.startswith("the answers as they are give away every weight; float32, 6 ")
    assert found.so_far.endswith(f"run again with {found.run_again}")
    account = found.to_dict()
    assert account["decision"] == found.decision
    assert f"{found.decision}." in page("audit", {"target": "t", **account})


def names(audit):
    return {row.defence for row in audit.judged}


@pytest.mark.parametrize(("seconds", "queries"), [(5.0, True), (20.0, False)])
def test_an_attack_that_the_audits_end_cut_was_not_short_of_queries(monkeypatch, seconds, queries):
    now = [0.0]

    def extract(oracle, **_):
        oracle(np.zeros((1, 5)))
        now[0] += seconds
        return Recovery(Status.BUDGET_EXHAUSTED, None, ledger=oracle.ledger())

    monkeypatch.setattr("revelu.tasks.audit.attack.extract", extract)
    base = Oracle(TRUTH, 5, max_seconds=10.0, clock=lambda: now[0])
    limits = Limits(50.0, 1000, lambda: now[0])
    found = attack(base, base, "labels", limits, 0, lambda _: False, lambda _: None)
    assert (found.cut, found.out_of_queries) == (True, queries)


# Inputs of one class.


def shifted(share):
    """Inputs, and a network that names class 0 for at least so many of them."""
    X = np.random.default_rng(0).standard_normal((1000, 5))
    gaps = np.sort(np.delete(TRUTH(X), 0, axis=1).max(axis=1) - TRUTH(X)[:, 0])
    move = gaps[int(share * 1000) - 1] + 1e-9
    *biases, last = TRUTH.biases
    return X, revelu.Network(TRUTH.weights, [*biases, last + np.array([move, 0, 0])], TRUTH.skip)


@pytest.mark.parametrize(("share", "shown"), [(0.985, True), (0.99, False), (1.0, False)])
def test_agreement_is_shown_where_a_constant_has_less(share, shown):
    X, network = shifted(share)
    known = Reference(X, network(X))
    assert known.largest_class == share
    fidelity, agreement, _ = known.compare(network)
    assert (fidelity, agreement) == (1.0, 1.0 if shown else None)
    of_labels = known.compare(network, (0.0, 1.0, 2.0))
    assert of_labels == (None, 1.0 if shown else None, None)


def test_inputs_of_one_class_are_warned_of():
    X, network = shifted(1.0)
    far = replace_last(network, 50.0)
    found = revelu.audit(far, inputs=X, budget=6_000, remote=True)
    account = {"target": "t", **found.to_dict()}
    assert {row["label_agreement"] for row in account["rows"]} == {None}
    assert {row["label_agreement_on_inputs"] for row in account["rows"]} == {None}
    warned = [text for text in account["warnings"] if "have one class" in text]
    assert len(warned) == 2
    assert warned[0].startswith("all of ")
    assert "of the 1,000 inputs given have one class: a constant answers as well" in warned[1]
    table = audit_table(account)
    column = table.columns.index("same class")
    assert {row[column].text for row in table.rows} == {"-"}
    assert "a constant answers as well" in page("audit", account)


def replace_last(network, move):
    *biases, last = network.biases
    return revelu.Network(network.weights, [*biases, last + np.array([move, 0, 0])], network.skip)


def test_inputs_of_several_classes_are_not_warned_of():
    found = audited(TRUTH)
    assert not any("one class" in text for text in found.warnings)
    assert found.rows[0].label_agreement == 1.0


# What was compared on which inputs.


@pytest.mark.slow
def test_inputs_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TRUTH.save(tmp_path / "truth.npz")
    rows = np.random.default_rng(0).standard_normal((60, 5)) * 2.0 + 1.0
    np.savetxt("data.csv", rows, delimiter=",", header="a,b,c,d,e", comments="")
    arguments = ["audit", "truth.npz", "--inputs", "data.csv", "--budget", "25000", "--details"]
    runner = CliRunner(env={"COLUMNS": "400", "NO_COLOR": "1"})
    plain = runner.invoke(app, arguments).stdout
    (line,) = [text for text in plain.splitlines() if text.startswith("compared on")]
    assert line.split(maxsplit=2)[2] == "1,000 inputs of N(0, I) and the 60 inputs of data.csv"
    like = runner.invoke(app, [*arguments, "--like", "data.csv", "--report", "page.html"]).stdout
    (line,) = [text for text in like.splitlines() if text.startswith("compared on")]
    assert "1,000 inputs drawn like data.csv (normal with its mean" in line
    assert "N(0, I)" not in line
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    legends = [part for part in text.split("<p ") if part.startswith('class="legend"')]
    (legend,) = [part for part in legends if "compared on" in part]
    assert "compared on 1,000 inputs drawn like data.csv (normal with its mean" in legend
    assert "N(0, I)" not in legend


# Targets that answer labels.


def test_noise_and_digits_hide_no_label():
    def labelled(X):
        return TRUTH(X).argmax(axis=1)

    found = revelu.audit(labelled, dim_in=5, budget=3_000)
    assert found.facts["answers"] == "labels: 2 different ones among 146 answers"
    assert "curves" not in found.facts["shape"]
    first, *others = found.rows
    for row in others:
        assert (row.recovered, row.queries, row.cut) == (first.recovered, first.queries, first.cut)
        assert "the same as none" in row.notes[0]


# Targets that are no network.


@pytest.mark.slow
def test_of_a_forest_nothing_is_concluded_from_attacks_on_networks():
    """Its votes are steps of their own size, which no rounding has made."""
    X, y = load_wine(return_X_y=True)
    forest = RandomForestClassifier(50, random_state=0, bootstrap=False).fit(X, y)
    found = revelu.audit(forest, domain=revelu.Domain.like(X), budget=30_000, remote=True)
    account = {"target": "t", **found.to_dict()}
    first = account["rows"][0]
    assert (first["recovered"], first["not_in_class"]) == ("nothing", True)
    assert (found.severity, found.conclusion) == ("unknown", "inconclusive")
    assert "no defence is needed" not in " ".join(found.advice)
    assert "the target is none" in found.advice[0]
    assert "copies trained on its answers were not tried" in found.advice[0]
    assert verdict("audit", account).words.startswith("unknown: the target is no such network")
    assert found.facts["shape"].startswith("steps: constant but for jumps, at values of single")
    assert found.facts["precision"] == "steps: multiples of 0.02"


def test_of_a_smooth_target_nothing_is_concluded_either():
    W = np.random.default_rng(0).standard_normal((4, 4))
    found = revelu.audit(lambda X: np.sin(X @ W), dim_in=4, budget=20_000, remote=True)
    assert found.rows[0].not_in_class
    assert found.severity == "unknown"
    assert "no defence is needed" not in " ".join(found.advice)


def test_no_row_shows_a_worse_copy_than_a_coarser_one():
    order = ["none", "noise 1e-4", "noise 1e-2"]

    def finer(one, other):
        return order.index(one) < order.index(other)

    rows = with_implied(
        [
            made("none", "nothing", not_in_class=True),
            made("noise 1e-4", "nothing", fidelity=0.7, label_agreement=0.8, error=0.5),
            made("noise 1e-2", "nothing", fidelity=0.9, label_agreement=0.7, error=0.3),
        ],
        finer,
    )
    assert [row.fidelity for row in rows] == [0.9, 0.9, 0.9]
    assert [row.label_agreement for row in rows] == [0.8, 0.8, 0.7]
    assert rows[0].at_least == {"fidelity": "noise 1e-2", "label_agreement": "noise 1e-4"}
    assert [row.error for row in rows] == [0.3, 0.3, 0.3]
    assert rows[2].at_least == {}
    account = {"rows": document_rows(tuple(rows)), "answers": 3}
    cells = [row[2] for row in audit_table(account).rows]
    assert [cell.mark for cell in cells] == ["~", "~", ""]
    said = concluded(rows, 3)
    assert (said.kind, said.undecided) == ("inconclusive", rows[0])


def test_what_is_implied_by_an_extrapolated_and_cut_row_says_so():
    coarser = made("noise 1e-2", "function", cut=True, extrapolated=True, fidelity=0.995)
    first = made("noise 1e-4", "nothing", cut=True)
    rows = with_implied([first, coarser], lambda a, _: a == first.defence)
    account = {"rows": document_rows(tuple(rows)), "answers": 1}
    marks = [row[1].mark for row in audit_table(account).rows]
    assert marks == ["~…", "~…"]


# What a slow target may take.


@pytest.mark.parametrize(("pause", "is_cut"), [(0.4, True), (0.0, False)])
def test_a_slow_target_is_waited_for_as_long_as_the_attack_may_compute_four_times(pause, is_cut):
    """Only the waiting counts: the clock goes on where others compute, too."""

    def slow(X):
        time.sleep(pause)
        return ONE(X)

    def neighbour(_):
        time.sleep(0.0 if pause else 0.1)  # as a process that shares the core takes it away

    oracle = Oracle(slow, ONE.dim_in)
    found = attack(oracle, oracle.at, "numbers", Limits(0.3, None), 0, lambda _: True, neighbour)
    assert found.cut == is_cut
    assert (found.network is not None and found.network.status is Status.RECOVERED) != is_cut
