"""``revelu serve``: the protocol as a stranger speaks it, and what it refuses."""

import contextlib
import http.client
import json
import re
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import revelu
from conftest import COMMAND, PATIENCE_SECONDS, one_object, start_process
from revelu.adapters.http import HttpTarget
from revelu.adapters.open_inference import ProtocolError, Tensor, decode, encode
from revelu.adapters.opening import open_target
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from serving import serving

NETWORK = revelu.zoo.random_network([3, 4, 2], seed=1)
X = np.random.default_rng(0).standard_normal((5, 3))
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=64)


@pytest.fixture(scope="module")
def server():
    with serving(NETWORK, most_bytes=4000) as running:
        yield running


def request(url, body=None, headers=()):
    """Status, headers and body of a reply, by another client than ours."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET" if body is None else "POST", parts.path, body, dict(headers))
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        connection.close()


def asking(**changes):
    tensor = {"name": "x", "datatype": "FP64", "shape": [5, 3], "data": X.ravel().tolist()}
    return json.dumps({"inputs": [{**tensor, **changes}]}).encode()


def test_metadata_and_health(server):
    base = server.url.split("/models")[0]
    for path in ("/health/live", "/health/ready", "/models/model/ready"):
        assert request(base + path)[0] == 200
    assert json.loads(request(base)[2])["extensions"] == ["binary_tensor_data"]
    model = json.loads(request(server.url)[2])
    assert model["name"] == "model"
    assert model["inputs"] == [{"name": "input", "datatype": "FP64", "shape": [-1, 3]}]
    assert model["outputs"] == [{"name": "output", "datatype": "FP64", "shape": [-1, 2]}]


@pytest.mark.parametrize("data", [X.ravel().tolist(), X.tolist()])
def test_json_is_answered_to_the_bit(server, data):
    status, headers, body = request(f"{server.url}/infer", asking(data=data))
    assert (status, headers["Content-Type"]) == (200, "application/json")
    (output,) = json.loads(body)["outputs"]
    assert output["shape"] == [5, 2]
    assert np.array_equal(np.reshape(output["data"], (5, 2)), NETWORK(X))


@pytest.mark.parametrize(
    "wish",
    [
        {"parameters": {"binary_data_output": True}},
        {"outputs": [{"name": "output", "parameters": {"binary_data": True}}]},
    ],
)
def test_binary_is_answered_to_the_bit(server, wish):
    tensor = {"name": "x", "datatype": "FP64", "shape": [5, 3]}
    tensor["parameters"] = {"binary_data_size": X.nbytes}
    head = json.dumps({"id": "7", "inputs": [tensor], **wish}).encode()
    name = "Inference-Header-Content-Length"
    raw = struct.pack("<15d", *X.ravel())
    status, headers, body = request(f"{server.url}/infer", head + raw, {name: len(head)}.items())
    assert status == 200
    length = int(headers[name])
    document = json.loads(body[:length])
    assert document["id"] == "7"
    assert document["outputs"][0]["parameters"]["binary_data_size"] == 80
    assert np.array_equal(np.reshape(struct.unpack("<10d", body[length:]), (5, 2)), NETWORK(X))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no json",
        b"[]",
        b"{}",
        b"[" * 3000,
        b'{"inputs": []}',
        b'{"inputs": [1]}',
        asking(datatype="BYTES"),
        asking(datatype="INT64"),
        asking(datatype=None),
        asking(shape=[5, 4]),
        asking(shape=[-5, -3]),
        asking(shape=[3, 5]),
        asking(shape=[15]),
        asking(shape=None),
        asking(shape=[0, 3], data=[]),
        asking(shape=[10**30, 3]),
        asking(shape=[0, 10**30], data=[]),
        asking(shape=[5, 3] + [1] * 70),
        asking(data=["1"] * 15),
        asking(data=[[1.0], [2.0, 3.0]]),
        asking(data=[float("nan")] * 15),
        asking(data=[1e999] * 15),
        asking(data=None),
        asking(parameters={"binary_data_size": 120}),
        asking(parameters={"binary_data_size": -1}),
        asking()[:-1] + b', "outputs": [{"name": "other"}]}',
    ],
)
def test_malformed_requests_get_the_error_object(server, body):
    status, _, answer = request(f"{server.url}/infer", body)
    assert status == 400
    assert list(json.loads(answer)) == ["error"]
    assert request(f"{server.url}/infer", asking())[0] == 200


@pytest.mark.parametrize("length", ["x", "-1", "99999", "1", "9" * 5000])
def test_wrong_json_lengths_get_the_error_object(server, length):
    headers = [("Inference-Header-Content-Length", length)]
    assert request(f"{server.url}/infer", asking(), headers)[0] == 400


def test_bodies_over_the_limit_are_refused(server):
    for size in (4001, 10**6):
        with socket.create_connection(server.server_address) as line:
            line.settimeout(30)
            line.sendall(
                f"POST /v2/models/model/infer HTTP/1.1\r\nContent-Length: {size}\r\n\r\n".encode()
            )
            if size == 4001:
                line.sendall(b"x" * size)
            reply = line.makefile("rb").read()
        assert b" 413 " in reply.split(b"\r\n")[0]
        assert b'{"error": "a body of' in reply


@pytest.mark.parametrize("header", [("Transfer-Encoding", "chunked"), ("Content-Length", "x")])
def test_bodies_of_unknown_length_are_refused(server, header):
    with socket.create_connection(server.server_address) as line:
        line.settimeout(30)
        line.sendall(
            f"POST /v2/models/model/infer HTTP/1.1\r\n{': '.join(header)}\r\n\r\n".encode()
        )
        assert b" 411 " in line.makefile("rb").read().split(b"\r\n")[0]


def test_unknown_places_get_the_error_object(server):
    base = server.url.split("/v2")[0]
    for path, body, status in [
        ("/", None, 404),
        ("/v2/models/other", None, 404),
        ("/v2/models/other/infer", asking(), 404),
        ("/v2/models/model/infer", None, 405),
    ]:
        assert request(base + path, body)[0] == status
        assert list(json.loads(request(base + path, body)[2])) == ["error"]


def test_a_model_that_fails_is_the_servers_fault():
    answers = iter([np.zeros((1, 1))])

    def target(_):
        return next(answers, np.zeros((9, 9)))

    target.dim_in = 3
    with serving(target) as server:
        status, _, body = request(f"{server.url}/infer", asking())
    assert status == 500
    assert "shape (9, 9) to 5 rows" in json.loads(body)["error"]


@pytest.mark.parametrize(
    ("datatype", "number"),
    [("UINT8", 300), ("UINT8", -1), ("INT64", 0.5), ("INT64", 1e300), ("BOOL", 2)],
)
def test_numbers_that_a_datatype_has_not_are_refused(datatype, number):
    tensor = {"name": "y", "datatype": datatype, "shape": [2], "data": [1, number]}
    with pytest.raises(ProtocolError, match="numbers that its datatype has not"):
        decode("outputs", json.dumps({"outputs": [tensor]}).encode(), None)
    tensor["data"] = [1, 0]
    _, (read,) = decode("outputs", json.dumps({"outputs": [tensor]}).encode(), None)
    assert read.values.tolist() == [1, 0]


@given(
    values=st.lists(FLOATS, min_size=1, max_size=12),
    datatype=st.sampled_from(["FP64", "FP32"]),
    binary=st.booleans(),
)
def test_tensors_come_back_as_they_were(values, datatype, binary):
    dtype = np.float64 if datatype == "FP64" else np.float32
    with np.errstate(over="ignore"):
        array = np.array(values, dtype=dtype)[None]
    if not np.isfinite(array).all():
        return
    body = encode("inputs", [Tensor("x", datatype, array)] * 2, {"id": "1"}, binary=binary)
    length = body.headers.get("Inference-Header-Content-Length")
    document, tensors = decode("inputs", body.content, length)
    assert document["id"] == "1"
    for tensor in tensors:
        assert tensor.values.tobytes() == array.tobytes()
        assert tensor.values.shape == array.shape


@given(st.binary(max_size=60), st.one_of(st.none(), st.integers(-5, 70).map(str)))
def test_any_bytes_are_read_or_refused(content, length):
    with contextlib.suppress(ProtocolError):
        decode("inputs", content, length)


@pytest.fixture
def command(tmp_path, environment):
    """Start ``revelu serve`` on a free port; the process and its address."""
    started = []

    def start(*arguments):
        process = start_process(
            [*COMMAND, "serve", *arguments, "--port", "0", "--json"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process, one_object(process.stdout.readline())["url"]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_defences_change_the_answers(command, tmp_path):
    NETWORK.save(tmp_path / "mine.onnx")
    _, url = command("mine.onnx", "--float32", "--round", "3")
    assert url.endswith("/v2/models/mine")
    target = HttpTarget(url)
    Y = target(X)
    assert [float(f"{y:.3g}") for y in Y.ravel()] == pytest.approx(Y.ravel().tolist(), rel=1e-6)
    np.testing.assert_allclose(Y, NETWORK(X), rtol=6e-3)
    _, url = command("mine.onnx", "--noise", "0.1", "--labels")
    target = HttpTarget(url)
    assert set(target(X).ravel()) <= {0.0, 1.0}


def test_example_of_the_guide_goes_on_from_its_journal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path(__file__).parents[2] / "docs/guides/endpoints.md"
    guide = path.read_text(encoding="utf-8")
    served = re.search(r"^revelu serve demo:(\w+) --port 8080$", guide, re.MULTILINE)[1]
    line = re.search(r"^revelu extract (http.*)$", guide, re.MULTILINE)[1]
    address, *options = line.split()
    assert address == f"http://127.0.0.1:8080/v2/models/{served}"
    with serving(open_target(f"demo:{served}"), served) as server:
        for _ in range(2):
            done = CliRunner().invoke(app, ["extract", server.url, *options, "--json"])
            assert done.exit_code == 0, done.stderr
    shown = CliRunner().invoke(app, ["journal", "show", "run.db", "--json"])
    assert one_object(shown.stdout)["n_queries"] == one_object(done.stdout)["queries"]
    assert (tmp_path / "digits.onnx").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no signal to one process")
def test_interrupt_ends_the_server(command):
    process, url = command("demo:digits")
    assert HttpTarget(url)(np.zeros((7, 64))).shape == (7, 10)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == ExitCode.INTERRUPTED
    assert stderr == "revelu: interrupted after 7 queries\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["module:attribute"], "what is served is demo:NAME"),
        (["missing.npz"], "missing.npz"),
        (["demo:digits", "--round", "0"], "digits must be"),
        (["demo:digits", "--noise", "-1"], "sigma must be"),
        (["demo:digits", "--port", "70000"], "cannot listen at"),
        (["demo:digits", "--host", "192.0.2.1"], "cannot listen at"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments, words):
    done = CliRunner().invoke(app, ["serve", *arguments])
    assert done.exit_code == ExitCode.USAGE
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
