"""Endpoints that fail: the right answer or a clear stop, and never a wrong network."""

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_serving import JsonServer
from typer.testing import CliRunner

import revelu
from revelu.adapters.endpoints.answers import AnswerError, Answers
from revelu.adapters.endpoints.opening import open_endpoint
from revelu.adapters.endpoints.template import Template
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.errors import InputError, TargetError
from serving import running

NETWORK = revelu.zoo.random_network([6, 5, 2], seed=1)
X = np.random.default_rng(0).standard_normal((40, 6))
ROWS, ROW = '{"features": $rows}', '{"features": $row}'

PASSING = ["reset", "status 429", "status 500", "status 503", "cut", "truncated", "html 503"]
# What may pass once the endpoint has answered well before.
LATER = [
    "status 400",
    "status 422",
    "html 200",
    'json {"error": "overloaded"}',
    'json {"prediction": []}',
    "json null",
]


def is_one_line(error):
    text = str(error)
    assert "\n" not in text
    assert len(text) < 700


@pytest.fixture
def server():
    with running(JsonServer(NETWORK)) as one:
        yield one


@pytest.mark.parametrize("request_", [ROWS, ROW])
@pytest.mark.parametrize("fault", [*PASSING, *LATER])
def test_passing_faults_are_survived(server, request_, fault):
    target = open_endpoint(revelu.Endpoint(server.url, request_), 6)
    server.script = [fault] if fault in PASSING else [None, fault]
    server.script += [None, fault, fault]
    for _ in range(2):
        np.testing.assert_allclose(target(X), NETWORK(X), rtol=0, atol=1e-14)
    assert server.script == []


def test_slow_answers_are_asked_for_again(server):
    target = open_endpoint(revelu.Endpoint(server.url, ROWS, timeout=1.0), 6)
    server.script = ["drip", None, "drip"]
    np.testing.assert_allclose(target(X), NETWORK(X), rtol=0, atol=1e-14)


@pytest.mark.parametrize("request_", [ROWS, ROW])
def test_extraction_survives_a_bad_connection(server, tmp_path, request_):
    server.script = [None] + [f for fault in (*PASSING, *LATER) for f in (fault, None)]
    endpoint = revelu.Endpoint(server.url, request_, dim_in=6)
    with (
        ThreadPoolExecutor(3) as pool,
        revelu.open_oracle(endpoint, executor=pool, journal=tmp_path / "j", batch=64) as oracle,
    ):
        found = revelu.extract(oracle, seed=2, checks=300)
    assert found.status is revelu.Status.RECOVERED
    assert revelu.align(found.network, NETWORK).max_parameter_error < 1e-8


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("reset", "the connection failed"),
        ("status 429", "answers 429: not now"),
        ("status 500", "answers 500: not now"),
        ("status 422", "answers 422: not now"),
        ("status 401", "authorisation is needed"),
        ("html 200", "answers HTML, not JSON: 502 Bad Gateway"),
        ("html 502", "answers 502: 502 Bad Gateway"),
        ("truncated", "answers what is no JSON"),
        ('json {"detail": "no such model"}', "an error: .no such model"),
        ('json {"scores": [1, 2]}', "answers scores after prediction"),
        ('json {"prediction": [[NaN, 1]]}', "rows to|answers nan in one of 2 outputs"),
        ('json {"prediction": "setosa"}', "rows to|class names after numbers"),
        ('json {"prediction": [[1, 2, 3]]}', "rows to|3 outputs after 2"),
    ],
)
@pytest.mark.parametrize("request_", [ROWS, ROW])
def test_lasting_faults_midway_end_the_run(server, tmp_path, request_, fault, words):
    endpoint = revelu.Endpoint(server.url, request_, dim_in=6, retry_for=1)
    server.script = [None] * 4 + [fault] * 60
    options = {"journal": tmp_path / "run.db", "batch": 16}
    with revelu.open_oracle(endpoint, **options) as oracle:
        with pytest.raises(TargetError, match=words) as caught:
            revelu.extract(oracle, seed=2, checks=100)
        assert "\n" not in str(caught.value)
        # What is not answered may be outside of limits, which a few rows more would show.
        assert 60 - len(server.script) <= (20 if {*fault.split()} & {"422", "[[NaN,"} else 6)
    server.script = []
    with revelu.open_oracle(endpoint, **options) as oracle:  # and goes on where it stopped
        assert revelu.extract(oracle, seed=2, checks=100).status is revelu.Status.RECOVERED


@pytest.mark.parametrize("change", ["scale", "columns", "rows"])
def test_answers_that_change_their_meaning_are_no_network(server, change):
    """The same form, other numbers: fresh answers or those asked again disagree."""
    changes = {
        "scale": lambda Y: Y * 1.5,
        "columns": lambda Y: Y[:, ::-1],
        "rows": lambda Y: Y[::-1],
    }

    def write(Y):
        late = server.n_rows > 600
        return {"prediction": (changes[change](Y) if late else Y).tolist()}

    server.write = write
    status = None
    with contextlib.suppress(TargetError):  # "has changed"
        status = revelu.extract(revelu.Endpoint(server.url, ROWS, dim_in=6), seed=2).status
    assert status is not revelu.Status.RECOVERED


