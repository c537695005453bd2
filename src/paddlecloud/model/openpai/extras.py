"""The extras of OpenPAI's second protocol: what of them is done here; of what is not, a warning tells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct, field

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.openpai.reading import Fields, shown
from paddlecloud.model.units import parse_duration

PRIORITIES = {"crit": 200, "prod": 100, "test": 0, "oppo": -100}
OWN = "paddlecloud"
PLUGINS = "com.microsoft.pai.runtimeplugin"
_CMD, _STORAGE = "cmd", "teamwise_storage"
_MOUNT_PATH = "/mnt/{name}"
# What every task has at the top of its root: a storage in the place of one of these would break it.
_TAKEN = frozenset("bin boot dev etc gnu lib lib32 lib64 libx32 nix proc run sbin sys tmp usr var".split())
_NOT_DONE = {
    "ssh": "no SSH server is started in a task: `paddlecloud logs` and the job's results show what it does",
    "git": "no repository is fetched: clone it in a command, or send the files with the job",
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
    storages: Mapping[str, str] = field(default_factory=dict)  # where each is to be in the tasks -> its name
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
    storages: dict[str, str] = {}
    for one in fields.each("storages"):
        _storage(one, storages, warnings)
    if fields.take("jobStatusChangeNotification") is not None:
        warnings.append(
            "extras.jobStatusChangeNotification: no mail is sent about jobs; `paddlecloud wait` waits for one"
        )
    found = [_plugin(one, storages, warnings) for one in fields.each(PLUGINS)]
    plugins = tuple(one for one in found if one is not None)
    time_limit = read_own(fields.fields(OWN))
    fields.done_with_notes(warnings)
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


def _storage(fields: Fields, storages: dict[str, str], warnings: list[str]) -> None:
    name = fields.text("name", "")
    at = fields.text("mountPath", "") or _MOUNT_PATH.format(name=name)
    fields.done_with_notes(warnings)
    if name:
        _mount(storages, name, at, fields.place("mountPath"))
    else:
        warnings.append(f"{fields.where} names no storage, and nobody has a default one here: write its name")


def _mount(storages: dict[str, str], name: str, at: str, place: str) -> None:
    """Note where a storage is to be."""
    path = PurePosixPath(at)
    if not at.startswith("/") or ".." in path.parts or len(path.parts) < 2 or not at.isprintable():
        raise InvalidError(f"{place} {shown(at)} must be an absolute path without .., such as /mnt/data", field=place)
    if path.parts[1] in _TAKEN:
        raise InvalidError(
            f"{place} {shown(at)}: /{path.parts[1]} is a folder of the system's: take one such as /mnt/data",
            field=place,
        )
    other = next((one for one in storages if path.is_relative_to(one) or PurePosixPath(one).is_relative_to(path)), None)
    if other is not None and (other, storages[other]) != (str(path), name):
        raise InvalidError(f"{place} {shown(at)}: the storage {storages[other]} is at {other} already", field=place)
    storages["/" + "/".join(path.parts[1:])] = name


def _plugin(fields: Fields, storages: dict[str, str], warnings: list[str]) -> Plugin | None:
    name = fields.text("plugin")
    policy = fields.text("failurePolicy", "fail")
    parameters: dict[str, Any] = {}
    given = fields.take("parameters")
    inner = Fields({} if given is None or name not in (_CMD, _STORAGE) else given, fields.place("parameters"))
    if name == _CMD:
        parameters = {which: tuple(inner.texts(which)) for which in ("preCommands", "postCommands")}
    elif name == _STORAGE:
        _team_storages(inner, storages, warnings)
    inner.done_with_notes(warnings)
    roles = tuple(fields.texts("taskRoles"))
    fields.done_with_notes(warnings)
    if name == _CMD:
        return Plugin(
            before=parameters["preCommands"],
            after=parameters["postCommands"],
            roles=roles,
            forgiving=policy == "ignore",
        )
    if name == _STORAGE:
        return None
    why = _NOT_DONE.get(name, "it is not known here and does nothing")
    warnings.append(f"{fields.place('plugin')} {shown(name)}: {why}")
    return None


def _team_storages(fields: Fields, storages: dict[str, str], warnings: list[str]) -> None:
    names = fields.texts("storageConfigNames")
    if not names:
        warnings.append(f"{fields.where} names no storage, and nobody has a default one here: write storageConfigNames")
    for name in names:
        _mount(storages, name, _MOUNT_PATH.format(name=name), fields.place("storageConfigNames"))
