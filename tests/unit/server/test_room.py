"""What users keep in the PFS, and how much they may."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from paddlecloud.files.local import LocalStore
from paddlecloud.model.errors import FullError, QuotaError
from paddlecloud.model.user import Quota, Role
from paddlecloud.server.room import Room
from paddlecloud.store.db import Database
from paddlecloud.store.pfs_use import PfsUse
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.migrated import migrated

NOW = datetime(2026, 11, 16, tzinfo=UTC)


class House:
    def __init__(self, folder: Path) -> None:
        self.database = Database.open(migrated(folder / "records.db"))
        self.users = Users(self.database, Cipher(folder / "key"))
        self.users.add("ann", Role.USER, None, NOW)
        self.store = LocalStore(folder / "local")
        self.use = PfsUse(self.database)

    def room(self, limit_bytes: int | None) -> Room:
        stores = {"local": self.store}
        return Room(users=self.users, use=self.use, stores=stores, limit_bytes=limit_bytes, clock=lambda: NOW)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_what_came_counts_before_it_is_recorded_and_after(house: House) -> None:
    room = house.room(100)
    room.check("ann", "local", written=100, kept=100)
    room.note("ann", "local", 60, 1)
    assert room.used("ann") == 60
    with pytest.raises(QuotaError, match=r"quota: ann keeps 60 B of 100 B .* and this takes 41 B more"):
        room.check("ann", "local", written=41, kept=41)
    room.record()
    assert room.used("ann") == 60
    assert [(one.size_bytes, one.files) for one in house.use.of("ann")] == [(60, 1)]
    room.note("ann", "local", -60, -1)
    room.check("ann", "local", written=100, kept=100)


def test_what_comes_at_the_same_moment_is_counted_before_it_is_written(house: House) -> None:
    room = house.room(100)
    room.take("ann", "local", written=60, kept=60, files=1)
    with pytest.raises(QuotaError):
        room.take("ann", "local", written=60, kept=60, files=1)
    assert room.used("ann") == 60
    room.take(None, "local", written=60, kept=60, files=1)
    assert room.used("ann") == 60


def test_a_users_own_limit_wins_over_everybodys(house: House) -> None:
    room = house.room(100)
    house.users.change("ann", quotas={"": Quota(space_bytes=1000)})
    room.check("ann", "local", written=1000, kept=1000)
    with pytest.raises(QuotaError):
        room.check("ann", "local", written=0, kept=1001)


def test_without_a_limit_there_is_the_disk(house: House) -> None:
    room = house.room(None)
    room.check("ann", "local", written=10**6, kept=10**6)
    room.check(None, "local", written=10**6, kept=10**6)
    for user in ("ann", None):
        with pytest.raises(FullError, match="the server has room for"):
            room.check(user, "local", written=2**60, kept=0)


def test_a_count_sees_what_jobs_wrote_and_forgets_what_was_noted(house: House) -> None:
    room = house.room(10**6)
    room.note("ann", "local", 999_000, 50)
    house.store.write("home/ann/x", [b"1" * 5000])
    room.count()
    assert room.used("ann") == 5000
    room.record()
    assert room.used("ann") == 5000


def test_a_shared_folder_has_a_space_of_its_own_which_nothing_limits_and_a_count_sees(house: House) -> None:
    room = Room(
        users=house.users,
        use=house.use,
        stores={"local": house.store},
        limit_bytes=10,
        clock=lambda: NOW,
        shared=lambda: [("local", "demo"), ("gone", "demo")],
    )
    room.take("shared/demo", "local", written=50, kept=50, files=1)
    assert (room.used_in("shared/demo", "local"), room.used("ann")) == ((50, 1), 0)
    house.store.write("shared/demo/a", [bytes(700)])
    house.store.write("shared/demo/b/c", [bytes(70)])
    room.count()
    assert room.used_in("shared/demo", "local") == (770, 2)
    assert room.used_in("shared/demo", "gone") == (0, 0)
    room.forget("shared/demo", "local")
    assert room.used_in("shared/demo", "local") == (0, 0)
