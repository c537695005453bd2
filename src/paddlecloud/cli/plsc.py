"""The verb plsc: seed 000's example as one command. It puts the job's folder together, with pictures, and submits it.

The example is what examples/plsc of the repository is, and is installed with the command.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import cast

from paddlecloud.cli import shell
from paddlecloud.cli.connect import connect
from paddlecloud.cli.parser import Parser, Setup, add_output, count, new_folder, path
from paddlecloud.cli.progress import progress
from paddlecloud.cli.submit import add_settings, flags, send, tell
from paddlecloud.model.errors import ConfigError, InvalidError
from paddlecloud.sdk.spec import Asked, job_spec

CLASSES = 10_000
TRAINERS = 2
SMALL = {"classes": 300, "passes": 12, "batch": 64}
_SMALL_RATE = 0.1
_PARTIAL = 0.1
_PICTURE_BYTES = 32 * 32 * 3
_PACKAGE = Path(__file__).parents[1]
_PLACES = (_PACKAGE / "examples" / "plsc", _PACKAGE.parents[1] / "examples" / "plsc")  # installed; in the repository
_LEFT_BEHIND = shutil.ignore_patterns("__pycache__", "data", "resume", "output")
_MARK = "complete.json"


def plsc(parser: Parser) -> None:
    parser.usage = f"{parser.prog} [options]"
    parser.epilog = "\n".join(
        [
            "examples:",
            f"  {parser.prog} --small                      a minute on two cores",
            f"  {parser.prog}                              10,000 people, two trainers",
            f"  {parser.prog} --partial-fc                 the same with a tenth of the classes in each step",
            f"  {parser.prog} --images faces --passes 20   pictures of your own",
            f"  {parser.prog} --resume results --trainers 3 --passes 12",
        ]
    )
    parser.add_argument("--small", action="store_true", help=f"{SMALL['classes']} people, {SMALL['passes']} passes")
    parser.add_argument("--classes", type=count, metavar="N", help=f"people whose pictures are made ({CLASSES})")
    parser.add_argument("--passes", type=count, metavar="N", help="passes over all pictures (10; with --partial-fc 14)")
    parser.add_argument(
        "--partial-fc",
        nargs="?",
        type=float,
        const=_PARTIAL,
        metavar="SHARE",
        help=f"of the classes that take part in a step; without a number {_PARTIAL}",
    )
    parser.add_argument("--images", type=path, metavar="FOLDER", help="your own pictures: zip files and label.txt")
    parser.add_argument("--resume", type=path, metavar="FOLDER", help="go on from these results of an earlier job")
    parser.add_argument("--out", type=new_folder, metavar="DIR", help="keep the example in this new folder")
    add_settings(parser, name="plsc", nodes="--trainers", count=TRAINERS)
    add_output(parser)
    parser.set_defaults(run=_plsc)


VERBS: Mapping[str, Setup] = {"plsc": plsc}


def _plsc(args: Namespace) -> None:
    args.command = ["sh", "run.sh", *_words(args)]
    asked = {"name": "plsc", "nodes": TRAINERS, **flags(args)}
    spec = job_spec(cast(Asked, asked))
    with connect() as client:
        client.check(spec)  # before any picture is made
        with _example(args) as folder:
            job = send(client, spec, folder)
    tell(job, args.output)


def _words(args: Namespace) -> list[str]:
    """What train.py is told."""
    if args.images and args.classes is not None:
        raise InvalidError("--classes is for pictures that are made; label.txt says it of your own", field="classes")
    if args.partial_fc is not None and not 0 < args.partial_fc <= 1:
        raise InvalidError(
            f"--partial-fc {args.partial_fc:g} is no share: write more than 0, and 1 at most", field="partial_fc"
        )
    if args.passes == 0:
        raise InvalidError("--passes 0 is too few: there must be 1 at least", field="passes")
    given = {
        "--classes": None if args.images else _classes(args),
        "--passes": SMALL["passes"] if args.small and args.passes is None else args.passes,
        "--batch": SMALL["batch"] if args.small else None,
        "--rate": _SMALL_RATE if args.small else None,
        "--partial-fc": args.partial_fc,
        "--resume": _sent_resume(args.resume),
    }
    return [word for name, value in given.items() if value is not None for word in (name, str(value))]


def _classes(args: Namespace) -> int:
    if args.classes is None:
        return SMALL["classes"] if args.small else CLASSES
    if args.classes < 1:
        raise InvalidError("--classes 0 is too few: there must be 1 at least", field="classes")
    return int(args.classes)


@contextmanager
def _example(args: Namespace) -> Iterator[Path]:
    """The folder to send, in a copy of the example that is kept where that was asked for."""
    if args.out and Path(args.out).exists():
        raise InvalidError(f"{args.out} exists: --out must name a new folder", field="out")
    with tempfile.TemporaryDirectory(prefix="paddlecloud-plsc-") as temporary:
        whole = Path(args.out or Path(temporary, "plsc"))
        shutil.copytree(_installed(), whole, ignore=_LEFT_BEHIND)
        folder = whole / "job"
        if args.images:
            _take_images(Path(args.images), folder / "data")
        else:
            _make_images(_classes(args), folder)
        if _sent_resume(args.resume) == "resume":
            _take_newest(Path(args.resume), folder / "resume")
        yield folder


def _installed() -> Path:
    for place in _PLACES:
        if (place / "job" / "train.py").exists():
            return place
    raise ConfigError(f"the example is not at {_PLACES[0]}: install paddlecloud again")


def _take_images(source: Path, target: Path) -> None:
    if not (source / "label.txt").is_file() or not any(source.rglob("*.zip")):
        raise InvalidError(
            f"{source} is not a folder of pictures: it needs zip files, and a label.txt with a line `name label` for "
            "each picture",
            field="images",
        )
    shutil.copytree(source, target, copy_function=_link)


def _make_images(classes: int, job: Path) -> None:
    """Made here, where that can be done; else each trainer makes the same ones."""
    if importlib.util.find_spec("numpy") is None or importlib.util.find_spec("PIL") is None:
        shell.talk("the trainers make the pictures: here that would need the packages numpy and pillow")
        return
    maker = _module(job / "make_data.py")
    with progress("making pictures", again=None) as bar:
        bar.total(classes * maker.PICTURES * _PICTURE_BYTES)
        maker.make(str(job / "data"), classes, advance=lambda pictures: bar.advance(pictures * _PICTURE_BYTES))


def _module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _sent_resume(given: str | None) -> str | None:
    """Where trainers find what they go on from: a path of the PFS as it is, else what is sent with the job."""
    return given if given is None or given.startswith("/pfs/") else "resume"


def _take_newest(results: Path, target: Path) -> None:
    """Of each trainer the newest pass that all of them completed, and nothing else of the results."""
    ranks = _ranks(results)
    passes = [{folder.parent.name for folder in rank.glob(f"*/{_MARK}")} for rank in ranks]
    common = sorted(set.intersection(*passes), key=int) if passes else []
    if not common:
        raise InvalidError(
            f"{results} holds no pass that all of its trainers completed: name a folder that `paddlecloud cp JOB "
            "FOLDER` has brought",
            field="resume",
        )
    for rank in ranks:
        shutil.copytree(rank / common[-1], target / rank.name / common[-1], copy_function=_link)
        for figures in rank.glob("figures.json"):
            _link(str(figures), str(target / rank.name / figures.name))


def _ranks(results: Path) -> list[Path]:
    """The folders rank-0, rank-1, … of a job's results, or of the one job in a folder of results."""
    found = [folder for folder in results.glob("rank-*") if re.fullmatch(r"rank-\d+", folder.name)]
    below = [*results.glob("job-*"), *results.glob("output")]
    if not found and len(below) == 1:
        return _ranks(below[0])
    return found


def _link(source: str, target: str) -> None:
    """A second name for the same bytes, where the disk allows it: pictures may be large."""
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copy2(source, target)
