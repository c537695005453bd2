"""npm's webhdfs, the client of HDFS in OpenPAI's VS Code client, driven from here: one process of node."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.npm import modules

_DRIVER = Path(__file__).parent / "js" / "webhdfs.js"


class RefusedError(Exception):
    """What its callback was given instead of an answer."""


class NodeHdfs:
    """`url` is what `paddlecloud webhdfs` prints."""

    def __init__(self, url: str, user: str, top: str = "/webhdfs/v1") -> None:
        there = urlsplit(url)
        self._client = {"user": user, "host": there.hostname, "port": there.port, "path": there.path + top}
        self._process = subprocess.Popen(
            ["node", str(_DRIVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={"PATH": os.environ["PATH"], "NODE_PATH": str(modules())},
        )

    def call(self, method: str, *args: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"client": self._client, "method": method, "args": args}) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        if "refused" in said:
            raise RefusedError(said["refused"])
        return said["value"]

    def write(self, path: str, content: bytes, *, append: bool = False, **options: object) -> None:
        self.call("write", path, base64.b64encode(content).decode(), append, options)

    def read(self, path: str, **options: object) -> bytes:
        return base64.b64decode(self.call("read", path, options))

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=30)
        if self._process.stdout is not None:
            self._process.stdout.close()
