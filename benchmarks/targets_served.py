"""Endpoints that people have, and how each is asked; for benchmarks/targets.py.

Those of FastAPI, MLflow, KServe and BentoML are their own servers, in environments of their own;
the others are answered by a server that speaks their protocol.
"""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import program_serving as programs
from json_serving import JsonServer, prediction, running
from targets_way import HOST, D, Made, Rng, Way, points, small_network, to_last

import revelu
from revelu import Network
from revelu.oracle import softmax
from revelu.tasks.serve import ModelServer
from revelu.types import FloatArray

KEY = {"API_KEY": "ff-do-not-tell"}
ROWS = "'{\"features\": $rows}'"


# --- servers of others


def by_program(
    rng: Rng, *, command: str, server: Callable[..., AbstractContextManager[str]], words: str = ""
) -> Made:
    """A network behind somebody's own server."""
    network = small_network(rng)
    network.save("network.npz")
    folder = Path.cwd()

    def serve(python: Path) -> AbstractContextManager[str]:
        return server(python, folder)

    truth = None if words else network
    return Made(command, truth, words, points(rng), serve=serve, environment=KEY)


@contextmanager
def mlflow(python: Path, folder: Path) -> Iterator[str]:
    """Serve a scikit-learn model that MLflow has saved."""
    saves = [python, programs.SERVICES / "mlflow_model.py"]
    subprocess.run(saves, cwd=folder, env=programs.bare(), check=True, capture_output=True)  # noqa: S603
    with programs.mlflow(python, folder) as host:
        yield host


# --- protocols, and forms of answers


def answered(
    rng: Rng,
    *,
    command: str,
    path: str = "/predict",
    member: str = "features",
    write: Callable[[FloatArray], Any] = prediction,
    read: Callable[[Any], Any] | None = None,
    truth: Callable[[Network], Callable[[FloatArray], Any]] = lambda network: network,
    rounding: float = 0.0,
    d: int = D,
    kind: str = "",
) -> Made:
    """A network behind a server of JSON, or of what ``kind`` says."""
    network = small_network(rng, d)
    server = JsonServer(network, read or (lambda asked: asked[member]), write, path=path, kind=kind)
    serve = held(server)
    return Made(command, truth(network), inputs=points(rng, d), rounding=rounding, serve=serve)


def held(server: JsonServer) -> Callable[[Path], AbstractContextManager[str]]:
    """How a server is held open for a while; gives its address without a path."""

    @contextmanager
    def serve(_: Path) -> Iterator[str]:
        with running(server):
            yield server.url.removesuffix(server.path)

    return serve


def refused(
    _: Rng, *, command: str, words: str, script: tuple[str, ...] = (), environment: Any = None
) -> Made:
    """An endpoint that is not understood, or is not one."""
    server = JsonServer(small_network(np.random.default_rng(0)), script=script * 9)
    return Made(command, words=words, serve=held(server), environment=environment or {})


def own_server(rng: Rng, *, command: str) -> Made:
    """Our own server, which speaks both versions of the protocol."""
    network = small_network(rng)

    @contextmanager
    def serve(_: Path) -> Iterator[str]:
        with running(ModelServer(network, D, "model")) as server:
            yield server.url.split("/v2")[0]

    return Made(command, network, inputs=points(rng), serve=serve, environment=KEY)


def by_profile(rng: Rng) -> Made:
    """All of it in a file, but for where the server happens to be."""
    text = f'url = "{HOST}/predict"\nrequest = \'{{"features": $rows}}\'\ndim_in = {D}\n'
    Path("api.toml").write_text(text + '[headers]\nX-Key = "$API_KEY"\n', encoding="utf-8")
    made = answered(rng, command=f"extract {HOST}/predict --endpoint api.toml")
    return Made(made.command, made.truth, inputs=made.inputs, serve=made.serve, environment=KEY)


