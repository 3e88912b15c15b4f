"""Served models: time beside the queries' own, rows a second, what a journal costs, kills.

pip install ".[bench]"
python benchmarks/served.py --mlserver PYTHON   with the Python of an environment that has
                                                mlserver==1.7.1 and mlserver-sklearn==1.7.1
python benchmarks/served.py                     without the row of MLServer
python benchmarks/served.py --row journal       mlserver, rows, journal or kills alone
python benchmarks/served.py --write             and keep the table on its page
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from runner import Line, Table, main

import revelu
from revelu.adapters.http import HttpTarget
from revelu.oracle import Journal
from revelu.tasks.serve import ModelServer

FIRST_SEED = 20_000_000

FIT = """
import sys
from pathlib import Path

import joblib
import numpy as np
from sklearn.neural_network import MLPRegressor

rng = np.random.default_rng(int(sys.argv[1]))
X, Y = rng.standard_normal((500, 64)), rng.standard_normal((500, 10))
model = MLPRegressor(hidden_layer_sizes=[32], random_state=int(sys.argv[1]), max_iter=20, tol=10)
joblib.dump(model.fit(X, Y), "model.joblib")
"""


def seconds_of(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds on the clock, and of this process's CPU."""
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - cpu


def network_of(recovery: revelu.Recovery) -> revelu.Network:
    """The network of a recovery that is certified."""
    if recovery.network is None or recovery.status is not revelu.Status.RECOVERED:
        raise RuntimeError(f"{recovery.status.value}: {'; '.join(recovery.evidence)}")
    return recovery.network


def line(what: str, figure: str, measured: str, bar: str) -> Line:
    """One line of the table."""
    return {"what": what, "figure": figure, "measured": measured, "bar": bar}


# -- MLServer ----------------------------------------------------------------------------


@contextlib.contextmanager
def mlserver(python: Path, seed: int) -> Iterator[tuple[str, int]]:
    """Serve a 64-32-10 regressor; its address and its process."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        fit = [python, "-c", FIT, str(seed)]
        subprocess.run(fit, cwd=folder, env=environment, check=True)  # noqa: S603
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in sockets]
        for one in sockets:
            one.close()
        names = ("http_port", "grpc_port", "metrics_port")
        settings = {"host": "127.0.0.1", "parallel_workers": 0, "debug": False}
        settings |= dict(zip(names, ports, strict=True))
        (folder / "settings.json").write_text(json.dumps(settings))
        model = {"name": "m", "implementation": "mlserver_sklearn.SKLearnModel"}
        model["parameters"] = {"uri": "./model.joblib"}  # type: ignore[assignment]
        (folder / "model-settings.json").write_text(json.dumps(model))
        start = [python, "-c", "from mlserver.cli import main; main()", "start", "."]
        log = stack.enter_context((folder / "log").open("w"))
        process = subprocess.Popen(start, cwd=folder, env=environment, stdout=log, stderr=log)  # noqa: S603
        stack.callback(process.wait, 60)
        stack.callback(process.terminate)
        wait_for(f"http://127.0.0.1:{ports[0]}/v2/models/m/ready")
        yield f"http://127.0.0.1:{ports[0]}/v2/models/m", process.pid


def wait_for(url: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):  # noqa: S310
            return
        time.sleep(0.1)
    raise TimeoutError(url)


def cpu_of(process: int) -> float:
    """CPU seconds of a process so far, where the system shows them as Linux does."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def beside_queries(n_models: int, python: Path) -> list[Line]:
    """How much longer an extraction takes than its queries."""
    clocks, cpus, shared, queries, local = [], [], [], [], []
    for seed in range(FIRST_SEED, FIRST_SEED + n_models):
        with mlserver(python, seed) as (url, process):
            target = HttpTarget(url, 64)
            batches: list[np.ndarray] = []

            def recording(
                X: np.ndarray, target: HttpTarget = target, batches: list[np.ndarray] = batches
            ) -> np.ndarray:
                batches.append(X)
                return target(X)

            found = revelu.extract(recording, dim_in=64, seed=seed)
            turns: dict[str, list[tuple[float, float]]] = {"one": [], "two": [], "alone": []}
            works = {
                "one": lambda t=target, s=seed: revelu.extract(t, seed=s),
                "two": lambda t=target, s=seed: revelu.extract(t, seed=s, executor=pool),
                "alone": lambda t=target, b=batches: [t(X) for X in b],
            }
            # In turns, for neither the server nor the machine is always as fast.
            with ThreadPoolExecutor(2) as pool:
                for turn in tuple(works) * 5:
                    before = cpu_of(process)
                    clock, cpu = seconds_of(works[turn])
                    turns[turn].append((clock, cpu + cpu_of(process) - before))
            local.append(revelu.extract(network_of(found), seed=seed).ledger.n_queries)
        totals = {turn: np.sum(pairs, axis=0) for turn, pairs in turns.items()}
        clocks.append(totals["one"][0] / totals["alone"][0])
        cpus.append(totals["one"][1] / totals["alone"][1])
        shared.append(totals["two"][0] / totals["alone"][0])
        queries.append(found.ledger.n_queries)
        print(
            f"  {seed}: CPU {cpus[-1]:.2f}, clock {clocks[-1]:.2f}, with two workers "
            f"{shared[-1]:.2f} times {totals['alone'][0] / 5:.2f} s",
            flush=True,
        )
    return [
        line(
            f"64-32-10 served by MLServer 1.7.1, {n_models} models",
            "extraction over its queries alone: CPU seconds of client and server, median and "
            "largest; seconds on the clock, median; the same with `--workers 2`",
            f"{statistics.median(cpus):.2f}, {max(cpus):.2f}; {statistics.median(clocks):.2f}; "
            f"{statistics.median(shared):.2f}",
            "≤ 1.5",
        ),
        line(
            "the same",
            "queries, median, and of a local target",
            f"{statistics.median(queries):,.0f}, {statistics.median(local):,.0f}",
            "alike",
        ),
    ]


