"""What an audit says of labels alone: a network, a span, or that its attack was cut."""

from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu import Status
from revelu.certify.labels import predict_labels
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.oracle import Labels, degrade
from revelu.tasks.audit import audit as audits
from revelu.tasks.audit.attack import Finding, attack
from revelu.tasks.audit.reference import Reference
from revelu.tasks.audit.rows import AuditRow
from revelu.tasks.audit.searches import joined
from revelu.tasks.partial import partial_of

TRUTH = revelu.zoo.random_network([6, 8, 3], seed=3)
# All rows but the last ask some 15,000, and some 400 labels a weight come on top.
MOST_QUERIES = 100_000
# Fewer than the network behind labels takes.
FEW_QUERIES = 40_000


@pytest.fixture(scope="module")
def found():
    return revelu.audit(TRUTH, price=2.0, budget=MOST_QUERIES)


def labels_of(audit):
    return next(row for row in audit.rows if row.defence == "labels")


def in_one_scale(network):
    """Rows of norm 1 in an order of their own, and outputs less the first one over their size."""
    (W, A), (b, c) = network.weights, network.biases
    length = np.linalg.norm(W, axis=1)
    order = np.argsort(W[:, 0] / length)
    A, c = (A - A[0]) * length, c - c[0]
    size = np.linalg.norm(A)
    return (np.column_stack([W, b]) / length[:, None])[order], A[:, order] / size, c / size


@pytest.mark.slow
def test_labels_give_away_every_weight(found):
    row = labels_of(found)
    assert (row.recovered, row.certified, row.cut, row.not_tried) == ("weights", True, False, ())
    assert (row.fidelity, row.label_agreement, row.error) == (None, 1.0, None)
    for mine, true in zip(in_one_scale(row.finding.copy), in_one_scale(TRUTH), strict=True):
        assert np.abs(mine - true).max() < 1e-10
    assert any("get another label" in note for note in row.notes)
    assert any("a positive factor" in note for note in row.notes)
    # Of the search for the network, and not of that for the span.
    assert 200 * TRUTH.n_parameters < row.queries < 600 * TRUTH.n_parameters
    assert row.cost == pytest.approx(2.0 * row.queries / 1000.0)
    assert row.seconds is not None
    assert found.status is None
    assert found.ledger.n_queries <= MOST_QUERIES


def test_advice_is_against_labels_that_give_away_as_much(found):
    n, as_they_are = labels_of(found).queries, found.rows[0].queries
    assert found.conclusion == "none helps"
    assert found.advice[0].endswith("give away the weights, and so do labels")
    assert found.advice[1] == (
        f"labels alone are no defence: they give away the weights for {n:,} queries, where "
        f"numbers do for {as_they_are:,}"
    )
    assert not any("answer labels" in text for text in found.advice)


@pytest.mark.slow
def test_labels_come_last_and_are_cut_alone():
    cut = revelu.audit(TRUTH, budget=FEW_QUERIES)
    row = labels_of(cut)
    assert [r.defence for r in cut.rows if r.cut] == ["labels"]
    assert (row.recovered, row.is_judged) == ("nothing", False)
    assert any("the search for the network was cut after" in note for note in row.notes)
    assert cut.advice[1] == "labels alone are not advised: what they give away is not known"
    assert (cut.status, cut.conclusion) == (Status.BUDGET_EXHAUSTED, "none helps")
    assert cut.run_again == "--budget 160000"
    assert cut.ledger.n_queries <= FEW_QUERIES


@pytest.fixture
def narrow(monkeypatch):
    """The audit of a network whose span is no secret, with a trap beside the last search."""

    def run(trap, **more):
        def springing(base, ask, leaves, *others):
            return trap() if leaves == "labels" else attack(base, ask, leaves, *others)

        monkeypatch.setattr("revelu.tasks.audit.audit.attack", springing)
        target = revelu.zoo.random_network([12, 5, 3], seed=4)
        return revelu.audit(target, budget=MOST_QUERIES, **more)

    return run


