"""The wiring: every part of a server is made here, once, and handed to those who need it."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from anyio import CapacityLimiter
from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from paddlecloud import __version__
from paddlecloud.backends.base import Backend
from paddlecloud.backends.load import Setup, load
from paddlecloud.files.results import Results
from paddlecloud.files.uploads import Uploads
from paddlecloud.scheduler.loop import Loop
from paddlecloud.scheduler.round import Folders, Limits, Round
from paddlecloud.server import problems, submission
from paddlecloud.server.access_log import AccessLog
from paddlecloud.server.accounts import Accounts
from paddlecloud.server.auth import Authenticator
from paddlecloud.server.changes import Changes
from paddlecloud.server.clusters import Clusters
from paddlecloud.server.config import client_config_folder
from paddlecloud.server.datadir import DataFolder, announced, hold
from paddlecloud.server.feed import Feed
from paddlecloud.server.jobs import JobService
from paddlecloud.server.listening import Server, address, listen, quiet_signals
from paddlecloud.server.marks import LOOK_SECONDS, Marks
from paddlecloud.server.operator import ensure_operator
from paddlecloud.server.rest import ROUTERS
from paddlecloud.server.services import Services
from paddlecloud.server.settings import Settings
from paddlecloud.server.shares import Shares
from paddlecloud.server.streams import Streams
from paddlecloud.server.transfers import TransferLimits, Transfers
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]
Wake = Callable[[], None]
_EXPIRE_SECONDS = 3600.0
_LOGINS_AT_ONCE = 2
_SPARE_BYTES = 64 * 1024 * 1024  # of the disk, which no upload may take: records are written there too


def utc_now() -> datetime:
    return datetime.now(UTC)


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. ConfigError tells what keeps it from starting."""
    configure_logging(settings.server.log_level)
    with ExitStack() as stack:
        folder = stack.enter_context(hold(settings.server.data))
        listening = stack.enter_context(listen(settings.server, embedded=settings.embedded, again=folder.last_port))
        folder.remember_port(listening.getsockname()[1])
        started_at = utc_now()
        app = create(settings, utc_now)
        url = address(listening)

        def announce() -> None:
            stack.enter_context(announced(folder, url=url, started_at=started_at, version=__version__))
            log.info("PaddleCloud %s serves %s from %s", __version__, url, folder.root)

        with quiet_signals():
            Server(app, on_start=announce).run(sockets=[listening])
    log.info("the server has ended; its jobs run on")


def create(
    settings: Settings,
    clock: Clock = utc_now,
    *,
    backends: Callable[[Settings, Clock, Wake], Mapping[str, Backend]] | None = None,
) -> FastAPI:
    """A server of this data folder, which the caller holds. Where it is embedded, or there are no users yet, the
    user of this process becomes an admin, whose access key is written into the data folder."""
    folder = DataFolder(settings.server.data)
    database = Database.open(f"sqlite:///{folder.database}")
    try:
        users = Users(database, Cipher(folder.key))
        if settings.embedded or not users.list():
            ensure_operator(users, folder, clock)
        parts = _assemble(settings, clock, database, users, backends or load_backends)
    except BaseException:
        database.close()
        raise
    app = FastAPI(
        title="PaddleCloud",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        lifespan=parts.lifespan,
    )
    app.state.services = parts.services
    app.add_middleware(AccessLog)
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    return app


def load_backends(settings: Settings, clock: Clock, wake: Wake) -> dict[str, Backend]:
    """A backend for each cluster of the config, with a folder of its own."""
    folder = DataFolder(settings.server.data)
    return {
        name: load(
            cluster.backend,
            Setup(
                root=folder.tasks / name,
                clock=clock,
                wake=wake,
                grace_seconds=settings.jobs.grace.total_seconds(),
                hidden=(folder.root, client_config_folder()),
                python=settings.jobs.python or None,
                cpus=cluster.cpus,
                memory_bytes=cluster.memory,
                gpus=cluster.gpus,
            ),
        )
        for name, cluster in settings.clusters.items()
    }


