"""The contract of the store for users: names, passwords, access keys, tokens and quotas."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from sqlalchemy import select, update

from paddlecloud.model.errors import ConfigError, ConflictError, InvalidError, NotFoundError, UnauthenticatedError
from paddlecloud.model.user import ALL_CLUSTERS, Quota, Role, Scope
from paddlecloud.store.db import Database
from paddlecloud.store.schema import access_keys, tokens
from paddlecloud.store.schema import users as user_table
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.contract.records import NOW
from tests.passwords import give_password

HOUR = timedelta(hours=1)


@pytest.fixture
def ann(users: Users, database: Database) -> str:
    added = users.add("ann", Role.USER, None, NOW)
    give_password(database, "ann", "right horse")
    return added.name


def test_a_user_comes_back_as_added(users: Users) -> None:
    added = users.add("张三@163.com", Role.ADMIN, None, NOW)
    assert users.get("张三@163.com") == added
    assert (added.role, added.disabled, added.created_at) == (Role.ADMIN, False, NOW)
    other = users.add("ann", Role.USER, None, NOW)
    assert users.list() == [other, added]


@pytest.mark.parametrize("name", ["", "a b", "a/b", "..", "a\0b", "-x", "x" * 61, "job-" + "0" * 32])
def test_a_name_that_could_not_be_a_folder_is_refused(users: Users, name: str) -> None:
    with pytest.raises(InvalidError) as refused:
        users.add(name, Role.USER, None, NOW)
    assert refused.value.field == "name"
    assert users.list() == []


def test_a_name_that_is_taken_is_a_conflict(users: Users, ann: str) -> None:
    with pytest.raises(ConflictError, match="ann exists"):
        users.add("ann", Role.ADMIN, "other", NOW)
    assert users.get("ann").role is Role.USER
    assert users.check_password("ann", "right horse") == users.get("ann")


def test_nothing_can_be_done_to_a_user_who_does_not_exist(users: Users) -> None:
    for act in (
        lambda: users.get("eve"),
        lambda: users.change("eve", disabled=True),
        lambda: users.change("eve", role=Role.ADMIN),
        lambda: users.change("eve", password="x"),
        lambda: users.change("eve", quotas={"cce": Quota()}),
        lambda: users.account("eve"),
        lambda: users.add_key("eve", NOW),
        lambda: users.add_token("eve", "t", Scope.READ, None, NOW),
    ):
        with pytest.raises(NotFoundError, match="eve"):
            act()


def test_quotas_are_set_as_a_whole_for_one_cluster_or_for_all_together(users: Users, ann: str) -> None:
    users.add("bob", Role.USER, None, NOW)
    overall, on_cce = (
        Quota(running_jobs=2, wall_time_seconds=0, space_bytes=2**62),
        Quota(waiting_jobs=7, minutes_a_day=100),
    )
    changed = users.change(ann, quotas={ALL_CLUSTERS: overall, "cce": on_cce})
    assert (changed.quota, changed.quotas) == (overall, {"cce": on_cce})
    assert users.account(ann) == changed
    assert [account.quota for account in users.accounts()] == [overall, Quota()]
    assert users.quotas([ann, "bob"]) == {ann: {ALL_CLUSTERS: overall, "cce": on_cce}}
    assert users.quotas(["bob"]) == users.quotas([]) == {}
    users.change(ann, quotas={"cce": Quota(instances=4)})
    assert users.quotas([ann]) == {ann: {ALL_CLUSTERS: overall, "cce": Quota(instances=4)}}


def test_a_quota_without_limits_on_a_cluster_is_kept_and_a_quota_that_is_taken_away_is_gone(
    users: Users, ann: str
) -> None:
    """On a cluster it takes the place of the cluster's own limits; over all clusters there is nothing to replace."""
    users.change(ann, quotas={ALL_CLUSTERS: Quota(instances=1), "cce": Quota(), "bcc": Quota(instances=2)})
    users.change(ann, quotas={ALL_CLUSTERS: Quota(), "bcc": None, "never-there": None})
    assert users.quotas([ann]) == {ann: {"cce": Quota()}}


@pytest.mark.parametrize("limit", [-1, 2**31])
def test_a_quota_that_is_no_limit_is_refused(users: Users, ann: str, limit: int) -> None:
    with pytest.raises(InvalidError) as refused:
        users.change(ann, quotas={"cce": Quota(), "bcc": Quota(instances=limit)})
    assert refused.value.field == "instances"
    assert users.quotas([ann]) == {}


@pytest.mark.parametrize(("cluster", "limit"), [(ALL_CLUSTERS, -1), (ALL_CLUSTERS, 2**63), ("cce", 2**30)])
def test_space_is_limited_on_all_clusters_together(users: Users, ann: str, cluster: str, limit: int) -> None:
    with pytest.raises(InvalidError) as refused:
        users.change(ann, quotas={cluster: Quota(space_bytes=limit)})
    assert refused.value.field == "space_bytes"
    assert users.quotas([ann]) == {}


