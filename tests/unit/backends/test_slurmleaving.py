"""Jobs that Slurm keeps running after their tasks have told their ends are cancelled, also by the next server."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.backends.slurmleaving import Leaving
from paddlecloud.backends.slurmstate import Seen
from paddlecloud.model.errors import UnreachableError


class Slurm:
    def __init__(self, state: str) -> None:
        self.jobs = {7: Seen(id=7, name="job-1-1", state=state)}
        self.cancelled: list[tuple[int, str | None]] = []
        self.answers = True

    def cancel(self, job: int, account: str | None) -> None:
        if not self.answers:
            raise UnreachableError("Slurm does not answer")
        self.cancelled.append((job, account))


@pytest.mark.parametrize(("state", "cancelled"), [("RUNNING", True), ("COMPLETING", False), ("COMPLETED", False)])
def test_what_slurm_still_runs_after_a_while_is_cancelled(tmp_path: Path, state: str, cancelled: bool) -> None:
    slurm, leaving = Slurm(state), Leaving(tmp_path, seconds=0.0)
    leaving.add(7, "ann")
    slurm.answers = False
    leaving.look(slurm.jobs, slurm.cancel)
    slurm.answers = True
    leaving.look(slurm.jobs, slurm.cancel)
    assert slurm.cancelled == ([(7, "ann")] if cancelled else [])


def test_what_has_just_been_left_has_time_to_end_by_itself(tmp_path: Path) -> None:
    slurm, leaving = Slurm("RUNNING"), Leaving(tmp_path)
    leaving.add(7, None)
    leaving.look(slurm.jobs, slurm.cancel)
    assert slurm.cancelled == []


def test_the_next_server_knows_what_was_left_and_forgets_what_has_ended(tmp_path: Path) -> None:
    Leaving(tmp_path).add(7, None)
    slurm, leaving = Slurm("RUNNING"), Leaving(tmp_path, seconds=0.0)
    leaving.look(slurm.jobs, slurm.cancel)
    assert slurm.cancelled == [(7, None)]
    leaving.look({}, slurm.cancel)
    assert list(tmp_path.iterdir()) == []
