"""OpenPAI's real SDK from npm, driven from here: one process of node, a line for each call."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.npm import modules

_DRIVER = Path(__file__).parent / "js" / "openpai.js"


class SdkError(Exception):
    def __init__(self, said: dict[str, Any]) -> None:
        super().__init__(said["message"])
        self.name, self.status, self.code = said["name"], said["status"], said["code"]


class Sdk:
    def __init__(self, url: str, user: str, **secret: str) -> None:
        found = modules()
        self.cluster = {"rest_server_uri": f"{urlsplit(url).netloc}/rest-server", "username": user, "https": False}
        self.cluster |= secret
        env = {"PATH": os.environ["PATH"], "NODE_PATH": str(found)}
        self._process = subprocess.Popen(
            ["node", str(_DRIVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )

    def call(self, part: str, method: str, *args: Any, api: str = "v2") -> Any:
        """What a method of the SDK gives; SdkError is what it throws."""
        sent = {"api": api, "cluster": self.cluster, "part": part, "method": method, "args": args}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(sent) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        if "refused" in said:
            raise SdkError(said["refused"])
        return said["value"]

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=30)
        if self._process.stdout is not None:
            self._process.stdout.close()


def pai(folder: Path, *words: str) -> str:
    """Type `pai …`, the SDK's own command, with its state in a folder."""
    done = subprocess.run(
        ["node", str(modules() / ".bin" / "pai"), *words],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    # It ends with 0 whatever happens; the first time it misses the file that it is about to make.
    assert not done.stderr or ("ENOENT" in done.stderr and "clusters.json" in done.stderr), done.stderr
    return done.stdout
