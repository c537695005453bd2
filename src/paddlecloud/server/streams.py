"""Events and logs as server-sent events: async generators that hold no thread and no connection while they wait.

Each piece carries the id to go on from. The next piece is read only after the last one was sent, so a slow reader
costs no memory.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from starlette.concurrency import run_in_threadpool

from paddlecloud.model import wire
from paddlecloud.model.errors import InvalidError, NotFoundError
from paddlecloud.model.job import Job, Moved
from paddlecloud.model.log import LogEnd, LogPiece
from paddlecloud.server.changes import Changes, wait
from paddlecloud.server.feed import Feed
from paddlecloud.server.jobs import task_names
from paddlecloud.server.marks import Marks
from paddlecloud.server.transfers import Transfers
from paddlecloud.store.jobs import Jobs

MEDIA_TYPE = "text/event-stream"
PIECE_BYTES = 64 * 1024
HEARTBEAT = b": keep-alive\n\n"
_HEARTBEAT_SECONDS = 15.0
_LOG_LOOK_SECONDS = 0.2
_EVENTS_AT_ONCE = 500
_PIECES_AT_ONCE = 4


def encode(kind: str, value: object, event_id: str | None = None) -> bytes:
    name = f"id: {event_id}\n" if event_id is not None else ""
    return f"event: {kind}\n{name}data: ".encode() + wire.encode(value) + b"\n\n"


class Streams:
    def __init__(self, *, jobs: Jobs, transfers: Transfers, marks: Marks, feed: Feed, changes: Changes) -> None:
        self._jobs = jobs
        self._feed = feed
        self._transfers = transfers
        self._marks = marks
        self._changes = changes

    async def job_events(self, job_id: str, *, after: int, follow: bool) -> AsyncIterator[bytes]:
        """A job's moves after number `after`; the stream ends with the job."""

        def recorded(seen: int) -> _Batch:
            moves = self._jobs.history(job_id)
            forgotten = not moves
            return _Batch([move for move in moves if move.seq > seen], last=forgotten or moves[-1].to_state.final)

        def fresh(moves: list[Moved]) -> _Batch:
            mine = [move for move in moves if move.job == job_id]
            return _Batch(mine, last=any(move.to_state.final for move in mine))

        async for piece in self._events(recorded, fresh, after, follow):
            yield piece

    async def events(self, user: str | None, *, after: int, follow: bool) -> AsyncIterator[bytes]:
        """The moves of a user's jobs (None: everybody's) after number `after`."""

        def recorded(seen: int) -> _Batch:
            moves = self._jobs.events(after=seen, user=user, limit=_EVENTS_AT_ONCE)
            return _Batch(moves, more=len(moves) == _EVENTS_AT_ONCE)

        def fresh(moves: list[Moved]) -> _Batch:
            return _Batch([move for move in moves if user is None or move.user == user])

        async for piece in self._events(recorded, fresh, after, follow):
            yield piece

    async def _events(
        self, recorded: Callable[[int], _Batch], fresh: Callable[[list[Moved]], _Batch], seen: int, follow: bool
    ) -> AsyncIterator[bytes]:
        """What is recorded, then what is fresh: `known` is how far of all events this stream has looked."""
        heart = _Heart()
        # An id without data is no event; whoever is cut off before the first one goes on from it all the same.
        yield heart.beat(f"id: {seen}\n\n".encode())
        known: int | None = None
        while not self._changes.closed:
            turn = self._feed.turn()
            moves = None if known is None else self._feed.after(known)
            known = self._feed.last
            batch = fresh(moves) if moves is not None else await run_in_threadpool(recorded, seen)
            for move in batch.moves:
                seen = move.seq
                known = max(known, seen)
                yield heart.beat(encode("moved", move, str(seen)))
            if batch.more:
                known = None
                continue
            if batch.last or not follow:
                return
            await wait(turn, _HEARTBEAT_SECONDS)
            if heart.due():
                yield heart.beat()

    def log_offsets(
        self, job: Job, *, task: str | None, tail: int | None, since: datetime | None, seen: str | None
    ) -> dict[str, int]:
        """The tasks whose logs to send, each with where to begin: after what was `seen`, else with its last lines,
        or with what was written since then."""
        names = task_names(job)
        if task is not None and task not in names:
            raise NotFoundError(f"{job.id} has no task {task!r}; it has {', '.join(names[:20])}", field="task")
        tasks = names if task is None else [task]
        if seen:
            known = parse_offsets(seen, tasks)
            return {name: known.get(name, 0) for name in tasks}
        return {name: self._beginning(job, name, tail, since) for name in tasks}

    async def logs(self, job: Job, offsets: Mapping[str, int], *, follow: bool) -> AsyncIterator[bytes]:
        """The logs of these tasks from these offsets on, each in turn, until the job has ended and all was sent."""
        heart = _Heart()
        cuts = {task: _Cut(offset=offset) for task, offset in offsets.items()}
        turns = deque(cuts)
        known = -1
        yield heart.beat(f"id: {format_offsets(cuts)}\n\n".encode())
        if not follow:
            await run_in_threadpool(self._limit, job, cuts)
        while not self._changes.closed:
            turn = self._feed.turn()
            moves, known = self._feed.after(known), self._feed.last
            if not job.state.final and (moves is None or any(move.job == job.id for move in moves)):
                # The state is read before the log: what a final state is followed by is all there will be.
                job = await run_in_threadpool(self._jobs.get, job.id)
            complete = job.state.final or not follow
            pieces = await run_in_threadpool(self._next_pieces, job, cuts, turns, complete)
            for piece in pieces:
                yield heart.beat(piece)
            if pieces:
                continue
            if complete:
                yield encode("end", LogEnd(state=job.state))
                return
            await wait(turn, _LOG_LOOK_SECONDS)
            if heart.due():
                yield heart.beat()

    def _beginning(self, job: Job, task: str, tail: int | None, since: datetime | None) -> int:
        return max(
            0 if tail is None else self._transfers.tail_log(job, task, tail),
            0 if since is None else self._marks.offset(job, task, since),
        )

    def _limit(self, job: Job, cuts: Mapping[str, _Cut]) -> None:
        """End each log where it ends now: one that is written faster than it is read would never end."""
        for task, cut in cuts.items():
            cut.limit = self._transfers.log_size(job, task)

    def _next_pieces(self, job: Job, cuts: Mapping[str, _Cut], turns: deque[str], complete: bool) -> list[bytes]:
        """Some pieces, of tasks in turn: few enough to hold in memory, many enough for a job of many tasks."""
        pieces: list[bytes] = []
        for _ in range(len(turns)):
            task, cut = turns[0], cuts[turns[0]]
            turns.rotate(-1)
            text = cut.take(self._transfers.read_log(job, task, cut.offset, cut.wanted), complete=complete)
            if text:
                piece = LogPiece(task=task, offset=cut.offset, text=text)
                pieces.append(encode("log", piece, format_offsets(cuts)))
            if len(pieces) == _PIECES_AT_ONCE:
                break
        return pieces


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some moves to send: `more` are recorded after them, or the `last` is among them."""

    moves: list[Moved]
    more: bool = False
    last: bool = False


@dataclass(slots=True)
class _Cut:
    """How far one log has been sent. Pieces end with whole lines; a line that stays unfinished is sent as it is."""

    offset: int
    limit: int | None = None
    unfinished: int = 0  # bytes of the unfinished line at the last look

    @property
    def wanted(self) -> int:
        return PIECE_BYTES if self.limit is None else max(0, min(PIECE_BYTES, self.limit - self.offset))

    def take(self, piece: bytes, *, complete: bool) -> str:
        """What of `piece`, the bytes at the offset, can be sent now; `complete`: the log grows no more."""
        full = len(piece) >= PIECE_BYTES
        end = piece.rfind(b"\n") + 1
        if end == 0:
            settled = complete or full or len(piece) == self.unfinished
            self.unfinished = len(piece)
            end = whole_characters(piece, complete=complete and not full) if settled else 0
        if end:
            self.unfinished = 0
            self.offset += end
        return piece[:end].decode("utf-8", "replace")


class _Heart:
    """Says when a stream has been silent for so long that the other side might think it dead."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def due(self) -> bool:
        return time.monotonic() - self._last >= _HEARTBEAT_SECONDS

    def beat(self, piece: bytes = HEARTBEAT) -> bytes:
        self._last = time.monotonic()
        return piece


def whole_characters(piece: bytes, *, complete: bool) -> int:
    """The length of `piece` without the beginning of a UTF-8 character whose rest is still to come."""
    for back in range(1, min(3, len(piece)) + 1):
        byte = piece[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(piece) - back if back < size and not complete else len(piece)
    return len(piece)


def format_offsets(cuts: Mapping[str, _Cut]) -> str:
    """The id of a piece of log: how far each task's log has been sent."""
    return ",".join(f"{task}:{cut.offset}" for task, cut in cuts.items() if cut.offset)


def parse_offsets(text: str, tasks: Sequence[str]) -> dict[str, int]:
    """What `format_offsets` wrote; tasks that are not asked for any more are left out."""
    offsets: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        task, _, offset = part.rpartition(":")
        if not task or not (offset.isascii() and offset.isdigit()) or len(offset) > 18:
            raise InvalidError(f"Last-Event-ID {text[:80]!r} is none of this stream", field="Last-Event-ID")
        if task in tasks:
            offsets[task] = int(offset)
    return offsets
