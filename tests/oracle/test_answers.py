"""Answers as services write them: shapes, jobs, limits; each by a server of its own."""

import json
import re

import numpy as np
import pytest
from json_serving import JobServer, JsonServer, Refused, running
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.adapters.endpoints.template import Template
from revelu.cli.app import app
from revelu.errors import InputError, TargetError
from revelu.oracle import softmax
from revelu.oracle.limits import boxes, find_limit, is_answered, limits_said

NETWORK = revelu.zoo.random_network([5, 3, 2], seed=4)
OF_THREE = revelu.zoo.random_network([5, 3, 3], seed=4)
X = np.random.default_rng(0).standard_normal((40, 5))
ROWS, ROW = '{"features": $rows}', '{"features": $row}'


def opened(server, request=ROWS, answer=None, **options):
    return revelu.open_oracle(revelu.Endpoint(server.url, request, answer, dim_in=5, **options))


def recovered(server, request=ROWS, answer=None, **options):
    endpoint = revelu.Endpoint(server.url, request, answer, dim_in=5, **options)
    return revelu.extract(endpoint, seed=1, checks=200)


FLOWERS = ("setosa", "virginica", "versicolor")


def naming(names):
    return lambda Y: {"label": [names[i] for i in Y.argmax(axis=1)]}


# -- shapes ------------------------------------------------------------------------------


def by_score(p):
    listed = [{"label": f"L{i}", "score": v} for i, v in enumerate(p)]
    return sorted(listed, key=lambda item: -item["score"])


def all_by_score(Y):
    return [by_score(p) for p in softmax(Y).tolist()]


def beside(Y):
    rows = [(["a", "b", "c"], p) for p in softmax(Y).tolist()]
    ordered = [sorted(zip(p, names, strict=True), reverse=True) for names, p in rows]
    return [{"labels": [n for _, n in row], "scores": [p for p, _ in row]} for row in ordered]


def numbered(column):
    return {f"{i}": y for i, y in enumerate(column.tolist())}


def as_csv(Y):
    return "\n".join(",".join(map(repr, row)) for row in Y.tolist()).encode()


def with_header(Y):
    return b"low;top\n" + as_csv(Y).replace(b",", b";")


def as_lines(Y):
    return "\n".join(json.dumps({"y": row}) for row in Y.tolist()).encode()


