"""Any address that answers JSON: what is asked, what is understood, what is refused at once."""

import html
import json
import pickle
import shutil
import ssl
import subprocess
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import httpx
import numpy as np
import pytest
from json_serving import JsonServer
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.adapters.endpoints.opening import open_endpoint
from revelu.adapters.endpoints.places import places_of_numbers
from revelu.adapters.endpoints.presets import preset_of
from revelu.adapters.endpoints.template import Template
from revelu.adapters.http_client import Client, Reply
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.errors import FormatError, InputError, TargetError
from revelu.oracle.journal import Journal
from serving import running, serving

NETWORK = revelu.zoo.random_network([6, 5, 2], seed=1)
X = np.random.default_rng(0).standard_normal((40, 6))
ROWS, ROW = '{"features": $rows}', '{"features": $row}'


@pytest.fixture
def server():
    with running(JsonServer(NETWORK)) as one:
        yield one


def alike(Y, known):
    """Whether answers are those of a network, whose last bits depend on the batch."""
    np.testing.assert_allclose(Y, known, rtol=0, atol=1e-14)


def opened(server, request=ROWS, dim_in=6, **options):
    return open_endpoint(revelu.Endpoint(server.url, request, **options), dim_in)


# -- what is asked -----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("request_", [ROWS, ROW])
@pytest.mark.parametrize("answer", [None, "$.prediction", "$.prediction[*]"])
def test_answers_are_the_models(server, method, request_, answer):
    target = opened(server, request_, method=method, answer=answer)
    alike(target(X), NETWORK(X))
    alike(target(X), NETWORK(X))
    assert server.n_rows == 2 * len(X)
    # The first request has one row.
    assert server.n_requests == (2 * len(X) if request_ == ROW else 3)


def test_numbers_may_have_names():
    names = "abcdef"
    text = json.dumps({name: f"@{i}" for i, name in enumerate(names)})
    for i in range(6):
        text = text.replace(f'"@{i}"', f"$row[{i}]")
    with running(JsonServer(NETWORK, read=lambda asked: [asked[n] for n in names])) as server:
        target = open_endpoint(revelu.Endpoint(server.url, text))
        assert target.dim_in == 6
        alike(target(X), NETWORK(X))


def test_row_may_be_text_within_other_text():
    def read(asked):
        return [[float(x) for x in asked["csv"].removeprefix("x: ").split(",")]]

    with running(JsonServer(NETWORK, read=read)) as server:
        target = opened(server, '{"csv": "x: $row", "price": "$ 5, $other"}')
        alike(target(X), NETWORK(X))
        assert server.asked[0]["price"] == "$ 5, $other"


def test_extraction_asks_what_the_protocol_does(server):
    with serving(NETWORK) as v2:
        known = revelu.extract(v2.url, seed=2)
    endpoint = revelu.Endpoint(server.url, ROWS, "$.prediction", dim_in=6)
    found = revelu.extract(endpoint, seed=2)
    assert found.status is revelu.Status.RECOVERED
    assert found.network == known.network
    assert found.ledger == known.ledger
    assert server.n_rows == found.ledger.n_queries


def test_threads_and_processes_share_an_endpoint(server):
    target = pickle.loads(pickle.dumps(opened(server)))  # noqa: S301
    with ThreadPoolExecutor(4) as pool:
        for Y in pool.map(target, [X] * 12):
            np.testing.assert_array_equal(Y, NETWORK(X))


def test_one_row_a_request_is_cut_into_small_batches(server):
    endpoint = revelu.Endpoint(server.url, ROW, dim_in=6)
    assert revelu.open_oracle(endpoint).batch_rows == 32
    assert revelu.open_oracle(endpoint, batch=5).batch_rows == 5
    assert revelu.open_oracle(revelu.Endpoint(server.url, ROWS, dim_in=6, batch=7)).batch_rows == 7


def test_domain_says_how_many_inputs_there_are(server):
    endpoint = revelu.Endpoint(server.url, ROWS)
    assert revelu.open_oracle(endpoint, domain=revelu.Domain.like(X)).dim_in == 6


def test_journal_answers_what_was_asked(server, tmp_path):
    endpoint = revelu.Endpoint(server.url, ROWS, dim_in=6)
    options = {"journal": tmp_path / "run.db", "batch": 64}
    with revelu.open_oracle(endpoint, budget=100, **options) as oracle:
        assert revelu.extract(oracle, seed=2).status is revelu.Status.BUDGET_EXHAUSTED
    with revelu.open_oracle(endpoint, **options) as oracle:
        found = revelu.extract(oracle, seed=2)
    assert found.status is revelu.Status.RECOVERED
    assert server.n_rows <= found.ledger.n_queries + 64
    n = server.n_rows
    with revelu.open_oracle(endpoint, **options) as oracle:
        again = revelu.extract(oracle, seed=2)
    assert again.network == found.network
    assert server.n_rows == n
    other = revelu.Endpoint(server.url, '{"features": $rows, "model": "b"}', dim_in=6)
    with pytest.raises(InputError, match="request"):
        revelu.open_oracle(other, **options)


