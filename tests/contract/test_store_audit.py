"""The contract of the audit record: kept with what it tells of or not at all, read newest first, forgotten by age."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from paddlecloud.model.audit import Action, AuditEntry
from paddlecloud.model.errors import ConflictError, InvalidError, NotFoundError
from paddlecloud.model.user import Role
from paddlecloud.store.audit import Audit
from paddlecloud.store.db import Database
from paddlecloud.store.users import Users
from tests.contract.records import NOW

HOUR = timedelta(hours=1)


@pytest.fixture
def audit(database: Database) -> Audit:
    return Audit(database)


def entry(action: Action = Action.USER_ADD, target: str = "ann") -> AuditEntry:
    return AuditEntry(at=NOW, action=action, target=target)


def actions(audit: Audit) -> list[tuple[Action, str]]:
    return [(one.action, one.target) for one in audit.list().items]


def test_an_act_comes_back_as_recorded(audit: Audit) -> None:
    told = replace(
        entry(Action.KEY_REVOKE, "ak"),
        user="张三@163.com",
        address="2001:db8::1",
        request_id="r-1",
        detail="of \0 \ud800 ann",
    )
    audit.record(told)
    (found,) = audit.list().items
    assert found.seq > 0
    assert (found.at, found.action, found.target) == (NOW, Action.KEY_REVOKE, "ak")
    assert (found.user, found.address, found.request_id) == ("张三@163.com", "2001:db8::1", "r-1")
    assert found.detail == "of \ufffd \ufffd ann"


def test_an_act_is_recorded_once_in_the_transaction_that_does_it(audit: Audit, users: Users) -> None:
    with audit.beside(entry()):
        users.add("ann", Role.USER, None, NOW)
        users.add_key("ann", NOW)
    users.add("bob", Role.USER, None, NOW)
    assert actions(audit) == [(Action.USER_ADD, "ann")]


def test_what_was_refused_or_changed_nothing_is_not_recorded(audit: Audit, users: Users) -> None:
    users.add("ann", Role.USER, None, NOW)
    with pytest.raises(ConflictError), audit.beside(entry()):
        users.add("ann", Role.USER, None, NOW)
    with pytest.raises(NotFoundError), audit.beside(entry(Action.KEY_REVOKE)):
        users.revoke_key("no-such-key", None)
    with audit.beside(entry(Action.JOB_KILL)):
        users.get("ann")
    users.add("bob", Role.USER, None, NOW)
    assert actions(audit) == []


def test_a_second_try_within_is_recorded_where_the_first_was_taken_back(audit: Audit, users: Users) -> None:
    users.add("ann", Role.USER, None, NOW)
    with audit.beside(entry(target="bob")):
        with pytest.raises(ConflictError):
            users.add("ann", Role.USER, None, NOW)
        users.add("bob", Role.USER, None, NOW)
    assert actions(audit) == [(Action.USER_ADD, "bob")]


def test_what_cannot_be_recorded_is_not_done(audit: Audit, users: Users, database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("ALTER TABLE audit RENAME TO elsewhere"))
    with pytest.raises(Exception, match="audit"), audit.beside(entry()):
        users.add("ann", Role.USER, None, NOW)
    assert users.list() == []
    with database.write() as connection:
        connection.execute(text("ALTER TABLE elsewhere RENAME TO audit"))
    assert actions(audit) == []


def test_another_threads_write_records_nothing_of_this_ones(audit: Audit, users: Users) -> None:
    def add_bob() -> None:
        users.add("bob", Role.USER, None, NOW)

    with audit.beside(entry()):
        thread = threading.Thread(target=add_bob)
        thread.start()
        thread.join()
        assert actions(audit) == []
        users.add("ann", Role.USER, None, NOW)
    assert actions(audit) == [(Action.USER_ADD, "ann")]


def test_the_record_is_read_newest_first_by_who_what_and_when(audit: Audit) -> None:
    for number in range(5):
        audit.record(AuditEntry(at=NOW + number * HOUR, action=Action.LOGIN, target=str(number), user="ann"))
    audit.record(AuditEntry(at=NOW + 5 * HOUR, action=Action.LOGIN_REFUSED, target="5"))
    audit.record(AuditEntry(at=NOW + 6 * HOUR, action=Action.USER_ADD, target="6", user="ann"))

    def targets(**asked: str) -> str:
        since = NOW + int(asked.pop("since")) * HOUR if "since" in asked else None
        page = audit.list(user=asked.get("user"), action=asked.get("action"), since=since)
        return "".join(one.target for one in page.items)

    assert targets() == "6543210"
    assert targets(user="ann") == "643210"
    assert targets(user="nobody") == ""
    assert targets(action="login") == "543210"
    assert targets(action="login.refused") == "5"
    assert targets(action="log") == ""
    assert targets(action="user") == "6"
    assert targets(since="4") == "654"
    assert targets(since="4", user="ann", action="login") == "4"


def test_pages_meet_without_a_gap(audit: Audit) -> None:
    for number in range(7):
        audit.record(entry(target=str(number)))
    found, cursor = "", None
    while True:
        page = audit.list(cursor=cursor, limit=3)
        found += "".join(one.target for one in page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == "6543210"
    with pytest.raises(InvalidError, match="cursor"):
        audit.list(cursor="x")
    with pytest.raises(InvalidError, match="limit"):
        audit.list(limit=0)