# What is answered, by which Content-Type, at which path, and of which network.
SHAPES = {
    "JSON in a string": (
        lambda Y: {"statusCode": 200, "body": json.dumps({"prediction": Y.tolist()})},
        "",
        None,
    ),
    "a path into a string": (
        lambda Y: {"statusCode": 200, "body": json.dumps({"p": Y.tolist(), "took": 3})},
        "",
        "$.body.p",
    ),
    "columns": (lambda Y: {"low": Y[:, 0].tolist(), "top": Y[:, 1].tolist()}, "", None),
    "columns of a table": (lambda Y: {"a": numbered(Y[:, 0]), "b": numbered(Y[:, 1])}, "", None),
    "CSV": (as_csv, "text/csv; charset=utf-8", None),
    "CSV with a header": (with_header, "text/csv", None),
    "lines of JSON": (as_lines, "application/x-ndjson", None),
    "lines of JSON, by a path": (as_lines, "application/jsonl", "$[*].y"),
    "lines of JSON, sent as JSON": (as_lines, "application/json", None),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_understood(name):
    write, kind, answer = SHAPES[name]
    with running(JsonServer(NETWORK, write=write, kind=kind)) as server:
        found = recovered(server, answer=answer)
        assert server.n_rows == found.ledger.n_queries
    assert found.status is revelu.Status.RECOVERED
    assert found.network.architecture == (5, 3, 2)
    np.testing.assert_allclose(found.network(X), NETWORK(X), atol=1e-8)


@pytest.mark.parametrize(
    ("write", "request_", "answer"),
    [
        (all_by_score, ROWS, None),
        (lambda Y: all_by_score(Y)[0], ROW, None),
        (lambda Y: {"result": all_by_score(Y), "took": 3}, ROWS, "$.result"),
        (beside, ROWS, "$[*].scores"),
        (lambda Y: beside(Y)[0], ROW, "$.scores"),
    ],
    ids=["batches", "a row", "beside other things", "two lists", "two lists of a row"],
)
def test_scores_are_taken_by_label_however_sorted(write, request_, answer):
    with running(JsonServer(OF_THREE, write=write)) as server:
        Y = opened(server, request_, answer)(X)
        np.testing.assert_allclose(Y, softmax(OF_THREE(X)), atol=1e-14)


def test_scores_of_rows_that_have_names_are_those_of_rows():
    def write(Y):
        return {
            "out": [{"rows": [{"id": f"r{i}", "y": y} for i, y in enumerate(Y[:, 0].tolist())]}]
        }

    with running(JsonServer(NETWORK, write=write)) as server:
        Y = opened(server, answer="$.out[0].rows[*].y")(X)
    np.testing.assert_allclose(Y, NETWORK(X)[:, :1], atol=1e-14)


def test_text_beside_answers_is_no_envelope():
    about = '{"version": 3}'
    with running(JsonServer(NETWORK, write=lambda Y: {"y": Y.tolist(), "about": about})) as server:
        with pytest.raises(TargetError, match=r"several things, .* such as answer '\$.y'"):
            opened(server)(X)
        np.testing.assert_allclose(opened(server, answer="$.y")(X), NETWORK(X), atol=1e-14)


def test_error_in_an_envelope_is_one():
    sent = {"statusCode": 500, "body": '{"prediction": [[1, 2]]}'}
    server = JsonServer(NETWORK, write=lambda _: sent)
    with running(server), pytest.raises(TargetError, match="answers an error"):
        opened(server)(X[:1])


def test_plain_text_is_a_number_a_line():
    def write(Y):
        return "\n".join(f"{y:.6f} kWh" for y in Y[:, 0]).encode()

    for request_ in (ROWS, ROW):
        with running(JsonServer(NETWORK, write=write, kind="text/plain")) as server:
            np.testing.assert_allclose(opened(server, request_)(X), NETWORK(X)[:, :1], atol=1e-6)


@pytest.mark.parametrize("answer", ["$[*][*].score", "$[0][*].score", "$[*][0].score"])
def test_sorted_scores_alone_are_refused(answer):
    with running(JsonServer(OF_THREE, write=all_by_score)) as server:
        with pytest.raises(TargetError, match="sorted by size are taken by label"):
            opened(server, answer=answer)(X)
        assert server.n_rows == 1


def test_the_best_label_alone_is_no_number():
    with running(JsonServer(OF_THREE, write=lambda Y: [p[0] for p in all_by_score(Y)])) as server:
        with pytest.raises(TargetError, match=r'numbers and text together: \{"label"'):
            opened(server)(X)
        assert server.n_rows == 1
        labels = opened(server, answer="$[*].label")(X)
    assert len(np.unique(labels)) > 1


def test_labels_that_are_not_all_there_are_refused():
    server = JsonServer(OF_THREE, write=lambda Y: [p[:2] for p in all_by_score(Y)])
    with running(server), pytest.raises(TargetError, match="other names from row to row"):
        opened(server)(X)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("$objects(a, b)", [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 4.0}]),
        ('$objects("a (cm)",b)', [{"a (cm)": 1.0, "b": 2.0}, {"a (cm)": 3.0, "b": 4.0}]),
        (
            '$objects(a, n=40, s="x, y", b)',
            [{"a": x, "n": 40, "s": "x, y", "b": y} for x, y in ((1.0, 2.0), (3.0, 4.0))],
        ),
    ],
)
def test_rows_go_as_objects(text, sent):
    template = Template(f'{{"instances": {text}}}')
    assert template.n_columns == 2
    assert not template.one_by_one
    _, content = template.filled(np.array([[1.0, 2], [3, 4]]))
    assert json.loads(content) == {"instances": sent}


