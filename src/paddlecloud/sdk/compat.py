"""Adds the modules of PaddlePaddle v2 to what a job uploads (`--compat v2`)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paddlecloud.model.compat import FOLDER, adapted
from paddlecloud.model.tree import Manifest
from paddlecloud.recordio.compat import sources
from paddlecloud.sdk import bundle
from paddlecloud.sdk.bundle import Bundle

__all__ = ["FOLDER", "adapted", "bundled", "written"]


@contextmanager
def bundled(sent: Bundle | None) -> Iterator[Bundle]:
    """What is sent with the folder in it, as long as the block lasts."""
    with written() as folder:
        made = bundle.scan(folder, ignore_defaults=False)
        yield bundle.joined(Bundle(Manifest(entries=()), {}, (), "") if sent is None else sent, made, FOLDER)


@contextmanager
def written() -> Iterator[Path]:
    """The folder on this disk, as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="paddlecloud-compat-") as temporary:
        folder = Path(temporary)
        for path, text in sources().items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
        yield folder
