"""What a template costs beside the protocol, an audit beside an extraction, what comes of faults,
and what workers gain; for benchmarks/targets.py.
"""  # noqa: D205 - a sentence of two lines

import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from json_serving import JsonServer, running
from runner import Line, Named, shape

import revelu
from revelu import Endpoint, Recovery, Status
from revelu.adapters.executors import executor
from revelu.errors import TargetError
from revelu.types import FloatArray

FIRST_SEED = 27_000_000

ROWS = '{"instances": $rows}'
FEATURES = '{"features": $rows}'

# What a server does wrong, and how `JsonServer` is told to.
FAULTS = {
    "the connection is reset": "reset",
    "the connection ends within the answer": "cut",
    "429": "status 429",
    "500": "status 500",
    "503": "status 503",
    "an answer that is cut off": "truncated",
    "a slow drip": "drip",
    "a page of HTML, 200": "html 200",
    "a page of HTML, 502": "html 502",
    "NaN among the numbers": "nan",
    "another schema": "renamed",
    "an error in place of the answer": 'json {"error": "overloaded"}',
}


@dataclass(frozen=True)
class Figure:
    """A template beside version 2, or a whole audit beside an extraction, of a shape."""

    widths: tuple[int, ...]
    networks: int

    @property
    def is_audit(self) -> bool:
        """An audit is measured once."""
        return self.networks == 1

    @property
    def name(self) -> str:
        """Which of both, and the shape."""
        return f"{'audit' if self.is_audit else 'template'} {shape(self.widths)}"


FIGURES = (Figure((64, 32, 10), 5), Figure((10, 16, 1), 1), Figure((64, 32, 10), 1))


def figure(row: Figure, seed: int, _limit: float | None) -> list[float]:
    """Measure a ratio, and whether the same is found; or queries of an audit and an extraction."""
    return [*(audit_share(row.widths) if row.is_audit else beside_v2(seed, row.widths))]


def figure_lines(found: Mapping[Figure, list[list[float]]]) -> Iterator[Line]:
    """What was measured, and its bar."""
    for row, runs in found.items():
        name = shape(row.widths)
        if row.is_audit:
            [(audited, extracted)] = runs
            what = f"{name} behind a template: a whole audit beside one extraction"
            measured = f"{audited:,} and {extracted:,}: {audited / extracted:.2f}"
            yield _line(f"{what} with its 3,000 checks", "queries", measured, "≤ 1.5")
            continue
        ratios, same = zip(*runs, strict=True)
        what = f"{name} of `revelu serve`, {len(runs)} networks: a template beside version 2"
        is_same = "the same" if all(same) else "DIFFER"
        measured = f"{statistics.median(ratios):.2f}, {max(ratios):.2f}"
        yield _line(f"{what}, which is binary", "queries and networks", is_same, "equal")
        seconds = "seconds on the clock, median and largest ratio"
        yield _line("the same", seconds, measured, "≤ 1.3")


def _line(what: str, figure: str, measured: str, bar: str) -> Line:
    return {"what": what, "figure": figure, "measured": measured, "bar": bar}


