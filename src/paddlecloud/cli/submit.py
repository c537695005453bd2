"""The verbs submit and run, and what follows a submit: watching a job's states, its log and its results."""

from __future__ import annotations

import shlex
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from paddlecloud.cli import explain, files, jobfile, shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.exits import job_exit_code
from paddlecloud.cli.jobs import add_exit_code
from paddlecloud.cli.logs import Lines
from paddlecloud.cli.parser import Parser, Setup, add_output
from paddlecloud.cli.progress import progress
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.state import JobState
from paddlecloud.sdk.spec import DISTRIBUTIONS, JOB_TYPES, Asked, job_spec

if TYPE_CHECKING:
    from paddlecloud.model.job import Job, JobSpec
    from paddlecloud.model.views import JobDetail
    from paddlecloud.sdk.client import Client

_INTERRUPTED = 130
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.5)


def submit(parser: Parser) -> None:
    _add_job_options(parser)
    add_output(parser)
    parser.set_defaults(run=_submit)


def run(parser: Parser) -> None:
    _add_job_options(parser)
    parser.add_argument("--no-download", action="store_true", help="leave the results on the server")
    parser.add_argument("--download-dir", metavar="DIR", help="a new folder for the results (output-…)")
    add_exit_code(parser)
    parser.set_defaults(run=_run)


VERBS: Mapping[str, Setup] = {"submit": submit, "run": run}


def send(client: Client, spec: JobSpec, folder: Path | None) -> Job:
    """Upload with a progress bar, submit, and say the id."""
    if folder is not None and not folder.is_dir():
        raise InvalidError(f"{folder} is not a folder: name the one that holds the job's files", field="files")
    with progress("uploading") as bar:
        job = client.submit(folder, spec, progress=bar)
    shell.talk(f"submitted {job.spec.name} as {job.id}")
    return job


def follow_states(client: Client, job: str) -> JobDetail:
    """Print each change of state with its time until the end (seed 002's watch_mode)."""
    for moved in client.events(job, follow=True):
        why = f"  {moved.why}" if moved.why else ""
        print(
            f"{show.local_time(moved.at)}  {moved.job}  {show.state_text(moved.to_state, sys.stdout)}{why}", flush=True
        )
    return client.get(job)


def _add_job_options(parser: Parser) -> None:
    parser.takes_command = True
    parser.usage = f"{parser.prog} [options] [-f job.yaml] [FOLDER] [-- COMMAND …]"
    parser.epilog = f"example:\n  {parser.prog} --nodes 2 job -- sh run.sh"
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help="the job's files; only what changed is sent")
    parser.add_argument("-f", "--file", metavar="JOB.YAML", help="a job file (YAML or JSON); flags win over it")
    parser.add_argument("--name", help="the job's name (tmp_job)")
    parser.add_argument("--cluster", help="where to run it (default)")
    parser.add_argument("--nodes", type=int, metavar="N", help="number of trainers (1)")
    parser.add_argument("--cpus", type=float, metavar="N", help="CPUs for each task")
    parser.add_argument("--memory", metavar="SIZE", help="memory for each task: 4Gi, 10GB")
    parser.add_argument("--gpus", type=int, metavar="N", help="GPUs for each trainer")
    parser.add_argument("--job-type", choices=JOB_TYPES, help="gpu where there are GPUs, else cpu")
    parser.add_argument("--distribute", choices=DISTRIBUTIONS, help="how several trainers work together")
    parser.add_argument("--env", action="append", default=[], metavar="K[=V]", help="set a variable, or copy yours")
    parser.add_argument("--time-limit", metavar="TIME", help="longest run: 00:30:00, 2h (the server's default)")
    parser.add_argument("--priority", type=int, metavar="N", help="higher goes first (0)")


def _submit(args: Namespace) -> None:
    with connect() as client:
        spec, folder = _wanted(args, client)
        job = send(client, spec, folder)
    if args.output in ("table", "wide", "name"):
        print(job.id)
    else:
        show.one(job, args.output, job.id, lambda one: one.id)
    shell.talk("\n".join(explain.next_commands(job)))


