"""What to do about a failure, as each face says it; and nothing that would be refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from paddlecloud.model import causes
from paddlecloud.model.causes import Cause
from paddlecloud.model.job import Job, JobSpec, RoleSpec
from paddlecloud.model.openpai.submitted import FACE
from paddlecloud.model.remedies import may_run_longer, remedies

HALF_AN_HOUR = 1800


def a_job(face: str = "", wall_time: int | None = HALF_AN_HOUR) -> Job:
    spec = JobSpec(roles=(RoleSpec(name="trainer", count=1, command="true"),), face=face, wall_time_seconds=wall_time)
    return Job(id="job-1", user="ann", spec=spec, created_at=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("cause", "ours", "openpais"),
    [
        (causes.WALL_TIME, "--time-limit", "extras: {paddlecloud: {time_limit: TIME}}"),
        (causes.MODULE, "requirements.txt", "pip3 install NAME"),
        (causes.MEMORY, "ask for more memory", "memoryMB"),
        (causes.NO_GPU, "ask for GPUs", "gpuNumber"),
    ],
    ids=lambda value: value.name if isinstance(value, Cause) else "",
)
def test_each_face_is_told_in_its_own_words(cause: Cause, ours: str, openpais: str) -> None:
    assert ours in remedies(cause, a_job())[0]
    assert openpais in remedies(cause, a_job(FACE))[0]


def test_a_file_of_openpai_is_told_of_no_flag() -> None:
    every = [value for value in vars(causes).values() if isinstance(value, Cause)]
    said = [remedy for cause in every for remedy in remedies(cause, a_job(FACE))]
    assert len(said) > 20
    assert [remedy for remedy in said if "(--" in remedy] == []


@pytest.mark.parametrize("face", ["", FACE])
@pytest.mark.parametrize(
    ("asked", "longest", "longer"),
    [
        (HALF_AN_HOUR, None, True),
        (HALF_AN_HOUR, 2 * HALF_AN_HOUR, True),
        (HALF_AN_HOUR, HALF_AN_HOUR, False),
        (None, HALF_AN_HOUR, False),
    ],
)
def test_more_time_is_advised_only_where_it_would_be_given(
    face: str, asked: int | None, longest: int | None, longer: bool
) -> None:
    job = a_job(face, asked)
    first = remedies(causes.WALL_TIME, job, longest)[0]
    assert may_run_longer(job, longest) is longer
    assert ("ask for more time" in first) is longer
    assert longer or first == "your jobs may run for 00:30:00 at most here: ask an admin for more time"
