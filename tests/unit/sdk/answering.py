"""A real HTTP server on a loopback port that answers each request with the next thing it was told to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from paddlecloud.sdk.profile import Profile


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """With `cut` the connection is closed where the rest of a chunked body would follow."""

    status: int = 200
    body: bytes = b"{}"
    media: str = "application/json"
    cut: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


Respond = Callable[[Asked], Answer | None]  # None: hang up without a word


@dataclass
class Web:
    url: str
    asked: list[Asked] = field(default_factory=list)

    @property
    def profile(self) -> Profile:
        return Profile(server=self.url, ak="ak", sk="sk")


@contextmanager
def web(respond: Respond) -> Iterator[Web]:
    class Talk(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(self.command, self.path, dict(self.headers), body)
            seen.asked.append(asked)
            answer = respond(asked)
            if answer is None:
                self.close_connection = True
                return
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.media)
            self.send_header("Transfer-Encoding", "chunked")
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if answer.body:
                self.wfile.write(f"{len(answer.body):x}\r\n".encode() + answer.body + b"\r\n")
            if answer.cut:
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_any  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Talk)
    server.daemon_threads = True
    seen = Web(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
