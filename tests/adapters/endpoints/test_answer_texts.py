"""Texts as answers: numbers with what is around them, and names of classes."""

import numpy as np
import pytest
from json_serving import JsonServer, running
from typer.testing import CliRunner

import revelu
from revelu.adapters.endpoints.cells import CellError, Cells
from revelu.cli.app import app

NETWORK = revelu.zoo.random_network([5, 3, 2], seed=4)
OF_THREE = revelu.zoo.random_network([5, 3, 3], seed=4)
X = np.random.default_rng(0).standard_normal((40, 5))
ROWS, ROW = '{"features": $rows}', '{"features": $row}'


def opened(server, request=ROWS, answer=None, **options):
    return revelu.open_oracle(revelu.Endpoint(server.url, request, answer, dim_in=5, **options))


def recovered(server, request=ROWS, answer=None, **options):
    endpoint = revelu.Endpoint(server.url, request, answer, dim_in=5, **options)
    return revelu.extract(endpoint, seed=1, checks=200)


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


# -- numbers in texts --------------------------------------------------------------------


def german(y):
    return f"{y:,.4f}".translate(str.maketrans(",.", ".,"))


NUMBERS = {
    "a unit": lambda y: f"{y:.4f} EUR",
    "a sign of currency": lambda y: f"-${-y:,.4f}" if y < 0 else f"${y:,.4f}",
    "decimals after a comma": lambda y: f"{y:.4f}".replace(".", ","),
    "German": lambda y: f"{german(1e4 * y)} €",
    "French": lambda y: german(1e4 * y).replace(".", "\u202f").replace("-", "\u2212"),
    "Swiss": lambda y: f"{1e4 * y:,.2f} CHF".replace(",", "\u2019"),
    "Indian": lambda y: f"₹{'-' * (y < 0)}12,34,5{abs(y) % 90 + 10:.4f}",
    "Arabic": lambda y: f"{y:.4f}".translate(str.maketrans("0123456789.", "٠١٢٣٤٥٦٧٨٩٫")),
    "a percentage": lambda y: f"{100 * y:.2f}%",
    "a power of ten": lambda y: f"{y:.8e} V",
    "a sentence": lambda y: f"score: {y:.6f} of 100",
    "thousands of whole ones": lambda y: f"{1e6 * y:,.0f} kWh",
    "an account": lambda y: f"({-1e4 * y:,.2f})" if y < 0 else f"{1e4 * y:,.2f}",
    "an account in a currency": lambda y: f"$({-y:.4f})" if y < 0 else f"${y:.4f}",
}
SCALES = {
    "an account": 1e4,
    "German": 1e4,
    "French": 1e4,
    "Swiss": 1e4,
    "thousands of whole ones": 1e6,
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("request_", [ROWS, ROW])
def test_one_number_in_constant_text_is_a_number(name, request_):
    form = NUMBERS[name]
    with running(JsonServer(NETWORK)) as server:
        server.write = lambda Y: {"y": [[form(y) for y in row] for row in Y.tolist()]}
        found = opened(server, request_)(X)
    if name == "Indian":
        known = np.sign(NETWORK(X)) * (1234500 + np.abs(NETWORK(X)) % 90 + 10)
    else:
        known = NETWORK(X) * SCALES.get(name, 1.0)
    np.testing.assert_allclose(found, known, rtol=1e-6, atol=1.0 if known.max() > 1e5 else 6e-3)


def test_a_network_comes_back_from_amounts():
    with running(JsonServer(NETWORK)) as server:
        server.write = lambda Y: {"y": [[f"{100 * y:,.9f} EUR" for y in row] for row in Y.tolist()]}
        found = recovered(server)
    assert found.status is revelu.Status.RECOVERED
    assert found.network.architecture == (5, 3, 2)


def read(*texts):
    return Cells().numbers([[text] for text in texts]).ravel()


def test_share_is_the_nearest_number():
    np.testing.assert_array_equal(read("83.12%", "5%", "0.07 %"), [0.8312, 0.05, 0.0007])
    np.testing.assert_array_equal(read("12‰", "5‰"), [0.012, 0.005])


def test_sign_of_decimals_shows_itself_among_three():
    np.testing.assert_array_equal(read("1,234", "12,345", "0,8312"), [1.234, 12.345, 0.8312])
    np.testing.assert_array_equal(read("1.234 €", "12.345 €", "1.234,5 €"), [1234, 12345, 1234.5])


def test_whole_thousands_are_told_by_the_lack_of_places():
    texts = [f"{1000 + 37 * i:,} kWh" for i in range(29)]
    assert read(*texts, "7 kWh")[0] == 1000.0
    with pytest.raises(CellError, match="whether thousands or decimals follow the sign ,"):
        read(*texts)
    with pytest.raises(CellError, match="--batch"):
        read(*texts[:9], "7 kWh")


def test_numbers_in_texts_that_are_not_alike_are_no_names():
    texts = [f"{0.37 * i:.2f} {'EUR' if i % 2 else 'USD'}" for i in range(13)]
    with pytest.raises(CellError, match="not alike; if they are names of classes, give --classes"):
        read(*texts)
    bins = [f"{i / 2:.1f} to {i / 2 + 0.5:.1f}" for i in range(5)] * 4
    assert read(*bins).tolist() == bins


def test_parentheses_that_no_number_is_without_are_unclear():
    np.testing.assert_array_equal(read("(1,234.50)", "7.25"), [-1234.5, 7.25])
    np.testing.assert_array_equal(read("(€12.50)", "€7.25", "(€0.10)"), [-12.5, 7.25, -0.1])
    cells = Cells()
    assert cells.numbers([["1,234.50"], ["7.25"]]).ravel().tolist() == [1234.5, 7.25]
    assert cells.numbers([["(7.25)"]]).ravel().tolist() == [-7.25]
    with pytest.raises(CellError, match="whether parentheses make a number less than 0"):
        read("(1,234.50)", "(7.25)")
    # Neither what has a sign of its own nor what follows a word is less than 0.
    np.testing.assert_array_equal(read("(-1.5)", "(2.5)"), [-1.5, 2.5])
    assert read("class (1)", "class (2)").tolist() == ["class (1)", "class (2)"]


COMMAS = {
    "two numbers": ("{0:.4f},{1:.4f}", 2),
    "two numbers, apart": ("{0!r}, {1!r}", 2),
    "decimals": ("{0:.6f}", 1),
}


@pytest.mark.parametrize("kind", ["text/plain", "text/csv"])
@pytest.mark.parametrize("request_", [ROWS, ROW])
@pytest.mark.parametrize("name", COMMAS)
def test_what_commas_are_for_shows_itself(name, request_, kind):
    form, k = COMMAS[name]

    def write(Y):
        lines = [form.format(*row) for row in Y.tolist()]
        return "\n".join(line.replace(".", ",") if k == 1 else line for line in lines).encode()

    with running(JsonServer(NETWORK, write=write, kind=kind)) as server:
        target = revelu.Endpoint(server.url, request_, dim_in=5)
        oracle = revelu.open_oracle(target)
        for rows in (X, X[:3]):
            np.testing.assert_allclose(oracle(rows), NETWORK(rows)[:, :k], atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("text/csv", ["0,8312", "3,4417", "1,9981"]),
        ("text/csv", ["1,234", "12,345", "7,500"]),
        ("text/plain", ["0,1", "1,0", "0,1"]),
    ],
)
def test_commas_that_leave_two_readings_are_named(kind, lines):
    def write(Y):
        return "\n".join(lines[: len(Y)] if len(Y) < 3 else lines).encode()

    with running(JsonServer(NETWORK, write=write, kind=kind)) as server:
        with pytest.raises(revelu.TargetError, match="whether a comma parts numbers or comes"):
            opened(server)(X[:3])
        assert server.n_requests == 2


