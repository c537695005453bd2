"""The extras of OpenPAI's second protocol: what of them is done here; of what is not, a warning tells."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.openpai.reading import Fields, shown
from paddlecloud.model.units import parse_duration

PRIORITIES = {"crit": 200, "prod": 100, "test": 0, "oppo": -100}
OWN = "paddlecloud"
PLUGINS = "com.microsoft.pai.runtimeplugin"
_CMD = "cmd"
_NOT_DONE = {
    "ssh": "no SSH server is started in a task: `paddlecloud logs` and the job's results show what it does",
    "git": "no repository is fetched: clone it in a command, or send the files with the job",
    "teamwise_storage": "no storage is mounted: the files of the cloud are at /pfs in each task",
    "tensorboard": "no TensorBoard is started: write its files to the results, and look at them with your own",
}


class Plugin(Struct, frozen=True, kw_only=True):
    """Commands that run before and after those of the task roles that it is for (none named: all)."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    forgiving: bool = False  # what fails of it does not fail the task


class Extras(Struct, frozen=True, kw_only=True):
    gang: bool = True
    priority: int = 0
    storages: tuple[str, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    time_limit_seconds: int | None = None


def read_own(fields: Fields | None) -> int | None:
    """`extras.paddlecloud`, which is ours: OpenPAI has no words for how long a job may run. That in seconds."""
    if fields is None:
        return None
    said, place = fields.take("time_limit"), fields.place("time_limit")
    fields.done()
    found = parse_duration(said, place, needs_unit=True) if isinstance(said, str) else said
    if found is not None and (isinstance(found, bool) or not isinstance(found, int) or found < 1):
        raise InvalidError(f"{place} must be a time such as 2h, or a number of seconds", field=place)
    return found


def read_extras(fields: Fields | None, warnings: list[str]) -> Extras:
    if fields is None:
        return Extras()
    gang = fields.truth("gangAllocation", True)
    if not gang:
        warnings.append(
            "extras.gangAllocation false: the tasks of a job start together here all the same, since each must know "
            "the others' addresses; one that fails is started again on its own as taskRetryCount says"
        )
    fields.take("submitFrom")
    priority = _priority(fields.fields("hivedScheduler"), warnings)
    storages = tuple(_storage(one) for one in fields.each("storages"))
    if storages:
        warnings.append(
            f"extras.storages: {', '.join(storages)[:200]} is not mounted: a folder that is shared with you is at "
            "/pfs/<datacenter>/shared/<its name> in each task"
        )
    if fields.take("jobStatusChangeNotification") is not None:
        warnings.append(
            "extras.jobStatusChangeNotification: no mail is sent about jobs; `paddlecloud wait` waits for one"
        )
    plugins = tuple(found for one in fields.each(PLUGINS) if (found := _plugin(one, warnings)) is not None)
    time_limit = read_own(fields.fields(OWN))
    for name in fields:
        fields.take(name)
        warnings.append(f"extras.{name[:80]} is not known here and does nothing")
    return Extras(gang=gang, priority=priority, storages=storages, plugins=plugins, time_limit_seconds=time_limit)


def _priority(fields: Fields | None, warnings: list[str]) -> int:
    if fields is None:
        return 0
    said = fields.text("jobPriorityClass", "")
    if said and said not in PRIORITIES:
        place = fields.place("jobPriorityClass")
        raise InvalidError(f"{place} {shown(said)} is none of {', '.join(PRIORITIES)}", field=place)
    for name in fields:
        fields.take(name)
        warnings.append(f"{fields.place(name[:80])} is not looked at: GPUs are given as the cluster has them")
    return PRIORITIES.get(said, 0)


def _storage(fields: Fields) -> str:
    name = fields.text("name", "")
    fields.text("mountPath", "")
    fields.done()
    return name or "the default"


def _plugin(fields: Fields, warnings: list[str]) -> Plugin | None:
    name = fields.text("plugin")
    policy = fields.text("failurePolicy", "fail")
    parameters: dict[str, Any] = {}
    given = fields.take("parameters")
    if name == _CMD:
        inner = Fields({} if given is None else given, fields.place("parameters"))
        parameters = {which: tuple(inner.texts(which)) for which in ("preCommands", "postCommands")}
        inner.done()
    roles = tuple(fields.texts("taskRoles"))
    fields.done()
    if name == _CMD:
        return Plugin(
            before=parameters["preCommands"],
            after=parameters["postCommands"],
            roles=roles,
            forgiving=policy == "ignore",
        )
    why = _NOT_DONE.get(name, "it is not known here and does nothing")
    warnings.append(f"{fields.place('plugin')} {shown(name)}: {why}")
    return None