# -- our server --------------------------------------------------------------------------


def rows_a_second(n_requests: int, _python: Path | None) -> list[Line]:
    """Rows that our server answers, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        revelu.zoo.random_network([64, 32, 10], seed=FIRST_SEED).save(path)
        command = [sys.executable, "-m", "revelu", "serve", str(path), "--port", "0", "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
        try:
            target = HttpTarget(json.loads(next(iter(process.stdout or ())))["url"])
            X = np.random.default_rng(FIRST_SEED).standard_normal((1000, 64))
            target(X)
            rates = []
            for _ in range(5):
                clock, _ = seconds_of(lambda: [target(X) for _ in range(n_requests)])
                rates.append(1000 * n_requests / clock)
                print(f"  {rates[-1]:,.0f} rows/s", flush=True)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    return [
        line(
            "`revelu serve`, 1,000 rows of 64 FP64 inputs a request, binary, one connection",
            "rows a second, median and least of 5",
            f"{statistics.median(rates):,.0f}, {min(rates):,.0f}",
            "≥ 20,000",
        )
    ]


# -- the journal -------------------------------------------------------------------------


def journal_costs(n_networks: int, _python: Path | None) -> list[Line]:
    """What a journal adds to a local extraction, and how long a million rows take."""
    shares, clocks = [], []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(FIRST_SEED, FIRST_SEED + n_networks):
            network = revelu.zoo.random_network([784, 128, 1], seed=seed)
            revelu.extract(network, seed=seed)  # warms up
            plain, kept = [], []
            for i in range(3):
                plain.append(seconds_of(lambda n=network, s=seed: revelu.extract(n, seed=s)))
                path = Path(folder) / f"{seed}-{i}.db"
                kept.append(seconds_of(lambda n=network, s=seed, p=path: journaled(n, s, p)))
            (clock, cpu), (clock_kept, cpu_kept) = (
                [min(column) for column in zip(*pairs, strict=True)] for pairs in (plain, kept)
            )
            shares.append(cpu_kept / cpu - 1)
            clocks.append(clock_kept / clock - 1)
            print(f"  {seed}: CPU {shares[-1]:+.1%}, clock {clocks[-1]:+.1%}", flush=True)
        clock, cpu = seconds_of(lambda: a_million(Path(folder) / "million.db"))
        size = (Path(folder) / "million.db").stat().st_size
    more = f"{statistics.median(shares):+.1%}, {statistics.median(clocks):+.1%}"
    return [
        line(
            f"journal of a local 784-128-1, {n_networks} networks",
            "more CPU seconds, more seconds on the clock, median",
            more,
            "< 20%",
        ),
        line(
            "journal of 1e6 rows of 784 inputs and one answer, batches of 1,024",
            "seconds on the clock, CPU seconds; bytes a row",
            f"{clock:.0f}, {cpu:.1f}; {size / 1e6:.1f}",
            "< 60 s",
        ),
    ]


def journaled(network: revelu.Network, seed: int, path: Path) -> None:
    with revelu.open_oracle(network, journal=path) as oracle:
        network_of(revelu.extract(oracle, seed=seed))


def a_million(path: Path) -> None:
    X = np.random.default_rng(FIRST_SEED).standard_normal((1024, 784))
    journal, left = Journal(path), 1_000_000
    while left:
        X[0, 0] = left  # another batch every time
        batch = X[:left]
        journal.add(batch, "recover", batch[:, :1])
        left -= len(batch)
    journal.close()


# -- kills -------------------------------------------------------------------------------


def deadly_server(network: revelu.Network, pipe: Connection) -> None:
    """Serve; kill who asks after so many requests, and say what was asked."""
    asked: list[bytes] = []
    victim, after = 0, -1

    def ask(X: np.ndarray) -> np.ndarray:
        asked.append(X.tobytes())
        if len(asked) - 1 == after:
            os.kill(victim, signal.SIGKILL)
        return network(X)

    server = ModelServer(ask, network.dim_in, "m")
    server.timeout = 0.02
    pipe.send(server.url)
    while True:
        server.handle_request()
        if pipe.poll():
            victim, after = pipe.recv()
            pipe.send(list(asked))
            asked.clear()


def extraction(url: str, folder: Path, name: str, begin: Connection) -> None:
    begin.recv()
    with revelu.open_oracle(url, journal=folder / f"{name}.db", batch=16) as oracle:
        recovery = revelu.extract(oracle, seed=FIRST_SEED, checks=500)
    network_of(recovery).save(folder / f"{name}.npz")


def kills(n_kills: int, _python: Path | None) -> list[Line]:
    """Kill an extraction at many places, and let it end."""
    context = multiprocessing.get_context("fork")
    network = revelu.zoo.random_network([8, 10, 1], seed=FIRST_SEED)
    ours, theirs = context.Pipe()
    server = context.Process(target=deadly_server, args=(network, theirs), daemon=True)
    server.start()
    url = ours.recv()
    lost = twice = different = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def run(journal: str, after: int) -> list[bytes]:
            begin, begun = context.Pipe()
            process = context.Process(target=extraction, args=(url, folder, journal, begun))
            process.start()
            ours.send((process.pid, after))
            ours.recv()
            begin.send(True)
            process.join()
            ours.send((0, -1))
            asked: list[bytes] = ours.recv()
            return asked

        whole = run("whole", -1)
        for i, after in enumerate(np.linspace(0, len(whole) - 1, n_kills).round().astype(int)):
            before = run(f"{i}", int(after))
            kept = Journal(folder / f"{i}.db")
            lost += sum(len(b) for b in before[:after]) // (8 * 8) - kept.n_queries
            kept.close()
            later = run(f"{i}", -1)
            # One batch was in flight, and eight rows are asked again on purpose.
            again = Counter(before + later) - Counter(whole) - Counter([before[after]])
            twice += max(again.total() - 1, 0)
            same = revelu.load(folder / f"{i}.npz") == revelu.load(folder / "whole.npz")
            different += not same
            print(f"  killed after {after} of {len(whole)} requests: same {same}", flush=True)
    server.kill()
    return [
        line(
            f"`kill -9` at {n_kills} places of one extraction",
            "answers lost, batches asked twice but the one in flight, other networks",
            f"{lost}, {twice}, {different}",
            "0, 0, 0",
        )
    ]


@dataclass(frozen=True)
class Row:
    """A part of the table: what measures it, of how many, and MLServer's Python."""

    part: str
    measure: Callable[[int, Path | None], list[Line]]
    n: int
    python: Path | None = None
    networks: int = 1

    @property
    def name(self) -> str:
        """The part, and of how many."""
        return f"{self.part}, {self.n}"


def one(row: Row, _seed: int, _limit: float | None) -> list[Line]:
    """Measure a part."""
    return row.measure(row.n, row.python)


def lines(found: Mapping[Row, list[list[Line]]]) -> Iterator[Line]:
    """All of them."""
    return (line for runs in found.values() for some in runs for line in some)


def rows(given: argparse.Namespace) -> list[Row | None]:
    """All parts; less of each in a quick run, and MLServer's only where it is."""
    few, python = given.quick, given.mlserver and given.mlserver.absolute()
    return [
        Row("mlserver", beside_queries, 3 if few else 5, python) if python else None,
        Row("rows", rows_a_second, 20 if few else 100),
        Row("journal", journal_costs, 2 if few else 5),
        Row("kills", kills, 5 if few else 100),
    ]


TABLE = Table(
    "served",
    __doc__,
    rows,
    one,
    lines,
    first_seed=FIRST_SEED,
    named_by=2,
    note=lambda _: f"{os.cpu_count()} cores.",
    options=lambda parser: parser.add_argument("--mlserver", type=Path, metavar="PYTHON"),
)

if __name__ == "__main__":
    main(TABLE)
