"""A server process: how it starts, what it leaves, and how quickly it goes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import urllib3

import paddlecloud
from paddlecloud.model.errors import ConfigError
from paddlecloud.server.datadir import hold
from paddlecloud.server.listening import address, listen
from paddlecloud.server.settings import DEFAULT_PORT, ServerSettings
from tests.certificates import Authority
from tests.waiting import wait_until

SERVE = """
import sys, tomllib
from pathlib import Path
from paddlecloud.model.errors import ConfigError
from paddlecloud.server import app, config
try:
    app.serve(config.load(data=Path(sys.argv[1]), embedded="--embedded" in sys.argv))
except ConfigError as error:
    sys.exit(error.message)
"""


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(paddlecloud.__file__).parents[1])}


def command(data: Path, *words: str) -> list[str]:
    return [sys.executable, "-c", SERVE, str(data), *words]


class Process:
    def __init__(self, data: Path, *words: str) -> None:
        self.data = data
        self.log = data.parent / "log"
        with self.log.open("a") as log:
            self.process = subprocess.Popen(command(data, *words), stdout=log, stderr=log, env=ENVIRONMENT)

    def ready(self) -> str:
        """Its URL, once it is announced."""
        wait_until(lambda: (self.data / "server.json").exists() or self.process.poll() is not None, "it is announced")
        assert self.process.poll() is None, self.log.read_text()
        return str(json.loads((self.data / "server.json").read_text())["url"])

    def end(self, number: int = signal.SIGTERM) -> float:
        """Ask it to go; how long it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(timeout=30)
        return time.monotonic() - began


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / "server.toml").write_text("[server]\nport = 0\n")
    return folder


@pytest.fixture
def process(data: Path) -> Iterator[Process]:
    started = Process(data, "--embedded")
    yield started
    if started.process.poll() is None:
        started.process.kill()
    started.process.wait()


def test_a_server_answers_when_it_is_announced_and_takes_the_word_back_at_its_end(process: Process) -> None:
    url = process.ready()
    assert urllib3.request("GET", f"{url}/readyz", retries=False).status == 200
    kept = json.loads((process.data / "embedded.json").read_text())
    assert set(kept) == {"user", "ak", "sk"}
    for name in ("embedded.json", "server.json", "key", "paddlecloud.db"):
        assert (process.data / name).stat().st_mode & 0o077 == 0, name
    process.end()
    assert process.process.returncode == 0
    assert not (process.data / "server.json").exists()
    again = Process(process.data, "--embedded")
    again.ready()
    assert json.loads((process.data / "embedded.json").read_text()) == kept
    again.end(signal.SIGINT)
    assert again.process.returncode == 0


def test_a_server_with_open_streams_goes_without_waiting_for_them(process: Process) -> None:
    url = process.ready()
    token = make_token(process.data)
    pool = urllib3.PoolManager(retries=False, maxsize=20)
    headers = {"Authorization": f"Bearer {token}"}
    streams = [pool.request("GET", f"{url}/v1/events", headers=headers, preload_content=False) for _ in range(10)]
    assert [stream.status for stream in streams] == [200] * 10
    assert process.end() < 10.0
    assert process.process.returncode == 0
    for stream in streams:
        stream.close()
    assert "Traceback" not in process.log.read_text()


def test_an_encrypted_server_with_open_streams_goes_as_quickly(data: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    (data / "server.toml").write_text(f"[server]\nport = 0\n{authority.issue().config}")
    process = Process(data, "--embedded")
    url = process.ready()
    assert url.startswith("https://")
    pool = urllib3.PoolManager(retries=False, maxsize=20, ca_certs=str(authority.file))
    headers = {"Authorization": f"Bearer {make_token(data)}"}
    streams = [pool.request("GET", f"{url}/v1/events", headers=headers, preload_content=False) for _ in range(5)]
    assert [stream.status for stream in streams] == [200] * 5
    assert pool.request("GET", f"{url}/healthz").status == 200, "and one connection is idle"
    assert process.end() < 10.0
    assert process.process.returncode == 0
    for stream in streams:
        stream.close()
    assert "Traceback" not in process.log.read_text()


def test_a_shared_server_says_its_policy_and_how_to_have_the_manuals(data: Path) -> None:
    process = Process(data)
    process.ready()
    process.end()
    assert 'server.policy = "free" gives the manual\'s limits' in process.log.read_text()


def test_a_server_may_have_as_many_files_open_as_the_system_allows_up_to_a_bound(data: Path) -> None:
    (data / "limited").write_text(f'#!/bin/sh\nulimit -Sn 256\nexec "{sys.executable}" "$@"\n')
    (data / "limited").chmod(0o755)
    words = [str(data / "limited"), *command(data)[1:]]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, env=ENVIRONMENT) as begun:
        wait_until((data / "server.json").exists, "it is announced")
        limits = Path(f"/proc/{begun.pid}/limits").read_text()
        begun.terminate()
    soft, hard = next(line.split()[3:5] for line in limits.splitlines() if line.startswith("Max open files"))
    assert soft == str(min(int(hard), 65536) if hard.isdigit() else 65536)


