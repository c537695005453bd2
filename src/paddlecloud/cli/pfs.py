"""Verbs about files of the PFS: mkdir, rm, mv, seed 001's file and publish; cp and ls come here with a path of it."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecloud.cli import shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.parser import Parser, Setup, add_output, path
from paddlecloud.cli.printable import printable
from paddlecloud.cli.progress import progress
from paddlecloud.cli.show import Column
from paddlecloud.model import pfs
from paddlecloud.model.errors import InvalidError, NotFoundError, PaddleCloudError
from paddlecloud.model.tree import Kind
from paddlecloud.model.units import format_size

if TYPE_CHECKING:
    from paddlecloud.model.transfers import FileEntry
    from paddlecloud.sdk.pfs import Pfs

_EXAMPLE = "/pfs/local/home/you/data"


def mkdir(parser: Parser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help=f"folders to make, with those above: {_EXAMPLE}")
    parser.set_defaults(run=_mkdir)


def rm(parser: Parser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files of the PFS; `*` and `?` may stand in names")
    parser.add_argument("-r", "--recursive", action="store_true", help="folders too, with all that is in them")
    parser.add_argument("-f", "--force", action="store_true", help="what is not there is no error")
    parser.set_defaults(run=_rm)


def mv(parser: Parser) -> None:
    parser.add_argument(
        "sources", nargs="+", metavar="SOURCE", help="files and folders of the PFS; `*` and `?` may stand in names"
    )
    parser.add_argument("target", metavar="TARGET", help="its new path, or the folder to put it in; of several, that")
    parser.usage = f"{parser.prog} SOURCE… TARGET"
    parser.set_defaults(run=_mv)


def file(parser: Parser) -> None:
    parser.branch(
        {
            "put": ("send a file or folder: file put src dest", _put_arguments),
            "get": ("bring a file: file get src dest", _get_arguments),
            "ls": ("list a folder: file ls path", _ls_arguments),
        }
    )


VERBS: Mapping[str, Setup] = {"mkdir": mkdir, "rm": rm, "mv": mv, "file": file}


def ls(paths: Sequence[str], output: str, *, recursive: bool, limit: int | None = None) -> None:
    """What is at paths of the PFS, at most `limit` of it."""
    with connect() as client:
        tell_renamed(client.pfs, paths)
        matched = [entry for one in paths for entry in _matched(client.pfs, one)]
        found: list[FileEntry] = []
        for entry in matched:
            left = None if limit is None else limit - len(found)
            if entry.kind is Kind.FOLDER:
                found += client.pfs.list(entry.path, recursive=recursive, limit=left)
            else:
                found += [entry][:left]
    columns: list[Column[FileEntry]] = [
        Column("SIZE", lambda entry: "-" if entry.kind is Kind.FOLDER else format_size(entry.size)),
        Column("TIME", _time, drop=1),
        Column("PATH", _name),
    ]
    show.many(found, columns, output, lambda entry: entry.path, "nothing is there yet")
    if len(found) == limit:
        shell.talk(f"the first {limit}; -n 0 lists all")


def copy(sources: Sequence[str], target: str) -> None:
    """Copy to, from or within the PFS as cp does: into a folder that is there, else to that name."""
    with connect() as client:
        tell_renamed(client.pfs, (*sources, target))
        if pfs.is_pfs(target):
            _copy_up(client.pfs, sources, target)
        else:
            _copy_down(client.pfs, sources, Path(path(target)))


def tell_renamed(there: Pfs, typed: Sequence[str]) -> None:
    """Note once that an unknown name stands for the only datacenter: the config of an old client may use any name."""
    named = {part for path in typed if pfs.is_pfs(path) for part in pfs.normal(path)[1:2]} - {pfs.PUBLIC}
    for name in sorted(named) if named and len(there.names) == 1 else ():
        if note := pfs.renamed(name, there.names):
            shell.talk(f"note: {note}")


@dataclass(frozen=True, slots=True)
class _Source:
    """What is to go to a path of the PFS: a path of it, or of this machine; `content`: what is in it, not itself."""

    name: str
    content: bool
    there: str = ""
    here: Path | None = None


def _copy_up(there: Pfs, sources: Sequence[str], target: str) -> None:
    found = [one for source in sources for one in _sources(there, source)]
    for one, goal in _goals(there, found, target):
        if one.here is not None:
            _put(there, one.here, goal)
        else:
            _copy_within(there, one.there, goal)


def _sources(there: Pfs, source: str) -> Sequence[_Source]:
    if pfs.is_pfs(source):
        return _sources_there(there, source, content=source.endswith("/"))
    local = Path(path(source))
    if not os.path.lexists(local):
        raise InvalidError(f"{source} is not there; nothing was copied from it", field="source")
    content = local.is_dir() and (source.endswith("/") or local.name in ("", ".", ".."))
    return [_Source(local.name, content, here=local)]


def _sources_there(there: Pfs, source: str, *, content: bool = False) -> Sequence[_Source]:
    return [
        _Source(entry.path.rpartition("/")[2], content and entry.kind is Kind.FOLDER, there=entry.path)
        for entry in _matched(there, source)
    ]


def _goals(there: Pfs, found: Sequence[_Source], target: str) -> Sequence[tuple[_Source, str]]:
    """Where each is to go: below the target if that is a folder, which it must be for several."""
    at = there.stat(target)
    several = len(found) > 1
    if several and at is not None and at.kind is not Kind.FOLDER:
        raise InvalidError(f"{target} is a file, and {len(found)} are to go there: name a folder", field="target")
    into = several or target.endswith("/") or (at is not None and at.kind is Kind.FOLDER)
    plain = target.rstrip("/")
    goals = [(one, f"{plain}/{one.name}" if into and not one.content else plain) for one in found]
    taken: dict[str, str] = {}
    for one, goal in goals:
        typed = one.there or str(one.here)
        if not one.content and taken.setdefault(goal, typed) != typed:
            raise InvalidError(f"{taken[goal]} and {typed} would both become {goal}: name one of them", field="source")
    return goals


def _put(there: Pfs, local: Path, goal: str) -> None:
    with progress("uploading") as bar:
        sent = there.put(local, goal, progress=bar)
    for link in sent.skipped:
        shell.talk(f"left out {link}: links and devices are not sent")
    already = f"; {format_size(sent.there)} of it was there already" if sent.there else ""
    shell.talk(f"{show.counted(sent.files, 'file')}, {format_size(sent.size)}, in {goal}{already}")


def _copy_within(there: Pfs, source: str, goal: str) -> None:
    with progress("copying") as bar:
        copied = there.copy(source, goal, progress=bar)
    for link in copied.skipped:
        shell.talk(f"left out {link}: links are not copied")
    shell.talk(f"{show.counted(copied.files, 'file')}, {format_size(copied.size)}, in {goal}")


def _copy_down(there: Pfs, sources: Sequence[str], target: Path) -> None:
    into = target.is_dir()
    if len(sources) > 1 and not into:
        raise InvalidError(
            f"{target} is not a folder, and several files are to be copied: make it first", field="target"
        )
    for source in sources:
        if not pfs.is_pfs(source):
            raise InvalidError(
                f"neither {source} nor {target} is a path of the PFS, such as {_EXAMPLE}", field="source"
            )
        found = _matched(there, source)
        if len(found) > 1 and not into:
            raise InvalidError(f"{source} means {len(found)} files: make the folder {target} first", field="target")
        for entry in found:
            name = entry.path.rpartition("/")[2]
            goal = target / name if into and not source.endswith("/") else target
            _get(there, entry.path, goal)


def _get(there: Pfs, source: str, goal: Path) -> None:
    with progress("downloading") as bar:
        fetched = there.get(source, goal, progress=bar)
    for link in fetched.skipped:
        shell.talk(f"left out {link}: links are not brought")
    shell.talk(f"{show.counted(fetched.files, 'file')}, {format_size(fetched.size)}, in {goal}")


def _matched(there: Pfs, pattern: str, *, none_is_fine: bool = False) -> Sequence[FileEntry]:
    try:
        found = there.match(pattern)
    except NotFoundError:
        if not none_is_fine:
            raise
        return []
    if not found and not none_is_fine:
        raise NotFoundError(f"nothing matches {pattern}", field="path")
    return found


def _mkdir(args: Namespace) -> None:
    with connect() as client:
        tell_renamed(client.pfs, args.paths)
        for one in args.paths:
            shell.say(printable(client.pfs.make_folder(one).path))


def _rm(args: Namespace) -> None:
    with connect() as client:
        tell_renamed(client.pfs, args.paths)
        matched = [entry.path for one in args.paths for entry in _matched(client.pfs, one, none_is_fine=args.force)]

        def remove(found: str) -> None:
            try:
                client.pfs.remove(found, recursive=args.recursive)
            except NotFoundError:
                if not args.force:
                    raise
            shell.say(printable(found))

        _each([partial(remove, found) for found in dict.fromkeys(matched)])


def _mv(args: Namespace) -> None:
    with connect() as client:
        tell_renamed(client.pfs, (*args.sources, args.target))
        found = [one for source in args.sources for one in _sources_there(client.pfs, source)]

        def move(source: str, goal: str) -> None:
            shell.say(printable(client.pfs.move(source, goal).path))

        _each([partial(move, one.there, goal) for one, goal in _goals(client.pfs, found, args.target)])


def _each(acts: Sequence[Callable[[], None]]) -> None:
    """Do all; what one is refused is told, keeps none of the others from being done, and is the command's end."""
    refused: PaddleCloudError | None = None
    for act in acts:
        try:
            act()
        except PaddleCloudError as error:
            if refused is not None:
                shell.talk(refused.message)
            refused = error
    if refused is not None:
        raise refused


