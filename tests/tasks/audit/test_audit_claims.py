"""Audits claim what was seen of the target: no copy's weights, no safety, no two models as one."""

import importlib
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.neighbors import KNeighborsRegressor
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu import Domain
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.network import zoo
from revelu.oracle import Oracle, measure_noise, softmax
from revelu.oracle.grid import Grid
from revelu.probe.steps import Steps
from revelu.report.page import page
from revelu.report.sections import audit_table
from revelu.report.verdicts import verdict
from revelu.tasks.audit import audit as audits
from revelu.tasks.audit.advice import advice
from revelu.tasks.audit.changes import exceeds
from revelu.tasks.audit.conclusion import concluded
from revelu.tasks.audit.facts import similar_neurons
from revelu.tasks.audit.implied import with_implied
from revelu.tasks.audit.rows import Audit, AuditRow, document_rows
from revelu.tasks.extract import extract as extraction
from revelu.tasks.units import network_in_coordinates

NETWORK = zoo.random_network([5, 3, 3], seed=3)
# Without classes, so that no row takes labels.
ONE, OTHER = (zoo.random_network([4, 2, 1], seed=seed) for seed in (1, 2))
MOST_QUERIES = 30_000


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """The network behind labels, which takes most of an audit's time, is not looked for."""
    monkeypatch.setattr(audits, "look_behind_labels", lambda _: None)


def made(defence, recovered, **more):
    return AuditRow(defence, recovered, queries=100, labels_kept=1.0, shift=0.0, **more)


# What a copy gives away is no more than is known of the copy.


def wrong_at_some(X):
    """A network of few digits, but beyond a plane, where every other input lies."""
    S = X.sum(axis=1, keepdims=True)
    return np.round(NETWORK(X), 3) + 0.02 * ((S > 2.6 * 5**0.5) & (np.sin(1e4 * S) > 0.0))


def test_a_copy_that_is_not_certified_has_no_weights_to_give_away():
    found = revelu.audit(wrong_at_some, dim_in=5, remote=True, budget=MOST_QUERIES)
    alone = revelu.extract(wrong_at_some, dim_in=5, remote=True, budget=MOST_QUERIES)
    assert alone.status is not revelu.Status.RECOVERED
    first, *others = found.rows
    assert (first.recovered, first.certified, first.implied_by) == ("function", False, "")
    # The copy, which is a network, is recovered and certified against its own answers.
    assert any(r.finding is not None and r.finding.certifies("function") for r in others)
    assert {r.recovered for r in others} & {"function", "span"}
    assert not any(r.recovered == "weights" or r.certified for r in found.rows)
    assert found.severity == "high"


@pytest.mark.slow
def test_a_copy_rounds_as_the_served_model_does(monkeypatch):
    """What is asked behind a defence are numbers of one kind, whoever answers them."""
    asked, served = [], audits._Audit._as_served

    def kept(audit, ask):
        inner = served(audit, ask)

        def answer(X):
            asked.append(inner(X))
            return asked[-1]

        return answer

    monkeypatch.setattr(audits._Audit, "_as_served", kept)
    monkeypatch.setattr(audits, "_Audit", partial(audits._Audit, seconds=2.5))  # of computing
    truth = revelu.zoo.random_network([5, 4, 2], seed=2)
    found = revelu.audit(lambda X: np.round(truth(X), 4), dim_in=5, remote=True, seed=2)
    by_name = {row.defence: row for row in found.rows}
    assert by_name["float32"].recovered == "weights"
    assert by_name["float32"].implied_by == ""
    assert asked
    assert all(np.array_equal(Y, np.round(Y, 4)) for Y in asked)


@pytest.mark.parametrize("domain", [None, Domain.gaussian(np.ones(4), np.full(4, 2.0))])
def test_extrapolated_rows_are_never_certified(domain):
    """Nor where the target's own row is, and its answers are the copy's."""
    found = revelu.audit(ONE, domain=domain, remote=True, budget=MOST_QUERIES)
    assert (found.rows[0].recovered, found.rows[0].certified) == ("weights", True)
    assert all(r.extrapolated and not r.certified for r in found.rows[1:])
    assert found.rows[2].recovered == "weights"


def test_rows_of_the_data_are_asked_to_their_last_bits():
    """A value is told from all others by equality, and no input drawn has it."""
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.standard_t(2, (300, 3)), rng.integers(0, 3, 300)])
    domain = Domain.like(X, name="table.csv")
    assert np.array_equal(domain.to_target(domain.coordinates), domain.rows)
    near = domain.coordinates.astype(np.float32).astype(float)
    assert np.array_equal(domain.to_target(near), domain.rows.astype(np.float32))

    def steps(Z):
        return ONE(Z) + 2.0 * (Z[:, 3:] == 1)

    found = revelu.audit(steps, dim_in=4, domain=domain, remote=True, budget=MOST_QUERIES)
    assert (found.rows[0].recovered, found.severity) == ("function", "high")


