"""Checks of the datacenters: whether their folders can be written and have room, and whether their buckets answer."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from paddlecloud.model.finding import Finding, failed, ok, warning
from paddlecloud.model.units import format_size
from paddlecloud.server.checks.site import Site
from paddlecloud.server.datacenters import open_elsewhere
from paddlecloud.server.settings import LOCAL, S3

_LITTLE_BYTES = 1024**3
_OPEN_TO_OTHERS = 0o007


def datacenters(site: Site) -> Iterator[Finding]:
    for name, datacenter in site.settings.datacenters.items():
        subject = f"datacenter {name}"
        if datacenter.store != LOCAL:
            open_elsewhere(name, datacenter).list("", limit=1)
            place = f"the bucket {datacenter.bucket}" if datacenter.store == S3 else f"{datacenter.path} of HDFS"
            yield ok(subject, f"{place} at {datacenter.endpoint} answers; tasks have it as inputs alone")
        else:
            yield from _folder(subject, datacenter.path or site.folder.pfs / name)


def _folder(subject: str, path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield ok(subject, f"{path} is not there yet; the first start makes it")
        return
    if not os.access(path, os.W_OK | os.X_OK):
        account = os.geteuid()
        yield failed(subject, f"{path} cannot be written by user id {account}", f"chown {account} {path}")
        return
    homes = path / "home"
    if homes.exists() and path.stat().st_mode & _OPEN_TO_OTHERS and homes.stat().st_mode & _OPEN_TO_OTHERS:
        # In the data folder they are behind its own mode.
        above = [folder for folder in path.parents if not folder.stat().st_mode & _OPEN_TO_OTHERS]
        if not above:
            yield warning(subject, f"every account of this machine can look into {homes}", f"chmod 700 {homes}")
            return
    free = shutil.disk_usage(path).free
    if free < _LITTLE_BYTES:
        yield warning(subject, f"only {format_size(free)} free in {path}", "free some, or give users less (pfs.space)")
    else:
        yield ok(subject, f"{path}, {format_size(free)} free")
