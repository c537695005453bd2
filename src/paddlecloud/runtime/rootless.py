"""Makes a server of a plain account root of that account's own range of user ids (/etc/subuid).

In the user namespace that it enters the account is root, and the ids of its range are accounts that tasks can run as:
everything else then works as on a server that runs as root. Outside it stays the plain account that it was.
"""

from __future__ import annotations

import os
import pwd
import shutil
from typing import NamedTuple

from paddlecloud.runtime import namespaces, smallfiles

FEWEST = 65536  # ids of a range, as distributions give them out


class Range(NamedTuple):
    first: int
    ids: int


def range_of(file: str, names: "tuple[str, ...]") -> Range | None:
    """The first range of an account, by its name or its number, that has enough ids."""
    for line in file.splitlines():
        words = line.strip().split(":")
        if len(words) == 3 and words[0] in names and words[1].isdigit() and words[2].isdigit():
            if int(words[2]) >= FEWEST:
                return Range(int(words[1]), int(words[2]))
    return None


def problem() -> str:
    """What keeps this account from having user ids of its own to give out; "": nothing."""
    for program in ("newuidmap", "newgidmap"):
        if shutil.which(program) is None:
            return f"there is no {program}: install it (Debian: uidmap)"
    for file in ("/etc/subuid", "/etc/subgid"):
        if _own_range(file) is None:
            return f"{file} has no range of {FEWEST} ids for this account (usermod --add-subuids, --add-subgids)"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _enter()
            code = 0
        except OSError:
            pass
        finally:
            os._exit(code)
    return "" if os.waitpid(child, 0)[1] == 0 else "user namespaces with a range of ids are refused"


def enter() -> None:
    """Become root of the account's range, in this process and all that it starts; `problem` must have said nothing."""
    account = own_name()
    _enter()
    os.environ.setdefault("PGUSER", account)  # else PostgreSQL's client would log in as root


def _enter() -> None:
    uid, gid, own = os.geteuid(), os.getegid(), os.getpid()
    users, groups = _own_range("/etc/subuid"), _own_range("/etc/subgid")
    assert users is not None
    assert groups is not None
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(writer)
            os.read(reader, 1)  # until the parent is in its new namespace
            code = _mapped("newuidmap", own, uid, users) or _mapped("newgidmap", own, gid, groups)
        finally:
            os._exit(code)
    os.close(reader)
    try:
        namespaces.enter_user_namespace()
    finally:
        os.close(writer)
        status = os.waitpid(child, 0)[1]
    if status != 0:
        raise OSError("newuidmap or newgidmap refused the account's range")
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    namespaces.forbid_user_namespaces()


def _mapped(program: str, pid: int, own: int, given: Range) -> int:
    path = shutil.which(program) or program
    words = [program, pid, 0, own, 1, 1, given.first, given.ids]
    status = os.spawnv(os.P_WAIT, path, [str(word) for word in words])
    return 0 if status == 0 else 1


def _own_range(file: str) -> Range | None:
    try:
        text = smallfiles.read(file).decode("utf-8", "replace")
    except OSError:
        return None
    return range_of(text, (own_name(), str(own_uid())))


def own_uid() -> int:
    """The user id of this process as the machine knows it, also inside the namespace of `enter`."""
    for line in smallfiles.read("/proc/self/uid_map").decode().splitlines():
        inside, outside, count = (int(word) for word in line.split())
        if inside <= os.geteuid() < inside + count:
            return outside + os.geteuid() - inside
    return os.geteuid()


def maps(ids: range) -> bool:
    """Whether this process may give files to all these user and group ids."""
    return all(_covers(f"/proc/self/{kind}_map", ids) for kind in ("uid", "gid"))


def _covers(file: str, ids: range) -> bool:
    mapped = [line.split() for line in smallfiles.read(file).decode().splitlines()]
    return any(int(first) <= ids.start and ids.stop <= int(first) + int(count) for first, _, count in mapped)


def own_name() -> str:
    """The name of the account of this process as the machine knows it; its number, if it has no name."""
    try:
        return pwd.getpwuid(own_uid()).pw_name
    except KeyError:
        return str(own_uid())
