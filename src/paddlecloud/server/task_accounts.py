"""Accounts of this machine that tasks run as: one for each user, and a group for each shared folder.

Invariant: an account stands for one user for good, and no other program of the machine uses its number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.model.errors import ConfigError
from paddlecloud.runtime import namespaces, rootless
from paddlecloud.server.settings import LOCAL, Settings
from paddlecloud.store.task_accounts import TaskAccountNumbers

# Above what systemd gives to containers and Debian to /etc/subuid, and below what some programs read as negative.
DEFAULT = range(1_900_000_000, 1_900_065_536)
_IN_NAMESPACE = range(1000, 65_000)  # of the account's own range in /etc/subuid, as a rootless server sees it


@dataclass(frozen=True, slots=True)
class TaskAccounts:
    """`numbers` is None where tasks run as the server's own account."""

    numbers: TaskAccountNumbers | None = None
    ids: range = DEFAULT

    def uid(self, user: str) -> int | None:
        return None if self.numbers is None else self._id(self.numbers.number(f"user/{user}"))

    def gid(self, datacenter: str, share: str) -> int | None:
        return None if self.numbers is None else self._id(self.numbers.number(f"share/{datacenter}/{share}"))

    def _id(self, number: int) -> int:
        if number >= len(self.ids):
            raise ConfigError(
                f"jobs.uids has {len(self.ids)} ids, and all are in use: extend the range at its end", field="jobs.uids"
            )
        return self.ids[number]


def take_range(settings: Settings) -> None:
    """Let a server of a plain account give out ids of that account's range in /etc/subuid, where it has one."""
    if wants_accounts(settings) and os.geteuid() != 0 and not needs_sudo(settings) and not rootless.problem():
        rootless.enter()


def needs_sudo(settings: Settings) -> bool:
    """Whether Slurm's jobs run as other accounts, by sudo, which does not work in a user namespace."""
    return any(cluster.accounts for cluster in settings.clusters.values())


def open_accounts(settings: Settings, numbers: TaskAccountNumbers) -> TaskAccounts:
    """Accounts for the tasks of this server, if it may give them out."""
    if has_accounts(settings):
        ids = range_of(settings)
        check_unused(ids)
        return TaskAccounts(numbers, ids)
    if os.geteuid() != 0 and numbers.last() is not None:
        sudo = (
            "accounts of a Slurm cluster need sudo, which a server with a range cannot use"
            if needs_sudo(settings)
            else ""
        )
        raise ConfigError(
            "tasks of this server ran as accounts of their own, to which users' files belong, and it cannot give them "
            f"out any more: {sudo or rootless.problem() or 'start it as the account that ran it before'}"
        )
    return TaskAccounts()


def has_accounts(settings: Settings) -> bool:
    """Whether tasks of different users run as different accounts of this machine."""
    return wants_accounts(settings) and os.geteuid() == 0 and rootless.maps(range_of(settings))


def wants_accounts(settings: Settings) -> bool:
    """Whether tasks of different users are to run as different accounts, where the machine allows it."""
    local = any(cluster.backend == LOCAL and cluster.isolate for cluster in settings.clusters.values())
    return local and not settings.embedded


def range_of(settings: Settings) -> range:
    return _IN_NAMESPACE if namespaces.in_user_namespace() else settings.jobs.uids or DEFAULT


def check_unused(ids: range) -> None:
    """Raises ConfigError if an account or a range of this machine has any of these ids."""
    if namespaces.in_user_namespace():
        return  # the account's own range
    for used, whose in _used():
        if used.start < ids.stop and ids.start < used.stop:
            raise ConfigError(
                f"jobs.uids {ids.start}-{ids.stop - 1} overlaps with {whose}: tasks would share accounts with others; "
                "set jobs.uids to a range that is free",
                field="jobs.uids",
            )


def _used() -> Iterator[tuple[range, str]]:
    for name in ("passwd", "group"):
        for words in _lines(f"/etc/{name}"):
            if len(words) > 2 and words[2].isdigit():
                yield range(int(words[2]), int(words[2]) + 1), f"{words[0]} in /etc/{name}"
    for name in ("subuid", "subgid"):
        for words in _lines(f"/etc/{name}"):
            if len(words) == 3 and words[1].isdigit() and words[2].isdigit():
                yield range(int(words[1]), int(words[1]) + int(words[2])), f"the range of {words[0]} in /etc/{name}"


def _lines(path: str) -> list[list[str]]:
    try:
        return [line.split(":") for line in Path(path).read_text(errors="replace").splitlines()]
    except OSError:
        return []