@pytest.mark.slow
def test_the_span_is_kept_where_the_network_is_not_found(narrow):
    ended = narrow(lambda: Finding(7, None, None, False, False, ("seen",)))
    row = labels_of(ended)
    # Other seeds are tried before it is said that labels hide the network.
    assert (row.recovered, row.certified, row.cut, row.tries) == ("span", True, False, 3)
    assert row.finding.span.span.rank == 5
    assert row.queries > 3 * 7
    assert "the search for the network ended without it after 21 queries" in row.notes
    assert ended.advice[1].startswith("where the class is all that callers need, answer labels")

    cut = narrow(lambda: Finding(7, None, None, True, False, ()))
    row = labels_of(cut)
    assert row.finding.certifies("span")
    assert (row.recovered, row.certified, row.cut, row.tries) == ("span", False, True, 1)
    assert cut.advice[1].startswith("labels alone are not advised: they give away the span")
    assert cut.run_again.startswith("--max-seconds")


@pytest.mark.slow
def test_the_search_behind_labels_is_no_longer_than_it_is_worth(monkeypatch):
    bounded = partial(audits._Audit, labels_each=10, labels_least=4000)
    monkeypatch.setattr(audits, "_Audit", bounded)
    ended = revelu.audit(revelu.zoo.random_network([12, 5, 3], seed=4), budget=MOST_QUERIES)
    row = labels_of(ended)
    # It was ended by no limit of the caller's, and other seeds would ask as many.
    assert (row.recovered, row.certified, row.cut, row.tries) == ("span", True, False, 1)
    assert (ended.status, ended.run_again, ended.conclusion) == (None, "", "none helps")
    assert row.not_tried == (
        "a search of more than 4,000 labels for the network, which these did not reach",
    )
    assert ended.advice[1].startswith("where the class is all that callers need, answer labels")
    assert ended.advice[1].endswith(f"not tried: {row.not_tried[0]}")


@pytest.mark.slow
def test_a_defect_and_an_interrupt_leave_the_span_and_no_advice(narrow):
    def broken():
        raise ZeroDivisionError("here")

    ended = narrow(broken)
    row = labels_of(ended)
    assert (row.recovered, row.cut, row.broke_off, ended.broke_off) == ("span", True, True, True)
    assert "a defect: the attack on labels broke off" in ended.warnings[0]

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        narrow(interrupted)
    row = labels_of(partial_of(caught.value))
    assert (row.recovered, row.cut) == ("span", True)
    assert row.not_tried[0].startswith("the network: its turn is the last")


@pytest.mark.slow
def test_no_other_seed_is_a_cut(monkeypatch, narrow):
    asked = []

    def once():
        asked.append(1)
        return Finding(7, None, None, False, False, ())

    monkeypatch.setattr(audits._Audit, "is_over", lambda _: bool(asked))
    row = labels_of(narrow(once))
    assert (row.cut, len(asked)) == (True, 1)
    assert "no time for another seed" in row.notes[0]


@pytest.mark.slow
def test_a_served_model_is_asked_no_label(found):
    served = revelu.audit(TRUTH, dim_in=6, budget=MOST_QUERIES, remote=True)
    row = labels_of(served)
    assert (row.recovered, row.extrapolated, row.label_agreement) == ("weights", True, 1.0)
    assert served.ledger.n_queries < 6_000 < row.queries
    assert "(extrapolated)" in served.advice[1]
    assert found.rows[0].queries == served.rows[0].queries


def test_targets_that_answer_labels_are_compared_by_them(monkeypatch):
    monkeypatch.setattr(audits, "in_turn", lambda _: [0])
    found = revelu.audit(degrade(TRUTH, Labels()), dim_in=6, budget=MOST_QUERIES)
    first = found.rows[0]
    assert (first.recovered, first.certified, first.fidelity) == ("weights", True, None)
    assert first.label_agreement == 1.0
    assert found.severity == "critical"
    # Of logits that labels do not tell there are no pictures beside labels.
    assert found.copy is None


