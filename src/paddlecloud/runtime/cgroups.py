"""Control groups of version 1, version 2 or both at once: found, limited, killed and removed.

A task's command runs in a leaf of its own below the server's group; what watches the command stays outside, so that
the exit code survives when the leaf runs out of memory or is killed. Where a controller cannot be used, `limit_process`
sets the nearest rlimit instead.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import time
from typing import NamedTuple

from paddlecloud.runtime import smallfiles

CONTROLLERS = ("memory", "pids", "cpu")
_KEEPER = "keeper"  # version 2: a group with limited children may not hold processes, so the server moves in here
_CPU_PERIOD = 100000


class Limits(NamedTuple):
    cpus: float
    cpu_limit: bool
    memory_bytes: int
    pids: int


class Hierarchy(NamedTuple):
    """One mounted tree of groups, and the folder of the group that this process is in."""

    version: int
    controllers: frozenset[str]
    folder: str
    mount: str


def hierarchies(cgroup: str, mountinfo: str) -> list[Hierarchy]:
    """What /proc/self/cgroup and /proc/self/mountinfo say together."""
    groups: dict[str, str] = {}  # "" is version 2's
    for line in cgroup.splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            groups[name] = path
    found = []
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        root, mount = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2" and "" in groups:
            folder = _below(mount, root, groups[""])
            found.append(Hierarchy(2, frozenset(_words(os.path.join(folder, "cgroup.controllers"))), folder, mount))
        elif kind == "cgroup":
            here = set(options.split(",")) & set(CONTROLLERS) & set(groups)
            found += [Hierarchy(1, frozenset({name}), _below(mount, root, groups[name]), mount) for name in here]
    return found


def hierarchies_of(process: str = "self") -> list[Hierarchy]:
    """Those of a process. Its mounts are taken to be ours: another account may not read them."""
    try:
        cgroup, mountinfo = smallfiles.read(f"/proc/{process}/cgroup"), smallfiles.read("/proc/self/mountinfo")
    except OSError:
        return []
    return hierarchies(os.fsdecode(cgroup), os.fsdecode(mountinfo))


def mounts() -> tuple[str, ...]:
    """Where trees of groups are mounted."""
    try:
        lines = os.fsdecode(smallfiles.read("/proc/self/mountinfo")).splitlines()
    except OSError:
        return ()
    parted = [line.partition(" - ") for line in lines]
    return tuple(left.split()[4] for left, _, right in parted if right.startswith(("cgroup ", "cgroup2 ")))


class Groups(NamedTuple):
    """Where leaves can be made: one folder for each controller, and one of version 2 that can kill."""

    limiting: dict[str, tuple[int, str]]  # controller -> version, folder
    killing: str | None
    mounts: tuple[str, ...] = ()  # of every tree of groups, also of those that hold no leaf

    def __str__(self) -> str:
        if not self.limiting:
            limits = "limits by rlimits"
        else:
            versions = sorted({version for version, _ in self.limiting.values()})
            limits = f"limits by cgroups v{'+v'.join(map(str, versions))} ({', '.join(sorted(self.limiting))})"
        limits += "" if "memory" in self.limiting else ", memory per process only"
        return limits + (", cgroup.kill" if self.killing else "")

    def leaf(self, name: str) -> Leaf:
        limiting = {key: (version, os.path.join(base, name)) for key, (version, base) in self.limiting.items()}
        return Leaf(limiting, os.path.join(self.killing, name) if self.killing else None, self.mounts)

    def remove(self) -> None:
        """Remove the folders above the leaves, if no leaf is left."""
        for folder in _each_once([base for _, base in self.limiting.values()], self.killing):
            try:
                os.rmdir(folder)
            except OSError:
                continue


class Leaf(NamedTuple):
    limiting: dict[str, tuple[int, str]]
    killing: str | None
    mounts: tuple[str, ...] = ()

    @property
    def folders(self) -> tuple[str, ...]:
        return _each_once([folder for _, folder in self.limiting.values()], self.killing)

    def create(self, limits: Limits) -> None:
        for folder in self.folders:
            _make(folder)
        for controller, (version, folder) in self.limiting.items():
            if version == 2:
                _hand_down(os.path.dirname(folder), controller, vacate=False)
            for name, value, needed in settings(controller, version, limits):
                path = os.path.join(folder, name)
                if needed or os.path.exists(path):
                    _write(path, value)

    def join(self) -> None:
        """Move this process, which has one thread, into the leaf."""
        for folder in self.folders:
            _join(folder)

    def ran_out_of_memory(self) -> bool:
        return _killed_for_memory(*self.limiting.get("memory", (0, ""))) > 0


def settings(controller: str, version: int, limits: Limits) -> list[tuple[str, str, bool]]:
    """The files of a leaf to write: name, value, and whether the limit is lost without it."""
    memory = str(limits.memory_bytes)
    shares = max(2, min(262144, round(limits.cpus * 1024)))
    quota = str(max(1000, round(limits.cpus * _CPU_PERIOD)))
    table: dict[tuple[str, int], list[tuple[str, str, bool]]] = {
        ("memory", 1): [("memory.limit_in_bytes", memory, True), ("memory.memsw.limit_in_bytes", memory, False)],
        ("memory", 2): [("memory.max", memory, True), ("memory.swap.max", "0", False)],
        ("pids", 1): [("pids.max", str(limits.pids), True)],
        ("pids", 2): [("pids.max", str(limits.pids), True)],
        ("cpu", 1): [("cpu.shares", str(shares), True)],
        ("cpu", 2): [("cpu.weight", str(1 + (shares - 2) * 9999 // 262142), True)],
    }
    found = table[controller, version]
    if controller == "memory" and limits.memory_bytes <= 0:
        return []
    if controller == "cpu" and limits.cpu_limit:
        hard = ("cpu.cfs_quota_us", quota) if version == 1 else ("cpu.max", f"{quota} {_CPU_PERIOD}")
        return [*found, (*hard, True)]
    return found


def limit_process(leaf: Leaf, limits: Limits) -> None:
    """Rlimits for what no group limits: RLIMIT_DATA is each process's own memory, RLIMIT_NPROC the account's count."""
    if "memory" not in leaf.limiting and limits.memory_bytes > 0:
        _lower(resource.RLIMIT_DATA, limits.memory_bytes)
    if "pids" not in leaf.limiting and limits.pids > 0:
        _lower(resource.RLIMIT_NPROC, limits.pids)


def killed_for_memory_beside() -> int:
    """How many processes of this process's own group the kernel has killed for memory: a cluster may limit that group,
    and no leaf of ours is below it then."""
    found = [hierarchy for hierarchy in hierarchies_of() if "memory" in hierarchy.controllers]
    return sum(_killed_for_memory(hierarchy.version, hierarchy.folder) for hierarchy in found)


def _killed_for_memory(version: int, folder: str) -> int:
    name = {1: "memory.oom_control", 2: "memory.events"}.get(version)
    words = [] if name is None else _words(os.path.join(folder, name))
    return int(words[words.index("oom_kill") + 1]) if "oom_kill" in words else 0


def processes(folders: tuple[str, ...]) -> list[int]:
    """Every process in these groups."""
    return sorted({int(word) for folder in folders for word in _words(os.path.join(folder, "cgroup.procs"))})


def kill(folders: tuple[str, ...]) -> None:
    """Kill all that is in these groups, at once where the kernel can."""
    for folder in folders:
        try:
            _write(os.path.join(folder, "cgroup.kill"), "1")
        except OSError:
            continue
    for pid in processes(folders):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def remove(folders: tuple[str, ...], *, patience: float = 1.0) -> bool:
    """Remove empty groups; a group stays busy for a moment after its last process was reaped."""
    deadline = time.monotonic() + patience
    left = list(folders)
    while left:
        left = [folder for folder in left if not _removed(folder)]
        if left and time.monotonic() > deadline:
            return False
        if left:
            time.sleep(0.002)
    return True


def end(folders: tuple[str, ...]) -> None:
    """Remove these groups; should anything be left in them, kill it first."""
    if not remove(folders, patience=0):
        kill(folders)
        remove(folders)


def find(name: str, found: list[Hierarchy], *, to_kill: bool = True) -> Groups:
    """Where leaves can be made, each place tried out with a process of ours; `name` is the folder above the leaves. Not
    `to_kill`: a place that can kill but limits nothing is left out."""
    limiting: dict[str, tuple[int, str]] = {}
    killing = None
    for hierarchy in found:
        base = os.path.join(_outside_keeper(hierarchy.folder), name)
        wanted = [controller for controller in CONTROLLERS if controller in hierarchy.controllers]
        if not wanted and not to_kill:
            continue
        enabled = wanted if hierarchy.version == 1 else _enable(base, wanted)
        if not _can_hold(base):
            continue
        for controller in enabled:
            limiting.setdefault(controller, (hierarchy.version, base))
        if hierarchy.version == 2 and os.path.exists(os.path.join(base, "cgroup.kill")):
            killing = base
    return Groups(limiting, killing, mounts())


def writable(found: list[Hierarchy], account: int) -> Groups:
    """Where this account may make leaves, judged by owners and modes alone: nothing is tried or changed."""
    limiting: dict[str, tuple[int, str]] = {}
    for hierarchy in found:
        folder = _outside_keeper(hierarchy.folder)
        needed = [folder] if hierarchy.version == 1 else [folder, f"{folder}/cgroup.subtree_control"]
        if all(_may_write(path, account) for path in needed):
            for controller in hierarchy.controllers & frozenset(CONTROLLERS):
                limiting.setdefault(controller, (hierarchy.version, folder))
    return Groups(limiting, None)


def _may_write(path: str, account: int) -> bool:
    try:
        status, read_only = os.stat(path), os.statvfs(path).f_flag & os.ST_RDONLY
    except OSError:
        return False
    bits = stat.S_IWUSR if status.st_uid == account else stat.S_IWOTH
    return not read_only and (account == 0 or bool(status.st_mode & bits))


def _enable(base: str, controllers: list[str]) -> list[str]:
    """Hand these controllers of version 2 down to the leaves of `base`; those that cannot be are left out."""
    own = os.path.dirname(base)
    try:
        os.makedirs(base, exist_ok=True)
    except OSError:
        return []
    return [
        controller
        for controller in controllers
        if _hand_down(own, controller, vacate=True) and _hand_down(base, controller, vacate=False)
    ]


def _hand_down(folder: str, controller: str, *, vacate: bool) -> bool:
    path = os.path.join(folder, "cgroup.subtree_control")
    if controller in _words(path):
        return True
    try:
        _write(path, f"+{controller}")
    except OSError as error:
        if error.errno != errno.EBUSY or not vacate or not _vacated(folder):
            return False
        return _hand_down(folder, controller, vacate=False)
    return True


def _vacated(folder: str) -> bool:
    """Move the server and this process out of the group, if it holds no one else."""
    keeper = os.path.join(folder, _KEEPER)
    inside = set(processes((folder,)))
    if not inside <= {os.getpid(), os.getppid()}:
        return False
    try:
        os.makedirs(keeper, exist_ok=True)
        for pid in inside:
            _write(os.path.join(keeper, "cgroup.procs"), str(pid))
    except OSError:
        return False
    return True


def _outside_keeper(folder: str) -> str:
    return os.path.dirname(folder) if os.path.basename(folder) == _KEEPER else folder


def _can_hold(base: str) -> bool:
    probe = os.path.join(base, f"probe-{os.getpid()}")
    try:
        os.makedirs(probe, exist_ok=True)
    except OSError:
        return False
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _write(os.path.join(probe, "cgroup.procs"), "0")
            code = 0
        except OSError:
            pass
        finally:
            os._exit(code)
    held = os.waitpid(child, 0)[1] == 0
    remove((probe,))
    return held


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (limit, limit))


def _below(mount: str, root: str, group: str) -> str:
    """A group's folder: a container may see only the part of the hierarchy below `root`."""
    inside = os.path.relpath(group, root)
    return mount if inside == "." or inside.startswith("..") else os.path.join(mount, inside)


def _each_once(folders: list[str], last: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(folders + ([last] if last else [])))


def _join(folder: str) -> None:
    """A thread moves at once, a process only after a moment in which no other may fork or end; version 2 has no file
    for threads."""
    try:
        _write(os.path.join(folder, "tasks"), "0")
    except FileNotFoundError:
        _write(os.path.join(folder, "cgroup.procs"), "0")


def _make(folder: str) -> None:
    """Make a leaf, also while the last supervisor of an earlier server removes the folder above it."""
    for _ in range(10):
        try:
            return os.makedirs(folder, exist_ok=True)
        except FileNotFoundError:
            continue
    raise OSError(errno.ENOENT, f"cannot make the control group {folder}")


def _removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _words(path: str) -> list[str]:
    try:
        return smallfiles.read(path).decode().split()
    except OSError:
        return []


def _write(path: str, text: str) -> None:
    smallfiles.write(path, text.encode())
