"""Served models: what is asked, what is understood, what is survived, what is kept secret."""

import json
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import COMMAND, PATIENCE_SECONDS, one_object, start_process
from revelu.adapters.http import HttpTarget
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.errors import InputError, TargetError
from serving import Proxy, running, serving

NETWORK = revelu.zoo.random_network([6, 5, 2], seed=1)
X = np.random.default_rng(0).standard_normal((40, 6))
SECRET = "Bearer ff-do-not-tell"  # noqa: S105


@pytest.fixture(scope="module")
def model():
    with serving(NETWORK) as server:
        yield server.url


@pytest.fixture
def proxy(model):
    with running(Proxy(model)) as server:
        yield server


class Fake(ThreadingHTTPServer):
    """A server that answers paths with what a dictionary holds."""

    daemon_threads = True

    def __init__(self, pages):
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                body = pages.get(self.path, b"{}")
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(200 if self.path in pages else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                pages["asked"] = asked
                self.path = "answer"
                self.do_GET()

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v2/models/m"


def described(shape=(-1, 6), datatype="FP64", name="x", outputs=("y",)):
    """Pages of a model that says so much of itself."""
    tensor = {"name": name, "datatype": datatype, "shape": list(shape)}
    return {"/v2/models/m": {"inputs": [tensor], "outputs": [{"name": n} for n in outputs]}}


# -- what is asked -----------------------------------------------------------------------


def test_answers_are_the_models_to_the_bit(model, proxy):
    for url in (model, proxy.url):  # binary and JSON
        target = HttpTarget(url)
        assert target.dim_in == 6
        np.testing.assert_array_equal(target(X), NETWORK(X))


def test_threads_and_processes_share_a_target(model):
    target = pickle.loads(pickle.dumps(HttpTarget(model)))  # noqa: S301
    with ThreadPoolExecutor(4) as pool:
        for Y in pool.map(target, [X] * 12):
            np.testing.assert_array_equal(Y, NETWORK(X))


def test_extraction_is_that_of_the_local_model(model):
    local = revelu.extract(NETWORK, seed=2)
    served = revelu.extract(model, seed=2)
    assert served.status is revelu.Status.RECOVERED
    assert served.network == local.network
    # The target is looked at once more at the end.
    assert served.ledger.n_queries == local.ledger.n_queries + 8


def test_image_is_flattened_by_its_declared_shape():
    pages = described((-1, 2, 3))
    pages["answer"] = {"outputs": [{"name": "y", "datatype": "FP64", "shape": [1], "data": [5]}]}
    with running(Fake(pages)) as server:
        target = HttpTarget(server.url)
        assert target.dim_in == 6
        assert target(X[:1]).tolist() == [[5.0]]
    (tensor,) = pages["asked"]["inputs"]
    assert (tensor["name"], tensor["shape"]) == ("x", [1, 2, 3])
    assert tensor["data"] == X[0].tolist()


def test_silent_server_is_described_by_the_user():
    answer = {"name": "p", "datatype": "FP64", "shape": [1, 2], "data": [[1, 2]]}
    pages = {"/v2/models/m": {"name": "m", "inputs": []}, "answer": {"outputs": [answer]}}
    with running(Fake(pages)) as server:
        with pytest.raises(InputError, match="give dim_in"):
            HttpTarget(server.url)
        target = HttpTarget(server.url, 6, input_name="in", output_name="p")
        assert target(X[:1]).tolist() == [[1.0, 2.0]]
    assert pages["asked"]["inputs"][0]["name"] == "in"
    assert pages["asked"]["outputs"] == [{"name": "p"}]


def test_float32_models_are_asked_in_float32():
    pages = described(datatype="FP32")
    pages["answer"] = {"outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}
    with running(Fake(pages)) as server:
        HttpTarget(server.url)(X[:1])
    assert pages["asked"]["inputs"][0]["data"] == X[0].astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("pages", "words"),
    [
        (described(datatype="BYTES"), "input x is BYTES, not FP64 or FP32"),
        (described(datatype=["FP64"]), "not FP64 or FP32"),
        (described((6,)), "not a vector a row"),
        (described((-1, -1, 3)), "whose size is not said"),
        ({"/v2/models/m": {"inputs": [{"name": "a"}, {"name": "b"}]}}, "takes a, b, not one"),
        ({"/v2/models/m": {"inputs": "x"}}, "in no way of the protocol"),
        ({"/v2/models/m": b"<html>"}, "no served model"),
        ({}, "there is no model m"),
    ],
)
def test_other_models_are_named(pages, words):
    with running(Fake(pages)) as server, pytest.raises(TargetError, match=words):
        HttpTarget(server.url)


def test_several_outputs_need_a_name():
    pages = described(outputs=("label", "probabilities"))
    with running(Fake(pages)) as server:
        with pytest.raises(InputError, match="outputs label, probabilities: give output_name"):
            HttpTarget(server.url)
        with pytest.raises(InputError, match="not the output_name other"):
            HttpTarget(server.url, output_name="other")
        assert HttpTarget(server.url, output_name="label").dim_in == 6


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "http://127.0.0.1:1/v2/models/",
        "http://127.0.0.1:1/v2/models/a/infer",
        "http://me:secret@127.0.0.1:1/v2/models/a",
        "http://me:secret@127.0.0.1:1/elsewhere",
        "http://127.0.0.1:1/v2/models/a?token=secret",
        "http://127.0.0.1:99999/v2/models/a",
        "http://[::1/v2/models/a",
        "http://\x7f/v2/models/a",
        "http://" + "x" * 70 + "ä.invalid/v2/models/a",
    ],
)
def test_addresses_that_are_none_are_refused_untold(url):
    with pytest.raises(InputError) as caught:
        HttpTarget(url)
    assert "secret@" not in str(caught.value)


