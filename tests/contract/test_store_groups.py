"""The contract of groups: who is in which, what they give their members, and nothing left of one that is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import cast

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, insert, select

from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.group import Group, GroupChange, GroupRequest
from paddlecloud.model.user import NO_LIMITS, Quota, Role
from paddlecloud.store.db import Database
from paddlecloud.store.groups import Groups
from paddlecloud.store.schema import group_members, group_quotas, share_grants
from paddlecloud.store.users import Users
from tests.contract.records import NOW

ASKED = GroupRequest(
    name="vision_lab",
    description="who looks at pictures",
    external_name="视觉",
    members=("bob", "ann", "bob"),
    queues=("long", "short"),
    quota=Quota(running_jobs=3, space_bytes=2**40),
    quotas={"cce": NO_LIMITS},
    extension={"acls": {"admin": False, "virtualClusters": ["long"]}, "n": 1.5, "null\0": None},
)


@pytest.fixture
def groups(database: Database, users: Users) -> Groups:
    for name in ("ann", "bob"):
        users.add(name, Role.USER, None, NOW)
    return Groups(database)


def test_a_group_comes_back_as_it_was_given(groups: Groups) -> None:
    added = groups.add(ASKED, NOW)
    assert added == Group(
        name="vision_lab",
        created_at=NOW,
        description="who looks at pictures",
        external_name="视觉",
        members=("ann", "bob"),
        queues=("long", "short"),
        quota=Quota(running_jobs=3, space_bytes=2**40),
        quotas={"cce": NO_LIMITS},
        extension=ASKED.extension,
    )
    assert groups.get("vision_lab") == added
    small = groups.add(GroupRequest(name="a"), NOW)
    assert groups.list() == [small, added]
    assert (small.members, small.quota, small.quotas, small.extension) == ((), NO_LIMITS, {}, {})


def test_a_name_is_taken_once_and_nothing_is_left_of_what_was_refused(groups: Groups) -> None:
    groups.add(ASKED, NOW)
    with pytest.raises(ConflictError, match="vision_lab exists"):
        groups.add(replace(ASKED, members=()), NOW)
    with pytest.raises(NotFoundError, match="no user 'carol'"):
        groups.add(GroupRequest(name="other", members=("ann", "carol")), NOW)
    with pytest.raises(NotFoundError, match="no user 'carol'"):
        groups.change("vision_lab", GroupChange(description="changed", members=("carol",)))
    assert [(one.name, one.description) for one in groups.list()] == [("vision_lab", ASKED.description)]
    assert groups.get("vision_lab").members == ("ann", "bob")


def test_what_is_changed_is_what_was_given_and_the_rest_stays(groups: Groups) -> None:
    before = groups.add(ASKED, NOW)
    assert groups.change("vision_lab", GroupChange()) == before
    changed = groups.change("vision_lab", GroupChange(description="", queues=(), quota=NO_LIMITS, quotas={"cce": None}))
    assert changed == replace(before, description="", queues=(), quota=NO_LIMITS, quotas={})
    assert groups.change("vision_lab", GroupChange(extension={"b": 1})).extension == {"b": 1}


def test_who_joins_and_leaves_is_known_at_once(groups: Groups) -> None:
    groups.add(replace(ASKED, members=()), NOW)
    groups.add(GroupRequest(name="b"), NOW)
    assert groups.membership().of_user == {}
    groups.join("vision_lab", "ann")
    groups.join("vision_lab", "ann")
    assert groups.membership().of_user == {"ann": ("vision_lab",)}
    groups.set_groups("ann", ["b", "vision_lab"])
    assert groups.membership().of_user == {"ann": ("b", "vision_lab")}
    assert groups.membership().queues == {"vision_lab": ("long", "short"), "b": ()}
    assert groups.membership().quotas["vision_lab"][""] == ASKED.quota
    groups.leave("vision_lab", "ann")
    assert groups.membership().of_user == {"ann": ("b",)}
    groups.set_groups("ann", [])
    assert groups.membership().of_user == {}
    for act in (groups.join, groups.leave):
        with pytest.raises(NotFoundError, match="no group 'c'"):
            act("c", "ann")
    with pytest.raises(NotFoundError, match="'ann' is not in group b"):
        groups.leave("b", "ann")
    with pytest.raises(NotFoundError, match="no user"):
        groups.join("b", "carol")


def test_nothing_is_left_of_a_group_that_is_gone_for_the_next_of_its_name(groups: Groups, database: Database) -> None:
    groups.add(ASKED, NOW)
    with database.write() as connection:
        grant = {"datacenter": "local", "share": "demo", "group": "vision_lab", "writable": True}
        connection.execute(insert(share_grants), grant)
    groups.remove("vision_lab")
    with database.read() as connection:
        for table in (group_members, group_quotas, share_grants):
            assert connection.execute(select(table)).all() == []
    again = groups.add(GroupRequest(name="vision_lab"), NOW)
    assert (again.members, again.queues, again.quota, again.quotas) == ((), (), NO_LIMITS, {})
    with pytest.raises(NotFoundError, match="no group 'other'"):
        groups.remove("other")


def test_a_user_has_an_address_and_what_other_programs_keep_of_them(users: Users) -> None:
    users.add("ann", Role.USER, None, NOW, email="ann@lab.example", extension={"jobSSH": False})
    assert (users.get("ann").email, users.account("ann").extension) == ("ann@lab.example", {"jobSSH": False})
    users.add("bob", Role.USER, None, NOW)
    assert (users.get("bob").email, users.account("bob").extension) == ("", {})
    changed = users.change("bob", email="b@lab.example", extension={"a": [1]})
    assert (changed.email, changed.extension) == ("b@lab.example", {"a": [1]})
    assert users.change("bob", email="").email == ""
    assert [one.extension for one in users.accounts()] == [{"jobSSH": False}, {"a": [1]}]


class During:
    """A database in which something happens between a read and what is made of it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.then: Callable[[], None] | None = None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self._database.read() as connection:
            yield connection
        if self.then is not None:
            act, self.then = self.then, None
            act()

    def write(self) -> AbstractContextManager[Connection]:
        return self._database.write()


def test_what_was_read_while_a_group_changed_is_not_kept(groups: Groups, database: Database) -> None:
    groups.add(GroupRequest(name="lab"), NOW)
    during = During(database)
    meddled = Groups(cast(Database, during))
    during.then = lambda: meddled.join("lab", "ann")
    meddled.membership()
    assert meddled.membership().of_user == {"ann": ("lab",)}