@contextmanager
def served(network: revelu.Network) -> Iterator[str]:
    """Serve a network by `revelu serve` in a process of its own; gives the server's address."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.npz"
        network.save(path)
        command = [sys.executable, "-m", "revelu", "serve", f"{path}", "--port", "0", "--json"]
        process = subprocess.Popen(  # noqa: S603 - this program
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            yield json.loads(next(iter(process.stdout or ())))["url"].split("/v2")[0]
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def beside_v2(seed: int, widths: tuple[int, ...]) -> tuple[float, bool]:
    """How many times as long a template takes, and whether it finds and asks the same."""
    network = revelu.zoo.random_network(widths, seed=seed)
    with served(network) as host:
        template = Endpoint(
            f"{host}/v1/models/m:predict", ROWS, "$.predictions", dim_in=network.dim_in
        )
        seconds = {"v2": 0.0, "template": 0.0}
        found: dict[str, Recovery] = {}
        # In turns, for the machine is not always as fast; the first of each warms up.
        for turn in range(4):
            for name, target in (("v2", f"{host}/v2/models/m"), ("template", template)):
                began = time.perf_counter()
                found[name] = revelu.extract(target, seed=seed)
                seconds[name] += time.perf_counter() - began if turn else 0.0
    one, other = found.values()
    is_same = one.network == other.network and one.ledger == other.ledger
    is_same = is_same and one.status is Status.RECOVERED
    return seconds["template"] / seconds["v2"], is_same


def audit_share(widths: tuple[int, ...]) -> tuple[int, int]:
    """Queries of an audit, and of an extraction."""
    network = revelu.zoo.random_network(widths, seed=FIRST_SEED)
    with served(network) as host:
        endpoint = Endpoint(
            f"{host}/v1/models/m:predict", ROWS, "$.predictions", dim_in=network.dim_in
        )
        one = revelu.extract(endpoint, seed=FIRST_SEED).ledger.n_queries
        whole = revelu.audit(endpoint, seed=FIRST_SEED, max_seconds=120).ledger.n_queries
    return whole, one


def fault_ends(row: Named, _seed: int, _limit: float | None) -> list[str]:
    """How extractions end with six faults, and with two hundred."""
    fault = FAULTS[row.name]
    return [outcome([None, *[fault, None, None] * 6]), outcome([None] * 4 + [fault] * 200)]


def fault_line(row: Named, runs: list[list[str]]) -> Line:
    """Both."""
    [(passing, staying)] = runs
    return {"a server's fault": row.name, "now and then": passing, "from some moment on": staying}


def outcome(script: list[str | None]) -> str:
    """How an extraction ends whose server does this."""
    network = revelu.zoo.random_network([6, 5, 2], seed=FIRST_SEED)
    with running(JsonServer(network, script=script)) as server:
        endpoint = Endpoint(server.url, FEATURES, dim_in=6, batch=64, timeout=1.0, retry_for=3)
        try:
            found = revelu.extract(endpoint, seed=FIRST_SEED)
        except TargetError as error:
            line = f"{error}".removeprefix(server.url).strip(" :")
            short = line if len(line) < 80 else f"{line[:80].rsplit(' ', 1)[0]} ..."
            return f"stops: {short}" if "\n" not in line else "SEVERAL LINES"
    if found.network is None or found.status is not Status.RECOVERED:
        return f"{found.status.value.upper()}"
    error = revelu.align(found.network, network).max_parameter_error
    return "recovered" if error < 1e-6 else f"WRONG by {error:.0e}"


def workers(
    _row: Named, _seed: int, _limit: float | None, n: int = 4, seconds: float = 0.005
) -> dict[str, list[float]]:
    """Queries and seconds at a server of ``seconds`` a row, and how far networks are apart.

    Each is as opened: what importing and starting takes is not counted.
    """
    import distributed  # noqa: PLC0415 - of this part alone

    network = revelu.zoo.random_network([6, 5, 2], seed=FIRST_SEED)

    def slow(X: FloatArray) -> FloatArray:
        time.sleep(seconds * len(X))
        return network(X)

    found: dict[str, list[float]] = {}
    alone = None
    with (
        running(JsonServer(slow)) as server,
        distributed.LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=n, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
    ):
        ways = {
            "alone": {},
            f"{n} threads": {"workers": n},
            f"{n} Dask workers": {"dask": cluster.scheduler_address},
        }
        for name, way in ways.items():
            with executor(**way) as pool:
                # The first one has workers import what they need.
                for checks in (60, 3000):
                    endpoint = Endpoint(server.url, FEATURES, dim_in=6)
                    began = time.perf_counter()
                    with revelu.open_oracle(endpoint, executor=pool) as oracle:
                        one = revelu.extract(oracle, seed=FIRST_SEED, checks=checks)
                    took = time.perf_counter() - began
            alone = alone or one.network
            apart = float(revelu.align(one.network, alone).max_parameter_error)
            found[name] = [one.ledger.n_queries, took, apart]
    return found


def worker_lines(found: Mapping[Named, list[dict[str, list[float]]]]) -> Iterator[Line]:
    """How many times as fast each way is."""
    for [run] in found.values():
        slowest = run["alone"][1]
        for (name, (n_queries, took, _)), bar in zip(run.items(), (1.0, 3.2, 2.8), strict=True):
            yield {
                "who asks": name,
                "queries": f"{n_queries:,}",
                "seconds": f"{took:.1f}",
                "times as fast": f"{slowest / took:.1f}",
                "bar": f"≥ {bar:g}",
            }


def worker_note(found: Mapping[Named, list[dict[str, list[float]]]]) -> str:
    """Whether the networks are the same."""
    apart = max(way[2] for [run] in found.values() for way in run.values())
    same = "are the same" if apart < 1e-8 else f"DIFFER by {apart:.0e}"
    return f"6-5-2 behind a template, 5 ms a row; the networks {same}."
