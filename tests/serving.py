"""Servers for the tests, on loopback: ours, and a proxy that spoils what passes through."""

import contextlib
import http.client
import json
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from json_serving import running

from conftest import PATIENCE_SECONDS
from revelu.tasks.serve import ModelServer


def serving(target, name="model", **options):
    """Our server of a target."""
    return running(ModelServer(target, target.dim_in, name, **options))


class Proxy(ThreadingHTTPServer):
    """Passes requests on to another server; spoils inferences as the script says.

    ``script`` is a list of faults, one for each inference, None for none; once it is over,
    nothing is spoilt.  Binary tensors are not advertised, so that answers can be read.
    """

    daemon_threads = True

    def __init__(self, url, script=()):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(url)
        self.url = f"http://127.0.0.1:{self.server_address[1]}{self.upstream.path}"
        self.script = list(script)
        self.answered = []
        self.headers_seen = []
        self.moments = []
        self.lock = threading.Lock()

    def handle_error(self, request, client_address):
        """Clients may break off."""

    def n_rows(self):
        """Rows that were answered with what the client can use."""
        return sum(self.answered)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        """Be quiet."""

    def do_GET(self):
        self.server.headers_seen.append(dict(self.headers))
        if self.path == "/v2":
            self._send(404, b"{}")
        else:
            self._send(*self._forward(b""))

    def do_POST(self):
        server = self.server
        content = self.rfile.read(int(self.headers["Content-Length"]))
        with server.lock:
            server.headers_seen.append(dict(self.headers))
            server.moments.append(time.monotonic())
            fault = server.script.pop(0) if server.script else None
        if fault is None:
            status, answer = self._forward(content)
            self._send(status, answer)
            with server.lock:
                server.answered.append(json.loads(answer)["outputs"][0]["shape"][0])
        else:
            name, *arguments = fault.split(" ", 1)
            getattr(self, f"fault_{name}")(content, *arguments)

    def fault_reset(self, _):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def fault_status(self, _, arguments):
        status, *pause = arguments.split()
        self._send(int(status), b'{"error": "not now"}', *(("Retry-After", p) for p in pause))

    def fault_redirect(self, _, location):
        self._send(307, b"", ("Location", location))

    def fault_silence(self, _):
        """No answer for as long as the client waits."""
        self.connection.recv(1)
        self.close_connection = True

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

    def fault_cut(self, content):
        """A connection that ends before the answer does."""
        _, answer = self._forward(content)
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer[: len(answer) // 2])
        self.close_connection = True

    def fault_truncated(self, content):
        """An answer of the right length that is no JSON."""
        status, answer = self._forward(content)
        self._send(status, answer[: len(answer) // 2])

    def fault_shape(self, content):
        self._send_changed(content, lambda t, _: t["shape"].append(2))

    def fault_nan(self, content):
        self._send_changed(content, lambda t, _: t["data"].__setitem__(0, float("nan")))

    def fault_size(self, content):
        def more(tensor, _):
            tensor["shape"][0] += 1
            tensor["data"] += tensor["data"][:1] * tensor["shape"][1]

        self._send_changed(content, more)

    def fault_text(self, content):
        self._send_changed(content, lambda t, _: t.update(datatype="BYTES"))

    def fault_other(self, content):
        """The answer to another request."""
        self._send_changed(content, lambda _, answer: answer.update(id="another"))

    def _send_changed(self, content, change):
        status, answer = self._forward(content)
        document = json.loads(answer)
        change(document["outputs"][0], document)
        self._send(status, json.dumps(document).encode())

    def _forward(self, content):
        upstream = self.server.upstream
        connection = http.client.HTTPConnection(
            upstream.hostname, upstream.port, timeout=PATIENCE_SECONDS
        )
        with contextlib.closing(connection):
            headers = {k: v for k, v in self.headers.items() if k.lower() != "host"}
            connection.request(self.command, self.path, content, headers)
            response = connection.getresponse()
            return response.status, response.read()

    def _send(self, status, content, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
