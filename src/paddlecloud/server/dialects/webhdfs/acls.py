"""Access control lists as HDFS has them, kept and shown again: pure.

The three entries that every file has (`user::rwx`, `group::r-x`, `other::r-x`) are its permission; others go beyond.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from paddlecloud.server.dialects.webhdfs.errors import HdfsError, invalid

_MOST = 32  # of one file, as in HDFS
_CHARACTERS = 8192
_NAME = "[A-Za-z0-9._@-]*"
_ENTRY = re.compile(rf"(default:)?(user|group|mask|other):({_NAME})(?::([r-][w-][x-])?)?")
_ORDER = ("user", "group", "mask", "other")

Key = tuple[bool, str, str]  # whether it is a default, of what kind, of whom
Entries = dict[Key, str]


def parse(text: str, *, permissions: bool) -> Entries:
    """What `aclspec` says; without `permissions` it only names entries."""
    if not text or len(text) > _CHARACTERS:
        raise invalid("aclspec", "Invalid ACL: nothing is in it" if not text else "Invalid ACL: it is too long")
    found: Entries = {}
    for part in text.split(","):
        matched = _ENTRY.fullmatch(part)
        if matched is None or (permissions and not matched[4]):
            raise invalid("aclspec", f"Invalid ACL: {part!r} is not [default:]user|group|mask|other:NAME:rwx")
        found[bool(matched[1]), matched[2], matched[3]] = matched[4] or ""
    return found


def entries_of(permission: str, acl: Iterable[str]) -> Entries:
    """All entries of a file; with more than the three, the middle of the permission is the mask."""
    more = {key: bits for one in acl for key, bits in parse(one, permissions=True).items()}
    user, group, other = (_bits(digit) for digit in f"{int(permission, 8) & 0o777:03o}")
    base: Entries = {(False, "user", ""): user, (False, "other", ""): other}
    if _has_named(more):
        base[False, "mask", ""] = group
        return {(False, "group", ""): group, **base, **more}
    return {**base, (False, "group", ""): group, **more}


def kept(entries: Mapping[Key, str], permission: str) -> tuple[str, Sequence[str]]:
    """The permission, and what goes beyond it, that these entries come to."""
    entries = dict(entries)
    for kind in ("user", "group", "other"):
        if (False, kind, "") not in entries:
            raise HdfsError("AclException", f"Invalid ACL: the user, group and other entries are required: no {kind}")
    named = _has_named(entries)
    if named and (False, "mask", "") not in entries:
        masked = [bits for (default, kind, name), bits in entries.items() if not default and _is_masked(kind, name)]
        entries[False, "mask", ""] = _union(masked)
    if not named:
        entries.pop((False, "mask", ""), None)
    middle = entries[False, "mask" if named else "group", ""]
    digits = "".join(str(_value(bits)) for bits in (entries[False, "user", ""], middle, entries[False, "other", ""]))
    sticky = "1" if int(permission, 8) & 0o1000 else ""
    beyond = [_text(key, bits) for key, bits in sorted(entries.items(), key=_order) if _is_beyond(key, named=named)]
    if len(beyond) > _MOST:
        raise HdfsError("AclException", f"Invalid ACL: it has {len(beyond)} entries, which exceeds maximum of {_MOST}.")
    return (sticky + digits).lstrip("0") or "0", beyond


def changed(entries: Mapping[Key, str], more: Mapping[Key, str]) -> Entries:
    """With these entries, in the place of those of the same name. A mask that was not named is made anew."""
    base = {key: bits for key, bits in entries.items() if key != (False, "mask", "") or key in more}
    return {**base, **more}


def without(entries: Mapping[Key, str], gone: Iterable[Key]) -> Entries:
    return {key: bits for key, bits in changed(entries, {}).items() if key not in set(gone)}


def _is_beyond(key: Key, *, named: bool) -> bool:
    """The group's own entry is the middle of the permission, unless a mask is there."""
    default, kind, name = key
    return default or bool(name) or (named and kind == "group")


def _has_named(entries: Iterable[Key]) -> bool:
    return any(name and not default for default, _, name in entries)


def _is_masked(kind: str, name: str) -> bool:
    return kind == "group" or (kind == "user" and bool(name))


def _order(entry: tuple[Key, str]) -> tuple[bool, int, str]:
    (default, kind, name), _ = entry
    return default, _ORDER.index(kind), name


def _text(key: Key, bits: str) -> str:
    default, kind, name = key
    return f"{'default:' if default else ''}{kind}:{name}:{bits}"


def _bits(digit: str) -> str:
    return "".join(letter if int(digit) & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))


def _value(bits: str) -> int:
    return sum(bit for letter, bit in zip(bits, (4, 2, 1), strict=True) if letter != "-")


def _union(all_bits: Sequence[str]) -> str:
    value = 0
    for bits in all_bits:
        value |= _value(bits)
    return _bits(str(value))
