"""The command `paddle`, by which seed 003's scripts submit: cluster_train is ours, everything else PaddlePaddle's own.

That one is found along PATH, in the order of the shell, and never in a script of ours, wherever it was installed.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from paddlecloud.cli import shell
from paddlecloud.cli.exits import OTHER, USAGE
from paddlecloud.model.finding import Finding, ok, warning

OURS = b"paddlecloud.cli.paddle"  # in every script that an installation of ours makes
CLUSTER_TRAIN = "cluster_train"
_DEPTH = "PADDLECLOUD_PADDLE_DEPTH"
_DEEPEST = 3  # a script that only looks for the next `paddle` would lead back to us for ever
_READ_BYTES = 64 * 1024
_PACKAGES = ("paddlepaddle", "paddlepaddle-gpu")


def start() -> None:
    """The command as a process of its own."""
    shell.replace_unencodable()
    sys.exit(main(sys.argv[1:], shell.variables()))


def main(typed: Sequence[str], variables: Mapping[str, str]) -> int:
    if typed and typed[0] == CLUSTER_TRAIN:
        from paddlecloud.cli import main as paddlecloud

        return paddlecloud.main(typed)
    depth = int(variables.get(_DEPTH, "0") if variables.get(_DEPTH, "0").isdecimal() else _DEEPEST)
    found = next(others(variables), None) if depth < _DEEPEST else None
    if found is not None:
        os.execve(found, [str(found), *typed], {**variables, _DEPTH: str(depth + 1)})
    if not typed or typed[0] in ("-h", "--help", "help"):
        shell.say("usage: paddle cluster_train --config FILE …        paddle cluster_train --help tells more")
        shell.say(nowhere())
        return 0
    shell.talk(f"paddle: {typed[0]!r} is passed on to PaddlePaddle's own `paddle`, and {nowhere()}")
    return OTHER if installed() else USAGE


def checkup(folder: Path, variables: Mapping[str, str], beside: str) -> Iterator[Finding]:
    """Whether the word `paddle` means this program, installed in `folder`; `beside` names the PaddlePaddle there."""
    subject, ours = CLUSTER_TRAIN, folder / "paddle"
    first = shutil.which("paddle", path=variables.get("PATH", ""))
    always = "`paddlecloud cluster_train` does the same"
    if ours.exists() and not is_ours(ours):
        yield warning(
            subject,
            f"{ours} is {beside or 'another program'}'s own, which was written over ours: it knows no cluster_train",
            f"{always}; to have both, install PaddlePaddle in an environment of its own, and paddlecloud here again",
        )
    elif ours.exists() and beside and next(others(variables), None) is None:
        yield warning(
            subject, f"{ours} is ours, and that of {beside} is gone", "install it in an environment of its own"
        )
    elif ours.exists() and first is not None and not is_ours(Path(first)):
        yield warning(subject, f"`paddle` is {first}, which knows no cluster_train", f"put {folder} first in PATH")
    elif ours.exists():
        yield ok(subject, f"{ours}; {always}")


def others(variables: Mapping[str, str]) -> Iterator[Path]:
    """Commands of this name that are not ours, in the order of PATH."""
    for folder in variables.get("PATH", "").split(os.pathsep):
        file = Path(folder or ".") / "paddle"
        if file.is_file() and os.access(file, os.X_OK) and not is_ours(file):
            yield file


def is_ours(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return OURS in opened.read(_READ_BYTES)
    except OSError:
        return False


def installed() -> str:
    """The name and version of the PaddlePaddle of this Python, or ""."""
    from importlib import metadata

    for name in _PACKAGES:
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return ""


def nowhere() -> str:
    if name := installed():
        return (
            f"that of {name} had the place of ours, {Path(sys.executable).parent / 'paddle'}: `pip install "
            f"--force-reinstall --no-deps {name.partition(' ')[0]}` brings it back, and `paddlecloud cluster_train` "
            "works all the same"
        )
    return "there is none on PATH: only cluster_train is known here. Install paddlepaddle for the others"