# -- what is understood ------------------------------------------------------------------


def as_objects(Y):
    return {"rows": [{"scores": {"10": y[1], "9": y[0]}} for y in Y.tolist()]}


@pytest.mark.parametrize(
    ("write", "answer"),
    [
        (lambda Y: Y.tolist(), None),
        (lambda Y: {"a": {"b": Y.tolist()}, "c": 1}, "$.a.b"),
        (lambda Y: {"a": [{"y": y} for y in Y.tolist()], "took": 3}, "$.a[*].y"),
        (lambda Y: [[[y]] for y in Y.tolist()], "$"),
        (lambda Y: {"y": [[f"{v!r}" for v in y] for y in Y.tolist()]}, "$.y"),
        (as_objects, "$.rows[*].scores"),
        (as_objects, None),
    ],
    ids=["bare", "deep", "objects", "nested", "text", "by class", "the only member"],
)
@pytest.mark.parametrize("request_", [ROWS, ROW])
def test_answers_of_many_forms_are_the_same_numbers(write, answer, request_):
    with running(JsonServer(NETWORK, write=write)) as server:
        alike(opened(server, request_, answer=answer)(X), NETWORK(X))


def test_single_outputs_may_be_bare_numbers():
    network = revelu.zoo.random_network([6, 3, 1], seed=1)
    with running(JsonServer(network, write=lambda Y: {"y": Y[0, 0]})) as server:
        alike(opened(server, ROW)(X), network(X))


def named(Y):
    return {"label": [f"class {int(i)}" for i in Y.argmax(axis=1)]}


def test_class_names_are_answered_as_such():
    with running(JsonServer(NETWORK, write=named)) as server:
        known = [f"class {i}" for i in NETWORK(X).argmax(axis=1)]
        assert opened(server)(X).ravel().tolist() == known
        assert opened(server, classes=("class 1", "class 0"))(X).ravel().tolist() == known
        with pytest.raises(TargetError, match='"class 1", which is none of the classes class 0'):
            opened(server, classes=("class 0",))(X)


@pytest.mark.parametrize(
    "write",
    [
        lambda Y: {"text": ["The answer is 42."] * len(Y)},
        lambda Y: {"id": ["9f8a"] * len(Y)},
    ],
    ids=["prose", "an identifier"],
)
def test_text_is_no_network_however_constant_it_is(tmp_path, write):
    with running(JsonServer(NETWORK, write=write)) as server:
        endpoint = revelu.Endpoint(server.url, ROWS, dim_in=6)
        for most in (200, 5000):  # a journal does not tell that its answers were text
            with revelu.open_oracle(endpoint, journal=tmp_path / "run.db", budget=most) as oracle:
                found = revelu.extract(oracle)
            assert server.n_rows <= most
            assert found.network is None
            assert found.status is revelu.Status.NOT_IN_CLASS
            assert "the answers are text" in found.evidence[0]


def test_numbers_that_never_change_are_said_to():
    with running(JsonServer(NETWORK, write=lambda Y: {"y": ["3.25"] * len(Y)})) as server:
        found = revelu.extract(revelu.Endpoint(server.url, ROWS, dim_in=6))
    assert found.status is revelu.Status.RECOVERED
    assert "every answer is the same" in found.warnings[0]
    affine = revelu.extract(lambda X: X @ np.ones(6) + 1.0, dim_in=6)
    assert not affine.warnings


@pytest.mark.slow
@pytest.mark.parametrize("labels", [True, False])
def test_span_comes_from_class_names(labels):
    network = revelu.zoo.random_network([5, 2, 3], seed=4)
    with running(JsonServer(network, write=named)) as server:
        endpoint = revelu.Endpoint(server.url, ROWS, dim_in=5)
        found = revelu.recover_span(endpoint, labels=labels, seed=1)
    assert found.status is revelu.Status.RECOVERED
    assert found.span.rank == 2
    rows = network.weights[0]
    outside = rows - rows @ found.span.basis.T @ found.span.basis
    assert np.abs(outside).max() < 1e-6


