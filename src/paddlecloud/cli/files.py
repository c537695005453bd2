"""Verbs about a job's results: cp brings them here; `ls JOB` and get_files list them as seed 000 shows."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecloud.cli import shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.parser import Parser, Setup, new_folder
from paddlecloud.cli.progress import progress
from paddlecloud.cli.show import Column
from paddlecloud.model import paths
from paddlecloud.model.tree import Kind
from paddlecloud.model.units import format_size

if TYPE_CHECKING:
    from paddlecloud.model.job import Job
    from paddlecloud.model.transfers import FileEntry
    from paddlecloud.sdk.client import Client


def cp(parser: Parser) -> None:
    parser.add_argument("source", metavar="JOB[:PATH]", help="a job's results, or a part: job-…:rank-0/model")
    parser.add_argument("folder", type=new_folder, metavar="DIR", help="a new folder to put them in")
    parser.add_argument(
        "--update", action="store_true", help="DIR may hold earlier results: bring what is new or changed since"
    )
    parser.set_defaults(run=_cp)


VERBS: Mapping[str, Setup] = {"cp": cp}


def list_files(source: str, output: str) -> None:
    ref, _, prefix = source.partition(":")
    with connect() as client:
        job = client.resolve(ref)
        found = [entry for entry in client.files(job, prefix) if entry.kind is not Kind.FOLDER]
        tell_removed(client, job)
    columns: list[Column[FileEntry]] = [
        Column("SIZE", lambda entry: format_size(entry.size)),
        Column("TIME", lambda entry: show.local_time(entry.modified_at), drop=1),
        Column("PATH", lambda entry: entry.path),
    ]
    show.many(found, columns, output, lambda entry: entry.path, "no results yet")


def seed_lines(job: Job, entries: Iterable[FileEntry], prefix: str) -> Iterator[str]:
    """Seed 000's list of path, size and time: the job's folder first, then files."""
    root = f"{paths.output_prefix(job.id)}/"
    if not paths.below_output(job.id, prefix):
        yield f"{root}\t0\t{show.utc_time(job.created_at)}"
    for entry in entries:
        if entry.kind is not Kind.FOLDER:
            yield f"{entry.path}\t{entry.size}\t{show.utc_time(entry.modified_at)}"


def tell_removed(client: Client, job: str) -> None:
    """Say what of a job's results is not among what is listed or brought, since the server has let it go."""
    for removed in client.get(job).removed:
        shell.talk(removed.sentence(job))


def download(client: Client, job: str, folder: Path, *, prefix: str = "", update: bool = False) -> None:
    """Bring results into a folder, with a progress bar, and say where they are."""
    source = f"{job}:{prefix}" if prefix else job
    again = ["paddlecloud", "cp", *(["--update"] if update else []), source, str(folder)]
    with progress("downloading", again=shlex.join(again)) as bar:
        brought = client.download(job, folder, prefix=prefix, progress=bar, update=update)
    for link in brought.skipped:
        shell.talk(f"left out the link {link}, which leads out of the results")
    tell_removed(client, job)
    if not brought.files:
        shell.talk("there are no files to bring")
        return
    newer = f"; {brought.fetched} of them new or changed" if update else ""
    shell.talk(f"{show.counted(brought.files, 'file')}, {format_size(brought.size)}, in {folder / job}{newer}")


def _cp(args: Namespace) -> None:
    ref, _, prefix = args.source.partition(":")
    with connect() as client:
        download(client, client.resolve(ref), Path(args.folder), prefix=prefix, update=args.update)
