"""The wiring: every part of a server is made here, once, and handed to those who need it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial

from fastapi import FastAPI

from paddlecloud import __version__
from paddlecloud.backends.base import Backend
from paddlecloud.files.arriving import ArrivingFiles, ArrivingLogs
from paddlecloud.files.results import Results
from paddlecloud.files.uploads import Uploads
from paddlecloud.scheduler.clockwatch import ClockWatch
from paddlecloud.scheduler.loop import Loop
from paddlecloud.scheduler.round import Folders, Limits, Round
from paddlecloud.server import checkup, logs, problems, submission
from paddlecloud.server.access_log import AccessLog
from paddlecloud.server.accounts import Accounts
from paddlecloud.server.attributes import AttributeService
from paddlecloud.server.audit import AuditService
from paddlecloud.server.auth import Authenticator
from paddlecloud.server.carrier import open_carrier
from paddlecloud.server.certificate import certificate as read_certificate
from paddlecloud.server.changes import Changes
from paddlecloud.server.clusters import Clusters, load_backends
from paddlecloud.server.datacenters import open_tree
from paddlecloud.server.datadir import DataFolder, announced, hold, refuse_shared
from paddlecloud.server.dialects import openpai, paddlecloud, webhdfs
from paddlecloud.server.dialects.openpai.addresses import Addresses
from paddlecloud.server.dialects.slashes import OneSlash
from paddlecloud.server.discards import open_discards
from paddlecloud.server.feed import Feed
from paddlecloud.server.groups import GroupService
from paddlecloud.server.hdfs_callers import HdfsCallers
from paddlecloud.server.housekeeping import housekeeping
from paddlecloud.server.inodes import Inodes
from paddlecloud.server.jobs import JobService
from paddlecloud.server.lifetime import Parts
from paddlecloud.server.listening import Server, address, allow_open_files, listen, quiet_signals
from paddlecloud.server.logins import Logins
from paddlecloud.server.marks import Marks
from paddlecloud.server.memberships import Memberships
from paddlecloud.server.metrics import measure
from paddlecloud.server.old_tokens import OldTokens
from paddlecloud.server.openpai import OpenPaiJobs, meant_in, notes_of, secrets_of, shared_in
from paddlecloud.server.operator import ensure_operator
from paddlecloud.server.passes import Passes
from paddlecloud.server.policy import policy_lines
from paddlecloud.server.publications import PublicationService
from paddlecloud.server.queues import Queues
from paddlecloud.server.quotas import QuotaService
from paddlecloud.server.rates import Rates
from paddlecloud.server.registration import open_registrations
from paddlecloud.server.registry import RegistryService
from paddlecloud.server.rest import ROUTERS
from paddlecloud.server.services import Services
from paddlecloud.server.settings import Settings
from paddlecloud.server.shared import SharedService
from paddlecloud.server.shares import Shares
from paddlecloud.server.shipping import Shipping, token_of
from paddlecloud.server.streams import Streams
from paddlecloud.server.task_accounts import open_accounts, take_range
from paddlecloud.server.transfers import TransferLimits, Transfers
from paddlecloud.server.upkeep import open_records, refuse_emptied
from paddlecloud.store.applications import Applications
from paddlecloud.store.attributes import FileAttributes
from paddlecloud.store.audit import Audit
from paddlecloud.store.buckets import Buckets
from paddlecloud.store.configs import Configs
from paddlecloud.store.db import Database
from paddlecloud.store.groups import Groups
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.listing import JobListing
from paddlecloud.store.passes import EndedPasses
from paddlecloud.store.pfs_use import PfsUse
from paddlecloud.store.publications import Publications
from paddlecloud.store.registry import Registries
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.shared import SharedFolders
from paddlecloud.store.task_accounts import TaskAccountNumbers
from paddlecloud.store.users import Users

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]
Wake = Callable[[], None]
Backends = Callable[[Settings, Clock, Wake, Callable[[str], str]], Mapping[str, Backend]]
_SPARE_BYTES = 64 * 1024 * 1024  # of the disk, which no upload may take: records are written there too


def utc_now() -> datetime:
    return datetime.now(UTC)


def serve(settings: Settings, *, command: str = "paddlecloud serve", new: bool = False) -> None:
    """Serve until SIGTERM or SIGINT; `command` is what it was started by; `new`: without the records that are gone.
    ConfigError tells what keeps it from it."""
    take_range(settings)
    logs.configure(settings.server, DataFolder(settings.server.data).log)
    allow_open_files()
    certificate = read_certificate(settings.server, utc_now)
    with ExitStack() as stack:
        folder = stack.enter_context(hold(settings.server.data))
        if settings.embedded:
            refuse_shared(folder)
        listening = stack.enter_context(listen(settings.server, embedded=settings.embedded, again=folder.last_port))
        folder.remember_port(listening.getsockname()[1])
        started_at = utc_now()
        app = create(settings, utc_now, new=new)
        url = address(listening, encrypted=certificate is not None)
        if certificate is not None:
            app.state.services.metrics.certificate(lambda: certificate.pair.not_after)

        def announce() -> None:
            said = announced(folder, url=url, started_at=started_at, version=__version__, certificate=certificate)
            stack.enter_context(said)
            if not settings.embedded:
                folder.remember_shared(command)
            log.info("PaddleCloud %s serves %s from %s", __version__, url, folder.root)
            for line in policy_lines(settings) if not settings.embedded else ():
                log.info("%s", line)

        with quiet_signals():
            Server(app, certificate=certificate, on_start=announce).run(sockets=[listening])
    log.info("the server has ended; its jobs run on")


def create(
    settings: Settings,
    clock: Clock = utc_now,
    *,
    backends: Backends | None = None,
    new: bool = False,
) -> FastAPI:
    """A server of this data folder, which the caller holds. Where it is embedded, or there are no users yet, the
    user of this process becomes an admin, whose access key is written into the data folder."""
    folder = DataFolder(settings.server.data)
    database = open_records(settings, clock)
    try:
        cipher = Cipher(folder.key)
        users = Users(database, cipher)
        if not new and not users.list():
            refuse_emptied(settings, database)
        if settings.embedded or not users.list():
            ensure_operator(users, folder, clock)
        loading = backends or partial(load_backends, several_users=users.several)
        parts = _assemble(settings, clock, database, users, cipher, loading)
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
    app.add_middleware(AccessLog, observe=parts.services.metrics.serve)
    problems.install(app)
    app.add_middleware(OneSlash)
    app.add_middleware(Addresses)
    for router in (*ROUTERS, *paddlecloud.ROUTERS, *openpai.ROUTERS, *webhdfs.ROUTERS):
        app.include_router(router)
    return app


def _assemble(
    settings: Settings,
    clock: Clock,
    database: Database,
    users: Users,
    cipher: Cipher,
    make_backends: Backends,
) -> Parts:
    folder = DataFolder(settings.server.data)
    jobs = Jobs(database)
    uploads, results = Uploads(folder.files, spare_bytes=_SPARE_BYTES), Results(folder.results)
    changes, shares = Changes(), Shares()
    discards = open_discards(database, results, folder.marks, clock)
    groups, attributes = Groups(database), AttributeService(FileAttributes(database), clock)
    task_accounts = open_accounts(settings, TaskAccountNumbers(database))
    tree = open_tree(
        settings, folder, users, PfsUse(database), clock, discards.discard, groups, attributes, task_accounts
    )
    tree.hand_over([user.name for user in users.list()], groups.membership().shared)
    metrics = measure(settings, jobs, shares)
    loops: list[Loop] = []

    def wake() -> None:
        # A task may end before there is a loop, which cannot be made without the backends.
        for loop in loops:
            loop.wake()

    backends = make_backends(settings, clock, wake, partial(token_of, cipher))
    audit = AuditService(Audit(database), clock)
    rates = Rates(
        logins_a_minute=settings.rates.logins_a_minute,
        mails_an_hour=settings.rates.mails_an_hour,
        submits_a_minute=settings.submits_a_minute,
        unknown_callers_a_minute=settings.rates.unknown_callers_a_minute,
    )
    registrations, postman = open_registrations(settings, folder, users, rates, audit, clock)
    quotas = QuotaService(
        settings=settings, users=users, groups=groups, jobs=jobs, database=database, clock=clock, kept=tree.room.used
    )
    clusters, queues = Clusters(settings, backends, quotas), Queues(settings, Memberships(groups, users))
    house = housekeeping(
        settings.retention, folder=folder, database=database, uploads=uploads, results=results, audit=audit, clock=clock
    )
    house.settle()
    carrier = open_carrier(
        settings, folder, Buckets(database, cipher), jobs, results, house, tree.pfs, audit, wake, clock
    )
    configs = Configs(database, cipher)
    folders = Folders(
        tree=uploads.tree,
        results=results.folder,
        mounts=tree.mounts,
        brought=carrier.tree,
        inputs=carrier.inputs,
        pfs=folder.pfs,
        uid=lambda job: task_accounts.uid(job.user),
        secrets=partial(secrets_of, configs),
    )
    loop = Loop(
        Round(
            jobs=jobs,
            quotas=quotas.quotas,
            clusters=backends,
            default=settings.default_clusters,
            queues=queues.terms,
            folders=folders,
            limits=_limits(settings),
            ready=carrier.ready,
            jumps=ClockWatch(folder.clock).look,
        ),
        clock=clock,
        on_change=changes.ring,
        observe=metrics.round,
    )
    loops.append(loop)

    def changed() -> None:
        wake()
        changes.ring()

    transfers = Transfers(uploads, results, TransferLimits(upload_bytes=settings.jobs.upload_limit))
    marks = Marks(folder.marks, transfers)
    feed = Feed(jobs, changes, observe=metrics.move)
    registries = RegistryService(registries=Registries(database, cipher), audit=audit, clock=clock)
    accounts = Accounts(users=users, quotas=quotas, clock=clock)
    logins = Logins(accounts=accounts, users=users, rates=rates, audit=audit, clock=clock)
    job_service = JobService(
        jobs=jobs,
        clusters=clusters,
        queues=queues,
        limits=submission.Limits(
            hang_seconds=int(settings.jobs.hang.total_seconds()),
            tasks=settings.jobs.tasks_limit,
            wall_time_seconds=_seconds(settings.jobs.wall_time),
        ),
        in_pfs=tree.in_pfs,
        find_registry=registries.login,
        check_storage=carrier.service.check,
        check_inputs=carrier.checked,
        sending=carrier.service.sending,
        notes=partial(notes_of, configs),
        hold_tree=uploads.trees.held,
        removed=house.remains.removed,
        snapshot=loop.snapshot,
        rates=rates,
        audit=audit,
        clock=clock,
        on_change=changed,
    )
    services = Services(
        authenticator=Authenticator(users, clock),
        accounts=accounts,
        jobs=job_service,
        openpai=OpenPaiJobs(
            jobs=job_service,
            configs=configs,
            inputs=carrier.input_service,
            settings=settings,
            meant=partial(meant_in, tree.pfs),
            shared=partial(shared_in, tree.pfs),
        ),
        clusters=clusters,
        queues=queues,
        quotas=quotas,
        groups=GroupService(
            groups=groups,
            users=users,
            queues=settings.queues,
            check_clusters=quotas.check_clusters,
            audit=audit,
            clock=clock,
        ),
        transfers=transfers,
        pfs=tree.pfs,
        incoming=tree.incoming,
        copies=tree.copies,
        shared=SharedService(
            folders=SharedFolders(database, groups),
            granted=tree.shared,
            users=users,
            pfs=tree.pfs,
            room=tree.room,
            audit=audit,
            clock=clock,
        ),
        attributes=attributes,
        inodes=Inodes(),
        hdfs_callers=HdfsCallers(
            users, cipher.sign, jobs, folder.tasks, settings.believed_names, rates, clock, clusters.runs_tasks_at
        ),
        old_tokens=OldTokens(users, cipher.sign, logins),
        passes=Passes(users, EndedPasses(database), cipher.sign),
        applications=Applications(database, cipher),
        listing=JobListing(database),
        streams=Streams(jobs=jobs, transfers=transfers, marks=marks, feed=feed, changes=changes),
        shipping=Shipping(
            jobs=jobs,
            logs=ArrivingLogs(results, spare_bytes=_SPARE_BYTES),
            files=ArrivingFiles(results, spare_bytes=_SPARE_BYTES),
            cipher=cipher,
            tasks=folder.tasks,
            tree=folders.tree_of,
            clock=clock,
            inputs=carrier.inputs,
            wake=wake,
        ),
        shares=shares,
        logins=logins,
        registrations=registrations,
        registries=registries,
        buckets=carrier.service,
        publications=PublicationService(Publications(database), clock),
        audit=audit,
        retention=house.retention,
        space=house.space,
        changes=changes,
        metrics=metrics,
        doctor=lambda: checkup.examine(settings, clock(), backends=backends, healthy=loop.healthy),
        loop=loop,
        records=jobs,
        settings=settings,
        clock=clock,
    )
    return Parts(
        services=services,
        database=database,
        backends=backends,
        marks=marks,
        feed=feed,
        postman=postman,
        carrier=carrier,
        house=house,
        tree=tree,
        count_seconds=settings.pfs.count_every.total_seconds(),
        folder=folder,
    )


def _seconds(time: timedelta | None) -> int | None:
    return None if time is None else int(time.total_seconds())


def _limits(settings: Settings) -> Limits:
    found = {name: cluster.start_within for name, cluster in settings.clusters.items()}
    return Limits(
        schedule=settings.jobs.schedule_limit,
        attempts=settings.jobs.attempts,
        start_within={name: within for name, within in found.items() if within is not None},
    )