def test_one_hot_answers_are_numbers():
    write = lambda Y: {"y": np.eye(2)[Y.argmax(axis=1)].astype(int).tolist()}  # noqa: E731
    with running(JsonServer(NETWORK, write=write)) as server:
        np.testing.assert_array_equal(opened(server)(X).argmax(axis=1), NETWORK(X).argmax(axis=1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"prediction": [null]}', "answers null in row 0, where a number belongs"),
        ('{"prediction": [[1, "a"]]}', "numbers and text together"),
        ('{"prediction": []}', r"rows of \[0\] numbers"),
        ('{"prediction": [[1, 2], [3, 4]]}', "answers 2 rows to 1"),
        ('{"prediction": [[]]}', r"rows of \[0\] numbers"),
        (
            '{"prediction": [[1, 2]], "took": 3}',
            r"several things, .* such as answer '\$.prediction'",
        ),
        (
            '{"model": "m", "took": 1.5, "result": [{"label": 1, "scores": {"a": 0.2, "b": 0.8}}]}',
            r"several things, .* such as answer '\$\.result\[\*\]\.scores'",
        ),
        ('{"model": "m", "state": "ok"}', r"such as answer '\$.model'"),
        ('{"prediction": [[NaN, 1]]}', "answered nan in output 0"),
        ('{"prediction": [["inf", 1]]}', "answered inf in output 0"),
        (f'{{"prediction": [[1{"0" * 400}]]}}', "too large"),
        ("[" * 100_000 + "]" * 100_000, "no JSON|nested too deeply"),
        ('{"detail": "no model"}', 'answers an error: "no model"'),
        ("", "answers what is no JSON: nothing"),
        ("<html><title>Sign in</title>", "answers HTML, not JSON: Sign in"),
        ("pong", "answers what is no JSON: pong"),
    ],
)
def test_what_is_no_answer_is_named_at_the_first_row(server, text, words):
    server.script = [f"json {text}"] * 20
    oracle = revelu.open_oracle(revelu.Endpoint(server.url, ROWS, dim_in=6))
    with pytest.raises(TargetError, match=words) as caught:
        oracle(X[:2])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700
    assert server.n_rows == 0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("$.score", r"has nothing at \$.score; it answers \{\"prediction\": \[\[-?\d"),
        ("$.prediction[*][*]", r"answers 2 rows at \$.prediction\[\*\]\[\*\] to 1"),
    ],
)
def test_paths_to_something_else_are_named(server, answer, words):
    with pytest.raises(TargetError, match=words):
        opened(server, answer=answer)(X)
    assert server.n_rows == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("result.scores", "}; a path begins with $; numbers are at $.result[*].scores, $.took"),
        ("$.result[*].score", "}; did you mean scores for score?; numbers are at $.result[*].sc"),
        ("$.prediction", "}; numbers are at $.result[*].scores, $.took"),
    ],
)
def test_paths_that_lead_nowhere_say_where_numbers_are(answer, words):
    def write(Y):
        rows = [{"scores": {"a": y[0], "b": y[1]}, "said": "yes"} for y in Y.tolist()]
        return {"model": "m", "result": rows, "took": 0.3}

    with running(JsonServer(NETWORK, write=write)) as server:
        with pytest.raises(TargetError) as caught:
            opened(server, answer=answer)(X)
        assert words in str(caught.value)
        # What is proposed is what was meant.
        named = opened(server, answer="$.result[*].scores")
        alike(named(X), NETWORK(X))


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        ({"predictions": [[1.5], [2.0]], "id": 3}, ["$.predictions", "$.id"]),
        ({"label": [1, 0], "p": [[0.2, 0.8], [0.1, 0.9]]}, ["$.p", "$.label"]),
        ({"odd name": 1.5, "took": 0.2}, ["$['odd name']", "$.took"]),
        ({"data": {"out": [{"v": 1.5}]}, "took": 1}, ["$.data.out", "$.took"]),
        ({"model": "m", "is_on": True, "none": None, "empty": []}, []),
    ],
)
def test_places_of_numbers_are_found_the_likeliest_first(document, paths):
    assert places_of_numbers(document) == paths


def checked_fields(n):
    """What FastAPI answers to fields that do not fit."""
    fields = [{"loc": ["body", "rows", i], "msg": "Input should be a list"} for i in range(n)]
    return {"detail": fields}


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("status 500", "answers 500: not now; it was given rows of 6 numbers: does the model take"),
        ("status 400", "answers 400: not now; it was given rows of 6 numbers: does the model take"),
        ("status 404", r"answers 404: not now; is the path of the address right\?$"),
        ("status 503", "answers 503: not now$"),
        ("status 422", "answers 422: not now$"),
        (None, r"answers 422: body\.rows\.0: Input should be a list \(and 12 more\)$"),
    ],
)
def test_first_requests_that_fail_say_what_to_look_at(server, monkeypatch, fault, words):
    if fault is None:
        body = json.dumps(checked_fields(13)).encode()
        monkeypatch.setattr(Client, "request", lambda *_, **__: Reply(422, {}, body))
    server.script = [fault] * 6
    with pytest.raises(TargetError, match=words):
        opened(server)(X)


def test_later_requests_that_fail_do_not_doubt_what_did(server):
    target = opened(server)
    target(X)
    server.script = ["status 400"] * 3
    with pytest.raises(TargetError, match=r"answers 400: not now$"):
        target(X)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:1/predict", "; is the server running, and the port right?"),
        ("http://host.invalid/predict", "; is the name of the host right?"),
    ],
)
def test_addresses_without_a_server_say_what_to_look_at(monkeypatch, url, words):
    monkeypatch.setenv("NO_PROXY", "*")
    endpoint = revelu.Endpoint(url, ROWS)
    with pytest.raises(TargetError) as caught:
        open_endpoint(endpoint, 6)(X)
    assert "no connection" in str(caught.value)
    assert str(caught.value).endswith(words)