def _put_arguments(parser: Parser) -> None:
    parser.add_argument("src", help="a file, a folder, or with a `/` at its end what is in that folder")
    parser.add_argument("dest", help="a folder of the PFS to put it in: /pfs/{datacenter}/home/{username}/…")
    parser.set_defaults(run=_file_put)


def _get_arguments(parser: Parser) -> None:
    parser.add_argument("src", help="a file of the PFS")
    parser.add_argument("dest", type=path, help="the file to write, or with a `/` at its end the folder")
    parser.set_defaults(run=_file_get)


def _ls_arguments(parser: Parser) -> None:
    parser.add_argument("path", help="a folder of the PFS")
    add_output(parser)
    parser.set_defaults(run=_file_ls)


def _file_put(args: Namespace) -> None:
    """Seed 001's rules: only what is below the current folder, and always into `dest`."""
    local = Path(path(args.src))
    if ".." in local.parts:
        raise InvalidError(f"src {args.src!r}: src path should be inside your submiting path", field="src")
    if not os.path.lexists(local):
        raise InvalidError(f"src {args.src!r} is not there", field="src")
    content = args.src.endswith("/") and local.is_dir()
    goal = args.dest.rstrip("/") if content else f"{args.dest.rstrip('/')}/{local.name}"
    with connect() as client:
        tell_renamed(client.pfs, [goal])
        _put(client.pfs, local, goal)


def _file_get(args: Namespace) -> None:
    goal = Path(args.dest)
    if args.dest.endswith("/") or goal.is_dir():
        goal = goal / args.src.rpartition("/")[2]
    if os.path.lexists(goal):
        raise InvalidError(f"file already exist: {goal}", field="dest")
    with connect() as client:
        tell_renamed(client.pfs, [args.src])
        _get(client.pfs, args.src, goal)


def _file_ls(args: Namespace) -> None:
    with connect() as client:
        tell_renamed(client.pfs, [args.path])
        found = list(client.pfs.list(args.path))
    if args.output == "table":
        for entry in found:
            shell.say(printable(entry.path.rpartition("/")[2]))
        return
    show.many(found, [Column("PATH", _name)], args.output, lambda entry: entry.path)


def _time(entry: FileEntry) -> str:
    # The folders above homes are of no time.
    return show.local_time(entry.modified_at) if entry.modified_at.timestamp() else "-"


def _name(entry: FileEntry) -> str:
    if entry.kind is Kind.LINK:
        return f"{entry.path} -> {entry.target}"
    return f"{entry.path}/" if entry.kind is Kind.FOLDER else entry.path
