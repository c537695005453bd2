"""gen_token, typed: the manual's dialogue, what goes wrong in it, and which key the next command uses."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.server.app import utc_now
from tests.unit.cli.command import Command
from tests.unit.cli.test_serve import client_only
from tests.unit.server.running import Running, running

EMAIL = "--email=zhang@lab.example"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    plain = {
        "accounts": {"gen_token": "open"},
        "rates": {"mails_an_hour": 0},
        "clusters": {"local": {"policy": "open"}},
    }
    with running(tmp_path_factory.mktemp("server") / "data", plain) as made:
        yield made


@pytest.fixture
def key(server: Running) -> tuple[str, str]:
    """What a letter would bring."""
    made, sk = server.users.add_key("ann", utc_now())
    return made.ak, sk


def conf(command: Command) -> Path:
    return command.folder / "home" / "bin" / "paddlecloud" / "conf" / "client.conf"


def values(command: Command) -> dict[str, tuple[str, str]]:
    """The effective values and where they come from."""
    lines = [re.split(r"\s{2,}", line) for line in command.out("config").splitlines()[1:]]
    return {name: (value, source) for name, value, source in lines}


def test_the_manuals_dialogue_ends_with_a_key_that_the_next_command_uses(
    server: Running, alone: Command, key: tuple[str, str]
) -> None:
    said = alone.type("gen_token", EMAIL, "--server", server.url, stdin="{}\n{}\n".format(*key))
    assert said.stdout == "create_token...\nPaste your ak here:\nPaste your sk here:\ncreate_token done\n"
    assert "sends no mail: its operator finds" in said.stderr
    assert key[1] not in said.stderr
    assert values(alone)["server"] == (server.url, str(conf(alone)))
    assert values(alone)["ak"] == (key[0], str(conf(alone)))
    assert alone.type("ls").returncode == 0
    assert conf(alone).stat().st_mode & 0o777 == 0o600


def test_a_wrong_key_is_asked_for_again_and_after_three_times_nothing_is_written(
    server: Running, alone: Command, key: tuple[str, str]
) -> None:
    ak, sk = key
    wrong = f"{ak}\nwrong\n{'0' * 32}\n{sk}\n"
    said = alone.type("gen_token", EMAIL, "--server", server.url, stdin=f"{wrong}{ak} x\n{sk}\n", code=3)
    assert said.stdout.count("Paste your ak here:") == 3
    assert "the signature is wrong for access key" in said.stderr
    assert "is not known here" in said.stderr
    assert "letters and digits alone; nothing was written" in said.stderr
    assert not conf(alone).exists()
    again = alone.type("gen_token", EMAIL, "--server", server.url, stdin=f"{wrong} {ak} \n {sk}\n")
    assert again.stdout.endswith("create_token done\n")


def test_who_pastes_nothing_is_told_how_to_go_on_when_the_mail_has_come(server: Running, alone: Command) -> None:
    said = alone.type("gen_token", EMAIL, "--server", server.url, code=2)
    assert "no ak was pasted, so nothing was written" in said.stderr
    assert f"paddlecloud login --server {server.url} --ak AK" in said.stderr
    assert not conf(alone).exists()


@pytest.mark.parametrize(
    "words", [[], ["--email"], ["--email="], ["--email=zhang"], ["--email=a b@c.d"], ["--email=@x"]]
)
def test_an_address_that_is_none_is_wrongly_typed(server: Running, alone: Command, words: list[str]) -> None:
    said = alone.type("gen_token", "--server", server.url, *words, code=2)
    assert said.stdout == ""
    assert "--email" in said.stderr


def test_an_address_that_the_server_cannot_have_as_a_name_is_wrongly_typed_too(server: Running, alone: Command) -> None:
    said = alone.type("gen_token", f"--email={'x' * 60}@lab.example", "--server", server.url, code=2)
    assert "up to 60 letters" in said.stderr


def test_a_server_of_ones_own_needs_no_key_and_how_another_is_named_is_told(alone: Command) -> None:
    said = alone.type("gen_token", EMAIL, code=1)
    assert said.stdout == ""
    assert "needs no access key by mail: just submit a job" in said.stderr
    assert "embedded.json" not in said.stderr
    assert "--server http://host:8642" in said.stderr
    key = alone.folder / "data" / "embedded.json"
    key.parent.mkdir()
    key.write_text("{}")
    assert f"Its key is in {key}." in alone.type("gen_token", EMAIL, code=1).stderr


def test_a_machine_that_cannot_run_a_server_is_not_told_to_just_submit_a_job(alone: Command) -> None:
    said = client_only(alone, "gen_token", EMAIL).stderr
    assert "none can run on this machine: that takes pip install 'paddlecloud[server]'" in said
    assert "just submit" not in said
    assert "--server http://host:8642" in said


def test_who_asks_too_often_is_told_what_to_type_with_a_mail_that_has_come(alone: Command, tmp_path: Path) -> None:
    plain = {"accounts": {"gen_token": "open"}, "rates": {"mails_an_hour": 1}}
    with running(tmp_path / "slow", plain) as slow:
        alone.type("gen_token", EMAIL, "--server", slow.url, code=2)
        said = alone.type("gen_token", EMAIL, "--server", slow.url, code=3).stderr
        assert "too often" in said
        assert f"If you have the mail already, type: paddlecloud login --server {slow.url} --ak AK" in said


def test_the_ca_that_was_named_is_part_of_what_to_type_next(server: Running, alone: Command) -> None:
    said = alone.type("gen_token", EMAIL, "--server", server.url, "--ca", "lab ca.pem", code=2).stderr
    ca = alone.folder / "lab ca.pem"
    assert f"paddlecloud login --server {server.url} --ca '{ca}' --ak AK" in said


def test_a_server_that_is_not_there_is_named(alone: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    assert url in alone.type("gen_token", EMAIL, "--server", url, code=4).stderr


def test_a_client_conf_that_names_the_server_is_filled_in(
    server: Running, alone: Command, key: tuple[str, str]
) -> None:
    host, _, port = server.url.removeprefix("http://").partition(":")
    conf(alone).parent.mkdir(parents=True)
    kept = (
        f"// 注\n[main]\nuserid: xxx\nak: xxx\nsk: xxx\n\n[openapi]\nhost = {host}\nport = {port}\n\n[bcc]\nak = mine\n"
    )
    conf(alone).write_text(kept)
    alone.type("gen_token", EMAIL, stdin="{}\n{}\n".format(*key))
    expected = kept.replace("userid: xxx", "userid: ann").replace("ak: xxx", f"ak: {key[0]}")
    assert conf(alone).read_text() == expected.replace("sk: xxx", f"sk: {key[1]}")


def test_a_login_from_before_makes_way_for_the_new_key(server: Running, alone: Command, key: tuple[str, str]) -> None:
    alone.type("login", "--server", server.url, "--token", server.bob)
    said = alone.type("gen_token", EMAIL, stdin="{}\n{}\n".format(*key)).stderr
    assert f"forgot the login of bob at {server.url}" in said
    assert values(alone)["user"][0] == "ann"


def test_the_access_key_of_another_account_is_not_forgotten_but_named(
    server: Running, alone: Command, key: tuple[str, str]
) -> None:
    bobs, sk = server.users.add_key("bob", utc_now())
    alone.type("login", "--server", server.url, "--ak", bobs.ak, stdin=f"{sk}\n")
    said = alone.type("gen_token", EMAIL, stdin="{}\n{}\n".format(*key)).stderr
    assert "config.toml names" in said
    assert values(alone)["user"][0] == "bob"
    alone.type("logout")
    assert values(alone)["user"][0] == "ann"


def test_a_token_in_the_environment_goes_first_and_is_named(
    server: Running, command: Command, key: tuple[str, str]
) -> None:
    said = command.type("gen_token", EMAIL, stdin="{}\n{}\n".format(*key)).stderr
    assert "by another token still, which the environment names" in said
    assert "create_token done" in command.type("gen_token", EMAIL, stdin="{}\n{}\n".format(*key)).stdout


def test_a_closed_server_says_whom_to_ask(alone: Command, tmp_path: Path) -> None:
    with running(tmp_path / "closed") as closed:
        said = alone.type("gen_token", EMAIL, "--server", closed.url, code=3)
    assert said.stdout == "create_token...\n"
    assert "ask its operator to type `paddlecloud user add NAME`" in said.stderr
    assert not conf(alone).exists()
