"""What lives as long as the server, and how it begins and ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from paddlecloud import __version__
from paddlecloud.backends.base import Backend
from paddlecloud.model.audit import Action
from paddlecloud.model.errors import PaddleCloudError, UnreachableError
from paddlecloud.server.audit import HERE
from paddlecloud.server.carrier import Carrier
from paddlecloud.server.datacenters import Tree
from paddlecloud.server.datadir import DataFolder
from paddlecloud.server.feed import Feed
from paddlecloud.server.housekeeping import Housekeeping
from paddlecloud.server.marks import LOOK_SECONDS, Marks
from paddlecloud.server.postman import Postman
from paddlecloud.server.services import Services
from paddlecloud.store.db import Database

log = logging.getLogger(__name__)

_RECORD_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What lives as long as the server, and how it begins and ends."""

    services: Services
    database: Database
    backends: Mapping[str, Backend]
    marks: Marks
    feed: Feed
    postman: Postman
    carrier: Carrier
    house: Housekeeping
    tree: Tree
    count_seconds: float
    folder: DataFolder

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        self.services.changes.attach()
        self.services.loop.start()
        self.postman.start()
        self.carrier.start()
        self._record(Action.SERVER_START, f"version {__version__}")
        chores = [
            asyncio.create_task(self.feed.run()),
            asyncio.create_task(_repeat(self.house.run, self.house.every_seconds, first=self.house.first_seconds)),
            asyncio.create_task(_repeat(self._mark_logs, LOOK_SECONDS)),
            asyncio.create_task(_repeat(self.tree.room.record, _RECORD_SECONDS)),
            asyncio.create_task(_repeat(self._look_after_pfs, self.count_seconds, first=self.house.first_seconds)),
        ]
        try:
            yield
        finally:
            self.services.changes.close()
            for chore in chores:
                chore.cancel()
            await run_in_threadpool(self._close)

    def _close(self) -> None:
        with ExitStack() as stack:
            stack.callback(self.database.close)
            for backend in self.backends.values():
                stack.callback(backend.close)
            stack.callback(self._record, Action.SERVER_STOP)
            stack.callback(self.services.loop.stop)
            stack.callback(self.postman.stop)
            stack.callback(self.carrier.stop)
            stack.callback(self.house.stop)
            stack.callback(self.tree.room.record)

    def _record(self, action: Action, detail: str = "") -> None:
        try:
            self.services.audit.record(action, HERE, target=str(self.folder.root), detail=detail)
        except PaddleCloudError as error:
            # Whoever may read but not record, as on a full disk, is better served than not.
            log.warning("%s is not on record: %s", action.value, error.message)

    def _look_after_pfs(self) -> None:
        self.tree.forget_drafts(self.services.clock())
        self.tree.room.count()

    def _mark_logs(self) -> None:
        held = [job for job in self.services.records.live() if job.state.held]
        self.marks.look(held, self.services.clock())


async def _repeat(chore: Callable[[], None], seconds: float, *, first: float = 0.0) -> None:
    await asyncio.sleep(first)
    while True:
        try:
            await run_in_threadpool(chore)
        except Exception as error:
            known = isinstance(error, UnreachableError)
            log.error("a chore failed (%s); it is tried again in %g s", error, seconds, exc_info=not known)
        await asyncio.sleep(seconds)