def test_a_span_that_is_certified_vouches_for_no_copy():
    copy = revelu.audit(ONE, budget=8_000).rows[0].finding
    span = revelu.recover_span(ONE, dim_in=4, seed=0)
    refused = replace(copy.network, status=revelu.Status.UNVERIFIED)
    both = replace(copy, network=refused, span=span)
    assert span.status is revelu.Status.RECOVERED
    assert [both.certifies(kind) for kind in ("weights", "function", "span")] == [
        False,
        False,
        True,
    ]
    assert copy.certifies("weights")


def test_a_copy_that_is_certified_in_coordinates_alone_gives_no_weights_away(monkeypatch):
    """Where columns are all but collinear, it is less sure in the target's own units."""
    units, first = extraction.in_units, []

    def refused(found, *rest):
        first.extend([] if first else [found.network])
        status = revelu.Status.UNVERIFIED if found.network is first[0] else found.status
        return replace(units(found, *rest), status=status)

    monkeypatch.setattr(extraction, "in_units", refused)
    domain = Domain.gaussian(np.ones(4), np.full(4, 2.0))
    found = revelu.audit(ONE, domain=domain, remote=True, budget=MOST_QUERIES)
    assert (found.rows[0].recovered, found.rows[0].certified) == ("function", False)
    assert {r.recovered for r in found.rows} == {"function"}


@pytest.mark.parametrize(
    ("target", "options"),
    [
        (ONE, {}),
        (ONE, {"domain": Domain.gaussian(np.ones(4), np.full(4, 2.0))}),
        (ONE, {"box": (-1.0, 1.0)}),
        (NETWORK, {"link": "none"}),
        (wrong_at_some, {"dim_in": 5, "remote": True}),
    ],
    ids=["plain", "domain", "box", "link", "refused"],
)
def test_the_first_row_is_what_extract_makes_of_the_target(target, options):
    alone = revelu.extract(target, **options, seed=4, budget=MOST_QUERIES)
    row = revelu.audit(target, **options, seed=4, budget=MOST_QUERIES).rows[0]
    found = row.finding.network
    assert found.status is alone.status
    assert row.certified == (alone.status is revelu.Status.RECOVERED)
    copies = [made.network or made.rejected for made in (found, alone)]
    Z = np.random.default_rng(0).uniform(-1.0, 1.0, (50, copies[0].dim_in))
    np.testing.assert_array_equal(copies[0](Z), copies[1](Z))


def test_no_measured_row_is_raised_by_an_extrapolated_one():
    copy = revelu.audit(ONE, budget=8_000).rows[0].finding
    measured = made("none", "nothing", finding=copy, fidelity=0.5)
    from_copy = made("labels", "weights", extrapolated=True, certified=True, fidelity=0.9)
    first, _ = with_implied([measured, from_copy], lambda a, _: a == "none")
    assert (first.recovered, first.fidelity, first.at_least) == ("nothing", 0.5, {})
    # One that stood for it without an attack is, and is no certificate.
    spared = replace(measured, finding=None)
    first, _ = with_implied([spared, from_copy], lambda a, _: a == "none")
    assert (first.recovered, first.implied_by, first.certified) == ("weights", "labels", False)
    # And a measured one by a measured one.
    below = replace(from_copy, extrapolated=False)
    first, _ = with_implied([measured, below], lambda a, _: a == "none")
    assert (first.recovered, first.certified) == ("weights", True)


def test_inputs_of_users_are_asked_for_the_certificate():
    """A network is right at N(0, I), and wrong at what users send."""
    X = 8.0 + np.random.default_rng(0).uniform(-1.0, 1.0, (40, 4))

    def answer(Z):
        return ONE(Z) + (np.abs(Z - 8.0).max(axis=1, keepdims=True) < 1.0)

    found = revelu.audit(answer, X, dim_in=4, remote=True, budget=8_000)
    assert found.rows[0].recovered != "weights"
    assert revelu.audit(answer, dim_in=4, remote=True, budget=8_000).rows[0].recovered == "weights"


def test_steps_that_a_defence_has_made_are_no_defence_by_themselves():
    """An attack that takes rounded logits for votes has not tried what a thief would."""
    found = revelu.audit(lambda X: softmax(NETWORK(X)), dim_in=5, remote=True, budget=MOST_QUERIES)
    row = next(row for row in found.rows if row.defence == "logits to 2 decimals")
    assert found.rows[0].recovered == "weights"
    assert row.recovered in {"weights", "function"} or (row.cut and not row.not_in_class)
    assert found.best != row.defence