@pytest.mark.parametrize(
    "text", ["$objects()", "$objects(a b=)", "$objects(a, a)", "$objects(n=4)"]
)
def test_objects_that_are_none_are_refused(text):
    with pytest.raises(InputError, match=r"\$objects|no JSON"):
        Template(f'{{"instances": {text}}}')


def test_objects_are_asked_in_batches():
    names = "abcde"
    pick = lambda asked: [[row[name] for name in names] for row in asked["rows"]]  # noqa: E731
    with running(JsonServer(NETWORK, read=pick)) as server:
        endpoint = revelu.Endpoint(server.url, '{"rows": $objects(a, b, c, d, e)}')
        np.testing.assert_allclose(revelu.open_oracle(endpoint)(X), NETWORK(X), atol=1e-14)
        assert server.n_requests == 2


# -- jobs --------------------------------------------------------------------------------


JOB = {"poll": "/jobs/{$.id}", "answer": "$.result.prediction"}


@pytest.mark.parametrize("done", ["$.result", "$.state == done"])
def test_jobs_are_followed_to_their_end(done):
    with running(JobServer(NETWORK)) as server:
        found = recovered(server, done=done, **JOB)
        assert found.status is revelu.Status.RECOVERED
        assert len(server.looks) == 2 * len(server.jobs)
        # A job for the first row, and few a round.
        assert len(server.jobs) <= 2 * found.ledger.n_rounds
        assert opened(server, done=done, **JOB).batch_rows > 10_000
        signed = JOB | {"poll": "/jobs/{$.id}?signed=yes"}
        np.testing.assert_allclose(opened(server, done=done, **signed)(X), NETWORK(X), atol=1e-14)
        assert server.paths[-1].endswith("?signed=yes")


def test_jobs_that_fail_or_are_not_known_are_named():
    with running(JobServer(NETWORK, "failed")) as server:
        with pytest.raises(TargetError, match=r'a job failed: \{"state": "failed"'):
            opened(server, done="$.state == done", **JOB)(X)
        with pytest.raises(TargetError, match=r"a job that is not finished.*\(poll\).*\(done\)"):
            opened(server)(X)
        with pytest.raises(TargetError, match=r"not done within 0.3 s"):
            opened(server, done="$.none", timeout=0.3, **JOB)(X)
        with pytest.raises(TargetError, match="names no job at"):
            opened(server, poll="$.url", done="$.result")(X)
    for fields in ({"poll": "$.id"}, {"poll": "/jobs", "done": "$.a"}, {"poll": "$.", "done": "$"}):
        with pytest.raises(InputError, match="poll"):
            revelu.open_oracle(revelu.Endpoint("http://127.0.0.1:1/p", ROWS, dim_in=5, **fields))


# -- what a server takes, and where it answers -------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        '{"detail": "at most 100 rows"}',
        '{"detail": [{"loc": ["body", "rows"], "msg": "List should have at most 100 items"}]}',
        "Too many instances: the limit is 100",
    ],
)
def test_requests_with_too_many_rows_are_halved(words):
    def limited(Y):
        if len(Y) > 100:
            raise Refused(400, words.encode())
        return Y.tolist()

    rows = np.random.default_rng(1).standard_normal((300, 5))
    with running(JsonServer(NETWORK, write=limited)) as server:
        oracle = opened(server)
        np.testing.assert_allclose(oracle(rows), NETWORK(rows), atol=1e-14)
        assert oracle.n_queries == 300


