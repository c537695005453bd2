"""A job of `paddle cluster_train` (seed 003): its flags and its config as a JobSpec, its data in seed 003's layout."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TypedDict

from msgspec.structs import replace

from paddlecloud.model import pfs
from paddlecloud.model.cluster_config import CALL, V1, ClusterConfig
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import Input, JobSpec
from paddlecloud.sdk.cluster_start import TAKEN, command
from paddlecloud.sdk.spec import Asked, job_spec

PRIORITIES: Mapping[str, int] = {"very_low": -100, "low": -50, "normal": 0, "high": 50, "very_high": 100}
# What the program is told, and what it is told where a flag is left out.
COUNTS: Mapping[str, int] = {
    "trainer_count": 1,
    "num_passes": 1,
    "log_period": 100,
    "dot_period": 1,
    "saving_period": 1,
}
_HDFS = "hdfs://"


class Flags(TypedDict, total=False):
    """The flags of seed 003 that no other job has."""

    counts: Mapping[str, int]  # of COUNTS
    submitter: str
    entry: str
    where: str
    requirements: str  # the file in thirdparty that names packages


def cluster_train_spec(config: ClusterConfig, name: str, flags: Flags, asked: Asked) -> JobSpec:
    """The job of the config called `name`; `asked` is what any job may ask for, without the command."""
    check_config_name(name)
    entry = flags.get("entry") or config.entry
    asked = {**asked, "command": command(entry or _default_entry(config, name), _needed(config, entry))}
    asked["env"] = {**variables(flags), **asked.get("env", {})}
    return replace(
        job_spec(asked),
        inputs=inputs(config),
        queue=flags.get("where", ""),
        own_nodes=True,
        requirements=flags.get("requirements", ""),
    )


def at_home(spec: JobSpec, home: str) -> JobSpec:
    """The job with its data where `~/` means, the home of its user on the PFS."""
    found = (replace(one, source=home + one.source[1:]) if is_at_home(one.source) else one for one in spec.inputs)
    return replace(spec, inputs=tuple(found))


def is_at_home(path: str) -> bool:
    return path.startswith("~/")


def check_config_name(name: str) -> None:
    if name in TAKEN:
        raise InvalidError(f"--config {name}: the workspace has something of that name: rename it", field="config")


def variables(flags: Flags) -> dict[str, str]:
    """Each flag by its own name and by the one that PaddlePaddle's v1 and v2 read."""
    found: dict[str, str] = {}
    for flag, number in {**COUNTS, **flags.get("counts", {})}.items():
        if number < (0 if flag.endswith("period") else 1):
            raise InvalidError(f"--{flag} {number} is too small", field=flag)
        found |= {flag.upper(): str(number), f"PADDLE_INIT_{flag.upper()}": str(number)}
    return found | ({"SUBMITTER": flags["submitter"]} if flags.get("submitter") else {})


def inputs(config: ClusterConfig) -> tuple[Input, ...]:
    """train/ and test/ dealt to the trainers, and what describes them, where seed 003's programs look for it."""
    source, base = _source(config), config.work_dir.rstrip("/").rpartition("/")[2]

    def dealt(what: str, *, optional: bool = False) -> Input:
        return Input(
            source=f"{source}/{what}",
            target=f"{what}_data_dir/{what}",
            user=_user(config),
            deal=True,
            list=f"{what}.list",
            optional=optional,
        )

    def placed(what: str, below: str = "train_data_dir", *, optional: bool = False) -> Input:
        target = f"{below}/{base}/{what}"
        return Input(source=f"{source}/{what}", target=target, user=_user(config), optional=optional)

    if config.has_meta_data and base in ("train", "test"):
        raise InvalidError(
            f"work_dir {config.work_dir}: its {base}_meta would lie among the files that are dealt, in "
            f"{base}_data_dir/{base}: give the folder another name",
            field="work_dir",
        )
    data = (dealt("train"), dealt("test", optional=True))
    if not config.has_meta_data:
        return data
    tests = ("train_data_dir", "test_data_dir")  # the seed shows train_meta alone: programs look in either
    return (*data, placed("train_meta"), *(placed("test_meta", below, optional=True) for below in tests))


def priority(text: str) -> int:
    """A word of seed 003's, or a number."""
    if text in PRIORITIES:
        return PRIORITIES[text]
    try:
        return int(text)
    except ValueError:
        raise InvalidError(
            f"--job_priority {text!r} is not known: it is {', '.join(PRIORITIES)}, or a number", field="job_priority"
        ) from None


def _default_entry(config: ClusterConfig, name: str) -> str:
    if not config.defines_call and not config.is_v1:
        raise InvalidError(
            f"{name} is run by `python {name}`, and nothing in it says what {CALL} is: write `from cluster_train "
            f"import {CALL}` above the call, or name the program: entry='python train.py' in the call, or --entry",
            field="entry",
        )
    return "python " + shlex.quote(f"./{name}" if name.startswith("-") else name)


def _needed(config: ClusterConfig, entry: str) -> str:
    return V1 if config.is_v1 and not entry else ""


def _source(config: ClusterConfig) -> str:
    work_dir = config.work_dir.rstrip("/")
    if work_dir.startswith(_HDFS) and not config.fs_name:
        return work_dir
    on_pfs = config.fs_name in ("", pfs.ROOT, f"{pfs.ROOT}://")
    if on_pfs and is_at_home(work_dir) and not {".", ".."} & set(work_dir.split("/")):
        return work_dir
    if not work_dir.startswith("/") or not work_dir.strip("/") or {".", ".."} & set(work_dir.split("/")):
        raise InvalidError(
            f"work_dir {config.work_dir!r} must be the whole path of a folder, such as /app/demos/tagging, "
            f"/{pfs.ROOT}/local/home/you/tagging or, of your home there, ~/tagging",
            field="work_dir",
        )
    if on_pfs:
        if not pfs.is_pfs(work_dir):
            raise InvalidError(
                f"work_dir {config.work_dir!r} is not on the PFS (/{pfs.ROOT}/…): name its HDFS by "
                f"fs_name='{_HDFS}host:port', or copy the data: paddlecloud cp DATA /{pfs.ROOT}/local/home/you/",
                field="work_dir",
            )
        return work_dir
    if not config.fs_name.startswith(_HDFS) or not config.fs_name[len(_HDFS) :].strip("/"):
        raise InvalidError(
            f"fs_name {config.fs_name!r} is not known: it is {_HDFS}host:port, or left out for the PFS", field="fs_name"
        )
    return config.fs_name.rstrip("/") + work_dir


def _user(config: ClusterConfig) -> str:
    if not _source(config).startswith(_HDFS):
        return ""
    if not config.user:
        raise InvalidError("fs_ugi is missing: write fs_ugi='user,password'; the user alone is sent", field="fs_ugi")
    return config.user
