"""What is made of a NameNode's answers, those of newer ones too, which say some things in other words."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from paddlecloud.files.webhdfs import WebHdfs
from paddlecloud.model.errors import ConflictError, ForbiddenError, FullError, PaddleCloudError, UnreachableError


@contextmanager
def refusing(exception: str, message: str) -> Iterator[str]:
    """A NameNode that answers everything with this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"RemoteException": {"exception": exception, "message": message}}).encode()
            self.send_response(403)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("exception", "message"),
    [
        ("FileNotFoundException", "File does not exist: /a/b"),
        ("ParentNotDirectoryException", "/a (is not a directory)"),
        ("AccessControlException", "/a (is not a directory)"),
    ],
)
def test_what_is_not_there_is_not_there_in_whatever_words(exception: str, message: str) -> None:
    with refusing(exception, message) as url:
        assert WebHdfs(url, "pc").status("/a/b") is None


@pytest.mark.parametrize(
    ("exception", "message", "kind", "says"),
    [
        (
            "AccessControlException",
            "Permission denied: user=pc",
            ForbiddenError,
            "HDFS denies this to user pc: Permission denied",
        ),
        (
            "SafeModeException",
            "Cannot create.\nName node is in safe mode.",
            UnreachableError,
            " failed: Cannot create.",
        ),
        ("NSQuotaExceededException", "The NameSpace quota is exceeded", FullError, "quota is exceeded"),
        ("FileAlreadyExistsException", "/a is a file", ConflictError, "'/a': /a is a file"),
        ("SomethingNew", "no idea", UnreachableError, "no idea"),
    ],
)
def test_a_refusal_is_told_in_our_words(exception: str, message: str, kind: type[PaddleCloudError], says: str) -> None:
    with refusing(exception, message) as url, pytest.raises(kind, match=says):
        WebHdfs(url, "pc").make_folder("/a")
