"""Looks at this machine: everything that plans of tasks' root folders are made from, as values."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Mapping, NamedTuple, Sequence

from paddlecloud.runtime import smallfiles

_ETC = "/etc"
# Names of hosts and users, certificates, fonts, libraries: what programs read, and nothing of this machine's accounts.
_ETC_FILES = (
    "resolv.conf hosts host.conf gai.conf services protocols nsswitch.conf localtime timezone ld.so.cache ld.so.conf "
    "os-release debian_version machine-id mime.types pip.conf uv/uv.toml ssl/openssl.cnf pki/tls/openssl.cnf"
).split()
_ETC_FOLDERS = (
    "ssl/certs pki/ca-trust pki/java pki/tls/certs ca-certificates crypto-policies "
    "alternatives ld.so.conf.d fonts OpenCL vulkan java* python*"
).split()
# Of a person's /run: how hosts and users are found by name, disks that were plugged in, GPUs, programs of NixOS.
_RUN = (
    "NetworkManager/resolv.conf connman/resolv.conf resolvconf systemd/resolve nscd media nvidia-persistenced "
    "current-system booted-system opengl-driver"
).split()
_GPUS = "nvidia* nvidia-caps/* dri/* kfd infiniband/* accel/* davinci*".split()  # of /dev


class Entry(NamedTuple):
    """Something that this machine has: a link, and where it leads, a folder, or anything else."""

    path: str
    mode: int
    leads_to: str = ""

    @classmethod
    def at(cls, path: str) -> Entry:
        mode = os.lstat(path).st_mode
        return cls(path, mode, os.readlink(path) if stat.S_ISLNK(mode) else "")

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


class Machine(NamedTuple):
    top: Sequence[Entry]
    run: Sequence[Entry]
    etc_files: Mapping[str, bytes]
    etc_folders: Sequence[Entry]
    gpu_devices: Sequence[str]
    account: int  # that this process runs as, and with it tasks that have no account of their own
    interpreters: Sequence[str]  # the folders and files of the Python of tasks
    hidden: Mapping[str, Entry]  # the server's folders and files that are there, by the path that it knows
    movable: Mapping[str, Sequence[str]]  # by real path: the folders above that this account could rename, from the top
    etc: str | None = None  # a folder that holds the small /etc of a task, complete; None: each file is written


def survey(interpreter: str, hidden: Sequence[str]) -> Machine:
    """Look at the machine, once for all tasks that start together."""
    found = {path: Entry.at(os.path.realpath(path)) for path in hidden if os.path.exists(path)}
    return Machine(
        top=[Entry.at(f"/{name}") for name in os.listdir("/")],
        run=[Entry.at(f"/run/{name}") for name in _RUN if os.path.lexists(f"/run/{name}")],
        etc_files=_etc_files(),
        etc_folders=[Entry.at(path) for path in _matching(_ETC, _ETC_FOLDERS)],
        gpu_devices=[path for path in _matching("/dev", _GPUS) if _is_device(path)],
        account=os.geteuid(),
        interpreters=places_of(interpreter),
        hidden=found,
        movable={entry.path: _movable(entry.path) for entry in found.values()},
    )


def places_of(interpreter: str) -> Sequence[str]:
    """What an interpreter needs: the folder of its Python, or of its virtual environment and that one's Python; of a
    link or a script only itself. Places below /usr are left out: tasks see them anyway."""
    found = []
    path = interpreter
    for _ in range(40):  # as many links as the kernel follows
        prefix = os.path.dirname(os.path.dirname(path))
        environment = f"{prefix}/pyvenv.cfg"
        if prefix in ("/", "/usr"):
            pass
        elif os.path.exists(environment):
            found += [prefix, *_made_from(environment)]
        elif not os.path.islink(path) and _matching(prefix, ["lib/python3*"]):
            found.append(prefix)
        else:
            found.append(path)
        if not os.path.islink(path):
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    places = [place for place in dict.fromkeys(found) if os.path.exists(place)]
    around = [folder for folder in places if os.path.isdir(folder)] + ["/usr"]
    return [place for place in places if not any(place != one and place.startswith(f"{one}/") for one in around)]


def _made_from(config: str) -> list[str]:
    """The folder of the Python that a virtual environment was made from."""
    for line in smallfiles.read(config).decode("utf-8", "replace").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "home":
            return [os.path.dirname(os.path.realpath(value.strip()))]
    return []


def _etc_files() -> dict[str, bytes]:
    """By content: a link may lead into a folder that tasks do not see. Only what everybody on the machine may read."""
    found = {}
    for name in _ETC_FILES:
        with suppress(OSError):
            if os.stat(f"{_ETC}/{name}").st_mode & stat.S_IROTH:
                found[name] = smallfiles.read(f"{_ETC}/{name}")
    return found


def _matching(folder: str, patterns: Sequence[str]) -> list[str]:
    """The paths below a folder that there are, where the last name of each may end with a star. Not by the glob module:
    every task is a fork of this process, and pays for its size."""
    found = []
    for pattern in patterns:
        above, _, name = f"{folder}/{pattern}".rpartition("/")
        if not name.endswith("*"):
            found += [f"{above}/{name}"] if os.path.lexists(f"{above}/{name}") else []
            continue
        with suppress(OSError):
            found += [f"{above}/{one}" for one in sorted(os.listdir(above)) if one.startswith(name[:-1])]
    return found


def _is_device(path: str) -> bool:
    mode = os.stat(path).st_mode
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def _movable(path: str) -> Sequence[str]:
    above = []
    folder = os.path.dirname(path)
    while folder != os.path.dirname(folder):
        above.append(folder)
        folder = os.path.dirname(folder)
    return sorted(folder for folder in above if os.access(os.path.dirname(folder), os.W_OK))
