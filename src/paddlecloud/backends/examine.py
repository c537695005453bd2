"""What of this machine decides how tasks run here, found out by trying and leaving nothing behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import paddlecloud.runtime
from paddlecloud.backends.base import Backend
from paddlecloud.backends.forking import Forker
from paddlecloud.backends.local import LocalBackend, interpreter_path
from paddlecloud.model.errors import ConfigError
from paddlecloud.runtime import cgroups

_ANSWER_SECONDS = 2
_NO_RANGE = (
    "import sys; sys.path.insert(0, sys.argv[1]); from paddlecloud.runtime import rootless; print(rootless.problem())"
)
_VERSION = "import platform; print(platform.python_implementation(), platform.python_version())"


def isolation_of(backend: Backend) -> str:
    """How a backend of this machine keeps its tasks apart, in words; "" of one elsewhere."""
    return backend.isolation if isinstance(backend, LocalBackend) else ""


def memory_limit_of(backend: Backend) -> str | None:
    """Whether a backend of this machine limits the memory of each "task" or "process"; None of one elsewhere."""
    if not isinstance(backend, LocalBackend):
        return None
    return "task" if backend.limits_memory else "process"


def limits_of(account: int, pid: int | None) -> str:
    """How the server with this pid limits its tasks, or one that this account would start from here, in words.

    Nothing is tried: only the server's own process could, and would change its groups by it.
    """
    return str(cgroups.writable(cgroups.hierarchies_of("self" if pid is None else str(pid)), account))


def namespaces_at(root: Path) -> str:
    """Which namespaces tasks with folders below `root` would get."""
    with tempfile.TemporaryDirectory(prefix=".probe-", dir=root) as scratch:
        forker = Forker(Path(scratch), "", namespaces=True, cgroups=False)
        try:
            return forker.isolation.partition(";")[0]
        finally:
            forker.close()


def no_range() -> str:
    """Why this account has no user ids of its own to give to tasks; "" if it has.

    A process of its own tries it: this one may have threads, and cannot fork safely.
    """
    words = [sys.executable, "-c", _NO_RANGE, str(Path(paddlecloud.runtime.__file__).parents[2])]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"it could not be tried: {error}"
    return said.stdout.strip()


def gives_out_ids(pid: int, account: int) -> bool:
    """Whether a server of a plain account is root of that account's range of ids, as runtime/rootless.py makes it."""
    lines = Path(f"/proc/{pid}/uid_map").read_text().splitlines()
    mapped = [tuple(int(word) for word in line.split()) for line in lines]
    return (0, account, 1) in mapped and any(count > 1 for _, _, count in mapped)


def interpreter(asked: str | None) -> str:
    """The interpreter of tasks and what it says of itself; ConfigError where it says nothing."""
    path = interpreter_path(asked)
    try:
        said = subprocess.run(
            [path, "-I", "-c", _VERSION], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{path} does not run: {error}") from None
    if said.returncode != 0:
        raise ConfigError(f"{path} does not run: {said.stderr.strip()[-200:] or f'exit code {said.returncode}'}")
    return f"{said.stdout.strip()} ({path})"
