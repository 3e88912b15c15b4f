"""What `revelu probe` says of services, and whether the command that it names works.

Each service answers on loopback; for benchmarks/targets.py, and tests/tasks/test_probe_services.py.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from json_serving import JobServer, JsonServer, Refused, running
from runner import Line, Named

import revelu
from revelu.oracle import softmax
from revelu.types import FloatArray

NETWORK = revelu.zoo.random_network([4, 3, 2], seed=5)
OF_THREE = revelu.zoo.random_network([2, 3, 3], seed=1)
ROWS = ("--request", '{"features": $rows}', "--dim-in", "4")
OF_TWO = ("--request", '{"features": $rows}', "--dim-in", "2")
OBJECTS = ("--request", '{"rows": $objects(a, b, c, d)}')

Run = Callable[[Sequence[str]], tuple[int, str, str]]


@dataclass(frozen=True)
class Service:
    """A service, what it is asked with, and how that is to end.

    Attributes
    ----------
    words : str
        What the probe, or the command that it names, has to say; empty where that recovers the
        network.
    script : tuple of str or None
        Faults, one for each request.
    profile : str
        Of an endpoint, in place of its address.
    """

    name: str
    make: Callable[[], JsonServer]
    options: tuple[str, ...] = ROWS
    words: str = ""
    script: tuple[str | None, ...] = ()
    profile: str = ""


def writing(
    write: Callable[[FloatArray], Any], kind: str = "", of: revelu.Network = NETWORK
) -> Callable[[], JsonServer]:
    """A server that writes its answers so."""
    return lambda: JsonServer(of, write=write, kind=kind)


def in_texts(form: Callable[[float], str]) -> Callable[[FloatArray], Any]:
    """Numbers as texts."""
    return lambda Y: {"y": [[form(y) for y in row] for row in Y.tolist()]}


def by_score(Y: FloatArray) -> Any:
    """Labels and scores, sorted by score."""
    rows = [dict(zip("abc", p, strict=True)) for p in softmax(Y).tolist()]
    return [
        [{"label": k, "score": row[k]} for k in sorted(row, key=row.__getitem__, reverse=True)]
        for row in rows
    ]


def lines(Y: FloatArray, separator: str) -> bytes:
    """A row a line."""
    return "\n".join(separator.join(map(repr, y)) for y in Y.tolist()).encode()


def columns_of_a_table(Y: FloatArray) -> Any:
    """As pandas writes them."""
    return {f"out{k}": {f"{i}": y for i, y in enumerate(c)} for k, c in enumerate(Y.T.tolist())}


def refusing(is_refused: Callable[[list[Any]], bool], status: int, said: str) -> Callable[..., Any]:
    """A server that refuses some rows."""

    def read(asked: Any) -> Any:
        named = "rows" in asked
        rows = [[row[k] for k in "abcd"] for row in asked["rows"]] if named else asked["features"]
        if is_refused(rows):
            raise Refused(status, json.dumps({"detail": said}).encode())
        return rows

    return lambda: JsonServer(NETWORK, read)


def inside(limit: float) -> Callable[[FloatArray], FloatArray]:
    """A network that answers null outside of limits, as NaN."""
    return lambda X: np.where(np.abs(X).max(axis=1, keepdims=True) > limit, np.nan, NETWORK(X))


def contradicting() -> JsonServer:
    """Every tenth request is answered by another model."""
    asked: list[int] = []

    def answer(X: FloatArray) -> FloatArray:
        asked.append(len(X))
        return NETWORK(X) * (1.01 if len(asked) % 10 == 0 else 1.0)

    return JsonServer(answer)


def job(_: str = "") -> JobServer:
    """Answers at another address."""
    return JobServer(NETWORK)


def never_the_same(Y: FloatArray) -> Any:
    """Identifiers."""
    return {"id": [os.urandom(6).hex() for _ in Y]}


def flowers(Y: FloatArray) -> Any:
    """Class names."""
    return {"label": [("setosa", "virginica", "versicolor")[i] for i in Y.argmax(axis=1)]}


_JOB = (
    'request = \'{"features": $rows}\'\ndim_in = 4\npoll = "/jobs/{$.id}"\n'
    'done = "$.state == done"\nanswer = "$.result.prediction"\n'
)

SHAPES = (
    Service(
        "JSON inside a string",
        writing(lambda Y: {"statusCode": 200, "body": json.dumps({"prediction": Y.tolist()})}),
    ),
    Service("columns", writing(lambda Y: {"low": Y[:, 0].tolist(), "top": Y[:, 1].tolist()})),
    Service("columns of a table", writing(columns_of_a_table)),
    Service("labels sorted by score", writing(by_score, of=OF_THREE), OF_TWO),
    Service("CSV", writing(lambda Y: lines(Y, ","), "text/csv")),
    Service(
        "lines of JSON",
        writing(
            lambda Y: b"\n".join(b"%s" % json.dumps(y).encode() for y in Y.tolist()),
            "application/x-ndjson",
        ),
    ),
    Service("plain text", writing(lambda Y: lines(Y, ","), "text/plain")),
    Service("named fields", refusing(lambda _: False, 400, ""), OBJECTS),
    Service("jobs, by a profile", job, (), profile=_JOB),
    Service("jobs, not said", job, words="(poll)"),
    Service("at most 100 rows", refusing(lambda r: len(r) > 100, 400, "at most 100 rows")),
    Service(
        "limits that are said",
        refusing(lambda r: bool(np.max(r) > 0.5), 422, "must be <= 0.5"),
    ),
    Service(
        "limits that show as null",
        lambda: JsonServer(
            inside(1.0),
            write=lambda Y: {"y": [[None if np.isnan(v) else v for v in y] for y in Y.tolist()]},
        ),
    ),
    Service(
        "whole numbers",
        refusing(
            lambda rows: any(type(row[1]) is float for row in rows),
            400,
            "column b: can not safely convert float64 to int64",
        ),
        OBJECTS,
    ),
    Service("answers beside other things", writing(lambda Y: {"took": 3, "y": Y.tolist()})),
    Service(
        "a path that leads nowhere",
        writing(lambda Y: {"result": {"scores": Y.tolist()}, "took": 3}),
        (*ROWS, "--answer", "$.result.score"),
    ),
    Service("amounts", writing(in_texts(lambda y: f"{1e3 * y:,.10f} EUR"))),
    Service("decimals after a comma", writing(in_texts(lambda y: f"{y:.12f}".replace(".", ",")))),
    Service(
        "accounts",
        writing(in_texts(lambda y: f"({-1e3 * y:,.9f})" if y < 0 else f"{1e3 * y:,.9f}")),
    ),
    Service("names of classes", writing(flowers, of=OF_THREE), OF_TWO),
    Service("identifiers", writing(never_the_same), words="--labels"),
)

SERVICES = (
    *(
        Service(name, lambda: JsonServer(NETWORK), script=(None, None, fault, None, fault))
        for name, fault in (
            ("a NaN now and then", "nan"),
            ("a 400 now and then", "status 400"),
            ("a 500 now and then", "status 500"),
            ("429, for a second", "status 429 1"),
            ("half an answer now and then", "cut"),
            ("a page of HTML now and then", "html 200"),
            ("resets now and then", "reset"),
        )
    ),
    Service(
        "429, for an hour",
        lambda: JsonServer(NETWORK),
        words="--retry-for 3600s",
        script=("status 429 3600",) * 9,
    ),
    Service(
        "a key is missing",
        lambda: JsonServer(NETWORK),
        words="--key-env VARIABLE",
        script=("status 401",) * 9,
    ),
    Service("it contradicts itself", contradicting, words="contradicts itself"),
)


@dataclass(frozen=True)
class Found:
    """What came of a probe, and of the command that it names.

    Attributes
    ----------
    seen : str
        What the probe says: what numbers the answers are, or why they are none.
    following : str
        The command that it names, if any.
    outcome : str
        "recovered", "named", or what went wrong.
    """

    seen: str
    following: str
    outcome: str


def tried(service: Service, run: Run) -> Found:
    """Probe a service, and do what is said.

    Parameters
    ----------
    run : callable, arguments -> (exit code, standard output, standard error)
        Runs revelu.
    """
    with running(service.make()) as server, tempfile.TemporaryDirectory() as folder:
        target = server.url
        if service.profile:
            target = f"{Path(folder) / 'profile.toml'}"
            Path(target).write_text(f'url = "{server.url}"\n{service.profile}', encoding="utf-8")
        server.script = list(service.script)
        code, out, err = run(["probe", target, *service.options, "--json"])
        account = json.loads(out) if out else {}
        seen = account.get("precision") or account.get("error") or err.splitlines()[0]
        following = account.get("next") or ""
        shown = following.replace(server.url, "URL").replace(target, "profile.toml")
        if not following:
            is_named = bool(service.words) and service.words in err and code == 4
            return Found(
                seen.replace(server.url, "it"), "", "named" if is_named else f"{code}: {err}"
            )
        server.script = list(service.script)
        code, out, err = run([*shlex.split(following)[1:], "--checks", "300", "--json"])
        if service.words:
            outcome = "named" if code in {1, 4} and service.words in out + err else f"{code}: {err}"
        else:
            outcome = "recovered" if code == 0 else f"{code}: {err}"
        return Found(seen.replace(server.url, "it"), shown, outcome)


def one(row: Named, _seed: int, _limit: float | None) -> Found:
    """Probe the service of a name."""

    def run(arguments: Sequence[str]) -> tuple[int, str, str]:
        done = subprocess.run(  # noqa: S603 - this program
            [sys.executable, "-m", "revelu", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    [service] = [service for service in (*SHAPES, *SERVICES) if service.name == row.name]
    return tried(service, run)


def line(row: Named, runs: list[Found]) -> Line:
    """What the probe says, and what comes of the command that it names."""
    [found] = runs
    seen = found.seen if len(found.seen) < 150 else f"{found.seen[:100]} ... {found.seen[-40:]}"
    return {
        "service": row.name,
        "the probe says": seen.replace("|", "\\|"),
        "and names": f"`{found.following}`" if found.following else "",
        "which ends": found.outcome,
    }


def note(found: Mapping[Named, list[Found]]) -> str:
    """How many end as they should."""
    outcomes = [run.outcome for runs in found.values() for run in runs]
    n_right = sum(outcome in {"recovered", "named"} for outcome in outcomes)
    return f"{n_right} of {len(outcomes)} recovered or named."
