"""Who one is to a server, typed: login, logout, and what an operator is told after adding a user."""

from __future__ import annotations

import socket

import pytest

from paddlecloud.server.app import utc_now
from tests.unit.cli.command import Command
from tests.unit.server.running import Running


def as_admin(server: Running, command: Command) -> Command:
    command.variables["PADDLECLOUD_TOKEN"] = server.root
    return command


def test_login_remembers_the_server_for_its_owner_only(server: Running, alone: Command) -> None:
    home = alone.folder / "home"
    home.mkdir()
    alone.type("login", "--server", server.url, "--token", server.bob)
    config = home / ".config" / "paddlecloud" / "config.toml"
    assert config.stat().st_mode & 0o777 == 0o600
    assert alone.type("ls").stdout == ""
    shown = alone.out("config")
    assert "bob" in shown
    assert server.bob not in shown
    assert str(config) in shown


def test_logout_forgets_what_login_kept(server: Running, alone: Command) -> None:
    alone.type("login", "--server", server.url, "--token", server.bob)
    assert server.url in alone.type("logout").stderr
    assert server.url not in alone.out("config")
    assert "names no server" in alone.type("logout").stderr


def test_logout_says_where_commands_still_go(server: Running, alone: Command) -> None:
    alone.type("login", "--server", server.url, "--token", server.bob)
    alone.variables["PADDLECLOUD_SERVER"] = server.url
    assert f"commands still go to {server.url} (the environment)" in alone.type("logout").stderr


def test_a_login_by_password_says_how_long_it_lasts(server: Running, alone: Command, command: Command) -> None:
    admin = as_admin(server, command)
    admin.type("user", "add", "carl", "--password", stdin="long-enough-1\n")
    said = alone.type("login", "--server", server.url, "--user", "carl", stdin="long-enough-1\n").stderr
    assert "until 20" in said


def test_a_password_of_the_old_config_is_sent_once_and_its_token_kept_until_logout(
    server: Running, alone: Command, command: Command
) -> None:
    as_admin(server, command).type("user", "add", "wang", "--password", stdin="correct horse\n")
    old = alone.folder / "home" / ".paddle" / "config"
    old.parent.mkdir(parents=True)
    center = f"- name: dc\n  username: wang\n  password: correct horse\n  endpoint: {server.url}/\n"
    old.write_text(f"datacenters:\n{center}current-datacenter: dc\n")
    for words in (["get", "jobs"], ["ls"], ["get", "quota"]):
        alone.type(*words)
    (first,) = alone.out("token", "list", "-o", "name").split()
    kept = alone.folder / "home" / ".config" / "paddlecloud" / "tokens.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    alone.type("token", "revoke", first)
    (second,) = alone.out("token", "list", "-o", "name").split()
    assert second != first
    assert f"forgot the tokens that were kept in {kept}" in alone.type("logout").stderr
    assert not kept.exists()
    old.write_text(old.read_text().replace("correct", "wrong"))
    said = alone.type("get", "jobs", code=3).stderr
    assert (
        said == f"paddlecloud: wrong user name or password. User name and password are in {old}: correct them there\n"
    )


def test_an_address_that_is_none_is_wrongly_typed(alone: Command) -> None:
    said = alone.type("login", "--server", "ftp://host", "--token", "x", code=2).stderr
    assert said == "paddlecloud: --server: 'ftp://host' is not the address of a server: write http://host:port\n"


def test_an_access_key_logs_in_and_its_sk_need_not_stand_in_the_command(server: Running, alone: Command) -> None:
    key, sk = server.users.add_key("bob", utc_now())
    assert "bob" in alone.type("login", "--server", server.url, "--ak", key.ak, stdin=f"{sk}\n").stderr
    assert key.ak in alone.out("config")
    assert "--sk goes with --ak" in alone.type("login", "--server", server.url, "--sk", sk, code=2).stderr


def test_who_adds_a_user_is_told_how_to_let_them_in(server: Running, command: Command) -> None:
    admin = as_admin(server, command)
    said = admin.type("user", "add", "dora").stderr
    assert "paddlecloud user passwd dora" in said
    assert "paddlecloud key create --user dora" in said
    said = admin.type("user", "add", "emil", "--password", stdin="long-enough-1\n").stderr
    assert f"paddlecloud login --server {server.url} --user emil" in said


@pytest.mark.parametrize("time", ["0", "9999d"])
def test_a_token_for_a_time_that_is_out_of_range_is_told_by_the_name_of_the_option(command: Command, time: str) -> None:
    said = command.type("token", "create", "ci", "--expires", time, code=2).stderr
    assert f"--expires {time} is too short or too long" in said
    assert "expires_in_seconds" not in said


def test_what_old_clients_keep_is_made_void_by_their_user_or_an_admin(server: Running, command: Command) -> None:
    before = {name: server.users.epoch(name) for name in ("ann", "bob")}
    said = command.type("token", "revoke", "--old-clients").stderr
    assert "the tokens of all old clients of ann are void" in said
    assert "it takes an admin" in command.type("token", "revoke", "--old-clients", "bob", code=3).stderr
    as_admin(server, command).type("token", "revoke", "--old-clients", "bob")
    assert {name: server.users.epoch(name) - before[name] for name in before} == {"ann": 1, "bob": 1}
    assert "no user 'nobody'" in command.type("token", "revoke", "--old-clients", "nobody", code=102).stderr
    for words in ([], ["token-1", "--old-clients"]):
        assert "one of the two" in command.type("token", "revoke", *words, code=2).stderr


def test_a_configured_server_that_is_away_is_told_with_the_place_that_names_it(alone: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    file = alone.folder / "home" / "bin" / "paddlecloud" / "conf" / "client.conf"
    file.parent.mkdir(parents=True)
    file.write_text(f"[openapi]\nhost = 127.0.0.1\nport = {port}\n")
    for words in (["gen_token", "--email=a@b.c"], ["login", "--token", "x"]):
        assert f"It was named by {file}" in alone.type(*words, code=4).stderr
        said = alone.type(*words, "--server", f"http://127.0.0.1:{port}", code=4).stderr
        assert "It was named by --server" in said
