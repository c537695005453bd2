"""Which report a handle on Slurm gets, from what is known of it: a table whose first row that fits counts.

Invariant: what Slurm says of a job's end counts more than how its tasks died, so no task that was killed or told to
stop is reported as ended before Slurm has said why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from paddlecloud.backends.slurmstate import CANCELLED, ENDED, FORGOTTEN, WAITING


class Verdict(Enum):
    NOT_SEEN = "it was handed over after Slurm was asked, or not yet at all"
    WAITS = "it waits in Slurm's queue"
    AS_TOLD = "we stopped it, and every task has told its end"
    ENDING = "Slurm has ended it; the ends of some tasks may still be on their way"
    PUT_BACK = "Slurm has put it back into its queue"
    OVER = "Slurm has ended it, and its tasks have said what they will"
    RUNS = "its tasks speak for themselves"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a handle at one look."""

    state: str | None  # Slurm's word for it; None: Slurm does not know it yet
    begun: bool = False  # one of its tasks has
    seen_since: bool = True  # Slurm was asked after that
    stopped: bool = False  # at our own wish
    all_ended: bool = False  # every task has told its end
    words_awaited: bool = False  # Slurm told its end so lately that ends of tasks may be on their way

    @property
    def waits(self) -> bool:
        return self.state in WAITING

    @property
    def put_back(self) -> bool:
        return self.waits and self.begun and self.seen_since and not self.stopped

    @property
    def over(self) -> bool:
        return self.state in ENDED or self.state == FORGOTTEN

    @property
    def never_began(self) -> bool:
        """It was cancelled while it waited: no task has anything to say."""
        return self.state == CANCELLED and not self.begun

    @property
    def ended(self) -> bool:
        """Slurm runs it no more, whatever its tasks say."""
        return self.over or self.put_back


TABLE: tuple[tuple[Verdict, Callable[[Known], bool]], ...] = (
    (Verdict.NOT_SEEN, lambda known: known.state is None),
    (Verdict.WAITS, lambda known: known.waits and not known.begun),
    (Verdict.AS_TOLD, lambda known: known.stopped and known.all_ended),
    (
        Verdict.ENDING,
        lambda known: known.ended and known.words_awaited and not known.all_ended and not known.never_began,
    ),
    (Verdict.PUT_BACK, lambda known: known.put_back),
    (Verdict.OVER, lambda known: known.over),
    (Verdict.RUNS, lambda _: True),
)


def judge(known: Known) -> Verdict:
    return next(verdict for verdict, fits in TABLE if fits(known))