def test_exit_code_is_that_of_a_target(server):
    server.script = [None] * 3 + ["html 200"] * 9
    arguments = ["extract", server.url, "--request", ROWS, "--dim-in", "6"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == ExitCode.TARGET
    error, account = done.stderr.splitlines()
    assert "(after 64 answered queries" in error
    assert account.startswith("revelu: asked until then: 74 in 3 rounds (64 to measure the noise")


# -- whatever arrives --------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["1", "-2.5e3", "nan", "inf", "setosa", "0,5", " 7 "]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["prediction", "y", "0", "1"]), inner, max_size=3),
    ),
    max_leaves=12,
)
PATHS = st.sampled_from([None, "$", "$.prediction", "$.prediction[*]", "$..y", "$[0]", "$[?@>1]"])


@pytest.mark.slow
@settings(max_examples=1000)
@given(VALUES, PATHS, st.integers(1, 3))
def test_any_answer_is_rows_of_numbers_or_an_error_of_one_line(value, path, n):
    content = json.dumps(value).encode()
    try:
        Y = Answers(path, one_by_one=n == 1).read(content, n)
    except AnswerError as error:
        is_one_line(error)
    else:
        assert Y.dtype in (np.float64, object)  # texts and truth values are no numbers yet
        assert Y.ndim == 2
        assert len(Y) == n
        assert Y.shape[1] > 0


@settings(max_examples=500)
@given(st.binary(max_size=40), PATHS)
def test_any_bytes_are_read_or_refused(content, path):
    try:
        Answers(path).read(content, 1)
    except AnswerError as error:
        is_one_line(error)


GOOD = {"prediction": NETWORK(X[:3]).tolist(), "model": "a"}


@settings(max_examples=1000)
@given(st.data())
def test_mutated_answers_are_the_right_numbers_or_none(data):
    """A byte deleted, doubled or replaced: the same numbers, others of the same form, or an error.

    Numbers that change are for the noise floor and the certificate; rows and columns are not.
    """
    content = bytearray(json.dumps(GOOD).encode())
    place = data.draw(st.integers(0, len(content) - 1))
    change = data.draw(st.sampled_from(["delete", "double", "replace"]))
    if change == "delete":
        del content[place]
    elif change == "double":
        content.insert(place, content[place])
    else:
        content[place] = data.draw(st.integers(32, 126))
    try:
        Y = Answers("$.prediction").read(bytes(content), 3)
    except AnswerError:
        return
    assert Y.shape == (3, 2)
    # One place is one number.
    assert (NETWORK(X[:3]) != Y).sum() <= 1


TEMPLATES = st.one_of(
    st.text(max_size=30),
    st.text(alphabet='{}[]":,$rowsx01 \\', max_size=30),
    st.lists(
        st.sampled_from(['{"a": ', "$rows", "$row", "$row[0]", '"$row"', "}", ", ", '"b": 1', "["]),
        max_size=8,
    ).map("".join),
)


@pytest.mark.slow
@settings(max_examples=2000)
@given(TEMPLATES, st.sampled_from(["POST", "GET"]))
def test_any_template_is_filled_as_json_or_refused(text, method):
    try:
        template = Template(text, method)
    except InputError as error:
        is_one_line(error)
        return
    d = template.n_columns or max(6, template.n_least)
    rows = np.resize(X, (1 if template.one_by_one else 2, d))
    query, content = template.filled(rows)
    if method == "POST":
        assert query == ""
        json.loads(content)
    else:
        assert content == b""
        assert query.isascii()


@settings(max_examples=100)
@given(st.text(max_size=12))
def test_any_path_is_one_or_refused(path):
    try:
        Answers(path)
    except InputError as error:
        is_one_line(error)


def test_an_answer_that_does_not_come_in_time_ends_the_run(server):
    # Without an eye on the time it is waited for, and asked for again.
    endpoint = revelu.Endpoint(server.url, ROWS)
    oracle = revelu.open_oracle(endpoint, dim_in=6, max_seconds=1.0)
    oracle(X[:1])
    server.script = ["drip"] * 40
    with pytest.raises(revelu.LimitReachedError, match="seconds allowed are over"):
        oracle(X)
    assert server.script


def test_a_server_that_fails_as_time_ends_is_told_beside_the_time(server):
    endpoint = revelu.Endpoint(server.url, ROWS)
    oracle = revelu.open_oracle(endpoint, dim_in=6, max_seconds=1.0)
    oracle(X[:1])
    server.script = ["drip"] * 40
    with pytest.raises(revelu.LimitReachedError) as caught:
        oracle(X)
    assert caught.value.heard.startswith(f"{server.url}: ")
    assert "seconds allowed" not in caught.value.heard


def test_a_pace_that_allows_no_request_in_time_ends_the_run(server):
    endpoint = revelu.Endpoint(server.url, ROWS)
    oracle = revelu.open_oracle(endpoint, dim_in=6, max_seconds=5.0, rate="1/min")
    oracle(X[:1])
    with pytest.raises(revelu.LimitReachedError, match="seconds allowed are over"):
        oracle(X[1:2])
