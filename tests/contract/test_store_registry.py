"""The contract of registry secrets: a user's own, encrypted where they lie, and known by either way to write a name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import select, update

from paddlecloud.model.errors import ConfigError, ConflictError, InvalidError, NotFoundError
from paddlecloud.model.registry import OLD_PREFIX, Registry, RegistryLogin, RegistryRequest, registry_name
from paddlecloud.model.user import Role
from paddlecloud.store.db import Database
from paddlecloud.store.registry import Registries
from paddlecloud.store.schema import registries as table
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.contract.records import NOW

ASKED = RegistryRequest(name="lab", server="hub.lab:5000/team", username="ann", password="s3cret \n é")


@pytest.fixture
def registries(database: Database, users: Users, tmp_path: Path) -> Registries:
    for name in ("ann", "bob"):
        users.add(name, Role.USER, None, NOW)
    return Registries(database, Cipher(tmp_path / "key"))


def test_a_secret_is_listed_without_its_password_which_a_backend_gets(registries: Registries) -> None:
    added = registries.add("ann", ASKED, NOW)
    assert added == Registry(name="lab", server="hub.lab:5000/team", username="ann", created_at=NOW)
    assert registries.list("ann") == [added]
    login = RegistryLogin(server="hub.lab:5000/team", username="ann", password="s3cret \n é")
    assert registries.get("ann", "lab") == login
    for shown in (added, ASKED, login):
        assert "s3cret" not in repr(shown)


def test_secrets_of_another_user_are_not_there(registries: Registries) -> None:
    registries.add("ann", ASKED, NOW)
    assert registries.list("bob") == []
    for act in (registries.get, registries.remove):
        with pytest.raises(NotFoundError, match="you have no registry 'lab'"):
            act("bob", "lab")
    registries.add("bob", replace(ASKED, password="another"), NOW)
    registries.remove("bob", "lab")
    assert registries.get("ann", "lab").password == ASKED.password


def test_a_name_is_the_same_with_the_old_clients_prefix(registries: Registries) -> None:
    registries.add("ann", replace(ASKED, name=OLD_PREFIX + "lab"), NOW)
    assert [one.name for one in registries.list("ann")] == ["lab"]
    assert registries.get("ann", "lab") == registries.get("ann", OLD_PREFIX + "lab")
    registries.remove("ann", OLD_PREFIX + "lab")
    assert registries.list("ann") == []


def test_a_name_that_is_taken_is_refused_in_words_and_free_again_when_it_was_removed(registries: Registries) -> None:
    registries.add("ann", ASKED, NOW)
    with pytest.raises(ConflictError, match="registry lab exists already: delete it first"):
        registries.add("ann", replace(ASKED, name=OLD_PREFIX + "lab", password="another"), NOW)
    assert registries.get("ann", "lab").password == ASKED.password
    registries.remove("ann", "lab")
    registries.add("ann", replace(ASKED, password="another"), NOW)
    assert registries.get("ann", "lab").password == "another"


def test_nobody_keeps_more_than_a_hundred(registries: Registries) -> None:
    for number in range(100):
        registries.add("ann", replace(ASKED, name=f"r{number}"), NOW)
    with pytest.raises(ConflictError, match="100 registries, which is the limit"):
        registries.add("ann", ASKED, NOW)
    registries.add("bob", ASKED, NOW)


def test_a_user_who_is_not_there_has_none(registries: Registries) -> None:
    with pytest.raises(NotFoundError, match="no user 'eve'"):
        registries.add("eve", ASKED, NOW)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        *(("name", text) for text in ("", "a" * 61, "a/b", "a b", "a\n", "é", OLD_PREFIX, "..\0")),
        *(
            ("server", text)
            for text in ("", "a b", "hub\n", "hub:port", "me:pw@hub", "hub/\0", "-", "h" * 256, "é.org")
        ),
        *(("server", text) for text in ("ftp://hub", "hub?x", "hub:123456", "https://")),
        *(("username", text) for text in ("", "a:b", "a\n", "u" * 256, "\ud800")),
        *(("password", text) for text in ("", "p" * 8193, "\ud800")),
    ],
)
def test_what_makes_no_sense_is_refused_and_named(registries: Registries, field: str, text: str) -> None:
    with pytest.raises(InvalidError) as refused:
        registries.add("ann", replace(ASKED, **{field: text}), NOW)
    assert refused.value.field == field
    assert ASKED.password not in refused.value.message
    assert registries.list("ann") == []


@pytest.mark.parametrize(
    "server", ["hub", "hub.lab", "hub.lab:5000", "10.0.0.1/v2/", "[::1]:5000", "https://hub.lab/v1/", "h-1.lab"]
)
def test_a_server_is_a_host_with_or_without_a_port_and_a_path(registries: Registries, server: str) -> None:
    registries.add("ann", replace(ASKED, server=server), NOW)
    assert registries.get("ann", "lab").server == server


@given(st.text(max_size=70))
def test_a_name_that_is_taken_at_all_is_short_and_plain(text: str) -> None:
    try:
        name = registry_name(text)
    except InvalidError:
        return
    assert 0 < len(name) <= 60
    assert name.isascii()
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.")


def test_a_password_is_stored_encrypted_and_tied_to_its_row(registries: Registries, database: Database) -> None:
    registries.add("ann", ASKED, NOW)
    registries.add("ann", replace(ASKED, name="other", password="another"), NOW)
    with database.write() as connection:
        stored = {row.name: row.password_encrypted for row in connection.execute(select(table))}
        assert "s3cret" not in stored["lab"]
        connection.execute(update(table).where(table.c.name == "other").values(password_encrypted=stored["lab"]))
    with pytest.raises(ConfigError, match="does not match this database's registry secrets"):
        registries.get("ann", "other")
