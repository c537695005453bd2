"""Measures transfers to and from the PFS by our command, the old client's calls, `cp`, and rclone with S3.

Ours and the old client's calls are durable when they return; `cp` works on the same disk and is followed by a sync, so
that it is durable too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import folders, s3, server  # noqa: E402
from bench.table import Row, arguments, met, seconds, tell  # noqa: E402
from paddlecloud.sdk.client import Client  # noqa: E402

NAMES = {"large": "1 GiB in one file", "small": f"{folders.SMALL_FILES:,} files of 4 KiB"}
CARRY = [sys.executable, str(Path(__file__).with_name("carry_pfs.py"))]
PASSWORD = "only-on-loopback"

Times = dict[str, dict[str, list[float]]]


def main() -> None:
    given = arguments(__doc__ or "", repeats=3)
    peer = s3.programs()
    times: Times = defaultdict(lambda: defaultdict(list))
    for kind in NAMES:
        with _lab(peer) as lab:
            for number in range(given.repeats):
                lab.measure(kind, number, times)
    rows = [Row(f"{what}: {who}", values, "s") for what in times for who, values in times[what].items()]
    tell("pfs", rows, _verdict(times), write=given.write)


class _Lab:
    def __init__(self, work: Path, client: Client, bucket: s3.S3 | None) -> None:
        self._work = work
        self._client = client
        self._bucket = bucket
        self._home = client.pfs.datacenters()[0].home
        client.accounts.change_user(client.profile.user, password=PASSWORD)

    def measure(self, kind: str, number: int, times: Times) -> None:
        """Measure every upload, then every download; the order alternates from repeat to repeat."""
        work = self._work / f"{kind}-{number}"
        folder = work / "sent"
        folders.fill(kind, folder)
        up: dict[str, Callable[[], None]] = {
            "paddlecloud cp": lambda: self._carry("up", str(folder), f"{self._home}/new-{number}"),
            "the old client's calls": lambda: self._carry("old-up", str(folder), f"{self._home}/old-{number}"),
            "cp, then sync": lambda: _copy(folder, work / "copied"),
        }
        down: dict[str, Callable[[], None]] = {
            "paddlecloud cp": lambda: self._carry("down", f"{self._home}/new-{number}", str(work / "new")),
            "the old client's calls": lambda: self._carry("old-down", f"{self._home}/old-{number}", str(work / "old")),
            "cp, then sync": lambda: _copy(work / "copied", work / "back"),
        }
        if bucket := self._bucket:
            up["rclone with S3"] = lambda: bucket.up(folder, f"{kind}-{number}")
            down["rclone with S3"] = lambda: bucket.down(f"{kind}-{number}", work / "theirs")
        for what, ways in ((f"up, {NAMES[kind]}", up), (f"down, {NAMES[kind]}", down)):
            order = list(ways) if number % 2 else list(reversed(ways))
            for way in order:
                os.sync()
                times[what][way].append(seconds(ways[way]))
        shutil.rmtree(work)

    def _carry(self, verb: str, *words: str) -> None:
        profile = self._client.profile
        told = {"server": profile.server, "user": profile.user, "ak": profile.ak, "sk": profile.sk}
        subprocess.run([*CARRY, verb, json.dumps(told | {"password": PASSWORD}), *words], check=True)


@contextmanager
def _lab(peer: s3.Programs | None) -> Iterator[_Lab]:
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paddlecloud-bench-")))
        client = stack.enter_context(server.running("", below=work))
        bucket = stack.enter_context(s3.serving(peer, work)) if peer else None
        yield _Lab(work, client, bucket)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-r", str(source), str(target)], check=True)
    os.sync()


def _verdict(times: Times) -> str:
    medians = {what: {way: Row("", values, "s").median for way, values in of.items()} for what, of in times.items()}
    told = []
    for what, of in medians.items():
        ours = of["paddlecloud cp"]
        others = ", ".join(f"{way} {median / ours:.1f}" for way, median in of.items() if way != "paddlecloud cp")
        told.append(f"{what}: {others}")
    beaten = all(of.get("rclone with S3", float("inf")) > of["paddlecloud cp"] for of in medians.values())
    return f"Goal of being faster than rclone in each: {met(beaten)}. Times as long as ours takes: {'; '.join(told)}."


if __name__ == "__main__":
    main()
