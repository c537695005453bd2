"""Checks of the data folder: whose it is, its room, its disk, the records and the key in it."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from paddlecloud.model.errors import PaddleCloudError
from paddlecloud.model.finding import Finding, failed, ok, warning
from paddlecloud.model.units import describe_duration, format_size
from paddlecloud.server import upkeep
from paddlecloud.server.checks.site import Site
from paddlecloud.store.backups import ENDING
from paddlecloud.store.secrets import Cipher

_LITTLE_BYTES = 1024**3
_NONE_BYTES = 64 * 1024**2  # below it uploads are refused
_LITTLE_SHARE = 0.05
_OLD = timedelta(days=7)
_OVER_NETWORK = frozenset({"9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "lustre", "nfs", "nfs4", "smb3"})
_IN_MEMORY = frozenset({"ramfs", "tmpfs"})


def data_folder(site: Site) -> Iterator[Finding]:
    subject, root = "data folder", site.folder.root
    try:
        found = root.stat()
    except FileNotFoundError:
        yield ok(subject, f"{root} is not there yet; the first start makes it")
        return
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.geteuid():
        yield failed(
            subject,
            f"{root} belongs to user id {found.st_uid}, and this is {os.geteuid()}",
            f"run this, and the server, as its owner, or chown -R {os.geteuid()} {root}",
        )
    elif mode & 0o077:
        yield warning(subject, f"{root} is open to others (mode {mode:04o})", f"chmod 700 {root}")
    else:
        yield ok(subject, f"{root}, for its owner alone")


def room(site: Site) -> Iterator[Finding]:
    subject, root = "room", _nearest(site.folder.root)
    usage = shutil.disk_usage(root)
    free = f"{format_size(usage.free)} of {format_size(usage.total)} free"
    if usage.free < _NONE_BYTES:
        yield failed(subject, f"{free} at {root}: uploads are refused", "free some: paddlecloud df says what uses it")
    elif usage.free < min(_LITTLE_BYTES, _LITTLE_SHARE * usage.total):
        yield warning(subject, f"only {free} at {root}", "free some: paddlecloud df says what uses it")
    else:
        yield ok(subject, f"{free} at {root}")
    inodes = os.statvfs(root)
    if inodes.f_files and inodes.f_favail < _LITTLE_SHARE * inodes.f_files:
        yield warning(
            subject,
            f"only {inodes.f_favail} of {inodes.f_files} inodes are left at {root}",
            "remove small files, or move the data folder to a disk with more",
        )


def file_system(site: Site) -> Iterator[Finding]:
    subject, root = "file system", _nearest(site.folder.root)
    kind = file_system_of(root, Path("/proc/self/mountinfo").read_text())
    over_network = kind in _OVER_NETWORK or kind == "fuse.sshfs"
    if over_network and not site.settings.server.database:
        yield warning(
            subject,
            f"{root} is on {kind}, over a network, where SQLite may lose records",
            "put server.data on a disk of this machine, or set server.database to a PostgreSQL",
        )
    elif kind in _IN_MEMORY:
        yield warning(
            subject, f"{root} is on {kind}: it is gone after a restart of the machine", "put server.data on a disk"
        )
    else:
        yield ok(subject, f"{root} is on {kind or 'a kind that is not known'}")


def database(site: Site) -> Iterator[Finding]:
    subject = "database"
    if site.backends is not None:
        return  # the server that runs has it open, and says by itself whether it can be read
    if not site.settings.server.database and not site.folder.database.exists():
        yield ok(subject, f"{site.folder.database} is not there yet; the first start makes it")
        return
    found = upkeep.look(site.settings)
    said = f"{found.kind}, {found.database}, {format_size(found.size_bytes)}"
    if found.revision != found.newest:
        yield warning(
            subject,
            f"{said}, at revision {found.revision}, and this program has {found.newest}",
            "the next start migrates it, after a backup; paddlecloud db migrate does so now",
        )
    else:
        yield ok(subject, f"{said}, whole and up to date")


def backup(site: Site) -> Iterator[Finding]:
    subject, folder = "backup", site.folder.backups
    made = max((datetime.fromtimestamp(file.stat().st_mtime, UTC) for file in folder.glob(f"*{ENDING}")), default=None)
    if made is not None and site.now - made < _OLD:
        yield ok(subject, f"the newest in {folder} is {describe_duration((site.now - made).total_seconds())} old")
    elif site.settings.embedded:
        yield ok(subject, f"none of this week in {folder}; paddlecloud db backup makes one")
    else:
        when = f"the newest in {folder} is of {made:%Y-%m-%d}" if made else f"there is none in {folder}"
        yield warning(subject, when, "have paddlecloud db backup run every night, and keep a copy elsewhere")


def key(site: Site) -> Iterator[Finding]:
    subject, file = "key file", site.folder.key
    if not file.exists():
        if site.folder.database.exists() or site.settings.server.database:
            yield warning(
                subject,
                f"{file} is not there: access keys in these records, if any, cannot be used",
                "restore it from the backup that the records are from",
            )
        else:
            yield ok(subject, f"{file} is not there yet; the first start makes it")
        return
    try:
        Cipher(file).sign("whether it can be read", "doctor")
    except PaddleCloudError as error:
        yield failed(subject, error.message)
        return
    yield ok(subject, f"{file}, for its owner alone; every backup has a copy of it")


def file_system_of(path: Path, mountinfo: str) -> str:
    """The kind of the file system that a path is on, of those that /proc/self/mountinfo lists; "": none is."""
    best, kind = -1, ""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        mount = left.split()[4].encode("latin-1", "replace").decode("unicode_escape")
        if len(mount) >= best and path.resolve().is_relative_to(mount):
            best, kind = len(mount), right.split()[0]
    return kind


def _nearest(path: Path) -> Path:
    """The path itself, or what there is above it."""
    return next(one for one in (path, *path.parents) if one.exists())
