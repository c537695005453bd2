"""Whether a user may start one more job now: pure, from limits and what runs."""

from __future__ import annotations

from paddlecloud.model.user import Quota


def why_not_now(user: str, quota: Quota, running: int) -> str | None:
    """The reason why a job of this user has to wait for another of theirs; None: it need not."""
    if quota.running_jobs is None or running < quota.running_jobs:
        return None
    return f"quota: {running} of {quota.running_jobs} jobs running for {user}; it starts when one of them ends"
