"""Serve: a model behind the Open Inference Protocol (version 2) and version 1, to try it out.

Version 1 is what TensorFlow Serving and KServe speak, and MLflow at `/invocations`: a JSON object
with rows comes in as `instances` or `inputs`, one with `predictions` goes out.
"""

import json
import logging
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import numpy as np

from revelu._version import __version__
from revelu.adapters.json_text import read_document, write_numbers
from revelu.adapters.open_inference import (
    BINARY_EXTENSION,
    DTYPES,
    JSON_LENGTH,
    Body,
    ProtocolError,
    Tensor,
    decode,
    encode,
    whole_number_of,
)
from revelu.errors import InputError, ReveluError, TargetError
from revelu.oracle.oracle import Ask
from revelu.types import FloatArray

log = logging.getLogger(__name__)

_INPUT, _OUTPUT = "input", "output"
_TAKEN = ("FP32", "FP64")


class _RefusedError(Exception):
    """A request that is answered by an error object."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class ModelServer(ThreadingHTTPServer):
    """One model, served.

    Parameters
    ----------
    ask : callable, (n, dim_in) -> (n,) or (n, k)
    dim_in : int
    name : str
        What the model is called.
    datatype : {"FP64", "FP32"}
        What its numbers are.
    host : str
        The address to listen at.
    port : int
        0 takes a free one.
    most_bytes : int
        Larger bodies are refused; 64 MiB hold 10,000 rows of 784 float64.
    most_connections : int
        At a time; others are closed.

    Attributes
    ----------
    n_queries : int
        Rows answered so far.

    Raises
    ------
    InputError
        If it is not possible to listen there.
    TargetError
        If the model does not answer.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(
        self,
        ask: Ask,
        dim_in: int,
        name: str,
        *,
        datatype: str = "FP64",
        host: str = "127.0.0.1",
        port: int = 0,
        most_bytes: int = 2**26,
        most_connections: int = 64,
    ) -> None:
        self.ask, self.dim_in, self.name, self.datatype = ask, dim_in, name, datatype
        self.most_bytes = most_bytes
        self.n_queries, self._counting = 0, threading.Lock()
        self.dim_out = self.answer(np.zeros((1, dim_in))).shape[1]
        self._slots = threading.BoundedSemaphore(most_connections)
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise InputError(f"cannot listen at {host}:{port}: {error}") from None

    @property
    def url(self) -> str:
        """The address of the model."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/v2/models/{quote(self.name)}"

    def answer(self, X: FloatArray) -> np.ndarray:
        """Ask the model; shape (n, k).

        Raises
        ------
        TargetError
            If it fails.
        """
        Y = np.asarray(self.ask(X), dtype=np.float64)
        if Y.shape[:1] != (len(X),):
            raise TargetError(f"{self.name} answered shape {Y.shape} to {len(X)} rows")
        return Y.reshape(len(X), -1)

    def metadata(self) -> dict[str, Any]:
        """Return what the protocol says of a model."""
        return {
            "name": self.name,
            "versions": [],
            "platform": "revelu",
            "inputs": [{"name": _INPUT, "datatype": self.datatype, "shape": [-1, self.dim_in]}],
            "outputs": [{"name": _OUTPUT, "datatype": self.datatype, "shape": [-1, self.dim_out]}],
        }

    def infer(self, content: bytes, json_length: str | None) -> Body:
        """Answer a request for inference.

        Raises
        ------
        ProtocolError
            If it is none, or not for one tensor of rows.
        TargetError
            If the model fails.
        """
        document, tensors = decode("inputs", content, json_length)
        Y = self.answer(_rows(tensors, self.dim_in))
        with self._counting:
            self.n_queries += len(Y)
        fields = {"model_name": self.name, "id": str(document.get("id", ""))[:128]}
        tensor = Tensor(_OUTPUT, self.datatype, Y)
        return encode("outputs", [tensor], fields, binary=_wants_binary(document))

    def predict(self, content: bytes) -> Body:
        """Answer a request of version 1.

        Raises
        ------
        ProtocolError
            If it is none.
        TargetError
            If the model fails.
        """
        try:
            document = read_document(content)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"the body is no JSON: {error}") from None
        if not isinstance(document, dict):
            raise ProtocolError("the body is no JSON object")
        named = [key for key in ("instances", "inputs") if key in document]
        if len(named) != 1:
            raise ProtocolError("rows are asked for as instances or as inputs")
        try:
            values = np.array(document[named[0]], dtype=np.float64)
        except (TypeError, ValueError):
            raise ProtocolError(f"{named[0]} are no rows of numbers") from None
        Y = self.answer(_checked(values, named[0], self.dim_in))
        with self._counting:
            self.n_queries += len(Y)
        # What is answered are numbers of the model's type, as in the other protocol.
        written = Y.astype(DTYPES[self.datatype]).astype(np.float64)
        text = f'{{"predictions": {write_numbers(written)}}}'
        return Body(text.encode(), {"Content-Type": "application/json"})

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a connection a thread; close it where too many have one."""
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, and give its place to another one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Say nothing of connections that break off."""
        log.debug("a connection from %s broke off", client_address)


class _Handler(BaseHTTPRequestHandler):
    """Requests of one connection.

    Attributes
    ----------
    timeout : float
        In seconds: a silent connection is closed, and a body has to be here within as long.
    drained : int
        A body that is too large is read up to this multiple of the limit, so that the client
        is still there to see why it is refused.
    """

    server: ModelServer
    timeout = 60.0
    drained = 4
    protocol_version = "HTTP/1.1"
    server_version = f"revelu/{__version__}"
    sys_version = ""
    disable_nagle_algorithm = True
    # Headers and body leave together.
    wbufsize = -1

    def do_GET(self) -> None:
        """Answer what is asked of the server and the model."""
        model = f"/v2/models/{self.server.name}"
        server = {"name": "revelu", "version": __version__, "extensions": [BINARY_EXTENSION]}
        known: dict[str, dict[str, Any]] = {
            "/v2": server,
            "/v2/health/live": {"live": True},
            "/v2/health/ready": {"ready": True},
            model: self.server.metadata(),
            f"{model}/ready": {"name": self.server.name, "ready": True},
        }
        path = self._path()
        if path in known:
            self._reply(HTTPStatus.OK, _encode_object(known[path]))
        elif path == f"{model}/infer":
            self.send_error(HTTPStatus.METHOD_NOT_ALLOWED, "inference is asked for by POST")
        else:
            self.send_error(HTTPStatus.NOT_FOUND, self._unknown(path))

    def do_POST(self) -> None:
        """Answer inference."""
        try:
            content = self._content()
            path = self._path()
            if path == f"/v2/models/{self.server.name}/infer":
                body = self.server.infer(content, self.headers.get(JSON_LENGTH))
            elif path in {f"/v1/models/{self.server.name}:predict", "/invocations"}:
                body = self.server.predict(content)
            else:
                raise _RefusedError(HTTPStatus.NOT_FOUND, self._unknown(path))
        except _RefusedError as error:
            self.send_error(error.status, f"{error}")
        except ProtocolError as error:
            self.send_error(HTTPStatus.BAD_REQUEST, f"{error}")
        except ReveluError as error:
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, f"{error}")
        else:
            self._reply(HTTPStatus.OK, body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer with the protocol's error object."""
        text = message or explain or HTTPStatus(code).phrase
        self._reply(HTTPStatus(code), _encode_object({"error": text}))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Log requests for those who listen."""
        log.debug(format, *args)

    def _path(self) -> str:
        return unquote(urlsplit(self.path).path).rstrip("/")

    def _unknown(self, path: str) -> str:
        return f"there is no {path[:100]}; the model is /v2/models/{self.server.name}"

    def _content(self) -> bytes:
        """The body of a request, whole and within the limit."""
        size = whole_number_of(self.headers.get("Content-Length", ""))
        if size is None or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "a body says its Content-Length")
        most = self.server.most_bytes
        if size <= most:
            return self._read(size)
        self.close_connection = True
        if size <= self.drained * most:
            self._read(size, keep=False)
        message = f"a body of {size} bytes is over the limit of {most}"
        raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)

    def _read(self, size: int, *, keep: bool = True) -> bytes:
        deadline = time.monotonic() + self.timeout
        chunks, left = [], size
        while left:
            chunk = self.rfile.read1(min(left, 2**20))
            if not chunk or time.monotonic() > deadline:
                self.close_connection = True
                raise _RefusedError(HTTPStatus.REQUEST_TIMEOUT, "the body did not come whole")
            left -= len(chunk)
            if keep:
                chunks.append(chunk)
        return b"".join(chunks)

    def _reply(self, status: HTTPStatus, body: Body) -> None:
        self.send_response(status)
        for name, value in body.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body.content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body.content)


def _encode_object(document: dict[str, Any]) -> Body:
    """Write a JSON object that has no tensors."""
    return Body(json.dumps(document).encode(), {"Content-Type": "application/json"})


def _rows(tensors: list[Tensor], dim_in: int) -> FloatArray:
    """The rows that are asked for."""
    if len(tensors) != 1:
        raise ProtocolError(f"there are {len(tensors)} inputs; the model takes {_INPUT} alone")
    tensor = tensors[0]
    if tensor.datatype not in _TAKEN:
        raise ProtocolError(f"input {tensor.name!r} is {tensor.datatype}, not FP64 or FP32")
    return _checked(tensor.values.astype(np.float64), f"input {tensor.name!r}", dim_in)


def _checked(X: FloatArray, name: str, dim_in: int) -> FloatArray:
    if X.ndim != 2 or X.shape[1] != dim_in or not len(X):
        raise ProtocolError(f"{name} has shape {list(X.shape)}, not [n, {dim_in}]")
    if not np.isfinite(X).all():
        raise ProtocolError(f"{name} holds a number that is not finite")
    return X


def _wants_binary(document: dict[str, Any]) -> bool:
    """Whether the answer is to be binary; the protocol has two places to say so."""
    parameters, outputs = document.get("parameters"), document.get("outputs")
    if isinstance(outputs, list):
        for one in outputs:
            name = one.get("name") if isinstance(one, dict) else None
            if name != _OUTPUT:
                raise ProtocolError(f"there is no output {name!r}; the model has {_OUTPUT!r}")
            parameters = one.get("parameters", parameters)
            if isinstance(parameters, dict) and parameters.get("binary_data") is True:
                return True
    return isinstance(parameters, dict) and parameters.get("binary_data_output") is True
