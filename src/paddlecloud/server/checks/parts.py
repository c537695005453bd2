"""Checks of what a server is made of: its clusters and their policies, its certificate, mail, and whether it runs."""

from __future__ import annotations

from collections.abc import Iterator

from paddlecloud.backends.machine import machine
from paddlecloud.model.errors import ConfigError, PaddleCloudError
from paddlecloud.model.finding import Finding, failed, ok, warning
from paddlecloud.model.job import Resources
from paddlecloud.model.units import format_size
from paddlecloud.server import certificate, mail
from paddlecloud.server.agreement import is_loopback
from paddlecloud.server.checks.site import Site
from paddlecloud.server.cluster_settings import SLURM
from paddlecloud.server.policy import cluster_line, policy_line

_LATE_SECONDS = 60.0  # mail that is older was tried in vain


def process(site: Site) -> Iterator[Finding]:
    subject = "server"
    if site.backends is not None and site.healthy:
        yield ok(subject, f"it reads its records and schedules jobs, from {site.folder.root}")
    elif site.backends is not None:
        yield failed(subject, "jobs are not being scheduled", f"its log says why: {site.folder.log}, or journalctl")
    elif (pid := site.running_pid) is None:
        yield ok(subject, f"none runs in {site.folder.root}; the checks below are of its settings and its folder")
    elif site.healthy:
        yield ok(subject, f"one runs in {site.folder.root} (pid {pid}) and answers; an admin's doctor asks it for more")
    else:
        yield failed(
            subject,
            f"one runs in {site.folder.root} (pid {pid}) and is not ready",
            f"its log says why: {site.folder.log}, or journalctl of its unit",
        )


def clusters(site: Site) -> Iterator[Finding]:
    yield ok("policy", policy_line(site.settings))
    for name in site.settings.clusters:
        yield from _cluster(site, name)


def encryption(site: Site) -> Iterator[Finding]:
    subject, server = "certificate", site.settings.server
    if server.certificate is None or server.certificate_key is None:
        if is_loopback(server.host):
            yield ok(subject, f"none, and none is needed: {server.host} is reached from this machine alone")
        else:
            yield warning(
                subject,
                f"none: passwords and tokens travel to {server.host} in the open (server.insecure)",
                "name server.certificate and server.certificate_key",
            )
        return
    try:
        pair = certificate.read(server.certificate, server.certificate_key)
    except ConfigError as error:
        yield failed(subject, error.message)
        return
    trouble = pair.trouble(site.now)
    remedy = f"put a new one into {server.certificate}; it is taken up without a restart"
    if not trouble:
        yield ok(subject, f"{server.certificate} is valid for {(pair.not_after - site.now).days} more days")
    elif pair.not_before <= site.now < pair.not_after:
        yield warning(subject, trouble, remedy)
    else:
        yield failed(subject, trouble, remedy)


def letters(site: Site) -> Iterator[Finding]:
    subject = "mail"
    smtp = mail.configured(site.settings.mail)
    if smtp is None:
        yield ok(subject, f"no mail server: letters stay in {site.folder.outbox}")
        return
    where = f"{smtp.host} port {smtp.port}"
    try:
        smtp.greet()
    except mail.LaterError as error:
        remedy = "check mail.smtp, mail.user and mail.password_file"
        yield failed(subject, f"the mail server {where} cannot be used: {error}", remedy)
        return
    yield ok(subject, f"{where} takes mail" + (f" from {smtp.user}" if smtp.user else ""))
    late = site.now.timestamp() - _LATE_SECONDS
    waiting = [file.name for file in sorted(site.folder.outbox.glob("*.eml")) if file.stat().st_mtime < late]
    if waiting:
        remedy = "the server's log says why; hand over by hand what it never takes, and delete it there"
        yield warning(subject, f"in {site.folder.outbox} is mail that could not be sent: {', '.join(waiting)}", remedy)


def _cluster(site: Site, name: str) -> Iterator[Finding]:
    subject = f"cluster {name}"
    policy = cluster_line(site.settings, name).removeprefix(f"{subject}: ")
    said = site.settings.clusters[name]
    if site.backends is None and said.backend == SLURM:
        yield ok(subject, f"a Slurm, which a server that runs asks; {policy}")
        return
    if site.backends is None:
        here = machine()
        has = Resources(
            cpus=here.cpus if said.cpus is None else said.cpus,
            memory_bytes=here.memory_bytes if said.memory is None else said.memory,
            gpus=here.gpus if said.gpus is None else said.gpus,
        )
        yield ok(subject, f"{_amounts(has)}; {policy}")
        return
    try:
        capacity = site.backends[name].capacity()
    except PaddleCloudError as error:
        yield failed(subject, f"it does not answer: {error.message}", "its jobs stay as they are until it does")
        return
    yield ok(subject, f"{_amounts(capacity) if capacity else 'it keeps its own queue'}; {policy}")


def _amounts(has: Resources) -> str:
    return f"{has.cpus:g} CPUs, {format_size(has.memory_bytes)}, {has.gpus} GPUs"
