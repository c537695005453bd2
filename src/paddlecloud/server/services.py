"""What routes may call, made once by app.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from paddlecloud.model.errors import UnreachableError
from paddlecloud.model.finding import Finding
from paddlecloud.scheduler.loop import Loop
from paddlecloud.server.accounts import Accounts
from paddlecloud.server.attributes import AttributeService
from paddlecloud.server.audit import AuditService
from paddlecloud.server.auth import Authenticator
from paddlecloud.server.buckets import BucketService
from paddlecloud.server.changes import Changes
from paddlecloud.server.clusters import Clusters
from paddlecloud.server.copies import Copies
from paddlecloud.server.groups import GroupService
from paddlecloud.server.hdfs_callers import HdfsCallers
from paddlecloud.server.incoming import Incoming
from paddlecloud.server.inodes import Inodes
from paddlecloud.server.jobs import JobService
from paddlecloud.server.logins import Logins
from paddlecloud.server.metrics import Metrics
from paddlecloud.server.old_tokens import OldTokens
from paddlecloud.server.openpai import OpenPaiJobs
from paddlecloud.server.passes import Passes
from paddlecloud.server.pfs import Pfs
from paddlecloud.server.publications import PublicationService
from paddlecloud.server.queues import Queues
from paddlecloud.server.quotas import QuotaService
from paddlecloud.server.registration import Registrations
from paddlecloud.server.registry import RegistryService
from paddlecloud.server.retention import Retention
from paddlecloud.server.settings import Settings
from paddlecloud.server.shared import SharedService
from paddlecloud.server.shares import Shares
from paddlecloud.server.shipping import Shipping
from paddlecloud.server.space import SpaceService
from paddlecloud.server.streams import Streams
from paddlecloud.server.transfers import Transfers
from paddlecloud.store.applications import Applications
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.listing import JobListing


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    authenticator: Authenticator
    accounts: Accounts
    jobs: JobService
    openpai: OpenPaiJobs
    clusters: Clusters
    queues: Queues
    quotas: QuotaService
    groups: GroupService
    transfers: Transfers
    pfs: Pfs
    incoming: Incoming
    copies: Copies
    shared: SharedService
    attributes: AttributeService
    inodes: Inodes
    hdfs_callers: HdfsCallers
    old_tokens: OldTokens
    passes: Passes
    applications: Applications
    listing: JobListing
    streams: Streams
    shipping: Shipping
    shares: Shares
    logins: Logins
    registrations: Registrations
    registries: RegistryService
    buckets: BucketService
    publications: PublicationService
    audit: AuditService
    retention: Retention
    space: SpaceService
    changes: Changes
    metrics: Metrics
    doctor: Callable[[], list[Finding]]
    loop: Loop
    records: Jobs
    settings: Settings
    clock: Callable[[], datetime]

    def check_ready(self) -> None:
        """Raise unless records can be read and jobs are being scheduled."""
        self.records.last_event()
        if not self.loop.healthy:
            raise UnreachableError("jobs are not being scheduled: the server's log says why")
