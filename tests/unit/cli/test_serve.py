"""Verbs about a server on this machine: the embedded one beside a configured one, and a machine that cannot run one."""

from __future__ import annotations

import socket
import subprocess
import sys

from tests.unit.cli.command import Command
from tests.unit.server.running import Running
from tests.waiting import wait_until

CLIENT_ONLY = "import sys; sys.modules['fastapi'] = None; from paddlecloud.cli.main import main; sys.exit(main())"


def client_only(command: Command, *words: str) -> subprocess.CompletedProcess[str]:
    """The command where the parts that run a server are not installed."""
    return subprocess.run(
        [sys.executable, "-c", CLIENT_ONLY, *words],
        env=command.environment,
        cwd=command.folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_the_server_parts_the_command_to_install_them_is_said(alone: Command) -> None:
    for verb in ("ls", "serve", "up", "status", "config"):
        said = client_only(alone, verb)
        assert "pip install 'paddlecloud[server]'" in said.stdout + said.stderr, verb
        assert "paddlecloud up" not in said.stdout + said.stderr
    assert "no server is configured" in client_only(alone, "ls").stderr
    for verb in ("serve", "up"):
        assert "no server is configured" not in client_only(alone, verb).stderr


def test_status_says_where_commands_go_and_whether_that_server_answers(server: Running, command: Command) -> None:
    said = command.out("status")
    assert f"{server.url} (the environment), which answers" in said
    assert "no server runs in" in said
    assert command.type("status", "-o", "name").stdout.strip() == server.url


def test_status_of_a_configured_server_that_is_away_exits_with_4(alone: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    alone.variables["PADDLECLOUD_SERVER"] = url
    assert f"{url} (the environment), which does not answer" in alone.type("status", code=4).stdout


def test_up_warns_that_commands_go_elsewhere(server: Running, alone: Command) -> None:
    (alone.folder / "data").mkdir(mode=0o700)
    (alone.folder / "data" / "server.toml").write_text("[server]\nport = 0\n")
    alone.type("login", "--server", server.url, "--token", server.bob)
    try:
        said = alone.type("up").stderr
    finally:
        down = alone.type("down").stderr
    assert f"commands go to {server.url}" in said
    assert "paddlecloud logout" in said
    assert "stopped" in down
    assert "run on" not in down


def test_the_settings_of_a_file_are_shown(alone: Command) -> None:
    (alone.folder / "lab.toml").write_text("[server]\nport = 8700\n")
    assert "port = 8700" in alone.out("config", "--server", "--config", "lab.toml")
    assert "--config goes with --server" in alone.type("config", "--config", "lab.toml", code=2).stderr


def test_settings_of_a_server_that_runs_may_come_from_a_file_that_we_do_not_know(alone: Command) -> None:
    (alone.folder / "lab.toml").write_text(f"[server]\nport = 0\ndata = '{alone.folder / 'data'}'\n")
    begun = alone.begin("serve", "--config", "lab.toml")
    try:
        assert begun.stderr is not None
        while not (alone.folder / "data" / "server.json").exists():
            assert begun.stderr.readline()
        said = alone.type("config", "--server").stderr
    finally:
        begun.terminate()
        begun.communicate(timeout=30)
    assert f"pid {begun.pid}" in said
    assert "--config FILE" in said


def test_no_command_starts_a_server_in_the_place_of_a_shared_one(alone: Command) -> None:
    config = alone.folder / "lab.toml"
    config.write_text("[server]\nport = 0\n")
    data = alone.folder / "data"
    words = [sys.executable, "-m", "paddlecloud", "serve", "--config", "lab.toml"]
    shared = subprocess.Popen(words, env=alone.environment, cwd=alone.folder, stderr=subprocess.DEVNULL)
    try:
        wait_until((data / "server.json").exists, "the shared server runs")
        alone.type("ls")
    finally:
        shared.terminate()
        shared.wait()
    again = f"paddlecloud serve --config {config}"
    for verb in ("ls", "audit", "up"):
        assert (
            f"the shared server of {data} does not run; it is started with: {again}" in alone.type(verb, code=4).stderr
        )
    assert f"is that of a shared server: start it with {again}" in alone.type("serve", "--embedded", code=1).stderr
    (data / "shared.json").unlink()
    (data / "server.toml").write_text("[server]\nport = 0\n")
    alone.type("up")
    alone.type("down")
