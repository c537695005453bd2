"""Settings of clusters and queues: where jobs run, within which limits, and what tasks see there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from paddlecloud.model.job import DEFAULT
from paddlecloud.server import kinds
from paddlecloud.server.kinds import setting

OPEN, FREE = "open", "free"
SLURM = "slurm"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    backend: str = setting(
        "local", kinds.choice("local", SLURM), "What runs its tasks: local, this machine; slurm, a Slurm cluster."
    )
    cpus: float | None = setting(None, kinds.cpus, "CPUs to give out; left out: all there are.")
    memory: int | None = setting(None, kinds.size, "Memory to give out; left out: all there is.")
    gpus: int | None = setting(None, kinds.whole(0, 100_000), "GPUs to give out; left out: all there are.")
    policy: str | None = setting(
        None,
        kinds.choice(OPEN, FREE),
        "free: what server.policy = free gives, for this cluster alone; open, or left out: no limits of its own.",
    )
    running_jobs: int | None = setting(
        None, kinds.whole(0, 10**6), "Jobs of one user that may run here at once; left out: as the policy says."
    )
    waiting_jobs: int | None = setting(
        None, kinds.whole(0, 10**6), "Jobs of one user that may wait for this cluster; left out: as the policy says."
    )
    minutes_a_day: int | None = setting(
        None, kinds.whole(0, 10**6), "Minutes that one user's jobs may run here in a day; left out: as the policy says."
    )
    wall_time: timedelta | None = setting(
        None, kinds.duration(1), "Longest run of one job here; left out: as the policy says."
    )
    instances: int | None = setting(
        None, kinds.whole(1, 10**6), "Most instances of one job here; left out: as the policy says."
    )
    visible: tuple[str, ...] = setting(
        (),
        kinds.visible,
        'Folders of the machine that tasks see too, such as ["/data", "/scratch:rw"]; without :rw they are read-only. '
        "An embedded server shows all that its account may see.",
    )
    isolate: bool = setting(
        True,
        kinds.yes_or_no,
        "local: keep tasks apart by namespaces and control groups, where the machine can; false is for a server of one "
        "user alone: their tasks start sooner, and reach all that the server does.",
    )
    sbatch: Mapping[str, str] = setting(
        kinds.Table(),
        kinds.sbatch,
        'slurm: options of sbatch for every job, such as {partition = "batch", account = "lab"}.',
    )
    job_options: tuple[str, ...] = setting(
        (),
        kinds.option_names,
        'slurm: options of sbatch that a job may set itself, such as ["constraint"]; empty: none.',
    )
    start_within: timedelta | None = setting(
        None,
        kinds.duration(1),
        "slurm: a job of cluster=default that Slurm would start later than that tries the next; left out: it stays.",
    )
    slurmrestd: str = setting(
        "", kinds.text, "slurm: its REST service, as http://ctl:6820/slurm/v0.0.38; empty: sbatch, squeue, scancel."
    )
    token_file: str = setting(
        "", kinds.text, "slurm: file with a token of slurmrestd; {account} in its name is the account that it is of."
    )
    url: str = setting(
        "",
        kinds.text,
        "slurm: where its nodes reach this server, as https://box:8642; empty: they share its data folder.",
    )
    pack: bool = setting(
        False,
        kinds.yes_or_no,
        "slurm: trainers of cluster_train may share a node; false: --num_nodes counts nodes, with a trainer on each.",
    )
    python: str = setting("python3", kinds.text, "slurm: the Python of its nodes, 3.8 or newer.")
    accounts: Mapping[str, str] = setting(
        kinds.Table(),
        kinds.accounts,
        'slurm: whose jobs run as which Unix account, by sudo, such as {alice = "a123"}; others: as the server itself.',
    )

    @property
    def options_of_jobs(self) -> tuple[str, ...] | None:
        """Those of Slurm that a job may set; None: this is no Slurm."""
        return self.job_options if self.backend == SLURM else None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    cluster: str = setting(DEFAULT, kinds.text, "Where its jobs go: a cluster, or default, the list of them.")
    time_limit: timedelta | None = setting(
        None, kinds.duration(1), "Longest run of one job in it; left out: as its cluster says."
    )
    priority: int = setting(
        0, kinds.whole(-1000, 1000), "Added to the priority of its jobs; among those that wait, the higher goes first."
    )
    users: tuple[str, ...] = setting((), kinds.names, "Who may use it; empty, and no groups: everyone.")
    groups: tuple[str, ...] = setting(
        (), kinds.names, 'Groups whose members may use it too, such as ["vision_lab"]; a group may also be given it.'
    )
    cpus: float | None = setting(None, kinds.cpus, "CPUs that all its jobs use at a time, at most; left out: no limit.")
    memory: int | None = setting(None, kinds.size, "Memory that all its jobs use at a time; left out: no limit.")
    gpus: int | None = setting(
        None, kinds.whole(0, 100_000), "GPUs that all its jobs use at a time; left out: no limit."
    )
    sbatch: Mapping[str, str] = setting(
        kinds.Table(),
        kinds.sbatch,
        'On Slurm: options of sbatch for its jobs, over those of the cluster, such as {partition = "short"}.',
    )
