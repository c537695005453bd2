"""Seed 001's verbs that change something: submit with its single-dash flags, registry, delete, publish."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from paddlecloud.cli import shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.parser import Parser, Setup
from paddlecloud.cli.pfs import tell_renamed
from paddlecloud.cli.printable import printable
from paddlecloud.cli.progress import progress
from paddlecloud.model import paddlepaddle, pfs
from paddlecloud.model.errors import BY_CODE, InvalidError, NotFoundError
from paddlecloud.model.units import format_duration

if TYPE_CHECKING:
    from paddlecloud.model.job import Job, JobSpec
    from paddlecloud.sdk.client import Client

Item = Mapping[str, Any]

# Flags of the modern set that do not go with the old ones, and what to do instead.
_INSTEAD = {
    "name": "write -jobname",
    "nodes": "write -parallelism",
    "cpus": "write -cpu and -pscpu",
    "memory": "write -memory and -psmemory",
    "gpus": "write -gpu",
    "job-type": "write -gpu",
    "distribute": "write -pservers",
    "file": "write its fields as flags",
    "no-files": "name the package",
    "keep-on-failure": "leave it out, a package stays in the PFS as its tasks leave it",
}
# Flags of the modern set that say what no old one does.
_BESIDE = ("cluster", "queue", "priority", "retry", "hang", "requirements", "python", "slurm", "slurm_env")

_FLAGS: Sequence[tuple[str, str, type, str]] = (
    ("jobname", "NAME", str, "the job's name (paddle-cluster-job): letters, digits, - and ."),
    ("parallelism", "N", int, "number of trainers, 1 or more (1)"),
    ("cpu", "N", int, "CPUs for each trainer (1)"),
    ("gpu", "N", int, "GPUs for each trainer (0)"),
    ("memory", "SIZE", str, "memory for each trainer (1Gi)"),
    ("pservers", "N", int, "number of parameter servers, 0 for none (as many as trainers)"),
    ("pscpu", "N", int, "CPUs for each parameter server (1)"),
    ("psmemory", "SIZE", str, "memory for each parameter server (1Gi)"),
    ("entry", "CMD", str, "what a trainer runs, in the package; this or -topology"),
    ("psentry", "CMD", str, "what a parameter server runs (`paddle pserver` where there is one, else it idles)"),
    ("topology", "FILE", str, "a v1 config, run by `python FILE` if there is no entry"),
    ("passes", "N", int, "number of passes, as PADDLE_INIT_NUM_PASSES (1)"),
    ("image", "IMAGE", str, "the image to run in, where a cluster runs images"),
    ("registry", "NAME", str, "the registry secret to pull the image with: `paddlecloud get registry` lists yours"),
    ("datacenter", "NAME", str, "where in the PFS the package is sent (that of ~/.paddle/config, else the first)"),
)


def registry(parser: Parser) -> None:
    lines = (("name", "what you call it, for submit -registry"), ("username", "your name there"))
    for name, line in (*lines, ("server", "its address: registry.example.org")):
        parser.add_argument(f"-{name}", f"--{name}", required=True, metavar=name.upper(), help=line)
    parser.add_argument(
        "-password", "--password", metavar="PASSWORD", help="your password there; left out: you are asked for it"
    )
    parser.epilog = "\n".join(
        [
            "The server keeps it encrypted and tells it nobody. Use it, list yours, forget one:",
            "  paddlecloud submit -image registry.example.org/me/train -registry NAME …",
            "  paddlecloud get registry",
            "  paddlecloud delete registry NAME",
        ]
    )
    parser.set_defaults(run=_registry)


def delete(parser: Parser) -> None:
    parser.branch({"registry": ("forget a registry secret", _delete_arguments)}, metavar="WHAT")


def publish(parser: Parser) -> None:
    parser.add_argument(
        "path",
        nargs="?",
        metavar="PATH",
        help="a file of yours in the PFS; left out: what you have published is listed",
    )
    parser.add_argument("--remove", action="store_true", help="take it back: nobody reads PATH by its address any more")
    parser.epilog = "It prints the address, by which anybody who has it reads the file as it is then, without a login."
    parser.set_defaults(run=_publish)


VERBS: Mapping[str, Setup] = {"registry": registry, "delete": delete, "publish": publish}


def add_flags(parser: Parser) -> None:
    """Seed 001's flags of submit."""
    parser.usage = f"{parser.usage}\n       {parser.prog} -jobname NAME [flags] -entry CMD PACKAGE"
    group = parser.add_argument_group(
        "as in PaddlePaddle Cloud",
        "PACKAGE is a folder here, which is sent, or one of the PFS (/pfs/…), which is run where it is",
    )
    for name, metavar, kind, line in _FLAGS:
        names = (f"-{name}", "-name") if name == "jobname" else (f"-{name}",)
        group.add_argument(*names, dest=f"old_{name}", type=kind, metavar=metavar, help=line)
    group.add_argument(
        "-faulttolerant", dest="old_faulttolerant", action="store_true", help="start a failed task again, up to 3 times"
    )
    for name in ("min_instance", "max_instance"):
        group.add_argument(f"-{name}", dest=f"old_{name}", type=int, help=argparse.SUPPRESS)


