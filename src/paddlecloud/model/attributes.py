"""What clients of HDFS say about files, and are told again: permissions, owners, times, replication, ACLs.

It decides nothing: who may do what in the PFS is the PFS's rule alone (model/pfs.py).
"""

from __future__ import annotations

from msgspec import Struct

from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind


class Attributes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """None, and an empty text: nothing was said of it. Times are in milliseconds since 1970, as Hadoop has them."""

    permission: str = ""  # octal, without a leading 0
    owner: str = ""
    group: str = ""
    accessed_ms: int | None = None
    modified_ms: int | None = None
    replication: int | None = None
    block_bytes: int | None = None
    acl: tuple[str, ...] = ()  # what goes beyond the permission, as `default:user:ann:rwx`


NOTHING_SAID = Attributes()


def version_of(entry: FileEntry) -> str:
    """What tells a file from another that takes its place. A folder is the same, whatever is done in it."""
    if entry.kind is Kind.FOLDER:
        return "folder"
    return f"{entry.kind.value} {entry.size} {entry.modified_at.isoformat()}"
