"""The folder of a handle on Slurm: what is read there, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.backends.slurmheld import ID, Held
from paddlecloud.backends.slurmstate import Seen, waiting
from paddlecloud.model.task import Report, TaskState
from paddlecloud.runtime.folder import Ended, TaskFolder, claim


@pytest.fixture
def held(tmp_path: Path) -> Held:
    (tmp_path / "tasks").write_text("trainer-0\ntrainer-1")
    for name in ("trainer-0", "trainer-1"):
        TaskFolder(str(tmp_path / name)).create(b"{}")
    return Held(str(tmp_path))


def states(held: Held) -> list[TaskState]:
    return [task.state for task in held.look()]


def test_its_job_is_known_to_the_next_server(held: Held) -> None:
    held.submitted(7, "ann")
    again = Held(held.folder)
    assert (again.id, again.account) == (7, "ann")


@pytest.mark.parametrize("left", [b"", b'{"id": 7, "acc', b"\0\0\0\0"])
def test_what_a_power_cut_has_left_of_its_job_is_as_if_it_were_not_known(held: Held, left: bytes) -> None:
    Path(held.folder, ID).write_bytes(left)
    again = Held(held.folder)
    assert (again.id, again.account) == (None, None)


def test_what_nobody_has_claimed_has_not_begun_and_then_each_task_tells_its_own(held: Held) -> None:
    assert states(held) == [TaskState.STARTING] * 2
    claim(held.folder, "7")
    TaskFolder(f"{held.folder}/trainer-1").write_ended(Ended(exit_code=0, started_at=1.0, ended_at=2.0))
    assert states(held) == [TaskState.STARTING, TaskState.SUCCEEDED]
    assert held.begun_at is not None


def test_what_waits_is_told_anew_when_slurm_has_been_asked_again(held: Held) -> None:
    def told(seen: Seen) -> Report:
        return held.waits(seen, lambda: waiting(seen, held.look(), "hpc"))

    first, second = (Seen(id=7, state="PENDING", reason=reason) for reason in ("Priority", "Resources"))
    assert told(first) is told(first)
    assert "Resources" in told(second).waits
