"""Every setting of the server, each on one line: its name, type, default and help all come from here.

Parsing, `paddlecloud config --server` and the reference in docs/ read the same lines, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta, tzinfo
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from paddlecloud.model.user import NO_LIMITS, Quota
from paddlecloud.server import kinds
from paddlecloud.server.cluster_settings import FREE, OPEN, ClusterSettings, QueueSettings
from paddlecloud.server.face_settings import LOGINS, TASKS, OpenPaiSettings, WebHdfsSettings
from paddlecloud.server.kinds import setting

DEFAULT_PORT = 8642
LOG_LEVELS = ("debug", "info", "warning", "error")
TEXT, JSON = "text", "json"
CLOSED, DOMAINS = "closed", "domains"
LOCAL, S3, HDFS = "local", "s3", "hdfs"

# The manual's free policy: what a user has of public resources. The limit on waiting jobs is ours, against floods.
FREE_QUOTA = Quota(running_jobs=2, waiting_jobs=100, instances=1, wall_time_seconds=30 * 60, minutes_a_day=100)
_SUBMITS_A_MINUTE = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    host: str = setting("127.0.0.1", kinds.text, "Address to listen on; beyond this machine it needs a certificate.")
    port: int = setting(DEFAULT_PORT, kinds.whole(0, 65535), "Port to listen on; 0 takes a free one.")
    url: str = setting(
        "", kinds.text, "Address that mail tells users to reach it by, such as https://box:8642; empty: host and port."
    )
    certificate: Path | None = setting(
        None, kinds.folder, "File of the certificate chain (PEM); with it all is encrypted (https)."
    )
    certificate_key: Path | None = setting(
        None, kinds.folder, "File of the certificate's private key (PEM), which only the server's account may read."
    )
    insecure: bool = setting(
        False, kinds.yes_or_no, "Listen beyond this machine without a certificate, so that nothing is encrypted."
    )
    data: Path = setting(
        Path("~/.local/share/paddlecloud"),
        kinds.folder,
        "Folder of all records and files (PADDLECLOUD_DATA overrides it).",
    )
    database: str = setting(
        "", kinds.database, "Where records are, such as postgresql://user@host/name; empty: SQLite in the data folder."
    )
    policy: str = setting(
        OPEN,
        kinds.choice(OPEN, FREE),
        "free: each user has, on all clusters together, 2 running and 100 waiting jobs, 100 minutes a day, 30 minutes "
        "and one instance for a job, as in the manual; open: no such limits.",
    )
    timezone: str = setting("UTC", kinds.timezone, "Where the server's days begin and end.")
    log_level: str = setting("info", kinds.choice(*LOG_LEVELS), "How much it says: debug, info, warning, error.")
    log_format: str = setting(TEXT, kinds.choice(TEXT, JSON), "Lines of its log: text, or json, one object each.")
    metrics: bool = setting(
        True, kinds.yes_or_no, "Answer GET /metrics from this machine without a login (Prometheus); else admins only."
    )
    default_clusters: tuple[str, ...] = setting((), kinds.names, "What cluster=default tries, in order; empty: all.")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    wall_time: timedelta | None = setting(
        None,
        kinds.duration(1),
        "How long a job may run that asks for no time; left out: as long as its cluster lets it, and 30 minutes if it "
        "comes by `submit_job`.",
    )
    schedule_limit: timedelta = setting(timedelta(days=7), kinds.duration(1), "How long a job may wait for its turn.")
    grace: timedelta = setting(
        timedelta(seconds=10), kinds.duration(0), "Time between SIGTERM and SIGKILL at a job's end."
    )
    pserver_wait: timedelta = setting(
        timedelta(minutes=1),
        kinds.duration(0),
        "How long trainers wait, at most, for the pservers to listen; 0s: not at all.",
    )
    build_limit: timedelta = setting(
        timedelta(minutes=30),
        kinds.duration(1),
        "How long the packages of a job may take to be built, before it runs; then it fails.",
    )
    attempts: int = setting(
        3, kinds.whole(1, 100), "How often a job is started that loses its node, or asks for it by exit code 101."
    )
    hang: timedelta = setting(
        timedelta(minutes=10), kinds.duration(0), "After how long without log, CPU and GPU use a job seems to hang."
    )
    tasks_limit: int = setting(1000, kinds.whole(1, 100_000), "Most tasks that one job may have.")
    upload_limit: int = setting(20 * 2**30, kinds.size, "Largest folder that a job may bring.")
    inputs_limit: int = setting(200 * 2**30, kinds.size, "Most that is fetched for the inputs of one job.")
    unisolated: bool = setting(
        False,
        kinds.yes_or_no,
        "Run jobs of several users also on a machine that cannot hide their files from each other.",
    )
    uids: range | None = setting(
        None,
        kinds.id_range,
        "User ids that tasks run as, one for each user, on a server that runs as root; left out: "
        "1900000000-1900065535.",
    )
    python: str = setting(
        "", kinds.program, "Full path of what tasks find as python and python3; empty: the one behind this server's."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PfsSettings:
    space: int | None = setting(
        None, kinds.size, "Most that one user may keep in all homes together; left out: no limit but the disk."
    )
    count_every: timedelta = setting(
        timedelta(hours=1), kinds.duration(1), "How often homes are counted, which jobs write without asking."
    )
    bos_endpoint: str = setting(
        "https://s3.{region}.bcebos.com", kinds.text, "Where buckets of users' own (bos_url) are reached, as S3."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatacenterSettings:
    store: str = setting(
        LOCAL,
        kinds.choice(LOCAL, S3, HDFS),
        "Where its files are: local, s3 (a bucket) or hdfs.",
    )
    path: Path | None = setting(
        None, kinds.folder, "The folder with home/ and public/; left out, for local: pfs/<name> in the data folder."
    )
    bucket: str = setting("", kinds.text, 's3: the bucket, or a folder in it, such as "lab/pfs".')
    endpoint: str = setting(
        "",
        kinds.text,
        "s3: address of the service, such as https://s3.bj.bcebos.com; hdfs: that of WebHDFS, such as "
        "http://namenode:9870, or of both NameNodes, joined by ;.",
    )
    user: str = setting("", kinds.text, "hdfs: the account of HDFS that its files belong to.")
    region: str = setting("", kinds.text, "s3: the region that its requests are signed for.")
    key_id: str = setting("", kinds.text, "s3: the access key.")
    secret_file: Path | None = setting(None, kinds.folder, "s3: file with the secret key, and nothing else.")


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsSettings:
    url: str = setting("", kinds.text, "Address of its WebHDFS, such as http://namenode:9870; several are joined by ;.")
    user: str = setting("", kinds.text, "Whom to read it as for jobs that name no user; empty: they have to.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSettings:
    gen_token: str = setting(
        CLOSED, kinds.choice(CLOSED, DOMAINS, OPEN), "Who gets an access key by mail: nobody, mail_domains, anyone."
    )
    mail_domains: tuple[str, ...] = setting(
        (), kinds.names, 'Domains whose addresses may have a key by mail, such as "lab.example".'
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings:
    smtp: str = setting(
        "", kinds.text, "smtp://host:25, starttls://host:587 or smtps://host:465; empty: mail stays in <data>/outbox."
    )
    user: str = setting("", kinds.text, "Whom to log in as at the mail server; empty: no login.")
    password_file: Path | None = setting(None, kinds.folder, "File with the password of mail.user, and nothing else.")
    sender: str = setting("paddlecloud@localhost", kinds.text, "Address that mail comes from.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSettings:
    """0 is no limit."""

    logins_a_minute: int = setting(
        10, kinds.whole(0, 10**6), "Wrong passwords for one name from one address; ten times as many tries for each."
    )
    mails_an_hour: int = setting(
        3, kinds.whole(0, 10**6), "Keys sent to one address of mail; ten times as many at the wish of one machine."
    )
    submits_a_minute: int | None = setting(
        None,
        kinds.whole(0, 10**6),
        "Jobs submitted by one user, and ten times as many from one address; left out: 600, and no limit on an "
        "embedded server.",
    )
    unknown_callers_a_minute: int = setting(
        100,
        kinds.whole(0, 10**6),
        "Calls of WebHDFS from one address, or from this machine, that are refused since only a name says who calls.",
    )
    connections: int | None = setting(
        None,
        kinds.whole(0, 10**6),
        "Connections open at a time from one address; left out: 512, and no more than an eighth of the open files that "
        "the system allows.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    jobs: timedelta | None = setting(
        None, kinds.duration(1), "How long finished jobs are kept, with results and logs; left out: for ever."
    )
    results: timedelta | None = setting(
        None, kinds.duration(1), "How long results of finished jobs are kept (logs stay); left out: as long as the job."
    )
    logs: timedelta | None = setting(
        None, kinds.duration(1), "How long logs of finished jobs are kept; left out: as long as the job."
    )
    uploads: timedelta | None = setting(
        timedelta(days=30), kinds.duration(1), "How long an uploaded folder is kept that no live job uses."
    )
    results_size: int | None = setting(
        None, kinds.size, "Most that results of finished jobs may take: the oldest go first; left out: no limit."
    )
    uploads_size: int | None = setting(
        None, kinds.size, "Most that uploads without a live job may take: those unused longest go first."
    )
    environments: timedelta | None = setting(
        timedelta(days=30), kinds.duration(1), "How long a virtual environment of jobs is kept that no job uses."
    )
    environments_size: int | None = setting(
        50 * 2**30, kinds.size, "Most that virtual environments may take: those unused longest go first."
    )
    audit: timedelta | None = setting(None, kinds.duration(1), "How long the audit record is kept; left out: for ever.")
    every: timedelta = setting(timedelta(hours=1), kinds.duration(1), "How often it is looked what may go.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    server: ServerSettings
    jobs: JobSettings = JobSettings()
    accounts: AccountSettings = AccountSettings()
    mail: MailSettings = MailSettings()
    rates: RateSettings = RateSettings()
    retention: RetentionSettings = RetentionSettings()
    pfs: PfsSettings = PfsSettings()
    openpai: OpenPaiSettings = OpenPaiSettings()
    webhdfs: WebHdfsSettings = WebHdfsSettings()
    clusters: Mapping[str, ClusterSettings] = field(default_factory=dict)
    queues: Mapping[str, QueueSettings] = field(default_factory=dict)
    datacenters: Mapping[str, DatacenterSettings] = field(default_factory=dict)
    hdfs: Mapping[str, HdfsSettings] = field(default_factory=dict)  # what hdfs://<name>/… means in inputs of jobs
    embedded: bool = False  # a person's own server, which has no need to protect users from each other
    source: Path | None = None  # the file that they were read from

    @property
    def default_clusters(self) -> tuple[str, ...]:
        return self.server.default_clusters or tuple(self.clusters)

    @property
    def default_fs_uri(self) -> str:
        host = urlsplit(self.server.url).hostname or self.server.host
        return self.openpai.fs_uri.rstrip("/") or f"hdfs://{host}:9000"

    @property
    def zone(self) -> tzinfo:
        """Where days begin and end. UTC is known also on a machine without a database of time zones."""
        return UTC if self.server.timezone == "UTC" else ZoneInfo(self.server.timezone)

    @property
    def submits_a_minute(self) -> int:
        """0 is no limit."""
        if self.rates.submits_a_minute is not None:
            return self.rates.submits_a_minute
        return 0 if self.embedded else _SUBMITS_A_MINUTE

    @property
    def believed_names(self) -> str:
        """Whose user.name alone WebHDFS believes."""
        return self.webhdfs.plain or (LOGINS if self.embedded else TASKS)

    def policy(self, cluster: str) -> str:
        """The cluster's own, else the server's."""
        return self.clusters[cluster].policy or self.server.policy

    @property
    def overall_quota(self) -> Quota:
        """What each user may have on all clusters together, unless they were given another quota."""
        return FREE_QUOTA if self.server.policy == FREE else NO_LIMITS

    def quota(self, cluster: str) -> Quota:
        """What each user may have on a cluster, unless they were given another quota there."""
        said = self.clusters[cluster]
        base = FREE_QUOTA if said.policy == FREE else NO_LIMITS
        wall_time = base.wall_time_seconds if said.wall_time is None else int(said.wall_time.total_seconds())
        return Quota(
            running_jobs=base.running_jobs if said.running_jobs is None else said.running_jobs,
            waiting_jobs=base.waiting_jobs if said.waiting_jobs is None else said.waiting_jobs,
            instances=base.instances if said.instances is None else said.instances,
            wall_time_seconds=wall_time,
            minutes_a_day=base.minutes_a_day if said.minutes_a_day is None else said.minutes_a_day,
        )


SECTIONS: Mapping[str, type] = {
    "server": ServerSettings,
    "jobs": JobSettings,
    "accounts": AccountSettings,
    "mail": MailSettings,
    "rates": RateSettings,
    "retention": RetentionSettings,
    "pfs": PfsSettings,
    "openpai": OpenPaiSettings,
    "webhdfs": WebHdfsSettings,
}
