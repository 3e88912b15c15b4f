"""Services that are slow, away or wrong: the run goes on, or one line names cause and option."""

import base64
import json
import shutil
import ssl
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from json_serving import JsonServer
from typer.testing import CliRunner

import revelu
from revelu.adapters.pace import seconds_of
from revelu.adapters.patience import PassingError, Patience, Spell, UnsentError
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.errors import InputError
from serving import running, serving

NETWORK = revelu.zoo.random_network([6, 5, 2], seed=1)
ROWS = '{"features": $rows}'


@pytest.fixture
def server():
    with running(JsonServer(NETWORK)) as one:
        yield one


def extracted(url, *more):
    """How an extraction ends, and all that it says, in one line."""
    given = ["extract", url, "--request", ROWS, "--dim-in", "6", *map(str, more)]
    done = CliRunner().invoke(app, given)
    return done.exit_code, " ".join(done.output.split())


# -- slow, and away ----------------------------------------------------------------------


def test_slow_server_is_named_as_the_cause_beside_the_account():
    def slow(rows):
        time.sleep(0.3)
        return NETWORK(rows)

    with running(JsonServer(slow)) as server:
        code, said = extracted(server.url, "--max-seconds", 1)
    assert code == ExitCode.EXHAUSTED
    assert "the 1 seconds allowed are over" in said
    assert "the server answers in 0." in said
    assert "it has answered" in said
    assert "to measure the noise" in said
    assert "connection failed" not in said


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (["--max-seconds", 30], ExitCode.EXHAUSTED, "more than is left"),
        ([], ExitCode.TARGET, "more than the 60 s that are waited: --retry-for 3600s"),
    ],
)
def test_long_pause_is_named_beside_what_the_server_says(server, more, code, words):
    server.script = [None, None, None, "status 429 3600"]
    ended, said = extracted(server.url, *more)
    assert ended == code
    assert f"answers 429: not now; it asks to wait 3,600 s, {words}" in said
    assert "64 to measure the noise" in said


@pytest.mark.slow
def test_service_that_restarts_is_waited_for():
    """The port is refused for longer than what passes takes; then another server is there."""
    closed, second = threading.Event(), []

    def answer(X):
        # The fourth answer and later ones come once the port is closed, however fast they are.
        if len(first.asked) > 3:
            closed.wait(30.0)
        return NETWORK(X)

    first = JsonServer(answer)
    port = first.server_address[1]

    def restart():
        while len(first.asked) < 3:
            time.sleep(0.01)
        first.shutdown()
        first.socket.close()
        closed.set()
        time.sleep(3.5)
        second.append(JsonServer(NETWORK, port=port))
        second[0].serve_forever(poll_interval=0.01)

    # Connections end with each answer: those that are open would outlive the server.
    first.RequestHandlerClass = type("Closing", (first.RequestHandlerClass,), {})
    first.RequestHandlerClass.protocol_version = "HTTP/1.0"
    threads = [threading.Thread(target=first.serve_forever, args=(0.01,))]
    threads.append(threading.Thread(target=restart))
    for thread in threads:
        thread.start()
    try:
        code, said = extracted(first.url)
    finally:
        if second:
            second[0].shutdown()
            second[0].server_close()
        for thread in threads:
            thread.join()
    assert code == ExitCode.CERTIFIED, said
    assert "no connection any more" in said
    assert "waiting, up to 60 s in all" in said
    assert len(second[0].asked) > 3


def test_patience_counts_time_for_what_is_away_and_attempts_for_the_rest():
    away = UnsentError("refused")
    spell = Spell(Patience(), Patience().seconds(has_replied=True))
    assert all(spell.goes_on(away) for _ in range(50))
    spell.began -= 61.0
    assert not spell.goes_on(away)
    assert not spell.was_sent
    spell = Spell(Patience(), 60.0)
    assert [spell.goes_on(PassingError("reset")) for _ in range(6)] == [True] * 5 + [False]
    # An address that never replied is told soon, unless it is to be waited for.
    assert Patience().seconds(has_replied=False) == 3.0
    assert Patience("5min").seconds(has_replied=False) == 300.0
    assert Patience("5min").longest == 300.0
    assert seconds_of("retry_for", "90") == seconds_of("retry_for", "1.5min") == 90.0
    with pytest.raises(InputError, match="retry_for must be like 60s"):
        Patience("soon")


