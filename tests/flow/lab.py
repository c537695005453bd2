"""A lab's box for one story: an empty HOME, a data folder, and the real command with the real server behind it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from paddlecloud.sdk.client import Client
from paddlecloud.sdk.profile import Profile
from tests.ports import free_port
from tests.waiting import wait_until

COMMAND = [sys.executable, "-m", "paddlecloud"]


class Lab:
    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.data = folder / "data"
        self.work = folder / "work"
        for path in (self.home, self.work):
            path.mkdir()
        self.env = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "PADDLECLOUD_DATA": str(self.data),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }

    def beside(self, folder: Path) -> Lab:
        """Another empty HOME and work folder at the same server."""
        made = Lab(folder)
        made.data = self.data
        made.env["PADDLECLOUD_DATA"] = str(self.data)
        return made

    def configure(self, text: str) -> None:
        """What the server's config file says from its next start on."""
        self.data.mkdir(mode=0o700, exist_ok=True)
        (self.data / "server.toml").write_text(text)

    def type(self, *words: str, code: int | None = 0, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """Type `paddlecloud …` and read what it says."""
        done = subprocess.run(
            [*COMMAND, *words],
            capture_output=True,
            text=True,
            cwd=self.work,
            env={**self.env, **env},
            input=stdin,
            timeout=120,
        )
        if code is not None:
            assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def out(self, *words: str) -> str:
        return self.type(*words).stdout

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Type a command and go on while it runs."""
        return subprocess.Popen(
            [*COMMAND, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.work,
            env=self.env,
        )

    def folder(self, name: str = "job", **files: str) -> Path:
        """A job folder; `run_sh="…"` becomes run.sh."""
        path = self.work / name
        path.mkdir(exist_ok=True)
        for file, text in files.items():
            stem, _, ending = file.rpartition("_")
            (path / f"{stem}.{ending}").write_text(text)
        return path

    def submit(self, command: str, *more: str) -> str:
        """Submit by seed 002's words; the job's id."""
        self.folder()
        return self.out("submit_job", "--files=job", f"--start_cmd={command}", *more).split()[-1]

    def field(self, job: str, name: str) -> str:
        """One field of query_job."""
        lines = self.out("query_job", f"--job_id={job}").splitlines()
        return dict(line.partition(":")[::2] for line in lines)[name].strip()

    def ends(self, job: str, state: str, *, seconds: float = 60.0) -> None:
        """Wait for the job's end, which must be `state`."""
        client = self.client()
        detail = wait_until(
            lambda: found if (found := client.get(job)).job.state.final else None, f"{job} ends", seconds=seconds
        )
        assert detail.job.state.label == state, f"{detail.job.error}\n{[task.tail for task in detail.tasks]}"

    def client(self) -> Client:
        embedded = json.loads((self.data / "embedded.json").read_text())
        return Client(Profile(server=self.server["url"], user=embedded["user"], ak=embedded["ak"], sk=embedded["sk"]))

    @property
    def server(self) -> dict[str, Any]:
        """What the server says of itself: url, pid, …"""
        return dict(json.loads((self.data / "server.json").read_text()))

    def kill_server(self) -> None:
        """kill -9 of the server, and nothing else."""
        pid: int = self.server["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not alive(pid), "the server is dead")

    def close(self) -> None:
        self.type("down", code=None)


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes_with(text: str) -> list[int]:
    """Every live process that has the text, such as a job's id, in its environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if text.encode() in (entry / "environ").read_bytes() and alive(int(entry.name)):
                found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def a_free_port() -> int:
    return free_port()
