"""What to do about a cause of failure, in the words of the face that the job came by, and within its user's limits."""

from __future__ import annotations

from collections.abc import Iterator

from paddlecloud.model.causes import Cause
from paddlecloud.model.job import Job
from paddlecloud.model.openpai.submitted import FACE as OPENPAI
from paddlecloud.model.units import format_duration

TIME = "(--time-limit)"
# Of a file of OpenPAI, which has no flags; "": it has no words for that.
_OF_OPENPAI = {
    TIME: "(extras: {paddlecloud: {time_limit: TIME}})",
    "(--python)": "",
    "(--hang)": "",
    "name the package in requirements.txt": "install it by a command of the job: pip3 install NAME",
    "ask for more memory": "ask for more memory (memoryMB)",
    "ask for GPUs": "ask for GPUs (gpu, or gpuNumber)",
}


def remedies(cause: Cause, job: Job, longest_seconds: int | None = None) -> tuple[str, ...]:
    """`longest_seconds` is the longest run that the job's user may ask for; None: any."""
    return tuple(_spoken(cause, job, longest_seconds))


def may_run_longer(job: Job, longest_seconds: int | None) -> bool:
    """Whether more time would be given to a job like this one."""
    asked = job.spec.wall_time_seconds
    return longest_seconds is None or (asked is not None and asked < longest_seconds)


def _spoken(cause: Cause, job: Job, longest_seconds: int | None) -> Iterator[str]:
    words = _OF_OPENPAI if job.spec.face == OPENPAI else {}
    for remedy in cause.remedies:
        if TIME in remedy and longest_seconds is not None and not may_run_longer(job, longest_seconds):
            yield f"your jobs may run for {format_duration(longest_seconds)} at most here: ask an admin for more time"
            continue
        for flag, said in words.items():
            if flag in remedy:
                remedy = remedy.replace(flag, said) if said else ""
                break
        if remedy:
            yield remedy
