"""The contract of shared folders: which groups may what, known at once, and nothing left of one that is gone."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.group import EVERYBODY, GroupRequest
from paddlecloud.store.db import Database
from paddlecloud.store.groups import Groups
from paddlecloud.store.schema import share_grants
from paddlecloud.store.shared import SharedFolders
from tests.contract.records import NOW

DEMO = ("local", "demo")


@pytest.fixture
def groups(database: Database) -> Groups:
    made = Groups(database)
    for name in ("lab", "guests"):
        made.add(GroupRequest(name=name), NOW)
    return made


@pytest.fixture
def folders(database: Database, groups: Groups) -> SharedFolders:
    return SharedFolders(database, groups)


def test_grants_are_given_changed_and_taken_and_known_at_once(folders: SharedFolders, groups: Groups) -> None:
    assert folders.all() == {}
    folders.add(DEMO, {"lab": True, EVERYBODY: False}, NOW)
    assert folders.all() == {DEMO: {"lab": True, EVERYBODY: False}}
    assert groups.membership().shared == folders.all()
    assert folders.since() == {DEMO: NOW}
    folders.grant(DEMO, "guests", writable=False)
    folders.grant(DEMO, "guests", writable=True)
    folders.revoke(DEMO, EVERYBODY)
    assert folders.all() == {DEMO: {"lab": True, "guests": True}}
    groups.remove("lab")
    assert folders.all() == {DEMO: {"guests": True}}
    for name in ("guests",):
        folders.revoke(DEMO, name)
    assert folders.all() == {DEMO: {}}


def test_what_cannot_be_leaves_nothing(folders: SharedFolders) -> None:
    with pytest.raises(NotFoundError, match="no group 'nobody'"):
        folders.add(DEMO, {"lab": False, "nobody": True}, NOW)
    assert folders.all() == {}
    folders.add(DEMO, {}, NOW)
    with pytest.raises(ConflictError, match="exists already"):
        folders.add(DEMO, {"lab": True}, NOW)
    folders.add(("far", "demo"), {"lab": True}, NOW)
    assert folders.all() == {DEMO: {}, ("far", "demo"): {"lab": True}}
    with pytest.raises(NotFoundError, match="not granted to group 'lab'"):
        folders.revoke(DEMO, "lab")
    with pytest.raises(NotFoundError, match="no group 'nobody'"):
        folders.grant(DEMO, "nobody", writable=False)
    for act in (
        folders.remove,
        lambda key: folders.grant(key, "lab", writable=True),
        lambda key: folders.revoke(key, "lab"),
    ):
        with pytest.raises(NotFoundError, match="no shared folder 'other'"):
            act(("local", "other"))


def test_nothing_is_left_of_a_folder_that_is_gone(folders: SharedFolders, database: Database) -> None:
    folders.add(DEMO, {"lab": True}, NOW)
    folders.remove(DEMO)
    with database.read() as connection:
        assert connection.execute(select(share_grants)).all() == []
    folders.add(DEMO, {}, NOW)
    assert folders.all() == {DEMO: {}}
