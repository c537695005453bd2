"""Runs a temporary server for a benchmark, with a new data folder and an empty HOME."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from paddlecloud.sdk.client import Client
from paddlecloud.sdk.profile import Profile

COMMAND = [sys.executable, "-m", "paddlecloud"]


@contextmanager
def running(
    config: str = "",
    *,
    below: Path | None = None,
    more: Mapping[str, str] | None = None,
    command: Sequence[str] = COMMAND,
    shared: bool = False,
) -> Iterator[Client]:
    """Yield a client of a new server. `below` chooses the disk for its data, `more` adds to its environment. A server
    that is not `shared` is embedded."""
    # Not below /tmp: tasks have their own /tmp, so no server keeps its data there.
    disk = below or (Path("/srv") if os.geteuid() == 0 else Path.home())
    with tempfile.TemporaryDirectory(prefix="paddlecloud-bench-", dir=disk) as folder:
        home, data = Path(folder, "home"), Path(folder, "data")
        home.mkdir()
        data.mkdir(mode=0o700)
        (data / "server.toml").write_text(config)
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "PADDLECLOUD_DATA": str(data), "LANG": "C.UTF-8"}
        env = {**env, **(more or {})}
        if shared:
            (data / "server.toml").write_text(f"[server]\nport = 0\n{config}")
            process = subprocess.Popen([*command, "serve"], env=env, stderr=subprocess.DEVNULL)
            while not (data / "server.json").exists() and process.poll() is None:
                time.sleep(0.05)
        else:
            subprocess.run([*command, "up"], env=env, check=True, stdout=subprocess.DEVNULL)
        try:
            with Client(profile_of(data)) as client:
                yield client
        finally:
            subprocess.run([*command, "down"], env=env, check=True, stdout=subprocess.DEVNULL)
            if shared:
                process.wait()


def profile_of(data: Path) -> Profile:
    server = json.loads((data / "server.json").read_text())
    key = json.loads((data / "embedded.json").read_text())
    return Profile(server=server["url"], user=key["user"], ak=key["ak"], sk=key["sk"])
