"""The manual's install folder, and the client on a system that lacks what Windows lacks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.flow.lab import Lab

# What Python has on Linux and not on Windows: hidden before anything of ours is imported.
WITHOUT = """
import os, signal, sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in "fork pread pwrite getuid geteuid fchown chown O_NOFOLLOW O_DIRECTORY O_CLOEXEC".split():
    delattr(os, name)
for name in [name for name in dir(signal) if name.startswith("SIG") and name not in (
    "SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM", "SIG_DFL", "SIG_IGN"
)]:
    delattr(signal, name)
"""
COMMAND = [sys.executable, "-c", f"{WITHOUT}\nfrom paddlecloud.cli.main import main\nsys.exit(main())"]
MODULES = """
import importlib, pkgutil
import paddlecloud.cli, paddlecloud.model, paddlecloud.recordio, paddlecloud.sdk
for package in (paddlecloud.cli, paddlecloud.model, paddlecloud.recordio, paddlecloud.sdk):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(found.name)
"""


def test_every_module_of_the_client_is_imported_without_what_windows_lacks() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT + MODULES], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def windows(desk: Lab) -> Lab:
    """A desk whose server runs elsewhere: it is named, as nothing can be started there."""
    desk.type("up")
    token = desk.out("token", "create", "--scope", "admin", "windows").split()[-1]
    desk.env |= {"PADDLECLOUD_SERVER": desk.server["url"], "PADDLECLOUD_TOKEN": token}
    desk.env["PADDLECLOUD_DATA"] = str(desk.home / "data")
    return desk


def typed(desk: Lab, *words: str, code: int = 0) -> str:
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, cwd=desk.work, env=desk.env, timeout=120)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def test_the_client_runs_jobs_without_what_windows_lacks(windows: Lab) -> None:
    windows.folder(run_sh="echo hello; head -c 40000000 /dev/zero > $OUTPUT_PATH/large; echo 1 > $OUTPUT_PATH/small\n")
    (windows.work / "job" / "data").write_bytes(os.urandom(10_000_000))
    assert "hello" in typed(windows, "run", "job", "--download-dir", "results", "--", "sh", "run.sh")
    [results] = (windows.work / "results").glob("job-*")
    assert (results / "rank-0" / "large").stat().st_size == 40_000_000
    job = typed(windows, "submit_job", "--files=job", "--start_cmd=kill -SEGV $$", "--watch_mode=1", code=100)
    assert "SIGSEGV (segmentation fault)" in job
    assert "success" in typed(windows, "ls")
    assert "hello" in typed(windows, "logs", results.name)
    assert "log/trainer-0.log" in typed(windows, "get_files", f"--job_id={results.name}")
    assert "answers" in typed(windows, "status")
    typed(windows, "doctor")


def test_without_a_server_named_the_client_says_that_none_can_run_there(lab: Lab) -> None:
    lab.folder()
    told = typed(lab, "submit", "job", "--", "true", code=1)
    assert "no server is configured, and none can run on this system: name one by PADDLECLOUD_SERVER" in told


def test_the_manuals_folder_is_made_and_its_command_works(lab: Lab) -> None:
    done = lab.type("install", "--manual-layout")
    folder = lab.home / "bin" / "paddlecloud"
    assert done.stdout.strip() == str(folder)
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    assert found == ["conf", "conf/client.conf", "paddlecloud", "paddlecloud.bat"]
    conf = folder / "conf" / "client.conf"
    assert conf.stat().st_mode & 0o777 == 0o600
    env = lab.env | {"PATH": f"{folder}:{lab.env['PATH']}"}
    said = subprocess.run(
        ["paddlecloud", "version"], capture_output=True, text=True, cwd=lab.work, env=env, timeout=60, check=True
    )
    assert said.stdout.startswith("paddlecloud ")
    assert f'"{sys.executable}" -m paddlecloud %*' in (folder / "paddlecloud.bat").read_text()
    assert f"ok       command: {folder}/paddlecloud" in lab.type("doctor", PATH=env["PATH"], code=None).stdout
    conf.write_text(conf.read_text().replace("user_id =", "user_id = zhang"))
    lab.type("install", "--manual-layout")
    assert "user_id = zhang" in conf.read_text(), "what was written there stays"
