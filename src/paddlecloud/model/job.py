"""A job: what was asked for (JobSpec), where it was put (Placement), and its record (Job)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from paddlecloud.model import paths
from paddlecloud.model.state import JobState, StopReason
from paddlecloud.model.task import BUILDING

TRAINER = "trainer"
PSERVER = "pserver"
DEFAULT = "default"  # as a cluster: whichever of the server's list takes the job first
PORTS_PER_TASK = 4  # that a task has whether or not it asks for any


class Resources(Struct, frozen=True, kw_only=True):
    """An amount of a machine: what a task asks for, what a cluster has."""

    cpus: float = 0.0
    memory_bytes: int = 0
    gpus: int = 0

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            cpus=self.cpus + other.cpus,
            memory_bytes=self.memory_bytes + other.memory_bytes,
            gpus=self.gpus + other.gpus,
        )

    def __sub__(self, other: Resources) -> Resources:
        return Resources(
            cpus=self.cpus - other.cpus,
            memory_bytes=self.memory_bytes - other.memory_bytes,
            gpus=self.gpus - other.gpus,
        )

    def fits(self, room: Resources) -> bool:
        """Whether this amount can be taken out of `room` (a thousandth of a CPU is rounding)."""
        return self.cpus <= room.cpus + 0.001 and self.memory_bytes <= room.memory_bytes and self.gpus <= room.gpus


NOTHING = Resources()


def total(amounts: Iterable[Resources]) -> Resources:
    return sum(amounts, NOTHING)


class Shell(StrEnum):
    """What runs a command: a shell that is given it as its text, or one that reads it as a file of the task's own."""

    SH = "sh"
    BASH = "bash"  # as OpenPAI's first protocol has it: what fails is passed over, and the last exit code counts
    STRICT = "bash-strict"  # as its second has it: errexit, nounset and pipefail


class Ports(Struct, frozen=True, kw_only=True):
    """Ports that a task of a role has under one label."""

    count: int = 1
    begin: int = 0  # the first that is wished for: these are given where they are free; 0: any


class RoleSpec(Struct, frozen=True, kw_only=True):
    """One kind of task of a job.

    The job fails when `min_failed` tasks of a role have failed (None: never for that), and succeeds when every role has
    `min_succeeded` successes (None: all of its tasks). A role that needs none, such as pservers, is stopped at the
    job's end.
    """

    name: str
    count: int
    command: str
    resources: Resources | None = None  # None: the cluster's default request
    min_failed: int | None = 1
    min_succeeded: int | None = None
    restarts: int = 0  # how often one failed task is started again where it was, while the others go on
    awaited_seconds: float | None = None  # by trainers, if it is a pserver, to listen; None: as the server says
    shell: Shell = Shell.SH
    ports: Mapping[str, Ports] = field(default_factory=dict)  # by label, beside those that every task has
    shared_memory_bytes: int = 0  # what it is told that it may count on; 0: what OpenPAI gives to who does not ask

    @property
    def labels(self) -> dict[str, list[int]]:
        """Which of a task's ports each label stands for: every task has http and ssh, the first two that all have."""
        found = {"http": [0], "ssh": [1]}
        following = PORTS_PER_TASK
        for label, asked in self.ports.items():
            more = range(following, following + asked.count - len(found.setdefault(label, [])))
            found[label].extend(more)
            following += len(more)
        return found

    @property
    def port_count(self) -> int:
        return max([PORTS_PER_TASK, *(place + 1 for places in self.labels.values() for place in places)])

    @property
    def wishes(self) -> dict[int, int]:
        """The ports that it wishes for, by their place among a task's ports."""
        places = self.labels
        return {
            place: asked.begin + number
            for label, asked in self.ports.items()
            for number, place in enumerate(places[label][: asked.count])
            if asked.begin
        }

    @property
    def successes_needed(self) -> int:
        return self.count if self.min_succeeded is None else self.min_succeeded


class Retry(Struct, frozen=True, kw_only=True):
    """How often a job is started again, as a whole, by why it stopped; None: as often as the server says."""

    user_error: int = 0  # a task failed
    restart_me: int | None = None  # a task asked for it, by exit code 101
    node_lost: int | None = None
    preempted: int | None = None
    by_cause: bool = False  # what fails for a cause that another attempt cannot mend is not started again
    endless: bool = False  # a job whose task failed is started again, however often it was
    after_success: bool = False  # so is one that has succeeded, until it is killed


class Hang(Struct, frozen=True, kw_only=True):
    """A job is taken to hang when no task that it waits for has done anything for so long; None: the server says."""

    after_seconds: int | None = None
    kill: bool = False  # end it then, else it is only said


class Input(Struct, frozen=True, kw_only=True):
    """Files from elsewhere that a job's tasks find in their working directory, read-only unless each has its own copy.

    `source` is a file or folder, /pfs/<datacenter>/… or hdfs://<name node>/…; `target` is below the working directory.
    Where a folder is dealt, the trainer of rank i of n gets file number f, in the order of the names, if f % n == i.
    """

    source: str
    target: str
    user: str = ""  # whom to read it as, where the source asks for a name (HDFS)
    deal: bool = False
    list: str = ""  # a file in the working directory that names what came, one path to a line
    optional: bool = False  # what is not there is left out
    copy: bool = False  # each task has a copy of its own, which it may change
    alias: str = ""  # another name of the target, beside it


class OpenPai(Struct, frozen=True, kw_only=True):
    """What a job of OpenPAI was written with that only its own tasks are told again."""

    protocol: int  # 1 or 2
    virtual_cluster: str = DEFAULT
    fs_uri: str = ""
    code_dir: str = ""
    data_dir: str = ""
    output_dir: str = ""
    storages: Mapping[str, str] = field(default_factory=dict)  # a path in its tasks -> the folder of the PFS seen there


