"""Being with a job that does not run yet: why is said once, and again when that changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from paddlecloud.cli import explain, shell
from paddlecloud.model.state import JobState

if TYPE_CHECKING:
    from paddlecloud.model.views import JobDetail
    from paddlecloud.sdk.client import Client

_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.5)


def see_placed(client: Client, job: str, *, deadline: float | None = None) -> JobDetail:
    """Look until a job waits no more, or until `deadline` on the monotonic clock; of one that does not, say nothing."""
    told: tuple[object, ...] | None = None
    tries = 0
    while True:
        detail = client.get(job)
        position = detail.forecast.position if detail.forecast else None
        news = (detail.job.state, position, detail.job.queue_reason)
        if news != told and (told or detail.job.state.waiting):
            shell.talk(f"{detail.job.id} is in state {explain.state_line(detail, shell.now())}")
            told = news
        left = None if deadline is None else deadline - time.monotonic()
        if not detail.job.state.waiting or (left is not None and left <= 0):
            return detail
        pause = _PAUSES[min(tries, len(_PAUSES) - 1)]
        time.sleep(pause if left is None else min(pause, left))
        tries += 1


def see_built(client: Client, job: str, tell: Callable[[str], None]) -> None:
    """Look while a placed job has not begun to run, and tell what is built for it."""
    told, tries = "", 0
    while (found := client.get(job).job).state is JobState.SCHEDULE:
        if found.building and found.building != told:
            told = found.building
            tell(told)
        time.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
        tries += 1
