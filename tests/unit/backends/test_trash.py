"""What is over is out of the way at once, and gone soon; what is left of an earlier server, too."""

from __future__ import annotations

from pathlib import Path

from paddlecloud.backends.trash import Trash
from tests.waiting import wait_until


def a_handle(root: Path, name: str) -> Path:
    folder = root / name / "trainer-0" / "own" / "work"
    folder.mkdir(parents=True)
    (folder / "file").write_text("…")
    return root / name


def test_a_folder_is_out_of_the_way_at_once_and_gone_soon(tmp_path: Path) -> None:
    trash, folder = Trash(tmp_path), a_handle(tmp_path, "job-1-1")
    trash.put("job-1-1")
    assert not folder.exists()
    wait_until(lambda: not list(tmp_path.iterdir()), "nothing is left")
    trash.close()


def test_what_is_put_there_before_the_end_is_gone_after_it(tmp_path: Path) -> None:
    trash = Trash(tmp_path)
    for number in range(20):
        a_handle(tmp_path, f"job-{number}-1")
        trash.put(f"job-{number}-1")
    trash.close()
    assert not list(tmp_path.iterdir())


def test_what_an_earlier_server_has_left_is_removed(tmp_path: Path) -> None:
    a_handle(tmp_path, ".trash-job-1-1")
    kept = a_handle(tmp_path, "job-2-1")
    Trash(tmp_path).close()
    assert list(tmp_path.iterdir()) == [kept]
