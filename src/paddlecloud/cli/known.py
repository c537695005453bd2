"""What a server knows, for completion: names and ids of jobs, names of groups and queues, paths of the PFS.

Who presses TAB wants neither a wait nor a sentence: a server is asked only if one answers at once, never started, and
whatever goes wrong is silence.
"""

from __future__ import annotations

import re
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING

from paddlecloud.cli import shell
from paddlecloud.cli.parser import Parser, Setup
from paddlecloud.model import pfs
from paddlecloud.model.tree import Kind

if TYPE_CHECKING:
    from paddlecloud.sdk.client import Client

_JOBS = 50
_FILES = 500
_ANSWER_SECONDS = 0.5
_ALL_SECONDS = 3.0
# A shell reads what we offer once more, so a name with anything else in it is left out.
_SAFE_NAME = re.compile(r"[\w.@+-]+", re.ASCII)
_SAFE_PATH = re.compile(r"[\w.@+,:=%/-]+")


def known_jobs(parser: Parser) -> None:
    parser.set_defaults(run=lambda _: _tell(_jobs))


def known_groups(parser: Parser) -> None:
    parser.set_defaults(run=lambda _: _tell(_groups))


def known_queues(parser: Parser) -> None:
    parser.set_defaults(run=lambda _: _tell(_queues))


def known_files(parser: Parser) -> None:
    parser.add_argument("prefix", nargs="?", default="", help="how the path begins")
    parser.set_defaults(run=_known_files)


VERBS: Mapping[str, Setup] = {
    "known_jobs": known_jobs,
    "known_groups": known_groups,
    "known_queues": known_queues,
    "known_files": known_files,
}


def _known_files(args: Namespace) -> None:
    if pfs.is_pfs(args.prefix) and args.prefix != f"/{pfs.ROOT}":
        _tell(lambda client: _paths(client, args.prefix))
    elif f"/{pfs.ROOT}/".startswith(args.prefix):
        shell.say(f"/{pfs.ROOT}/")


def _tell(look: Callable[[Client], Iterator[str]]) -> None:
    """Print what is found in a moment; a server that takes longer is left behind."""
    found: list[str] = []
    asking = threading.Thread(target=lambda: found.extend(_asked(look)), daemon=True)
    asking.start()
    asking.join(_ALL_SECONDS)
    if lines := dict.fromkeys(found):
        shell.say(*lines)


def _asked(look: Callable[[Client], Iterator[str]]) -> list[str]:
    from paddlecloud.model.errors import PaddleCloudError
    from paddlecloud.sdk import profile as profiles
    from paddlecloud.sdk import trust
    from paddlecloud.sdk.client import Client
    from paddlecloud.sdk.connections import BrokenError

    try:
        profile = profiles.load()
        if not profile.server or not profile.identified:
            return []
        trust.connections(profile).request("GET", "/readyz", seconds=_ANSWER_SECONDS).close()
        with Client(profile) as client:
            return list(look(client))
    except (PaddleCloudError, BrokenError, OSError):
        return []


def _jobs(client: Client) -> Iterator[str]:
    jobs = client.list(limit=_JOBS)
    for name in (*(job.spec.name for job in jobs), *(job.id for job in jobs)):
        if _SAFE_NAME.fullmatch(name):
            yield name


def _groups(client: Client) -> Iterator[str]:
    yield from (group.name for group in client.accounts.groups.list())


def _queues(client: Client) -> Iterator[str]:
    yield from (queue.name for queue in client.queues() if _SAFE_NAME.fullmatch(queue.name))


def _paths(client: Client, prefix: str) -> Iterator[str]:
    """What is in the folder that was typed so far, as far as it begins with the rest; a `/` ends a folder's."""
    folder = prefix.rpartition("/")[0]
    names = (
        entry.path.rpartition("/")[2] + ("/" if entry.kind is Kind.FOLDER else "")
        for entry in client.pfs.list(folder)
        if entry.path != "/" + "/".join(pfs.normal(folder))  # a file is listed as itself, and nothing is below it
    )
    # The public folder of the first datacenter has this name, too, which no list shows.
    above = [f"{pfs.PUBLIC}/"] if folder == f"/{pfs.ROOT}" else []
    paths = (f"{folder}/{name}" for name in chain(names, above))
    yield from islice((path for path in paths if path.startswith(prefix) and _SAFE_PATH.fullmatch(path)), _FILES)
