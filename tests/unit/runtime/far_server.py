"""A server on loopback as a far node sees it: it keeps what it is sent, and answers as badly as a test wants."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from paddlecloud.runtime.ship import Server
from tests.certificates import Files


class FarServer:
    def __init__(self) -> None:
        self.log = b""
        self.files: dict[str, bytes] = {}
        self.executable: set[str] = set()
        self.news: list[dict[str, object]] = []
        self.given: dict[str, bytes] = {}  # what GET and POST of a path below the job answer
        self.refused: tuple[str, ...] = ()  # parts of paths of files that it does not take
        self.cut: list[str] = []  # requests that are answered in part, once each
        self.unended: list[str] = []  # requests whose whole answer comes without its end, once each
        self.hold: dict[str, threading.Event] = {}  # requests that are answered after that
        self.asked: list[str] = []
        self.port = 0
        self.scheme = "http"
        self._clients: list[Server] = []

    @property
    def environ(self) -> dict[str, str]:
        url = f"{self.scheme}://127.0.0.1:{self.port}"
        return {"PADDLECLOUD_SERVER": url, "PADDLECLOUD_JOB": "job-1", "PADDLECLOUD_TOKEN": "pcj_1"}

    def client(self, certificate: str = "") -> Server:
        made = Server({**self.environ, **({"PADDLECLOUD_CERTIFICATE": certificate} if certificate else {})})
        self._clients.append(made)
        return made

    def hang_up(self) -> None:
        for client in self._clients:
            client.hang_up()

    def put(self, path: str, query: dict[str, list[str]], body: bytes) -> tuple[int, bytes]:
        if path.endswith("/log"):
            self.log = self.log[: int(query["offset"][0])] + body if body else self.log
            return 200, json.dumps({"length": len(self.log)}).encode()
        if path.endswith("/news"):
            self.news.append(json.loads(body))
            return 200, b""
        name = query["path"][0]
        if any(part in name for part in self.refused):
            return 403, json.dumps({"detail": "it has no place here"}).encode()
        self.files[name] = self.files.get(name, b"")[: int(query["offset"][0])] + body
        if query["executable"] == ["true"]:
            self.executable.add(name)
        return 200, b"{}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    far: FarServer

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        asked = urlsplit(self.path)
        path = asked.path.partition("/v1/jobs/job-1/")[2]
        self.far.asked.append(path)
        if path in self.far.hold:
            self.far.hold[path].wait(60)
        if self.command == "PUT":
            status, said = self.far.put(path, parse_qs(asked.query), body)
        else:
            status, said = (200, self.far.given[path]) if path in self.far.given else (404, b"{}")
        self.send_response(status)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        cut = path in self.far.cut
        unended = path in self.far.unended
        if cut:
            self.far.cut.remove(path)
        if unended:
            self.far.unended.remove(path)
        self.close_connection |= cut or unended
        piece = said[: len(said) // 2] if cut else said
        if piece:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if not cut and not unended:
            self.wfile.write(b"0\r\n\r\n")


@contextmanager
def far_server(files: Files | None = None, chain: Path | None = None) -> Iterator[FarServer]:
    far = FarServer()
    handler = type("Handler", (_Handler,), {"far": far})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        if files is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(chain or files.chain, files.key)
            serving.socket = context.wrap_socket(serving.socket, server_side=True)
            far.scheme = "https"
        far.port = serving.server_port
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield far
        finally:
            far.hang_up()
            serving.shutdown()
            thread.join()