def test_path_may_lead_to_one_output(server):
    alike(opened(server, answer="$.prediction[*][0]")(X), NETWORK(X)[:, :1])


# -- presets -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v2/models/m", "v2"),
        ("/v2/models/m/versions/3", "v2"),
        ("/v1/models/m:predict", "tfserving"),
        ("/v1/models/m/versions/2:predict", "tfserving"),
        ("/invocations", "mlflow"),
        ("/serving-endpoints/m/invocations", "mlflow"),
        ("/endpoints/m/invocations", None),
        ("/v1/projects/p/locations/l/endpoints/5:predict", "vertex"),
        ("/predictions/m", "torchserve"),
        ("/predictions/m/2.0", "torchserve"),
        ("/predict", None),
        ("/v1/models/m", None),
    ],
)
def test_addresses_tell_the_preset(path, name):
    assert preset_of(f"https://host.invalid{path}") == name


@pytest.mark.parametrize(
    ("preset", "path", "key"),
    [
        ("tfserving", "/v1/models/m:predict", "instances"),
        ("kserve-v1", "/v1/models/m:predict", "instances"),
        ("vertex", "/v1/projects/p/locations/l/endpoints/5:predict", "instances"),
        ("torchserve", "/predictions/m", "instances"),
        ("mlflow", "/invocations", "inputs"),
        ("bentoml", "/predict", "input_data"),
    ],
)
def test_presets_ask_as_such_servers_do(preset, path, key):
    write = lambda Y: Y.tolist() if preset == "bentoml" else {"predictions": Y.tolist()}  # noqa: E731
    with running(JsonServer(NETWORK, lambda asked: asked[key], write, path=path)) as server:
        target = open_endpoint(revelu.Endpoint(server.url, preset=preset), 6)
        np.testing.assert_array_equal(target(X), NETWORK(X))


def test_our_server_speaks_both_versions():
    with serving(NETWORK) as server:
        base = server.url.split("/v2")[0]
        for path in ("/v1/models/model:predict", "/invocations"):
            found = revelu.extract(f"{base}{path}", seed=2, dim_in=6)
            assert found.status is revelu.Status.RECOVERED
        assert found.network == revelu.extract(server.url, seed=2).network
        for text, words in (
            ('{"rows": $rows}', "instances or as inputs"),
            ('{"inputs": "$row"}', "no rows of numbers"),
            ('{"inputs": [$rows]}', r"not \[n, 6\]"),
        ):
            with pytest.raises(TargetError, match=words):
                open_endpoint(revelu.Endpoint(f"{base}/invocations", text), 6)(X)


def test_preset_v2_takes_headers(monkeypatch):
    monkeypatch.setenv("SOME_KEY", "ff-do-not-tell")
    with serving(NETWORK) as server:
        endpoint = revelu.Endpoint(server.url, headers={"X-Api-Key": "$SOME_KEY"})
        assert endpoint.is_v2
        np.testing.assert_array_equal(open_endpoint(endpoint)(X), NETWORK(X))


