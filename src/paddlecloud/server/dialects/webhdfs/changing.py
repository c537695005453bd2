"""Operations that change names and what is said of files: MKDIRS, RENAME, DELETE, SETPERMISSION and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Response
from msgspec.structs import replace

from paddlecloud.model import hdfspath
from paddlecloud.model.attributes import NOTHING_SAID, Attributes
from paddlecloud.model.errors import ConflictError
from paddlecloud.model.hdfspath import Spot
from paddlecloud.model.pfs import Access
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind
from paddlecloud.server.dialects.webhdfs import acls, shapes
from paddlecloud.server.dialects.webhdfs.call import Call, boolean, nothing
from paddlecloud.server.dialects.webhdfs.errors import HdfsError, invalid

_OPTIONS = ("NONE", "OVERWRITE", "TO_TRASH")
_NAME_CHARACTERS = 255
_MOST_COPIES = 32767
_LEFT = -1  # what a time is that stays as it is


async def make_folders(call: Call) -> Response:
    permission = call.query.permission()
    await call.in_turn(_make_folders, call, permission)
    return boolean(True)


def _make_folders(call: Call, permission: str) -> None:
    there = call.look(call.spot)
    if there is not None and there.kind is not Kind.FOLDER:
        raise HdfsError("FileAlreadyExistsException", f"Path is not a directory: {call.spot.path}")
    if there is not None:
        return
    try:
        made = call.services.pfs.make_folder(call.who, call.to_change(call.spot))
    except ConflictError:
        raise HdfsError(
            "FileAlreadyExistsException", f"Parent path is not a directory: {hdfspath.parent(call.spot.path)}"
        ) from None
    place = call.services.pfs.locate(call.who, made.path, Access.READ)
    if permission:
        call.services.attributes.say(place, made, Attributes(permission=permission))
    elif call.said(made) != NOTHING_SAID:
        call.services.attributes.removed(place)  # of one that a task has removed, past the server


async def rename(call: Call) -> Response:
    target, options = call.query.text("destination"), call.query.text("renameoptions")
    if not target:
        raise HdfsError("IllegalArgumentException", "Can not create a Path from a null string")
    if not target.startswith("/"):
        raise invalid("destination", f'Invalid parameter value: destination = "{target}" is not an absolute path.')
    wanted = {option.strip().upper() for option in options.split(",") if option}
    if unknown := sorted(wanted - set(_OPTIONS)):
        raise invalid("renameoptions", f"No enum constant org.apache.hadoop.fs.Options.Rename.{unknown[0]}")
    there = call.locate(hdfspath.received(target))
    if not wanted:
        return boolean(await call.in_turn(_rename, call, there))
    await call.in_turn(_rename_strictly, call, there, overwrite="OVERWRITE" in wanted)
    return nothing()


def _rename(call: Call, there: Spot) -> bool:
    """As `mv` would: into a folder that is there; what cannot be is told by False."""
    here, source = call.spot, call.look(call.spot)
    if source is None:
        return False
    target = call.look(there)
    if target is not None and target.kind is Kind.FOLDER:
        there = call.locate(hdfspath.joined(there.path, here.path.rpartition("/")[2]))
        target = call.look(there)
    if _is_same(call, here, there):
        return source.kind is not Kind.FOLDER
    if target is not None or _is_below(call, here, there):
        return False
    above = call.look(call.locate(hdfspath.parent(there.path)))
    if above is None or above.kind is not Kind.FOLDER:
        return False
    call.services.pfs.move(call.who, call.to_change(here), call.to_change(there))
    return True


def _rename_strictly(call: Call, there: Spot, *, overwrite: bool) -> None:
    """To the very target; what cannot be is told by an exception."""
    here, source, target = call.spot, call.look(call.spot), call.look(there)
    if source is None:
        raise HdfsError("FileNotFoundException", f"rename source {here.path} is not found.")
    if _is_same(call, here, there):
        raise HdfsError(
            "FileAlreadyExistsException", f"The source {here.path} and destination {there.path} are the same"
        )
    if _is_below(call, here, there):
        raise HdfsError(
            "IOException", f"Rename destination {there.path} is a directory or file under source {here.path}"
        )
    if target is not None:
        _check_replaced(call, there, source, target, overwrite=overwrite)
    above = call.look(call.locate(hdfspath.parent(there.path)))
    if above is None:
        raise HdfsError("FileNotFoundException", f"rename destination parent {there.path} not found.")
    if above.kind is not Kind.FOLDER:
        raise HdfsError("ParentNotDirectoryException", f"rename destination parent {there.path} is a file.")
    old, new = call.to_change(here), call.to_change(there)
    if target is not None and target.kind is Kind.FOLDER:
        call.services.pfs.remove(call.who, new, recursive=True)
    call.services.pfs.move(call.who, old, new)


def _check_replaced(call: Call, there: Spot, source: FileEntry, target: FileEntry, *, overwrite: bool) -> None:
    both = {source.kind is Kind.FOLDER, target.kind is Kind.FOLDER}
    if len(both) == 2:
        raise HdfsError("IOException", f"Source {call.spot.path} and destination {there.path} must both be directories")
    if not overwrite:
        raise HdfsError("FileAlreadyExistsException", f"rename destination {there.path} already exists")
    if target.kind is Kind.FOLDER and _is_filled(call, there):
        raise HdfsError("IOException", f"rename destination directory is not empty: {there.path}")


def _is_same(call: Call, here: Spot, there: Spot) -> bool:
    return bool(here.pfs) and _normal(call, here) == _normal(call, there)


def _is_below(call: Call, here: Spot, there: Spot) -> bool:
    return bool(here.pfs) and _normal(call, there).startswith(f"{_normal(call, here)}/")


def _normal(call: Call, spot: Spot) -> str:
    """One name for each place, which may have several."""
    return call.services.pfs.locate(call.who, spot.pfs, Access.READ).path if spot.pfs else spot.path


async def delete(call: Call) -> Response:
    recursive = call.query.flag("recursive")
    return boolean(await call.in_turn(_delete, call, recursive=recursive))


def _delete(call: Call, *, recursive: bool) -> bool:
    there = call.look(call.spot)
    if there is None:
        return False
    path = call.to_change(call.spot)
    is_folder = there.kind is Kind.FOLDER
    if is_folder and not recursive and _is_filled(call, call.spot):
        raise HdfsError("PathIsNotEmptyDirectoryException", f"`{call.spot.path} is non empty': Directory is not empty")
    call.services.pfs.remove(call.who, path, recursive=is_folder)
    return True


def _is_filled(call: Call, spot: Spot) -> bool:
    return next(call.children(spot), None) is not None


async def set_permission(call: Call) -> Response:
    permission = call.query.permission()
    await call.in_turn(_say, call, lambda _, said: replace(said, permission=permission or said.permission))
    return nothing()


async def set_owner(call: Call) -> Response:
    owner, group = (call.query.text(name)[:_NAME_CHARACTERS] for name in ("owner", "group"))
    if not owner and not group:
        raise HdfsError("IllegalArgumentException", "Both owner and group are empty.")
    await call.in_turn(_say, call, lambda _, said: replace(said, owner=owner or said.owner, group=group or said.group))
    return nothing()


async def set_times(call: Call) -> Response:
    times: dict[str, Any] = {}
    for name, field in (("modificationtime", "modified_ms"), ("accesstime", "accessed_ms")):
        given = call.query.number(name, least=_LEFT)
        if given not in (None, _LEFT):
            times[field] = given
    await call.in_turn(_say, call, lambda _, said: replace(said, **times))
    return nothing()


async def set_replication(call: Call) -> Response:
    copies = call.query.number("replication", least=1, most=_MOST_COPIES)
    return boolean(await call.in_turn(_set_replication, call, copies))


def _set_replication(call: Call, copies: int | None) -> bool:
    there = call.look(call.spot)
    if there is None or there.kind is Kind.FOLDER:
        return False
    _say(call, lambda _, said: replace(said, replication=copies or said.replication))
    return True


Change = Callable[[FileEntry, Attributes], Attributes]


def _say(call: Call, change: Change) -> None:
    place, entry = call.to_say(call.spot)
    said = call.said(entry)
    new = change(entry, said)
    if new != said:
        call.services.attributes.say(place, entry, new)


async def set_acl(call: Call) -> Response:
    given = acls.parse(call.query.text("aclspec"), permissions=True)
    return await _change_acl(call, lambda _: given)


async def modify_acl(call: Call) -> Response:
    given = acls.parse(call.query.text("aclspec"), permissions=True)
    return await _change_acl(call, lambda entries: acls.changed(entries, given))


async def remove_acl_entries(call: Call) -> Response:
    gone = acls.parse(call.query.text("aclspec"), permissions=False)
    return await _change_acl(call, lambda entries: acls.without(entries, gone))


async def remove_default_acl(call: Call) -> Response:
    return await _change_acl(call, lambda entries: acls.without(entries, [key for key in entries if key[0]]))


async def remove_acl(call: Call) -> Response:
    return await _change_acl(
        call, lambda entries: acls.without(entries, [key for key in entries if key[0] or key[2] or key[1] == "mask"])
    )


async def _change_acl(call: Call, change: Callable[[acls.Entries], acls.Entries]) -> Response:
    def changed(entry: FileEntry, said: Attributes) -> Attributes:
        permission, acl = acls.kept(change(shapes.entries(entry, said)), shapes.permission(entry, said))
        return replace(said, permission=permission, acl=tuple(acl))

    await call.in_turn(_say, call, changed)
    return nothing()