def is_meant(args: Namespace) -> bool:
    """Whether submit was typed as in PaddlePaddle Cloud."""
    return any(value not in (None, False) for name, value in vars(args).items() if name.startswith("old_"))


def submit(args: Namespace) -> None:
    """Send the package to its place in the PFS, unless it is there, and submit the job."""
    if not args.folder or args.command:
        raise InvalidError("name the package, a folder here or below /pfs, behind the flags; -entry says what to run")
    _refuse_newer(args)
    asked = {
        name: getattr(args, f"old_{name}")
        for name in (*(flag for flag, *_ in _FLAGS), "faulttolerant")
        if getattr(args, f"old_{name}") is not None
    }
    asked["name"] = asked.pop("jobname", "paddle-cluster-job")
    asked.setdefault("pservers", asked.get("parallelism", 1))
    # What cannot be meant is said before anybody is asked.
    paddlepaddle.job_spec(asked, package="")
    with connect() as client:
        datacenter = _datacenter(client, args.old_datacenter, args.folder)
        asked["datacenter"] = datacenter["name"]
        package = _package(client, args.folder, f"{datacenter['home']}/jobs/{asked['name']}")
        spec = _with_newer(paddlepaddle.job_spec(asked, package=package), args)
        client.check(spec)
        if not pfs.is_pfs(args.folder):
            _send(client, Path(args.folder), package)
        if args.compat or paddlepaddle.read_entry(asked.get("entry", "")).compat:
            spec = _send_compatible(client, f"{datacenter['home']}/jobs/{asked['name']}", spec)
        job = client.submit(None, spec)
    show.one(job, args.output, job.id, lambda one: f"{one.spec.name} submited.")
    if args.output in ("table", "wide") and job.wall_time_seconds is not None:
        shell.talk(f"{job.spec.name} may run for {format_duration(job.wall_time_seconds)}")
    if spec.image:
        _tell_image(client, job)


def _refuse_newer(args: Namespace) -> None:
    """Flags of the modern set that say what one of these says, in another word."""
    for flag, instead in _INSTEAD.items():
        if getattr(args, flag.replace("-", "_")) not in (None, False):
            raise InvalidError(f"--{flag} does not go with PaddlePaddle Cloud's flags: {instead}", field=flag)


def _with_newer(spec: JobSpec, args: Namespace) -> JobSpec:
    """The job with what only flags of the modern set can say."""
    from paddlecloud.cli.submit import flags

    asked = flags(args)
    return replace(
        spec,
        env={**spec.env, **asked.get("env", {})},
        wall_time_seconds=asked.get("wall_time"),
        **{name: asked[name] for name in _BESIDE if name in asked},
    )


