"""The configuration of the Slurm that tests start: quick to schedule, to notice a dead node, and to give up.

Partitions: `batch` (an hour, the default), `short` (a minute), `low` (endless, and last). Levels of service, which the
account `team` may use: `low`, `normal`, `high`; each evicts those before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CLUSTER = "test"
ACCOUNT = "team"
# A dead node is found out after about three times as long.
TIMEOUT_SECONDS = 5
# Of a Slurm as operators have it: a node that is slow to answer is busy, and not dead.
PATIENT_SECONDS = 300
_MESSAGE_SECONDS = 10
# Its journal is never synced: what is tested is our use of it.
DATABASE = (
    "--innodb-flush-method=nosync",
    "--sync-frm=0",
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-lock-wait-timeout=900",
)
GRANTS = (
    "create database accounts; create user slurm@'127.0.0.1' identified by 'slurm'; "
    "grant all on accounts.* to slurm@'127.0.0.1'"
)
_ACCOUNTS = (
    f"add cluster {CLUSTER}",
    f"add account {ACCOUNT} Cluster={CLUSTER}",
    "add qos low Priority=1",
    "modify qos normal set Priority=10 Preempt=low",
    "add qos high Priority=100 Preempt=low,normal",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large a cluster is, what it has, and where it listens. A `rest_port` of 0: no slurmrestd."""

    names: tuple[str, ...]
    cpus: int
    memory_mb: int
    gpus: int
    accounting: bool
    proctrack: str
    users: tuple[str, ...]
    timeout_seconds: int
    extra: str
    control_port: int
    accounting_port: int
    database_port: int
    rest_port: int
    node_ports: tuple[int, ...]


def write(folder: Path, shape: Shape, *, host: str, user: str, first_job: int) -> None:
    texts = {
        "slurm.conf": _slurm(folder, shape, host=host, user=user, first_job=first_job),
        "slurmdbd.conf": _slurmdbd(folder, shape, user=user),
        "gres.conf": _gres(shape),
        "cgroup.conf": _cgroup(),
    }
    for name, text in texts.items():
        file = folder / name
        file.touch(0o600 if name == "slurmdbd.conf" else 0o644)
        file.write_text(text)


def accounts(users: Sequence[str]) -> list[list[str]]:
    """The words of each call of sacctmgr."""
    added = [f"add user {user} Account={ACCOUNT} QOS=normal,high,low DefaultQOS=normal" for user in users]
    return [line.split() for line in (*_ACCOUNTS, *added)]


def _slurm(folder: Path, shape: Shape, *, host: str, user: str, first_job: int) -> str:
    # The task plugin is what holds a job to its memory.
    task = "cgroup" if shape.proctrack == "cgroup" else "none"
    gather, preempt = ("linux", "qos") if shape.accounting else ("none", "partition_prio")
    return f"""\
ClusterName={CLUSTER}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={shape.control_port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmctldParameters=enable_configless
StateSaveLocation={folder}/state
SlurmUser={user}
SlurmdUser={user}
SlurmdPidFile={folder}/spool/%n/slurmd.pid
SlurmdLogFile={folder}/log/slurmd-%n.log
SlurmdSpoolDir={folder}/spool/%n
# A node may have more CPUs than the machine.
SlurmdParameters=config_overrides
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={folder}/jwt.key
CredType=cred/munge
ProctrackType=proctrack/{shape.proctrack}
TaskPlugin=task/{task}
JobAcctGatherType=jobacct_gather/{gather}
JobAcctGatherFrequency=task=1
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/ended.txt
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,bf_max_job_test=1000,sched_min_interval=100000,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
PriorityWeightQOS=10000
PriorityWeightPartition=1000
PriorityWeightAge=100
PreemptType=preempt/{preempt}
PreemptMode=REQUEUE
EnforcePartLimits=ALL
FirstJobId={first_job}
MaxJobCount=20000
MinJobAge=300
KillWait=2
CompleteWait=0
InactiveLimit=0
OverTimeLimit=0
MessageTimeout={min(shape.timeout_seconds, _MESSAGE_SECONDS)}
SlurmctldTimeout=30
SlurmdTimeout={shape.timeout_seconds}
GresTypes=gpu
DefMemPerCPU=100
{_accounting(folder, shape)}
{_nodes(shape, host)}
PartitionName=batch Nodes=ALL Default=YES MaxTime=01:00:00 DefaultTime=00:10:00 PriorityTier=10 State=UP
PartitionName=short Nodes=ALL MaxTime=00:01:00 DefaultTime=00:01:00 PriorityTier=20 State=UP
PartitionName=low Nodes=ALL MaxTime=INFINITE PriorityTier=1 State=UP
{shape.extra}
"""


def _accounting(folder: Path, shape: Shape) -> str:
    if not shape.accounting:
        return "AccountingStorageType=accounting_storage/none"
    # Commands that ask slurmdbd do not read AuthInfo: without the socket as a password each would wait two seconds.
    return f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={shape.accounting_port}
AccountingStoragePass={folder}/munge.socket
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations,limits,qos"""


def _nodes(shape: Shape, host: str) -> str:
    size = f"CPUs={shape.cpus} RealMemory={shape.memory_mb}" + (f" Gres=gpu:fake:{shape.gpus}" if shape.gpus else "")
    return "\n".join(
        f"NodeName={name} NodeHostname={host} NodeAddr={address(number)} Port={port} {size}"
        f" Features=cpu,rack{(number + 1) // 2} State=UNKNOWN"
        for number, (name, port) in enumerate(zip(shape.names, shape.node_ports, strict=True), 1)
    )


def address(number: int) -> str:
    """Of the n-th node: all of 127.0.0.0/8 is this machine, and nodes of a real cluster have different addresses."""
    return f"127.0.1.{number}"


def _slurmdbd(folder: Path, shape: Shape, *, user: str) -> str:
    return f"""\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={folder}/jwt.key
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={shape.accounting_port}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={shape.database_port}
StorageLoc=accounts
StorageUser=slurm
StoragePass=slurm
PidFile={folder}/slurmdbd.pid
LogFile={folder}/log/slurmdbd.log
"""


def _gres(shape: Shape) -> str:
    """A GPU is some character device that the machine has; nothing opens it, since devices are not constrained."""
    if not shape.gpus:
        return ""
    return f"NodeName={','.join(shape.names)} Name=gpu Type=fake File=/dev/tty[10-{9 + shape.gpus}]\n"


def _cgroup() -> str:
    return """\
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
CgroupAutomount=no
ConstrainRAMSpace=yes
ConstrainCores=no
ConstrainDevices=no
"""