def _run(args: Namespace) -> int:
    with connect() as client:
        spec, folder = _wanted(args, client)
        results = _results_folder(args)
        job = send(client, spec, folder)
        try:
            detail = _attend(client, job.id)
        except KeyboardInterrupt:
            shell.talk("\n".join(["", *explain.detached(job.id)]))
            return _INTERRUPTED
        shell.talk("\n".join(explain.ending(detail)))
        if not args.no_download and detail.job.started_at is not None:
            files.download(client, job.id, results or Path(f"output-{job.id[4:12]}"))
    return job_exit_code(detail, own=args.exit_code == "job")


def _attend(client: Client, job: str) -> JobDetail:
    """Be with a job from its queue to its end: its states and reasons to stderr, its log to stdout."""
    detail = _see_started(client, job)
    if detail.job.started_at is not None:
        Lines(sys.stdout, prefixed=detail.job.spec.tasks > 1).write(client.logs(job, follow=True))
    return client.get(client.wait(job).id)


def _see_started(client: Client, job: str) -> JobDetail:
    told: set[str] = set()
    tries = 0
    while True:
        detail = client.get(job)
        _tell_once(f"state: {explain.state_line(detail, shell.now())}", told)
        if not detail.job.state.waiting and detail.job.state is not JobState.SCHEDULE:
            return detail
        time.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
        tries += 1


def _tell_once(line: str, told: set[str]) -> None:
    if line not in told:
        told.add(line)
        shell.talk(line)


def _wanted(args: Namespace, client: Client) -> tuple[JobSpec, Path | None]:
    file = jobfile.read(Path(args.file)) if args.file else jobfile.JobFile()
    asked = jobfile.asked(file) | _flags(args)
    if "env" in asked:
        asked["env"] = jobfile.asked(file).get("env", {}) | asked["env"]
    folder = Path(args.folder) if args.folder else None
    if folder is None and file.workdir is not None:
        folder = Path(args.file).parent / file.workdir
    if file.roles:
        if args.command:
            raise InvalidError(f"{args.file} says what its roles run, so no command can follow `--`")
        return jobfile.with_roles(file, cast(Asked, asked)), folder
    if "command" not in asked:
        raise InvalidError("nothing to run: write it after `--`, such as `-- sh run.sh`, or as `run:` in a job file")
    return job_spec(cast(Asked, asked), cluster_has_gpus=client.has_gpus), folder


def _flags(args: Namespace) -> dict[str, Any]:
    given = {
        "command": _command(args.command),
        "name": args.name,
        "cluster": args.cluster,
        "nodes": args.nodes,
        "cpus": args.cpus,
        "memory": args.memory,
        "gpus": args.gpus,
        "job_type": args.job_type,
        "distribute": args.distribute,
        "env": environment(args.env) or None,
        "wall_time": args.time_limit,
        "priority": args.priority,
    }
    return {name: value for name, value in given.items() if value is not None}


def environment(settings: list[str]) -> dict[str, str]:
    """`K=V` sets a variable, `K` copies the shell's."""
    found: dict[str, str] = {}
    for setting in settings:
        name, given, value = setting.partition("=")
        if not given:
            if name not in shell.variables():
                raise InvalidError(f"--env {name}: no such variable here; write --env {name}=VALUE", field="env")
            value = shell.variables()[name]
        found[name] = value
    return found


def _command(words: list[str] | None) -> str | None:
    """One word is a line for the shell as it stands; several are one command with its arguments."""
    if not words:
        return None
    return words[0] if len(words) == 1 else shlex.join(words)


def _results_folder(args: Namespace) -> Path | None:
    """Looked at before the job is sent: hours later is no time to hear that the folder is taken."""
    if args.no_download or args.download_dir is None:
        return None
    folder = Path(args.download_dir)
    if folder.exists():
        raise InvalidError(f"{folder} exists: --download-dir must name a new folder", field="download_dir")
    return folder
