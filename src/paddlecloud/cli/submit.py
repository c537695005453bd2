"""The verbs submit and run, and what follows a submit: watching a job's states, its log and its results."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from paddlecloud.cli import explain, files, jobfile, openpai, paddlepaddle, shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.exits import job_exit_code
from paddlecloud.cli.jobs import add_exit_code
from paddlecloud.cli.logs import Lines
from paddlecloud.cli.parser import Parser, Setup, add_output, new_folder, path
from paddlecloud.cli.printable import printable
from paddlecloud.cli.progress import progress
from paddlecloud.cli.watch import see_built, see_placed
from paddlecloud.model.compat import COMPATS
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import Hang, Retry
from paddlecloud.model.state import JobState
from paddlecloud.model.units import describe_counts, format_duration
from paddlecloud.sdk.spec import DISTRIBUTIONS, JOB_TYPES, Asked, hang_seconds, job_spec, seconds

if TYPE_CHECKING:
    from paddlecloud.model.job import Job, JobSpec
    from paddlecloud.model.views import JobDetail
    from paddlecloud.sdk.bundle import Bundle
    from paddlecloud.sdk.client import Client
    from paddlecloud.sdk.profile import Profile

_INTERRUPTED = 130


def submit(parser: Parser) -> None:
    _add_job_options(parser)
    paddlepaddle.add_flags(parser)
    add_output(parser)
    parser.set_defaults(run=_submit, verb="submit")


def run(parser: Parser) -> None:
    _add_job_options(parser)
    parser.add_argument("--no-download", action="store_true", help="leave the results on the server")
    parser.add_argument(
        "--download-dir", type=new_folder, metavar="DIR", help="a new folder for the results (output-…)"
    )
    add_exit_code(parser)
    parser.set_defaults(run=_run, verb="run")


VERBS: Mapping[str, Setup] = {"submit": submit, "run": run}


def send(client: Client, spec: JobSpec, folder: Path | None, *, compat: str | None = None) -> Job:
    """Read and upload with progress bars, and submit; a job that would be refused is refused before that."""
    found = None if folder is None else _read(client, spec, folder)
    if compat is not None:
        job = _send_compatible(client, spec, found)
    elif found is None:
        job = client.submit(None, spec)
    else:
        with progress("uploading") as bar:
            job = client.submit(found, spec, progress=bar)
    if other := other_user(client.profile, job.user):
        shell.talk(f"warning: {other}")
    return job


def other_user(profile: Profile, user: str) -> str:
    """That the access key is of another user than the config names; "": it is not."""
    if not (profile.ak and profile.user) or profile.user == user:
        return ""
    return f"{profile.sources.get('user')} names the user {profile.user}, and its access key is {user}'s, which counts"


def _read(client: Client, spec: JobSpec, folder: Path) -> Bundle:
    from paddlecloud.sdk import bundle

    if not folder.is_dir():
        raise InvalidError(f"{folder} is not a folder: name the one that holds the job's files", field="files")
    limit_bytes = client.check(spec).upload_limit_bytes
    with progress("reading") as bar:
        return bundle.scan(folder, limit_bytes=limit_bytes, progress=bar)


def _send_compatible(client: Client, spec: JobSpec, found: Bundle | None) -> Job:
    from paddlecloud.sdk import compat

    with compat.bundled(found) as whole, progress("uploading") as bar:
        return client.submit(whole, compat.adapted(spec), progress=bar)


def submitted(job: Job) -> str:
    """What was submitted in one line, with the time it has. Several tasks are counted, as pservers come unasked."""
    counts = describe_counts({role.name: role.count for role in job.spec.roles})
    return f"submitted {job.spec.name} as {job.id}" + (f": {counts}" if job.spec.tasks > 1 else "") + limited(job)


def limited(job: Job) -> str:
    """How long it may run; "": as long as it takes."""
    limit = job.wall_time_seconds
    return "" if limit is None else f"; it may run for {format_duration(limit)}"


def talk_next(job: Job) -> None:
    """Tell a person what to type next; a script that keeps the id wants nothing else."""
    if shell.is_terminal(sys.stdout):
        shell.talk(submitted(job), *explain.next_commands(job))


def tell(job: Job, output: str) -> None:
    """Print what was submitted in the form that was asked for: by itself the id."""
    if output in ("table", "wide", "name"):
        shell.say(job.id)
    else:
        show.one(job, output, job.id, lambda one: one.id)
    if output in ("table", "wide"):
        talk_next(job)


def follow_states(client: Client, job: str) -> JobDetail:
    """Print each change of state with its time until the end (the manual's watch_mode)."""

    def tell(at: datetime, state: JobState, why: str) -> None:
        words = f"  {printable(why)}" if why else ""
        shell.say(f"{show.local_time(at)}  {job}  {show.state_text(state, sys.stdout)}{words}", flush=True)

    for moved in client.events(job, follow=True):
        tell(moved.at, moved.to_state, moved.why)
        if moved.to_state is JobState.SCHEDULE:
            see_built(client, job, lambda building: tell(shell.now(), JobState.SCHEDULE, building))
    return client.get(job)


def _add_job_options(parser: Parser) -> None:
    parser.takes_command = True
    parser.usage = f"{parser.prog} [options] [-f job.yaml] [FOLDER] [-- COMMAND …]"
    parser.epilog = f"example:\n  {parser.prog} --nodes 2 job -- sh run.sh"
    parser.add_argument(
        "folder",
        nargs="?",
        type=path,
        metavar="FOLDER",
        help="the job's files; only what changed is sent; or a job file of OpenPAI",
    )
    parser.add_argument("--no-files", action="store_true", help="the job needs no files: send none")
    parser.add_argument(
        "-f", "--file", type=path, metavar="JOB.YAML", help="a job file (YAML or JSON); flags win over it"
    )
    parser.add_argument(
        "--compat", choices=COMPATS, help="v2: programs find paddle.v2.dataset, recordio and cPickle, as in 2017"
    )
    add_settings(parser)


def add_settings(parser: Parser, *, name: str = "tmp_job", nodes: str = "--nodes", count: int = 1) -> None:
    """What a job may ask for beside its folder and its command; `count` trainers by `nodes` if it does not say."""
    parser.add_argument("--name", help=f"the job's name ({name})")
    parser.add_argument("--cluster", help="where to run it (default)")
    parser.add_argument("--queue", metavar="QUEUE", help="a queue that `paddlecloud queues` lists (none)")
    parser.add_argument(nodes, dest="nodes", type=int, metavar="N", help=f"number of trainers ({count})")
    parser.add_argument("--cpus", type=float, metavar="N", help="CPUs for each task")
    parser.add_argument("--memory", metavar="SIZE", help="memory for each task: 4Gi, 10GB")
    parser.add_argument("--gpus", type=int, metavar="N", help="GPUs for each trainer")
    parser.add_argument("--job-type", choices=JOB_TYPES, help="gpu where there are GPUs, else cpu")
    parser.add_argument(
        "--distribute", choices=DISTRIBUTIONS, help="several trainers: by themselves (NCCL2) or with pservers"
    )
    parser.add_argument("--env", action="append", default=[], metavar="K[=V]", help="set a variable, or copy yours")
    parser.add_argument("--time-limit", metavar="TIME", help="longest run: 00:30:00, 2h (the server's default)")
    parser.add_argument("--priority", type=int, metavar="N", help="higher goes first (0)")
    parser.add_argument("--retry", type=int, metavar="N", help="start it again, up to N times, if it fails (0)")
    parser.add_argument("--hang", metavar="TIME", help="say when it does nothing for so long (the server's default)")
    parser.add_argument("--kill-hung", action="store_true", default=None, help="end it when it does nothing that long")
    parser.add_argument(
        "--keep-on-failure", action="store_true", default=None, help="keep working directories if it fails"
    )
    parser.add_argument(
        "--requirements", metavar="FILE", help="its packages (requirements.txt or pyproject.toml, if there); or none"
    )
    parser.add_argument("--python", metavar="VERSION", help="the Python that they are installed for")
    parser.add_argument(
        "--slurm",
        action="append",
        default=[],
        metavar="K[=V]",
        help="an option of sbatch that its cluster lets jobs set",
    )
    parser.add_argument("--slurm-env", action="store_true", default=None, help="set the variables of a Slurm step too")


def _submit(args: Namespace) -> None:
    if paddlepaddle.is_meant(args):
        paddlepaddle.submit(args)
        return
    with connect() as client:
        job = _sent(client, args)
    tell(job, args.output)


def _sent(client: Client, args: Namespace) -> Job:
    file = openpai.meant(args)
    if file is not None:
        if given := [name for name in flags(args) if name not in ("name", "command")]:
            raise InvalidError(f"{file.path} is a job of OpenPAI: say {', '.join(given)} in the file itself")
        return openpai.submit(client, file, args.name)
    wanted = _wanted(args)
    return send(client, wanted.spec, wanted.folder, compat=wanted.compat)


def _run(args: Namespace) -> int:
    with connect() as client:
        results = _results_folder(args)
        job = _sent(client, args)
        shell.talk(submitted(job))
        try:
            detail = attend(client, job.id)
        except KeyboardInterrupt:
            shell.talk("", *explain.detached(job.id))
            return _INTERRUPTED
        shell.talk(*explain.ending(detail, log_seen=True))
        if not args.no_download and detail.job.started_at is not None:
            _bring(client, job.id, results or Path(f"output-{job.id[4:12]}"))
    return job_exit_code(detail, own=args.exit_code == "job")


def _bring(client: Client, job: str, folder: Path) -> None:
    if files.has_results(client, job):
        files.download(client, job, folder, ignored=True)
    else:
        files.tell_removed(client, job)
        shell.talk("it left no results")


def attend(client: Client, job: str) -> JobDetail:
    """Be with a job from its queue to its end: its states and reasons to stderr, its log to stdout."""
    detail = see_placed(client, job)
    if detail.job.attempt:
        Lines(sys.stdout, prefixed=detail.job.spec.tasks > 1).write(client.logs(job, follow=True))
    return client.get(client.wait(job).id)


class _Wanted(NamedTuple):
    spec: JobSpec
    folder: Path | None
    compat: str | None


def _wanted(args: Namespace) -> _Wanted:
    file = jobfile.read(Path(args.file)) if args.file else jobfile.JobFile()
    asked = jobfile.asked(file) | flags(args)
    for table in ("env", "slurm"):
        if table in asked:
            asked[table] = jobfile.asked(file).get(table, {}) | asked[table]
    if file.roles and args.command:
        raise InvalidError(f"{args.file} says what its roles run, so no command can follow `--`")
    if not file.roles and "command" not in asked:
        raise InvalidError("nothing to run: write it after `--`, such as `-- sh run.sh`, or as `run:` in a job file")
    wanted = cast(Asked, asked)
    spec = job_spec(wanted, jobfile.roles(file))
    return _Wanted(spec, _folder(args, file), args.compat or file.compat)


def _folder(args: Namespace, file: jobfile.JobFile) -> Path | None:
    """The folder to send. None only where that was said: a job without its files fails on another machine."""
    if args.folder and args.no_files:
        raise InvalidError(f"--no-files does not go with the folder {args.folder}: leave one out", field="files")
    if args.no_files:
        return None
    if args.folder:
        return Path(args.folder)
    if file.workdir is not None:
        return Path(args.file).parent / path(file.workdir)
    if args.file:
        raise InvalidError(
            f"{args.file} names no folder to send: add `workdir: .` to it for its own, or say --no-files", field="files"
        )
    words = shlex.join(args.command)
    raise InvalidError(
        f"no folder to send: paddlecloud {args.verb} . -- {words}  sends the one you are in; --no-files sends none",
        field="files",
    )


def flags(args: Namespace) -> dict[str, Any]:
    """What was asked for by flags, in the words of a job."""
    given = {
        "command": _command(args.command),
        "name": args.name,
        "cluster": args.cluster,
        "queue": args.queue,
        "nodes": args.nodes,
        "cpus": args.cpus,
        "memory": args.memory,
        "gpus": args.gpus,
        "job_type": args.job_type,
        "distribute": args.distribute,
        "env": environment(args.env) or None,
        "wall_time": seconds(args.time_limit, "--time-limit"),
        "priority": args.priority,
        "retry": None if args.retry is None else Retry(user_error=args.retry),
        "hang": _hang(args),
        "keep_on_failure": args.keep_on_failure,
        "requirements": args.requirements,
        "python": args.python,
        "slurm": _options(args.slurm) or None,
        "slurm_env": args.slurm_env,
    }
    return {name: value for name, value in given.items() if value is not None}


def _hang(args: Namespace) -> Hang | None:
    if args.hang is None and not args.kill_hung:
        return None
    return Hang(after_seconds=hang_seconds(args.hang), kill=bool(args.kill_hung))


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


def _options(given: list[str]) -> dict[str, str]:
    """`K=V`, or `K` for one that takes no value."""
    pairs = (option.partition("=") for option in given)
    return {name: value if equals else "true" for name, equals, value in pairs}


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