def test_an_epoch_ends_when_it_is_ended_and_with_the_password(users: Users, ann: str) -> None:
    users.add("bob", Role.USER, None, NOW)
    assert users.epoch(ann) == 0
    users.end_epoch(ann)
    assert users.epoch(ann) == 1
    users.change(ann, password="another horse")
    assert users.epoch(ann) == 2
    users.change(ann, disabled=True)
    assert (users.epoch(ann), users.epoch("bob")) == (2, 0)
    assert users.epochs() == {ann: 2, "bob": 0}
    assert users.in_epoch("bob") == (users.get("bob"), 0)
    with pytest.raises(UnauthenticatedError, match="disabled"):
        users.in_epoch(ann)
    for act in (users.epoch, users.end_epoch, users.in_epoch):
        with pytest.raises(NotFoundError, match="no user 'eve'"):
            act("eve")


def test_a_password_identifies_its_user_alone(users: Users, ann: str) -> None:
    users.add("bob", Role.USER, None, NOW)
    assert users.check_password("ann", "right horse").name == "ann"
    for name, password in [
        ("ann", "wrong"),
        ("ann", ""),
        ("ann", "\ud800"),
        ("ann", "x" * 2000),
        ("bob", ""),
        ("bob", "right horse"),
        ("eve", "right horse"),
        ("", ""),
        ("ANN", "right horse"),
        ("\0", "x"),
    ]:
        with pytest.raises(UnauthenticatedError, match="wrong user name or password"):
            users.check_password(name, password)


def test_a_new_password_takes_the_place_of_the_old(users: Users, ann: str) -> None:
    users.change(ann, password="密码\0")
    assert users.check_password(ann, "密码\0").name == ann
    with pytest.raises(UnauthenticatedError):
        users.check_password(ann, "right horse")


def test_a_new_password_ends_every_token_of_its_user_alone(users: Users, ann: str) -> None:
    users.add("bob", Role.USER, None, NOW)
    _, mine = users.add_token(ann, "laptop", Scope.WRITE, None, NOW)
    _, theirs = users.add_token("bob", "laptop", Scope.WRITE, None, NOW)
    users.check_password(ann, "right horse")
    assert users.token(mine, NOW)[0].name == ann
    users.change(ann, password="new horse")
    with pytest.raises(UnauthenticatedError):
        users.token(mine, NOW)
    assert users.token(theirs, NOW)[0].name == "bob"


@pytest.mark.parametrize("password", ["", "x" * 1025, "\ud800"])
def test_a_password_that_is_none_is_refused(users: Users, ann: str, password: str) -> None:
    with pytest.raises(InvalidError) as refused:
        users.change(ann, password=password)
    assert refused.value.field == "password"
    assert users.check_password(ann, "right horse").name == ann


def test_an_unknown_user_takes_as_long_to_refuse_as_a_wrong_password(users: Users, ann: str) -> None:
    def fastest(name: str) -> float:
        times = []
        for _ in range(3):
            began = time.monotonic()
            with pytest.raises(UnauthenticatedError):
                users.check_password(name, "wrong")
            times.append(time.monotonic() - began)
        return min(times)

    assert fastest("eve") > fastest("ann") / 10


def test_a_hash_made_with_weaker_settings_is_renewed_at_the_next_login(
    users: Users, database: Database, ann: str
) -> None:
    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("old password")
    with database.write() as connection:
        connection.execute(update(user_table).values(password_hash=weak))
    users.check_password(ann, "old password")
    with database.read() as connection:
        assert connection.execute(select(user_table.c.password_hash)).scalar_one() != weak
    users.check_password(ann, "old password")


def test_an_access_key_gives_its_secret_back(users: Users, ann: str) -> None:
    key, sk = users.add_key(ann, NOW)
    other, _ = users.add_key(ann, NOW)
    assert users.key_secret(key.ak) == (users.get(ann), sk)
    assert sorted(found.ak for found in users.keys(ann)) == sorted([key.ak, other.ak])
    assert users.keys("eve") == []


def test_a_revoked_key_is_useless_at_once(users: Users, ann: str) -> None:
    key, _ = users.add_key(ann, NOW)
    kept, _ = users.add_key(ann, NOW)
    users.revoke_key(key.ak, ann)
    with pytest.raises(UnauthenticatedError, match=key.ak):
        users.key_secret(key.ak)
    with pytest.raises(NotFoundError):
        users.revoke_key(key.ak, ann)
    assert users.keys(ann) == [kept]


def test_nobody_revokes_what_is_another_users(users: Users, ann: str) -> None:
    key, _ = users.add_key(ann, NOW)
    token, _ = users.add_token(ann, "laptop", Scope.READ, None, NOW)
    with pytest.raises(NotFoundError):
        users.revoke_key(key.ak, "bob")
    with pytest.raises(NotFoundError):
        users.revoke_token(token.id, "bob")
    assert users.keys(ann) == [key]
    assert users.tokens(ann) == [token]
    users.revoke_key(key.ak, None)
    users.revoke_token(token.id, None)
    assert (users.keys(ann), users.tokens(ann)) == ([], [])


