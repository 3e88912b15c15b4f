"""Columns that take whole numbers alone: found by what is refused, held, and said."""

import json
import re

import numpy as np
import pytest
from json_serving import JsonServer, Refused
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.errors import InputError, TargetError, WholeNumbersError
from revelu.oracle.whole_columns import find_whole
from serving import running

NETWORK = revelu.zoo.random_network([5, 4, 2], seed=1)
WHOLE = (1, 4)
NAMES = "abcde"
OBJECTS = '{"rows": $objects(a, b, c, d, e)}'
ROWS = '{"features": $rows}'
ONE = '{"a": $row[0], "b": $row[1], "c": $row[2], "d": $row[3], "e": $row[4]}'


class WholeServer(JsonServer):
    """Refuses what is no whole number in some columns, as MLflow does or as pydantic does."""

    def __init__(self, whole=WHOLE, *, strict=True):
        super().__init__(NETWORK, self.rows_of)
        self.whole, self.strict, self.n_refused = whole, strict, 0

    def rows_of(self, asked):
        if "features" in asked:
            rows = asked["features"]
        else:
            rows = [[row[name] for name in NAMES] for row in asked.get("rows", [asked])]
        for row in rows:
            for j in self.whole:
                if (type(row[j]) is not int) if self.strict else row[j] != int(row[j]):
                    self.n_refused += 1
                    raise Refused(*self.refusal(j))
        return rows

    def refusal(self, j):
        if self.strict:
            text = f"Incompatible types for column {j}. Can not safely convert float64 to int64."
            return 400, json.dumps({"message": text}).encode()
        complaint = {"loc": ["body", "features", 0, j], "msg": "Input should be a valid integer"}
        return 422, json.dumps({"detail": [complaint]}).encode()


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("request_", [OBJECTS, ROWS, ONE])
def test_columns_of_whole_numbers_are_held(request_, strict):
    with running(WholeServer(strict=strict)) as server:
        endpoint = revelu.Endpoint(server.url, request_, dim_in=5)
        found = revelu.extract(endpoint, checks=100, budget=400)
        # Seven halves are refused, or tell the other: log2(5) levels for each of two columns.
        assert server.n_refused <= 7
    assert found.status is revelu.Status.RECOVERED
    names = ("b", "e") if request_ == OBJECTS else ("1", "4")
    assert found.held == dict.fromkeys(names, 0.0)
    assert f"held: {names[0]} at 0, {names[1]} at 0" in found.certificate.statement
    (said,) = [text for text in found.warnings if "whole numbers" in text]
    assert said.endswith(f"and are held: {names[0]} at 0, {names[1]} at 0")
    X = np.random.default_rng(0).standard_normal((50, 5))
    X[:, WHOLE] = 0.0
    np.testing.assert_allclose(found.network(X), NETWORK(X), atol=1e-8)


