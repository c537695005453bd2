"""OpenPAI's second job protocol, a value read from YAML as version 1.8 took it, as a job of ours.

What is written                         what becomes of it
taskRoles.<R>.instances, resource…      a role's count, resources and ports
commands, deployments, prerequisites    one script (openpai/script.py), its templates filled but for secrets
completion                              min_failed (-1: never) and min_succeeded (-1: 0)
jobRetryCount                           Retry, of what another attempt may mend
taskRetryCount                          restarts, where extras.gangAllocation is false
defaults.virtualCluster                 a queue or a cluster
extras                                  openpai/extras.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import DEFAULT, JobSpec, OpenPai, Ports, Resources, Retry, RoleSpec, Shell
from paddlecloud.model.openpai import script
from paddlecloud.model.openpai.extras import Extras, read_extras
from paddlecloud.model.openpai.prerequisites import DOCKER_IMAGE, Prerequisites, read_base
from paddlecloud.model.openpai.reading import Fields, at_most, check_plain, shown
from paddlecloud.model.openpai.submitted import FACE, MASKED, RETRIES, ROLE_CHARACTERS, TRANSIENT, Submitted

OFF = -1  # as minFailedInstances, minSucceededInstances
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,255}")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_ROLE_NAME = re.compile(rf"[a-zA-Z_][a-zA-Z0-9_]{{0,{ROLE_CHARACTERS - 1}}}")
_MEBIBYTE = 1 << 20
_SHARED_MEMORY = 512  # MiB


def is_v2(value: object) -> bool:
    """Whether a value is meant to be a job of this protocol."""
    return isinstance(value, Mapping) and "protocolVersion" in value


def job(value: object) -> Submitted:
    """The job. InvalidError names what is wrong."""
    check_plain(value)
    fields = Fields(value, "")
    _check_version(fields)
    name = fields.text("name", pattern=_NAME)
    secrets = fields.mapping("secrets") if not _is_masked(fields) else {}
    warnings: list[str] = []
    if isinstance(value, Mapping) and value.get("secrets") == MASKED:
        warnings.append("secrets are not shown again, so this copy of a job has none: write them anew")
    prerequisites = Prerequisites(fields.each("prerequisites"), warnings)
    extras = read_extras(fields.fields("extras"), warnings)
    steps = script.Steps(
        parameters=fields.mapping("parameters"),
        secrets=secrets,
        prerequisites=prerequisites,
        plugins=extras.plugins,
        warnings=warnings,
    )
    retry = _retry(at_most(RETRIES, fields.whole("jobRetryCount", 0), "jobRetryCount", warnings))
    roles = _Roles(fields.fields("taskRoles"), extras, prerequisites, warnings)
    deployments = script.read_deployments(fields.each("deployments"), list(roles.commands), warnings)
    virtual_cluster, active = _defaults(fields.fields("defaults"), deployments, warnings)
    fields.done()
    for image in roles.images.values():
        prerequisites.find(DOCKER_IMAGE, image)
    images = {prerequisites.image(image) for image in roles.images.values()}
    if len(images) > 1:
        warnings.append(
            f"the task roles name {len(images)} images, and a job has one here: that of the first is its own"
        )
    spec = JobSpec(
        name=name,
        image=prerequisites.image(next(iter(roles.images.values()))),
        roles=tuple(roles.spec(one, steps, deployments[active] if active else {}) for one in roles.commands),
        priority=extras.priority,
        wall_time_seconds=extras.time_limit_seconds,
        retry=retry,
        face=FACE,
        first_role_ends=True,
        openpai=OpenPai(protocol=2, virtual_cluster=virtual_cluster),
    )
    return Submitted(
        spec=spec,
        virtual_cluster=virtual_cluster,
        config=_without_secrets(value),
        secrets=secrets,
        storages=extras.storages,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _check_version(fields: Fields) -> None:
    version = fields.take("protocolVersion")
    if version not in (2, "2") or isinstance(version, bool):
        raise InvalidError(f"protocolVersion must be 2, not {shown(version)}", field="protocolVersion")
    if (kind := fields.take("type")) != "job":
        raise InvalidError(f"type must be job, not {shown(kind)}", field="type")
    read_base(fields)


def _is_masked(fields: Fields) -> bool:
    """Whether the secrets are the mask of a job that was shown; then they are none."""
    if not fields.has("secrets"):
        return False
    masked = bool(fields.peek("secrets") == MASKED)
    if masked:
        fields.take("secrets")
    return masked


def _without_secrets(value: object) -> dict[str, Any]:
    whole = dict(value) if isinstance(value, Mapping) else {}
    return {name: MASKED if name == "secrets" else inner for name, inner in whole.items()}


def _defaults(
    fields: Fields | None, deployments: Mapping[str, script.Deployment], warnings: list[str]
) -> tuple[str, str]:
    if fields is None:
        return DEFAULT, ""
    virtual_cluster = fields.text("virtualCluster", DEFAULT) or DEFAULT
    active = fields.text("deployment", "")
    fields.done_with_notes(warnings)
    if active and active not in deployments:
        raise InvalidError(f"Default deployment {active} does not exist.", field="defaults.deployment")
    return virtual_cluster, active


def _retry(count: int) -> Retry:
    return Retry(user_error=count, restart_me=count, node_lost=TRANSIENT, preempted=TRANSIENT, by_cause=True)


class _Roles:
    """The task roles, read but for what their scripts need of the rest of the file."""

    def __init__(
        self, fields: Fields | None, extras: Extras, prerequisites: Prerequisites, warnings: list[str]
    ) -> None:
        self.commands: dict[str, list[str]] = {}
        self.images: dict[str, str] = {}
        self.used: dict[str, script.Used] = {}
        self._specs: dict[str, RoleSpec] = {}
        self._prerequisites = prerequisites
        if fields is None or not list(fields):
            raise InvalidError("taskRoles is missing or empty: a job needs at least one", field="taskRoles")
        for name in fields:
            if not _ROLE_NAME.fullmatch(name):
                place = fields.place(name[:80])
                raise InvalidError(f"{place}: the name of a task role must match {_ROLE_NAME.pattern}", field=place)
            inner = fields.fields(name)
            if inner is None:
                raise fields.missing(name)
            self._read(name, inner, extras, warnings)

    def spec(self, name: str, steps: script.Steps, deployment: script.Deployment) -> RoleSpec:
        before, after = deployment.get(name, ((), ()))
        text = steps.text(name, [*before, *self.commands[name], *after], self.used[name])
        return replace(self._specs[name], command=text)

    def _read(self, name: str, fields: Fields, extras: Extras, warnings: list[str]) -> None:
        read_base(fields)
        count = fields.whole("instances", 1, least=1)
        failed, succeeded = _completion(fields.fields("completion"), count)
        self.images[name] = fields.text("dockerImage")
        self.used[name] = script.Used(
            place=fields.where,
            by_type={kind: fields.text(kind, "") for kind in script.REFERRED},
            others=tuple(fields.texts("prerequisites")),
        )
        restarts = at_most(RETRIES, fields.whole("taskRetryCount", 0), fields.place("taskRetryCount"), warnings)
        if restarts and extras.gang:
            warnings.append(
                f"{fields.place('taskRetryCount')} counts only where extras.gangAllocation is false: the job starts "
                "again as a whole (jobRetryCount)"
            )
        options = fields.fields("extraContainerOptions")
        self.commands[name] = _commands(fields)
        resources, ports = _resources(fields.fields("resourcePerInstance"), fields)
        self._specs[name] = RoleSpec(
            name=name,
            count=count,
            command="",
            resources=resources,
            min_failed=failed,
            min_succeeded=succeeded,
            restarts=0 if extras.gang else restarts,
            shell=Shell.STRICT,
            ports=ports,
            shared_memory_bytes=_shared_memory(options, warnings) * _MEBIBYTE,
        )
        fields.done()


def _commands(fields: Fields) -> list[str]:
    found = fields.texts("commands")
    if not found:
        raise InvalidError(f"{fields.place('commands')} is missing or empty", field=fields.place("commands"))
    return found


def _completion(fields: Fields | None, count: int) -> tuple[int | None, int]:
    """What OpenPAI 1.8 does, not what its docs say: what is not said is one failure, and all successes."""
    if fields is None:
        return 1, count
    failed = fields.maybe_whole("minFailedInstances", least=OFF)
    all_of_them = not fields.has("minSucceededInstances")
    succeeded = fields.maybe_whole("minSucceededInstances", least=OFF)
    fields.done()
    for name, number in (("minFailedInstances", failed), ("minSucceededInstances", succeeded)):
        if number == 0:
            place = fields.place(name)
            raise InvalidError(f"{place} is 0; it must be from 1 to instances ({count}), or -1 for never", field=place)
    # More than there are never comes about, so that trigger is off.
    least = count if all_of_them else succeeded if succeeded is not None and 0 < succeeded <= count else 0
    return (1 if failed is None else failed if 0 < failed <= count else None), least


def _resources(fields: Fields | None, role: Fields) -> tuple[Resources, dict[str, Ports]]:
    if fields is None:
        raise role.missing("resourcePerInstance")
    resources = Resources(
        cpus=float(fields.whole("cpu", least=1)),
        memory_bytes=fields.whole("memoryMB", least=1, most=1 << 40) * _MEBIBYTE,
        gpus=fields.whole("gpu"),
    )
    ports = {}
    labels = fields.fields("ports")
    for label in labels or ():
        if labels is not None:
            if not _LABEL.fullmatch(label):
                place = labels.place(label[:80])
                raise InvalidError(f"{place}: the label of a port must match {_LABEL.pattern}", field=place)
            if count := labels.whole(label, most=65535):
                ports[label] = Ports(count=count)
    fields.done()
    return resources, ports


def _shared_memory(fields: Fields | None, warnings: list[str]) -> int:
    if fields is None:
        return _SHARED_MEMORY
    found = fields.whole("shmMB", _SHARED_MEMORY)
    if fields.truth("infiniband", False):
        warnings.append(f"{fields.place('infiniband')} does nothing here: the tasks see the machine's network as it is")
    fields.done_with_notes(warnings)
    return found
