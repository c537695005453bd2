"""Checks of the machine: its limits, its clock, its ports, and what it gives tasks."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

from paddlecloud.backends import examine
from paddlecloud.model.errors import PaddleCloudError
from paddlecloud.model.finding import Finding, failed, ok, warning
from paddlecloud.scheduler.places import PORTS
from paddlecloud.server.checks.site import Site
from paddlecloud.server.listening import listen

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


def account(site: Site) -> Iterator[Finding]:
    """Whom the server, and with it every task, runs as."""
    yield from judged_account(site.account, embedded=site.settings.embedded)


def judged_account(user: int, *, embedded: bool) -> Iterator[Finding]:
    subject = "account"
    if user != 0:
        yield ok(subject, f"user id {user}, not root")
    elif embedded:
        yield ok(subject, "root, and so are its tasks: an embedded server is one person's own")
    else:
        yield warning(
            subject,
            "the server and all tasks run as root: a task reaches the machine's disks",
            "make an account of its own for it that owns nothing else, give it the data folder with chown -R, and "
            "start the server as that account (User= in the systemd unit)",
        )


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
        yield from judged("isolation", f"{namespaces}; {started}{limits}")
        return
    for name, backend in site.backends.items():
        if said := examine.isolation_of(backend):
            yield from judged(f"isolation on {name}", said)


def python(site: Site) -> Iterator[Finding]:
    subject = "python of tasks"
    try:
        yield ok(subject, examine.interpreter(site.settings.jobs.python or None))
    except PaddleCloudError as error:
        yield failed(subject, error.message, "set jobs.python to an interpreter that runs")


def judged(subject: str, said: str) -> Iterator[Finding]:
    trouble = [(text, remedy) for word, text, remedy in _TROUBLE if word in said]
    if not trouble:
        yield ok(subject, said)
    for text, remedy in trouble:
        yield warning(subject, f"{said}: {text}", remedy)


_MEMORY = "a task above its memory limit as a whole is ended only about a second later"
_DELEGATE = "run it by systemd with Delegate=yes, or let it write its own cgroup (As a service, docs/operate.md)"
_TROUBLE = (
    (
        "no namespaces",
        "tasks see all processes and the server's own files",
        "share this server only among people who trust each other, or run it where user namespaces are allowed",
    ),
    (
        "no filter of system calls",
        "a task of root's could undo what is hidden from it",
        "allow seccomp in the container that the server runs in, or run the server as an account of its own",
    ),
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