def test_large_requests_are_halved_where_the_server_refuses_them():
    with serving(NETWORK, most_bytes=10 * 6 * 8 + 400) as server:
        target = HttpTarget(server.url)
        np.testing.assert_array_equal(target(X), NETWORK(X))
        with serving(NETWORK, most_bytes=10) as small, pytest.raises(TargetError, match="size"):
            HttpTarget(small.url)(X)


def test_fixed_batches_are_filled_up():
    pages = described((4, 6))
    pages["answer"] = {
        "outputs": [{"name": "y", "datatype": "FP64", "shape": [4, 1], "data": [1, 2, 3, 4]}]
    }
    with running(Fake(pages)) as server:
        Y = HttpTarget(server.url)(X[:6])
    assert Y.ravel().tolist() == [1, 2, 3, 4, 1, 2]
    assert np.array(pages["asked"]["inputs"][0]["data"])[12:].any() == False  # noqa: E712


def test_rate_keeps_requests_apart(model, monkeypatch):
    waits = []
    stopped = SimpleNamespace(monotonic=lambda: 0.0, sleep=waits.append)
    monkeypatch.setattr("revelu.adapters.pace.time", stopped)
    target = HttpTarget(model, rate="20/s")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(target, [X] * 6))
    # Two requests ask what the model is.
    assert sorted(waits) == pytest.approx(np.arange(8) / 20)
    for rate in ("50", "0/s", "-1/s", "5/year"):
        with pytest.raises(InputError, match="rate must be like"):
            HttpTarget(model, rate=rate)


# -- what is survived --------------------------------------------------------------------

PASSING = ["reset", "status 429 0", "status 500", "status 503", "cut", "truncated"]


@pytest.mark.parametrize("fault", ["status 400", "status 422"])
def test_refusal_of_now_and_then_is_survived(proxy, fault):
    target = revelu.open_oracle(proxy.url)
    np.testing.assert_array_equal(target(X), NETWORK(X))
    proxy.script = [fault, fault]
    np.testing.assert_array_equal(target(X), NETWORK(X))
    proxy.script = [fault] * 3
    with pytest.raises(TargetError, match="not now"):
        target(X)


