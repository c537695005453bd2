"""Old spellings: seed 002's commands with its parameters, defaults, rules and output, exactly."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from paddlecloud.cli import explain, shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.exits import job_exit_code
from paddlecloud.cli.parser import Parser, Setup, new_folder, path
from paddlecloud.cli.printable import printable
from paddlecloud.model import manual, paths
from paddlecloud.model.errors import ConfigError, InvalidError
from paddlecloud.model.job import PSERVER
from paddlecloud.model.state import StopReason
from paddlecloud.model.units import format_duration
from paddlecloud.sdk.spec import DISTRIBUTIONS, JOB_TYPES, Asked, as_in_the_manual, job_spec, seconds

if TYPE_CHECKING:
    from paddlecloud.model.job import Job
    from paddlecloud.model.views import JobDetail
    from paddlecloud.sdk.client import Client
    from paddlecloud.sdk.profile import Profile

_SECRET_KEYS = ("ak", "sk")


def submit_job(parser: Parser) -> None:
    add = parser.add_argument
    add("--job_name", default="tmp_job", metavar="NAME", help="the job's name (tmp_job)")
    add("--start_cmd", required=True, metavar="CMD", help='what to run, such as "sh run.sh"')
    add("--cluster", default="default", metavar="NAME", help="default, or a cluster that `paddlecloud clusters` lists")
    _add_flag(parser, "--public_bcc", 1, "1: the shared machines; 0: machines of your own ([bcc] in client.conf)")
    _add_flag(parser, "--public_bos", 1, "1: files are sent (--files); 0: storage of your own (--bos_url, [bos])")
    add("--job_type", choices=JOB_TYPES, help="gpu where the cluster has GPUs, else cpu")
    add("--instance_count", type=int, default=1, metavar="N", help="number of instances (1)")
    add("--wall_time", metavar="HH:MM:SS", help="longest run (00:30:00)")
    add("--bos_url", default="", metavar="URL", help="a folder in your storage; needed with public_bos=0")
    add("--files", type=path, metavar="DIR", help="the folder to send; needed with public_bos=1")
    add("--file", dest="files", type=path, metavar="DIR", help=argparse.SUPPRESS)
    _add_flag(parser, "--watch_mode", 0, "1: print each change of state until the end")
    add("--distribute_job_type", choices=DISTRIBUTIONS, help="several instances: PSERVER on CPUs, NCCL2 on GPUs")
    parser.set_defaults(run=_submit_job)


def query_job(parser: Parser) -> None:
    _add_job_id(parser)
    parser.set_defaults(run=_query_job)


def kill_job(parser: Parser) -> None:
    _add_job_id(parser)
    parser.set_defaults(run=_kill_job)


def get_files(parser: Parser) -> None:
    _add_job_id(parser)
    parser.add_argument("--prefix", metavar="PATH", help="only paths that begin so (output/<job_id>); / is everything")
    _add_flag(parser, "--download", 0, "1: download instead of listing")
    parser.add_argument(
        "--download_dir", type=new_folder, default="output", metavar="DIR", help="a new folder to put them in (output)"
    )
    parser.set_defaults(run=_get_files)


VERBS: Mapping[str, Setup] = {
    "submit_job": submit_job,
    "query_job": query_job,
    "kill_job": kill_job,
    "get_files": get_files,
    "get_fils": get_files,
}


def query_lines(detail: JobDetail, now: datetime) -> list[str]:
    """Seed 000's fields, in its order and form; the queue too, of a job that has one."""
    job, spec = detail.job, detail.job.spec
    trainer = next((role for role in spec.roles if role.name != PSERVER), spec.roles[0])
    instances = [task.name for task in job.placement.tasks if task.role != PSERVER] if job.placement else []
    values = {
        "bos_url": paths.output_prefix(job.id) if spec.public_bos else spec.bos_url,
        "create_time": show.local_time(job.created_at),
        "error_msg": job.error,
        "finish_time": show.local_time(job.finished_at),
        "instance_count": str(spec.trainers),
        "instance_ids_list": ",".join(instances),
        "job_id": job.id,
        "job_name": spec.name,
        "job_status": job.state.label,
        "job_type": spec.job_type or "",
        "kill_flag": "1" if job.stop is StopReason.ASKED else "0",
        "public_bcc": str(int(spec.public_bcc)),
        "public_bos": str(int(spec.public_bos)),
        **({"queue": spec.queue} if spec.queue else {}),
        "queue_reason": explain.why_waiting(job, detail.forecast, now)
        if job.state.waiting
        else job.building or detail.sending,
        "start_cmd": trainer.command,
        "start_time": show.local_time(job.started_at),
        "wall_time": "" if job.wall_time_seconds is None else format_duration(job.wall_time_seconds),
    }
    return [printable(f"{name}: {value}".rstrip()) for name, value in values.items()]