def configure_logging(level: str) -> None:
    """Everything that is said goes to stderr, with times in UTC."""
    lines = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
    lines.converter = time.gmtime
    stderr = logging.StreamHandler(sys.stderr)
    stderr.setFormatter(lines)
    root = logging.getLogger()
    root.handlers[:] = [stderr]
    root.setLevel(level.upper())
    for chatty in ("uvicorn.error", "alembic"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What lives as long as the server, and how it begins and ends."""

    services: Services
    database: Database
    backends: Mapping[str, Backend]
    marks: Marks
    feed: Feed

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        self.services.changes.attach()
        self.services.loop.start()
        chores = [
            asyncio.create_task(self.feed.run()),
            asyncio.create_task(_repeat(self._expire_uploads, _EXPIRE_SECONDS)),
            asyncio.create_task(_repeat(self._mark_logs, LOOK_SECONDS)),
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
            stack.callback(self.services.loop.stop)

    def _expire_uploads(self) -> None:
        self.services.transfers.expire(self.services.clock())

    def _mark_logs(self) -> None:
        held = [job for job in self.services.records.live() if job.state.held]
        self.marks.look(held, self.services.clock())


async def _repeat(chore: Callable[[], None], seconds: float) -> None:
    while True:
        try:
            await run_in_threadpool(chore)
        except Exception:
            log.exception("a chore failed; it is tried again in %g s", seconds)
        await asyncio.sleep(seconds)


def _assemble(
    settings: Settings,
    clock: Clock,
    database: Database,
    users: Users,
    make_backends: Callable[[Settings, Clock, Wake], Mapping[str, Backend]],
) -> _Parts:
    folder = DataFolder(settings.server.data)
    jobs = Jobs(database)
    uploads, results = Uploads(folder.files, spare_bytes=_SPARE_BYTES), Results(folder.results)
    changes = Changes()
    loops: list[Loop] = []

    def wake() -> None:
        # A task may end before there is a loop, which cannot be made without the backends.
        for loop in loops:
            loop.wake()

    backends = make_backends(settings, clock, wake)
    clusters = Clusters(settings, backends)
    loop = Loop(
        Round(
            jobs=jobs,
            quotas=users.quotas,
            clusters=backends,
            default=settings.default_clusters,
            folders=Folders(tree=uploads.tree, results=results.folder),
            limits=Limits(schedule=settings.jobs.schedule_limit, attempts=settings.jobs.attempts),
        ),
        clock=clock,
        on_change=changes.ring,
    )
    loops.append(loop)

    def changed() -> None:
        wake()
        changes.ring()

    transfers = Transfers(uploads, results, TransferLimits(upload_bytes=settings.jobs.upload_limit))
    marks = Marks(folder.marks, transfers)
    feed = Feed(jobs, changes)
    services = Services(
        authenticator=Authenticator(users, clock),
        accounts=Accounts(users=users, jobs=jobs, clock=clock),
        jobs=JobService(
            jobs=jobs,
            clusters=clusters,
            limits=submission.Limits(
                tasks=settings.jobs.tasks_limit,
                wall_time_seconds=int(settings.jobs.wall_time.total_seconds()),
            ),
            check_tree=uploads.tree,
            snapshot=loop.snapshot,
            clock=clock,
            on_change=changed,
        ),
        clusters=clusters,
        transfers=transfers,
        streams=Streams(jobs=jobs, transfers=transfers, marks=marks, feed=feed, changes=changes),
        shares=Shares(),
        logins=CapacityLimiter(_LOGINS_AT_ONCE),
        changes=changes,
        loop=loop,
        records=jobs,
        clock=clock,
    )
    return _Parts(services=services, database=database, backends=backends, marks=marks, feed=feed)
