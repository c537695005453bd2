"""The environment contract as one table: name, who gets it, meaning, value. The reference page is made from it.

A task's environment is built from this table and the job's own variables alone, never from the server's, so that
neither secrets nor a virtual environment of the server reach a task.
"""

from __future__ import annotations

import json
from typing import Callable, NamedTuple

from paddlecloud.runtime import openpai
from paddlecloud.runtime.taskfile import TaskFile

HANDLE = "PADDLECLOUD_HANDLE"
TASK = "PADDLECLOUD_TASK"

EVERY = "every task"
PSERVER_JOBS = "every task of a job with pservers"
DISTRIBUTED_JOBS = "every task of a distributed job"
PFS_JOBS = "every task that sees the PFS"
CPU_JOBS = "every task of a CPU job"
TRAINERS = "every trainer"
SLURM_JOBS = "every trainer of a job that asks for it"


# Whoever sets these by himself trains alone, and every task of his job ends well: they cannot be overridden.
GANG = frozenset(
    {"PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ENDPOINTS", "PADDLE_CURRENT_ENDPOINT"}
    | {"PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_PORT", "POD_IP", "TRAINING_ROLE", "PADDLE_TRAINING_ROLE"}
    | {"PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_RANK", "PADDLE_GLOBAL_RANK", "PADDLE_GLOBAL_SIZE"}
    | {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "GROUP_RANK", "NODE_RANK", "TF_CONFIG"}
    | {"PET_NNODES", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"}
    | {"JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"}
    | {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}
)


class Variable(NamedTuple):
    name: str
    who: str
    meaning: str
    value: Callable[[TaskFile], "str | None"]  # None: not set for this task


def environment(task: TaskFile) -> dict[str, str]:
    """All variables of a task: the contract, then the user's own, then the marks that its processes are found by."""
    contract = {variable.name: variable.value(task) for variable in VARIABLES}
    set_ones = {name: value for name, value in contract.items() if value is not None}
    return {**set_ones, **openpai.environment(task), **task.env, HANDLE: task.handle, TASK: task.task}


def _flag(value: bool) -> str:
    return "1" if value else "0"


def _endpoint(task: TaskFile) -> str | None:
    return None if task.port is None else f"{task.address}:{task.port}"


def _is_local(task: TaskFile) -> str:
    return _flag(task.trainer_count == 1 and task.pserver_count == 0)


def _namespace(task: TaskFile) -> str:
    return "".join("-" if letter in "@._" else letter for letter in task.user)


def _pserver_addresses(task: TaskFile) -> str | None:
    return ",".join(endpoint.rpartition(":")[0] for endpoint in task.pservers) or None


def _host(endpoint: str | None) -> str | None:
    return None if endpoint is None else endpoint.rpartition(":")[0]


def _port(endpoint: str | None) -> str | None:
    return None if endpoint is None else endpoint.rpartition(":")[2]


def _trainer(value: Callable[[TaskFile], "str | None"]) -> Callable[[TaskFile], "str | None"]:
    """Of trainers alone: a pserver with these would train beside them, or wait for a rank that is not its own."""
    return lambda task: value(task) if task.trains else None


def _slurm(value: Callable[[TaskFile], "str | None"]) -> Callable[[TaskFile], "str | None"]:
    return lambda task: value(task) if task.slurm and task.trains else None


def _role(task: TaskFile) -> str:
    return "TRAINER" if task.trains else "PSERVER"


def _job(task: TaskFile) -> str:
    return task.job


def _slurm_id(task: TaskFile) -> str:
    """Frameworks choose ports by it, and it must be a number."""
    return str(int(task.job.rpartition("-")[2][:7] or "0", 16))


def _processes(task: TaskFile) -> str:
    """What a launcher starts in this task: one process for each GPU, else one."""
    return str(max(1, len(task.gpus)))


def _tensorflow(task: TaskFile) -> str | None:
    if not task.workers:
        return None
    config = {"cluster": {"worker": task.workers}, "task": {"type": "worker", "index": task.rank}}
    return json.dumps(config, separators=(",", ":"))


def _always(value: str) -> Callable[[TaskFile], "str | None"]:
    return lambda _: value


VARIABLES: tuple[Variable, ...] = (
    Variable("POD_IP", EVERY, "address of this task", lambda task: task.address),
    Variable(
        "PADDLE_TRAINER_ID",
        EVERY,
        "number of this trainer, from 0 to PADDLE_TRAINERS_NUM - 1; for a pserver its own number",
        lambda task: str(task.rank),
    ),
    Variable("PADDLE_TRAINERS_NUM", EVERY, "number of trainers", lambda task: str(task.trainer_count)),
    Variable("PADDLE_USE_CUDA", EVERY, "1 for a GPU job, 0 for a CPU job", lambda task: _flag(task.uses_gpus)),
    Variable("PADDLE_IS_LOCAL", EVERY, "1 for one trainer alone, 0 when distributed", _is_local),
    Variable("DISTRIBUTE_JOB_TYPE", DISTRIBUTED_JOBS, "PSERVER or NCCL2", lambda task: task.distribute),
    Variable(
        "PADDLE_PSERVERS_IP_PORT_LIST",
        PSERVER_JOBS,
        "address:port of every pserver, joined by commas",
        lambda task: ",".join(task.pservers) or None,
    ),
    Variable(
        "PADDLE_TRAINER_ENDPOINTS",
        EVERY,
        "address:port of every trainer, joined by commas, by trainer number",
        lambda task: ",".join(task.trainers) or None,
    ),
    Variable("PADDLE_CURRENT_ENDPOINT", EVERY, "address:port of this task", _endpoint),
    Variable("TRAINING_ROLE", EVERY, "PSERVER or TRAINER", _role),
    Variable("OUTPUT_PATH", EVERY, "folder of this task whose content is in the results", lambda task: task.output),
    Variable("LOCAL_LOG_PATH", EVERY, "folder for further logs, in the results too", lambda task: task.log_folder),
    Variable("LOCAL_MOUNT_PATH", EVERY, "the job's files, read-only, shared by its tasks", lambda task: task.mount),
    Variable("JOB_ID", EVERY, "id of the job", _job),
    Variable(
        "PADDLE_PORT",
        EVERY,
        "port that this task may listen on",
        lambda task: None if task.port is None else str(task.port),
    ),
    Variable(
        "PADDLE_DISTRI_BACKEND",
        CPU_JOBS,
        "gloo: PaddlePaddle 3 does not choose it by itself on CPUs",
        lambda task: None if task.uses_gpus else "gloo",
    ),
    Variable(
        "FLAGS_selected_gpus",
        "every trainer of a GPU job",
        "0: the first of its GPUs, which PaddlePaddle takes unless a launcher says otherwise",
        _trainer(lambda task: "0" if task.gpus else None),
    ),
    Variable(
        "CUDA_VISIBLE_DEVICES",
        EVERY,
        "numbers of the GPUs that belong to this task; empty on CPUs",
        lambda task: ",".join(str(gpu) for gpu in task.gpus),
    ),
    Variable("OMP_NUM_THREADS", EVERY, "1: PaddlePaddle is slower with more on shared cores", _always("1")),
    Variable("PYTHONUNBUFFERED", EVERY, "1: output reaches the log at once", _always("1")),
    Variable("HOME", EVERY, "an empty private folder, removed after the job", lambda task: task.home),
    Variable("TMPDIR", EVERY, "an empty private folder, removed after the job", lambda task: task.temporary),
    Variable(
        "PATH",
        EVERY,
        "where commands are found; `python` and `python3` are the configured interpreter, `pip` and `pip3` its own; "
        "~/.local/bin has what pip installs",
        lambda task: ":".join([*task.search_path[:1], f"{task.home}/.local/bin", *task.search_path[1:]]),
    ),
    Variable(
        "PIP_BREAK_SYSTEM_PACKAGES",
        EVERY,
        "1: `pip install` works with Debian's Python too; it writes to HOME, where this task alone sees it",
        _always("1"),
    ),
    Variable(
        "PWD",
        EVERY,
        "the working directory: the job's folder of the PFS, or a private copy of the job's files",
        lambda task: task.cwd or task.work,
    ),
    Variable("USER", EVERY, "account that the task runs as", lambda task: task.account),
    Variable("LOGNAME", EVERY, "the same as USER", lambda task: task.account),
    Variable("SHELL", EVERY, "/bin/sh", _always("/bin/sh")),
    Variable("LANG", EVERY, "C.UTF-8", _always("C.UTF-8")),
    Variable(
        "PADDLECLOUD_PFS",
        PFS_JOBS,
        "root of the PFS: /pfs, or another folder where the machine cannot show it there",
        lambda task: task.pfs,
    ),
    Variable("PADDLE_TRAINING_ROLE", EVERY, "the same as TRAINING_ROLE", _role),
    Variable("PADDLE_GLOBAL_RANK", TRAINERS, "the same as PADDLE_TRAINER_ID", _trainer(lambda task: str(task.rank))),
    Variable(
        "PADDLE_GLOBAL_SIZE",
        TRAINERS,
        "the same as PADDLE_TRAINERS_NUM",
        _trainer(lambda task: str(task.trainer_count)),
    ),
    Variable("PADDLE_RANK_IN_NODE", TRAINERS, "0: each task is a node of its own", _trainer(_always("0"))),
    Variable("PADDLE_LOCAL_RANK", TRAINERS, "0", _trainer(_always("0"))),
    Variable("PADDLE_LOCAL_SIZE", TRAINERS, "1", _trainer(_always("1"))),
    Variable(
        "PADDLE_MASTER",
        TRAINERS,
        "address:port at the first trainer where all of them meet; also paddle.distributed.launch's",
        _trainer(lambda task: task.master),
    ),
    Variable(
        "PADDLE_NNODES",
        TRAINERS,
        "number of trainers, as paddle.distributed.launch reads it",
        _trainer(lambda task: str(task.trainer_count)),
    ),
    Variable(
        "PADDLE_RANK",
        TRAINERS,
        "number of this trainer, as paddle.distributed.launch reads it",
        _trainer(lambda task: str(task.rank)),
    ),
    Variable(
        "PADDLE_NPROC_PER_NODE",
        TRAINERS,
        "processes that paddle.distributed.launch starts here: one for each GPU, else 1",
        _trainer(_processes),
    ),
    Variable("PADDLE_JOB_ID", TRAINERS, "the same as JOB_ID, as paddle.distributed.launch reads it", _trainer(_job)),
    Variable(
        "PADDLE_LOG_DIR",
        TRAINERS,
        "where paddle.distributed.launch keeps its logs: the same as LOCAL_LOG_PATH",
        _trainer(lambda task: task.log_folder),
    ),
    Variable("MASTER_ADDR", TRAINERS, "address of the first trainer (PyTorch)", _trainer(lambda t: _host(t.master))),
    Variable("MASTER_PORT", TRAINERS, "port of its store (PyTorch)", _trainer(lambda task: _port(task.master))),
    Variable("RANK", TRAINERS, "number of this trainer (PyTorch)", _trainer(lambda task: str(task.rank))),
    Variable("WORLD_SIZE", TRAINERS, "number of trainers (PyTorch)", _trainer(lambda task: str(task.trainer_count))),
    Variable("LOCAL_RANK", TRAINERS, "0: each task is a node of its own (PyTorch)", _trainer(_always("0"))),
    Variable("LOCAL_WORLD_SIZE", TRAINERS, "1 (PyTorch)", _trainer(_always("1"))),
    Variable("GROUP_RANK", TRAINERS, "the same as RANK (PyTorch)", _trainer(lambda task: str(task.rank))),
    Variable("NODE_RANK", TRAINERS, "the same as RANK (PyTorch)", _trainer(lambda task: str(task.rank))),
    Variable("PET_NNODES", TRAINERS, "number of trainers (torchrun)", _trainer(lambda task: str(task.trainer_count))),
    Variable("PET_NODE_RANK", TRAINERS, "number of this trainer (torchrun)", _trainer(lambda task: str(task.rank))),
    Variable(
        "PET_NPROC_PER_NODE",
        TRAINERS,
        "processes that torchrun starts here: one for each GPU, else 1",
        _trainer(_processes),
    ),
    Variable("PET_MASTER_ADDR", TRAINERS, "the same as MASTER_ADDR (torchrun)", _trainer(lambda t: _host(t.master))),
    Variable("PET_MASTER_PORT", TRAINERS, "the same as MASTER_PORT (torchrun)", _trainer(lambda t: _port(t.master))),
    Variable("PET_RDZV_ID", TRAINERS, "name of this attempt of the job (torchrun)", _trainer(lambda t: t.handle)),
    Variable(
        "TF_CONFIG",
        TRAINERS,
        "the trainers as workers, at ports of their own, and which of them this is (TensorFlow)",
        _trainer(_tensorflow),
    ),
    Variable(
        "JAX_COORDINATOR_ADDRESS",
        TRAINERS,
        "address:port at the first trainer (JAX)",
        _trainer(lambda task: task.coordinator),
    ),
    Variable(
        "JAX_NUM_PROCESSES",
        TRAINERS,
        "number of trainers, for programs that pass it to jax.distributed.initialize",
        _trainer(lambda task: str(task.trainer_count)),
    ),
    Variable(
        "JAX_PROCESS_ID",
        TRAINERS,
        "number of this trainer, for programs that pass it to jax.distributed.initialize",
        _trainer(lambda task: str(task.rank)),
    ),
    Variable(
        "JAX_LOCAL_DEVICE_IDS",
        "every trainer of a GPU job",
        "all of its GPUs, from 0: a JAX that finds its number by itself would take the first alone",
        _trainer(lambda task: ",".join(map(str, range(len(task.gpus)))) or None),
    ),
    # JAX reads the number of processes from launchers that it knows. Of Open MPI it asks only whether the first is set,
    # and Open MPI itself takes an empty one for none: tried with mpirun of 4.1 and 5.0.
    Variable(
        "OMPI_MCA_orte_hnp_uri",
        TRAINERS,
        "empty: makes jax.distributed.initialize() read the next three; Open MPI takes it for unset",
        _trainer(_always("")),
    ),
    Variable("OMPI_COMM_WORLD_SIZE", TRAINERS, "number of trainers (JAX)", _trainer(lambda t: str(t.trainer_count))),
    Variable("OMPI_COMM_WORLD_RANK", TRAINERS, "number of this trainer (JAX)", _trainer(lambda task: str(task.rank))),
    Variable("OMPI_COMM_WORLD_LOCAL_RANK", TRAINERS, "0 (JAX)", _trainer(_always("0"))),
    Variable("SLURM_JOB_ID", SLURM_JOBS, "a number made of the job's id", _slurm(_slurm_id)),
    Variable(
        "SLURM_STEP_NODELIST",
        SLURM_JOBS,
        "addresses of the trainers, joined by commas",
        _slurm(lambda task: ",".join(filter(None, map(_host, task.trainers))) or None),
    ),
    Variable("SLURM_NTASKS", SLURM_JOBS, "number of trainers", _slurm(lambda task: str(task.trainer_count))),
    Variable("SLURM_PROCID", SLURM_JOBS, "number of this trainer", _slurm(lambda task: str(task.rank))),
    Variable("SLURM_LOCALID", SLURM_JOBS, "0", _slurm(_always("0"))),
    Variable(
        "PADDLECLOUD_ATTEMPT",
        EVERY,
        "1, or more when the job was started again: continue from a checkpoint in OUTPUT_PATH if there is one",
        lambda task: str(task.attempt),
    ),
    Variable("PADDLE_JOB_NAME", EVERY, "name of the job", lambda task: task.job_name),
    Variable("TRAINERS", EVERY, "number of trainers", lambda task: str(task.trainer_count)),
    Variable("PSERVERS", EVERY, "number of pservers", lambda task: str(task.pserver_count)),
    Variable("ENTRY", EVERY, "command of the trainers", lambda task: task.entry),
    Variable("TRAINER_PACKAGE", EVERY, "the same as PWD", lambda task: task.cwd or task.work),
    Variable(
        "PADDLE_INIT_PORT",
        EVERY,
        "7164: free for each task at its own POD_IP, and what pservers of PaddlePaddle Cloud listen on",
        _always("7164"),
    ),
    Variable("PADDLE_INIT_PORTS_NUM", EVERY, "1", _always("1")),
    Variable("PADDLE_INIT_PORTS_NUM_FOR_SPARSE", EVERY, "1", _always("1")),
    Variable(
        "PADDLE_INIT_TRAINER_COUNT",
        EVERY,
        "GPUs of each trainer, or its CPUs where it has none; at least 1",
        lambda task: str(task.trainer_devices),
    ),
    Variable(
        "PADDLE_INIT_NUM_GRADIENT_SERVERS",
        EVERY,
        "number of trainers, as in the file /trainer_count",
        lambda task: str(task.trainer_count),
    ),
    Variable("PADDLE_INIT_NUM_PASSES", EVERY, "1, unless the job sets it", _always("1")),
    Variable("PADDLE_INIT_USE_GPU", EVERY, "1 for a GPU job, 0 for a CPU job", lambda task: _flag(task.uses_gpus)),
    Variable(
        "PADDLE_INIT_PSERVERS",
        PSERVER_JOBS,
        "address of every pserver, joined by commas, without ports",
        _pserver_addresses,
    ),
    Variable(
        "PADDLE_INIT_TRAINER_ID",
        EVERY,
        "the same as PADDLE_TRAINER_ID, as in the file /trainer_id",
        lambda task: str(task.rank),
    ),
    Variable(
        "PADDLE_CLOUD_CURRENT_DATACENTER",
        "every task of a job in a datacenter",
        "name of the datacenter: the files are below /pfs/<name>/",
        lambda task: task.datacenter or None,
    ),
    Variable("PADDLE_CLOUD_USERNAME", EVERY, "name of the job's user", lambda task: task.user),
    Variable("NAMESPACE", EVERY, "the same with - for each of @ . _", _namespace),
    Variable(HANDLE, EVERY, "name of this attempt of the job; cannot be overridden", lambda task: task.handle),
    Variable(TASK, EVERY, "name of this task, such as trainer-0; cannot be overridden", lambda task: task.task),
)