def test_a_copy_of_labels_is_as_good_as_it_beats_the_commonest_class():
    X = np.random.default_rng(0).standard_normal((4000, 6))
    known, classes = Reference(X, TRUTH(X)), (0.0, 1.0, 2.0)
    labels = TRUTH(X).argmax(axis=1)
    assert known.likeness(TRUTH, classes) == 1.0
    assert known.compare(TRUTH, classes) == (None, 1.0, None)
    commonest = np.eye(3)[np.bincount(labels).argmax()]
    constant = revelu.Network([np.zeros((1, 6)), np.zeros((3, 1))], [np.zeros(1), commonest])
    assert known.likeness(constant, classes) == 0.0
    rng = np.random.default_rng(1)
    near = TRUTH.like(TRUTH.to_vector() + 0.01 * rng.standard_normal(TRUTH.n_parameters))
    wrong = (predict_labels(near, np.array(classes), X) != labels).mean()
    assert 0.0 < wrong < 0.05
    assert known.likeness(near, classes) < known.compare(near, classes)[1] == 1.0 - wrong


@pytest.mark.slow
def test_labels_are_asked_in_a_domain():
    domain = revelu.Domain.gaussian(np.arange(6.0), np.arange(1.0, 7.0))
    target = TRUTH.after(np.diag(1.0 / np.arange(1.0, 7.0)), -np.arange(6.0) / np.arange(1.0, 7.0))
    row = labels_of(revelu.audit(target, budget=MOST_QUERIES, domain=domain))
    assert (row.recovered, row.certified) == ("weights", True)
    assert any(f"inputs {domain.words} get another label" in note for note in row.notes)
    assert not any("N(0, I)" in note for note in row.notes)
    for mine, true in zip(in_one_scale(row.finding.copy), in_one_scale(target), strict=True):
        assert np.abs(mine - true).max() < 1e-10


def test_rows_of_span_and_network_are_one():
    span = AuditRow("labels", "span", queries=5, certified=True, notes=("a",))
    network = AuditRow("labels", "weights", queries=50, certified=True, notes=("b",))
    assert joined(span, network) == network
    first_layer = AuditRow("labels", "span", queries=50, notes=("b",))
    assert (joined(span, first_layer).queries, joined(span, first_layer).certified) == (5, True)
    nothing = AuditRow("labels", "nothing", queries=5)
    assert joined(nothing, first_layer).queries == 50
    assert joined(nothing, nothing).queries == 10


@pytest.mark.slow
def test_page_and_table_say_what_labels_give_away(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TRUTH.save(tmp_path / "truth.npz")
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    options = ["--json", "--price", "2", "--report", "page.html", "--budget", str(MOST_QUERIES)]
    result = runner.invoke(app, ["audit", "truth.npz", *options])
    assert result.exit_code == ExitCode.CERTIFIED
    row = one_object(result.stdout)["rows"][-1]
    assert (row["recovered"], row["certified"], row["label_agreement"]) == ("weights", True, 1.0)
    assert (row["fidelity"], row["error"], row["cut"]) == (None, None, False)
    page = (tmp_path / "page.html").read_text(encoding="utf-8").partition("Every field")[0]
    assert "Labels alone are no defence" in page
    assert "up to a factor of all outputs" in page
    assert f"{row['queries']:,}" in page
    assert "get another label" in page

    cut = runner.invoke(app, ["audit", "truth.npz", "--budget", str(FEW_QUERIES)])
    assert cut.exit_code == ExitCode.EXHAUSTED
    line = next(text for text in cut.stdout.splitlines() if text.startswith("labels"))
    assert "…" in line
    assert "labels alone are not advised" in cut.stdout