def test_whole_numbers_in_csv_are_numbers():
    """Of one digit each, as those of a class that is marked by 1; also where others have points."""
    marks = lambda Y: "\n".join("0,1" if y[0] < y[1] else "1,0" for y in Y.tolist()).encode()  # noqa: E731
    with running(JsonServer(NETWORK, write=marks, kind="text/csv")) as server:
        Y = opened(server)(X)
    np.testing.assert_array_equal(Y[:, 1] == 1, NETWORK(X)[:, 0] < NETWORK(X)[:, 1])
    first = lambda Y: b"0,0" if len(Y) == 1 else b"\n".join(b"12,0.5" for _ in Y)  # noqa: E731
    with running(JsonServer(NETWORK, write=first, kind="text/csv")) as server:
        np.testing.assert_array_equal(opened(server)(X[:3]), [[0, 0], [12, 0.5], [12, 0.5]])


def test_numbers_of_another_form_than_the_first_are_refused():
    cells = Cells()
    cells.numbers([["12.5 EUR"], ["1,200.25 EUR"]])
    for text in ("n/a", "12.5 USD", "12,5 EUR"):
        with pytest.raises(CellError, match="where numbers were such as"):
            cells.numbers([[text]])
    names = Cells()
    names.numbers([["cat"], ["dog"]])
    with pytest.raises(CellError, match="numbers after class names"):
        names.numbers([[1.0]])


