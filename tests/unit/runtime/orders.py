"""A task file for tests: one trainer alone on CPUs, with what a test changes."""

from __future__ import annotations

from paddlecloud.runtime.taskfile import Role, TaskFile

LABELS = {"http": [0], "ssh": [1]}  # of a role that asks for no ports

ALONE = TaskFile(
    handle="job-1-1",
    job="job-1",
    job_name="name",
    user="someone",
    attempt=1,
    task="trainer-0",
    role="trainer",
    role_index=0,
    rank=0,
    command="true",
    shell="sh",
    address="127.0.0.2",
    ports=[20000, 20001, 20002, 20003],
    trainers=["127.0.0.2:20000"],
    pservers=[],
    workers=["127.0.0.2:20001"],
    master="127.0.0.2:20002",
    coordinator="127.0.0.2:20003",
    trainer_count=1,
    pserver_count=0,
    roles=[Role("trainer", 0, 1.0, 1 << 20, 1, 1, ["127.0.0.2"], [[20000, 20001, 20002, 20003]], LABELS, 0)],
    cluster="local",
    distribute=None,
    uses_gpus=False,
    gpus=[],
    env={},
    account="root",
    search_path=["/x/bin", "/usr/bin"],
    tree=None,
    mount="/x/mount",
    work="/x/work",
    home="/x/home",
    temporary="/x/tmp",
    output="/results/rank-0",
    log_file="/results/log/trainer-0.log",
    log_folder="/results/log/trainer-0",
    cpus=1.0,
    cpu_limit=False,
    memory_bytes=1 << 20,
    pids_limit=100,
    grace_seconds=10.0,
    gate_seconds=10.0,
    hidden=[],
    uid=None,
    whole_machine=False,
    visible=[],
    visible_writable=[],
    shared={},
    public=[],
    wake="/x",
    boot="a boot",
    restarts=0,
    entry="true",
    trainer_devices=1,
    datacenter="",
    mounts={},
    writable=[],
    cwd=None,
    note="",
    inputs=[],
    slurm=False,
    allocation="",
    unisolated=True,
    environments=None,
    requirements="",
    python="",
    interpreter="/usr/bin/python3",
    uv=None,
    quiet_seconds=0.0,
    keep=False,
    pfs=None,
    openpai={},
)


def alone(**changes: object) -> TaskFile:
    task = ALONE._replace(**changes)  # type: ignore[arg-type]
    if task.role in [role.name for role in task.roles]:
        return task
    return task._replace(roles=[*task.roles, ALONE.roles[0]._replace(name=task.role)])
