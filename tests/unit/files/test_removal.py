"""Removing and counting what job code left, however it was left, without touching anything else."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.files.collect import JobFiles
from paddlecloud.files.counting import Counter
from paddlecloud.files.results import Results
from paddlecloud.model import paths
from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.kept import Kept
from paddlecloud.model.space import Used
from paddlecloud.runtime.removal import remove

JOB = paths.job_id(bytes(16))


def no_pause() -> None:
    pass


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "results"
    made.mkdir()
    yield made
    # What a failed test leaves may be too deep for pytest, which would stumble over it in every later run.
    subprocess.run(["rm", "-rf", made], check=True)


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder beside the root, which nothing may change."""
    made = tmp_path / "precious"
    made.mkdir(mode=0o500)
    made.chmod(0o700)
    (made / "file").write_text("kept")
    (made / "file").chmod(0o400)
    return made


def deep(top: Path, levels: int) -> None:
    """Folders within folders, deeper than a path may be long."""
    at = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("n" * 50, dir_fd=at)
        inner = os.open("n" * 50, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=at))
    os.close(at)


def test_a_folder_goes_with_all_that_is_in_it(root: Path) -> None:
    (root / "job/a/b").mkdir(parents=True)
    for number in range(2500):
        (root / f"job/a/{number}").touch()
    os.mkfifo(root / "job/fifo")
    (root / "other").mkdir()
    remove(str(root), "job", no_pause)
    assert os.listdir(root) == ["other"]


def test_what_is_not_there_is_removed_already(root: Path) -> None:
    remove(str(root), "job", no_pause)
    remove(str(root / "absent"), "job", no_pause)


def test_links_are_removed_and_not_followed(root: Path, precious: Path) -> None:
    (root / "job/sub").mkdir(parents=True)
    (root / "job/folder").symlink_to(precious)
    (root / "job/sub/up").symlink_to("..")
    (root / "job/file").symlink_to(precious / "file")
    remove(str(root), "job", no_pause)
    assert not (root / "job").exists()
    assert (precious / "file").read_text() == "kept"
    assert stat.S_IMODE((precious / "file").stat().st_mode) == 0o400


def test_a_job_folder_that_became_a_link_is_only_unlinked(root: Path, precious: Path) -> None:
    (root / "job").symlink_to(precious)
    remove(str(root), "job", no_pause)
    assert os.listdir(root) == []
    assert (precious / "file").exists()


def test_a_folder_that_becomes_a_link_in_the_middle_is_not_followed(root: Path, precious: Path) -> None:
    (root / "job/sub").mkdir(parents=True)
    (root / "job/sub/file").touch()

    def swap() -> None:
        if (root / "job/sub").is_dir() and not (root / "job/sub").is_symlink():
            (root / "job/sub").rename(root / "job/aside")
            (root / "job/sub").symlink_to(precious)

    with pytest.raises(OSError, match="sub"):
        remove(str(root), "job", swap)
    assert (precious / "file").read_text() == "kept"
    remove(str(root), "job", no_pause)
    assert os.listdir(root) == []
    assert (precious / "file").read_text() == "kept"


@pytest.mark.parametrize("mode", [0o000, 0o100, 0o400, 0o555])
def test_folders_that_deny_access_go_too(root: Path, mode: int) -> None:
    (root / "job/closed/inner").mkdir(parents=True)
    (root / "job/closed/inner/file").touch()
    for folder in ("job/closed/inner", "job/closed", "job"):
        (root / folder).chmod(mode)
    remove(str(root), "job", no_pause)
    assert os.listdir(root) == []


def test_depth_costs_nothing(root: Path) -> None:
    (root / "job").mkdir()
    deep(root / "job", 3000)
    before = set(os.listdir("/proc/self/fd"))
    remove(str(root), "job", no_pause)
    assert os.listdir(root) == []
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_removal_that_was_broken_off_is_taken_up(root: Path) -> None:
    (root / "job").mkdir()
    deep(root / "job", 300)
    for number in range(50):
        (root / f"job/{number}").touch()
    steps = 0

    def break_off() -> None:
        nonlocal steps
        steps += 1
        if steps % 200 == 0:
            raise KeyboardInterrupt

    for _ in range(20):
        try:
            remove(str(root), "job", break_off)
        except KeyboardInterrupt:
            continue
        break
    assert os.listdir(root) == []
    assert steps > 200