@pytest.mark.parametrize("texts", [("class 0", "class 1"), ("cat", "dog"), ("9f8a", "77bc")])
def test_names_are_no_numbers(texts):
    assert read(*texts).tolist() == list(texts)


# -- names of classes --------------------------------------------------------------------

FLOWERS = ("setosa", "virginica", "versicolor")


def naming(names):
    return lambda Y: {"label": [names[i] for i in Y.argmax(axis=1)]}


def test_names_are_classes_in_the_order_seen():
    with running(JsonServer(OF_THREE, write=naming(FLOWERS))) as server:
        labels = opened(server)(X).ravel()
        seen = list(dict.fromkeys(FLOWERS[i] for i in OF_THREE(X).argmax(axis=1)))
        assert [seen[int(i)] for i in labels] == [FLOWERS[i] for i in OF_THREE(X).argmax(axis=1)]
        given = opened(server, classes=FLOWERS)(X).ravel()
        np.testing.assert_array_equal(given, OF_THREE(X).argmax(axis=1))


def test_names_keep_their_numbers_in_a_journal(tmp_path):
    def f(x):
        return np.array(["cat", "dog", "eel"])[np.digitize(x[:, 0], [-0.5, 0.5])]

    def asked(rows):
        with revelu.open_oracle(f, dim_in=5, journal=tmp_path / "run.db", batch=8) as oracle:
            Y = oracle(rows).ravel()
            return Y, [oracle.names.name(y) for y in Y]

    first, named = asked(X[:16])
    assert named == f(X[:16]).tolist()
    assert first[0] == 0.0
    again, named = asked(X)  # of which the first ones are in the journal
    np.testing.assert_array_equal(again[:16], first)
    assert named == f(X).tolist()


@pytest.mark.slow
def test_result_has_classes_by_name():
    network = revelu.zoo.random_network([2, 3, 3], seed=1)
    with running(JsonServer(network, write=naming(FLOWERS))) as server:
        endpoint = revelu.Endpoint(server.url, ROWS, dim_in=2)
        found = revelu.extract(endpoint, seed=1)
        assert found.status is revelu.Status.RECOVERED
        assert set(found.class_names) <= set(FLOWERS)
        assert found.to_dict()["classes"] == list(found.class_names)
        fresh = np.random.default_rng(3).standard_normal((500, 2))
        Y = found.network(fresh)
        named = [found.class_names[i] for i in Y.argmax(axis=1)]
        known = [FLOWERS[i] for i in network(fresh).argmax(axis=1)]
        assert np.mean([a == b for a, b in zip(named, known, strict=True)]) > 0.99


@pytest.mark.parametrize("n", [3, 10, 100])
def test_words_are_taken_for_labels(tmp_path, n):
    network = revelu.zoo.random_network([5, 8, n], seed=2)
    words = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(n)]
    with running(JsonServer(network, write=naming(words))) as server:
        endpoint = revelu.Endpoint(server.url, ROWS, dim_in=5)
        for budget in (400, 500):  # a journal knows the names, too
            journal = tmp_path / "run.db"
            with revelu.open_oracle(endpoint, budget=budget, journal=journal) as oracle:
                found = revelu.extract(oracle, seed=1)
                assert found.method == "labels"
                assert {oracle.names.name(i) for i in range(oracle.names.n_seen)} <= set(words)
        assert found.status is revelu.Status.BUDGET_EXHAUSTED


@pytest.mark.parametrize("command", ["extract", "span", "diagnose"])
def test_texts_that_never_repeat_are_no_labels(command, invoke):
    rng = np.random.default_rng(0)
    with running(JsonServer(NETWORK, write=lambda Y: [rng.bytes(6).hex() for _ in Y])) as server:
        done = invoke(command, server.url, "--request", ROWS, "--dim-in", 5)
        assert server.n_rows <= 100
    assert done.exit_code == 4
    assert done.stderr.count("\n") == 2  # the last line says what was asked
    assert "\nrevelu: asked until then: " in done.stderr
    assert "72 different ones among 72" in done.stderr
    assert "--labels" in done.stderr