def _package(client: Client, named: str, sent_to: str) -> str:
    if not pfs.is_pfs(named):
        if not Path(named).is_dir():
            raise InvalidError(f"{named} is not a folder: name the one with the training program", field="package")
        client.pfs.make_folder(sent_to)
        return sent_to
    found = client.pfs.stat(named)
    if found is None:
        raise InvalidError(f"package not exist in cloud: {named}", field="package")
    return found.path


def _send(client: Client, folder: Path, package: str) -> None:
    with progress("uploading") as bar:
        sent = client.pfs.put(folder, package, progress=bar)
    for link in sent.skipped:
        shell.talk(f"left out {link}: links and devices are not sent")


def _send_compatible(client: Client, folder: str, spec: JobSpec) -> JobSpec:
    """Put what programs of PaddlePaddle v2 look for below a folder of the user's; the job that finds it there."""
    from paddlecloud.sdk import compat

    place = f"{folder}/{compat.FOLDER}"
    with compat.written() as written, progress("uploading") as bar:
        client.pfs.make_folder(place)
        client.pfs.put(written, place, progress=bar)
    return compat.adapted(spec, place)


def _tell_image(client: Client, job: Job) -> None:
    backends = {cluster.backend for cluster in client.clusters()}
    if backends == {"local"}:
        shell.talk(f"note: this server runs no images, so {job.spec.image} is not used: the job runs on its machine")


def _datacenter(client: Client, asked: str | None, package: str) -> Mapping[str, str]:
    """The datacenter that is meant, by the name that the user has for it, which the manual lets be any word."""
    homes = {one.name: one.home for one in client.pfs.datacenters()}
    in_path = next(iter(pfs.normal(package)[1:2]), pfs.PUBLIC) if pfs.is_pfs(package) else pfs.PUBLIC
    wanted = asked or client.profile.datacenter or (next(iter(homes)) if in_path == pfs.PUBLIC else in_path)
    tell_renamed(client.pfs, [f"/{pfs.ROOT}/{wanted}", package])
    try:
        name = pfs.datacenter(wanted, list(homes))
    except NotFoundError as error:
        raise InvalidError(error.message, field="datacenter") from None
    return {"name": wanted, "home": homes[name]}


def _delete_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="as `paddlecloud get registry` lists it")
    parser.set_defaults(run=_delete_registry)


def _registry(args: Namespace) -> None:
    from paddlecloud.cli import ask

    password = args.password if args.password is not None else ask.password(f"password of {args.username}: ")
    with connect() as client:
        client.registries.add(name=args.name, server=args.server, username=args.username, password=password)
    shell.say(f"registry: [{args.name}] is added")


def _delete_registry(args: Namespace) -> None:
    with connect() as client:
        client.registries.remove(args.name)
    shell.say(f"registry: [{args.name}] is deleted")


def _publish(args: Namespace) -> None:
    if args.remove and args.path is None:
        raise InvalidError("publish --remove needs a PATH: `paddlecloud publish` lists what you have published")
    with connect() as client:
        tell_renamed(client.pfs, [args.path or ""])
        if args.remove:
            ask_old(client, "DELETE", "/api/v1/publish/", {"path": args.path})
            shell.say(f"{args.path} is not published any more")
            return
        if args.path is not None:
            shell.say(ask_old(client, "POST", "/api/v1/publish/", {"path": args.path})["url"])
            return
        for item in items(client, "/api/v1/publish/"):
            shell.say(f"{item['url']}\t{printable(item['path'])}")


def items(client: Client, path: str, **query: str) -> Sequence[Item]:
    found: Sequence[Item] = ask_old(client, "GET", path, query=query)["items"]
    return found


def ask_old(
    client: Client, method: str, path: str, body: Item | None = None, query: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A question in the old language: what it shows is counted in one place, on the server."""
    import json

    sent = b"" if body is None else json.dumps(body).encode()
    answer: dict[str, Any] = json.loads(client.http.request(method, path, query=query, body=sent).data)
    if answer.get("code", 200) != 200:
        raise BY_CODE.get(str(answer.get("error")), InvalidError)(str(answer.get("msg", "")))
    return answer