def labelled(_: Rng, *, write: Callable[[FloatArray], Any], options: str = "") -> Made:
    """Class names alone, of which the span of the first layer comes back."""
    network = revelu.zoo.random_network([5, 2, 3], seed=4)
    command = f"span {HOST}/predict --request {ROWS} --dim-in 5 --labels{options}"
    serve = held(JsonServer(network, write=write))
    return Made(command, network, rows=network.weights[0], rounding=1e-6, serve=serve)


def names(Y: FloatArray) -> Any:
    """Class names, one a row."""
    return {"label": [f"class {i}" for i in Y.argmax(axis=1)]}


def one_hot(Y: FloatArray) -> Any:
    """Ones where the largest is."""
    return {"y": np.eye(Y.shape[1])[Y.argmax(axis=1)].astype(int).tolist()}


def written_single(Y: FloatArray) -> Any:
    """As TensorFlow Serving writes float32: the shortest decimals."""
    return {"predictions": [[float(f"{y}") for y in row] for row in Y.astype(np.float32)]}


def predictions(Y: FloatArray) -> Any:
    """As most servers have it."""
    return {"predictions": Y.tolist()}


def probabilities(Y: FloatArray) -> Any:
    """Of classes by name."""
    return {"result": [dict(zip("abc", p, strict=True)) for p in softmax(Y).tolist()]}


def with_(function: Callable[..., Made], **given: Any) -> Callable[[Rng], Made]:
    """A way of which something is said."""

    def make(rng: Rng) -> Made:
        return function(rng, **given)

    return make


def asks(more: str, path: str = "/predict", verb: str = "extract") -> str:
    """A command that asks an address of which revelu knows nothing."""
    return f"{verb} {HOST}{path} {more}"


SIZE = f"--dim-in {D}"
BATCH = f"--request {ROWS} {SIZE}"

# Name, environment, server, and what is asked of it.
_PROGRAMS: tuple[tuple[str, str, Any, str], ...] = (
    (
        "FastAPI: a batch, and a key",
        "mlflow",
        programs.fastapi,
        asks(f"{BATCH} --answer '$.prediction' --header 'X-Api-Key: $API_KEY'"),
    ),
    (
        "FastAPI: one row a request",
        "mlflow",
        programs.fastapi,
        asks(f"--request '{{\"x\": $row}}' {SIZE} --workers 4", "/row"),
    ),
    (
        "FastAPI: GET",
        "mlflow",
        programs.fastapi,
        asks(f'--get --request \'{{"x": "[$row]"}}\' {SIZE} --workers 4', "/ask"),
    ),
    ("MLflow's server: by its address", "mlflow", mlflow, asks(SIZE, "/invocations")),
    (
        "MLflow's server: dataframe_split",
        "mlflow",
        mlflow,
        asks(
            f'--preset mlflow --request \'{{"dataframe_split": {{"data": $rows}}}}\' {SIZE}',
            "/invocations",
        ),
    ),
    (
        "KServe's server: version 1",
        "kserve",
        programs.kserve,
        asks(f"--preset kserve-v1 {SIZE}", "/v1/models/model:predict"),
    ),
    (
        "BentoML's server",
        "bentoml",
        programs.bentoml,
        asks(f"--preset bentoml {SIZE}"),
    ),
)

