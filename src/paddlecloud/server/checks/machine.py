"""Checks of the machine: its limits, its clock, its ports, and what it gives tasks."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from paddlecloud.backends import examine
from paddlecloud.model.errors import PaddleCloudError
from paddlecloud.model.finding import Finding, failed, ok, warning
from paddlecloud.runtime import rootless
from paddlecloud.scheduler.places import PORTS
from paddlecloud.server import task_accounts
from paddlecloud.server.checks.site import Site
from paddlecloud.server.listening import listen
from paddlecloud.server.settings import LOCAL, Settings

_FEW_FILES = 4096
_LISTENING = "0A"  # of /proc/net/tcp


def open_files(_: Site) -> Iterator[Finding]:
    subject = "open files"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = hard if hard != resource.RLIM_INFINITY else soft
    if 0 <= most < _FEW_FILES:
        yield warning(
            subject,
            f"a process here may have {most} open: each connection and each log that is followed takes one",
            "set LimitNOFILE=65536 in the systemd unit, or raise ulimit -Hn",
        )
    else:
        yield ok(subject, f"up to {'any number' if most < 0 else most}")


class Lack(NamedTuple):
    """Why tasks of a plain account all run as that account; "" if they do not."""

    why: str = ""
    remedy: str = ""


def account(site: Site) -> Iterator[Finding]:
    """The account of the server, and the accounts that its tasks run as."""
    settings = site.settings
    if site.account == 0 and task_accounts.wants_accounts(settings):
        task_accounts.check_unused(settings.jobs.uids or task_accounts.DEFAULT)
    yield from judged_account(site.account, settings, _lack_of_accounts(site))


def judged_account(user: int, settings: Settings, lack: Lack | None) -> Iterator[Finding]:
    """`lack` is None if it is not known whether tasks of a plain account share that account."""
    subject = "account"
    wanted = task_accounts.wants_accounts(settings)
    if settings.embedded:
        who = "root, without its privileges in tasks" if user == 0 else f"user id {user}, not root"
        yield ok(subject, f"{who}: an embedded server is one person's own")
    elif user == 0 and wanted:
        ids = settings.jobs.uids or task_accounts.DEFAULT
        yield ok(subject, f"root; tasks run as user ids {ids.start} to {ids.stop - 1}, one for each user")
    elif user == 0:
        yield warning(
            subject,
            "the server and all tasks run as root, since no local cluster keeps tasks apart",
            "make an account of its own for it that owns nothing else, give it the data folder with chown -R, and "
            "start the server as that account (User= in the systemd unit)",
        )
    elif not wanted:
        yield ok(subject, f"user id {user}, not root")
    elif lack is None:
        yield ok(subject, f"user id {user}, not root; run this as that account to see which accounts tasks have")
    elif lack.why:
        yield warning(subject, f"user id {user}, one account for all tasks: {lack.why}", lack.remedy)
    else:
        yield ok(subject, f"user id {user}; tasks run as ids of its range in /etc/subuid, one for each user")


def _lack_of_accounts(site: Site) -> Lack | None:
    if site.account == 0 or not task_accounts.wants_accounts(site.settings):
        return Lack()
    if site.backends is not None and task_accounts.has_accounts(site.settings):
        return Lack()
    pid = site.running_pid
    if site.backends is None and pid is not None and examine.gives_out_ids(pid, site.account):
        return Lack()
    if task_accounts.needs_sudo(site.settings):
        return Lack("a Slurm cluster has accounts, and sudo does not work for a server that uses a range", _APART)
    if site.account != rootless.own_uid():
        return None
    if why := examine.no_range():
        return Lack(why, _RANGE)
    return Lack("it did not use its range in /etc/subuid at its start", "restart the server")


def time_zone(site: Site) -> Iterator[Finding]:
    there = site.now.astimezone(site.settings.zone)
    yield ok(
        "time zone", f"it is {there:%Y-%m-%d %H:%M:%S} in {site.settings.server.timezone}, where the days of quotas end"
    )


def port(site: Site) -> Iterator[Finding]:
    """Whether the port can be had; of a server that runs it is its own."""
    if site.backends is not None or site.running_pid is not None:
        return
    server = site.settings.server
    try:
        with listen(server, embedded=site.settings.embedded) as listening:
            found = listening.getsockname()[1]
    except PaddleCloudError as error:
        yield failed("port", error.message)
        return
    if server.port in (0, found):
        yield ok("port", f"{server.host} port {found} is free")
    else:
        yield ok("port", f"{server.host} port {server.port} is taken: an embedded server takes a free one by itself")


def task_ports(_: Site) -> Iterator[Finding]:
    subject = "ports of tasks"
    first, last = PORTS[0], PORTS[-1]
    low, high = (int(word) for word in _text("/proc/sys/net/ipv4/ip_local_port_range", "32768 60999").split())
    taken = {number for number in _listening() if first <= number <= last}
    if low <= last and first <= high:
        yield warning(
            subject,
            f"{first} to {last} lie within {low} to {high}, which the kernel gives to any program: starts may be "
            "repeated for a port that is taken",
            'sysctl -w net.ipv4.ip_local_port_range="32768 60999"',
        )
    else:
        yield ok(subject, f"{first} to {last}, of which {len(taken)} are in use now")


def isolation(site: Site) -> Iterator[Finding]:
    """How tasks are kept apart: as the server that runs has found it, or as far as it can be tried from outside."""
    if site.backends is None:
        root = site.folder.root
        namespaces = examine.namespaces_at(root if root.is_dir() else Path("/tmp"))
        limits = examine.limits_of(site.account, site.running_pid)
        started = "" if site.running_pid is not None else "started from here, "
        yield from judged("isolation", f"{namespaces}; {started}{limits}", embedded=site.settings.embedded)
        return
    for name, backend in site.backends.items():
        if said := examine.isolation_of(backend):
            yield from judged(f"isolation on {name}", said, embedded=site.settings.embedded)


def task_folders(site: Site) -> Iterator[Finding]:
    """The folders of the machine that tasks see besides their own."""
    if site.settings.embedded:
        yield ok("folders of tasks", "all that this account may see, except for the server's own files")
        return
    others = task_accounts.has_accounts(site.settings)
    for name, cluster in site.settings.clusters.items():
        subject = f"folders of tasks on {name}"
        if cluster.backend != LOCAL:
            nodes = ", ".join(cluster.visible) or "none besides those of the system"
            yield ok(subject, f"of its nodes: {nodes}")
            continue
        trouble = [
            (text, remedy)
            for path in cluster.visible
            for text, remedy in _unusable(path, f"clusters.{name}.visible", others=others)
        ]
        for text, remedy in trouble:
            yield warning(subject, text, remedy)
        if not trouble:
            shown = ", ".join(cluster.visible) or f"none: visible of [clusters.{name}] adds some, such as /data"
            yield ok(subject, f"besides the system's programs and their own: {shown}")


def _unusable(shown: str, setting: str, *, others: bool) -> Iterator[tuple[str, str]]:
    """What keeps tasks from a folder that is to be visible; `others`: they run as accounts of their own."""
    path, writable = Path(shown.removesuffix(":rw")), shown.endswith(":rw")
    try:
        mode = path.stat().st_mode
    except OSError as error:
        yield f"{path} in {setting} cannot be shown: {error.strerror}", f"make or mount {path}, or correct {setting}"
        return
    wanted = 0o007 if writable and path.is_dir() else 0o005 if path.is_dir() else 0o004
    if others and mode & wanted != wanted:
        bits = "rwx" if wanted == 0o007 else "rx" if wanted == 0o005 else "r"
        yield f"{path} in {setting} is closed to the accounts of tasks", f"chmod o+{bits} {path}, or grant it by an ACL"


def python(site: Site) -> Iterator[Finding]:
    subject = "python of tasks"
    try:
        yield ok(subject, examine.interpreter(site.settings.jobs.python or None))
    except PaddleCloudError as error:
        yield failed(subject, error.message, "set jobs.python to an interpreter that runs")


def judged(subject: str, said: str, *, embedded: bool = False) -> Iterator[Finding]:
    looked_for = [one for one in _TROUBLE if one not in _OF_SEVERAL_USERS or not embedded]
    trouble = [(text, remedy) for word, text, remedy in looked_for if word in said]
    if not trouble:
        yield ok(subject, said)
    for text, remedy in trouble:
        yield warning(subject, f"{said}: {text}", remedy)


_APART = "run another server for the Slurm cluster, or run tasks on a kernel with Landlock (5.19 or newer)"
_RANGE = (
    "install newuidmap (Debian: uidmap), run usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ACCOUNT "
    "with a range that is free, and restart the server (What keeps tasks apart, docs/operate.md)"
)
_MEMORY = "a task above its memory limit as a whole is ended only about a second later"
_DELEGATE = "run it by systemd with Delegate=yes, or let it write its own cgroup (As a service, docs/operate.md)"
_DESCRIPTORS = (
    "a task that another process hands an open folder reaches what file modes let its account reach there; with one "
    "account for all tasks, jobs of several users are refused"
)
_OF_SEVERAL_USERS = (
    (
        "no Landlock",
        _DESCRIPTORS,
        "use Linux 5.19 or newer with landlock among its security modules (lsm=), also in the server's container",
    ),
)
_TROUBLE = (
    (
        "no namespaces",
        "tasks see all processes and the server's own files",
        "share this server only among people who trust each other, or run it where user namespaces are allowed",
    ),
    (
        "no filter of system calls",
        "a task could make namespaces of its own, in which it has privileges",
        "allow seccomp in the container that the server runs in",
    ),
    *_OF_SEVERAL_USERS,
    (
        "limits by rlimits",
        f"{_MEMORY}, and CPUs are not limited",
        _DELEGATE,
    ),
    (
        "), memory per process only",
        _MEMORY,
        _DELEGATE,
    ),
)


def _listening() -> set[int]:
    found = set()
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in _text(name, "").splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENING:
                found.add(int(words[1].rpartition(":")[2], 16))
    return found


def _text(path: str, otherwise: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return otherwise
