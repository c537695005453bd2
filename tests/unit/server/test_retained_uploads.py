"""The collection of uploaded folders: shared bytes stay while one folder has them, and no submit loses its folder."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.kept import Kept
from paddlecloud.model.retention import Rule
from paddlecloud.model.state import JobState
from paddlecloud.server.collectors import Uploads
from paddlecloud.store.retention import Forgetting
from tests import trees
from tests.contract.records import a_move
from tests.unit.server.house import House, opened

S = JobState
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
BOTH = ["log/trainer-0.log", "rank-0/model"]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with opened(tmp_path / "data") as made:
        yield made


def test_an_uploaded_folder_goes_when_its_last_job_has_ended_long_ago(house: House) -> None:
    used, unused = house.uploaded(b"used"), house.uploaded(b"unused")
    house.later(days=20)
    house.ended(tree=used)
    house.later(days=15)
    keeping = house.keeping(uploads=30 * DAY)
    (went,) = keeping.retention.run(house.now).collected
    assert (went.by, went.count) == ("retention.uploads = 30 days", 1)
    assert went.used.size_bytes > 0
    assert house.trees() == {used}
    house.later(days=15)
    keeping.retention.run(house.now)
    assert house.trees() == set()
    assert unused


def test_an_uploaded_folder_is_kept_for_the_submit_that_it_was_sent_for(house: House) -> None:
    tree = house.uploaded(b"x")
    keeping = house.keeping(uploads=SECOND)
    house.later(hours=23)
    keeping.retention.run(house.now)
    assert house.trees() == {tree}
    house.ended(tree=tree)
    house.later(seconds=1)
    keeping.retention.run(house.now)
    assert house.trees() == set()


def test_above_the_size_the_folders_that_were_unused_longest_go(house: House) -> None:
    shared, own = os.urandom(2**20), os.urandom(2**20)
    oldest = house.uploaded(own)
    house.later(days=2)
    older = house.uploaded(shared)
    house.later(days=2)
    two = os.urandom(2**20)
    newest = house.uploaded(two)
    house.later(days=2)
    needed = house.uploaded(shared, "bob")
    keeping = house.keeping(uploads_size=2 * 2**20 + 100_000)
    (went,) = keeping.retention.run(house.now).collected
    assert (went.count, went.by) == (1, "retention.uploads_size = 2.1 MiB")
    assert oldest not in house.trees()
    assert house.trees() == {older, newest}
    assert house.trees("bob") == {needed}


@pytest.mark.parametrize(("limit", "stay"), [(2**20 + 100_000, 2), (2**19, 0)])
def test_what_two_folders_share_is_free_only_when_both_have_gone(house: House, limit: int, stay: int) -> None:
    shared = os.urandom(2**20)
    house.uploaded(shared)
    house.later(days=2)
    again = trees.manifest({"file": shared, "more": b"x"})
    trees.send(house.uploads, "ann", again, b"x")
    newer = house.uploads.seal("ann", again)
    house.asked(newer)
    house.later(days=2)
    house.keeping(uploads_size=limit).retention.run(house.now)
    assert len(house.trees()) == stay


def test_a_folder_that_a_submit_holds_is_not_taken_away(house: House) -> None:
    tree = house.uploaded(b"x")
    house.later(days=40)
    keeping = house.keeping(uploads=30 * DAY)
    with house.uploads.trees.held("ann", tree):
        assert keeping.retention.run(house.now).collected == ()
    assert house.trees() == {tree}
    assert len(keeping.retention.run(house.now).collected) == 1


def test_a_folder_that_was_named_by_a_job_after_we_looked_stays(house: House) -> None:
    tree = house.uploaded(b"x")
    house.later(days=40)
    uploads = Uploads(house.uploads.trees, Forgetting(house.database), house.pace)
    going = list(uploads.going(Rule(kind=Kept.UPLOADS, age=DAY), house.now))
    assert [one.item.name for one in going] == [tree]
    house.submitted(tree=tree)
    assert uploads.remove(going, house.now) == []
    assert house.trees() == {tree}


def test_a_folder_that_was_asked_for_after_we_looked_stays(house: House) -> None:
    content = b"x"
    tree = house.uploaded(content)
    house.later(days=40)
    uploads = Uploads(house.uploads.trees, Forgetting(house.database), house.pace)
    going = list(uploads.going(Rule(kind=Kept.UPLOADS, age=DAY), house.now))
    house.asked(tree)
    assert uploads.remove(going, house.now) == []
    assert house.trees() == {tree}


def test_submits_of_a_folder_that_is_being_collected_work_wholly_or_are_refused(house: House) -> None:
    """Every job that was recorded finds its folder, however the two interleave."""
    tree, wanted = house.uploaded(b"x"), trees.manifest({"file": b"x"})
    house.later(days=40)
    keeping = house.keeping(uploads=SECOND)
    outcomes: list[str] = []
    chance = random.Random(7)

    def submit() -> None:
        try:
            with house.uploads.trees.held("ann", tree):
                job = house.submitted(tree=tree)
        except NotFoundError:
            outcomes.append("refused")
            trees.send(house.uploads, "ann", wanted, b"x")
            house.uploads.seal("ann", wanted)
            return
        there = (house.uploads.tree("ann", tree) / "file").is_file()
        outcomes.append("taken" if there else "lost")
        house.jobs.move(job, replace(a_move(S.KILLED), at=house.now))

    def submit_often() -> None:
        for _ in range(100):
            try:
                submit()
            except Exception as error:
                outcomes.append(str(error))
            time.sleep(chance.uniform(0, 0.01))

    submitter = threading.Thread(target=submit_often)
    submitter.start()
    while submitter.is_alive():
        keeping.retention.run(house.now + DAY)
    assert set(outcomes) == {"taken", "refused"}
