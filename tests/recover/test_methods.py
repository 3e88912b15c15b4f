"""The table of methods: what a target is given, and what takes over where one ends."""

import ast
import inspect
import json
import re
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from revelu import Status
from revelu.cli.app import app
from revelu.network import zoo
from revelu.numerics.interruption import spend
from revelu.oracle import Float32, Oracle, Rounded, degrade, measure_noise
from revelu.recover import table
from revelu.recover.method import Candidate, Law, Why
from revelu.tasks.extract.chain import Worth

NAMES = [
    "shared_weights",
    "one_hidden",
    "near_duplicates",
    "fit",
    "two_hidden",
    "leaky",
    "deep",
    "labels",
]
# Where answers are constant at their extreme, caps are looked for as well.
NOWHERE_FLAT = zoo.random_network([4, 3, 1], seed=2)
FORMER = {
    "two_layer": "one_hidden",
    "any_two_layer": "near_duplicates",
    "three_layer": "two_hidden",
    "least_squares": "fit",
}


def selected(target, dim_in=4, method="auto", **options):
    oracle = Oracle(target, dim_in, **options)
    noise = measure_noise(oracle, 1)
    return [m.name for m in revelu.select_methods(noise, oracle, method)]


def test_the_table_has_the_methods_that_users_name():
    assert [method.name for method in revelu.METHODS] == NAMES


def test_what_follows_is_in_the_table_and_never_leads_back():
    order = {name: i for i, name in enumerate(NAMES)}
    for (first, why), then in table.AFTER.items():
        assert order[first] < order[then]
        assert why not in {Why.EXPLAINED, Why.LIMIT}


def documented(kind):
    """Fields that a class describes, in its docstring or in one below them."""
    (node,) = ast.parse(inspect.getsource(kind)).body
    found, before = set(), set()
    for part in node.body[1:]:
        if isinstance(part, ast.AnnAssign):
            before.add(part.target.id)
            continue
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
            found |= before
        before = set()
    return found | set(re.findall(r"\w+", kind.__doc__))


@pytest.mark.parametrize("method", revelu.METHODS, ids=lambda m: m.name)
def test_a_method_is_a_value_whose_tuning_is_documented(method):
    known = documented(type(method))
    for field in fields(method):
        assert field.name in known, field.name
        with pytest.raises(FrozenInstanceError):
            setattr(method, field.name, None)


def test_a_target_is_given_what_its_answers_allow():
    truth = zoo.random_network([4, 3, 1], seed=0)
    assert selected(truth) == ["one_hidden", "near_duplicates", "two_hidden", "leaky", "deep"]
    assert selected(lambda X: truth(X).astype(np.float32)) == ["fit", "two_hidden", "deep"]
    assert selected(truth, box=(-1.0, 1.0)) == ["one_hidden", "two_hidden", "deep"]
    assert selected(truth, method="deep") == ["deep"]
    assert selected(truth, image=(1, 2, 2))[:2] == ["shared_weights", "one_hidden"]


def test_a_constant_that_hides_what_varies_takes_its_digits():
    truth = zoo.random_network([4, 3, 1], seed=0)
    oracle = Oracle(lambda X: truth(X) + 1e12, 4)
    noise = measure_noise(oracle, 1)
    assert noise.law == "float64"
    assert Law.of(noise) is Law.ROUNDED
    assert [m.name for m in revelu.select_methods(noise, oracle)] == ["fit"]


@pytest.mark.parametrize("method", ["best", "", None, 3, ["auto"]])
def test_unknown_methods_are_refused_by_the_names_of_those_there_are(method):
    with pytest.raises(revelu.InputError, match="near_duplicates"):
        revelu.extract(zoo.random_network([4, 3, 1]), method=method)


@pytest.mark.parametrize(("former", "name"), FORMER.items())
def test_former_names_still_work_and_say_the_new_one(former, name):
    truth = zoo.random_network([4, 3, 1], seed=1)
    with pytest.warns(FutureWarning, match=f"{former} is now called {name}"):
        old = revelu.extract(truth, method=former, checks=100)
    new = revelu.extract(truth, method=name, checks=100)
    assert old.method == new.method
    assert old.ledger == new.ledger
    assert old.network == new.network


class _Stubborn:
    """A method that proposes one wrong network for ever."""

    name, hidden, answers, box = "stubborn", (1, 1), frozenset({Law.FLOAT64}), False
    cost, max_starts, most_work, spends = "nothing", 2, np.inf, None

    def __init__(self, why=Why.EXPLAINED, layers=(), worst_error=0.0, network=None):
        self.said = Candidate(
            network or zoo.random_network([4, 3, 1], seed=9),
            why,
            layers=layers,
            worst_error=worst_error,
        )
        self.n_repairs = self.n_starts = 0
        self.shares = []

    def obstacle(self, _oracle, _noise):
        return ""

    def start(self, _oracle, _noise, _rng, _tell, _line=None):
        self.n_starts += 1
        return self

    def propose(self):
        return self.said

    def repair(self, seen):
        assert len(seen.X)
        self.shares.append(seen.share)
        assert not seen.agrees(self.said.network)
        self.n_repairs += 1
        return None if self.n_repairs % 3 == 0 else self.said


def extract_with(monkeypatch, method, truth, **options):
    monkeypatch.setattr(table, "METHODS", (*table.METHODS, method))
    return revelu.extract(truth, method=method.name, checks=300, **options)