# -- what is refused before anything is asked --------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"features": []}', r"no place for rows: write '\{\"features\": \$rows\}'"),
        ('{"features": $inputs}', "a place \\$inputs: there are"),
        ('{"features": "$rows"}', r"\$rows in quotes"),
        ('{"features": $rows[0]}', r"\$rows with a column"),
        ('{"features": $rows, "more": $row}', r"both \$rows and \$row"),
        ('{"features": $rows', "no JSON once rows are in it"),
        ("features=$rows", "no JSON once rows are in it"),
        ('{"a": $row[0], "b": $row[2]}', r"leaves out \$row\[1\]"),
        ("", "no place for rows"),
        ('{"a": $row[99999999999999999999]}', "no JSON"),
    ],
)
def test_templates_that_are_none_are_refused(text, words):
    with pytest.raises(InputError, match=words) as caught:
        Template(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"url": "host/predict"}, "an endpoint is http"),
        ({"url": "https://me:secret@host/predict"}, "REVELU_AUTHORIZATION"),
        ({"url": "https://host/predict?key=secret"}, "parameter key may be secret: name an env"),
        ({"url": "https://host/predict?sig=secret&v=1"}, "parameter sig may be secret"),
        ({"url": "https://host/predict?api-code=secret"}, "parameter api-code may be secret"),
        ({"url": f"https://host/predict?v={'secret01' * 3}"}, "parameter v may be secret"),
        ({"url": "https://host/predict?secret"}, "a parameter of an address is NAME=VALUE"),
        ({"url": "https://host/predict?key=$NOT_SET"}, "variable NOT_SET is not set"),
        ({"url": "https://host/predict?v=$"}, "begins no name"),
        ({"url": "https://host/predict?x=$row"}, "rows go into the request, not into the addr"),
        ({"url": "https://host/predict#secret=1"}, "REVELU_AUTHORIZATION"),
        ({"request": None}, "does not tell how it is asked: give a request"),
        ({"preset": "other"}, "preset must be one of v2, tfserving"),
        ({"method": "PUT"}, "method must be POST or GET"),
        ({"method": "GET", "request": "$rows"}, "a GET takes a JSON object"),
        ({"headers": {"X-Api-Key": "secret"}}, "may be secret: name an environment variable"),
        ({"headers": {"Authorization": "Bearer secret"}}, "may be secret"),
        ({"headers": {"X A": "1"}}, "a header is a name and a text"),
        ({"headers": {"X-A": "1\r\nX-B: 2"}}, "holds what no header can"),
        ({"headers": {"Content-Length": "1"}}, "not yours to set"),
        ({"headers": {"X-A": "$"}}, "begins no name"),
        ({"headers": {"X-A": "$NOT_SET_ANYWHERE"}}, "variable NOT_SET_ANYWHERE is not set"),
        ({"key_env": "NOT_SET_ANYWHERE"}, "variable NOT_SET_ANYWHERE is not set"),
        ({"key_env": "sk-secret"}, "the name of an environment variable, not a key"),
        ({"client_key": "a.pem"}, "give both"),
        ({"classes": "ab"}, "a list of names"),
        ({"timeout": 0}, "timeout must be"),
        ({"preset": "v2", "answer": "$.a"}, "the preset v2 has"),
    ],
)
def test_endpoints_that_are_none_are_refused_untold(fields, words):
    with pytest.raises(InputError, match=words) as caught:
        revelu.Endpoint(**{"url": "https://host.invalid/predict", "request": ROWS, **fields})
    assert "secret@" not in str(caught.value)
    assert "=secret" not in str(caught.value)
    assert "Bearer secret" not in str(caught.value)
    assert "sk-secret" not in str(caught.value)


def test_certificates_that_are_none_are_named(server, tmp_path):
    for name in ("client_cert", "ca_cert"):
        with pytest.raises(InputError, match=f"{name} .*none.pem: No such file"):
            opened(server, **{name: f"{tmp_path}/none.pem"})


def test_size_has_to_be_said_and_to_fit(server):
    with pytest.raises(InputError, match="give dim_in"):
        open_endpoint(revelu.Endpoint(server.url, ROWS))
    with pytest.raises(InputError, match="has 2 inputs, not 3"):
        open_endpoint(revelu.Endpoint(server.url, '{"a": $row[0], "b": $row[1]}'), 3)
    with pytest.raises(InputError, match=r"has \$row\[7\], and there are 3 inputs"):
        open_endpoint(revelu.Endpoint(server.url, '{"a": $row, "b": $row[7]}'), 3)


def test_names_of_tensors_are_for_the_protocol(server):
    with pytest.raises(InputError, match="output_name is for the preset v2"):
        open_endpoint(revelu.Endpoint(server.url, ROWS), 6, output_name="y")


# -- profiles ----------------------------------------------------------------------------

PROFILE = """
url = "{url}"
request = '{{"features": $rows}}'
answer = "$.prediction"
dim_in = 6

[headers]
X-Api-Key = "$SOME_KEY"
"""


def test_profile_has_all_of_it(server, tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "ff-do-not-tell")
    path = tmp_path / "api.toml"
    path.write_text(PROFILE.format(url=server.url))
    assert revelu.extract(path, seed=2).status is revelu.Status.RECOVERED
    assert {headers["X-Api-Key"] for headers in server.headers_seen} == {"ff-do-not-tell"}


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (None, FormatError, "No such file"),
        ("url = ", FormatError, "is no TOML"),
        ('request = "$rows"', InputError, "has no url"),
        ('url = "http://h/p"\npath = 1', InputError, "has path; an endpoint has url, request"),
        ('url = "http://h/p"\nrequest = 1', InputError, "request must be text"),
        ('url = "http://h/p"\nheaders = 1', InputError, "headers must be names"),
        ("url = 1", InputError, "url must be text"),
    ],
)
def test_profiles_that_are_none_are_named(tmp_path, text, error, words):
    path = tmp_path / "api.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(error, match=words) as caught:
        revelu.open_oracle(path)
    assert str(caught.value).startswith(f"{path}: ")


