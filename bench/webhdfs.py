"""Measures transfers to and from the PFS by WebHDFS with PyPI's hdfs, against our own command.

Both are durable when they return. The HDFS client sends one file after the other, with two requests each.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import folders, server  # noqa: E402
from bench.table import Row, arguments, seconds, tell  # noqa: E402
from paddlecloud.sdk.client import Client  # noqa: E402

FILES = 1000
NAMES = {"large": "1 GiB in one file", "small": f"{FILES:,} files of 4 KiB"}
OURS, THEIRS = "paddlecloud cp", "hdfs by WebHDFS"
_HERE = Path(__file__).parent

Times = dict[str, dict[str, list[float]]]


def main() -> None:
    given = arguments(__doc__ or "", repeats=3)
    times: Times = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory(prefix="paddlecloud-bench-") as work:
        with server.running("", below=Path(work)) as client:
            for kind in NAMES:
                for number in range(given.repeats):
                    _measure(client, Path(work, f"{kind}-{number}"), kind, number, times)
    rows = [Row(f"{what}: {who}", values, "s") for what in times for who, values in times[what].items()]
    tell("webhdfs", rows, _verdict(times), write=given.write)


def _measure(client: Client, work: Path, kind: str, number: int, times: Times) -> None:
    """Measure both uploads, then both downloads; the order alternates from repeat to repeat."""
    sent, home = work / "sent", client.pfs.datacenters()[0].home
    folders.fill(kind, sent, files=FILES)
    theirs = f"/user/{client.profile.user}/hdfs-{kind}-{number}"
    ours = f"{home}/ours-{kind}-{number}"
    up: dict[str, Callable[[], None]] = {
        OURS: lambda: _ours(client, "up", str(sent), ours),
        THEIRS: lambda: _theirs(client, "up", str(sent), theirs),
    }
    down: dict[str, Callable[[], None]] = {
        OURS: lambda: _ours(client, "down", ours, str(work / "ours")),
        THEIRS: lambda: _theirs(client, "down", theirs, str(work / "theirs")),
    }
    for what, ways in ((f"up, {NAMES[kind]}", up), (f"down, {NAMES[kind]}", down)):
        for way in list(ways) if number % 2 else list(reversed(ways)):
            os.sync()
            times[what][way].append(seconds(ways[way]))
    for path in (theirs.replace("/user", home.rpartition("/")[0], 1), ours):
        client.pfs.remove(path, recursive=True)
    shutil.rmtree(work)


def _ours(client: Client, verb: str, source: str, target: str) -> None:
    profile = client.profile
    told = {"server": profile.server, "user": profile.user, "ak": profile.ak, "sk": profile.sk, "password": ""}
    subprocess.run([sys.executable, _HERE / "carry_pfs.py", verb, json.dumps(told), source, target], check=True)


def _theirs(client: Client, verb: str, source: str, target: str) -> None:
    url = client.profile.server + client.accounts.webhdfs().path
    words = [verb, url, client.profile.user, source, target]
    subprocess.run([sys.executable, _HERE / "carry_hdfs.py", *words], check=True, stderr=subprocess.DEVNULL)


def _verdict(times: Times) -> str:
    told = []
    for what, of in times.items():
        ratio = Row("", of[THEIRS], "s").median / Row("", of[OURS], "s").median
        told.append(f"{what}: {ratio:.1f}")
    return f"Times as long as our own command takes: {'; '.join(told)}."


if __name__ == "__main__":
    main()