class JobSpec(Struct, frozen=True, kw_only=True):
    """What a user asks for. It never changes after submission."""

    roles: tuple[RoleSpec, ...]
    name: str = "tmp_job"
    cluster: str = DEFAULT
    job_type: str | None = None  # "gpu", "cpu"; None: gpu where the cluster has GPUs
    distribute: str | None = None  # "PSERVER", "NCCL2"; None: PSERVER where there is a pserver role
    folder: str = ""  # the name of the folder that was sent: jobs of one folder and command are alike
    tree: str | None = None  # id of the uploaded folder
    env: Mapping[str, str] = field(default_factory=dict)
    wall_time_seconds: int | None = None
    priority: int = 0
    public_bcc: bool = True
    public_bos: bool = True
    bos_url: str = ""
    datacenter: str = ""
    datacenter_alias: str = ""  # what its user calls it, if that is not its name: its tasks find the files so too
    package: str = ""  # the folder of the PFS that the job runs in; "": its uploaded files alone
    image: str = ""
    registry: str = ""
    face: str = ""  # who submitted it: "" ours, "manual" by submit_job, "paddlepaddle" and "openpai" those clients
    storage_key: str = ""  # id of the key to the bucket that bos_url names
    retry: Retry = Retry()
    hang: Hang = Hang()
    keep_on_failure: bool = False  # what its tasks had in their working directories stays with the results
    requirements: str = ""  # the file of the folder that names its packages; "": what is there; "none": none
    python: str = ""  # the version or path of the Python that it asks for
    setup: tuple[str, ...] = ()  # what each task runs before its command
    inputs: tuple[Input, ...] = ()
    queue: str = ""  # the queue of the server that it was submitted to; "": none
    slurm: Mapping[str, str] = field(
        default_factory=dict
    )  # what it asks of Slurm itself: partition, qos, constraint, …
    slurm_env: bool = False  # trainers also get the variables of a Slurm step, which some programs act upon
    own_nodes: bool = False  # each trainer has a node of its own, where its cluster has nodes (Slurm)
    first_role_ends: bool = False  # the job ends when one role has its successes, or nothing of it runs any more
    openpai: OpenPai | None = None
    note: str = ""  # what the log of its first trainer begins with

    @property
    def trainers(self) -> int:
        return sum(role.count for role in self.roles if role.name != PSERVER)

    @property
    def carried(self) -> bool:
        """Whether files of it come from elsewhere, for which it waits, or its results go there."""
        return bool(self.storage_key or self.inputs)

    @property
    def tasks(self) -> int:
        return sum(role.count for role in self.roles)


class TaskPlacement(Struct, frozen=True, kw_only=True):
    """One task's share of a cluster. Its address is None where only the allocation will tell it."""

    role: str
    index: int
    resources: Resources
    cpu_limit: bool = False  # its CPUs were asked for, so it gets no more of them; else it may use idle ones
    address: str | None = None
    ports: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return paths.task_name(self.role, self.index)


class Placement(Struct, frozen=True, kw_only=True):
    """Where one attempt of a job goes, decided before anything is started."""

    cluster: str
    tasks: tuple[TaskPlacement, ...]
    wall_time_seconds: int | None = None  # where its user had fewer minutes left of the day than the job asks for

    @property
    def resources(self) -> Resources:
        return total(task.resources for task in self.tasks)


class Job(Struct, frozen=True, kw_only=True):
    """The record of a job. `store.jobs` alone writes it, by `lifecycle.apply`."""

    id: str
    user: str
    spec: JobSpec
    created_at: datetime
    state: JobState = JobState.SUBMIT
    version: int = 0
    attempt: int = 0
    retries: Mapping[str, int] = field(default_factory=dict)  # by the StopReason that it was started again for
    placement: Placement | None = None
    stop: StopReason | None = None
    queued_at: datetime | None = None  # when it went back to the queue for another attempt
    queue_reason: str = ""
    error: str = ""
    started_at: datetime | None = None  # of the first attempt that ran
    running_since: datetime | None = None  # of the attempt that runs now
    finished_at: datetime | None = None
    quiet_since: datetime | None = None  # it runs, but none of the tasks that it waits for does anything
    passed: Mapping[str, str] = field(default_factory=dict)  # clusters that it tries no more, and why

    @property
    def handle(self) -> str:
        """The name a backend knows this attempt by; we choose it, so starting twice is harmless."""
        return paths.handle(self.id, self.attempt)

    @property
    def waits_there(self) -> bool:
        """It is placed on a cluster that keeps a queue of its own, and waits there: to its user it is queued."""
        return self.state is JobState.SCHEDULE and bool(self.queue_reason) and not self.building

    @property
    def building(self) -> str:
        """What is built before its programs begin, in words; "": nothing."""
        begun = self.state is JobState.SCHEDULE and self.queue_reason.startswith(BUILDING)
        return self.queue_reason if begun else ""

    @property
    def seen(self) -> Job:
        """The record as its user sees it."""
        return replace(self, state=JobState.QUEUE) if self.waits_there else self

    @property
    def waits_since(self) -> datetime:
        return self.queued_at or self.created_at

    @property
    def wall_time_seconds(self) -> int | None:
        """How long this attempt may run: what was asked for, or less if the day's minutes were fewer."""
        placed = None if self.placement is None else self.placement.wall_time_seconds
        return self.spec.wall_time_seconds if placed is None else placed


class Moved(Struct, frozen=True, kw_only=True):
    """One line of a job's history, and one event: `seq` orders all of a server's events."""

    seq: int
    job: str
    user: str
    attempt: int
    at: datetime
    from_state: JobState | None
    to_state: JobState
    why: str