def test_a_server_with_a_wrong_certificate_does_not_start_and_leaves_nothing(data: Path) -> None:
    (data / "server.toml").write_text('[server]\ncertificate = "/no.pem"\ncertificate_key = "/no.key"\n')
    done = subprocess.run(command(data), capture_output=True, text=True, timeout=30, env=ENVIRONMENT)
    assert (done.returncode, "server.certificate: /no.pem cannot be read" in done.stderr) == (1, True)
    assert os.listdir(data) == ["server.toml"]


def make_token(data: Path) -> str:
    from paddlecloud.model.user import Scope
    from paddlecloud.server.app import utc_now
    from paddlecloud.store.db import Database
    from paddlecloud.store.secrets import Cipher
    from paddlecloud.store.users import Users

    database = Database.open(f"sqlite:///{data / 'paddlecloud.db'}")
    try:
        users = Users(database, Cipher(data / "key"))
        return users.add_token(users.list()[0].name, "test", Scope.ADMIN, None, utc_now())[1]
    finally:
        database.close()


def test_a_second_server_says_who_is_there_and_the_first_goes_on(process: Process) -> None:
    url = process.ready()
    second = subprocess.run(command(process.data), capture_output=True, text=True, timeout=30, env=ENVIRONMENT)
    assert second.returncode == 1
    assert f"pid {process.process.pid}" in second.stderr
    assert "Traceback" not in second.stderr
    assert urllib3.request("GET", f"{url}/healthz", retries=False).status == 200


def test_a_killed_server_leaves_its_folder_to_the_next(process: Process) -> None:
    process.ready()
    process.process.kill()
    process.process.wait()
    (process.data / "server.json").unlink()
    after = Process(process.data)
    after.ready()
    after.end()


def test_a_port_that_is_taken_is_named_and_an_embedded_server_takes_another_than_the_usual_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for embedded in (False, True):
            settings = replace(ServerSettings(), port=port)
            with (
                pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is taken"),
                listen(settings, embedded=embedded),
            ):
                pass
    with listen(ServerSettings(), embedded=True) as first, listen(ServerSettings(), embedded=True) as second:
        assert {address(first), address(second)} != {f"http://127.0.0.1:{DEFAULT_PORT}"}
        assert address(first) != address(second)


def test_an_embedded_server_whose_usual_port_is_taken_comes_back_at_the_port_it_had(tmp_path: Path) -> None:
    with hold(tmp_path / "data") as folder, listen(ServerSettings(), embedded=True) as usual:
        assert folder.last_port == 0
        with listen(ServerSettings(), embedded=True, again=folder.last_port) as first:
            had = address(first)
            folder.remember_port(first.getsockname()[1])
        with listen(ServerSettings(), embedded=True, again=folder.last_port) as second:
            assert address(second) == had
            with listen(ServerSettings(), embedded=True, again=folder.last_port) as third:
                assert address(third) not in (had, address(usual))


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_an_address_that_is_not_of_this_machine_is_named(host: str) -> None:
    with (
        pytest.raises(ConfigError, match=f"cannot listen on {host}"),
        listen(replace(ServerSettings(), host=host), embedded=False),
    ):
        pass


def test_a_process_that_never_started_leaves_nothing(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (data / "server.toml").write_text(f"[server]\nport = {taken.getsockname()[1]}\n")
        done = subprocess.run(command(data), capture_output=True, text=True, timeout=30, env=ENVIRONMENT)
    assert done.returncode == 1
    assert "is taken" in done.stderr
    assert sorted(os.listdir(data)) == ["lock", "server.toml"]
