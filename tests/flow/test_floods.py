"""Hundreds of connections that never send a byte: other clients are served, and jobs run."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import urllib3

from tests.certificates import Authority
from tests.flow.lab import COMMAND, Lab
from tests.waiting import wait_until

OPEN_FILES = 400
SILENT = 300  # from each of two addresses
CONFIG = """[server]
port = 0
{certificate}
[clusters.local]
policy = "open"
"""


class LimitedLab(Lab):
    """A server in the foreground that may have few files open."""

    def __init__(self, folder: Path, *, encrypted: bool) -> None:
        super().__init__(folder)
        authority = Authority(folder / "ca")
        self.configure(CONFIG.format(certificate=authority.issue().config if encrypted else ""))
        self.log = folder / "log"
        limited = ["sh", "-c", f'ulimit -n {OPEN_FILES}; exec "$@"', "sh", *COMMAND, "serve"]
        with self.log.open("w") as stream:
            self.serving = subprocess.Popen(limited, stderr=stream, env=self.env, cwd=self.work)
        wait_until(lambda: (self.data / "server.json").exists() or self.serving.poll() is not None, "it has started")
        assert self.serving.poll() is None, self.log.read_text()
        self.url: str = self.server["url"]
        self.env |= {"PADDLECLOUD_CA": str(authority.file)}
        self.elsewhere = urllib3.PoolManager(
            retries=False, timeout=20.0, ca_certs=str(authority.file), source_address=("127.0.0.3", 0)
        )

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.serving.pid}/fd").iterdir()))

    def close(self) -> None:
        self.serving.terminate()
        self.serving.wait(30)


@pytest.fixture(params=["plain", "encrypted"])
def limited(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LimitedLab]:
    lab = LimitedLab(tmp_path, encrypted=request.param == "encrypted")
    yield lab
    lab.close()


def test_silent_connections_of_two_addresses_leave_the_server_to_others(limited: LimitedLab) -> None:
    token = json.loads(limited.out("token", "create", "for the test", "-o", "json"))["secret"]
    headers = {"Authorization": f"Bearer {token}"}
    port = int(limited.url.rpartition(":")[2])
    with ExitStack() as stack:
        for _ in range(SILENT):
            for address in ("127.0.0.1", "127.0.0.2"):
                with suppress(OSError):
                    made = socket.create_connection(("127.0.0.1", port), 5.0, source_address=(address, 0))
                    stack.enter_context(made)

        assert limited.elsewhere.request("GET", f"{limited.url}/readyz").status == 200
        assert limited.open_files() < OPEN_FILES * 3 // 4
        spec = {"roles": [{"name": "trainer", "count": 1, "command": "echo it runs"}]}
        sent = limited.elsewhere.request("POST", f"{limited.url}/v1/jobs", json=spec, headers=headers)
        assert sent.status == 201, sent.data
        job = f"{limited.url}/v1/jobs/{sent.json()['id']}"

        def state() -> str:
            found: str = limited.elsewhere.request("GET", job, headers=headers).json()["job"]["state"]
            return found

        wait_until(lambda: state() in ("success", "failed"), "the job has ended")
        assert state() == "success"
        measured = limited.elsewhere.request("GET", f"{limited.url}/metrics", headers=headers).data.decode()
        assert float(value_of(measured, 'paddlecloud_refused_connections_total{limit="address"}')) >= SILENT
        assert float(value_of(measured, "paddlecloud_connections")) <= OPEN_FILES // 2
    told = [line for line in limited.log.read_text().splitlines() if "refused a connection from 127.0.0." in line]
    assert len(told) == 1
    wait_until(lambda: limited.type("ls", code=None).returncode == 0, "127.0.0.1 is served once they are closed")


def value_of(measured: str, name: str) -> str:
    return next(line.split()[-1] for line in measured.splitlines() if line.startswith(f"{name} "))
