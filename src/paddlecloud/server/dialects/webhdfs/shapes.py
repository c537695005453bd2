"""Files of the PFS as WebHDFS writes them: pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from paddlecloud.model import hdfspath, pfs
from paddlecloud.model.attributes import Attributes
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind
from paddlecloud.server.dialects.webhdfs import acls
from paddlecloud.server.inodes import number_of

OURS = "paddlecloud"  # who owns what belongs to no user, and the group of everything
BLOCK_BYTES = 128 * 1024 * 1024
REPLICATION = 1
_TYPES = {Kind.FILE: "FILE", Kind.FOLDER: "DIRECTORY", Kind.LINK: "SYMLINK"}
EPOCH = datetime.fromtimestamp(0, UTC)


def status(entry: FileEntry, said: Attributes, suffix: str = "") -> dict[str, Any]:
    """A FileStatus. How much is in a folder is not counted for it: -1 is what Hadoop's client takes for unknown."""
    is_file = entry.kind is not Kind.FOLDER
    modified = milliseconds(entry.modified_at) if said.modified_ms is None else said.modified_ms
    accessed = said.accessed_ms if said.accessed_ms is not None else modified if is_file else 0
    told: dict[str, Any] = {
        "accessTime": accessed,
        "blockSize": (said.block_bytes or BLOCK_BYTES) if is_file else 0,
        "childrenNum": 0 if is_file else -1,
        "fileId": number_of(entry),
        "group": said.group or OURS,
        "length": entry.size if is_file else 0,
        "modificationTime": modified,
        "owner": said.owner or owner_of(entry.path),
        "pathSuffix": hdfspath.shown(suffix),
        "permission": permission(entry, said),
        "replication": (said.replication or REPLICATION) if is_file else 0,
        "storagePolicy": 0,
        "type": _TYPES[entry.kind],
    }
    if said.acl:
        told["aclBit"] = True
    if entry.kind is Kind.LINK:
        told["symlink"] = entry.target
    return told


def acl_status(entry: FileEntry, said: Attributes) -> dict[str, Any]:
    bits = permission(entry, said)
    return {
        "entries": list(said.acl),
        "group": said.group or OURS,
        "owner": said.owner or owner_of(entry.path),
        "permission": bits,
        "stickyBit": bool(int(bits, 8) & 0o1000),
    }


def entries(entry: FileEntry, said: Attributes) -> acls.Entries:
    return acls.entries_of(permission(entry, said), said.acl)


def summary(*, folders: int, files: int, length: int) -> dict[str, int]:
    return {
        "directoryCount": folders,
        "fileCount": files,
        "length": length,
        "quota": -1,
        "spaceConsumed": length,
        "spaceQuota": -1,
    }


def permission(entry: FileEntry, said: Attributes) -> str:
    return said.permission or ("755" if entry.kind is Kind.FOLDER else "644")


def owner_of(path: str) -> str:
    """Whose home a path is in."""
    parts = path.split("/")[1:]
    return parts[3] if len(parts) > 3 and (parts[0], parts[2]) == (pfs.ROOT, pfs.HOME) else OURS


def milliseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)
