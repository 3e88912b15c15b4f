"""A server of JSON on loopback: it reads and answers as it is told, and fails so."""

import contextlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import numpy as np

from revelu.types import FloatArray

S = TypeVar("S", bound=ThreadingHTTPServer)

HTML = b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body>sorry</body></html>"


@contextlib.contextmanager
def running(server: S) -> Iterator[S]:
    """Run a server on a thread for a while."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def features(asked: Any) -> Any:
    """Rows of ``{"features": [[...], ...]}``."""
    return asked["features"]


def prediction(Y: FloatArray) -> Any:
    """Answers as ``{"prediction": [[...], ...]}``."""
    return {"prediction": Y.tolist()}


class Refused(Exception):  # noqa: N818 - what a server does
    """An answer of another status than that of success."""

    def __init__(self, status: int, content: bytes) -> None:
        super().__init__(status)
        self.status, self.content = status, content


class JsonServer(ThreadingHTTPServer):
    """Answers each path alike.

    ``read`` takes rows from what was asked, ``write`` makes what is answered of (n, k) numbers:
    what JSON has, or bytes as they are, of the Content-Type ``kind``.
    ``script`` is a list of faults, one for each request, None for none; once it is over, nothing
    is spoilt.
    """

    daemon_threads = True

    def __init__(
        self,
        target: Callable[[FloatArray], FloatArray],
        read: Callable[[Any], Any] = features,
        write: Callable[[FloatArray], Any] = prediction,
        script: Sequence[str | None] = (),
        path: str = "/predict",
        kind: str = "",
        port: int = 0,
    ) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.target, self.read, self.write = target, read, write
        self.script, self.path, self.kind = list(script), path, kind
        self.url = f"http://127.0.0.1:{self.server_address[1]}{path}"
        self.n_requests = self.n_rows = 0
        self.asked: list[Any] = []
        self.headers_seen: list[dict[str, str]] = []
        self.paths: list[str] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may break off."""

    def answer(self, asked: Any) -> bytes:
        """What is answered, as bytes."""
        self.asked.append(asked)
        X = np.atleast_2d(np.array(self.read(asked), dtype=np.float64))
        self.n_rows += len(X)
        written = self.write(self.target(X))
        return written if isinstance(written, bytes) else json.dumps(written).encode()


class JobServer(JsonServer):
    """Takes rows, ``{"features": [...]}``, and answers at another address, at the second look."""

    def __init__(
        self, target: Callable[[FloatArray], FloatArray], end: str = "done", path: str = "/predict"
    ) -> None:
        super().__init__(target, path=path)
        self.jobs: list[bytes] = []
        self.looks: list[int] = []
        self.end = end

    def answer(self, asked: Any) -> bytes:
        """The number of a job, or how it is by now."""
        if "features" in asked:
            self.jobs.append(super().answer(asked))
            return json.dumps({"id": len(self.jobs), "state": "queued"}).encode()
        number = int(urlsplit(self.paths[-1]).path.rpartition("/")[2])
        self.looks.append(number)
        if self.looks.count(number) < 2:
            return b'{"state": "running"}'
        return json.dumps({"state": self.end, "result": json.loads(self.jobs[number - 1])}).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: JsonServer

    def log_message(self, *_: Any) -> None:
        """Be quiet."""

    def do_GET(self) -> None:
        """Answer what an address asks."""
        query = parse_qs(urlsplit(self.path).query)
        self._respond({name: _value(values[0]) for name, values in query.items()})

    def do_POST(self) -> None:
        """Answer what a body asks."""
        self._respond(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _respond(self, asked: Any) -> None:
        server = self.server
        server.n_requests += 1
        server.headers_seen.append(dict(self.headers))
        server.paths.append(self.path)
        fault = server.script.pop(0) if server.script else None
        if fault is None:
            kind = (("Content-Type", server.kind),) if server.kind else ()
            try:
                self._send(200, server.answer(asked), *kind)
            except Refused as refused:
                self._send(refused.status, refused.content)
        else:
            name, *arguments = fault.split(" ", 1)
            getattr(self, f"fault_{name}")(asked, *arguments)

    def fault_reset(self, _: Any) -> None:
        """A connection that breaks."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def fault_status(self, _: Any, arguments: str) -> None:
        """Another status, and the pause that it asks for, if any."""
        status, *pause = arguments.split()
        self._send(int(status), b'{"error": "not now"}', ("Retry-After", next(iter(pause), "0")))

    def fault_refuse(self, _: Any, said: str) -> None:
        """A refusal of the rows."""
        self._send(400, said.encode())

    def fault_redirect(self, _: Any, location: str) -> None:
        """Another address."""
        self._send(307, b"", ("Location", location))

    def fault_html(self, _: Any, status: str = "200") -> None:
        """A page."""
        self._send(int(status), HTML, ("Content-Type", "text/html"))

    def fault_drip(self, _: Any) -> None:
        """An answer that does not end."""
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:  # until the client has gone
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.1)
        self.close_connection = True

    def fault_cut(self, asked: Any) -> None:
        """A connection that ends before the answer does."""
        answer = self.server.answer(asked)
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer[: len(answer) // 2])
        self.close_connection = True

    def fault_truncated(self, asked: Any) -> None:
        """An answer of the right length that is no JSON."""
        answer = self.server.answer(asked)
        self._send(200, answer[: len(answer) // 2])

    def fault_nan(self, asked: Any) -> None:
        """An answer with a NaN in it."""
        self._send(200, re.sub(rb"-?\d[\d.e+-]*", b"NaN", self.server.answer(asked), count=1))

    def fault_renamed(self, asked: Any) -> None:
        """An answer of another schema."""
        self._send(200, self.server.answer(asked).replace(b'"prediction"', b'"result"'))

    def fault_json(self, _: Any, text: str) -> None:
        """Another answer."""
        self._send(200, text.encode())

    def _send(self, status: int, content: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _value(text: str) -> Any:
    """What a parameter is, where it is JSON; else its text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