def test_retry_for_that_is_none_is_exit_2(server):
    code, said = extracted(server.url, "--retry-for", "soon")
    assert code == ExitCode.USAGE
    assert "--retry-for must be like 60s, 5min or 1h, got 'soon'" in said


# -- wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_endpoint_that_contradicts_itself_is_called_that(seed):
    asked = []

    def wrong_now_and_then(rows):
        asked.append(len(rows))
        return NETWORK(rows) * (1.01 if len(asked) % 10 == 0 else 1.0)

    with running(JsonServer(wrong_now_and_then)) as server:
        code, said = extracted(server.url, "--seed", seed, "--max-seconds", 20)
    assert code == ExitCode.NOT_CERTIFIED
    assert "not continuous" not in said
    assert "the target contradicts itself" in said
    assert sum(asked) < 6000


def test_steps_are_still_called_discontinuous():
    steps = revelu.zoo.random_network([3, 4, 1], seed=1)
    found = revelu.extract(lambda X: np.sign(X[:, :1]) + steps(X), dim_in=3, max_seconds=20)
    assert found.status is revelu.Status.NOT_IN_CLASS
    assert "not continuous" in " ".join(found.evidence)


def test_authorisation_names_every_place_of_a_key(server):
    server.script = ["status 401"]
    code, said = extracted(server.url)
    assert code == ExitCode.TARGET
    assert "--key-env VARIABLE or --header 'NAME: $VARIABLE'" in said
    assert "REVELU_AUTHORIZATION" in said


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate by openssl")
def test_certificate_that_nobody_signed_fails_at_once(tmp_path):
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = ["-x509", *key, "-keyout", "key.pem", "-out", "own.pem", "-subj", "/CN=127.0.0.1"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", "req", *made], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "own.pem", tmp_path / "key.pem")
    connections = []

    class Counting(JsonServer):
        def get_request(self):
            connection, address = super().get_request()
            connections.append(address)
            return context.wrap_socket(connection, server_side=True), address

    with running(Counting(NETWORK)) as server:
        url = server.url.replace("http://", "https://")
        code, said = extracted(url)
        assert code == ExitCode.TARGET
        assert "its certificate is not trusted: self-signed certificate" in said
        assert "--ca-cert FILE.pem" in said
        assert len(connections) == 1
        assert extracted(url, "--ca-cert", tmp_path / "own.pem")[0] == ExitCode.CERTIFIED


# -- what is written ---------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    NETWORK.save("truth.npz")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.mark.parametrize("command", [["extract"], ["span"]])
def test_failed_run_replaces_no_good_file(folder, command):
    good = folder / "found.npz"
    assert run(*command, "truth.npz", "-o", good, "-q").exit_code == 0
    before = good.read_bytes()
    for name in ("found.partial.npz", "found.partial-2.npz"):
        done = run(*command, "demo:digits", "--budget", 300, "-o", good, "-q")
        assert done.exit_code == ExitCode.EXHAUSTED
        assert good.read_bytes() == before
        assert f"not certified: it is in {folder / name} (--force replaces)" in done.stderr
        assert (folder / name).is_file()
    assert run(*command, "demo:digits", "--budget", 300, "-o", good, "--force").exit_code == 3
    assert good.read_bytes() != before
    # What is certified replaces a file as any program does.
    assert run(*command, "truth.npz", "-o", good, "-q").exit_code == 0
    assert good.read_bytes() == before


def test_failed_run_replaces_no_file_that_is_asked(folder):
    (folder / "truth.npz").rename(folder / "a.partial.npz")
    (folder / "a.npz").write_bytes(b"mine")
    done = run("extract", "a.partial.npz", "--budget", 120, "-o", "a.npz", "--json")
    assert done.exit_code == ExitCode.EXHAUSTED
    assert (folder / "a.npz").read_bytes() == b"mine"
    assert revelu.load("a.partial.npz") == NETWORK
    assert '"outputs": ["a.partial-2.npz"]' in done.stdout or '"outputs": []' in done.stdout


def test_failed_learning_replaces_no_good_file(folder):
    rng = np.random.default_rng(0)
    np.savez("noise.npz", X=rng.standard_normal((400, 3)), y=rng.standard_normal(400))
    (folder / "l.npz").write_bytes(b"mine")
    done = run("learn", "noise.npz", "-o", "l.npz", "--neurons", 1)
    assert done.exit_code == ExitCode.NOT_CERTIFIED
    assert (folder / "l.npz").read_bytes() == b"mine"


def test_network_is_kept_elsewhere_where_its_folder_takes_nothing(folder, monkeypatch):
    """The folder is gone by the time that the network is there."""
    (folder / "gone.py").write_text(
        "import os, revelu\n"
        "N = revelu.load('truth.npz')\n"
        "def f(X):\n"
        "    if os.path.isdir('out'):\n"
        "        os.rmdir('out')\n"
        "    return N(X)\n"
    )
    (folder / "out").mkdir()
    (folder / "spare").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder / "spare"))
    monkeypatch.syspath_prepend(str(folder))
    done = run("extract", "gone:f", "--trust", "--dim-in", 6, "-o", "out/n.npz", "-q")
    assert done.exit_code == ExitCode.USAGE
    assert "out/n.npz: the folder out does not exist" in done.stderr
    assert f"it is in {folder / 'spare' / 'n.npz'}" in done.stderr
    found = revelu.load(folder / "spare" / "n.npz")
    assert revelu.align(found, NETWORK).max_parameter_error < 1e-8


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit of the size of files")
@pytest.mark.parametrize(("more", "name"), [(["-q"], "n.npz"), (["--json"], "n.onnx")])
def test_network_that_no_folder_takes_is_printed(folder, more, name):
    """No file takes a byte, as on disks that are full."""
    command = (
        f"ulimit -f 0; exec {sys.executable} -m revelu extract truth.npz -o {name} --checks 60"
    )
    done = subprocess.run(
        ["sh", "-c", " ".join([command, *more])], capture_output=True, text=True, check=False
    )
    assert done.returncode == ExitCode.USAGE
    assert not (folder / name).exists()
    said = f"{name}: cannot be written: File too large; no other folder takes it, and it is printed"
    assert said in " ".join((done.stderr + done.stdout).split())
    text = done.stderr.partition(f"revelu: {name}, for base64 -d:\n")[2]
    (folder / name).write_bytes(base64.b64decode(text))
    found = revelu.load(folder / name)
    assert revelu.align(found, NETWORK).max_parameter_error < 1e-8
    if more == ["--json"]:
        assert json.loads(done.stdout)["status"] == "recovered"


