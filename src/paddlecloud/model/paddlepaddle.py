"""Jobs of PaddlePaddle Cloud (seed 001): what its `submit` asks for as a job of ours, and the names that it knows by.

Keys that a version of its client leaves out have their defaults.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from paddlecloud.model import paddle_pserver, pfs
from paddlecloud.model.compat import COMPATS
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import PSERVER, TRAINER, Job, JobSpec, Resources, RoleSpec
from paddlecloud.model.registry import registry_name
from paddlecloud.model.units import parse_size

FACE = "paddlepaddle"  # in JobSpec.face: names of such jobs tell them apart
RESTARTS = 3  # of one trainer of a fault-tolerant job
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_NAME_CHARACTERS = 63
_SUFFIX = "0123456789abcdefghijklmnopqrstuvwxyz"
_DEFAULTS: Mapping[str, Any] = {
    "name": "paddle-cluster-job",
    "jobPackage": "",
    "parallelism": 1,
    "cpu": 1,
    "gpu": 0,
    "memory": "1Gi",
    "pservers": 1,
    "pscpu": 1,
    "psmemory": "1Gi",
    "entry": "",
    "psentry": "",
    "topology": "",
    "datacenter": "",
    "passes": 1,
    "image": "",
    "registry": "",
    "faulttolerant": False,
}
_LEAST = {"parallelism": 1}  # of other numbers 0


COMPAT, PSENTRY = "PADDLECLOUD_COMPAT", "PADDLECLOUD_PSENTRY"
_OURS = "PADDLECLOUD_"
_ASSIGNMENT = re.compile(r"""\s*(\w+)=((?:[^\s'"\\;&|<>()$`]|\\.|'[^']*'|"[^"\\$`]*")*)(?=\s|$)""", re.ASCII)


class Entry(NamedTuple):
    """An entry without its leading variables of ours, and their values: the Go client has no flags for them."""

    command: str
    psentry: str = ""
    compat: str = ""


def read_entry(text: str) -> Entry:
    """`PADDLECLOUD_COMPAT=v2 PADDLECLOUD_PSENTRY='sh run.sh' python train.py`; other variables stay in the command."""
    asked = {COMPAT: "", PSENTRY: ""}
    kept: list[str] = []
    at = 0
    while (found := _ASSIGNMENT.match(text, at)) is not None:
        at = found.end()
        name = found[1]
        if not name.startswith(_OURS):
            kept.append(found[0].strip())
        elif name in asked:
            asked[name] = "".join(shlex.split(found[2]))
        else:
            known = " or ".join(asked)
            raise InvalidError(f"the entry begins with the unknown variable {name}: use {known}", field="entry")
    if asked[COMPAT] not in ("", *COMPATS):
        raise InvalidError(f"{COMPAT} {asked[COMPAT]!r} is not known: it is {' or '.join(COMPATS)}", field="entry")
    if not text[at:].strip():
        kept = []  # nothing that these variables could be for
    return Entry(" ".join([*kept, text[at:].strip()]).strip(), asked[PSENTRY], asked[COMPAT])


def job_spec(asked: Mapping[str, Any], *, package: str) -> JobSpec:
    """The job, to run in a folder of the PFS. InvalidError says in words what is wrong."""
    given = {name: _checked(name, asked.get(name), default) for name, default in _DEFAULTS.items()}
    check_name(given["name"])
    read = read_entry(given["entry"])
    if not read.command and not given["topology"]:
        raise InvalidError("no topology or entry specified", field="entry")
    if given["psentry"] and read.psentry:
        raise InvalidError(f"-psentry and {PSENTRY} name two programs for pservers: name one", field="psentry")
    entry = read.command or f"python {given['topology']}"
    psentry = given["psentry"] or read.psentry
    trainer = RoleSpec(
        name=TRAINER,
        count=given["parallelism"],
        command=entry,
        resources=Resources(cpus=float(given["cpu"]), memory_bytes=parse_size(given["memory"]), gpus=int(given["gpu"])),
        restarts=RESTARTS if given["faulttolerant"] else 0,
    )
    roles = [trainer]
    if given["pservers"]:
        roles.append(
            RoleSpec(
                name=PSERVER,
                count=given["pservers"],
                command=psentry or paddle_pserver.COMMAND,
                awaited_seconds=None if psentry else paddle_pserver.AWAITED_SECONDS,
                resources=Resources(cpus=float(given["pscpu"]), memory_bytes=parse_size(given["psmemory"])),
                min_succeeded=0,
                restarts=RESTARTS if given["faulttolerant"] else 0,
            )
        )
    return JobSpec(
        roles=tuple(roles),
        name=given["name"],
        folder=package.rstrip("/").rpartition("/")[2],
        # As the old runtime did: modules of the package are found from wherever in it the entry runs.
        env={
            "TOPOLOGY": given["topology"],
            "PADDLE_INIT_NUM_PASSES": str(given["passes"]),
            "PYTHONPATH": package,
        },
        datacenter=given["datacenter"],
        package=package,
        image=given["image"],
        registry=registry_name(given["registry"]) if given["registry"] else "",
        face=FACE,
    )


def text(asked: Mapping[str, Any], name: str) -> str:
    """One of the texts that were asked for."""
    found: str = _checked(name, asked.get(name), _DEFAULTS[name])
    return found


def check_name(name: str) -> None:
    """Seed 001's rule."""
    if len(name) > _NAME_CHARACTERS or not _NAME.fullmatch(name):
        raise InvalidError(
            f"jobname {name!r} must be letters, digits, '-' and '.', begin and end with a letter or digit, and have "
            f"at most {_NAME_CHARACTERS} of them",
            field="name",
        )


def default_package(datacenter: str, user: str, name: str) -> str:
    """Where the client puts a folder that it sends."""
    return f"{pfs.home(datacenter, user)}/jobs/{name}"


def worker_name(job: Job, task: str) -> str:
    """A task's name in the old manner, `<job>-trainer-3s4nz`: always the same for the same task."""
    digest = int.from_bytes(hashlib.sha256(f"{job.id} {task}".encode()).digest()[:8], "big")
    suffix = ""
    for _ in range(5):
        digest, rest = divmod(digest, len(_SUFFIX))
        suffix += _SUFFIX[rest]
    return f"{job.spec.name}-{task.rpartition('-')[0]}-{suffix}"


def _checked(name: str, value: object, default: Any) -> Any:
    if value is None:
        return default
    if isinstance(default, bool):
        fits = isinstance(value, bool)
    elif isinstance(default, int):
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= _LEAST.get(name, 0)
    else:
        fits = isinstance(value, str)
    if not fits:
        whole = f"a whole number, {_LEAST.get(name, 0)} or more"
        kind = {bool: "true or false", int: whole}.get(type(default), "a text")
        raise InvalidError(f"{name} must be {kind}, not {value!r}", field=name)
    return value
