"""`paddlecloud doctor`, typed where all is well, where the server is away, and where a config is broken."""

from __future__ import annotations

import json
import signal
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from paddlecloud.cli import doctor
from paddlecloud.model.finding import Verdict
from paddlecloud.sdk.profile import Profile
from tests.unit.cli.command import Command
from tests.unit.server.running import Running
from tests.waiting import wait_until


@pytest.fixture
def alone(tmp_path: Path) -> Command:
    """With the command itself on PATH, and nothing configured."""
    (tmp_path / "home").mkdir()
    return Command(tmp_path, {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"})


def lines(said: str) -> dict[str, str]:
    """The line of each subject; where there are two of one, the last."""
    return {line[9:].partition(":")[0]: line for line in said.splitlines()}


def test_a_user_is_told_of_here_and_of_the_way_to_the_server(server: Running, command: Command) -> None:
    said = command.type("doctor")
    found = lines(said.stdout)
    assert found["connection"].startswith(f"ok       connection: {server.url} answers within ")
    assert found["identity"] == "ok       identity: ann (user)"
    assert found["clocks"].startswith("ok ")
    assert "named by the environment; identity: a token of the environment" in found["profile"]
    assert "data folder" not in found, "of the server's machine only an admin is told"
    assert "only its admins are told" in found["server"]
    assert "0 failed" in said.stderr


def test_an_admin_is_told_of_the_servers_machine_too(server: Running, command: Command) -> None:
    command.variables["PADDLECLOUD_TOKEN"] = server.root
    found = lines(command.out("doctor"))
    assert found["server"].startswith("ok       server: it reads its records and schedules jobs")
    assert {"data folder", "cluster local", "key file"} <= set(found)


def test_an_embedded_server_that_several_users_share_is_said_to_be_made_for_one(alone: Command) -> None:
    alone.type("up")
    try:
        assert "users" not in lines(alone.out("doctor"))
        for name in ("ann", "bob", "carl"):
            alone.type("user", "add", name)
        found = lines(alone.out("doctor"))["users"]
        assert found.startswith("warning  users: 4 users (ann, bob, carl, …) share this embedded server")
        for name in ("ann", "bob", "carl"):
            alone.type("user", "disable", name)
        assert "users" not in lines(alone.out("doctor"))
    finally:
        alone.type("down")


def test_programs_get_the_findings_as_json(command: Command) -> None:
    found = json.loads(command.out("doctor", "-o", "json"))
    assert {"subject": "identity", "verdict": "ok", "text": "ann (user)", "remedy": ""} in found


def test_a_server_that_is_away_fails_with_what_to_do(alone: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    alone.variables |= {"PADDLECLOUD_SERVER": url, "PADDLECLOUD_TOKEN": "t"}
    said = alone.type("doctor", code=1)
    assert lines(said.stdout)["connection"].startswith(f"failed   connection: {url} does not answer")
    assert "1 failed" in said.stderr


def test_a_wrong_token_fails_and_the_connection_is_well(server: Running, alone: Command) -> None:
    alone.variables |= {"PADDLECLOUD_SERVER": server.url, "PADDLECLOUD_TOKEN": "pct_wrong"}
    found = lines(alone.type("doctor", code=1).stdout)
    assert found["connection"].startswith("ok ")
    assert found["identity"].startswith("failed ")
    assert "pct_wrong" not in str(found)


def test_with_nothing_configured_the_machine_itself_is_looked_at(alone: Command) -> None:
    (alone.folder / "data").mkdir(mode=0o700)
    (alone.folder / "data" / "server.toml").write_text("[server]\nport = 0\n")
    found = lines(alone.type("doctor").stdout)
    assert "none runs in" in found["server"]
    assert found["command"] == f"ok       command: {Path(sys.executable).parent}/paddlecloud"
    assert "open policy" in found["policy"]
    assert "no limits of its own" in found["cluster local"]


def test_a_file_of_a_shared_server_is_looked_at_before_it_starts(alone: Command) -> None:
    (alone.folder / "lab.toml").write_text(
        f'[server]\nport = 0\ndata = "{alone.folder}/srv"\ncertificate = "/no.pem"\ncertificate_key = "/no.key"\n'
    )
    found = lines(alone.type("doctor", "--config", "lab.toml", code=1).stdout)
    assert found["certificate"].startswith("failed   certificate: server.certificate: /no.pem cannot be read")
    assert "open policy" in found["policy"]
    assert not (alone.folder / "srv").exists()


def test_a_shared_server_that_runs_is_said_to_run_and_one_that_hangs_to_hang(alone: Command) -> None:
    (alone.folder / "lab.toml").write_text(f"[server]\nport = 0\ndata = '{alone.folder / 'data'}'\n")
    begun = alone.begin("serve", "--config", "lab.toml")
    try:
        wait_until((alone.folder / "data" / "server.json").exists, "it runs")
        found = lines(alone.type("doctor", "--config", "lab.toml").stdout)["server"]
        assert found.startswith(f"ok       server: one runs in {alone.folder}/data (pid {begun.pid}) and answers")
        begun.send_signal(signal.SIGSTOP)
        found = lines(alone.type("doctor", "--config", "lab.toml", code=1).stdout)["server"]
        assert found.startswith(f"failed   server: one runs in {alone.folder}/data (pid {begun.pid}) and is not ready")
    finally:
        begun.send_signal(signal.SIGCONT)
        begun.terminate()
        begun.communicate(timeout=30)


def test_a_ca_file_that_is_none_is_a_finding(server: Running, command: Command) -> None:
    command.variables |= {"PADDLECLOUD_SERVER": "https://127.0.0.1:1", "PADDLECLOUD_CA": "/no.pem"}
    assert (
        "the CA file /no.pem (named by the environment)" in lines(command.type("doctor", code=1).stdout)["connection"]
    )


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("data/server.toml", "[server]\nport = \n", "at line 2"),
        ("data/server.toml", "[server]\nprot = 1\n", "did you mean 'port'?"),
        ("home/.config/paddlecloud/config.toml", "server = \n", "at line 1"),
        ("home/bin/paddlecloud/conf/client.conf", "[main]\nnonsense\n", "line 2: 'nonsense'"),
    ],
)
def test_a_broken_config_is_named_with_its_line(alone: Command, file: str, text: str, says: str) -> None:
    path = alone.folder / file
    path.parent.mkdir(mode=0o700, parents=True)
    path.write_text(text)
    failures = [line for line in alone.type("doctor", code=1).stdout.splitlines() if line.startswith("failed")]
    assert len(failures) == 1
    assert str(path) in failures[0]
    assert says in failures[0]


def test_a_config_that_others_can_read_is_named(server: Running, alone: Command) -> None:
    alone.type("login", "--server", server.url, "--token", server.bob)
    file = alone.folder / "home" / ".config" / "paddlecloud" / "config.toml"
    assert lines(alone.out("doctor"))["config"] == f"ok       config: {file}, for its owner alone"
    file.chmod(0o644)
    said = lines(alone.out("doctor"))["config"]
    assert said.startswith("warning ")
    assert f"chmod 600 {file}" in said
    assert server.bob not in said


def test_another_program_of_the_name_is_named(alone: Command) -> None:
    other = alone.folder / "bin" / "paddlecloud"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    alone.variables["PATH"] = f"{other.parent}:{alone.variables['PATH']}"
    said = lines(alone.type("doctor").stdout)["command"]
    assert said.startswith(f"warning  command: `paddlecloud` is {other}, another program")
    alone.variables["PATH"] = "/usr/bin:/bin"
    assert "not on PATH" in lines(alone.type("doctor").stdout)["command"]


@pytest.mark.parametrize(
    ("date", "verdict"),
    [
        ("Mon, 16 Nov 2026 12:00:20 GMT", Verdict.OK),
        ("Mon, 16 Nov 2026 12:04:00 GMT", Verdict.WARNING),
        ("Mon, 16 Nov 2026 11:50:00 GMT", Verdict.FAILED),
    ],
)
def test_clocks_that_are_apart_are_named_before_signatures_are_refused(date: str, verdict: Verdict) -> None:
    now = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    (found,) = doctor.clocks(date, now, Profile(ak="a", sk="s"))
    assert found.verdict is verdict
    assert list(doctor.clocks("nonsense", now, Profile())) == []