def test_numbers_that_rounding_makes_whole_are_not_taken_for_labels():
    """Two digits of answers around 150 are whole numbers; their borders show no classes."""
    found = revelu.audit(
        lambda X: 150.0 + 20.0 * ONE(X), dim_in=4, budget=MOST_QUERIES, every_row=True
    )
    row = next(row for row in found.rows if row.defence == "2 digits")
    assert row.finding.network.method == "fit"
    assert row.queries < 5_000


def test_neurons_that_look_alike_are_named():
    network = zoo.random_network([8, 5, 1], seed=3)
    W = network.weights[0].copy()
    W[3] = W[1] + 0.01 * np.linalg.norm(W[1]) * np.eye(8)[0]
    b = network.biases[0].copy()
    b[3] = b[1]
    alike = revelu.Network([W, network.weights[1]], [b, network.biases[1]], network.skip)
    assert similar_neurons(alike).startswith("neurons 1 and 3 (0.")
    assert similar_neurons(network) == similar_neurons(None) == ""
    # Rows that one large column makes alike are not, where inputs are like data.
    scaled = revelu.Network(
        [W * np.r_[1e3, np.ones(7)], network.weights[1]], [b, network.biases[1]]
    )
    domain = revelu.Domain.gaussian(np.zeros(8), np.r_[1e-3, np.ones(7)])
    there = network_in_coordinates(scaled, domain)
    assert similar_neurons(scaled) != similar_neurons(there)
    assert similar_neurons(there).startswith("neurons 1 and 3 (")
    # In two directions two of fifty are as near by chance.
    assert similar_neurons(zoo.random_network([1, 50, 1], seed=0)) == ""


# Two models behind one address.


def of_two(X):
    """What is asked to compare with reaches another model."""
    return OTHER(X) if len(X) == 1000 else ONE(X)


def test_certified_weights_beside_answers_they_do_not_explain_are_a_contradiction():
    found = revelu.audit(of_two, dim_in=4, remote=True, budget=MOST_QUERIES)
    assert found.contradicted
    assert "does not answer as one model" in found.error
    assert (found.severity, found.conclusion, found.so_far) == ("unknown", "inconclusive", "")
    assert found.advice == (found.advice[0],)
    assert "of no one model" in found.advice[0]
    account = {"target": "t", **found.to_dict(), "status": "error"}
    assert account["contradicted"] is True
    assert verdict("audit", account).words.startswith("unknown: the target does not answer as one")
    assert "Critical" not in page("audit", account)


def test_the_shell_is_told_of_it(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "served_of_two.py").write_text("target = None")
    importlib.import_module("served_of_two").target = of_two
    arguments = ["audit", "served_of_two:target", "--trust", "--dim-in", "4", "--remote", "--json"]
    result = CliRunner().invoke(app, [*arguments, "--budget", f"{MOST_QUERIES}"])
    assert result.exit_code == ExitCode.TARGET, result.output
    account = one_object(result.stdout)
    assert account["status"] == "error"
    assert "one model" in account["error"]


def test_noise_and_digits_contradict_nothing():
    rng = np.random.default_rng(0)
    deviation = NETWORK(rng.standard_normal((1000, 5))).std()

    def noisy(X):
        return NETWORK(X) + 0.15 * deviation * rng.standard_normal((len(X), 3))

    found = revelu.audit(noisy, dim_in=5, remote=True, budget=MOST_QUERIES)
    assert found.rows[0].fidelity < 0.99
    assert not found.contradicted


# What was not found is not safe.


def regressor(model):
    X, y = load_diabetes(return_X_y=True)
    return model.fit(X, y).predict, X


def classifier(model):
    X, y = load_wine(return_X_y=True)
    return model.fit(X, y).predict_proba, X


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (regressor(RandomForestRegressor(100, random_state=0, n_jobs=1)), "trees"),
        (regressor(GradientBoostingRegressor(random_state=3)), "trees"),
        (classifier(ExtraTreesClassifier(100, random_state=0)), "trees"),
        (regressor(KNeighborsRegressor()), "nearest neighbours"),
    ],
    ids=["forest", "boosted", "votes", "neighbours"],
)
def test_steps_are_named_and_nothing_is_called_low(model, name):
    answer, X = model
    found = revelu.audit(
        answer, dim_in=X.shape[1], domain=Domain.like(X), remote=True, budget=MOST_QUERIES
    )
    assert (found.severity, found.conclusion) == ("unknown", "inconclusive")
    assert name in found.looks_like
    assert f"it looks like {name}" in found.advice[0]
    assert "no defence is needed" not in " ".join(found.advice)
    assert found.facts["shape"].startswith("steps: constant but for jumps")
    assert "rounded to" not in found.facts["precision"]
    assert found.ledger.n_queries <= 6_000
    account = found.to_dict()
    assert account["looks_like"] == found.looks_like
    assert {cell.tone for cell in (row[1] for row in audit_table(account).rows)} == {"warn"}
    for kind in ("weights", "function", "span"):
        assert exceeds(account["rows"], kind) is None


