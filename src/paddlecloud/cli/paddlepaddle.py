"""Seed 001's verbs, as its users type them: submit with single-dash flags, get, registry, delete, publish."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecloud.cli import shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.parser import Parser, Setup, add_output
from paddlecloud.cli.progress import progress
from paddlecloud.cli.show import Column
from paddlecloud.model import paddlepaddle, pfs
from paddlecloud.model.errors import InvalidError, NotFoundError

if TYPE_CHECKING:
    from paddlecloud.model.job import Job, JobSpec
    from paddlecloud.sdk.client import Client

Item = Mapping[str, Any]

# Flags of the modern set that one of the old ones says, and that one.
_INSTEAD = {
    "name": "-jobname",
    "nodes": "-parallelism",
    "cpus": "-cpu and -pscpu",
    "memory": "-memory and -psmemory",
    "gpus": "-gpu",
    "job-type": "-gpu",
    "distribute": "-pservers",
    "file": "its fields as flags",
    "no-files": "the package",
}

_NIL = "<nil>"
_FLAGS: Sequence[tuple[str, str, type, str]] = (
    ("jobname", "NAME", str, "the job's name: letters, digits, - and . (paddle-cluster-job)"),
    ("parallelism", "N", int, "number of trainers (1)"),
    ("cpu", "N", int, "CPUs for each trainer (1)"),
    ("gpu", "N", int, "GPUs for each trainer (0)"),
    ("memory", "SIZE", str, "memory for each trainer (1Gi)"),
    ("pservers", "N", int, "number of parameter servers (as many as trainers)"),
    ("pscpu", "N", int, "CPUs for each parameter server (1)"),
    ("psmemory", "SIZE", str, "memory for each parameter server (1Gi)"),
    ("entry", "CMD", str, "what a trainer runs"),
    ("psentry", "CMD", str, "what a parameter server runs (the entry, with TRAINING_ROLE=PSERVER)"),
    ("topology", "FILE", str, "a v1 config, run by `python FILE` if there is no entry"),
    ("passes", "N", int, "number of passes, as PADDLE_INIT_NUM_PASSES (1)"),
    ("image", "IMAGE", str, "the image to run, where a cluster runs images"),
    ("registry", "NAME", str, "the registry secret to pull it with"),
    ("datacenter", "NAME", str, "whose home the package is sent to (the first, or that of ~/.paddle/config)"),
)


def get(parser: Parser) -> None:
    parser.branch(
        {
            "jobs": ("your jobs", _setup(_get_jobs)),
            "workers": ("the trainers of a job: get workers NAME", _workers_arguments),
            "quota": ("what you may have", _setup(_get_quota)),
            "registry": ("your registry secrets", _setup(_get_registry)),
        }
    )


def registry(parser: Parser) -> None:
    for name, line in (("name", "what to call it"), ("username", "your name there"), ("server", "its address")):
        parser.add_argument(f"-{name}", f"--{name}", required=True, metavar=name.upper(), help=line)
    parser.add_argument("-password", "--password", metavar="PASSWORD", help="left out: you are asked for it")
    parser.set_defaults(run=_registry)


def delete(parser: Parser) -> None:
    parser.branch({"registry": ("forget a registry secret: delete registry NAME", _delete_arguments)})


def publish(parser: Parser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", help="a file of yours; left out: what you have published")
    parser.add_argument("--remove", action="store_true", help="let nobody read PATH by its address any more")
    parser.set_defaults(run=_publish)


VERBS: Mapping[str, Setup] = {"get": get, "registry": registry, "delete": delete, "publish": publish}


def add_flags(parser: Parser) -> None:
    """Seed 001's flags of submit."""
    group = parser.add_argument_group("as in PaddlePaddle Cloud", "paddlecloud submit -jobname my-job -entry … PACKAGE")
    for name, metavar, kind, line in _FLAGS:
        names = (f"-{name}", "-name") if name == "jobname" else (f"-{name}",)
        group.add_argument(*names, dest=f"old_{name}", type=kind, metavar=metavar, help=line)
    group.add_argument(
        "-faulttolerant", dest="old_faulttolerant", action="store_true", help="a failed task is started again"
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
    paddlepaddle.check_name(asked["name"])
    with connect() as client:
        datacenter = _datacenter(client, args.old_datacenter)
        asked["datacenter"] = datacenter["name"]
        package = _package(client, args.folder, f"{datacenter['home']}/jobs/{asked['name']}")
        spec = _with_newer(paddlepaddle.job_spec(asked, package=package), args)
        client.check(spec)
        if not pfs.is_pfs(args.folder):
            _send(client, Path(args.folder), package)
        job = client.submit(None, spec)
    show.one(job, args.output, job.id, lambda one: f"{one.spec.name} submited.")
    if spec.image:
        _tell_image(client, job)


def _refuse_newer(args: Namespace) -> None:
    """Flags of the modern set that say what one of these says, in another word."""
    for flag, instead in _INSTEAD.items():
        if getattr(args, flag.replace("-", "_")) not in (None, False):
            raise InvalidError(f"--{flag} does not go with PaddlePaddle Cloud's flags: write {instead}", field=flag)


def _with_newer(spec: JobSpec, args: Namespace) -> JobSpec:
    """The job with what only flags of the modern set can say."""
    from paddlecloud.cli.submit import environment
    from paddlecloud.sdk.spec import seconds

    return replace(
        spec,
        cluster=args.cluster or spec.cluster,
        env={**spec.env, **environment(args.env)},
        wall_time_seconds=seconds(args.time_limit, "--time-limit"),
        priority=args.priority or 0,
    )


def _package(client: Client, named: str, sent_to: str) -> str:
    if not pfs.is_pfs(named):
        if not Path(named).is_dir():
            raise InvalidError(f"{named} is not a folder: name the one with the training program", field="package")
        client.pfs.make_folder(sent_to)
        return sent_to
    return "/" + "/".join(pfs.normal(named))


def _send(client: Client, folder: Path, package: str) -> None:
    with progress("uploading") as bar:
        sent = client.pfs.put(folder, package, progress=bar)
    for link in sent.skipped:
        shell.talk(f"left out {link}: links and devices are not sent")


def _tell_image(client: Client, job: Job) -> None:
    backends = {cluster.backend for cluster in client.clusters()}
    if backends == {"local"}:
        shell.talk(f"note: this server runs no images, so {job.spec.image} is not used: the job runs on its machine")


def _datacenter(client: Client, asked: str | None) -> Mapping[str, str]:
    found = client.pfs.datacenters()
    wanted = asked or client.profile.datacenter or found[0].name
    for one in found:
        if one.name == wanted:
            return {"name": one.name, "home": one.home}
    if len(found) == 1 and not asked:
        # The manual lets the name in ~/.paddle/config be any word.
        shell.talk(f"note: ~/.paddle/config calls its datacenter {wanted!r}; this server has one, {found[0].name}")
        return {"name": found[0].name, "home": found[0].home}
    known = ", ".join(one.name for one in found)
    raise InvalidError(f"there is no datacenter {wanted!r}: this server has {known}", field="datacenter")


def _setup(run: Any) -> Setup:
    def setup(parser: Parser) -> None:
        add_output(parser)
        parser.set_defaults(run=run)

    return setup


def _workers_arguments(parser: Parser) -> None:
    parser.add_argument("job", metavar="NAME", help="the job's name")
    add_output(parser)
    parser.set_defaults(run=_get_workers)


def _delete_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.set_defaults(run=_delete_registry)


def _get_jobs(args: Namespace) -> None:
    with connect() as client:
        pservers = {item["metadata"]["name"]: item["status"] for item in _items(client, "/api/v1/pservers/")}
        answer = _ask(client, "GET", "/api/v1/jobs/")
    shown: list[Item] = [
        *({"item": item} for item in answer["items"]),
        *({"gone": one} for one in answer["terminating"]),
    ]
    rows: list[Item] = [{"number": number, **row} for number, row in enumerate(shown)]

    def of_pservers(row: Item, field: str) -> str:
        return _nil(pservers.get(f"{_job_name(row)}-pserver", {}).get(field))

    columns: list[Column[Item]] = [
        Column("NUM", lambda row: str(row["number"])),
        Column("NAME", _job_name),
        Column("SUCC", lambda row: _status(row, "succeeded")),
        Column("FAIL", lambda row: _status(row, "failed")),
        Column("START", lambda row: _status(row, "start_time")),
        Column("COMP", lambda row: _status(row, "completion_time")),
        Column("ACTIVE", lambda row: "Terminating" if "gone" in row else _status(row, "active")),
        Column("PS_READY", lambda row: of_pservers(row, "ready_replicas"), drop=2),
        Column("PS_TOTAL", lambda row: of_pservers(row, "replicas"), drop=3),
    ]
    show.many(rows, columns, args.output, _job_name, "no jobs")


def _get_workers(args: Namespace) -> None:
    with connect() as client:
        found = _items(client, "/api/v1/workers/", jobname=args.job)
    if not found:
        raise NotFoundError(f"no job {args.job!r} of yours; `paddlecloud get jobs` lists them", field="job")

    def terminated(item: Item, field: str) -> str:
        ended = item["status"]["container_statuses"][0]["state"]["terminated"]
        return _nil(ended and ended[field])

    columns: list[Column[Item]] = [
        Column("NAME", _name),
        Column("STATUS", lambda item: _nil(item["status"]["phase"])),
        Column("START", lambda item: _nil(item["status"]["start_time"])),
        Column("EXIT_CODE", lambda item: terminated(item, "exit_code"), drop=2),
        Column("MSG", lambda item: terminated(item, "message"), drop=1),
    ]
    show.many(found, columns, args.output, _name)


def _get_quota(args: Namespace) -> None:
    with connect() as client:
        found = _items(client, "/api/v1/quota/")
    lines = {
        "Memory": "requests.memory",
        "CPU": "requests.cpu",
        "GPU": "alpha.kubernetes.io/nvidia-gpu",
        "MaxParallism": "pods",
    }
    rows: list[Item] = [
        row
        for item in found
        for row in (
            {"resource": "-----", "limit": "-----"},
            *({"resource": name, "limit": item["status"]["hard"][key]} for name, key in lines.items()),
        )
    ]
    columns: list[Column[Item]] = [
        Column("RESOURCE", lambda row: row["resource"]),
        Column("LIMIT", lambda row: row["limit"]),
    ]
    show.many(rows, columns, args.output, lambda row: row["resource"])


def _get_registry(args: Namespace) -> None:
    with connect() as client:
        found = client.registries.list()
    columns: list[Column[tuple[int, Any]]] = [
        Column("ID", lambda row: str(row[0])),
        Column("NAME", lambda row: row[1].name),
        Column("DATA", lambda row: show.utc_time(row[1].created_at)),
        Column("SERVER", lambda row: row[1].server, wide=True),
        Column("USERNAME", lambda row: row[1].username, wide=True),
    ]
    if args.output in ("json", "yaml"):
        show.many(found, [], args.output, lambda one: one.name)
        return
    show.many(list(enumerate(found)), columns, args.output, lambda row: str(row[1].name), "no registry secrets")


def _registry(args: Namespace) -> None:
    from paddlecloud.cli import ask

    password = args.password if args.password is not None else ask.password(f"password of {args.username}: ")
    with connect() as client:
        client.registries.add(name=args.name, server=args.server, username=args.username, password=password)


def _delete_registry(args: Namespace) -> None:
    with connect() as client:
        client.registries.remove(args.name)
    print(f"registry: [{args.name}] is deleted")


def _publish(args: Namespace) -> None:
    if args.remove and args.path is None:
        raise InvalidError("publish --remove needs a PATH: `paddlecloud publish` lists what you have published")
    with connect() as client:
        if args.remove:
            _ask(client, "DELETE", "/api/v1/publish/", {"path": args.path})
            print(f"{args.path} is not published any more")
            return
        if args.path is not None:
            print(_ask(client, "POST", "/api/v1/publish/", {"path": args.path})["url"])
            return
        for item in _items(client, "/api/v1/publish/"):
            print(f"{item['url']}\t{item['path']}")


def _items(client: Client, path: str, **query: str) -> Sequence[Item]:
    found: Sequence[Item] = _ask(client, "GET", path, query=query)["items"]
    return found


def _ask(
    client: Client, method: str, path: str, body: Item | None = None, query: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A question in the old language: what it shows is counted in one place, on the server."""
    import json

    sent = b"" if body is None else json.dumps(body).encode()
    answer: dict[str, Any] = json.loads(client.http.request(method, path, query=query, body=sent).data)
    if answer.get("code", 200) != 200:
        raise InvalidError(str(answer.get("msg", "")))
    return answer


def _name(item: Item) -> str:
    return str(item["metadata"]["name"])


def _job_name(row: Item) -> str:
    return str(row["gone"]) if "gone" in row else _name(row["item"]).removesuffix("-trainer")


def _status(row: Item, field: str) -> str:
    return _NIL if "gone" in row else _nil(row["item"]["status"][field])


def _nil(value: object) -> str:
    return _NIL if value is None else str(value)