class LimitedServer(JsonServer):
    """Answers rows whose numbers are all between two limits."""

    def __init__(self, low, high, refuse):
        super().__init__(NETWORK)
        self.low, self.high, self.refuse = low, high, refuse

    def answer(self, asked):
        rows = np.atleast_2d(asked["features"])
        is_out = ((rows < self.low) | (rows > self.high)).any(axis=1)
        if is_out.any() and isinstance(self.refuse, bytes):
            raise Refused(422, self.refuse)
        document = json.loads(super().answer(asked))
        for i in np.flatnonzero(is_out):
            document["prediction"][i] = [self.refuse] * 2
        return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("low", "high", "refuse", "words"),
    [
        (-4.0, 4.0, None, "--box -4 4"),
        (-4.0, 4.0, float("nan"), "--box -4 4"),
        (-4.0, 4.0, b'{"detail": "out of range"}', "--box -4 4"),
        (-np.inf, 4.0, b'{"detail": "must be <= 4"}', "--box -4 4"),
        (0.0, 10.0, b'{"detail": "x must be between 0 and 10"}', "--box 0 10"),
        (0.0, 50.0, b'{"detail": "Input should be greater than or equal to 0"}', "--box 0 10"),
    ],
    ids=["null", "NaN", "refusal", "a limit said", "both said", "at least"],
)
def test_limits_are_found_and_the_option_is_named(low, high, refuse, words, invoke):
    with running(LimitedServer(low, high, refuse)) as server:
        done = invoke("extract", server.url, "--request", ROWS, "--dim-in", 5)
        assert done.exit_code == 4
        assert "only inside limits" in done.stderr
        said, asked = done.stderr.splitlines()
        assert said.startswith("revelu: ")
        assert asked.startswith("revelu: asked until then: ")
        (found,) = re.findall(r"--box \S+ [-\d.]+", done.stderr)
        assert found == words
        box = tuple(map(float, found.split()[1:]))
        oracle = revelu.open_oracle(revelu.Endpoint(server.url, ROWS, dim_in=5), box=box)
        assert oracle(np.clip(X, *box)).shape == (40, 2)


@pytest.mark.parametrize("request_", [ROWS, ROW])
@pytest.mark.parametrize("fault", ["nan", "truncated", "json {}", 'json {"error": "busy"}'])
def test_one_answer_that_is_none_is_asked_again(request_, fault):
    with running(JsonServer(NETWORK)) as server:
        oracle = opened(server, request_)
        oracle(X[:2])
        server.script = [None, fault] if request_ == ROW else [fault]
        np.testing.assert_allclose(oracle(X), NETWORK(X), atol=1e-14)
        assert oracle.n_queries == 42


def test_callable_elsewhere_is_asked_again():
    calls = []

    def f(x):
        calls.append(len(x))
        return NETWORK(x) if len(calls) != 2 else np.full((len(x), 2), np.nan)

    oracle = revelu.open_oracle(f, dim_in=5, remote=True)
    for _ in range(2):
        np.testing.assert_array_equal(oracle(X), NETWORK(X))
    assert calls == [40, 40, 40]
    assert oracle.n_queries == 80


@pytest.mark.parametrize(
    ("said", "limits"),
    [
        ("must be <= 10", [(10.0, True)]),
        ("Input should be less than or equal to 10", [(10.0, True)]),
        ("Input should be greater than or equal to -2.5", [(-2.5, False)]),
        ("must not be greater than 1e3", [(1000.0, True)]),
        ("no less than 3", [(3.0, False)]),
        ("age must be between 0 and 120", [(0.0, False), (120.0, True)]),
        ("value out of range [-1, 1]", [(-1.0, False), (1.0, True)]),
        ("body.rows.0: List should have at most 4 items after validation, not 6", []),
        ("expected shape (?, 4), got at most 6", []),
        ("not now", []),
    ],
)
def test_limits_are_read(said, limits):
    assert [(limit.at, limit.is_upper) for limit in limits_said(said)] == limits


def norm_under(size):
    return lambda x: bool(np.linalg.norm(x) <= size)


def test_limit_of_several_inputs_together_is_found():
    limit = find_limit(norm_under(4.0), np.zeros(16), np.full(16, 3.0))
    assert limit.column is None
    assert limit.at == pytest.approx(1.0, rel=0.05)
    box = next(b for b in boxes([limit]) if is_answered(norm_under(4.0), b, 16))
    assert box[0] == -box[1]