@pytest.mark.parametrize("fault", PASSING)
def test_passing_faults_are_survived(proxy, fault):
    target = HttpTarget(proxy.url)
    proxy.script = [fault, None, fault, fault]
    for _ in range(2):
        np.testing.assert_array_equal(target(X), NETWORK(X))
    assert proxy.n_rows() == 2 * len(X)


@pytest.mark.parametrize("fault", ["silence", "drip"])
def test_slow_servers_are_asked_again(proxy, fault):
    target = HttpTarget(proxy.url, timeout=1.0)
    proxy.script = [fault]
    np.testing.assert_array_equal(target(X), NETWORK(X))


def test_retry_after_is_heeded(proxy):
    target = HttpTarget(proxy.url)
    proxy.script = ["status 429 1"]
    target(X)
    assert proxy.moments[1] - proxy.moments[0] >= 1
    proxy.script = ["status 429 86400"]
    with pytest.raises(TargetError, match="429: not now; it asks to wait 86,400 s"):
        target(X)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("status 500", "answers 500: not now"),
        ("reset", "the connection failed"),
        ("truncated", "no JSON"),
        ("status 401", "authorisation is needed: set REVELU_AUTHORIZATION"),
        ("status 400", "answers 400: not now"),
        ("shape", "nonsense: tensor 'output' of shape"),
        ("nan", "nan in output 0"),
        ("size", r"answered shape \(41, 2\) to 40 queries"),
        ("text", "datatype 'BYTES', no numbers"),
        ("other", "answered another request"),
        ("redirect http://127.0.0.2:1/", "redirects to another host, http://127.0.0.2:1"),
        ("redirect http://[::1/", "Invalid URL in location"),
        ("redirect http://127.0.0.1:99999/", "redirects to what is no address"),
    ],
)
def test_lasting_faults_are_named(proxy, tmp_path, fault, words):
    with revelu.open_oracle(proxy.url, journal=tmp_path / "run.db") as oracle:
        proxy.script = [fault] * 20
        with pytest.raises(TargetError, match=words) as caught:
            oracle(X)
        assert "\n" not in str(caught.value)
        # What is not finite may be outside of limits, which a few rows more would show.
        assert 20 - len(proxy.script) <= (18 if fault == "nan" else 6)
        proxy.script = []
        np.testing.assert_array_equal(oracle(X), NETWORK(X))


def test_redirects_on_one_host_are_followed(proxy):
    target = HttpTarget(proxy.url)
    proxy.script = [f"redirect {proxy.upstream.path}/infer"]
    np.testing.assert_array_equal(target(X), NETWORK(X))
    proxy.script = [f"redirect {proxy.url}/infer"] * 9
    with pytest.raises(TargetError, match="in circles"):
        target(X)


def test_extraction_survives_a_bad_connection(proxy, tmp_path):
    proxy.script = [fault for passing in PASSING for fault in (passing, None)] * 3
    options = {"journal": tmp_path / "run.db", "batch": 64}
    with (
        ThreadPoolExecutor(3) as pool,
        revelu.open_oracle(proxy.url, executor=pool, **options) as oracle,
    ):
        found = revelu.extract(oracle, seed=2)
    assert found.status is revelu.Status.RECOVERED
    assert proxy.n_rows() == found.ledger.n_queries


# -- what is kept secret -----------------------------------------------------------------