# -- on the command line -----------------------------------------------------------------


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.mark.parametrize(
    "command",
    [
        ["extract"],
        ["span"],
        ["verify", "network.npz"],
        ["diagnose"],
        ["probe"],
        ["audit", "--budget", "400", "--max-seconds", "20"],
        ["obfuscate", "--inputs", "X.npy", "-o", "Y.npy"],
    ],
    ids=lambda command: command[0],
)
def test_every_command_asks_endpoints(server, invoke, tmp_path, monkeypatch, command):
    narrow = revelu.zoo.random_network([6, 2, 2], seed=1)
    narrow.save(tmp_path / "network.npz")
    np.save(tmp_path / "X.npy", X[:2])
    server.target = narrow
    monkeypatch.setenv("SOME_KEY", "ff-do-not-tell")
    done = invoke(
        *command, server.url, "--request", ROWS, "--answer", "$.prediction", "--dim-in", 6,
        "--key-env", "SOME_KEY", "--header", "X-Team: red", "--json",
    )  # fmt: skip
    assert done.exit_code in {0, 3}, done.stderr
    assert one_object(done.stdout)["target"] == server.url
    assert {h["Authorization"] for h in server.headers_seen} == {"Bearer ff-do-not-tell"}
    assert {h["X-Team"] for h in server.headers_seen} == {"red"}