def test_columns_of_whole_numbers_are_named():
    names = "abcde"

    def pick(asked):
        if any(type(row["b"]) is float for row in asked["rows"]):
            text = "Incompatible input types for column b. Can not safely convert float64 to int64."
            raise Refused(400, json.dumps({"message": text}).encode())
        return [[row[name] for name in names] for row in asked["rows"]]

    with running(JsonServer(NETWORK, read=pick)) as server:
        asked = '{"rows": $objects(a, b, c, d, e)}'
        with pytest.raises(TargetError, match=r"\$objects\(age=40, income\)"):
            revelu.open_oracle(revelu.Endpoint(server.url, asked))(X)
        held = revelu.Endpoint(server.url, '{"rows": $objects(a, b=40, c, d, e)}')
        rows = np.insert(X[:, :4], 1, 40.0, axis=1)
        found = revelu.open_oracle(held)(X[:, :4])
        np.testing.assert_allclose(found, NETWORK(rows), rtol=1e-12)


@pytest.mark.parametrize("answer", ["$", "$.y[0]"])
def test_path_that_fits_one_row_alone_is_not_asked_for_again_and_again(answer):
    """A short answer may be a fault that passes: it is asked for once more."""
    with running(JsonServer(NETWORK, write=lambda Y: {"y": Y.tolist()})) as server:
        with pytest.raises(TargetError, match="rows at"):
            opened(server, answer=answer)(X)
        assert server.n_requests == 3


def test_table_whose_cells_are_parted_by_tabs_is_read():
    def write(Y):
        return "\n".join("\t".join(map(repr, y)) for y in Y.tolist()).encode()

    kind = "text/tab-separated-values"
    with running(JsonServer(NETWORK, write=write, kind=kind)) as server:
        np.testing.assert_allclose(opened(server)(X), NETWORK(X), atol=1e-14)


# -- probe -------------------------------------------------------------------------------


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.mark.parametrize("name", [*SHAPES, "numbers in texts", "names", "scores"])
def test_probe_shows_what_it_takes(name, invoke):
    own = {
        "numbers in texts": (lambda Y: [[f"{y:.4f} EUR" for y in row] for row in Y], "", None),
        "names": (naming(FLOWERS), "", None),
        "scores": (all_by_score, "", None),
    }
    write, kind, answer = {**SHAPES, **own}[name]
    network = OF_THREE if name in {"names", "scores"} else NETWORK
    more = ["--answer", answer] if answer else []
    with running(JsonServer(network, write=write, kind=kind)) as server:
        done = invoke("probe", server.url, "--request", ROWS, "--dim-in", 5, "--json", *more)
    assert done.exit_code == 0, done.stderr
    found = one_object(done.stdout)
    assert np.shape(found["taken"]) == (3, {"names": 1, "scores": 3}.get(name, 2))
    if name == "names":
        assert any(flower in found["precision"] for flower in FLOWERS)


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (lambda: LimitedServer(0.0, 10.0, b'{"detail": "must be >= 0"}'), "--box 0 10"),
        (lambda: LimitedServer(-0.5, 0.5, None), "--box -0.5 0.5"),
        (lambda: JobServer(NETWORK), "(poll)"),
        (lambda: JsonServer(OF_THREE, write=lambda Y: [p[0] for p in all_by_score(Y)]), "name one"),
    ],
    ids=["a limit said", "a limit", "a job", "the best label"],
)
def test_probe_names_the_option(server, words, invoke):
    with running(server()) as one:
        done = invoke("probe", one.url, "--request", ROWS, "--dim-in", 5, "--json")
    assert done.exit_code == 4
    found = one_object(done.stdout)
    assert words in found["error"]
    assert found["answer"]
    if "said" in found["error"] or "must be" in found["error"]:
        assert found["answer"].startswith("422 ")