def _submit_job(args: Namespace) -> int:
    # Imported here, as is what only some verbs need: a question about a job is to be answered soon.
    from paddlecloud.cli.submit import follow_states, send, talk_next
    from paddlecloud.sdk import profile as profiles

    profile = profiles.load()
    check(args, profile)
    asked: Asked = {
        "command": args.start_cmd,
        "name": args.job_name,
        "cluster": args.cluster,
        "nodes": args.instance_count,
        "public_bcc": bool(args.public_bcc),
        "public_bos": bool(args.public_bos),
        "bos_url": args.bos_url,
    }
    if args.job_type is not None:
        asked["job_type"] = args.job_type
    if wall_time := seconds(args.wall_time, "--wall_time"):
        asked["wall_time"] = wall_time
    if args.distribute_job_type is not None:
        asked["distribute"] = args.distribute_job_type
    with connect() as client:
        if not args.public_bos:
            bos = profile.private["bos"]
            asked["storage_key"] = client.storage.add_key(args.bos_url, bos["ak"], bos["sk"]).id
        spec = replace(job_spec(as_in_the_manual(asked, cluster_has_gpus=client.has_gpus)), face=manual.FACE)
        job = send(client, spec, Path(args.files) if args.files else None)
        shell.say(job.id, flush=True)
        if not args.watch_mode:
            talk_next(job)
            return 0
        try:
            detail = follow_states(client, job.id)
        except KeyboardInterrupt:
            shell.talk("", *explain.detached(job.id))
            raise
    shell.talk(*explain.ending(detail))
    return job_exit_code(detail)


def check(args: Namespace, profile: Profile) -> None:
    """Seed 002's rules on what goes with what, before anything is sent."""
    if not args.start_cmd.strip():
        raise InvalidError('--start_cmd is empty: say what to run, such as --start_cmd="sh run.sh"', field="start_cmd")
    if args.instance_count < 1:
        raise InvalidError(
            f"--instance_count {args.instance_count} is too small: a job has at least 1 instance",
            field="instance_count",
        )
    if args.public_bos and not args.files:
        raise InvalidError("--files is missing: with public_bos=1 name the folder to send", field="files")
    if args.public_bos and args.bos_url:
        raise InvalidError("--bos_url goes with --public_bos=0 only: leave it out, or say so", field="bos_url")
    if not args.public_bos and not args.bos_url:
        raise InvalidError("--bos_url is missing: with public_bos=0 name the folder in your storage", field="bos_url")
    if not args.public_bos and args.files:
        raise InvalidError("--files goes with public_bos=1 only: put them into your storage", field="files")
    if not args.public_bcc:
        _require_section(
            profile,
            "bcc",
            "public_bcc",
            "and even then servers of this version cannot use machines of your own yet: leave public_bcc at 1",
        )
    if not args.public_bos:
        _require_section(
            profile,
            "bos",
            "public_bos",
            "the key to your storage: write them there, or leave public_bos at 1 and send --files",
        )


def _require_section(profile: Profile, section: str, parameter: str, todo: str) -> None:
    found = profile.private.get(section, {})
    missing = [key for key in _SECRET_KEYS if not found.get(key)]
    if missing:
        raise ConfigError(
            f"{parameter}=0 needs {' and '.join(missing)} in section [{section}] of {profile.client_conf}, {todo}"
        )


def _query_job(args: Namespace) -> None:
    with connect() as client:
        shell.say(*query_lines(client.get(args.job_id), shell.now()))


def _kill_job(args: Namespace) -> None:
    with connect() as client:
        job = client.kill(args.job_id)
    shell.say(f"{job.id}  {job.state.label}")


def _get_files(args: Namespace) -> None:
    from paddlecloud.cli import files

    with connect() as client:
        job = client.get(args.job_id).job
        prefix, starts = paths.key_prefix(job.id, args.prefix or "")
        if args.prefix == "/":
            _get_everything(client, job, Path(args.download_dir) if args.download else None)
            return
        if not any(entry.path.startswith(starts) for entry in client.files(job.id, prefix)):
            prefix = starts  # of which the server says why there is nothing
        if not args.download:
            shell.say(*files.manual_lines(job, client.files(job.id, prefix), starts))
            files.tell_removed(client, job.id)
            return
        _download(client, job.id, Path(args.download_dir), prefix, starts)


def _get_everything(client: Client, job: Job, folder: Path | None) -> None:
    """Results and the files that the job was submitted with, as they lay beside each other in the manual's storage:
    listed or, with a folder, brought there."""
    from paddlecloud.cli import files
    from paddlecloud.cli.progress import progress
    from paddlecloud.sdk import sent

    if folder is None:
        shell.say(*files.manual_lines(job, (*client.files(job.id), *sent.sent_files(client.http, job.id)), ""))
        files.tell_removed(client, job.id)
        return
    _download(client, job.id, folder, "", "")
    with progress("downloading") as bar:
        brought = sent.bring(client.http, job.id, folder, bar)
    shell.talk(f"{show.counted(brought, 'file')} that it was submitted with, in {folder}")


def _download(client: Client, job: str, folder: Path, prefix: str, starts: str) -> None:
    from paddlecloud.cli import files
    from paddlecloud.sdk.download import unused

    try:
        files.download(client, job, folder, prefix=prefix, starts=starts, ignored=True)
    except InvalidError as error:
        if error.field != "download_dir":
            raise
        raise InvalidError(
            f"{str(folder)!r} exists: name a new folder, such as --download_dir={unused(folder)}", field="download_dir"
        ) from None


def _add_job_id(parser: Parser) -> None:
    parser.add_argument("--job_id", required=True, metavar="JOB", help="the job's id; a name or a beginning will do")


def _add_flag(parser: Parser, name: str, default: int, line: str) -> None:
    parser.add_argument(name, type=int, choices=(0, 1), default=default, help=f"{line} ({default})")
