"""What a node allows is tried out once, noted, and believed for a while."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paddlecloud.runtime.namespaces import Isolation
from paddlecloud.runtime.noted import Note

NOWHERE = "/nowhere/at/all"  # where nothing can be tried out


@pytest.fixture
def found(tmp_path: Path) -> Isolation:
    isolation = Note(str(tmp_path), 1000.0).isolation(str(tmp_path))
    if not isolation.mount:
        pytest.skip("this machine has no namespaces, which is never noted")
    return isolation


def the_note(folder: Path) -> Path:
    [path] = folder.glob("allows-*")
    return path


def test_what_was_tried_out_is_not_tried_again_by_the_next(tmp_path: Path, found: Isolation) -> None:
    assert Note(str(tmp_path), 1599.0).isolation(NOWHERE) == found
    assert the_note(tmp_path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("now", [1600.0, 999.0])
def test_an_old_note_is_not_believed_nor_one_of_tomorrow(tmp_path: Path, found: Isolation, now: float) -> None:
    with pytest.raises(FileNotFoundError):
        Note(str(tmp_path), now).isolation(NOWHERE)
    assert Note(str(tmp_path), now).isolation(str(tmp_path)) == found
    assert Note(str(tmp_path), now).isolation(NOWHERE) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        "{}",
        '{"at": 1000}',
        '{"at": "now", "mount": true}',
        '{"at": 1000, "mount": 1}',
        '{"at": 1000, "mount": true, "more": true}',
        json.dumps({"at": 1000.0, **Isolation(pid=True)._asdict()}),
    ],
)
def test_what_no_runtime_has_written_is_not_believed(tmp_path: Path, found: Isolation, text: str) -> None:
    the_note(tmp_path).write_text(text)
    with pytest.raises(FileNotFoundError):
        Note(str(tmp_path), 1000.0).isolation(NOWHERE)


def test_a_note_that_was_wrong_is_forgotten(tmp_path: Path, found: Isolation) -> None:
    Note(str(tmp_path), 1000.0).forget()
    assert not list(tmp_path.iterdir())
    Note(str(tmp_path), 1000.0).forget()


def test_what_cannot_be_noted_is_found_out_all_the_same(tmp_path: Path, found: Isolation) -> None:
    assert Note(NOWHERE, 1000.0).isolation(str(tmp_path)) == found
