"""What a failed task had in its working directory stays with the results where that was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.model.task import TaskState
from tests.contract.local import Room, log

CHANGE = "echo new > made; mkdir -p sub; echo x > sub/inner; rm gone; ln -s / root"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "gone").write_text("was there")
    return folder


def test_a_failed_tasks_changes_are_with_its_results(room: Room, tree: Path) -> None:
    launch = room.launch(f"{CHANGE}; exit 3", tree=tree, keep=True)
    assert room.run(launch).exit_code == 3
    kept = launch.results / "workspace" / "attempt-1" / "trainer-0"
    assert {path.name for path in kept.iterdir()} == {"made", "sub", "root"}
    assert ((kept / "made").read_text(), (kept / "sub" / "inner").read_text()) == ("new\n", "x\n")
    assert (tree / "gone").read_text() == "was there"
    assert Path("/etc").is_dir()


@pytest.mark.parametrize(("command", "keep"), [("exit 0", True), ("exit 3", False)])
def test_nothing_is_kept_of_who_succeeded_or_did_not_ask(room: Room, tree: Path, command: str, keep: bool) -> None:
    launch = room.launch(f"{CHANGE}; {command}", tree=tree, keep=keep)
    room.run(launch)
    assert not (launch.results / "workspace").exists()


def test_a_link_in_the_results_leads_nowhere(room: Room, tree: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = f'{CHANGE}; ln -s {elsewhere} "$(dirname "$OUTPUT_PATH")/workspace"; exit 3'
    launch = room.launch(command, tree=tree, keep=True)
    task = room.run(launch)
    assert (task.state, task.exit_code) == (TaskState.FAILED, 3)
    assert list(elsewhere.iterdir()) == []
    assert "paddlecloud: its working directory could not be kept: " in log(launch)
