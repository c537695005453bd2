"""A server of ours as an HDFS: what it answers to clients of WebHDFS is held to what a store of HDFS must do."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paddlecloud.files.hdfs import HdfsStore
from tests.unit.server.running import Running, running

USER = "ann"


class WebHdfsFace:
    def __init__(self, server: Running) -> None:
        self._server = server
        answer = server.ask("GET", "/v1/webhdfs")
        assert answer.status == 200, answer.data
        self.url = server.url + str(answer.json()["path"])

    def store(self, folder: str | None = None) -> HdfsStore:
        """A store in a folder of a home, a new one unless it is named."""
        return HdfsStore(self.url, folder or f"/user/{USER}/stores/{secrets.token_hex(6)}", user=USER)


@contextmanager
def serving(data: Path) -> Iterator[WebHdfsFace]:
    with running(data) as server:
        yield WebHdfsFace(server)
