"""The runtime as nodes of a cluster are given it: a folder of its own for each version, found by its content."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import shutil
import zipfile
from pathlib import Path

import paddlecloud.runtime

# The package of ours is put in place by hand: its __init__ would import what a node does not have.
_MAIN = """\
import sys, types
package = types.ModuleType("paddlecloud")
package.__path__ = [sys.path[0] + "/paddlecloud"]
sys.modules["paddlecloud"] = package
import os
if sys.argv[1:]:
    from paddlecloud.runtime.node import main
else:
    from paddlecloud.runtime.away import main
sys.exit(main(*sys.argv[1:], environ=os.environ))
"""

# How a node that shares no disk with the server gets it: fetched once, into a folder that only its account can write.
FETCH = """\
import io, os, ssl, sys, tempfile, time, urllib.error, urllib.request, zipfile
server, job, token = (os.environ["PADDLECLOUD_" + name] for name in ("SERVER", "JOB", "TOKEN"))
certificate = os.environ.get("PADDLECLOUD_CERTIFICATE")
trust = ssl.create_default_context(cadata=certificate) if certificate else None
asked = urllib.request.Request(server + "/v1/jobs/" + job + "/runtime", headers={"Authorization": "Bearer " + token})
base = os.path.join(os.environ.get("PADDLECLOUD_SCRATCH") or "/tmp", "paddlecloud-" + str(os.geteuid()))
os.makedirs(base, 0o700, exist_ok=True)
if os.stat(base).st_uid != os.geteuid():
    sys.exit("paddlecloud: " + base + " belongs to someone else")
pause, until = 1, time.time() + 600
while True:
    try:
        archive = zipfile.ZipFile(io.BytesIO(urllib.request.urlopen(asked, timeout=30, context=trust).read()))
        break
    except (OSError, zipfile.BadZipFile) as error:
        if time.time() > until or getattr(error, "code", 500) < 500:
            sys.exit("paddlecloud: " + server + " does not give the runtime: " + str(error))
        time.sleep(pause)
        pause = min(2 * pause, 30)
folder = os.path.join(base, "runtime-" + os.environ["PADDLECLOUD_RUNTIME"])
if not os.path.isdir(folder):
    part = tempfile.mkdtemp(dir=base)
    archive.extractall(part)
    try:
        os.rename(part, folder)
    except OSError:
        pass
os.environ["PADDLECLOUD_SCRATCH"] = base
os.execv(sys.executable, [sys.executable, "-I", "-S", folder])
"""


def sources() -> dict[str, bytes]:
    """Every file of the runtime, by its path."""
    folder = Path(paddlecloud.runtime.__path__[0])
    files = {f"paddlecloud/runtime/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
    return {"__main__.py": _MAIN.encode(), **files}


@functools.cache
def archive() -> bytes:
    """The same as one zip archive, for nodes that fetch it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in sources().items():
            made.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


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
