"""A real S3 server for tests: SeaweedFS in a folder of its own, on loopback only; whatever kills the tests ends it."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paddlecloud.files.s3 import S3Store
from paddlecloud.model.errors import PaddleCloudError
from tests.absent import absent
from tests.ports import free_ports
from tests.waiting import wait_until

REGION = "us-east-1"
BUCKET = "test"
_PORTS = ("s3.port", "master.port", "volume.port", "filer.port", "admin.port")
_OFF = ("-webdav=false", "-admin.ui=false", "-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0")
_SMALL = ("-volume.max=20", "-master.volumeSizeLimitMB=256")


class S3Server:
    """One server with one bucket, in which each test has a folder of its own."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder = folder
        self.key_id, self.secret = "key-id-of-tests", secrets.token_hex(20)
        names = [name for port in _PORTS for name in (port, f"{port}.grpc")]
        self._ports = dict(zip(names, free_ports(len(names)), strict=True))
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    def store(self, folder: str | None = None, *, secret: str | None = None, bucket: str = BUCKET) -> S3Store:
        """A store in a folder of the bucket, a new one unless it is named."""
        place = f"{bucket}/{secrets.token_hex(6) if folder is None else folder}"
        return S3Store(place, key_id=self.key_id, secret=secret or self.secret, region=REGION, endpoint=self.endpoint)

    def unfinished(self) -> list[str]:
        """Uploads in parts that were begun and neither completed nor given up."""
        url = f"http://127.0.0.1:{self._ports['filer.port']}/buckets/{BUCKET}/.uploads/"
        request = urllib.request.Request(url, headers={"Accept": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return [str(entry["FullPath"]) for entry in json.load(answer)["Entries"] or ()]

    def start(self) -> None:
        ports = [f"-{name}={port}" for name, port in self._ports.items()]
        sockets = [f"-{name}.localSocket={self.folder}/{name}.sock" for name in ("filer", "s3")]
        where = [f"-dir={self.folder}/data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-bucket={BUCKET}"]
        (self.folder / "data").mkdir()
        words = [str(self._program), f"-logdir={self.folder}", "mini", *where, *ports, *sockets, *_OFF, *_SMALL]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", *words],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={
                    "HOME": str(self.folder),
                    "GOMEMLIMIT": "400MiB",
                    "AWS_ACCESS_KEY_ID": self.key_id,
                    "AWS_SECRET_ACCESS_KEY": self.secret,
                },
            )
        wait_until(self._answers, f"SeaweedFS answers; {self.folder}/log says why not", seconds=60)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=60)
            self._process = None

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self._ports["s3.port"])):
                return False
        try:
            return bool(self.store("ready").write("yes", [b"1"]))
        except PaddleCloudError:
            return False


@contextmanager
def running() -> Iterator[S3Server]:
    """A server that runs, or what tests/absent.py makes of there being none."""
    program = Path(sys.executable).with_name("weed")
    if not program.exists():
        absent(f"SeaweedFS is not installed as {program}: make .venv/.dev")
    folder = Path(tempfile.mkdtemp(prefix="pc-s3-", dir="/tmp"))  # a socket's path may have about 100 characters
    server = S3Server(folder, program)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
