"""A job's own Python packages: one virtual environment for each content, built once and shared by its user's jobs.

It is built where it stays, since a virtual environment cannot be moved, and is whole once its mark is there. Its lock
is held by who builds it, and shared by all who run in it, so that nobody removes it under them. Beside a user's
environments is the cache of their builds.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from contextlib import contextmanager
from typing import Iterator, NamedTuple

from paddlecloud.runtime import below, removal, smallfiles
from paddlecloud.runtime.folder import write_durably
from paddlecloud.runtime.taskfile import TaskFile

NONE = "none"
FOUND = ("requirements.txt", "pyproject.toml")  # in a job's folder, without being named
_FORMAT = 1
READY = ".ready"
LOCK = ".lock"
CACHE = "cache"  # of what its builds fetched and built, beside a user's environments
_OWN, _MACHINES = b"own", b"machine's"  # what the mark says: run in it, or in the machine's own, which has it all

# What names the package that a build failed at, in the words of pip and of uv.
_CULPRITS = (
    r"No matching distribution found for (\S+)",
    r"Failed building wheel for (\S+)",
    r"Failed to build (?:installable wheels for some pyproject.toml based projects \()?`?([\w.\-\[\]=<>!~]+)",
    r"Because (\S+) was not found",
    r"there (?:is|are) no versions? of (\S+)",
    r"Invalid requirement: '?([^':]+)",
    r"Could not (?:open|find).*?(\S+\.(?:txt|toml|whl))",
)
_DEPENDENCIES = rb"(?m)^\s*dependencies\s*="


class MissingError(Exception):
    """What names the packages is not in the job's folder."""


class Environment(NamedTuple):
    folder: str
    file: str  # names the packages; "" for a Python alone
    python: str  # path of the interpreter, or a version that uv finds
    machines: bool  # the machine's own Python will do if it has all of them
    uv: str | None

    @classmethod
    def at(cls, folder: str) -> Environment:
        """One that is there, or was begun."""
        return cls(folder, "", "", False, None)

    @property
    def what(self) -> str:
        """What it is built from."""
        return os.path.basename(self.file) or f"Python {self.python}"

    @property
    def words(self) -> str:
        return f"{self.what}, with {'uv' if self.uv else 'pip'}"

    @property
    def bin(self) -> str:
        return f"{self.folder}/env/bin"

    @property
    def mark(self) -> str:
        """Beside the folder, in which who builds it may write anything."""
        return f"{self.folder}{READY}"

    @property
    def lock_file(self) -> str:
        return f"{self.folder}{LOCK}"

    @property
    def ready(self) -> bool:
        return os.path.exists(self.mark)

    @property
    def is_machines(self) -> bool:
        """Whether it turned out that the machine's own Python has all that is asked for."""
        return smallfiles.read(self.mark) == _MACHINES

    def clear(self) -> None:
        """An empty folder to build it in, whatever a build that was broken off has left."""
        removal.remove(os.path.dirname(self.folder), os.path.basename(self.folder))
        os.mkdir(self.folder, 0o755)

    @contextmanager
    def cached(self, owner: int | None) -> Iterator[None]:
        """Has the cache of its user's builds in its folder for the time of a build, if no other build has it: links
        between the two are possible in one mount alone, and the build may write in its own folder alone. `owner` is
        the account that builds."""
        beside = Environment.at(f"{os.path.dirname(self.folder)}/{CACHE}")
        here = f"{self.folder}/{CACHE}"
        fd = lock(beside)
        try:
            alone = try_lock(fd, shared=False)
            if alone and os.path.isdir(beside.folder):
                os.rename(beside.folder, here)
            else:
                os.mkdir(here, 0o755)
                if owner is not None:
                    os.chown(here, owner, owner, follow_symlinks=False)
            yield
            if alone and _is_folder(here) and not os.path.lexists(beside.folder):
                os.rename(here, beside.folder)
                write_durably(beside.mark, b"")
            removal.remove(self.folder, CACHE)
        finally:
            os.close(fd)

    def complete(self) -> None:
        os.sync()  # before the mark: after a power cut it must not stand in a half of what it marks
        satisfied = not os.path.isdir(f"{self.folder}/env")
        write_durably(self.mark, _MACHINES if satisfied else _OWN)

    def use(self) -> None:
        """It is used now, and so kept before others that are not."""
        os.utime(self.mark)

    def script(self) -> str:
        """What builds it, for a shell of the task's."""
        import shlex

        quoted = {name: shlex.quote(value) for name, value in self._asdict().items() if isinstance(value, str)}
        env, cache = shlex.quote(f"{self.folder}/env"), shlex.quote(f"{self.folder}/{CACHE}")
        steps = [_SATISFIED.format(**quoted)] if self.machines else []
        if self.uv is not None:
            steps.append("export UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1")  # as pip: a lab's own authority is the system's
            # What is in the cache is linked: environments of one user share what they have in common.
            steps.append(f"export UV_CACHE_DIR={cache} UV_LINK_MODE=hardlink")
            steps.append(f"{quoted['uv']} venv --no-project --quiet --python {quoted['python']} {env}")
            install = f"{quoted['uv']} pip install --python {env}/bin/python -r {quoted['file']}"
        else:
            steps.append(f"export PIP_CACHE_DIR={cache}")
            steps.append(f"{quoted['python']} -m venv {env}")
            install = _PIP.format(env=env, **quoted)
        return "\n".join(["set -e", *steps, *([install] if self.file else [])])


