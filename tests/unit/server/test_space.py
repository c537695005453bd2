"""What uses the space: every byte once, of the right kind and user, and told without counting again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from paddlecloud.model import paths
from paddlecloud.model.errors import UnreachableError
from paddlecloud.model.space import Share, Space, Used
from paddlecloud.model.state import JobState
from tests import trees
from tests.contract.records import NOW
from tests.unit.server.house import House, opened

S = JobState
DAY = timedelta(days=1)
LARGE = 2**20


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with opened(tmp_path / "data") as made:
        yield made


def used(space: Space) -> dict[str, Used]:
    return {share.kind: share.used for share in space.shares}


def share(space: Space, kind: str) -> Share:
    return next(share for share in space.shares if share.kind == kind)


def test_an_empty_server_has_records_and_nothing_else(house: House) -> None:
    space = house.keeping().space.tell(None)
    assert [(share.kind, share.used.files > 0) for share in space.shares] == [
        ("records", True),
        ("uploads", False),
        ("results", False),
        ("logs", False),
        ("tasks", False),
    ]
    (disk,) = space.disks
    assert 0 < disk.free_bytes < disk.size_bytes
    assert disk.path == str(house.root)


def test_results_and_logs_are_counted_of_jobs_that_run_that_have_ended_and_in_between(house: House) -> None:
    house.ended(size=LARGE)
    house.later(hours=1)
    house.brought(S.SCHEDULE, S.RUNNING, size=LARGE)
    house.brought(S.SCHEDULE, S.RUNNING, S.SUCCESS, user="bob", size=LARGE)
    space = house.keeping().space.tell(None)
    for kind, files in (("results", 3), ("logs", 6)):
        assert 3 * LARGE <= used(space)[kind].size_bytes < 3 * LARGE + 100_000
        assert used(space)[kind].files == files
        assert share(space, kind).oldest_at == NOW


def test_uploads_are_counted_once_however_many_folders_have_them(house: House) -> None:
    content = os.urandom(LARGE)
    house.uploaded(content)
    house.uploads.seal("ann", trees.manifest({"other": content}))
    found = used(house.keeping().space.tell(None))["uploads"]
    assert LARGE <= found.size_bytes < LARGE + 100_000


def test_everything_in_the_data_folder_is_of_a_kind(house: House) -> None:
    (house.root / "backups").mkdir()
    for name in ("backups/one.db", "server.log", "paddlecloud.db-old"):
        (house.root / name).write_bytes(bytes(LARGE))
    (house.root / "tasks/local/job-1").mkdir(parents=True)
    (house.root / "tasks/local/job-1/core").write_bytes(bytes(LARGE))
    found = used(house.keeping().space.tell(None))
    for kind in ("records", "tasks", "backups", "other"):
        assert LARGE <= found[kind].size_bytes < 2 * LARGE, kind


def test_results_that_no_record_knows_are_told_of_and_never_taken_away(house: House) -> None:
    """Such as after an older backup was restored, or the wrong database was named in the config."""
    job = paths.job_id(bytes(16))
    (house.folder.results / job).mkdir(parents=True)
    (house.folder.results / job / "model").write_bytes(bytes(LARGE))
    keeping = house.keeping(jobs=DAY, results=DAY, logs=DAY, results_size=0)
    house.later(days=10_000)
    keeping.run()
    assert used(keeping.space.tell(None))["unknown"].files == 1
    assert os.listdir(house.folder.results) == [job]


def test_homes_are_their_users_own_and_public_files_nobodys(house: House) -> None:
    for path in ("local/home/ann/data", "far/home/ann/x/y", "local/home/bob/data", "local/public/set", ".drafts/new"):
        file = house.folder.pfs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(LARGE))
    (house.folder.pfs / "note").write_bytes(bytes(5000))
    space = house.keeping().space
    assert used(space.tell(None))["pfs"].files == 6
    assert 5 * LARGE <= used(space.tell(None))["pfs"].size_bytes < 6 * LARGE
    assert used(space.tell("ann"))["pfs"].files == 2
    assert [(one.user, one.pfs.files) for one in space.tell(None, users=True).users] == [("ann", 2), ("bob", 1)]
    assert "other" not in used(space.tell(None))


def test_a_user_is_told_of_what_is_theirs(house: House) -> None:
    house.ended("ann", size=LARGE)
    house.ended("bob")
    house.uploaded(os.urandom(LARGE), "bob")
    space = house.keeping().space.tell("ann")
    assert space.user == "ann"
    assert list(used(space)) == ["uploads", "results", "logs"]
    assert used(space)["uploads"] == Used()
    assert LARGE <= used(space)["results"].size_bytes < LARGE + 50_000
    assert not space.disks
    assert not space.users


def test_those_who_use_most_come_first(house: House) -> None:
    house.ended("ann")
    house.ended("bob", size=LARGE)
    house.uploaded(os.urandom(4 * LARGE), "eve")
    users = house.keeping().space.tell(None, users=True).users
    assert [one.user for one in users] == ["eve", "bob", "ann"]
    assert users[0].uploads.size_bytes == users[0].size_bytes
    assert users[1].results.size_bytes > LARGE
    assert users[1].logs.size_bytes > LARGE


def test_figures_are_those_of_the_last_count_until_one_is_asked_for(house: House) -> None:
    keeping = house.keeping()
    house.ended()
    assert used(keeping.space.tell("ann"))["results"].files == 1
    house.ended()
    house.later(minutes=1)
    told = keeping.space.tell("ann")
    assert (told.counted_at, used(told)["results"].files) == (NOW, 1)
    told = keeping.space.tell("ann", again=True)
    assert (told.counted_at, used(told)["results"].files) == (house.now, 2)
    house.ended()
    assert keeping.space.tell("ann", again=True) == told  # a moment ago is now


def test_what_was_collected_is_not_counted_any_more(house: House) -> None:
    house.ended(size=LARGE)
    keeping = house.keeping(results=DAY)
    house.later(days=1)
    keeping.run()
    space = keeping.space.tell(None)
    assert used(space)["results"] == Used()
    assert used(space)["logs"].size_bytes > LARGE


def test_a_count_that_takes_too_long_leaves_the_figures_as_they_were(house: House) -> None:
    keeping = house.keeping()
    before = keeping.space.tell(None)
    house.later(minutes=1)
    house.pace.stop()
    assert keeping.space.tell(None, again=True).counted_at == before.counted_at
    with pytest.raises(UnreachableError, match="for the first time"):
        house.keeping().space.tell(None)


def test_it_is_told_for_how_long_and_how_much_is_kept(house: House) -> None:
    keeping = house.keeping(jobs=90 * DAY, results=30 * DAY, results_size=2**40, uploads=7 * DAY)
    space = keeping.space.tell(None)
    kept = {share.kind: (share.keep_seconds, share.limit_bytes) for share in space.shares}
    assert kept["records"] == (90 * 86400, None)
    assert kept["results"] == (30 * 86400, 2**40)
    assert kept["logs"] == (90 * 86400, None)
    assert kept["uploads"] == (7 * 86400, None)
    assert kept["tasks"] == (None, None)
