"""The contract of what is recorded about files of the PFS: which are published, and how much a home takes."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.user import Role
from paddlecloud.store.db import Database
from paddlecloud.store.pfs_use import HomeUse, PfsUse
from paddlecloud.store.publications import Publications
from paddlecloud.store.users import Users
from tests.contract.records import NOW

LATER = NOW + timedelta(hours=1)
LARGE = 2**50


@pytest.fixture
def publications(database: Database, users: Users) -> Publications:
    for name in ("ann", "bob"):
        users.add(name, Role.USER, None, NOW)
    return Publications(database)


@pytest.fixture
def use(database: Database) -> PfsUse:
    return PfsUse(database)


def test_a_published_file_is_found_by_its_uuid_alone(publications: Publications) -> None:
    made = publications.publish("ann", "/pfs/local/home/ann/模型\n", NOW)
    assert UUID(made.uuid).version == 4
    assert publications.find(made.uuid) == made
    assert (made.user, made.path, made.created_at) == ("ann", "/pfs/local/home/ann/模型\n", NOW)
    for sought in ("", made.uuid.upper(), made.path, "\0", "\ud800"):
        with pytest.raises(NotFoundError, match="there is no published file"):
            publications.find(sought)


def test_a_file_that_is_published_again_keeps_its_uuid(publications: Publications) -> None:
    first = publications.publish("ann", "/pfs/local/home/ann/a", NOW)
    second = publications.publish("ann", "/pfs/local/home/ann/b", LATER)
    assert publications.publish("ann", "/pfs/local/home/ann/a", LATER) == first
    assert publications.list("ann") == [first, second]
    assert publications.list("bob") == []
    assert publications.publish("bob", "/pfs/local/home/ann/a", NOW).uuid != first.uuid


def test_a_file_that_is_not_published_any_more_is_found_by_nobody(publications: Publications) -> None:
    path = "/pfs/local/home/ann/a"
    made, other = (publications.publish("ann", name, NOW) for name in (path, f"{path}b"))
    with pytest.raises(NotFoundError, match="a is not published by bob"):
        publications.unpublish("bob", path)
    publications.unpublish("ann", path)
    with pytest.raises(NotFoundError, match="there is no published file"):
        publications.find(made.uuid)
    with pytest.raises(NotFoundError, match="is not published by ann"):
        publications.unpublish("ann", path)
    assert publications.list("ann") == [other]
    assert publications.publish("ann", path, LATER).uuid != made.uuid


def test_what_a_disabled_user_has_published_is_not_found(publications: Publications, users: Users) -> None:
    made = publications.publish("ann", "/pfs/local/home/ann/a", NOW)
    users.change("ann", disabled=True)
    with pytest.raises(NotFoundError, match="there is no published file"):
        publications.find(made.uuid)
    users.change("ann", disabled=False)
    assert publications.find(made.uuid) == made


def test_a_home_that_nothing_is_known_of_has_no_record(use: PfsUse) -> None:
    assert use.get("ann", "local") is None
    assert use.of("ann") == []


def test_what_comes_and_goes_is_added_to_what_was_counted(use: PfsUse) -> None:
    use.put("ann", "local", size_bytes=LARGE, files=10, at=NOW)
    use.add("ann", "local", size_bytes=5, files=2, at=LATER)
    use.add("ann", "local", size_bytes=-1, files=-1, at=LATER)
    use.add("ann", "far", size_bytes=7, files=1, at=LATER)
    use.add("bob", "local", size_bytes=9, files=1, at=LATER)
    assert use.of("ann") == [
        HomeUse(datacenter="far", size_bytes=7, files=1, counted_at=LATER),
        HomeUse(datacenter="local", size_bytes=LARGE + 4, files=11, counted_at=NOW),
    ]
    use.put("ann", "local", size_bytes=3, files=1, at=LATER)
    assert use.get("ann", "local") == HomeUse(datacenter="local", size_bytes=3, files=1, counted_at=LATER)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(-100, 100), st.integers(-3, 3)), max_size=12))
def test_a_home_never_has_less_than_nothing(use: PfsUse, changes: list[tuple[int, int]]) -> None:
    use.put("ann", "local", size_bytes=0, files=0, at=NOW)
    size, files = 0, 0
    for more_bytes, more_files in changes:
        use.add("ann", "local", size_bytes=more_bytes, files=more_files, at=LATER)
        size, files = max(0, size + more_bytes), max(0, files + more_files)
    assert use.get("ann", "local") == HomeUse(datacenter="local", size_bytes=size, files=files, counted_at=NOW)


def test_more_that_goes_than_is_known_leaves_nothing(use: PfsUse) -> None:
    use.add("ann", "local", size_bytes=-5, files=-1, at=NOW)
    assert use.get("ann", "local") == HomeUse(datacenter="local", size_bytes=0, files=0, counted_at=NOW)
