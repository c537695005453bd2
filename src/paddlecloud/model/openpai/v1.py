"""OpenPAI's first job protocol, a JSON value as version 0.14 took it, as a job of ours.

What is written                       what becomes of it
taskNumber, cpuNumber, memoryMB, …    a role's count and resources
portList                              a role's ports; beginAt is a wish
minFailedTaskCount                    a role's min_failed; null: never
minSucceededTaskCount                 a role's min_succeeded; null: 0, the job ends when all is done
retryCount                            Retry: n, -1 until it succeeds, -2 for ever
codeDir                               an input of which each task has a copy; dataDir, outputDir: variables alone
virtualCluster                        a queue or a cluster
jobEnvs                               env; isDebug: keep_on_failure
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import DEFAULT, JobSpec, OpenPai, Ports, Resources, Retry, RoleSpec, Shell
from paddlecloud.model.openpai.extras import OWN, read_own
from paddlecloud.model.openpai.reading import Fields, at_most, check_plain, shown
from paddlecloud.model.openpai.submitted import FACE, FS_URI, RETRIES, ROLE_CHARACTERS, TRANSIENT, Submitted

OBSOLETE = (
    "killAllOnCompletedTaskNumber is obsolete and does nothing: use minFailedTaskCount and minSucceededTaskCount "
    "of a task role instead"
)
UNTIL_SUCCESS, ALWAYS = -1, -2  # as retryCount
_JOB_NAME = re.compile(r"[A-Za-z0-9\-._]+")
_ROLE_NAME = re.compile(r"[A-Za-z0-9._~]+")
_MEBIBYTE = 1 << 20
_PORT = 65535


def is_v1(value: object) -> bool:
    """Whether a value is meant to be a job of this protocol."""
    return isinstance(value, Mapping) and "jobName" in value and "taskRoles" in value


def job(value: object, *, user: str, form: bool = False) -> Submitted:
    """The job. `form`: it came by a form, where all is text. InvalidError names what is wrong."""
    check_plain(value)
    fields = Fields(value, "", form=form)
    name = fields.text("jobName", pattern=_JOB_NAME)
    if name in (".", ".."):
        # Clients that follow such a part of an address would mean another by it, as that of the user.
        raise InvalidError(f"jobName {name!r} is none of its own in an address: take another", field="jobName")
    warnings: list[str] = []
    described = {
        "code_dir": _path(fields, "codeDir", user, name),
        "data_dir": _path(fields, "dataDir", user, name),
        "output_dir": _path(fields, "outputDir", user, name) or f"{FS_URI}/Output/{user}/{name}",
    }
    if _path(fields, "authFile", user, name):
        warnings.append(
            "authFile is not read: an image's registry is named by a secret of yours (paddlecloud registry)"
        )
    virtual_cluster = fields.text("virtualCluster", DEFAULT) or DEFAULT
    if gpu_type := fields.text("gpuType", ""):
        warnings.append(f"gpuType {shown(gpu_type)} is not looked at: GPUs are given as the cluster has them")
    if fields.take("killAllOnCompletedTaskNumber") is not None:
        warnings.append(OBSOLETE)
    env = _environment(fields, warnings)
    time_limit = _extras(fields.fields("extras"), warnings)
    spec = JobSpec(
        name=name,
        image=fields.text("image"),
        roles=_roles(fields),
        env=env,
        retry=_retry(at_most(RETRIES, fields.whole("retryCount", 0, least=ALWAYS), "retryCount", warnings)),
        wall_time_seconds=time_limit,
        keep_on_failure=env.get("isDebug", "").lower() == "true",
        face=FACE,
        first_role_ends=True,
        openpai=OpenPai(
            protocol=1,
            virtual_cluster=virtual_cluster,
            code_dir=described["code_dir"],
            data_dir=described["data_dir"],
            output_dir=described["output_dir"],
        ),
    )
    fields.done()
    return Submitted(
        spec=spec,
        virtual_cluster=virtual_cluster,
        code_dir=described["code_dir"],
        config=_plain(value),
        warnings=tuple(warnings),
    )


def substituted(text: str, user: str, name: str) -> str:
    """A path with the variables that OpenPAI's server replaces in it, but for the file system's own."""
    for variable, meaning in (("$PAI_JOB_NAME", name), ("$PAI_USER_NAME", user), ("$PAI_USERNAME", user)):
        text = text.replace(variable, meaning)
    return text


def _path(fields: Fields, name: str, user: str, job_name: str) -> str:
    return substituted(fields.text(name, ""), user, job_name)


def _extras(fields: Fields | None, warnings: list[str]) -> int | None:
    """How long the job may run, if it says so; all else there is told of."""
    if fields is None:
        return None
    time_limit = read_own(fields.fields(OWN))
    warnings += [f"extras.{one[:80]} is not known here and does nothing" for one in fields]
    return time_limit


def _environment(fields: Fields, warnings: list[str]) -> dict[str, str]:
    found = {}
    for name, value in fields.mapping("jobEnvs").items():
        if isinstance(value, (dict, list)):
            place = f"jobEnvs.{name[:80]}"
            raise InvalidError(f"{place} must be a text or a number", field=place)
        found[name] = str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
    if found.get("paiAzRDMA", "").lower() == "true":
        warnings.append("jobEnvs.paiAzRDMA does nothing here: the tasks see the machine's network as it is")
    if found.get("isDebug", "").lower() == "true":
        warnings.append("jobEnvs.isDebug: what a failed task had in its working directory stays with the job's results")
    return found


def _roles(fields: Fields) -> tuple[RoleSpec, ...]:
    roles = tuple(_role(one) for one in fields.each("taskRoles"))
    if not roles:
        raise InvalidError("taskRoles is missing or empty: a job needs at least one", field="taskRoles")
    named: set[str] = set()
    for number, role in enumerate(roles):
        if role.name in named:
            place = f"taskRoles[{number}].name"
            raise InvalidError(f"{place} {role.name!r} is that of another task role too", field=place)
        named.add(role.name)
    return roles


def _role(fields: Fields) -> RoleSpec:
    name = fields.text("name", pattern=_ROLE_NAME)
    if name.startswith(".") or len(name) > ROLE_CHARACTERS:
        raise InvalidError(
            f"{fields.place('name')} {shown(name)} must begin with no dot, and have {ROLE_CHARACTERS} letters at most",
            field=fields.place("name"),
        )
    count = fields.whole("taskNumber", 1, least=1)
    memory = fields.whole("memoryMB", 100, least=1, most=1 << 40)
    shared = fields.whole("shmMB", 64, least=0)
    if shared > memory:
        raise InvalidError(
            f"{fields.place('shmMB')} is {shared}, more than memoryMB ({memory}), of which it is a part",
            field=fields.place("shmMB"),
        )
    role = RoleSpec(
        name=name,
        count=count,
        command=fields.text("command"),
        resources=Resources(
            cpus=float(fields.whole("cpuNumber", 1, least=1)),
            memory_bytes=memory * _MEBIBYTE,
            gpus=fields.whole("gpuNumber", 0),
        ),
        min_failed=_least(fields, "minFailedTaskCount", count, 1),
        min_succeeded=_least(fields, "minSucceededTaskCount", count, None) or 0,
        shell=Shell.BASH,
        ports=_ports(fields),
        shared_memory_bytes=shared * _MEBIBYTE,
    )
    fields.done()
    return role


def _least(fields: Fields, name: str, count: int, default: int | None) -> int | None:
    if not fields.has(name):
        return default
    found = fields.maybe_whole(name, least=1)
    if found is not None and found > count:
        raise InvalidError(f"{fields.place(name)} is {found}, and there are {count} tasks", field=fields.place(name))
    return found


def _ports(fields: Fields) -> dict[str, Ports]:
    found = {}
    for one in fields.each("portList"):
        label = one.text("label", pattern=_ROLE_NAME)
        if label in found:
            raise InvalidError(f"{one.place('label')} {label!r} is in the list twice", field=one.place("label"))
        begin = one.whole("beginAt", 0, most=_PORT)
        count = one.whole("portNumber", 1, least=1, most=_PORT)
        found[label] = Ports(count=count, begin=begin)
        one.done()
    return found


def _retry(count: int) -> Retry:
    return Retry(
        user_error=max(count, 0),
        restart_me=max(count, 0),
        node_lost=TRANSIENT,
        preempted=TRANSIENT,
        by_cause=count >= 0,
        endless=count < 0,
        after_success=count == ALWAYS,
    )


def _plain(value: object) -> Mapping[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
