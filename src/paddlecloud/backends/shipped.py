"""The runtime as nodes of a cluster are given it: a folder of its own for each version, found by its content."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import paddlecloud.runtime

# The package of ours is put in place by hand: its __init__ would import what a node does not have.
_MAIN = """\
import sys, types
package = types.ModuleType("paddlecloud")
package.__path__ = [sys.path[0] + "/paddlecloud"]
sys.modules["paddlecloud"] = package
import os
from paddlecloud.runtime.node import main
sys.exit(main(*sys.argv[1:], environ=os.environ))
"""


def sources() -> dict[str, bytes]:
    """Every file of the runtime, by its path."""
    folder = Path(paddlecloud.runtime.__path__[0])
    files = {f"paddlecloud/runtime/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
    return {"__main__.py": _MAIN.encode(), **files}


def version(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def put(root: Path) -> Path:
    """The runtime of this server in a folder below `root`, which `python <folder>` runs."""
    files = sources()
    folder = root / f"runtime-{version(files)}"
    if folder.is_dir():
        return folder
    part = root / f".new-runtime-{os.getpid()}"
    shutil.rmtree(part, ignore_errors=True)
    for name, content in files.items():
        path = part / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    try:
        part.rename(folder)
    except OSError:  # another server has put it there meanwhile
        shutil.rmtree(part)
    return folder
