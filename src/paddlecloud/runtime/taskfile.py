"""The task file: all that a task is told, as one JSON file, read strictly so that a half-understood task never runs."""

from __future__ import annotations

import json
from typing import Any, Callable, NamedTuple

from paddlecloud.runtime import smallfiles

FORMAT = 10
PORT, TENSORFLOW, MASTER, COORDINATOR = range(4)  # what each of a task's ports is for


class TaskFileError(Exception):
    """The file cannot be understood; the message names it and the field."""


class Role(NamedTuple):
    """One kind of task of the job: what each of its tasks has, and where they are, by index."""

    name: str
    gpus: int
    cpus: float
    memory_bytes: int
    min_failed: int  # so many failures of it end the job
    min_succeeded: int  # so many successes of it does the job need
    addresses: "list[str]"
    ports: "list[list[int]]"
    labels: "dict[str, list[int]]"  # which of a task's ports each label stands for
    shared_memory_bytes: int


class Given(NamedTuple):
    """An input: the file or folder that is at `path` in a folder of this machine, "" being the folder itself."""

    source: str  # what its user calls it
    folder: str
    path: str
    target: str  # below the working directory, "." being that
    deal: bool  # each trainer gets its share of the files, and no other task any
    list: str  # the file in the working directory that names what came; "": none
    optional: bool
    copy: bool  # it is copied, for the task to change
    alias: str  # another name of the target, beside it; "": none


class TaskFile(NamedTuple):
    handle: str
    job: str
    job_name: str
    user: str
    attempt: int
    task: str
    role: str
    role_index: int  # its place in its role
    rank: int  # PADDLE_TRAINER_ID: its place among the trainers, or among the pservers
    command: str
    shell: str  # what runs the command: sh, bash or bash-strict
    address: str
    ports: list[int]  # of this task: PORT, TENSORFLOW, MASTER and COORDINATOR number them
    trainers: list[str]  # every trainer's endpoint, by rank
    pservers: list[str]
    workers: list[str]  # every trainer's second endpoint, by rank, for what must not share the first
    master: str | None  # where the first trainer's store is, for all trainers to meet at
    coordinator: str | None  # the same for JAX
    trainer_count: int
    pserver_count: int
    roles: list[Role]
    cluster: str
    distribute: str | None
    uses_gpus: bool
    gpus: list[int]
    env: dict[str, str]  # the user's own, on top of the contract
    account: str
    search_path: list[str]  # PATH, its first entry the folder in which `python` is the configured one
    tree: str | None
    mount: str
    work: str
    home: str
    temporary: str
    output: str
    log_file: str
    log_folder: str
    cpus: float
    cpu_limit: bool
    memory_bytes: int
    pids_limit: int
    grace_seconds: float
    gate_seconds: float  # how long a trainer waits for its pservers to listen
    build_seconds: float  # how long its environment may take to be built
    hidden: list[str]  # folders and files of the server: in these, only what is this task's own can be reached
    uid: int | None  # the account that it runs as; None: the server's own
    whole_machine: bool  # it sees all that its account may see; else what is listed, and `visible`
    visible: list[str]  # folders of the machine that it may read
    visible_writable: list[str]  # folders of the machine that it may change
    shared: dict[str, int]  # those of `mounts` that groups share -> the group id of their files
    public: list[str]  # those of `mounts` that everybody reads
    wake: str  # the folder of the pipe to knock at
    boot: str  # of the machine: in another one, nothing of this task can run
    restarts: int  # how often it is started again after it failed
    entry: str  # the command of the trainers
    trainer_devices: int  # GPUs of each trainer, or CPUs where it has none
    datacenter: str
    mounts: dict[str, str]  # where the task sees a folder of the PFS -> the folder on this machine
    writable: list[str]  # those of `mounts` that it may change
    cwd: str | None  # where the command starts; None: in `work`
    pfs: str | None  # the root of the PFS as the task sees it
    note: str  # what its log begins with, for who wonders; or ""
    keep: bool  # its working directory stays with the results if it fails
    quiet_seconds: float  # after so long without a log line, CPU or GPU it is called quiet; 0: never
    environments: str | None  # the folder of its user's environments; None: there are none
    requirements: str  # the file of its folder that names its packages; "": what is found there; "none": none
    python: str  # the version or path that it asks for; "": the configured one
    interpreter: str  # the configured one
    uv: str | None
    inputs: list[Given]
    slurm: bool  # it asked for the variables of a Slurm step
    allocation: str  # who tells where the tasks are: "", this file; "slurm", by which @0 is the first one's node
    unisolated: bool  # it may run where it cannot be kept from the files of others
    openpai: dict[str, str]  # what only a job of OpenPAI is told: its protocol, virtual_cluster, fs_uri and folders
    format: int = FORMAT

    @property
    def port(self) -> int | None:
        return self.ports[PORT] if self.ports else None

    @property
    def trains(self) -> bool:
        return self.role != "pserver"


def encode(task: TaskFile) -> bytes:
    return json.dumps(task._asdict(), sort_keys=True).encode()


def decode(text: bytes, where: str = "task file") -> TaskFile:
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise TaskFileError(f"{where} is not JSON: {error}") from None
    if not isinstance(plain, dict):
        raise TaskFileError(f"{where} is not a JSON object")
    if plain.get("format") != FORMAT:
        raise TaskFileError(f"{where} has format {plain.get('format')!r}; this runtime reads format {FORMAT}")
    _check_fields(plain, where)
    roles, inputs = [Role(*role) for role in plain["roles"]], [Given(*one) for one in plain["inputs"]]
    return TaskFile(**{**plain, "roles": roles, "inputs": inputs})


def read(path: str) -> TaskFile:
    return decode(smallfiles.read(path), path)


def _check_fields(plain: dict[str, Any], where: str) -> None:
    for name in plain:
        if name not in _FIELDS:
            raise TaskFileError(f"{where}: {name!r} is not a known field")
    for name, kind in _FIELDS.items():
        if name not in plain:
            raise TaskFileError(f"{where}: {name!r} is missing")
        if not _KINDS[kind](plain[name]):
            raise TaskFileError(f"{where}: {name!r} must be {kind}, not {plain[name]!r}")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are(kind: type[Role | Given], value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, list) and len(one) == len(kind._fields) for one in value)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "str | None": lambda value: value is None or isinstance(value, str),
    "int": _is_int,
    "int | None": lambda value: value is None or _is_int(value),
    "float": lambda value: _is_int(value) or isinstance(value, float),
    "bool": lambda value: isinstance(value, bool),
    "list[str]": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "list[int]": lambda value: isinstance(value, list) and all(_is_int(item) for item in value),
    "list[Role]": lambda value: _are(Role, value),
    "list[Given]": lambda value: _are(Given, value),
    "dict[str, int]": lambda value: isinstance(value, dict) and all(_is_int(item) for item in value.values()),
    "dict[str, str]": lambda value: isinstance(value, dict) and all(isinstance(item, str) for item in value.values()),
}
# A NamedTuple keeps its annotations as references to what they name.
_FIELDS = {name: str(getattr(kind, "__forward_arg__", kind)) for name, kind in TaskFile.__annotations__.items()}