def test_authorisation_is_sent_and_never_told(proxy, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("REVELU_AUTHORIZATION", SECRET)
    monkeypatch.chdir(tmp_path)
    caplog.set_level(0)
    proxy.script = ["reset", "status 503"]
    done = CliRunner().invoke(app, ["extract", proxy.url, "--journal", "run.db", "--json", "-vv"])
    assert done.exit_code == 0, done.stderr
    assert {headers["Authorization"] for headers in proxy.headers_seen} == {SECRET}
    told = [done.stdout, done.stderr, caplog.text, repr(pickle.dumps(HttpTarget(proxy.url)))]
    files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert not any("ff-do-not-tell" in text for text in told)
    assert not any(b"ff-do-not-tell" in text for text in files)


def test_echoed_secrets_are_struck_out(monkeypatch):
    monkeypatch.setenv("REVELU_AUTHORIZATION", SECRET)
    page = {"error": f"who is {SECRET}, \x1b[31m or ff-do-not-tell?"}
    pages = {**described(), "answer": page}
    with running(Fake(pages)) as server:
        target = HttpTarget(server.url)
        with pytest.raises(TargetError) as caught:
            target(X)
    assert "ff-do-not-tell" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_header_that_is_none_is_refused_untold(model, monkeypatch):
    monkeypatch.setenv("REVELU_AUTHORIZATION", "ff-do\r\nX-Evil: 1")
    with pytest.raises(InputError) as caught:
        HttpTarget(model)
    assert "ff-do" not in str(caught.value)


def test_other_hosts_get_no_authorisation(model, proxy, monkeypatch):
    monkeypatch.setenv("REVELU_AUTHORIZATION", SECRET)
    heard = threading.Event()
    with running(Proxy(model)) as other:
        other.get_request = lambda: heard.set() or ThreadingHTTPServer.get_request(other)
        target = HttpTarget(proxy.url)
        proxy.script = [f"redirect {other.url}/infer"]
        with pytest.raises(TargetError, match="another host"):
            target(X)
    assert not heard.is_set()


# -- on the command line -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:1/v2/models/m", "no connection"),
        ("http://host.invalid/v2/models/m", "no connection"),
        ("{base}/v2/models/other", "there is no model other"),
    ],
)
def test_absent_targets_are_exit_4(model, tmp_path, url, words):
    base = model.split("/v2")[0]
    journal = tmp_path / "run.db"
    done = CliRunner().invoke(
        app, ["extract", url.format(base=base), "--journal", str(journal), "--json"]
    )
    assert done.exit_code == ExitCode.TARGET
    assert done.stderr.startswith("revelu: http")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
    assert one_object(done.stdout)["status"] == "error"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rate", "fast"], "revelu: --rate must be like"),
        (["--batch", "0"], "revelu: --batch must be"),
        (["--workers", "0"], "revelu: --workers must be"),
        (["--workers", "2", "--dask", "tcp://127.0.0.1:1"], "give one of them"),
        (["--output-name", "z"], "not the --output-name z"),
        (["--dim-in", "7"], "has 6 inputs, not 7"),
    ],
)
def test_bad_options_are_exit_2(model, options, words):
    done = CliRunner().invoke(app, ["extract", model, *options])
    assert done.exit_code == ExitCode.USAGE
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_options_of_served_models_are_refused_elsewhere():
    done = CliRunner().invoke(app, ["extract", "demo:digits", "--rate", "5/s"])
    assert done.exit_code == ExitCode.USAGE
    assert "rate is for served models, which demo:digits is not" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_interrupt_waits_for_no_server(environment, tmp_path):
    asked, over = threading.Event(), threading.Event()

    def target(X):
        if len(X) > 1:  # the server itself asks for one row
            asked.set()
            over.wait()
        return NETWORK(X)

    target.dim_in = NETWORK.dim_in
    with serving(target) as server:
        command = [*COMMAND, "extract", server.url, "--workers", "2", "--batch", "8"]
        process = start_process(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
        try:
            assert asked.wait(PATIENCE_SECONDS)
            process.send_signal(signal.SIGINT)
            # The server is not let go before the process has ended.
            _, stderr = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            over.set()
            process.kill()
    assert process.returncode == ExitCode.INTERRUPTED
    assert stderr.startswith(b"revelu: interrupted")