# Name, what is asked, and how it answers.
_FORMS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "TensorFlow Serving's protocol, float32",
        {
            "command": asks(SIZE, "/v1/models/m:predict"),
            "path": "/v1/models/m:predict",
            "member": "instances",
            "write": written_single,
            "rounding": 1e-5,
        },
    ),
    *(
        (
            f"{name}'s protocol",
            {
                "command": asks(SIZE, path),
                "path": path,
                "member": "instances",
                "write": predictions,
            },
        )
        for name, path in (
            ("Vertex", "/v1/projects/p/locations/l/endpoints/5:predict"),
            ("TorchServe", "/predictions/m"),
        )
    ),
    (
        "SageMaker, through a proxy that signs",
        {
            "command": asks(
                f"--request '{{\"instances\": $rows}}' {SIZE}", "/endpoints/m/invocations"
            ),
            "path": "/endpoints/m/invocations",
            "member": "instances",
            "write": predictions,
        },
    ),
    ("JSON: a parameter in the address", {"command": asks(BATCH, "/predict?version=3")}),
    (
        "JSON: GET, one row a request",
        {"command": asks(f"--get --request '{{\"features\": $row}}' {SIZE}")},
    ),
    (
        "JSON: a number in each member",
        {
            "command": asks('--request \'{"a": $row[0], "b": $row[1], "c": $row[2]}\''),
            "read": lambda asked: [[asked[name] for name in "abc"]],
            "d": 3,
        },
    ),
    (
        "JSON: a row as text",
        {
            "command": asks(f'--request \'{{"csv": "$row"}}\' {SIZE}'),
            "read": lambda asked: [[float(x) for x in asked["csv"].split(",")]],
        },
    ),
    (
        "JSON: nested logits beside other things",
        {
            "command": asks(f"{BATCH} --answer '$.outputs[*].logits'"),
            "write": lambda Y: {"outputs": [{"id": 1, "logits": [[y]]} for y in Y.tolist()]},
        },
    ),
    (
        "JSON: digits as text",
        {
            "command": asks(BATCH),
            "write": lambda Y: {"y": [[f"{v!r}" for v in y] for y in Y.tolist()]},
        },
    ),
    (
        "JSON: probabilities by class",
        {
            "command": asks(BATCH),
            "write": probabilities,
            "truth": lambda network: lambda X: to_last(network(X)),
        },
    ),
)

WAYS = (
    *(
        Way(name, with_(by_program, command=command, server=server), program=program)
        for name, program, server, command in _PROGRAMS
    ),
    Way(
        "FastAPI: a member that it does not know",
        with_(
            by_program,
            command=asks(f"--request '{{\"y\": $row}}' {SIZE}", "/row"),
            server=programs.fastapi,
            words="Field required",
        ),
        program="mlflow",
    ),
    *(Way(name, with_(answered, **form)) for name, form in _FORMS),
    *(
        Way(f"revelu serve: {words}", with_(own_server, command=asks(more, path)))
        for words, path, more in (
            ("version 2, and a key", "/v2/models/model", "--key-env API_KEY"),
            ("version 1", "/v1/models/model:predict", SIZE),
        )
    ),
    Way("JSON: a profile", by_profile),
    Way("JSON: class names", with_(labelled, write=names)),
    Way(
        "JSON: class names in their order",
        with_(labelled, write=names, options=" --classes 'class 0,class 1,class 2'"),
    ),
    Way("JSON: one-hot", with_(labelled, write=one_hot)),
    *(
        Way(f"named: {name}", with_(refused, command=command, words=words, **more))
        for name, command, words, more in (
            (
                "a page of HTML",
                asks(BATCH),
                "answers HTML, not JSON: 502 Bad Gateway",
                {"script": ("html 200",)},
            ),
            (
                "a path that matches nothing",
                asks(f"{BATCH} --answer '$.score'"),
                "has nothing at $.score; it answers",
                {},
            ),
            (
                "no place for rows",
                asks(f"--request '{{\"features\": []}}' {SIZE}"),
                "no place for rows",
                {},
            ),
            ("an address that tells nothing", asks(SIZE), "does not tell how it is asked", {}),
            (
                "a key that is not set",
                asks(f"{BATCH} --key-env NOT_SET"),
                "variable NOT_SET is not set",
                {},
            ),
            (
                "a key in the address",
                asks(BATCH, "/predict?key=ff-do-not-tell"),
                "may be secret",
                {},
            ),
            (
                "an error as an answer",
                asks(BATCH),
                "answers an error",
                {"script": ('json {"error": "no model"}',)},
            ),
        )
    ),
)