def test_no_method_can_say_that_it_is_certified(monkeypatch):
    truth = NOWHERE_FLAT
    method = _Stubborn()
    recovery = extract_with(monkeypatch, method, truth)
    assert recovery.status is Status.UNVERIFIED
    assert recovery.method == "stubborn"
    assert method.n_repairs == 3 * method.max_starts
    assert max(method.shares) < 1.0
    # Eight corners show that inputs are not clipped.
    assert recovery.ledger.by_phase["recover"] == 8


@pytest.mark.parametrize(
    ("degradations", "most_work", "n_starts"),
    [([Float32()], 2e9, 1), ([Float32()], 4e9, 2), ([Rounded(4)], 2e9, 2), ([], 2e9, 2)],
    ids=str,
)
def test_after_long_fits_to_float32_answers_nothing_is_started_afresh(
    monkeypatch, degradations, most_work, n_starts
):
    method = _Stubborn()
    method.answers, method.most_work = frozenset(Law), most_work
    propose = method.propose

    def works():
        spend(3e9)
        return propose()

    monkeypatch.setattr(method, "propose", works)
    target = degrade(NOWHERE_FLAT, *degradations)
    extract_with(monkeypatch, method, target)
    assert method.n_starts == n_starts


@pytest.mark.parametrize(("hidden", "n_starts"), [((1, 1), 2), ((1, None), 1)])
def test_a_deep_network_that_is_off_far_out_only_is_not_sought_anew(monkeypatch, hidden, n_starts):
    truth = zoo.random_network([4, 3, 1], seed=1)
    method = _Stubborn(network=truth)
    method.hidden = hidden

    def target(X):
        return truth(X) + np.maximum(np.abs(X).max(axis=1) - 9.0, 0.0)[:, None]

    recovery = extract_with(monkeypatch, method, target, dim_in=4)
    assert recovery.status is Status.RECOVERED
    assert recovery.certificate.fraction_within == 1.0
    assert recovery.certificate.beyond.distance > 4.0
    assert method.n_starts == n_starts
    assert method.n_repairs == 3 * n_starts


def test_exact_layers_make_a_failed_network_partial(monkeypatch):
    truth = zoo.random_network([4, 3, 1], seed=1)
    layer = truth.weights[0], truth.biases[0]
    recovery = extract_with(monkeypatch, _Stubborn(layers=(layer,)), truth)
    assert recovery.status is Status.PARTIAL
    assert recovery.first_layer is layer


@pytest.mark.parametrize("truth", [NOWHERE_FLAT, zoo.random_network([4, 3, 1], seed=1)])
def test_an_error_that_a_method_saw_is_told_by_a_certificate(monkeypatch, truth):
    for worst in (0.5, 0.0):
        method = _Stubborn(Why.UNRESOLVED, worst_error=worst, network=truth)
        found = extract_with(monkeypatch, method, truth)
        assert found.status is Status.RECOVERED
        assert ("differs by up to 0.5" in found.certificate.statement) is (worst > 0.0)
        assert (found.certificate.beyond is not None) is (worst > 0.0)


@pytest.mark.parametrize("why", [Why.REFUTED, Why.NEARLY])
def test_a_search_that_no_other_start_would_better_is_not_started_afresh(monkeypatch, why):
    truth = NOWHERE_FLAT
    method = _Stubborn(why)
    assert extract_with(monkeypatch, method, truth).status is Status.UNVERIFIED
    assert method.n_repairs == 3


class _Dear(_Stubborn):
    """One that asks for much before."""

    def start(self, oracle, *rest):
        oracle(np.zeros((120_000, oracle.dim_in)))
        return super().start(oracle, *rest)


@pytest.mark.parametrize(("n_rows", "n_starts"), [(3, 1), (300, 1), (600, 2)])
def test_nothing_is_started_afresh_that_has_told_little_for_its_queries(
    monkeypatch, n_rows, n_starts
):
    truth = NOWHERE_FLAT
    method = _Dear(layers=((np.ones((n_rows, 4)), np.ones(n_rows)),))
    recovery = extract_with(monkeypatch, method, truth)
    assert method.n_starts == n_starts
    assert "given up: " in " ".join(recovery.evidence)


@pytest.mark.parametrize("stop", ["", "given up: for want of worth"])
def test_what_was_passed_over_for_its_price_is_not_refuted(monkeypatch, stop):
    truth = zoo.random_network([6, 5, 4, 1], seed=1)
    monkeypatch.setattr(Worth, "is_spent", lambda *_, **__: stop)
    recovery = revelu.extract(truth, seed=1, budget=20_000)
    assert recovery.status is (Status.UNVERIFIED if stop else Status.RECOVERED)
    assert (stop in recovery.evidence) is bool(stop)


def test_hyperplanes_of_many_inputs_are_worth_the_line_that_has_shown_them():
    n_asked, n_seen = 120_000, 16 * 784
    assert not Worth().is_spent(n_asked, [], n_seen=n_seen)
    assert Worth().is_spent(n_asked, [], n_seen=n_seen // 16)
    # Another start begins with none of them.
    assert Worth().is_spent(n_asked, [])


def test_the_command_lists_the_table():
    result = CliRunner().invoke(app, ["methods", "--json"])
    rows = json.loads(result.stdout)["methods"]
    assert [row["name"] for row in rows] == NAMES
    assert rows[6]["hidden"] == [1, None]
    assert rows[1]["box"] is True
    text = CliRunner().invoke(app, ["methods"], env={"COLUMNS": "80"}).stdout
    assert all(name in text for name in NAMES)
    assert "…" not in text
