"""Verbs about files: cp and ls, of a job's results here, of the PFS in pfs.py; get_files lists as seed 000 shows."""

from __future__ import annotations

import argparse
import shlex
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecloud.cli import shell, show
from paddlecloud.cli.connect import connect, last_job
from paddlecloud.cli.parser import Parser, Setup, new_folder
from paddlecloud.cli.printable import printable
from paddlecloud.cli.progress import progress
from paddlecloud.cli.show import Column
from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.pfs import is_pfs
from paddlecloud.model.tree import Kind
from paddlecloud.model.units import format_size

if TYPE_CHECKING:
    from paddlecloud.model.job import Job
    from paddlecloud.model.transfers import FileEntry
    from paddlecloud.sdk.client import Client


class _LastIsTarget(argparse.Action):
    """The last of several words is the target; none at all is allowed too, which argparse cannot say."""

    def __call__(self, parser: argparse.ArgumentParser, found: Namespace, words: Any, _: str | None = None) -> None:
        *sources, target = words or (None,)
        if words and not sources:
            parser.error(f"TARGET is missing: say where {target} is to go")
        try:
            found.sources, found.target = sources, None if target is None else new_folder(target)
        except argparse.ArgumentTypeError as error:
            parser.error(f"TARGET: {error}")


def cp(parser: Parser) -> None:
    parser.add_argument(
        "sources",
        nargs="*",
        action=_LastIsTarget,
        metavar="SOURCE",
        help="what to copy, and the TARGET last; with no argument at all: the results of your last job",
    )
    parser.set_defaults(target=None)
    parser.add_argument(
        "--update", action="store_true", help="TARGET may hold earlier results: bring what is new or changed since"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-r", "-R", "--recursive", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-chunksize", type=int, help=argparse.SUPPRESS)
    parser.usage = f"{parser.prog} [options] SOURCE… TARGET"
    parser.epilog = "\n".join(
        [
            "between this machine and the PFS, or within it:",
            "  paddlecloud cp data /pfs/local/home/you/          folders are copied whole",
            "  paddlecloud cp '/pfs/local/home/you/part-*' .     patterns are of the server's files",
            "  paddlecloud cp /pfs/public/mnist /pfs/local/home/you/     by the server itself",
            "results of a job, into a new folder:",
            "  paddlecloud cp job-… results",
            "  paddlecloud cp job-…:rank-0/model model",
        ]
    )
    parser.set_defaults(run=_cp)


VERBS: Mapping[str, Setup] = {"cp": cp}


def ls(paths: Sequence[str], output: str, *, recursive: bool, limit: int | None = None) -> None:
    """List files of the PFS, or the results of a job; at most `limit`."""
    if all(map(is_pfs, paths)):
        from paddlecloud.cli import pfs

        pfs.ls(paths, output, recursive=recursive, limit=limit)
    elif len(paths) == 1:
        _list_results(paths[0], output, limit)
    else:
        raise InvalidError("list the results of one job at a time, or paths that all begin with /pfs/")


def _list_results(source: str, output: str, limit: int | None) -> None:
    ref, _, prefix = source.partition(":")
    with connect() as client:
        job = client.resolve(ref)
        files = (entry for entry in client.files(job, prefix) if entry.kind is not Kind.FOLDER)
        found = list(islice(files, limit))
        tell_removed(client, job)
    columns: list[Column[FileEntry]] = [
        Column("SIZE", lambda entry: format_size(entry.size)),
        Column("TIME", lambda entry: show.local_time(entry.modified_at), drop=1),
        Column("PATH", lambda entry: entry.path),
    ]
    show.many(found, columns, output, lambda entry: entry.path, "no results yet")
    if len(found) == limit:
        shell.talk(f"the first {limit}; -n 0 lists all")


def manual_lines(job: Job, entries: Iterable[FileEntry], starts: str) -> Iterator[str]:
    """The manual's list of path, size and time, of what begins with `starts`, in the order of the paths."""
    root = f"{paths.output_prefix(job.id)}/"
    listed = {entry.path: (entry.size, entry.modified_at) for entry in entries if entry.kind is not Kind.FOLDER}
    for path, (size, time) in sorted({root: (0, job.created_at), **listed}.items()):
        if path.startswith(starts):
            yield f"{printable(path)}\t{size}\t{show.utc_time(time)}"


def tell_removed(client: Client, job: str) -> None:
    """Say what of a job's results is not among what is listed or brought, since the server has let it go."""
    for removed in client.get(job).removed:
        shell.talk(removed.sentence(job))


def download(
    client: Client,
    job: str,
    folder: Path,
    *,
    prefix: str = "",
    starts: str = "",
    update: bool = False,
    ignored: bool = False,
) -> None:
    """Bring results into a folder, with a progress bar, and say where they are. `starts`: those whose paths begin so.
    `ignored`: a new folder is left out of the next upload of what it lies in."""
    from paddlecloud.sdk import transfer

    how = {"resume": True, "update": update, "ignored": ignored, "settled": client.get(job).job.state.final}
    source = f"{job}:{prefix}" if prefix else job
    again = ["paddlecloud", "cp", *(["--update"] if update else []), source, str(folder)]
    with progress("downloading", again=shlex.join(again)) as bar:
        brought = transfer.download(client.http, job, prefix, folder, bar, starts=starts, **how)
    for link in brought.skipped:
        shell.talk(f"left out the link {link}, which leads out of the results")
    tell_removed(client, job)
    if not brought.files:
        shell.talk("there are no files to bring")
        return
    newer = f"; {brought.fetched} of them new or changed" if update else ""
    shell.talk(f"{show.counted(brought.files, 'file')}, {format_size(brought.size)}, in {folder / job}{newer}")


def has_results(client: Client, job: str) -> bool:
    """Whether there is more to bring than empty logs."""
    logs = f"{paths.output_prefix(job)}/{paths.LOGS}/"
    files = (entry for entry in client.files(job) if entry.kind is not Kind.FOLDER)
    return any(entry.size or not entry.path.startswith(logs) for entry in files)


def _cp(args: Namespace) -> None:
    if not args.sources:
        with connect() as client:
            job = last_job(client)
            download(client, job, Path(f"output-{job[4:12]}"), update=args.update)
        return
    if any(map(is_pfs, (*args.sources, args.target))):
        from paddlecloud.cli import pfs

        pfs.copy(args.sources, args.target)
        return
    if len(args.sources) > 1:
        raise InvalidError("copy the results of one job at a time, or name a path of the PFS (/pfs/…)")
    ref, _, prefix = args.sources[0].partition(":")
    with connect() as client:
        download(client, client.resolve(ref), Path(args.target), prefix=prefix, update=args.update)