def test_a_token_identifies_until_it_expires(users: Users, ann: str) -> None:
    token, secret = users.add_token(ann, "laptop", Scope.READ, NOW + HOUR, NOW)
    assert secret.startswith("pct_")
    assert users.token(secret, NOW + HOUR - timedelta(milliseconds=1)) == (users.get(ann), token)
    with pytest.raises(UnauthenticatedError, match="'laptop' expired at 2026-11-15T13:00:00Z"):
        users.token(secret, NOW + HOUR)


def test_a_token_without_an_end_lasts(users: Users, ann: str) -> None:
    token, secret = users.add_token(ann, "ci", Scope.WRITE, None, NOW)
    assert users.token(secret, NOW + 100_000 * HOUR) == (users.get(ann), token)
    assert users.tokens(ann) == [token]


@pytest.mark.parametrize("secret", ["", "pct_", "pct_" + "x" * 43, "\ud800", "\0"])
def test_an_unknown_token_is_refused(users: Users, ann: str, secret: str) -> None:
    users.add_token(ann, "ci", Scope.WRITE, None, NOW)
    with pytest.raises(UnauthenticatedError, match="not known"):
        users.token(secret, NOW)


def test_a_revoked_token_is_useless_at_once(users: Users, ann: str) -> None:
    token, secret = users.add_token(ann, "ci", Scope.WRITE, None, NOW)
    users.revoke_token(token.id, ann)
    with pytest.raises(UnauthenticatedError):
        users.token(secret, NOW)
    with pytest.raises(NotFoundError):
        users.revoke_token(token.id, ann)


@pytest.mark.parametrize(
    ("name", "field"), [("", "name"), ("a\nb", "name"), ("x" * 101, "name"), ("fine", "expires_at")]
)
def test_a_token_that_makes_no_sense_is_refused(users: Users, ann: str, name: str, field: str) -> None:
    with pytest.raises(InvalidError) as refused:
        users.add_token(ann, name, Scope.READ, NOW if field == "expires_at" else None, NOW)
    assert refused.value.field == field
    assert users.tokens(ann) == []


def test_a_disabled_user_is_refused_by_password_key_and_token_until_enabled(users: Users, ann: str) -> None:
    key, _ = users.add_key(ann, NOW)
    _, secret = users.add_token(ann, "ci", Scope.WRITE, None, NOW)
    ways = (
        lambda: users.check_password(ann, "right horse"),
        lambda: users.key_secret(key.ak),
        lambda: users.token(secret, NOW),
    )
    assert users.change(ann, disabled=True).disabled
    for way in ways:
        with pytest.raises(UnauthenticatedError, match="ann is disabled"):
            way()
    with pytest.raises(UnauthenticatedError, match="wrong user name or password"):
        users.check_password(ann, "wrong")
    users.change(ann, disabled=False)
    for way in ways:
        way()


def test_the_last_admin_can_be_neither_disabled_nor_demoted(users: Users) -> None:
    users.add("root", Role.ADMIN, None, NOW)
    with pytest.raises(ConflictError, match="last enabled admin"):
        users.change("root", disabled=True)
    with pytest.raises(ConflictError, match="last enabled admin"):
        users.change("root", role=Role.USER)
    assert users.get("root").role is Role.ADMIN
    users.add("ann", Role.USER, None, NOW)
    users.change("ann", role=Role.ADMIN)
    users.change("root", disabled=True)
    with pytest.raises(ConflictError, match="last enabled admin"):
        users.change("ann", disabled=True)


def test_no_secret_is_stored_as_it_is(users: Users, database: Database, ann: str) -> None:
    key, sk = users.add_key(ann, NOW)
    _, secret = users.add_token(ann, "ci", Scope.WRITE, None, NOW)
    with database.read() as connection:
        rows = [row for table in (user_table, access_keys, tokens) for row in connection.execute(select(table))]
    stored = " ".join(str(value) for row in rows for value in row)
    assert key.ak in stored
    for hidden in ("right horse", sk, secret, secret.removeprefix("pct_")):
        assert hidden not in stored


def test_a_lost_or_foreign_key_file_is_noticed_at_the_start(
    users: Users, database: Database, ann: str, tmp_path: Path
) -> None:
    users.add_key(ann, NOW)
    (tmp_path / "key").rename(tmp_path / "moved")
    with pytest.raises(ConfigError, match="missing.*restore it from a backup"):
        Users(database, Cipher(tmp_path / "key"))
    assert not (tmp_path / "key").exists()
    Cipher(tmp_path / "other").encrypt("x", bound_to="y")
    with pytest.raises(ConfigError, match="does not match"):
        Users(database, Cipher(tmp_path / "other"))
    Users(database, Cipher(tmp_path / "moved"))


def test_swapped_secret_keys_are_noticed(users: Users, database: Database, ann: str) -> None:
    key, _ = users.add_key(ann, NOW)
    other, _ = users.add_key(ann, NOW)
    with database.write() as connection:
        of_other = select(access_keys.c.sk_encrypted).where(access_keys.c.ak == other.ak)
        sealed = connection.execute(of_other).scalar_one()
        connection.execute(update(access_keys).where(access_keys.c.ak == key.ak).values(sk_encrypted=sealed))
    with pytest.raises(ConfigError):
        users.key_secret(key.ak)