def test_a_forest_is_no_network_before_anything_is_fitted():
    answer, X = regressor(RandomForestRegressor(100, random_state=0, n_jobs=1))
    found = revelu.extract(answer, dim_in=10, domain=Domain.like(X), budget=1_000)
    assert found.status is revelu.Status.NOT_IN_CLASS
    assert found.ledger.n_queries <= 64 + 800
    assert "hidden layers" not in " ".join(found.evidence)


def test_an_attack_that_ends_without_a_network_has_not_shown_that_there_is_none():
    rows = [made("none", "nothing", undecided=True), made("2 digits", "nothing", undecided=True)]
    found = concluded(rows, 3)
    assert (found.kind, found.undecided) == ("inconclusive", rows[0])
    (first, *rest) = advice(rows, 3, "10 inputs", (), "", "a network of ReLUs")
    assert "does not show that there is none; it looks like a network of ReLUs" in first
    assert not any("give away nothing" in said for said in rest)
    document = document_rows(rows)
    assert exceeds(document, "weights") is None
    audit = Audit(
        None, ledger=Oracle(NETWORK, 5).ledger(), dim_in=5, dim_out=3, facts={}, rows=rows
    )
    assert (audit.severity, audit.subject()[0]) == ("unknown", "undecided")
    said = verdict("audit", {"status": "finished", **audit.to_dict()})
    assert said.tone == "warn"
    assert said.words.startswith("unknown: the attack ended without a network")


def test_a_copy_that_is_nearly_the_function_is_grave():
    def audited(share, **more):
        row = made("none", "nothing", undecided=True, fidelity=share, **more)
        cut = made("4 digits", "nothing", cut=True, undecided=True)
        rows = (replace(row, queries=50_056), cut)
        ledger = Oracle(NETWORK, 5).ledger()
        return Audit(None, ledger=ledger, dim_in=5, dim_out=3, facts={}, rows=rows)

    near = audited(0.975)
    assert near.severity == "high"
    words = verdict("audit", {"status": "finished", **near.to_dict()}).words
    assert words == ("high: a copy that explains 97.5% of the answers' variance for 50,056 queries")
    assert (
        "97.5% of the answers' variance was made, for 50,056 queries"
        in advice(near.rows, 3, "10 inputs")[0]
    )
    # A copy that explains more than it lacks is a loss, though no theorem vouches for it.
    partly = audited(0.85)
    assert (partly.severity, partly.near_copy) == ("moderate", (0.85, 50_056))
    assert partly.to_dict()["atlas"] == ["AML.T0024.002"]
    assert (audited(0.4).severity, audited(0.4).to_dict()["owasp"]) == ("unknown", [])
    # The queries are those of the row whose copy it is.
    other = audited(0.975, at_least={"fidelity": "4 digits"})
    assert other.near_copy == (0.975, 100)


def test_answers_that_are_all_noise_give_nothing_away():
    found = revelu.audit(zoo.random_answers([5, 3], seed=1), dim_in=5, budget=MOST_QUERIES)
    assert (found.severity, found.conclusion) == ("low", "nothing given")
    assert "no defence is needed" in found.advice[0]


# Steps at values of single inputs.


@pytest.mark.parametrize("domain", [None, Domain.like(load_wine().data)], ids=["plain", "mixed"])
def test_votes_lie_at_values_of_single_inputs_and_rounded_networks_do_not(domain):
    X, y = load_wine(return_X_y=True)
    forest = ExtraTreesClassifier(100, random_state=0).fit(X, y)
    votes = Oracle(forest.predict_proba, 13, domain=Domain.like(X))
    seen = Steps().look(votes, Grid(10, places=2), np.random.default_rng(1), votes=True)
    assert "single inputs" in seen.along
    network = zoo.random_network([13, 8, 2], seed=2)
    scale = (1.0, 0.0) if domain is None else (X.std(axis=0), X.mean(axis=0))

    def rounded(Z):
        return np.round(network((Z - scale[1]) / scale[0]), 1)

    for seed in range(3):
        oracle = Oracle(rounded, 13, domain=domain)
        grid = measure_noise(oracle, seed).numbers.grid
        assert not any(Steps().look(oracle, grid, np.random.default_rng(seed), votes=True))
