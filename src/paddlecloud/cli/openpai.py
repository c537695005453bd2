"""A job file of OpenPAI as it is: recognised by its content, its code sent as the VS Code client does."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecloud.cli import shell
from paddlecloud.cli.progress import progress
from paddlecloud.model.errors import InvalidError

if TYPE_CHECKING:
    from paddlecloud.model.job import Job
    from paddlecloud.sdk.client import Client
    from paddlecloud.sdk.openpai import JobFile

_ENDINGS = (".json", ".yaml", ".yml")


def meant(args: Namespace) -> JobFile | None:
    """The file of OpenPAI that was named, in the place of the folder or by -f; None: there is none."""
    named = [Path(one) for one in (args.folder, args.file) if one and str(one).endswith(_ENDINGS)]
    if not named or not named[0].is_file():
        return None
    from paddlecloud.sdk import openpai

    found = openpai.read(named[0])
    if found is not None:
        _refuse_more(args, found.path)
    return found


def submit(client: Client, file: JobFile, name: str | None) -> Job:
    """Send its code and submit it; what of it is not done here is said."""
    with progress("uploading") as bar:
        found = file.submit(client, name=name or "", progress=bar)
    for warning in found.warnings:
        shell.talk(f"note: {warning}")
    return found.job


def _refuse_more(args: Namespace, file: Path) -> None:
    if args.command:
        raise InvalidError(f"{file} is a job of OpenPAI and says what to run, so no command can follow `--`")
    if args.folder and args.file:
        raise InvalidError(f"{file} is a job of OpenPAI, beside which its code lies: name no other folder")
