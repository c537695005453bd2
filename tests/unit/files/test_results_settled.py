"""Results as versions before this one laid them out: moved into the folders of users, and found wherever they are."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from paddlecloud.files.results import Results
from paddlecloud.model import paths
from tests.contract.records import the_job

FIRST, SECOND, UNKNOWN = (the_job(paths.job_id(bytes([number] * 16))) for number in range(3))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The results of three jobs in the old layout."""
    for job in (FIRST, SECOND, UNKNOWN):
        (tmp_path / job.id / "rank-0").mkdir(parents=True)
        (tmp_path / job.id / "rank-0" / "model").write_text(job.id)
    return tmp_path


@pytest.fixture
def results(root: Path) -> Results:
    return Results(root)


def settled(root: Path) -> set[str]:
    return {path.parent.parent.relative_to(root).as_posix() for path in root.rglob("model")}


OWNERS = {FIRST.id: "ann", SECOND.id: "ann"}


def test_results_move_to_their_users_but_for_those_that_tasks_write(root: Path, results: Results) -> None:
    assert set(results.unsettled()) == {FIRST.id, SECOND.id, UNKNOWN.id}
    assert results.settle(OWNERS, busy=[SECOND.id]) == {}
    assert settled(root) == {f"ann/{FIRST.id}", SECOND.id, UNKNOWN.id}
    for job in (FIRST, SECOND):
        with closing(results.open(job, "rank-0/model")) as opened:
            assert opened.read(0, 1000).decode() == job.id
        assert opened.entry.path == f"output/{job.id}/rank-0/model"
        assert results.folder(job) == root / ("ann" if job is FIRST else ".") / job.id
    assert set(results.all()) == {(root / "ann", FIRST.id), (root, SECOND.id), (root, UNKNOWN.id)}

    assert set(results.unsettled()) == {SECOND.id, UNKNOWN.id}
    assert results.settle({SECOND.id: "ann"}, busy=[]) == {}
    assert settled(root) == {f"ann/{FIRST.id}", f"ann/{SECOND.id}", UNKNOWN.id}
    assert results.folder(SECOND) == root / "ann" / SECOND.id


def test_another_start_goes_on_where_a_killed_one_stopped(root: Path) -> None:
    (root / "ann").mkdir()
    os.rename(root / FIRST.id, root / "ann" / FIRST.id)
    again = Results(root)
    assert again.settle({job: "ann" for job in again.unsettled() if job != UNKNOWN.id}, busy=[]) == {}
    assert settled(root) == {f"ann/{FIRST.id}", f"ann/{SECOND.id}", UNKNOWN.id}
    assert again.settle({}, busy=[]) == {}


def test_what_cannot_be_moved_stays_and_is_found_there(root: Path, results: Results) -> None:
    """As after a version before this one was run once more, which wrote at its own place."""
    (root / "ann" / FIRST.id / "log").mkdir(parents=True)
    (refused,) = results.settle(OWNERS, busy=[]).items()
    assert (refused[0], type(refused[1])) == (FIRST.id, OSError)
    assert settled(root) == {FIRST.id, f"ann/{SECOND.id}", UNKNOWN.id}
    assert results.folder(FIRST) == root / FIRST.id


def test_a_link_in_the_place_of_a_folder_is_moved_itself_and_not_entered(root: Path, results: Results) -> None:
    (root / "elsewhere").mkdir()
    os.rename(root / FIRST.id, root / "elsewhere" / "real")
    (root / FIRST.id).symlink_to(root / "elsewhere" / "real")
    (root / "bob").symlink_to(root / "elsewhere")
    (root / "file").write_text("x")
    results.settle(OWNERS, busy=[])
    assert (root / "ann" / FIRST.id).is_symlink()
    found = set(results.all())
    assert {(root, "bob"), (root, "file"), (root / "elsewhere", "real")} <= found
    assert (root / "bob", "real") not in found


def test_where_there_are_no_results_yet_there_is_nothing_to_do(tmp_path: Path) -> None:
    results = Results(tmp_path / "results")
    assert list(results.unsettled()) == []
    assert list(results.all()) == []
    assert results.settle({}, busy=[]) == {}
