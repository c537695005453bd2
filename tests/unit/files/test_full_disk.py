"""A full disk, for real: a small tmpfs in a mount namespace of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, sys
from pathlib import Path
from paddlecloud.files.uploads import Uploads
from paddlecloud.model.errors import FullError
from paddlecloud.model.tree import CHUNK_BYTES
from tests import trees

root = Path(sys.argv[1])
uploads = Uploads(root / "files")

def stored():
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.name != "lock")

def refused(call, *arguments):
    try:
        call(*arguments)
    except FullError as error:
        assert f"no space left on the server, in {root}/" in error.message, error
    else:
        raise AssertionError("it was not refused")

small = {f"{number}": os.urandom(512 * 1024) for number in range(6)}
fits = trees.manifest({"0": small["0"]})
trees.send(uploads, "ann", fits, small["0"])
uploads.seal("ann", fits)
before = stored()

wanted = trees.manifest(small)
uploads.missing("ann", wanted)
refused(uploads.put_chunks, "ann", [(trees.digest(content), content) for content in small.values()])
assert stored() == before, stored()

large = os.urandom(CHUNK_BYTES + 1)
refused(trees.send, uploads, "ann", trees.manifest({"large": large}), large)
assert stored() == before, stored()

copies = trees.manifest({}, *(trees.file("run", small["0"], executable=True), trees.file("x", small["1"])))
trees.send(uploads, "ann", copies, small["1"])
(root / "filler").write_bytes(bytes(os.statvfs(root).f_bavail * os.statvfs(root).f_frsize))
held = stored()
refused(uploads.seal, "ann", copies)
assert [path for path in stored() if ".new-" in path] == []
assert not [path for path in (root / "files/ann/trees").iterdir() if path.name != fits.id]
(root / "filler").unlink()
assert uploads.missing("ann", copies) == []
assert (uploads.tree("ann", uploads.seal("ann", copies)) / "run").read_bytes() == small["0"]
print("passed")
"""


def test_a_full_disk_is_told_and_leaves_nothing_behind(tmp_path: Path) -> None:
    inside = 'mount -t tmpfs -o size=2m none "$0" && exec "$1" -c "$2" "$0"'
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no mount namespaces")
    repository = Path(__file__).parents[3]
    run = subprocess.run(
        [*alone, "sh", "-c", inside, str(tmp_path), sys.executable, SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{repository}/src:{repository}", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
    )
    assert run.stdout == "passed\n", run.stderr
