"""``revelu probe``: three rows, and what came back."""

import json

import numpy as np
import pytest
from json_serving import JsonServer
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.adapters.http_client import Client, Reply
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.errors import TargetError
from revelu.tasks.probing import precision_of, probe_target
from serving import running, serving

NETWORK = revelu.zoo.random_network([6, 5, 2], seed=1)
ROWS = '{"features": $rows}'


def test_endpoint_is_shown_as_it_is_asked():
    with running(JsonServer(NETWORK)) as server:
        found = probe_target(revelu.Endpoint(server.url, ROWS, dim_in=6), seed=1)
    assert server.n_rows == found.ledger.n_queries == 3
    np.testing.assert_allclose(found.taken, NETWORK(found.asked), rtol=0, atol=1e-14)
    assert found.n_requests == server.n_requests == 2
    assert found.request.startswith(f'POST {server.url} {{"features": [[')
    assert found.answer.startswith('200 {"prediction": [[')
    assert found.precision == "float64 numbers"
    assert found.seconds > 0


def test_one_row_a_request_is_three_requests():
    with running(JsonServer(NETWORK)) as server:
        endpoint = revelu.Endpoint(server.url, '{"features": $row}', method="GET", dim_in=6)
        found = probe_target(endpoint)
    assert found.n_requests == server.n_requests == 3
    assert found.request.startswith(f"GET {server.url}?features=")


def test_other_targets_are_probed_too(tmp_path):
    NETWORK.save(tmp_path / "model.onnx")
    for target in (NETWORK, tmp_path / "model.onnx"):
        found = probe_target(target)
        np.testing.assert_allclose(found.taken, NETWORK(found.asked), rtol=0, atol=1e-14)
        assert found.request is None
    with serving(NETWORK) as server:
        found = probe_target(server.url)
    assert "and 144 bytes" in found.request


def test_rows_are_those_of_the_domain():
    domain = revelu.Domain.box(10.0, 11.0)
    found = probe_target(NETWORK, domain=domain)
    assert ((found.asked >= 10) & (found.asked <= 11)).all()


@pytest.mark.parametrize(
    ("Y", "words"),
    [
        ([[1.0], [0.0]], "whole numbers"),
        ([[0.0, 1.0, 0.0]] * 3, "all 3 answers are the same"),
        ([[0.25]] * 3, "all 3 answers are the same"),
        ([[0.0, 1.0, 0.0]], "whole numbers"),
        ([[0.25], [0.125]], "at most 3 significant digits"),
        ([[1234.5], [-2e-7]], "at most 5 significant digits"),
        (np.float32([[0.1], [0.2]]).astype(np.float64), "float32 numbers"),
        ([[0.12345679, -3.1415927], [2.7182817, 0.5]], "float32 numbers, in decimals"),
        ([[1 / 3], [0.2]], "float64 numbers"),
        ([[1e300 / 3], [0.2]], "float64 numbers"),
    ],
)
def test_precision_is_read_off_the_digits(Y, words):
    assert precision_of(np.array(Y)).startswith(words)
    assert ("--like DATA" in precision_of(np.array(Y))) == words.endswith("the same")


def test_command_shows_all_of_it():
    with running(JsonServer(NETWORK)) as server:
        arguments = ["probe", server.url, "--request", ROWS, "--dim-in", "6"]
        done = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, arguments)
        assert done.exit_code == 0, done.stderr
        for word in ("request", "answer", "taken", "(3, 6) to (3, 2)", "float64", "s each"):
            assert word in done.stdout
        account = one_object(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert account["requests"] == 2
    assert np.shape(account["taken"]) == (3, 2)


def test_a_failed_probe_says_the_first_of_many_complaints_and_measures_nothing(monkeypatch):
    fields = [{"loc": ["body", i], "msg": "wrong"} for i in range(13)]
    body = json.dumps({"detail": fields}).encode()
    with running(JsonServer(NETWORK)) as server:
        monkeypatch.setattr(Client, "_exchange", lambda *_: Reply(422, {}, body))
        arguments = ["probe", server.url, "--request", ROWS, "--dim-in", "6"]
        done = CliRunner().invoke(app, arguments)
    assert done.exit_code == ExitCode.TARGET
    assert "answers 422: body.0: wrong (and 12 more)" in done.stderr
    assert done.stdout.count("wrong") == 1
    assert "and 12 more" in done.stdout
    assert "queries   1 in 1 round\n" in done.stdout


def test_what_did_arrive_is_shown_where_it_is_not_understood():
    with running(JsonServer(NETWORK)) as server:
        arguments = ["probe", server.url, "--request", ROWS, "--dim-in", "6"]
        done = CliRunner().invoke(app, [*arguments, "--answer", "$.score", "--json"])
        assert done.exit_code == ExitCode.TARGET
        account = one_object(done.stdout)
        assert account["taken"] is None
        assert '{"prediction": [[' in account["answer"]
        assert "has nothing at $.score" in account["error"]
        server.script = ["html 404"]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == ExitCode.TARGET
        assert "nothing was understood" in done.stdout
    with pytest.raises(TargetError, match=r"no connection|the connection failed"):
        probe_target(revelu.Endpoint(server.url, ROWS, dim_in=6))
