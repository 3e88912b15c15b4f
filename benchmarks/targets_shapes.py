"""Answers as services write them, and how each is asked; for benchmarks/targets.py."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from json_serving import JobServer, JsonServer, Refused
from targets_served import BATCH, answered, asks, held, with_
from targets_way import HOST, D, Made, Rng, Way, points, small_network, to_last

from revelu import Network
from revelu.oracle import softmax
from revelu.types import FloatArray


def in_text(Y: FloatArray) -> Any:
    """JSON inside a string."""
    return {"statusCode": 200, "body": json.dumps({"prediction": Y.tolist()})}


def in_columns(Y: FloatArray) -> Any:
    """A list for each output."""
    return {f"output {k}": column.tolist() for k, column in enumerate(Y.T)}


def sorted_scores(Y: FloatArray) -> Any:
    """Labels and scores, sorted by score."""
    rows = [dict(zip("abc", p, strict=True)) for p in softmax(Y).tolist()]
    best = [sorted(row, key=row.__getitem__, reverse=True) for row in rows]
    return [
        [{"label": name, "score": row[name]} for name in names]
        for row, names in zip(rows, best, strict=True)
    ]


def in_csv(Y: FloatArray) -> Any:
    """A line a row."""
    return "\n".join(",".join(map(repr, y)) for y in Y.tolist()).encode()


def in_lines(Y: FloatArray) -> Any:
    """An object of JSON a line."""
    return "\n".join(json.dumps({"y": y}) for y in Y.tolist()).encode()


def amounts(Y: FloatArray) -> Any:
    """Numbers with a unit, and thousands."""
    return {"cost": [[f"{1e3 * v:,.10f} EUR" for v in y] for y in Y.tolist()]}


def at_most(asked: Any, most: int = 100) -> Any:
    """Rows, refused where they are many."""
    if len(asked["features"]) > most:
        raise Refused(400, json.dumps({"detail": f"at most {most} rows"}).encode())
    return asked["features"]


def within(asked: Any, limit: float = 4.0) -> Any:
    """Rows, refused where a number is large."""
    if np.abs(asked["features"]).max() > limit:
        raise Refused(422, b'{"detail": "a number is out of range"}')
    return asked["features"]


def whole(asked: Any) -> Any:
    """Rows, refused where a column is not whole."""
    if any(type(row["b"]) is float for row in asked["rows"]):
        raise Refused(400, b'{"message": "column b: can not safely convert float64 to int64"}')
    return [[row[name] for name in "abc"] for row in asked["rows"]]


def held_at_zero(network: Network) -> Callable[[FloatArray], FloatArray]:
    """A network whose second input stays at 0."""
    return lambda X: network(X * np.array([1.0, 0.0, 1.0]))


def as_job(rng: Rng, *, command: str) -> Made:
    """Jobs, by a profile."""
    network = small_network(rng)
    text = f'url = "{HOST}/predict"\nrequest = \'{{"features": $rows}}\'\ndim_in = {D}\n'
    text += 'poll = "/jobs/{$.id}"\ndone = "$.state == done"\nanswer = "$.result.prediction"\n'
    Path("jobs.toml").write_text(text, encoding="utf-8")
    serve = held(JobServer(network))
    return Made(command, network, inputs=points(rng), serve=serve)


def refusing(_: Rng, *, command: str, words: str, read: Callable[[Any], Any]) -> Made:
    """A server that takes not all rows."""
    server = JsonServer(small_network(np.random.default_rng(0)), read)
    return Made(command, words=words, serve=held(server))


# Name, what is asked, and how it answers.
_FORMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("JSON inside a string", {"command": asks(BATCH), "write": in_text}),
    ("JSON: columns", {"command": asks(BATCH), "write": in_columns}),
    (
        "JSON: labels sorted by score",
        {
            "command": asks(BATCH),
            "write": sorted_scores,
            "truth": lambda network: lambda X: to_last(network(X)),
        },
    ),
    (
        "JSON: amounts as text",
        {
            "command": asks(BATCH),
            "write": amounts,
            "truth": lambda network: lambda X: 1e3 * network(X),
        },
    ),
    ("CSV", {"command": asks(BATCH), "write": in_csv, "kind": "text/csv"}),
    ("lines of JSON", {"command": asks(BATCH), "write": in_lines, "kind": "application/x-ndjson"}),
    (
        "JSON: objects with named fields",
        {
            "command": asks("--request '{\"rows\": $objects(a, b, c)}'"),
            "read": lambda asked: [[row[name] for name in "abc"] for row in asked["rows"]],
            "d": 3,
        },
    ),
    (
        "JSON: a column of whole numbers",
        {
            "command": asks("--request '{\"rows\": $objects(a, b, c)}'"),
            "read": whole,
            "d": 3,
            "truth": held_at_zero,
        },
    ),
    ("JSON: at most 100 rows a request", {"command": asks(BATCH), "read": at_most}),
)

WAYS = (
    *(Way(name, with_(answered, **form)) for name, form in _FORMS),
    Way("JSON: jobs", with_(as_job, command=asks("--endpoint jobs.toml"))),
    Way(
        "named: answers only inside limits",
        with_(refusing, command=asks(BATCH), words="--box -4 4", read=within),
    ),
)
