"""A server of JSON for the tests, on loopback: it reads and answers as it is told, and fails so."""

import contextlib
import json
import socket
import struct
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np

HTML = b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body>sorry</body></html>"


def features(asked):
    """Rows of ``{"features": [[...], ...]}``."""
    return asked["features"]


def prediction(Y):
    """Answers as ``{"prediction": [[...], ...]}``."""
    return {"prediction": Y.tolist()}


class JsonServer(ThreadingHTTPServer):
    """Answers each path alike.

    ``read`` takes rows from what was asked, ``write`` makes what is answered of (n, k) numbers.
    ``script`` is a list of faults, one for each request, None for none; once it is over, nothing
    is spoilt.
    """

    daemon_threads = True

    def __init__(self, target, read=features, write=prediction, script=(), path="/predict"):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target, self.read, self.write = target, read, write
        self.script = list(script)
        self.url = f"http://127.0.0.1:{self.server_address[1]}{path}"
        self.n_requests = self.n_rows = 0
        self.asked = []
        self.headers_seen = []

    def handle_error(self, request, client_address):
        """Clients may break off."""

    def answer(self, asked):
        """What is answered, as bytes."""
        self.asked.append(asked)
        X = np.atleast_2d(np.array(self.read(asked), dtype=np.float64))
        self.n_rows += len(X)
        return json.dumps(self.write(self.target(X))).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        """Be quiet."""

    def do_GET(self):
        query = parse_qs(urlsplit(self.path).query)
        self._respond({name: json.loads(values[0]) for name, values in query.items()})

    def do_POST(self):
        self._respond(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _respond(self, asked):
        server = self.server
        server.n_requests += 1
        server.headers_seen.append(dict(self.headers))
        fault = server.script.pop(0) if server.script else None
        if fault is None:
            self._send(200, server.answer(asked))
        else:
            name, *arguments = fault.split(" ", 1)
            getattr(self, f"fault_{name}")(asked, *arguments)

    def fault_reset(self, _):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def fault_status(self, _, status):
        self._send(int(status), b'{"error": "not now"}', ("Retry-After", "0"))

    def fault_html(self, _, status="200"):
        self._send(int(status), HTML, ("Content-Type", "text/html"))

    def fault_drip(self, _):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:  # until the client has gone
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.1)
        self.close_connection = True

    def fault_cut(self, asked):
        """A connection that ends before the answer does."""
        answer = self.server.answer(asked)
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer[: len(answer) // 2])
        self.close_connection = True

    def fault_truncated(self, asked):
        """An answer of the right length that is no JSON."""
        answer = self.server.answer(asked)
        self._send(200, answer[: len(answer) // 2])

    def fault_json(self, _, text):
        """Another answer."""
        self._send(200, text.encode())

    def _send(self, status, content, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
