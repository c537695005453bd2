"""Room that is promised to the first job that does not fit, so that none starves while others pass it: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from paddlecloud.model.job import Job, Resources

Ends = Sequence[tuple[datetime, Resources]]  # when what is held comes back


@dataclass(slots=True)
class Reservation:
    """The promise to the first job that does not fit: its room is there at `at`, with `spare` beside it."""

    job: str
    at: datetime
    spare: Resources

    def lets_pass(self, need: Resources, end: datetime) -> bool:
        if end <= self.at:
            return True
        if not need.fits(self.spare):
            return False
        self.spare = self.spare - need
        return True


def reserve(job: Job, need: Resources, left: Resources, ends: Ends) -> Reservation:
    """The first time by which enough will have ended; what fits the whole cluster fits at the last end."""
    reservation = Reservation(job.id, job.created_at, left - need)
    for end, freed in sorted(ends, key=lambda one: one[0]):
        reservation = Reservation(job.id, end, reservation.spare + freed)
        if Resources().fits(reservation.spare):
            break
    return reservation
