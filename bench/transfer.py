"""Measures uploads and downloads, complete and with 1 % changed, against rclone with SeaweedFS on the same disk.

Our transfers are hashed on both sides, and an upload is durable when it returns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import folders, s3, server  # noqa: E402
from bench.table import Row, arguments, seconds, tell  # noqa: E402
from paddlecloud.sdk.client import Client  # noqa: E402

NAMES = {"large": "1 GiB in one file", "small": f"{folders.SMALL_FILES:,} files of 4 KiB"}
CARRY = [sys.executable, str(Path(__file__).with_name("carry.py"))]
CONFIG = '[clusters.local]\nbackend = "local"\ncpus = 4\nmemory = "16Gi"\n'
REST_SECONDS = 4.0  # files written just now are downloaded in a slower way, since they may still change

Times = defaultdict[str, list[float]]
Ours = Callable[[], None]
Theirs = Callable[[s3.S3], None]


def main() -> None:
    given = arguments(__doc__ or "", repeats=3)
    peer = s3.programs()
    ours: Times = defaultdict(list)
    theirs: Times = defaultdict(list)
    for number in range(given.repeats):
        with _lab(peer, number) as lab:
            lab.measure("large", ours, theirs)
    # Use one server for all: ext4 checks every inode freed in the last minutes before it allocates a new one.
    with _lab(peer) as lab:
        for _ in range(given.repeats):
            lab.measure("small", ours, theirs)
    rows = [
        Row(f"{what}: {who}", times[what], "s")
        for what in ours
        for who, times in (("PaddleCloud", ours), ("rclone", theirs))
        if times[what]
    ]
    tell("transfer", rows, _verdict(ours, theirs), write=given.write)


class _Lab:
    """Both servers, empty, and a disk to work on; `measured` counts repeats, including earlier ones."""

    def __init__(self, work: Path, client: Client, bucket: s3.S3 | None, measured: int) -> None:
        self._work = work
        self._client = client
        self._bucket = bucket
        self._measured = measured

    def measure(self, kind: str, ours: Times, theirs: Times) -> None:
        self._measured += 1
        work = self._work / str(self._measured)
        work.mkdir()
        self._measure_up(kind, work / "sent", ours, theirs)
        self._measure_down(kind, work, ours, theirs)

    def _measure_up(self, kind: str, folder: Path, ours: Times, theirs: Times) -> None:
        folders.fill(kind, folder)
        for what in (f"up, {NAMES[kind]}", f"up again with 1 % changed, {NAMES[kind]}"):
            self._measure_both(
                (ours[what], lambda: _carry(self._client, "up", str(folder))),
                (theirs[what], lambda bucket: bucket.up(folder, str(self._measured))),
            )
            folders.change(kind, folder)

    def _measure_down(self, kind: str, work: Path, ours: Times, theirs: Times) -> None:
        with _Job(self._client, kind, work / "gate") as job:
            for what in (f"down, {NAMES[kind]}", f"down again with 1 % changed, {NAMES[kind]}"):
                self._measure_both(
                    (ours[what], lambda: _carry(self._client, "down", job.id, str(work / "ours"))),
                    (theirs[what], lambda bucket: bucket.down(str(self._measured), work / "theirs")),
                )
                if self._bucket:
                    self._bucket.up(work / "sent", str(self._measured))
                job.change()

    def _measure_both(self, ours: tuple[list[float], Ours], theirs: tuple[list[float], Theirs]) -> None:
        """Measure both in turn; the order alternates from repeat to repeat, since the first finds a cold cache."""
        sides = [ours]
        if bucket := self._bucket:
            sides.append((theirs[0], lambda: theirs[1](bucket)))
        for times, action in sides if self._measured % 2 else reversed(sides):
            times.append(_settled(action))


@contextmanager
def _lab(peer: s3.Programs | None, measured: int = 0) -> Iterator[_Lab]:
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paddlecloud-bench-")))
        client = stack.enter_context(server.running(CONFIG, below=work))
        bucket = stack.enter_context(s3.serving(peer, work)) if peer else None
        yield _Lab(work, client, bucket, measured)


class _Job:
    """A job that writes the files to download, and changes them on request."""

    def __init__(self, client: Client, kind: str, gate: Path) -> None:
        self._client = client
        self._gate = gate
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "folders.py").write_bytes(Path(folders.__file__).read_bytes())
            command = f'python3 folders.py {kind} "$OUTPUT_PATH" {gate}'
            self.id = client.submit(command=command, folder=folder).id
        self._said = (line for piece in client.logs(self.id, follow=True) for line in piece.text.split())
        self._hear("filled")

    def change(self) -> None:
        if not self._gate.exists():
            self._gate.touch()
            self._hear("changed")

    def _hear(self, word: str) -> None:
        heard = next(self._said, None)
        if heard != word:
            raise SystemExit(f"{self.id} said {heard!r} instead of {word!r}: nothing was measured")
        time.sleep(REST_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._gate.touch()
        self._client.wait(self.id)


def _settled(action: Callable[[], None]) -> float:
    """Time an action after all earlier writes have reached the disk."""
    os.sync()
    return seconds(action)


def _carry(client: Client, verb: str, *words: str) -> None:
    profile = client.http.profile
    told = json.dumps({"server": profile.server, "user": profile.user, "ak": profile.ak, "sk": profile.sk})
    subprocess.run([*CARRY, verb, told, *words], check=True)


def _verdict(ours: Times, theirs: Times) -> str:
    if not any(theirs.values()):
        return "rclone and SeaweedFS could not be installed here: there is nothing to compare with."
    ratios = {what: Row("", theirs[what], "s").median / Row("", ours[what], "s").median for what in ours}
    goal = "met" if min(ratios.values()) > 1 else "missed"
    compared = "; ".join(f"{what}: {ratio:.1f}" for what, ratio in ratios.items())
    return f"Goal of being faster in each: {goal}. Times as fast as rclone: {compared}."


if __name__ == "__main__":
    main()