def test_verdict_says_where_they_are_held(tmp_path, monkeypatch):
    """At the most frequent value of the data, of columns in the order of the request's names."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    table = rng.standard_normal((300, 5)) * [1.0, 3.0, 1.0, 1.0, 1.0]
    table[:, 1] = rng.choice([3, 7, 40], 300, p=[0.2, 0.5, 0.3])
    table[:, 4] = rng.choice(np.arange(20, 60), 300)
    table[:150, 4] = 33.0
    order = [4, 2, 0, 1, 3]
    header = ",".join(NAMES[j] for j in order)
    np.savetxt("t.csv", table[:, order], delimiter=",", header=header, comments="")
    with running(WholeServer()) as server:
        given = ["extract", server.url, "--request", OBJECTS, "--like", "t.csv", "--checks", 200]
        done = run(*given, "-o", "n.npz")
        assert done.exit_code == 0, done.output
        assert "recovered and certified where b = 7 and e = 33" in done.stdout
        assert "held: b at 7, e at 33" in done.stdout
        account = one_object(run(*given, "--json").stdout)
        checked = run("verify", "n.npz", *given[1:4], "--like", "t.csv", "--checks", 200)
    assert account["held"] == {"b": 7.0, "e": 33.0}
    assert checked.exit_code == 0, checked.output
    X = table[(table[:, 1] == 7) & (table[:, 4] == 33)]
    assert len(X) > 20
    np.testing.assert_allclose(revelu.load("n.npz")(X), NETWORK(X), atol=1e-6)


@pytest.mark.parametrize("more", [["--workers", "3"], ["--box", "-2", "2.5"], ["--batch", "7"]])
def test_they_are_held_however_it_is_asked(more):
    with running(WholeServer()) as server:
        given = ["extract", server.url, "--request", ROWS, "--dim-in", 5, "--checks", 100]
        done = run(*given, "--json", *more)
    assert done.exit_code == 0, done.output
    assert one_object(done.stdout)["held"] == {"1": 0.0, "4": 0.0}


def test_journal_has_what_was_accepted(tmp_path):
    with running(WholeServer()) as server:
        given = ["extract", server.url, "--request", ROWS, "--dim-in", 5, "--checks", 100]
        given += ["--journal", tmp_path / "run.db", "--json"]
        first = one_object(run(*given).stdout)
        n_rows, n_refused = server.n_rows, server.n_refused
        again = one_object(run(*given).stdout)
        # What was refused is asked again, and whether the target is still the same.
        assert server.n_rows == n_rows + 8
        assert server.n_refused == 2 * n_refused
    assert again["status"] == "recovered"
    assert again["queries"] <= first["queries"] + 8


@pytest.mark.parametrize("command", ["probe", "span", "audit", "diagnose"])
def test_other_commands_hold_them(command):
    with running(WholeServer()) as server:
        given = [command, server.url, "--request", ROWS, "--dim-in", 5, "--json"]
        done = run(*given, *(["--max-seconds", 1] if command == "audit" else []))
    assert done.exit_code in {0, 3}, done.output
    assert "held: 1 at 0, 4 at 0" in f"{one_object(done.stdout)}"


def test_labels_are_asked_where_they_are_held():
    with running(WholeServer()) as server:
        given = [
            "span",
            server.url,
            "--request",
            ROWS,
            "--dim-in",
            5,
            "--labels",
            "--checks",
            100,
            "--json",
        ]
        done = run(*given)
    assert done.exit_code == 0, done.output
    assert "are held: 1 at 0, 4 at 0" in f"{one_object(done.stdout)['warnings']}"


def test_inputs_given_have_the_value_that_is_held():
    X = np.random.default_rng(0).standard_normal((6, 5))
    X[:, WHOLE] = [[0.0, 0.0]] * 5 + [[0.0, 2.0]]
    with running(WholeServer()) as server:
        endpoint = revelu.Endpoint(server.url, ROWS, dim_in=5)
        assert revelu.extract(endpoint, inputs=X[:5], checks=100).status.value == "recovered"
        n_before = server.n_rows
        with pytest.raises(InputError, match=r"row 5 .* has 2 in column 4, .* holds at 0"):
            revelu.extract(endpoint, inputs=X, checks=100)
        assert server.n_rows - n_before < 100


@pytest.mark.parametrize(
    ("whole", "words"),
    [(range(5), "no other column is left"), ((0, 1, 2, 3, 4, 5), "answers 400")],
    ids=["all columns", "whatever is asked"],
)
def test_target_of_whole_numbers_alone_is_named(whole, words):
    class Server(WholeServer):
        def rows_of(self, asked):
            rows = super().rows_of({"features": [[*row, 0.5] for row in asked["features"]]})
            return [row[:5] for row in rows]

    with running(Server(whole)) as server:
        endpoint = revelu.Endpoint(server.url, ROWS, dim_in=5)
        with pytest.raises((TargetError, InputError), match=words):
            revelu.extract(endpoint)
        assert server.n_refused + len(server.asked) <= 30


def test_refusal_of_what_is_asked_later_is_no_limit():
    with running(WholeServer()) as server:
        oracle = revelu.open_oracle(revelu.Endpoint(server.url, ROWS, dim_in=5))
        with pytest.raises(WholeNumbersError, match="whole numbers"):
            oracle(np.full((3, 5), 0.5))
        assert server.n_refused == oracle.n_queries == 1


def test_other_refusals_are_told_with_their_option():
    class Server(WholeServer):
        def rows_of(self, asked):
            rows = super().rows_of(asked)
            if np.min(rows) < 0:
                raise Refused(422, b'{"detail": "must be >= 0"}')
            return rows

    with running(Server()) as server:
        given = ["extract", server.url, "--request", ROWS, "--dim-in", 5, "--checks", 100]
        done = run(*given)
        assert done.exit_code == 4
        assert "must be >= 0; it answers only inside limits" in done.stderr
        (box,) = re.findall(r"--box (\S+) (\S+)", done.stderr)
        done = run(*given, "--box", *map(str.rstrip, box))
        assert done.exit_code == 0, done.output
        done = run(*given, "--box", 0.2, 0.8)
        assert done.exit_code == 4
        assert "stays at one" in done.stderr


def test_refusal_of_now_and_then_holds_no_column():
    with running(WholeServer(())) as server:
        endpoint = revelu.Endpoint(server.url, ROWS, dim_in=5)
        server.script = [None] * 4 + ['refuse "an integer is needed"'] + [None]
        found = revelu.extract(endpoint, checks=100)
    assert found.status is revelu.Status.RECOVERED
    assert not found.held


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_columns_are_found_by_halves(n):
    rng = np.random.default_rng(n)
    for m in range(min(n, 4) + 1):
        truth = np.isin(np.arange(n), rng.permutation(n)[:m])
        asked = []

        def accepts(free, truth=truth, asked=asked):
            asked.append(free)
            return not (free & truth).any()

        if m:
            np.testing.assert_array_equal(find_whole(accepts, n), truth)
            assert len(asked) <= 2 * m * np.ceil(np.log2(n))


def test_others_are_drawn_as_before():
    """Also where columns depend on one another, as those of data do."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((500, 4)) @ rng.standard_normal((4, 4)) + 5.0
    domain = revelu.Domain.like(data)
    columns = np.array([False, True, False, False])
    held = domain.holding(columns, np.full(4, 3.0), "said")
    free = ~columns
    both = [d.matrix.T @ d.matrix for d in (domain, held)]
    np.testing.assert_allclose(both[1][np.ix_(free, free)], both[0][np.ix_(free, free)], atol=1e-12)
    assert held.dim_in == 3
    assert held.held == {"1": 3.0}
    Z = rng.standard_normal((5, 3))
    np.testing.assert_allclose(held.to_coordinates(held.to_target(Z)), Z, atol=1e-10)


def test_a_box_without_a_whole_number_is_named():
    with running(WholeServer()) as server:
        given = ["extract", server.url, "--request", ROWS, "--dim-in", 5]
        done = run(*given, "--box", "0.2", "0.8")
    assert done.exit_code == 4
    assert "no whole number lies between 0.2 and 0.8" in done.stderr
