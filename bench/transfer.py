"""1 GiB from a folder into the server, hashed, checked and durable, beside `cp` and fsync on the same disk."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import server  # noqa: E402
from bench.table import Row, arguments, seconds, tell  # noqa: E402
from paddlecloud.sdk import bundle, transfer  # noqa: E402
from paddlecloud.sdk.client import Client  # noqa: E402

MEBIBYTE = 2**20
SIZE = 1024 * MEBIBYTE


def main() -> None:
    given = arguments(__doc__ or "", repeats=3)
    copies, uploads, repeated = [], [], []
    with tempfile.TemporaryDirectory(prefix="paddlecloud-bench-") as work, server.running(below=Path(work)) as client:
        folder = Path(work, "job")
        folder.mkdir()
        for _ in range(given.repeats):
            _fill(folder / "train.bin")
            copies.append(seconds(lambda: _copy(folder / "train.bin", Path(work, "copy.bin"))))
            uploads.append(seconds(lambda: _upload(client, folder)))
            repeated.append(seconds(lambda: _upload(client, folder)))
    rows = [
        Row("upload of 1 GiB", uploads, "s"),
        Row("the same again: nothing to send", repeated, "s"),
        Row("`cp` of 1 GiB, then fsync (the floor)", copies, "s"),
    ]
    speed = SIZE / MEBIBYTE / rows[0].median
    verdict = f"{speed:.0f} MiB/s; an upload takes {rows[0].median / rows[2].median:.1f} times a copy on the same disk."
    tell("upload", rows, verdict, write=given.write)


def _fill(file: Path) -> None:
    """New bytes each time: the server would not ask for those that it has."""
    with file.open("wb") as out:
        for _ in range(SIZE // MEBIBYTE):
            out.write(os.urandom(MEBIBYTE))
        out.flush()
        os.fsync(out.fileno())


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", source, target], check=True)
    with target.open("rb") as copied:
        os.fsync(copied.fileno())
    target.unlink()


def _upload(client: Client, folder: Path) -> None:
    transfer.upload(client.http, bundle.scan(folder), None)


if __name__ == "__main__":
    main()
