"""Creates the folders that benchmarks transfer: one large file or many small ones; then changes 1 %.

It also runs as a job that writes the same into its results, so it uses only the standard library.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

MEBIBYTE = 2**20
LARGE_BYTES = 1024 * MEBIBYTE
SMALL_FILES = 10_000
SMALL_BYTES = 4096
_SMALL_IN_A_FOLDER = 100
_CHANGED_SHARE = 100


def fill(kind: str, folder: Path, *, files: int = SMALL_FILES) -> None:
    """Fill a folder with new random bytes, since the client does not upload what the server already has."""
    if kind == "large":
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "train.bin").open("wb") as file:
            for _ in range(LARGE_BYTES // MEBIBYTE):
                file.write(os.urandom(MEBIBYTE))
    else:
        for number in range(files):
            _write_small(folder, number)


def change(kind: str, folder: Path) -> None:
    """Change 1 % of the large file, in one piece in its middle, or every hundredth small file."""
    if kind == "large":
        with (folder / "train.bin").open("r+b") as file:
            file.seek(LARGE_BYTES // 2)
            file.write(os.urandom(LARGE_BYTES // _CHANGED_SHARE))
    else:
        for number in range(0, SMALL_FILES, _CHANGED_SHARE):
            _write_small(folder, number)


def _write_small(folder: Path, number: int) -> None:
    within = folder / f"{number // _SMALL_IN_A_FOLDER:03}"
    if number % _SMALL_IN_A_FOLDER == 0:
        within.mkdir(parents=True, exist_ok=True)
    (within / f"{number:05}.bin").write_bytes(os.urandom(SMALL_BYTES))


def _main() -> None:
    """Fill a folder, report it, wait for a file to appear, change the folder, report that."""
    kind, folder, gate = sys.argv[1:]
    fill(kind, Path(folder))
    print("filled", flush=True)
    while not os.path.exists(gate):
        time.sleep(0.05)
    change(kind, Path(folder))
    print("changed", flush=True)


if __name__ == "__main__":
    _main()