# The machine's Python has them all if pip, asked to look nowhere else, would install nothing.
_SATISFIED = """if {python} -m pip install --dry-run --quiet --no-index --disable-pip-version-check --report - \
-r {file} 2>/dev/null | {python} -c 'import json, sys; sys.exit(bool(json.load(sys.stdin)["install"]))' \
2>/dev/null; then
    exit 0
fi"""
_PIP = """case {file} in *.toml)
    {env}/bin/python -c 'import sys
from pip._vendor import tomli
print("\\n".join(tomli.load(open(sys.argv[1], "rb")).get("project", {{}}).get("dependencies", [])))' {file} \
> "$TMPDIR/requirements.txt"
    set -- "$TMPDIR/requirements.txt" ;;
*) set -- {file} ;; esac
{env}/bin/python -m pip install --disable-pip-version-check --progress-bar off -r "$1\""""


def wanted(task: TaskFile) -> Environment | None:
    """The environment that a task asks for, in words or by what is in its folder; None: the machine's own Python."""
    if task.environments is None:
        return None
    task = _in_package(task)
    name = _named(task)
    if not name and not task.python:
        return None
    content = _content(task, name).decode("utf-8", "replace") if name else ""
    file = f"{task.mount}/{name}" if name else ""  # where the task sees it
    python = _interpreter(task)
    import hashlib  # here, as it is large, and each task without an environment would have it in its memory

    about = [_FORMAT, os.path.splitext(name)[1], content, python, _stamp(python), task.uv is not None]
    key = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
    machines = name.endswith(".txt") and not task.python
    return Environment(f"{task.environments}/{key}", file, python, machines, task.uv)


def _in_package(task: TaskFile) -> TaskFile:
    """The task, with the folder of the PFS that it runs in, if it runs in one, as the folder of its job's files."""
    if task.tree is not None or task.cwd is None:
        return task
    around = [target for target in task.mounts if f"{task.cwd}/".startswith(f"{target}/")]
    nearest = max(around, key=len, default="")
    return task._replace(tree=task.mounts.get(nearest, "") + task.cwd[len(nearest) :], mount=task.cwd)


def _content(task: TaskFile, name: str) -> bytes:
    """What is in the file that names the packages. In a package, which its user may change, no link is followed."""
    path = f"{task.tree}/{name}"
    if task.mount != task.cwd:
        return smallfiles.read(path)
    tops = [source for source in task.mounts.values() if path.startswith(f"{source}/")]
    folder = below.open_folder(max(tops, key=len, default=str(task.tree)), os.path.dirname(path))
    try:
        fd = os.open(os.path.basename(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        return smallfiles.read_all(fd)
    finally:
        os.close(fd)


def lock(environment: Environment) -> int:
    """A descriptor to lock it by."""
    os.makedirs(os.path.dirname(environment.folder), mode=0o755, exist_ok=True)
    return os.open(environment.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def try_lock(fd: int, *, shared: bool) -> bool:
    """Whether the lock is ours now. One whose file was removed meanwhile is nobody's, and never to be had."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(fd).st_nlink > 0


def culprit(log: str) -> str:
    """The package at which a build failed, by what its tools said last; "" where they did not say."""
    found = [(match.start(), match[1]) for pattern in _CULPRITS for match in re.finditer(pattern, log)]
    return max(found, default=(0, ""))[1].rstrip(".,:;'`\")")


def named(tree: str | None, requirements: str) -> str:
    """The file of a job's folder that names its packages; "": none does."""
    if requirements == NONE or (not requirements and tree is None):
        return ""
    if requirements:
        return requirements
    return next((name for name in FOUND if _names_packages(f"{tree}/{name}", str(tree))), "")


def _named(task: TaskFile) -> str:
    name = named(task.tree, task.requirements)
    if name and (task.tree is None or not _is_inside(f"{task.tree}/{name}", task.tree)):
        raise MissingError(f"{name}, which is to name its packages, is not in the job's folder")
    return name


def _names_packages(path: str, tree: str) -> bool:
    """Whether it is there and, being a pyproject.toml, says what the project needs: many only set up tools."""
    if not _is_inside(path, tree):
        return False
    return not path.endswith(".toml") or bool(re.search(_DEPENDENCIES, smallfiles.read(path)))


def _is_inside(path: str, tree: str) -> bool:
    """A file of the job's folder; a link that leads out of it is none."""
    return os.path.isfile(path) and os.path.realpath(path).startswith(os.path.realpath(tree) + "/")


def _is_folder(path: str) -> bool:
    """Of one's own: a build may have put a link in its place."""
    return os.path.isdir(path) and not os.path.islink(path)


def _interpreter(task: TaskFile) -> str:
    if not task.python:
        return task.interpreter
    if "/" in task.python or task.uv is not None:
        return task.python
    return f"python{task.python}" if task.python[0].isdigit() else task.python


def _stamp(python: str) -> list[int]:
    """Changes when the interpreter does, or the packages that it has."""
    library = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(python))), "lib")
    try:
        versions = [f"{library}/{name}" for name in sorted(os.listdir(library)) if name.startswith("python")]
    except OSError:
        versions = []
    packages = [f"{version}/{kind}-packages" for version in versions for kind in ("site", "dist")]
    return [os.stat(path).st_mtime_ns for path in (python, *packages) if os.path.exists(path)]