# -- words that one guesses --------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_journal_is_shown_by_its_name_alone():
    run("extract", "truth.npz", "--journal", "run.db", "-q")
    shown = run("journal", "run.db")
    assert shown.exit_code == 0
    assert shown.stdout == run("journal", "show", "run.db").stdout
    assert "by phase" in shown.stdout
    assert run("journal", "--json", "run.db").stdout.startswith('{"schema"')
    assert "there is no such file" in run("journal", "other.db").stderr


@pytest.mark.usefixtures("folder")
def test_lost_file_of_a_served_model_is_made_again():
    """Names, shapes and types are those that the server says, and inputs of ours are checked."""
    onnx = pytest.importorskip("onnx")
    np.savetxt("X.csv", np.eye(6), delimiter=",", header="a,b,c,d,e,f", comments="")
    with serving(NETWORK) as server:
        done = run("extract", server.url, "--like-input", "-o", "again.onnx")
        assert done.exit_code == 0, done.output
        checked = run("verify", "again.onnx", server.url, "--inputs", "X.csv")
    assert checked.exit_code == 0, checked.output
    assert "all 6 inputs given agree" in " ".join(checked.stdout.split())
    graph = onnx.load("again.onnx").graph
    named = [
        (one.name, one.type.tensor_type.elem_type, one.type.tensor_type.shape.dim[1].dim_value)
        for one in (*graph.input, *graph.output)
    ]
    double = onnx.TensorProto.DOUBLE
    assert named == [("input", double, 6), ("output", double, 2)]


def test_data_say_how_many_inputs_there_are(folder, monkeypatch):
    (folder / "own.py").write_text("import revelu\nf = revelu.load('truth.npz').__call__\n")
    rows = np.random.default_rng(0).standard_normal((50, 6))
    np.savetxt("X.csv", rows, delimiter=",", header="a,b,c,d,e,f", comments="")
    monkeypatch.syspath_prepend(str(folder))
    done = run("extract", "own:f", "--trust", "--like", "X.csv", "-q")
    assert done.exit_code == 0, done.output


def test_other_addresses_have_no_input_to_be_like(server):
    code, said = extracted(server.url, "--like-input")
    assert code == ExitCode.USAGE
    assert "served models whose metadata have names, shapes and types" in said
