"""The verb cluster_train: seed 003's flags, `--x y` and `--x=y`, each as short as can be told apart."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecloud.cli import explain, shell
from paddlecloud.cli.connect import connect
from paddlecloud.cli.exits import job_exit_code
from paddlecloud.cli.parser import Parser, Setup, add_output, path
from paddlecloud.cli.progress import progress
from paddlecloud.cli.submit import attend, environment, submitted, tell
from paddlecloud.model import cluster_config
from paddlecloud.model.errors import InvalidError
from paddlecloud.sdk.cluster_start import THIRDPARTY, bundled
from paddlecloud.sdk.cluster_train import (
    COUNTS,
    PRIORITIES,
    Flags,
    at_home,
    cluster_train_spec,
    is_at_home,
    priority,
)
from paddlecloud.sdk.spec import Asked, seconds

if TYPE_CHECKING:
    from paddlecloud.model.job import Job, JobSpec
    from paddlecloud.sdk.client import Client

_INTERRUPTED = 130
_REQUIREMENTS = "requirements.txt"
_SEED = (
    *("--config", "--time_limit", "--submitter", "--num_nodes", "--job_priority"),
    *(f"--{flag}" for flag in COUNTS),
    *("--where", "--thirdparty", "--job_name"),
)


def cluster_train(parser: Parser) -> None:
    parser.usage = f"{parser.prog} --config FILE [flags]"
    parser.epilog = "\n".join(
        [
            "The config says where its data is: cluster_config(fs_name=…, fs_ugi=…, work_dir=…). It is not run here.",
            "examples:",
            f"  {parser.prog} --config cluster_conf.py --num_nodes 4 --thirdparty ./thirdparty",
            f"  {parser.prog} --config=cluster_conf.py --time=00:30:00 --where=slow --entry='python train.py'",
        ]
    )
    seed = parser.add_argument_group("as in seed 003", "each may be written as short as it is clear: --time, --num_n")
    add = seed.add_argument
    add("--config", required=True, type=path, metavar="FILE", help="the config file, with its call cluster_config(…)")
    add("--time_limit", metavar="HH:MM:SS", help="longest run (the server's default)")
    add("--submitter", metavar="NAME", help="who it is from, for the record; the job is yours all the same")
    add("--num_nodes", type=int, default=1, metavar="N", help="number of trainers (1)")
    add("--job_priority", default="normal", metavar="WORD", help=f"{', '.join(PRIORITIES)}, or a number (normal)")
    for flag, (line, usual) in _COUNTS.items():
        add(f"--{flag}", type=int, default=usual, metavar="N", help=f"{line} ({usual})")
    add("--where", default="", metavar="QUEUE", help="the queue to wait in")
    add("--thirdparty", type=path, metavar="FOLDER", help="a folder to send along, with its before_hook.sh")
    add("--job_name", metavar="NAME", help="the job's name (the config's)")
    add = parser.add_argument
    add("--entry", default="", metavar="CMD", help="what to run (entry in cluster_config, else `python CONFIG`)")
    add("--cluster", metavar="NAME", help="where to run it (default)")
    add("--cpus", type=float, metavar="N", help="CPUs for each trainer")
    add("--memory", metavar="SIZE", help="memory for each trainer: 4Gi, 10GB")
    add("--gpus", type=int, metavar="N", help="GPUs for each trainer")
    add("--env", action="append", default=[], metavar="K[=V]", help="set a variable, or copy yours")
    add("--retry", type=int, default=0, metavar="N", help="start it again, up to N times, if it fails (0)")
    add("--server", default="", metavar="URL", help="the server to submit to (the configured one)")
    add("--follow", action="store_true", help="stay until its end, with its log; the exit code tells how it ended")
    add("-v", "--verbose", action="store_true", help="say which server took it")
    add_output(parser)
    parser.in_full = lambda words: _in_full(parser, words)
    parser.set_defaults(run=_cluster_train)


VERBS: Mapping[str, Setup] = {"cluster_train": cluster_train}

_LINES = {
    "trainer_count": "threads that the program may start, as TRAINER_COUNT",
    "num_passes": "passes over the data, as NUM_PASSES",
    "log_period": "batches between two lines of its log, as LOG_PERIOD",
    "dot_period": "batches between two dots in its log, as DOT_PERIOD",
    "saving_period": "passes between two models that it saves, as SAVING_PERIOD",
}
_COUNTS = {flag: (_LINES[flag], usual) for flag, usual in COUNTS.items()}


def _in_full(parser: Parser, typed: Sequence[str]) -> list[str]:
    """Expands abbreviated options, those of cluster_train before others, and drops blank arguments."""
    words = [word for word in typed if word.strip()]
    if typed and typed[-1] and not typed[-1].strip():
        flag = next((word.partition("=")[0] for word in reversed(words) if word.startswith("-")), "the command's name")
        # A job without its queue, its thirdparty and its name is worse than none.
        parser.error(
            f"a blank stands behind the backslash of the line of {flag}, where the shell ends the command: the flags "
            "on the lines below have not arrived, and no job was submitted. Remove the blank: sed -i 's/\\\\ *$/\\\\/' "
            "run.sh"
        )
    return [_option_in_full(parser, word) for word in words]


def _option_in_full(parser: Parser, word: str) -> str:
    name, equals, value = word.partition("=")
    known = [option for option in parser.options() if option.startswith("--")]
    if not name.startswith("--") or name == "--" or name in known:
        return word
    meant = name.replace("-", "_").replace("__", "--", 1)
    for options in (_SEED, known):
        found = [meant] if meant in options else [option for option in options if option.startswith(meant)]
        if len(found) > 1:
            parser.error(f"{name} is short for {' and '.join(found)}: write more of it")
        if found:
            return f"{found[0]}{equals}{value}"
    return word


def _cluster_train(args: Namespace) -> int | None:
    source = Path(args.config).read_bytes()
    config = cluster_config.read(source, args.config)
    thirdparty = Path(args.thirdparty) if args.thirdparty else None
    if thirdparty is not None and not thirdparty.is_dir():
        raise InvalidError(f"--thirdparty {thirdparty} is not a folder", field="thirdparty")
    spec = cluster_train_spec(config, Path(args.config).name, _flags(args, thirdparty), _asked(args))
    with connect(args.server) as client:
        if any(is_at_home(one.source) for one in spec.inputs):
            spec = at_home(spec, client.pfs.datacenters()[0].home)
        job = _send(client, spec, Path(args.config), source, thirdparty)
        _tell_server(client, verbose=args.verbose)
        if args.follow:
            return _follow(client, job)
    tell(job, args.output)
    return None


def _tell_server(client: Client, *, verbose: bool) -> None:
    first, taken = client.profile.server, client.http.profile.server
    if taken != first:
        shell.talk(f"note: {first} does not answer, so {taken} took it: PADDLECLOUD_SERVER={taken} asks that one later")
    elif verbose:
        shell.talk(f"{taken} took it")


def _flags(args: Namespace, thirdparty: Path | None) -> Flags:
    named = thirdparty is not None and (thirdparty / _REQUIREMENTS).is_file()
    return {
        "counts": {flag: getattr(args, flag) for flag in COUNTS},
        "submitter": args.submitter or "",
        "entry": args.entry.strip(),
        "where": args.where,
        "requirements": f"{THIRDPARTY}/{_REQUIREMENTS}" if named else "",
    }


def _asked(args: Namespace) -> Asked:
    asked: Asked = {
        "name": args.job_name or Path(args.config).stem,
        "cluster": args.cluster or "default",
        "nodes": args.num_nodes,
        "priority": priority(args.job_priority),
        "env": environment(args.env),
        "retry": args.retry,
    }
    if wall_time := seconds(args.time_limit, "--time_limit"):
        asked["wall_time"] = wall_time
    if args.cpus is not None:
        asked["cpus"] = args.cpus
    if args.memory is not None:
        asked["memory"] = args.memory
    if args.gpus is not None:
        asked["gpus"] = args.gpus
    return asked


def _send(client: Client, spec: JobSpec, config: Path, source: bytes, thirdparty: Path | None) -> Job:
    """Upload and submit; a job that would be refused is refused before anything is read."""
    try:
        limit_bytes = client.check(spec).upload_limit_bytes
    except InvalidError as error:
        if not (error.field or "").startswith("inputs"):
            raise
        why = error.message.partition(": ")[2].removesuffix(", or say that it is optional")
        raise InvalidError(f"{config}: its work_dir cannot be used: {why}", field="work_dir") from None
    with progress("reading") as bar, bundled(config, source, thirdparty, limit_bytes=limit_bytes, progress=bar) as sent:
        with progress("uploading") as bar:
            return client.submit(sent, spec, progress=bar)


def _follow(client: Client, job: Job) -> int:
    shell.talk(submitted(job))
    try:
        detail = attend(client, job.id)
    except KeyboardInterrupt:
        shell.talk("", *explain.detached(job.id))
        return _INTERRUPTED
    shell.talk(*explain.ending(detail, log_seen=True))
    return job_exit_code(detail)