@pytest.mark.slow
def test_file_may_stand_for_the_target(server, invoke, tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "ff-do-not-tell")
    (tmp_path / "api.toml").write_text(PROFILE.format(url="http://127.0.0.1:1/predict"))
    for target in (["--endpoint", "api.toml"], ["api.toml"]):
        done = invoke("extract", *target, "--seed", 2)
        assert done.exit_code == ExitCode.TARGET
        assert "127.0.0.1:1" in done.stderr
    # What is said on the command line stands in place of the file's.
    done = invoke("extract", server.url, "--endpoint", "api.toml", "--seed", 2, "--json")
    assert done.exit_code == 0, done.stderr
    done = invoke("extract", "demo:digits", "--endpoint", "api.toml")
    assert done.exit_code == ExitCode.USAGE
    assert invoke("extract").exit_code == ExitCode.USAGE
    done = invoke("extract", "api.toml", "-o", "api.toml")
    assert done.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ([], 2, "does not tell how it is asked: give a request"),
        (["--request", '{"features": []}'], 2, "no place for rows"),
        (["--request", ROWS, "--answer", "$.["], 2, "is no JSONPath"),
        (["--request", ROWS], 2, "give --dim-in"),
        (["--request", ROWS, "--dim-in", "6", "--answer", "$.score"], 4, "has nothing at $.score"),
        (["--request", ROWS, "--key-env", "NOT_SET"], 2, "variable NOT_SET is not set"),
        (["--request", ROWS, "--key-env", "sk-secret"], 2, "--key-env is the name"),
        (["--request", ROWS, "--header", "sk-secret"], 2, "--header is 'NAME: $VARIABLE'"),
        (["--request", ROWS, "--header", "X-Key: sk-secret"], 2, "may be secret"),
        (["--preset", "other"], 2, "--preset must be one of"),
        (["--preset", "v2"], 2, "a served model is http(s)://HOST/v2/models/NAME"),
        (["--request", ROWS, "--dim-in", "6", "--output-name", "y"], 2, "--output-name is for"),
    ],
)
def test_bad_options_are_one_line_before_the_second_query(server, invoke, options, code, words):
    done = invoke("extract", server.url, *options)
    assert done.exit_code == code, done.stderr
    assert done.stderr.startswith("revelu: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
    assert "sk-secret" not in done.stderr
    assert server.n_rows <= 1


def test_options_of_endpoints_are_refused_elsewhere(invoke):
    for options in (["--request", ROWS], ["--header", "X-A: b"], ["--get"], ["--key-env", "A"]):
        done = invoke("extract", "demo:digits", *options)
        assert done.exit_code == ExitCode.USAGE
        assert f"{options[0]} is for addresses, which demo:digits is not" in done.stderr


def test_html_is_named_before_the_second_query(server, invoke):
    for fault in ("html 200", "html 404"):
        server.script = [fault] * 9
        done = invoke("extract", server.url, "--request", ROWS, "--dim-in", 6)
        assert done.exit_code == ExitCode.TARGET
        assert "502 Bad Gateway" in done.stderr
        assert len(server.script) == 8
        assert done.stderr.count("\n") == 1


def test_parameters_of_addresses_are_sent_and_their_values_not_told(
    server, invoke, tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("SOME_KEY", "ff/do-not-tell")
    caplog.set_level(0)
    url = f"{server.url}?version=nine%20lives&key=$SOME_KEY"
    options = ["--request", ROWS, "--dim-in", 6, "--json", "-vv"]
    told = []
    for command, more in (
        ("extract", ["--journal", "run.db", "--report", "page.html", "-o", "a.npz"]),
        ("probe", []),
        ("extract", ["--answer", "$.none"]),
    ):
        done = invoke(command, url, *options, *more)
        assert done.exit_code == (ExitCode.TARGET if "$.none" in more else 0), done.stderr
        told += [done.stdout, done.stderr]
    assert set(server.paths) == {"/predict?version=nine%20lives&key=ff%2Fdo-not-tell"}
    assert one_object(told[0])["target"] == f"{server.url}?version=...&key=..."
    told += [caplog.text, *(p.read_bytes().decode(errors="replace") for p in tmp_path.iterdir())]
    assert not [text for text in told if "nine" in text or "do-not-tell" in text]
    done = invoke("extract", url.replace("nine", "ten"), *options, "--journal", "run.db")
    assert done.exit_code == ExitCode.USAGE
    assert "parameters" in done.stderr


def test_parameters_go_with_those_of_the_request_and_to_served_models(server):
    server.url += "?version=3"
    alike(opened(server, method="GET")(X), NETWORK(X))
    assert all(path.startswith("/predict?version=3&features=") for path in server.paths)
    with serving(NETWORK) as v2:
        alike(revelu.open_oracle(f"{v2.url}?version=3")(X), NETWORK(X))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_redirect_has_the_parameters_that_it_is_to_be_asked_with(server, method):
    server.url += "?version=nine"
    target = opened(server, method=method)
    row = "features=[[1,2,3,4,5,6]]&" if method == "GET" else ""
    server.script = [f"redirect /there?{row}version=ten"]
    found = target(np.array([[1.0, 2, 3, 4, 5, 6]]))
    alike(found, NETWORK([[1.0, 2, 3, 4, 5, 6]]))
    assert server.paths[-1] == f"/there?{row}version=ten"
    server.script = ["redirect http://elsewhere.invalid/p?version=ten"]
    with pytest.raises(TargetError, match="redirects to another host") as caught:
        target(X)
    assert "ten" not in str(caught.value)
    assert "nine" not in str(caught.value)


# -- what is kept secret -----------------------------------------------------------------


def test_secrets_are_sent_and_never_told(invoke, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("SOME_KEY", "ff-do-not-tell")
    monkeypatch.setenv("OTHER_KEY", "gg-do-not-tell")
    caplog.set_level(0)
    told = []
    with running(JsonServer(NETWORK)) as server:
        options = ["--request", ROWS, "--key-env", "SOME_KEY", "--header", "X-Key: $OTHER_KEY"]
        options += ["--dim-in", 6, "--json", "-vv"]
        for command in ("extract", "probe"):
            server.script = ["reset", "status 503", "truncated"] if command == "extract" else []
            more = ["--report", "page.html"] if command == "extract" else []
            done = invoke(command, server.url, *options, "--journal", f"{command}.db", *more)
            assert done.exit_code == 0, done.stderr
            told += [done.stdout, done.stderr]
        # A server that tells all that it was sent.
        server.write = lambda Y: {"y": Y.tolist(), "seen": server.headers_seen[-1]}
        for command, answer in (("extract", "$.none"), ("probe", "$.y"), ("probe", "$.none")):
            done = invoke(command, server.url, *options, "--answer", answer)
            told += [done.stdout, done.stderr]
        assert {h["Authorization"] for h in server.headers_seen} == {"Bearer ff-do-not-tell"}
        assert {h["X-Key"] for h in server.headers_seen} == {"gg-do-not-tell"}
        endpoint = revelu.Endpoint(
            server.url, ROWS, headers={"X-Key": "$OTHER_KEY"}, key_env="SOME_KEY"
        )
        target = open_endpoint(endpoint, 6)
        told += [caplog.text, repr(endpoint), repr(pickle.dumps(target))]
    told += [path.read_bytes().decode(errors="replace") for path in tmp_path.iterdir()]
    assert "***" in "".join(told)
    assert not [text for text in told if "do-not-tell" in text]


@pytest.mark.parametrize(
    "write",
    [
        lambda key: json.dumps({"bad key": key}),
        lambda key: json.dumps(json.dumps({"bad key": key})),
        lambda key: json.dumps({"bad key": key}).replace("/", "\\/"),
        lambda key: f"bad key {quote(key, safe='')}",
        lambda key: f"<html><title>bad key {html.escape(key)}</title></html>",
    ],
    ids=["JSON", "JSON in JSON", "slashes", "address", "page"],
)
def test_secrets_are_known_as_servers_write_them(server, invoke, monkeypatch, write):
    key = 's3"cr/et+K<ey=='
    monkeypatch.setenv("SOME_KEY", key)
    server.script = [f"json {write(key)}"] * 20
    done = invoke("extract", server.url, "--request", ROWS, "--dim-in", 6, "--key-env", "SOME_KEY")
    assert done.exit_code == ExitCode.TARGET
    assert "***" in done.stderr
    assert "s3" not in done.stderr


def test_names_that_change_are_no_numbers(server):
    server.write = lambda Y: {"y": [{"cat" if y[0] > 0 else "dog": y[0]} for y in Y.tolist()]}
    with pytest.raises(TargetError, match="other names from row to row"):
        opened(server)(X)


def test_secret_of_the_shell_is_refused_untold(server, invoke):
    done = invoke("extract", server.url, "--request", ROWS, "--header", "X-Api-Key: ff-do-not")
    assert done.exit_code == ExitCode.USAGE
    assert "ff-do-not" not in done.stderr
    assert server.n_requests == 0


def test_proxies_of_the_environment_are_used_but_not_for_this_machine(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    np.testing.assert_array_equal(opened(server)(X), NETWORK(X))
    heard = []
    with running(JsonServer(NETWORK)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/predict"))
        elsewhere = revelu.Endpoint("http://host.invalid/predict", ROWS)
        np.testing.assert_array_equal(open_endpoint(elsewhere, 6)(X), NETWORK(X))
        heard += [headers["Host"] for headers in proxy.headers_seen]
    assert set(heard) == {"host.invalid"}


def make_certificates(folder):
    """An authority, a server's certificate for 127.0.0.1 and a client's, by openssl."""

    def run(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    run("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority")
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1")
    for name in ("server", "client"):
        run("req", *key, "-keyout", f"{name}.key", "-out", "request", "-subj", f"/CN={name}")
        run(
            "x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-out", f"{name}.pem", "-extfile", "san",
        )  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificates by openssl")
def test_certificates_are_shown_and_checked(server, tmp_path):
    make_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    context.load_verify_locations(tmp_path / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = server.url.replace("http://", "https://")
    (tmp_path / "api.toml").write_text(
        f'url = "{url}"\nrequest = \'{ROWS}\'\ndim_in = 6\nca_cert = "ca.pem"\n'
        'client_cert = "client.pem"\nclient_key = "client.key"\n'
    )
    alike(revelu.open_oracle(tmp_path / "api.toml")(X), NETWORK(X))
    for ca in (None, f"{tmp_path / 'ca.pem'}"):  # a server that is not known; none is shown
        with pytest.raises(TargetError, match=r"not trusted: .*--ca-cert|connection failed"):
            open_endpoint(revelu.Endpoint(url, ROWS, ca_cert=ca), 6)(X[:1])


# -- what was asked where it fails -------------------------------------------------------


@pytest.mark.parametrize("request_", [ROWS, ROW])
def test_rows_that_no_request_carried_are_not_asked(server, request_):
    server.script = ["status 400"]
    oracle = revelu.open_oracle(revelu.Endpoint(server.url, request_, dim_in=6))
    with pytest.raises(TargetError):
        oracle(X[:3])
    # The first request has one row.
    assert (oracle.n_queries, oracle.n_answered) == (1, 0)
    oracle(X[:3])
    assert (oracle.n_queries, oracle.n_answered) == (4, 3)


def out_of_reach(monkeypatch, after):
    """Let the server be gone after so many requests."""
    exchange, left = Client._exchange, iter(range(after))

    def exchanged(*arguments):
        if next(left, None) is None:
            raise httpx.ConnectError("refused") from ConnectionRefusedError()
        return exchange(*arguments)

    monkeypatch.setattr(Client, "_exchange", exchanged)


def test_rows_to_a_server_that_is_gone_are_not_asked(server, monkeypatch):
    oracle = revelu.open_oracle(revelu.Endpoint(server.url, ROWS, dim_in=6, retry_for=0.2))
    oracle(X)
    out_of_reach(monkeypatch, 0)
    with pytest.raises(TargetError, match=r"no connection any more: refused$"):
        oracle(X)
    assert (oracle.n_queries, oracle.n_answered) == (40, 40)


def test_rows_whose_answer_was_lost_were_asked(server):
    oracle = revelu.open_oracle(revelu.Endpoint(server.url, ROWS, dim_in=6))
    oracle(X)
    server.script = ["reset"] * 6
    with pytest.raises(TargetError, match="the connection failed"):
        oracle(X)
    assert (oracle.n_queries, oracle.n_answered) == (80, 40)


def test_a_server_that_is_gone_midway_is_said_to_have_answered(
    server, invoke, tmp_path, monkeypatch
):
    out_of_reach(monkeypatch, 3)
    options = ("--dim-in", "6", "--journal", "run.db", "--report", "page.html")
    options += ("--retry-for", "0.2s")
    result = invoke("extract", server.url, "--request", ROWS, *options)
    assert result.exit_code == ExitCode.TARGET
    n = Journal(tmp_path / "run.db").n_queries
    assert f"(after {n:,} answered queries; the same command goes on from there)" in result.stderr
    assert "what was asked until then is in page.html" in result.stderr
    assert f"{n:,} queries in" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_page_of_nothing_is_said_to_be_missing(server, invoke, tmp_path, monkeypatch):
    out_of_reach(monkeypatch, 0)
    options = ("--dim-in", "6", "--request", ROWS, "--report", "page.html")
    options += ("--retry-for", "0.2s")
    result = invoke("extract", server.url, *options)
    assert "is the server running" in result.stderr
    assert "page.html was not written: nothing was answered" in result.stderr
    assert not (tmp_path / "page.html").exists()