def test_a_file_of_many_names_is_counted_once(root: Path) -> None:
    (root / "job/sub").mkdir(parents=True)
    (root / "job/file").write_bytes(bytes(100_000))
    os.link(root / "job/file", root / "job/sub/again")
    used = Counter(str(root), no_pause).count("job")
    assert used.files == 1
    assert 100_000 < used.size_bytes < 130_000


def test_a_hole_takes_no_space_and_a_link_is_not_followed(root: Path, precious: Path) -> None:
    (root / "job").mkdir()
    with (root / "job/sparse").open("wb") as file:
        file.truncate(2**40)
    (precious / "large").write_bytes(bytes(2**20))
    (root / "job/link").symlink_to(precious)
    used = Counter(str(root), no_pause).count("job")
    assert used.files == 2
    assert used.size_bytes < 2**20


def test_what_denies_access_is_counted_and_left_as_it_was(root: Path) -> None:
    (root / "job/closed").mkdir(parents=True)
    (root / "job/closed/large").write_bytes(bytes(2**20))
    (root / "job/closed").chmod(0o000)
    used = Counter(str(root), no_pause).count("job")
    assert used.files == 1
    assert used.size_bytes >= 2**20
    assert stat.S_IMODE((root / "job/closed").stat().st_mode) == 0o000
    (root / "job/closed").chmod(0o700)


def test_what_is_deeper_than_any_path_does_not_end_the_count(root: Path) -> None:
    (root / "job").mkdir()
    deep(root / "job", 2000)
    (root / "job/file").touch()
    assert Counter(str(root), no_pause).count("job").files == 1
    remove(str(root), "job", no_pause)


def test_what_is_not_there_takes_no_space(root: Path) -> None:
    assert Counter(str(root), no_pause).count("job") == Used()
    assert Counter(str(root / "absent"), no_pause).count("job") == Used()


@pytest.fixture
def files(root: Path, tmp_path: Path) -> JobFiles:
    (tmp_path / "marks" / JOB).mkdir(parents=True)
    (tmp_path / "marks" / JOB / "trainer-0").write_text("1.0 5\n")
    for name in ("log/trainer-0.log", "log/trainer-0/own", "rank-0/model", "top"):
        (root / "ann" / JOB / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "ann" / JOB / name).write_bytes(bytes(5000))
    return JobFiles(Results(root), tmp_path / "marks", no_pause)


def left(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def test_logs_and_results_are_counted_apart(files: JobFiles) -> None:
    used = files.count("ann", JOB)
    assert {kind: found.files for kind, found in used.items()} == {Kept.RESULTS: 2, Kept.LOGS: 3}
    assert all(found.size_bytes > 10_000 for found in used.values())


def test_results_go_and_logs_stay(files: JobFiles, root: Path, tmp_path: Path) -> None:
    files.remove("ann", JOB, Kept.RESULTS)
    assert left(root / "ann") == [f"{JOB}/log/trainer-0.log", f"{JOB}/log/trainer-0/own"]
    assert (tmp_path / "marks" / JOB).exists()


def test_logs_go_with_their_marks_and_results_stay(files: JobFiles, root: Path, tmp_path: Path) -> None:
    files.remove("ann", JOB, Kept.LOGS)
    assert left(root / "ann") == [f"{JOB}/rank-0/model", f"{JOB}/top"]
    assert not (tmp_path / "marks" / JOB).exists()


def test_nothing_is_left_of_a_job_whose_kinds_all_went(files: JobFiles, root: Path) -> None:
    for kind in (Kept.RESULTS, Kept.LOGS, Kept.LOGS):
        files.remove("ann", JOB, kind)
    assert os.listdir(root / "ann") == []


def test_a_job_goes_as_a_whole(files: JobFiles, root: Path, tmp_path: Path) -> None:
    files.remove_all("ann", JOB)
    assert os.listdir(root / "ann") == os.listdir(tmp_path / "marks") == []
    assert files.count("ann", JOB) == {Kept.RESULTS: Used(), Kept.LOGS: Used()}


@pytest.mark.parametrize("name", ["", ".", "..", "job-1", f"{JOB}/.."])
def test_only_a_job_can_be_named(files: JobFiles, name: str) -> None:
    with pytest.raises(NotFoundError):
        files.remove_all("ann", name)
    with pytest.raises(NotFoundError):
        files.count("ann", name)
