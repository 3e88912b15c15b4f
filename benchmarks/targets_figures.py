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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from json_serving import JsonServer, running

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


def table() -> tuple[str, bool]:
    """Return the table of figures, and whether each is within its bar."""
    lines = ["| what | figure | measured | bar |", "|---|---|---|---|"]
    ratios, same = [], True
    for seed in range(FIRST_SEED, FIRST_SEED + 5):
        ratio, is_same = beside_v2(seed, [64, 32, 10])
        print(f"  {seed}: {ratio:.2f}, the same {is_same}", flush=True)
        ratios.append(ratio)
        same = same and is_same
    name = "64-32-10 of `revelu serve`, 5 networks: a template beside version 2, which is binary"
    measured = f"{statistics.median(ratios):.2f}, {max(ratios):.2f}"
    lines.append(f"| {name} | queries and networks | {'the same' if same else 'DIFFER'} | equal |")
    lines.append(
        f"| the same | seconds on the clock, median and largest ratio | {measured} | ≤ 1.3 |"
    )
    shares = []
    for widths in ([10, 16, 1], [64, 32, 10]):
        share, audited, extracted = audit_share(widths)
        print(f"  {widths}: {audited:,} over {extracted:,}", flush=True)
        shares.append(share)
        shown = "-".join(map(str, widths))
        lines.append(
            f"| {shown} behind a template: a whole audit beside one extraction with its 3,000 "
            f"checks | queries | {audited:,} and {extracted:,}: {share:.2f} | ≤ 1.5 |"
        )
    is_right = same and statistics.median(ratios) <= 1.3 and max(shares) <= 1.5
    note = f"Seeds from {FIRST_SEED}; the seconds are sums of three extractions each, in turns."
    return "\n".join([*lines, "", note]), is_right


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


def beside_v2(seed: int, widths: list[int]) -> tuple[float, bool]:
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


def audit_share(widths: list[int]) -> tuple[float, int, int]:
    """Queries of an audit over those of an extraction, and both."""
    network = revelu.zoo.random_network(widths, seed=FIRST_SEED)
    with served(network) as host:
        endpoint = Endpoint(
            f"{host}/v1/models/m:predict", ROWS, "$.predictions", dim_in=network.dim_in
        )
        one = revelu.extract(endpoint, seed=FIRST_SEED).ledger.n_queries
        whole = revelu.audit(endpoint, seed=FIRST_SEED, max_seconds=120).ledger.n_queries
    return whole / one, whole, one


def faults() -> tuple[str, bool]:
    """Return the table of faults, and whether each ended as it should."""
    lines = ["| a server's fault | now and then | from some moment on |", "|---|---|---|"]
    is_right = True
    for words, fault in FAULTS.items():
        passing = [None, *[fault, None, None] * 6]
        ends = [outcome(passing), outcome([None] * 4 + [fault] * 200)]
        print(f"  {words}: {ends}", flush=True)
        lines.append(f"| {words} | {' | '.join(ends)} |")
        is_right = is_right and all(end.startswith(("recovered", "stops")) for end in ends)
    note = "Of 6-5-2 in float64, by a template, with six faults or two hundred; time-outs of 1 s."
    return "\n".join([*lines, "", note]), is_right


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


def workers(n: int = 4, seconds: float = 0.005) -> tuple[str, bool]:
    """Return the table of workers at a server of ``seconds`` a row, and whether it is as it should.

    Each is as opened: what importing and starting takes is not counted.
    """
    import distributed  # noqa: PLC0415 - of this part alone

    network = revelu.zoo.random_network([6, 5, 2], seed=FIRST_SEED)

    def slow(X: FloatArray) -> FloatArray:
        time.sleep(seconds * len(X))
        return network(X)

    found = {}
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
            found[name] = one, took
            print(f"  {name}: {took:.1f} s, {one.ledger.n_queries:,} queries", flush=True)
    alone, slowest = found["alone"]
    lines = ["| who asks | queries | seconds | times as fast | bar |", "|---|---|---|---|---|"]
    is_right = True
    for (name, (one, took)), bar in zip(found.items(), (1.0, 3.2, 2.8), strict=True):
        apart = revelu.align(one.network, alone.network).max_parameter_error
        is_right &= slowest / took >= bar and apart < 1e-8
        is_right &= abs(one.ledger.n_queries / alone.ledger.n_queries - 1.0) <= 0.01
        lines.append(
            f"| {name} | {one.ledger.n_queries:,} | {took:.1f} | {slowest / took:.1f} | ≥ {bar:g} |"
        )
    note = f"6-5-2 behind a template, {1000 * seconds:g} ms a row; the networks are the same."
    return "\n".join([*lines, "", note]), is_right
