"""The runtime as nodes of a cluster are given it: a folder of its own for each version, found by its content."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import py_compile
import shutil
import tempfile
import zipfile
from pathlib import Path

import paddlecloud.runtime

_UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH
# The package of ours is put in place by hand: its __init__ would import what a node does not have. Nothing that is
# imported is garbage, to look for some would copy every page of it in each fork, and at the end there is nothing to put
# in order: these take a fifth of what a short task costs.
_MAIN = """\
import gc
gc.disable()
import sys, types
package = types.ModuleType("paddlecloud")
package.__path__ = [sys.path[0] + "/paddlecloud"]
sys.modules["paddlecloud"] = package
import os
if sys.argv[1:]:
    from paddlecloud.runtime import node
    main = lambda: node.main(sys.argv[1], sys.path[0], os.environ)
else:
    from paddlecloud.runtime import away
    main = lambda: away.main(os.environ)
gc.freeze()
gc.enable()
code = main()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
"""

# How a node that shares no disk with the server gets it: fetched by each run into a folder of its own, so that nobody
# can have changed it, and below one that only its account can look into: anyone may have made what is in /tmp.
FETCH = """\
import http.client, io, os, ssl, stat, sys, tempfile, time, urllib.request, zipfile
server, job, token = (os.environ["PADDLECLOUD_" + name] for name in ("SERVER", "JOB", "TOKEN"))
certificate = os.environ.get("PADDLECLOUD_CERTIFICATE")
trust = None
if certificate:
    trust = ssl.create_default_context()
    trust.load_verify_locations(cadata=certificate)
    trust.verify_flags |= 0x80000
def is_ours(path):
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
def base_in(above):
    name = "paddlecloud-" + str(os.geteuid())
    try:
        os.mkdir(os.path.join(above, name), 0o700)
    except FileExistsError:
        pass
    if is_ours(os.path.join(above, name)):
        return os.path.join(above, name)
    for one in sorted(os.listdir(above)):
        if one.startswith(name + "-") and is_ours(os.path.join(above, one)):
            return os.path.join(above, one)
    return tempfile.mkdtemp(prefix=name + "-", dir=above)
own = os.environ.get("TMPDIR") if os.environ.get("PADDLECLOUD_ALONE") else None
wished = [os.environ.get("PADDLECLOUD_SCRATCH"), own]
base = base_in(next((one for one in wished if one and os.path.isdir(one)), "/tmp"))
asked = urllib.request.Request(server + "/v1/jobs/" + job + "/runtime", headers={"Authorization": "Bearer " + token})
pause, until = 1, time.time() + 600
while True:
    try:
        archive = zipfile.ZipFile(io.BytesIO(urllib.request.urlopen(asked, timeout=30, context=trust).read()))
        break
    except (OSError, http.client.HTTPException, zipfile.BadZipFile) as error:
        if time.time() > until or getattr(error, "code", 500) < 500:
            sys.exit("paddlecloud: " + server + " does not give the runtime: " + str(error))
        time.sleep(pause)
        pause = min(2 * pause, 30)
run = tempfile.mkdtemp(prefix=job + "-", dir=base)
archive.extractall(os.path.join(run, "runtime"))
os.environ["PADDLECLOUD_RUN"] = run
os.execv(sys.executable, [sys.executable, "-I", "-S", os.path.join(run, "runtime")])
"""


def sources() -> dict[str, bytes]:
    """Every file of the runtime, by its path."""
    folder = Path(paddlecloud.runtime.__path__[0])
    files = {f"paddlecloud/runtime/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
    return {"__main__.py": _MAIN.encode(), **files}


@functools.cache
def archive() -> bytes:
    """The same as one zip archive, compiled, for nodes that fetch it."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        _write(sources(), Path(folder))
        for path in sorted(path for path in Path(folder).rglob("*") if path.is_file()):
            made.writestr(zipfile.ZipInfo(path.relative_to(folder).as_posix()), path.read_bytes())
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
    _write(files, part)
    try:
        part.rename(folder)
    except OSError:  # another server has put it there meanwhile
        shutil.rmtree(part)
    return folder


def _write(files: dict[str, bytes], folder: Path) -> None:
    """Compiled, too, for nodes that have this Python: else each of the tasks that start there first does it. Nobody
    compares what is compiled with its source, whose time a node that fetches it sees anew."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if path.parent != folder:
            py_compile.compile(str(path), dfile=name, doraise=True, invalidation_mode=_UNCHECKED)
